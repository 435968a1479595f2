"""Reproductions as text: tables on a terminal, and parts that pages share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from shakedown.papers.paper import Reproduction
from shakedown.papers.rows import DIFFERS, UNTESTABLE, VERDICTS
from shakedown.reporting.columns import ALWAYS, USUAL, Column, label


def figure_text(value: float | str | None) -> str:
    """A figure for tables: five digits at most, a dash for None."""
    if value is None:
        return "–"
    return value if isinstance(value, str) else f"{value:.5g}"


CLAIMS = (
    label("claim", "claim"),
    label("what", "what", prose=True),
    label("printed", "printed", prose=True),
    label("here", "here", prose=True),
    label("unit", "unit", rank=USUAL),
    label("verdict", "verdict"),
)


def claim_rows(reproduction: Reproduction) -> Iterator[dict[str, str]]:
    """Every claim: the printed figure, the computed figure, the verdict."""
    for claim, row in reproduction.claims().items():
        modelled = row.kind == "modelled" or row.verdict == UNTESTABLE
        yield {
            "claim": claim,
            "what": row.quantity,
            "printed": figure_text(row.published),
            "here": figure_text(row.replication),
            "unit": row.unit,
            "verdict": row.verdict if modelled else f"{row.verdict} (measured)",
        }


def differences(reproduction: Reproduction) -> Iterator[str]:
    """The claims that differ, each with the reason."""
    differing = [row for row in reproduction.claims().values() if row.verdict == DIFFERS]
    if differing:
        yield "what differs, and why:"
    yield from (f"  {row.claim_id}  {row.quantity}: {row.reason}" for row in differing)


SUMMARY_TITLE = "agrees / differs / undecided / cannot be tested"
SUMMARY = (
    label("paper", "paper"),
    label("claims", "claims"),
    label("cells", "cells"),
    label("rerun", "modern rerun"),
    Column(key="drawn", name="figures drawn", rank=ALWAYS),
    Column(key="waiting", name="waiting", rank=ALWAYS),
)


def summary_rows(reproductions: Sequence[Reproduction]) -> Iterator[dict[str, object]]:
    """Verdicts by paper, and the number of figures drawn."""
    for one in reproductions:
        drawings = one.drawings()
        waiting = sum(1 for drawing in drawings if drawing.waits_for)
        claims, cells, rerun, _ = verdict_counts([one])
        yield {
            "paper": one.paper.slug,
            "claims": claims,
            "cells": cells,
            "rerun": rerun,
            "drawn": len(drawings) - waiting,
            "waiting": waiting,
        }


def verdict_counts(reproductions: Sequence[Reproduction]) -> list[str]:
    """Numbers of verdicts, as ``14 / 6 / 0 / 2``: of claims, of cells, and of the modern rerun of both."""
    parts = [
        (one.claims().values(), one.cells(), one.modern_rerun(), one.cells("measured"))
        for one in reproductions
    ]
    counts = [Counter(row.verdict for rows in same for row in rows) for same in zip(*parts, strict=True)]
    return [" / ".join(str(counted[verdict]) for verdict in VERDICTS) for counted in counts]


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; numbers are not aligned, so that a change of one line changes one line."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += [
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows
    ]
    return "\n".join(lines)
