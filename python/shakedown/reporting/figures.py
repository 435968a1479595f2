"""Formats figures with their units for the terminal, the report and the papers.

None is printed as a dash. The default is three significant digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

NOTHING, UNKNOWN = "–", "unknown"

BASIS_MARKS = {"own": "", "scaled": "~", "assumed": "≈", "unknown": "≥"}
"""The marks before figures that are not based on the device's own figures only."""
LEGEND = {
    "~": "~ scaled from other figures of the device",
    "≈": "≈ in part assumed",
    "≥": "≥ a lower bound: a part has no figure",
    "≤": "≤ an upper bound: a part of the work has no figure",
}

_MINUTE_S = 60.0
_TIMES_S = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_ENERGIES_J = ((1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"))
_GIVEN_DIGITS = 6
MIN_IN_UNIT = 0.1
"""A figure below this share of a unit is printed in the next smaller unit."""
_POWERS_W = ((1.0, "W"), (1e-3, "mW"), (1e-6, "µW"))


def number(value: float | None, digits: int = 3) -> str:
    """`0.0341`, `1.21`, `152`, `12,345`: significant digits; all digits before the decimal point are kept."""
    if value is None:
        return NOTHING
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    # Rounded first, so that 9.996 becomes 10.0 and not 10.00.
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded if decimals else value:,.{decimals}f}"


def rough(value: float, digits: int = 2) -> str:
    """`0.034`, `1.2`, `12,000`: significant digits, followed by zeros."""
    return number(float(f"{value:.{digits}g}"), digits)


def digits_of(value: float | None, low: float | None, high: float | None) -> int:
    """Significant digits that a range supports: three within 2 %, one beyond a factor of 2, else two."""
    if value is None or low is None or high is None or value == 0.0:
        return 2
    relative = max(high - value, value - low) / abs(value)
    return 3 if relative < 0.02 else 2 if relative < 1.0 else 1


def time(seconds: float | None, digits: int = 3) -> str:
    """`320 ns`, `45.0 µs`, `1.22 ms`, `2.85 s`, `21 min`."""
    if seconds is None:
        return NOTHING
    if seconds == 0:
        return "0"
    if abs(seconds) < 0.5e-9:
        return "< 1 ns"
    size, unit = _time_unit(seconds, digits)
    return (
        f"{seconds / size:,.0f} {unit}" if size == _MINUTE_S else f"{number(seconds / size, digits)} {unit}"
    )


def with_margin(value: float, margin: float) -> str:
    """`148.0 ± 0.2`, `43.2 ± 1.9`: a margin of one significant digit, two if the first is 1, and its value to
    the same decimal. A margin that five digits of the value do not show is omitted.
    """
    if margin <= abs(value) * 0.5e-4:
        return number(value, 5)
    digits = 2 if f"{margin:.1e}".startswith("1") else 1
    decimals = max(0, digits - 1 - math.floor(math.log10(margin)))
    return f"{value:,.{decimals}f} ± {margin:,.{decimals}f}"


def time_with_margin(seconds: float, margin_s: float) -> str:
    """`148.0 ± 0.2 ms`: both in the unit of the value."""
    size, unit = _time_unit(seconds, 3)
    return f"{with_margin(seconds / size, margin_s / size)} {unit}"


def as_given(seconds: float) -> str:
    """A time that was given, of up to six digits without zeros after them: `2 s`, `258.5 ms`, `20 min`."""
    size, unit = _time_unit(seconds, _GIVEN_DIGITS)
    if size == _MINUTE_S and seconds % size:
        size, unit = _TIMES_S[0]
    return f"{given(seconds / size)} {unit}"


def given(value: float | None) -> str:
    """A number that was given, of up to six digits without zeros after them: `12,345`, `0.5`."""
    return NOTHING if value is None else _trimmed(number(value, _GIVEN_DIGITS))


def trimmed(value: float) -> str:
    """`2`, `0.5`, `1,234`, `0.0000666`: three digits, without zeros after the last one."""
    return _trimmed(number(value))


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def time_range(low_s: float, high_s: float, digits: int = 3) -> str:
    """`0.86 s – 1.3 s`: both ends in the unit of the longer."""
    size, unit = _time_unit(high_s, digits)
    low_text, high_text = time(low_s, digits), time(high_s, digits)
    if size == _MINUTE_S and low_s < _MINUTE_S:
        return f"{low_text} – {high_text}"
    low_digits = 2 if size == _MINUTE_S else digits
    return _range(low_s / size, unit, low_text, high_text, low_digits)


def _time_unit(seconds: float, digits: int) -> tuple[float, str]:
    if abs(seconds) >= 599.5:
        return _MINUTE_S, "min"
    return next((one for one in _TIMES_S if abs(_rounded(seconds, digits)) >= one[0]), _TIMES_S[-1])


def _range(low: float, unit: str, low_text: str, high_text: str, digits: int) -> str:
    """Two ends; the low one, ``low`` in the unit of the high one, keeps its own unit if it is far below."""
    is_near = low >= MIN_IN_UNIT and not low_text.endswith(f" {unit}")
    return f"{f'{number(low, digits)} {unit}' if is_near else low_text} – {high_text}"


def marked(text: str, basis: str | None) -> str:
    """A figure with the mark of its basis: `≈ 1.2 s`."""
    mark = BASIS_MARKS.get(basis or "own", "")
    return f"{mark} {text}" if mark else text


def rounded_down(value: float, digits: int = 2) -> float:
    """The largest number of `digits` significant digits that is not greater, for lower bounds."""
    return float(Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(repr(float(value))))


def rounded_up(value: float, digits: int = 2) -> float:
    """The smallest number of `digits` significant digits that is not less, for upper bounds."""
    return float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(value))))


