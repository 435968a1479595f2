"""How Linux' TCP gets a flight across from a window of a segment or two, as repeated SYNs leave it.

So few segments are under way that most losses are noticed by a timer: by the tail loss probe, which sends a new
segment where there is one, then by the timeout. Any loss leaves a threshold of two segments, above which the
window grows by one every other round (CUBIC below its TCP-friendly rate).

A state is what is left to send and what is under way; every way to lose a round is followed, weighted, and ways
alike are one, as in ``tcp_repair``. Rounds follow one another by a round trip; the quarter of the least round
trip by which RACK waits for stragglers counts as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from shakedown.models.tcp_repair import Odds, answers, binomial

_RARE = 2e-5  # outcomes of one round less probable than this are left out
_SLIGHT = 1e-6  # ways less probable than this are left out
_DUPLICATES = 3
_NO_THRESHOLD = 1_000
_STRAGGLERS = 0.25  # round trips by which RACK waits

Key = tuple[int, int, float, int]
"""Timeouts' lengths, probes of a single segment, round trips, segments of the last round."""

Ways = dict[Key, float]


@dataclass(frozen=True, slots=True)
class State:
    """What a sender has to do.

    Attributes:
        lost: segments known to be lost.
        unsent: segments never sent.
        window: segments that may be under way, in halves.
        threshold: up to which it doubles.
        doubtful: segments under way of which nothing is known, and which did not arrive.
        arrived: the same, but they did.
        repairing: whether a loss was noticed of which not all is acknowledged: then no probe is sent, and RACK does
            not wait.
    """

    lost: int
    unsent: int
    window: int
    threshold: int = _NO_THRESHOLD
    doubtful: int = 0
    arrived: int = 0
    repairing: bool = False

    @property
    def missing(self) -> int:
        """Segments that have not arrived."""
        return self.lost + self.unsent + self.doubtful


def begun(segments: int, window: int) -> State:
    """A flight's beginning; a window of more than one is what a timeout has left, with its threshold."""
    return State(0, segments, 2 * window, _NO_THRESHOLD if window == 1 else 2)


def _add(ways: Ways, weight: float, later: Ways, key: Key) -> None:
    for (timeouts, probes, trips, segments), share in later.items():
        total = weight * share
        if total >= _SLIGHT:
            found = (timeouts + key[0], probes + key[1], trips + key[2], segments)
            ways[found] = ways.get(found, 0.0) + total


def _put(ways: Ways, weight: float, key: Key) -> None:
    ways[key] = ways.get(key, 0.0) + weight


def _whole(ways: Ways) -> Ways:
    total = sum(ways.values())
    return {key: weight / total for key, weight in ways.items()}


