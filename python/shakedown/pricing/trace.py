"""Recorded handshakes: what a trace says, whoever recorded it, and reading one strictly.

A trace is one object of ``measure --json``, or of ``inspect --traces``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from shakedown.errors import InputError
from shakedown.measurement import Side
from shakedown.results.shapes import SIZE, STRING, TEXT, WHOLE, Choice, Some, misfit, one_of

SIDE = one_of("client", "server")
MESSAGE: dict[str, Any] = {
    "index": WHOLE,
    "from": SIDE,
    "name": TEXT,
    "flight": Choice(WHOLE, None),
    "bytes": SIZE,
}
OPERATION: dict[str, Any] = {
    "side": SIDE,
    "message": Choice(WHOLE, None),
    "operation": TEXT,
    "algorithm": STRING,
    "parameters": Choice(STRING, None),
    "count?": Choice(SIZE, None),
    "bytes?": Choice(SIZE, None),
}
TRACE: dict[str, Any] = {"suite": TEXT, "messages": Some(MESSAGE), "operations": [OPERATION]}
"""What every trace must hold, as a shape (see `shakedown.results.shapes`)."""

_DATAGRAM_PROTOCOLS = ("dtls1.2", "wtls")


@dataclass(frozen=True, slots=True)
class Message:
    """A handshake message: who sent it, its flight (None for tickets), its bytes on the wire."""

    index: int
    sender: Side
    name: str
    flight: int | None
    size_bytes: float


@dataclass(frozen=True, slots=True)
class Operation:
    """A public-key call, or one message's symmetric work of one kind, as (operation, algorithm,
    parameters).
    """

    side: Side
    message: int | None
    triple: tuple[str, str, str]
    count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Flight:
    """A run of messages of one sender: its bytes, and the indexes of its messages."""

    sender: Side
    size_bytes: float
    messages: tuple[int, ...]


@dataclass(frozen=True)
class Trace:
    """What one handshake of a suite is made of; times of the machine that recorded it are left behind."""

    suite: str
    messages: tuple[Message, ...]
    operations: tuple[Operation, ...]

    @cached_property
    def flights(self) -> tuple[Flight, ...]:
        """The handshake's flights in order, without what follows the last Finished."""
        runs: list[list[Message]] = []
        for message in self.messages:
            if message.flight is None:
                continue
            if runs and runs[-1][-1].sender == message.sender:
                runs[-1].append(message)
            else:
                runs.append([message])
        return tuple(
            Flight(run[0].sender, sum(m.size_bytes for m in run), tuple(m.index for m in run)) for run in runs
        )

    def size_bytes(self, sender: Side) -> float:
        """Bytes that one side sends in the handshake's flights."""
        return sum(flight.size_bytes for flight in self.flights if flight.sender == sender)

    @cached_property
    def datagrams(self) -> bool:
        """Whether the protocol runs over datagrams rather than TCP."""
        return self.suite.split("/", 1)[0] in _DATAGRAM_PROTOCOLS


def parse_trace(entry: Mapping[str, Any], where: str) -> Trace:
    """Read one object of ``measure --json``.

    Raises:
        InputError: naming ``where`` and what is missing or wrong.
    """
    wrong = misfit(entry, TRACE)
    if wrong:
        raise InputError(f"{where}: {wrong}; accepted: objects of measure --json")
    messages = tuple(
        Message(m["index"], m["from"], m["name"], m["flight"], float(m["bytes"])) for m in entry["messages"]
    )
    operations = tuple(
        Operation(
            o["side"],
            o["message"],
            (o["operation"], o["algorithm"], o["parameters"] or ""),
            1 if o.get("count") is None else int(o["count"]),
            int(o.get("bytes") or 0),
        )
        for o in entry["operations"]
    )
    return Trace(entry["suite"], messages, operations)
