"""Predictions in the report: handshakes by device and bearer, and the server's queue."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from shakedown.reporting.charts.figure import Figure
from shakedown.reporting.charts.map import time_map
from shakedown.reporting.charts.queue import queue_curves, rates_drawn
from shakedown.reporting.columns import MAX_ROWS, WIDE, Row
from shakedown.reporting.columns.capacity import none_suffices
from shakedown.reporting.columns.flat import marked_figure
from shakedown.reporting.columns.modelled import PREDICTIONS, saved_prediction
from shakedown.reporting.columns.notes import key_shares
from shakedown.reporting.figures import (
    NOTHING,
    bounded,
    legend,
    marked,
    marked_rate,
    marked_time,
    share,
    time,
    whole,
)
from shakedown.reporting.html.section import Block, Section, Table
from shakedown.reporting.html.tables import html_table
from shakedown.reporting.html.text import Sentence, sentence
from shakedown.results import queries

if TYPE_CHECKING:
    from shakedown.results.folder import Results

MAX_CELLS = 2_000
"""Limit of the cells of a map: above it only the first devices and bearers are drawn; the table has all."""

MAX_RATES_SHOWN = 8

MAX_QUEUES = 100

SATURATED = "saturated"


def sections(results: Results) -> Iterator[Section]:
    yield from predictions_section(results)
    yield from queue_section(results)


def _predictions(results: Results, *, captured: bool) -> pl.DataFrame:
    """Predictions of measured, or of captured handshakes. There may be very many, if there are many rates."""
    there = pl.col("capture").is_not_null()
    return results.predictions.filter(there if captured else ~there)


def _lowest(view: pl.DataFrame) -> list[dict[str, Any]]:
    return view.filter(pl.col("rate_per_s") == pl.col("rate_per_s").min()).to_dicts()


def predictions_section(results: Results) -> Iterator[Section]:
    """The map at the lowest rate, the server's load at each, and what was extrapolated."""
    view = _predictions(results, captured=False)
    without_cost = queries.without_cost(results).filter(pl.col("capture").is_null()).to_dicts()
    if not view.height and not without_cost:
        return
    blocks: list[Block] = []
    lead = "None of them has a cost figure."
    if view.height:
        quiet = _lowest(view)
        rates = view["rate_per_s"].unique().sort().to_list()
        shown, omitted = _that_fit(quiet)
        caption = (
            "Processing on both sides, transmission, and waiting at the server, by the default model. "
            "The stronger the colour, the longer; a lower bound has none. Ranges and all rates: in the CSV."
        )
        caption += _legend(shown)
        caption += "".join(f" {one}." for one in key_shares(quiet))
        if omitted:
            caption += f" {omitted:,} more pairs of device and bearer are in the CSV."
        figure = Figure(
            name="predictions",
            title=f"Handshake time by device and bearer, {_at(rates[0])} at {quiet[0]['server_device']}",
            kind="modelled",
            alternative="Map: rows are suites, columns devices and bearers, cells seconds for one handshake",
            define=lambda width: time_map(shown, width),
            data=_flat(view),
            caption=caption,
        )
        blocks.append(Block(figure=figure))
        some = view.filter(pl.col("rate_per_s").is_in(rates[:MAX_RATES_SHOWN]))
        if len(rates) > 1:
            blocks.append(Block(table=_by_rate(some, rates[:MAX_RATES_SHOWN]), folded_table="By rate"))
        blocks.append(Block(table=_figures(quiet), folded_table="Percentiles, ranges and energy"))
        if view["workers_needed"].count():
            blocks.append(Block(table=_workers(some, rates[:MAX_RATES_SHOWN]), folded_table="Workers needed"))
        if view["missing"].sum():
            blocks.append(Block(table=_missing(results), folded_table="Work without a figure"))
        extrapolated = _extrapolated(results)
        blocks.append(Block(table=extrapolated, folded_table="What was extrapolated, and how"))
        lead = _lead(quiet)
    if without_cost:
        cells = [[one["suite"], one["device"], one["reason"]] for one in _once(without_cost)]
        blocks.append(
            Block(
                table=_bounded(["suite", "device", "why"], cells), folded_table="What could not be estimated"
            )
        )
    yield Section("predictions", "On other devices, over other networks", lead, blocks)


