"""Live loads of an experiment on a terminal: one line each; comparisons with modelled and simulated ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shakedown.reporting.columns import ALWAYS, Column, Selection, label, seconds
from shakedown.reporting.columns.live import LOADS, load_row
from shakedown.reporting.figures import NOTHING, rate, time
from shakedown.reporting.terminal.listing import listing

if TYPE_CHECKING:
    from shakedown.results.folder import Results

MAX_LINES = 200
FIGURES = {
    "server_cpu": "server: CPU, with kernel",
    "server_busy": "server: stack's time",
    "handshake": "handshake",
    "wait": "wait at the server",
}
"""The names of the compared figures."""

_LIVE = {"server_cpu": "server_cpu_s", "server_busy": "busy_mean_s", "wait": "wait_s"}


def load_tables(results: Results, width: int) -> Iterator[str]:
    """All loads, one line each, and failures by cause."""
    rows = results.loads.to_dicts()
    if not rows:
        return
    notes = [f"{row['label']}: failed: {row['causes']}" for row in rows if row["failed"]]
    if len(rows) > MAX_LINES:
        notes.append(f"{len(rows) - MAX_LINES:,} more loads are in the report and the table")
    title = "live: a server on this machine's loopback under load"
    some = [load_row(row) for row in rows[:MAX_LINES]]
    yield from listing(LOADS, some, Selection(), title=title, notes=notes, width=width)


def comparison_tables(results: Results, width: int) -> Iterator[str]:
    """Live figures next to modelled and simulated ones, with the deviations of these."""
    columns, rows = comparison(compared_rows(results))
    if rows:
        yield from listing(columns, rows[: 4 * MAX_LINES], Selection(), title=COMPARED_TITLE, width=width)


COMPARED_TITLE = "live, modelled and simulated (means)"


def comparison(rows: Sequence[Mapping[str, Any]]) -> tuple[Sequence[Column], list[dict[str, Any]]]:
    """Live figures of loads beside modelled and simulated ones: columns and rows."""
    kinds = compared_kinds(endpoints=any(row["endpoints"] is not None for row in rows))
    return compared_columns(kinds), [one for row in rows for one in _compared(row, kinds)]


def compared_rows(results: Results) -> list[dict[str, Any]]:
    """Loads that were also modelled or simulated."""
    return [row for row in results.loads.to_dicts() if row["unloaded_s"] is not None]


def compared_kinds(*, endpoints: bool) -> tuple[str, ...]:
    """The kinds of figures with which live ones are compared."""
    return ("modelled", "simulated", *(("endpoints",) if endpoints else ()))


def compared_columns(kinds: Sequence[str]) -> Sequence[Column]:
    """The suite once, above its figures; live figures, and the deviations of the others."""
    others = [
        column
        for kind in kinds
        for column in (
            seconds(f"{kind}_s", {"endpoints": "engines"}.get(kind, kind), rank=ALWAYS),
            Column(key=f"{kind}_off", name="diff", unit="1", rank=ALWAYS, show=percent),
        )
    ]
    return (
        label("suite", "suite", text=lambda row: row["suite"] if row["is_first"] else ""),
        label("figure", "figure"),
        Column(key="live_s", name="live", unit="s", rank=ALWAYS, show=signed),
        *others,
    )


def _compared(row: Mapping[str, Any], kinds: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A row for each figure of a load; the last is the wait by formula from the server's own busy times."""
    suite = {"suite": f"{row['label']} at {rate(row['rate'])}/s"}
    for number, (key, words) in enumerate(FIGURES.items()):
        live_s = live_figure_s(row, key)
        found: dict[str, Any] = {**suite, "is_first": not number, "figure": words, "live_s": live_s}
        for kind in kinds:
            found[f"{kind}_s"] = row[f"{kind}_{key}_s"]
            found[f"{kind}_off"] = off_share(row[f"{kind}_{key}_s"], live_s)
        yield found
    formula_s = row["formula_wait_s"]
    yield {
        **suite, "is_first": False, "figure": "… from stack's times", "live_s": None,
        "modelled_s": formula_s, "modelled_off": off_share(formula_s, row["wait_s"]),
    }  # fmt: skip


def live_figure_s(row: Mapping[str, Any], key: str) -> float | None:
    """The live mean of a compared figure; for the handshake, without the generator's lateness."""
    if key != "handshake":
        found = row[_LIVE[key]]
        return None if found is None else float(found)
    if row["handshake_mean_s"] is None or row["lateness_mean_s"] is None:
        return None
    return float(row["handshake_mean_s"] - row["lateness_mean_s"])


def signed(value_s: float | None) -> str:
    """A time that noise can make negative."""
    return time(value_s) if value_s is None or value_s >= 0.0 else f"−{time(-value_s)}"


def off_share(value_s: float | None, live_s: float | None) -> float | None:
    """The relative deviation of a figure from the live one; None if that is not above 0."""
    return None if value_s is None or live_s is None or live_s <= 0.0 else value_s / live_s - 1.0


def percent(off: float | None) -> str:
    return NOTHING if off is None else f"{100.0 * off:+.0f}%"
