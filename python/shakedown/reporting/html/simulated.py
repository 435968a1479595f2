"""Simulated fleets in the report: storms over time, and steady loads beside the formulas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from shakedown.reporting.charts.estimate_rows import Pair, beside
from shakedown.reporting.charts.figure import Figure
from shakedown.reporting.charts.storm import Storm, storms
from shakedown.reporting.html.section import Block, Section, Table
from shakedown.reporting.html.text import Sentence, sentence
from shakedown.reporting.terminal.figures import count, number, share, time, whole
from shakedown.reporting.terminal.simulated import least_time
from shakedown.schema.units import parse_duration_s

if TYPE_CHECKING:
    from shakedown.results.folder import Results

Row = Mapping[str, Any]

MAX_STORMS = 12
"""Fleets of one figure; the table has the others."""

MAX_FIGURES = 20
MOST = 0.99
MAX_PAIRS = 24
MAX_LINES = 400

WHOLE = "formula: handshakes as customers (M/G/c)"
FLIGHTS = "formula: flights as customers (Pollaczek–Khinchine)"


def sections(results: Results) -> Iterator[Section]:
    """Storms, then steady loads."""
    rows = results.fleets.to_dicts()
    if not rows:
        return
    done = [row for row in rows if row["unpriced"] is None and row["mix"] is None]
    yield from storm_section(results, [row for row in done if row["width_s"] is not None])
    yield from steady_section([row for row in done if row["rate_per_s"] is not None])
    failed = [row for row in rows if row["unpriced"] is not None]
    if failed:
        cells = [[row["suite"], row["device"], row["bearer"], row["unpriced"]] for row in failed[:MAX_LINES]]
        table = Table(["suite", "device", "bearer", "why"], cells, 0)
        yield Section("unsimulated", "What could not be simulated", "", [Block(table=table)])


def _groups(rows: Sequence[Row]) -> dict[tuple[str, ...], list[Row]]:
    """Fleets that differ in their suite alone."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        place = (row["arrivals"], row["device"], row["bearer"], row["server_device"], str(row["clients"]))
        found.setdefault(place, []).append(row)
    return found


def storm_section(results: Results, rows: Sequence[Row]) -> Iterator[Section]:
    """How many clients are still outside, over time; a figure for each place and storm."""
    if not rows:
        return
    blocks = []
    for position, (place, fleet) in enumerate(list(_groups(rows).items())[:MAX_FIGURES]):
        arrivals, device, bearer, server, _ = place
        workers = int(fleet[0]["workers"])
        title = (
            f"{count(int(fleet[0]['clients']), 'client')} over {bearer}: "
            f"how many are still outside ({arrivals}, {count(workers, 'worker')} of {server})"
        )
        arrive_s = arrival_window_s(arrivals)
        figure = Figure(
            name=f"storm-{position + 1}",
            title=title,
            kind="simulated",
            alternative="An area for each suite: clients that have arrived and are not in yet, over time",
            define=drawing(results, fleet[:MAX_STORMS], arrive_s),
            data=[point for row in fleet for point in points(results, row)],
            caption=(
                f"The device is {device}. In the shaded time clients arrive; the area is how many of them "
                "are not in yet; at the stroke the last one is. All rows have the same scales."
            ),
        )
        blocks.append(Block(figure=figure, table=_storm_table(fleet), folded_table="In figures"))
    yield Section("storms", "When many come at once", _storm_lead(rows), blocks)


def drawing(results: Results, rows: Sequence[Row], arrive_s: float) -> Any:  # noqa: ANN401 - `Figure.define`'s
    """Fleets over time, an area each."""
    shown = [_storm(results, row) for row in rows]
    return lambda width: storms(shown, arrive_s, width)


def arrival_window_s(arrivals: str) -> float:
    """The time within which a storm's clients arrive; 0 where the text does not say."""
    match = re.match(r"storm:([^+]+)", arrivals)
    return parse_duration_s(match[1]) if match else 0.0


