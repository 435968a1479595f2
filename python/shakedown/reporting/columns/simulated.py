"""Columns of simulated fleets and of mixtures of clients, and the notes on both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from msgspec import UNSET

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
    shares,
    words,
)
from shakedown.reporting.columns.flat import energy_text, flat
from shakedown.reporting.columns.fleet_notes import (
    UNSTABLE,
    agreement,
    bases,
    energy_notes,
    failures,
    few_clients,
    formula,
    in_cells,
    is_continuous,
    least_work_note,
    others,
    record_note,
    retries,
    server_notes,
    steady,
    steady_notes,
    tried_again,
)
from shakedown.reporting.columns.notes import ENERGIES, assumptions, no_energies, no_figures, some, subjects
from shakedown.reporting.columns.place import PLACE, common, place_title
from shakedown.reporting.figures import (
    NOTHING,
    UNKNOWN,
    bounded,
    count,
    load,
    share,
    share_down,
    time,
    time_with_margin,
)
from shakedown.schema.base import builtins
from shakedown.schema.simulated import Simulated, SimulatedMix

NOT_RECOVERED = "not recovered"


def time_at_least(
    row: Row, name: str, key: str, digits: int = 3, show: Callable[[float], str] | None = None
) -> str:
    """A time; with ≥ if a part of the work has no figure, with ! if it is less precise than the target."""
    value = row.get(key)
    if value is None:
        return UNKNOWN if row.get(f"{name}_missing") and row.get(f"{name}_mean_s") is None else NOTHING
    if row.get(f"{name}_missing"):
        return bounded(lambda found: time(found, digits), None, value, None, digits=digits)
    shown = time(value, digits) if show is None else show(value)
    return f"! {shown}" if row.get("precision_is_met") is False else shown


def _time(name: str, statistic: str, heading: str, rank: int, digits: int = 3) -> Column:
    key = f"{name}_{statistic}_s"
    return Column(
        key=key, name=heading, unit="s", rank=rank, text=lambda row: time_at_least(row, name, key, digits)
    )


def _mean(row: Row) -> str:
    margin = row.get("ready_margin_s")
    show = (lambda mean: time_with_margin(mean, margin)) if margin and row["ready_mean_s"] else None
    return time_at_least(row, "ready", "ready_mean_s", show=show)


def utilisation(row: Row) -> str:
    """The share of the workers' time in which they worked, and the offered load if it differs."""
    shown = _of_workers(row, "utilisation")
    return f"{shown}, offered load {_offered(row)}" if _differs_from_offered(row) else shown


def _differs_from_offered(row: Row) -> bool:
    """Whether the utilisation differs from the offered load, if any, by more than the target of precision."""
    used, offered = (
        row.get(name) if row.get(name) is not None else row.get(f"{name}_low")
        for name in ("utilisation", "offered")
    )
    return used is not None and offered is not None and abs(used - offered) > 0.05 * offered


def _of_workers(row: Row, key: str) -> str:
    """A share of the workers' time, or its lower bound."""
    return bounded(load, row.get(key), share_down(row.get(f"{key}_low") or 0.0), None)


def _offered(row: Row) -> str:
    """The offered load, and whether it is unstable."""
    if row.get("offered") is row.get("offered_low") is None:
        return NOTHING
    return f"{_of_workers(row, 'offered')}{' unstable' if row.get('unstable') else ''}"


def recovery(row: Row) -> str:
    """When the last client was ready; a fleet with clients that gave up has not recovered."""
    if row.get("failed"):
        return NOT_RECOVERED
    return bounded(time, row.get("recovery_s"), row.get("recovery_low_s"), None, digits=3)


def failed(row: Row) -> str:
    """The share of clients that gave up. Work without a figure may add to them; clients that share cells may
    also compete less, so their share is then unknown.
    """
    if not row["clients"]:
        return NOTHING
    part = row["failed"] / row["clients"]
    if row.get("ready_missing"):
        return bounded(lambda found: share(found, 1), None, None if row.get("cells") else part, None)
    return share(part, 1) if part else "none"


_TIMES = (
    Column(key="ready_mean_s", name="mean", unit="s", rank=USUAL, text=_mean,
           meaning="until the client may send; ± is the 95 % interval of the mean"),
    _time("ready", "p50", "median", ALWAYS),
    _time("ready", "p95", "p95", USUAL),
    _time("ready", "p99", "p99", ALWAYS),
    _time("ready", "max", "max", USUAL),
)  # fmt: skip
_FAILED = Column(key="failed", name="failed", rank=ALWAYS, text=failed, meaning="clients that gave up")

