"""Measurements as a tidy table, one row a figure, and back again without loss.

A row says which scenario (suite, stack, devices, bearer, rate), which figure (quantity, side, message,
operation, statistic), its value with unit, over how many repetitions, of which kind, and from where
(provenance: an entry of the results' manifest). Quantities:

==================  =====  ==============================================================================
quantity            unit   what
==================  =====  ==============================================================================
handshake.time      us     CPU time of `side` for a whole handshake, by statistic
handshake.bytes     bytes  what `side` sent; without a side, both
handshake.flights   1      flights; two make a round trip
handshake.repeat    1      repetitions asked for and used
handshake.preempted 1      repetitions thrown away because the kernel preempted them
message.bytes       bytes  one message on the wire
message.generate    us     time its sender took, by statistic
message.process     us     time its receiver took, by statistic
operation.time      us     one public-key call, or one kind of symmetric work in a message, by statistic
operation.count     1      calls in it
operation.bytes     bytes  bytes worked on
unattributed.time      us     time of `side` outside any message
memory.peak         bytes  most that `side` held for the connection
memory.held         bytes  what it holds after the handshake
memory.context      bytes  what its context holds for all connections
memory.left         bytes  what both still held for the connection after its release
predicted.*         s      client, server, transmission, queue and total, priced on devices over a bearer;
                           total also as statistics low and high; utilisation has unit 1, energy J
queue.wait          s      wait at the server, at `rate_per_s`
queue.service       s      the server's work for one handshake
queue.knee          1/s    rate with the highest power (rate over response time)
queue.limit         1/s    rate at which the queue runs away
capture.connections 1      connections of a kind (suite, resumption, completeness) in a capture
handshake.duration  s      captured: from the connection's beginning to the last message of the last flight
handshake.sealed    bytes  captured: handshake bytes of `side` that stayed encrypted, and are in no message
message.at          s      captured: when a message had passed, since the connection's beginning
message.wait        s      captured: since the message before it; .sender: of that, what its sender took;
                           .network: what the network took
retransmission.*    1      captured: segments, and bytes, that `side` sent more than once
==================  =====  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

import polars as pl

from shakedown.measurement import SIDES, Measurement, Side

SCHEMA: dict[str, pl.DataType] = {
    "suite": pl.String(),
    "stack": pl.String(),
    "stack_version": pl.String(),
    "device": pl.String(),
    "server_device": pl.String(),
    "bearer": pl.String(),
    "rate_per_s": pl.Float64(),
    "model": pl.String(),
    "certificates": pl.String(),
    "capture": pl.String(),
    "connection": pl.Int64(),
    "quantity": pl.String(),
    "side": pl.String(),
    "item": pl.Int32(),
    "message_index": pl.Int32(),
    "message": pl.String(),
    "sender": pl.String(),
    "flight": pl.Int32(),
    "operation": pl.String(),
    "algorithm": pl.String(),
    "parameters": pl.String(),
    "class": pl.String(),
    "statistic": pl.String(),
    "value": pl.Float64(),
    "unit": pl.String(),
    "n": pl.Int64(),
    "kind": pl.String(),
    "provenance": pl.String(),
}
"""Columns of the table, in order; `item` counts messages and operations in the order of the measurement,
`connection` is a capture's own number of a connection, from 0."""

SINCE_VERSION_2 = ("certificates", "capture", "connection")

_STATISTICS: tuple[Literal["median", "mean", "sd", "min", "max"], ...] = (
    "median",
    "mean",
    "sd",
    "min",
    "max",
)
_IN_ROWS = {
    "suite", "client_stack", "server_stack", "kind", "repeat", "preempted", "handshake", "bytes", "flights",
    "messages", "operations", "unattributed_us", "memory",
}  # fmt: skip

Row = dict[str, Any]


def rest_of(measurement: Measurement) -> dict[str, Any]:
    """What of a measurement is not a figure and stands beside the table: machine, clock, later additions."""
    return {key: value for key, value in measurement.items() if key not in _IN_ROWS}


def whose_certificates(shown: Mapping[Side, str] | None) -> str | None:
    """`own` or `made` by what each side shows; `own server` or `own client` where only one side's are own.

    None where no side shows any.
    """
    if not shown:
        return None
    own = [side for side, whose in shown.items() if whose == "own"]
    return "made" if not own else "own" if len(own) == len(shown) else f"own {own[0]}"


