"""How Linux' TCP gets segments across that were lost or never sent: in rounds, by probes and by timeouts.

A round sends what is known to be lost, then what is new, as far as the window allows. What an acknowledgement
tells depends on the last one that arrives: it names all that has arrived until then, so that what was sent
before it and is not named is lost (RACK, RFC 8985), and what was sent after it stays in doubt: some of it has
arrived, some not. The next round's acknowledgements clear that up. Where none arrives, the tail loss probe
does, unless something is being repaired already, and then the timeout: it doubles, it repeats the first
segment that is not known to have arrived, and by chance that one had.

States are counts, so that their number is small, and ways to the same state are one, with the times at which
it is reached. They are followed forward in time; ways that are rare go on one for several, so that the number
of states stays bounded. Rare outcomes of one round are left out, and the others take their probability.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from shakedown.models.arrays import Floats
from shakedown.models.tcp import DUPLICATE_ACKS, MAX_RTO_S, RoundTrips, Tcp

_RARE = 1e-5  # outcomes of one round less probable than this are not followed
_RARE_OF_MANY = 2e-3  # the same where more than so many segments are missing
_MANY = 14
_TIMEOUTS = 14  # timeouts in a row that are followed
_STRAGGLERS = 0.25  # round trips by which RACK waits outside of a repair
_TIMES = 40  # times at which a state is reached that are kept apart
_COARSE = 0.4  # variations of the round trip are kept apart by such steps of their logarithm
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_SEVERAL = 0.1  # of a rare way; rarer ones from one state are collected
NO_THRESHOLD = 1_000
"""No threshold yet."""

Mode = Literal["open", "recovery", "loss"]
"""What the sender does: nothing is known to be lost; fast recovery; repair after a timeout."""


@dataclass(frozen=True, slots=True)
class Odds:
    """Probabilities of one flight: a segment lost, an acknowledgement lost, and a repair not believed.

    A retransmission that is acknowledged faster than any segment before counts as ambiguous, and tells
    nothing of others (``tcp_rack_advance``); round trips that vary do that now and then.
    """

    loss: float
    ack_loss: float
    ambiguous: float

    @property
    def unheard(self) -> float:
        """Probability that a segment is not acknowledged, for it or its acknowledgement was lost."""
        return self.loss + (1.0 - self.loss) * self.ack_loss

    @property
    def arrived_unheard(self) -> float:
        """Probability that a segment that was not acknowledged has arrived."""
        return (1.0 - self.loss) * self.ack_loss / self.unheard if self.unheard > 0.0 else 0.0


class State(NamedTuple):
    """What a sender has to do.

    Attributes:
        lost: segments known to be lost.
        unsent: segments never sent.
        window: segments that may be under way, in halves.
        threshold: up to which the window doubles.
        doubtful: segments under way of which nothing is known, and which did not arrive.
        arrived: the same, but they did.
        mode: what the sender does.
        expired: whether the timeout has just fired; then all that is under way counts as lost.
        first_arrived: whether the first of what is under way has arrived; None where nothing says so.
    """

    lost: int
    unsent: int
    window: int
    threshold: int = NO_THRESHOLD
    doubtful: int = 0
    arrived: int = 0
    mode: Mode = "open"
    expired: bool = False
    first_arrived: bool | None = None

    @property
    def missing(self) -> int:
        """Segments that have not arrived."""
        return self.lost + self.unsent + self.doubtful

    @property
    def unknown(self) -> int:
        """Segments under way of which nothing is known."""
        return self.doubtful + self.arrived

    def reduced(self) -> int:
        """The threshold after a loss."""
        return max(2, 7 * (self.window // 2) // 10)


def begun(segments: int, window: int) -> State:
    """A flight's beginning; a window of two is what a timeout has left, with its threshold."""
    return State(0, segments, 2 * window, 2 if window == 2 else NO_THRESHOLD)


class Wait(NamedTuple):
    """How long something takes: probes of one segment and of several, timeouts' lengths, round trips."""

    probes_alone: int = 0
    probes: int = 0
    timeouts: int = 0
    trips: float = 0.0


class Way(NamedTuple):
    """One way on: probability, how long it takes, and the state then.

    Attributes:
        weight: its probability.
        wait: how long it takes.
        after: the state, or None where everything has arrived.
        segments: of the last round, where everything has arrived.
        late: whether an acknowledgement comes of what was sent before the wait, and once: a long round trip
        to the sender.
    """

    weight: float
    wait: Wait
    after: State | None = None
    segments: int = 1
    late: bool = False


_NOW = Wait()


def binomial(count: int, share: float) -> Iterator[tuple[int, float]]:
    """How many of so many, each by itself, with probabilities."""
    if share <= 0.0 or count == 0:
        yield 0, 1.0
        return
    for number in range(count + 1):
        weight = math.comb(count, number) * share**number * (1.0 - share) ** (count - number)
        if weight >= _RARE:
            yield number, weight


