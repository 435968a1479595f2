"""Columns of comparisons, of checked budgets, and of diagnoses of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from shakedown.files.text import visible
from shakedown.reporting.columns import OFTEN, ROOM, WIDE, Column, ObjectTable, Row, label
from shakedown.reporting.figures import NOTHING
from shakedown.schema.base import builtins
from shakedown.schema.budget import CheckedLimit
from shakedown.schema.comparison import Compared

AMOUNT_WIDTH = len("12.345 ms")


def percent(share: float | None) -> str:
    """A change in per cent, with a minus sign for a decrease."""
    if share is None:
        return NOTHING
    if share == 0:
        return "0"
    digits = 0 if abs(share) >= 1 else 1 if abs(share) >= 0.01 else 2
    return f"{share * 100:+,.{digits}f} %".replace("-", "−")


def amount(value: float | None, unit: str) -> str:
    if value is None:
        return NOTHING
    if unit == "us":
        return f"{value:,.1f} µs" if value < 1000 else f"{value / 1000:,.3f} ms"
    number = f"{value:,.0f}" if value >= 1000 or float(value).is_integer() else f"{value:,.3g}"
    return number if unit in ("1", "bytes") else f"{number}/s" if unit == "1/s" else f"{number} {unit}"


def figure_name(row: Row) -> str:
    side, message, what = row["side"], row["message"], row["quantity"]
    unit = "" if what == "time" else what
    if row["operation"] is not None:
        owner = "" if row["sender"] == side else f"{row['sender']}'s "
        parts = [side, row["operation"], f"in {owner}{message}" if message else "", unit]
    elif row["sender"] is None:
        parts = [side, message, "memory, bytes" if what == "memory" else what]
    elif side is None:
        parts = [f"{row['sender']}'s", message, unit]
    else:
        parts = [side, "generates" if side == row["sender"] else "processes", message, unit]
    return " ".join(part for part in parts if part)


def interval(row: Row) -> str:
    """The interval of a time's change, which is valid for all times together; empty for counts."""
    if row["lower"] is None or row["upper"] is None:
        return ""
    return f"{percent(row['lower'])} … {percent(row['upper'])}"


def verdict_words(row: Row) -> str:
    """The verdict; a difference states its direction."""
    if row["verdict"] == "different":
        less = row["change"] is not None and row["change"] < 0
        return (("faster", "slower") if row["quantity"] == "time" else ("less", "more"))[0 if less else 1]
    return str(row["verdict"])


def handshakes(row: Row) -> str:
    """The handshakes that a row compares: one, or two different ones."""
    after = {key: row.get(f"after_{key}") or row[key] for key in ("suite", "stacks")}
    names = (f"{row['suite']} ({row['stacks']})", f"{after['suite']} ({after['stacks']})")
    return " → ".join(dict.fromkeys(names))


COMPARED = (
    label("suite", "suite", identity=True, path=True, section=handshakes),
    label("stacks", "stacks", identity=True, section=handshakes),
    label("after_suite", "then", "the suite that it is compared with", identity=True, section=handshakes),
    label("after_stacks", "its stacks", identity=True, section=handshakes),
    label("figure", "figure", "time (CPU), bytes, instructions, memory: of a side, a message, an operation",
          prose=True),
    Column(
        key="before",
        name="before",
        group="figures",
        rank=ROOM,
        text=lambda row: amount(row["before"], row["unit"]),
        min_width=AMOUNT_WIDTH,
    ),
    Column(
        key="after",
        name="after",
        meaning="for a time: before plus the estimated change",
        text=lambda row: amount(row["after"], row["unit"]),
        min_width=AMOUNT_WIDTH,
        group="figures",
        rank=ROOM,
    ),
    label(
        "change",
        "change",
        "Hodges and Lehmann's estimate; for counts, the ratio",
        show=percent,
        min_width=len("−12.3 %"),
    ),
    label(
        "interval",
        "interval",
        "of the change; simultaneous for all times",
        text=interval,
        rank=OFTEN,
        min_width=len("−12.3 % … −12.3 %"),
    ),
    label("verdict", "verdict", text=verdict_words, min_width=len("equivalent")),
    label("reason", "reason", rank=WIDE),
    Column(key="n", name="n", rank=WIDE, meaning="pairs, or readings of the smaller group"),
    *(
        label(name, name, rank=WIDE)
        for name in ("quantity", "side", "sender", "message", "operation", "unit")
    ),
    *(Column(key=name, name=name, rank=WIDE, show=percent) for name in ("lower", "upper")),
)  # fmt: skip


def compared(found: Sequence[Compared]) -> ObjectTable:
    return ObjectTable(COMPARED, [compared_row(one) for one in found])


def compared_row(one: Compared) -> dict[str, Any]:
    row = dict(builtins(one))
    return {**row, "figure": figure_name(row), "interval": interval(row)}


def _limit_name(row: Row) -> str:
    unit = {"us": "_us", "bytes": "_bytes", "s": "_s", "J": "_j", "1/s": "_per_s"}.get(row["unit"], "")
    where = f" ({row['place']})" if row["place"] else ""
    return f"{row['quantity'].removesuffix(unit).replace('_', ' ')}{where}"


def check_notes(rows: Sequence[Row]) -> Iterator[str]:
    """The reasons for unknown figures, and the limits that are not checked."""
    for row in rows:
        if row["reason"] is not None:
            yield f"{row['suite']}, {_limit_name(row)}: {row['reason']}"
    if not all(row["gated"] for row in rows):
        yield "not checked: limits of times need --times and an otherwise idle machine"


CHECKED = (
    label("suite", "suite", path=True, section=lambda row: str(row["suite"])),
    label("quantity", "limit on", text=_limit_name),
    Column(key="limit", name="limit", text=lambda row: amount(row["limit"], row["unit"])),
    Column(key="found", name="found", text=lambda row: amount(row["found"], row["unit"])),
    label("change", "to limit", "by how much the figure is above its limit", show=percent),
    label("verdict", "verdict", text=lambda row: str(row["verdict"]) if row["gated"] else "not checked"),
    *(label(name, name, rank=WIDE) for name in ("unit", "stacks", "place", "gated", "reason")),
)


def checked(limits: Sequence[CheckedLimit]) -> ObjectTable:
    rows = [checked_row(one) for one in limits]
    return ObjectTable(CHECKED, rows, notes=lambda shown: () if "reason" in shown else check_notes(rows))


def checked_row(one: CheckedLimit) -> dict[str, Any]:
    change = None if one.found is None or not one.limit else one.found / one.limit - 1
    return {**builtins(one), "change": change}


DIAGNOSES = (
    label("name", "what"),
    label("state", "state"),
    label("found", "found", prose=True),
    label("disables", "what it disables or worsens", prose=True, show=lambda value: value or ""),
)


def markdown_table(
    columns: tuple[Column, ...], rows: Sequence[Row], keys: tuple[str, ...], strong: str
) -> list[str]:
    """Rows as a table of Markdown; the last cell of rows whose key `strong` is true is bold."""
    shown = [one for key in keys for one in columns if one.key == key]
    lines = [
        f"| {' | '.join(one.name for one in shown)} |",
        f"| {' | '.join('---:' if one.numeric else '---' for one in shown)} |",
    ]
    for row in rows:
        cells = [escaped(one.cell(row)) for one in shown]
        cells[-1] = f"**{cells[-1]}**" if row[strong] else cells[-1]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def escaped(text: str) -> str:
    """Text in a cell of Markdown, or in a line of it. It may come from a foreign file."""
    return escape(visible(text.replace("\n", " ")), quote=False).replace("|", "\\|").replace("`", "\\`")
