"""Verdicts over all figures of two conditions: different, equivalent, undecided, not comparable.

A time's verdict follows from the confidence interval of its change: *different* if the interval excludes
zero, *equivalent* if it lies within the margin, even if it excludes zero (this is an equivalence test by two
one-sided tests, Schuirmann 1987). The intervals of a comparison are simultaneous: each has the level
1 − alpha / their number (Bonferroni). Counts are compared without statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from shakedown.comparison.figures import Figure, Figures, Handshake, Readings
from shakedown.comparison.statistics import Shift, min_group, min_pairs, paired, unpaired
from shakedown.schema.comparison import Compared, Comparison, Method, Verdict

COUNT_MARGIN = 0.001
"""Counts whose relative difference is smaller are equivalent: repetitions of one build differ by 0.03 %."""
COUNT_SLACK = 32
"""Absolute difference of instructions that is equivalent: one run in six of WTLS differs by 19."""
ENCODING_BYTES = 2
"""The DER encodings of two signatures usually differ by at most this."""
MIN_TIME_US = 1.0
"""Shorter times are close to the cost of reading the clock, and are not compared."""


Groups = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True)
class Pair:
    """A figure of two conditions, with the differences of pairs of readings, or with two groups of readings.

    `few`: there are too few readings for an interval, so only the floor bounds the change.
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
        """Number of pairs, or of readings in the smaller group."""
        if self.groups is not None:
            return min(len(one) for one in self.groups)
        return len(self.differences)

    @property
    def is_tested(self) -> bool:
        """True for times; counts are compared without statistics."""
        return self.reason is None and (self.groups is not None or bool(self.differences))

    def shift(self, level: float) -> Shift:
        found = paired(self.differences, level) if self.groups is None else unpaired(*self.groups, level)
        return Shift(*[found.estimate] * 3) if self.few else found


def comparison(before: str, after: str, pairs: Sequence[Pair], rules: Method) -> Comparison:
    """The verdict on each figure, from simultaneous intervals, and the rules."""
    level = 1 - rules.alpha / max(1, sum(one.is_tested for one in pairs))
    rows = tuple(_tested(one, level, rules) if one.is_tested else _counted(one) for one in pairs)
    return Comparison(before=before, after=after, method=rules, rows=rows)


def _tested(pair: Pair, level: float, rules: Method) -> Compared:
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
        # Signatures vary in their encoding: those of certificates, if they are regenerated, and those of
        # handshakes, which can be most of a small message.
        near = abs(after - before) <= ENCODING_BYTES and (near or pair.before.encoded)
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
        # The machine's speed changes between readings. This affects the two medians, but not the estimate.
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
    """The figures of two handshakes. `varying` pairs readings of a time, or of a count that varies, if there
    are any; `reason`: why these are not comparable.
    """
    for figure in sorted(dict.fromkeys([*before, *after]), key=lambda one: not one.is_whole):
        one, other = before.get(figure), after.get(figure)
        if one is None or other is None:
            where = "before" if other is None else "after"
            yield Pair(handshakes, figure, one, other, reason=f"only {where}")
        elif not (one.varies or other.varies):
            yield Pair(handshakes, figure, one, other)
        elif figure.quantity == "time" and max(one.median, other.median) < MIN_TIME_US:
            continue
        elif reason is not None:
            yield Pair(handshakes, figure, one, other, reason=reason)
        else:
            pair = varying(figure)
            if pair is not None:
                yield pair


def only(handshake: Handshake, figures: Figures, where: Literal["before", "after"]) -> Iterator[Pair]:
    """The totals of a handshake that only one condition has."""
    for figure, one in figures.items():
        if figure.is_whole:
            before, after = (one, None) if where == "before" else (None, one)
            yield Pair((handshake, handshake), figure, before, after, reason=f"only {where}")


def logarithms(values: Sequence[float]) -> tuple[float, ...] | None:
    """The logarithms of positive values; None if there are no values or one is not positive."""
    return tuple(math.log(one) for one in values) if values and min(values) > 0 else None
