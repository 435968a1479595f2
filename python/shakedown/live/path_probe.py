"""Measures a real path with datagrams, between `measure` at the near end and `reflect` at the far end.

A reflector's responses are not longer than the requests. It sends a train of packets only to a client that
has returned a cookie, which proves that the client receives packets at its address. The train has at most as
many packets as the client has sent. So a forged sender address cannot be used for amplification.
"""

from __future__ import annotations

import secrets
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from shakedown.errors import InputError, ShakedownError, os_reason

MAGIC = b"\xffpath-1\x00"
HEADER = struct.Struct("!8sB8sIQ")  # magic, kind, cookie, number, ns or a count
HELLO, WELCOME, PING, PONG, TRAIN_UP, ASK_REPORT, REPORT, ASK_TRAIN, TRAIN_DOWN = range(9)
REPORT_BODY = struct.Struct("!IIQQ")  # pings received, packets of the train, first and last ns

START_ONE = 'start a reflector there: "shakedown bearer measure --reflect ADDRESS:PORT"'

UDP_IP_BYTES = 28
TRAIN_PAYLOAD_BYTES = 1200
SHORT_TRAIN = 24
MAX_TRAIN = 20_000
MAX_TRAIN_SECONDS = 30.0
MIN_SPAN_NS, MAX_SPAN_NS = 1000, 120 * 10**9
"""Limits of the time from a train's first packet to its last."""
MAX_PEERS = 64
PEER_IDLE_S = 60.0
ANSWER_WITHIN_S = 8.0
"""Three times the round trip of the slowest bearer in the package."""


def address(text: str) -> tuple[str, int]:
    """Host and port of HOST:PORT. Raises `InputError`."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or not int(port) < 65536:
        raise InputError(f"{text!r} is not an address; accepted: HOST:PORT, [IPv6]:PORT")
    return host.strip("[]"), int(port)


@dataclass(frozen=True, slots=True)
class PathFigures:
    """The measured figures of a path.

    Attributes:
        round_trips_s: round-trip times of all answered pings, in order.
        pings, pings_received: pings sent, and those received by the reflector (None if unknown).
        up_bits_per_s, down_bits_per_s: rates of network-layer packets, by the spacing of a train's packets.
        mtu_bytes: the kernel's path MTU.
    """

    round_trips_s: tuple[float, ...]
    pings: int
    pings_received: int | None
    up_bits_per_s: float
    down_bits_per_s: float
    mtu_bytes: int

    @property
    def loss_up(self) -> float | None:
        """Share of the pings that did not reach the reflector."""
        return None if self.pings_received is None else max(0.0, 1.0 - self.pings_received / self.pings)

    @property
    def loss_down(self) -> float | None:
        """Share of the responses that were lost."""
        if not self.pings_received:
            return None
        return max(0.0, 1.0 - len(self.round_trips_s) / self.pings_received)


@dataclass(slots=True)
class _Peer:
    """A reflector's state of a client: limited, and removed after silence."""

    cookie: bytes
    seen_s: float
    pings: int = 0
    train: int = 0
    first_ns: int = 0
    last_ns: int = 0
    allowed: int = 0


