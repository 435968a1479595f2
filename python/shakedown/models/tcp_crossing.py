"""A flight's repair followed forward in time, from state to state, until everything has arrived.

Ways to the same state are one, with the times at which it is reached; beside each time goes what the sender's
estimator of round trips says, for that makes its timers. Ways that are rare go on one for several, so that
the number of states stays bounded.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from shakedown.models.arrays import Floats
from shakedown.models.tcp import MAX_RTO_S, MIN_RTO_S, MIN_TIMEOUT_S, RoundTrips, Tcp
from shakedown.models.tcp_repair import Odds, Outcome, State, Wait, Way, outcomes, ways_on

_TIMES = 40  # times at which a state is reached that are kept apart
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_SEVERAL = 0.3  # of a rare way: what is less goes on with others


@dataclass(frozen=True, slots=True)
class Crossed:
    """When everything has arrived: probabilities and seconds.

    Attributes:
        weights: probabilities; they sum to what was begun with.
        end_s: when.
        timed_out: probability that a timeout shrank the window.
    """

    weights: Floats
    end_s: Floats
    timed_out: float


Rows = Floats
"""Times at which a state is reached, shape ``(7, times)``: probability, seconds, the sender's smoothed round
trip, variation, largest deviation of the present window and deviation, and for how long that has been under
way of which nothing is known."""

_FIRST = np.zeros(1, dtype=np.int64)
_WEIGHT, _AT, _SRTT, _VARIATION, _LARGEST, _DEVIATION, _AGE = range(7)


class _Timers:
    """How long the sender's timers are, at the times when a state is reached."""

    def __init__(self, tcp: Tcp, rows: Rows) -> None:
        self.tcp, self.rows = tcp, rows
        self.rto_s: Floats | None = None
        self.chain: list[Floats] = []

    def lasts_s(self, wait: Wait, more: int) -> Floats | float:
        """What timers add to a wait, with ``more`` timeouts."""
        if not (wait.timeouts or more or wait.probes or wait.probes_alone):
            return 0.0
        srtt_s = self.rows[_SRTT]
        if self.rto_s is None:
            self.rto_s = np.minimum(srtt_s + self.rows[_VARIATION], MAX_RTO_S)
        total_s: Floats | float = 0.0
        if wait.timeouts:
            total_s = self.tcp.timers_s(self.rto_s)
        if more:
            total_s = total_s + self.doubled_s(more)
        if wait.probes or wait.probes_alone:
            slack_s = MIN_RTO_S if wait.probes_alone else MIN_TIMEOUT_S
            total_s = total_s + self.tcp.timers_s(np.minimum(2.0 * srtt_s + slack_s, self.rto_s))
        return total_s

    def doubled_s(self, more: int) -> Floats:
        """How long so many timeouts are after the first, each twice as long as the one before."""
        while len(self.chain) < more:
            assert self.rto_s is not None
            last_s = np.minimum(self.rto_s * 2.0 ** (len(self.chain) + 1), MAX_RTO_S)
            before_s = self.chain[-1] if self.chain else 0.0
            self.chain.append(before_s + self.tcp.timers_s(last_s))
        return self.chain[more - 1]


_Weighted = TypeVar("_Weighted", Way, Outcome)


