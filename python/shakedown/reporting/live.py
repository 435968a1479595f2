"""Live loads in the report: what clients saw, and live beside modelled and simulated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shakedown.charts.figure import Figure
from shakedown.charts.ways import Way, ways
from shakedown.reporting.section import Block, Section, Table
from shakedown.terminal.figures import rate, time
from shakedown.terminal.loads import (
    FIGURES,
    compared_rows,
    comparison_cells,
    live_figure_s,
    load_cells,
    off,
)

if TYPE_CHECKING:
    from shakedown.results.folder import Results

Row = Mapping[str, Any]

MAX_SHOWN = 12
"""Loads of the figure; the table has the others."""
MAX_LINES = 400


def sections(results: Results) -> Iterator[Section]:
    """One section; none without loads."""
    rows = results.loads.to_dicts()
    if not rows:
        return
    compared = compared_rows(results)
    blocks = [Block(table=_load_table(rows))]
    if compared:
        blocks.append(_comparison(compared))
    yield Section("live", "Live: real sockets under load", _lead(compared), blocks)


def _lead(compared: Sequence[Row]) -> str:
    where = "A server and a load generator on this machine, over its loopback"
    own = all(row["own_core"] for row in compared)
    said = f"{where}{', each on cores of its own' if compared and own else ''}."
    distances = [
        (off(row[f"{kind}_server_cpu_s"], live_figure_s(row, "server_cpu")), row, kind)
        for row in compared
        for kind in ("modelled",)
        if row[f"{kind}_server_cpu_s"] is not None
    ]
    if distances:
        distance, row, kind = distances[0]
        live = time(live_figure_s(row, "server_cpu"))
        said += (
            f" A handshake of {row['label']} took the server {live} of CPU time; {kind} from its times in "
            f"memory it is {time(row[f'{kind}_server_cpu_s'])} ({distance})."
        )
    return said


def _load_table(rows: Sequence[Row]) -> Table:
    head = [
        "suite", "arrivals", "rate", "completed", "failed", "resumed", "mean", "median", "99 % within",
        "server CPU", "load",
    ]  # fmt: skip
    cells = [[row["label"], row["arrivals"], *load_cells(row)] for row in rows[:MAX_LINES]]
    caption = (
        "Handshake times count from the planned start. Server CPU: time of its threads for one handshake, "
        "the kernel's work on sockets included. Load: share of time that its stack worked."
    )
    causes = [f"{row['label']}: {row['causes']}" for row in rows if row["failed"]]
    if causes:
        caption += f" Failed: {'; '.join(causes[:10])}."
    saturated = [row["label"] for row in rows if row["saturated"]]
    if saturated:
        caption += f" The generator was the bottleneck: {', '.join(dict.fromkeys(saturated[:10]))}."
    return Table(head, cells, 9, caption, "live")


def _comparison(rows: Sequence[Row]) -> Block:
    shown = [
        Way(
            label=f"{row['label']} at {rate(row['rate'])}/s: {words}",
            times_ms={
                kind: value_s * 1e3
                for kind, value_s in (
                    ("live", live_figure_s(row, key)),
                    ("modelled", row[f"modelled_{key}_s"]),
                    ("simulated", row[f"simulated_{key}_s"]),
                )
                if value_s is not None and value_s > 0.0
            },
        )
        for row in rows[:MAX_SHOWN]
        for key, words in FIGURES.items()
    ]
    drawn = [way for way in shown if way.times_ms]
    head = ["suite", "figure", "live", "modelled", "off", "simulated", "off"]
    table = Table(
        head, [cells for row in rows for cells in comparison_cells(row)][:MAX_LINES], 5, kind="live"
    )
    if not drawn:
        return Block(table=table)
    figure = Figure(
        name="live-beside-modelled-and-simulated",
        title="The same modelled, simulated and live",
        kind="live",
        alternative="A row for each suite and figure: its live, modelled and simulated mean",
        define=lambda width: ways(drawn, "ms, logarithmic", width),
        data=[flat for row in rows for flat in _flat(row)],
        caption=(
            "Modelled and simulated start from the times that the handshake took in memory here. The "
            "kernel's work on sockets is in the live CPU and handshake times alone; the stack's time is by "
            "the clock on the wall, so on a busy machine it holds interruptions too. The live wait is the "
            "difference between the means under load and without a queue, and left out where noise made it "
            "negative."
        ),
    )
    return Block(figure=figure, table=table, folded_table="In figures")


def _flat(row: Row) -> Iterator[dict[str, Any]]:
    for key in FIGURES:
        yield {
            "suite": row["label"],
            "rate_per_s": row["rate"],
            "utilisation": row["utilisation"],
            "figure": key,
            "live_s": live_figure_s(row, key),
            "modelled_s": row[f"modelled_{key}_s"],
            "simulated_s": row[f"simulated_{key}_s"],
            "formula_wait_s": row["formula_wait_s"] if key == "wait" else None,
        }
