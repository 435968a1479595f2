"""Timelines as Chrome traces (the "Trace Event Format", JSON), which Perfetto opens."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Slice:
    """An activity of a thread; slices of a thread are sequential or nested."""

    thread: str
    name: str
    kind: str
    start_us: float
    end_us: float


@dataclass(frozen=True)
class Arrow:
    """A transfer from one thread to another."""

    source: str
    target: str
    name: str
    at_us: float


def chrome_trace(threads: Sequence[str], slices: Iterable[Slice], arrows: Iterable[Arrow] = ()) -> str:
    """The JSON; threads are in the given order."""
    number = {name: position for position, name in enumerate(threads, start=1)}
    events: list[dict[str, object]] = [
        {"ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": {"name": name}}
        for name, tid in number.items()
    ]
    for one in slices:
        start_ns, end_ns = (round(at_us * 1000) for at_us in (one.start_us, one.end_us))
        about = {"name": one.name, "cat": one.kind, "pid": 1, "tid": number[one.thread]}
        events.append({"ph": "X", **about, "ts": _us(start_ns), "dur": _us(end_ns - start_ns)})
    for identity, arrow in enumerate(arrows, start=1):
        about = {"name": arrow.name, "cat": "flight", "pid": 1, "id": identity}
        at_ns = round(arrow.at_us * 1000)
        # An arrow belongs to the slice that is open at its time; the source's slice ends there.
        events.append({"ph": "s", **about, "tid": number[arrow.source], "ts": _us(max(0, at_ns - 1))})
        events.append({"ph": "f", "bp": "e", **about, "tid": number[arrow.target], "ts": _us(at_ns)})
    return json.dumps({"traceEvents": events})


def _us(ns: int) -> float:
    """Microseconds that stay exact if a reader multiplies by 1,000 and truncates; otherwise slices overlap by
    1 ns.
    """
    value = ns / 1000
    return value if int(value * 1000) == ns else math.nextafter(value, math.inf)
