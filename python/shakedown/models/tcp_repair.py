"""How Linux' TCP gets segments across that were lost or never sent: in rounds, by probes and by timeouts.

A round sends what is known to be lost, then what is new, as far as the window allows. What an acknowledgement
tells depends on the last one that arrives: it names all that has arrived until then, so that what was sent
before it and is not named is lost (RACK, RFC 8985), and what was sent after it stays in doubt: some of it has
arrived, some not. The next round's acknowledgements clear that up. Where none arrives, the tail loss probe
does, unless something is being repaired already, and then the timeout: it doubles, it repeats the first
segment that is not known to have arrived, and by chance that one had.

States are counts, so that their number is small. What follows a state is said in two steps, the outcomes of
its round and the ways on after one of them, so that only what is asked for is worked out. Rare outcomes of
one round are left out, and the others take their probability. ``tcp_crossing`` follows states in time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from shakedown.models.tcp import DUPLICATE_ACKS

_RARE = 1e-5  # outcomes of one round less probable than this are not followed
_RARE_OF_MANY = 2e-3  # the same where more than so many segments are missing
_MANY = 14
_RARE_CHAIN = 1e-4  # timeouts in a row less probable than this are not followed
_TIMEOUTS = 14  # timeouts in a row that are followed
_STRAGGLERS = 0.25  # round trips by which RACK waits outside of a repair
NO_THRESHOLD = 1_000
"""No threshold yet."""

Mode = Literal["open", "recovery", "loss"]
"""What the sender does: nothing is known to be lost; fast recovery; repair after a timeout."""


@dataclass(frozen=True, slots=True)
class Odds:
    """Probabilities of one flight: a segment lost, an acknowledgement lost, and a repair not believed.

    A retransmission that is acknowledged faster than any segment before counts as ambiguous, and tells
    nothing of others (``tcp_rack_advance``); round trips that vary do that now and then. Where the least
    round trip is that of a segment within a burst, behind others, the first of a round does it always.
    Of the flight's ``segments``, any may be missing.
    """

    loss: float
    ack_loss: float
    ambiguous: float
    first_ambiguous: bool = False
    segments: int = 1

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
        first_arrived: how many at the beginning of what is under way have arrived, 2 for more; None where
            nothing says so.
        resent: whether what is under way was sent before: then it says nothing of round trips.
        ahead: segments of the next round that are sent for the first time, but before the repair began, which
            is not over without them.
    """

    lost: int
    unsent: int
    window: int
    threshold: int = NO_THRESHOLD
    doubtful: int = 0
    arrived: int = 0
    mode: Mode = "open"
    expired: bool = False
    first_arrived: int | None = None
    resent: bool = False
    ahead: int = 0

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
    timeouts: int = 0  # 0 or 1
    trips: float = 0.0


class Answered(NamedTuple):
    """One number of timeouts until an answer comes.

    Attributes:
        weight: its probability.
        more: timeouts after the first.
        echoed: share of their time that the sender takes for a round trip.
    """

    weight: float
    more: int = 0
    echoed: float = 0.0


class Way(NamedTuple):
    """One way on: probability, how long it takes, and the state then.

    Attributes:
        weight: its probability.
        wait: how long it takes.
        after: the state, or None where everything has arrived.
        segments: of the last round, where everything has arrived.
        late: whether an acknowledgement comes of what was sent before the wait, and once, or one that echoes
            its clock: a long round trip to the sender.
        samples: acknowledgements that came.
        chain: further timeouts that it may take, with probabilities.
        advanced: whether something is acknowledged that was sent after all that had been so before.
    """

    weight: float
    wait: Wait
    after: State | None = None
    segments: int = 1
    late: bool = False
    samples: int = 0
    chain: tuple[Answered, ...] = (Answered(1.0),)
    advanced: bool = False

    @property
    def is_silent(self) -> bool:
        """Whether the timeout fires."""
        return self.after is not None and self.after.expired


