"""Recorded handshakes: the content of a trace from any source, and its strict reader.

A trace is one object of ``measure --json``, or of ``inspect --traces-out``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import msgspec
from msgspec import structs

from shakedown.errors import InputError
from shakedown.profiles.software import ServerSoftware
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS, triple_fault
from shakedown.schema.base import MAX_NUMBER, Amount, Count, Side, Text, convert
from shakedown.schema.trace import Triple

_DATAGRAM_PROTOCOLS = ("dtls1.2", "dtls1.3", "wtls")


class Message(msgspec.Struct, frozen=True, rename={"sender": "from", "size_bytes": "bytes"}):
    """A handshake message: who sent it, its flight (None for tickets), its bytes on the wire; `unit` is the
    datagram or write that carried it, None where unknown.
    """

    index: Count
    sender: Side
    name: Text
    flight: Count | None
    size_bytes: Annotated[float, msgspec.Meta(ge=0, le=MAX_NUMBER)]
    unit: Count | None = None


class Operation(msgspec.Struct, frozen=True, rename={"calls": "count"}):
    """A public-key call, or one message's symmetric work of one kind.

    `borrowed`: it is from a measured handshake, because a capture shows this one only in part.
    """

    side: Side
    message: Count | None
    operation: Text
    algorithm: str
    parameters: str | None
    calls: Count | None = None
    bytes: Amount | None = None
    borrowed: bool = False

    @property
    def count(self) -> int:
        """The number of calls; one by default."""
        return 1 if self.calls is None else self.calls

    @property
    def size_bytes(self) -> float:
        return self.bytes or 0

    @property
    def triple(self) -> Triple:
        return self.operation, self.algorithm, self.parameters or ""


class _Entry(msgspec.Struct, frozen=True):
    """The parts of an object of ``measure --json`` that are estimated."""

    suite: Text
    messages: Annotated[tuple[Message, ...], msgspec.Meta(min_length=1)]
    operations: tuple[Operation, ...]
    carrier: str | None = None
    kind: str | None = None


@dataclass(frozen=True)
class Trace:
    """The messages and operations of one handshake of a suite, without the times of the machine that recorded
    it.

    `inside_eap`: it was recorded inside EAP-TLS, so its hellos have no session IDs for middleboxes.
    `software`: that of the server; None: that of the recorded server, which is unknown.
    `unused`: operations of the recorded stack that the handshake does not need.
    `partial`: a capture shows its public-key operations, and no others.
    """

    suite: str
    messages: tuple[Message, ...]
    operations: tuple[Operation, ...]
    inside_eap: bool = False
    software: ServerSoftware | None = None
    unused: tuple[Operation, ...] = ()
    partial: bool = False

    def size_bytes(self, sender: Side) -> float:
        """Bytes that one side sends, tickets included."""
        return sum(message.size_bytes for message in self.messages if message.sender == sender)

    def served_by(self, software: ServerSoftware) -> Trace:
        """The handshake with a server's software, and as many tickets of TLS 1.3 as it issues.

        Additional tickets repeat the last recorded one. Raises `InputError` if there is none.
        """
        if self.protocol != "tls1.3":
            return replace(self, software=software)
        resumption = all(message.name != "Certificate" for message in self.messages)
        wanted = software.tickets_of(resumption=resumption)
        tickets = [message for message in self.messages if message.flight is None]
        if wanted > len(tickets) and not tickets:
            raise InputError(
                f"{self.suite}: its trace has no ticket, and {software.name} issues {wanted}; accepted: a "
                "trace with tickets, or no server software, or --server-software none"
            )
        omitted = {message.index for message in tickets[wanted:]}
        messages = [message for message in self.messages if message.index not in omitted]
        operations = [one for one in self.operations if one.message not in omitted]
        for index in range(len(self.messages), len(self.messages) + wanted - len(tickets)):
            last = tickets[-1].index
            messages.append(structs.replace(tickets[-1], index=index))
            operations += [
                structs.replace(one, message=index) for one in self.operations if one.message == last
            ]
        return replace(self, messages=tuple(messages), operations=tuple(operations), software=software)

    @cached_property
    def protocol(self) -> str:
        """The suite's protocol: ``tls1.3``, ``wtls``, ..."""
        return self.suite.split("/", 1)[0]

    @cached_property
    def datagrams(self) -> bool:
        return self.protocol in _DATAGRAM_PROTOCOLS


def parse_trace(entry: Mapping[str, Any], where: str) -> Trace:
    """Read one object of ``measure --json``. Raises `InputError`, which names the source ``where``."""
    try:
        found = convert(entry, _Entry, where)
    except InputError as error:
        raise InputError(f"{error}; accepted: objects of measure --json") from None
    for one in found.operations:
        if one.operation not in SYMMETRIC_OPERATIONS and (fault := triple_fault(*one.triple)):
            raise InputError(f"{where}: operations: {fault}")
    unused = tuple(one for one in found.operations if _is_unused(one, found.suite))
    used = tuple(one for one in found.operations if one not in unused)
    return Trace(
        found.suite,
        found.messages,
        used,
        found.carrier == "eap",
        unused=unused,
        partial=found.kind == "captured",
    )


def _is_unused(operation: Operation, suite: str) -> bool:
    """Whether the handshake does not need an operation of its stack.

    A client that offers only ``psk_ke`` needs no key share, but libssl cannot be configured to omit it.
    """
    bare_psk = suite == "tls1.3/psk" or suite.startswith("tls1.3/psk/")
    return bare_psk and operation.side == "client" and operation.operation == "keygen"
