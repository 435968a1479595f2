"""Tables on a terminal, in the program's one shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


def titled_table(title: str, caption: str = "") -> Table:
    """A table under a title."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(
        box=SIMPLE_HEAD,
        title=title,
        title_justify="left",
        title_style="bold",
        min_width=60,
        caption=caption or None,
        caption_justify="left",
        pad_edge=False,
    )


def figures_table(names: Sequence[str], figures: Sequence[str]) -> Table:
    """A line a suite, as commands print predictions: names that are whole, and figures."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, no_wrap=True)
    for name in figures:
        table.add_column(name, justify="right")
    return table


def plain_table(names: Sequence[str], figures: Sequence[str] = (), caption: str = "") -> Table:
    """A list of things: columns of names on the left, of figures on the right."""
    from rich.table import Table

    table = Table(
        caption=caption or None,
        caption_justify="left",
        box=None,
        pad_edge=False,
        header_style="bold",
        padding=(0, 1) if caption else (0, 1, 0, 0),
    )
    for place, name in enumerate(names):
        table.add_column(name, no_wrap=place == 0)
    for name in figures:
        table.add_column(name, justify="right")
    return table


def fits(table: Table, width: int) -> bool:
    """Whether a table needs no more columns than a screen has."""
    from rich.console import Console

    return Console(width=1000, markup=False, emoji=False).measure(table).maximum <= width


def fitted(
    make: Callable[[Sequence[str], Sequence[str]], Table],
    names: Sequence[str],
    whole: Sequence[str],
    short: Sequence[str],
    width: int,
) -> list[RenderableType]:
    """The widest form that fits: all columns; rows numbered and named below; columns in several tables.

    Args:
        make: the table of rows with these labels and of these columns.
        names: of the rows.
        whole, short: all columns, and those that come first where not all fit.
        width: columns of the screen.
    """
    numbers = [str(number) for number, _ in enumerate(names, start=1)]
    forms = [(names, whole), (numbers, whole), (names, short), (numbers, short)]
    forms += [(numbers, short[:count]) for count in range(len(short) - 1, 1, -1)]
    for labels, columns in forms:
        table = _labelled(make, labels, numbers, columns)
        if fits(table, width):
            break
    found: list[RenderableType] = [table]
    left = [one for one in whole if one not in columns]
    while left:
        count = len(left)
        while count > 1 and not fits(_labelled(make, labels, numbers, left[:count]), width):
            count -= 1
        found.append(_labelled(make, labels, numbers, left[:count]))
        left = left[count:]
    if labels is numbers:
        found.append("\n".join(f"{number:>3}  {name}" for number, name in zip(numbers, names, strict=True)))
    return found


def _labelled(
    make: Callable[[Sequence[str], Sequence[str]], Table],
    labels: Sequence[str],
    numbers: Sequence[str],
    columns: Sequence[str],
) -> Table:
    table = make(labels, columns)
    if labels is numbers:
        table.columns[0].header = "#"
    return table