_SETTINGS = (
    Column(key="clients", name="clients", rank=WIDE),
    Column(key="replications", name="replications", rank=DATA),
    Column(key="cells", name="cells", rank=DATA,
           text=lambda row: "own links" if row.get("own_links") else words(row.get("cells"))),
    Column(key="workers", name="workers", rank=WIDE),
    Column(key="servers", name="servers", rank=DATA),
    label("balance", "balance", rank=DATA),
    Column(key="resumption", name="resume", unit="1", rank=WIDE, show=share),
    label("server_software", "server software", rank=DATA),
    label("discipline", "discipline", rank=DATA),
    label("from_idle", "from idle", rank=DATA),
    Column(key="timeout_s", name="timeout", unit="s", rank=DATA, show=time),
    Column(key="retries", name="retries", rank=DATA),
    Column(key="seed", name="seed", rank=DATA, show=str),
)  # fmt: skip
"""Columns that are printed if rows differ in them."""

FLEETS = (
    label("suite", "suite", path=True, text=lambda row: row["label"]),
    label("arrivals", "arrivals", identity=True),
    *PLACE,
    *_SETTINGS,
    *_TIMES,
    _time("queue_wait", "mean", "queue wait", USUAL, 2),
    Column(key="utilisation", name="utilisation", unit="1", rank=OFTEN,
           meaning="share of the workers' time in which they worked",
           text=lambda row: _of_workers(row, "utilisation")),
    Column(key="offered", name="offered load", unit="1", rank=ROOM,
           meaning="work of the arriving clients as a share of the workers' time", text=_offered),
    Column(key="records_utilisation", name="records", unit="1", rank=ALWAYS,
           meaning="utilisation by records", text=lambda row: _of_workers(row, "records_utilisation")),
    _FAILED,
    Column(key="recovery_s", name="recovery time", unit="s", rank=ALWAYS,
           meaning="until the last client is ready",
           text=lambda row: NOTHING if is_continuous(row["rate_per_s"], row["arrivals"]) else recovery(row)),
    Column(key="energy_mean_j", name="energy", unit="J", rank=USUAL, meaning="mean of a client",
           text=energy_text),
    Column(key="wake_tail_j", name="wake and tail", unit="J", rank=ROOM,
           text=lambda row: energy_text(row, "wake_tail_j")),
    Column(key="modelled_ready_s", name="by formula", unit="s", rank=ROOM, show=time,
           meaning="time until ready by formula"),
    Column(key="modelled_wait_s", name="wait by formula", unit="s", rank=WIDE,
           show=lambda value: time(value, 2)),
    _time("done", "mean", "done", WIDE),
    _time("done", "p99", "done p99", WIDE),
    Column(key="attempts", name="attempts", rank=WIDE),
    *(Column(key=key, name=key, rank=DATA)
      for key in ("ready_margin_s", "ready_p99_margin_s", "precision")),
)  # fmt: skip


def fleets(objects: Sequence[Simulated]) -> ObjectTable:
    rows = [_fleet_row(one) for one in objects]
    return ObjectTable(FLEETS, rows, _title(objects), lambda columns: notes(objects, columns), shown(rows))


def _fleet_row(one: Simulated) -> dict[str, Any]:
    found = flat(builtins(one)) | {"failed": sum(one.failed.values()), **_precision(one)}
    if one.records is not UNSET:
        found |= flat({"records_utilisation": builtins(one.records.utilisation)})
    if one.modelled is not None:
        found |= {"modelled_ready_s": one.modelled.ready_s, "modelled_wait_s": one.modelled.queue_wait_s}
    return _of_load(found)


def _precision(one: Simulated | SimulatedMix) -> dict[str, Any]:
    """The reached precision, and whether it meets the target."""
    found = one.precision
    return {} if found is None else {"precision": found.reached, "precision_is_met": found.is_met}


def _of_load(row: dict[str, Any]) -> dict[str, Any]:
    """Loads at a rate have no recovery time; the mean of a storm is of little use."""
    if is_continuous(row["rate_per_s"], row["arrivals"]):
        row |= {"recovery_s": None, "recovery_low_s": None}
    return with_energy(row)


def with_energy(row: dict[str, Any]) -> dict[str, Any]:
    """The mean energy as an estimate, whose range is not simulated; None if a part is unknown."""
    mean_j = None if row.get("energy_missing") else row["energy_mean_j"]
    return row | {"energy_mean_j": mean_j, "energy_j": mean_j, "energy_high_j": None}


