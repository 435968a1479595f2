"""Strict reading of a TOML table: an unknown key, or a value of a wrong type or out of range, is an error of
one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shakedown.errors import InputError, did_you_mean

MAX_FIGURE, MIN_FIGURE = 1e18, 1e-18
"""Limits of a profile's figures, so that their sums and squares are finite."""

MAX_MS = 1e12
"""Thirty years, the longest time in the core."""


class Table:
    """A TOML table being read; ``where`` names file and table in every error.

    A key that has not been read before `finish` is an error.
    """

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._values = dict(values)
        self._read_keys: dict[str, None] = {}
        self.where = where

    def fail(self, message: str) -> InputError:
        """Return an error with the place; the caller raises it."""
        return InputError(f"{self.where}: {message}")

    def __contains__(self, key: str) -> bool:
        """Whether ``key`` is given and not yet read."""
        return key in self._values

    def text(self, key: str, default: str | None = None, accepted: Iterable[str] = ()) -> str:
        """Read a string; without ``default`` it is required and not empty; ``accepted`` are its values."""
        given = key in self._values
        value = self._take(key, default)
        if not isinstance(value, str):
            raise self.fail(f"{key} is {value!r}; accepted: a string")
        if default is None and not value:
            raise self.fail(f"{key} is empty; accepted: a non-empty string")
        choices = list(accepted)
        if choices and given and value not in choices:
            raise self.fail(
                f"{key} is {value!r}; accepted: {', '.join(choices)}{did_you_mean(value, choices)}"
            )
        return value

    def number(
        self,
        key: str,
        default: float | None = None,
        *,
        above: float | None = None,
        minimum: float | None = 0.0,
        maximum: float | None = None,
    ) -> float:
        """Read a finite number in ``(above, maximum]`` or ``[minimum, maximum]``."""
        value = self._take(key, default)
        limits = {"above": above, "at least": minimum if above is None else None, "at most": maximum}
        bounds = " and ".join(f"{word} {limit:g}" for word, limit in limits.items() if limit is not None)
        accepted = f"a number {bounds}".strip()
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
            raise self.fail(f"{key} is {value!r:.40}; accepted: {accepted}")
        if abs(value) > MAX_FIGURE or 0 < abs(value) < MIN_FIGURE:
            sizes = f"with an absolute value from {MIN_FIGURE:g} to {MAX_FIGURE:g}"
            raise self.fail(f"{key} is {value!r:.40}; accepted: {accepted}, {sizes}")
        low = value <= above if above is not None else minimum is not None and value < minimum
        if low or (maximum is not None and value > maximum):
            raise self.fail(f"{key} is {value!r}; accepted: {accepted}")
        return float(value)

    def maybe(self, key: str, **limits: float) -> float | None:
        """Read a number as `number` does; None if it is missing."""
        self._read_keys[key] = None
        return self.number(key, None, **limits) if key in self._values else None

    def seconds(
        self, key: str, default: float | None = None, *, minimum: float = 0.0, maximum: float = MAX_MS
    ) -> float:
        """Read milliseconds, with limits in milliseconds; return seconds."""
        return self.number(key, default, minimum=minimum, maximum=maximum) * 1e-3

    def whole(
        self, key: str, default: int | None = None, *, minimum: float = 0.0, maximum: float | None = None
    ) -> int:
        value = self.number(key, default, minimum=minimum, maximum=maximum)
        if value != int(value):
            raise self.fail(f"{key} is {value!r}; accepted: a whole number")
        return int(value)

    def maybe_whole(self, key: str, **limits: float) -> int | None:
        """Read a whole number; None if it is missing."""
        self._read_keys[key] = None
        return self.whole(key, None, **limits) if key in self._values else None

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._take(key, default)
        if not isinstance(value, bool):
            raise self.fail(f"{key} is {value!r}; accepted: true or false")
        return value

    def texts(self, key: str, *, required: bool = True) -> tuple[str, ...]:
        value = self._take(key, None if required else [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise self.fail(f"{key} is {value!r}; accepted: a list of strings")
        if required and not value:
            raise self.fail(f"{key} is empty; accepted: a list of at least one string")
        return tuple(value)

    def table(self, key: str) -> Table:
        """Read a sub-table; empty if it is missing."""
        value = self._take(key, {})
        if not isinstance(value, dict):
            raise self.fail(f"{key} is {value!r}; accepted: a table [{key}]")
        return Table(value, f"{self.where}: [{key}]")

    def maybe_table(self, key: str) -> Table | None:
        """Read a sub-table; None if it is missing."""
        self._read_keys[key] = None
        return self.table(key) if key in self._values else None

    def tables(self, key: str) -> list[Table]:
        """Read an array of tables; empty if it is missing."""
        value = self._take(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.fail(f"{key} is not an array of tables; accepted: [[{key}]]")
        return [Table(item, f"{self.where}: {key} {index}") for index, item in enumerate(value, 1)]

    def about(self, key: str, aspects: Sequence[str] = ()) -> dict[str, tuple[str, ...]]:
        """Read a table that has one or more texts for aspects or keys: the sources of their values.

        A key within a table is named with a dot, as in ``"energy.idle_w"``. Must be called before other keys
        are read.
        """
        given, table = dict(self._values), self.table(key)
        found: dict[str, tuple[str, ...]] = {}
        for name, value in table._values.items():
            if name not in aspects and not _holds(given, name):
                choices = aspects or [one for one in given if one != key]
                hint = did_you_mean(name, choices)
                raise table.fail(f"{name!r} is not in the profile; accepted: {', '.join(choices)}{hint}")
            texts = [value] if isinstance(value, str) else value
            if not isinstance(texts, list) or not texts or not all(isinstance(t, str) and t for t in texts):
                raise table.fail(f"{name} is {value!r}; accepted: a non-empty string, or a list of them")
            found[name] = tuple(texts)
        return found

    def peek(self, key: str) -> Any:  # noqa: ANN401 - TOML values have any type
        """The value of a key, without marking it as read; None if it is missing."""
        return self._values.get(key)

    def finish(self, more: str = "") -> None:
        """Raise `InputError` for the first unknown key; `more` describes other keys that are accepted."""
        accepted = list(dict.fromkeys([*self._read_keys, *([more] if more else [])]))
        for key in self._values:
            hint = did_you_mean(key, accepted)
            raise self.fail(f"unknown key {key!r}; accepted: {', '.join(accepted)}{hint}")

    def _take(self, key: str, default: object) -> Any:  # noqa: ANN401 - TOML values have any type
        self._read_keys[key] = None
        if key in self._values:
            return self._values.pop(key)
        if default is None:
            raise self.fail(f"{key} is missing")
        return default


def _holds(values: Mapping[str, Any], key: str) -> bool:
    """Whether a key exists; within a table it is named with a dot."""
    place: object = values
    for part in key.split("."):
        if not isinstance(place, dict) or part not in place:
            return False
        place = place[part]
    return True