@lru_cache(maxsize=32_768)
def ways_on(state: State, odds: Odds) -> tuple[Way, ...]:
    """Every way on from a state, the most probable first; alike ones are one, and what is rare is left
    out.
    """
    merged: dict[tuple[Wait, State | None, int, bool], float] = {}
    for way in _expired(state, odds) if state.expired else _round(state, odds):
        key = (way.wait, way.after, way.segments if way.after is None else 1, way.late)
        merged[key] = merged.get(key, 0.0) + way.weight
    whole = sum(merged.values())
    return tuple(
        Way(weight / whole, wait, after, segments, late)
        for (wait, after, segments, late), weight in sorted(merged.items(), key=lambda one: -one[1])
    )


def _round(state: State, odds: Odds) -> Iterator[Way]:
    """One round is sent."""
    room = max(1, state.window // 2 - state.unknown)
    again = min(state.lost, room)
    new = min(state.unsent, room - again)
    sent = again + new
    after = state._replace(lost=state.lost - again, unsent=state.unsent - new)
    if not sent:
        yield from _silence(1.0, after, odds)
        return
    silent = odds.unheard**sent
    rare = _RARE if state.missing <= _MANY else _RARE_OF_MANY
    for unknown, share in binomial(sent, odds.arrived_unheard):
        under_way = after._replace(doubtful=state.doubtful + sent - unknown, arrived=state.arrived + unknown)
        if not under_way.missing:
            yield Way(silent * share, _NOW, None, sent)
        elif silent * share >= rare:
            yield from _silence(silent * share, under_way, odds)
    for last in range(1, sent + 1):
        # The last that was heard, so many of those before it delivered.
        until = (1.0 - odds.unheard) * odds.unheard ** (sent - last)
        for before, share in binomial(last - 1, 1.0 - odds.loss):
            for unknown, part in binomial(sent - last, odds.arrived_unheard):
                weight = until * share * part
                if weight < rare:
                    continue
                gone = last - 1 - before + state.doubtful
                later = after._replace(
                    lost=after.lost + gone, doubtful=sent - last - unknown, arrived=unknown
                )
                if not later.missing:
                    yield Way(weight, _NOW, None, sent)
                    continue
                told = before + 1 + state.arrived
                waits = gone and not state.doubtful and state.mode == "open" and told < DUPLICATE_ACKS
                wait = Wait(trips=1.0 + (_STRAGGLERS if waits else 0.0))
                late = state.arrived > 0 and state.mode == "open"
                doubt = odds.ambiguous if gone and state.mode != "open" else 0.0
                if doubt:
                    unmarked = later._replace(lost=after.lost, doubtful=later.doubtful + gone)
                    grown = _grown(state, unmarked, told, 0, full=sent == room)
                    yield Way(weight * doubt, wait, grown, late=late)
                grown = _grown(state, later, told, gone, full=sent == room)
                yield Way(weight * (1.0 - doubt), wait, grown, late=late)


def _grown(before: State, later: State, told: int, gone: int, *, full: bool) -> State:
    """The state after a round that told of so many arrivals and so many losses, with its window."""
    window, threshold, mode = before.window, before.threshold, before.mode
    if gone and mode != "recovery":
        threshold, mode = before.reduced(), "recovery"
    if mode == "open":
        if full:
            window = min(window + 2 * told, 2 * threshold) if window < 2 * threshold else window + 1
    elif not later.lost and not later.unknown:
        # All is repaired.
        window = 2 * threshold if mode == "recovery" else min(window + 2 * told, 2 * threshold)
        mode = "open"
    elif mode == "recovery":
        # Proportional rate reduction: as much as was delivered, and one more for each acknowledgement that
        # advances while nothing more is found lost.
        advances = 0 if gone else told
        window = 2 * max(1, min(threshold, told + advances + later.unknown))
    else:
        window = min(window + 2 * told, 2 * threshold)
    return later._replace(window=window, threshold=threshold, mode=mode)


def _silence(weight: float, state: State, odds: Odds) -> Iterator[Way]:
    """Nothing is heard: the probe where no loss is known, then the timeout."""
    fires = state._replace(expired=True)
    if state.mode != "open":
        yield Way(weight, Wait(timeouts=1), fires)
        return
    alone = state.unknown == 1
    wait = Wait(probes_alone=1) if alone else Wait(probes=1)
    timeout = wait._replace(timeouts=1)
    arrives, told = 1.0 - odds.loss, 1.0 - odds.ack_loss
    for share, lost, there in _probes(state):
        yield Way(weight * share * odds.loss, timeout, lost._replace(expired=True))
        if not there.missing:
            yield Way(weight * share * arrives, wait)
            continue
        later = there._replace(lost=there.doubtful, doubtful=0, arrived=0)
        grown = _grown(state, later, there.arrived, later.lost, full=False)
        late = state.arrived > 0 and (state.unsent > 0 or later.lost > 0)
        yield Way(weight * share * arrives * told, wait._replace(trips=1.0), grown, late=late)
        yield Way(weight * share * arrives * (1.0 - told), timeout, there._replace(expired=True))


def _probes(state: State) -> Iterator[tuple[float, State, State]]:
    """The probe, a new segment or the last one again: probability, the state if it is lost, and if it
    arrives.
    """
    if state.unsent:
        left = state.unsent - 1
        lost = state._replace(unsent=left, doubtful=state.doubtful + 1)
        yield 1.0, lost, state._replace(unsent=left, arrived=state.arrived + 1)
        return
    if state.doubtful:
        fills = state._replace(doubtful=state.doubtful - 1, arrived=state.arrived + 1)
        yield state.doubtful / state.unknown, state, fills
    if state.arrived:
        yield state.arrived / state.unknown, state, state


def _expired(state: State, odds: Odds) -> Iterator[Way]:
    """The timeout has fired: it repeats the first segment in doubt until an acknowledgement of it arrives."""
    left = state.lost + state.doubtful
    threshold = state.threshold if state.mode == "loss" else state.reduced()
    first_arrived = state.arrived / (left + state.arrived)
    if state.first_arrived is not None:
        first_arrived = float(state.first_arrived)
    for here, share in ((False, 1.0 - first_arrived), (True, first_arrived)):
        if not share:
            continue
        for weight, waited, rest in _answers(left, odds, here=here, unsent=state.unsent):
            wait = Wait(timeouts=waited)
            if not rest + state.unsent:
                yield Way(share * weight, wait)
                continue
            told = state.arrived + (not here)
            later = State(
                rest,
                state.unsent,
                2 * min(threshold, 1 + max(1, told)),
                threshold,
                mode="loss" if rest else "open",
            )
            late = state.arrived > here and rest > 0
            yield Way(share * weight, wait._replace(trips=1.0), later, late=late)


def _answers(left: int, odds: Odds, *, here: bool, unsent: int) -> Iterator[tuple[float, int, int]]:
    """Timeouts that repeat the first segment in doubt until its acknowledgement arrives, each twice as long.

    Args:
        left: segments that have not arrived.
        odds: of the flight.
        here: whether the first segment in doubt is one that arrived.
        unsent: segments that were never sent, and wait for the acknowledgement.

    Yields:
        Probability, timeouts waited after the first, and what is still missing then. Where nothing is
        missing, the segment's arrival ends it, acknowledged or not.
    """
    loss, known = odds.loss, 1.0 - odds.ack_loss
    ends = left == 1 and not here and not unsent
    weight, there = 1.0, float(here)  # of which in so much the segment has arrived before
    waited, step = 0, 2
    for _ in range(_TIMEOUTS):
        comes = weight * (1.0 - loss)
        heard = 0.0 if ends else comes * known
        if ends:
            yield comes, waited, 0
        else:
            yield heard, waited, left if here else left - 1
        arrived_before = weight * there
        weight_next = weight - (comes if ends else heard)
        arrived_now = 0.0 if ends else arrived_before + (weight - arrived_before) * (1.0 - loss) - heard
        weight = weight_next
        if weight < _RARE:
            return
        there = arrived_now / weight
        waited += step
        step *= 2


Estimator = tuple[float, float]
"""Smoothed round trip, and the variation that the timeout adds, in seconds."""


def estimator(round_trips: RoundTrips) -> Estimator:
    """What an estimator says, as far as it matters here."""
    return round_trips.srtt_s, round_trips.rttvar_s


@dataclass(frozen=True, slots=True)
class Crossed:
    """When everything has arrived: probabilities and seconds.

    Attributes:
        weights: probabilities; they sum to what was begun with, less `dropped`.
        end_s: when.
        timed_out: probability that a timeout shrank the window.
        dropped: probability that was collected last and went on with no way: less than one rare way.
    """

    weights: Floats
    end_s: Floats
    timed_out: float
    dropped: float


class Crossing:
    """Follows states forward in time until everything has arrived.

    Args:
        odds: of the flight.
        tcp: the hosts'.
        trip_s: a round trip, a segment's serialisation included.
        segment_s: a segment's serialisation.
        grain_s: times closer together are one.
        slight: ways less probable than this, of the whole flight, are rare.
    """

    def __init__(
        self,
        odds: Odds,
        tcp: Tcp,
        trip_s: float,
        segment_s: float,
        grain_s: float,
        slight: float,
    ) -> None:
        self.odds, self.tcp, self.trip_s, self.segment_s, self.grain_s = odds, tcp, trip_s, segment_s, grain_s
        self.slight = slight
        self.reached: dict[tuple[State, Estimator], list[tuple[Floats, Floats]]] = {}
        self.ends: list[tuple[Floats, Floats]] = []
        self.timed_out = self.begun = self.rare = self.share = 0.0

    def add(self, weight: float, at_s: float, state: State, measured: Estimator) -> None:
        """A state that is reached at ``at_s``; where nothing is missing, that is the end."""
        self.begun += weight
        if not state.missing:
            self.ends.append((np.array([weight]), np.array([at_s + self.segment_s])))
            return
        at_s = round(at_s / self.grain_s) * self.grain_s
        self.reached.setdefault((state, measured), []).append((np.array([weight]), np.array([at_s])))

    def run(self) -> Crossed:
        """Follows them all."""
        while self.reached:
            reached, self.reached = self.reached, {}
            for (state, measured), parts in reached.items():
                self.follow(state, measured, parts)
        weights = np.concatenate([weights for weights, _ in self.ends])
        end_s = np.concatenate([end_s for _, end_s in self.ends])
        return Crossed(weights, end_s, self.timed_out, self.rare)

    def follow(self, state: State, measured: Estimator, parts: list[tuple[Floats, Floats]]) -> None:
        """One state, at all times when it is reached."""
        weights, at_s = self.together(parts)
        whole = float(weights.sum())
        if state.expired:
            self.timed_out += whole
        for mass, way in self.followed(whole, ways_on(state, self.odds)):
            wait_s, scaled = self.lasts_s(way.wait, measured), weights * (mass / whole)
            if way.after is None:
                self.ends.append((scaled, at_s + (wait_s + way.segments * self.segment_s)))
                continue
            later = self.sampled(measured, wait_s) if way.late else measured
            self.reached.setdefault((way.after, later), []).append((scaled, at_s + wait_s))

    def followed(self, whole: float, ways: tuple[Way, ...]) -> Iterator[tuple[float, Way]]:
        """Ways on from a state of so much probability: those that are not rare, and one for all others.

        Which one, shares say that fill the range between 0 and 1 evenly, the multiples of the golden ratio,
        so that each goes on as often as it is probable. What is rare all together goes on with the next that
        is not.
        """
        least, count = self.slight * self.begun, 0
        for way in ways:
            if way.weight * whole < least:
                break
            count += 1
            yield way.weight * whole, way
        rest = sum(way.weight for way in ways[count:])
        mass = rest * whole
        if mass < _SEVERAL * least:
            self.rare += mass
            return
        mass, self.rare = mass + self.rare, 0.0
        self.share = (self.share + _GOLDEN) % 1.0
        until = self.share * rest
        for way in ways[count:]:
            until -= way.weight
            if until < 0.0:
                break
        yield mass, way

    def together(self, parts: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
        """Times as one list, close ones as one at their mean."""
        weights = np.concatenate([weights for weights, _ in parts])
        at_s = np.concatenate([at_s for _, at_s in parts])
        if len(weights) == 1:
            return weights, at_s
        if len(weights) <= _TIMES:
            cells, keys = np.unique(np.rint(at_s / self.grain_s), return_inverse=True)
            if len(cells) == len(weights):
                return weights, at_s
        else:
            # Finer near the least time: later ones are rare.
            after = (at_s - at_s.min()) / self.trip_s
            keys = np.rint(_TIMES * np.log1p(after)).astype(np.int64)
        mass: Floats = np.bincount(keys, weights).astype(np.float64)
        moment: Floats = np.bincount(keys, weights * at_s).astype(np.float64)
        filled = mass > 0.0
        return mass[filled], moment[filled] / mass[filled]

    def lasts_s(self, wait: Wait, measured: Estimator) -> float:
        """How long a wait is."""
        srtt_s, rttvar_s = measured
        rto_s = min(srtt_s + rttvar_s, MAX_RTO_S)
        timer_s = self.tcp.timer_s
        total_s = wait.trips * self.trip_s
        if wait.timeouts:
            total_s += wait.timeouts * timer_s(rto_s)
        if wait.probes:
            total_s += timer_s(min(2.0 * srtt_s + 0.002, rto_s))
        if wait.probes_alone:
            total_s += timer_s(min(2.0 * srtt_s + 0.2, rto_s))
        return total_s

    def sampled(self, measured: Estimator, waited_s: float) -> Estimator:
        """The estimator after a round trip so long, beyond the usual one; coarse, so that few are kept
        apart.
        """
        srtt_s, rttvar_s = measured
        error_s = max(self.trip_s, waited_s) + self.trip_s - srtt_s
        variation_s = 0.75 * rttvar_s + error_s
        if variation_s <= 1.1 * rttvar_s:
            return measured
        grown = math.exp(round(math.log(variation_s / rttvar_s) / _COARSE) * _COARSE)
        return srtt_s, rttvar_s * grown
