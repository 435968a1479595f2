"""Seconds by handshake, device and bearer: a map of cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shakedown.reporting.charts.canvas import CHARACTER_PX, WIDE, across, down, rectangles, texts
from shakedown.reporting.charts.figure import SUITE, TIP, Definition, label
from shakedown.reporting.charts.theme import INK, LANE, MUTED, STEPS
from shakedown.reporting.figures import NOTHING, marked, marked_time

STEPS_S = (0.5, 2.0, 5.0, 20.0, 60.0)
"""Upper ends of the map's steps, in seconds: times at which a wait begins to feel different."""

_ROW_PX, _CELL_PX, _HEAD_PX, _GAP_PX = 24, 68, 36, 12
_NARROW_CELL_PX, _WIDEST_CELL_PX = 64, 140

Row = dict[str, Any]


RECOVERY_STEPS_S = (10.0, 30.0, 60.0, 300.0, 1800.0)
"""The same for the recovery from a storm."""


def _step(value: float, steps_s: Sequence[float]) -> int:
    return sum(value >= step for step in steps_s)


def _tip(row: Row | None, device: str, bearer: str, word: str) -> str:
    """A cell's exact figures, as far as the row has them."""
    place = f"{device} over {bearer}"
    if row is None:
        return f"{place}: not computed"
    words = {"ready_mean_s": word, "ready_p50_s": "median", "ready_p95_s": "p95", "ready_p99_s": "p99"}
    said = [
        f"{word} {marked(f'{row[key]:,.6g} s', row.get('basis'))}"
        for key, word in words.items()
        if row.get(key) is not None
    ]
    low, high = row.get("ready_low_s"), row.get("ready_high_s")
    if low is not None and high is not None:
        said.insert(1, f"90 % interval {low:,.6g} – {high:,.6g} s")
    return f"{place}: {'; '.join(said) or row.get('lacking', 'no steady state')}"


def time_map(
    rows: Sequence[Row], width: int, steps_s: Sequence[float] = STEPS_S, word: str = "ready"
) -> Definition:
    """Cells of seconds, each with the mark of its basis, or with what it is `lacking`.

    `word` names the seconds. On a narrow page suites are above their cells, and devices below one another.
    """
    suites = list(dict.fromkeys(row["label"] for row in rows))
    devices = list(dict.fromkeys(row["device"] for row in rows))
    bearers = list(dict.fromkeys(row["bearer"] for row in rows))
    found = {(row["label"], row["device"], row["bearer"]): row for row in rows}
    wide = width > WIDE
    # Space for the longest name, at most a third of the drawing.
    label_px = min(CHARACTER_PX * max(map(len, suites), default=0) + 14, width / 3) if wide else 0
    room_px = width - label_px
    most = max(1, int(room_px // (_CELL_PX if wide else _NARROW_CELL_PX)))
    blocks = [(device, bearers[at : at + most]) for device in devices for at in range(0, len(bearers), most)]
    across_each = min(most, len(bearers))
    # As many blocks side by side as fit, the same number in each strip, with cells as wide as that allows.
    fit = max(1, int((room_px + _GAP_PX) // (_CELL_PX * across_each + _GAP_PX))) if wide else 1
    columns = -(-len(blocks) // -(-len(blocks) // fit))
    cell_px = min(_WIDEST_CELL_PX, int((room_px + _GAP_PX) / columns - _GAP_PX) // across_each)
    block_px = cell_px * across_each + _GAP_PX
    row_px = _ROW_PX if wide else _ROW_PX + 16
    strip_px = _HEAD_PX + len(suites) * row_px + 18
    cells: list[Row] = []
    written: list[Row] = []

    def write(x: float, y: float, text: str, align: str = "left", look: str = "plain", **about: str) -> None:
        written.append({"x": x, "y": y, "text": text, "align": align, "look": look, **about})

    for number, (device, here) in enumerate(blocks):
        column, strip = number % columns, number // columns
        left, top = label_px + column * block_px, strip * strip_px
        write(left, top + 8, device, look="strong")
        for position, bearer in enumerate(here):
            x = left + (position + 0.5) * cell_px
            write(x, top + 25, align="center", look="quiet", **label(bearer, cell_px))
        for position, suite in enumerate(suites):
            y = top + _HEAD_PX + position * row_px
            if column == 0:
                name = label(suite, label_px - 10 if wide else width)
                write(0, y + 12 if wide else y + 7, **{SUITE: suite, **name})
            y += 0 if wide else 15
            for place, bearer in enumerate(here):
                row = found.get((suite, device, bearer))
                value = row["ready_mean_s"] if row else None
                x = left + place * cell_px
                # A lower bound may belong to any step, so it has no colour.
                coloured = value is not None and row is not None and row.get("basis") != "unknown"
                step = f"step{_step(value, steps_s)}" if coloured and value is not None else "none"
                text = (
                    (row.get("lacking", "saturated") if row else NOTHING)
                    if row is None or value is None
                    else marked_time(value, row.get("basis"))
                )
                box = {"from": x, "to": x + cell_px - 2, "top": y, "bottom": y + _ROW_PX - 3}
                tip = _tip(row, device, bearer, word)
                cells.append({**box, SUITE: suite, TIP: tip, "step": step})
                dark = step != "none" and value is not None and _step(value, steps_s) >= 3
                look_of = "light" if dark else "plain"
                write(x + cell_px / 2 - 1, y + 11, text, "center", look_of, **{SUITE: suite})
    height = strip_px * -(-len(blocks) // columns)
    used = [f"step{number}" for number in range(len(steps_s) + 1)]
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
