"""How Linux' TCP gets segments across that were lost: in rounds of retransmissions, and by timeouts.

A round sends again what is known to be lost, as far as the window allows, in order. What an acknowledgement
tells depends on the last one that arrives: it names all that has arrived until then, so that what was sent
before it and is not named is lost (RACK, RFC 8985), and what was sent after it stays in doubt: some of it has
arrived, some not. The next round's acknowledgements clear that up. Where none arrives, or nothing is left to
send, the timeout does: it doubles, it repeats the first segment that is not known to have arrived, and by
chance that one had.

States are counts, so that their number is small: every way to lose a round is followed, weighted, and ways
alike are one. Ways rarer than a share of those at hand are dropped, and the rest scaled to sum to 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

_SLIGHT = 1e-6  # ways less probable than this are left out
_RARE = 1e-5  # outcomes of one round less probable than this are left out
_RARE_OF_MANY = 1e-3  # the same where more than so many segments are to be sent, whose outcomes are many
_MANY = 8  # with more to send, what is in doubt counts as lost: the next round clears it up in any case
_TIMEOUTS = 14  # timeouts in a row that are followed
_WINDOW = 7  # the threshold after a loss in the first window: CUBIC's 0.7 of ten segments
_SMALL_WINDOW = (
    3  # the same after a loss in a window of a few segments: a threshold of two, and what is added
)

Window = Literal["reduced", "growing", "opening", "small"]
"""How the window grows.

