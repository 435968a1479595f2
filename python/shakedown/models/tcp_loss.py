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

from shakedown.models.path import Direction
from shakedown.models.tcp import DUPLICATE_ACKS, MAX_RTO_S, MIN_TIMEOUT_S, RoundTrips, Tcp

_LEAST = 1e-7  # ways less probable than this are left out
_TIMEOUTS = 9  # timeouts in a row that are followed
_DEEP = 8  # losses within one class of a flight that are followed


@dataclass(frozen=True, slots=True)
class Connected:
    """One way to set up a connection.

    Attributes:
        weight: its probability.
        extra_s: time beyond a set-up without loss.
        sampled_s: what the client's first round trip counts beyond a round trip: answers echo the
            timestamp of the first SYN that arrived, so it counts from that one.
        client_timeouts: SYNs after the first.
        server_timeouts: SYN-ACKs that the server's timer repeated.
        first_syn_heard: whether the first SYN arrived.
    """

    weight: float
    extra_s: float
    sampled_s: float
    client_timeouts: int
    server_timeouts: int
    first_syn_heard: bool


def connections(up: Direction, down: Direction, round_trip_s: float, tcp: Tcp) -> list[Connected]:
    """Every way to set up a connection; their probabilities sum to 1 less that of giving up.

    Args:
        up, down: the directions.
        round_trip_s: of a SYN and its answer.
        tcp: the hosts'.
    """
    syns = tcp.syn_times_s()[:-1]
    if up.loss <= 0.0 and down.loss <= 0.0:
        return [Connected(1.0, 0.0, 0.0, 0, 0, True)]
    # A SYN-ACK that the timer repeats meets those that repeated SYNs ask for.
    timers, wait_s, due_s = [], 1.0, 0.0
    for _ in range(6):
        due_s += tcp.timer_s(wait_s)
        timers.append(due_s)
        wait_s *= 2.0
    merged: dict[tuple[float, float, int, int, bool], float] = {}
    for heard, syn_s in enumerate(syns):
        weight = up.loss**heard * (1.0 - up.loss)
        prompts = [(later - syn_s, 0) for later in syns[heard + 1 :]]
        answers = sorted([(0.0, -1), *((due, 1) for due in timers), *prompts])
        repeated = 0
        for offset_s, kind in answers:
            if weight < _LEAST:
                break
            repeated += kind == 1
            arrives = 1.0 - down.loss if kind else (1.0 - up.loss) * (1.0 - down.loss)
            extra_s = syn_s + offset_s
            timeouts = sum(syn <= extra_s + round_trip_s for syn in syns[1:]) if extra_s else 0
            key = (extra_s, offset_s, timeouts, repeated, heard == 0)
            merged[key] = merged.get(key, 0.0) + weight * arrives
            weight *= 1.0 - arrives
    return [Connected(weight, *key) for key, weight in merged.items() if weight >= _LEAST]


Ways = dict[tuple[int, int, int], float]
"""Probabilities by (timeouts' lengths, round trips, segments sent) until all has arrived."""


def _add(ways: Ways, weight: float, later: Ways, timeouts: int, trips: int, segments: int) -> None:
    for (u, v, w), share in later.items():
        total = weight * share
        if total >= _LEAST / 10.0:
            key = (u + timeouts, v + trips, w + segments)
            ways[key] = ways.get(key, 0.0) + total


@lru_cache(maxsize=4096)
def _repaired(left: int, released: int, loss: float) -> Ways:
    """Ways to get ``left`` segments across when ``released`` may be sent now."""
    sent = min(left, released)
    keep = 1.0 - loss
    ways: Ways = {}
    if left > sent:
        for arrived in range(sent + 1):
            weight = math.comb(sent, arrived) * keep**arrived * loss ** (sent - arrived)
            if weight < _LEAST:
                continue
            if arrived:
                _add(ways, weight, _repaired(left - arrived, 2 * arrived, loss), 0, 1, 1)
            else:
                _add(ways, weight, _timed_out(left, loss), 1, 0, 0)
        return ways
    ways[(0, 0, sent)] = keep**sent
    for arrived in range(sent):
        missing = sent - arrived
        both = keep**arrived * loss**missing
        if arrived:
            noticed = math.comb(sent - 1, arrived - 1) * both
            if noticed >= _LEAST:
                _add(ways, noticed, _repaired(missing, max(1, arrived), loss), 0, 1, sent)
        unnoticed = math.comb(sent - 1, arrived) * both
        if unnoticed >= _LEAST:
            _add(ways, unnoticed, _timed_out(missing, loss), 1, 1 if arrived else 0, arrived)
    return ways