class Reflector:
    """Responds to `measure`, until it is stopped."""

    def __init__(self, address: tuple[str, int]) -> None:
        """Binds the address. Raises `InputError` if this fails."""
        try:
            family, _, _, _, found = socket.getaddrinfo(*address, type=socket.SOCK_DGRAM)[0]
            self.socket = socket.socket(family, socket.SOCK_DGRAM)
            self.socket.bind(found)
        except OSError as error:
            raise InputError(
                f"{address[0]}:{address[1]}: {os_reason(error)}; accepted: a free address of this host"
            ) from None
        self.peers: dict[tuple[object, ...], _Peer] = {}
        self.trains: dict[object, threading.Thread] = {}

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])

    def serve(self, stop: Callable[[], bool]) -> None:
        """Answers until `stop()` returns true; calls it every 0.2 s and after each packet."""
        with self.socket:
            while not stop():
                if select.select([self.socket], [], [], 0.2)[0]:
                    data, address = self.socket.recvfrom(2048)
                    self._answer(data, address, time.monotonic_ns())

    def _answer(self, data: bytes, address: tuple[object, ...], now_ns: int) -> None:
        if len(data) < HEADER.size:
            return
        magic, kind, cookie, number, value = HEADER.unpack_from(data)
        if magic != MAGIC:
            return
        if kind == HELLO:
            peer = self._welcome(address)
            self._send(HEADER.pack(MAGIC, WELCOME, peer.cookie, number, 0), address)
            return
        known = self.peers.get(address)
        if known is None or not secrets.compare_digest(known.cookie, cookie):
            return
        known.seen_s = time.monotonic()
        if kind == PING:
            known.pings += 1
            self._send(HEADER.pack(MAGIC, PONG, cookie, number, value), address)
        elif kind == TRAIN_UP:
            known.first_ns = now_ns if number == 0 or known.train == 0 else known.first_ns
            known.train = 1 if number == 0 else known.train + 1
            known.last_ns = now_ns
            known.allowed = min(known.allowed + 1, MAX_TRAIN)
        elif kind == ASK_REPORT:
            body = REPORT_BODY.pack(known.pings, known.train, known.first_ns, known.last_ns)
            self._send(HEADER.pack(MAGIC, REPORT, cookie, number, 0) + body, address)
        elif kind == ASK_TRAIN:
            count = min(number, known.allowed)
            known.allowed -= count
            self._begin_train(address, cookie, count, value)

    def _begin_train(self, address: tuple[object, ...], cookie: bytes, count: int, gap_ns: int) -> None:
        """Sends a train in a thread, because it may take half a minute; one at a time to each host."""
        self.trains = {host: train for host, train in self.trains.items() if train.is_alive()}
        host = address[0]
        if host not in self.trains and len(self.trains) < MAX_PEERS:
            given = (lambda one: self._send(one, address), TRAIN_DOWN, cookie, count, gap_ns)
            self.trains[host] = threading.Thread(target=_train, args=given, daemon=True)
            self.trains[host].start()

    def _welcome(self, address: tuple[object, ...]) -> _Peer:
        now_s = time.monotonic()
        self.peers = {at: peer for at, peer in self.peers.items() if now_s - peer.seen_s < PEER_IDLE_S}
        if address not in self.peers and len(self.peers) >= MAX_PEERS:
            del self.peers[min(self.peers, key=lambda at: self.peers[at].seen_s)]
        return self.peers.setdefault(address, _Peer(secrets.token_bytes(8), now_s))

    def _send(self, data: bytes, address: tuple[object, ...]) -> None:
        try:
            self.socket.sendto(data, address)
        except OSError:
            return  # like a lost datagram


def _train(send: Callable[[bytes], object], kind: int, cookie: bytes, count: int, gap_ns: int) -> None:
    """Sends a train of packets with gaps of `gap_ns` (0: back to back)."""
    gap_ns = min(gap_ns, int(MAX_TRAIN_SECONDS * 1e9 / max(count, 1)))
    begin_ns = time.monotonic_ns()
    for number in range(count):
        while (early_ns := begin_ns + number * gap_ns - time.monotonic_ns()) > 0:
            time.sleep(early_ns * 1e-9)
        packet = HEADER.pack(MAGIC, kind, cookie, number, 0)
        send(packet.ljust(TRAIN_PAYLOAD_BYTES, b"\x00"))


