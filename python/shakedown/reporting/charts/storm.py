"""A storm over time: the clients that are not yet ready, by cause, and the load of cells and server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from shakedown.reporting.charts.canvas import (
    WIDE,
    across,
    baselines,
    between,
    down,
    lanes,
    legend_columns,
    marks,
    rectangles,
    texts,
    ticks,
)
from shakedown.reporting.charts.figure import SUITE, TIP, Definition, fitted, label
from shakedown.reporting.charts.theme import FILLS, INK, LANE, MUTED, PAPER, STEPS
from shakedown.reporting.figures import time, trimmed, whole

AXIS = "seconds since the first client could arrive"

ACCESS, SERVER, PAUSING = "waiting for access", "at the server", "pausing before another attempt"
UNDER_WAY, GONE = "under way", "gave up"
_KNOWN = (ACCESS, SERVER, PAUSING)
CAUSES = {
    ACCESS: STEPS["step4"].light,
    SERVER: FILLS["hello"].light,
    PAUSING: STEPS["step2"].light,
    UNDER_WAY: STEPS["step3"].light,
    GONE: FILLS["common"].light,
}
"""The causes why a client is not ready, from the bottom of the area to its top, and their colours."""

_AREA_PX, _LABEL_PX, _LANE_PX, _GAP_PX = 62, 20, 26, 14

_STEPS, _PARTS, _LANE_PARTS = 240, 40, 12
"""Steps of an area; pieces of a row, and of a lane, that have their own tooltips."""


@dataclass(frozen=True)
class Storm:
    """A fleet over time.

    Attributes:
        outside: ends of intervals (s), and the clients that were neither ready nor gone by then.
        recovery_s: when the last client was ready.
        most_in_s: when 99 % of all clients were; None if fewer ever were.
        failed: clients that gave up.
        causes: numbers of these clients by `ACCESS`, `SERVER` and `PAUSING`, and of those that had given up,
            `GONE`; all others are `UNDER_WAY`.
    """

    suite: str
    outside: Sequence[tuple[float, float]]
    recovery_s: float
    failed: float
    most_in_s: float | None = None
    causes: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def stacked(self) -> list[dict[str, Any]]:
        """Rectangles `from` a time `to` another, from a number of clients to the next, by cause."""
        found, before_s = [], 0.0
        for position, (at_s, outside) in enumerate(self.outside):
            many = {name: values[position] for name, values in self.causes.items()}
            known = min(outside, sum(many.get(name, 0.0) for name in _KNOWN))
            many[UNDER_WAY] = outside - known
            reached = 0.0
            for name in CAUSES:
                top = reached + many.get(name, 0.0)
                if name in _KNOWN:
                    top = min(top, known)
                if top > reached:
                    found.append({"from": before_s, "to": at_s, "low": reached, "high": top, "cause": name})
                reached = max(reached, top)
            before_s = at_s
        return found

    def coarse(self) -> Storm:
        """The same in as many intervals as can be seen; merged ones have the largest number of clients."""
        size = -(-len(self.outside) // _STEPS) or 1
        groups = [range(at, min(at + size, len(self.outside))) for at in range(0, len(self.outside), size)]
        fullest = [max(group, key=lambda at: self.outside[at][1]) for group in groups]
        return replace(
            self,
            outside=[
                (self.outside[group[-1]][0], self.outside[at][1])
                for group, at in zip(groups, fullest, strict=True)
            ],
            causes={name: [values[at] for at in fullest] for name, values in self.causes.items()},
        )

    def pieces(self, end_s: float) -> Iterator[dict[str, Any]]:
        """The fleet up to a time, in pieces of equal length whose tooltips have the minimum and maximum."""
        size = -(-len(self.outside) // _PARTS) or 1
        before_s = 0.0
        for at in range(0, len(self.outside), size):
            here = slice(at, at + size)
            words = [f"{_between([many for _, many in self.outside[here]])} outside"]
            words += [
                f"{_between(many[here])} {name}" for name, many in self.causes.items() if any(many[here])
            ]
            until_s = min(self.outside[here][-1][0], end_s)
            if until_s > before_s:
                tip = f"{before_s:,.4g} – {until_s:,.4g} s: {', '.join(words)}"
                yield {"from": before_s, "to": until_s, TIP: tip}
            before_s = until_s


def _between(values: Sequence[float]) -> str:
    low, high = whole(min(values)), whole(max(values))
    return high if low == high else f"{low} to {high}"


@dataclass(frozen=True)
class Load:
    """A load of cells or of the server over time; `part` of it is dark.

    Attributes:
        name: its name and unit.
        values: ends of intervals (s), and the load in each.
        most: the maximum, as text.
    """

    name: str
    values: Sequence[tuple[float, float]]
    most: str
    part: Sequence[float] = ()

    def pieces(self) -> Iterator[dict[str, Any]]:
        """The load in pieces of equal length, whose tooltips have the minimum and maximum."""
        size = -(-len(self.values) // _LANE_PARTS) or 1
        before_s = 0.0
        for at in range(0, len(self.values), size):
            here = self.values[at : at + size]
            ends = dict.fromkeys(trimmed(one(value for _, value in here)) for one in (min, max))
            tip = f"{before_s:,.4g} – {here[-1][0]:,.4g} s: {' to '.join(ends)} {self.name}"
            yield {"from": before_s, "to": here[-1][0], TIP: tip}
            before_s = here[-1][0]


def storms(fleets: Sequence[Storm], arrive_s: float, width: int) -> Definition:
    """A row for each fleet: the area of clients that are not ready, its peak, and when the last one is ready.

    `arrive_s` is the time within which all arrive; it is shaded.
    """
    # Clients that give up are not ready after the last one that becomes ready.
    gone_s = max((at_s for one in fleets for at_s, many in one.outside if many > 0.0), default=0.0)
    end_s = max(gone_s, arrive_s, *(one.recovery_s for one in fleets)) * 1.02 or 1.0
    stacks = [one.coarse().stacked() for one in fleets]
    most = max((each["high"] for stack in stacks for each in stack), default=1.0) or 1.0
    inner = width - 40
    per_s = inner / end_s
    # A row's texts are above its area, side by side or, on a narrow page, one below the other.
    wide = width > WIDE
    words_px = _LABEL_PX if wide else 3 * _LABEL_PX - 8
    row_px = words_px + _AREA_PX + _GAP_PX
    areas: list[dict[str, Any]] = []
    pieces: list[dict[str, Any]] = []
    names: list[dict[str, Any]] = []
    ends: list[dict[str, Any]] = []
    bases: list[dict[str, Any]] = []
    peaks: list[dict[str, Any]] = []
    for position, (one, stack) in enumerate(zip(fleets, stacks, strict=True)):
        base = position * row_px + words_px + _AREA_PX
        per_client = _AREA_PX / most
        about = {SUITE: one.suite}
        for name in CAUSES:
            mine = [each for each in stack if each["cause"] == name and each["from"] < end_s]
            steps = [
                (
                    each["from"],
                    min(each["to"], end_s),
                    *(base - per_client * each[end] for end in ("high", "low")),
                )
                for each in mine
            ]
            areas += _outline(steps, base, **about, cause=name, row=position)
        pieces += [{**about, "top": base - _AREA_PX, "bottom": base, **piece} for piece in one.pieces(end_s)]
        most_in = "" if one.most_in_s is None else f"99 % ready after {time(one.most_in_s)}"
        peak = f"up to {whole(max((many for _, many in one.outside), default=0.0))} waiting at once"
        gone = f", {whole(one.failed)} gave up" if one.failed else ""
        last = f"{'last one ready after' if one.failed else 'recovery time'} {time(one.recovery_s)}{gone}"
        if not one.recovery_s:
            last = f"none ready{gone}"
        bases.append({**about, "y": base, "top": base - _AREA_PX, "bottom": base})
        ends.append({**about, TIP: last, "at": one.recovery_s, "top": base - _AREA_PX, "bottom": base})
        first_y = position * row_px + 9
        names.append({**about, **label(one.suite, width - (480 if wide else 40), 7.0), "y": first_y})
        said = [part for part in (peak, most_in, last) if part]
        peaks += [
            {**about, "y": first_y + (0 if wide else 16 * line), "text": text}
            for line, text in enumerate(["; ".join(said)] if wide else [peak, last], start=1)
        ]
    total = len(fleets) * row_px
    x, y = across(0, end_s), down(total)
    seen = [name for name in CAUSES if any(each["cause"] == name for each in areas)]
    by_cause = {
        "field": "cause",
        "type": "nominal",
        "sort": seen,
        "legend": {"columns": legend_columns(seen, width)},
        "scale": {"domain": seen, "range": [CAUSES[name] for name in seen]},
    }
    axis = ticks(AXIS, width, grid=False)
    at_x, at_y = {"field": "at", **x}, {"field": "y", **y}
    return {
        "width": inner,
        "height": total,
        "layer": [
            lanes(bases, 0, arrive_s * per_s, y, color=LANE),
            _areas(areas, {"axis": axis, **x}, y, by_cause),
            baselines(bases, inner, at_y, color=MUTED, strokeWidth=1),
            marks(ends, "rule", {"x": at_x, **between(y)}, color=FILLS["signature"].light, strokeWidth=2.5),
            rectangles(pieces, {"axis": axis, **x}, y, color=PAPER, opacity=0),
            texts(names, "text", {"value": 0}, at_y, fontWeight=600, fontSize=12, color=INK),
            texts(
                peaks, "text", {"value": inner if wide else 0}, at_y, "right" if wide else "left", color=MUTED
            ),
        ],
    }


def _outline(
    steps: Sequence[tuple[float, float, float, float]], base: float, **about: object
) -> Iterator[dict[str, Any]]:
    """An area's corners: steps `from` a time `to` another between two heights, nothing between steps."""
    before_s = None
    for from_s, to_s, top, bottom in steps:
        if before_s is not None and from_s > before_s:
            yield from ({**about, "at": at_s, "top": base, "bottom": base} for at_s in (before_s, from_s))
        yield from ({**about, "at": at_s, "top": top, "bottom": bottom} for at_s in (from_s, to_s))
        before_s = to_s


