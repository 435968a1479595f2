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
from shakedown.models.tcp import DUPLICATE_ACKS, MAX_RTO_S, MIN_TIMEOUT_S, RoundTrips, Tcp

_LEAST = 1e-7  # ways less probable than this are left out
_SLIGHT = 1e-5  # the same within a repair, whose ways are scaled to sum to 1
_TIMEOUTS = 9  # timeouts in a row that are followed
_MANY = 200  # ways of one flight that are kept apart
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


def _add(ways: Ways, weight: float, later: Ways, timeouts: int, trips: int) -> None:
    for (u, v, w), share in later.items():
        total = weight * share
        if total >= _SLIGHT:
            key = (u + timeouts, v + trips, w)
            ways[key] = ways.get(key, 0.0) + total


def _whole(ways: Ways) -> Ways:
    """The same, scaled to sum to 1: what was left out is rare."""
    total = sum(ways.values())
    return {key: weight / total for key, weight in ways.items()}


@lru_cache(maxsize=4096)
def _repaired(left: int, released: int, odds: Odds) -> Ways:
    """Ways to get ``left`` segments across when ``released`` may be sent now."""
    sent = min(left, released)
    loss, ways = odds.loss, Ways()
    if left == sent:
        ways[(0, 0, sent)] = (1.0 - loss) ** sent
    for arrived in range(sent + (left > sent)):
        missing = sent - arrived
        weight = math.comb(sent, arrived) * (1.0 - loss) ** arrived * loss**missing
        if weight < _SLIGHT:
            continue
        unheard = odds.ack_loss**arrived
        if left > sent:
            if arrived:
                heard = _repaired(left - arrived, 2 * arrived, odds)
                _add(ways, weight * (1.0 - unheard), heard, 0, 1)
                _add(ways, weight * unheard, _asked_again(left - arrived, odds), 1, 0)
            else:
                _add(ways, weight, _timed_out(left, odds), 1, 0)
            continue
        # All were sent: a loss is noticed when a later one arrives, else by the timeout.
        noticed = arrived / sent * (1.0 - odds.ambiguous) if arrived else 0.0
        if noticed:
            again = _repaired(missing, max(1, arrived), odds)
            _add(ways, weight * noticed * (1.0 - unheard), again, 0, 1)
            _add(ways, weight * noticed * unheard, _asked_again(missing, odds), 1, 0)
        _add(ways, weight * (1.0 - noticed), _timed_out(missing, odds), 1, 1 if arrived else 0)
    return _whole(ways)


@lru_cache(maxsize=4096)
def _timed_out(left: int, odds: Odds) -> Ways:
    """Ways to get ``left`` segments across when a timeout has just fired."""
    loss, unheard = odds.loss, odds.ack_loss
    if left == 1:
        return _whole({(2 ** (n + 1) - 2, 0, 1): (1.0 - loss) * loss**n for n in range(_TIMEOUTS)})
    ways, waited, weight = Ways(), 0, 1.0
    for again in range(_TIMEOUTS):
        _add(ways, weight * (1.0 - loss) * (1.0 - unheard), _repaired(left - 1, 2, odds), waited, 1)
        waited += 2 ** (again + 1)
        _add(ways, weight * (1.0 - loss) * unheard, _asked_again(left - 1, odds), waited, 0)
        weight *= loss
        if weight < _SLIGHT:
            break
    return _whole(ways)


@lru_cache(maxsize=4096)
def _asked_again(left: int, odds: Odds) -> Ways:
    """As ``_timed_out``, but what the timeout repeats had arrived: only its acknowledgement was lost."""
    through = (1.0 - odds.loss) * (1.0 - odds.ack_loss)
    ways, waited, weight = Ways(), 0, 1.0
    for again in range(_TIMEOUTS):
        _add(ways, weight * through, _repaired(left, 2, odds), waited, 1)
        waited += 2 ** (again + 1)
        weight *= 1.0 - through
        if weight < _SLIGHT:
            break
    return _whole(ways)


@lru_cache(maxsize=4096)
def _misled(left: int, odds: Odds) -> Ways:
    """As ``_asked_again``, but the answer covers segments that were never repeated: the timeout counts as
    spurious (F-RTO, RFC 5682), what was marked lost no longer is, and the doubled timeout runs once more.
    """
    through = (1.0 - odds.loss) * (1.0 - odds.ack_loss)
    ways, waited, weight = Ways(), 0, 1.0
    for again in range(_TIMEOUTS):
        waited += 2 ** (again + 1)
        _add(ways, weight * through, _timed_out(left, odds), waited, 1)
        weight *= 1.0 - through
        if weight < _SLIGHT:
            break
    return _whole(ways)


@lru_cache(maxsize=4096)
def _arrays(way: str, left: int, released: int, odds: Odds) -> tuple[Floats, Floats, Floats, Floats]:
    """Weights, timeouts, round trips and segments of a repair."""
    if way == "repaired":
        ways = _repaired(left, released, odds)
    elif way == "timed out":
        ways = _timed_out(left, odds)
    else:
        ways = {(0, 0, 1): 1.0} if way == "probed" else _misled(left, odds)
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
    for first, middle, tail, weight in _patterns(count, forward):
        found.lost(weight, first, middle, tail)
    return found.collected((1.0 - forward.loss) * (1.0 - _start(forward)) ** (count - 1))


