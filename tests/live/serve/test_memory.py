"""What peers with unfinished messages make a server hold, and whether it gives that back."""

from __future__ import annotations

import socket
import struct
import time
from contextlib import ExitStack, suppress

import pytest

from live.serve.serving import PATIENCE_S, Running, ask, serving
from live.serve.test_hostile import descriptors

PEERS = 3_000
MAX_HELD_KIB = 150_000
MAX_KEPT_KIB = 25_000
SUITES = ("tls1.3/x25519/p256/server", "tls1.2/ecdhe_rsa+x25519/rsa2048/server")


def hello(announced: int, sent: int) -> bytes:
    """The first bytes of a ClientHello in records of 16,000 bytes."""
    body = (b"\x01" + announced.to_bytes(3, "big") + b"\x03\x03" + bytes(announced))[:sent]
    parts = [body[at : at + 16_000] for at in range(0, len(body), 16_000)]
    return b"".join(b"\x16\x03\x01" + struct.pack(">H", len(part)) + part for part in parts)


def settled_kib(server: Running, below: int) -> int:
    """Resident memory once it is below a limit, or after a generous time."""
    until = time.monotonic() + PATIENCE_S
    while (held := server.resident_kib()) >= below and time.monotonic() < until:
        time.sleep(0.1)
    return held




@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("announced", [131_000, 32_000, 3_900])
def test_unfinished_hellos_are_held_in_bounded_memory_and_given_back(suite: str, announced: int):
    with descriptors(PEERS + 200), serving(suite, "--payload", 5, "--handshake-timeout", "900s") as server:
        before_kib = server.resident_kib()
        with ExitStack() as streams:
            for _ in range(PEERS):
                stream = streams.enter_context(socket.create_connection(server.address, PATIENCE_S))
                with suppress(OSError):
                    stream.sendall(hello(announced, announced - 100))
            # A usual client is served beside them, after all of them were accepted.
            assert ask(server).endswith(b".....")
            assert server.resident_kib() - before_kib < MAX_HELD_KIB
        kept_kib = settled_kib(server, before_kib + MAX_KEPT_KIB) - before_kib
        assert kept_kib < MAX_KEPT_KIB
        counted = server.stop()
    assert counted["handshakes"]["full"] == 1
    if announced > 32 * 1024:
        assert counted["handshakes"]["failed"] == {"illegal_parameter": PEERS}