def _storm(results: Results, row: Row) -> Storm:
    series = points(results, row)
    outside = [(point["end_s"], point["outside"]) for point in series]
    inside, most_in_s = 0.0, None
    recovery_s = row["recovery_s"] or 0.0
    for point in series:
        missing = MOST * row["clients"] - inside
        inside += point["completed"]
        if missing <= point["completed"] > 0.0:
            width_s = point["end_s"] - point["start_s"]
            most_in_s = min(point["start_s"] + width_s * missing / point["completed"], recovery_s)
            break
    return Storm(row["label"], outside, recovery_s, row["failed"], most_in_s)


def points(results: Results, row: Row) -> list[dict[str, Any]]:
    """A fleet over time, an interval each."""
    series = results.fleet_series.filter(pl.col("scenario") == row["scenario"]).sort("item")
    found = []
    outside = 0.0
    for one in series.iter_rows(named=True):
        outside += one["arrived"] - one["completed"] - one["failed"]
        found.append(
            {
                "suite": row["label"],
                "arrivals": row["arrivals"],
                "device": row["device"],
                "bearer": row["bearer"],
                "start_s": one["item"] * row["width_s"],
                "end_s": (one["item"] + 1) * row["width_s"],
                **{
                    name: one[name]
                    for name in ("arrived", "completed", "failed", "retries", "waiting", "busy")
                },
                "outside": outside,
                "kind": "simulated",
            }
        )
    return found


def _storm_table(rows: Sequence[Row]) -> Table:
    head = ["suite", "median", "p99", "max", "recovery time", "failed", "attempts", "energy (J)"]
    cells = [
        [
            row["label"],
            *(least_time(row, f"handshake_{name}_s") for name in ("p50", "p99", "max")),
            least_time(row, "recovery_s"),
            whole(row["failed"]),
            whole(row["attempts"]),
            f"{'≥ ' if row['energy_missing'] else ''}{number(row['energy_mean_j'], 2)}",
        ]
        for row in rows
    ]
    caption = "Of one client, pauses between attempts included; the radio's set-up if clients begin idle."
    return Table(head, cells, len(head) - 1, caption + lacking(rows), "simulated")


def lacking(rows: Sequence[Row]) -> str:
    """What lower bounds lack, for a caption."""
    missing = dict.fromkeys(row["missing"] for row in rows if row["missing"])
    without = dict.fromkeys(row["energy_missing"] for row in rows if row["energy_missing"])
    return "".join(f" ≥ without a figure of {one}." for one in missing) + "".join(
        f" Energy without {one}." for one in without
    )


def _storm_lead(rows: Sequence[Row]) -> str:
    first = next(iter(_groups(rows).values()))
    through = sorted((row for row in first if not row["failed"]), key=_last)
    said = []
    if through:
        quick, slow = through[0], through[-1]
        said.append(f"with {quick['label']} the last client is in after {least_time(quick, 'recovery_s')}")
        if quick is not slow:
            said.append(f"with {slow['label']} after {least_time(slow, 'recovery_s')}")
    broken = max(first, key=_failed)
    if broken["failed"]:
        said.append(f"with {broken['label']} {_share_failed(broken)} of the clients give up")
    text = ", ".join(said)
    return f"{text[:1].upper()}{text[1:]}."


def _failed(row: Row) -> float:
    return float(row["failed"] or 0.0)


def _share_failed(row: Row) -> str:
    return share(_failed(row) / row["clients"], 1)


def _last(row: Row) -> float:
    return float(row["recovery_s"] or 0.0)


def steady_section(rows: Sequence[Row]) -> Iterator[Section]:
    """Steady loads: simulated beside modelled."""
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
            define=lambda width: beside(
                pairs, "ms of waiting for a worker, all of a handshake's flights", width
            ),
            data=[_flat(row) for row in rows],
            caption=(
                "A server works on a handshake flight by flight, and each flight waits in line; the usual "
                "formula takes the whole handshake as one customer, who waits once. The formula with each "
                "flight as a customer holds where round trips are long beside the queue."
            ),
        )
        blocks.append(Block(figure=figure))
    blocks.append(Block(table=_steady_table(rows), folded_table="In figures" if pairs else ""))
    yield Section("fleets", "Fleets at a steady load", _steady_lead(rows), blocks)


