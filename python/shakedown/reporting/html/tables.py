"""Tables of the report, from rows and columns."""

from __future__ import annotations

from collections.abc import Sequence

from shakedown.reporting.columns import MAX_ROWS, ROOM, Column, Row, shown_in
from shakedown.reporting.figures import NOTHING
from shakedown.reporting.html.section import Table


class Cell(str):
    """A cell's text on one line; that of a figure also has the exact value and its interval."""

    value: float
    interval: str

    def __new__(cls, column: Column, row: Row) -> Cell:
        cell = super().__new__(cls, column.cell(row).replace("\n", "; "))
        value = row.get(column.key)
        if column.numeric and cell != NOTHING and isinstance(value, int | float):
            cell.value, cell.interval = value, _interval(column, row)
        return cell


def html_table(
    columns: Sequence[Column],
    rows: Sequence[Row],
    caption: str = "",
    kind: str = "",
    most: int = MAX_ROWS,
    rank: int = ROOM,
) -> Table:
    """Rows as a table of the report: the columns that have values, and the first `most` rows."""
    shown = shown_in(columns, rows, rank)
    if len(rows) > most:
        caption = f"{caption} The first {most:,} of {len(rows):,}.".strip()
    cells = [[Cell(one, row) for one in shown] for row in rows[:most]]
    head = [one.name for one in shown]
    numeric = sum(one.numeric for one in shown)
    return Table(head, cells, numeric, caption, kind, [one.unit for one in shown])


def _interval(column: Column, row: Row) -> str:
    if column.interval is not None:
        return column.interval(row)
    stem, _, unit = column.key.rpartition("_")
    low, high = (row.get(f"{stem.removesuffix('_mean')}_{end}_{unit}") for end in ("low", "high"))
    if low is not None and high is not None:
        return f"{low:.6g} – {high:.6g}"
    return ""
