"""Rates and durations as people write and read them."""

from __future__ import annotations

import re

from shakedown.errors import InputError

_NUMBER = r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*"
_PER = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}


def parse_rate_per_s(text: str | float) -> float:
    """`300/s`, `20/min`, `300`: handshakes per second. Raises `InputError`."""
    match = re.fullmatch(_NUMBER + r"(?:/\s*(\w+))?\s*", str(text))
    if match is None or (match[2] or "s") not in _PER:
        raise InputError(f'"{text}" is no rate; accepted: a number per second, as 300/s, 20/min, 90/h or 300')
    return float(match[1]) / _PER[match[2] or "s"]


def parse_duration_s(text: str | float) -> float:
    """`5s`, `250ms`, `2min`, `5`: seconds. Raises `InputError`."""
    match = re.fullmatch(_NUMBER + r"([^\W\d]+)?\s*", str(text))
    if match is None or (match[2] or "s") not in _SECONDS:
        raise InputError(f'"{text}" is no duration; accepted: a number of seconds, as 5s, 250ms, 2min or 5')
    return float(match[1]) * _SECONDS[match[2] or "s"]


def seconds(value: float) -> str:
    """`320 µs`, `34 ms`, `2.8 s`, `21 min`."""
    if 0 < value < 0.0009995:
        return f"{1e6 * value:.0f} µs"
    if value < 0.9995:
        return f"{1000 * value:.0f} ms" if value >= 0.00995 else f"{1000 * value:.1f} ms"
    if value < 99.5:
        return f"{value:.1f} s"
    return f"{value:.0f} s" if value < 600 else f"{value / 60:.0f} min"


def duration_us(microseconds: float) -> str:
    """Microseconds as `45 µs`, `1.22 ms`, `18.3 ms`, `1.40 s`."""
    if microseconds < 999.5:
        return f"{microseconds:.0f} µs" if microseconds >= 9.95 else f"{microseconds:.1f} µs"
    if microseconds < 999_500:
        value = microseconds / 1000
        return f"{value:.2f} ms" if value < 10 else f"{value:.1f} ms" if value < 100 else f"{value:.0f} ms"
    return f"{microseconds / 1e6:.2f} s"
