"""A captured handshake over time: a row for each message, with the parts of the wait before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shakedown.reporting.charts.canvas import WIDE, across, down, filled, lanes, rectangles, texts, ticks
from shakedown.reporting.charts.figure import TIP, Definition
from shakedown.reporting.charts.theme import LANE, MUTED
from shakedown.reporting.charts.trace_events import Slice, chrome_trace
from shakedown.reporting.figures import time, whole

_ROW_PX, _BAR_PX, _LABEL_PX, _NARROW_LABEL_PX = 21, 13, 200, 15
_END_PX, _NARROW_END_PX = 122, 64
"""Room at the right for the longest wait, and on wide pages for the bytes after it."""
_LOOKS = {
    "client at work": "key",
    "server at work": "signature",
    "network": "hello",
    "not separated": "busy",
}
_MIN_LABELLED_SHARE = 0.015
"""A wait below this share of the whole is not written beside its bar."""


@dataclass(frozen=True)
class Wait:
    """A part of the wait before a message, in seconds since the connection began."""

    row: int
    what: str
    start_s: float
    end_s: float


def waits(messages: Sequence[Mapping[str, Any]]) -> Iterator[Wait]:
    """The parts of the wait before each message: the network, its sender's work, and the unexplained rest.

    The order within a wait is not captured: only the two sums are known.
    """
    for row, message in enumerate(messages):
        reached = max(0.0, message["time_s"] - message["wait_s"])
        end = message["time_s"]
        network, sender = message["network_s"] or 0.0, message["sender_s"] or 0.0
        for what, length in (("network", network), (f"{message['sender']} at work", sender)):
            if length > 0 and reached < end:
                stop = min(end, reached + length)
                yield Wait(row, what, reached, stop)
                reached = stop
        # Rest below 0.1 µs is rounding.
        if end - reached > 1e-7:
            yield Wait(row, "not separated", reached, end)


def traced(messages: Sequence[Mapping[str, Any]]) -> str:
    """The handshake as a Chrome trace: the waits of each message, by their causes."""
    slices = [
        Slice(wait.what, messages[wait.row]["message"], "wait", 1e6 * wait.start_s, 1e6 * wait.end_s)
        for wait in waits(messages)
    ]
    return chrome_trace([what for what in _LOOKS if any(one.thread == what for one in slices)], slices)


def ladder(messages: Sequence[Mapping[str, Any]], width: int) -> Definition:
    """The drawing; x is milliseconds since the connection began."""
    wide = width > WIDE
    label_px = _LABEL_PX if wide else 0
    row_px = _ROW_PX if wide else _ROW_PX + _NARROW_LABEL_PX
    drop_px = 0 if wide else _NARROW_LABEL_PX
    end_px = _END_PX if wide else _NARROW_END_PX
    inner_px = width - label_px - end_px
    whole_s = max((message["time_s"] for message in messages), default=0.0) or 1e-6
    bars, names, ends = [], [], []
    for wait in waits(messages):
        top = wait.row * row_px + drop_px + 3
        spent = f"{1000 * (wait.end_s - wait.start_s):,.6g} ms"
        bars.append(
            {
                TIP: f"{messages[wait.row]['message']}, {wait.what}: {spent}",
                "what": wait.what,
                "from": 1000 * wait.start_s,
                "to": 1000 * wait.end_s,
                "top": top,
                "bottom": top + _BAR_PX,
            }
        )
    for row, message in enumerate(messages):
        top = row * row_px + drop_px + 3
        number = message["message_index"] + 1
        text = f"{number}  {message['sender']}: {message['message']}"
        middle = top + _BAR_PX / 2
        names.append({"text": text, "y": middle if wide else top - _NARROW_LABEL_PX / 2})
        wait = message["wait_s"]
        labelled = wait is not None and wait >= _MIN_LABELLED_SHARE * whole_s
        size = f"{whole(message['bytes'])} B"
        ends.append(
            {
                "x": 1000 * message["time_s"],
                "y": middle,
                "label_y": names[-1]["y"],
                "text": f"+{time(wait, 2)}" if labelled else "",
                "bytes": size,
            }
        )
    height = len(messages) * row_px
    striped = [{"top": row * row_px, "bottom": (row + 1) * row_px} for row in range(0, len(messages), 2)]
    x, y = across(0, 1000 * whole_s), down(height)
    title = "ms since the connection began" + (", at the capture point" if wide else "")
    used = {what: look for what, look in _LOOKS.items() if any(bar["what"] == what for bar in bars)}
    # An empty legend would give the drawing no size, so without waits the legend has all causes.
    used = used or _LOOKS
    right = {"value": inner_px + end_px - 4}
    return {
        "width": inner_px,
        "height": height,
        "layer": [
            lanes(striped, -label_px, inner_px + end_px, y, color=LANE),
            rectangles(
                bars, {"axis": ticks(title, width, grid=False), **x}, y, color=filled("what", used, width)
            ),
            texts(ends, "text", {"field": "x", **x}, {"field": "y", **y}, dx=4),
            texts(ends, "bytes", right, {"field": "label_y", **y}, "right", color=MUTED),
            texts(names, "text", {"value": 4 - label_px}, {"field": "y", **y}),
        ],
    }
