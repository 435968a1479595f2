"""Columns of predictions and of capacities by formula."""

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
from shakedown.reporting.columns.simulated import least_work_note, sent, time_at_least
from shakedown.reporting.figures import (
    NOTHING,
    as_given,
    bounded,
    count,
    digits_of,
    energy,
    energy_range,
    given,
    load,
    marked,
    rate,
    rough,
    rounded_down,
    rounded_up,
    share,
    time,
    time_beyond,
    time_range,
    whole,
)
from shakedown.schema.base import builtins, convert
from shakedown.schema.predictions import max_failed_share
from shakedown.schema.simulated import Records


def _data(key: str, unit: str = "s") -> Column:
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


def _failed(row: Row) -> str:
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


FAILED = Column(key="failed", name="failed", unit="1", rank=DATA, meaning="share of handshakes", text=_failed)

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
    *(_data(f"{name}_{end}_s") for name in ("client", "server", "queue") for end in ("low", "high")),
    *(_data(f"{name}_s") for name in ("ready_high", "done_low", "done_high")),
    *(_data(f"{name}_high_j", "J") for name in ("energy", "wake_tail", "resumption_saves")),
    _data("handshakes_per_charge_high", "1"),
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
    yield from _other_builds(rows)


def failing(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each share of handshakes that fail."""
    found = grouped(
        (_failed(flat(row)), name) for name, row in zip(subjects(rows), rows, strict=True) if row["failed"]
    )
    for part, names in found.items():
        yield f"{some(names)}: failed handshakes: {part}; times are those of the others"


def _other_builds(rows: Sequence[Row]) -> Iterator[str]:
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


def _capacity_title(rows: Sequence[Row]) -> str:
    """The limit of all capacities, and their common parameters."""
    first = rows[0]
    percentile, needed = first["percentile"], first.get("asked_rate_per_s")
    promise = "the mean" if percentile is None else f"{percentile:.12g} % of handshakes"
    return (
        f"{'simulated' if 'seed' in first else 'modelled'}: {promise} within {as_given(first['within_s'])}"
        + (f", workers for {given(needed)}/s" if needed is not None else "")
        + f": {place_title(rows)}"
        + (f", {count(first['cells'], 'cell')}" if first.get("cells") else "")
        + (", from idle" if first.get("from_idle") else "")
        + (f", seed {first['seed']}" if "seed" in first else "")
    )


def unreachable(row: Row) -> bool:
    """Whether no rate meets the limit."""
    return 0.0 in (row.get("rate_per_s"), row.get("rate_high_per_s"))


def _capacity(row: Row) -> str:
    if row.get("rate_per_s") is None and row.get("rate_high_per_s") is None:
        return "no server cost is known"
    if unreachable(row):
        return "unreachable"
    shown = figure(row, "rate_per_s", rough)
    # A bound has its own mark.
    return marked(shown, row.get("rate_basis", row["basis"])) if row["rate_per_s"] is not None else shown


def _rate_interval(row: Row) -> str:
    rate_per_s, high_per_s = row.get("rate_per_s"), row.get("rate_high_per_s")
    # At 0, the high end of the ranges may still meet the limit.
    meets = rate_per_s or (rate_per_s is not None and high_per_s)
    return interval(row, "rate_per_s", rough) if meets else NOTHING


def _by_formula(row: Row) -> str:
    rate_per_s, high_per_s = row["modelled_rate_per_s"], row.get("modelled_rate_high_per_s")
    if rate_per_s is None and high_per_s is None and row.get("limit_per_s"):
        return NOTHING  # the formula does not include data after the handshake
    return _capacity({**row, "rate_per_s": rate_per_s, "rate_basis": None, "rate_high_per_s": high_per_s})


def many_workers(count: float) -> str:
    """A number of workers: above a hundred with two digits, rounded up."""
    return f"{count if count <= 100 else rounded_up(count):,.0f}"


def _workers(row: Row) -> str:
    needed, few, many = (row.get(f"workers_needed{end}") for end in ("", "_low", "_high"))
    if needed is None and row.get("workers_needed_missing"):
        return _at_least(few)
    if needed is None:
        return none_suffices(few)
    high = "?" if many is None else many_workers(many)
    ends = f" ({many_workers(few or needed)} – {high})" if few != many else ""
    return marked(many_workers(needed), row.get("workers_needed_basis")) + ends


def none_suffices(few: float | None) -> str:
    """If `few` workers suffice at the low end of the ranges, with this number."""
    return "no number suffices" if few is None else f"no number suffices ({many_workers(few)} – ?)"


def _at_least(few: float | None) -> str:
    return "unknown" if few is None else f"≥ {few if few <= 100 else rounded_down(few):,.0f}"


def _at_capacity(statistic: str, heading: str, rank: int) -> Column:
    key = f"ready_{statistic}_s"
    return Column(key=key, name=heading, unit="s", rank=rank, meaning="of ready at that rate",
                  text=lambda row: time_at_least(row, "ready", key))  # fmt: skip


CAPACITIES = (
    label("suite", "suite", path=True, text=lambda row: row["label"]),
    *PLACE,
    Column(key="rate_per_s", name="handshakes/s", unit="1/s", rank=ALWAYS, text=_capacity,
           meaning="the highest rate that meets the limit"),
    Column(key="rate_low_per_s", name="90 % interval", unit="1/s", rank=USUAL,
           text=_rate_interval),
    Column(key="workers_needed", name="workers needed", rank=ALWAYS, text=_workers,
           meaning="workers that meet the limit at the given rate"),
    Column(key="utilisation", name="utilisation", unit="1", rank=USUAL,
           show=lambda value: NOTHING if value is None else load(value)),
    Column(key="modelled_rate_per_s", name="by formula", unit="1/s", rank=USUAL,
           meaning="as without --simulated",
           text=_by_formula),
    Column(key="ready_mean_s", name="ready", unit="s", rank=ROOM, meaning="mean at that rate",
           text=lambda row: time_at_least(row, "ready", "ready_mean_s")),
    _at_capacity("p50", "median", WIDE),
    _at_capacity("p95", "p95", WIDE),
    _at_capacity("p99", "p99", ROOM),
    Column(key="unloaded_s", name="unloaded", unit="s", rank=WIDE,
           text=lambda row: marked_figure(row, "unloaded_s", figure(row, "unloaded_s")),
           meaning="ready without load: the mean or the percentile of the limit"),
    Column(key="limit_per_s", name="saturation", unit="1/s", rank=WIDE,
           text=lambda row: marked_figure(row, "limit_per_s", figure(row, "limit_per_s", rough)),
           meaning="rate at which the queue saturates"),
    Column(key="workers", name="workers", rank=WIDE),
    Column(key="cells", name="cells", rank=WIDE),
    label("basis", "basis", rank=WIDE),
    label("cells_limit_of", "limit of the cells", rank=WIDE),
    *(_data(key, "1/s") for key in ("rate_high_per_s", "limit_low_per_s", "limit_high_per_s")),
    _data("cells_limit_per_s", "1/s"),
    _data("confirmed_clients"),
    *(_data(key, "1") for key in ("workers_needed_low", "workers_needed_high")),
    *(_data(key) for key in ("unloaded_low_s", "unloaded_high_s", "done_mean_s", "done_p99_s")),
    label("server_software", "server software", rank=DATA),
    Column(key="within_s", name="within", unit="s", rank=DATA, show=as_given),
    Column(key="percentile", name="percentile", rank=DATA,
           show=lambda value: NOTHING if value is None else f"{value:g}"),
    Column(key="asked_rate_per_s", name="asked rate", unit="1/s", rank=DATA, show=rate),
    FAILED,
)  # fmt: skip


def capacities(objects: Sequence[Any]) -> ObjectTable:
    found = builtins(objects)
    # The percentile that must meet the limit precedes others.
    deciding = {f"ready_p{row['percentile']:g}_s" for row in found if row["percentile"] is not None}
    shown = [replace(one, rank=OFTEN) if one.key in deciding else one for one in CAPACITIES]
    rows = [_capacity_row(one) for one in found]
    return ObjectTable(CAPACITIES, rows, _capacity_title(found), lambda _: _capacity_notes(found), shown)


def _capacity_row(row: Mapping[str, Any]) -> dict[str, Any]:
    found = flat(row)
    if "asked_rate_per_s" in row:
        found.setdefault("workers_needed", None)
    return found


def _calibrated(found: Mapping[str, Any]) -> Iterator[str]:
    low, middle, high = (time(found["server_s"][end]) for end in ("lower", "estimate", "upper"))
    how = (
        f"CPU time of {', '.join(found['processes'])}"
        if found["method"] == "process"
        else "workers by the rate reached"
    )
    yield (
        f"{found['suite']}: {middle} ({low} – {high}) a connection at {found['target']}: {how}, "
        f"{found['handshakes']:,} connections, {found['rounds']} rounds count"
    )
    yield from (f"{found['suite']}: {one}" for one in found["warnings"])


def _unreachable_because(found: Row) -> str:
    percentile = found["percentile"]
    whose = "on average" if percentile is None else f"(p{percentile:g})"
    permitted = max_failed_share(percentile)
    if (found["failed"] or 0.0) > permitted:
        tried = " even at the lowest rate tried" if "seed" in found else ""
        return f"{_failed(found)} fail{tried}; the limit permits {100 * permitted:.4g}%"
    if "unloaded_s" in found:
        ready_s, low_s, high_s = (found[f"unloaded{end}_s"] for end in ("", "_low", "_high"))
        digits = digits_of(ready_s, low_s, high_s)
        after = time_beyond(
            low_s if ready_s is None else ready_s, found["within_s"], digits, down=ready_s is None
        )
        return f"ready after {'≥ ' if ready_s is None else ''}{after} {whose} even without any load"
    ready_s = found.get("ready_mean_s" if percentile is None else f"ready_p{percentile:g}_s")
    if ready_s is None or ready_s <= found["within_s"]:
        return "its figures are not precise enough even at the lowest rate tried"
    after = time_beyond(ready_s, found["within_s"], 3)
    return f"ready after {after} {whose} even at the lowest rate tried"


def _capacity_notes(rows: Sequence[Row]) -> Iterator[str]:
    """The handshakes that fail, the reasons why no rate meets the limit, and the work without a figure."""
    yield from failing(rows)
    for name, row in zip(subjects(rows), rows, strict=True):
        found = flat(row)
        if unreachable(found):
            yield f"{name}: {_unreachable_because(found)}"
        if (most_per_s := row.get("cells_limit_per_s")) is not None:
            many = count(row["cells"], "cell")
            yield (
                f"{name}: {many} cannot carry more than {rough(most_per_s, 3)}/s, limited by "
                f"{row['cells_limit_of']}"
            )
        if further := row.get("confirmed_clients"):
            yield (
                f"{name}: {further:,} further clients in runs with other seeds at this rate met the limit, "
                "and overloaded no cell"
            )
        if "calibration" in row:
            yield from _calibrated(row["calibration"])
        if "records" in row:
            said = sent(convert(row["records"], Records), row["utilisation"])
            yield f"{name}: {said}{least_work_note(row['without_cost'])}"
    yield from no_figures(rows)
    yield from assumptions(rows)
    yield from _other_builds(rows)