Reduced: a round is as long as what was delivered since the last, and longer by one for each acknowledgement
that advances (proportional rate reduction, RFC 6937). Growing: after a timeout, in slow start up to the
threshold. Opening: in slow start without a threshold, until something is lost. Small: after a loss in a small
window.
"""

Ways = dict[tuple[int, int, int], float]
"""Probabilities by (timeouts' lengths, round trips, segments of the last round) until all has arrived."""


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


def _add(ways: Ways, weight: float, later: Ways, timeouts: int, trips: int) -> None:
    for (u, v, w), share in later.items():
        total = weight * share
        if total >= _SLIGHT:
            key = (u + timeouts, v + trips, w)
            ways[key] = ways.get(key, 0.0) + total


def whole(ways: Ways) -> Ways:
    """The same, scaled to sum to 1: what was left out is rare."""
    total = sum(ways.values())
    return {key: weight / total for key, weight in ways.items()}


def binomial(count: int, share: float) -> Iterator[tuple[int, float]]:
    """How many of so many, each by itself, with probabilities; rare numbers are left out."""
    if share <= 0.0 or count == 0:
        yield 0, 1.0
        return
    for number in range(count + 1):
        weight = math.comb(count, number) * share**number * (1.0 - share) ** (count - number)
        if weight >= _RARE:
            yield number, weight


@lru_cache(maxsize=32_768)
def repaired(
    lost: int,
    released: int,
    doubtful: int,
    arrived: int,
    odds: Odds,
    window: Window,
    heard: bool = False,
) -> Ways:
    """Ways to get segments across, from when the next round is sent.

    Args:
        lost: segments known to be lost, or not sent yet.
        released: how many of them the window lets go now.
        doubtful: segments under way from before of which nothing is known, and which did not arrive.
        arrived: the same, but they did.
        odds: of the flight.
        window: how it grows.
        heard: whether the first round is known to be heard of.
    """
    sent = min(lost, released)
    small = window in ("opening", "small")
    if not sent:
        return timed_out(lost + doubtful, arrived, odds, 1, small)
    ways = Ways()
    waiting = lost - sent
    rare = _RARE if lost + doubtful <= _MANY else _RARE_OF_MANY
    if not heard:
        # None heard: those that arrived are in doubt, and the timeout repeats the first.
        for weight, left, unknown in unanswered(sent, odds):
            missing = waiting + doubtful + left
            if not missing:
                ways[(0, 0, sent)] = ways.get((0, 0, sent), 0.0) + weight
            elif weight >= rare:
                _add(ways, weight, timed_out(missing, arrived + unknown, odds, 1, small), 0, 0)
    for last in range(1, sent + 1):
        # The last that was heard, so many of those before it delivered.
        until = (1.0 - odds.unheard) * odds.unheard ** (sent - last)
        for before, share in binomial(last - 1, 1.0 - odds.loss):
            for unknown, part in binomial(sent - last, odds.arrived_unheard):
                weight = until * share * part
                again = last - 1 - before + doubtful
                under_way = sent - last - unknown
                if not waiting + again + under_way:
                    ways[(0, 0, sent)] = ways.get((0, 0, sent), 0.0) + weight
                    continue
                if weight < rare:
                    continue
                told = before + 1 + arrived
                if window == "reduced":
                    free = told + _advances(before, last - 1 - before, odds)
                else:
                    free = sent + doubtful + arrived + told
                lossless = window == "opening" and not again and not under_way
                grown: Window = "small" if window == "opening" and not lossless else window
                if not lossless:
                    free = min(free, max(_SMALL_WINDOW if small else _WINDOW, min(sent, _WINDOW)))
                if window != "reduced":
                    free -= sent - last
                doubt = odds.ambiguous if again else 0.0
                if doubt:
                    unmarked = repaired(waiting, free, under_way + again, unknown, odds, grown)
                    _add(ways, weight * doubt, unmarked, 0, 1)
                if waiting + again > _MANY:
                    again, under_way, unknown = again + under_way, 0, 0
                later = repaired(waiting + again, free, under_way, unknown, odds, grown)
                _add(ways, weight * (1.0 - doubt), later, 0, 1)
    return whole(ways)


def unanswered(sent: int, odds: Odds) -> list[tuple[float, int, int]]:
    """Ways in which nothing is heard of a round: probability, segments that did not arrive, and that did."""
    silent = odds.unheard**sent
    return [
        (silent * share, sent - unknown, unknown) for unknown, share in binomial(sent, odds.arrived_unheard)
    ]


def _advances(before: int, again: int, odds: Odds) -> int:
    """Acknowledgements that advance: of those that arrived in order, the ones that are heard."""
    in_order = before if not again else before / (again + 1)
    return round((0 if again else 1) + in_order * (1.0 - odds.ack_loss))


@lru_cache(maxsize=32_768)
def timed_out(left: int, arrived: int, odds: Odds, timeouts: int = 0, small: bool = False) -> Ways:
    """Ways to get ``left`` segments across when a timeout has just fired.

    Args:
        left: segments that did not arrive.
        arrived: segments that did, without the sender's knowledge.
        odds: of the flight.
        timeouts: timeouts' lengths that count so far: 1 where the wait for this one does.
        small: whether the window was small already.
    """
    ways = Ways()
    first_arrived = arrived / (left + arrived)
    for here, share in ((False, 1.0 - first_arrived), (True, first_arrived)):
        for weight, waited, rest, released in answers(left, arrived, odds, here=here):
            if not rest:
                key = (timeouts + waited, 0, 1)
                ways[key] = ways.get(key, 0.0) + share * weight
            elif share * weight >= _RARE:
                _add(
                    ways,
                    share * weight,
                    repaired(rest, released, 0, 0, odds, "small" if small else "growing"),
                    timeouts + waited,
                    1,
                )
    return whole(ways)


def answers(
    left: int, arrived: int, odds: Odds, *, here: bool, unsent: int = 0
) -> Iterator[tuple[float, int, int, int]]:
    """Timeouts that repeat the first segment in doubt until its acknowledgement arrives, each twice as long.

    Args:
        left, arrived: as for ``timed_out``.
        odds: of the flight.
        here: whether the first segment in doubt is one of those that arrived.
        unsent: segments that were never sent, and wait for the acknowledgement.

    Yields:
        Probability, timeouts waited after the first, what is still missing then, and how much of it the
        window lets go. Where nothing is missing, the segment's arrival ends it, acknowledged or not.
    """
    loss, known = odds.loss, 1.0 - odds.ack_loss
    released = 2 + arrived
    ends = left == 1 and not here and not unsent
    weight, there = 1.0, float(here)  # of which in so much the segment has arrived before
    waited, step = 0, 2
    for _ in range(_TIMEOUTS):
        comes = weight * (1.0 - loss)
        if ends:
            yield comes * (1.0 - there), waited, 0, 0
        else:
            if not here:
                yield comes * (1.0 - there) * known, waited, left - 1, released
            if there:
                yield comes * there * known, waited, left if here else left - 1, max(2, released - 1)
        arrives = 0.0 if ends else comes * (1.0 - there) * (1.0 - known)
        unheard = weight * there * (1.0 - (1.0 - loss) * known)
        weight, before = arrives + unheard + weight * (1.0 - there) * loss, arrives + unheard
        if weight < _SLIGHT:
            return
        there = before / weight
        waited += step
        step *= 2
