"""Options with several named values in one text: `base=1s,factor=2,max=60s`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from shakedown.errors import InputError, did_you_mean
from shakedown.schema.units import parse_duration_s, parse_number, parse_rate_per_s

Reader = Callable[[str], Any]


def read_keyed(
    option: str, text: str, readers: Mapping[str, Reader], accepted: str, needed: Iterable[str] = ()
) -> dict[str, Any]:
    """The values of a text, by name. Raises `InputError`."""
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if name not in readers or not equals:
            near = "" if name in readers else did_you_mean(name, tuple(readers))
            hint = near or f"; {accepted}"
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


def bounded(parse: Reader, least: float, most: float, wrong: str) -> Reader:
    """A reader of values within bounds; `wrong` is the error message, with `{}` for the text."""

    def read(value: str) -> Any:  # noqa: ANN401 - as it is parsed
        found = parse(value)
        if not least <= found <= most:
            raise InputError(wrong.format(f"{value:.20}"))
        return found

    return read


def duration(least_s: float, most_s: float) -> Reader:
    wrong = f"a time of {{}}; accepted: {least_s:,g} to {most_s:,.0f} s"
    return bounded(parse_duration_s, least_s, most_s, wrong)


def rate(least_per_s: float, most_per_s: float) -> Reader:
    wrong = f"a rate of {{}}; accepted: {least_per_s:g}/s to {most_per_s:,.0f}/s"
    return bounded(parse_rate_per_s, least_per_s, most_per_s, wrong)


def number(least: float, most: float, accepted: str, names: Mapping[str, float] | None = None) -> Reader:
    """A reader of numbers within bounds, or of names of numbers."""

    def parse(value: str) -> float:
        try:
            return names[value] if names is not None and value in names else parse_number(value)
        except InputError:
            return math.nan

    return bounded(parse, least, most, f'"{{}}"; accepted: {accepted}')


def whole(least: int, most: int) -> Reader:
    def parse(value: str) -> int:
        return int(value) if value.isascii() and value.isdigit() and len(value) < 16 else -1

    return bounded(parse, least, most, f'"{{}}"; accepted: a whole number from {least:,} to {most:,}')


def word(*accepted: str) -> Reader:
    def read(value: str) -> str:
        if value not in accepted:
            raise InputError(f'"{value:.20}"; accepted: {", ".join(accepted)}')
        return value

    return read
