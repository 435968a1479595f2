"""A capture as an experiment keeps it: some connections in full, all of them counted, one trace a suite.

What is kept is bounded, however long the capture: the first connections in full, every connection in the
counts of its kind, and of each suite the first connection that makes a trace, which is what gets priced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, TypedDict

MOST_CONNECTIONS = 50
"""Connections of a capture that are kept message by message."""

MOST_MESSAGES = 64
"""Messages kept of a connection; a handshake has a dozen, and renegotiations could go on for ever."""

MOST_KINDS = 40
"""Kinds of connections that are counted apart; what comes after is counted together."""

MOST_TRACES = 12
"""Suites of a capture that are priced."""

_KIND = ("suite", "protocol", "cipher", "resumed", "complete")


class Kind(TypedDict):
    """Connections alike in suite (or protocol and cipher), resumption and completeness, and their figures.

    `bytes` and `handshake_s` are lowest, mean and highest; the latter is None where no handshake has an end.
    Bytes that stayed encrypted count.
    """

    suite: str | None
    protocol: str | None
    cipher: str | None
    resumed: bool | None
    complete: bool
    count: int
    bytes: tuple[float, float, float]
    handshake_s: tuple[float, float, float] | None


class CapturedTrace(TypedDict):
    """A suite of the capture as one connection showed it; `trace` is what `predict --traces` takes."""

    connection: int
    trace: dict[str, Any]


class Capture(TypedDict):
    """What came of one capture; `problem` says why reading ended before the file did, else None."""

    capture: str
    keylog: str | None
    size_bytes: int
    summary: dict[str, Any]
    problem: str | None
    connections: list[dict[str, Any]]
    kinds: list[Kind]
    uncounted: int
    traces: list[CapturedTrace]
    unpriced: list[str]


def cut_short(capture: object, problem: str) -> str:
    """The line for a capture whose reading ended before the file did: what was told of it may lack an end."""
    return f"{capture}: {problem}; what was before that is told, and connections may lack what came after"


def sealed_bytes(connection: Mapping[str, Any]) -> int:
    """Bytes of the handshake that stayed encrypted, and so are in no message."""
    return sum(direction["bytes"] for direction in (connection["encrypted"] or {}).values())


def wire_bytes(connection: Mapping[str, Any]) -> int:
    """All bytes of the handshake, those that stayed encrypted included."""
    return int(connection["bytes"]["total"]) + sealed_bytes(connection)


class _Tally:
    """Lowest, mean and highest of figures that come one by one."""

    def __init__(self) -> None:
        self.count, self.sum, self.low, self.high = 0, 0.0, float("inf"), float("-inf")

    def add(self, value: float) -> None:
        self.count += 1
        self.sum += value
        self.low, self.high = min(self.low, value), max(self.high, value)

    def spread(self) -> tuple[float, float, float] | None:
        return (self.low, self.sum / self.count, self.high) if self.count else None


class _Kinds:
    """Connections counted by kind."""

    def __init__(self) -> None:
        self.sizes: dict[tuple[Any, ...], _Tally] = {}
        self.times: dict[tuple[Any, ...], _Tally] = {}
        self.uncounted = 0

    def add(self, connection: Mapping[str, Any]) -> None:
        kind = tuple(connection[name] for name in _KIND)
        if kind not in self.sizes and len(self.sizes) >= MOST_KINDS:
            self.uncounted += 1
            return
        self.sizes.setdefault(kind, _Tally()).add(wire_bytes(connection))
        times = self.times.setdefault(kind, _Tally())
        if connection["handshake_s"] is not None:
            times.add(connection["handshake_s"])

    def told(self) -> list[Kind]:
        """The kinds, the most frequent first."""
        kinds = sorted(self.sizes, key=lambda kind: -self.sizes[kind].count)
        return [
            Kind(
                **dict(zip(_KIND, kind, strict=True)),  # type: ignore[typeddict-item]  # the keys are _KIND's
                count=self.sizes[kind].count,
                bytes=self.sizes[kind].spread() or (0.0, 0.0, 0.0),
                handshake_s=self.times[kind].spread(),
            )
            for kind in kinds
        ]


class Inspected(Protocol):
    """A connection as `core.inspect` tells it, and the trace that it makes, or why it makes none."""

    @property
    def connection(self) -> dict[str, Any]: ...  # noqa: D102
    @property
    def trace(self) -> dict[str, Any] | None: ...  # noqa: D102
    @property
    def refused(self) -> str | None: ...  # noqa: D102


class Inspection(Protocol):
    """What `core.inspect` opens: connections as they end, then what the file held and why reading ended."""

    def __iter__(self) -> Iterator[Inspected]: ...
    @property
    def summary(self) -> dict[str, Any]: ...  # noqa: D102
    @property
    def problem(self) -> str | None: ...  # noqa: D102


def keep(file: Path, keylog: Path | None, stream: Inspection) -> Capture:
    """Reads a capture to its end and keeps what a report shows of it."""
    connections: list[dict[str, Any]] = []
    traces: dict[str, CapturedTrace] = {}
    unpriced: list[str] = []
    kinds = _Kinds()
    for item in stream:
        connection, trace = item.connection, item.trace
        kinds.add(connection)
        if len(connections) < MOST_CONNECTIONS:
            connections.append(_bounded(connection, item.refused))
        if trace is None or trace["suite"] in traces:
            continue
        if len(traces) < MOST_TRACES:
            traces[trace["suite"]] = CapturedTrace(connection=connection["index"], trace=trace)
            if all(one["index"] != connection["index"] for one in connections):
                connections.append(_bounded(connection, None))
        elif trace["suite"] not in unpriced and len(unpriced) < MOST_KINDS:
            unpriced.append(trace["suite"])
    return Capture(
        capture=file.name,
        keylog=None if keylog is None else keylog.name,
        size_bytes=file.stat().st_size,
        summary=stream.summary,
        problem=stream.problem,
        connections=sorted(connections, key=lambda one: int(one["index"])),
        kinds=kinds.told(),
        uncounted=kinds.uncounted,
        traces=list(traces.values()),
        unpriced=unpriced,
    )


def capture_of_traces(name: str, traces: Iterable[Mapping[str, Any]]) -> Capture:
    """Traces that `inspect --traces` wrote, as a capture: what its connections sent, without their times."""
    connections: list[dict[str, Any]] = []
    kept: dict[str, CapturedTrace] = {}
    kinds = _Kinds()
    for number, trace in enumerate(traces):
        connection = {
            "index": number,
            "client": None,
            "server": None,
            "server_name": None,
            "protocol": trace["suite"].split("/")[0],
            "cipher": None,
            "suite": trace["suite"],
            "handshake_s": None,
            "resumed": None,
            "complete": True,
            "messages": [
                {**message, "time_s": None, "wait_s": None, "peer_s": None, "network_s": None}
                for message in trace["messages"]
            ],
            "flights": trace["flights"],
            "bytes": trace["bytes"],
            "encrypted": None,
            "alerts": [],
            "retransmissions": None,
            "problems": [],
        }
        kinds.add(connection)
        if len(connections) < MOST_CONNECTIONS:
            connections.append(_bounded(connection, None))
        if trace["suite"] not in kept and len(kept) < MOST_TRACES and number < MOST_CONNECTIONS:
            kept[trace["suite"]] = CapturedTrace(connection=number, trace=dict(trace))
    return Capture(
        capture=name,
        keylog=None,
        size_bytes=0,
        summary={},
        problem=None,
        connections=connections,
        kinds=kinds.told(),
        uncounted=kinds.uncounted,
        traces=list(kept.values()),
        unpriced=[],
    )


def _bounded(connection: Mapping[str, Any], refused: str | None) -> dict[str, Any]:
    """A connection with no more messages than are kept, and why it makes no trace."""
    left_out = max(0, len(connection["messages"]) - MOST_MESSAGES)
    return {
        **connection,
        "messages": connection["messages"][:MOST_MESSAGES],
        "messages_left_out": left_out,
        "refused": refused,
    }