_NOW = Wait()


@lru_cache(maxsize=4096)
def binomial(count: int, share: float) -> tuple[tuple[int, float], ...]:
    """How many of so many, each by itself, with probabilities."""
    if share <= 0.0 or count == 0:
        return ((0, 1.0),)
    weights = [math.comb(count, k) * share**k * (1.0 - share) ** (count - k) for k in range(count + 1)]
    return tuple((number, weight) for number, weight in enumerate(weights) if weight >= _RARE)


class Outcome(NamedTuple):
    """What becomes of one round.

    Attributes:
        weight: its probability.
        last: the last segment of the round that was heard of, from 1; 0 where none was.
        before: how many of those before it arrived.
        unknown: how many of those after it arrived.
    """

    weight: float
    last: int
    before: int
    unknown: int

    @property
    def is_silent(self) -> bool:
        """Whether nothing is heard."""
        return not self.last


@lru_cache(maxsize=1024)
def _outcomes(sent: int, odds: Odds) -> tuple[Outcome, ...]:
    """What may become of a round of so many segments, the most probable first; what is rare is left out."""
    rare = _RARE if sent <= _MANY else _RARE_OF_MANY
    found = [
        Outcome(odds.unheard**sent * share, 0, 0, unknown)
        for unknown, share in binomial(sent, odds.arrived_unheard)
    ]
    for last in range(1, sent + 1):
        # The last that was heard, so many of those before it delivered.
        until = (1.0 - odds.unheard) * odds.unheard ** (sent - last)
        for before, share in binomial(last - 1, 1.0 - odds.loss):
            for unknown, part in binomial(sent - last, odds.arrived_unheard):
                found.append(Outcome(until * share * part, last, before, unknown))
    found = sorted((one for one in found if one.weight >= rare), key=lambda one: -one.weight)
    whole = sum(one.weight for one in found)
    return tuple(one._replace(weight=one.weight / whole) for one in found)


