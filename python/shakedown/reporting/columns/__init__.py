"""Columns of figures, each declared once: for tables on a terminal, CSV and the report's tables.

A row maps keys to exact values. A column names the key of its value, and formats the printed text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from shakedown.errors import InputError, did_you_mean
from shakedown.reporting.figures import NOTHING, UNKNOWN, number, share, time, whole, yes_no

Row = Mapping[str, Any]

MAX_ROWS = 1_000
"""Limit of the rows of a table in the report, because a long page is slow to open. The CSV contains all
rows.
"""

ELLIPSIS = "…"
"""Replaces parts of a name."""

ALWAYS, OFTEN, USUAL, ROOM, WIDE, DATA = range(6)
"""Ranks: `ALWAYS` columns are always printed. `OFTEN`, `USUAL` and `ROOM` columns are printed if they fit, in
this order. `WIDE` columns are printed on request, and `DATA` columns only in CSV.
"""


def words(value: object) -> str:
    """Formats a text, a list of texts, a truth value, a count or another number, without a unit."""
    if isinstance(value, bool):
        return yes_no(value)
    if isinstance(value, int | float):
        return whole(value) if float(value).is_integer() else number(value)
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return str(value) if value not in (None, "") else NOTHING


@dataclass(frozen=True, kw_only=True)
class Column:
    """A figure's column.

    Attributes:
        show: formats the value.
        text: formats the row, if the text depends on more than the value.
        path: the value is a name whose parts are joined by slashes; parts that all rows share may be moved to
            the title.
        identity: the column is omitted if all rows have the same value.
        group: the columns of a group are printed together or not at all.
        prose: the text is folded into the remaining width.
        interval: formats the interval of the value, if the row has no keys `…_low_…` and `…_high_…`.
        section: its text replaces the column, on a line above the rows that share it, unless the user selects
            columns or an order.
        min_width: the usual width of the widest measured figure, so that the columns that fit do not depend
            on the figures of one run.
    """

    key: str
    name: str
    meaning: str = ""
    unit: str = ""
    rank: int = USUAL
    show: Callable[[Any], str] = words
    text: Callable[[Row], str] | None = None
    numeric: bool = True
    path: bool = False
    identity: bool = False
    group: str = ""
    prose: bool = False
    interval: Callable[[Row], str] | None = None
    section: Callable[[Row], str] | None = None
    min_width: int = 0

    def cell(self, row: Row) -> str:
        return self.show(row.get(self.key)) if self.text is None else self.text(row)


def label(key: str, name: str, meaning: str = "", **more: Any) -> Column:  # noqa: ANN401 - fields of Column
    return Column(key=key, name=name, meaning=meaning, numeric=False, **{"rank": ALWAYS, **more})


def seconds(key: str, name: str, meaning: str = "", digits: int = 3, **more: Any) -> Column:  # noqa: ANN401
    defaults = {"show": lambda value: time(value, digits), "min_width": len("12.3 µs")}
    return Column(key=key, name=name, meaning=meaning, unit="s", **{**defaults, **more})


def shares(key: str, name: str, meaning: str = "", digits: int = 0, **more: Any) -> Column:  # noqa: ANN401
    """A column of shares."""
    return Column(
        key=key, name=name, meaning=meaning, unit="1", **{"show": lambda value: share(value, digits), **more}
    )


@dataclass(frozen=True)
class ObjectTable:
    """Rows of objects; `shown` are the columns that apply to them, if not all do."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    title: str = ""
    notes: Callable[[Set[str]], Iterable[str]] = lambda shown: ()
    shown: Sequence[Column] | None = None


def loaded(name: str) -> Any:  # noqa: ANN401 - whatever has the name
    """An object of a module of this package: `MODULE.NAME`, loaded when it is needed."""
    module, _, name = name.partition(".")
    return getattr(import_module(f"{__name__}.{module}"), name)


