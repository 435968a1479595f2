"""Reproductions as text for people: tables on a terminal, and the pieces that pages share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shakedown.papers.paper import Reproduction
from shakedown.papers.rows import DIFFERS, UNTESTABLE, VERDICTS, Row

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_STYLES = {"agrees": "green", "differs": "bold yellow", "undecided": "yellow", "cannot be tested": "dim"}


def figure_text(value: float | str | None) -> str:
    """A figure as tables show it: five digits at most, a dash for none."""
    if value is None:
        return "–"
    return value if isinstance(value, str) else f"{value:.5g}"


def claims_table(reproduction: Reproduction) -> Table:
    """Every claim: what was printed, what follows, the verdict."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=SIMPLE_HEAD,
        title=f"{reproduction.data.title}: claims",
        title_justify="left",
        title_style="bold",
        pad_edge=False,
    )
    table.add_column("claim", no_wrap=True)
    table.add_column("what", ratio=5)
    table.add_column("printed", ratio=2)
    table.add_column("here", ratio=3)
    table.add_column("unit")
    table.add_column("verdict", no_wrap=True)
    for claim, row in reproduction.claims().items():
        verdict = (
            row.verdict
            if row.kind == "modelled" or row.verdict == UNTESTABLE
            else f"{row.verdict} (measured)"
        )
        table.add_row(
            claim,
            Text(row.quantity),
            Text(figure_text(row.published)),
            Text(figure_text(row.replication)),
            row.unit,
            Text(verdict, style=_STYLES[row.verdict]),
        )
    return table


def differences(reproduction: Reproduction) -> Text:
    """The claims that differ, each with the reason."""
    from rich.text import Text

    text = Text()
    differing = [row for row in reproduction.claims().values() if row.verdict == DIFFERS]
    if differing:
        text.append("What differs, and why\n", style="bold")
    for row in differing:
        text.append(f"  {row.claim_id}", style="bold yellow")
        text.append(f"  {row.quantity}: {row.reason}\n")
    return text


def summary_table(reproductions: Sequence[Reproduction]) -> Table:
    """Verdicts by paper, and how many figures are drawn."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        box=SIMPLE_HEAD,
        title="Claims, cells of result tables, and their modern rerun: agrees / differs / "
        "undecided / cannot be tested",
        title_justify="left",
        title_style="bold",
        pad_edge=False,
    )
    for column in ("paper", "claims", "cells", "modern rerun", "figures drawn", "waiting"):
        table.add_column(column, justify="left" if column == "paper" else "right", no_wrap=True)
    for one in reproductions:
        drawings = one.drawings()
        waiting = sum(1 for drawing in drawings if drawing.waits_for)
        table.add_row(
            one.paper.slug,
            counts_text(list(one.claims().values())),
            counts_text(one.cells()),
            counts_text(one.modern_rerun()),
            str(len(drawings) - waiting),
            str(waiting),
        )
    return table


def counts_text(rows: Sequence[Row]) -> str:
    """Verdicts counted: ``14 / 6 / 0 / 2``."""
    counts = Counter(row.verdict for row in rows)
    return " / ".join(str(counts[verdict]) for verdict in VERDICTS)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; numbers are not aligned, so that a change of one line changes one line."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += [
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows
    ]
    return "\n".join(lines)
