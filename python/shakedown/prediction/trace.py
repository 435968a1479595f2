"""Recorded handshakes: what a trace holds, from any source, and reading one strictly.

A trace is one object of ``measure --json``, or of ``inspect --traces-out``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import msgspec

from shakedown.errors import InputError
from shakedown.schema.base import Amount, Count, Side, Text, convert


class _Message(msgspec.Struct, frozen=True, rename={"sender": "from"}):
    """What of a message is priced; the rest of it does not matter."""

    index: Count
    sender: Side
    name: Text
    flight: Count | None
    bytes: Amount
    unit: Count | None = None


class _Operation(msgspec.Struct, frozen=True):
    """What of an operation is priced."""

    side: Side
    message: Count | None
    operation: Text
    algorithm: str
    parameters: str | None
    count: Amount | None = None
    bytes: Amount | None = None


class _Entry(msgspec.Struct, frozen=True):
    """What of an object of ``measure --json`` is priced."""

    suite: Text
    messages: Annotated[tuple[_Message, ...], msgspec.Meta(min_length=1)]
    operations: tuple[_Operation, ...]
    carrier: str | None = None


_DATAGRAM_PROTOCOLS = ("dtls1.2", "dtls1.3", "wtls")


@dataclass(frozen=True, slots=True)
class Message:
    """A handshake message: who sent it, its flight (None for tickets), its bytes on the wire; `unit` is the
    datagram or write that carried it, None where unknown.
    """

    index: int
    sender: Side
    name: str
    flight: int | None
    size_bytes: float
    unit: int | None = None


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
    """A run of messages of one sender, and its bytes."""

    sender: Side
    size_bytes: float


@dataclass(frozen=True)
class Trace:
    """What one handshake of a suite is made of; times of the machine that recorded it are left behind.

    `inside_eap`: it was recorded inside EAP-TLS, so that its hellos have no session IDs for middleboxes.
    """

    suite: str
    messages: tuple[Message, ...]
    operations: tuple[Operation, ...]
    inside_eap: bool = False

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
        return tuple(Flight(run[0].sender, sum(m.size_bytes for m in run)) for run in runs)

    def size_bytes(self, sender: Side) -> float:
        """Bytes that one side sends in the handshake's flights."""
        return sum(flight.size_bytes for flight in self.flights if flight.sender == sender)

    @cached_property
    def protocol(self) -> str:
        """The suite's protocol: ``tls1.3``, ``wtls``, ..."""
        return self.suite.split("/", 1)[0]

    @cached_property
    def datagrams(self) -> bool:
        """Whether the protocol runs over datagrams rather than TCP."""
        return self.protocol in _DATAGRAM_PROTOCOLS


def parse_trace(entry: Mapping[str, Any], where: str) -> Trace:
    """Read one object of ``measure --json``.

    Raises:
        InputError: naming ``where`` and what is missing or wrong.
    """
    try:
        found = convert(entry, _Entry, where)
    except InputError as error:
        raise InputError(f"{error}; accepted: objects of measure --json") from None
    messages = tuple(
        Message(one.index, one.sender, one.name, one.flight, float(one.bytes), one.unit)
        for one in found.messages
    )
    operations = tuple(
        Operation(
            one.side,
            one.message,
            (one.operation, one.algorithm, one.parameters or ""),
            1 if one.count is None else int(one.count),
            int(one.bytes or 0),
        )
        for one in found.operations
    )
    return Trace(found.suite, messages, operations, found.carrier == "eap")
