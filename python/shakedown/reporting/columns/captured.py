"""Columns of captured connections, of their messages, and of their kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shakedown.reporting.columns import ALWAYS, ROOM, USUAL, WIDE, Column, Row, label, seconds
from shakedown.reporting.figures import NOTHING, milliseconds, time, time_range, whole, yes_no
from shakedown.schema.base import SIDES

if TYPE_CHECKING:
    from shakedown.schema.captured import CaptureSummary, Connection


def kind_name(kind: Mapping[str, Any]) -> str:
    """The suite of connections of a kind, else protocol and cipher if they are visible."""
    if kind["suite"]:
        return str(kind["suite"])
    return " ".join(str(kind[name]) for name in ("protocol", "cipher") if kind[name]) or "unknown"


def _ms(key: str, name: str, meaning: str, rank: int = USUAL, group: str = "") -> Column:
    return Column(
        key=key, name=name, unit="s", rank=rank, meaning=meaning, group=group,
        show=lambda value: NOTHING if value is None else milliseconds(value * 1e6, 3),
    )  # fmt: skip


CONNECTIONS = (
    Column(key="connection", name="#", rank=ALWAYS, meaning="its number, in the order of first messages"),
    label("suite", "suite", "the suite, or its visible parts", text=kind_name, path=True),
    _ms("handshake_s", "time ms", "from the first packet to the last flight's last message", ALWAYS),
    Column(key="bytes", name="bytes", unit="bytes", rank=ALWAYS, meaning="of handshake messages"),
    label("state", "to know", "limits of the figures", rank=USUAL, prose=True,
          show=lambda value: value or ""),
    _ms("network_s", "network", "waits that the network caused", group="waits"),
    _ms("client_wait_s", "client", "waits for the client's work", group="waits"),
    _ms("server_wait_s", "server", "waits for the server's work", group="waits"),
    Column(key="flights", name="flights"),
    Column(key="resent", name="resent", rank=ROOM, meaning="segments that were sent more than once"),
    label("resumed", "resumed", rank=ROOM, show=yes_no),
    Column(key="messages", name="messages", rank=ROOM),
    label("client", "client", rank=ROOM),
    label("server", "server", rank=ROOM),
    label("server_name", "name asked for", rank=WIDE),
    Column(key="start_s", name="start s", unit="s", rank=ROOM, show=lambda value: f"{value:.6f}"),
    label("protocol", "protocol", rank=WIDE),
    label("cipher", "cipher", rank=WIDE),
)  # fmt: skip


def connection_row(connection: Connection) -> dict[str, Any]:
    messages = list(message_rows(connection))
    return {
        "connection": connection.index,
        **{
            key: getattr(connection, key)
            for key in ("suite", "protocol", "cipher", "handshake_s", "flights", "resumed", "start_s")
        },
        **{key: getattr(connection, key) for key in ("client", "server", "server_name")},
        "bytes": connection.bytes.total,
        "messages": len(connection.messages),
        "resent": sum(connection.retransmissions.of(side).segments for side in SIDES),
        "network_s": waited(messages, "network_s"),
        **{f"{side}_wait_s": waited(messages, "sender_s", side) for side in SIDES},
        "state": _state(connection),
    }


def waited(messages: Iterable[Row], key: str, side: str | None = None) -> float | None:
    """Seconds of waiting of one kind for the handshake's messages; None if no message has it."""
    waits = [
        one[key]
        for one in messages
        if one[key] is not None and one["flight"] is not None and side in (None, one["sender"])
    ]
    return sum(waits) if waits else None


def _state(connection: Connection) -> str:
    """The problems, in a few words."""
    said = [] if connection.complete else ["incomplete"]
    fatal = [alert for alert in connection.alerts if alert.level == "fatal"]
    said += [f"{alert.sender}: {alert.description}" for alert in fatal]
    missing = sum(connection.gaps.of(side).bytes for side in SIDES)
    return ", ".join([*said, f"{missing:,} bytes not captured"] if missing else said)


