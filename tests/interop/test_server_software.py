"""The tickets and session IDs of profiles of server software, compared with the servers themselves."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from bench.tls_servers import serving

from shakedown.live.load_test import load
from shakedown.profiles import load_software
from shakedown.schema.options import LoadOptions


def s_client(address: str, *options: str) -> str:
    """The output of `openssl s_client -msg` for a connection kept open for up to five seconds."""
    command = ["openssl", "s_client", "-connect", address, "-msg", *options]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            return process.communicate("GET / HTTP/1.0\r\n\r\n", timeout=5)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return process.communicate()[0]


@pytest.fixture(params=["nginx", "haproxy", "go"])
def server(request, peer):
    if request.param != "go":  # Go is an optional peer
        peer(request.param)
    elif shutil.which("go") is None:
        pytest.skip("go is not installed")
    with serving(request.param, [("p256", False)]) as running:
        yield load_software(request.param), f"127.0.0.1:{running.places['p256', False].port}"


def test_tls13_issues_the_tickets_of_the_profile(server, tmp_path):
    software, address = server
    session = tmp_path / "session.pem"
    full = s_client(address, "-tls1_3", "-ign_eof", "-sess_out", str(session))
    assert full.count("NewSessionTicket") == software.tickets
    resumed = s_client(address, "-tls1_3", "-ign_eof", "-sess_in", str(session))
    assert "Reused, TLSv1.3" in resumed
    assert resumed.count("NewSessionTicket") == software.resumption_tickets


def test_tls12_resumes_by_session_id_as_the_profile_states(server, tmp_path):
    software, address = server
    session = tmp_path / "session.pem"
    s_client(address, "-tls1_2", "-no_ticket", "-sess_out", str(session))
    again = s_client(address, "-tls1_2", "-no_ticket", "-sess_in", str(session))
    assert ("Reused, TLSv1.2" in again) == software.session_ids


def test_resuming_clients_do_not_wait_for_another_ticket(server):
    """Go's ticket comes in the first flight. A client that overlooks it waits 250 ms in each connection."""
    options = LoadOptions(arrivals="closed", clients=1, max_starts=40, duration_s=120.0, check=False)
    run = load(server[1], "tls1.3/x25519/p256/server/resumed", options)
    assert run.resumed.confirmed == run.completed == 40
    assert run.elapsed_s < 40 * 0.25
