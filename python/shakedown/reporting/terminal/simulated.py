"""Simulated fleets on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl
from msgspec import UNSET

from shakedown.reporting.terminal.figures import LEGEND, NOTHING, count, energy, no_figure, rate, share, time
from shakedown.reporting.terminal.tables import figures_table, fitted, titled_table
from shakedown.schema.simulated import (
    Endpoints,
    FailedSimulatedCapacity,
    FailedSimulation,
    MixedClients,
    Simulated,
    SimulatedCapacity,
    SimulatedMix,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from shakedown.results.folder import Results

MAX_TABLES = 20
"""Tables of an experiment's fleets; the report and the table have the others."""

COLUMNS = (
    "mean",
    "median",
    "p95",
    "p99",
    "max",
    "queue wait",
    "utilisation",
    "failed",
    "recovery time",
    "energy",
)
SHORT = ("median", "p99", "utilisation", "failed", "recovery time")

UNSTABLE = (
    "unstable: more work arrives than the workers can do; times grow for as long as clients come, "
    "and say as much of their number as of the server"
)


def heading(rows: Sequence[Simulated | FailedSimulation]) -> str:
    """What all rows have in common."""
    one = next(row for row in rows if isinstance(row, Simulated))
    many = f", {one.workers} workers" if one.workers > 1 else ""
    resumed = f", {share(one.resumption)} of them resume" if one.resumption else ""
    return (
        f"simulated: {one.device} over {one.bearer} to {one.server_device}{many}; "
        f"{count(one.clients, 'client')}, {one.arrivals}{resumed}, seed {one.seed}"
    )


def fleet_tables(rows: Sequence[Simulated | FailedSimulation], width: int) -> Iterator[RenderableType]:
    """Fleets for people: tables in the widest form that fits, what is guessed, and what failed."""
    good = [row for row in rows if isinstance(row, Simulated)]
    steady = all(row.rate_per_s is not None for row in good)
    left_out = {"recovery time" if steady else "mean"}
    if not any(row.energy_j.n for row in good):
        left_out.add("energy")
    whole, short = ([name for name in form if name not in left_out] for form in (COLUMNS, SHORT))
    names = [row.suite for row in good]
    yield from fitted(lambda *labels: _table(good, *labels), names, whole, short, width)
    yield from _remarks(good)
    for row in rows:
        if isinstance(row, FailedSimulation):
            yield f"{row.suite}: {row.error}"


def _table(rows: Sequence[Simulated], names: Sequence[str], columns: Sequence[str]) -> Table:
    table = figures_table(["suite"], columns)
    for name, row in zip(names, rows, strict=True):
        table.add_row(name, *(_cell(row, column) for column in columns))
    return table


def _cell(row: Simulated, name: str) -> str:
    found = row.ready_s
    least = "≥ " if row.unpriced else ""
    if name == "mean":
        margin = "" if found.margin is None else f" ± {time(found.margin, 2)}"
        return f"{least}{time(found.mean)}{margin}"
    if name in ("median", "p95", "p99", "max"):
        shares = (found.p50, found.p95, found.p99, found.max)
        value = shares[COLUMNS.index(name) - COLUMNS.index("median")]
        return least + time(value) if value is not None else NOTHING
    if name == "queue wait":
        return time(row.queue_wait_s.mean, 2)
    if name == "utilisation":
        load = row.utilisation if row.offered is None else max(row.offered, row.utilisation)
        return f"{share(load)}{' unstable' if row.unstable else ''}"
    if name == "failed":
        return share(sum(row.failed.values()) / row.clients, 1) if row.failed else "none"
    if name == "recovery time":
        return NOTHING if row.failed else time(row.recovery_s)
    return least_energy(row)


def least_energy(row: Simulated | SimulatedMix) -> str:
    """The mean energy of a client; ≥ where a part is missing."""
    return f"{'≥ ' if row.energy_missing else ''}{energy(row.energy_j.mean)}"