class _Client:
    def __init__(self, host: str, port: int) -> None:
        try:
            family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
            self.socket = socket.socket(family, socket.SOCK_DGRAM)
            self.socket.connect(address)
        except OSError as error:
            raise InputError(
                f"{host}:{port}: {os_reason(error)}; accepted: HOST:PORT of a reflector"
            ) from None
        self.target = f"{host}:{port}"
        self.cookie = bytes(8)
        self.number = 0

    def send(self, kind: int, value: int = 0, number: int | None = None) -> int:
        if number is None:
            number = self.number
            self.number += 1
        try:
            self.socket.send(HEADER.pack(MAGIC, kind, self.cookie, number, value))
        except OSError as error:
            raise ShakedownError(f"{self.target}: {os_reason(error)}") from None
        return number

    def receive(self, until_s: float) -> tuple[int, bytes, int, int, bytes] | None:
        """The next response before a time of the monotonic clock: kind, cookie, number, value, body."""
        while (left_s := until_s - time.monotonic()) > 0.0:
            if not select.select([self.socket], [], [], left_s)[0]:
                return None
            try:
                data = self.socket.recv(2048)
            except OSError as error:
                raise ShakedownError(f"{self.target}: {os_reason(error)}; {START_ONE}") from None
            if len(data) >= HEADER.size and data.startswith(MAGIC):
                _, kind, cookie, number, value = HEADER.unpack_from(data)
                return kind, cookie, number, value, data[HEADER.size :]
        return None

    def ask(self, kind: int, answer: int, value: int = 0) -> tuple[bytes, bytes]:
        """Repeats a request until there is a response; returns its cookie and body."""
        for _ in range(4):
            number = self.send(kind, value)
            until_s = time.monotonic() + ANSWER_WITHIN_S / 2.0
            while (found := self.receive(until_s)) is not None:
                body_bytes = REPORT_BODY.size if answer == REPORT else 0
                if found[0] == answer and found[2] == number and len(found[4]) == body_bytes:
                    return found[1], found[4]
        raise ShakedownError(f"{self.target}: no answer; {START_ONE}")


def measure(
    host: str, port: int, *, seconds: float = 5.0, progress: Callable[[str], None] | None = None
) -> PathFigures:
    """Measures the path to a reflector.

    Args:
        host, port: the address of the reflector.
        seconds: duration of each of three parts: round trips, rate up, rate down.
        progress: called with the name of each part when it begins.

    Raises:
        InputError: for an invalid address.
        ShakedownError: without a response, or if too few packets arrive.
    """
    client = _Client(host, port)
    with closing(client.socket):
        return _measured(client, seconds, progress or (lambda _: None))


def _measured(client: _Client, seconds: float, say: Callable[[str], None]) -> PathFigures:
    client.cookie, _ = client.ask(HELLO, WELCOME)
    say("round trips")
    round_trips_s, pings = _pings(client, seconds)
    received = REPORT_BODY.unpack(client.ask(ASK_REPORT, REPORT)[1])[0]
    say("rate up")
    up = _up(client, SHORT_TRAIN, 0)
    up = _up(client, *_longer(up, seconds))
    say("rate down")
    # The reflector sends no more packets than it has received, so another train of this length is sent.
    down = _down(client, SHORT_TRAIN, 0)
    count, gap_ns = _longer(down, seconds)
    _train(client.socket.send, TRAIN_UP, client.cookie, min(count, MAX_TRAIN), gap_ns)
    down = _down(client, count, gap_ns)
    return PathFigures(tuple(round_trips_s), pings, received or None, up, down, _mtu(client.socket))


def _pings(client: _Client, seconds: float) -> tuple[list[float], int]:
    """Round-trip times and the number of pings, which are sent every 50 ms."""
    found: dict[int, float] = {}
    sent: dict[int, int] = {}
    begin_s = time.monotonic()
    next_s = begin_s
    gap_s = 0.05
    while (now_s := time.monotonic()) < begin_s + seconds:
        if now_s >= next_s:
            sent[client.send(PING, time.monotonic_ns())] = time.monotonic_ns()
            next_s = now_s + gap_s
        _pong(client, min(next_s, begin_s + seconds), sent, found)
    _pong(
        client,
        time.monotonic() + max(0.5, 4.0 * max(found.values(), default=ANSWER_WITHIN_S / 4.0)),
        sent,
        found,
    )
    if not found:
        raise ShakedownError(f"{client.target}: no ping of {len(sent)} came back")
    return [found[number] for number in sorted(found)], len(sent)


