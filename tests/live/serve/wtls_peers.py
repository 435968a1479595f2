"""A proxy between a WTLS client and its server, which forwards, drops and inserts datagrams."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Tamper = Callable[["Flow", str, bytes], list[bytes]]
"""`tamper(flow, sender, datagram)` returns the datagrams to forward instead, as from the sender."""


@dataclass
class Flow:
    """One client's datagrams so far."""

    sent: dict[str, list[bytes]] = field(default_factory=lambda: {"client": [], "server": []})


def unchanged(_flow: Flow, _sender: str, datagram: bytes) -> list[bytes]:
    return [datagram]


class Middle:
    """A relay of datagrams.

    The server sees one socket of the relay per client, so datagrams sent from it seem to be that client's.
    """

    def __init__(self, server: tuple[str, int], tamper: Tamper) -> None:
        self.server, self.tamper = server, tamper
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind(("127.0.0.1", 0))
        self.stopping = threading.Event()
        self.flows: list[Flow] = []
        self.backs: dict[tuple[str, int], tuple[socket.socket, Flow]] = {}
        self.thread = threading.Thread(target=self.relay)

    @property
    def target(self) -> str:
        return f"wtls://127.0.0.1:{self.front.getsockname()[1]}"

    def relay(self) -> None:
        while not self.stopping.is_set():
            watched = [self.front, *(back for back, _ in self.backs.values())]
            for ready in select.select(watched, [], [], 0.05)[0]:
                if ready is self.front:
                    datagram, client = self.front.recvfrom(65536)
                    if client not in self.backs:
                        back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                        back.connect(self.server)
                        self.flows.append(Flow())
                        self.backs[client] = (back, self.flows[-1])
                    back, flow = self.backs[client]
                    for one in self.passed(flow, "client", datagram):
                        back.send(one)
                else:
                    client = next(known for known, (back, _) in self.backs.items() if back is ready)
                    for one in self.passed(self.backs[client][1], "server", ready.recv(65536)):
                        self.front.sendto(one, client)

    def passed(self, flow: Flow, sender: str, datagram: bytes) -> list[bytes]:
        flow.sent[sender].append(datagram)
        return self.tamper(flow, sender, datagram)


@contextmanager
def between(server: tuple[str, int], tamper: Tamper = unchanged) -> Iterator[Middle]:
    """A relay that runs for as long as the block."""
    middle = Middle(server, tamper)
    middle.thread.start()
    try:
        yield middle
    finally:
        middle.stopping.set()
        middle.thread.join()
        for one in (middle.front, *(back for back, _ in middle.backs.values())):
            one.close()
