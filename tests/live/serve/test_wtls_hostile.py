"""Hostile WTLS peers on real sockets: forgeries in a client's name, garbage, floods."""

from __future__ import annotations

import random
import socket
import subprocess
from collections.abc import Callable

import pytest

from live.serve.serving import Running, serving
from live.serve.wtls_peers import Flow, between

SUITE = "wtls/rsa/rsa1024/server"
ANONYMOUS = "wtls/ecdh_anon+163k"
CLEAR_ALERTS = [b"\x01" + bytes([level, number, 0, 0, 0, 0]) for level in (1, 2, 3) for number in (0, 20, 40)]
ONE = ("--arrivals", "closed", "--clients", "1", "--count", "8", "--duration", "300s", "--timeout", "200s")

Load = Callable[..., dict]


@pytest.fixture
def load(shakedown: Callable[..., subprocess.CompletedProcess[str]]) -> Load:
    """`load(target, suite, …)`: the object that the command prints."""
    import json

    def run(*arguments: str) -> dict:
        done = shakedown("load", *arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)[0]

    return run


HELLOS: dict[str, bytes] = {}


def first_flight(load: Load, suite: str) -> bytes:
    """A genuine ClientHello from another client; the same for all tests."""
    if suite not in HELLOS:
        HELLOS[suite] = _first_flight(load, suite)
    return HELLOS[suite]


def _first_flight(load: Load, suite: str) -> bytes:
    with serving(suite) as server, between(server.address) as middle:
        load(middle.target, suite, *ONE[:-6], "--count", "1", "--duration", "5s")
    return middle.flows[0].sent["client"][0]


def spoiled(datagram: bytes, generator: random.Random) -> bytes:
    """The datagram with one to three bits flipped."""
    copy = bytearray(datagram)
    for _ in range(generator.randrange(1, 4)):
        copy[generator.randrange(len(copy))] ^= 1 << generator.randrange(8)
    return bytes(copy)


def gets_in(load: Load, server: Running, suite: str) -> None:
    """Checks that genuine clients are served."""
    found = load(f"wtls://{server.target}", suite, *ONE, "--http", "/")
    assert found["completed"] == found["planned"] == 8
    assert found["first_byte_s"]["n"] == 8


@pytest.mark.parametrize("suite", [SUITE, ANONYMOUS, "wtls/ecdh_ecdsa/163k/mutual"])
def test_datagrams_spoofed_as_the_client_do_not_end_a_handshake(load, suite):
    """After each client datagram come another hello, plaintext alerts and a corrupted copy."""
    hello = first_flight(load, suite)
    generator = random.Random(20260101)

    def forge(flow: Flow, sender: str, datagram: bytes) -> list[bytes]:
        if sender == "server":
            return [datagram]
        forged = [hello, *CLEAR_ALERTS, generator.randbytes(40)]
        if len(flow.sent["client"]) > 1:
            forged.append(spoiled(datagram, generator))
        return [datagram, *forged]

    with serving(suite, "--payload", 5) as server:
        with between(server.address, forge) as middle:
            found = load(middle.target, suite, *ONE)
        counted = server.stop()
    assert found["completed"] == found["planned"] == 8
    assert counted["handshakes"]["full"] >= 8


def test_datagrams_spoofed_as_the_client_do_not_end_a_connection(load):
    """The handshake passes unchanged; forged datagrams come just before the client's request."""
    hello = first_flight(load, SUITE)
    generator = random.Random(7)

    def forge(flow: Flow, sender: str, datagram: bytes) -> list[bytes]:
        # The client's third datagram is its request; its closing alert follows.
        if sender == "client" and len(flow.sent["client"]) == 3:
            return [hello, *CLEAR_ALERTS, spoiled(datagram, generator), hello, datagram]
        return [datagram]

    with serving(SUITE, "--payload", 5) as server:
        with between(server.address, forge) as middle:
            found = load(middle.target, SUITE, *ONE, "--http", "/")
        server.stop()
    assert found["completed"] == found["planned"] == found["first_byte_s"]["n"] == 8


def test_server_survives_garbage_datagrams(load):
    hello = first_flight(load, SUITE)
    generator = random.Random(20260102)
    with serving(SUITE, "--payload", 5) as server:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for _ in range(3_000):
                piece = generator.choice(
                    [
                        spoiled(hello, generator),
                        hello[: generator.randrange(len(hello))],
                        generator.randbytes(99),
                    ]
                )
                stranger.sendto(piece, server.address)
            stranger.sendto(generator.randbytes(60_000), server.address)
            stranger.sendto(b"", server.address)
        gets_in(load, server, SUITE)
        server.stop()


@pytest.mark.parametrize("suite", [SUITE, ANONYMOUS])
def test_flood_of_hellos_does_not_block_other_clients(load, suite):
    """10,000 hellos from as many addresses; an anonymous one costs a key generation, which has a budget."""
    hello = first_flight(load, suite)
    with serving(suite, "--payload", 5) as server:
        gets_in(load, server, suite)
        before_kib = server.resident_kib()
        for number in range(10_000):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                stranger.bind((f"127.0.{1 + number // 250}.{1 + number % 250}", 0))
                stranger.sendto(hello, server.address)
        gets_in(load, server, suite)
        # The table has room for 4,096.
        assert server.resident_kib() - before_kib < 4_096 * 16
        counted = server.stop()
    assert counted["handshakes"]["full"] >= 16
