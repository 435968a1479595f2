"""One datagram of a stranger between `load` and `serve`: forged, repeated, reflected, cut or altered."""

from __future__ import annotations

import json
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from live.serve.serving import serving

SUITES = ("wtls/rsa/rsa1024/server", "wtls/rsa/rsa1024/mutual")
EMPTY_SERVER_HELLO_DONE = bytes.fromhex("c3000000030e0000")
FATAL_ALERT = bytes.fromhex("c2000000060228000000" + "00")

Datagrams = list[bytes]
Change = Callable[[bytes], tuple[Datagrams, Datagrams]]
"""A datagram as what goes to its receiver, and what goes to its sender."""


def _flipped(datagram: bytes) -> bytes:
    middle = len(datagram) // 2
    return datagram[:middle] + bytes([datagram[middle] ^ 4]) + datagram[middle + 1 :]


CHANGES: dict[str, Change] = {
    "an empty ServerHelloDone": lambda one: ([one], [EMPTY_SERVER_HELLO_DONE]),
    "the same to the server": lambda one: ([EMPTY_SERVER_HELLO_DONE, one], []),
    "a fatal alert to both": lambda one: ([FATAL_ALERT, one], [FATAL_ALERT]),
    "twice": lambda one: ([one, one], []),
    "reflected": lambda one: ([one], [one]),
    "cut, then whole": lambda one: ([one[: len(one) // 2], one], []),
    "a bit flipped, then whole": lambda one: ([_flipped(one), one], []),
    "a bit flipped": lambda one: ([_flipped(one)], []),
}


class Stranger:
    """Passes datagrams on, and changes one of each conversation: that of a number, counted from 0."""

    def __init__(self, server: tuple[str, int], change: Change, at: int) -> None:
        self.server, self.change, self.at = server, change, at
        self.changed = 0
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind(("127.0.0.1", 0))
        self.backs: dict[tuple[str, int], socket.socket] = {}
        self.counts: dict[tuple[str, int], int] = {}
        self.ended = threading.Event()

    def run(self) -> None:
        with selectors.DefaultSelector() as ready:
            ready.register(self.front, selectors.EVENT_READ)
            while not self.ended.is_set():
                for key, _ in ready.select(0.1):
                    if key.fileobj is self.front:
                        datagram, client = self.front.recvfrom(65536)
                        if client not in self.backs:
                            self.backs[client] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                            self.backs[client].connect(self.server)
                            ready.register(self.backs[client], selectors.EVENT_READ, client)
                        self.passes(datagram, client, up=True)
                    else:
                        self.passes(key.fileobj.recv(65536), key.data, up=False)

    def passes(self, datagram: bytes, client: tuple[str, int], *, up: bool) -> None:
        number = self.counts.get(client, 0)
        self.counts[client] = number + 1
        there, back = self.change(datagram) if number == self.at else ([datagram], [])
        self.changed += number == self.at
        to_server, to_client = (there, back) if up else (back, there)
        for one in to_client:
            self.front.sendto(one, client)
        for one in to_server:
            self.backs[client].send(one)


@contextmanager
def stranger(server: tuple[str, int], change: Change, at: int) -> Iterator[Stranger]:
    between = Stranger(server, change, at)
    thread = threading.Thread(target=between.run, daemon=True)
    thread.start()
    try:
        yield between
    finally:
        between.ended.set()
        thread.join()
        for one in (between.front, *between.backs.values()):
            one.close()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("suite", SUITES)
def test_one_datagram_ends_no_handshake(shakedown, suite, change):
    with serving(suite) as server:
        for at in range(4):
            with stranger(server.address, CHANGES[change], at) as between:
                port = between.front.getsockname()[1]
                done = shakedown(
                    *("load", f"127.0.0.1:{port}", suite, "--rate", "5/s", "--duration", "1s"),
                    *("--clients", "2", "--timeout", "60s", "--json"),
                )
            assert done.returncode == 0, (at, done.stderr)
            (found,) = json.loads(done.stdout)
            assert found["completed"] >= 1, (at, found)
            assert between.changed >= 1, at