def shown(rows: Sequence[Row]) -> list[Column]:
    """The columns for these fleets: recovery times of storms, means of loads, settings that differ."""
    differ = {one.key: ALWAYS for one in _different(rows)}
    if all(is_continuous(row["rate_per_s"], row["arrivals"]) for row in rows):
        hidden = {"recovery_s"}
        if "clients" in differ:
            # The precision determines it, and the title has its range.
            differ["clients"] = ROOM
    else:
        hidden = {"ready_mean_s", "modelled_ready_s"}
    if all(row.get("energy_missing") for row in rows):
        hidden |= {"energy_mean_j", "wake_tail_j"}
    if all(row.get(f"records_utilisation{end}") is None for row in rows for end in ("", "_low")):
        hidden.add("records_utilisation")
    if any(row.get("unstable") for row in rows):
        differ["offered"] = ALWAYS
    elif any(map(_differs_from_offered, rows)):
        differ["offered"] = OFTEN
    if all(row.get("wake_tail_j") == 0.0 for row in rows):
        hidden.add("wake_tail_j")
    return [replace(one, rank=differ.get(one.key, one.rank)) for one in FLEETS if one.key not in hidden]


def _different(rows: Sequence[Row]) -> list[Column]:
    """The settings in which rows differ."""
    return [one for one in _SETTINGS if len({row.get(one.key) for row in rows}) > 1]


def _names(rows: Sequence[Row]) -> list[str]:
    """Each row's suite, with the places and arrivals, or else the settings, in which rows differ."""
    names = subjects(rows)
    if len(set(names)) == len(names):
        return names
    differ = _different(rows)
    return [
        ", ".join([name, *(f"{one.name} {one.cell(row)}" for one in differ)])
        for name, row in zip(names, rows, strict=True)
    ]


