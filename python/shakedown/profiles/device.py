"""Device profiles: what each primitive costs on one chip, clock, library and build.

The file format is described in ``docs/reference/device-profile.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from shakedown.profiles.tables import Table
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS, triple_fault

SCHEMA = 1
Triple = tuple[str, str, str]
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
_UNITS = (*_SECONDS, "cycles")
_FORMS = (
    "time_UNIT, or mean_UNIT with sd_UNIT or with min_UNIT and max_UNIT, "
    "or base_UNIT, round_UNIT and rounds_mean"
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one primitive costs: a public-key call as a distribution, symmetric work by call and by KiB.

    Attributes:
        mean_s: mean time of one call in seconds (0 for symmetric work without a per-call cost).
        sd_s: standard deviation of one call in seconds.
        low_s, high_s: the least and greatest time of one call that the source gives, else mean ∓ sd.
        per_kib_s: time per KiB in seconds; 0 for public-key operations.
        energy_j: energy of one call in joules, or None if the source has none.
        note: what a reader must know about this figure.
    """

    mean_s: float
    sd_s: float = 0.0
    low_s: float = 0.0
    high_s: float = 0.0
    per_kib_s: float = 0.0
    energy_j: float | None = None
    note: str = ""

    def time_s(self, count: int, size_bytes: int) -> float:
        """Return the mean time of ``count`` calls over ``size_bytes`` bytes in all, in seconds."""
        return self.mean_s * count + self.per_kib_s * size_bytes / 1024.0


@dataclass(frozen=True, slots=True)
class Overhead:
    """Work outside the primitives, in seconds: parsing, copying, allocation."""

    per_handshake_s: float = 0.0
    per_message_s: float = 0.0
    per_byte_s: float = 0.0


@dataclass(frozen=True, slots=True)
class DeviceEnergy:
    """Power while computing and while waiting, in watts, and the battery in joules; None where unknown."""

    active_w: float | None = None
    idle_w: float | None = None
    battery_j: float | None = None


@dataclass(frozen=True, slots=True)
class Total:
    """A figure published for a whole handshake on this device, not used for pricing."""

    quantity: str
    value: float
    unit: str
    suite: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Device:
    """A validated device profile; ``assumed`` says why a key has its value where no source gives it."""

    name: str
    title: str
    chip: str
    clock_hz: float
    library: str
    build: str
    date: str
    source: tuple[str, ...]
    note: str
    overhead: Overhead
    energy: DeviceEnergy
    costs: Mapping[Triple, Cost]
    totals: tuple[Total, ...]
    assumed: Mapping[str, str] = field(default_factory=dict)

    @property
    def priced(self) -> bool:
        """Whether the profile has any primitive; without one it is description and totals only."""
        return bool(self.costs)

    def summary(self) -> dict[str, Any]:
        """What ``devices --json`` says of the device, its primitives only counted."""
        return {
            "name": self.name,
            "title": self.title,
            "chip": self.chip,
            "clock_hz": self.clock_hz,
            "library": self.library,
            "build": self.build,
            "date": self.date,
            "source": list(self.source),
            "note": self.note,
            "assumed": dict(self.assumed),
            "primitives": len(self.costs),
        }

    def as_json(self) -> dict[str, Any]:
        """The whole profile, times in seconds."""
        primitives = [
            {"operation": operation, "algorithm": algorithm, "parameters": parameters, **asdict(cost)}
            for (operation, algorithm, parameters), cost in sorted(self.costs.items())
        ]
        return {
            **self.summary(),
            "overhead": asdict(self.overhead),
            "energy": asdict(self.energy),
            "primitives": primitives,
            "totals": [asdict(total) for total in self.totals],
        }


def parse_device(document: Mapping[str, Any], where: str) -> Device:
    """Validate a device profile.

    Args:
        document: the parsed TOML document.
        where: how complaints name the file.

    Raises:
        InputError: naming file, table, key and what is accepted.
    """
    top = Table(document, where)
    if top.number("schema") != SCHEMA:
        raise top.fail(f"schema is {document['schema']!r}; accepted: {SCHEMA}")
    assumed = top.assumptions()
    name = top.text("name")
    title, chip = top.text("title"), top.text("chip")
    clock_hz = top.number("clock_hz", above=0)
    library, build, date = top.text("library", ""), top.text("build", ""), top.text("date")
    source, note = top.texts("source"), top.text("note", "")
    overhead, energy = _overhead(top.table("overhead")), _energy(top.table("energy"))
    costs: dict[Triple, Cost] = {}
    for table in top.tables("primitive"):
        triple, cost = _primitive(table, clock_hz)
        if triple in costs:
            raise table.fail(f"duplicate primitive {' '.join(triple).strip()}; accepted: one entry a triple")
        costs[triple] = cost
    totals = tuple(_total(table) for table in top.tables("total"))
    top.finish(
        [
            "schema",
            "name",
            "title",
            "chip",
            "clock_hz",
            "library",
            "build",
            "date",
            "source",
            "note",
            "assumed",
            "overhead",
            "energy",
            "primitive",
            "total",
        ]
    )
    if costs and not (library and build):
        raise top.fail("library and build are missing; a profile with primitives names both")
    return Device(
        name,
        title,
        chip,
        clock_hz,
        library,
        build,
        date,
        source,
        note,
        overhead,
        energy,
        costs,
        totals,
        assumed,
    )