@dataclass(frozen=True)
class Selection:
    """The user's selection of columns, the order of the rows, and the form of the output."""

    wide: bool = False
    columns: tuple[str, ...] = ()
    sort: str = ""
    csv: bool = False
    json: bool = False

    def checked(self, columns: Sequence[Column]) -> Selection:
        """Raises `InputError` for an unknown column."""
        for name in self._names():
            named(columns, name)
        return self

    def names_any_of(self, columns: Sequence[Column], *, beyond: Sequence[Column]) -> bool:
        """Whether it names one of `columns` that is not in `beyond`."""
        return any(_found(columns, name) and not _found(beyond, name) for name in self._names())

    def _names(self) -> tuple[str, ...]:
        return (*self.columns, *([self.sort.removeprefix("-")] if self.sort else []))

    def ordered(self, columns: Sequence[Column], rows: Sequence[Row]) -> list[Row]:
        """The rows, sorted by the selected column; those without a value come last."""
        if not self.sort:
            return list(rows)
        key = named(columns, self.sort.removeprefix("-")).key
        known = [row for row in rows if row.get(key) is not None]
        known.sort(key=lambda row: row[key], reverse=self.sort.startswith("-"))
        return known + [row for row in rows if row.get(key) is None]

    def chosen(self, columns: Sequence[Column], rows: Sequence[Row]) -> list[Column] | None:
        """The selected columns; None if the table may choose."""
        if self.columns:
            return [named(columns, name) for name in self.columns]
        if not self.wide:
            return None
        return [one for one in columns if one.rank <= WIDE and any(_held(row, one) for row in rows)]


def named(columns: Sequence[Column], name: str) -> Column:
    """The column with a key or a heading. Raises `InputError` if there is none."""
    found = _found(columns, name)
    if found is not None:
        return found
    wanted = name.strip().lower()
    keys = list(dict.fromkeys(column.key for column in columns))
    near = did_you_mean(wanted, [*keys, *(column.name for column in columns)])
    all_of_them = f"{near} --csv prints all columns" if near else f"; accepted: {', '.join(keys)}"
    raise InputError(f'unknown column "{name[:60]}"{all_of_them}')


def _found(columns: Sequence[Column], name: str) -> Column | None:
    wanted = name.strip().lower()
    for column in columns:
        if wanted == column.key or wanted.replace("_", " ").replace("-", " ") == column.name:
            return column
    return None


def shown_in(columns: Sequence[Column], rows: Sequence[Row], most: int = ROOM) -> list[Column]:
    """The columns up to a rank that have values, without identities that all rows share."""
    return [
        one
        for one in columns
        if one.rank <= most
        and not (one.identity and len({repr(row.get(one.key)) for row in rows}) <= 1)
        and any(one.key in row if one.rank == ALWAYS else _held(row, one) for row in rows)
    ]


def _held(row: Row, column: Column) -> bool:
    """Whether a row has the column's value, or bounds from which its text is made."""
    if row.get(column.key) not in (None, ""):
        return True
    return column.text is not None and column.key in row and column.cell(row) not in ("", NOTHING, UNKNOWN)


@dataclass(frozen=True)
class Shared:
    """The parts that all names share at the beginning and the end, and the rest of each name."""

    pattern: str = ""
    short: Mapping[str, str] = field(default_factory=dict)
    shortened: bool = False
    """Whether parts of some names are omitted because they do not fit."""


def shared(names: Sequence[str]) -> Shared:
    """Finds the parts that all names share at the beginning and the end; at least one part of each name
    remains.
    """
    parts = [name.split("/") for name in dict.fromkeys(names)]
    if len(parts) < 2:
        return Shared()
    room = min(map(len, parts)) - 1
    begin = _equal((one for one in zip(*parts, strict=False)), room)
    end = _equal((one for one in zip(*(one[::-1] for one in parts), strict=False)), room - begin)
    if not begin + end:
        return Shared()
    first = parts[0]
    pattern = "/".join([*first[:begin], ELLIPSIS, *(first[len(first) - end :] if end else [])])
    return Shared(pattern, {"/".join(one): "/".join(one[begin : len(one) - end]) for one in parts})


def _equal(columns: Iterator[tuple[str, ...]], most: int) -> int:
    count = 0
    for parts in columns:
        if count == most or len(set(parts)) > 1:
            break
        count += 1
    return count
