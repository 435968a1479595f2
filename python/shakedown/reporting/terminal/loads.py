"""Live loads of an experiment on a terminal: a line each, and beside what was modelled and simulated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shakedown.reporting.terminal.figures import NOTHING, rate, share, time, whole
from shakedown.reporting.terminal.tables import titled_table

if TYPE_CHECKING:
    from rich.table import Table

    from shakedown.results.folder import Results

MAX_LINES = 200
FIGURES = {
    "server_cpu": "server: CPU, with kernel",
    "server_busy": "server: stack's time",
    "handshake": "handshake",
    "wait": "wait at the server",
}
"""What is compared, in the words of a reader."""

_LIVE = {"server_cpu": "server_cpu_s", "server_busy": "busy_mean_s", "wait": "wait_s"}


def load_tables(results: Results) -> Iterator[Table | str]:
    """All loads, a line each; what failed, by cause."""
    rows = results.loads.to_dicts()
    if not rows:
        return
    table = titled_table("Live: a server on this machine's loopback under load")
    table.add_column("suite", no_wrap=True)
    for name in ("rate", "completed", "failed", "resumed", "mean", "p50", "p99", "server CPU", "utilisation"):
        table.add_column(name, justify="right")
    for row in rows[:MAX_LINES]:
        table.add_row(row["label"], *load_cells(row))
    yield table
    for row in rows:
        if row["failed"]:
            yield f"{row['label']}: failed: {row['causes']}"
    if len(rows) > MAX_LINES:
        yield f"{len(rows) - MAX_LINES:,} more loads are in the report and the table"


def load_cells(row: Mapping[str, Any]) -> list[str]:
    """A load's figures behind its suite."""
    asked = row["resumed_asked"]
    return [
        f"{rate(row['rate'])}/s",
        whole(row["completed"]),
        share(row["failed"] / row["planned"], 1) if row["failed"] else "none",
        share(row["resumed_confirmed"] / asked) if asked else NOTHING,
        *(time(row[f"handshake_{name}_s"]) for name in ("mean", "p50", "p99")),
        time(row["server_cpu_s"]),
        NOTHING if row["utilisation"] is None else share(row["utilisation"]),
    ]


def comparison_tables(results: Results) -> Iterator[Table | str]:
    """Live beside modelled and simulated, with how far these are off."""
    rows = compared_rows(results)
    kinds = compared_kinds(rows)
    lines = [cells for row in rows for cells in comparison_cells(row, kinds)]
    if not lines:
        return
    table = titled_table("The same modelled, simulated and live (means)")
    for name in ("suite", "figure"):
        table.add_column(name, no_wrap=True)
    for name in comparison_head(kinds):
        table.add_column(name, justify="right")
    for cells in lines[: 4 * MAX_LINES]:
        table.add_row(*cells)
    yield table


def compared_rows(results: Results) -> list[dict[str, Any]]:
    """Loads that were also modelled or simulated."""
    return [row for row in results.loads.to_dicts() if row["unloaded_s"] is not None]


def compared_kinds(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """What live figures are compared with."""
    engines = any(row["endpoints"] is not None for row in rows)
    return ("modelled", "simulated", *(("endpoints",) if engines else ()))


def comparison_head(kinds: Sequence[str]) -> list[str]:
    """The columns of `comparison_cells` behind suite and figure."""
    return ["live", *(name for kind in kinds for name in ({"endpoints": "engines"}.get(kind, kind), "off"))]


def comparison_cells(row: Mapping[str, Any], kinds: Sequence[str]) -> Iterator[list[str]]:
    """A line for each figure of a load; last the wait by formula from the server's own busy times."""
    name = f"{row['label']} at {rate(row['rate'])}/s"
    for key, words in FIGURES.items():
        live_s = live_figure_s(row, key)
        cells = [name, words, signed(live_s)]
        for kind in kinds:
            value_s = row[f"{kind}_{key}_s"]
            cells += [time(value_s), off(value_s, live_s)]
        yield cells
        name = ""
    live_s = row["wait_s"]
    words = "… from server's stack times"
    rest = [NOTHING] * (2 * len(kinds) - 2)
    yield ["", words, "", time(row["formula_wait_s"]), off(row["formula_wait_s"], live_s), *rest]


def live_figure_s(row: Mapping[str, Any], key: str) -> float | None:
    """The live mean of a compared figure; that of the handshake without the generator's lateness."""
    if key != "handshake":
        found = row[_LIVE[key]]
        return None if found is None else float(found)
    if row["handshake_mean_s"] is None or row["lateness_mean_s"] is None:
        return None
    return float(row["handshake_mean_s"] - row["lateness_mean_s"])


def signed(value_s: float | None) -> str:
    """A time that noise can make negative."""
    return time(value_s) if value_s is None or value_s >= 0.0 else f"−{time(-value_s)}"


def off(value_s: float | None, live_s: float | None) -> str:
    """How far a figure is off the live one; nothing to be off where that is not above 0."""
    if value_s is None or live_s is None or live_s <= 0.0:
        return NOTHING
    return f"{100.0 * (value_s / live_s - 1.0):+.0f}%"