def energy_lines(rows: Sequence[Simulated | SimulatedMix], bearers: Iterable[str]) -> Iterator[str]:
    """What energies lack; over bearers on which no client began idle also the radio's set-up."""
    from shakedown.profiles import bearer_names, load_bearer

    without = dict.fromkeys(part for row in rows for part in row.energy_missing)
    listed = set(bearer_names())  # a profile given by its path is not among them
    setups = [one for one in bearers if one in listed and load_bearer(one).energy.setup_j]
    if setups:
        without[f"the radio's set-up over {', '.join(setups)} (no client begins idle)"] = None
    if without:
        yield "energy without " + ", ".join(without)


def _remarks(rows: Sequence[Simulated]) -> Iterator[str]:
    unstable = [row for row in rows if row.unstable]
    if unstable:
        yield UNSTABLE
    for row in rows:
        if row.failed:
            last = row.completed and row.rate_per_s is None
            late = f"; recovery time {time(row.recovery_s)}" if last else ""
            yield f"{row.suite}: failed: {failures(row.failed)}{late}"
        again = row.attempts - row.clients - row.warmup_clients * row.replications
        if row.retries and again > 0:
            yield f"{row.suite}: clients tried again {again:,} times"
    for row in rows:
        if row.endpoints is not UNSET:
            yield _agreement(row, row.endpoints)
    known = [row for row in rows if row.modelled is not None]
    if known:
        yield "by formula: " + "; ".join(_formula(row) for row in known)
    yield from unpriced_lines(rows)
    spent = [row for row in rows if row.energy_j.n]
    yield from energy_lines(spent, {row.bearer: None for row in spent if not row.from_idle})


def failures(failed: Mapping[str, int]) -> str:
    """How many failed, by cause."""
    return ", ".join(f"{CAUSES.get(cause, cause)}: {many:,}" for cause, many in failed.items())


def unpriced_lines(rows: Iterable[Simulated | MixedClients]) -> Iterable[str]:
    """A line for each figure that no profile has."""
    return dict.fromkeys(
        no_figure(one.side, one.operation, one.algorithm, one.parameters, one.reason)
        for row in rows
        for one in row.unpriced
    )


def _agreement(row: Simulated, engines: Endpoints) -> str:
    both = engines.client_stack
    if engines.server_stack != both:
        both += f" and {engines.server_stack}"
    said, found = f"{row.suite}: {both} in virtual time", engines.replayed
    if found.mean_ratio is None or found.distance is None or found.critical is None:
        return f"{said}; none came through in both it and the replay"
    agrees = "agree" if found.distance <= found.critical else "differ"
    return (
        f"{said}; replayed, the mean is {100.0 * (found.mean_ratio - 1.0):+.2f} %, and distributions "
        f"{agrees}: {found.distance:.3f} apart, at 1 % at most {found.critical:.3f}"
    )


def _formula(row: Simulated) -> str:
    found = row.modelled
    assert found is not None
    if found.ready_s is None:
        return f"{row.suite} has no steady state"
    turns = found.flights_queue_wait_s
    apart = "" if turns is None else f" ({time(turns, 2)} with each flight queueing by itself)"
    return f"{row.suite} {time(found.ready_s)}, waits {time(found.queue_wait_s, 2)}{apart}"


CAUSES = {
    "timeout": "out of patience",
    "connect": "no answer to any SYN",
    "transport": "retransmissions exhausted",
    "reset": "reset",
    "lost": "lost",
}