def _areas(rows: Sequence[dict[str, Any]], x: dict[str, Any], y: dict[str, Any], colour: Any) -> Definition:  # noqa: ANN401
    """An area for each `row` and cause, between `top` and `bottom` at each time."""
    encoding = {
        "x": {"field": "at", **x},
        **between(y),
        "color": colour,
        "detail": {"field": "row", "type": "nominal"},
        "order": {"value": None},
    }
    return marks(rows, "area", encoding, orient="vertical")


def loads(fleets: Sequence[tuple[str, Sequence[Load]]], width: int) -> Definition:
    """The load of cells and server: for each fleet a lane per load; loads of one name have one scale."""
    end_s = max((at_s for _, lanes in fleets for one in lanes for at_s, _ in one.values), default=1.0)
    scales: dict[str, float] = {}
    for _, shown in fleets:
        for one in shown:
            most = max((value for _, value in one.values), default=0.0)
            scales[one.name] = max(scales.get(one.name, 0.0), most)
    areas: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    pieces: list[dict[str, Any]] = []
    names: list[dict[str, Any]] = []
    mosts: list[dict[str, Any]] = []
    bases: list[dict[str, Any]] = []
    y = 0.0
    for name, shown in fleets:
        y += _LABEL_PX
        about = {SUITE: name}
        names.append({**about, **label(name, width - 20, 7.0), "y": y - 8, "weight": 600})
        for one in shown:
            base = y + _LANE_PX
            y = base + _LABEL_PX - 4
            bases.append({**about, "y": base})
            names.append({**about, "y": base + 8, "text": fitted(one.name, width * 0.7), "weight": 400})
            mosts.append({**about, "y": base + 8, "text": one.most})
            per_unit = _LANE_PX / (scales[one.name] or 1.0)
            starts_s = [0.0, *(at_s for at_s, _ in one.values)]
            for found, values in ((areas, [value for _, value in one.values]), (parts, one.part)):
                tops = (base - per_unit * value for value in values)
                steps = [(*ends, top, base) for ends, top in zip(pairwise(starts_s), tops, strict=False)]
                found += _outline(steps, base, **about, row=len(bases))
            box = {**about, "top": base - _LANE_PX, "bottom": base}
            pieces += [{**box, **piece} for piece in one.pieces()]
        y += 6
    inner = width - 40
    along, below = across(0, end_s), down(y)
    at_y = {"field": "y", **below}
    axis = {"axis": ticks(AXIS, width, grid=False), **along}
    return {
        "width": inner,
        "height": y,
        "layer": [
            *(
                _areas(found, axis, below, {"value": colour})
                for found, colour in ((areas, STEPS["step3"].light), (parts, FILLS["signature"].light))
                if found
            ),
            rectangles(pieces, axis, below, color=PAPER, opacity=0),
            baselines(bases, inner, at_y, color=MUTED, strokeWidth=1),
            *(
                texts([one for one in names if one["weight"] == weight], "text", {"value": 0}, at_y, **look)
                for weight, look in ((600, {"fontWeight": 600, "fontSize": 12}), (400, {"color": MUTED}))
            ),
            texts(mosts, "text", {"value": inner}, at_y, "right", color=MUTED),
        ],
    }
