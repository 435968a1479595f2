"""What the handshakes would cost elsewhere: a map of suites by device and bearer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shakedown.report.figure import Definition, Figure, fitted
from shakedown.report.section import Block, Section, Table
from shakedown.report.theme import INK, LANE, MUTED, STEPS
from shakedown.results.folder import Results
from shakedown.units import seconds

STEPS_S = (0.5, 2.0, 5.0, 20.0, 60.0)
"""Seconds at which a wait begins to feel different; the map's steps end there."""

_CHARACTER_PX = 6.2
_ROW_PX, _LABEL_PX, _CELL_PX, _HEAD_PX, _GAP_PX = 24, 236, 62, 36, 12

Row = dict[str, Any]


def predictions_section(results: Results) -> Section | None:
    """The map, one for each rate that differs, and what was extrapolated."""
    rows = list(results.predictions)
    if not rows:
        return None
    rates = sorted({row["rate_per_s"] for row in rows})
    quiet = [row for row in rows if row["rate_per_s"] == rates[0]]
    server = quiet[0]["server_device"]
    figure = Figure(
        name="elsewhere",
        title=f"Seconds for one handshake, by device and bearer, {_at(rates[0])} at {server}",
        kind="modelled",
        alternative="Map: rows are suites, columns devices and bearers, cells seconds for one handshake",
        define=lambda width: time_map(quiet, width),
        data=[_flat(row) for row in rows],
        caption=(
            "Processing on both sides, transmission, and waiting at the server, by the default model. "
            "The stronger the colour, the longer; the ranges and all rates are in the CSV."
        ),
    )
    blocks = [Block(figure=figure)]
    if len(rates) > 1:
        blocks.append(Block(table=_by_rate(rows, rates), heading="", folded_table="By rate"))
    blocks.append(Block(table=_extrapolated(rows), folded_table="What was extrapolated, and how"))
    if any("capture" not in one for one in results.unpriced):
        blocks.append(Block(table=_unpriced(results), folded_table="What could not be priced"))
    return Section("elsewhere", "On other devices, over other networks", _lead(quiet), blocks)


def _lead(rows: Sequence[Row]) -> str:
    """The quickest suite in most places, and the widest gap, in words."""
    wins: dict[str, int] = {}
    places: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["total_s"] is not None:
            places.setdefault((row["device"], row["bearer"]), []).append(row)
    widest: tuple[float, Row, Row] | None = None
    for here in places.values():
        quick, slow = min(here, key=_total), max(here, key=_total)
        wins[quick["suite"]] = wins.get(quick["suite"], 0) + 1
        gap = slow["total_s"] / quick["total_s"] if quick["total_s"] else 0.0
        if widest is None or gap > widest[0]:
            widest = (gap, quick, slow)
    if widest is None:
        return "At this rate the server reaches no steady state for any of them."
    best = max(wins, key=wins.__getitem__)
    _, quick, slow = widest
    return (
        f"{best} is the quickest in {wins[best]} of {len(places)} places. The choice matters most on "
        f"{quick['device']} over {quick['bearer']}: from {seconds(quick['total_s'])} ({quick['suite']}) to "
        f"{seconds(slow['total_s'])} ({slow['suite']})."
    )


def _total(row: Row) -> float:
    return float(row["total_s"])


def _at(rate: float) -> str:
    return f"{rate:g} handshakes a second" if rate else "no other load"


def _step(value: float) -> int:
    return sum(value >= step for step in STEPS_S)


def _label_px(suites: Sequence[str]) -> float:
    """Room for the longest name, so that none runs under its figures."""
    return max(_LABEL_PX, _CHARACTER_PX * max(map(len, suites), default=0) + 14)