def _legend(rows: Sequence[Row]) -> str:
    """The meaning of the marks in a map's cells, for a caption."""
    said = legend(row["basis"] for row in rows)
    return f" {said}." if said else ""


def _that_fit(rows: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """The rows of as many places as fit into a map, and the number of omitted places."""
    places = list(dict.fromkeys((row["device"], row["bearer"]) for row in rows))
    suites = len({row["label"] for row in rows})
    kept = set(places[: max(1, MAX_CELLS // suites)])
    return [row for row in rows if (row["device"], row["bearer"]) in kept], len(places) - len(kept)


def _lead(rows: Sequence[Row]) -> str:
    """Sentences on the fastest suite in most places, and on the largest difference; empty for a single suite.

    A suite with work without a figure may take longer than its total, so it is never the fastest.
    """
    wins: dict[str, int] = {}
    places: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["ready_mean_s"] is not None:
            places.setdefault((row["device"], row["bearer"]), []).append(row)
    widest: tuple[float, Row, Row] | None = None
    compared = 0
    for here in places.values():
        known = [row for row in here if not row["missing"]]
        if not known:
            continue
        compared += 1
        quick, slow = min(known, key=_ready_s), max(here, key=_ready_s)
        wins[quick["label"]] = wins.get(quick["label"], 0) + 1
        gap = slow["ready_mean_s"] / quick["ready_mean_s"] if quick["ready_mean_s"] else 0.0
        if widest is None or gap > widest[0]:
            widest = (gap, quick, slow)
    if widest is None:
        if places:
            return "No device here has a figure for all work of any of them."
        return "At this rate the server reaches no steady state for any of them."
    best = max(wins, key=wins.__getitem__)
    _, quick, slow = widest
    if quick is slow:
        return ""
    ends = [f"{marked_time(row['ready_mean_s'], row['basis'])} ({row['label']})" for row in (quick, slow)]
    if compared == 1:
        return f"On {quick['device']} over {quick['bearer']}, from {ends[0]} to {ends[1]}."
    return (
        f"{best} is the quickest in {wins[best]} of {compared} places. The choice matters most on "
        f"{quick['device']} over {quick['bearer']}: from {ends[0]} to {ends[1]}."
    )


def _ready_s(row: Row) -> float:
    return float(row["ready_mean_s"])


def _at(rate_per_s: float) -> str:
    return f"{rate_per_s:g} handshakes/s" if rate_per_s else "no other load"


def _by_rate(view: pl.DataFrame, rates: Sequence[float]) -> Table:
    """Wait at the server and its offered load by suite and rate; equal on every device and bearer."""
    head = ["suite"]
    for one in rates:
        head += [f"wait at {one:g}/s", "offered load"]
    rows = view.unique(["label", "rate_per_s"], keep="first", maintain_order=True).to_dicts()
    first = {(row["label"], row["rate_per_s"]): saved_prediction(row) for row in rows}
    body = []
    for suite in dict.fromkeys(row["label"] for row in rows):
        cells = [suite]
        for one in rates:
            row = first[suite, one]
            wait = bounded(lambda found: time(found, 2), row["queue_s"], row["queue_low_s"], None)
            load = bounded(lambda found: share(found, 1), row["offered"], row["offered_low"], None)
            wait, load = (
                marked_figure(row, key, shown) for key, shown in (("queue_s", wait), ("offered", load))
            )
            cells += [SATURATED if row["ready_mean_s"] is None else wait, load]
        body.append(cells)
    caption = f"Wait for a worker of the server, and the worker's offered load.{_legend(rows)}"
    return Table(head, body, len(head) - 1, caption, "modelled")


MAX_TERMS = 3
"""Bearers whose assumptions about the radio are in a caption; the table of results has all."""


def _figures(rows: Sequence[Row]) -> Table:
    terms = dict.fromkeys(row["energy_terms"] for row in rows)
    caption = (
        "Ready: the client may send; done: the last flight has arrived. Percentiles are over handshakes, "
        "whose network, queue and work vary; the 90 % interval also includes the figures' uncertainty. "
        "Energy is the client's for the handshake itself; wake and tail is the additional energy for waking "
        "the radio and for its tail."
    )
    caption += "".join(f" Wake and tail {one}." for one in list(terms)[:MAX_TERMS])
    bases = ("basis", *(f"{name.replace('-', '_')}_basis" for name in queries.MARKED))
    caption += f" {legend(row[key] for row in rows for key in bases)}."
    shown = [{**saved_prediction(row), "energy_missing": _lacking(row)} for row in rows]
    columns = PREDICTIONS
    if any(row["failed"] for row in rows):
        caption += " Times are those of the handshakes that do not fail."
        columns = tuple(replace(one, rank=WIDE) if one.key == "failed" else one for one in columns)
    return html_table(columns, shown, caption.replace(" .", ""), "modelled", MAX_ROWS, WIDE)


def _lacking(row: Row) -> str | None:
    """The parts that either energy lacks."""
    missing = dict.fromkeys(filter(None, (row["energy_missing"], row["wake_tail_missing"])))
    return ", ".join(missing) or None


def _workers(view: pl.DataFrame, rates: Sequence[float]) -> Table:
    """The number of workers that meets the time limit at each rate, in the place that needs the most."""
    found: dict[tuple[str, float], Row] = {}
    least: set[tuple[str, float]] = set()
    needs = ("workers_needed", "workers_needed_low", "workers_needed_high")
    rows: Sequence[Row] = view.select("label", "rate_per_s", *needs, "missing", "basis").to_dicts()
    for row in rows:
        key = (row["label"], row["rate_per_s"])
        if key not in found or _need(row) > _need(found[key]):
            found[key] = row
        if row["missing"]:
            least.add(key)
    body = []
    for suite in dict.fromkeys(row["label"] for row in rows):
        cells = [suite]
        for one in rates:
            row = found[suite, one]
            low, high = row["workers_needed_low"], row["workers_needed_high"]
            if row["workers_needed"] is None:
                cells.append(none_suffices(low))
                continue
            if (suite, one) in least:
                cells.append(f"≥ {whole(low)}")
                continue
            ends = "" if low == high else f" ({whole(low)} – {'?' if high is None else whole(high)})"
            cells.append(marked(whole(row["workers_needed"]), row["basis"]) + ends)
        body.append(cells)
    caption = (
        "The smallest number of workers that meets the experiment's time limit at each rate, for the device "
        "and bearer that need the most; in parentheses: its range, from the ranges of the figures."
    )
    return Table(["suite", *(f"at {one:g}/s" for one in rates)], body, len(rates), caption, "modelled")


def _need(row: Row) -> tuple[float, float]:
    """The number of workers and its low end, for comparison; no sufficient number is more than any."""
    low, needed = (
        math.inf if row[key] is None else float(row[key]) for key in ("workers_needed_low", "workers_needed")
    )
    return needed, low


def _missing(results: Results) -> Table:
    """Work that has no figure, once: totals with it are lower bounds."""
    caption = "Work without a cost figure; totals that need it are marked ≥."
    cells = _operations(queries.missing(results), "why")
    return _bounded(["device", "work", "why"], cells, caption, "modelled")


def _extrapolated(results: Results) -> Table:
    """Every cost that is not the device's own figure, once."""
    caption = "Figures that are not the device's own; their ranges are part of the totals' ranges."
    cells = _operations(queries.extrapolated(results), "how", "source")
    cells = cells or [[NOTHING, "nothing", "", ""]]
    return _bounded(["device", "operation", "how", "from"], cells, caption, "modelled")


def _operations(view: pl.DataFrame, *said: str) -> list[list[str]]:
    """Distinct operations of handshakes that were not captured: device, operation, and the given columns."""
    found: dict[tuple[str, ...], None] = {}
    for one in view.filter(pl.col("capture").is_null()).to_dicts():
        work = " ".join(filter(None, (one["operation"], one["algorithm"], one["parameters"])))
        found[one["where"], work, *(one[key] or NOTHING for key in said)] = None
    return list(map(list, found))


def _bounded(head: list[str], cells: list[list[str]], caption: str = "", kind: str = "") -> Table:
    if len(cells) > MAX_ROWS:
        caption = f"{caption} The first {MAX_ROWS:,} of {len(cells):,}.".strip()
    return Table(head, cells[:MAX_ROWS], 0, caption, kind)


def _once(rows: Sequence[Row]) -> list[Row]:
    """One row per suite, device and reason; the bearer makes no difference."""
    found = {(row["suite"], row["capture"], row["device"], row["reason"]): row for row in rows}
    return list(found.values())


def _flat(view: pl.DataFrame) -> pl.DataFrame:
    """Predictions in the columns of the CSV."""
    keys = (
        "label", "device", "server_device", "bearer", "rate_per_s", "workers", "model", "capture",
        "connection", "basis", "missing", "failed", "client_s", "client_low_s", "client_high_s", "server_s",
        "server_low_s", "server_high_s", "transmission_s", "queue_s",
        *(f"{end}_{name}_s" for end in ("ready", "done") for name in ("low", "high")),
        *(f"{end}_{name}_s" for end in ("ready", "done") for name in ("mean", "p50", "p95", "p99")),
        "utilisation", "offered", "workers_needed", "energy_j", "energy_low_j", "energy_high_j",
        "wake_tail_j", "energy_missing", "wake_tail_missing", "handshakes_per_charge",
    )  # fmt: skip
    named = [pl.col(key).alias("suite") if key == "label" else pl.col(key) for key in keys]
    return view.select(*named, pl.lit("modelled").alias("kind"))


def queue_section(results: Results) -> Iterator[Section]:
    """The response time of a handshake at the server, by rate, with the knee marked."""
    points = queries.queue_points(results)
    queues = [
        {**row, "points": points.get(row["scenario"], [])} for row in queries.queues(results).to_dicts()
    ]
    if not queues:
        return
    shown = queues[:MAX_QUEUES]
    server = queues[0]["server_device"]
    rates = sorted({one for one in results.predictions["rate_per_s"].unique().to_list() if one})
    asked = rates_drawn(shown, rates)[:MAX_RATES_SHOWN]
    caption = (
        f"Work and wait at {_workers_of(queues[0])}; curves are cut at five times the work. "
        "The dot is the knee, where rate over response time is highest; the stroke is the saturation rate, "
        "where the queue becomes unstable."
    )
    if said := legend((queue["basis"] for queue in queues), of_rates=True):
        caption += f" {said}."
    if asked:
        caption += f" Dotted lines: {', '.join(f'{one:,g}' for one in asked)} a second."
    limited = {queue["suite"] for queue in queues}
    free = [suite for suite in dict.fromkeys(results.handshakes["suite"]) if suite not in limited]
    if free:
        caption += f" Not drawn, as no server cost is known: {', '.join(free[:MAX_QUEUES])}."
    figure = Figure(
        name="queue",
        title=f"Time at {server} by the rate of handshakes",
        kind="modelled",
        alternative="A curve for each suite: response time of the server against the rate, the knee marked",
        define=lambda width: queue_curves(shown, asked, width),
        data=[_point(queue, at, wait) for queue in queues for at, wait in queue["points"]],
        caption=caption,
    )
    sustains = "sustains" if queues[0]["workers"] == 1 else "sustain"
    slow = min(queues, key=lambda queue: float(queue["saturation_per_s"]))
    fast = max(queues, key=lambda queue: float(queue["saturation_per_s"]))
    lead = (
        f"{_workers_of(queues[0], capital=True)} of {server} {sustains} {_saturates(slow)} "
        f"handshakes a second of {slow['label']}, and {_saturates(fast)} of {fast['label']}; "
        "waiting times increase quickly above the knee."
    )
    yield Section("queue", "Capacity of the server", lead, [Block(figure=figure)])


def _saturates(queue: Row) -> str:
    return marked_rate(queue["saturation_per_s"], queue["basis"])


def _workers_of(queue: Row, *, capital: bool = False) -> str:
    if queue["workers"] == 1:
        return "One worker" if capital else "one worker"
    return f"{queue['workers']:,} workers"


def _point(queue: Row, rate_per_s: float, wait_s: float) -> dict[str, Any]:
    return {
        "suite": queue["label"],
        "server_device": queue["server_device"],
        "rate_per_s": rate_per_s,
        "wait_s": wait_s,
        **{key: queue[key] for key in ("service_s", "knee_per_s", "saturation_per_s", "basis")},
        "kind": "modelled",
    }


def answer(results: Results) -> list[Sentence]:
    """A sentence on the captured handshake; the map answers for the measured ones."""
    found = outlook(results)
    return [found] if found else []


def outlook(results: Results) -> Sentence:
    """The captured handshake in the place where it takes longest, and the fastest measured one there."""
    view = _predictions(results, captured=True).filter(pl.col("ready_mean_s").is_not_null())
    if not view.height:
        return []
    first = min(view.select("capture", "connection").unique().iter_rows())
    here = [row for row in _lowest(view) if (row["capture"], row["connection"]) == first]
    longest = max(here, key=_ready_s)
    template = f"On {longest['device']} over {longest['bearer']} the captured {{suite}} would take {{!time}}"
    pieces = {"suite": longest["suite"], "time": marked_time(longest["ready_mean_s"], longest["basis"])}
    same = [pl.col(column) == longest[column] for column in ("device", "bearer", "rate_per_s")]
    known = pl.col("ready_mean_s").is_not_null() & (pl.col("suite") != longest["suite"])
    others = _predictions(results, captured=False).filter(known, *same).to_dicts()
    if not others:
        return sentence(f"{template}.", **pieces)
    quickest = min(others, key=_ready_s)
    pieces |= {"other": quickest["label"], "less": marked_time(quickest["ready_mean_s"], quickest["basis"])}
    return sentence(f"{template}; the quickest of the others, {{other}}, {{!less}}.", **pieces)


def captured_blocks(results: Results, *, estimable: bool) -> Iterator[Block]:
    """The captured handshakes estimated on the experiment's devices, above the measured ones."""
    view = _predictions(results, captured=True)
    without_cost = queries.without_cost(results).filter(pl.col("capture").is_not_null()).to_dicts()
    if view.height:
        captured = [{**row, "label": f"captured: {row['label']}"} for row in _lowest(view)]
        lowest = pl.col("rate_per_s") == captured[0]["rate_per_s"]
        measured = _predictions(results, captured=False).filter(lowest).to_dicts()
        shown, _ = _that_fit([*captured, *measured])
        figure = Figure(
            name="captured-predictions",
            title="Time of the captured handshakes by device and bearer"
            + (", and of the measured ones" if measured else ""),
            kind="modelled",
            alternative="Map: rows are handshakes, columns devices and bearers, cells seconds for one",
            define=lambda width: time_map(shown, width),
            data=_flat(view),
            caption=(
                "The messages and bytes are the capture's, the public-key operations those of its suite; "
                "symmetric work and the import of keys, which a capture does not show, are those of a "
                "measured handshake of that suite. Of each "
                f"suite the first connection that shows all of it is estimated.{_legend(shown)}"
            ),
        )
        yield Block(figure=figure)
    elif estimable and not without_cost:
        note = "Nothing is estimated: the experiment names no devices, bearers or rates."
        yield Block(table=Table(["", ""], [["predictions", note]], 0))
    if without_cost:
        cells = [
            [f"{one['suite']} of {one['capture']}", one["device"], one["reason"]]
            for one in _once(without_cost)
        ]
        yield Block(
            table=_bounded(["captured", "device", "why"], cells), folded_table="What could not be estimated"
        )
