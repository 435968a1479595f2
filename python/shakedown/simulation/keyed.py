"""Options that say several things in one text: `base=1s,factor=2,max=60s`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from shakedown.errors import InputError, did_you_mean
from shakedown.schema.units import parse_duration_s, parse_rate_per_s

Reader = Callable[[str], Any]


def read_keyed(
    option: str, text: str, readers: Mapping[str, Reader], accepted: str, needed: Iterable[str] = ()
) -> dict[str, Any]:
    """What a text says, by name. Raises `InputError`."""
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if name not in readers or not equals:
            hint = did_you_mean(name, tuple(readers)) or f"; {accepted}"
            raise InputError(f'{option} "{text:.60}": there is no "{part.strip():.40}"{hint}')
        if name in found:
            raise InputError(f'{option} "{text:.60}": {name} is there twice; {accepted}')
        try:
            found[name] = readers[name](value)
        except InputError as error:
            raise InputError(f'{option} "{text:.60}": {error}') from None
    for name in needed:
        if name not in found:
            raise InputError(f'{option} "{text:.60}": {name} is missing; {accepted}')
    return found


def duration(least_s: float, most_s: float) -> Reader:
    def read(value: str) -> float:
        found = parse_duration_s(value)
        if not least_s <= found <= most_s:
            raise InputError(f"a time of {value:.20}; accepted: {least_s:,g} to {most_s:,.0f} s")
        return found

    return read


def rate(least_per_s: float, most_per_s: float) -> Reader:
    def read(value: str) -> float:
        found = parse_rate_per_s(value)
        if not least_per_s <= found <= most_per_s:
            raise InputError(f"a rate of {value:.20}; accepted: {least_per_s:g}/s to {most_per_s:,.0f}/s")
        return found

    return read


def number(least: float, most: float, accepted: str, names: Mapping[str, float] | None = None) -> Reader:
    """A number within bounds, or one by its name."""

    def read(value: str) -> float:
        if names is not None and value in names:
            return names[value]
        try:
            found = float(value)
        except ValueError:
            found = math.nan
        if not least <= found <= most:
            raise InputError(f'"{value:.20}"; accepted: {accepted}')
        return found

    return read


def whole(least: int, most: int) -> Reader:
    def read(value: str) -> int:
        found = int(value) if value.isascii() and value.isdigit() and len(value) < 16 else -1
        if not least <= found <= most:
            raise InputError(f'"{value:.20}"; accepted: a whole number from {least:,} to {most:,}')
        return found

    return read


def word(*accepted: str) -> Reader:
    def read(value: str) -> str:
        if value not in accepted:
            raise InputError(f'"{value:.20}"; accepted: {", ".join(accepted)}')
        return value

    return read
