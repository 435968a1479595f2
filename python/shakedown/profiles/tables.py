"""Reading a TOML table strictly: every key is known, typed and in range, or one line says what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shakedown.errors import InputError, did_you_mean

LARGEST, LEAST = 1e18, 1e-18
"""Sizes beyond which no figure of a profile is: sums and squares of what is between are numbers still."""


class Table:
    """A TOML table being read; ``where`` names file and table in every complaint."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        """Start reading ``values``."""
        self._values = dict(values)
        self.where = where

    def fail(self, message: str) -> InputError:
        """Return an error that says where it arose; the caller raises it."""
        return InputError(f"{self.where}: {message}")

    def __contains__(self, key: str) -> bool:
        """Whether ``key`` is given and not yet read."""
        return key in self._values

    def text(self, key: str, default: str | None = None, accepted: Iterable[str] = ()) -> str:
        """Read a string; without ``default`` it must be there; with ``accepted`` it must be one of them."""
        value = self._take(key, default)
        if not isinstance(value, str):
            raise self.fail(f"{key} is {value!r}; accepted: a string")
        choices = list(accepted)
        if choices and value not in choices:
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
        if abs(value) > LARGEST or 0 < abs(value) < LEAST:
            sizes = f"of a size from {LEAST:g} to {LARGEST:g}"
            raise self.fail(f"{key} is {value!r:.40}; accepted: {accepted}, {sizes}")
        low = value <= above if above is not None else minimum is not None and value < minimum
        if low or (maximum is not None and value > maximum):
            raise self.fail(f"{key} is {value!r}; accepted: {accepted}")
        return float(value)

    def flag(self, key: str, *, default: bool) -> bool:
        """Read a truth value."""
        value = self._values.pop(key, default)
        if not isinstance(value, bool):
            raise self.fail(f"{key} is {value!r}; accepted: true or false")
        return value

    def texts(self, key: str, *, required: bool = True) -> tuple[str, ...]:
        """Read a list of strings."""
        value = self._take(key, None if required else [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise self.fail(f"{key} is {value!r}; accepted: a list of strings")
        if required and not value:
            raise self.fail(f"{key} is empty; accepted: a list of at least one string")
        return tuple(value)

    def table(self, key: str) -> Table:
        """Read a sub-table, empty if it is not there."""
        value = self._values.pop(key, {})
        if not isinstance(value, dict):
            raise self.fail(f"{key} is {value!r}; accepted: a table [{key}]")
        return Table(value, f"{self.where}: [{key}]")

    def tables(self, key: str) -> list[Table]:
        """Read an array of tables, empty if it is not there."""
        value = self._values.pop(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.fail(f"{key} is not an array of tables; accepted: [[{key}]]")
        return [Table(item, f"{self.where}: {key} {index}") for index, item in enumerate(value, 1)]

    def assumptions(self) -> dict[str, str]:
        """Read ``[assumed]``: why each key that it names has its value, though no source gives it.

        A key within a table is named with a dot, as in ``"energy.idle_w"``. To be read before the others.
        """
        table = self.table("assumed")
        reasons = {key: table.text(key) for key in list(table._values)}
        for key, reason in reasons.items():
            if not reason:
                raise table.fail(f"{key} is empty; accepted: why the value is assumed")
            place: object = self._values
            for part in key.split("."):
                if not isinstance(place, dict) or part not in place:
                    choices = list(self._values)
                    hint = did_you_mean(key, choices)
                    raise table.fail(f"{key!r} is not in the profile; accepted: {', '.join(choices)}{hint}")
                place = place[part]
        return reasons

    def drop(self, key: str) -> None:
        """Count a key as read."""
        self._values.pop(key, None)

    def finish(self, accepted: Iterable[str]) -> None:
        """Complain of the first unknown key."""
        for key in self._values:
            names = list(accepted)
            raise self.fail(f"unknown key {key!r}; accepted: {', '.join(names)}{did_you_mean(key, names)}")

    def _take(self, key: str, default: object) -> Any:  # noqa: ANN401 - TOML values have any type
        if key in self._values:
            return self._values.pop(key)
        if default is None:
            raise self.fail(f"{key} is missing")
        return default