MESSAGES = (
    Column(key="connection", name="connection", rank=ALWAYS, identity=True),
    Column(key="message_index", name="#", rank=ALWAYS, show=lambda value: whole(value + 1)),
    label("sender", "from"),
    label("message", "message"),
    Column(key="flight", name="flight", rank=ALWAYS),
    Column(key="bytes", name="bytes", unit="bytes", rank=ALWAYS),
    _ms("time_s", "at ms", "when its last byte arrived", ALWAYS),
    _ms("wait_s", "wait ms", "since the message before", ALWAYS),
    _ms("network_s", "network", "of the wait: the network's part", ALWAYS),
    _ms("sender_s", "sender", "of the wait: its sender's work", ALWAYS),
)


def message_rows(connection: Connection) -> Iterator[dict[str, Any]]:
    for message in connection.messages:
        yield {
            "connection": connection.index,
            "message_index": message.index,
            "message": message.name,
            "sender_s": message.peer_s,
            **{
                key: getattr(message, key)
                for key in ("sender", "flight", "bytes", "time_s", "wait_s", "network_s")
            },
        }


def connection_title(connection: Connection) -> str:
    flights, row = connection.flights, connection_row(connection)
    return (
        f"connection {connection.index}, {connection.client} → {connection.server}: {kind_name(row)}, "
        f"{connection.bytes.total:,} bytes, {flights} flight{'' if flights == 1 else 's'}"
    )


def remarks(connection: Connection) -> list[str]:
    said = [] if connection.complete else ["the handshake is not complete"]
    for side in SIDES:
        undecrypted = connection.encrypted.of(side)
        if undecrypted.records:
            said.append(f"{undecrypted.bytes:,} bytes of the {side}'s handshake are encrypted")
    for alert in connection.alerts:
        kind = f"{alert.level} alert" if alert.level else "encrypted alert"
        what = f": {alert.description}" if alert.description else ""
        said.append(f"{kind} of the {alert.sender} after {milliseconds(alert.time_s * 1e6, 3)} ms{what}")
    for side in SIDES:
        again, gap = connection.retransmissions.of(side), connection.gaps.of(side)
        if again.segments:
            said.append(f"sent again by the {side}: {again.segments:,} ({again.bytes:,} bytes)")
        if gap.bytes:
            said.append(f"not captured of the {side}: {gap.bytes:,} bytes")
    return [*said, *connection.problems]


def summary_totals(summary: CaptureSummary) -> str:
    """The content of the file, besides the listed connections."""
    return (
        f"{summary.packets:,} packets in {summary.duration_s:,.3f} s; connections with a handshake: "
        f"{summary.handshakes:,}, without one: {summary.connections - summary.handshakes:,}, "
        f"of other protocols: {summary.other_flows:,}"
    )


def unread_line(summary: CaptureSummary) -> str:
    """The line about packets that may contain handshakes and were not inspected; empty if there are none."""
    named = [f"{name} ({packets:,} packets)" for name, packets in summary.unread.items()]
    return f"not inspected: {', '.join(named)}" if named else ""


def _times(row: Row) -> str:
    low_s, high_s = row["low_s"], row["high_s"]
    low = time(low_s, 2)
    return low if low_s is None or low == time(high_s, 2) else time_range(low_s, high_s, 2)


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} – {high}"


KINDS = (
    label("suite", "suite (visible parts)", text=kind_name),
    Column(key="count", name="connections", rank=ALWAYS),
    Column(key="complete", name="complete", show=yes_no),
    Column(key="resumed", name="resumed", show=yes_no),
    Column(key="mean_bytes", name="bytes", unit="bytes", rank=ALWAYS,
           text=lambda row: _range(whole(row["low_bytes"]), whole(row["high_bytes"]))),
    seconds("mean_s", "handshake", "lowest and highest time from first packet to last message", rank=ALWAYS,
            text=_times),
)  # fmt: skip
