"""The parts of the page.

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
"""Sections from top to bottom, by anchor; other kinds follow, and provenance comes last."""


@dataclass(frozen=True)
class Table:
    """A table of the page; `numeric` is the number of its last columns that contain figures.

    `units` are the units of the cells' values, by column. The column `suite` names each row's handshake.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: int
    caption: str = ""
    kind: str = ""
    units: Sequence[str] = ()

    @property
    def suites(self) -> Sequence[str]:
        """Each row's handshake; empty if the rows are not handshakes."""
        place = list(self.head).index("suite") if "suite" in self.head else None
        return [] if place is None else [row[place] for row in self.rows]


@dataclass(frozen=True)
class Block:
    """A figure and its table, under an optional heading.

    `suite` is set if the block concerns a single handshake.
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