def _overhead(table: Table) -> Overhead:
    keys = ["per_handshake_us", "per_message_us", "per_byte_us"]
    values = [table.number(key, 0.0) * 1e-6 for key in keys]
    table.finish(keys)
    return Overhead(*values)


def _energy(table: Table) -> DeviceEnergy:
    keys = ["active_w", "idle_w", "battery_j"]
    values = [table.number(key, above=0) if key in table else None for key in keys]
    table.finish(keys)
    return DeviceEnergy(*values)


def _total(table: Table) -> Total:
    total = Total(
        table.text("quantity"),
        table.number("value"),
        table.text("unit"),
        table.text("suite", ""),
        table.text("note", ""),
    )
    table.finish(["quantity", "value", "unit", "suite", "note"])
    return total


def _primitive(table: Table, clock_hz: float) -> tuple[Triple, Cost]:
    triple = (table.text("operation"), table.text("algorithm"), table.text("parameters", ""))
    fault = triple_fault(*triple)
    if fault:
        raise table.fail(fault)
    table.where += f" ({' '.join(triple).strip()})"
    note = table.text("note", "")
    energy_j = table.number("energy_j") if "energy_j" in table else None
    if triple[0] in SYMMETRIC_OPERATIONS:
        per_call_s = table.number("per_call_us", 0.0) * 1e-6
        per_kib_s = table.number("per_kib_us", 0.0) * 1e-6
        table.finish(
            ["operation", "algorithm", "parameters", "per_call_us", "per_kib_us", "energy_j", "note"]
        )
        if per_call_s == per_kib_s == 0.0:
            raise table.fail("no cost; accepted: per_call_us, per_kib_us or both")
        return triple, Cost(per_call_s, 0.0, per_call_s, per_call_s, per_kib_s, energy_j, note)
    cost = _distribution(table, clock_hz, energy_j, note)
    table.finish(["operation", "algorithm", "parameters", _FORMS, "energy_j", "note"])
    return triple, cost


def _distribution(table: Table, clock_hz: float, energy_j: float | None, note: str) -> Cost:
    for word in ("time", "mean", "min", "max", "sd", "base", "round"):
        if word in table:
            accepted = ", ".join(f"{word}_{unit}" for unit in _UNITS)
            raise table.fail(f"{word} lacks a unit; accepted: {accepted}")

    def read(word: str) -> float | None:
        given = [unit for unit in _UNITS if f"{word}_{unit}" in table]
        if len(given) > 1:
            raise table.fail(f"{word} is given in {' and '.join(given)}; accepted: one unit")
        if not given:
            return None
        return table.number(f"{word}_{given[0]}") * (_SECONDS.get(given[0]) or 1.0 / clock_hz)

    time_s, mean_s, base_s = read("time"), read("mean"), read("base")
    if sum(value is not None for value in (time_s, mean_s, base_s)) != 1:
        raise table.fail(f"not exactly one form of cost; accepted: {_FORMS}")
    if time_s is not None:
        return Cost(time_s, 0.0, time_s, time_s, 0.0, energy_j, note)
    if base_s is not None:
        round_s = read("round")
        if round_s is None:
            raise table.fail(f"base without round; accepted: {_FORMS}")
        rounds = table.number("rounds_mean", minimum=1.0)
        sd_s = round_s * math.sqrt(rounds * (rounds - 1.0))  # geometric number of rounds, at least one
        mean = base_s + rounds * round_s
        return Cost(mean, sd_s, base_s + round_s, mean + sd_s, 0.0, energy_j, note)
    assert mean_s is not None
    low_s, high_s, sd_s_given = read("min"), read("max"), read("sd")
    if (low_s is None) != (high_s is None):
        raise table.fail("min and max come together; accepted: both or neither")
    if low_s is None or high_s is None:
        sd_s = sd_s_given or 0.0
        return Cost(mean_s, sd_s, max(0.0, mean_s - sd_s), mean_s + sd_s, 0.0, energy_j, note)
    if not low_s <= mean_s <= high_s:
        raise table.fail("mean is not between min and max; accepted: min <= mean <= max")
    # A rejection loop is close to a shifted exponential: its deviation is the mean above the minimum.
    sd_s = mean_s - low_s if sd_s_given is None else sd_s_given
    return Cost(mean_s, sd_s, low_s, high_s, 0.0, energy_j, note)