def _sends(state: State) -> tuple[int, int, int]:
    """What a round sends: again, new, and how much it might."""
    room = max(1, state.window // 2 - state.unknown)
    again = min(state.lost, room)
    return again, min(state.unsent, room - again), room


def outcomes(state: State, odds: Odds) -> tuple[Outcome, ...]:
    """What may become of a state, before `ways_on` says what follows."""
    again, new, _ = _sends(state)
    return (_ONLY,) if state.expired or not again + new else _outcomes(again + new, odds)


_ONLY = Outcome(1.0, 0, 0, 0)


@lru_cache(maxsize=65_536)
def ways_on(state: State, odds: Odds, outcome: Outcome) -> tuple[Way, ...]:
    """Every way on from a state after an outcome of its round; probabilities sum to 1."""
    found = _expired(state, odds) if state.expired else _round(state, odds, outcome)
    return tuple(sorted(found, key=lambda way: -way.weight))


def _round(state: State, odds: Odds, outcome: Outcome) -> Iterator[Way]:
    """One round is sent."""
    _, last, before, unknown = outcome
    again, new, room = _sends(state)
    sent = again + new
    if not sent:
        yield from _silence(1.0, state, odds)
        return
    left = state.lost - again
    after = State(
        left,
        state.unsent - new,
        state.window,
        state.threshold,
        state.doubtful,
        state.arrived,
        state.mode,
        first_arrived=state.first_arrived,
        resent=not new,
    )
    if not last:
        under_way = after._replace(doubtful=state.doubtful + sent - unknown, arrived=state.arrived + unknown)
        if under_way.missing:
            yield from _silence(1.0, under_way, odds)
        else:
            yield Way(1.0, _NOW, None, sent)
        return
    holes = last - 1 - before
    gone = holes + state.doubtful
    doubtful = sent - last - unknown
    later = State(
        left + gone,
        after.unsent,
        state.window,
        state.threshold,
        doubtful,
        unknown,
        state.mode,
        first_arrived=state.first_arrived,
        resent=not new,
    )
    if not later.missing:
        yield Way(1.0, _NOW, None, sent)
        return
    told = before + 1 + state.arrived
    full = sent == room
    late = state.arrived > 0 and not state.resent
    doubt = 0.0
    if gone and state.mode != "open":
        doubt = 1.0 if odds.first_ambiguous and last == 1 and again else odds.ambiguous
    if doubt:
        unmarked = later._replace(lost=after.lost, doubtful=later.doubtful + gone)
        grown = _grown(state, unmarked, told, 0, told, full=full)
        yield Way(doubt, Wait(trips=1.0), grown, late=late, samples=told)
        if doubt == 1.0:
            return
    # Where all that was to be repaired is acknowledged before the round's first hole, the repair is over, and
    # what is found lost then begins another.
    over = 0.0
    needed = again + min(state.ahead, new)
    ends = not after.lost and not state.doubtful and (last > needed or (last == needed and not holes))
    if state.mode != "open" and new and ends:
        over = math.comb(last - 1 - needed, holes) / math.comb(last - 1, holes) if holes else 1.0
    if over:
        opened = state._replace(
            mode="open", window=2 * state.threshold if state.mode == "recovery" else state.window + 2 * again
        )
        acked = needed + (before - needed) // (holes + 1) if holes else before + 1
        grown = _grown(opened, later._replace(mode="open"), told, gone, acked, full=full)
        waits = gone and before + 1 - acked < DUPLICATE_ACKS and grown.unsent <= grown.ahead
        wait = Wait(trips=1.0 + (_STRAGGLERS if waits else 0.0))
        yield Way((1.0 - doubt) * over, wait, grown, late=late, samples=told, advanced=True)
    if over < 1.0:
        advances = _advances(state, after, again, last, before, odds)
        sacked = before + 1 - before // (holes + 1)
        grown = _grown(state, later, told, gone, advances, full=full)
        waits = gone and not state.doubtful and state.mode == "open" and sacked < DUPLICATE_ACKS
        # The repair waits, but what is new does not, and if more of it follows the repair is in time.
        wait = Wait(trips=1.0 + (_STRAGGLERS if waits and grown.unsent <= grown.ahead else 0.0))
        fresh = state.mode == "open" and not state.doubtful and sacked <= before
        advanced = fresh or grown.mode == "open"
        yield Way((1.0 - doubt) * (1.0 - over), wait, grown, late=late, samples=told, advanced=advanced)


def _advances(state: State, after: State, again: int, last: int, before: int, odds: Odds) -> int:
    """Acknowledgements of a round that advance and tell of no loss: those before its first hole, losses
    evenly between arrivals, as far as they are not lost themselves.
    """
    whole = before + 1 == last
    acked = last if whole else before // (last - before)
    if after.lost:
        acked = min(acked, again)
    heard = round((acked - whole) * (1.0 - odds.ack_loss)) + whole if acked else 0
    return max(0, heard - 1) if state.doubtful else heard


def _grown(before: State, later: State, told: int, gone: int, advances: int, *, full: bool) -> State:
    """The state after a round with its window.

    Args:
        before, later: the state before the round, and after it but for the window.
        told: arrivals of which it told.
        gone: losses of which it told.
        advances: acknowledgements that advance while nothing is found lost.
        full: whether the window was what limited it.
    """
    window, threshold, mode = before.window, before.threshold, before.mode
    grows = full and window < 2 * threshold
    if gone and mode == "open":
        acked = 0 if before.doubtful else advances
        reached = before._replace(window=min(window + 2 * acked, 2 * threshold) if grows else window)
        under_way, ahead = released(
            acked, told - acked, gone, later.unknown, reached.window // 2, later.unsent, grows=grows
        )
        return later._replace(
            window=2 * (under_way + later.unknown),
            threshold=reached.reduced(),
            mode="recovery",
            ahead=ahead,
        )
    if gone and mode == "loss":
        reached = before._replace(window=min(window + 2 * told, 2 * threshold))
        threshold, mode = reached.reduced(), "recovery"
    if mode == "open":
        if full:
            window = min(window + 2 * told, 2 * threshold) if grows else window + 1
    elif not later.lost and not later.unknown:
        # All is repaired.
        window = 2 * threshold if mode == "recovery" else min(window + 2 * told, 2 * threshold)
        mode = "open"
    elif mode == "recovery":
        # Proportional rate reduction: as much as was delivered, and one more for each acknowledgement that
        # advances while nothing more is found lost.
        window = 2 * max(1, min(threshold, told + advances + later.unknown))
    else:
        window = min(window + 2 * told, 2 * threshold)
    return later._replace(window=window, threshold=threshold, mode=mode)


@lru_cache(maxsize=32_768)
def released(
    acked: int, heard: int, lost: int, unknown: int, window: int, unsent: int, *, grows: bool = True
) -> tuple[int, int]:
    """Segments that the acknowledgements of a window let go, in which something is lost for the first time,
    and how many of them before the repair begins.

    Args:
        acked: segments before the first loss.
        heard: segments after it of which an acknowledgement arrives, losses evenly between them.
        lost: losses that they tell of.
        unknown: segments after them of which nothing is heard.
        window: segments that may be under way when the loss is met.
        unsent: segments that wait.
        grows: whether acknowledgements make the window grow.
    """
    may, under_way, new = window - (acked if grows else 0), acked + heard + lost + unknown, 0
    for number in range(acked + min(heard, DUPLICATE_ACKS - 1)):
        may += grows and number < acked
        under_way -= 1
        sends = max(0, min(may - under_way, unsent - new))
        under_way, new = under_way + sends, new + sends
    # Proportional rate reduction (RFC 6937).
    threshold = max(2, 7 * may // 10)
    delivered, again, found = 0, 0, 0
    for number in range(min(heard, DUPLICATE_ACKS), heard + 1):
        known = lost if number == heard else max(1, round(lost * number / heard))
        under_way -= known - found + (heard >= DUPLICATE_ACKS)
        found, delivered = known, delivered + 1
        if under_way > threshold:
            sends = -(-threshold * delivered // may) - again
        else:
            sends = min(threshold - under_way, max(delivered - again, 1))
        sends = max(sends, 0 if again else 1)
        again, under_way = again + sends, under_way + sends
    return new + min(again, lost + unsent - new), new


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
        full = state.unknown >= state.window // 2
        grown = _grown(state, later, there.arrived, later.lost, 0, full=full)
        late = state.arrived > 0 and not state.resent and (state.unsent > 0 or later.lost > 0)
        heard = weight * share * arrives * told
        advanced = grown.mode == "open"
        yield Way(heard, wait._replace(trips=1.0), grown, late=late, samples=1, advanced=advanced)
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
        first_arrived = float(state.first_arrived > 0)
    for here, share in ((False, 1.0 - first_arrived), (True, first_arrived)):
        if not share:
            continue
        passed = _passed(state, left, odds, here=here)
        answers, rest = _answers(left, odds, here=here, unsent=state.unsent, passed=passed)
        if not rest + state.unsent:
            yield Way(share, _NOW, chain=answers)
            continue
        told = state.arrived + (not here)
        originals = state.arrived > here and not state.resent
        for number, part in ((0, answers[:1]), (1, answers[1:])):
            weight = sum(one.weight for one in part)
            if not weight:
                continue
            # The answer may show that the timeout was needless: the copy was a duplicate (RFC 2883), or what
            # was never sent again has arrived (F-RTO, RFC 5682).
            undone = (here and not number) or (originals and (state.mode == "open" or number > 0))
            if undone:
                later = _undone(state, rest, told)
            else:
                later = State(
                    rest,
                    state.unsent,
                    2 * min(threshold, 1 + max(1, told)),
                    threshold,
                    mode="loss" if rest else "open",
                )
            chain = tuple(one._replace(weight=one.weight / weight) for one in part)
            advanced = later.mode == "open"
            way = Way(share * weight, Wait(trips=1.0), later, samples=1, chain=chain, advanced=advanced)
            late = 1.0 if originals and rest else passed if here else 0.0
            for is_late, split in ((True, late), (False, 1.0 - late)):
                if split:
                    yield way._replace(weight=way.weight * split, late=is_late)


def _undone(state: State, rest: int, told: int) -> State:
    """The state after a timeout that was taken back; what is still missing begins a repair."""
    if not rest:
        window = min(state.window + 2 * told, 2 * state.threshold)
        return State(0, state.unsent, window, state.threshold)
    threshold = state.reduced()
    window = 2 * max(1, min(threshold, told))
    return State(rest, state.unsent, window, threshold, mode="recovery")


def _passed(state: State, left: int, odds: Odds, *, here: bool) -> float:
    """Probability that what follows the first segment in doubt has arrived as well, so that the receiver has
    passed that one as soon as it has it. A copy of it is then answered with the clock of what came before the
    copy (``tcp_sequence``): the sender takes the time since for a round trip.
    """
    if here and state.first_arrived is not None:
        return float(state.first_arrived > 1)
    in_doubt = left + state.arrived
    if here and not state.resent:
        # One after another.
        return (state.arrived - 1) / (in_doubt - 1) if in_doubt > 1 else 0.0
    # Anywhere in the flight, and what lies between has been heard of.
    missing = (left - (not here)) / (in_doubt - 1) if in_doubt > 1 else 1.0
    return max(0.0, 1.0 - missing * in_doubt / max(1, odds.segments - state.unsent))


@lru_cache(maxsize=4096)
def _answers(
    left: int, odds: Odds, *, here: bool, unsent: int, passed: float
) -> tuple[tuple[Answered, ...], int]:
    """Timeouts that repeat the first segment in doubt until its acknowledgement arrives, each twice as long.

    Args:
        left: segments that have not arrived.
        odds: of the flight.
        here: whether the first segment in doubt is one that arrived.
        unsent: segments that were never sent, and wait for the acknowledgement.
        passed: probability that the receiver has passed the first segment once it has it.

    Returns:
        Probabilities with the number of timeouts after the first, and what is still missing then. Where
        nothing is missing, the segment's arrival ends it, acknowledged or not.
    """
    ends = left == 1 and not here and not unsent
    comes = 1.0 - odds.loss if ends else (1.0 - odds.loss) * (1.0 - odds.ack_loss)
    chain = []
    weight = 1.0
    for waited in range(_TIMEOUTS):
        echoes, echoed = (0.0, 0.0) if here or ends else _echoed(waited, odds.arrived_unheard)
        echoes *= passed
        chain.append(Answered(weight * comes * (1.0 - echoes), waited))
        if echoes:
            chain.append(Answered(weight * comes * echoes, waited, echoed))
        weight *= 1.0 - comes
        if weight < _RARE_CHAIN:
            break
    whole = sum(one.weight for one in chain)
    answers = tuple(one._replace(weight=one.weight / whole) for one in chain)
    return answers, left - (not here)


def _echoed(timeouts: int, arrived: float) -> tuple[float, float]:
    """Probability that a copy arrived before so many further timeouts were over, and the mean share of their
    time that passed since the first that did.

    Args:
        timeouts: after the first, each twice as long as the one before.
        arrived: probability that a copy that was not acknowledged has arrived.
    """
    whole, share, weight = 2.0**timeouts - 1.0, 0.0, 1.0
    for before in range(timeouts):
        share += weight * arrived * (2.0**timeouts - 2.0**before) / whole
        weight *= 1.0 - arrived
    return 1.0 - weight, share / (1.0 - weight) if weight < 1.0 else 0.0
