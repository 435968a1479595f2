"""Seconds by handshake, device and bearer: a map of cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shakedown.reporting.charts.canvas import CHARACTER_PX, WIDE, across, down, rectangles, texts
from shakedown.reporting.charts.figure import Definition, fitted
from shakedown.reporting.charts.theme import INK, LANE, MUTED, STEPS
from shakedown.reporting.terminal.figures import NOTHING, marked, time

STEPS_S = (0.5, 2.0, 5.0, 20.0, 60.0)
"""Seconds at which a wait begins to feel different; the map's steps end there."""

_ROW_PX, _LABEL_PX, _CELL_PX, _HEAD_PX, _GAP_PX = 24, 236, 68, 36, 12
_NARROW_CELL_PX, _WIDEST_CELL_PX = 64, 110

Row = dict[str, Any]


def _step(value: float) -> int:
    return sum(value >= step for step in STEPS_S)


def _label_px(labels: Sequence[str]) -> float:
    """Room for the longest name, so that none runs under its figures."""
    return max(_LABEL_PX, CHARACTER_PX * max(map(len, labels), default=0) + 14)


def time_map(rows: Sequence[Row], width: int) -> Definition:
    """Cells of seconds, each with the mark of what it stands on.

    On a narrow page suites stand above their cells, and devices below each other.
    """
    suites = list(dict.fromkeys(row["label"] for row in rows))
    devices = list(dict.fromkeys(row["device"] for row in rows))
    bearers = list(dict.fromkeys(row["bearer"] for row in rows))
    found = {(row["label"], row["device"], row["bearer"]): row for row in rows}
    wide = width > WIDE
    label_px = _label_px(suites) if wide else 0
    most = max(1, int((width - label_px) // _CELL_PX)) if wide else max(1, width // _NARROW_CELL_PX)
    blocks = [(device, bearers[at : at + most]) for device in devices for at in range(0, len(bearers), most)]
    across_each = min(most, len(bearers))
    cell_px = _CELL_PX if wide else min(_WIDEST_CELL_PX, (width - 10) // across_each)
    block_px = cell_px * across_each + _GAP_PX
    columns = max(1, int((width - label_px + _GAP_PX) // block_px)) if wide else 1
    row_px = _ROW_PX if wide else _ROW_PX + 16
    strip_px = _HEAD_PX + len(suites) * row_px + 18
    cells: list[Row] = []
    written: list[Row] = []

    def write(x: float, y: float, text: str, align: str = "left", look: str = "plain") -> None:
        written.append({"x": x, "y": y, "text": text, "align": align, "look": look})

    for number, (device, here) in enumerate(blocks):
        column, strip = number % columns, number // columns
        left, top = label_px + column * block_px, strip * strip_px
        write(left, top + 8, device, look="strong")
        for position, bearer in enumerate(here):
            write(left + (position + 0.5) * cell_px, top + 25, fitted(bearer, cell_px), "center", "quiet")
        for position, suite in enumerate(suites):
            y = top + _HEAD_PX + position * row_px
            if column == 0:
                write(0, y + 12 if label_px else y + 7, suite if label_px else fitted(suite, width))
            y += 0 if label_px else 15
            for place, bearer in enumerate(here):
                row = found.get((suite, device, bearer))
                value = row["ready_mean_s"] if row else None
                x = left + place * cell_px
                # A lower bound may belong to any step: it has no colour.
                coloured = value is not None and row is not None and row.get("basis") != "unknown"
                step = f"step{_step(value)}" if coloured and value is not None else "none"
                text = (
                    ("saturated" if row else NOTHING)
                    if row is None or value is None
                    else marked(time(value, 2), row.get("basis"))
                )
                box = {"from": x, "to": x + cell_px - 2, "top": y, "bottom": y + _ROW_PX - 3}
                cells.append({**box, "step": step})
                dark = step != "none" and value is not None and _step(value) >= 3
                write(x + cell_px / 2 - 1, y + 11, text, "center", "light" if dark else "plain")
    height = strip_px * -(-len(blocks) // columns)
    used = [f"step{number}" for number in range(len(STEPS_S) + 1)]
    along, below = across(0, width), down(height)
    look: dict[str, Row] = {
        "plain": {"color": INK},
        "light": {"color": STEPS["over"].light},
        "strong": {"color": INK, "fontWeight": 600, "fontSize": 12},
        "quiet": {"color": MUTED},
    }
    steps = {
        "field": "step",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": [*used, "none"], "range": [*(STEPS[name].light for name in used), LANE]},
    }
    at_x, at_y = {"field": "x", "axis": None, **along}, {"field": "y", **below}
    return {
        "width": width,
        "height": height,
        "layer": [
            rectangles(cells, {"axis": None, **along}, below, color=steps),
            *(
                texts([text for text in written if text["look"] == name], "text", at_x, at_y, "each", **style)
                for name, style in look.items()
            ),
        ],
    }