@lru_cache(maxsize=4096)
def _timed_out(left: int, loss: float) -> Ways:
    """Ways to get ``left`` segments across when a timeout has just fired."""
    ways: Ways = {}
    waited = 0
    weight = 1.0
    for again in range(_TIMEOUTS):
        if left == 1:
            key = (waited, 0, 1)
            ways[key] = ways.get(key, 0.0) + weight * (1.0 - loss)
        else:
            _add(ways, weight * (1.0 - loss), _repaired(left - 1, 2, loss), waited, 1, 1)
        weight *= loss
        waited += 2 ** (again + 1)
        if weight < _LEAST:
            break
    return ways


@dataclass(frozen=True, slots=True)
class Sending:
    """A flight as its loss sees it; times from when it was handed over.

    Attributes:
        left_s: when each segment's last bit leaves the sender, nothing lost.
        sent_at_once: segments that the first window holds.
        segment_s: time to serialise a full segment.
        forth_s, back_s: delay towards the receiver, and of an acknowledgement, its serialisation included.
        round_trips: the sender's estimator.
        known_s: a round trip for the estimator where it has no sample yet.
        dropped: segments that the queue drops.
    """

    left_s: tuple[float, ...]
    sent_at_once: int
    segment_s: float
    forth_s: float
    back_s: float
    round_trips: RoundTrips
    known_s: float
    dropped: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Extra:
    """Probability of some time beyond a flight without loss, and whether a timeout shrank the window."""

    weight: float
    extra_s: float
    timed_out: bool


def extras(sending: Sending, forward: Direction, backward: Direction, tcp: Tcp) -> list[Extra]:
    """Every way in which a flight can be late, with its probability; the first is that it is not."""
    count = len(sending.left_s)
    loss = round(forward.loss, 9)
    found = _Found(sending, loss, tcp)
    if sending.dropped:
        first = sending.dropped[0]
        tail = 0
        while tail < count and count - 1 - tail in sending.dropped:
            tail += 1
        found.lost(1.0, first, len(sending.dropped) - 1 - min(tail, count - first - 1), tail if tail < count - first else count - first, backward.loss)
        return found.collected()
    clean = 1.0 if count == 0 else (1.0 - loss) * (1.0 - _start(forward)) ** (count - 1)
    result = [Extra(clean, 0.0, False)]
    if loss <= 0.0:
        return result
    for first, middle, tail, weight in _patterns(count, forward):
        found.lost(weight, first, middle, tail, backward.loss)
    return result + found.collected()


def _start(direction: Direction) -> float:
    """Probability that a loss starts after a packet that arrived."""
    if direction.loss_after_loss <= direction.loss or direction.loss >= 1.0:
        return direction.loss
    return direction.loss * (1.0 - direction.loss_after_loss) / (1.0 - direction.loss)


def _patterns(count: int, direction: Direction) -> Iterator[tuple[int, int, int, float]]:
    """Losses by (index of the first, further ones before the last arrival, those after it), probability."""
    begins, goes_on = _start(direction), direction.loss_after_loss
    for first in range(count):
        weight = direction.loss if first == 0 else (1.0 - direction.loss) * (1.0 - begins) ** (first - 1) * begins
        rest = count - first - 1
        if rest == 0:
            yield first, 0, 1, weight
            continue
        # Nothing after it arrives: all of the rest is tail, the first included.
        yield first, 0, rest + 1, weight * goes_on**rest
        for tail in range(min(rest - 1, _DEEP) + 1):
            middle_length = rest - tail  # ends with an arrival
            for middle, share in enumerate(_middles(middle_length, begins, goes_on)):
                run = begins * goes_on ** (tail - 1) if tail else 1.0
                ends = 1.0 if tail or rest == 0 else 1.0
                total = weight * share * run * ends
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


