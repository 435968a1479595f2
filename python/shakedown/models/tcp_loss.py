"""What lost packets cost a flight over TCP, repaired as Linux does it.

Every way to lose is enumerated with its probability as far as it changes the time, and followed from the
first repair on (``tcp_crossing``):

* Of a flight, what matters is the first segment lost, how many after it were lost or arrived, and how many
  at its end were lost. Three segments acknowledged selectively start the repair, fewer start it a quarter of
  the least round trip later (RACK, RFC 8985), none leave it to the tail loss probe or the timeout.
* In repair each acknowledgement releases one retransmission, two once acknowledgements advance; a lost
  retransmission is noticed when a later one arrives, else by the timeout, which doubles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from shakedown.models.arrays import Floats
from shakedown.models.distribution import Distribution
from shakedown.models.path import Direction
from shakedown.models.tcp import (
    DUPLICATE_ACKS,
    MIN_TIMEOUT_S,
    RoundTrips,
    Tcp,
)
from shakedown.models.tcp_crossing import Crossing
from shakedown.models.tcp_repair import Odds, State, begun, released

_LEAST = 1e-7  # ways less probable than this are left out
_SEVERAL = 10.0  # ways of acknowledgements that are less probable than those by this factor are left out
_MANY = 200  # ways of one flight that are kept apart
_SLIGHT = 8e-5  # ways less probable than this, of a whole flight, are followed one for several
_LONG = 8  # segments beyond which fewer ways are followed
_COLLECTED = 0.03  # of a rare way: beginnings of repairs less probable than this are put one for several
_LATE = 1.05  # round trips: a first one longer than this was measured late
_LEAST_SHARE = 0.01  # of the handshakes: a flight that so few have is followed as coarsely as this one
_DEEP = 8  # losses within one class of a flight that are followed


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


@dataclass(frozen=True)
class Extras:
    """How late a flight is.

    Attributes:
        weights: probabilities; the first is that of being on time.
        extra_s: seconds.
        timed_out: probability that a timeout shrank the window.
        probed: probability that the probe's copy alone repaired it. Nothing says then that the copy was no
            duplicate, and the sender's next flight has no probe (``tcp_process_tlp_ack``).
    """

    weights: Floats
    extra_s: Floats
    timed_out: float
    probed: float

    @cached_property
    def late(self) -> Distribution:
        """The same as a distribution."""
        return Distribution.of_samples(self.extra_s, self.weights)


def extras(
    sending: Sending,
    forward: Direction,
    backward: Direction,
    tcp: Tcp,
    *,
    varies: bool,
    probes: bool = True,
    share: float = 1.0,
) -> Extras:
    """Every way in which a flight can be late, with its probability.

    Args:
        sending: the flight.
        forward, backward: the directions of its segments and of their acknowledgements.
        tcp: the hosts'.
        varies: whether round trips vary, so that a repair may be ambiguous.
        probes: whether the sender may probe.
        share: of the handshakes that this flight is for: the fewer, the coarser.
    """
    count = len(sending.left_s)
    odds = Odds(round(forward.loss, 9), round(backward.loss, 9), 0.25 if varies else 0.0, segments=count)
    found = _Found(sending, odds, tcp, probes=probes, share=share)
    if sending.dropped:
        first = sending.dropped[0]
        tail = 0
        while tail < count - first and count - 1 - tail in sending.dropped:
            tail += 1
        middle = len(sending.dropped) - tail - (0 if tail == count - first else 1)
        found.lost(1.0, first, middle, tail)
        return found.collected(0.0)
    if odds.loss <= 0.0:
        return found.collected(1.0)
    on_time = (1.0 - forward.loss) * (1.0 - _start(forward)) ** (count - 1)
    found.few *= 1.0 - on_time
    sent = [found.sent(first)[1] for first in range(count)]
    for first, middle, tail, weight in _patterns(sent, forward):
        found.lost(weight, first, middle, tail)
    return found.collected(on_time)


def slowly(
    sending: Sending, window: int, forward: Direction, backward: Direction, tcp: Tcp, share: float = 1.0
) -> Extras:
    """How late a flight is that starts with a small window, which each round of acknowledgements doubles."""
    count = len(sending.left_s)
    odds = Odds(round(forward.loss, 9), round(backward.loss, 9), 0.0, segments=count)
    found = _Found(sending, odds, tcp, share=share)
    found.put(1.0, 0.0, begun(count, window))
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


def _patterns(sent: list[int], direction: Direction) -> Iterator[tuple[int, int, int, float]]:
    """Losses by (index of the first, further ones before the last arrival, those after it), probability.

    ``sent`` says how many segments are sent before the loss of each one is noticed.
    """
    begins, goes_on = _start(direction), direction.loss_after_loss
    for first, count in enumerate(sent):
        weight = (
            direction.loss if first == 0 else (1.0 - direction.loss) * (1.0 - begins) ** (first - 1) * begins
        )
        rest = count - first - 1
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

    def __init__(
        self, sending: Sending, odds: Odds, tcp: Tcp, *, probes: bool = True, share: float = 1.0
    ) -> None:
        self.sending, self.odds, self.tcp, self.probes = sending, odds, tcp, probes
        self.repaired_by_probe = 0.0
        self.trip_s = sending.forth_s + sending.back_s
        self.on_time_s = sending.left_s[-1] + sending.forth_s
        count = len(sending.left_s)
        # Long flights have more ways, and each matters less.
        slight = _SLIGHT * max(1.0, count / _LONG) ** 1.2 / max(share, _LEAST_SHARE)
        self.few = _COLLECTED * slight
        # A first round trip that was measured late is no measure of others.
        self.unmeasured = not odds.ambiguous and sending.round_trips.min_s > _LATE * self.trip_s
        doubting = replace(odds, first_ambiguous=True) if self.unmeasured else odds
        self.crossing, self.doubting = (
            Crossing(one, tcp, self.trip_s + sending.segment_s, sending.segment_s, slight)
            for one in (odds, doubting)
        )
        self.limited = count > sending.sent_at_once
        # Where the first window takes longer to send than a round trip, the window limits nothing.
        self.in_windows = self.limited and sending.sent_at_once * sending.segment_s < self.trip_s
        self.rare = 0.0
        self.left: tuple[State, float] | None = None
        self.measures: dict[tuple[int, bool], RoundTrips] = {}

    def collected(self, on_time: float) -> Extras:
        """All of them, the probability of being on time first."""
        if self.rare > 0.0 and self.left is not None:
            # What was put last, and very little.
            state, at_s = self.left
            self.crossing.add(
                state, self.rare, at_s, self.sending.round_trips, at_s if state.unknown else 0.0
            )
        all_found = [self.crossing.run(), self.doubting.run()]
        weights = np.concatenate([[on_time], *(found.weights for found in all_found)])
        ends_s = np.concatenate([found.end_s for found in all_found])
        timed_out = sum(found.timed_out for found in all_found)
        extra_s = np.concatenate([[0.0], np.maximum(0.0, ends_s + self.sending.forth_s - self.on_time_s)])
        if len(weights) > _MANY:
            merged = Distribution.of_samples(extra_s[1:], weights[1:])
            weights = np.concatenate([weights[:1], merged.weights * float(weights[1:].sum())])
            extra_s = np.concatenate([extra_s[:1], merged.values_s])
        return Extras(weights, extra_s, min(1.0, timed_out), self.repaired_by_probe)

    def put(
        self,
        weight: float,
        at_s: float,
        state: State,
        samples: int = 0,
        *,
        new_window: bool = False,
        late: bool = False,
        doubting: bool = False,
    ) -> None:
        """A state that the sender is in at ``at_s``; rare ones are put one for several.

        Args:
            weight: its probability.
            at_s: when.
            state: the sender's.
            samples: acknowledgements that came until then.
            new_window: whether they told of more than was sent before the flight.
            late: whether one came just now, of what was sent when the flight began.
            doubting: whether the least round trip measured is that of a segment behind others.
        """
        self.rare += weight
        if self.rare < self.few:
            self.left = state, at_s
            return
        weight, self.rare = self.rare, 0.0
        measured = self.measured(samples, new_window=new_window)
        if late:
            measured = measured.copy()
            measured.sample(at_s, new_window=False)
        crossing = self.doubting if doubting else self.crossing
        crossing.add(state, weight, at_s, measured, at_s if state.unknown else 0.0)

    def measured(self, samples: int, *, new_window: bool) -> RoundTrips:
        """The estimator after so many round trips like any other."""
        key = (samples, new_window)
        if key not in self.measures:
            round_trips = self.sending.round_trips.copy()
            for number in range(samples):
                round_trips.sample(self.trip_s, new_window=new_window and not number)
            self.measures[key] = round_trips
        return self.measures[key]

    def after_link(self, start_s: float) -> float:
        """Then, but not before the link has sent what it had."""
        return max(start_s, self.sending.left_s[-1])

    def window(self, first: int) -> tuple[int, int]:
        """Indexes where the window begins and ends in which a segment is sent."""
        begin, end, count = 0, self.sending.sent_at_once, len(self.sending.left_s)
        while first >= end:
            begin, end = end, end + 2 * (end - begin)
        return begin, min(end, count)

    def lost(self, weight: float, first: int, middle: int, tail: int) -> None:
        """One pattern: ``first`` lost, ``middle`` more before the last arrival, ``tail`` at the end."""
        sending, ack_loss = self.sending, self.odds.ack_loss
        begin, count = self.sent(first)
        waiting = len(sending.left_s) - count
        window = self.tcp.initial_window + (first if self.limited else 0)
        arrived = count - first - tail - middle - (0 if tail == count - first else 1)
        if arrived <= 0:
            self.unnoticed(weight, first, begin, State(0, waiting, 2 * window, doubtful=count - first))
            return
        # Acknowledgements of what came after the hole may all be lost too: then the probe finds it.
        unheard = State(0, waiting, 2 * window, doubtful=1 + middle + tail, arrived=arrived)
        self.unnoticed(weight * ack_loss**arrived, first, begin, unheard)
        last = count - 1 - tail
        threshold = unheard.reduced()
        # Where the first segment was acknowledged by itself, its round trip is the least.
        doubted = (1.0 if first == 0 else ack_loss) if self.unmeasured else 0.0
        doubts = [one for one in ((True, doubted), (False, 1.0 - doubted)) if one[1] > 0.0]
        for silent in range(arrived):
            share = weight * (1.0 - ack_loss) * ack_loss**silent
            if share < self.few / _SEVERAL:
                break
            heard = arrived - silent
            if heard >= DUPLICATE_ACKS:
                third = min(first + DUPLICATE_ACKS + (middle * DUPLICATE_ACKS) // arrived, last)
                start_s = sending.left_s[third] + self.trip_s
            else:
                start_s = sending.left_s[last] + self.trip_s
                # The repair waits, but what is new does not, and if more of it follows the repair is in time.
                if not self.in_windows or waiting <= 2 * (first - begin) + heard:
                    least_s = min(sending.round_trips.min_s, self.trip_s)
                    start_s += self.tcp.timer_s(least_s / 4.0 + MIN_TIMEOUT_S)
            start_s = max(start_s, sending.left_s[count - 1])
            for beyond, part in _beyond(middle, heard, silent):
                unknown = tail + beyond + silent
                found = 1 + middle - beyond
                under_way, ahead = released(first - begin, heard, found, unknown, window, waiting)
                state = State(
                    found,
                    waiting,
                    2 * (under_way + unknown),
                    threshold,
                    doubtful=tail + beyond,
                    arrived=silent,
                    mode="recovery",
                    ahead=ahead,
                )
                for doubting, split in doubts:
                    self.put(
                        share * part * split,
                        start_s,
                        state,
                        first + heard,
                        new_window=first > 0,
                        doubting=doubting,
                    )

    def sent(self, first: int) -> tuple[int, int]:
        """Where the window begins with the ``first`` lost, and how many segments are sent before that is
        noticed.
        """
        if self.in_windows:
            return self.window(first)
        return 0, _sent(len(self.sending.left_s), self.sending.sent_at_once, first)

    def unnoticed(self, weight: float, first: int, begin: int, state: State) -> None:
        """Nothing after the first hole is heard: the probe, then the timeout.

        Acknowledgements of what came before it may be lost too, the last of them at least: then more has
        arrived than is known.
        """
        ends = state.arrived > 0
        for silent in range(first + 1):
            share = weight * self.odds.ack_loss**silent
            if silent < first:
                share *= 1.0 - self.odds.ack_loss
            if share < self.few / _SEVERAL:
                break
            known = first - silent
            under_way = state._replace(arrived=state.arrived + silent, first_arrived=min(silent, 2))
            early = 2 * (known - begin)
            if self.in_windows and state.unsent and early > 0:
                # What the acknowledgements let go tells of the others.
                goes_on = under_way._replace(window=2 * (under_way.unknown + early))
                self.put(share, self.sending.left_s[known - 1] + self.trip_s, goes_on, known, new_window=True)
                continue
            self.probed(share, known, under_way, ends=ends)

    def probed(self, weight: float, known: int, state: State, *, ends: bool) -> None:
        """The probe, which carries a new segment or repeats the last.

        Args:
            weight: its probability.
            known: segments at the beginning that were acknowledged.
            state: of the sender then.
            ends: whether the last segment that was sent has arrived.
        """
        sending, odds = self.sending, self.odds
        round_trips = self.measured(known, new_window=known > 0)
        from_s = 0.0 if known == 0 else sending.left_s[known - 1] + self.trip_s
        if not self.probes:
            late_s = self.after_link(from_s + self.tcp.timer_s(round_trips.rto_s))
            self.put(weight, late_s, state._replace(expired=True), known, new_window=known > 0)
            return
        probe_s = from_s + self.tcp.timer_s(round_trips.probe_s(state.unknown))
        probe_s = self.after_link(probe_s)
        if state.unsent:
            lost = state._replace(unsent=state.unsent - 1, doubtful=state.doubtful + 1)
            there = state._replace(unsent=state.unsent - 1, arrived=state.arrived + 1)
        else:
            lost = state
            there = state if ends else state._replace(doubtful=state.doubtful - 1, arrived=state.arrived + 1)
        late_s = probe_s + self.tcp.timer_s(round_trips.rto_s)
        self.put(weight * odds.loss, late_s, lost._replace(expired=True), known, new_window=known > 0)
        arrives = weight * (1.0 - odds.loss)
        if not there.missing:
            self.put(arrives, probe_s, there)
            self.repaired_by_probe += arrives
            return
        # The probe's acknowledgement tells of the others.
        doubt = odds.ambiguous * (1.0 if known else 2.0) if not state.unsent else 0.0
        if self.unmeasured and not state.unsent and state.arrived == ends:
            # Nothing but the copy of the last and shorter segment is acknowledged, faster than any before.
            doubt = 1.0
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
        self.put(arrives * heard, told_s, repairs, known, late=state.arrived > 0)
        self.put(arrives * (1.0 - heard), late_s, there._replace(expired=True), known, new_window=known > 0)
