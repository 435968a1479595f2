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

from shakedown.models import tcp_small
from shakedown.models.arrays import Floats
from shakedown.models.distribution import Distribution
from shakedown.models.path import Direction
from shakedown.models.tcp import DUPLICATE_ACKS, MAX_RTO_S, MIN_TIMEOUT_S, RoundTrips, Tcp
from shakedown.models.tcp_repair import Odds, Window, answers, repaired, unanswered

_LEAST = 1e-7  # ways less probable than this are left out
_FEW = 1e-6  # the same among the ways of acknowledgements
_MANY = 200  # ways of one flight that are kept apart
_TOGETHER = 0.005  # repairs that begin within this share of a round trip are taken together
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


@lru_cache(maxsize=16_384)
def _arrays(
    lost: int, released: int, doubtful: int, arrived: int, odds: Odds, window: Window, heard: bool
) -> tuple[Floats, Floats, Floats, Floats]:
    """Weights, timeouts, round trips and segments of a repair; of nothing, one segment that ends it."""
    ways = {(0, 0, 1): 1.0}
    if lost or doubtful:
        ways = repaired(lost, released, doubtful, arrived, odds, window, heard)
    keys = np.array(list(ways), dtype=np.float64).reshape(-1, 3)
    return np.array(list(ways.values())), keys[:, 0], keys[:, 1], keys[:, 2]


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
    odds = Odds(round(forward.loss, 9), round(backward.loss, 9), 0.0)
    estimator, segments = sending.round_trips, len(sending.left_s)
    trip_s = sending.forth_s + sending.back_s + sending.segment_s
    weights, timeouts, probes, trips, last = _small_arrays(tcp_small.begun(segments, window), odds)
    end_s = timeouts * tcp.timer_s(min(estimator.rto_s, MAX_RTO_S))
    end_s += probes * tcp.timer_s(estimator.probe_s(1)) + trips * trip_s + last * sending.segment_s
    on_time_s = sending.left_s[-1]
    return Extras(weights, np.maximum(0.0, end_s - on_time_s), float(weights[timeouts + probes > 0.0].sum()))


