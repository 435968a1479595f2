"""Reads and checks an experiment's file: errors state the line of the invalid key."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from shakedown.errors import InputError, did_you_mean
from shakedown.files import limits
from shakedown.files.text import visible
from shakedown.files.toml import describe, load_toml, locate
from shakedown.schema.base import Object
from shakedown.schema.options import Declared, declared
from shakedown.schema.units import parse_duration_s, parse_rate_per_s

T = TypeVar("T")


class Document:
    """A TOML file: its path, its text, and its tables. A key within a table is written `table.key`.

    Invalid values raise `InputError` with file, line, key, the value, and the accepted values.
    """

    def __init__(self, path: Path) -> None:
        """Reads the file. Raises `InputError`."""
        self.path = path
        self.data, self.text = load_toml(path, limits.MAX_EXPERIMENT_BYTES, "TOML file")

    def wrong(self, key: str, what: str, element: str | None = None) -> InputError:
        """An error about a key, or about an element of its array."""
        where = f"{self.path}, line {locate(self.text, key, element)}, key {key}"
        return InputError(visible(f"{where}: {what}"))

    @contextmanager
    def at(self, key: str, element: str | None = None) -> Iterator[None]:
        """Converts an `InputError` in the block to one about a key, or about an element of its array."""
        try:
            yield
        except InputError as error:
            raise self.wrong(key, str(error), element) from error

    def no_others(self, table: Mapping[str, Any], known: Collection[str], inside: str = "") -> None:
        for key in table:
            if key not in known:
                hint = did_you_mean(key, known) or f"; accepted: {', '.join(sorted(known))}"
                raise self.wrong(f"{inside}.{key}" if inside else key, f"unknown key{hint}")

    def table(self, name: str, known: Collection[str]) -> dict[str, Any]:
        """A table that may only have known keys; empty if it is missing."""
        found = self.data.get(name, {})
        if not isinstance(found, dict):
            raise self.wrong(name, f"found {describe(found)}; accepted: a table such as [{name}]")
        self.no_others(found, known, name)
        return found

    def string(self, key: str, default: str, pattern: str | None = None) -> str:
        value = self.data.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, f"found {describe(value)}; accepted: a string")
        if pattern and not re.fullmatch(pattern, value):
            raise self.wrong(
                key, f'found {describe(value)}; accepted: letters, digits, ".", "_" and "-", at most 64'
            )
        return value

    def strings(self, key: str, most: int) -> tuple[str, ...]:
        """A top-level array of different strings."""
        shape = 'an array of strings such as ["…", "…"]'
        value = self.array(key, self.data.get(key, []), most, str, shape)
        self.different(key, value, value)
        return tuple(value)

    def array(self, key: str, value: object, most: int, kind: type[T], shape: str) -> list[T]:
        """An array of elements of a type; `shape` describes it in words."""
        if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
            raise self.wrong(key, f"found {describe(value)}; accepted: {shape}")
        self.bounded(key, value, most)
        return value

    def different(self, key: str, written: Sequence[object], meant: Sequence[object]) -> None:
        """Refuses an array with two equivalent elements."""
        seen: set[object] = set()
        for item, meaning in zip(written, meant, strict=True):
            if meaning in seen:
                raise self.wrong(key, f"{describe(item)} is repeated", describe(item).strip('"'))
            seen.add(meaning)

    def bounded(self, key: str, value: Collection[object], most: int) -> None:
        if len(value) > most:
            raise self.wrong(key, f"found {len(value):,} of them; accepted: {most:,} at most")

    def whole(self, key: str, value: object, least: int = 1, most: int | None = None) -> int:
        """A whole number; without `most`, it is not limited."""
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not isinstance(value, int) or not is_whole or (most is not None and not least <= value <= most):
            span = "" if most is None else f" from {least} to {most:,}"
            raise self.wrong(key, f"found {describe(value)}; accepted: a whole number{span}")
        return value

    def truth(self, key: str, value: object) -> bool:
        if not isinstance(value, bool):
            raise self.wrong(key, f"found {describe(value)}; accepted: true, false")
        return value

    def rate_per_s(self, key: str, value: object) -> float:
        """A rate with its unit, or a number per second."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.wrong(key, f'found {describe(value)}; accepted: a rate such as "10/s"')
        with self.at(key, describe(value).strip('"')):
            return parse_rate_per_s(value)

    def duration_s(self, key: str, value: object) -> float:
        """A time with its unit, or a number of seconds."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.wrong(key, f'found {describe(value)}; accepted: a time such as "10s"')
        with self.at(key):
            return parse_duration_s(value)

    def option(self, one: Declared, key: str, value: object) -> Any:  # noqa: ANN401 - as its field is
        if one.form == "duration":
            value = self.duration_s(key, value)
        elif one.form == "rate":
            value = self.rate_per_s(key, value)
        try:
            return msgspec.convert(value, one.kind)
        except msgspec.ValidationError:
            raise self.wrong(key, f"found {describe(value)}; accepted: {one.accepted}") from None

    def options(self, kind: type[Object], inside: str, table: Mapping[str, Any]) -> dict[str, Any]:
        """The options that a table sets, by the names of their fields; other keys are ignored."""
        return {
            one.field: self.option(one, f"{inside}.{one.key}", table[one.key])
            for one in declared(kind)
            if one.key in table
        }

    def profiles(self, key: str, names: tuple[str, ...]) -> tuple[str, ...]:
        """Checks that each name is that of a profile; returns the names."""
        if names:
            from shakedown.profiles import bearer_names, device_names, load_device
            from shakedown.profiles.registry import is_path, user_data_dir

            known = bearer_names() if key == "bearers" else device_names()
            folder = user_data_dir() / ("bearers" if key == "bearers" else "devices")
            for name in names:
                if is_path(name):
                    where = f"the name of a profile; copy the file to {folder}"
                    raise self.wrong(key, f"{describe(name)} is a path; accepted: {where}", name)
                board, variant, _ = name.partition(":") if key != "bearers" else (name, "", "")
                if board not in known:
                    hint = did_you_mean(name, known) or f"; accepted: {', '.join(known)}"
                    raise self.wrong(key, f"there is no profile {describe(name)}{hint}", name)
                if variant:
                    with self.at(key, name):
                        load_device(name)
        return names

    def entry(self, table: Mapping[str, Any], inside: str, key: str) -> str | None:
        """A string of a table, which may be missing but not empty."""
        value = table.get(key)
        if value is None or (isinstance(value, str) and value):
            return value
        raise self.wrong(f"{inside}.{key}", f"found {describe(value)}; accepted: a string")

    def file(self, table: Mapping[str, Any], inside: str, key: str) -> Path | None:
        """A file that a table names, with its path relative to the experiment's folder."""
        name = self.entry(table, inside, key)
        if name is None:
            return None
        path = self.path.parent / name
        try:
            there, folder = path.is_file(), path.is_dir()
        except ValueError:
            there = folder = False
        if not there:
            what = "is a folder" if folder else "does not exist"
            raise self.wrong(
                f"{inside}.{key}",
                f"{describe(name)} {what}; accepted: a file, from the experiment's folder",
                name,
            )
        return path