def time_map(rows: Sequence[Row], width: int) -> Definition:
    """Cells of seconds; on a narrow page suites stand above their cells, and devices below each other."""
    suites = list(dict.fromkeys(row["suite"] for row in rows))
    devices = list(dict.fromkeys(row["device"] for row in rows))
    bearers = list(dict.fromkeys(row["bearer"] for row in rows))
    found = {(row["suite"], row["device"], row["bearer"]): row for row in rows}
    block_px = _CELL_PX * len(bearers) + _GAP_PX
    label_px = _label_px(suites) if width > 500 else 0
    across = max(1, (width - label_px) // block_px) if width > 500 else 1
    row_px = _ROW_PX if width > 500 else _ROW_PX + 16
    cell_px = _CELL_PX if width > 500 else min(110, (width - 10) // max(1, len(bearers)))
    strip_px = _HEAD_PX + len(suites) * row_px + 18
    cells: list[Row] = []
    texts: list[Row] = []

    def write(x: float, y: float, text: str, align: str = "left", look: str = "plain") -> None:
        texts.append({"x": x, "y": y, "text": text, "align": align, "look": look})

    for number, device in enumerate(devices):
        column, strip = number % across, number // across
        left = label_px + column * (cell_px * len(bearers) + _GAP_PX)
        top = strip * strip_px
        write(left, top + 8, device, look="strong")
        for position, bearer in enumerate(bearers):
            write(left + (position + 0.5) * cell_px, top + 25, bearer, "center", "quiet")
        for position, suite in enumerate(suites):
            y = top + _HEAD_PX + position * row_px
            if column == 0:
                write(0, y + 12 if label_px else y + 7, suite if label_px else fitted(suite, width))
            y += 0 if label_px else 15
            for place, bearer in enumerate(bearers):
                row = found.get((suite, device, bearer))
                value = row["total_s"] if row else None
                x = left + place * cell_px
                step = "none" if value is None else f"step{_step(value)}"
                text = seconds(value) if value is not None else ("runs away" if row else "–")
                cells.append({"x": x, "x2": x + cell_px - 2, "y": y, "y2": y + _ROW_PX - 3, "step": step})
                dark = value is not None and _step(value) >= 3
                write(x + cell_px / 2 - 1, y + 11, text, "center", "light" if dark else "plain")
    height = strip_px * -(-len(devices) // across)
    used = [f"step{number}" for number in range(len(STEPS_S) + 1)]
    across_x = {"type": "quantitative", "scale": {"domain": [0, width], "nice": False}, "axis": None}
    down_y = {"type": "quantitative", "scale": {"domain": [height, 0], "nice": False}, "axis": None}
    looks: dict[str, Row] = {
        "plain": {"color": INK},
        "light": {"color": STEPS["over"].light},
        "strong": {"color": INK, "fontWeight": 600, "fontSize": 12},
        "quiet": {"color": MUTED},
    }
    return {
        "width": width,
        "height": height,
        "layer": [
            {
                "data": {"values": cells},
                "mark": {"type": "rect"},
                "encoding": {
                    "x": {"field": "x", **across_x},
                    "x2": {"field": "x2"},
                    "y": {"field": "y", **down_y},
                    "y2": {"field": "y2"},
                    "color": {
                        "field": "step",
                        "type": "nominal",
                        "legend": None,
                        "scale": {
                            "domain": [*used, "none"],
                            "range": [*(STEPS[name].light for name in used), LANE],
                        },
                    },
                },
            },
            *(
                {
                    "data": {"values": [text for text in texts if text["look"] == look]},
                    "mark": {"type": "text", "baseline": "middle", "align": {"expr": "datum.align"}, **style},
                    "encoding": {
                        "x": {"field": "x", **across_x},
                        "y": {"field": "y", **down_y},
                        "text": {"field": "text"},
                    },
                }
                for look, style in looks.items()
            ),
        ],
    }


def _by_rate(rows: Sequence[Row], rates: Sequence[float]) -> Table:
    """Server wait and load for each suite at each rate; the same on every device and bearer."""
    head = ["suite"]
    for rate in rates:
        head += [f"wait at {rate:g}/s", "busy"]
    first: dict[tuple[str, float], Row] = {}
    for row in rows:
        first.setdefault((row["suite"], row["rate_per_s"]), row)
    body = []
    for suite in dict.fromkeys(row["suite"] for row in rows):
        cells = [suite]
        for rate in rates:
            row = first[suite, rate]
            wait = row["queue_s"]
            cells += ["runs away" if wait is None else seconds(wait), f"{row['utilisation']:.1%}"]
        body.append(cells)
    caption = "Wait for a worker of the server, and the share of time that the worker is busy."
    return Table(head, body, len(head) - 1, caption, "modelled")


def _extrapolated(rows: Sequence[Row]) -> Table:
    """Every price that is not the device's own figure, once."""
    found: dict[tuple[str, ...], None] = {}
    for row in rows:
        for one in row["extrapolated"]:
            device = row["device"] if one["side"] == "client" else row["server_device"]
            work = f"{one['operation']} {one['algorithm']} {one['parameters']}".strip()
            found[device, work, str(one["method"]), str(one.get("source") or "–")] = None
    return Table(
        ["device", "operation", "how", "from"],
        [list(key) for key in found] or [["–", "nothing", "", ""]],
        0,
        "Figures that are not the device's own; their ranges are part of the totals' ranges.",
        "modelled",
    )


def _unpriced(results: Results) -> Table:
    rows = [[one["suite"], one["device"], one["reason"]] for one in results.unpriced if "capture" not in one]
    return Table(["suite", "device", "why"], rows, 0)


def _flat(row: Row) -> Row:
    low, high = row["range_s"]
    plain = {key: value for key, value in row.items() if key not in ("range_s", "extrapolated")}
    extrapolated = "; ".join(
        f"{one['side']} {one['operation']} {one['algorithm']} {one['parameters']}".strip()
        for one in row["extrapolated"]
    )
    return {**plain, "low_s": low, "high_s": high, "extrapolated": extrapolated}
