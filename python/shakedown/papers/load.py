"""The papers' published figures in ``data/``: citation, claims, tables."""

from __future__ import annotations

import csv
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Claim:
    """One checkable statement of a paper, a row of ``claims.csv``."""

    id: str
    section: str
    claim: str
    kind: str
    value: str
    unit: str
    tolerance: str
    check: str


@dataclass(frozen=True)
class Published:
    """One printed table: its columns and its rows, text as printed."""

    columns: tuple[str, ...]
    rows: tuple[dict[str, str], ...]

    def one(self, **where: str) -> dict[str, str]:
        """The row with these values; KeyError if there is none."""
        for row in self.rows:
            if all(row[key] == value for key, value in where.items()):
                return row
        raise KeyError(f"no row with {where}")

    def column(self, name: str) -> list[float]:
        return [float(row[name]) for row in self.rows]


@dataclass(frozen=True)
class PaperData:
    """All data of one paper."""

    slug: str
    about: dict[str, Any]
    claims: dict[str, Claim]
    tables: dict[str, Published]

    @property
    def title(self) -> str:
        return str(self.about["paper"]["title"])

    @property
    def citation(self) -> str:
        """Authors, title and venue in one line."""
        paper = self.about["paper"]
        names = list(paper["authors"])
        authors = names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
        year = str(paper.get("year", ""))
        venue = str(paper.get("venue", "")).split(" (external", 1)[0]
        if venue.startswith("not printed"):
            venue = str(paper.get("affiliation", ""))
        tail = ", ".join(part for part in (venue, year if year and year not in venue else "") if part)
        return f"{authors}, *{paper['title']}*" + (f", {tail}" if tail else "")


def load(slug: str) -> PaperData:
    folder = DATA / slug
    with (folder / "paper.toml").open("rb") as file:
        about = tomllib.load(file)
    claims = {row["id"]: Claim(**row) for row in _read(folder / "claims.csv").rows}
    tables = {path.stem: _read(path) for path in sorted(folder.glob("*.csv")) if path.stem != "claims"}
    return PaperData(slug, about, claims, tables)


def _read(path: Path) -> Published:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        rows = tuple(dict(row) for row in reader)
        return Published(tuple(reader.fieldnames or ()), rows)
