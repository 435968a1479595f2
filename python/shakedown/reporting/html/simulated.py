"""Simulated fleets in the report: storms over time, and steady loads beside the formulas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from shakedown.reporting.charts.dot_plot import FigureByMethod, dot_plot
from shakedown.reporting.charts.figure import Figure, fitted
from shakedown.reporting.charts.map import RECOVERY_STEPS_S, time_map
from shakedown.reporting.charts.storm import loads
from shakedown.reporting.charts.theme import FILLS, INK
from shakedown.reporting.columns import MAX_ROWS, Row
from shakedown.reporting.columns.fleet_notes import UNSTABLE
from shakedown.reporting.columns.simulated import failed as gave_up
from shakedown.reporting.columns.simulated import recovery, saved_fleet, shown, time_at_least, utilisation
from shakedown.reporting.figures import count, time, whole
from shakedown.reporting.html.bounds import lacking, least_counts
from shakedown.reporting.html.fleet_series import arrival_window_s, drawing, last_s, loads_of, points
from shakedown.reporting.html.mixture import mixture_section
from shakedown.reporting.html.section import Block, Section, Table
from shakedown.reporting.html.tables import html_table
from shakedown.reporting.html.text import Sentence, plain, sentence
from shakedown.reporting.terminal.fleets import clients_words, fleet_groups, fleet_words
from shakedown.results.fleets import FLEET_OPTIONS

if TYPE_CHECKING:
    from shakedown.results.folder import Results

MAX_STORMS = 12
"""Fleets in one figure; the table has the others."""

MAX_LOAD_FIGURES, MAX_LOADS = 4, 4
"""Figures of the load of cells and server, and fleets in each; also figures of storms, if a map has all."""

MAX_MAP = 400
"""Storms of a map."""

MAX_STEPS = 150
"""Intervals of a lane; those of longer series are merged."""

MAX_FIGURES = 20
MAX_PAIRS = 24
MIN_UTILISATION_DIFFERENCE = 0.1
"""Difference of two utilisations from which on the answer contains both."""

_LOOKS = {
    "simulated mean, 95 % interval": ("circle", FILLS["key"].light),
    "formula: handshakes as customers (M/G/c)": ("diamond", FILLS["signature"].light),
    "formula: flights as customers (Pollaczek–Khinchine)": ("triangle-up", INK),
}


def sections(results: Results) -> Iterator[Section]:
    rows = results.fleets.to_dicts()
    done = [row for row in rows if row["without_cost"] is None and row["mix"] is None]
    yield from storm_section(results, [row for row in done if row["width_s"] is not None])
    yield from steady_section([row for row in done if row["rate_per_s"] is not None])
    failed = [row for row in rows if row["without_cost"] is not None]
    if failed:
        cells = [
            [row["suite"], row["device"], row["bearer"], row["without_cost"]] for row in failed[:MAX_ROWS]
        ]
        table = Table(["suite", "device", "bearer", "why"], cells, 0)
        yield Section("unsimulated", "What could not be simulated", "", [Block(table=table)])
    yield from mixture_section(results)


def storm_section(results: Results, rows: Sequence[Row]) -> Iterator[Section]:
    """The number of clients that are not yet ready, over time; a figure for each place and storm."""
    if not rows:
        return
    blocks = [Block(figure=figure) for figure in _recovery_maps(rows)]
    drawn = MAX_LOAD_FIGURES if blocks else MAX_FIGURES
    groups = list(fleet_groups(rows).items())
    for position, (place, fleet) in enumerate(groups[:drawn]):
        words, device, bearer, server = place
        workers = count(int(fleet[0]["workers"]), "worker")
        title = f"{words}, over {bearer}: clients not yet ready ({workers} of {server})"
        arrive_s = arrival_window_s(fleet[0]["arrivals"])
        figure = Figure(
            name=f"storm-{position + 1}",
            title=title,
            kind="simulated",
            alternative="An area for each suite: clients that have arrived and are not yet ready, over time",
            define=drawing(results, fleet[:MAX_STORMS], arrive_s),
            data=[point for row in fleet for point in points(results, row)],
            caption=(
                f"The device is {device}. Clients arrive during the shaded time. The area is the number of "
                "clients that are not yet ready, by what they wait for; at the line the last one is ready. "
                f"All rows have the same scales.{least_counts(fleet)}"
            ),
        )
        blocks.append(Block(figure=figure, table=_storm_table(fleet), folded_table="In figures"))
        if position < MAX_LOAD_FIGURES:
            blocks.append(Block(figure=_loads_figure(results, fleet[:MAX_LOADS], position, title)))
    lead = " ".join(map(plain, answer(results)))
    if len(groups) > drawn:
        lead += f" Figures over time: the first {drawn} of {len(groups):,} storms."
    yield Section("storms", "Storms", lead, blocks)


def _recovery_maps(rows: Sequence[Row]) -> Iterator[Figure]:
    """Recovery times, if an experiment has storms of several sizes or over several numbers of cells."""
    places: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        places.setdefault((row["device"], row["bearer"], row["server_device"]), []).append(row)
    for number, ((device, bearer, server), found) in enumerate(places.items()):
        named = ("label", "arrivals", *FLEET_OPTIONS)
        differs = [name for name in named if len({row[name] for row in found}) > 1]
        room_px = 68.0 * len({row["cells"] for row in found})
        shown = [
            {
                "label": count(int(row["clients"]), "client"),
                "device": fitted(", ".join(row[name] or f"no {name}" for name in differs), room_px, 7.0),
                "bearer": count(int(row["cells"]), "cell") if row["cells"] else "own links",
                "ready_mean_s": _recovery_s(row),
                "basis": "unknown" if row["missing"] else None,
                "lacking": f"{_share_failed(row)} fail",
                "missing": row["missing"],
            }
            for row in found
        ]
        if len({(one["label"], one["bearer"]) for one in shown}) < 2:
            continue
        which = "" if "label" in differs else f"{found[0]['label']}, "
        yield Figure(
            name=f"recovery-{number + 1}",
            title=f"Recovery time: {which}{device} over {bearer} to {server}",
            kind="simulated",
            alternative="A map for each suite and backoff: recovery time by clients and cells",
            define=partial(time_map, shown[:MAX_MAP], steps_s=RECOVERY_STEPS_S, word="recovery"),
            data=[_recovery_row(row, differs) for row in found],
            caption="If clients give up, their share is shown instead." + lacking(found),
        )


def _recovery_s(row: Row) -> float | None:
    """The recovery time or its lower bound; None if clients failed."""
    return None if row["failed"] else row["recovery_s"] or row["recovery_low_s"]


def _recovery_row(row: Row, differs: Sequence[str]) -> dict[str, Any]:
    """A storm of a map of recovery times, with the properties in which the map's storms differ."""
    return {
        "suite": row["label"],
        **{name: row[name] for name in differs if name != "label"},
        "clients": int(row["clients"]),
        "cells": int(row["cells"]) if row["cells"] else None,
        "failed": int(row["failed"]),
        "recovery_s": _recovery_s(row),
        "missing": row["missing"],
        "kind": "simulated",
    }


