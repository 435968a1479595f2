"""A handshake in time: two lanes, messages at work on them, operations inside, flights across."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from shakedown.measurement import Measurement, Operation
from shakedown.report.figure import Definition
from shakedown.report.theme import FILLS, INK, LANE, MUTED, PAPER

_HEIGHT_PX = 196
_LANES_PX = {"client": (26.0, 62.0), "server": (134.0, 170.0)}
_INSET_PX = 7
_CHARACTER_PX = 6.1
"""Mean width of a character at the labels' size; a label is drawn only where it fits."""

_CLASS_WORDS = {"key": "key exchange", "signature": "signature", "common": "symmetric and import"}
_OTHER_WORK = "other work"


@dataclass(frozen=True)
class Work:
    """A message being generated or processed by one side; times are mean µs since the client began."""

    side: str
    index: int
    name: str
    flight: int | None
    doing: str
    start_us: float
    end_us: float
    operations: tuple[Operation, ...] = field(repr=False)


@dataclass(frozen=True)
class Flight:
    """A run of messages of one sender, on its way at one moment: the network takes no time here."""

    number: int | None
    sender: str
    at_us: float
    size_bytes: float
    messages: int


def timeline(measurement: Measurement) -> tuple[list[Work], list[Flight]]:
    """The handshake as the driver runs it: one side generates, the other processes and answers."""
    works: list[Work] = []
    flights: list[Flight] = []
    now_us = 0.0
    for run in _runs(measurement):
        sender = run[0]["from"]
        receiver = "server" if sender == "client" else "client"
        for side, doing, cost in (
            (sender, "generates", "generate_mean_us"),
            (receiver, "processes", "process_mean_us"),
        ):
            if doing == "processes":
                size = sum(message["bytes"] for message in run)
                flights.append(Flight(run[0]["flight"], sender, now_us, size, len(run)))
            for message in run:
                operations = tuple(
                    operation
                    for operation in measurement["operations"]
                    if operation["message"] == message["index"] and operation["side"] == side
                )
                end_us = now_us + message[cost]
                works.append(
                    Work(
                        side,
                        message["index"],
                        message["name"],
                        message["flight"],
                        doing,
                        now_us,
                        end_us,
                        operations,
                    )
                )
                now_us = end_us
    return works, flights


def _runs(measurement: Measurement) -> Iterator[list[Any]]:
    """Messages grouped into flights, in order; messages of no flight (tickets) make runs of their own."""
    run: list[Any] = []
    for message in measurement["messages"]:
        if run and (message["from"], message["flight"]) != (run[0]["from"], run[0]["flight"]):
            yield run
            run = []
        run.append(message)
    if run:
        yield run


