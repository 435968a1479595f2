"""A packet-level simulation of a handshake over TCP with loss, written from Linux' code, not from our model.

It draws losses and delays with a generator, keeps a SACK scoreboard for each sender and reacts to each
packet as the kernel does (net/ipv4/tcp_input.c, tcp_recovery.c, tcp_output.c, tcp_timer.c, 6.18), one
connection at a time. Our model enumerates; this only ever runs.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

SYN, ACK = 60, 52


@dataclass
class Segment:
    """One sent segment on the scoreboard."""

    size: float
    sent: float = 0.0
    sends: int = 0
    sacked: bool = False
    lost: bool = False
    retransmitting: bool = False


@dataclass
class Net:
    """A network: rates in bit/s, loss, and how a delay is drawn."""

    up_bps: float
    down_bps: float
    delay: Callable[[random.Random], float]
    loss: float
    tick: float = 0.004


@dataclass
class Sender:
    """One side's sending half."""

    name: str
    queue: list[Segment] = field(default_factory=list)
    una: int = 0
    nxt: int = 0
    cwnd: float = 10.0
    ssthresh: float = math.inf
    state: str = "open"  # open, recovery, loss
    high: int = 0
    prior_cwnd: float = 0.0
    prr_delivered: int = 0
    prr_out: int = 0
    srtt: float = 0.0
    mdev: float = 0.0
    rttvar: float = 0.0
    mdev_max: float = 0.0
    rtt_seq: int = 0
    min_rtt: float = math.inf
    rack_sent: float = -1.0
    rack_index: int = -1
    rack_rtt: float = 0.0
    timer: tuple[str, float] | None = None
    backoff: int = 0
    tlp: bool = False

    @property
    def rto(self) -> float:
        return 3.0 if self.srtt == 0.0 else min(120.0, self.srtt + self.rttvar)

    def sample(self, rtt: float) -> None:
        self.min_rtt = min(self.min_rtt, rtt)
        if self.srtt == 0.0:
            self.srtt, self.mdev = rtt, 2.0 * rtt
            self.rttvar = self.mdev_max = max(self.mdev, 0.2)
            self.rtt_seq = self.nxt
            return
        error = rtt - self.srtt
        self.srtt += error / 8.0
        if error < 0.0:
            change = -error - self.mdev / 4.0
            change = change / 8.0 if change > 0.0 else change
        else:
            change = error - self.mdev / 4.0
        self.mdev += change
        if self.mdev > self.mdev_max:
            self.mdev_max = self.mdev
            self.rttvar = max(self.rttvar, self.mdev_max)
        if self.una > self.rtt_seq:
            if self.mdev_max < self.rttvar:
                self.rttvar -= (self.rttvar - self.mdev_max) / 4.0
            self.rtt_seq = self.nxt
            self.mdev_max = 0.2

    def in_flight(self) -> int:
        return sum(
            not one.sacked and (not one.lost or one.retransmitting) for one in self.queue[self.una : self.nxt]
        )


