"""Handshakes and resumptions that the server's own log confirms."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from live.load import servers

PROTOCOLS = {"tls1.2": "tls1.2/ecdhe_ecdsa+x25519/p256/server", "tls1.3": "tls1.3/x25519/p256/server"}
FIGURES = {"n", "mean", "p50", "p90", "p95", "p99", "max"}


def accounted(found: dict) -> None:
    """Checks what every run's figures have in common."""
    assert found["planned"] == found["completed"] + sum(found["failed"].values())
    for name in ("connect_s", "handshake_s", "first_byte_s", "start_lateness_s"):
        times = found[name]
        assert set(times) == FIGURES
        if times["n"]:
            carried = {"p50": 1, "p90": 10, "p95": 20, "p99": 100}
            kept = [times[one] for one, least in carried.items() if times["n"] >= least]
            assert [0, *kept, times["max"]] == sorted([0, *kept, times["max"]])
            assert {one for one in carried if times[one] is None} == {
                one for one, least in carried.items() if times["n"] < least
            }
    assert found["handshake_s"]["n"] == found["completed"]
    assert found["connect_s"]["mean"] <= found["handshake_s"]["mean"]
    assert found["generator_cpu_s"] > 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_full_handshake_counts_match_openssl(load, start, peer, pair, tmp_path, protocol):
    server = start(servers.s_server(peer("openssl"), tmp_path, pair))
    before = servers.counts(peer("openssl"), server.port)
    status, found, err = load(
        server.target, PROTOCOLS[protocol], "--rate", "100/s", "--duration", "1s", "--http", "/"
    )
    after = servers.counts(peer("openssl"), server.port)
    assert status == 0, err
    accounted(found)
    assert found["failed"] == {}
    assert 50 < found["completed"] < 150
    assert found["first_byte_s"]["n"] == found["completed"]
    assert found["rate_per_s"]["planned"] == 100
    assert found["resumed"] == {"asked": 0, "confirmed": 0, "without_session": 0}
    assert found["negotiated"][0]["protocol"] == protocol
    assert found["certificate_checked"] == "no"
    # One handshake checks that the server runs; another asked for the counts.
    assert after.finished - before.finished == found["completed"] + 1 + 1
    assert after.hits == before.hits


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("share", ["1.0", "0.5"])
def test_resumption_counts_match_nginx(load, start, peer, pair, tmp_path, protocol, share):
    folder = tmp_path / "nginx"
    server = start(servers.nginx(peer("nginx"), folder, pair, "ssl_session_cache shared:s:1m;"))
    status, found, err = load(
        *(server.target, PROTOCOLS[protocol], "--rate", "200/s", "--duration", "1s"),
        *("--resumption", share, "--clients", "4", "--http", "/"),
    )
    assert status == 0, err
    accounted(found)
    asked, confirmed = found["resumed"]["asked"], found["resumed"]["confirmed"]
    assert asked == confirmed
    if share == "1.0":
        assert asked == found["completed"]
    else:
        assert 0.3 < asked / found["completed"] < 0.7
    logged = (folder / "access.log").read_text().split("\n")
    assert sum(line.startswith("r ") for line in logged) == confirmed
    # Four more handshakes collected the sessions.
    assert sum(line.startswith(". ") for line in logged) == found["completed"] - confirmed + 4


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_resumption_counts_match_openssl(load, start, peer, pair, tmp_path, protocol):
    server = start(servers.s_server(peer("openssl"), tmp_path, pair))
    before = servers.counts(peer("openssl"), server.port)
    status, found, err = load(
        *(server.target, PROTOCOLS[protocol], "--rate", "60/s", "--duration", "1s"),
        *("--resumption", "1", "--clients", "3"),
    )
    after = servers.counts(peer("openssl"), server.port)
    assert status == 0, err
    assert found["resumed"]["asked"] == found["resumed"]["confirmed"] == found["completed"] > 0
    assert after.hits - before.hits == found["resumed"]["confirmed"]


@pytest.mark.parametrize(
    ("protocol", "settings"),
    [
        ("tls1.2", "ssl_session_cache off; ssl_session_tickets off;"),
        ("tls1.3", "ssl_session_cache off; ssl_session_tickets off;"),
    ],
)
def test_a_server_that_never_resumes_fails_the_run(load, start, peer, pair, tmp_path, protocol, settings):
    server = start(servers.nginx(peer("nginx"), tmp_path / "nginx", pair, settings))
    arguments = (server.target, PROTOCOLS[protocol], "--rate", "50/s", "--duration", "1s", "--clients", "2")
    status, found, err = load(*arguments, "--resumption", "1")
    assert status == 1
    assert found["resumed"]["confirmed"] == 0 < found["resumed"]["asked"]
    assert f"the server resumed 0 of the {found['resumed']['asked']} connections that should resume" in err
    # With a requirement that expects this, the load succeeds.
    status, found, err = load(*arguments, "--resumption", "1", "--require", "resumed.share<=0")
    assert (status, err.count("error")) == (0, 0), err


