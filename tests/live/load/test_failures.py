"""Targets that fail, stall, end and restart."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

from live.load import servers
from runs import COMMAND, running
from shakedown.live.load_test import _http_request

SUITE = "tls1.3/x25519/p256/server"
SHORT = ("--rate", "20/s", "--duration", "0.5s")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nowhere.invalid:443", *SHORT), "nowhere.invalid: "),
        (("127.0.0.1", *SHORT), "has no port"),
        (("127.0.0.1:0", *SHORT), "no port from 1 to 65535"),
        (("ftp://127.0.0.1:21", *SHORT), "another scheme"),
        (("wtls://127.0.0.1:9203", *SHORT), "a wtls:// target needs a WTLS suite"),
        (("tls://127.0.0.1:443", "wtls/ecdh_anon+163k", *SHORT), "a tls:// target does not accept one"),
        (("127.0.0.1:443", "tls1.3/nonsense", *SHORT), "nonsense"),
        (
            ("127.0.0.1:443",),
            "no rate; accepted: new connections per second such as --rate 50/s, or --arrivals closed",
        ),
        (("127.0.0.1:443", "--rate", "10", "--arrivals", "closed"), "in a closed loop"),
        (("127.0.0.1:443", "--rate", "0"), "rate: 0; accepted: 0.001 to"),
        (("127.0.0.1:443", "--rate", "5 apples"), "is not a rate"),
        (
            ("127.0.0.1:443", *SHORT, "--resumption", "1.5"),
            '"1.5" is not a share; accepted: 0 to 1, or',
        ),
        (("127.0.0.1:443", *SHORT, "--resumption", "nan"), '"nan" is not a share'),
        (
            ("wtls://239.1.2.3:9203", "wtls/ecdh_anon+163k", *SHORT),
            "239.1.2.3 (239.1.2.3) is not this machine",
        ),
        (("127.0.0.1:443", *SHORT, "--ca", "/nowhere/ca.pem"), "/nowhere/ca.pem"),
        (("127.0.0.1:443", *SHORT, "--require", "beauty>1"), '"beauty" has no threshold'),
        (("192.0.2.1:443", *SHORT), "--authorized-target 192.0.2.1"),
        (("192.0.2.1:443", "--rate", "60", "--authorized-target", "192.0.2.1"), "above the limit of 50/s"),
    ],
)
def test_wrong_input_is_reported_in_one_line(load, arguments, told):
    status, found, err = load(*arguments)
    assert (status, found) == (2, {})
    assert told in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_closed_port_is_reported_as_connection_refused(load):
    status, found, err = load(f"127.0.0.1:{servers.free_port()}", *SHORT)
    assert (status, found) == (1, {})
    assert err.rstrip().endswith("connection refused")


def test_target_that_is_not_tls_is_reported(load):
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def answer() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    peer.recv(4096)
                    peer.sendall(b"220 mail.example ESMTP\r\n")

        threading.Thread(target=answer, daemon=True).start()
        status, found, err = load(f"127.0.0.1:{listener.getsockname()[1]}", *SHORT)
        listener.shutdown(socket.SHUT_RDWR)
    assert (status, found) == (1, {})
    assert "not TLS" in err


def test_silent_server_is_reported_as_timeout(load):
    with closing(socket.create_server(("127.0.0.1", 0), backlog=100)) as listener:
        status, found, err = load(f"127.0.0.1:{listener.getsockname()[1]}", *SHORT, "--timeout", "0.3s")
    assert (status, found) == (1, {})
    assert "timeout: handshake" in err


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_before_any_figures_is_not_a_target_failure(sent):
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        arguments = ["load", f"127.0.0.1:{listener.getsockname()[1]}", *SHORT, "--timeout", "60s"]
        process = subprocess.Popen(
            [sys.executable, "-m", "shakedown", *arguments], stderr=subprocess.PIPE, text=True
        )
        with listener.accept()[0]:
            process.send_signal(sent)
            _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (130, "error: interrupted\n")


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_stopped_run_prints_its_counts(sent, start, peer, pair, tmp_path):
    folder = tmp_path / "nginx"
    server = start(servers.nginx(peer("nginx"), folder, pair, ""))
    arguments = ["load", server.target, "--rate", "50/s", "--duration", "600s", "--http", "/", "--no-check"]
    process = subprocess.Popen(
        [sys.executable, "-m", "shakedown", *arguments, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    servers.wait_for_requests(folder, 20)
    process.send_signal(sent)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert err.endswith("error: interrupted: the figures are of the run so far\n")
    [found] = json.loads(out)
    assert found["interrupted"]
    assert found["completed"] >= 5


def test_achieved_rate_covers_the_whole_planned_time(load, start, peer, pair, tmp_path):
    server = start(servers.nginx(peer("nginx"), tmp_path / "nginx", pair, ""))
    status, found, err = load(server.target, "--rate", "2/s", "--duration", "2s")
    assert status == 0, err
    assert found["elapsed_s"] >= 2.0
    assert found["rate_per_s"]["achieved"] == pytest.approx(found["completed"] / found["elapsed_s"])
    # A limit ends the plan early.
    limited = load(server.target, "--rate", "50/s", "--duration", "60s", "--count", "5")[1]
    assert limited["completed"] == 5
    assert limited["elapsed_s"] < 60.0


@pytest.mark.parametrize("target", ["gateway.example:443", "tls://gateway.example:443/"])
def test_http_request_contains_the_host(target):
    assert _http_request("/", target).split("\r\n")[1] == "Host: gateway.example:443"


def test_server_without_the_suite_is_reported(load, start, peer, pair, tmp_path):
    server = start(servers.s_server(peer("openssl"), tmp_path, pair, "-tls1_2"))
    status, found, err = load(server.target, SUITE, *SHORT)
    assert (status, found) == (1, {})
    assert "protocol_version" in err


def test_load_continues_after_a_server_restart(load, start, peer, pair, tmp_path):
    folder = tmp_path / "nginx"
    server = start(servers.nginx(peer("nginx"), folder, pair, ""))

    options = (
        "--rate",
        "100/s",
        "--arrivals",
        "deterministic",
        "--duration",
        "600s",
        "--http",
        "/",
        "--json",
    )
    with running([*COMMAND, "load", server.target, SUITE, *options]) as process:
        servers.wait_for_requests(folder)
        server.stop()
        before = servers.requests(folder)
        # The length of the outage: 200 starts are planned in it.
        time.sleep(2.0)
        server.start()
        # The restarted server answers these.
        servers.wait_for_requests(folder, before + 50)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    [found] = json.loads(out)
    assert found["failed"]["connection refused"] > 20
    assert found["completed"] >= 50


def test_server_stall_is_visible_in_the_percentiles(load, start, peer, pair, tmp_path):
    """Stopped for 600 ms of 5 s at 60/s, 12 per cent of all starts wait for 300 ms on average."""
    folder = tmp_path / "nginx"
    server = start(servers.nginx(peer("nginx"), folder, pair, ""))

    def stall() -> None:
        servers.wait_for_requests(folder, 20)
        server.signal(signal.SIGSTOP)
        time.sleep(0.6)
        server.signal(signal.SIGCONT)

    stalled = threading.Thread(target=stall)
    stalled.start()
    status, found, err = load(
        *(server.target, SUITE, "--rate", "60/s", "--arrivals", "deterministic", "--duration", "5s"),
        *("--http", "/", "--timeout", "300s"),
    )
    stalled.join()
    assert status == 0, err
    assert found["planned"] == found["completed"] == 300, found["failed"]
    times = found["handshake_s"]
    assert times["p95"] >= 0.25
    assert times["p99"] >= 0.44
    assert times["max"] >= 0.49
    # The kernel accepts connections for the stopped server: an eighth of the handshakes waits for 300 ms,
    # no connection does.
    assert times["mean"] - found["connect_s"]["mean"] >= 0.02


def test_thresholds_set_the_exit_status(load, start, peer, pair, tmp_path):
    server = start(servers.nginx(peer("nginx"), tmp_path / "nginx", pair, ""))
    met = ("--require", "handshake.p99<600s", "--require", "failed.share<=0%", "--require", "rate>0.01")
    status, found, err = load(server.target, *SHORT, *met)
    assert status == 0, err
    assert [one["met"] for one in found["requirements"]] == [True, True, True]
    status, found, err = load(
        server.target, *SHORT, "--require", "handshake.p50<1us", "--require", "rate>0.01"
    )
    assert status == 1
    assert [one["met"] for one in found["requirements"]] == [False, True]
    assert "not met: handshake.p50<1us: got" in err
    # Nothing was received, so no value is below a second.
    status, found, err = load(server.target, *SHORT, "--require", "first_byte.p99<1s")
    assert status == 1
    assert found["requirements"] == [{"text": "first_byte.p99<1s", "value": None, "met": False}]


def test_starts_beyond_the_cap_count_as_planned(load, start, peer, pair, tmp_path):
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        server = start(servers.s_server(peer("openssl"), tmp_path, pair))

        def one_then_silence() -> None:
            first, _ = listener.accept()
            with first, socket.create_connection(("127.0.0.1", server.port)) as upstream:
                first.settimeout(120)
                upstream.settimeout(120)
                for source, sink in ((first, upstream), (upstream, first), (first, upstream)):
                    sink.sendall(source.recv(16384))

        relay = threading.Thread(target=one_then_silence)
        relay.start()
        status, found, err = load(
            f"127.0.0.1:{listener.getsockname()[1]}",
            *("--rate", "50/s", "--arrivals", "deterministic", "--duration", "1s"),
            *("--max-open", "2", "--timeout", "5s"),
        )
        relay.join()
    assert status == 1
    assert found["planned"] == 50 == sum(found["failed"].values())
    assert found["failed"]["not started"] > 40
    assert found["saturated"]
    assert "open connections" in found["saturated_by"]
    assert "the generator was the bottleneck" in err