@lru_cache(maxsize=65_536)
def crossed(state: State, odds: Odds) -> Ways:
    """Ways to get everything across, from when the next round is sent."""
    room = max(1, state.window // 2 - state.doubtful - state.arrived)
    again = min(state.lost, room)
    new = min(state.unsent, room - again)
    sent = again + new
    after = replace(state, lost=state.lost - again, unsent=state.unsent - new)
    ways: Ways = {}
    if not sent:
        _silence(ways, 1.0, after, odds, 0)
        return _whole(ways)
    silent = odds.unheard**sent
    for unknown, share in binomial(sent, odds.arrived_unheard):
        under_way = replace(
            after, doubtful=state.doubtful + sent - unknown, arrived=state.arrived + unknown
        )
        if not under_way.missing:
            _put(ways, silent * share, (0, 0, 0.0, sent))
        elif silent * share >= _RARE:
            _silence(ways, silent * share, under_way, odds, sent)
    for last in range(1, sent + 1):
        until = (1.0 - odds.unheard) * odds.unheard ** (sent - last)
        for before, share in binomial(last - 1, 1.0 - odds.loss):
            for unknown, part in binomial(sent - last, odds.arrived_unheard):
                weight = until * share * part
                told = before + 1 + state.arrived
                gone = last - 1 - before + state.doubtful
                later = replace(
                    after,
                    lost=after.lost + gone,
                    doubtful=sent - last - unknown,
                    arrived=unknown,
                )
                if not later.missing:
                    _put(ways, weight, (0, 0, 0.0, sent))
                elif weight >= _RARE:
                    waits = 0.0
                    if gone and not state.doubtful and not state.repairing and told < _DUPLICATES:
                        waits = _STRAGGLERS
                    _add(
                        ways,
                        weight,
                        crossed(_grown(state, later, told, gone, full=sent == room), odds),
                        (0, 0, 1.0 + waits, 0),
                    )
    return _whole(ways)


def _grown(before: State, later: State, told: int, gone: int, *, full: bool) -> State:
    """The state after a round that told of so many arrivals and so many losses, with its window."""
    threshold, window = before.threshold, before.window
    if gone and not before.repairing:
        threshold = max(2, 7 * (window // 2) // 10)
    if later.lost:
        # Proportional rate reduction: as much as was delivered, and one more where all is known.
        sends = min(threshold, told + (0 if gone else 1))
        window = 2 * max(1, sends + later.doubtful + later.arrived)
        return replace(later, window=min(window, 2 * threshold), threshold=threshold, repairing=True)
    if before.repairing:
        # Until what was repaired is acknowledged, nothing is probed.
        unknown = later.doubtful + later.arrived > 0
        return replace(later, window=2 * threshold, threshold=threshold, repairing=unknown)
    if full:
        window = window + 2 * told if window < 2 * threshold else window + 1
    return replace(later, window=window, threshold=threshold)


def _silence(ways: Ways, weight: float, state: State, odds: Odds, sent: int) -> None:
    """Nothing is heard: the probe where no loss is known, then the timeout."""
    if state.repairing:
        _timeout(ways, weight, state, odds, (1, 0, 0.0, 0))
        return
    out = state.doubtful + state.arrived
    wait: Key = (0, 1, 0.0, 0) if out == 1 else (0, 0, 2.0, 0)
    for share, probed, target_arrives in _probes(state):
        # What the probe carries arrives, and is acknowledged.
        heard = (1.0 - odds.loss) * (1.0 - odds.ack_loss)
        if not target_arrives.missing:
            _put(ways, weight * share * (1.0 - odds.loss), (wait[0], wait[1], wait[2], 1))
        else:
            told = target_arrives.arrived
            later = replace(target_arrives, lost=target_arrives.doubtful, doubtful=0, arrived=0)
            grown = _grown(state, later, told, later.lost, full=False)
            _add(ways, weight * share * heard, crossed(grown, odds), (wait[0], wait[1], wait[2] + 1.0, 0))
            unheard = weight * share * (1.0 - odds.loss) * odds.ack_loss
            _timeout(ways, unheard, target_arrives, odds, (wait[0] + 1, wait[1], wait[2], 0))
        _timeout(ways, weight * share * odds.loss, probed, odds, (wait[0] + 1, wait[1], wait[2], 0))


def _probes(state: State) -> Iterator[tuple[float, State, State]]:
    """The probe: probability, the state if it is lost, and if it arrives."""
    if state.unsent:
        left = state.unsent - 1
        yield (
            1.0,
            replace(state, unsent=left, doubtful=state.doubtful + 1),
            replace(state, unsent=left, arrived=state.arrived + 1),
        )
        return
    out = state.doubtful + state.arrived
    if state.doubtful:
        fills = replace(state, doubtful=state.doubtful - 1, arrived=state.arrived + 1)
        yield state.doubtful / out, state, fills
    if state.arrived:
        yield state.arrived / out, state, state


def _timeout(ways: Ways, weight: float, state: State, odds: Odds, waited: Key) -> None:
    """The timeout repeats the first segment that is not acknowledged, until that is."""
    if weight < _RARE:
        return
    left = state.lost + state.doubtful
    if not left + state.arrived:
        raise ValueError("no timeout without a segment under way")
    threshold = max(2, 7 * (state.window // 2) // 10) if not state.repairing else state.threshold
    first_arrived = state.arrived / (left + state.arrived)
    for here, share in ((False, 1.0 - first_arrived), (True, first_arrived)):
        if not share:
            continue
        for part, more, rest, _ in answers(left, state.arrived, odds, here=here, unsent=state.unsent):
            key = (waited[0] + more, waited[1], waited[2], 1)
            if not rest + state.unsent:
                _put(ways, weight * share * part, key)
                continue
            later = State(rest, state.unsent, 4, threshold, repairing=rest > 0)
            _add(ways, weight * share * part, crossed(later, odds), (key[0], key[1], key[2] + 1.0, 0))
