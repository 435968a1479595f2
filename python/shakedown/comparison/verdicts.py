"""Verdicts over all figures of two conditions: different, equivalent, undecided, not comparable.

A time's verdict follows from one interval of its change, at a level at which all intervals of a comparison
hold together (Bonferroni's correction: 1 − alpha / their number): *different* where it excludes zero,
*equivalent* where it lies within the margin, whether or not it excludes zero. Two one-sided tests at the
margin (Schuirmann 1987) are such an interval. Counts are compared as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from shakedown.comparison.figures import Figure, Figures, Handshake, Readings
from shakedown.comparison.statistics import Shift, min_group, min_pairs, paired, unpaired
from shakedown.schema.comparison import Compared, Comparison, Method, Verdict

DEFAULT_ALPHA = 0.05
DEFAULT_MARGIN = 0.01
COUNT_MARGIN = 0.001
"""Counts that differ by no more are equivalent: repetitions of one build differ by 0.03 % of a side."""
COUNT_SLACK = 32
"""Instructions: WTLS's counts differ by 19 in one run of six, whatever they are a count of."""
ENCODING_BYTES = 2
"""By as much the DER encodings of two signatures differ usually."""
MIN_TIME_US = 1.0
"""Shorter work is a few readings of the clock, and is not compared."""


@dataclass(frozen=True)
class Rules:
    """How to decide: the error of all intervals together, what is equivalent, and by how much two runs of one
    build are known to differ (`floor`), which widens each interval.
    """

    alpha: float = DEFAULT_ALPHA
    margin: float = DEFAULT_MARGIN
    floor: float = 0.0


Groups = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True)
class Pair:
    """A figure of two conditions, with what tells them apart: differences of pairs, or two groups.

    `few`: too few readings for an interval of their own; the floor alone bounds the change.
    """

    handshakes: tuple[Handshake, Handshake]
    figure: Figure
    before: Readings | None
    after: Readings | None
    differences: tuple[float, ...] = ()
    groups: Groups | None = None
    few: bool = False
    reason: str | None = None

    @property
    def n(self) -> int:
        """How many decide."""
        if self.groups is not None:
            return min(len(one) for one in self.groups)
        return len(self.differences)

    @property
    def is_tested(self) -> bool:
        """Times are; counts are compared as they are."""
        return self.reason is None and (self.groups is not None or bool(self.differences))

    def shift(self, level: float) -> Shift:
        """The change's logarithm."""
        found = paired(self.differences, level) if self.groups is None else unpaired(*self.groups, level)
        return Shift(*[found.estimate] * 3) if self.few else found


def decide(pairs: Iterable[Pair], rules: Rules) -> list[Compared]:
    """The verdict on each figure; the intervals of all hold together."""
    every = list(pairs)
    level = 1 - rules.alpha / max(1, sum(one.is_tested for one in every))
    return [_tested(one, level, rules) if one.is_tested else _counted(one) for one in every]


def comparison(before: str, after: str, pairs: Sequence[Pair], rules: Rules) -> Comparison:
    """All verdicts, and by which rules."""
    method = Method(alpha=rules.alpha, margin=rules.margin, floor=rules.floor)
    return Comparison(before=before, after=after, method=method, rows=tuple(decide(pairs, rules)))


def _tested(pair: Pair, level: float, rules: Rules) -> Compared:
    shift = pair.shift(level).widened(math.log1p(rules.floor))
    if not math.isfinite(shift.lower):
        few = (min_pairs(level), "blocks") if pair.groups is None else (min_group(level), "runs of each")
        reason = f"needs {few[0]} {few[1]}"
        return _row(pair, "undecided", change=math.expm1(shift.estimate), reason=reason)
    verdict: Verdict = "undecided"
    if max(-shift.lower, shift.upper) <= math.log1p(rules.margin):
        verdict = "equivalent"
    elif shift.lower > 0 or shift.upper < 0:
        verdict = "different"
    interval = (math.expm1(shift.lower), math.expm1(shift.upper))
    return _row(pair, verdict, change=math.expm1(shift.estimate), interval=interval)


def _counted(pair: Pair) -> Compared:
    """A count, or a figure that cannot be compared."""
    if pair.reason is not None or pair.before is None or pair.after is None:
        return _row(pair, "not comparable", reason=pair.reason)
    before, after = pair.before.median, pair.after.median
    if before <= 0:
        return _row(pair, "equivalent" if after == before else "different")
    change = after / before - 1
    near = abs(change) <= COUNT_MARGIN
    if pair.figure.quantity == "instructions":
        near = near or abs(after - before) <= COUNT_SLACK
    if pair.figure.quantity == "bytes":
        # Only what has a signature in it varies, by its encoding.
        near = after == before or (near and abs(after - before) <= ENCODING_BYTES)
    return _row(pair, "equivalent" if near else "different", change=change)


def _row(
    pair: Pair,
    verdict: Verdict,
    *,
    change: float | None = None,
    interval: tuple[float, float] | None = None,
    reason: str | None = None,
) -> Compared:
    figure = pair.figure
    known = pair.before or pair.after
    assert known is not None
    before = None if pair.before is None else pair.before.median
    after = None if pair.after is None else pair.after.median
    if pair.is_tested and before is not None and change is not None:
        # The machine's pace changes between readings, and the estimate is free of it; two medians are not.
        after = before * (1 + change)
    return Compared(
        suite=pair.handshakes[0].suite,
        after_suite=pair.handshakes[1].suite,
        stacks=pair.handshakes[0].stacks,
        after_stacks=pair.handshakes[1].stacks,
        quantity=figure.quantity,
        unit=known.unit,
        side=figure.side,
        sender=figure.sender,
        message=figure.message_label,
        operation=figure.operation_label,
        before=before,
        after=after,
        change=change,
        lower=None if interval is None else interval[0],
        upper=None if interval is None else interval[1],
        n=pair.n,
        verdict=verdict,
        reason=reason,
    )


def pairs_of(
    handshakes: tuple[Handshake, Handshake],
    before: Figures,
    after: Figures,
    varying: Callable[[Figure], Pair | None],
    reason: str | None,
) -> Iterator[Pair]:
    """The figures of two handshakes. `varying` pairs readings of a time, or of a count that varies, where
    there are any; `reason` is why these are not comparable.
    """
    for figure in sorted(dict.fromkeys([*before, *after]), key=lambda one: not one.is_whole):
        one, other = before.get(figure), after.get(figure)
        plain = Pair(handshakes, figure, one, other)
        if one is None or other is None:
            where = "before" if other is None else "after"
            yield Pair(handshakes, figure, one, other, reason=f"only {where}")
        elif not (one.varies or other.varies):
            yield plain
        elif figure.quantity == "time" and max(one.median, other.median) < MIN_TIME_US:
            continue
        elif reason is not None:
            yield Pair(handshakes, figure, one, other, reason=reason)
        else:
            pair = varying(figure)
            if pair is not None:
                yield pair


def only(handshake: Handshake, figures: Figures, where: Literal["before", "after"]) -> Iterator[Pair]:
    """The whole handshake's figures of one that the other condition lacks."""
    for figure, one in figures.items():
        if figure.is_whole:
            before, after = (one, None) if where == "before" else (None, one)
            yield Pair((handshake, handshake), figure, before, after, reason=f"only {where}")


def logarithms(values: Sequence[float]) -> tuple[float, ...] | None:
    """Of positive values; None where some is none."""
    return tuple(math.log(one) for one in values) if values and min(values) > 0 else None
