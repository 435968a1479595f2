"""Parses rates, durations, sizes, shares and charges."""

from __future__ import annotations

import math
import re

from shakedown.errors import InputError

_NUMBER = r"\s*([0-9]{0,15}\.?[0-9]{1,20}(?:[eE][+-]?[0-9]{1,3})?)\s*"
MIN_RATE_PER_S = 1e-9
MAX_RATE_PER_S = 1e12
MAX_DURATION_S = 1e12
"""Far above any use, and still within the range of numbers in all parts of the program."""
MIN_CHARGE_J, MAX_CHARGE_J = 1e-6, 1e12
_JOULES = {"J": 1.0, "kJ": 1e3, "mWh": 3.6, "Wh": 3600.0, "mAh": 3.6, "Ah": 3600.0}
_PER = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
_BYTES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1024.0, "MiB": 1048576.0, "GiB": 1073741824.0}
_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}


def parse_rate_per_s(text: str | float) -> float:
    """`300/s`, `20/min`, `300`: handshakes per second. Raises `InputError`."""
    match = re.fullmatch(_NUMBER + r"(?:/\s*(\w+))?\s*", _text(text))
    value = float(match[1]) / _PER.get(match[2] or "s", math.nan) if match else math.nan
    if not math.isfinite(value):
        raise InputError(
            f'"{_text(text)[:40]}" is not a rate; accepted: a number per second such as 300/s, 20/min or 90/h'
        )
    if value > MAX_RATE_PER_S or 0.0 < value < MIN_RATE_PER_S:
        raise InputError(
            f'"{_text(text)[:40]}" is out of range; accepted: from {MIN_RATE_PER_S:g} to {MAX_RATE_PER_S:g} '
            "per second"
        )
    return value


def parse_duration_s(text: str | float, unit: str = "s") -> float:
    """`5s`, `250ms`, `2min`, `5`: seconds; `unit` is that of a bare number. Raises `InputError`."""
    match = re.fullmatch(_NUMBER + r"([^\W\d]+)?\s*", _text(text))
    value = float(match[1]) * _SECONDS.get(match[2] or unit, math.nan) if match else math.nan
    if not math.isfinite(value):
        bare = "seconds" if unit == "s" else "minutes"
        raise InputError(
            f'"{_text(text)[:40]}" is not a duration; accepted: a number of {bare}, or with its unit: '
            "250ms, 5s, 2min, 1h"
        )
    if value > MAX_DURATION_S:
        raise InputError(f'"{_text(text)[:40]}" is out of range; accepted: {MAX_DURATION_S:g} s at most')
    return value


def parse_bytes(text: str) -> float:
    """`512`, `512B`, `2kB`, `64KiB`: bytes. Raises `InputError`."""
    match = re.fullmatch(_NUMBER + r"([A-Za-z]+)?\s*", text)
    value = float(match[1]) * _BYTES.get(match[2] or "B", math.nan) if match else math.nan
    if not math.isfinite(value):
        raise InputError(f'"{text[:40]}" is not a size; accepted: bytes such as 512, 512B, 2kB or 64KiB')
    return value


def parse_bytes_per_s(text: str) -> float:
    """`100B/s`, `2kB/min`, `1MB/h`: bytes per second. Raises `InputError`."""
    size, slash, per = text.partition("/")
    seconds = _PER.get(per.strip(), math.nan) if slash else math.nan
    try:
        value = parse_bytes(size) / seconds
    except InputError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(
            f'"{text[:40]}" is not a rate of bytes; accepted: a rate such as 100B/s, 2kB/min or 1MB/h'
        )
    return value


def parse_number(text: str) -> float:
    """`12`, `-0.5`, `1e-3`. Raises `InputError`, also for `1_000` and digits of other scripts."""
    try:
        found = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise InputError(f'"{text[:40]}" is not a number; accepted: digits such as 12 or 0.5')
    return found


def parse_share(text: str) -> float:
    """`0.02`, `2%`: a share of one. Raises `InputError`."""
    try:
        found = parse_number(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except InputError:
        found = math.nan
    if not 0.0 <= found <= 1.0:
        raise InputError(f'"{text[:20]}" is not a share; accepted: 0 to 1, or 0% to 100%')
    return found


def parse_charge_j(text: str | float) -> float:
    """`9000J`, `2.5Wh`, `230mAh@3V`: a battery's charge in joules. Raises `InputError`."""
    match = re.fullmatch(_NUMBER + r"(J|kJ|mWh|Wh|mAh|Ah)\s*(?:@" + _NUMBER + r"V\s*)?", _text(text))
    value = math.nan
    if match and (match[3] is not None) == match[2].endswith("Ah"):
        value = float(match[1]) * _JOULES[match[2]] * float(match[3] or 1.0)
    if not (math.isfinite(value) and MIN_CHARGE_J <= value <= MAX_CHARGE_J):
        raise InputError(
            f'"{_text(text)[:40]}" is not a charge; accepted: energy such as 9000J or 2.5Wh, or charge at a '
            f"voltage such as 230mAh@3V, from {MIN_CHARGE_J:g} to {MAX_CHARGE_J:g} J"
        )
    return value


def _text(value: str | float) -> str:
    """A number or text as text; Python cannot print integers of thousands of digits."""
    try:
        return str(value)
    except ValueError:
        return "a number of thousands of digits"
