"""The papers' printed tables, for the models' tests."""

from __future__ import annotations

import csv
from pathlib import Path

import shakedown.papers as papers

DATA = Path(papers.__path__[0]) / "data"


def table(paper: str, name: str) -> list[dict[str, str]]:
    """The rows of a printed table."""
    with (DATA / paper / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def by_certificates(name: str) -> dict[tuple[str, str], dict[str, str]]:
    """A table of the thesis by (CA certificate, end certificate)."""
    return {(row["ca_cert"], row["end_cert"]): row for row in table("wtls-nokia7650", name)}
