"""What a capture holds, for people, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

Connection = Mapping[str, Any]

DIRECTIONS = {"client": "client_to_server", "server": "server_to_client"}


def connection_table(connection: Connection) -> Table:
    """One connection, message by message, with what each was waited for."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    flights = connection["flights"]
    title = (
        f"Connection {connection['index']}: {_ends(connection)}\n{_suite(connection)}: "
        f"{connection['bytes']['total']:,} bytes, {flights} flight{'' if flights == 1 else 's'}"
    )
    table = Table(
        box=SIMPLE_HEAD,
        title=title,
        title_justify="left",
        title_style="bold",
        min_width=60,
        caption="\n".join(_remarks(connection)) or None,
        caption_justify="left",
        pad_edge=False,
    )
    table.add_column("#", justify="right")
    table.add_column("from")
    table.add_column("message")
    for heading in ("flight", "bytes", "at ms", "wait ms", "network", "peer"):
        table.add_column(heading, justify="right")
    for message in connection["messages"]:
        flight = message["flight"]
        table.add_row(
            str(message["index"] + 1),
            message["from"],
            message["name"],
            "–" if flight is None else str(flight),
            f"{message['bytes']:,}",
            *(_ms(message[key]) for key in ("time_s", "wait_s", "network_s", "peer_s")),
        )
    return table


SUMMARY_HEADING = (
    f"{'#':>6} {'start s':>11} {'time ms':>9} {'network':>8} {'client':>8} {'server':>8} {'msgs':>4} "
    f"{'flights':>7} {'bytes':>7} {'resent':>6} {'resumed':>7}  {'suite':<36}  client → server"
)
"""Above lines of `summary_line`. The time is the handshake's; the next three are what it was waited for."""


def summary_line(connection: Connection) -> str:
    """One connection on one line; figures first, for they are as wide in all lines."""
    resumed = {True: "yes", False: "no", None: "–"}[connection["resumed"]]
    resent = sum(direction["segments"] for direction in connection["retransmissions"].values())
    waits = (_waited(connection, "network_s"), *(_waited(connection, "peer_s", side) for side in DIRECTIONS))
    state = _state(connection)
    return (
        f"{connection['index']:>6} {connection['start_s']:>11.6f} {_ms(connection['handshake_s']):>9} "
        + " ".join(f"{_ms(wait):>8}" for wait in waits)
        + f" {len(connection['messages']):>4} {connection['flights']:>7} {connection['bytes']['total']:>7} "
        f"{resent:>6} {resumed:>7}  {_suite(connection):<36}  {_ends(connection)}"
        + (f"  ({state})" if state else "")
    )


def summary_totals(summary: Mapping[str, Any]) -> str:
    """What the file held, besides the connections told."""
    return (
        f"{summary['packets']:,} packets in {summary['duration_s']:,.3f} s; connections with a handshake: "
        f"{summary['connections']:,}, others: {summary['other_flows']:,}"
    )


def _ends(connection: Connection) -> str:
    return f"{connection['client']} → {connection['server']}"


def _suite(connection: Connection) -> str:
    """The suite's name, or what can be told of it."""
    if connection["suite"] is not None:
        return str(connection["suite"])
    parts = (connection["protocol"], connection["cipher"])
    return " ".join(part for part in parts if part is not None) or "no ServerHello"


def _state(connection: Connection) -> str:
    """What is amiss, in a few words."""
    words = [] if connection["complete"] else ["incomplete"]
    fatal = [alert for alert in connection["alerts"] if alert["level"] == "fatal"]
    words += [f"{alert['from']}: {alert['description']}" for alert in fatal]
    missing = sum(gap["bytes"] for gap in connection["gaps"].values())
    return ", ".join([*words, f"{missing:,} bytes not captured"] if missing else words)


def _remarks(connection: Connection) -> list[str]:
    """What a reader should know besides the messages."""
    remarks = [] if connection["complete"] else ["the handshake is not complete"]
    for side, direction in DIRECTIONS.items():
        sealed = connection["encrypted"][direction]
        if sealed["records"]:
            remarks.append(f"{sealed['bytes']:,} bytes of the {side}'s handshake are encrypted")
    for alert in connection["alerts"]:
        kind = f"{alert['level']} alert" if alert["level"] else "encrypted alert"
        what = f": {alert['description']}" if alert["description"] else ""
        remarks.append(f"{kind} of the {alert['from']} after {_ms(alert['time_s'])} ms{what}")
    for side, direction in DIRECTIONS.items():
        again = connection["retransmissions"][direction]
        if again["segments"]:
            remarks.append(f"sent again by the {side}: {again['segments']:,} ({again['bytes']:,} bytes)")
        if connection["gaps"][direction]["bytes"]:
            remarks.append(f"not captured of the {side}: {connection['gaps'][direction]['bytes']:,} bytes")
    return remarks + list(connection["problems"])


def _waited(connection: Connection, key: str, side: str | None = None) -> float | None:
    """Seconds that the handshake's messages were waited for in that way; None where none of them tells."""
    waits = [
        message[key]
        for message in connection["messages"]
        if message[key] is not None and message["flight"] is not None and side in (None, message["from"])
    ]
    return sum(waits) if waits else None


def _ms(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    value = seconds * 1000
    digits = 3 if value < 10 else 2 if value < 100 else 1 if value < 10_000 else 0
    return f"{value:.{digits}f}"
