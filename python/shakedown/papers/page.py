"""A page for each paper: a fixed text with computed figures, and all tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from shakedown.papers.drawing import Drawing
from shakedown.papers.paper import Reproduction
from shakedown.papers.rows import DIFFERS, RULE, UNDECIDED, UNTESTABLE, VERDICTS
from shakedown.papers.text import figure_text, markdown_table, verdict_counts
from shakedown.schema.replication import Row

PAGES = Path(__file__).parent / "pages"


def page(reproduction: Reproduction) -> str:
    paper, data, replication = reproduction.paper, reproduction.data, reproduction.replication
    story, measured = _Story(reproduction), _provenance(replication.machine, replication.date)
    names = {
        **{name: getattr(story, name) for name in vars(_Story) if not name.startswith("_")},
        "citation": data.citation,
        "slug": paper.slug,
        "measured": measured,
        "Measured": _sentence(measured),
        "rule": RULE,
        **paper.words(data, replication),
    }
    return _render(f"{paper.slug}.md", names)


def index(reproductions: Sequence[Reproduction]) -> str:
    """The page that links to the others."""
    rows = []
    for one in reproductions:
        drawings = one.drawings()
        waiting = sum(1 for drawing in drawings if drawing.waits_for)
        rows.append(
            [
                f"[{one.data.title}]({one.paper.slug}.md)",
                *verdict_counts([one]),
                f"{len(drawings) - waiting}" + (f", {waiting} waiting" if waiting else ""),
            ]
        )
    every = [row for one in reproductions for row in one.rows]
    rows.append(["all", *verdict_counts(reproductions), ""])
    table = markdown_table(
        ["paper", "claims", "cells of tables", "claims, modern rerun", "cells, modern rerun", "figures"], rows
    )
    replication = reproductions[0].replication
    return _render(
        "index.md",
        {
            "table": table,
            "comparisons": len(every),
            "counts": Counter(row.verdict for row in every),
            "rule": RULE,
            "measured": _provenance(replication.machine, replication.date),
        },
    )


def _render(name: str, names: dict[str, Any]) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # The output is Markdown from trusted texts, so nothing is escaped.
    environment = Environment(
        loader=FileSystemLoader(PAGES),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        autoescape=False,
    )
    return environment.get_template(name).render(names)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _provenance(machine: str, date: str) -> str:
    return f"measured on {date} on {machine}" if machine else "not measured"


class _Story:
    """The methods that a page's template may call: all public ones."""

    def __init__(self, reproduction: Reproduction) -> None:
        self._all = reproduction
        self._claims = reproduction.claims()
        self._drawings = {drawing.number: drawing for drawing in reproduction.drawings()}
        self._shown: set[str] = set()

    def printed(self, claim: str) -> str:
        return figure_text(self._claims[claim].published)

    def replication(self, claim: str) -> str:
        return figure_text(self._claims[claim].replication)

    def reason(self, claim: str) -> str:
        return self._claims[claim].reason

    def modern_rerun(self, claim: str) -> str:
        """The modern rerun's figure for a claim, or that it was not measured."""
        for row in self._all.modern_rerun():
            if row.item.startswith(f"claim {claim} "):
                return "not measured" if row.replication is None else figure_text(row.replication)
        raise KeyError(claim)

    def counts(self) -> str:
        counts = Counter(row.verdict for row in self._claims.values())
        return ", ".join(
            f"{counts[verdict]} "
            f"{'agree' if verdict == 'agrees' else 'differ' if verdict == DIFFERS else verdict}"
            for verdict in VERDICTS
        )

    def figure(self, *numbers: str) -> str:
        return "\n\n".join(self._one_figure(self._drawings[number]) for number in numbers)

    def _one_figure(self, drawing: Drawing) -> str:
        self._shown.add(drawing.number)
        if drawing.definition is None:
            return f"*Figure {drawing.number}, {drawing.title}, needs {drawing.waits_for}.*"
        return f"![{drawing.heading}](figures/{drawing.name}.svg)\n\n*{drawing.note}*"

    def figures(self) -> str:
        """The figures that the text does not contain."""
        rest = [drawing for number, drawing in self._drawings.items() if number not in self._shown]
        return "\n\n".join(self._one_figure(drawing) for drawing in rest)

    def claims_table(self) -> str:
        rows = [
            [
                row.claim_id or "",
                row.quantity,
                _printed(row, _with_unit(figure_text(row.published), row)),
                _with_unit(figure_text(row.replication), row),
                "**differs**" if row.verdict == DIFFERS else row.verdict,
                _why(row),
                row.depends_on,
            ]
            for row in self._claims.values()
        ]
        return markdown_table(
            ["claim", "what", "printed", "reproduced", "verdict", "reason", "depends on"], rows
        )

    def rerun_table(self) -> str:
        rows = [
            [
                row.item.split()[1],
                row.quantity,
                _printed(row, figure_text(row.published)),
                figure_text(row.replication),
                "**differs**" if row.verdict == DIFFERS else row.verdict,
                _why(row),
            ]
            for row in self._all.modern_rerun()
        ]
        return markdown_table(["claim", "what", "printed", "modern rerun", "verdict", "remark"], rows)

    def lines(self, start: str) -> str:
        """Rows whose item starts with this text: a line for each item, a column for each quantity."""
        rows = [row for row in self._all.rows if row.item.startswith(start)]
        columns = list(dict.fromkeys(f"{row.quantity} ({row.unit})" for row in rows))
        lines: dict[str, dict[str, str]] = {}
        for row in rows:
            item = row.item.removeprefix(start).lstrip(", ")
            lines.setdefault(item, {})[f"{row.quantity} ({row.unit})"] = figure_text(row.replication)
        body = [[item, *(found.get(column, "") for column in columns)] for item, found in lines.items()]
        return markdown_table(["", *columns], body)

    def side_by_side(self, items: Mapping[str, str]) -> str:
        """The same cells computed in several ways, the items by column: a line for each, with the printed
        figure first.
        """
        lines: dict[str, list[str]] = {}
        for start in items.values():
            for row in self._all.rows:
                item, _, label = row.item.partition(", ")
                if item == start and row.replication is not None:
                    line = lines.setdefault(label, [label, f"{figure_text(row.published)} {row.unit}"])
                    line.append(f"{figure_text(row.replication)} {row.unit}")
        head = ["", "printed", *items]
        return markdown_table(head, list(lines.values()))

    def tables(self) -> str:
        """Every result table: printed and computed figures, cell by cell."""
        return self._pivots(self._all.cells("modelled"))

    def ratios(self) -> str:
        """Every result table compared with measurements on this machine."""
        return self._pivots([row for row in self._all.cells("measured") if row.replication is not None])

    def _pivots(self, cells: Sequence[Row]) -> str:
        groups: dict[str, list[Row]] = {}
        for row in cells:
            if not row.item.startswith("queue point"):
                groups.setdefault(row.item.split(",")[0], []).append(row)
        return "\n\n".join(_pivot(name, rows) for name, rows in groups.items())


