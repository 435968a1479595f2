"""What lost packets cost a handshake over TCP: connection set-up, and flights repaired by Linux' TCP.

Every way to lose is enumerated with its probability as far as it changes the time, the rest is summed by
recursion over rounds of retransmission:

* SYN and SYN-ACK have timers of one second, the client's linear at first, the server's doubling; a SYN that
  comes again is answered at once.
* Of a flight, what matters is the first segment lost, how many after it were lost or arrived, and how many
  at its end were lost. Three segments acknowledged selectively start the repair, fewer start it a quarter of
  the least round trip later (RACK, RFC 8985), none leave it to the tail loss probe or the timeout.
* In repair each acknowledgement releases one retransmission, two once acknowledgements advance; a lost
  retransmission is noticed when a later one arrives, else by the timeout, which doubles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shakedown.models.arrays import Floats
from shakedown.models.distribution import Distribution
from shakedown.models.path import Direction
from shakedown.models.tcp import DUPLICATE_ACKS, MIN_TIMEOUT_S, RoundTrips, Tcp
from shakedown.models.tcp_repair import Crossing, Estimator, Odds, State, begun, estimator

_LEAST = 1e-7  # ways less probable than this are left out
_FEW = 1e-6  # the same among the ways of acknowledgements
_MANY = 200  # ways of one flight that are kept apart
_TOGETHER = 0.005  # repairs that begin within this share of a round trip are taken together
_SLIGHT = 1e-4  # ways less probable than this, of a whole flight, are followed one for several
_LONG = 8  # segments beyond which fewer ways are followed
_COLLECTED = 1e-6  # beginnings of repairs less probable than this are put one for several
_SETTLED = 8  # round trips measured alike, after which further ones change nothing
_DEEP = 8  # losses within one class of a flight that are followed


@dataclass(frozen=True, slots=True)
class Connected:
    """One way to set up a connection.

    Attributes:
        weight: its probability.
        extra_s: time beyond a set-up without loss.
        sampled_s: what the client's first round trip counts beyond a round trip: answers echo the
            timestamp of the first SYN that arrived, so it counts from that one.
        client_slow, server_slow: probabilities that a side starts with a window of one segment, as it does
            after more than one repetition of its SYN (the client's only if the first SYN was lost).
    """

    weight: float
    extra_s: float
    sampled_s: float
    client_slow: float
    server_slow: float


_BOTH = 0.5
"""How often timer and prompt both repeat a SYN-ACK: a SYN that comes first sets the timer again, and the
timers of both hosts are late by as much on average."""


def connections(up: Direction, down: Direction, round_trip_s: float, tcp: Tcp) -> list[Connected]:
    """Every way to set up a connection; their probabilities sum to 1 less that of giving up.

    Args:
        up, down: the directions.
        round_trip_s: of a SYN and its answer.
        tcp: the hosts'.
    """
    syns = tcp.syn_times_s()[:-1]
    if up.loss <= 0.0 and down.loss <= 0.0:
        return [Connected(1.0, 0.0, 0.0, 0.0, 0.0)]
    # A SYN-ACK that the timer repeats meets those that repeated SYNs ask for.
    timers, wait_s, due_s = [], 1.0, 0.0
    for _ in range(6):
        due_s += tcp.timer_s(wait_s)
        timers.append(due_s)
        wait_s *= 2.0
    merged: dict[tuple[float, float, float, float], float] = {}
    for heard, syn_s in enumerate(syns):
        weight = up.loss**heard * (1.0 - up.loss)
        prompts = [later - syn_s for later in syns[heard + 1 :]]
        answers = sorted([(0.0, False), *((due, False) for due in timers), *((due, True) for due in prompts)])
        for offset_s, asked in answers:
            if weight < _LEAST:
                break
            arrives = (1.0 - up.loss) * (1.0 - down.loss) if asked else 1.0 - down.loss
            until_s = offset_s + round_trip_s
            # SYN-ACKs repeated until the client's acknowledgement arrives.
            by_timer = sum(due <= until_s for due in timers)
            by_prompt = sum(due <= until_s for due in prompts)
            server_slow = _several(by_timer, by_prompt, 1.0 - up.loss) if offset_s else 0.0
            repeated = sum(syn <= syn_s + until_s for syn in syns[1:])
            client_slow = float(heard > 0 and repeated >= 2)
            key = (syn_s + offset_s, offset_s, client_slow, server_slow)
            merged[key] = merged.get(key, 0.0) + weight * arrives
            weight *= 1.0 - arrives
    return [Connected(weight, *key) for key, weight in merged.items() if weight >= _LEAST]


def _several(by_timer: int, by_prompt: int, arrives: float) -> float:
    """Probability that a SYN-ACK was repeated more than once."""
    if by_timer > 1 or by_timer + by_prompt > 3:
        return 1.0
    if not by_timer or not by_prompt:
        return float(by_prompt > 1)
    return _BOTH * arrives if by_prompt == 1 else 1.0


@dataclass(frozen=True, slots=True)
class Sending:
    """A flight as its loss sees it; times from when it was handed over.

    Attributes:
        left_s: when each segment's last bit leaves the sender, nothing lost.
        sent_at_once: segments that the first window holds.
        segment_s: time to serialise a full segment.
        forth_s, back_s: delay towards the receiver, and of an acknowledgement, its serialisation included.
        round_trips: the sender's estimator.
        dropped: segments that the queue drops.
    """

    left_s: tuple[float, ...]
    sent_at_once: int
    segment_s: float
    forth_s: float
    back_s: float
    round_trips: RoundTrips
    dropped: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Extras:
    """How late a flight is: probabilities and seconds, and the probability that a timeout shrank the window.

    The first entry is that it is on time.
    """

    weights: Floats
    extra_s: Floats
    timed_out: float


def extras(sending: Sending, forward: Direction, backward: Direction, tcp: Tcp, *, varies: bool) -> Extras:
    """Every way in which a flight can be late, with its probability.

    Args:
        sending: the flight.
        forward, backward: the directions of its segments and of their acknowledgements.
        tcp: the hosts'.
        varies: whether round trips vary, so that a repair may be ambiguous.
    """
    count = len(sending.left_s)
    odds = Odds(round(forward.loss, 9), round(backward.loss, 9), 0.25 if varies else 0.0)
    found = _Found(sending, odds, tcp)
    if sending.dropped:
        first = sending.dropped[0]
        tail = 0
        while tail < count - first and count - 1 - tail in sending.dropped:
            tail += 1
        middle = len(sending.dropped) - tail - (0 if tail == count - first else 1)
        found.lost(1.0, first, middle, tail)
        return found.collected(0.0)
    if forward.loss <= 0.0:
        return found.collected(1.0)
    for first, middle, tail, weight in _patterns(count, sending.sent_at_once, forward):
        found.lost(weight, first, middle, tail)
    return found.collected((1.0 - forward.loss) * (1.0 - _start(forward)) ** (count - 1))


def slowly(sending: Sending, window: int, forward: Direction, backward: Direction, tcp: Tcp) -> Extras:
    """How late a flight is that starts with a small window, which each round of acknowledgements doubles."""
    found = _Found(sending, Odds(round(forward.loss, 9), round(backward.loss, 9), 0.0), tcp)
    found.put(1.0, 0.0, begun(len(sending.left_s), window))
    return found.collected(0.0)


def _start(direction: Direction) -> float:
    """Probability that a loss starts after a packet that arrived."""
    if direction.loss_after_loss <= direction.loss or direction.loss >= 1.0:
        return direction.loss
    return direction.loss * (1.0 - direction.loss_after_loss) / (1.0 - direction.loss)


def _sent(count: int, at_once: int, first: int) -> int:
    """How many segments are on their way before the loss of the ``first`` is noticed.

    Each one acknowledged before it lets two more go, and so do duplicates until the repair begins.
    """
    return min(count, max(at_once, at_once + 2 * first + 2 if at_once < count else count))


def _patterns(count: int, at_once: int, direction: Direction) -> Iterator[tuple[int, int, int, float]]:
    """Losses by (index of the first, further ones before the last arrival, those after it), probability."""
    begins, goes_on = _start(direction), direction.loss_after_loss
    for first in range(count):
        weight = (
            direction.loss if first == 0 else (1.0 - direction.loss) * (1.0 - begins) ** (first - 1) * begins
        )
        rest = _sent(count, at_once, first) - first - 1
        if rest == 0:
            yield first, 0, 1, weight
            continue
        # Nothing after it arrives: all of the rest is tail, the first included.
        yield first, 0, rest + 1, weight * goes_on**rest
        for tail in range(min(rest - 1, _DEEP) + 1):
            middle_length = rest - tail  # ends with an arrival
            for middle, share in enumerate(_middles(middle_length, begins, goes_on)):
                total = weight * share * (begins * goes_on ** (tail - 1) if tail else 1.0)
                if total >= _LEAST:
                    yield first, middle, tail, total


@lru_cache(maxsize=1024)
def _middles(length: int, begins: float, goes_on: float) -> tuple[float, ...]:
    """Probability of so many losses among ``length`` packets after a lost one, the last of which arrives."""
    most = min(length - 1, _DEEP)
    lost = [1.0] + [0.0] * most  # the packet before was lost; by number of losses since
    kept = [0.0] * (most + 1)
    for _ in range(length):
        next_lost = [0.0] * (most + 1)
        next_kept = [0.0] * (most + 1)
        for number in range(most + 1):
            if number:
                next_lost[number] = lost[number - 1] * goes_on + kept[number - 1] * begins
            next_kept[number] = lost[number] * (1.0 - goes_on) + kept[number] * (1.0 - begins)
        lost, kept = next_lost, next_kept
    return tuple(kept)


@lru_cache(maxsize=4096)
def _beyond(middle: int, heard: int, silent: int) -> list[tuple[int, float]]:
    """How many of ``middle`` losses lie after the last arrival that was heard, with probabilities.

    Losses and arrivals are in any order, but for the last, which arrived.
    """
    if not silent or not middle:
        return [(0, 1.0)]
    ways = math.comb(middle + heard + silent - 1, middle)
    return [
        (
            number,
            math.comb(middle - number + heard - 1, middle - number)
            * math.comb(number + silent - 1, number)
            / ways,
        )
        for number in range(middle + 1)
    ]


class _Found:
    """Collects the ways in which one flight is late."""

    def __init__(self, sending: Sending, odds: Odds, tcp: Tcp) -> None:
        self.sending, self.odds, self.tcp = sending, odds, tcp
        self.trip_s = sending.forth_s + sending.back_s
        self.on_time_s = sending.left_s[-1] + sending.forth_s
        self.measured = estimator(sending.round_trips)
        # Long flights have more ways, and each matters less.
        slight = _SLIGHT * max(1.0, len(sending.left_s) / _LONG) ** 2
        self.crossing = Crossing(
            odds, tcp, self.trip_s + sending.segment_s, sending.segment_s, _TOGETHER * self.trip_s, slight
        )
        self.late: dict[tuple[float, int], Estimator] = {}
        self.rare = 0.0

    def collected(self, on_time: float) -> Extras:
        """All of them, the probability of being on time first."""
        found = self.crossing.run()
        weights = np.concatenate([[on_time], found.weights])
        extra_s = np.concatenate(
            [[0.0], np.maximum(0.0, found.end_s + self.sending.forth_s - self.on_time_s)]
        )
        if len(weights) > _MANY:
            merged = Distribution.of_samples(extra_s[1:], weights[1:])
            weights = np.concatenate([weights[:1], merged.weights * float(weights[1:].sum())])
            extra_s = np.concatenate([extra_s[:1], merged.values_s])
        return Extras(weights, extra_s, min(1.0, found.timed_out))

    def put(self, weight: float, at_s: float, state: State, measured: Estimator | None = None) -> None:
        """A state that the sender is in at ``at_s``; rare ones are put one for several."""
        if weight < _COLLECTED:
            self.rare += weight
            if self.rare < _COLLECTED:
                return
            weight, self.rare = self.rare, 0.0
        self.crossing.add(weight, at_s, state, measured or self.measured)

    def after_link(self, start_s: float) -> float:
        """Then, but not before the link has sent what it had."""
        return max(start_s, self.sending.left_s[-1])

    def lost(self, weight: float, first: int, middle: int, tail: int) -> None:
        """One pattern: ``first`` lost, ``middle`` more before the last arrival, ``tail`` at the end."""
        sending, ack_loss = self.sending, self.odds.ack_loss
        count = _sent(len(sending.left_s), sending.sent_at_once, first)
        waiting = len(sending.left_s) - count
        limited = len(sending.left_s) > sending.sent_at_once
        window = self.tcp.initial_window + (first if limited else 0)
        arrived = count - first - tail - middle - (0 if tail == count - first else 1)
        if arrived <= 0:
            self.unnoticed(weight, first, State(0, waiting, 2 * window, doubtful=count - first))
            return
        # Acknowledgements of what came after the hole may all be lost too: then the probe finds it.
        unheard = State(0, waiting, 2 * window, doubtful=1 + middle + tail, arrived=arrived)
        self.unnoticed(weight * ack_loss**arrived, first, unheard)
        last = count - 1 - tail
        for silent in range(arrived):
            share = weight * (1.0 - ack_loss) * ack_loss**silent
            if share < _FEW:
                break
            heard = arrived - silent
            if heard >= DUPLICATE_ACKS:
                third = min(first + DUPLICATE_ACKS + (middle * DUPLICATE_ACKS) // arrived, last)
                start_s = sending.left_s[third] + self.trip_s
                released = 1 + (heard - DUPLICATE_ACKS)
            else:
                start_s = sending.left_s[last] + self.trip_s
                start_s += self.tcp.timer_s(sending.round_trips.min_s / 4.0 + MIN_TIMEOUT_S)
                released = 1
            start_s = max(start_s, sending.left_s[count - 1])
            threshold = unheard.reduced()
            for beyond, part in _beyond(middle, heard, silent):
                unknown = tail + beyond + silent
                self.put(
                    share * part,
                    start_s,
                    State(
                        1 + middle - beyond,
                        waiting,
                        2 * (min(released, threshold) + unknown),
                        threshold,
                        doubtful=tail + beyond,
                        arrived=silent,
                        mode="recovery",
                    ),
                )

    def unnoticed(self, weight: float, first: int, state: State) -> None:
        """Nothing after the first hole is heard: the probe, then the timeout.

        Acknowledgements of what came before it may be lost too, the last of them at least: then more has
        arrived than is known.
        """
        ends = state.arrived > 0
        for silent in range(first + 1):
            share = weight * self.odds.ack_loss**silent
            if silent < first:
                share *= 1.0 - self.odds.ack_loss
            if share < _FEW:
                break
            under_way = state._replace(arrived=state.arrived + silent, first_arrived=silent > 0)
            self.probed(share, first - silent, under_way, ends=ends)

    def probed(self, weight: float, known: int, state: State, *, ends: bool) -> None:
        """The probe, which carries a new segment or repeats the last.

        Args:
            weight: its probability.
            known: segments at the beginning that were acknowledged.
            state: of the sender then.
            ends: whether the last segment that was sent has arrived.
        """
        sending, odds = self.sending, self.odds
        round_trips = sending.round_trips
        from_s = 0.0 if known == 0 else sending.left_s[known - 1] + self.trip_s
        probe_s = from_s + self.tcp.timer_s(round_trips.probe_s(state.unknown))
        probe_s = self.after_link(probe_s)
        if state.unsent:
            lost = state._replace(unsent=state.unsent - 1, doubtful=state.doubtful + 1)
            there = state._replace(unsent=state.unsent - 1, arrived=state.arrived + 1)
        else:
            lost = state
            there = state if ends else state._replace(doubtful=state.doubtful - 1, arrived=state.arrived + 1)
        late_s = probe_s + self.tcp.timer_s(round_trips.rto_s)
        self.put(weight * odds.loss, late_s, lost._replace(expired=True))
        arrives = weight * (1.0 - odds.loss)
        if not there.missing:
            self.put(arrives, probe_s, there)
            return
        # The probe's acknowledgement tells of the others.
        doubt = odds.ambiguous * (1.0 if known else 2.0) if not state.unsent else 0.0
        heard = (1.0 - odds.ack_loss) * (1.0 - doubt)
        told_s = probe_s + sending.segment_s + self.trip_s
        threshold = state.reduced()
        repairs = State(
            there.doubtful,
            there.unsent,
            2 * min(threshold, 1 + state.arrived),
            threshold,
            mode="recovery" if there.doubtful else "open",
        )
        measured = self.measured_late(min(known, _SETTLED), told_s) if state.arrived else None
        self.put(arrives * heard, told_s, repairs, measured)
        self.put(arrives * (1.0 - heard), late_s, there._replace(expired=True))

    def measured_late(self, known: int, told_s: float) -> Estimator:
        """The estimator after an acknowledgement at ``told_s`` of segments that were sent once, at first.

        So late a sample of the round trip makes the timeout some times longer.
        """
        key = (round(told_s / self.crossing.grain_s) * self.crossing.grain_s, known)
        if key not in self.late:
            round_trips = self.sending.round_trips.copy()
            for number in range(known):
                round_trips.sample(self.trip_s, new_window=not number)
            round_trips.sample(key[0], new_window=False)
            self.late[key] = estimator(round_trips)
        return self.late[key]