def simulated_tables(results: Results, width: int) -> Iterator[RenderableType]:
    """Fleets of an experiment: a table for each place and arrival process, a line a suite."""
    rows = results.fleets.filter(pl.col("unpriced").is_null() & pl.col("mix").is_null()).to_dicts()
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        place = (row["arrivals"], row["device"], row["bearer"], row["server_device"], str(row["clients"]))
        groups.setdefault(place, []).append(row)
    for (arrivals, device, bearer, server, _), fleet in list(groups.items())[:MAX_TABLES]:
        clients = count(int(fleet[0]["clients"]), "client")
        title = f"Simulated: {clients}, {arrivals}: {device} over {bearer} to {server}"
        steady = fleet[0]["rate_per_s"] is not None
        columns = ("mean", "p99", "by formula", "utilisation") if steady else ("median", "p99", "utilisation")
        table = titled_table(title)
        table.add_column("suite", no_wrap=True)
        for name in (*columns, "failed", *(() if steady else ("recovery time",))):
            table.add_column(name, justify="right")
        for row in fleet:
            table.add_row(row["label"], *_cells(row, steady=steady))
        yield table
    if any(row["missing"] for row in rows):
        yield LEGEND["≥"]
    if len(groups) > MAX_TABLES:
        yield f"{len(groups) - MAX_TABLES:,} more fleets are in the report and the table"
    missing = results.fleets.filter(pl.col("unpriced").is_not_null())
    reasons = list(dict.fromkeys(f"{row['label']}: {row['unpriced']}" for row in missing.to_dicts()))
    yield from (f"not simulated: {reason}" for reason in reasons[:MAX_TABLES])
    if len(reasons) > MAX_TABLES:
        yield f"not simulated: {len(reasons) - MAX_TABLES:,} more fleets, as the report says"


def _cells(row: dict[str, Any], *, steady: bool) -> list[str]:
    load = max(row["utilisation"], row["offered"] or 0.0)
    busy = share(load) + (" unstable" if (row["offered"] or 0.0) >= 1.0 else "")
    failed = share(row["failed"] / row["clients"], 1) if row["failed"] else "none"
    if not steady:
        median, late = (least_time(row, f"handshake_{name}_s") for name in ("p50", "p99"))
        return [median, late, busy, failed, NOTHING if row["failed"] else least_time(row, "recovery_s")]
    late, formula = (least_time(row, f"{name}_s") for name in ("handshake_p99", "modelled_handshake"))
    return [mean_time(row), late, formula, busy, failed]


def least_time(row: Mapping[str, Any], key: str, digits: int = 3) -> str:
    """A saved fleet's time; ≥ where a part of its work has no figure."""
    return f"{'≥ ' if row['missing'] and row[key] is not None else ''}{time(row[key], digits)}"


def mean_time(row: Mapping[str, Any]) -> str:
    """A saved fleet's mean handshake, and its margin."""
    margin = row["handshake_margin_s"]
    return least_time(row, "handshake_mean_s") + ("" if margin is None else f" ± {time(margin, 2)}")


def capacity_heading(rows: Sequence[SimulatedCapacity | FailedSimulatedCapacity]) -> str:
    """What all rows have in common."""
    one = next(row for row in rows if isinstance(row, SimulatedCapacity))
    promise = "the mean" if one.percentile is None else f"{one.percentile:g} % of handshakes"
    return (
        f"simulated: {promise} within {time(one.within_s)}: {one.device} over {one.bearer} to "
        f"{one.server_device}, workers: {one.workers}, seed {one.seed}"
    )


CAPACITY = ("handshakes/s", "by formula", "utilisation", "mean", "p99")


def capacity_tables(
    rows: Sequence[SimulatedCapacity | FailedSimulatedCapacity], width: int
) -> Iterator[RenderableType]:
    """Highest rates for people."""
    good = [row for row in rows if isinstance(row, SimulatedCapacity)]
    names = [row.suite for row in good]
    yield from fitted(lambda *labels: _capacity_table(good, *labels), names, CAPACITY, CAPACITY, width)
    for row in rows:
        if isinstance(row, FailedSimulatedCapacity):
            yield f"{row.suite}: {row.error}"


def _capacity_table(rows: Sequence[SimulatedCapacity], names: Sequence[str], columns: Sequence[str]) -> Table:
    table = figures_table(["suite"], columns)
    for name, row in zip(names, rows, strict=True):
        found = row.done_s
        most = "≤ " if row.unpriced else ""
        words = {None: "no server cost is known", 0.0: "unreachable"}
        cells = {
            "handshakes/s": words.get(row.rate_per_s) or f"{most}{rate(row.rate_per_s)}",
            "by formula": rate(row.modelled_rate_per_s),
            "utilisation": share(row.utilisation),
            "mean": NOTHING if found is None else time(found.mean),
            "p99": NOTHING if found is None else time(found.p99),
        }
        table.add_row(name, *(cells[column] for column in columns))
    return table
