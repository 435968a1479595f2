"""Types of options' values: suites, profiles, files, numbers within bounds, quantities with units."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import click
import click.shell_completion

from shakedown.errors import InputError
from shakedown.files.limits import MAX_UNIX_S

FILE = click.Path(dir_okay=False, path_type=Path)
"""A file's path; a folder is refused."""


class OutputFolder(click.Path):
    """The path of a folder to write into. An empty one is refused, because `Path` takes it as the current
    folder.
    """

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if not os.fspath(value):
            self.fail('"" names no folder; accepted: a path, as "." for the current folder', param, ctx)
        return super().convert(value, param, ctx)


def _stems(names: Sequence[str], begin: int) -> list[str]:
    """The names up to and including their first slash at or after `begin`, without duplicates."""
    return list(dict.fromkeys(name[: name.find("/", begin) + 1] or name for name in names))


class Suites(click.ParamType[str]):
    """A suite's name, or a pattern of several; completed by the shell."""

    name = "suite"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Completions of a suite's name, up to the next slash."""
        from shakedown.native.suite_names import matching

        found = (*matching(f"{incomplete}*"), *matching(f"{incomplete}*/*"))
        names = [name for name in found if name.startswith(incomplete)]
        stems = _stems(names, len(incomplete))
        # A shell ends the word after a single completion, so a single completion must not be a partial name.
        while len(stems) == 1 and stems[0].endswith("/"):
            stems = _stems(names, len(stems[0]))
        return [click.shell_completion.CompletionItem(one) for one in stems]


class Profiles(click.ParamType[str]):
    """A device's or bearer's name; completed by the shell."""

    def __init__(self, name: str) -> None:
        self.name = name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        return self.items(incomplete)

    def items(self, incomplete: str) -> list[click.shell_completion.CompletionItem]:
        from shakedown.profiles import bearer_names, existing_device_names

        names = bearer_names() if self.name == "bearer" else existing_device_names()
        return [click.shell_completion.CompletionItem(one) for one in names if one.startswith(incomplete)]


DEVICE, BEARER = Profiles("device"), Profiles("bearer")


class Time(click.ParamType[int]):
    """A point in time: Unix seconds, or an ISO date or date and time (UTC without a time zone)."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value)
        try:
            found = int(text) if text.isascii() and text.lstrip("-").isdigit() else _unix_s(text)
        except ValueError:
            found = -1
        if not 0 <= found <= MAX_UNIX_S:
            self.fail(
                f'"{text[:40]}" is not a time; accepted: Unix seconds before the year 10000, or an ISO date '
                "as 2026-01-31",
                param,
                ctx,
            )
        return found


class Whole(click.IntRange):
    """A whole number within bounds."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        plain = text.isascii() and "_" not in text  # Python accepts "1_000", and digits of other scripts
        try:
            return super().convert(cast("int", value if plain else ""), param, ctx)
        except click.BadParameter:
            least, most = (None if one is None else f"{int(one):,}" for one in (self.min, self.max))
            accepted = f"{least or 'up'} to {most}"
            if most is None:
                accepted = "digits only, such as 12" if least is None else f"{least} or more"
            is_whole = plain and text.strip().lstrip("+-").isdecimal()
            wrong = "out of range" if is_whole else "not a whole number"
            self.fail(f'"{text[:40]}" is {wrong}; accepted: {accepted}', param, ctx)

    def _describe_range(self) -> str:
        """Empty without bounds, for which click would print "x<=None" in the help."""
        return "" if self.min is None and self.max is None else super()._describe_range()


class FiniteRange(click.FloatRange):
    """A range of numbers, as `NUMBER`."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        return float(super().convert(NUMBER.convert(value, param, ctx), param, ctx))


def _unix_s(text: str) -> int:
    when = datetime.fromisoformat(text)
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())


class Quantity(click.ParamType[float]):
    """A number with its unit, parsed by a function of `schema.units`."""

    def __init__(self, name: str, parser: str, **options: str) -> None:
        self.name, self._parser, self._options = name, parser, options

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from shakedown.schema import units

        try:
            return float(getattr(units, self._parser)(str(value), **self._options))
        except InputError as error:
            self.fail(str(error), param, ctx)


NUMBER = Quantity("number", "parse_number")
SHARE, RATE = Quantity("share", "parse_share"), Quantity("rate", "parse_rate_per_s")
CHARGE = Quantity("charge", "parse_charge_j")


class Duration(Quantity):
    """A duration in seconds, with or without a unit. With only an upper limit it must be above 0. `unit` is
    that of a bare number.
    """

    def __init__(self, most_s: float | None = None, *, least_s: float | None = None, unit: str = "s") -> None:
        super().__init__("duration", "parse_duration_s", unit=unit)
        self._least_s, self._most_s = least_s, most_s

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = super().convert(value, param, ctx)
        if self._most_s is None:
            return found
        if found > self._most_s or (found <= 0.0 if self._least_s is None else found < self._least_s):
            least = "above 0 and" if self._least_s is None else f"from {self._least_s:g} s"
            self.fail(
                f'"{value}" is out of range; accepted: {least} up to {self._most_s:,.10g} s', param, ctx
            )
        return found
