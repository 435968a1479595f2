"""Arrivals that follow a day or a record: `diurnal:50/s,peak=20h,swing=0.8`, `rates:FILE`, `log:FILE`."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from shakedown.errors import InputError, did_you_mean
from shakedown.files.limits import MIB, read_lines
from shakedown.schema.units import parse_duration_s, parse_rate_per_s

Points = tuple[tuple[float, float], ...]

DAY_S = 86_400.0
DIURNAL_POINTS = 96
"""Quarters of an hour: between them the rate is a straight line."""

MAX_RATES_BYTES, MAX_LOG_BYTES = 16 * MIB, 1024 * MIB
MAX_POINTS = 1_000_000
MAX_PER_S = 1e9
MAX_CURVE_S = 1e7


def diurnal(text: str) -> Points:
    """A day: its mean rate, when it peaks, and how far the rate swings about the mean, as a share of it.

    Raises `InputError`.
    """
    rate, *rest = text.split(",")
    mean_per_s, peak_s, swing = parse_rate_per_s(rate), 20 * 3600.0, 0.8
    given: set[str] = set()
    for part in rest:
        name, _, value = (word.strip() for word in part.partition("="))
        if name in given:
            raise InputError(f"{name} is there twice; accepted: peak=20h, swing=0.8")
        given.add(name)
        if name == "peak":
            peak_s = parse_duration_s(value)
        elif name == "swing":
            swing = _share(value)
        else:
            hint = did_you_mean(name, ("peak", "swing")) or "; accepted: peak=20h, swing=0.8"
            raise InputError(f'there is no "{part.strip():.40}"{hint}')
    if not 0.0 < mean_per_s <= MAX_PER_S:
        raise InputError(f"the mean rate is {mean_per_s:g}/s; accepted: above 0, 1e9/s at most")
    if peak_s > DAY_S:
        raise InputError(f"the peak is at {peak_s / 3600.0:g}h; accepted: 0h to 24h")
    step_s = DAY_S / DIURNAL_POINTS
    turn = 2.0 * math.pi / DAY_S
    return tuple(
        (step * step_s, mean_per_s * (1.0 + swing * math.cos(turn * (step * step_s - peak_s))))
        for step in range(DIURNAL_POINTS + 1)
    )


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0.0 <= share <= 1.0:
        raise InputError(f'swing is "{text:.20}"; accepted: a share from 0 to 1')
    return share


def read_rates(path: Path) -> Points:
    """A rate over time from a file: seconds and clients a second, a pair a line. Raises `InputError`."""
    accepted = "accepted: seconds, clients per second, one pair per line, the seconds rising from 0"
    points: list[tuple[float, float]] = []
    for number, line in _lines(path, MAX_RATES_BYTES, "file of rates"):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        try:
            at_s, per_s = (float(word) for word in text.split(","))
        except ValueError:
            if number == 1:
                continue  # a header
            raise InputError(f'{path}, line {number}: "{text:.40}"; {accepted}') from None
        rising = at_s > points[-1][0] if points else at_s == 0.0
        if not (rising and at_s <= MAX_CURVE_S and 0.0 <= per_s <= MAX_PER_S):
            raise InputError(f'{path}, line {number}: "{text:.40}"; {accepted}')
        points.append((at_s, per_s))
    if not 2 <= len(points) <= MAX_POINTS or not any(per_s for _, per_s in points):
        raise InputError(
            f"{path}: number of points: {len(points):,}; accepted: 2 to {MAX_POINTS:,}, one of them above 0"
        )
    return tuple(points)


def mean_clients(points: Points) -> float:
    """How many clients a curve brings on average: the area below it."""
    return math.fsum(
        (points[index + 1][0] - at_s) * (per_s + points[index + 1][1]) / 2.0
        for index, (at_s, per_s) in enumerate(points[:-1])
    )


KEPT_OPEN = ",keep-alive="


def read_log(text: str, folder: Path | None = None) -> tuple[array[float], array[float]]:
    """Connections of an access log in the common format, `PATH` or `PATH,keep-alive=75s`: when each comes,
    and the time since the same host's one before (infinite for its first).

    Each line is a connection; with keep-alive, lines of a host that are no further apart are one. Times are
    whole seconds, so the connections of a second are spread evenly over it. Raises `InputError`.
    """
    name, kept, duration = text.rpartition(KEPT_OPEN)
    open_s = parse_duration_s(duration) if kept else None
    path = Path(name if kept else text) if folder is None else folder / (name if kept else text)
    accepted = 'accepted: an access log with lines such as 192.0.2.1 - - [10/Oct/2026:13:55:36 +0200] "GET …"'
    opened: dict[str, int] = {}
    last: dict[str, int] = {}
    found: list[tuple[int, float]] = []
    for number, line in _lines(path, MAX_LOG_BYTES, "access log"):
        if not line.strip():
            continue
        try:
            second = _second(line.split("[", 1)[1].split("]", 1)[0])
        except (IndexError, ValueError):
            raise InputError(f"{path}, line {number}: no time; {accepted}") from None
        host = line.split(None, 1)[0]
        before = last.get(host)
        last[host] = second if before is None else max(before, second)
        if open_s is not None and before is not None and second - before <= open_s:
            continue
        # Servers write lines when a request ends, so a line may be earlier than the one before it.
        found.append((second, math.inf if before is None else float(max(0, second - opened[host]))))
        opened[host] = second
    if not found:
        raise InputError(f"{path}: holds no lines; accepted: an access log")
    found.sort(key=lambda one: one[0])
    first = found[0][0]
    if found[-1][0] - first > MAX_CURVE_S:
        raise InputError(f"{path}: {found[-1][0] - first:,} s; accepted: {MAX_CURVE_S:,.0f} s at most")
    seconds = Counter(second for second, _ in found)
    times = array("d")
    for second, many in seconds.items():
        times.extend(second - first + (place + 0.5) / many for place in range(many))
    return times, array("d", (since_s for _, since_s in found))


@lru_cache(maxsize=1024)
def _second(text: str) -> int:
    return int(datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z").timestamp())


def _lines(path: Path, most: int, what: str) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for block in read_lines(path, most, what):
        try:
            text = block.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InputError(f"{path}: not a text file in UTF-8") from None
        found += [(len(found) + place, line) for place, line in enumerate(text.splitlines(), start=1)]
    return found
