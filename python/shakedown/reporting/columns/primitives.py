"""Columns of the costs of primitives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from shakedown.profiles.vocabulary import PUBLIC_KEY_OPERATIONS
from shakedown.reporting.columns import ALWAYS, OFTEN, ROOM, Column, ObjectTable, label
from shakedown.reporting.figures import number

if TYPE_CHECKING:
    from shakedown.schema.primitives import Timing


def _microseconds(key: str, name: str, meaning: str, rank: int = ALWAYS) -> Column:
    return Column(
        key=key, name=name, unit="us", rank=rank, meaning=meaning,
        show=lambda value: "" if value is None else number(value), min_width=len("12,345"),
    )  # fmt: skip


PRIMITIVES = (
    label("operation", "operation"),
    label("algorithm", "algorithm"),
    label("parameters", "parameters", show=lambda value: value or ""),
    _microseconds("us", "per call", "median; of signing with ML-DSA, whose calls differ by chance, the mean"),
    _microseconds("per_kib_us", "per KiB", "of symmetric work, beyond the call", OFTEN),
    _microseconds("min_us", "min", "the shortest call", ROOM),
    _microseconds("mean_us", "mean", "the mean of all calls", ROOM),
    _microseconds("sd_us", "sd", "standard deviation of the calls", ROOM),
)


def table(timed: Sequence[Timing]) -> ObjectTable:
    return ObjectTable(PRIMITIVES, list(_rows(timed)), "primitives on this machine, µs")


def _rows(timed: Sequence[Timing]) -> Iterator[dict[str, Any]]:
    """One row per primitive, public-key operations first, in their order."""
    order = {name: place for place, name in enumerate(PUBLIC_KEY_OPERATIONS)}
    for one in sorted(timed, key=lambda one: order.get(one.operation, len(order))):
        middle = one.us.mean if (one.operation, one.algorithm) == ("sign", "mldsa") else one.us.median
        symmetric = one.per_call_us is not UNSET
        yield {
            "operation": one.operation,
            "algorithm": one.algorithm,
            "parameters": one.parameters,
            "us": one.per_call_us if symmetric else middle,
            "per_kib_us": one.per_kib_us if symmetric else None,
            **{f"{name}_us": None if symmetric else getattr(one.us, name) for name in ("min", "mean", "sd")},
        }