def _pair(row: Row) -> Pair | None:
    if not row["wait_mean_s"] or row["modelled_wait_s"] is None:
        return None
    formulas = {WHOLE: row["modelled_wait_s"] * 1e3}
    if row["modelled_flights_wait_s"] is not None:
        formulas[FLIGHTS] = row["modelled_flights_wait_s"] * 1e3
    label = f"{row['label']}, {row['arrivals']}, {row['device']} over {row['bearer']}"
    return Pair(label, row["wait_mean_s"] * 1e3, (row["wait_margin_s"] or 0.0) * 1e3, formulas)


def _flat(row: Row) -> dict[str, Any]:
    keys = (
        "label", "arrivals", "device", "server_device", "bearer", "rate_per_s", "workers", "clients",
        "failed", "utilisation", "offered", "handshake_mean_s", "handshake_margin_s", "handshake_p50_s",
        "handshake_p99_s", "modelled_handshake_s", "wait_mean_s", "wait_margin_s", "modelled_wait_s",
        "modelled_flights_wait_s",
    )  # fmt: skip
    return {"suite" if key == "label" else key: row[key] for key in keys} | {"kind": "simulated"}


def _steady_table(rows: Sequence[Row]) -> Table:
    head = [
        "suite", "arrivals", "device", "bearer", "mean", "±", "by formula", "p99", "queue wait", "by "
        "formula",
        "utilisation", "failed",
    ]  # fmt: skip
    cells = [
        [
            *(row[name] for name in ("label", "arrivals", "device", "bearer")),
            least_time(row, "handshake_mean_s"),
            time(row["handshake_margin_s"]),
            *(least_time(row, name) for name in ("modelled_handshake_s", "handshake_p99_s")),
            time(row["wait_mean_s"], 2),
            time(row["modelled_wait_s"], 2),
            share(max(row["utilisation"], row["offered"] or 0.0)),
            whole(row["failed"]),
        ]
        for row in rows[:MAX_LINES]
    ]
    caption = "Handshake time and wait of a client; ± is the 95 % interval of the mean."
    caption += lacking(rows)
    if any((row["offered"] or 0.0) >= 1.0 for row in rows):
        caption += " Above 100 % the load is unstable: times grow with the number of clients."
    return Table(head, cells, 8, caption, "simulated")


def _steady_lead(rows: Sequence[Row]) -> str:
    unstable = [row for row in rows if (row["offered"] or 0.0) >= 1.0]
    known = [row for row in rows if row["wait_mean_s"] and row["modelled_wait_s"]]
    said = []
    if known:
        far = max(known, key=lambda row: float(row["wait_mean_s"] / row["modelled_wait_s"]))
        said.append(
            f"At {far['arrivals']} {far['label']} waits {time(far['wait_mean_s'], 2)} for workers, where the "
            f"usual formula says {time(far['modelled_wait_s'], 2)}."
        )
    if unstable:
        names = ", ".join(dict.fromkeys(f"{row['label']} at {row['arrivals']}" for row in unstable[:5]))
        said.append(f"More work than the workers can do: {names}.")
    return " ".join(said) or "Each fleet against a server of its own."


def answer(results: Results) -> list[Sentence]:
    """When a storm is over."""
    rows = [
        row
        for row in results.fleets.to_dicts()
        if row["unpriced"] is None and row["mix"] is None and row["width_s"] is not None
    ]
    if not rows:
        return []
    first = next(iter(_groups(rows).values()))
    clients = count(int(first[0]["clients"]), "client")
    through = sorted((row for row in first if not row["failed"]), key=_last)
    broken = max(first, key=_failed)
    if not through:
        template = "In a storm of {!clients} {!share} of them give up with {suite}."
        return [sentence(template, clients=clients, share=_share_failed(broken), suite=broken["label"])]
    quick, slow = through[0], through[-1]
    pieces = {"suite": quick["label"], "time": least_time(quick, "recovery_s"), "clients": clients}
    template = "A storm of {!clients} is over after {!time} with {suite}"
    if broken["failed"]:
        pieces |= {"other": broken["label"], "share": _share_failed(broken)}
        template += "; with {other} {!share} of them give up"
    elif quick is not slow:
        pieces |= {"other": slow["label"], "more": least_time(slow, "recovery_s")}
        template += ", after {!more} with {other}"
    return [sentence(f"{template}.", **pieces)]
