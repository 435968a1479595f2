"""Verdicts: a computed figure compared with a claim or a printed cell, under a tolerance set beforehand.

A check is created where the figure is computed, and applied to its claim later, so that the claim's value and
tolerance are read from the paper's data in one place only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from msgspec import structs

from shakedown.papers.load import Claim
from shakedown.papers.rows import (
    AGREES,
    DIFFERS,
    MEASURED_HERE,
    PAPERS_OWN,
    UNDECIDED,
    UNTESTABLE,
    tidy_number,
)
from shakedown.schema.replication import Row, Verdict


def combined(whole: Row, others: Sequence[Row]) -> Row:
    """The row of a measured claim with the results of all variants: it agrees or differs only if all do. A
    row without a verdict also has an interval.

    Variants on both sides of the published value are undecided.
    """
    if whole.kind != "measured":
        return whole
    every = [whole, *others]
    verdict: Verdict = UNTESTABLE if whole.verdict == UNTESTABLE else _decided(every)
    return structs.replace(whole, verdict=verdict, interval=_interval([one.replication for one in every]))


def _interval(figures: Sequence[float | str | None]) -> tuple[float, float] | None:
    numbers = [one for one in figures if isinstance(one, (int, float))]
    if len(figures) < 2 or len(numbers) < len(figures):
        return None
    return min(numbers), max(numbers)


def _decided(every: Sequence[Row]) -> Verdict:
    """The common verdict of all rows; without variants a figure is undecided."""
    reached = {one.verdict for one in every}
    if len(every) < 2 or len(reached) > 1:
        return UNDECIDED
    sides = {math.copysign(1.0, one.difference) if one.difference else 0.0 for one in every}
    return UNDECIDED if reached == {DIFFERS} and len(sides) > 1 else every[0].verdict


Check = Callable[[Claim], Row]

_NUMBER = r"[-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?"


def published_values(text: str) -> list[tuple[float, float]]:
    """The numbers of a claim's value: each a range, of one point for a plain number.

    ``65..87`` is one range, ``6..13; 6..57`` two, ``16; 41.5`` two points; orders and words contain none.
    """
    found = []
    for part in re.split(r";|->", text):
        match = re.fullmatch(rf"\s*[<>]?=?\s*({_NUMBER})(?:\.\.({_NUMBER}))?\s*(?:x.*)?", part.strip())
        if match is None:
            return []
        found.append((float(match[1]), float(match[2] or match[1])))
    return found


def precision(text: str) -> float:
    """Half a unit of the last printed digit of a number."""
    number = re.search(_NUMBER, text)
    if number is None:
        return 0.0
    mantissa, _, exponent = number[0].lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return float(0.5 * 10.0 ** (int(exponent or 0) - decimals))


def allowance(tolerance: str, published: float, text: str) -> float:
    """The tolerated difference: absolute, in per cent, or half of the last printed digit.

    "exact" and no tolerance at all mean the printed digits; "none" means no difference.
    """
    words = tolerance.strip()
    if words in ("", "exact"):
        return precision(text) * (1 + 1e-9)
    if words == "none":
        return 0.0
    if words.endswith("%"):
        return abs(published) * float(words[:-1]) / 100.0
    return float(words)


def measured(check: Check) -> Check:
    """The same check for handshakes measured here, whose verdict must hold for all variants."""
    return lambda claim: structs.replace(check(claim), kind="measured", depends_on=MEASURED_HERE)


def number(replication: float, reason: str) -> Check:
    """A single figure (or the only range) of the claim, compared with ours."""
    return numbers([replication], reason)


def numbers(replication: Sequence[float], reason: str) -> Check:
    """Several figures, in the claim's order."""
    return spans([(value, value) for value in replication], reason)


def spans(replication: Sequence[tuple[float, float]], reason: str) -> Check:
    """Several ranges: the ends of each compared with the published ends, or both ends with a published point.

    A figure of ours without a range may be anywhere in a published range.
    """

    def check(claim: Claim) -> Row:
        values = published_values(claim.value)
        if len(values) != len(replication):
            raise ValueError(f"{claim.id}: {len(replication)} figures for {claim.value!r}")
        parts = re.split(r";|->", claim.value)
        worst, agree = 0.0, True
        for (low, high), (ours_low, ours_high), text in zip(values, replication, parts, strict=True):
            for apart, end in _relevant_differences(low, high, ours_low, ours_high):
                agree = agree and abs(apart) <= allowance(claim.tolerance, end, text) + 1e-12
                worst = apart if abs(apart) > abs(worst) else worst
        shown: float | str
        if len(replication) == 1 and replication[0][0] == replication[0][1]:
            shown = tidy_number(replication[0][0])
        else:
            shown = "; ".join(_span(low, high) for low, high in replication)
        return _row(claim, shown, tidy_number(worst), AGREES if agree else DIFFERS, reason)

    return check


