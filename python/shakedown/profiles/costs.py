"""The cost of one primitive in a device profile, and reading it from a TOML table."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shakedown.profiles.tables import Table
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS, triple_fault

Triple = tuple[str, str, str]
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
_UNITS = (*_SECONDS, "cycles")
_FORMS = (
    "time_UNIT, or mean_UNIT with sd_UNIT or with min_UNIT and max_UNIT, "
    "or base_UNIT, round_UNIT and rounds_mean"
)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one primitive: the distribution of a public-key call, or symmetric work per call and KiB.

    Attributes:
        mean_s: mean time of one call in seconds (0 for symmetric work without a per-call cost).
        sd_s: standard deviation of one call in seconds.
        low_s, high_s: minimum and maximum time of one call if the source has them, else mean ∓ sd.
        per_kib_s: time per KiB in seconds; 0 for public-key operations.
        energy_j: energy of one call in joules, or None if the source has none.
        source: the number of the profile's source of this figure, from 1; 0 if it is not specified.
        note: a remark for users of this figure.
    """

    mean_s: float
    sd_s: float = 0.0
    low_s: float = 0.0
    high_s: float = 0.0
    per_kib_s: float = 0.0
    energy_j: float | None = None
    source: int = 0
    note: str = ""

    def time_s(self, count: float, size_bytes: float) -> float:
        """Return the mean time of ``count`` calls over a total of ``size_bytes`` bytes, in seconds."""
        return self.mean_s * count + self.per_kib_s * size_bytes / 1024.0


def read_primitive(table: Table, clock_hz: float, sources: int) -> tuple[Triple, Cost]:
    """Read one ``[[primitive]]``. Raises `InputError` with the key and the accepted values."""
    triple = (table.text("operation"), table.text("algorithm"), table.text("parameters", ""))
    fault = triple_fault(*triple)
    if fault:
        raise table.fail(fault)
    table.where += f" ({' '.join(triple).strip()})"
    note = table.text("note", "")
    energy_j = table.maybe("energy_j")
    source = table.maybe("source", maximum=sources, minimum=1) or 0.0
    if source != int(source):
        raise table.fail(f"source is {source}; accepted: the number of one of the profile's sources")
    if triple[0] in SYMMETRIC_OPERATIONS:
        per_call_s = table.number("per_call_us", 0.0) * 1e-6
        per_kib_s = table.number("per_kib_us", 0.0) * 1e-6
        table.finish()
        if per_call_s == per_kib_s == 0.0:
            raise table.fail("no cost; accepted: per_call_us, per_kib_us or both")
        return triple, Cost(per_call_s, 0.0, per_call_s, per_call_s, per_kib_s, energy_j, int(source), note)
    mean_s, sd_s, low_s, high_s = _distribution(table, clock_hz)
    table.finish(_FORMS)
    if mean_s == 0.0 and not note:
        raise table.fail("the time is 0; accepted: above 0, or a note with the reason for a cost of 0")
    return triple, Cost(mean_s, sd_s, low_s, high_s, 0.0, energy_j, int(source), note)


def _distribution(table: Table, clock_hz: float) -> tuple[float, float, float, float]:
    """Mean, standard deviation, minimum and maximum time of one call, in seconds."""
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
        return time_s, 0.0, time_s, time_s
    if base_s is not None:
        round_s = read("round")
        if round_s is None:
            raise table.fail(f"base without round; accepted: {_FORMS}")
        rounds = table.number("rounds_mean", minimum=1.0)
        sd_s = round_s * math.sqrt(rounds * (rounds - 1.0))  # geometric number of rounds, at least one
        mean = base_s + rounds * round_s
        return mean, sd_s, base_s + round_s, mean + sd_s
    assert mean_s is not None
    low_s, high_s, sd_s_given = read("min"), read("max"), read("sd")
    if (low_s is None) != (high_s is None):
        raise table.fail("only one of min and max is given; accepted: both or neither")
    if low_s is None or high_s is None:
        sd_s = sd_s_given or 0.0
        return mean_s, sd_s, max(0.0, mean_s - sd_s), mean_s + sd_s
    if not low_s <= mean_s <= high_s:
        raise table.fail("mean is not between min and max; accepted: min <= mean <= max")
    # A rejection loop is close to a shifted exponential, whose standard deviation is mean - minimum.
    return mean_s, mean_s - low_s if sd_s_given is None else sd_s_given, low_s, high_s
