"""Captured handshakes between two programs. The memory for a capture is limited: the first connections are
kept in full, all connections are counted by kind, and for each suite the first connection with a complete
trace is estimated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from shakedown.experiments.figure_kinds.measured import message_columns
from shakedown.native.scenario import HandshakeId
from shakedown.results.table import Row, fact, figure, frame, spread
from shakedown.schema.base import SIDES, Object
from shakedown.schema.captured import (
    Capture,
    Connection,
    ConnectionKind,
    KeptConnection,
    KeptTrace,
    Range,
)
from shakedown.schema.trace import CapturedTrace, Trace

if TYPE_CHECKING:
    import polars as pl

    from shakedown.experiments.figure_kinds import Run, Source
    from shakedown.native.captures import Inspection
    from shakedown.native.scenario import Scenario
    from shakedown.results.folder import Results


MAX_CONNECTIONS = 50
"""Connections of a capture that are kept message by message."""

MAX_MESSAGES = 64
"""Messages kept of a connection; a handshake has a dozen, and renegotiations could go on for ever."""

MAX_KINDS = 40
MAX_KINDS_SHOWN = 12
"""Kinds of connections that a terminal shows; the report has the others."""
"""Kinds of connections that are counted separately; all further kinds are counted together."""

MAX_TRACES = 12
"""Suites of a capture that are estimated."""


def cut_short(capture: object, problem: str) -> str:
    """The line for a capture whose reading ended before the file did."""
    return f"{capture}: {problem}; what came before is used, and connections may lack what came after"


def run(scenario: Scenario, run: Run) -> Capture:
    """Inspects a capture. Raises `InputError` where it cannot be read."""
    from shakedown.native import captures

    assert scenario.capture is not None
    run.progress(0, f"reading {scenario.label}")
    file, keylog = Path(scenario.capture.file), scenario.capture.keylog
    return keep(file, None if keylog is None else Path(keylog), captures.inspect(file, keylog))


def keep(file: Path, keylog: Path | None, stream: Inspection) -> Capture:
    """Reads a capture to its end and keeps what a report shows of it."""
    kept = _Kept()
    for item in stream:
        kept.add(item.connection, item.trace, item.refused)
    return kept.capture(
        file.name,
        keylog=None if keylog is None else keylog.name,
        size_bytes=file.stat().st_size,
        summary=stream.summary,
        problem=stream.problem,
    )


def capture_of_traces(name: str, traces: Iterable[CapturedTrace]) -> Capture:
    """Traces that `inspect --traces-out` wrote, as a capture: what its connections sent, without times."""
    kept = _Kept()
    for index, trace in enumerate(traces):
        kept.add(_connection_of(index, trace), trace, None)
    return kept.capture(name, keylog=None, size_bytes=None, summary=None, problem=None)


class _Tally:
    """Lowest, mean and highest of figures that come one by one."""

    def __init__(self) -> None:
        self.count, self.sum, self.low, self.high = 0, 0.0, float("inf"), float("-inf")

    def add(self, value: float) -> None:
        self.count += 1
        self.sum += value
        self.low, self.high = min(self.low, value), max(self.high, value)

    def range(self) -> Range | None:
        return Range(low=self.low, mean=self.sum / self.count, high=self.high) if self.count else None


_KIND = ("suite", "protocol", "cipher", "resumed", "complete")


class _Kept:
    """The data that is kept while connections are read."""

    def __init__(self) -> None:
        self.connections: list[KeptConnection] = []
        self.traces: dict[str, KeptTrace] = {}
        self.without_cost: dict[str, None] = {}
        self.sizes: dict[tuple[Any, ...], _Tally] = {}
        self.times: dict[tuple[Any, ...], _Tally] = {}
        self.uncounted = 0

    def add(self, connection: Connection, trace: CapturedTrace | None, refused: str | None) -> None:
        self._count(connection)
        new = trace is not None and trace.suite not in self.traces
        priced = new and len(self.traces) < MAX_TRACES
        if len(self.connections) < MAX_CONNECTIONS or priced:
            self.connections.append(
                KeptConnection(
                    connection=msgspec.structs.replace(
                        connection, messages=connection.messages[:MAX_MESSAGES]
                    ),
                    messages_left_out=max(0, len(connection.messages) - MAX_MESSAGES),
                    refused=refused,
                )
            )
        if trace is not None and priced:
            self.traces[trace.suite] = KeptTrace(connection=connection.index, trace=trace)
        elif trace is not None and new and len(self.without_cost) < MAX_KINDS:
            self.without_cost[trace.suite] = None

    def _count(self, connection: Connection) -> None:
        kind = tuple(getattr(connection, name) for name in _KIND)
        if kind not in self.sizes and len(self.sizes) >= MAX_KINDS:
            self.uncounted += 1
            return
        self.sizes.setdefault(kind, _Tally()).add(connection.wire_bytes)
        times = self.times.setdefault(kind, _Tally())
        if connection.handshake_s is not None:
            times.add(connection.handshake_s)

    def capture(self, name: str, **about: Any) -> Capture:  # noqa: ANN401 - fields of Capture
        kinds = sorted(self.sizes, key=lambda kind: -self.sizes[kind].count)
        zero = Range(low=0, mean=0, high=0)
        return Capture(
            capture=name,
            connections=tuple(sorted(self.connections, key=lambda one: one.connection.index)),
            kinds=tuple(
                ConnectionKind(
                    **dict(zip(_KIND, kind, strict=True)),
                    count=self.sizes[kind].count,
                    bytes=self.sizes[kind].range() or zero,
                    handshake_s=self.times[kind].range(),
                )
                for kind in kinds
            ),
            uncounted=self.uncounted,
            traces=tuple(self.traces.values()),
            without_cost=tuple(self.without_cost),
            **about,
        )


def _connection_of(index: int, trace: CapturedTrace) -> Connection:
    """A connection as far as a trace contains it."""
    from shakedown.schema import captured as schema

    nothing = schema.Undecrypted(bytes=0, records=0, from_s=None, to_s=None)
    again = schema.Retransmissions(segments=0, bytes=0, out_of_order=0)
    gap = schema.Gaps(count=0, bytes=0)
    return Connection(
        index=index,
        transport="",
        client="",
        server="",
        server_name=None,
        protocol=trace.suite.split("/")[0],
        cipher=None,
        suite=trace.suite,
        start_s=0,
        start_unix_s=0,
        handshake_s=None,
        resumed=None,
        complete=True,
        messages=tuple(
            schema.CapturedMessage(
                **msgspec.structs.asdict(message), time_s=None, wait_s=None, peer_s=None, network_s=None
            )
            for message in trace.messages
        ),
        flights=trace.flights,
        bytes=trace.bytes,
        encrypted=schema.ByDirection(client_to_server=nothing, server_to_client=nothing),
        application_data_bytes=schema.ByDirection(client_to_server=0, server_to_client=0),
        alerts=(),
        retransmissions=schema.ByDirection(client_to_server=again, server_to_client=again),
        gaps=schema.ByDirection(client_to_server=gap, server_to_client=gap),
        round_trip=schema.RoundTrip(client_side_s=None, server_side_s=None),
        problems=(),
    )


def rows(scenario: Scenario, found: Capture) -> pl.DataFrame:
    return frame(_rows(found), {"scenario": scenario.key, "kind": "captured", "capture": found.capture})


def _rows(capture: Capture) -> Iterator[Row]:
    if capture.summary is not None:
        yield figure("capture.packets", capture.summary.packets)
        yield figure("capture.length", capture.summary.duration_s)
    yield figure("capture.uncounted", capture.uncounted)
    for quantity, text in (("capture.keylog", capture.keylog), ("capture.problem", capture.problem)):
        if text is not None:
            yield fact(quantity, text)
    for suite in capture.without_cost:
        yield fact("capture.without_cost", suite)
    for item, kind in enumerate(capture.kinds):
        for row in _kind(kind):
            yield {"suite": kind.suite, "item": item, **row}
    for kept in capture.connections:
        place = {"suite": kept.connection.suite, "connection": kept.connection.index}
        for row in _connection(kept):
            yield {**place, **row}


def _kind(kind: ConnectionKind) -> Iterator[Row]:
    yield figure("capture.connections", kind.count)
    yield fact("capture.protocol", kind.protocol)
    yield fact("capture.cipher", kind.cipher)
    yield figure("capture.resumed", kind.resumed)
    yield figure("capture.complete", kind.complete)
    for quantity, range_ in (("capture.bytes", kind.bytes), ("capture.duration", kind.handshake_s)):
        if range_ is not None:
            yield from spread(quantity, range_, ("low", "mean", "high"))


def _connection(kept: KeptConnection) -> Iterator[Row]:
    one = kept.connection
    for name in ("client", "server", "server_name", "protocol", "cipher"):
        yield fact(f"connection.{name}", getattr(one, name))
    yield figure("connection.resumed", one.resumed)
    yield figure("connection.complete", one.complete)
    yield figure("connection.messages", len(one.messages) + kept.messages_left_out)
    if kept.refused is not None:
        yield fact("connection.refused", kept.refused)
    for alert in one.alerts:
        yield fact("connection.alert", alert.description, side=alert.sender)
    for problem in one.problems:
        yield fact("connection.problem", problem)
    yield figure("handshake.duration", one.handshake_s)
    yield figure("handshake.flights", one.flights)
    yield figure("handshake.bytes", one.bytes.total)
    for side in SIDES:
        yield figure("handshake.bytes", one.bytes.of(side), side=side)
        yield figure("handshake.undecrypted", one.encrypted.of(side).bytes, side=side)
        again = one.retransmissions.of(side)
        yield figure("retransmission.segments", again.segments, side=side)
        yield figure("retransmission.bytes", again.bytes, side=side)
    for item, message in enumerate(one.messages):
        place = {"item": item, **message_columns(message)}
        yield figure("message.bytes", message.bytes, **place)
        yield figure("message.at", message.time_s, **place)
        yield figure("message.wait", message.wait_s, **place)
        yield figure("message.wait.sender", message.peer_s, **place)
        yield figure("message.wait.network", message.network_s, **place)


def printed(found: Capture) -> Iterable[Object]:
    """Nothing: `inspect --json` prints connections."""
    return ()


def traces(scenario: Scenario, found: Capture) -> dict[Source, Trace]:
    return {
        (HandshakeId(suite=kept.trace.suite, credentials=None), scenario.capture, kept.connection): kept.trace
        for kept in found.traces
    }


def notes(found: Capture) -> list[str]:
    lines = [cut_short(found.capture, found.problem)] if found.problem else []
    return [*lines, *([] if found.kinds else [f"{found.capture}: no handshake in it"])]


def terminal(results: Results, width: int) -> Iterable[str]:
    import polars as pl

    from shakedown.reporting.columns import Selection
    from shakedown.reporting.columns.captured import KINDS
    from shakedown.reporting.figures import count
    from shakedown.reporting.terminal.listing import listing
    from shakedown.results import queries

    kinds = queries.capture_kinds(results.source)
    for capture in queries.captures(results.source).to_dicts():
        rows = kinds.filter(pl.col("scenario") == capture["scenario"]).to_dicts()
        if rows:
            title = f"captured in {capture['capture']}: {count(capture['connections'], 'connection')}"
            rest = len(rows) - MAX_KINDS_SHOWN
            notes = [f"{rest} more kinds are in the report"] if rest > 0 else []
            yield from listing(
                KINDS, rows[:MAX_KINDS_SHOWN], Selection(), title=title, notes=notes, width=width
            )
