"""Gates: differences that make a command fail, such as `server > 2%`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from shakedown.errors import InputError
from shakedown.schema.base import SIDES, Side
from shakedown.schema.comparison import Compared, ComparedQuantity

Level = Literal["handshake", "message", "operation"]

ACCEPTED = (
    "client > 2%, server > 2% (time), bytes > 0%, server.instructions > 0.2%, memory > 5%, message > 5%, "
    "operation > 5%"
)
_FORM = re.compile(r"\s*([a-z]+)(?:\.([a-z]+))?\s*>\s*(\d+(?:\.\d*)?)\s*%\s*")
_WORDS = {
    **dict.fromkeys(SIDES, "side"),
    **dict.fromkeys(("message", "operation"), "level"),
    **dict.fromkeys(get_args(ComparedQuantity), "quantity"),
}
"""The field that each word of a gate sets."""


@dataclass(frozen=True)
class Gate:
    """The limit of a figure's increase, above which a comparison fails."""

    text: str
    limit: float
    level: Level = "handshake"
    quantity: ComparedQuantity = "time"
    side: Side | None = None

    def is_about(self, row: Compared) -> bool:
        return row.level == self.level and row.quantity == self.quantity and self.side in (None, row.side)

    def is_exceeded(self, row: Compared) -> bool:
        """Whether an increase is significant, even within the margin, and its estimate exceeds the limit."""
        is_more = row.verdict == "different" or (row.lower is not None and row.lower > 0)
        return is_more and (row.change is None or row.change > self.limit)


def gate(text: str) -> Gate:
    """Parses a gate. Raises `InputError`."""
    found = _FORM.fullmatch(text)
    if found is not None:
        words = [word for word in found.groups()[:2] if word is not None]
        fields: dict[str, Any] = {_WORDS[word]: word for word in words if word in _WORDS}
        if len(fields) == len(words):
            return Gate(text.strip(), float(found[3]) / 100, **fields)
    raise InputError(f'"{text[:60]}" is not a gate; accepted: {ACCEPTED}')


def failures(gates: Sequence[Gate], rows: Sequence[Compared]) -> list[str]:
    """The failures, one line per figure. A gate also fails for a handshake of `before` without any comparable
    figure, such as one that is missing in `after`, or one with too few blocks or runs for a verdict.
    """
    from shakedown.reporting.columns.comparison import compared_row, percent

    handshakes: dict[str, list[Compared]] = {}
    for row in rows:
        if row.reason != "only after":
            handshakes.setdefault(f"{row.suite} ({row.stacks})", []).append(row)
    lines = []
    for one in gates:
        for name, some in handshakes.items():
            about = [row for row in some if one.is_about(row)]
            lines += [
                f"{one.text}: {name}: {compared_row(row)['figure']} {percent(row.change)}"
                for row in about
                if one.is_exceeded(row)
            ]
            if all(row.verdict == "not comparable" or row.reason for row in about):
                why = "; ".join(dict.fromkeys(row.reason for row in about if row.reason))
                lines.append(f"{one.text}: {name}: no such figure could be compared{why and f' ({why})'}")
    return lines
