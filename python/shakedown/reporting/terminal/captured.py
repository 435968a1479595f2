"""Captures of an experiment on a terminal: what connections there were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from shakedown.reporting.terminal.figures import NOTHING, count, time, whole, yes_no
from shakedown.reporting.terminal.tables import titled_table
from shakedown.results import queries

if TYPE_CHECKING:
    from rich.console import RenderableType

    from shakedown.results.folder import Results

MAX_KINDS_SHOWN = 12


def kind_name(kind: Mapping[str, Any]) -> str:
    """What connections of a kind spoke: suite, else protocol and cipher as far as they were visible."""
    if kind["suite"]:
        return str(kind["suite"])
    return " ".join(str(kind[name]) for name in ("protocol", "cipher") if kind[name]) or "unknown"


def captures_tables(results: Results) -> Iterator[RenderableType]:
    """A table for each capture: its connections by kind."""
    kinds = queries.capture_kinds(results.source)
    for capture in queries.captures(results.source).to_dicts():
        rows = kinds.filter(pl.col("scenario") == capture["scenario"]).to_dicts()
        if not rows:
            continue
        table = titled_table(
            f"Captured in {capture['capture']}: {count(capture['connections'], 'connection')}"
        )
        for heading in ("connections of", "number", "complete", "resumed", "bytes", "handshake takes"):
            left = heading == "connections of"
            table.add_column(heading, justify="left" if left else "right", no_wrap=left)
        for kind in rows[:MAX_KINDS_SHOWN]:
            table.add_row(*kind_cells(kind))
        rest = len(rows) - MAX_KINDS_SHOWN
        if rest > 0:
            table.caption = f"{rest} more kinds are in the report"
        yield table


def kind_cells(kind: Mapping[str, Any]) -> list[str]:
    """One kind as cells: name, number, complete, resumed, bytes, time."""
    timed = kind["mean_s"] is not None
    return [
        kind_name(kind),
        whole(kind["count"]),
        yes_no(kind["complete"]),
        yes_no(kind["resumed"]),
        _between(whole(kind["low_bytes"]), whole(kind["high_bytes"])),
        _between(time(kind["low_s"], 2), time(kind["high_s"], 2)) if timed else NOTHING,
    ]


def _between(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
