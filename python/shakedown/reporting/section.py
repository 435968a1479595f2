"""What a part of the page is made of.

Each kind of figures makes sections from results; the page sorts them by their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from shakedown.charts.figure import Figure

PLACES = (
    "overview",
    "captures",
    "certificates",
    "storms",
    "predictions",
    "queue",
    "fleets",
    "cases",
    "time",
    "bytes",
    "waterfalls",
)
"""Sections from top to bottom, by anchor; those of other kinds follow, provenance comes last."""


@dataclass(frozen=True)
class Table:
    """A table for people; `numeric` counts the columns, from the right, that hold figures."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: int
    caption: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Block:
    """A figure and what belongs below it, under a heading of its own where it has one."""

    heading: str = ""
    summary: str = ""
    figure: Figure | None = None
    table: Table | None = None
    folded_table: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    anchor: str
    title: str
    lead: str
    blocks: Sequence[Block] = field(default_factory=tuple)
