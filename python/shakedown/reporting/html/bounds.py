"""Lower bounds of simulated figures: their mark, and the missing costs."""

from __future__ import annotations

from collections.abc import Sequence

from shakedown.reporting.columns import Row
from shakedown.reporting.columns.flat import parted
from shakedown.reporting.columns.fleet_notes import bases, steady_notes
from shakedown.reporting.columns.notes import ENERGIES, key_shares, no_energies, some
from shakedown.reporting.columns.simulated import saved_fleet
from shakedown.reporting.figures import legend, rounded_down, time


def least_time(row: Row, key: str) -> str:
    """A saved fleet's time; with ≥ if a part of its work has no figure."""
    if not row["missing"] or row[key] is None:
        return time(row[key])
    return f"≥ {time(rounded_down(row[key], 3))}"


def least_counts(rows: Sequence[Row]) -> str:
    """The fleets whose counts are those for the least work, for a caption."""
    names = list(dict.fromkeys(row["label"] for row in rows if row["missing"]))
    return (
        f" Counts of {some(names)} are those of the least work: a part of it has no figure." if names else ""
    )


def lacking(rows: Sequence[Row]) -> str:
    """The basis of times, why they are marked as imprecise, what is saturated, and what lower bounds lack,
    for a caption.
    """
    based = bases((row["mix"] or row["label"], saved_fleet(row)) for row in rows)
    missing = dict.fromkeys(row["missing"] for row in rows if row["missing"])
    without = no_energies(
        (key, parts, row["mix"] or row["label"], row["device"] or "", row["bearer"] or "")
        for row in rows
        for key in ENERGIES
        if (parts := row[f"{parted(key)[0]}_missing"])
    )
    steady = steady_notes((row["mix"] or row["label"], row["imprecise"], row["saturated"]) for row in rows)
    marks = legend(row[key] for row in rows for key in ("energy_basis", "wake_tail_basis"))
    return (
        "".join(f" {one[0].upper()}{one[1:]}." for one in based)
        + (f" {marks}." if marks else "")
        + "".join(f" {one}." for one in steady)
        + "".join(f" ≥ without a figure of {one}." for one in missing)
        + "".join(f" {one[0].upper()}{one[1:]}." for one in without)
        + "".join(f" {one}." for one in key_shares(rows))
    )
