"""Fits the growth of a stack's own work with a handshake's public-key work to measured handshakes.

The same message takes a stack several times as long after public-key work of ten milliseconds as after none:
its code and data are evicted from caches, and branch predictions are lost. Over suites of one protocol, the
logarithms of both times lie on a line, whose slope hardly differs between messages and protocols.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shakedown.profiles.overhead import is_public_key
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS
from shakedown.schema.profiles import Cooling

MIN_SUITES = 4
"""The minimum number of suites for a line."""
MIN_RANGE = 2.0
"""The minimum ratio between the largest and the smallest public-key work of these suites."""
MIN_LINES = 8
"""The minimum number of lines for a common slope."""
MIN_US = 1.0
"""Shorter work consists mostly of the clock's overhead."""
MAX_EXPONENT = 0.6


def fit(entries: Sequence[Mapping[str, Any]], rests: Mapping[Any, Sequence[tuple[int, float]]]) -> Cooling:
    """Fit both exponents.

    Args:
        entries: objects of ``measure --json``, one per suite.
        rests: by kind of message, the entry's index and the message's time without primitives (us).
    """
    public = [public_us(entry) for entry in entries]
    symmetric = [total_us(entry) for entry, us in zip(entries, public, strict=True) if us <= 0.0]
    others = [total_us(entry) - us for entry, us in zip(entries, public, strict=True)]
    from_us = max(statistics.median(symmetric or others), 1.0) if entries else 1.0
    between = [from_us + us for us in public]
    at_us = statistics.median(between) if between else 1.0
    return Cooling(
        messages=_exponent(rests.values(), between),
        symmetric=_exponent(_symmetric(entries).values(), between),
        from_s=from_us * 1e-6,
        at_s=at_us * 1e-6,
    )


def row(found: Cooling) -> dict[str, float]:
    """The table ``[overhead.cooling]``."""
    times = {"from_us": found.from_s * 1e6, "at_us": found.at_s * 1e6}
    return {"messages": found.messages, "symmetric": found.symmetric, **times}


def stack_name(entry: Mapping[str, Any]) -> str:
    """The client's stack; empty if it is unknown."""
    stack = entry.get("client_stack")
    return str(stack.get("name", "")) if isinstance(stack, dict) else ""


def public_us(entry: Mapping[str, Any]) -> float:
    """Time of both sides' public-key work."""
    return sum(
        float(one.get("us", one["mean_us"])) for one in entry["operations"] if is_public_key(one["operation"])
    )


def total_us(entry: Mapping[str, Any]) -> float:
    """Time of both sides for the handshake."""
    return sum(float(entry["handshake"][f"{side}_us"]["median"]) for side in ("client", "server"))


def _symmetric(entries: Sequence[Mapping[str, Any]]) -> dict[Any, list[tuple[int, float]]]:
    """By symmetric operation, with count and bytes: the entry's index and the median time."""
    found: dict[Any, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for index, entry in enumerate(entries):
        for one in entry["operations"]:
            if one["operation"] in SYMMETRIC_OPERATIONS and one["count"]:
                what = (stack_name(entry), one["operation"], one["algorithm"], one["count"], one["bytes"])
                found[what][index].append(float(one.get("us", one["mean_us"])))
    return {
        what: [(index, statistics.median(times)) for index, times in by_entry.items()]
        for what, by_entry in found.items()
    }


def _exponent(groups: Iterable[Sequence[tuple[int, float]]], between_us: Sequence[float]) -> float:
    """The median slope of the logarithms, over groups with enough suites and range."""
    slopes = []
    for group in groups:
        points = [(math.log(between_us[index]), math.log(time)) for index, time in group if time > 0.0]
        if len(points) < MIN_SUITES or statistics.median(time for _, time in group) < MIN_US:
            continue
        if max(x for x, _ in points) - min(x for x, _ in points) < math.log(MIN_RANGE):
            continue
        slopes.append(statistics.linear_regression(*zip(*points, strict=True)).slope)
    if len(slopes) < MIN_LINES:
        return 0.0
    return min(max(statistics.median(slopes), 0.0), MAX_EXPONENT)
