"""A server's memory for peers with unfinished messages, and its release."""

from __future__ import annotations

import os
import socket
import struct
import time
from contextlib import ExitStack, suppress

import pytest

from live.serve.serving import TIMEOUT_S, Running, ask, serving
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
    until = time.monotonic() + TIMEOUT_S
    while (held := server.resident_kib()) >= below and time.monotonic() < until:
        time.sleep(0.1)
    return held


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("announced", [131_000, 32_000, 3_900])
def test_unfinished_hellos_use_limited_memory_that_is_freed(suite: str, announced: int):
    with descriptors(PEERS + 200), serving(suite, "--payload", 5, "--handshake-timeout", "900s") as server:
        before_kib = server.resident_kib()
        with ExitStack() as streams:
            for _ in range(PEERS):
                stream = streams.enter_context(socket.create_connection(server.address, TIMEOUT_S))
                with suppress(OSError):
                    stream.sendall(hello(announced, announced - 100))
            # A normal client is served after all of them were accepted.
            assert ask(server).endswith(b".....")
            assert server.resident_kib() - before_kib < MAX_HELD_KIB
        kept_kib = settled_kib(server, before_kib + MAX_KEPT_KIB) - before_kib
        assert kept_kib < MAX_KEPT_KIB
        counted = server.stop()
    assert counted["handshakes"]["full"] == 1
    if announced > 32 * 1024:
        assert counted["handshakes"]["failed"] == {"illegal_parameter": PEERS}


def extension(number: int, body: bytes) -> bytes:
    return struct.pack(">HH", number, len(body)) + body


def hello_without_share() -> bytes:
    """A ClientHello of TLS 1.3 that names X25519 and has no share: a HelloRetryRequest answers it."""
    extensions = [
        extension(43, b"\x02\x03\x04"),
        extension(10, struct.pack(">HH", 2, 29)),
        extension(13, struct.pack(">HH", 2, 0x0403)),
        extension(51, b"\x00\x00"),
    ]
    listed = b"".join(extensions)
    body = b"\x03\x03" + os.urandom(32) + b"\x20" + os.urandom(32) + struct.pack(">HH", 2, 0x1301)
    body += b"\x01\x00" + struct.pack(">H", len(listed)) + listed
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + struct.pack(">H", len(message)) + message


def test_a_second_hello_is_limited_as_the_first_is():
    with serving(SUITES[0]) as server:
        with socket.create_connection(server.address, TIMEOUT_S) as stream:
            stream.sendall(hello_without_share())
            # A HelloRetryRequest is a ServerHello with a fixed random (RFC 8446, section 4.1.3).
            assert stream.recv(4_096)[11:15] == bytes.fromhex("cf21ad74")
            stream.sendall(bytes.fromhex("140303000101") + hello(131_000, 100))
            assert stream.recv(4_096) == bytes.fromhex("1503030002022f")
        counted = server.stop()
    assert counted["handshakes"]["failed"] == {"illegal_parameter": 1}
