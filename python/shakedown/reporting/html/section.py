"""What a part of the page is made of.

Each kind of figures makes sections from results; the page sorts them by their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from shakedown.reporting.charts.figure import Figure

PLACES = (
    "overview",
    "captures",
    "certificates",
    "storms",
    "predictions",
    "queue",
    "fleets",
    "mixtures",
    "live",
    "cases",
    "time",
    "bytes",
    "waterfalls",
)
"""Sections from top to bottom, by anchor; those of other kinds follow, provenance comes last."""


@dataclass(frozen=True)
class Table:
    """A table for people; `numeric` counts the columns, from the right, that hold figures.

    `units` are those of the cells' values, for each column. The column `suite` names each row's handshake.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: int
    caption: str = ""
    kind: str = ""
    units: Sequence[str] = ()

    @property
    def suites(self) -> Sequence[str]:
        """Each row's handshake; none where the rows are not handshakes."""
        place = list(self.head).index("suite") if "suite" in self.head else None
        return [] if place is None else [row[place] for row in self.rows]


@dataclass(frozen=True)
class Block:
    """A figure and what belongs below it, under a heading of its own where it has one.

    `suite` is the one handshake that all of it is about.
    """

    heading: str = ""
    summary: str = ""
    figure: Figure | None = None
    table: Table | None = None
    folded_table: str = ""
    folded: bool = False
    suite: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    anchor: str
    title: str
    lead: str
    blocks: Sequence[Block] = field(default_factory=tuple)