def time_beyond(seconds: float, limit_s: float, digits: int, *, down: bool = False) -> str:
    """A time above a limit, of `digits` significant digits, or of as many as show that it is above. With
    `down`, it is a lower bound and is rounded down.
    """
    for more in range(digits, 17):
        shown_s = rounded_down(seconds, more) if down else float(f"{seconds:.{more}g}")
        if shown_s > limit_s:
            shown = time(shown_s, more)
            # Minutes are printed without decimals.
            hidden = shown.endswith(" min") and shown == time(limit_s)
            return f"{number(shown_s, more)} s" if hidden else shown
    return time(seconds, digits)


def marked_time(seconds: float, basis: str | None, digits: int = 2) -> str:
    """A time of `digits` significant digits with the mark of its basis; a lower bound is rounded down."""
    unknown = BASIS_MARKS.get(basis or "own") == BASIS_MARKS["unknown"]
    shown = rounded_down(seconds, digits) if unknown else float(f"{seconds:.{digits}g}")
    return marked(time(shown, digits), basis)


def marked_rate(per_s: float, basis: str | None) -> str:
    """A rate that a server's work limits; an upper bound, rounded up, if some of the work has no figure."""
    if BASIS_MARKS.get(basis or "own") == BASIS_MARKS["unknown"]:
        return f"≤ {rough(rounded_up(per_s))}"
    return marked(rough(per_s), basis)


def bounded(
    show: Callable[[float], str],
    estimate: float | None,
    lower: float | None,
    upper: float | None,
    between: Callable[[float, float], str] | None = None,
    digits: int = 2,
) -> str:
    """An estimate; without one its bounds, rounded outwards, or `unknown`. ``between`` prints two bounds."""
    if estimate is not None:
        return show(estimate)
    least = rounded_down(lower, digits) if lower else 0.0
    most = None if upper is None else rounded_up(upper, digits)
    if lower and most is not None:
        return between(least, most) if between else f"{show(least)} – {show(most)}"
    if lower and not show(lower).startswith("<"):
        return f"≥ {show(least)}"
    return UNKNOWN if most is None else f"≤ {show(most)}"


def legend(bases: Iterable[str | None], *, of_rates: bool = False) -> str:
    """Explains the marks of these bases; empty if all figures are the devices' own."""
    marks = {BASIS_MARKS.get(basis or "own", "") for basis in bases}
    if of_rates and BASIS_MARKS["unknown"] in marks:
        marks ^= {BASIS_MARKS["unknown"], "≤"}
    return "; ".join(text for mark, text in LEGEND.items() if mark in marks)


