"""Handshakes over TCP that lose packets, run with delays that are drawn (``draws``, ``tcp_lossy_flow``).

Where a link is so slow that timers fire although nothing is lost, what a lost packet costs depends on all
that waits for the link meanwhile, copies included; and where losses come in bursts, what is sent again is
lost more often than anything else. It is found by running handshakes. Which packet is lost first is drawn
from those of a draw without losses, and what is lost after it from those that the repair sends; both evenly,
those that matter more often than they are lost, and weighted by how probable they are.

Where few handshakes lose nothing, losses of a whole handshake are drawn as they come instead: what several
do to one another matters more there than what one does.

Losses are drawn within each stage of the handshake by itself, from one flight's arrival to the next, and how
late those of different stages make it adds up, as if they were independent; bursts go on from one to the
next, and the stage is then all of the handshake. The packet before a handshake's first is taken as not lost.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shakedown.models.arrays import Floats, floats
from shakedown.models.distribution import Distribution
from shakedown.models.draws import Draw
from shakedown.models.path import Direction, Path
from shakedown.models.tcp_flow import Flow, Sent
from shakedown.models.tcp_lossy_flow import Loses

DRAWS = 128
"""Handshakes without losses to begin with."""

_RUNS_A_PACKET = 6  # handshakes run for each packet of a stage that is more than an acknowledgement
_MIN_RUNS, _USUAL_RUNS, _MAX_RUNS = 24, 64, 256  # of a stage
_WHOLE = 4  # times as many where a stage is all of the handshake
_PACKETS = 400_000  # of all runs, about: where a handshake has many packets, fewer are run
_ALL_LOSE = 0.2  # where fewer handshakes than this lose nothing, all are drawn as they come
_AS_THEY_COME, _PACKETS_AS_THEY_COME = 4096, 80_000  # of those, and of their packets, about
_LIKELY = 0.004  # what one of them stands for at most: a share of all handshakes
_LIKELY_SEVERAL = 0.002  # the same where several packets are lost
_ACKNOWLEDGEMENT = 0.25  # how often one is drawn as lost, beside a packet that is more
_ROUNDING_S = 1e-9
_USED_UP = 1e-12  # of a number drawn evenly: what is left of it says nothing more
_GOLDEN, _SILVER, _BRONZE = (5.0**0.5 - 1.0) / 2.0, 2.0**0.5 - 1.0, 3.0**0.5 - 1.0
"""Their multiples' fractions fill the range from 0 to 1 evenly, each by itself and together."""
_GROUPS = 2  # of handshakes, by how late they are without losses

Run = Callable[[Draw, Loses], Flow | None]
"""Runs the handshake with a draw and losses."""


@dataclass(frozen=True, slots=True)
class _Group:
    """What losses do to handshakes that are about as late without.

    Attributes:
        clear: probability that they do nothing.
        late: how much later it is otherwise.
    """

    clear: float
    late: Distribution | None

    def both(self, other: _Group) -> _Group:
        """What two stages' losses do, independent of each other."""
        if self.late is None or other.late is None:
            return other if self.late is None else self
        parts = [
            ((1.0 - self.clear) * other.clear, self.late),
            (self.clear * (1.0 - other.clear), other.late),
            ((1.0 - self.clear) * (1.0 - other.clear), self.late.plus(other.late)),
        ]
        return _Group(self.clear * other.clear, Distribution.mixture(parts))


@dataclass(frozen=True, slots=True)
class Lost:
    """What losses do to a time of a handshake.

    Attributes:
        groups: for handshakes that are early without losses, and for later ones, as many of each.
        failed: probability that a side gives up.
        least_s: of all handshakes that were run.
    """

    groups: list[_Group]
    failed: float
    least_s: float

    def added_to(self, total: Distribution) -> Distribution:
        """A time with what losses do to it."""
        parts = []
        for group, part in zip(self.groups, _split(total, len(self.groups)), strict=True):
            parts.append((group.clear, part))
            if group.late is not None:
                parts.append((1.0 - group.clear, part.compact().plus(group.late)))
        # Where timers jam a link, losses make slow handshakes faster; none is faster than any.
        return Distribution.mixture(parts).at_least(min(self.least_s, float(total.values_s[0])))


