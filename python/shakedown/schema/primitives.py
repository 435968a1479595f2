"""The output of `primitives --json`: the cost of each cryptographic operation on this machine."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from shakedown.schema.base import Class, Count, Number, Object, Text


class Distribution(Object, frozen=True, kw_only=True):
    """A distribution of readings; `low` and `high` are the 95 % interval of the median.

    `preempted` readings were discarded because the thread was preempted.
    """

    median: Number
    mean: Number
    sd: Number
    min: Number
    max: Number
    n: Count
    low: Number
    high: Number
    p05: Number
    p25: Number
    p75: Number
    p95: Number
    p99: Number
    preempted: Count


class Timing(Object, frozen=True, kw_only=True, rename={"class_": "class"}):
    """A primitive's time: of a public-key call, or of symmetric work on `bytes` bytes."""

    operation: Text
    algorithm: str
    parameters: str
    class_: Class
    us: Distribution
    bytes: Count
    per_call_us: Number | UnsetType = UNSET
    per_kib_us: Number | UnsetType = UNSET


PRINTED = {
    "primitive": (Timing, "An object of primitives --json."),
}
