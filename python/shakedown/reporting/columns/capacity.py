"""Columns of capacities, by formula and by simulation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

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
from shakedown.reporting.columns.flat import figure, flat, interval, marked_figure
from shakedown.reporting.columns.fleet_notes import least_work_note, sent
from shakedown.reporting.columns.modelled import FAILED, data, failed, failing, other_builds
from shakedown.reporting.columns.notes import (
    assumptions,
    no_figures,
    subjects,
)
from shakedown.reporting.columns.place import PLACE, place_title
from shakedown.reporting.columns.simulated import time_at_least
from shakedown.reporting.figures import (
    NOTHING,
    as_given,
    count,
    digits_of,
    given,
    load,
    marked,
    rate,
    rough,
    rounded_down,
    rounded_up,
    time,
    time_beyond,
)
from shakedown.schema.base import builtins, convert
from shakedown.schema.predictions import max_failed_share
from shakedown.schema.simulated import Records


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
    *(data(key, "1/s") for key in ("rate_high_per_s", "limit_low_per_s", "limit_high_per_s")),
    data("cells_limit_per_s", "1/s"),
    data("confirmed_clients"),
    *(data(key, "1") for key in ("workers_needed_low", "workers_needed_high")),
    *(data(key) for key in ("unloaded_low_s", "unloaded_high_s", "done_mean_s", "done_p99_s")),
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
        return f"{failed(found)} fail{tried}; the limit permits {100 * permitted:.4g}%"
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
    yield from other_builds(rows)