def _pong(client: _Client, until_s: float, sent: dict[int, int], found: dict[int, float]) -> None:
    while len(found) < len(sent) and (answer := client.receive(until_s)) is not None:
        now_ns = time.monotonic_ns()
        kind, _, number, _, _ = answer
        if kind == PONG and number in sent:
            found.setdefault(number, (now_ns - sent[number]) * 1e-9)
    while (left_s := until_s - time.monotonic()) > 0.0 and len(found) == len(sent) and left_s < 0.06:
        time.sleep(left_s)


def _longer(rate_bits_per_s: float, seconds: float) -> tuple[int, int]:
    """Number of packets and gap (ns) of a train that loads a path for `seconds`, at 1.2 times its rate."""
    bits = 8.0 * (TRAIN_PAYLOAD_BYTES + UDP_IP_BYTES)
    count = int(rate_bits_per_s * min(seconds, MAX_TRAIN_SECONDS) / bits)
    return max(SHORT_TRAIN, min(MAX_TRAIN, count)), int(bits / (1.2 * rate_bits_per_s) * 1e9)


def _up(client: _Client, count: int, gap_ns: int) -> float:
    """Rate by the spacing of packets at the reflector, bit/s."""
    _train(client.socket.send, TRAIN_UP, client.cookie, count, gap_ns)
    until_s = time.monotonic() + 2.0 * MAX_TRAIN_SECONDS
    packets, arrived = 0, True
    while arrived and time.monotonic() < until_s:
        before = packets
        _, packets, first_ns, last_ns = REPORT_BODY.unpack(client.ask(ASK_REPORT, REPORT)[1])
        arrived = packets > before
        time.sleep(0.2 if arrived else 0.0)
    return _rate(client, min(packets, count), first_ns, last_ns)


def _down(client: _Client, count: int, gap_ns: int) -> float:
    """Rate by the spacing of packets here, bit/s."""
    client.send(ASK_TRAIN, gap_ns, number=count)
    received, first_ns, last_ns = 0, 0, 0
    until_s = time.monotonic() + ANSWER_WITHIN_S
    while received < count and (answer := client.receive(until_s)) is not None:
        if answer[0] == TRAIN_DOWN:
            last_ns = time.monotonic_ns()
            first_ns = first_ns or last_ns
            received += 1
            # The train has ended if no packet arrives within ten times the spacing, and at least a second.
            spacing_s = (last_ns - first_ns) * 1e-9 / max(1, received - 1)
            until_s = (
                time.monotonic() + max(1.0, 10.0 * spacing_s) + (ANSWER_WITHIN_S if received < 2 else 0.0)
            )
    return _rate(client, received, first_ns, last_ns)


def _rate(client: _Client, packets: int, first_ns: int, last_ns: int) -> float:
    if packets < 3 or not MIN_SPAN_NS <= last_ns - first_ns < MAX_SPAN_NS:
        raise ShakedownError(
            f"{client.target}: {packets} packets of a train arrived; accepted: a path that carries 3 in "
            f"{MAX_SPAN_NS // 10**9} s"
        )
    return 8e9 * (TRAIN_PAYLOAD_BYTES + UDP_IP_BYTES) * (packets - 1) / (last_ns - first_ns)


def _mtu(connected: socket.socket) -> int:
    """The kernel's path MTU of a connected socket."""
    level, option = (
        (socket.IPPROTO_IP, 14) if connected.family == socket.AF_INET else (socket.IPPROTO_IPV6, 24)
    )
    return int(connected.getsockopt(level, option))