def to_table(measurement: Measurement, provenance: str) -> pl.DataFrame:
    """The measurement's figures as a table with the columns of `SCHEMA`."""
    common: Row = {
        "suite": measurement["suite"],
        "stack": measurement["client_stack"]["name"],
        "stack_version": measurement["client_stack"]["version"],
        "kind": measurement["kind"],
        "certificates": whose_certificates(measurement.get("certificates")),
        "provenance": provenance,
    }
    empty: Row = dict.fromkeys(SCHEMA)
    rows = [{**empty, **common, **row} for row in _rows(measurement)]
    return pl.DataFrame(rows, schema=SCHEMA)


def _rows(measurement: Measurement) -> Iterator[Row]:
    def figure(quantity: str, unit: str, value: float, **columns: object) -> Row:
        return {"quantity": quantity, "unit": unit, "value": float(value), **columns}

    repeat = measurement["repeat"]
    for side in SIDES:
        spread = measurement["handshake"]["client_us" if side == "client" else "server_us"]
        for statistic in _STATISTICS:
            value = spread[statistic]
            yield figure("handshake.time", "us", value, side=side, statistic=statistic, n=spread["n"])
    sent = measurement["bytes"]
    yield figure("handshake.bytes", "bytes", sent["client_to_server"], side="client", n=repeat)
    yield figure("handshake.bytes", "bytes", sent["server_to_client"], side="server", n=repeat)
    yield figure("handshake.bytes", "bytes", sent["total"], n=repeat)
    yield figure("handshake.flights", "1", measurement["flights"])
    yield figure("handshake.repeat", "1", repeat)
    yield figure("handshake.preempted", "1", measurement["preempted"])
    places: dict[int | None, Row] = {None: {}}
    for item, message in enumerate(measurement["messages"]):
        sender = message["from"]
        receiver: Side = "server" if sender == "client" else "client"
        place = {
            "message_index": message["index"],
            "message": message["name"],
            "sender": sender,
            "flight": message["flight"],
        }
        places[message["index"]] = place
        place = {**place, "item": item, "n": repeat}
        yield figure("message.bytes", "bytes", message["bytes"], **place)
        for quantity, spender, median, mean in (
            ("message.generate", sender, message["generate_us"], message["generate_mean_us"]),
            ("message.process", receiver, message["process_us"], message["process_mean_us"]),
        ):
            yield figure(quantity, "us", median, side=spender, statistic="median", **place)
            yield figure(quantity, "us", mean, side=spender, statistic="mean", **place)
    for item, operation in enumerate(measurement["operations"]):
        place = {
            **places.get(operation["message"], {"message_index": operation["message"]}),
            "item": item,
            "side": operation["side"],
            "operation": operation["operation"],
            "algorithm": operation["algorithm"],
            "parameters": operation["parameters"],
            "class": operation["class"],
            "n": repeat,
        }
        yield figure("operation.time", "us", operation["us"], statistic="median", **place)
        yield figure("operation.time", "us", operation["mean_us"], statistic="mean", **place)
        yield figure("operation.count", "1", operation["count"], **place)
        yield figure("operation.bytes", "bytes", operation["bytes"], **place)
    for side in SIDES:
        remainder = cast("dict[str, float]", measurement["unattributed_us"])
        yield figure("unattributed.time", "us", remainder[side], side=side, statistic="median")
        yield figure("unattributed.time", "us", remainder[f"{side}_mean"], side=side, statistic="mean")
    memory = measurement.get("memory")
    if memory is not None:
        yield figure("memory.left", "bytes", memory["released_bytes"])
        held = cast("dict[str, int]", memory)
        for side in SIDES:
            yield figure("memory.peak", "bytes", held[f"{side}_peak_bytes"], side=side)
            yield figure("memory.held", "bytes", held[f"{side}_held_bytes"], side=side)
            yield figure("memory.context", "bytes", memory["context_bytes"][side], side=side)


