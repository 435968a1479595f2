"""Arrivals that follow a day or a recording: `diurnal:50/s,peak=20h,swing=0.8`, `rates:FILE`, `log:FILE`."""

from __future__ import annotations

import codecs
import math
from array import array
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from shakedown.errors import InputError, did_you_mean
from shakedown.files.limits import MIB, read_lines
from shakedown.schema.units import parse_duration_s, parse_number, parse_rate_per_s

Points = tuple[tuple[float, float], ...]

DAY_S = 86_400.0
DIURNAL_POINTS = 96
"""Quarters of an hour; the rate is linear between them."""

MAX_RATES_BYTES, MAX_LOG_BYTES = 16 * MIB, 1024 * MIB
MAX_LINE_BYTES = MIB
MAX_POINTS = 1_000_000
MAX_PER_S = 1e9
MAX_CURVE_S = 1e7


def diurnal(text: str) -> Points:
    """A day from its mean rate, the time of its peak, and its swing about the mean, as a share of the mean.

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
        share = parse_number(text)
    except InputError:
        share = math.nan
    if not 0.0 <= share <= 1.0:
        raise InputError(f'swing is "{text:.20}"; accepted: a share from 0 to 1')
    return share


def read_rates(path: Path) -> Points:
    """A rate over time from a file: seconds and clients per second, a pair per line. Raises `InputError`."""
    accepted = (
        "accepted: seconds, clients per second, one pair per line, the seconds rising from 0 to "
        f"{MAX_CURVE_S:,.0f} at most, the rates up to {MAX_PER_S:,.0f}"
    )
    points: list[tuple[float, float]] = []
    for number, line in _lines(path, MAX_RATES_BYTES, "file of rates"):
        text = before_comment(path, number, line)
        if not text:
            continue
        try:
            at_s, per_s = map(parse_number, text.split(","))
        except (InputError, ValueError):
            if number == 1 and not (text[0].isdigit() or text[0] in "+-."):
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
    """The mean number of clients of a curve: the area below it."""
    return math.fsum(
        (points[index + 1][0] - at_s) * (per_s + points[index + 1][1]) / 2.0
        for index, (at_s, per_s) in enumerate(points[:-1])
    )


KEPT_OPEN = ",keep-alive="


def read_log(text: str, folder: Path | None = None) -> tuple[array[float], array[float]]:
    """Connections of an access log in the common format, `PATH` or `PATH,keep-alive=75s`: the time of each,
    and the time since the same host's previous one (infinite for its first).

    Each line is a connection; with keep-alive, lines of a host within that time are one connection. Times are
    whole seconds, so the connections of a second are spread evenly over it. Raises `InputError`.
    """
    name, kept, duration = text.rpartition(KEPT_OPEN)
    open_s = parse_duration_s(duration) if kept else None
    path = Path(name if kept else text) if folder is None else folder / (name if kept else text)
    accepted = 'accepted: an access log with lines such as 192.0.2.1 - - [10/Oct/2026:13:55:36 +0200] "GET …"'
    opened: dict[bytes, int] = {}
    last: dict[bytes, int] = {}
    seconds, since_s = array("q"), array("d")
    for number, line in _lines(path, MAX_LOG_BYTES, "log"):
        if not line.strip():
            continue
        try:
            second = _second(line.split(b" [", 1)[1].split(b"]", 1)[0])
        except (IndexError, ValueError):
            raise InputError(f"{path}, line {number}: no time; {accepted}") from None
        host = line.split(None, 1)[0]
        if open_s is not None:
            before = last.get(host)
            last[host] = second if before is None else max(before, second)
            if before is not None and second - before <= open_s:
                continue
        # Servers write lines when a request ends, so a line's time may precede that of the previous line.
        seconds.append(second)
        since_s.append(max(0, second - opened[host]) if host in opened else math.inf)
        opened[host] = second
    if not seconds:
        raise InputError(f"{path}: holds no lines; accepted: an access log")
    return _spread(path, seconds, since_s)


def _spread(path: Path, seconds: array[int], since_s: array[float]) -> tuple[array[float], array[float]]:
    """Times in ascending order since the first whole second, those of each second spread evenly over it."""
    import numpy as np

    order = np.argsort(seconds, kind="stable")
    whole, counts = np.unique(seconds, return_counts=True)
    if whole[-1] - whole[0] > MAX_CURVE_S:
        raise InputError(f"{path}: {whole[-1] - whole[0]:,} s; accepted: {MAX_CURVE_S:,.0f} s at most")
    places = np.arange(len(seconds)) - np.repeat(np.cumsum(counts) - counts, counts)
    at_s = np.repeat(whole - whole[0], counts) + (places + 0.5) / np.repeat(counts, counts)
    return array("d", at_s.tobytes()), array("d", np.asarray(since_s)[order].tobytes())


@lru_cache(maxsize=1024)
def _second(text: bytes) -> int:
    return int(datetime.strptime(text.decode("ascii"), "%d/%b/%Y:%H:%M:%S %z").timestamp())


def _lines(path: Path, most: int, what: str) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers, one at a time: as a list they would need many times the file's size."""
    number = 0
    for block in read_lines(path, most, what, max_line_bytes=MAX_LINE_BYTES):
        for line in block.splitlines():
            number += 1
            yield number, line if number > 1 else line.removeprefix(codecs.BOM_UTF8)


def before_comment(path: Path, number: int, line: bytes) -> str:
    """A line of a text file without its comment. Raises `InputError`."""
    try:
        return line.decode("utf-8").partition("#")[0].strip()
    except UnicodeDecodeError:
        raise InputError(f"{path}, line {number}: not a text file in UTF-8") from None
