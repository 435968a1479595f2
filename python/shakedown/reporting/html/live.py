"""Live loads in the report: the clients' times, and comparisons with modelled and simulated ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from shakedown.reporting.charts.dot_plot import FigureByMethod, dot_plot
from shakedown.reporting.charts.figure import Figure
from shakedown.reporting.charts.sides import Segment, stacked_bars
from shakedown.reporting.charts.theme import FILLS, INK
from shakedown.reporting.columns import MAX_ROWS, Row
from shakedown.reporting.columns.live import LOADS, load_row
from shakedown.reporting.figures import rate, time
from shakedown.reporting.html.section import Block, Section, Table
from shakedown.reporting.html.tables import html_table
from shakedown.reporting.terminal.loads import (
    FIGURES,
    compared_rows,
    comparison,
    live_figure_s,
    off_share,
    percent,
)

if TYPE_CHECKING:
    from shakedown.results.folder import Results

MAX_SHOWN = 12
"""Loads in the figure; the table also contains the others."""


def sections(results: Results) -> Iterator[Section]:
    rows = results.loads.to_dicts()
    if not rows:
        return
    compared = compared_rows(results)
    blocks = [Block(table=_load_table(rows))]
    if compared:
        blocks.append(_comparison(compared))
    blocks += _time_spent(results)
    yield Section("live", "Live: real sockets under load", _lead(compared), blocks)


def _lead(compared: Sequence[Row]) -> str:
    where = "A server and a load generator on this machine, over its loopback"
    own = all(row["own_core"] for row in compared)
    said = f"{where}{', each on cores of its own' if compared and own else ''}."
    row = next((row for row in compared if row["modelled_server_cpu_s"] is not None), None)
    if row is not None:
        live_s, modelled_s = live_figure_s(row, "server_cpu"), row["modelled_server_cpu_s"]
        said += (
            f" A handshake of {row['label']} took the server {time(live_s)} of CPU time; modelled from its "
            f"times in memory it is {time(modelled_s)} ({percent(off_share(modelled_s, live_s))})."
        )
    return said


def _load_table(rows: Sequence[dict[str, Any]]) -> Table:
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
    return html_table(LOADS, [load_row(row) for row in rows], caption, "live", MAX_ROWS)


_LOOKS = {
    "live": ("circle", FILLS["key"].light),
    "modelled": ("diamond", FILLS["signature"].light),
    "simulated": ("triangle-up", INK),
    "engines in virtual time": ("triangle-down", FILLS["busy"].light),
}


def _comparison(rows: Sequence[Row]) -> Block:
    shown = [
        FigureByMethod(
            label=f"{row['label']} at {rate(row['rate'])}/s: {words}",
            times_ms={
                kind: value_s * 1e3
                for kind, value_s in (
                    ("live", live_figure_s(row, key)),
                    ("modelled", row[f"modelled_{key}_s"]),
                    ("simulated", row[f"simulated_{key}_s"]),
                    ("engines in virtual time", row[f"endpoints_{key}_s"]),
                )
                if value_s is not None and value_s > 0.0
            },
        )
        for row in rows[:MAX_SHOWN]
        for key, words in FIGURES.items()
    ]
    drawn = [row for row in shown if row.times_ms]
    table = html_table(*comparison(rows), kind="live")
    if not drawn:
        return Block(table=table)
    figure = Figure(
        name="live-beside-modelled-and-simulated",
        title="Live, modelled and simulated",
        kind="live",
        alternative="A row for each suite and figure: its live, modelled and simulated mean",
        define=lambda width: dot_plot(drawn, _LOOKS, "ms, logarithmic", width),
        data=[flat for row in rows for flat in _flat(row)],
        caption=(
            "Modelled and simulated use the handshake's times in memory on this machine"
            + (
                ", and the connection cost from this machine's profile. "
                if all(row["modelled_connection_s"] is not None for row in rows)
                else ". If this machine's profile has no connection cost, or there is no profile, only the "
                "live CPU and handshake times include this cost. "
            )
            + "The stack's time is wall-clock time, so on a busy machine it includes preemptions. The live "
            "wait is the difference between the means under load and without a queue; it is omitted if noise "
            "made it negative."
        ),
    )
    return Block(figure=figure, table=table, folded_table="In figures")


PARTS = {
    "cryptography": ("cryptography", "key"),
    "other": ("other code", "busy"),
    "waited": ("waiting", "hello"),
}
"""The parts of a side's time for a message: texts, and looks."""


def _time_spent(results: Results) -> Iterator[Block]:
    """A figure for each sampled load, and for each of its clients."""
    found: dict[tuple[str, str | None], list[Row]] = {}
    for row in results.load_steps.to_dicts():
        found.setdefault((row["scenario"], row["device"]), []).append(row)
    for number, ((_, device), rows) in enumerate(list(found.items())[:MAX_SHOWN]):
        who = "this machine's client" if device is None else f"a client as slow as {device}"
        label = rows[0]["label"]
        yield Block(figure=_spent_figure(f"time-spent-{number + 1}", f"{label}: {who}", rows))


def _spent_figure(name: str, title: str, rows: Sequence[Row]) -> Figure:
    def step(row: Row) -> str:
        if row["message"] is None:
            return "connection, and no message"
        # Messages of the same name are distinguished by their number.
        return f"{row['message_index'] + 1} {'→' if row['sender'] == 'client' else '←'} {row['message']}"

    segments, totals = [], []
    ordered = sorted(rows, key=lambda row: -1 if row["message_index"] is None else row["message_index"])
    by_place = {(row["message_index"], row["side"]): row for row in ordered}
    for index in dict.fromkeys(row["message_index"] for row in ordered):
        for side in ("client", "server"):
            row = by_place.get((index, side))
            parts = {key: (row or {}).get(f"{key}_us") or 0.0 for key in PARTS}
            totals.append(time(sum(parts.values()) * 1e-6))
            shown = row or next(one for one in ordered if one["message_index"] == index)
            for key, (words, look) in PARTS.items():
                segments.append(Segment(step(shown), side, words, look, parts[key] / 1000))
    return Figure(
        name=name,
        title=f"Where the time goes: {title}",
        kind="live",
        alternative="Stacked bars: each side's time for each message: cryptography, other code, waiting",
        define=lambda width: stacked_bars(segments, totals, "ms (mean)", width),
        data=[
            {
                **{
                    key: row[key]
                    for key in ("label", "device", "side", "message_index", "message", "sender", "n")
                },
                **{f"{key}_us": row[f"{key}_us"] for key in PARTS},
                "kind": "live",
            }
            for row in ordered
        ],
        caption=(
            f"Means of {rows[0]['n']:,} handshakes sampled on both sides, without a queue. Waiting is the "
            "time outside a side's own work until the message arrived: the other side, the path, the kernel. "
            "One side's waiting is mostly the other's work. An emulated device's work is slowed down, its "
            "waiting is not."
        ),
    )


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
            "endpoints_s": row[f"endpoints_{key}_s"],
            "formula_wait_s": row["formula_wait_s"] if key == "wait" else None,
        }
