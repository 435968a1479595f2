"""Silent connections to SGSN and HSS do not prevent a mobile from being served."""

from __future__ import annotations

import contextlib
import itertools
import json
import select
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from aka.nodes import TIMEOUT_S, sgsn
from runs import printed

FIRST = 400
"""More than the connection limit of an SGSN, or of an HSS with its backlog."""


def one_host() -> Iterator[str]:
    return itertools.repeat("127.0.0.1")


def a_whole_network() -> Iterator[str]:
    return (f"127.{n % 200 + 1}.{n // 200 % 200 + 1}.7" for n in itertools.count())


class Flood(threading.Thread):
    """Opens hundreds of silent connections to a port, then keeps replacing the oldest one."""

    def __init__(self, address: str, hosts: Iterator[str]) -> None:
        super().__init__(daemon=True)
        host, port = address.rsplit(":", 1)
        self.to = (host, int(port))
        self.hosts = hosts
        self.open: list[socket.socket] = []
        self.over = threading.Event()
        self.connected = 0

    def connect(self) -> None:
        one = socket.socket()
        one.bind((next(self.hosts), 0))
        one.settimeout(TIMEOUT_S)
        one.connect(self.to)
        self.open.append(one)
        self.connected += 1

    def wait_until_closed(self, count: int) -> None:
        """Waits until the server, which sends nothing, has closed `count` of the open connections."""
        until_s = time.monotonic() + TIMEOUT_S
        while True:
            poll = select.poll()
            for one in list(self.open):
                if one.fileno() >= 0:
                    poll.register(one, select.POLLIN)
            if len(poll.poll(0)) >= count:
                return
            assert time.monotonic() < until_s, f"fewer than {count} connections were closed"
            time.sleep(0.05)

    def run(self) -> None:
        # Slow enough for a mobile that is preempted between connecting and its first message.
        while not self.over.wait(0.1):
            self.open.pop(0).close()
            self.connect()

    def __enter__(self) -> Flood:
        for _ in range(FIRST):
            self.connect()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()
        for one in self.open:
            one.close()


@pytest.mark.parametrize("hosts", [one_host, a_whole_network], ids=["one host", "a whole network"])
def test_a_mobile_attaches_while_silent_connections_flood_sgsn_and_hss(
    shakedown, site, hss, processes, hosts
):
    # Beyond 64 connections per address, or 256 in all, a new connection displaces a silent one. On a busy
    # machine, connecting may take so long that the server closes silent ones after ten seconds instead.
    places = 64 if hosts is one_host else 256
    processes.append(sgsn(site, hss, "sgsn-1"))
    node = processes[-1]
    with Flood(node.addresses[0], hosts()) as at_sgsn, Flood(hss, hosts()) as at_hss:
        done = shakedown(
            *("aka", "mobile", "--sgsn", node.addresses[0], "--card", site / "card-0.json", "--json"),
            *("--attaches", "5", "--timeout", "300s"),
        )
        # On a busy machine the server accepts some connections only now, and counts only accepted ones.
        at_sgsn.wait_until_closed(FIRST - places)
    (found,) = printed(done)
    assert (found["completed"], found["failed"]) == (5, {})
    assert min(at_sgsn.connected, at_hss.connected) >= FIRST
    (did,) = json.loads(node.stop())
    assert (did["full"], did["resumed"], did["rejected"]) == (1, 4, {})
    gone = did["connections"]
    assert gone["displaced"] > 0
    # While threads of displaced connections have not ended, as on a busy machine, further silent ones are
    # rejected.
    assert gone["displaced"] + gone["silent"] + gone["turned_away"] >= FIRST - places
    assert "displaced by others" in processes[0].stop()


def test_mobiles_attach_while_one_host_names_a_silent_sgsn(shakedown, site, hss, processes):
    """The SGSN queries the silent SGSN for each request; displaced connections do not wait for the answer."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as mute, contextlib.ExitStack() as closing:
        neighbour = f"sgsn-2=127.0.0.1:{mute.getsockname()[1]}"
        processes.append(sgsn(site, hss, "sgsn-1", "--neighbour", neighbour))
        node = processes[-1]
        host, port = node.addresses[0].rsplit(":", 1)
        # An attach request of network 20201 with a temporary identity from the silent SGSN.
        body = b"\x00\x0520201\x01\x00\x06sgsn-2\x00\x00\x30\x39"
        over = threading.Event()

        def flood() -> None:
            while not over.wait(0.0005):
                one = closing.enter_context(socket.socket())
                one.settimeout(TIMEOUT_S)
                with contextlib.suppress(OSError):  # turned away
                    one.bind(("127.0.0.2", 0))
                    one.connect((host, int(port)))
                    one.sendall(b"\x01" + len(body).to_bytes(2, "big") + body)
                sent.append(one)
                if len(sent) > 300:
                    sent.pop(0).close()
                made.append(1)
                if len(made) > 2 * FIRST:
                    ready.set()

        sent: list[socket.socket] = []
        made: list[int] = []
        ready = threading.Event()
        thread = threading.Thread(target=flood, daemon=True)
        thread.start()
        try:
            assert ready.wait(TIMEOUT_S)
            done = shakedown(
                *("aka", "mobile", "--sgsn", node.addresses[0], "--card", site / "card-0.json", "--json"),
                *("--attaches", "3", "--timeout", "300s"),
            )
        finally:
            over.set()
            thread.join()
        (found,) = printed(done)
        assert (found["completed"], found["failed"]) == (3, {})
        (did,) = json.loads(node.stop())
        assert (did["full"], did["resumed"]) == (1, 2)


def closed_after(connection: socket.socket, limit_s: float) -> bool:
    """True where the other end closes the connection in time."""
    readable, _, _ = select.select([connection], [], [], limit_s)
    return bool(readable) and connection.recv(1) == b""


@pytest.mark.parametrize("said", [b"", b"\x01", b"\x01\xff\xff"], ids=["nothing", "a byte", "a header"])
def test_connection_without_first_message_is_closed_and_counted(site, hss, processes, said):
    processes.append(sgsn(site, hss, "sgsn-1", "--first-message", "300ms"))
    host, port = processes[-1].addresses[0].rsplit(":", 1)
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(said)
        assert closed_after(connection, TIMEOUT_S)
    (did,) = json.loads(processes[-1].stop())
    assert did["connections"] == {"turned_away": 0, "displaced": 0, "silent": 1}
    # There was no attach request, so none was rejected.
    assert did["rejected"] == {}


def test_first_message_timeout_does_not_limit_the_attach(site, hss, processes):
    """The time limit for the first message does not apply to the handshake that follows."""
    # Long enough for this test to send its request in time on a busy machine.
    processes.append(sgsn(site, hss, "sgsn-1", "--first-message", "4s"))
    host, port = processes[-1].addresses[0].rsplit(":", 1)
    # An attach request of network 20201 without a temporary identity.
    request = b"\x01\x00\x08\x00\x0520201\x00"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(request)
        assert not closed_after(connection, 6.0)
    (did,) = json.loads(processes[-1].stop())
    assert did["connections"] == {"turned_away": 0, "displaced": 0, "silent": 0}
    assert did["rejected"] == {"ended": 1}