def _relevant_differences(
    low: float, high: float, ours_low: float, ours_high: float
) -> list[tuple[float, float]]:
    """The differences that count, each with the published figure to which it refers."""
    if ours_low == ours_high and low != high:
        nearest = min(max(ours_low, low), high)
        return [(ours_low - nearest, nearest)]
    return [(ours_low - low, low), (ours_high - high, high)]


def within(low: float, high: float, reason: str) -> Check:
    """Our range must be inside the published range, each end with the claim's tolerance."""

    def check(claim: Claim) -> Row:
        ((least, most),) = published_values(claim.value)
        below, above = min(low - least, 0.0), max(high - most, 0.0)
        agree = -below <= allowance(claim.tolerance, least, claim.value)
        agree = agree and above <= allowance(claim.tolerance, most, claim.value)
        worst = below if -below > above else above
        return _row(claim, _span(low, high), tidy_number(worst), AGREES if agree else DIFFERS, reason)

    return check


def holds(condition: bool, replication: float | str, reason: str) -> Check:
    """An order or a threshold, which holds or does not hold.

    If the claim's value and ours are numbers, the row also has the difference.
    """

    def check(claim: Claim) -> Row:
        difference = None
        values = published_values(claim.value)
        if not isinstance(replication, str) and len(values) == 1:
            low, high = values[0]
            difference = tidy_number(replication - min(max(replication, low), high))
        shown = replication if isinstance(replication, str) else tidy_number(replication)
        return _row(claim, shown, difference, AGREES if condition else DIFFERS, reason)

    return check


def untestable(reason: str) -> Check:
    """A check without a verdict."""
    return lambda claim: _row(claim, None, None, UNTESTABLE, reason)


def _row(
    claim: Claim, replication: float | str | None, difference: float | None, verdict: Verdict, reason: str
) -> Row:
    """The row of a claim; `paper.reproduce` adds the paper's name."""
    values = published_values(claim.value)
    plain = len(values) == 1 and values[0][0] == values[0][1] and re.fullmatch(_NUMBER, claim.value.strip())
    return Row(
        paper="",
        item=f"claim {claim.id}, section {claim.section}",
        claim_id=claim.id,
        quantity=claim.claim,
        unit=claim.unit,
        published=tidy_number(values[0][0]) if plain else claim.value or None,
        replication=replication,
        difference=difference,
        tolerance=claim.tolerance or None,
        kind="modelled",
        verdict=verdict,
        reason=reason,
        interval=None,
        depends_on=PAPERS_OWN,
    )


OTHER_MACHINES = "no verdict: the paper measured this on its own devices"


def cell_row(
    item: str,
    quantity: str,
    unit: str,
    printed: str,
    replication: float | None,
    tolerance: str,
    reason: str,
) -> Row:
    """The row of a table's cell; without a ``replication`` it has no verdict."""
    if replication is None or math.isnan(replication):
        tolerance, check = "", untestable(reason)
    else:
        check = number(replication, reason)
    cell = Claim("", "", quantity, "", printed, unit, tolerance, "")
    return structs.replace(check(cell), item=item, claim_id=None)


def input_row(item: str, quantity: str, unit: str, printed: str, reason: str) -> Row:
    """The row of a cell that is an input, which cannot be computed from the rest of the paper."""
    return cell_row(item, quantity, unit, printed, None, "", reason)


def beside(row: Row) -> Row:
    """A cell's row without a verdict: the figures of the paper's machine and of this one."""
    if row.replication is None:
        return row
    return structs.replace(row, tolerance=None, verdict=UNTESTABLE, reason=f"{row.reason}; {OTHER_MACHINES}")


def _span(low: float, high: float) -> str:
    return f"{low:.6g}" if low == high else f"{low:.5g}..{high:.5g}"
