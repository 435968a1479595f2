"""Rows of objects as text, as HTML, and as values by column, with the columns that commands print."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from textwrap import fill
from typing import Any

from shakedown.files.text import visible
from shakedown.reporting.columns import USUAL, ObjectTable, Row, Selection, shown_in
from shakedown.reporting.columns.measured import message_table
from shakedown.reporting.columns.notes import software_notes
from shakedown.reporting.columns.objects import object_table
from shakedown.reporting.terminal.listing import listing, marks_in
from shakedown.schema.base import builtins

WIDTH = 80
MAX_TEXT_ROWS, MAX_HTML_ROWS, MAX_NOTES = 10, 200, 3

_OF_SUITES = ("Prediction", "Capacity", "Simulated")
"""Types with objects without figures: in data frames they have a column `error`, with or without these."""

_COUNTS = (
    *("round_trips", "workers_needed", "workers_needed_low", "workers_needed_high", "cells"),
    *("client_instructions", "server_instructions"),
)
"""Columns of counts that may be null in all rows."""


def with_figures(objects: Sequence[Any]) -> list[Any]:
    return [one for one in objects if getattr(one, "error", None) is None]


def _failed(objects: Sequence[Any]) -> list[Any]:
    return [one for one in objects if getattr(one, "error", None) is not None]


def _kinds(objects: Sequence[Any]) -> list[list[Any]]:
    """Objects by type, each type with its own table; those with errors go with the first type."""
    found: dict[str, list[Any]] = {}
    for one in with_figures(objects):
        found.setdefault(type(one).__name__, []).append(one)
    first, *others = found.values() or [[]]
    return [[*first, *_failed(objects)], *others]


def text_lines(objects: Sequence[Any]) -> Iterator[str]:
    """The terminal's table of the first rows, the number of the others, and notes; a table for each type."""
    for same in _kinds(objects):
        yield from _text_lines(same)


def _text_lines(objects: Sequence[Any]) -> Iterator[str]:
    table = object_table(with_figures(objects))
    if table is None:
        for line in map(_line, objects[:MAX_TEXT_ROWS]):
            yield line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"
        yield from _more(len(objects) - MAX_TEXT_ROWS)
        return
    columns = table.shown or table.columns

    def notes(shown: Set[str]) -> Iterator[str]:
        yield from _more(len(table.rows) - MAX_TEXT_ROWS)
        yield from _notes(objects, table, shown)

    lines = listing(
        columns, table.rows, Selection(), title=table.title, notes=notes, width=WIDTH,
        folded=lambda line: fill(line, WIDTH), most=MAX_TEXT_ROWS,
    )  # fmt: skip
    for line in lines:
        yield from line.split("\n")


def _line(one: Any) -> str:  # noqa: ANN401 - an object of the schema
    """An object that has no table."""
    return visible(f"{one.suite}: {one.error}" if getattr(one, "error", None) is not None else repr(one))


def _more(more: int, what: str = "") -> Iterator[str]:
    if more > 0:
        yield f"… {more:,} more" + (f" {what}{'' if more == 1 else 's'}" if what else "")


def _notes(objects: Sequence[Any], table: ObjectTable, shown: Set[str]) -> Iterator[str]:
    """The reasons why suites have no figures, what servers' software does not offer, then the notes on the
    others; a few lines of each.
    """
    failed = [f"{one.suite}: {one.error}" for one in _failed(objects)]
    for lines in (failed, list(software_notes(table.rows)), list(table.notes(shown))):
        yield from lines[:MAX_NOTES]
        yield from _more(len(lines) - MAX_NOTES, "note")


def html_table(objects: Sequence[Any]) -> str:
    """The same for notebooks, with more rows."""
    return "".join(map(_html_table, _kinds(objects)))


def _html_table(objects: Sequence[Any]) -> str:
    table = object_table(with_figures(objects))
    if table is None:
        return f"<pre>{html.escape(repr(objects))}</pre>"
    shown = shown_in(table.shown or table.columns, table.rows, USUAL)
    return _html(table, _notes(objects, table, {one.key for one in shown}))


def object_html(one: object) -> str | None:
    """An object for notebooks: a measurement as its messages; None for types without columns."""
    found: Any = one
    if type(one).__name__ == "Measurement":
        table = message_table(found)
        return _html(table, table.notes(set()))
    if type(one).__name__ == "Comparison":
        compared = object_table(found.rows, "Compared")
        assert compared is not None
        return _html(replace(compared, title=f"{found.before} → {found.after}"), found.failed)
    return html_table([one]) if object_table([one]) else None


def _html(table: ObjectTable, notes: Iterable[str]) -> str:
    shown = shown_in(table.shown or table.columns, table.rows, USUAL)
    styles = [f"text-align:{'right' if one.numeric else 'left'}" for one in shown]
    parts = [
        "<table>",
        f'<caption style="text-align:left">{_text(table.title)}</caption>' if table.title else "",
        "<thead><tr>",
    ]
    for one, style in zip(shown, styles, strict=True):
        parts.append(f'<th title="{_text(one.meaning)}" style="{style}">{_text(one.name)}</th>')
    parts.append("</tr></thead><tbody>")
    for row in table.rows[:MAX_HTML_ROWS]:
        cells = (
            f'<td style="{style}{"" if one.prose else ";white-space:nowrap"}">{_text(one.cell(row))}</td>'
            for one, style in zip(shown, styles, strict=True)
        )
        parts.append(f"<tr>{''.join(cells)}</tr>")
    parts.append("</tbody></table>")
    more = len(table.rows) - MAX_HTML_ROWS
    lines = [f"… {more:,} more" if more > 0 else "", marks_in(shown, table.rows), *notes]
    parts += [f"<p>{_text(line)}</p>" for line in lines if line]
    return "".join(parts)


def _text(text: str) -> str:
    return "<br>".join(html.escape(visible(line)) for line in text.split("\n"))


def values(objects: Sequence[Any]) -> dict[str, list[Any]]:
    """Values by column; suites without figures come last, with their `error`."""
    keys: dict[str, None] = {}
    rows: list[Row] = []
    for same in _kinds(objects):
        table = object_table(with_figures(same))
        found = [builtins(one) for one in with_figures(same)] if table is None else table.rows
        keys |= dict.fromkeys(
            (key for row in found for key in row) if table is None else (one.key for one in table.columns)
        )
        rows += found
    failed = [builtins(one) for one in _failed(objects)]
    if failed or any(type(one).__name__ in _OF_SUITES for one in objects):
        keys |= dict.fromkeys(("error",) if keys else (key for row in failed for key in row))
    return {key: [row.get(key) for row in (*rows, *failed)] for key in keys}


def unknown_types(objects: Sequence[Any]) -> dict[str, type]:
    """The types of columns, for those without any value."""
    found: dict[str, type] = {"error": str}
    for same in _kinds(objects):
        table = object_table(with_figures(same))
        for one in () if table is None else table.columns:
            count = one.unit == "bytes" or one.key in _COUNTS
            found[one.key] = str if not one.numeric else int if count else float
    return found
