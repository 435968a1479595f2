"""The table `[cell]` of a bearer profile: the shared medium of a cell, and the access to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_args

from msgspec import NODEFAULT
from msgspec.structs import fields

from shakedown.profiles.tables import MAX_MS, Table
from shakedown.schema.profiles import (
    Aloha,
    Cell,
    Circuits,
    Contention,
    Csma,
    Detection,
    Entry,
    RandomAccess,
    Scheduler,
    Sense,
)

RATE_LIMITS = {"above": 1e-3, "maximum": 1e15}
"""Limits of rates in bit/s."""


def _within(minimum: float, maximum: float = MAX_MS) -> dict[str, float]:
    return {"minimum": minimum, "maximum": maximum}


_LIMITS: dict[tuple[type[Any], str], dict[str, float]] = {
    (RandomAccess, "opportunity_s"): _within(1e-3),
    (RandomAccess, "repetition"): _within(0, 1),
    (Circuits, "channels"): _within(1, 100_000),
    (Csma, "slot_s"): _within(1e-6),
    (Csma, "window"): _within(1, 1_000_000),
    (Csma, "max_window"): _within(1, 1_000_000),
    (Sense, "min_exponent"): _within(0, 20),
    (Sense, "max_exponent"): _within(0, 20),
}
"""Limits; those of times in milliseconds, as in profiles. Default: times from 0, counts from 1 to 10,000."""


def parse_cell(table: Table) -> Cell:
    """Validate the table. Raises `InputError`."""
    shared = not any(name in table for name in ("circuits", "csma", "aloha"))
    entry, contention = (_one_of(names, table) for names in (_ENTRIES, _CONTENTIONS))
    rate = table.number if shared else table.maybe
    cell = Cell(
        medium=table.text("medium"),
        up_bits_per_s=rate("up_bps", **RATE_LIMITS),
        down_bits_per_s=rate("down_bps", **RATE_LIMITS),
        half_duplex=table.flag("half_duplex", default=False),
        scheduler=cast(Any, table.text("scheduler", "round-robin", get_args(Scheduler))),
        entry=entry,
        contention=contention,
    )
    table.finish()
    return cell


def _one_of(names: Mapping[str, type[Any]], table: Table) -> Any:  # noqa: ANN401 - an instance of one
    """The value of the given one of several sub-tables; None if none is given."""
    found = {name: inner for name in names if (inner := table.maybe_table(name)) is not None}
    if len(found) > 1:
        raise table.fail(f"[cell.{'] and [cell.'.join(found)}] are both given; accepted: one of them")
    return next((_read(names[name], inner) for name, inner in found.items()), None)


_ENTRIES: dict[str, type[Entry]] = {"random_access": RandomAccess, "circuits": Circuits}
_CONTENTIONS: dict[str, type[Contention]] = {"csma": Csma, "aloha": Aloha}


def _read(cls: type[Any], table: Table) -> Any:  # noqa: ANN401 - an instance of `cls`
    """Reads a table whose keys are the class's fields, with times in milliseconds."""
    found: dict[str, Any] = {}
    for one in fields(cls):
        in_seconds = one.name.endswith("_s")
        key = f"{one.name[:-2]}_ms" if in_seconds else one.name
        default = None if one.default is NODEFAULT else one.default
        limits = _LIMITS.get((cls, one.name), {})
        counts = {"minimum": 1, "maximum": 10_000, **limits}
        value: object
        if one.name == "sense":
            inner = table.maybe_table(key)
            value = None if inner is None else _read(Sense, inner)
        elif one.name == "detection":
            value = table.text(key, default, get_args(Detection))
        elif one.name == "repetition":
            value = table.number(key, default, **limits)
        elif in_seconds:
            value = table.seconds(key, default, **limits)
        elif one.name == "grants":
            value = table.maybe_whole(key, **counts)
        else:
            value = table.whole(key, default, **counts)
        found[one.name] = value
    for least, most in (("window", "max_window"), ("min_exponent", "max_exponent")):
        if least in found and found[most] < found[least]:
            raise table.fail(f"{most} is {found[most]}; accepted: {least} or more")
    table.finish()
    return cls(**found)
