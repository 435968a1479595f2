"""Rows from objects that are printed: figures with bounds and distributions, each value by its key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shakedown.reporting.columns import Row
from shakedown.reporting.figures import (
    NOTHING,
    UNKNOWN,
    bounded,
    digits_of,
    energy,
    energy_range,
    marked,
    rounded_down,
    rounded_up,
    time,
    time_range,
)

_ENDS = {"estimate": "", "lower": "_low", "upper": "_high"}


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """`client_s` of estimate, lower and upper as `client_s`, `client_low_s`, `client_high_s`; `ready_s` of
    statistics as `ready_mean_s`, `ready_p99_s`; other values with parts are omitted.
    """
    found: dict[str, Any] = {"label": row["suite"]} if "suite" in row else {}
    for key, value in row.items():
        name, unit = parted(key)
        if not isinstance(value, Mapping):
            if not isinstance(value, list | tuple):
                found[key] = value
            continue
        for part, inner in value.items():
            if part == "missing":
                found[f"{name}_missing"] = ", ".join(inner)
            elif part == "basis":
                found[f"{name}_basis"] = inner
            elif part in _ENDS:
                found[f"{name}{_ENDS[part]}{unit}"] = inner
            elif "mean" in value:
                found[f"{name}_{part}{unit}"] = inner
    return found


def parted(key: str) -> tuple[str, str]:
    """A key without its unit, and the unit."""
    for unit in ("_per_s", "_s", "_j"):
        if key.endswith(unit):
            return key.removesuffix(unit), unit
    return key, ""


def figure(
    row: Row,
    key: str,
    show: Callable[[float, int], str] | None = None,
    digits: int | None = None,
    between: Callable[[float, float], str] | None = None,
) -> str:
    """A figure with the digits that its range supports; without an estimate, its bounds."""
    name, unit = parted(key)
    value, low, high = (row.get(f"{name}{end}{unit}") for end in ("", "_low", "_high"))
    digits = digits or digits_of(value, low, high)
    text = show or (lambda found, digits: time(float(f"{found:.{digits}g}"), digits))
    if show is None:
        between = lambda low, high: time_range(low, high, digits)  # noqa: E731
    return bounded(lambda found: text(found, digits), value, low, high, between)


def marked_figure(row: Row, key: str, shown: str) -> str:
    """A figure with the mark of its basis; a bound (`≥ 1 s`, `< 1%`) has its own mark, zero needs none."""
    if not row.get(key) or shown.startswith("<"):
        return shown
    return marked(shown, row.get(f"{parted(key)[0]}_basis"))


def energy_text(row: Row, key: str = "energy_j") -> str:
    """An energy with its mark; a range, a bound or `unknown` if it has no estimate."""
    name = key.removesuffix("_j")
    if f"{name}_high_j" not in row:
        return NOTHING
    if row[f"{name}_high_j"] is None and row.get(key) is None:
        return UNKNOWN
    return marked_figure(row, key, figure(row, key, _joules, between=energy_range))


def _joules(value: float, digits: int) -> str:
    # At least two digits: with one, a sum could be printed as less than one of its parts.
    return energy(float(f"{value:.{max(2, digits)}g}"), max(2, digits)) if value else "0"


def interval(
    row: Row,
    key: str,
    show: Callable[[float], str],
    between: Callable[[float, float], str] | None = None,
) -> str:
    """The ends of a figure's range: `200 – 780`, a dash without a range. ``between`` prints two ends."""
    name, unit = parted(key)
    low, high = row.get(f"{name}_low{unit}"), row.get(f"{name}_high{unit}")
    if low == high or (low is None and row.get(key) is None):
        return "–"
    if row.get(key) is None and row.get(f"{name}_missing"):
        low, high = rounded_down(low) if low else low, None if high is None else rounded_up(high)
    if low is not None and high is not None and between is not None:
        return between(low, high)
    return " – ".join("?" if end is None else show(end) for end in (low, high))