def no_figure(side: str, operation: str, algorithm: str, parameters: str, reason: str) -> str:
    return f"no figure: {without_figure(side, operation, algorithm, parameters, reason)}"


def without_figure(side: str, operation: str, algorithm: str, parameters: str, reason: str) -> str:
    """An operation without a figure, and the reason."""
    return f"{side} {' '.join(filter(None, (operation, algorithm, parameters)))}: {reason}"


def energy(joules: float | None, digits: int = 2) -> str:
    """`540 mJ`, `1.2 J`."""
    if joules is None:
        return NOTHING
    size, unit = _energy_unit(joules)
    return f"{number(joules / size, digits)} {unit}"


def energy_range(low_j: float, high_j: float, digits: int = 2) -> str:
    """`0.95 J – 1.2 J`: both ends in the unit of the greater."""
    low_j, high_j = (float(f"{one:.{digits}g}") for one in (low_j, high_j))
    size, unit = _energy_unit(high_j)
    return _range(low_j / size, unit, energy(low_j, digits), energy(high_j, digits), digits)


def _energy_unit(joules: float) -> tuple[float, str]:
    return next((one for one in _ENERGIES_J if abs(joules) >= one[0]), _ENERGIES_J[-1])


def power(watts: float) -> str:
    """`1.1 W`, `21.8 mW`, `7.71 µW`: as published, up to three digits."""
    size, unit = next((one for one in _POWERS_W if abs(watts) >= one[0]), _POWERS_W[-1])
    return f"{watts / size:.3g} {unit}"


def time_us(microseconds: float | None, digits: int = 3) -> str:
    return time(None if microseconds is None else microseconds * 1e-6, digits)


def milliseconds(microseconds: float | None, digits: int = 3) -> str:
    """Microseconds as a number of milliseconds, for columns in ms: `0.034`, `1.21`, `152`."""
    if microseconds is None:
        return NOTHING
    value = microseconds / 1000
    return f"{value:.3f}" if abs(value) < 0.1 else number(value, digits)


def rate(per_s: float | None) -> str:
    """Events per second, without the unit: `3.5`, `12`, `1,234`."""
    return NOTHING if per_s is None else number(per_s, 3 if per_s < 100 else 2)


def whole(value: float | None) -> str:
    """Bytes and counts: `1,234`; a median may end in a half."""
    return NOTHING if value is None else f"{value:,.0f}"


def share(part: float | None, digits: int = 0) -> str:
    """A share in per cent: `12%`; `< 1%` and `> 99%` for `0%` and `100%` that are not none or all."""
    least = 10.0 ** -(digits + 2)
    if part is not None and 0.0 < part < 0.5 * least:
        return f"< {least:.{digits}%}"
    # The sum of all parts may be slightly below 1 by rounding.
    if part is not None and part < 1.0 - 1e-9 and f"{part:.{digits}%}" == f"{1:.{digits}%}":
        return f"> {1.0 - least:.{digits}%}"
    return NOTHING if part is None else f"{part:.{digits}%}"


def share_down(part: float) -> float:
    """The largest whole percentage that is not greater, for lower bounds."""
    return math.floor(part * 100.0 + 1e-9) / 100.0


def load(used: float) -> str:
    """A utilisation in per cent; from ten on as a multiple."""
    return f"{rough(used, 2)} times" if used >= 10.0 else share(used)


def times(ratio: float) -> str:
    """`1.3 times`, `43 times`."""
    return f"{ratio:.1f} times" if ratio < 9.95 else f"{ratio:,.0f} times"


def count(value: int, noun: str) -> str:
    """`1 handshake`, `12 handshakes`."""
    return f"{value:,} {noun}{'' if value == 1 else 's'}"


def round_trips(flights: float) -> str:
    """Flights as round trips: four are `2`, three are `1.5`."""
    return f"{flights / 2:g}"


def yes_no(value: bool | float | None) -> str:
    """`yes`, `no`, or a dash if it is unknown."""
    return NOTHING if value is None else "yes" if value else "no"


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")