def _split(total: Distribution, count: int) -> list[Distribution]:
    """So many parts of a distribution, from early to late, each as likely as any other."""
    ends = np.concatenate([[0.0], np.cumsum(total.weights)])
    ends /= ends[-1]
    parts = []
    for number in range(count):
        low, high = number / count, (number + 1) / count
        weights = np.clip(ends[1:], low, high) - np.clip(ends[:-1], low, high)
        kept = weights > 0.0
        parts.append(Distribution(total.values_s[kept], weights[kept] * count))
    return parts


class _Chance:
    """Probabilities of losses in both directions, packet by packet."""

    def __init__(self, path: Path) -> None:
        self.directions = {"client": path.up, "server": path.down}
        self.begins = {side: _begins(one) for side, one in self.directions.items()}
        self.goes_on = {side: one.loss_after_loss for side, one in self.directions.items()}

    def of(self, packets: Sequence[Sent], after: Sent | None) -> Floats:
        """Probability that each is lost if none before it is, but for one just before them all."""
        found = [self.begins[side] for side, *_ in packets]
        if after is not None:
            for number, (side, *_) in enumerate(packets):
                if side == after[0]:
                    found[number] = self.goes_on[side]
                    break
        return floats(found)


def _begins(direction: Direction) -> float:
    """Probability that a packet is lost after one that was not."""
    if direction.loss >= 1.0:
        return 1.0
    return min(1.0, direction.loss * (1.0 - direction.loss_after_loss) / (1.0 - direction.loss))


@dataclass(frozen=True, slots=True)
class _Next:
    """Which packet is lost next.

    Attributes:
        shares: probability of each.
        none: that none is.
        drawn: with which probability each is drawn.
    """

    shares: Floats
    none: float
    drawn: Floats

    @staticmethod
    def of(packets: Sequence[Sent], chances: Floats) -> _Next:
        kept = np.cumprod(1.0 - chances)
        shares = chances * np.concatenate([[1.0], kept[:-1]])
        drawn = shares * np.where([more for _, more, _ in packets], 1.0, _ACKNOWLEDGEMENT)
        whole = float(drawn.sum())
        none = float(kept[-1]) if len(kept) else 1.0
        return _Next(shares, none, drawn / whole if whole > 0.0 else drawn)

    def weight(self, place: int) -> float:
        """How much more probable a packet is than it is drawn."""
        return float(self.shares[place] / self.drawn[place])

    def pick(self, share: float) -> int:
        """The packet at a share of what is drawn."""
        return min(int(np.searchsorted(np.cumsum(self.drawn), share)), len(self.drawn) - 1)


@dataclass(slots=True)
class _Late:
    """Handshakes in which something of a stage is lost: probabilities, and how late each is."""

    weights: list[float]
    flows: list[Flow | None]
    draws: list[int]

    def add(self, weight: float, flow: Flow | None, draw: int) -> None:
        """One more."""
        self.weights.append(weight)
        self.flows.append(flow)
        self.draws.append(draw)

    def all(self) -> Iterator[tuple[float, Flow | None, int]]:
        """Each of them."""
        return zip(self.weights, self.flows, self.draws, strict=True)


class _Way(NamedTuple):
    """A handshake in which a packet is lost.

    Attributes:
        weight: how probable that is.
        draw: number of the draw.
        first: the packet.
        rest: those of its stage after it.
        following: which of them is lost next.
    """

    weight: float
    draw: int
    first: int
    rest: list[int]
    following: _Next