def _loads_figure(results: Results, rows: Sequence[Row], position: int, title: str) -> Figure:
    found = [points(results, row) for row in rows]
    together = max(1, -(-max(map(len, found)) // MAX_STEPS))
    shown = [
        (row["label"], loads_of(series, row["cells"], together))
        for row, series in zip(rows, found, strict=True)
    ]
    return Figure(
        name=f"storm-{position + 1}-loads",
        title=title.replace("clients not yet ready", "load of cells and server"),
        kind="simulated",
        alternative="Lanes for each suite: attempts, cells' time and bytes, the server's queue, over time",
        define=lambda width: loads(shown, width),
        data=[
            {"suite": label, "load": one.name, "end_s": end_s, "value": value, "kind": "simulated"}
            for label, lanes in shown
            for one in lanes
            for end_s, value in one.values
        ],
        caption=(
            "Lanes of one name have the same scale. The orange part of attempts collided."
            f"{least_counts(rows)}"
        ),
    )


def _storm_table(rows: Sequence[Row]) -> Table:
    caption = "Of one client, pauses between attempts included."
    found = [saved_fleet(row) for row in rows]
    return html_table(shown(found), found, caption + lacking(rows), "simulated")


def _failed(row: Row) -> float:
    return float(row["failed"] or 0.0)


def _share_of_failed(row: Row) -> float:
    return _failed(row) / float(row["clients"] or 1)


def _share_failed(row: Row) -> str:
    return gave_up(saved_fleet(row))


def steady_section(rows: Sequence[Row]) -> Iterator[Section]:
    if not rows:
        return
    pairs = [pair for row in rows if (pair := _pair(row)) is not None][:MAX_PAIRS]
    blocks = []
    if pairs:
        figure = Figure(
            name="simulated-beside-modelled",
            title="Waiting at the server for one handshake: simulated, and by formula",
            kind="simulated",
            alternative="A row for each suite and load: the simulated mean, its interval, the formulas'",
            define=lambda width: dot_plot(
                pairs, _LOOKS, "ms of waiting for a worker, all of a handshake's flights", width
            ),
            data=[_flat(row) for row in rows],
            caption=(
                "A server works on a handshake flight by flight, and each flight waits in line; the usual "
                "formula takes the whole handshake as one customer that waits once. The formula with each "
                "flight as a customer holds where round trips are long beside the queue."
            ),
        )
        blocks.append(Block(figure=figure))
    blocks.append(Block(table=_steady_table(rows), folded_table="In figures" if pairs else ""))
    yield Section("fleets", "Fleets at a steady load", _steady_lead(rows), blocks)


def _pair(row: Row) -> FigureByMethod | None:
    if not row["wait_mean_s"] or row["modelled_wait_s"] is None:
        return None
    keys = ("wait_mean_s", "modelled_wait_s", "modelled_flights_wait_s")
    times_ms = {way: row[key] * 1e3 for way, key in zip(_LOOKS, keys, strict=True) if row[key] is not None}
    label = f"{row['label']}, {row['arrivals']}, {row['device']} over {row['bearer']}"
    return FigureByMethod(label, times_ms, (row["wait_margin_s"] or 0.0) * 1e3, row["label"])


def _flat(row: Row) -> dict[str, Any]:
    keys = (
        "label", "arrivals", "device", "server_device", "bearer", "rate_per_s", "workers", "clients",
        "failed", "utilisation", "offered", "handshake_mean_s", "handshake_margin_s", "handshake_p50_s",
        "handshake_p99_s", "modelled_handshake_s", "wait_mean_s", "wait_margin_s", "modelled_wait_s",
        "modelled_flights_wait_s",
    )  # fmt: skip
    return {"suite" if key == "label" else key: row[key] for key in keys} | {"kind": "simulated"}


def _steady_table(rows: Sequence[Row]) -> Table:
    caption = "Handshake time and wait of a client; ± is the 95 % interval of the mean."
    caption += lacking(rows)
    if any(_unstable(row) for row in rows):
        caption += f" {UNSTABLE[0].upper()}{UNSTABLE[1:]}."
    found = [saved_fleet(row) for row in rows]
    return html_table(shown(found), found, caption, "simulated", MAX_ROWS)


def _unstable(row: Row) -> bool:
    return bool(row["unstable"])


def _steady_lead(rows: Sequence[Row]) -> str:
    unstable = [row for row in rows if _unstable(row)]
    known = [row for row in rows if row["wait_mean_s"] and row["modelled_wait_s"]]
    said = []
    if known:
        far = max(known, key=lambda row: float(row["wait_mean_s"] / row["modelled_wait_s"]))
        wait = time_at_least(saved_fleet(far), "queue_wait", "queue_wait_mean_s", 2)
        said.append(
            f"At {far['arrivals']} {far['label']} waits {wait} for workers, where the "
            f"usual formula gives {time(far['modelled_wait_s'], 2)}."
        )
    if unstable:
        names = ", ".join(dict.fromkeys(f"{row['label']} at {row['arrivals']}" for row in unstable[:5]))
        said.append(f"More work than the workers can do: {names}.")
    return " ".join(said) or "Each fleet against a server of its own."


def answer(results: Results) -> list[Sentence]:
    rows = [
        row
        for row in results.fleets.to_dicts()
        if row["without_cost"] is None and row["mix"] is None and row["width_s"] is not None
    ]
    if not rows:
        return []
    first = next(iter(fleet_groups(rows).values()))
    clients = clients_words(first[0])
    through = sorted((row for row in first if not row["failed"]), key=last_s)
    broken = max(first, key=_failed)
    if not through:
        template = "In a storm of {!clients} {!share} of them give up with {suite}."
        return [sentence(template, clients=clients, share=_share_failed(broken), suite=broken["label"])]
    quick, slow = through[0], through[-1]
    pieces = {"suite": quick["label"], "time": recovery(quick), "clients": clients}
    template = "A storm of {!clients} is over after {!time} with {suite}"
    if broken["failed"]:
        pieces |= {"other": broken["label"], "share": _share_failed(broken)}
        template += "; with {other} {!share} of the clients give up"
    elif quick is not slow:
        pieces |= {"other": slow["label"], "more": recovery(slow)}
        template += ", after {!more} with {other}"
    found = [sentence(f"{template}.", **pieces)]
    if len(first) > 1:
        outside = {
            one["label"]: max((point["outside"] for point in points(results, one)), default=0.0)
            for one in first
        }
        found += [_extremes(first, outside)]
    worst = max(rows, key=_share_of_failed)
    if _share_of_failed(worst) > _share_of_failed(broken):
        storm = f"{fleet_words(worst)} over {worst['bearer']}"
        template = f"With {storm}, {{!share}} of them give up with {{suite}}."
        found += [sentence(template, share=_share_failed(worst), suite=worst["label"])]
    return [one for one in found if one]


def _clients(many: float, row: Row) -> str:
    """A number of clients; a lower bound if some work has no figure."""
    return f"≥ {whole(many)}" if row["missing"] else whole(many)


def _extremes(rows: Sequence[Row], outside: Mapping[str, float]) -> Sentence:
    """The fleets with the most and the fewest clients waiting at once, and the server's utilisation if it
    differs.
    """
    least, most = min(outside, key=outside.__getitem__), max(outside, key=outside.__getitem__)
    if outside[most] <= outside[least]:
        return []
    template = "At most {!many} clients are waiting at once with {most} and {!few} with {least}"
    named = {row["label"]: row for row in rows}
    used = [named[label]["utilisation"] for label in (most, least)]
    if None not in used and abs(used[0] - used[1]) >= MIN_UTILISATION_DIFFERENCE:
        template += "; the server's utilisation is {!high} and {!low}"
    return sentence(
        f"{template}.",
        many=_clients(outside[most], named[most]),
        few=_clients(outside[least], named[least]),
        most=most,
        least=least,
        high=utilisation(named[most]),
        low=utilisation(named[least]),
    )
