"""A handshake in datagrams: flights one after another, each repeated when nobody answers.

Two ways to repeat: each side repeats its own last flight (DTLS, RFC 6347, 4.2.4, as libssl does it: a
flight that comes again is not answered again, and what arrived of a flight is kept), or the client alone
repeats and the server answers again at once (WTLS, whose flight is one datagram: all its fragments or none).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

from shakedown.models.path import Direction, Path
from shakedown.models.steps import Flight, Side

_LEAST = 1e-7
_ABOVE = 1.25  # of a round trip without loss, for what delays vary


@dataclass(frozen=True, slots=True)
class Datagrams:
    """Handshake messages in UDP.

    Attributes:
        timeout_s: how long a flight waits for its answer the first time; doubles.
        max_timeout_s: where doubling ends.
        sends: how often a flight is sent in all before the handshake fails.
        client_repeats: the client alone repeats; else each side does.
    """

    timeout_s: float = 1.0
    max_timeout_s: float = 60.0
    sends: int = 13
    client_repeats: bool = False

    def waits_s(self) -> list[float]:
        """When each sending takes place, counted from the first."""
        times, wait_s = [0.0], self.timeout_s
        for _ in range(self.sends - 1):
            times.append(times[-1] + wait_s)
            wait_s = min(2.0 * wait_s, self.max_timeout_s)
        return times


@dataclass(slots=True)
class DatagramFlight:
    """One flight when nothing is lost: when its sender began and for how long it worked before the first
    datagram, when each datagram left, when all had arrived, and what it put on the link, again or not.
    """

    sender: Side
    handed_s: float
    worked_s: float
    left_s: list[float] = field(default_factory=list)
    arrived_s: float = 0.0
    link_bytes: float = 0.0


class _Run:
    """Flights one after another; timers that run out although nothing was lost load the links."""

    def __init__(self, flights: Sequence[Flight], path: Path, way: Datagrams, setup_s: float) -> None:
        self.flights, self.path, self.way = flights, path, way
        free = [setup_s]
        self.free = {"client": free, "server": free if path.half_duplex else [setup_s]}
        self.header_bytes = path.ip_bytes + path.udp_bytes + path.link_bytes
        self.events: list[tuple[float, int, Callable[[float], None]]] = []
        self.count = 0
        self.times: list[DatagramFlight] = []
        self.answered = 0  # flights that arrived whole

    def at(self, when_s: float, act: Callable[[float], None]) -> None:
        self.count += 1
        heapq.heappush(self.events, (when_s, self.count, act))

    def run(self) -> list[DatagramFlight]:
        self.start(0, 0.0)
        while self.answered < len(self.flights):
            now_s, _, act = heapq.heappop(self.events)
            act(now_s)
        return self.times

    def start(self, number: int, now_s: float) -> None:
        flight = self.flights[number]
        self.times.append(DatagramFlight(flight.sender, now_s, flight.writes[0][0]))
        for offset_s, size in flight.writes:
            self.at(now_s + offset_s, partial(self.send, number, size))
        handed_s = now_s + flight.writes[-1][0]
        if self.has_timer(number):
            for wait_s in self.way.waits_s()[1:]:
                self.at(handed_s + wait_s, partial(self.repeat, number))

    def has_timer(self, number: int) -> bool:
        """Whether a flight is repeated: not the last, and of WTLS the client's."""
        final = number + 1 == len(self.flights)
        return not final and (self.flights[number].sender == "client" or not self.way.client_repeats)

    def longest_s(self) -> float:
        """The longest round trip of a flight that is repeated, from when its timer starts."""
        return max(
            answer.arrived_s - asked.handed_s - self.flights[number].writes[-1][0]
            for number, (asked, answer) in enumerate(pairwise(self.times))
            if self.has_timer(number)
        )

    def send(self, number: int, size: float, now_s: float) -> None:
        times = self.times[number]
        times.left_s.append(self.load(times, size, now_s))
        if len(times.left_s) == len(self.flights[number].writes):
            times.arrived_s = times.left_s[-1] + self.path.direction(times.sender).delay.mean
            self.at(times.arrived_s, partial(self.arrives, number))

    def load(self, flight: DatagramFlight, size: float, now_s: float) -> float:
        direction, free = self.path.direction(flight.sender), self.free[flight.sender]
        flight.link_bytes += size + self.header_bytes
        sending_s = 8.0 * (size + self.header_bytes) / direction.rate_bits_per_s
        left_s = max(free[0], now_s) + sending_s
        free[0] = left_s + direction.silence_s(sending_s)
        return left_s

    def arrives(self, number: int, now_s: float) -> None:
        self.answered = number + 1
        if self.answered < len(self.flights):
            self.start(self.answered, now_s)

    def repeat(self, number: int, now_s: float) -> None:
        """The timer of a flight: sent again unless its answer has come, and answered again where it is so."""
        if self.answered > number + 1:
            return
        flight = self.flights[number]
        for _, size in flight.writes:
            left_s = self.load(self.times[number], size, now_s)
        if self.way.client_repeats:
            again_s = left_s + self.path.direction(flight.sender).delay.mean
            self.at(again_s, partial(self.answer_again, number + 1))

    def answer_again(self, number: int, now_s: float) -> None:
        if number < len(self.times) and len(self.times[number].left_s) == len(self.flights[number].writes):
            for _, size in self.flights[number].writes:
                self.load(self.times[number], size, now_s)


