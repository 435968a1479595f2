"""The quantities of the tidy table: units, descriptions, and the names of their columns in views.

A quantity without a unit is a text. A quantity of several kinds of figures is declared for one of them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Quantity(NamedTuple):
    """A quantity and its description, for readers of the table."""

    name: str
    unit: str
    about: str


def _read() -> dict[str, tuple[Quantity, ...]]:
    found: dict[str, list[Quantity]] = {}
    with (Path(__file__).parent / "quantities.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["kind"], []).append(Quantity(row["name"], row["unit"], row["about"]))
    return {kind: tuple(some) for kind, some in found.items()}


QUANTITIES = _read()
"""The quantities in `quantities.csv`, by kind of figures."""

UNITS = {one.name: one.unit for some in QUANTITIES.values() for one in some}

_ENDINGS = {"s": "_s", "us": "_us", "J": "_j", "bytes": "_bytes", "1/s": "_per_s"}
"""The suffix of a column's name, by unit."""

Names = dict[tuple[str, str | None, str | None], str]
"""A view's column for each (quantity, side, statistic)."""


def column(quantity: str, statistic: str | None = None) -> str:
    """The column of a quantity in views and printed rows: without its kind, with statistic and unit."""
    name = quantity.partition(".")[2].replace(".", "_").replace("-", "_")
    ending = _ENDINGS.get(UNITS[quantity], "")
    middle = "" if statistic is None else f"_{statistic}"
    return f"{name}{middle}{'' if ending == f'_{name}' else ending}"


def columns(
    kind: str, names: Iterable[str], statistics: Iterable[str | None] = (None,), side: str | None = None
) -> Names:
    """The columns of quantities, by name without their kind, and of their statistics."""
    found = [f"{kind}.{name}" for name in names]
    return {(one, side, what): column(one, what) for one in found for what in statistics}


def texts(kind: str, *names: str) -> dict[str, str]:
    """The columns of quantities that are texts, by quantity."""
    return {f"{kind}.{name}": column(f"{kind}.{name}") for name in names}