def _why(row: Row) -> str:
    """A row's reason, with its interval if it was measured."""
    if row.interval is None or row.interval[0] == row.interval[1]:
        return row.reason
    return f"{row.reason}; from {figure_text(row.interval[0])} to {figure_text(row.interval[1])}"


def _printed(row: Row, figure: str) -> str:
    """A printed figure, with its tolerance unless that is the precision of its digits."""
    tolerance = row.tolerance or ""
    if row.verdict == UNTESTABLE or tolerance in ("", "exact", "none"):
        return figure
    if re.fullmatch(r"[0-9.]+", tolerance):
        unit = row.unit if row.unit != "%" else "point" if tolerance == "1" else "points"
        return f"{figure} ± {tolerance} {unit}".rstrip()
    return f"{figure} ± {tolerance}" if tolerance.endswith("%") else f"{figure} ({tolerance})"


def _with_unit(figure: str, row: Row) -> str:
    short = row.unit if len(row.unit) <= 8 else ""
    return f"{figure} {short}".strip() if figure != "–" else figure


def _pivot(name: str, rows: Sequence[Row]) -> str:
    """One table, folded: a line for each item, a column for each quantity, ``printed → ours`` in cells."""
    columns = list(dict.fromkeys(row.quantity for row in rows))
    lines: dict[str, dict[str, Row]] = {}
    for row in rows:
        lines.setdefault(row.item.partition(", ")[2] or row.item, {})[row.quantity] = row
    units = {row.quantity: row.unit for row in rows}
    inputs = all(row.replication is None for row in rows)
    head = ["", *(f"{column} ({units[column]})" for column in columns)]
    body = [
        [label, *(_cell(found[column]) if column in found else "" for column in columns)]
        for label, found in lines.items()
    ]
    counted = Counter(row.verdict for row in rows)
    words = "inputs" if inputs else f"{counted['agrees']} agree, {counted['differs']} differ"
    if counted[UNDECIDED]:
        words += f", {counted[UNDECIDED]} undecided"
    if _only_without_verdict(rows):
        words = f"printed and modern rerun, {_median_difference(rows)}"
    elif not inputs and counted["cannot be tested"]:
        words += f", {counted['cannot be tested']} inputs"
    reasons = list(dict.fromkeys(row.reason for row in rows))
    note = reasons[0] if len(reasons) == 1 else ""
    tolerances = list(dict.fromkeys(row.tolerance for row in rows if row.tolerance))
    if tolerances:
        note = "; ".join(part for part in (note, f"tolerance {', '.join(tolerances)}") if part)
    title = f"{name[:1].upper()}{name[1:]}: {words}"
    text = f"{note[:1].upper()}{note[1:]}.\n\n" if note else ""
    return f"<details><summary>{title}</summary>\n\n{text}{markdown_table(head, body)}\n\n</details>"


def _only_without_verdict(rows: Sequence[Row]) -> bool:
    """Whether all rows have figures of other machines, without a verdict."""
    return all(row.verdict == UNTESTABLE and row.replication is not None for row in rows)


def _median_difference(rows: Sequence[Row]) -> str:
    """The median difference between the figures of a row."""
    distances = [abs(row.difference) for row in rows if row.difference is not None]
    units = {row.unit for row in rows}
    unit = "points" if units == {"%"} else "".join(units) if len(units) == 1 else ""
    return f"median difference {figure_text(median(distances))} {unit}".rstrip()


def _cell(row: Row) -> str:
    printed = figure_text(row.published)
    if row.replication is None:
        return printed
    ours = figure_text(row.replication)
    return f"{printed} → **{ours}**" if row.verdict == DIFFERS else f"{printed} → {ours}"
