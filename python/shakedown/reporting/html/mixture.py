"""Mixtures of clients in the report: each kind's times at one server, and storms of them over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shakedown.reporting.charts.figure import Figure
from shakedown.reporting.columns.notes import key_shares
from shakedown.reporting.columns.simulated import CLIENTS
from shakedown.reporting.figures import share
from shakedown.reporting.html.bounds import lacking, least_time
from shakedown.reporting.html.fleet_series import arrival_window_s, kind_points, kinds_drawing
from shakedown.reporting.html.section import Block, Section
from shakedown.reporting.html.tables import html_table
from shakedown.reporting.terminal.fleets import mixture_rows, mixture_title, mixtures

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
    kinds = mixture_rows(results, row)
    caption = (
        f"{title[:1].upper()}{title[1:]}. All arrive in one process and wait in one queue.{lacking([row])}"
    ) + "".join(f" {one}." for one in key_shares(kinds))
    table = html_table(CLIENTS, kinds, caption, "simulated")
    if row["width_s"] is None:
        return Block(table=table)
    series = kind_points(results, row, _kinds(results, row))
    figure = Figure(
        name=f"mixture-{number}",
        title=f"{row['mix']}: clients not yet ready ({row['arrivals']})",
        kind="simulated",
        alternative="An area for each kind: clients that have arrived and are not yet ready, over time",
        define=kinds_drawing(series, arrival_window_s(row["arrivals"])),
        data=[point for _, found in series for point in found],
        caption="Clients arrive during the shaded time. The area is the number of clients of a kind that are "
        "not yet ready, by what they wait for; the line is the end of the interval in which the last one is.",
    )
    return Block(figure=figure, table=table)


def _kinds(results: Results, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = results.fleet_kinds.filter(results.fleet_kinds["scenario"] == row["scenario"])
    return found.sort("item").to_dicts()


def _lead(results: Results, row: Mapping[str, Any]) -> str:
    known = [one for one in _kinds(results, row) if one["handshake_mean_s"] is not None]
    if not known:
        return ""
    slow = max(known, key=lambda one: float(one["handshake_mean_s"]))
    return (
        f"Of {row['mix']}'s clients those of {slow['suite']} on {slow['device']} over {slow['bearer']} "
        f"({share(slow['share'])}) take longest: {least_time(slow, 'handshake_mean_s')} on average."
    )
