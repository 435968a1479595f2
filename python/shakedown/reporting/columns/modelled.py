"""Columns of predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from shakedown.errors import InputError
from shakedown.reporting.columns import (
    ALWAYS,
    DATA,
    OFTEN,
    ROOM,
    USUAL,
    WIDE,
    Column,
    ObjectTable,
    Row,
    label,
)
from shakedown.reporting.columns.flat import energy_text, figure, flat, interval, marked_figure
from shakedown.reporting.columns.notes import (
    ENERGIES,
    assumptions,
    grouped,
    no_energies,
    no_figures,
    some,
    subjects,
)
from shakedown.reporting.columns.place import PLACE, place_title
from shakedown.reporting.figures import (
    NOTHING,
    bounded,
    digits_of,
    energy,
    energy_range,
    given,
    load,
    marked,
    rate,
    rough,
    share,
    time,
    time_range,
    whole,
)
from shakedown.schema.base import builtins


def data(key: str, unit: str = "s") -> Column:
    return Column(key=key, name=key.replace("_", " "), unit=unit, rank=DATA)


def _side(side: str, rank: int) -> Column:
    return Column(
        key=f"{side}_s",
        name=side,
        unit="s",
        rank=rank,
        text=lambda row: marked_figure(row, f"{side}_s", figure(row, f"{side}_s")),
        meaning=f"the {side}'s processing, on its device",
    )


def _ready(row: Row) -> str:
    if row["ready_mean_s"] is None:
        return "no steady state"
    shown = _statistic(row, "ready", "mean")
    return shown if shown.startswith("≥") else marked(shown, row.get("total_basis"))


def _statistic(row: Row, name: str, statistic: str) -> str:
    """A time; its lower bound if some work has no figure."""
    value, low, high = row[f"{name}_{statistic}_s"], row[f"{name}_low_s"], row[f"{name}_high_s"]
    if value is None:
        return NOTHING
    if row.get(f"{name}_missing"):
        return bounded(_two, None, value, high if statistic == "mean" else None, _two_ends)
    # At least two digits: the interval is that of handshakes, and the mean is known more precisely.
    digits = max(2, digits_of(value, low, high)) if statistic == "mean" else 2
    return time(float(f"{value:.{digits}g}"), digits)


def _two(value: float) -> str:
    return time(float(f"{value:.2g}"), 2)


def _transmission(row: Row) -> str:
    """The time on the network. In the default model it contains work on the TCP connection, which is at its
    low end if some work has no figure.
    """
    value = row["transmission_s"]
    lacks = any(row.get(f"{one}_missing") for one in ("ready", "client", "server"))
    is_bound = lacks and row.get("model", "default") == "default"
    return NOTHING if value is None else bounded(_two, None if is_bound else value, value, None)


def _two_ends(low: float, high: float) -> str:
    return time_range(low, high, 2)


def _time(name: str, statistic: str, heading: str, meaning: str, rank: int) -> Column:
    return Column(
        key=f"{name}_{statistic}_s",
        name=heading,
        unit="s",
        rank=rank,
        meaning=meaning,
        text=lambda row: _statistic(row, name, statistic),
    )


def _interval(row: Row) -> str:
    if row["ready_mean_s"] is None:
        return NOTHING
    low, high = row["ready_low_s"], row["ready_high_s"]
    digits = 2 if row.get("ready_missing") else max(2, digits_of(row["ready_mean_s"], low, high))
    return interval(
        row,
        "ready_s",
        lambda value: time(float(f"{value:.{digits}g}"), digits),
        lambda low, high: time_range(float(f"{low:.{digits}g}"), float(f"{high:.{digits}g}"), digits),
    )


def _energy(key: str, heading: str, meaning: str, rank: int) -> tuple[Column, Column]:
    name = key.removesuffix("_j")
    return (
        Column(key=key, name=heading, unit="J", rank=rank, meaning=meaning,
               text=lambda row: energy_text(row, key)),
        Column(key=f"{name}_low_j", name=f"{heading} range", unit="J", rank=WIDE, meaning="90 % interval",
               text=lambda row: interval(row, key, energy, energy_range)),
    )  # fmt: skip


def _wait(row: Row) -> str:
    if row["ready_mean_s"] is None:
        return "unstable"
    return marked_figure(row, "queue_s", figure(row, "queue_s", digits=2))


def _load(row: Row, key: str) -> str:
    return marked_figure(row, key, figure(row, key, lambda value, _: load(value)))


def failed(row: Row) -> str:
    """The share of handshakes that fail; a lower bound if work without a figure could add to them."""
    missing = any(row.get(f"{one}_missing") for one in ("ready", "client", "server", "rate"))
    part = row["failed"]
    return (
        NOTHING
        if part is None
        else bounded(lambda found: share(found, 1), None if missing else part, part, None)
    )


def _charge(row: Row) -> str:
    return marked_figure(row, "handshakes_per_charge", figure(row, "handshakes_per_charge", rough))


FAILED = Column(key="failed", name="failed", unit="1", rank=DATA, meaning="share of handshakes", text=failed)

PREDICTIONS = (
    label("suite", "suite", path=True, text=lambda row: row["label"]),
    *PLACE,
    Column(key="rate_per_s", name="rate", unit="1/s", rank=ALWAYS, identity=True, show=rate),
    Column(key="round_trips", name="round trips", rank=ALWAYS, meaning="Access-Requests inside EAP",
           show=whole),
    _side("client", OFTEN),
    _side("server", USUAL),
    Column(key="transmission_s", name="transmission", unit="s", rank=ROOM, text=_transmission,
           meaning="on the bearer"),
    Column(key="ready_mean_s", name="ready", unit="s", rank=ALWAYS, text=_ready,
           meaning="mean time until the client may send"),
    Column(key="ready_low_s", name="90 % interval", unit="s", rank=OFTEN, text=_interval,
           meaning="range of 90 % of the handshakes, including the figures' uncertainty"),
    Column(key="handshakes_per_charge", name="per charge", rank=ALWAYS, text=_charge,
           meaning="handshakes per battery charge"),
    Column(key="handshakes_per_charge_low", name="per charge range", unit="1", rank=USUAL,
           meaning="90 % interval",
           text=lambda row: interval(row, "handshakes_per_charge", rough)
           if row.get("handshakes_per_charge") is not None else NOTHING),
    *_energy("energy_j", "energy", "the client's for the handshake itself", OFTEN),
    _time("ready", "p99", "p99", "99th percentile of ready", USUAL),
    _time("done", "mean", "done", "mean time until both sides have finished", ROOM),
    *_energy("wake_tail_j", "wake and tail", "energy for waking the radio and for its tail", ROOM),
    *_energy("resumption_saves_j", "resumption saves", "energy that a resumption saves", ROOM),
    Column(key="queue_s", name="queue wait", unit="s", rank=ROOM, meaning="wait for a worker of the server",
           text=_wait),
    Column(key="utilisation", name="utilisation", unit="1", rank=ROOM,
           text=lambda row: _load(row, "utilisation"), meaning="of the server's workers"),
    Column(key="offered", name="offered load", unit="1", rank=DATA, text=lambda row: _load(row, "offered"),
           meaning="work that arrives as a share of the workers' time"),
    _time("ready", "p50", "median", "of ready", WIDE),
    _time("ready", "p95", "p95", "of ready", WIDE),
    *(_time("done", name, f"done {name}", "of done", WIDE) for name in ("p50", "p95", "p99")),
    Column(key="workers", name="workers", rank=WIDE),
    label("basis", "basis", "what the time is based on: the least certain part that matters", rank=WIDE),
    label("energy_missing", "no energy of", "what has no figure", rank=WIDE, prose=True),
    *(data(f"{name}_{end}_s") for name in ("client", "server", "queue") for end in ("low", "high")),
    *(data(f"{name}_s") for name in ("ready_high", "done_low", "done_high")),
    *(data(f"{name}_high_j", "J") for name in ("energy", "wake_tail", "resumption_saves")),
    data("handshakes_per_charge_high", "1"),
    label("model", "model", rank=DATA),
    label("server_software", "server software", rank=DATA),
    label("carrier", "carrier", rank=DATA),
    FAILED,
)  # fmt: skip


def predictions(objects: Sequence[Any]) -> ObjectTable:
    found = builtins(objects)
    rows = [prediction_row(one) for one in found]
    # Only an offered load of 1 or more differs from the utilisation.
    over = any((row["offered"] or row["offered_low"] or 0.0) > 1.0 for row in rows)
    shown = [replace(one, rank=ROOM) if over and one.key == "offered" else one for one in PREDICTIONS]
    return ObjectTable(PREDICTIONS, rows, _prediction_title(found), lambda shown: notes(found, shown), shown)


def prediction_row(row: Mapping[str, Any]) -> dict[str, Any]:
    found = flat(row)
    for name in ("ready", "done"):
        if row[f"{name}_s"] is None:
            del found[f"{name}_s"]
            found |= {f"{name}_{part}_s": None for part in ("mean", "p50", "p95", "p99", "low", "high")}
    inside = row.get("eap")
    if inside is not None:
        found["round_trips"] = inside["round_trips"]
    if row["handshakes_per_charge"] is None:
        del found["handshakes_per_charge"]
    if row["energy_j"]["upper"] is None and row["wake_tail_j"]["upper"] is None:
        found |= {"energy_j": None, "wake_tail_j": None}
    return found


def saved_prediction(row: Row) -> dict[str, Any]:
    """A prediction of a results folder. Its page has no note for each figure, so the total is also marked."""
    found = {
        **row,
        "total_basis": row["basis"],
        **dict.fromkeys(("queue_basis", "utilisation_basis", "offered_basis"), row["server_basis"]),
        **dict.fromkeys(("ready_missing", "done_missing"), row["missing"]),
    }
    if row["handshakes_per_charge"] is row["handshakes_per_charge_high"] is None:
        del found["handshakes_per_charge"]
    return found


def notes(rows: Sequence[Row], shown: Set[str]) -> Iterator[str]:
    """What is missing and what is assumed in the printed columns."""
    yield from failing(rows)
    yield from dict.fromkeys(
        f"model {row['model']} ignores the bearer's {settings}: only energies include it"
        for row in rows
        if row["model"] != "default" and (settings := row["bearer"].partition(":")[2])
    )
    yield from no_figures(rows)
    yield from assumptions(rows)
    inside = next((row["eap"] for row in rows if row.get("eap")), None)
    if inside is not None:
        yield (
            f"inside EAP: round trips are Access-Requests, each {time(inside['radius_hop_s'], 2)} between "
            "access point and RADIUS server (assumed unless given); fragments hold "
            f"{inside['fragment_bytes']:,} bytes, the server's {inside['server_fragment_bytes']:,}"
        )
    yield from no_energies(
        (key, part, row["suite"], row["device"], row["bearer"])
        for row in rows
        for key in ENERGIES
        if row[key]["estimate"] is None
        for part in row[key]["missing"]
    )
    if "wake_tail_j" in shown or "handshakes_per_charge" in shown:
        yield from dict.fromkeys(f"wake and tail {one}" for row in rows for one in row["energy_terms"])
    elif "energy_j" in shown:
        yield from dict.fromkeys(
            f"wake and tail add {energy_text(flat(row), 'wake_tail_j')} {one}"
            for row in rows
            for one in row["energy_terms"]
        )
    yield from other_builds(rows)


def failing(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each share of handshakes that fail."""
    found = grouped(
        (failed(flat(row)), name) for name, row in zip(subjects(rows), rows, strict=True) if row["failed"]
    )
    for part, names in found.items():
        yield f"{some(names)}: failed handshakes: {part}; times are those of the others"


def other_builds(rows: Sequence[Row]) -> Iterator[str]:
    """The other builds of boards that lack a figure."""
    from shakedown.profiles import load_device

    keys = {"client": "device", "server": "server_device"}
    for name in dict.fromkeys(row[keys[one["side"]]] for row in rows for one in row["without_cost"]):
        try:
            others = [one.name for one in load_device(name.partition(":")[0]).variants if one.name != name]
        except InputError:
            continue
        if others:
            yield f"other builds of {name.partition(':')[0]}: {', '.join(others)}"


def _prediction_title(rows: Sequence[Row]) -> str:
    first, rates = rows[0], {row["rate_per_s"] for row in rows}
    how = ["model " + first["model"]] if first["model"] != "default" else []
    how += ["inside EAP"] if first["carrier"] == "eap" else []
    remark = f" ({', '.join(how)})" if how else ""
    return f"modelled{remark}: {place_title(rows)}, " + (
        f"{given(first['rate_per_s'])} handshakes/s" if len(rates) == 1 else f"{len(rates)} rates"
    )
