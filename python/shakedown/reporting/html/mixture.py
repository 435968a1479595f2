"""Mixtures of clients in the report: each kind's times at one server, and storms of them over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shakedown.reporting.charts.figure import Figure
from shakedown.reporting.html.section import Block, Section, Table
from shakedown.reporting.html.simulated import arrival_window_s, drawing, lacking, points
from shakedown.reporting.terminal.figures import share
from shakedown.reporting.terminal.mixture import (
    MIXTURE_COLUMNS,
    NAMES,
    mixture_cells,
    mixture_title,
    mixtures,
)
from shakedown.reporting.terminal.simulated import least_time

if TYPE_CHECKING:
    from shakedown.results.folder import Results

MAX_BLOCKS = 40


def mixture_section(results: Results) -> Iterator[Section]:
    """One section; none without mixtures."""
    rows = mixtures(results)
    if not rows:
        return
    blocks = [_block(results, row, number) for number, row in enumerate(rows[:MAX_BLOCKS], start=1)]
    yield Section("mixtures", "Clients of several kinds at one server", _lead(results, rows[0]), blocks)


def _block(results: Results, row: Mapping[str, Any], number: int) -> Block:
    title = mixture_title(row)
    head = [*NAMES, *MIXTURE_COLUMNS]
    caption = (
        f"{title[:1].upper()}{title[1:]}. All arrive in one process and wait in one queue.{lacking([row])}"
    )
    table = Table(head, list(mixture_cells(results, row)), len(MIXTURE_COLUMNS), caption, "simulated")
    if row["width_s"] is None:
        return Block(table=table)
    figure = Figure(
        name=f"mixture-{number}",
        title=f"{row['mix']}: how many are still outside ({row['arrivals']})",
        kind="simulated",
        alternative="An area: clients of all kinds that have arrived and are not in yet, over time",
        define=drawing(results, [row], arrival_window_s(row["arrivals"])),
        data=points(results, row),
        caption="In the shaded time clients arrive; the area is how many of them are not in yet; at the "
        "stroke the last one is.",
    )
    return Block(figure=figure, table=table)


def _lead(results: Results, row: Mapping[str, Any]) -> str:
    kinds = results.fleet_kinds.filter(results.fleet_kinds["scenario"] == row["scenario"]).to_dicts()
    known = [one for one in kinds if one["handshake_mean_s"] is not None]
    if not known:
        return ""
    slow = max(known, key=lambda one: float(one["handshake_mean_s"]))
    return (
        f"Of {row['mix']}'s clients those of {slow['suite']} on {slow['device']} over {slow['bearer']} "
        f"({share(slow['share'])}) take longest: {least_time(slow, 'handshake_mean_s')} on average."
    )
