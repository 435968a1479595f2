"""Figures from several methods: a row per figure, a mark per method, on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shakedown.reporting.charts.canvas import across, down, lanes, marks, shaped, texts, ticks
from shakedown.reporting.charts.figure import SUITE, TIP, Definition, label
from shakedown.reporting.charts.theme import FILLS, LANE, MUTED
from shakedown.reporting.figures import with_margin

_ROW_PX, _LABEL_PX = 44, 17


@dataclass(frozen=True)
class FigureByMethod:
    """A figure (ms) by method; the first method may have a margin, half of its interval."""

    label: str
    times_ms: Mapping[str, float]
    margin_ms: float = 0.0
    suite: str = ""


def dot_plot(
    rows: Sequence[FigureByMethod], looks: Mapping[str, tuple[str, str]], title: str, width: int
) -> Definition:
    """A row for each figure; `looks` has the shape and colour of each method."""
    values = [value for row in rows for value in row.times_ms.values() if value > 0.0]
    low, high = min(values) / 2.0, max(values) * 2.0
    labels, bands, spans, dots = [], [], [], []
    for position, row in enumerate(rows):
        middle = position * _ROW_PX + _LABEL_PX + 10
        about = {SUITE: row.suite} if row.suite else {}
        labels.append({**about, **label(row.label, width - 60, 7.0), "y": position * _ROW_PX + 8})
        bands.append({"top": middle - 7, "bottom": middle + 7})
        margin_ms = row.margin_ms
        for method, value in row.times_ms.items():
            shown = with_margin(value, margin_ms) if margin_ms else f"{value:,.6g}"
            words = f"{row.label}, {method}: {shown} ms"
            if margin_ms:
                ends = max(value - margin_ms, low), min(value + margin_ms, high)
                spans.append({**about, "from": ends[0], "to": ends[1], "y": middle})
            if value > 0.0:
                dots.append({**about, TIP: words, "at": value, "y": middle, "what": method})
            margin_ms = 0.0
    total, inner = len(rows) * _ROW_PX, width - 40
    x, y = across(low, high, log=True), down(total)
    at_y: dict[str, Any] = {"field": "y", **y}
    axis = {"axis": ticks(title, width, grid=False), **x}
    span = {"x": {"field": "from", **axis}, "x2": {"field": "to"}, "y": at_y}
    used = {method: look for method, look in looks.items() if any(method in row.times_ms for row in rows)}
    return {
        "width": inner,
        "height": total,
        "layer": [
            lanes(bands, 0, inner, y, color=LANE),
            *([marks(spans, "rule", span, color=FILLS["key"].light, strokeWidth=3)] if spans else []),
            shaped(dots, used, axis, at_y, opacity=1, size=75),
            texts(labels, "text", {"value": 0}, at_y, fontWeight=600, fontSize=12, color=MUTED),
        ],
    }
