"""Figures with their uncertainty, as rows have them (`shakedown.schema.base.Bounds`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from shakedown.models.ranges import Range
from shakedown.schema.base import Basis


def bounds(
    figure: Range, basis: Basis, missing: Sequence[str] = (), *, known: bool = False
) -> dict[str, Any]:
    """A sum with its range; with anything missing, the range alone: what is known, and all at most.

    A high end that is infinite is unknown. `known`: what is missing is too little to matter.
    """
    return {
        "estimate": None if missing and not known else figure.mean,
        "lower": figure.low,
        "upper": figure.high if math.isfinite(figure.high) else None,
        "basis": basis,
        "missing": list(missing),
    }


def least(lower: float | None, basis: Basis, missing: Sequence[str]) -> dict[str, Any]:
    """What is at least so much."""
    return {"estimate": None, "lower": lower, "upper": None, "basis": basis, "missing": list(missing)}


def most(upper: float | None, basis: Basis, missing: Sequence[str]) -> dict[str, Any]:
    """What is at most so much."""
    return {"estimate": None, "lower": None, "upper": upper, "basis": basis, "missing": list(missing)}


def simulated(value: float | None, basis: Basis, missing: Sequence[str] = ()) -> dict[str, Any]:
    """What a simulation found at the mean of all costs, whose range it does not know; with anything missing,
    what it is at least.
    """
    if missing:
        return least(value, basis, missing)
    return {"estimate": value, "lower": None, "upper": None, "basis": basis, "missing": []}
