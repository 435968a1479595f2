"""The contents of one handshake, from any source: messages in order, and the operations in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeVar

from msgspec import Meta, structs

from shakedown.schema.base import Amount, Class, Count, Kind, Object, Side, Text, opposite
from shakedown.schema.identity import Identified

T = TypeVar("T", bound=Object)

Index = Annotated[int, Meta(ge=0, le=2**31 - 1)]
"""The number of a message, a flight or a unit: an integer column of the table of results holds it."""

Triple = tuple[str, str, str]
"""(operation, algorithm, parameters): the same in traces, device profiles and `primitives`."""


class Message(Object, frozen=True, kw_only=True, rename={"sender": "from"}):
    """One handshake message.

    `flight` is null for messages that belong to no flight (TLS 1.3 tickets). `unit` is the datagram or write
    that carried the message, counted from 1 in each direction, null if unknown.
    """

    index: Index
    sender: Side
    name: Text
    flight: Index | None
    bytes: Amount
    unit: Index | None = None
    retransmissions: Count = 0

    @property
    def receiver(self) -> Side:
        return opposite(self.sender)


class Operation(Object, frozen=True, kw_only=True, rename={"class_": "class"}):
    """One public-key call, or one kind of symmetric work in a message: `count` calls over `bytes`."""

    side: Side
    message: Index | None
    operation: Text
    algorithm: str
    parameters: str | None
    class_: Class
    count: Amount = 1
    bytes: Amount = 0

    @property
    def triple(self) -> Triple:
        return self.operation, self.algorithm, self.parameters or ""


class ByteCounts(Object, frozen=True, kw_only=True):
    """Bytes sent."""

    client_to_server: Amount
    server_to_client: Amount
    total: Amount

    def of(self, side: Side) -> int | float:
        return self.client_to_server if side == "client" else self.server_to_client


class Trace(Identified, frozen=True, kw_only=True):
    """A recorded handshake, with the fields that all kinds of traces have."""

    kind: Kind
    bytes: ByteCounts
    flights: Count
    messages: Sequence[Message]
    operations: Sequence[Operation]


class CapturedTrace(Trace, frozen=True, kw_only=True):
    """A captured handshake: its operations are those of its suite, without times."""

    kind: Literal["captured"]
    messages: tuple[Message, ...]
    operations: tuple[Operation, ...]


def bare(trace: Trace) -> Trace:
    """Removes the fields that only a trace's kind has: times, samples."""
    return structs.replace(
        _as(Trace, trace),
        messages=tuple(_as(Message, one) for one in trace.messages),
        operations=tuple(_as(Operation, one) for one in trace.operations),
    )


def _as(kind: type[T], one: T) -> T:
    """Converts an object to a base class: keeps only that class's fields."""
    return kind(**{field: getattr(one, field) for field in kind.__struct_fields__})


PRINTED = {
    "trace": (CapturedTrace, "An object of the file that inspect --traces-out writes."),
}
