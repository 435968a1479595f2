"""When clients arrive: `poisson:50/s`, `deterministic:50/s`, `bursts:100@2/min`, `storm:10s`,
`storm:10s+backoff`, `diurnal:50/s`, `rates:PATH`, `file:PATH`, `log:PATH`.
"""

from __future__ import annotations

import codecs
import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from shakedown.errors import InputError, did_you_mean
from shakedown.files.limits import MIB, read_lines
from shakedown.schema.units import parse_duration_s, parse_number, parse_rate_per_s
from shakedown.simulation.rate_curves import (
    MAX_LINE_BYTES,
    Points,
    before_comment,
    diurnal,
    read_log,
    read_rates,
)

ArrivalKind = Literal["poisson", "deterministic", "bursts", "storm", "curve", "file"]
KINDS = ("poisson", "deterministic", "bursts", "storm", "diurnal", "rates", "file", "log")

FROM_FILE = ("file", "rates", "log")
"""Kinds whose text is a path."""

MAX_TIMES_BYTES = 256 * MIB
MAX_BURST = 100_000_000
MAX_STORM_S = 1e7
BACKOFF = "backoff"

ACCEPTED = (
    "poisson:50/s, deterministic:50/s, bursts:100@2/min (100 at once, twice a minute), storm:10s, "
    "storm:10s+backoff, diurnal:50/s,peak=20h,swing=0.8, rates:PATH, file:PATH, log:PATH"
)


@dataclass(frozen=True)
class Arrivals:
    """An arrival process.

    Attributes:
        text: the text that was parsed.
        rate_per_s: mean number of clients per second; None without a steady rate (storms, files).
        size: clients per burst.
        within_s: the time in which a storm's clients arrive, uniformly distributed.
        backoff: clients that fail retry after random pauses whose maximum doubles.
        points: times in s and rates per s of a curve.
        at_s: times of a file, in ascending order; eight bytes each, for there may be millions.
        since_s: for a log, the time since the same host's previous connection; infinite for its first.
        is_daily: the curve is a day, which repeats.
    """

    text: str
    kind: ArrivalKind
    rate_per_s: float | None = None
    size: int = 1
    within_s: float = 0.0
    backoff: bool = False
    points: Points = ()
    at_s: Sequence[float] = ()
    since_s: Sequence[float] = ()
    is_daily: bool = False

    @property
    def span_s(self) -> float:
        """Time from the first arrival to the last of a storm, a curve or a file."""
        if self.points:
            return self.points[-1][0]
        return self.at_s[-1] - self.at_s[0] if self.at_s else self.within_s

    @property
    def steady(self) -> bool:
        """Whether clients arrive at one rate during the whole simulation."""
        return self.rate_per_s is not None

    def spec(self) -> dict[str, Any]:
        if self.kind == "storm":
            return {"kind": "storm", "within_s": self.within_s}
        if self.kind == "file":
            return {"kind": "times", "at_s": self.at_s}
        if self.kind == "curve":
            return {"kind": "curve", "points": self.points}
        assert self.rate_per_s is not None
        if self.kind == "bursts":
            return {"kind": "bursts", "per_s": self.rate_per_s / self.size, "size": self.size}
        return {"kind": self.kind, "per_s": self.rate_per_s}


def parse_arrivals(text: str, folder: Path | None = None) -> Arrivals:
    """Read an arrival spec; a file's path is relative to `folder`. Raises `InputError`."""
    written = text.strip()
    kind, colon, rest = written.partition(":")
    kind, rest = kind.strip().lower(), rest.strip()
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS)
        raise _wrong(written, f'there is no "{_cut(kind)}"{hint}; accepted: {ACCEPTED}')
    if not colon or not rest:
        raise _wrong(written, f"{kind} has no value; accepted: {ACCEPTED}")
    if kind == "storm":
        return _storm(written, rest)
    if kind == "diurnal":
        try:
            return Arrivals(written, "curve", points=diurnal(rest), is_daily=True)
        except InputError as error:
            raise _wrong(written, str(error)) from None
    if kind == "log":
        at_s, since_s = read_log(rest, folder)
        return Arrivals(written, "file", at_s=at_s, since_s=since_s)
    if kind in FROM_FILE:
        path = Path(rest) if folder is None else folder / rest
        if kind == "rates":
            return Arrivals(written, "curve", points=read_rates(path))
        return _file(written, path)
    if kind == "bursts":
        return _bursts(written, rest)
    rate = _rate(written, rest)
    return Arrivals(written, "poisson" if kind == "poisson" else "deterministic", rate)