def saved_fleet(row: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(row)
    for statistic in ("mean", "margin", "p50", "p95", "p99", "max"):
        found[f"ready_{statistic}_s"] = row.get(f"handshake_{statistic}_s")
    if row.get("imprecise"):
        found |= {"precision_is_met": False}
    found |= {"ready_missing": row["missing"], "queue_wait_mean_s": row.get("wait_mean_s")}
    found |= {"ready_basis": row["basis"]}
    found |= {
        "queue_wait_missing": row.get("wait_missing"),
        "modelled_ready_s": row.get("modelled_handshake_s"),
    }
    return _of_load(found) if "rate_per_s" in found else found


def _title(rows: Sequence[Simulated]) -> str:
    """The properties that all rows share; columns have the others."""
    plain = [builtins(row) for row in rows]
    arrivals = {row.arrivals for row in rows}
    resumption, seed = common(plain, "resumption"), common(plain, "seed")
    parts = (
        _clients(rows),
        _servers(plain),
        rows[0].arrivals if len(arrivals) == 1 else f"{len(arrivals)} kinds of arrivals",
        f"{share(resumption)} of them resume" if resumption else "",
        "" if seed is None else f"seed {seed}",
    )
    return f"simulated: {place_title(plain)}; {', '.join(filter(None, parts))}"


def _clients(rows: Sequence[Simulated]) -> str:
    """The number of clients of each row or its range, and that of cells if all rows have the same."""
    one, *others = dict.fromkeys(map(clients_of, rows))
    if others:
        low, *more = sorted({row.clients for row in rows})
        one = f"{low:,} – {more[-1]:,} clients" if more else count(low, "client")
    cells, *others = dict.fromkeys(map(in_cells, rows))
    return one if others else one + cells


def _servers(rows: Sequence[Row]) -> str:
    """The number of servers of all rows and their balance, without what differs."""
    servers, balance = common(rows, "servers"), common(rows, "balance")
    if servers == 1 or servers is balance is None:
        return ""
    return f"{'' if servers is None else f'{servers:,} '}servers" + (f" ({balance})" if balance else "")


def clients_each(clients: float, replications: float | None, rate_per_s: float | None, arrivals: str) -> str:
    """The number of clients; of a storm with replications the number in each, on which its length depends.

    A saved fleet of an earlier version has no number of replications.
    """
    if replications in (None, 1) or is_continuous(rate_per_s, arrivals):
        return count(int(clients), "client")
    return f"{replications:,.0f} times {count(int(clients / replications), 'client')}"


def clients_of(one: Simulated | SimulatedMix) -> str:
    return clients_each(one.clients, one.replications, one.rate_per_s, one.arrivals)


def notes(rows: Sequence[Simulated], columns: Set[str]) -> Iterator[str]:
    plain = [builtins(row) for row in rows]
    yield from few_clients([flat(row) for row in plain], columns)
    names = _names(plain)
    unstable = [name for name, row in zip(names, rows, strict=True) if row.unstable]
    if unstable:
        yield UNSTABLE if len(unstable) == len(rows) else f"{some(unstable)}: {UNSTABLE}"
    yield from steady_notes(map(steady, names, rows))
    again = [row.attempts - row.clients - row.uncounted() for row in rows]
    for name, row in zip(names, rows, strict=True):
        if row.failed:
            yield f"{name}: failed: {failures(row.failed)}{others(row)}{least_work_note(row.missing)}"
        yield from (f"{name}: {said}" for said in (*server_notes(row), *record_note(row)))
        if row.endpoints is not UNSET:
            yield f"{name}: {agreement(row.endpoints, in_cells=row.cells is not None)}"
        if row.modelled is not None and "modelled_ready_s" not in columns:
            yield f"{name}: by formula {formula(row.modelled)}"
    yield from retries(
        (name, row, times)
        for name, row, times in zip(names, rows, again, strict=True)
        if row.retries and times > 0
    )
    yield from bases(zip(names, map(flat, plain), strict=True))
    yield from no_figures(plain)
    yield from assumptions(plain)
    if columns & {"energy_mean_j", "wake_tail_j"} or any(row.energy_j.missing for row in rows):
        yield from no_energies(
            (key, part, row.suite, row.device, row.bearer)
            for row in rows
            for key in ENERGIES
            for part in getattr(row, key).missing
        )
        yield from energy_notes(zip(names, rows, strict=True), tail="wake_tail_j" in columns)


CLIENTS = (
    label("mix", "mix", "the mixture of clients", identity=True),
    label("suite", "suite", path=True),
    label("device", "device", show=lambda value: value or ""),
    label("bearer", "bearer", show=lambda value: value or ""),
    shares("share", "share", rank=ALWAYS),
    Column(key="resumption", name="resume", unit="1", rank=USUAL, meaning="share of them that resume",
           show=lambda value: share(value) if value else NOTHING),
    *_TIMES,
    _FAILED,
    Column(key="clients", name="clients", rank=WIDE),
)  # fmt: skip


def mixtures(objects: Sequence[SimulatedMix]) -> ObjectTable:
    return ObjectTable(
        CLIENTS,
        [row for one in objects for row in mix_rows(one)],
        "; ".join(map(mix_title, objects)),
        lambda columns: (
            f"{one.mix}: {note}" if len(objects) > 1 else note
            for one in objects
            for note in mix_notes(one, columns)
        ),
    )


def mix_rows(row: SimulatedMix) -> list[dict[str, Any]]:
    """One row per kind of client, and one for all."""
    known = _precision(row) | {"cells": row.cells}
    kinds = [{**flat(builtins(one)), "resumption": one.resumption or None, **known} for one in row.kinds]
    everyone = flat(builtins(row)) | {"failed": sum(row.failed.values()), **known}
    return [{**one, "mix": row.mix} for one in (*kinds, _all(everyone))]


def _all(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "suite": "all", "device": "", "bearer": "", "share": 1.0, "resumption": None}


def saved_mix(row: Mapping[str, Any], kinds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    # The precision is that of the whole mixture, including the figures of each kind.
    kinds = [{**one, "imprecise": row["imprecise"]} for one in kinds]
    found = [{**saved_fleet(one), "resumption": one["resumption"] or None} for one in kinds]
    return [{**one, "mix": row["mix"]} for one in (*found, _all(saved_fleet(row)))]


def mix_title(row: SimulatedMix) -> str:
    """The properties that all kinds share."""
    many = f", {row.workers} workers" if row.workers > 1 else ""
    servers = _servers([builtins(row)])
    return (
        f"simulated: {row.mix} to {row.server_device}{many}; {clients_of(row)}{in_cells(row)}"
        f"{servers and f', {servers}'}, {row.arrivals}, seed {row.seed}"
    )


def mix_notes(row: SimulatedMix, columns: Set[str]) -> Iterator[str]:
    yield from few_clients(mix_rows(row), columns)
    found = flat(builtins(row)) | {"failed": sum(row.failed.values())}
    said = [
        f"utilisation {utilisation(found)}",
        f"queue wait {time_at_least(found, 'queue_wait', 'queue_wait_mean_s', 2)}",
    ]
    said.append(f"energy per client {energy_text(with_energy(found))}")
    said[-1] += f", wake and tail {energy_text(found, 'wake_tail_j')}"
    if row.rate_per_s is None:
        said.append(NOT_RECOVERED if row.failed else f"recovery time {recovery(found)}")
    yield ", ".join(said)
    kinds = [{**builtins(one), "server_device": row.server_device} for one in row.kinds]
    yield from no_energies(
        (key, part, row.mix, "", "") for key in ENERGIES for part in getattr(row, key).missing
    )
    yield from energy_notes([(row.mix, row)], tail=True)
    if row.unstable:
        yield UNSTABLE
    yield from steady_notes([steady(row.mix, row)])
    if row.failed:
        yield f"failed: {failures(row.failed)}{others(row)}{least_work_note(row.missing)}"
    again = row.attempts - row.clients - row.uncounted()
    if row.retries and again > 0:
        yield tried_again(row, again)
    yield from (*server_notes(row), *record_note(row))
    yield from bases([(row.mix, found)])
    yield from no_figures(kinds)
    yield from assumptions(kinds)