class _Stage:
    """Losses of one stage of the handshake, or of all of it."""

    def __init__(
        self,
        stage: int | None,
        draws: Sequence[Draw],
        flows: Sequence[Flow],
        run: Run,
        chance: _Chance,
        max_runs: int,
    ) -> None:
        self.stage, self.draws, self.flows, self.run, self.chance = stage, draws, flows, run, chance
        self.first = [self.packets(flow, 0) for flow in flows]
        more = sum(flows[0].sent[number][1] for number in self.first[0])
        some = 1.0 - self.next_lost(flows[0], self.first[0], None).none
        usual = min(max(_RUNS_A_PACKET * more, _MIN_RUNS), _USUAL_RUNS)
        if stage is None:
            usual *= _WHOLE
        self.max_runs = max_runs
        self.count = min(max(usual, math.ceil(some / _LIKELY)), max_runs)

    def packets(self, flow: Flow, begin: int) -> list[int]:
        """Numbers of the stage's packets from one on."""
        numbers = range(begin, len(flow.sent))
        if self.stage is None:
            return list(numbers)
        return [number for number in numbers if flow.sent[number][2] == self.stage]

    def next_lost(self, flow: Flow, numbers: Sequence[int], after: Sent | None) -> _Next:
        packets = [flow.sent[number] for number in numbers]
        return _Next.of(packets, self.chance.of(packets, after))

    def late(self) -> _Late:
        """Handshakes with one loss, and with more."""
        order = sorted(range(len(self.flows)), key=lambda index: self.flows[index].done_s)
        found, ways, chance = _Late([], [], []), [], 0.0
        for number in range(self.count):
            # Early and late handshakes evenly with each packet.
            index = order[int((0.5 + number * _GOLDEN) % 1.0 * len(order))]
            lost = self.next_lost(self.flows[index], self.first[index], None)
            if lost.none >= 1.0:
                continue
            chance += (1.0 - lost.none) / self.count
            place = lost.pick((number + 0.5) / self.count)
            first, weight = self.first[index][place], lost.weight(place) / self.count
            flow = self.run(self.draws[index], _only(first))
            if flow is None:
                found.add(weight, None, index)
                continue
            rest = self.packets(flow, first + 1)
            following = self.next_lost(flow, rest, self.flows[index].sent[first])
            found.add(weight * following.none, flow, index)
            ways.append(_Way(weight, index, first, rest, following))
        self.several(ways, found)
        whole = sum(found.weights)
        found.weights = [weight * chance / whole for weight in found.weights]
        return found

    def several(self, ways: Sequence[_Way], found: _Late) -> None:
        """Handshakes with more than one loss, begun as those with one, as often as that is probable."""
        shares = np.cumsum([way.weight * (1.0 - way.following.none) for way in ways])
        if not ways or not shares[-1] > 0.0:
            return
        whole = float(shares[-1])
        every = sum(way.weight for way in ways)
        alike = round(self.count * whole / every)
        count = min(max(math.ceil(whole / _LIKELY_SEVERAL), alike, _MIN_RUNS), self.max_runs)
        for number in range(count):
            way = ways[int(np.searchsorted(shares, (number + 0.5) / count * whole))]
            place = way.following.pick((0.5 + number * _SILVER) % 1.0)
            further = self.further(way.first, way.rest[place], (0.5 + number * _BRONZE) % 1.0)
            flow = self.run(self.draws[way.draw], further)
            weight = whole / count * way.following.weight(place) / (1.0 - way.following.none)
            found.add(weight, flow, way.draw)

    def all(self) -> _Late:
        """Handshakes with losses as they come, few of which have none."""
        found = _Late([], [], [])
        for number in range(self.max_runs):
            # Even shares of the first packets' losses, and of the draws.
            index = int((0.5 + number * _GOLDEN) % 1.0 * len(self.draws))
            loses = self.further(-1, -1, (number + 0.5) / self.max_runs)
            found.add(1.0 / self.max_runs, self.run(self.draws[index], loses), index)
        return found

    def further(self, first: int, second: int, share: float) -> Loses:
        """Two losses, and those after them that are at a share of all that may follow."""
        before: dict[str, bool] = {}
        left, more = 1.0, random.Random(f"{first} {second} {share}")

        def loses(number: int, packet: Sent) -> bool:
            nonlocal share, left
            side, _, stage = packet
            if number <= second:
                lost = number in (first, second)
            elif self.stage is not None and stage != self.stage:
                return False
            else:
                chance = (self.chance.goes_on if before.get(side) else self.chance.begins)[side]
                lost = share < chance
                share = share / chance if lost else (share - chance) / (1.0 - chance)
                left *= chance if lost else 1.0 - chance
                if left < _USED_UP or not share:
                    share, left = more.random(), 1.0
            before[side] = lost
            return lost

        return loses


