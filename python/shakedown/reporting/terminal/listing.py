"""One table that fits the screen: columns by rank, shortened names, folded headings and prose."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations

from shakedown.files.text import visible
from shakedown.reporting.columns import (
    ALWAYS,
    ELLIPSIS,
    ROOM,
    USUAL,
    Column,
    Row,
    Selection,
    Shared,
    named,
    shared,
    shown_in,
)
from shakedown.reporting.figures import LEGEND

GAP = "  "
MIN_PROSE = 18
"""Minimum width of a folded column; with less room it is omitted."""
MIN_NAME = 12
"""Minimum width of a folded name."""
MAX_SHARE = 0.58
"""Share of the screen for names: longer ones are shortened before columns of figures are removed."""
MIN_FIGURES = 2
"""Figures of a row that are always printed."""
MAX_CELL = 600


def screen_width() -> int:
    """Columns of the screen: those of the terminal or of COLUMNS; 80 if neither is known."""
    return shutil.get_terminal_size().columns


Notes = Iterable[str] | Callable[[Set[str]], Iterable[str]]
"""Lines below a table, or a function that makes them from the keys of the printed columns."""


@dataclass(frozen=True)
class Layout:
    """Columns with their widths, and the parts that all names share."""

    columns: Sequence[Column]
    widths: Sequence[int]
    names: Shared
    fold_headings: bool
    cramped: bool
    """Whether prose is folded because of too little room."""
    omitted: Sequence[Column] = ()
    """Deciding columns for which there is no room."""

    def heading(self) -> list[str]:
        cells = [
            _folded(one.name, width) if self.fold_headings else [one.name]
            for one, width in zip(self.columns, self.widths, strict=True)
        ]
        height = max(map(len, cells))
        return [
            self._line([([""] * (height - len(cell)) + cell)[number] for cell in cells])
            for number in range(height)
        ]

    def lines(self, row: Row) -> list[str]:
        """A row: one line, or several where names and prose are folded."""
        cells = [
            _cell(one, row, self.names).split("\n")
            if one.numeric
            else _folded(_cell(one, row, self.names), width)
            for one, width in zip(self.columns, self.widths, strict=True)
        ]
        height = max(map(len, cells))
        return [
            self._line([cell[number] if number < len(cell) else "" for cell in cells])
            for number in range(height)
        ]

    def _line(self, cells: Sequence[str]) -> str:
        return GAP.join(
            cell.rjust(width) if one.numeric else cell.ljust(width)
            for one, cell, width in zip(self.columns, cells, self.widths, strict=True)
        ).rstrip()


def layout(
    columns: Sequence[Column],
    rows: Sequence[Row],
    selection: Selection,
    width: int,
    most: int | None = None,
) -> Layout:
    """The table of these rows, of which `most` are printed, for a screen: all requested columns, else those
    that fit.
    """
    chosen = selection.chosen(columns, rows)
    wanted = shown_in(columns, rows)
    rows = rows[:most]
    path = next((one for one in columns if one.path), None)
    names = Shared() if path is None else shared([path.cell(row) for row in rows])
    if chosen is not None:
        return _laid_out(chosen, rows, names, width, fold=False)
    usual = [one for one in wanted if one.rank <= USUAL]
    if _total(_laid_out(usual, rows, names, width, fold=True).widths) > width:
        names = _shortened(names, path, rows, int(MAX_SHARE * width))
    for rank in range(ROOM, ALWAYS - 1, -1):
        some = [one for one in wanted if one.rank <= rank]
        for fold in (False, True):
            found = _laid_out(some, rows, names, width, fold=fold)
            if _total(found.widths) <= width and (fold or not found.cramped):
                return _with_more(found, wanted, rows, width)
    return _narrowed(found, rows, width)


def _with_more(found: Layout, wanted: Sequence[Column], rows: Sequence[Row], width: int) -> Layout:
    """The layout with each further column or group that fits; headings are folded if that makes room."""
    groups: dict[str, list[Column]] = {}
    for one in sorted(wanted, key=lambda one: one.rank):
        if one not in found.columns:
            groups.setdefault(one.group or one.key, []).append(one)
    for group in groups.values():
        some = [column for column in wanted if column in found.columns or column in group]
        for fold in (False, True):
            wider = _laid_out(some, rows, found.names, width, fold=fold)
            if _total(wider.widths) <= width and (fold or not wider.cramped):
                found = wider
                break
    return found


def _narrowed(found: Layout, rows: Sequence[Row], width: int) -> Layout:
    """The layout for a screen that is too narrow even for the fixed columns: path names lose more parts;
    other names are folded between words; then the last figures are removed, all but two; then names are
    folded anywhere.
    """
    path = next((one for one in found.columns if one.path), None)
    if path is not None:
        at = found.columns.index(path)
        least = max(found.widths[at] - (_total(found.widths) - width), MIN_NAME)
        found = _laid_out(
            found.columns, rows, _shortened(found.names, path, rows, least), width, fold=found.fold_headings
        )
    columns, widths = list(found.columns), list(found.widths)
    omitted: list[Column] = []

    def fold(least: Callable[[Column], int]) -> None:
        for number, one in enumerate(columns):
            if not one.numeric:
                spare = widths[number] - max(least(one), MIN_NAME)
                widths[number] -= max(0, min(_total(widths) - width, spare))

    fold(lambda one: max(len(piece) for row in rows for piece in _pieces(_cell(one, row, found.names))))
    while _total(widths) > width and sum(one.numeric for one in columns) > MIN_FIGURES:
        last = max(number for number, one in enumerate(columns) if one.numeric)
        omitted.insert(0, columns.pop(last))
        del widths[last]
    fold(lambda one: 0)
    return replace(found, columns=columns, widths=widths, omitted=omitted)


def _shortened(names: Shared, path: Column | None, rows: Sequence[Row], most: int) -> Shared:
    """Names without their least informative parts, so that each has at most `most` characters and remains
    unique; unchanged if that is impossible.
    """
    if path is None:
        return names
    shown = {text: names.short.get(text, text) for text in map(path.cell, rows)}
    parts = {text: text.split("/") for text in shown.values()}
    frequent = Counter(part for some in parts.values() for part in set(some))
    short = {text: text for text in parts}
    for text in parts:
        if len(text) > most:
            fitting = [one for one in _fewer_parts(parts[text], list(parts.values())) if len(one[0]) <= most]
            if not fitting:
                return names
            short[text], _ = min(fitting, key=lambda one: (-sum(frequent[part] for part in one[1]), one[0]))
    if all(text == known for text, known in short.items()):
        return names
    return Shared(names.pattern, {text: short[known] for text, known in shown.items()}, True)


def _fewer_parts(parts: list[str], names: Sequence[list[str]]) -> Iterator[tuple[str, list[str]]]:
    """A name with a run of parts omitted, and the kept parts, for each run that leaves the name unique."""
    for begin, end in combinations(range(len(parts) + 1), 2):
        head, tail = parts[:begin], parts[end:]
        alike = (
            other != parts and other[:begin] == head and other[max(begin, len(other) - len(tail)) :] == tail
            for other in names
        )
        if (head or tail) and not any(alike):
            yield "/".join([*head, ELLIPSIS, *tail]), [*head, *tail]


def _laid_out(
    columns: Sequence[Column], rows: Sequence[Row], names: Shared, width: int, *, fold: bool
) -> Layout:
    fixed = [one for one in columns if not one.prose]
    widths = {
        one.key: max(
            one.min_width,
            max((len(line) for row in rows for line in _cell(one, row, names).split("\n")), default=0),
            max(map(len, one.name.split())) if fold else len(one.name),
        )
        for one in fixed
    }
    prose = [one for one in columns if one.prose]
    room = width - _total(list(widths.values())) - len(GAP) * len(prose)
    cramped = False
    for number, one in enumerate(prose):
        longest = max((len(line) for row in rows for line in _cell(one, row, names).split("\n")), default=0)
        share = max(room // (len(prose) - number), MIN_PROSE)
        widths[one.key] = min(max(longest, len(one.name)), share)
        room -= widths[one.key]
        cramped |= longest > share
    return Layout(columns, [widths[one.key] for one in columns], names, fold, cramped)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _cell(column: Column, row: Row, names: Shared) -> str:
    text = column.cell(row)
    text = "\n".join(map(visible, (names.short.get(text, text) if column.path else text).split("\n")))
    return text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1]}…"


def _folded(text: str, width: int) -> list[str]:
    """Text in lines of a width: broken between words and after slashes, else anywhere."""
    if "\n" in text:
        return [line for part in text.split("\n") for line in _folded(part, width)]
    if len(text) <= width:
        return [text]
    lines: list[str] = []
    line = ""
    for piece in _pieces(text):
        if line and len(line) + len(piece.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += piece
        while len(line.rstrip()) > width:
            lines.append(line[:width])
            line = line[width:]
    return [*lines, line.rstrip()] if line else lines


def _pieces(text: str) -> list[str]:
    """Text in pieces, which end where it may be broken: after spaces, slashes and the joints of names."""
    return re.sub(r"([/ +@])", "\\1\0", text).split("\0")


def marks_in(columns: Sequence[Column], rows: Iterable[Row]) -> str:
    """The meanings of the marks before figures; empty without marks."""
    marks = {text[0] for row in rows for one in columns if one.numeric and (text := one.cell(row))}
    return "; ".join(text for mark, text in LEGEND.items() if mark in marks)


def listing(
    columns: Sequence[Column],
    rows: Iterable[Row],
    selection: Selection,
    *,
    title: str = "",
    notes: Notes = (),
    width: int,
    bold: str = "{}",
    folded: Callable[[str], str] = str,
    most: int | None = None,
) -> Iterator[str]:
    """A table's lines: its title, with the parts that all names share; headings; rows, below the lines of
    their sections; the meanings of marks; notes.

    `folded` folds the lines above and below the rows. `most` rows are printed.
    """
    ordered = selection.ordered(columns, list(rows))

    def below(shown: Set[str]) -> Iterator[str]:
        lines = notes(shown) if callable(notes) else notes
        return (folded(visible(line)) for line in lines)

    if not ordered:
        yield from [folded(visible(title))] if title else []
        yield from below(set())
        return
    section = None
    if not (selection.wide or selection.columns or selection.sort):
        section = next((one.section for one in columns if one.section is not None), None)
    indent = "" if section is None else GAP
    columns = columns if section is None else [one for one in columns if one.section is None]
    if selection.sort:
        by = named(columns, selection.sort.removeprefix("-"))
        columns = [replace(one, rank=ALWAYS) if one is by else one for one in columns]
    found = layout(columns, ordered, selection, width - len(indent), most)
    ordered = ordered[:most]
    pattern = found.names.pattern if any(one.path for one in found.columns) else ""
    if title or pattern:
        yield folded(visible("; ".join(part for part in (title, pattern) if part)))
    yield from (bold.format(indent + line) for line in found.heading())
    above = None
    for row in ordered:
        if section is not None and section(row) != above:
            above = section(row)
            yield folded(visible(above))
        yield from (visible(indent + line) for line in found.lines(row))
    if said := marks_in(found.columns, ordered):
        yield folded(said)
    if found.names.shortened and any(one.path for one in found.columns):
        yield folded(f"{ELLIPSIS} marks the omitted part of a name")
    if found.omitted:
        yield folded(f"not printed (--wide): {', '.join(one.name for one in found.omitted)}")
    yield from below({one.key for one in found.columns})
