"""A handshake in time: two lanes with messages and their operations, and flights between the lanes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shakedown.reporting.charts.canvas import (
    across,
    between,
    down,
    filled,
    haloed,
    lanes,
    marks,
    rectangles,
    texts,
    ticks,
)
from shakedown.reporting.charts.figure import TIP, Definition
from shakedown.reporting.charts.theme import FILLS, INK, LANE, MUTED, PAPER
from shakedown.reporting.charts.trace_events import Arrow, Slice, chrome_trace
from shakedown.schema.base import SIDES, Side, opposite

_HEIGHT_PX = 196
_LANES_PX = {"client": (26.0, 62.0), "server": (134.0, 170.0)}
_INSET_PX = 7
_MIN_OPERATION_PX = 0.3
"""Narrower operations are not drawn: there are many, they cannot be seen, and their strokes would cover their
neighbours. The figure's trace contains all.
"""
_CHARACTER_PX = 6.1
"""Mean width of a character at the labels' size; a label is drawn only if it fits."""

_CLASS_WORDS = {"key": "key exchange", "signature": "signature", "common": "symmetric and import"}
_OTHER_WORK = "other work"

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Work:
    """A message being generated or processed by one side; times are mean µs since the client began."""

    side: str
    index: int
    name: str
    start_us: float
    end_us: float
    operations: tuple[Row, ...] = field(repr=False)


@dataclass(frozen=True)
class Flight:
    """Successive messages of one sender, sent at one time: the network takes no time here."""

    number: int | None
    sender: Side
    at_us: float
    size_bytes: float


def timeline(messages: Sequence[Row], operations: Sequence[Row]) -> tuple[list[Work], list[Flight]]:
    """The handshake as the driver runs it: one side generates, then the other processes and answers.

    `messages` and `operations` are rows of the results' views.
    """
    inside: dict[tuple[int, str], list[Row]] = {}
    for operation in operations:
        inside.setdefault((operation["message_index"], operation["side"]), []).append(operation)
    works: list[Work] = []
    sent: list[Flight] = []
    now_us = 0.0
    for run in runs(messages):
        sender = run[0]["sender"]
        receiver = opposite(sender)
        for side, cost in ((sender, "generate_us"), (receiver, "process_us")):
            if side == receiver:
                size = sum(message["bytes"] for message in run)
                sent.append(Flight(run[0]["flight"], sender, now_us, size))
            for message in run:
                index, end_us = message["message_index"], now_us + message[cost]
                within = tuple(inside.get((index, side), ()))
                works.append(Work(side, index, message["message"], now_us, end_us, within))
                now_us = end_us
    return works, sent


def runs(messages: Sequence[Row]) -> Iterator[list[Row]]:
    """Rows of messages by flight, in order; messages without a flight (tickets) form runs of their own."""
    run: list[Row] = []
    for message in messages:
        if run and (message["sender"], message["flight"]) != (run[0]["sender"], run[0]["flight"]):
            yield run
            run = []
        run.append(message)
    if run:
        yield run


def traced(messages: Sequence[Row], operations: Sequence[Row]) -> str:
    """The handshake as a Chrome trace: a thread per side, a slice per message with its operations, and an
    arrow per flight.
    """
    works, sent = timeline(messages, operations)
    slices = []
    for work in works:
        slices.append(Slice(work.side, work.name, "message", work.start_us, work.end_us))
        slices += [
            Slice(work.side, _named(operation), operation["class"], start_us, end_us)
            for operation, start_us, end_us in _inside(work)
        ]
    arrows = [
        Arrow(one.sender, opposite(one.sender), f"{one.size_bytes:,.0f} bytes", one.at_us) for one in sent
    ]
    return chrome_trace(SIDES, slices, arrows)


def _inside(work: Work) -> Iterator[tuple[Row, float, float]]:
    """A message's operations in sequence; their real order within it is not recorded."""
    reached = work.start_us
    for operation in sorted(work.operations, key=lambda one: one["class"] == "common"):
        end = min(reached + operation["us"], work.end_us)
        yield operation, reached, end
        reached = end


