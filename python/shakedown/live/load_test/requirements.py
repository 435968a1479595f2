"""Thresholds for the figures of a load: `handshake.p99<2s`, `failed.share<1%`, `rate>250`.

The time of a failed connection is infinite, so a percentile has no value if too many connections failed. If
there are too few connections for a percentile, the longest time is compared instead. A threshold without a
value to compare is not met.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from shakedown.errors import InputError
from shakedown.schema.live import LoadFigures, Times
from shakedown.schema.units import parse_duration_s, parse_rate_per_s, parse_share

_TIMES = ("connect", "handshake", "first_byte", "start_lateness")
_STATISTICS = {"mean": None, "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
ACCEPTED = (
    f"{'|'.join(_TIMES)}.{'|'.join(_STATISTICS)}, failed.share, failed.count, resumed.share or rate, "
    "then < <= > >=, then a value: handshake.p99<2s, failed.share<1%, rate>=250/s"
)


@dataclass(frozen=True)
class Threshold:
    """A metric, an operator and a bound: seconds, a fraction, a count, or a rate per second."""

    text: str
    metric: str
    operator: str
    bound: float

    def value(self, outcome: LoadFigures) -> float | None:
        """The metric in a run; None if the run has no value."""
        name, _, statistic = self.metric.partition(".")
        failed = outcome.failed_count
        if name == "rate":
            return outcome.rate_per_s.achieved
        if name == "failed":
            share = failed / outcome.planned if outcome.planned else None
            return share if statistic == "share" else float(failed)
        if name == "resumed":
            asked = outcome.resumed.asked
            return outcome.resumed.confirmed / asked if asked else None
        times: Times = getattr(outcome, f"{name}_s")
        share_within = _STATISTICS[statistic]
        found: float | None = getattr(times, statistic)
        if name == "start_lateness":
            # Failed connections have a start time, except those that were not started.
            failed = outcome.failed.get("not started", 0)
        if not failed:
            return times.max if found is None else found
        if share_within is None:
            # A mean with an infinite time has no value.
            return None
        rank = math.ceil(share_within * (times.n + failed))
        # The corresponding percentile of completed connections, of which only a few percentiles are known.
        return None if rank > times.n else _at_least(times, rank / times.n)

    def is_met(self, outcome: LoadFigures) -> bool:
        value = self.value(outcome)
        return value is not None and _OPERATORS[self.operator](value, self.bound)


def _at_least(times: Times, share: float) -> float | None:
    """The lowest known percentile that is not below a share, which is an upper bound of the exact value."""
    for name, kept in _STATISTICS.items():
        if kept is not None and kept >= share:
            found: float | None = getattr(times, name)
            return times.max if found is None else found
    return times.max


def parse(text: str) -> Threshold:
    """Reads a threshold. Raises `InputError`."""
    match = re.fullmatch(r"\s*([a-z_0-9.]+)\s*(<=|>=|<|>)\s*(\S.*?)\s*", text)
    if match is None:
        raise InputError(f'"{text[:60]}" is not a requirement; accepted: {ACCEPTED}')
    metric, comparison, bound = match.groups()
    name, _, statistic = metric.partition(".")
    if name in _TIMES and statistic in _STATISTICS:
        value = parse_duration_s(bound)
    elif metric in ("failed.share", "resumed.share"):
        value = _share(text, bound)
    elif metric in ("failed.count", "rate"):
        value = parse_rate_per_s(bound)
    else:
        raise InputError(f'"{metric[:60]}" has no threshold; accepted: {ACCEPTED}')
    return Threshold(text=text.strip(), metric=metric, operator=comparison, bound=value)


def _share(text: str, bound: str) -> float:
    try:
        return parse_share(bound)
    except InputError as error:
        raise InputError(f'"{text[:60]}": {error}') from None
