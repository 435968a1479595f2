"""Simulated fleets of an experiment on a terminal: a table for each place and arrival process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from shakedown.reporting.columns import Column, Selection
from shakedown.reporting.columns.fleet_notes import bases, few_clients, steady_notes
from shakedown.reporting.columns.notes import key_shares
from shakedown.reporting.columns.simulated import (
    CLIENTS,
    NOT_RECOVERED,
    clients_each,
    recovery,
    saved_fleet,
    saved_mix,
    shown,
    utilisation,
)
from shakedown.reporting.figures import count
from shakedown.reporting.terminal.listing import listing
from shakedown.results.fleets import FLEET_OPTIONS

if TYPE_CHECKING:
    from shakedown.results.folder import Results

MAX_TABLES = 20
"""Tables of an experiment's fleets; the report and the table have the others."""


def fleet_groups(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, ...], list[Mapping[str, Any]]]:
    """Fleets by place, arrivals and options, captured handshakes separately; those of a group differ in their
    suite only.
    """
    found: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        place = (fleet_words(row), row["device"], row["bearer"], row["server_device"])
        found.setdefault(place, []).append(row)
    return found


def fleet_words(row: Mapping[str, Any]) -> str:
    """The number of clients and cells, the arrivals, the options, and whether handshakes were captured."""
    given = "".join(f", {name} {row[name]}" for name in FLEET_OPTIONS if row[name])
    captured = ", captured handshakes" if row["capture"] is not None else ""
    return f"{clients_words(row)}, {row['arrivals']}{given}{captured}"


def clients_words(row: Mapping[str, Any]) -> str:
    return _clients(row) + (f" in {count(int(row['cells']), 'cell')}" if row["cells"] else "")


def _clients(row: Mapping[str, Any]) -> str:
    return clients_each(row["clients"], row["replications"], row["rate_per_s"], row["arrivals"])


def fleet_tables(results: Results, width: int) -> Iterator[str]:
    """Fleets, one line per suite; then the suites that could not be simulated."""
    rows = results.fleets.filter(pl.col("without_cost").is_null() & pl.col("mix").is_null()).to_dicts()
    groups = fleet_groups([saved_fleet(row) for row in rows])
    for (words, device, bearer, server), fleet in list(groups.items())[:MAX_TABLES]:
        title = f"simulated: {words}: {device} over {bearer} to {server}"
        yield from _table(shown(fleet), fleet, title, width)
        yield from steady_notes((row["label"], row.get("imprecise"), row.get("saturated")) for row in fleet)
        yield from bases((row["label"], row) for row in fleet)
        yield from key_shares(fleet)
    if len(groups) > MAX_TABLES:
        yield f"{len(groups) - MAX_TABLES:,} more fleets are in the report and the table"
    missing = results.fleets.filter(pl.col("without_cost").is_not_null())
    reasons = list(dict.fromkeys(f"{row['label']}: {row['without_cost']}" for row in missing.to_dicts()))
    yield from (f"not simulated: {reason}" for reason in reasons[:MAX_TABLES])
    if len(reasons) > MAX_TABLES:
        yield f"not simulated: {len(reasons) - MAX_TABLES:,} more fleets are in the report"


def _table(
    columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], title: str, width: int
) -> Iterator[str]:
    yield from listing(
        columns, rows, Selection(), title=title, width=width, notes=lambda keys: few_clients(rows, keys)
    )


def mixture_tables(results: Results, width: int) -> Iterator[str]:
    """Mixtures: a table for each and each arrival process, with one line per kind and one for all."""
    rows = mixtures(results)
    for row in rows[:MAX_TABLES]:
        title = f"simulated: {mixture_title(row)}"
        kinds = mixture_rows(results, row)
        yield from _table(CLIENTS, kinds, title, width)
        yield from steady_notes([(row["mix"], row["imprecise"], row["saturated"])])
        yield from key_shares(kinds)
    if len(rows) > MAX_TABLES:
        yield f"{len(rows) - MAX_TABLES:,} more mixtures are in the report and the table"


def mixtures(results: Results) -> list[dict[str, Any]]:
    """Fleets of clients of several kinds."""
    return results.fleets.filter(pl.col("without_cost").is_null() & pl.col("mix").is_not_null()).to_dicts()


def mixture_title(row: Mapping[str, Any]) -> str:
    """The properties that all its clients share."""
    many = f", {int(row['workers'])} workers" if row["workers"] > 1 else ""
    said = f"{_clients(row)} of {row['mix']} to {row['server_device']}{many}"
    late = NOT_RECOVERED if row["failed"] else f"recovery time {recovery(row)}"
    late = "" if row["rate_per_s"] is not None else f", {late}"
    return f"{said}, {row['arrivals']}: utilisation {utilisation(row)}{late}"


def mixture_rows(results: Results, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row per kind, and one for all."""
    kinds = results.fleet_kinds.filter(pl.col("scenario") == row["scenario"]).sort("item").to_dicts()
    return saved_mix(row, kinds)