class Crossing:
    """Follows states forward in time until everything has arrived.

    States with more segments missing come first, so that all ways to a state are together before it is left.

    Args:
        odds: of the flight.
        tcp: the hosts'.
        trip_s: a round trip, a segment's serialisation included.
        segment_s: a segment's serialisation.
        slight: ways less probable than this, of the whole flight, are rare.
    """

    def __init__(self, odds: Odds, tcp: Tcp, trip_s: float, segment_s: float, slight: float) -> None:
        self.odds, self.tcp, self.trip_s, self.segment_s = odds, tcp, trip_s, segment_s
        self.slight = slight
        self.beginnings: dict[State, list[tuple[float, ...]]] = {}
        self.reached: dict[State, list[Rows]] = {}
        self.waiting: list[tuple[int, int, State]] = []
        self.count = 0
        self.ends: list[tuple[Floats, Floats]] = []
        self.timed_out = self.begun = 0.0
        self.rare, self.shares = [0.0, 0.0], [0.0, 0.0]

    def add(self, state: State, weight: float, at_s: float, measured: RoundTrips, age_s: float) -> None:
        """A state that is reached at ``at_s``; where nothing is missing, that is the end.

        Args:
            state: the sender's.
            weight: probability.
            at_s: when.
            measured: the sender's estimator.
            age_s: for how long that has been under way of which nothing is known.
        """
        self.begun += weight
        if not state.missing:
            self.ends.append((np.array([weight]), np.array([at_s + self.segment_s])))
            return
        row = (
            weight,
            at_s,
            measured.srtt_s,
            measured.rttvar_s,
            measured.mdev_max_s,
            measured.mdev_s,
            age_s,
        )
        begins = self.beginnings.get(state)
        if begins is None:
            self.beginnings[state] = [row]
        else:
            begins.append(row)

    def reach(self, state: State, rows: Rows) -> None:
        """Queues a state."""
        parts = self.reached.get(state)
        if parts is not None:
            parts.append(rows)
            return
        self.reached[state] = [rows]
        self.count += 1
        heapq.heappush(self.waiting, (-state.missing, self.count, state))

    def run(self) -> Crossed:
        """Follows them all."""
        for state, begins in self.beginnings.items():
            self.reach(state, np.array(begins).T)
        while self.waiting:
            *_, state = heapq.heappop(self.waiting)
            self.follow(state, self.together(self.reached.pop(state)))
        weights = np.concatenate([np.zeros(0), *(weights for weights, _ in self.ends)])
        end_s = np.concatenate([np.zeros(0), *(end_s for _, end_s in self.ends)])
        return Crossed(weights, end_s, self.timed_out)

    def follow(self, state: State, rows: Rows) -> None:
        """One state, at all times when it is reached."""
        whole = float(rows[_WEIGHT].sum())
        if state.expired:
            self.timed_out += whole
        shares = rows[_WEIGHT] / whole
        timers = _Timers(self.tcp, rows)
        for mass, outcome in self.followed(whole, outcomes(state, self.odds)):
            for part, way in self.followed(mass, ways_on(state, self.odds, outcome)):
                for share, more, echoed in way.chain:
                    wait_s = way.wait.trips * self.trip_s + timers.lasts_s(way.wait, more)
                    old_s = None
                    if way.late:
                        old_s = rows[_AGE] + wait_s
                    elif echoed:
                        old_s = self.trip_s + echoed * timers.doubled_s(more)
                    self.goes_on(way, part * share * shares, rows, wait_s, old_s)

    def goes_on(
        self, way: Way, weights: Floats, rows: Rows, wait_s: Floats | float, old_s: Floats | None
    ) -> None:
        """Goes one way, with probabilities, from times, after a wait.

        Args:
            way: the way.
            weights: probabilities.
            rows: when its beginning is reached.
            wait_s: how long it takes.
            old_s: how long ago that was sent which the first acknowledgement is of, if longer than a round
                trip.
        """
        end_s = rows[_AT] + wait_s
        if way.after is None:
            self.ends.append((weights, end_s + way.segments * self.segment_s))
            return
        after = np.empty_like(rows)
        after[_WEIGHT] = weights
        after[_AT] = end_s
        self.sampled(rows, after, way, old_s)
        if not way.after.unknown:
            after[_AGE] = 0.0
        else:
            after[_AGE] = self.trip_s if way.samples else rows[_AGE] + wait_s
        self.reach(way.after, after)

    def followed(self, whole: float, ways: tuple[_Weighted, ...]) -> Iterator[tuple[float, _Weighted]]:
        """Ways on from a state of so much probability: those that are not rare, and of all others one in
        which something is heard and one in which nothing is: a timeout matters more than anything.

        Which ones, shares say that fill the range between 0 and 1 evenly, the multiples of the golden ratio,
        so that each goes on as often as it is probable. What is very little goes on with the next such.
        """
        if len(ways) == 1:
            yield whole, ways[0]
            return
        least = self.slight * self.begun
        count, masses = 0, [0.0, 0.0]
        for way in ways:
            mass = way.weight * whole
            if mass >= least:
                count += 1
                yield mass, way
            else:
                masses[way.is_silent] += mass
        for silent, mass in enumerate(masses):
            if not mass:
                continue
            until = self.next_share(silent) * mass
            mass += self.rare[silent]
            if mass < _SEVERAL * least:
                self.rare[silent] = mass
                continue
            self.rare[silent] = 0.0
            for way in ways[count:]:
                if way.is_silent == silent:
                    chosen = way
                    until -= way.weight * whole
                    if until < 0.0:
                        break
            yield mass, chosen

    def next_share(self, silent: int) -> float:
        """The next of the multiples of the golden ratio, of its fraction."""
        self.shares[silent] = (self.shares[silent] + _GOLDEN) % 1.0
        return self.shares[silent]

    def together(self, parts: list[Rows]) -> Rows:
        """Times as one list, close ones as one at their means."""
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        if rows.shape[1] == 1:
            return rows
        # Finer near the least time: later ones are rare.
        after = (rows[_AT] - rows[_AT].min()) / self.trip_s
        keys = np.rint(_TIMES * np.log1p(after))
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        begins = np.concatenate([_FIRST, np.flatnonzero(keys[1:] != keys[:-1]) + 1])
        if len(begins) == len(keys):
            return rows
        rows = rows[:, order]
        weights = rows[_WEIGHT].copy()
        rows *= weights
        rows[_WEIGHT] = weights
        sums: Rows = np.add.reduceat(rows, begins, axis=1)
        sums[1:] /= sums[_WEIGHT]
        return sums

    def sampled(self, before: Rows, after: Rows, way: Way, old_s: Floats | None) -> None:
        """The sender's estimator after a way: ``RoundTrips.sample``, for all acknowledgements of a round."""
        if not way.samples:
            after[_SRTT:_AGE] = before[_SRTT:_AGE]
            return
        srtt_s, variation_s = before[_SRTT], before[_VARIATION]
        largest_s, deviation_s = before[_LARGEST], before[_DEVIATION]
        rest = way.samples
        if old_s is not None:
            # The first acknowledgement is of what was sent long ago.
            error_s = np.maximum(old_s - srtt_s, 0.0)
            srtt_s = srtt_s + error_s / 8.0
            deviation_s = np.maximum(0.75 * deviation_s + error_s, deviation_s)
            largest_s = np.maximum(largest_s, deviation_s)
            variation_s = np.maximum(variation_s, largest_s)
            rest -= 1
        # The others measure a round trip each: what the smoothed one is beyond it goes by eighths, and the
        # deviation by quarters, but for what is left of that.
        beyond_s, kept, left = srtt_s - self.trip_s, 0.875 ** min(rest, 40), 0.75 ** min(rest, 40)
        deviation_s = np.minimum(deviation_s, left * deviation_s + 8.0 * (kept - left) * beyond_s)
        if way.advanced:
            # A new window.
            variation_s = variation_s - np.maximum(0.0, variation_s - largest_s) / 4.0
            largest_s = np.maximum(MIN_RTO_S, deviation_s)
        after[_SRTT] = self.trip_s + beyond_s * kept
        after[_VARIATION], after[_LARGEST], after[_DEVIATION] = variation_s, largest_s, deviation_s
