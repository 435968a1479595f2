"""What a part of the page is made of.

Each kind of figures makes sections from results; the page sorts them by their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from shakedown.reporting.charts.figure import Figure
from shakedown.reporting.html.text import Sentence

if TYPE_CHECKING:
    from shakedown.results.folder import Results

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


class ReportedKind(Protocol):
    """What the page asks of a kind of figures. Kinds stand above this package and are handed to it."""

    def sections(self, results: Results) -> Iterable[Section]:
        """Parts of the report; none where the results have no such figures."""

    def answer(self, results: Results) -> tuple[list[Sentence], list[Sentence]]:
        """What the report says first: the answer, and findings beside it."""