def waterfall(messages: Sequence[Row], operations: Sequence[Row], width: int) -> Definition:
    """The drawing; x is µs of CPU time, one side after the other."""
    works, sent = timeline(messages, operations)
    end_us = max((work.end_us for work in works), default=1.0) or 1.0
    inner_px = width - 60
    per_us = inner_px / end_us
    blocks, pieces, labels = [], [], []
    for work in works:
        top, bottom = _LANES_PX[work.side]
        blocks.append(
            {
                TIP: f"{work.index + 1} {work.name}, {work.side}: {work.end_us - work.start_us:,.6g} µs",
                "from": work.start_us,
                "to": work.end_us,
                "top": top,
                "bottom": bottom,
            }
        )
        most = (work.end_us - work.start_us) * per_us / _CHARACTER_PX
        label = next((text for text in (work.name, str(work.index + 1)) if len(text) <= most), None)
        if label:
            height = top - 8 if work.side == "client" else bottom + 9
            labels.append({"x": (work.start_us + work.end_us) / 2, "y": height, "text": label})
        inside = {"top": top + _INSET_PX, "bottom": bottom - _INSET_PX}
        for operation, start, end in _inside(work):
            if (end - start) * per_us < _MIN_OPERATION_PX:
                continue
            about = {TIP: f"{_named(operation)}: {operation['us']:,.6g} µs, in {work.name}"}
            kind = _CLASS_WORDS[operation["class"]]
            pieces.append({**about, "class": kind, "from": start, "to": end, **inside})
    arrows, heads, notes = _flight_marks(sent, per_us, inner_px)
    striped = [{"side": side, "top": top, "bottom": bottom} for side, (top, bottom) in _LANES_PX.items()]
    x, y = across(0, end_us), down(_HEIGHT_PX)
    axis = ticks("µs of CPU time since the client began, the network taking none", width, grid=False)
    span, at_x, at_y = {"axis": axis, **x}, {"field": "x", **x}, {"field": "y", **y}
    looks = {**{word: name for name, word in _CLASS_WORDS.items()}, _OTHER_WORK: "busy"}
    return {
        "width": inner_px,
        "height": _HEIGHT_PX,
        "layer": [
            lanes(striped, 0, inner_px, y, color=LANE),
            texts(striped, "side", {"value": -8}, {"field": "top", **y}, "right", dy=18, fontWeight=600),
            rectangles(blocks, span, y, color=FILLS["busy"].light, stroke=MUTED, strokeWidth=0.6),
            rectangles(pieces, span, y, color=filled("class", looks, width), stroke=PAPER, strokeWidth=0.7),
            marks(arrows, "rule", {"x": at_x, **between(y)}, color=INK, strokeWidth=1.2),
            marks(
                heads,
                "point",
                {"x": at_x, "y": at_y, "shape": {"field": "shape", "type": "nominal", "scale": None}},
                filled=True,
                color=INK,
                opacity=1,
                size=42,
            ),
            # The halo keeps a label legible in front of another flight's arrow.
            *haloed(notes, "text", at_x, at_y, "each"),
            texts(labels, "text", at_x, at_y, "center", color=MUTED),
        ],
    }


def _named(operation: Row) -> str:
    """The operation with its algorithm and parameters: `sign ECDSA P-256`."""
    parts = (operation[key] for key in ("operation", "algorithm", "parameters"))
    return " ".join(str(part) for part in parts if part)


def _flight_marks(
    sent: list[Flight], per_us: float, inner_px: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Arrows between the lanes, their heads, and their bytes, each at a height where it overlaps no other."""
    arrows, heads, notes = [], [], []
    client_bottom, server_top = _LANES_PX["client"][1], _LANES_PX["server"][0]
    slots = [client_bottom + 13 + 15 * number for number in range(4)]
    taken_px = [-1.0] * len(slots)
    for flight in sent:
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
