"""What a capture holds, for people, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shakedown.reporting.terminal.figures import NOTHING, milliseconds, whole, yes_no
from shakedown.reporting.terminal.tables import titled_table
from shakedown.schema.base import SIDES

if TYPE_CHECKING:
    from rich.table import Table

    from shakedown.schema.captured import CaptureSummary, Connection


def connection_table(connection: Connection) -> Table:
    """One connection, message by message, with what each was waited for."""
    flights = connection.flights
    title = (
        f"Connection {connection.index}: {_ends(connection)}\n{_suite(connection)}: "
        f"{connection.bytes.total:,} bytes, {flights} flight{'' if flights == 1 else 's'}"
    )
    table = titled_table(title, "\n".join(_remarks(connection)))
    table.add_column("#", justify="right")
    table.add_column("from")
    table.add_column("message")
    for heading in ("flight", "bytes", "at ms", "wait ms", "network", "peer"):
        table.add_column(heading, justify="right")
    for message in connection.messages:
        flight = message.flight
        table.add_row(
            str(message.index + 1),
            message.sender,
            message.name,
            whole(flight),
            f"{message.bytes:,}",
            *(_ms(one) for one in (message.time_s, message.wait_s, message.network_s, message.peer_s)),
        )
    return table


SUMMARY_HEADING = (
    f"{'#':>6} {'start s':>11} {'time ms':>9} {'network':>8} {'client':>8} {'server':>8} {'msgs':>4} "
    f"{'flights':>7} {'bytes':>7} {'resent':>6} {'resumed':>7}  {'suite':<36}  client → server"
)
"""Above lines of `summary_line`. The time is the handshake's; the next three are what it was waited for."""


def summary_line(connection: Connection) -> str:
    """One connection on one line; figures first, for they are as wide in all lines."""
    resumed = yes_no(connection.resumed)
    resent = sum(connection.retransmissions.of(side).segments for side in SIDES)
    waits = (_waited(connection, "network_s"), *(_waited(connection, "peer_s", side) for side in SIDES))
    state = _state(connection)
    return (
        f"{connection.index:>6} {connection.start_s:>11.6f} {_ms(connection.handshake_s):>9} "
        + " ".join(f"{_ms(wait):>8}" for wait in waits)
        + f" {len(connection.messages):>4} {connection.flights:>7} {connection.bytes.total:>7} "
        f"{resent:>6} {resumed:>7}  {_suite(connection):<36}  {_ends(connection)}"
        + (f"  ({state})" if state else "")
    )


def summary_totals(summary: CaptureSummary) -> str:
    """What the file held, besides the connections listed."""
    return (
        f"{summary.packets:,} packets in {summary.duration_s:,.3f} s; connections with a handshake: "
        f"{summary.handshakes:,}, without: {summary.connections - summary.handshakes:,}, "
        f"others: {summary.other_flows:,}"
    )


def unread_line(summary: CaptureSummary) -> str:
    """What may have handshakes inside and was not looked into; empty where there is nothing of the kind."""
    named = [f"{name} ({packets:,} packets)" for name, packets in summary.unread.items()]
    return f"not looked into: {', '.join(named)}" if named else ""


def _ends(connection: Connection) -> str:
    return f"{connection.client} → {connection.server}"


def _suite(connection: Connection) -> str:
    """The suite's name, or what can be told of it."""
    if connection.suite is not None:
        return str(connection.suite)
    parts = (connection.protocol, connection.cipher)
    return " ".join(part for part in parts if part is not None) or "no ServerHello"


def _state(connection: Connection) -> str:
    """What is amiss, in a few words."""
    words = [] if connection.complete else ["incomplete"]
    fatal = [alert for alert in connection.alerts if alert.level == "fatal"]
    words += [f"{alert.sender}: {alert.description}" for alert in fatal]
    missing = sum(connection.gaps.of(side).bytes for side in SIDES)
    return ", ".join([*words, f"{missing:,} bytes not captured"] if missing else words)


def _remarks(connection: Connection) -> list[str]:
    """What a reader should know besides the messages."""
    remarks = [] if connection.complete else ["the handshake is not complete"]
    for side in SIDES:
        undecrypted = connection.encrypted.of(side)
        if undecrypted.records:
            remarks.append(f"{undecrypted.bytes:,} bytes of the {side}'s handshake are encrypted")
    for alert in connection.alerts:
        kind = f"{alert.level} alert" if alert.level else "encrypted alert"
        what = f": {alert.description}" if alert.description else ""
        remarks.append(f"{kind} of the {alert.sender} after {_ms(alert.time_s)} ms{what}")
    for side in SIDES:
        again, gap = connection.retransmissions.of(side), connection.gaps.of(side)
        if again.segments:
            remarks.append(f"sent again by the {side}: {again.segments:,} ({again.bytes:,} bytes)")
        if gap.bytes:
            remarks.append(f"not captured of the {side}: {gap.bytes:,} bytes")
    return [*remarks, *connection.problems]


def _waited(connection: Connection, key: str, side: str | None = None) -> float | None:
    """Seconds that the handshake's messages were waited for in that way; None where none of them tells."""
    waits = [
        wait
        for message in connection.messages
        if (wait := getattr(message, key)) is not None
        and message.flight is not None
        and side in (None, message.sender)
    ]
    return sum(waits) if waits else None


def _ms(seconds: float | None) -> str:
    return NOTHING if seconds is None else milliseconds(seconds * 1e6, 4)