def from_table(table: pl.DataFrame, rest: Mapping[str, Any]) -> Measurement:
    """The measurement that `to_table` and `rest_of` took apart; `table` holds the rows of one suite.

    Raises `KeyError`, `IndexError` or `ValueError` where rows are missing.
    """
    figures = _Figures(table)
    first = figures.rows[0]
    measurement: dict[str, Any] = {
        "suite": first["suite"],
        "client_stack": {"name": first["stack"], "version": first["stack_version"]},
        "server_stack": {"name": first["stack"], "version": first["stack_version"]},
        "kind": first["kind"],
        "repeat": _count(figures.one("handshake.repeat")),
        "preempted": _count(figures.one("handshake.preempted")),
        "handshake": {f"{side}_us": figures.spread(side) for side in SIDES},
        "bytes": {
            "client_to_server": _count(figures.one("handshake.bytes", side="client")),
            "server_to_client": _count(figures.one("handshake.bytes", side="server")),
            "total": _count(figures.one("handshake.bytes", side=None)),
        },
        "flights": _count(figures.one("handshake.flights")),
        "messages": figures.messages(),
        "operations": figures.operations(),
        "unattributed_us": {
            f"{side}{suffix}": figures.one("unattributed.time", side=side, statistic=statistic)["value"]
            for suffix, statistic in (("", "median"), ("_mean", "mean"))
            for side in SIDES
        },
        **rest,
    }
    if figures.has("memory.peak"):
        measurement["memory"] = figures.memory()
    return cast("Measurement", measurement)


def _count(row: Row) -> int | float:
    """A whole number as one; byte counts that are medians may end in a half."""
    value = row["value"]
    return int(value) if value == int(value) else cast(float, value)


class _Figures:
    """The rows of one suite, found by quantity and column values."""

    def __init__(self, table: pl.DataFrame) -> None:
        self.rows: list[Row] = table.to_dicts()
        self.of: dict[str, list[Row]] = {}
        for row in self.rows:
            self.of.setdefault(row["quantity"], []).append(row)

    def has(self, quantity: str) -> bool:
        return quantity in self.of

    def one(self, quantity: str, **columns: object) -> Row:
        for row in self.of.get(quantity, ()):
            if all(row[column] == value for column, value in columns.items()):
                return row
        wanted = " ".join(str(value) for value in columns.values())
        raise KeyError(f"no row {quantity} {wanted}".rstrip())

    def spread(self, side: Side) -> Row:
        rows = {name: self.one("handshake.time", side=side, statistic=name) for name in _STATISTICS}
        return {**{name: row["value"] for name, row in rows.items()}, "n": rows["mean"]["n"]}

    def items(self, quantity: str) -> dict[int, dict[str | None, Row]]:
        """Rows of a quantity by item, then by statistic."""
        found: dict[int, dict[str | None, Row]] = {}
        for row in self.of.get(quantity, ()):
            found.setdefault(row["item"], {})[row["statistic"]] = row
        return found

    def messages(self) -> list[Row]:
        generate, process = self.items("message.generate"), self.items("message.process")
        return [
            {
                "index": row["message_index"],
                "from": row["sender"],
                "name": row["message"],
                "flight": row["flight"],
                "bytes": _count(row),
                "generate_us": generate[item]["median"]["value"],
                "process_us": process[item]["median"]["value"],
                "generate_mean_us": generate[item]["mean"]["value"],
                "process_mean_us": process[item]["mean"]["value"],
            }
            for item, rows in sorted(self.items("message.bytes").items())
            for row in rows.values()
        ]

    def operations(self) -> list[Row]:
        counts, sizes = self.items("operation.count"), self.items("operation.bytes")
        return [
            {
                "side": times["mean"]["side"],
                "message": times["mean"]["message_index"],
                "operation": times["mean"]["operation"],
                "algorithm": times["mean"]["algorithm"],
                "parameters": times["mean"]["parameters"],
                "class": times["mean"]["class"],
                "us": times["median"]["value"],
                "mean_us": times["mean"]["value"],
                "count": _count(counts[item][None]),
                "bytes": _count(sizes[item][None]),
            }
            for item, times in sorted(self.items("operation.time").items())
        ]

    def memory(self) -> Row:
        memory: Row = {}
        for side in SIDES:
            memory[f"{side}_peak_bytes"] = _count(self.one("memory.peak", side=side))
            memory[f"{side}_held_bytes"] = _count(self.one("memory.held", side=side))
        memory["released_bytes"] = _count(self.one("memory.left"))
        memory["context_bytes"] = {side: _count(self.one("memory.context", side=side)) for side in SIDES}
        return memory
