"""Figures with their uncertainty, in the form of rows (`shakedown.schema.base.Bounds`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from shakedown.models.ranges import Range
from shakedown.schema.base import Basis


def bounds(
    figure: Range, basis: Basis, missing: Sequence[str] = (), *, known: bool = False
) -> dict[str, Any]:
    """A sum with its range; if anything is missing, only the range, without an estimate.

    An infinite high end means unknown. `known`: the missing part is negligible, so the estimate is kept.
    """
    return {
        "estimate": None if missing and not known else figure.mean,
        "lower": figure.low,
        "upper": figure.high if math.isfinite(figure.high) else None,
        "basis": basis,
        "missing": list(missing),
    }


def lower_bound(lower: float | None, basis: Basis, missing: Sequence[str]) -> dict[str, Any]:
    """A lower bound."""
    return {"estimate": None, "lower": lower, "upper": None, "basis": basis, "missing": list(missing)}


def upper_bound(upper: float | None, basis: Basis, missing: Sequence[str]) -> dict[str, Any]:
    """An upper bound."""
    return {"estimate": None, "lower": None, "upper": upper, "basis": basis, "missing": list(missing)}


def simulated(value: float | None, basis: Basis, missing: Sequence[str] = ()) -> dict[str, Any]:
    """A simulated figure at the mean of all costs, without a range; a lower bound if a cost is missing."""
    if missing:
        return lower_bound(value, basis, missing)
    return {"estimate": value, "lower": None, "upper": None, "basis": basis, "missing": []}