def slowly(sending: Sending, window: int, forward: Direction, backward: Direction, tcp: Tcp) -> Extras:
    """How late a flight is that starts with a small window, which each round of acknowledgements doubles."""
    odds = Odds(round(forward.loss, 9), round(backward.loss, 9), 0.0)
    found = _Found(sending, odds, tcp)
    found.put(1.0, "repaired", len(sending.left_s), window, 0.0, sending.round_trips.rto_s, link_free=True)
    return found.collected(0.0)


def _start(direction: Direction) -> float:
    """Probability that a loss starts after a packet that arrived."""
    if direction.loss_after_loss <= direction.loss or direction.loss >= 1.0:
        return direction.loss
    return direction.loss * (1.0 - direction.loss_after_loss) / (1.0 - direction.loss)


def _patterns(count: int, direction: Direction) -> Iterator[tuple[int, int, int, float]]:
    """Losses by (index of the first, further ones before the last arrival, those after it), probability."""
    begins, goes_on = _start(direction), direction.loss_after_loss
    for first in range(count):
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


class _Found:
    """Collects the ways in which one flight is late."""

    def __init__(self, sending: Sending, odds: Odds, tcp: Tcp) -> None:
        self.sending, self.odds, self.tcp = sending, odds, tcp
        self.trip_s = sending.forth_s + sending.back_s
        self.on_time_s = sending.left_s[-1] + sending.forth_s
        self.weights: list[Floats] = []
        self.extra_s: list[Floats] = []
        self.timed_out = 0.0

    def collected(self, on_time: float) -> Extras:
        """All of them, the probability of being on time first."""
        weights = np.concatenate([np.array([on_time]), *self.weights])
        extra_s = np.concatenate([np.zeros(1), *self.extra_s])
        if len(weights) > _MANY:
            merged = Distribution.of_samples(extra_s[1:], weights[1:])
            total = float(weights[1:].sum())
            weights = np.concatenate([weights[:1], merged.weights * total])
            extra_s = np.concatenate([extra_s[:1], merged.values_s])
        return Extras(weights, extra_s, self.timed_out)

    def put(
        self,
        weight: float,
        way: str,
        left: int,
        released: int,
        start_s: float,
        rto_s: float,
        *,
        link_free: bool = False,
    ) -> None:
        """A repair that begins at ``start_s``, but after what the link still had to send."""
        if weight < _LEAST:
            return
        sending = self.sending
        if not link_free:
            start_s = max(start_s, sending.left_s[-1])
        shares, timeouts, trips, segments = _arrays(way, left, min(left, released), self.odds)
        waited_s = timeouts * self.tcp.timer_s(min(rto_s, MAX_RTO_S))
        end_s = start_s + waited_s + trips * (self.trip_s + sending.segment_s)
        end_s += segments * sending.segment_s + sending.forth_s
        self.weights.append(weight * shares)
        self.extra_s.append(np.maximum(0.0, end_s - self.on_time_s))
        self.timed_out += weight * (
            1.0 if way in ("timed out", "misled") else float(shares[timeouts > 0.0].sum())
        )

    def lost(self, weight: float, first: int, middle: int, tail: int) -> None:
        """One pattern: ``first`` lost, ``middle`` more before the last arrival, ``tail`` at the end."""
        sending = self.sending
        count = len(sending.left_s)
        arrived = count - first - tail - middle - (0 if tail == count - first else 1)
        if arrived <= 0:
            self.unnoticed(weight, first, count - first)
            return
        # Acknowledgements of what came after the hole may all be lost too: then the probe finds it.
        silent = self.odds.ack_loss**arrived
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
            start_s += self.tcp.timer_s(sending.round_trips.min_s / 4.0 + MIN_TIMEOUT_S)
            released = 1
        waiting = min(unsent, arrived)
        if tail and not waiting:
            released = 1  # the end is only noticed when a retransmission that was sent after it arrives
        left = 1 + middle + tail + waiting
        self.put(weight, "repaired", left, released, start_s, sending.round_trips.rto_s)

    def unnoticed(self, weight: float, first: int, lost: int) -> None:
        """Nothing tells the sender: the probe, then the timeout.

        Where the last acknowledgement was lost too, the timeout repeats a segment that had arrived.
        """
        if first:
            self.probed(weight * self.odds.ack_loss, first - 1, lost, "misled")
            weight *= 1.0 - self.odds.ack_loss
        self.probed(weight, first, lost, "timed out")

    def probed(self, weight: float, known: int, lost: int, otherwise: str) -> None:
        """The probe, when ``known`` segments were acknowledged; ``otherwise``, what follows its loss."""
        if weight < _LEAST:
            return
        sending, odds = self.sending, self.odds
        from_s = 0.0 if known == 0 else sending.left_s[known - 1] + self.trip_s
        estimator = sending.round_trips
        probe_s = from_s + self.tcp.timer_s(estimator.probe_s(len(sending.left_s) - known))
        heard = 1.0 - odds.loss
        if lost == 1:
            self.put(weight * heard, "probed", 1, 1, probe_s, estimator.rto_s)
        else:
            # The probe's acknowledgement tells of the others.
            doubt = odds.ambiguous * (1.0 if known else 2.0)
            heard *= (1.0 - odds.ack_loss) * (1.0 - doubt)
            told_s = probe_s + sending.segment_s + self.trip_s
            self.put(weight * heard, "repaired", lost - 1, 1, told_s, estimator.rto_s)
        late_s = probe_s + self.tcp.timer_s(estimator.rto_s)
        self.put(weight * (1.0 - heard), otherwise, lost, 1, late_s, estimator.rto_s)
