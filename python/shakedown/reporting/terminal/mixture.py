"""A fleet of several kinds of clients on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from shakedown.reporting.terminal.figures import LEGEND, NOTHING, count, share, time
from shakedown.reporting.terminal.simulated import (
    MAX_TABLES,
    UNSTABLE,
    energy_lines,
    failures,
    least_energy,
    least_time,
    mean_time,
    unpriced_lines,
)
from shakedown.reporting.terminal.tables import figures_table, fitted, titled_table
from shakedown.schema.simulated import MixedClients, SimulatedMix, Spread

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from shakedown.results.folder import Results

NAMES = ("suite", "device", "bearer")
COLUMNS = ("share", "resume", "mean", "median", "p95", "p99", "max", "failed")
SHORT = ("share", "median", "p99", "failed")

_TIMES = {
    "mean": "mean",
    "median": "p50",
    "p95": "p95",
    "p99": "p99",
    "max": "max",
}


def mix_heading(row: SimulatedMix) -> str:
    """What all kinds have in common."""
    many = f", {row.workers} workers" if row.workers > 1 else ""
    return (
        f"simulated: {row.mix} to {row.server_device}{many}; {count(row.clients, 'client')}, {row.arrivals}, "
        f"seed {row.seed}"
    )


def mix_tables(row: SimulatedMix, width: int) -> Iterator[RenderableType]:
    """A line a kind and one for all, in the widest form that fits, and what is to be said of them."""
    resumes = any(one.resumption for one in row.kinds)
    whole, short = ([name for name in form if name != "resume" or resumes] for form in (COLUMNS, SHORT))
    names = [one.suite for one in row.kinds]
    yield from fitted(lambda *labels: _table(row, *labels), names, whole, short, width)
    load = row.utilisation if row.offered is None else max(row.offered, row.utilisation)
    said = [f"load {share(load)}", f"a client waits {time(row.queue_wait_s.mean, 2)} for workers"]
    known = row.energy_j.n == row.clients
    if known:
        said.append(f"{least_energy(row)} each")
    if row.rate_per_s is None:
        said.append(f"recovery time {time(row.recovery_s)}")
    yield ", ".join(said)
    if known:
        yield from energy_lines([row], {} if row.from_idle else {one.bearer: None for one in row.kinds})
    if row.unstable:
        yield UNSTABLE
    if row.failed:
        yield f"failed: {failures(row.failed)}"
    again = row.attempts - row.clients - row.warmup_clients * row.replications
    if row.retries and again > 0:
        yield f"clients tried again {again:,} times"
    yield from unpriced_lines(row.kinds)


MIXTURE_COLUMNS = ("share", "resume", "mean", "median", "p99", "failed")
"""Of a mixture of an experiment."""


def mixture_tables(results: Results) -> Iterator[Table | str]:
    """Mixtures of an experiment: a table for each and each arrival process, a line a kind and one for all."""
    rows = mixtures(results)
    for row in rows[:MAX_TABLES]:
        table = titled_table(f"Simulated: {mixture_title(row)}")
        for name in NAMES:
            table.add_column(name, no_wrap=True)
        for name in MIXTURE_COLUMNS:
            table.add_column(name, justify="right")
        for cells in mixture_cells(results, row):
            table.add_row(*cells)
        yield table
    if any(row["missing"] for row in rows):
        yield LEGEND["≥"]
    if len(rows) > MAX_TABLES:
        yield f"{len(rows) - MAX_TABLES:,} more mixtures are in the report and the table"


def mixtures(results: Results) -> list[dict[str, Any]]:
    """Fleets of clients of several kinds."""
    return results.fleets.filter(pl.col("unpriced").is_null() & pl.col("mix").is_not_null()).to_dicts()


def mixture_title(row: Mapping[str, Any]) -> str:
    """What all its clients have in common."""
    many = f", {int(row['workers'])} workers" if row["workers"] > 1 else ""
    load = max(row["utilisation"], row["offered"] or 0.0)
    said = f"{count(int(row['clients']), 'client')} of {row['mix']} to {row['server_device']}{many}"
    late = "" if row["rate_per_s"] is not None else f", recovery time {least_time(row, 'recovery_s')}"
    unstable = " unstable" if (row["offered"] or 0.0) >= 1.0 else ""
    return f"{said}, {row['arrivals']}: utilisation {share(load)}{unstable}{late}"


def mixture_cells(results: Results, row: Mapping[str, Any]) -> Iterator[list[str]]:
    """A line a kind, and one for all."""
    kinds = results.fleet_kinds.filter(pl.col("scenario") == row["scenario"]).sort("item").to_dicts()
    for one in kinds:
        resumes = share(one["resumption"]) if one["resumption"] else NOTHING
        yield [*(one[name] for name in NAMES), share(one["share"]), resumes, *_mixture_times(one)]
    yield ["all", "", "", share(1.0), "", *_mixture_times(row)]


def _mixture_times(row: Mapping[str, Any]) -> list[str]:
    rest = (least_time(row, f"handshake_{name}_s") for name in ("p50", "p99"))
    return [mean_time(row), *rest, _failed(int(row["failed"]), int(row["clients"]))]


def _table(row: SimulatedMix, names: Sequence[str], columns: Sequence[str]) -> Table:
    table = figures_table(NAMES, columns)
    for label, one in zip(names, row.kinds, strict=True):
        cells = (_cell(one, name) for name in columns)
        table.add_row(label, one.device, one.bearer, *cells)
    failed = sum(row.failed.values())
    least = any(one.unpriced for one in row.kinds)
    cells = (
        _time(row.ready_s, name, least=least)
        if name in _TIMES
        else {"share": share(1.0), "failed": _failed(failed, row.clients)}.get(name, "")
        for name in columns
    )
    table.add_row("all", "", "", *cells)
    return table


def _cell(one: MixedClients, name: str) -> str:
    if name == "share":
        return share(one.share)
    if name == "resume":
        return share(one.resumption) if one.resumption else NOTHING
    if name == "failed":
        return _failed(one.failed, one.clients)
    return _time(one.ready_s, name, least=bool(one.unpriced))


def _time(found: Spread, name: str, *, least: bool) -> str:
    value = getattr(found, _TIMES[name])
    if value is None:
        return NOTHING
    margin = f" ± {time(found.margin, 2)}" if name == "mean" and found.margin is not None else ""
    return f"{'≥ ' if least else ''}{time(value)}{margin}"


def _failed(failed: int, clients: int) -> str:
    return share(failed / clients, 1) if failed else "none"