def test_error_for_ticket_only_server_names_the_ticket_suite(load, start, peer, pair, tmp_path):
    settings = "ssl_session_cache off; ssl_session_tickets on;"
    server = start(servers.nginx(peer("nginx"), tmp_path / "nginx", pair, settings))
    options = ("--rate", "50/s", "--duration", "1s", "--clients", "2", "--resumption", "1")
    status, found, err = load(server.target, PROTOCOLS["tls1.2"], *options)
    assert (status, found["resumed"]["confirmed"]) == (1, 0)
    by_ticket = f"{PROTOCOLS['tls1.2']}/ticket"
    assert f"if the server resumes only by ticket, name the suite {by_ticket}" in err
    status, found, err = load(server.target, by_ticket, *options)
    assert (status, "tickets alone" in err) == (0, False), err
    assert found["resumed"]["confirmed"] == found["resumed"]["asked"] > 0


def test_a_closed_loop_runs_as_fast_as_the_server(load, start, peer, pair, tmp_path):
    folder = tmp_path / "nginx"
    server = start(servers.nginx(peer("nginx"), folder, pair, ""))
    status, found, err = load(
        server.target,
        "--arrivals",
        "closed",
        "--clients",
        "4",
        "--count",
        "200",
        "--duration",
        "300s",
        "--http",
        "/",
    )
    assert status == 0, err
    accounted(found)
    assert found["completed"] == found["planned"] == 200
    assert found["rate_per_s"]["planned"] is None
    assert found["suite"] is None
    assert [one["protocol"] for one in found["negotiated"]] == ["tls1.3"]
    assert len((folder / "access.log").read_text().splitlines()) == 201


def test_certificate_is_checked_only_if_a_root_is_known(load, start, peer, pair, tmp_path: Path):
    server = start(servers.s_server(peer("openssl"), tmp_path, pair))
    short = ("--rate", "20", "--duration", "0.5s")
    status, found, err = load(server.target, *short, "--ca", pair[0])
    assert (status, found["certificate_checked"]) == (0, "ca"), err
    other, _ = servers.make_certificate(peer("openssl"), tmp_path)
    status, found, err = load(server.target, *short, "--ca", other)
    assert (status, found) == (1, {})
    assert "certificate verify failed" in err
    status, found, err = load(server.target, *short, "--ca", pair[0], "--server-name", "example.org")
    assert (status, found) == (1, {})
    assert "hostname mismatch" in err.lower()


@contextmanager
def offers_cut_off(port: int) -> Iterator[int]:
    """A relay to a local port that closes connections which offer a TLS 1.3 session; returns its own port.

    A ClientHello that ends with the pre_shared_key extension has its binder at the very end: 32 or 48 bytes
    behind their length.
    """
    with closing(socket.create_server(("127.0.0.1", 0), backlog=100)) as listener:

        def pump(source: socket.socket, sink: socket.socket) -> None:
            try:
                while data := source.recv(65536):
                    sink.sendall(data)
                sink.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        def relay(client: socket.socket) -> None:
            with client:
                hello = b""
                while len(hello) < 5 or len(hello) < 5 + int.from_bytes(hello[3:5], "big"):
                    if not (data := client.recv(65536)):
                        return
                    hello += data
                if any(hello[-size - 3 :][:3] == bytes([0, size + 1, size]) for size in (32, 48)):
                    return
                with socket.create_connection(("127.0.0.1", port)) as server:
                    server.sendall(hello)
                    back = threading.Thread(target=pump, args=(server, client))
                    back.start()
                    pump(client, server)
                    back.join()

        def accept() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=relay, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]


def test_server_that_aborts_resumptions_fails_the_run(load, start, peer, pair, tmp_path):
    """Failed resumptions count as requested: the full handshakes do not make the run a success."""
    server = start(servers.nginx(peer("nginx"), tmp_path / "nginx", pair, "ssl_session_cache shared:s:1m;"))
    with offers_cut_off(server.port) as port:
        status, found, err = load(
            *(f"localhost:{port}", PROTOCOLS["tls1.3"], "--rate", "40/s", "--duration", "1s"),
            *("--clients", "2", "--resumption", "50%"),
        )
    failed, asked = sum(found["failed"].values()), found["resumed"]["asked"]
    assert found["completed"] > 0 < failed == asked
    assert found["resumed"]["confirmed"] == 0
    assert status == 1
    assert f"the server resumed 0 of the {asked} connections that should resume" in err