def waterfall(measurement: Measurement, width: int) -> Definition:
    """The drawing; x is µs of CPU time, one side after the other."""
    works, flights = timeline(measurement)
    end_us = max((work.end_us for work in works), default=1.0) or 1.0
    inner_px = width - 60
    per_us = inner_px / end_us
    blocks, pieces, labels = [], [], []
    for work in works:
        top, bottom = _LANES_PX[work.side]
        blocks.append({"from": work.start_us, "to": work.end_us, "top": top, "bottom": bottom})
        room_px = (work.end_us - work.start_us) * per_us
        label = next((text for text in (work.name, str(work.index + 1)) if _fits(text, room_px)), None)
        if label:
            labels.append(
                {
                    "x": (work.start_us + work.end_us) / 2,
                    "y": top - 8 if work.side == "client" else bottom + 9,
                    "text": label,
                }
            )
        reached = work.start_us
        for operation in sorted(work.operations, key=lambda one: one["class"] == "common"):
            end = min(reached + operation["mean_us"], work.end_us)
            pieces.append(
                {
                    "class": _CLASS_WORDS[operation["class"]],
                    "from": reached,
                    "to": end,
                    "top": top + _INSET_PX,
                    "bottom": bottom - _INSET_PX,
                }
            )
            reached = end
    arrows, heads, notes = _flight_marks(flights, end_us, per_us, inner_px)
    lanes = [{"side": side, "top": top, "bottom": bottom} for side, (top, bottom) in _LANES_PX.items()]
    x = {"type": "quantitative", "scale": {"domain": [0, end_us], "nice": False}}
    y = {"type": "quantitative", "scale": {"domain": [_HEIGHT_PX, 0], "nice": False}, "axis": None}
    ticks = {
        "title": "µs of CPU time since the client began, the network taking none",
        "tickCount": 8 if width > 500 else 4,
        "labelExpr": "format(datum.value, ',')",
        "grid": False,
    }
    span = {"x": {"field": "from", "axis": ticks, **x}, "x2": {"field": "to"}}
    rows = {"y": {"field": "top", **y}, "y2": {"field": "bottom"}}
    looks = {**{word: name for name, word in _CLASS_WORDS.items()}, _OTHER_WORK: "busy"}
    return {
        "width": inner_px,
        "height": _HEIGHT_PX,
        "layer": [
            {
                "data": {"values": lanes},
                "mark": {"type": "rect", "color": LANE},
                "encoding": {"x": {"value": 0}, "x2": {"value": inner_px}, **rows},
            },
            {
                "data": {"values": lanes},
                "mark": {"type": "text", "align": "right", "baseline": "middle", "dy": 18, "fontWeight": 600},
                "encoding": {"x": {"value": -8}, "y": {"field": "top", **y}, "text": {"field": "side"}},
            },
            {
                "data": {"values": blocks},
                "mark": {"type": "rect", "color": FILLS["busy"].light, "stroke": MUTED, "strokeWidth": 0.6},
                "encoding": {**span, **rows},
            },
            {
                "data": {"values": pieces},
                "mark": {"type": "rect", "stroke": PAPER, "strokeWidth": 0.7},
                "encoding": {
                    **span,
                    **rows,
                    "color": {
                        "field": "class",
                        "type": "nominal",
                        "legend": {"columns": len(looks) if width > 500 else 2},
                        "scale": {
                            "domain": list(looks),
                            "range": [FILLS[name].light for name in looks.values()],
                        },
                    },
                },
            },
            {
                "data": {"values": arrows},
                "mark": {"type": "rule", "color": INK, "strokeWidth": 1.2},
                "encoding": {"x": {"field": "x", **x}, **rows},
            },
            {
                "data": {"values": heads},
                "mark": {"type": "point", "filled": True, "color": INK, "opacity": 1, "size": 42},
                "encoding": {
                    "x": {"field": "x", **x},
                    "y": {"field": "y", **y},
                    "shape": {"field": "shape", "type": "nominal", "scale": None},
                },
            },
            # The halo keeps a label legible where another flight's arrow passes behind it.
            *(
                {
                    "data": {"values": notes},
                    "mark": {"type": "text", "baseline": "middle", "align": {"expr": "datum.align"}, **look},
                    "encoding": {
                        "x": {"field": "x", **x},
                        "y": {"field": "y", **y},
                        "text": {"field": "text"},
                    },
                }
                for look in ({"stroke": PAPER, "strokeWidth": 5, "color": PAPER}, {"color": INK})
            ),
            {
                "data": {"values": labels},
                "mark": {"type": "text", "baseline": "middle", "color": MUTED},
                "encoding": {"x": {"field": "x", **x}, "y": {"field": "y", **y}, "text": {"field": "text"}},
            },
        ],
    }


def _fits(text: str, room_px: float) -> bool:
    return len(text) * _CHARACTER_PX <= room_px


def _flight_marks(
    flights: list[Flight], end_us: float, per_us: float, inner_px: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Arrows between the lanes, their heads, and what travels, each at a height where it hits no other."""
    arrows, heads, notes = [], [], []
    client_bottom, server_top = _LANES_PX["client"][1], _LANES_PX["server"][0]
    slots = [client_bottom + 13 + 15 * number for number in range(4)]
    taken_px = [-1.0] * len(slots)
    for flight in flights:
        down = flight.sender == "client"
        arrows.append({"x": flight.at_us, "top": client_bottom, "bottom": server_top})
        head_y = server_top - 4 if down else client_bottom + 4
        heads.append({"x": flight.at_us, "y": head_y, "shape": "triangle-down" if down else "triangle-up"})
        name = f"flight {flight.number}" if flight.number is not None else "after"
        text = f"{name}: {flight.size_bytes:,.0f} bytes"
        place_px = flight.at_us * per_us
        need_px = len(text) * _CHARACTER_PX + 8
        left = place_px + need_px > inner_px
        start_px = place_px - need_px if left else place_px
        slot = next((n for n, taken in enumerate(taken_px) if taken <= start_px), len(slots) - 1)
        taken_px[slot] = start_px + need_px
        notes.append(
            {
                "x": (place_px + (-5 if left else 5)) / per_us,
                "y": slots[slot],
                "text": text,
                "align": "right" if left else "left",
            }
        )
    return arrows, heads, notes