def flow(
    flights: Sequence[Flight], path: Path, way: Datagrams, *, setup_s: float = 0.0
) -> list[DatagramFlight]:
    """A handshake in datagrams of which none is lost; delays are the means of the path's.

    Args:
        flights: from ``steps.packed``.
        path, way: the network, and who repeats.
        setup_s: until when nothing can be sent.
    """
    return _Run(flights, path, way, setup_s).run()


def timers(flights: Sequence[Flight], path: Path, way: Datagrams) -> Datagrams:
    """The timers that hosts have on a path.

    Where a sender must be silent for most of the time (a duty cycle), those of a second or three would fire
    before anything is answered. They are taken to be doubled until they are above the handshake's round
    trips.
    """
    if path.direction("client").duty_cycle == 1.0 or len(flights) == 1:
        return way
    run = _Run(flights, path, replace(way, sends=1), 0.0)
    run.run()
    times = 2.0 ** max(0, math.ceil(math.log2(_ABOVE * run.longest_s() / way.timeout_s)))
    return replace(way, timeout_s=way.timeout_s * times, max_timeout_s=way.max_timeout_s * times)


def _whole(direction: Direction, datagrams: int) -> float:
    """Probability that one sending of a flight arrives with all of its datagrams, lost in bursts or not."""
    loss, burst = direction.loss, direction.loss_after_loss
    if loss <= 0.0:
        return 1.0
    begins = loss * (1.0 - burst) / (1.0 - loss)
    return (1.0 - loss) * (1.0 - begins) ** (datagrams - 1)


Part = list[tuple[float, float]]
"""Probabilities of being so many seconds late."""


def extras(
    flights: Sequence[DatagramFlight], path: Path, way: Datagrams, until: int
) -> tuple[list[Part], float]:
    """How late flights make a handshake, in parts independent of each other.

    Args:
        flights: from ``flow``.
        path, way: the network, and who repeats.
        until: number of flights that count.

    Returns:
        For each part the probabilities of being so many seconds late, given success; and the probability
        that the handshake fails.
    """
    waits_s = way.waits_s()
    parts: list[Part] = []
    kept = 1.0
    number = 0
    while number < until:
        flight = flights[number]
        last = number + 1 == len(flights)
        if way.client_repeats and flight.sender == "client" and number + 1 < until:
            part = _exchange(flight, flights[number + 1], path, waits_s)
            number += 1
        elif last and number and not way.client_repeats:
            part = _final(flights[number - 1], flight, path, waits_s)
        else:
            part = _alone(flight, path.direction(flight.sender), waits_s, keeps=not way.client_repeats)
        number += 1
        total = sum(weight for weight, _ in part)
        kept *= total
        # Where hardly any succeed, those that do are all rare.
        least = min(_LEAST, max(weight for weight, _ in part))
        parts.append([(weight / total, late_s) for weight, late_s in part if weight >= least])
    return parts, 1.0 - kept


def _alone(flight: DatagramFlight, direction: Direction, waits_s: list[float], *, keeps: bool) -> Part:
    """A flight that its own sender repeats; ``keeps``: what arrived of a sending need not come again."""
    count = len(flight.left_s)
    before, part = 0.0, []
    for copies, wait_s in enumerate(waits_s, 1):
        whole = _whole(direction, count)
        by = 1.0 - (1.0 - whole) ** copies
        if keeps and copies > 1:
            by = max(by, (1.0 - direction.loss**copies) ** count)
        part.append((by - before, wait_s))
        before = by
    return part


def _exchange(asks: DatagramFlight, answers: DatagramFlight, path: Path, waits_s: list[float]) -> Part:
    """A flight and its answer, both repeated whenever the client's timer fires.

    The answer to a repetition goes out at once, for the work was done when the flight came first.
    """
    there = _whole(path.direction(asks.sender), len(asks.left_s))
    back = _whole(path.direction(answers.sender), len(answers.left_s))
    part = []
    unheard, heard = 1.0, 0.0
    for wait_s in waits_s:
        part.append((unheard * there * back, wait_s))
        part.append((heard * there * back, max(0.0, wait_s - answers.worked_s)))
        heard = heard * (1.0 - there * back) + unheard * there * (1.0 - back)
        unheard *= 1.0 - there
    return part


def _final(before: DatagramFlight, final: DatagramFlight, path: Path, waits_s: list[float]) -> Part:
    """The last flight, which nobody answers: it comes again when its receiver repeats its own last one."""
    there = _whole(path.direction(final.sender), len(final.left_s))
    asked = _whole(path.direction(before.sender), len(before.left_s))
    part, weight = [(there, 0.0)], 1.0 - there
    for wait_s in waits_s[1:]:
        part.append((weight * asked * there, max(0.0, wait_s - final.worked_s)))
        weight *= 1.0 - asked * there
    return part
