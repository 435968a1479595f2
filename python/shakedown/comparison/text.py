"""A comparison as text and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from shakedown.files.text import visible
from shakedown.reporting.columns.comparison import (
    COMPARED,
    compared_row,
    escaped,
    handshakes,
    markdown_table,
)
from shakedown.schema.comparison import VERDICTS, Compared, Comparison


def decisive(rows: Sequence[Compared]) -> list[Compared]:
    """The rows that are shown by default: all that differ, and the times of common handshakes."""

    def is_total_time(row: Compared) -> bool:
        return row.level == "handshake" and row.quantity == "time" and None not in (row.before, row.after)

    return [row for row in rows if row.verdict == "different" or is_total_time(row)]


def lacking(comparison: Comparison) -> list[str]:
    """One line per handshake that only one condition has."""
    names = dict.fromkeys(
        f"only in {comparison.before if row.after is None else comparison.after}: {row.suite} ({row.stacks})"
        for row in comparison.rows
        if row.quantity == "bytes" and row.level == "handshake" and None in (row.before, row.after)
    )
    return list(names)


def summary(comparison: Comparison) -> str:
    """The number of figures by verdict, with reasons."""
    words = []
    for verdict in VERDICTS:
        rows = [row for row in comparison.rows if row.verdict == verdict]
        reasons = ", ".join(dict.fromkeys(row.reason for row in rows if row.reason))
        words += [f"{len(rows)} {verdict}{reasons and f' ({reasons})'}"] if rows else []
    return f"{len(comparison.rows)} figures: {', '.join(words)}"


def method(comparison: Comparison) -> str:
    rules = comparison.method
    floor = f"; widened by ±{rules.floor:.1%} (--floor)" if rules.floor else ""
    return (
        f"intervals: {1 - rules.alpha:.0%} simultaneous for all times{floor}; different: excludes zero; "
        f"equivalent: within ±{rules.margin:.1%}"
    )


def markdown(comparison: Comparison, rows: Sequence[Compared]) -> str:
    lines = [f"**{escaped(comparison.before)} → {escaped(comparison.after)}**: {summary(comparison)}"]
    grouped: dict[str, list[Compared]] = {}
    for row in rows:
        grouped.setdefault(handshakes(compared_row(row)), []).append(row)
    for name, some in grouped.items():
        shown = [{**compared_row(one), "strong": one.verdict == "different"} for one in some]
        keys = ("figure", "before", "after", "change", "interval", "verdict")
        heading = visible(name).replace("`", "'")
        lines += ["", f"`{heading}`", "", *markdown_table(COMPARED, shown, keys, "strong")]
    lines += ["", *(f"- {escaped(one)}" for one in lacking(comparison))]
    lines += [f"- **failed**: {escaped(one)}" for one in comparison.failed]
    return "\n".join([*lines, "", f"<sub>{method(comparison)}</sub>", ""])