@lru_cache(maxsize=1024)
def _small_arrays(begun: tcp_small.State, odds: Odds) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Weights, timeouts, probes, round trips and segments of a flight that starts with a small window."""
    ways = tcp_small.crossed(begun, odds)
    keys = np.array(list(ways), dtype=np.float64)
    return np.array(list(ways.values())), keys[:, 0], keys[:, 1], keys[:, 2], keys[:, 3]


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


@dataclass(frozen=True, slots=True)
class _Repair:
    """A repair to come: what is lost, released, in doubt and arrived, when it begins, and its timeout."""

    lost: int
    released: int
    doubtful: int
    arrived: int
    start_s: float
    rto_s: float
    window: Window
    heard: bool


class _Found:
    """Collects the ways in which one flight is late."""

    def __init__(self, sending: Sending, odds: Odds, tcp: Tcp) -> None:
        self.sending, self.odds, self.tcp = sending, odds, tcp
        self.trip_s = sending.forth_s + sending.back_s
        self.on_time_s = sending.left_s[-1] + sending.forth_s
        self.grain_s = _TOGETHER * self.trip_s
        self.repairs: dict[_Repair, float] = {}
        self.waits: dict[tuple[float, int, int, int, bool], float] = {}
        self.timeouts_s: dict[tuple[float, int], float] = {}
        self.timed_out = 0.0

    def collected(self, on_time: float) -> Extras:
        """All of them, the probability of being on time first."""
        for wait, share in self.waits.items():
            self.timeouts(share, *wait)
        weights, extra_s = [np.array([on_time])], [np.zeros(1)]
        sending = self.sending
        for repair, weight in self.repairs.items():
            shares, timeouts, trips, segments = _arrays(
                repair.lost,
                repair.released,
                repair.doubtful,
                repair.arrived,
                self.odds,
                repair.window,
                repair.heard,
            )
            waited_s = timeouts * self.tcp.timer_s(min(repair.rto_s, MAX_RTO_S))
            end_s = repair.start_s + waited_s + trips * (self.trip_s + sending.segment_s)
            end_s += segments * sending.segment_s + sending.forth_s
            weights.append(weight * shares)
            extra_s.append(np.maximum(0.0, end_s - self.on_time_s))
            self.timed_out += weight * float(shares[timeouts > 0.0].sum())
        all_weights, all_s = np.concatenate(weights), np.concatenate(extra_s)
        if len(all_weights) > _MANY:
            merged = Distribution.of_samples(all_s[1:], all_weights[1:])
            total = float(all_weights[1:].sum())
            all_weights = np.concatenate([all_weights[:1], merged.weights * total])
            all_s = np.concatenate([all_s[:1], merged.values_s])
        return Extras(all_weights, all_s, self.timed_out)

    def put(
        self,
        weight: float,
        start_s: float,
        rto_s: float,
        lost: int,
        released: int,
        doubtful: int = 0,
        arrived: int = 0,
        *,
        window: Window = "reduced",
        heard: bool = False,
    ) -> None:
        """A repair that begins at ``start_s``; those that begin as good as together are one."""
        if weight < _LEAST:
            return
        start_s = round(start_s / self.grain_s) * self.grain_s
        repair = _Repair(
            lost, min(lost, released), doubtful, arrived, start_s, round(rto_s, 3), window, heard
        )
        self.repairs[repair] = self.repairs.get(repair, 0.0) + weight

    def after_link(self, start_s: float) -> float:
        """Then, but not before the link has sent what it had."""
        return max(start_s, self.sending.left_s[-1])

    def lost(self, weight: float, first: int, middle: int, tail: int) -> None:
        """One pattern: ``first`` lost, ``middle`` more before the last arrival, ``tail`` at the end."""
        sending, ack_loss = self.sending, self.odds.ack_loss
        count = _sent(len(sending.left_s), sending.sent_at_once, first)
        waiting = len(sending.left_s) - count
        arrived = count - first - tail - middle - (0 if tail == count - first else 1)
        if arrived <= 0:
            self.unnoticed(weight, first, count - first + waiting, 0)
            return
        # Acknowledgements of what came after the hole may all be lost too: then the probe finds it.
        self.unnoticed(weight * ack_loss**arrived, first, 1 + middle + tail + waiting, arrived)
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
            for beyond, part in _beyond(middle, heard, silent):
                self.fast(
                    share * part,
                    start_s,
                    first,
                    1 + middle - beyond + waiting,
                    released,
                    tail + beyond,
                    silent,
                )

    def fast(
        self, weight: float, start_s: float, known: int, lost: int, released: int, doubtful: int, arrived: int
    ) -> None:
        """A repair without a timeout before it.

        Where segments have arrived unheard and nothing is heard of the first round either, their
        acknowledgement comes late, and makes timeouts longer.
        """
        rto_s = self.sending.round_trips.rto_s
        if not arrived or weight < _LEAST:
            self.put(weight, start_s, rto_s, lost, released, doubtful, arrived)
            return
        sent = min(lost, released)
        at_s = start_s + self.tcp.timer_s(rto_s)
        answered = 1.0
        for share, left, unknown in unanswered(sent, self.odds):
            answered -= share
            missing = lost - sent + doubtful + left
            if not missing:
                self.put(weight * share, start_s, rto_s, 0, 1)
                continue
            first = unknown / sent  # the first of the round has arrived
            for here, part in ((True, first), (False, 1.0 - first)):
                self.waited(weight * share * part, at_s, known, missing, arrived + unknown, here=here)
        self.put(weight * answered, start_s, rto_s, lost, released, doubtful, arrived, heard=True)

    def unnoticed(self, weight: float, first: int, lost: int, arrived: int) -> None:
        """Nothing after the first hole is heard: the probe, then the timeout.

        Acknowledgements of what came before it may be lost too, the last of them at least: then more has
        arrived than is known.
        """
        for silent in range(first + 1):
            share = weight * self.odds.ack_loss**silent
            if silent < first:
                share *= 1.0 - self.odds.ack_loss
            if share < _FEW:
                break
            self.probed(share, first - silent, lost, arrived + silent, here=silent > 0, ends=arrived > 0)

    def probed(self, weight: float, known: int, lost: int, arrived: int, *, here: bool, ends: bool) -> None:
        """The probe, which repeats the last segment.

        Args:
            weight: its probability.
            known: segments at the beginning that were acknowledged.
            lost, arrived: what did not arrive, and what did unheard.
            here: whether the first in doubt has arrived.
            ends: whether the last has.
        """
        sending, odds = self.sending, self.odds
        estimator = sending.round_trips
        from_s = 0.0 if known == 0 else sending.left_s[known - 1] + self.trip_s
        probe_s = from_s + self.tcp.timer_s(estimator.probe_s(len(sending.left_s) - known))
        probe_s = self.after_link(probe_s)
        arrives = 1.0 - odds.loss
        told_s = round((probe_s + sending.segment_s + self.trip_s) / self.grain_s) * self.grain_s
        late_s = probe_s + self.tcp.timer_s(estimator.rto_s)
        if not ends and lost == 1:
            self.put(weight * arrives, probe_s, estimator.rto_s, 0, 1)
            weight *= odds.loss
            self.waited(weight, late_s, known, lost, arrived, here=here)
            return
        left = lost if ends else lost - 1
        # The probe's acknowledgement tells of the others.
        doubt = odds.ambiguous * (1.0 if known else 2.0)
        heard = arrives * (1.0 - odds.ack_loss) * (1.0 - doubt)
        rto_s = self.rto_s(min(known, _SETTLED), told_s) if arrived else estimator.rto_s
        self.put(weight * heard, told_s, rto_s, left, 1 + arrived)
        unheard = arrives - heard
        self.waited(weight * unheard, late_s, known, left, arrived + (not ends), here=here)
        self.waited(weight * odds.loss, late_s, known, lost, arrived, here=here)

    def waited(self, weight: float, at_s: float, known: int, left: int, arrived: int, *, here: bool) -> None:
        """The timeout at ``at_s``, and those after it until one is heard; alike ones are one."""
        if weight >= _LEAST:
            wait = (round(at_s / self.grain_s) * self.grain_s, min(known, _SETTLED), left, arrived, here)
            self.waits[wait] = self.waits.get(wait, 0.0) + weight

    def timeouts(self, weight: float, at_s: float, known: int, left: int, arrived: int, here: bool) -> None:
        """What follows a timeout at ``at_s``."""
        self.timed_out += weight
        rto_s = self.sending.round_trips.rto_s
        timer_s = self.tcp.timer_s(rto_s)
        for share, waited, rest, released in answers(left, arrived, self.odds, here=here):
            start_s = at_s + waited * timer_s
            if not rest:
                self.put(weight * share, start_s, rto_s, 0, 1)
                continue
            start_s += self.sending.segment_s + self.trip_s
            late_s = self.rto_s(known, start_s) if arrived else rto_s
            self.put(weight * share, start_s, late_s, rest, released, window="growing")

    def rto_s(self, known: int, told_s: float) -> float:
        """The timeout after an acknowledgement at ``told_s`` of segments that were sent once, at first.

        So late a sample of the round trip makes it some times longer.
        """
        key = (told_s, known)
        if key not in self.timeouts_s:
            estimator = self.sending.round_trips.copy()
            for number in range(known):
                estimator.sample(self.trip_s, new_window=not number)
            estimator.sample(told_s, new_window=False)
            self.timeouts_s[key] = estimator.rto_s
        return self.timeouts_s[key]