class _Found:
    """Collects the ways in which one flight is late."""

    def __init__(self, sending: Sending, loss: float, tcp: Tcp) -> None:
        self.sending, self.loss, self.tcp = sending, loss, tcp
        self.trip_s = sending.forth_s + sending.back_s
        self.on_time_s = sending.left_s[-1] + sending.forth_s
        informed = sending.round_trips.copy()
        if not informed.samples:
            informed.sample(sending.known_s)
        self.informed = informed
        self.weights: dict[tuple[float, bool], float] = {}

    def collected(self) -> list[Extra]:
        return [Extra(weight, extra_s, late) for (extra_s, late), weight in self.weights.items()]

    def put(self, weight: float, ways: Ways, start_s: float, rto_s: float, late: bool) -> None:
        """Ways that begin at ``start_s``, which is after what the link still had to send."""
        start_s = max(start_s, self.sending.left_s[-1])
        for (timeouts, trips, segments), share in ways.items():
            total = weight * share
            if total < _LEAST:
                continue
            waited_s = self.timeouts_s(timeouts, rto_s)
            end_s = start_s + waited_s + trips * self.trip_s + segments * self.sending.segment_s
            extra_s = max(0.0, end_s + self.sending.forth_s - self.on_time_s)
            key = (round(extra_s, 6), late or timeouts > 0)
            self.weights[key] = self.weights.get(key, 0.0) + total

    def timeouts_s(self, units: int, rto_s: float) -> float:
        """Length of timeouts that add up to so many times the first."""
        if not units:
            return 0.0
        # 1, 1 + 2, 1 + 2 + 4, …: so many timeouts in a row, each with the timer's lateness.
        waited_s, length = 0.0, 1
        while units > 0:
            step = min(length, units)
            waited_s += self.tcp.timer_s(min(step * rto_s, MAX_RTO_S))
            units -= step
            length *= 2
        return waited_s

    def lost(self, weight: float, first: int, middle: int, tail: int, ack_loss: float) -> None:
        """One pattern: ``first`` lost, ``middle`` more before the last arrival, ``tail`` at the end."""
        sending = self.sending
        count = len(sending.left_s)
        arrived = count - first - tail - middle - (0 if tail == count - first else 1)
        if arrived <= 0:
            self.unnoticed(weight, first, count - first)
            return
        # Acknowledgements of what came after the hole may all be lost too: then the probe finds it.
        silent = ack_loss**arrived
        if silent * weight >= _LEAST:
            self.unnoticed(weight * silent, first, 1 + middle + tail)
            weight *= 1.0 - silent
        unsent = max(0, count - sending.sent_at_once - 2 * first - 2)
        last = count - 1 - tail
        if arrived >= DUPLICATE_ACKS:
            third = min(first + DUPLICATE_ACKS + (middle * DUPLICATE_ACKS) // arrived, last)
            start_s = sending.left_s[third] + self.trip_s
            released = 1 + (arrived - DUPLICATE_ACKS)
        else:
            start_s = sending.left_s[last] + self.trip_s
            start_s += self.tcp.timer_s(self.informed.min_s / 4.0 + MIN_TIMEOUT_S)
            released = 1
        left = 1 + middle + tail + min(unsent, arrived)
        ways = _repaired(left, released, self.loss)
        if tail and left == 1 + middle + tail:
            # The end is only noticed when a retransmission that was sent after it arrives.
            ways = {}
            _add(ways, 1.0, _repaired(left, 1, self.loss), 0, 0, 0)
        self.put(weight, ways, start_s, self.informed.rto_s, False)

    def unnoticed(self, weight: float, first: int, lost: int) -> None:
        """Nothing tells the sender: the probe, then the timeout."""
        sending = self.sending
        count = len(sending.left_s)
        if first == 0:
            estimator, from_s = sending.round_trips, 0.0
        else:
            estimator, from_s = self.informed, sending.left_s[first - 1] + self.trip_s
        out = count - first
        probe_s = from_s + self.tcp.timer_s(estimator.probe_s(out))
        keep = 1.0 - self.loss
        if lost == 1:
            self.put(weight * keep, {(0, 0, 1): 1.0}, probe_s, estimator.rto_s, False)
        else:
            # The probe's acknowledgement tells of the others.
            self.put(
                weight * keep, _repaired(lost - 1, 1, self.loss),
                probe_s + sending.segment_s + self.trip_s, self.informed.rto_s, False,
            )
        late_s = probe_s + self.tcp.timer_s(estimator.rto_s)
        self.put(weight * self.loss, _timed_out(lost, self.loss), late_s, estimator.rto_s, True)
