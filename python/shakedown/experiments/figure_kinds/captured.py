"""Captured handshakes between two programs. The memory for a capture is limited: the first connections are
kept in full, all connections are counted by kind, and for each suite the first connection with a complete
trace is estimated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import polars as pl

from shakedown.experiments.figure_kinds.measured import message_columns, place_columns
from shakedown.native import captures
from shakedown.native.scenario import HandshakeId
from shakedown.results import queries
from shakedown.results.table import Row, fact, figure, spread
from shakedown.schema.base import SIDES, Object
from shakedown.schema.captured import CaptureSummary, Connection
from shakedown.schema.trace import CapturedTrace, Trace

if TYPE_CHECKING:
    from shakedown.experiments.figure_kinds import Run, Source
    from shakedown.native.captures import Inspection
    from shakedown.native.scenario import Scenario
    from shakedown.results.folder import Results


MAX_CONNECTIONS = 50
"""Connections of a capture that are kept message by message."""

MAX_MESSAGES = 64
"""Messages of a connection that are kept: a handshake has a dozen, but renegotiations are unlimited."""

MAX_KINDS = 40
"""Kinds of connections that are counted separately; all further kinds are counted together."""
MAX_KINDS_SHOWN = 12
"""Kinds of connections that are printed on a terminal; the report has all."""

MAX_TRACES = 12
"""Suites of a capture that are estimated."""


def cut_short(capture: object, problem: str, packets: int) -> str:
    """The note for a capture whose reading ended, after some packets, before the end of the file."""
    used = "; what came before is used, and connections may lack what came after" if packets else ""
    return f"{capture}: {problem}{used}"


def run(scenario: Scenario, run: Run) -> Capture:
    """Inspects a capture. Raises `InputError` if it cannot be read."""
    assert scenario.capture is not None
    run.progress(0, f"reading {scenario.label}")
    file, keylog = Path(scenario.capture.file), scenario.capture.keylog
    return keep(file, None if keylog is None else Path(keylog), captures.inspect(file, keylog))


def keep(file: Path, keylog: Path | None, stream: Inspection) -> Capture:
    """Reads a capture to its end and keeps the connections and counts for the report."""
    found = Capture(file.name, keylog=None if keylog is None else keylog.name)
    for item in stream:
        found.add(item.connection, item.trace, item.refused)
    found.connections.sort(key=lambda one: one.connection.index)
    found.summary, found.problem = stream.summary, stream.problem
    return found


def capture_of_traces(name: str, traces: Iterable[CapturedTrace]) -> Capture:
    """Converts traces from `inspect --traces-out` to a capture whose connections have no times."""
    found = Capture(name)
    for index, trace in enumerate(traces):
        found.add(_connection_of(index, trace), trace, None)
    return found


@dataclass
class Tally:
    """Minimum, mean and maximum of figures that are added one by one."""

    count: int = 0
    sum: float = 0.0
    low: float = float("inf")
    high: float = float("-inf")

    def add(self, value: float) -> None:
        self.count += 1
        self.sum += value
        self.low, self.high = min(self.low, value), max(self.high, value)

    @property
    def mean(self) -> float:
        return self.sum / self.count


class KeptConnection(NamedTuple):
    """A connection with a limited number of messages, and the reason if it has no trace."""

    connection: Connection
    omitted_messages: int
    refused: str | None


_KIND = ("suite", "protocol", "cipher", "resumed", "complete")


@dataclass
class Capture:
    """The kept data of a capture: some connections in full, counts of all by kind, and one trace per suite.

    `kinds` has bytes and handshake times of connections by the fields in `_KIND`. `uncounted` is the number
    of connections of kinds above the limit `MAX_KINDS`; `without_cost` has the suites above the limit
    `MAX_TRACES`. `problem` is the reason why reading ended before the end of the file.
    """

    name: str
    keylog: str | None = None
    summary: CaptureSummary | None = None
    problem: str | None = None
    connections: list[KeptConnection] = field(default_factory=list)
    traces: dict[str, tuple[int, CapturedTrace]] = field(default_factory=dict)
    without_cost: dict[str, None] = field(default_factory=dict)
    kinds: dict[tuple[Any, ...], tuple[Tally, Tally]] = field(default_factory=dict)
    uncounted: int = 0

    def add(self, connection: Connection, trace: CapturedTrace | None, refused: str | None) -> None:
        self._count(connection)
        new = trace is not None and trace.suite not in self.traces
        with_trace = new and len(self.traces) < MAX_TRACES
        if len(self.connections) < MAX_CONNECTIONS or with_trace:
            kept = msgspec.structs.replace(connection, messages=connection.messages[:MAX_MESSAGES])
            omitted = max(0, len(connection.messages) - MAX_MESSAGES)
            self.connections.append(KeptConnection(kept, omitted, refused))
        if trace is not None and with_trace:
            self.traces[trace.suite] = (connection.index, trace)
        elif trace is not None and new and len(self.without_cost) < MAX_KINDS:
            self.without_cost[trace.suite] = None

    def _count(self, connection: Connection) -> None:
        kind = tuple(getattr(connection, name) for name in _KIND)
        if kind not in self.kinds and len(self.kinds) >= MAX_KINDS:
            self.uncounted += 1
            return
        sizes, times = self.kinds.setdefault(kind, (Tally(), Tally()))
        sizes.add(connection.wire_bytes)
        if connection.handshake_s is not None:
            times.add(connection.handshake_s)


def _connection_of(index: int, trace: CapturedTrace) -> Connection:
    """A connection with the fields that a trace has."""
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


def common(scenario: Scenario, found: Capture) -> Row:
    return {**place_columns(scenario), "capture": found.name}


def rows(scenario: Scenario, capture: Capture) -> Iterator[Row]:
    if capture.summary is not None:
        yield figure("capture.packets", capture.summary.packets)
        yield figure("capture.length", capture.summary.duration_s)
    yield figure("capture.uncounted", capture.uncounted)
    for quantity, text in (("capture.keylog", capture.keylog), ("capture.problem", capture.problem)):
        if text is not None:
            yield fact(quantity, text)
    for suite in capture.without_cost:
        yield fact("capture.without_cost", suite)
    most_frequent = sorted(capture.kinds.items(), key=lambda one: -one[1][0].count)
    for item, (kind, (sizes, times)) in enumerate(most_frequent):
        about = dict(zip(_KIND, kind, strict=True))
        for row in _kind(about, sizes, times):
            yield {"suite": about["suite"], "item": item, **row}
    for kept in capture.connections:
        place = {"suite": kept.connection.suite, "connection": kept.connection.index}
        for row in _connection(kept):
            yield {**place, **row}


def _kind(about: Row, sizes: Tally, times: Tally) -> Iterator[Row]:
    yield figure("capture.connections", sizes.count)
    yield fact("capture.protocol", about["protocol"])
    yield fact("capture.cipher", about["cipher"])
    yield figure("capture.resumed", about["resumed"])
    yield figure("capture.complete", about["complete"])
    for quantity, tally in (("capture.bytes", sizes), ("capture.duration", times)):
        if tally.count:
            yield from spread(quantity, tally, ("low", "mean", "high"))


def _connection(kept: KeptConnection) -> Iterator[Row]:
    one = kept.connection
    for name in ("client", "server", "server_name", "protocol", "cipher"):
        yield fact(f"connection.{name}", getattr(one, name))
    yield figure("connection.resumed", one.resumed)
    yield figure("connection.complete", one.complete)
    yield figure("connection.messages", len(one.messages) + kept.omitted_messages)
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
        (HandshakeId(suite=trace.suite, credentials=None), scenario.capture, connection): trace
        for connection, trace in found.traces.values()
    }


def notes(found: Capture) -> list[str]:
    lines = []
    if found.problem and found.summary is not None:
        lines.append(cut_short(found.name, found.problem, found.summary.packets))
    return [*lines, *([] if found.kinds else [f"{found.name}: no handshake in it"])]


def terminal(results: Results, width: int) -> Iterable[str]:
    from shakedown.reporting.columns import Selection
    from shakedown.reporting.columns.captured import KINDS
    from shakedown.reporting.figures import count
    from shakedown.reporting.terminal.listing import listing

    kinds = queries.capture_kinds(results)
    for capture in queries.captures(results).to_dicts():
        rows = kinds.filter(pl.col("scenario") == capture["scenario"]).to_dicts()
        if rows:
            title = f"captured in {capture['capture']}: {count(capture['connections'], 'connection')}"
            rest = len(rows) - MAX_KINDS_SHOWN
            notes = [f"{rest} more kinds are in the report"] if rest > 0 else []
            yield from listing(
                KINDS, rows[:MAX_KINDS_SHOWN], Selection(), title=title, notes=notes, width=width
            )