def _only(lost: int) -> Loses:
    """One packet is lost."""
    return lambda number, _: number == lost


def lost(draws: Sequence[Draw], flows: Sequence[Flow], path: Path, run: Run) -> dict[str, Lost]:
    """What losses do to the times of a handshake.

    Args:
        draws: of its delays.
        flows: each draw's handshake, nothing lost.
        path: the network.
        run: runs it with losses.

    Returns:
        ``ready_s`` and ``done_s``.
    """
    chance = _Chance(path)
    stages: Sequence[int | None] = range(1 + max(packet[2] for packet in flows[0].sent))
    if any(way.loss_after_loss > way.loss for way in (path.up, path.down)):
        stages = [None]  # a burst may begin in one and go on in the next
    # The more get lost, the more are sent.
    packets = len(flows[0].sent) / max(1e-3, (1.0 - path.up.loss) * (1.0 - path.down.loss))
    if float(np.prod(1.0 - chance.of(flows[0].sent, None))) < _ALL_LOSE:
        count = min(_AS_THEY_COME, max(_MAX_RUNS, int(_PACKETS_AS_THEY_COME / packets)))
        every = _Stage(None, draws, flows, run, chance, count).all()
        return {what: _together([every], flows, what) for what in ("ready_s", "done_s")}
    # With one loss, and with more.
    max_runs = min(_MAX_RUNS, max(_MIN_RUNS, int(_PACKETS / (2 * len(stages) * packets))))
    found = [_Stage(stage, draws, flows, run, chance, max_runs).late() for stage in stages]
    return {what: _together(found, flows, what) for what in ("ready_s", "done_s")}


def _together(stages: Sequence[_Late], flows: Sequence[Flow], what: str) -> Lost:
    """All stages' lateness of one time."""
    times_s = floats([getattr(flow, what) for flow in flows])
    ranks = np.empty(len(flows))
    ranks[np.argsort(times_s, kind="stable")] = (np.arange(len(flows)) + 0.5) / len(flows)
    groups = [_Group(1.0, None)] * _GROUPS
    kept, least_s = 1.0, float(times_s.min())
    for stage in stages:
        came = [(weight, flow, index) for weight, flow, index in stage.all() if flow is not None]
        failed = sum(stage.weights) - sum(weight for weight, *_ in came)
        kept *= 1.0 - failed
        if not came:
            continue
        weights = floats([weight for weight, *_ in came])
        indexes = [index for *_, index in came]
        lossy_s = floats([getattr(flow, what) for _, flow, _ in came])
        least_s = min(least_s, float(lossy_s.min()))
        late_s = lossy_s - times_s[indexes]
        for number, group in enumerate(groups):
            # Those of a group, and of its neighbours as they are nearer.
            near = np.maximum(0.0, 1.0 - np.abs(ranks[indexes] * _GROUPS - number - 0.5))
            groups[number] = group.both(_of(weights, near, late_s, failed))
    return Lost(groups, 1.0 - kept, least_s)


def _of(weights: Floats, near: Floats, late_s: Floats, failed: float) -> _Group:
    """One stage's lateness, of those that are near."""
    shares = weights * near
    whole = float(shares.sum())
    if whole <= 0.0:
        shares, whole = weights, float(weights.sum())
    shares = shares * (float(weights.sum()) / whole)
    late = (np.abs(late_s) >= _ROUNDING_S) & (shares > 0.0)
    share = float(shares[late].sum())
    if share <= 0.0:
        return _Group(1.0, None)
    return _Group(1.0 - share / (1.0 - failed), Distribution.of_samples(late_s[late], shares[late]))