class Handshake:
    """One handshake: flights of (sender, writes), nothing computed."""

    def __init__(self, flights: list[tuple[str, list[float]]], net: Net, rng: random.Random) -> None:
        self.net, self.rng, self.flights = net, rng, flights
        self.now = 0.0
        self.heap: list[tuple[float, int, Callable[[], None]]] = []
        self.count = 0
        self.free = {"client": 0.0, "server": 0.0}
        self.last = {"client": 0.0, "server": 0.0}
        self.side = {name: Sender(name) for name in ("client", "server")}
        self.got: dict[str, set[int]] = {"client": set(), "server": set()}
        self.read = {"client": 0, "server": 0}
        self.echo = {"client": 0.0, "server": 0.0}
        self.step = {"client": 0, "server": 0}
        self.need: list[int] = []
        self.connected: float | None = None
        self.ready: float | None = None
        self.done: float | None = None
        self.first_syn: float | None = None
        self.syns = 0
        self.synacks = 0
        self.timeouts = 0
        self.accepted = False
        self.synack_sent = 0.0
        self.accept_timer = 0
        for _, writes in flights:
            pieces = [p for w in writes for p in self.cut(w)]
            self.need.append(len(pieces))

    @staticmethod
    def cut(size: float) -> list[float]:
        pieces = []
        while size > 0.0:
            pieces.append(min(size, 1448.0))
            size -= pieces[-1]
        return pieces

    def at(self, when: float, act: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.heap, (when, self.count, act))

    def late(self, after: float) -> float:
        if self.net.tick == 0.0:
            return after
        grain, reach = self.net.tick, 64 * self.net.tick
        while after >= reach:
            grain, reach = grain * 8, reach * 8
        return after + grain * self.rng.random()

    def packet(self, sender: str, size: float, arrive: Callable[[], None]) -> None:
        rate = self.net.up_bps if sender == "client" else self.net.down_bps
        self.free[sender] = max(self.free[sender], self.now) + 8.0 * size / rate
        due = self.free[sender] + self.net.delay(self.rng)
        due = self.last[sender] = max(due, self.last[sender])
        if self.rng.random() >= self.net.loss:
            self.at(due, arrive)

    def run(self) -> Handshake:
        self.syn()
        while self.heap and self.done is None:
            self.now, _, act = heapq.heappop(self.heap)
            act()
        return self

    # Connection.

    def syn(self) -> None:
        if self.connected is not None or self.syns > 10:
            return
        self.syns += 1
        sent = self.now
        self.packet("client", SYN, lambda: self.syn_arrives(sent))
        wait = 1.0 if self.syns <= 5 else 2.0 ** (self.syns - 5)
        self.at(self.now + self.late(wait), self.syn)

    def syn_arrives(self, sent: float) -> None:
        if self.accepted:
            return
        if self.first_syn is None:
            self.first_syn = sent
            self.synack(timer=False)
            self.synack_timer(1.0)
        else:
            self.synack(timer=False)
            self.accept_timer += 1
            self.synack_timer(2.0**self.timeouts)

    def synack(self, *, timer: bool) -> None:
        self.synacks += 1
        self.timeouts += timer
        sent = self.synack_sent = self.now
        self.packet("server", SYN, lambda: self.synack_arrives(sent))

    def synack_timer(self, wait: float) -> None:
        mine = self.accept_timer

        def fires() -> None:
            if not self.accepted and mine == self.accept_timer and self.timeouts < 5:
                self.synack(timer=True)
                self.synack_timer(2.0**self.timeouts)

        self.at(self.now + self.late(wait), fires)

    def synack_arrives(self, sent: float) -> None:
        first = self.connected is None
        self.packet("client", ACK, lambda: self.accept(sent))
        if first:
            self.connected = self.now
            client = self.side["client"]
            client.sample(self.now - (self.first_syn or 0.0))
            if self.syns > 2 and self.first_syn != 0.0:
                client.cwnd = 1.0
            self.proceed("client")

    def accept(self, sent: float) -> None:
        if not self.accepted:
            self.accepted = True
            server = self.side["server"]
            server.sample(self.now - sent)  # by its timestamp, however often it was sent
            if self.synacks > 2:
                server.cwnd = 1.0

    # Application.

    def proceed(self, name: str) -> None:
        while self.step[name] < len(self.flights):
            number = self.step[name]
            sender, writes = self.flights[number]
            if sender == name:
                for write in writes:
                    self.side[name].queue += [Segment(piece) for piece in self.cut(write)]
                    self.push(self.side[name])
                if name == "client":
                    self.ready = self.now
            else:
                expected = sum(
                    n for (s, _), n in zip(self.flights, self.need[: number + 1], strict=False) if s == sender
                )
                if self.read[name] < expected:
                    return
            self.step[name] += 1
        if name != self.flights[-1][0]:
            self.done = self.now
            if name == "client":
                self.ready = self.now

    # Sender.

    def transmit(self, s: Sender, index: int) -> None:
        segment = s.queue[index]
        segment.sent = self.now
        segment.sends += 1
        if segment.sends > 1:
            segment.retransmitting = True
        sent, upto, echo = self.now, self.read[s.name], self.echo[s.name]
        self.packet(s.name, segment.size + ACK, lambda: self.data(s.name, index, sent, upto, echo))

    def push(self, s: Sender) -> None:
        sent = False
        while s.nxt < len(s.queue) and s.in_flight() < int(s.cwnd):
            self.transmit(s, s.nxt)
            s.nxt += 1
            if s.state == "recovery":
                s.prr_out += 1
            sent = True
        if sent:
            self.arm(s)

    def arm(self, s: Sender) -> None:
        """A probe where one is allowed, else the timeout."""
        if s.una == s.nxt:
            s.timer = None
            return
        sacked = any(one.sacked for one in s.queue[s.una : s.nxt])
        if s.state == "open" and not sacked and not s.tlp:
            out = s.nxt - s.una
            wait = 1.0 if s.srtt == 0.0 else 2.0 * s.srtt + (0.2 if out == 1 else 0.002)
            rest = s.queue[s.una].sent + s.rto - self.now
            if rest > 0.0:
                wait = min(wait, rest)
            self.set(s, "probe", wait)
        else:
            self.set(s, "rto", s.rto * 2.0**s.backoff)

    def set(self, s: Sender, kind: str, wait: float) -> None:
        due = self.now + self.late(wait)
        s.timer = (kind, due)
        self.at(due, lambda: self.fires(s, kind, due))

    def fires(self, s: Sender, kind: str, due: float) -> None:
        if s.timer != (kind, due) or s.una == s.nxt:
            return
        if kind == "probe":
            if s.nxt < len(s.queue):
                self.transmit(s, s.nxt)
                s.nxt += 1
            else:
                self.transmit(s, s.nxt - 1)
            s.tlp = True
            self.set(s, "rto", s.rto * 2.0**s.backoff)
        elif kind == "reorder":
            if self.mark(s):
                self.recover(s, 1)
            if s.timer == (kind, due):
                self.set(s, "rto", s.rto)
        else:
            if s.state != "loss":
                s.ssthresh = max(2.0, 0.7 * s.cwnd)
            s.state, s.high, s.cwnd, s.tlp = "loss", s.nxt, 1.0, False
            for one in s.queue[s.una : s.nxt]:
                one.lost, one.retransmitting = not one.sacked, False
            s.backoff += 1
            self.transmit(s, s.una)
            self.set(s, "rto", min(120.0, s.rto * 2.0**s.backoff))

    def mark(self, s: Sender) -> bool:
        """RACK: mark what was sent before the latest delivered and is overdue."""
        if s.rack_sent < 0.0:
            return False
        outstanding = s.queue[s.una : s.nxt]
        sacked = sum(one.sacked for one in outstanding)
        window = 0.0 if s.state != "open" or sacked >= 3 else min(s.min_rtt / 4.0, s.srtt)
        marked, later = False, 0.0
        for number, one in enumerate(outstanding, s.una):
            if one.sacked or (one.lost and not one.retransmitting):
                continue
            if (one.sent, number) >= (s.rack_sent, s.rack_index):
                continue
            remaining = one.sent + s.rack_rtt + window - self.now
            if remaining <= 1e-9:
                one.lost, one.retransmitting, marked = True, False, True
            else:
                later = max(later, remaining)
        if later > 0.0:
            self.set(s, "reorder", later + 0.002)
        return marked

    def recover(self, s: Sender, delivered: int, *, advanced: bool = False, marked: bool = True) -> None:
        if s.state == "open":
            s.state, s.high, s.prior_cwnd = "recovery", s.nxt, s.cwnd
            s.ssthresh = max(2.0, 0.7 * s.cwnd)
            s.prr_delivered = s.prr_out = 0
            s.tlp = False
        if s.state == "recovery":
            s.prr_delivered += delivered
            room = s.ssthresh - s.in_flight()
            if room < 0:
                send = math.ceil(s.ssthresh * s.prr_delivered / s.prior_cwnd) - s.prr_out
            else:
                send = max(s.prr_delivered - s.prr_out, delivered) + (advanced and not marked)
                send = min(room, send)
            send = max(send, 0 if s.prr_out else 1)
            s.cwnd = s.in_flight() + send
        self.retransmit(s)

    def retransmit(self, s: Sender) -> None:
        for index in range(s.una, s.nxt):
            one = s.queue[index]
            if s.in_flight() >= int(s.cwnd):
                break
            if one.lost and not one.sacked and not one.retransmitting:
                self.transmit(s, index)
                if s.state == "recovery":
                    s.prr_out += 1
                if index == s.una:
                    self.set(s, "rto", s.rto * 2.0**s.backoff)
        self.push(s)

    # Receiver.

    def data(self, sender: str, index: int, sent: float, acked: int, echo: float) -> None:
        name = "server" if sender == "client" else "client"
        if acked > self.side[name].una:  # data acknowledges too
            self.acked(name, acked, frozenset(), echo)
        if sender == "client":
            self.accept(self.synack_sent)
        self.got[name].add(index)
        # tcp_sequence: the clock of what ends before the last acknowledgement is not looked at.
        old = index + 1 < self.read[name]
        if not old and index <= self.read[name]:
            self.echo[name] = sent
        while self.read[name] in self.got[name]:
            self.read[name] += 1
        upto, sacks = self.read[name], frozenset(i for i in self.got[name] if i >= self.read[name])
        answers = self.echo[name] if old else sent
        self.packet(name, ACK, lambda: self.acked(sender, upto, sacks, answers))
        self.proceed(name)

    def acked(self, sender: str, upto: int, sacks: frozenset[int], sent: float) -> None:
        s = self.side[sender]
        before = s.una
        delivered, rtt = 0, None
        for number in [*range(s.una, min(upto, s.nxt)), *sorted(sacks)]:
            one = s.queue[number]
            if one.sacked:
                continue
            one.sacked = True
            delivered += 1
            elapsed = self.now - one.sent
            spurious = one.sends > 1 and sent < one.sent  # echoes an earlier sending
            if one.sends == 1:
                rtt = elapsed if rtt is None else min(rtt, elapsed)
            if not spurious and not (one.sends > 1 and elapsed < s.min_rtt - 1e-9):
                s.rack_rtt = elapsed
                if (one.sent, number) > (s.rack_sent, s.rack_index):
                    s.rack_sent, s.rack_index = one.sent, number
        s.una = max(s.una, upto)
        advanced = s.una > before
        if rtt is None and advanced:
            rtt = self.now - sent
        if rtt is not None and delivered:
            s.sample(rtt)
            s.backoff = 0
        if advanced and s.tlp:
            s.tlp = False
        if s.state != "open" and s.una >= s.high:
            s.state = "open"
            s.cwnd = max(s.cwnd, min(s.ssthresh, s.in_flight() + 1.0)) if s.state == "loss" else s.ssthresh
        if s.una == s.nxt and s.nxt == len(s.queue):
            s.timer = None
            if s.state == "open" and advanced and s.cwnd < 2 * delivered:
                s.cwnd += delivered
            return
        if advanced:
            self.arm(s)
        marked = self.mark(s) if delivered else False
        if s.state == "open" and marked:
            self.recover(s, delivered, advanced=advanced)
        elif s.state == "recovery" and delivered:
            self.recover(s, delivered, advanced=advanced, marked=marked)
        elif s.state == "loss" and delivered:
            s.cwnd += delivered
            self.retransmit(s)
        elif s.state == "open":
            if advanced and s.cwnd < 2 * (s.nxt - before):
                s.cwnd += delivered
            self.push(s)


def simulate(
    flights: list[tuple[str, list[float]]], net: Net, count: int, seed: int
) -> tuple[list[float], list[float]]:
    """Ready and done times of so many handshakes, those that fail left out."""
    rng = random.Random(seed)
    ready, done = [], []
    for _ in range(count):
        one = Handshake(flights, net, rng).run()
        if one.ready is not None and one.done is not None:
            ready.append(one.ready)
            done.append(one.done)
    return ready, done
