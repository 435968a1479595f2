"""Captured connections as rows of the tidy table; see `shakedown.results.tidy` for the quantities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from shakedown.results.tidy import SCHEMA, Row

if TYPE_CHECKING:
    from shakedown.results.captures import Capture

_DIRECTIONS = {"client": "client_to_server", "server": "server_to_client"}


def to_table(captures: Sequence[Capture], provenance: str) -> pl.DataFrame:
    """Connections and counts of captures as a table with the columns of `SCHEMA`."""
    empty: Row = dict.fromkeys(SCHEMA)
    rows = [
        {**empty, "provenance": provenance, "kind": "captured", "capture": capture["capture"], **row}
        for capture in captures
        for row in _rows(capture)
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def _rows(capture: Capture) -> Iterator[Row]:
    for item, kind in enumerate(capture["kinds"]):
        about = {"suite": kind["suite"], "item": item}
        yield {**about, "quantity": "capture.connections", "value": float(kind["count"]), "unit": "1"}
    for connection in capture["connections"]:
        place = {"suite": connection["suite"], "connection": connection["index"]}
        for row in _connection(connection):
            yield {**place, **row}


def _connection(connection: Mapping[str, Any]) -> Iterator[Row]:
    def figure(quantity: str, unit: str, value: float | None, **columns: object) -> Iterator[Row]:
        if value is not None:
            yield {"quantity": quantity, "unit": unit, "value": float(value), **columns}

    yield from figure("handshake.duration", "s", connection["handshake_s"])
    for side, direction in _DIRECTIONS.items():
        yield from figure("handshake.bytes", "bytes", connection["bytes"][direction], side=side)
    yield from figure("handshake.bytes", "bytes", connection["bytes"]["total"])
    for side, direction in _DIRECTIONS.items():
        sealed = connection["encrypted"] and connection["encrypted"][direction]["bytes"]
        yield from figure("handshake.sealed", "bytes", sealed, side=side)
    yield from figure("handshake.flights", "1", connection["flights"])
    if connection["retransmissions"] is not None:
        for side, direction in _DIRECTIONS.items():
            again = connection["retransmissions"][direction]
            yield from figure("retransmission.segments", "1", again["segments"], side=side)
            yield from figure("retransmission.bytes", "bytes", again["bytes"], side=side)
    for item, message in enumerate(connection["messages"]):
        place = {
            "item": item,
            "message_index": message["index"],
            "message": message["name"],
            "sender": message["from"],
            "flight": message["flight"],
        }
        yield from figure("message.bytes", "bytes", message["bytes"], **place)
        for quantity, key in (
            ("message.at", "time_s"),
            ("message.wait", "wait_s"),
            ("message.wait.sender", "peer_s"),
            ("message.wait.network", "network_s"),
        ):
            yield from figure(quantity, "s", message[key], **place)