def _rate(written: str, text: str) -> float:
    try:
        rate = parse_rate_per_s(text)
    except InputError as error:
        raise _wrong(written, str(error)) from None
    if rate <= 0.0:
        raise _wrong(written, "no client arrives at a rate of 0; accepted: a rate above 0")
    return rate


def _bursts(written: str, rest: str) -> Arrivals:
    size, at, rate = rest.partition("@")
    if not at:
        raise _wrong(written, "the rate of bursts is missing; accepted: SIZE@RATE such as bursts:100@2/min")
    count = int(size) if size.strip().isascii() and size.strip().isdigit() and len(size) < 16 else 0
    if not 1 <= count <= MAX_BURST:
        raise _wrong(
            written,
            f'a burst of "{_cut(size)}"; accepted: a whole number of clients from 1 to {MAX_BURST:,}',
        )
    return Arrivals(written, "bursts", _rate(written, rate) * count, size=count)


def _storm(written: str, rest: str) -> Arrivals:
    duration, plus, more = rest.partition("+")
    if plus and more.strip().lower() != BACKOFF:
        hint = did_you_mean(more.strip().lower(), [BACKOFF]) or f"; accepted: +{BACKOFF}"
        raise _wrong(written, f'there is no "+{_cut(more)}"{hint}')
    try:
        within_s = parse_duration_s(duration)
    except InputError as error:
        raise _wrong(written, str(error)) from None
    if within_s > MAX_STORM_S:
        raise _wrong(written, f"a storm of {within_s:,.0f} s; accepted: {MAX_STORM_S:,.0f} s at most")
    return Arrivals(written, "storm", within_s=within_s, backoff=bool(plus))


def _file(written: str, path: Path) -> Arrivals:
    """One time per line, in seconds, ascending; empty lines and text after a # are ignored."""
    times = array("d")
    lines = 0
    blocks = read_lines(path, MAX_TIMES_BYTES, "file of times", max_line_bytes=MAX_LINE_BYTES)
    # A mebibyte at a time: millions of lines as objects would need many times the file's size.
    for begin, block in enumerate(blocks):
        text = block if begin else block.removeprefix(codecs.BOM_UTF8)
        before_s = times[-1] if times else 0.0
        found = _plain(text, before_s)
        times.extend(_checked(path, text, lines, before_s) if found is None else found)
        lines += text.count(b"\n")
    if not times:
        raise InputError(f"{path}: holds no times; {_ACCEPTED_TIMES}")
    return Arrivals(written, "file", at_s=times)


_ACCEPTED_TIMES = (
    f"accepted: one time per line, in seconds from the start, in rising order, {MAX_STORM_S:,.0f} at most"
)


def _plain(text: bytes, before_s: float) -> array[float] | None:
    """Times, if all lines contain only a time, in ascending order; otherwise None."""
    import numpy as np

    if text.translate(None, b"0123456789.eE+-\r\n"):
        return None
    try:
        found = array("d", map(float, text.removesuffix(b"\n").split(b"\n")))
    except ValueError:
        return None
    times = np.frombuffer(found)
    rising = times[0] >= before_s and bool(np.all(times[1:] >= times[:-1]))
    return found if rising and times[-1] <= MAX_STORM_S else None


def _checked(path: Path, text: bytes, before: int, before_s: float) -> array[float]:
    """Times of lines of any form; `before` is the number of earlier lines. Raises `InputError`."""
    times = array("d")
    for number, line in enumerate(text.removesuffix(b"\n").split(b"\n"), start=before + 1):
        word = before_comment(path, number, line)
        if not word:
            continue
        try:
            at_s = parse_number(word)
        except InputError:
            at_s = math.nan
        if not 0.0 <= at_s <= MAX_STORM_S:
            raise InputError(f'{path}, line {number}: "{_cut(word)}" is not a time; {_ACCEPTED_TIMES}')
        if at_s < before_s:
            raise InputError(f"{path}, line {number}: {word} comes after {before_s:g}; {_ACCEPTED_TIMES}")
        times.append(at_s)
        before_s = at_s
    return times


def _wrong(written: str, what: str) -> InputError:
    return InputError(f'arrivals "{_cut(written)}": {what}')


def _cut(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
