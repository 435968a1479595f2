"""A second decoder of WTLS, written only from the specification, to check our datagrams.

It is strict: every byte belongs to a field, each record contains one message, and sequence numbers follow the
specification (WAP-261-WTLS, sections 9 and 10). Encrypted data is not decoded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from interop.wtls import messages
from interop.wtls.messages import Body, ClientHello, ServerHello
from interop.wtls.reader import Malformed, Reader, whole
from interop.wtls.structures import KeyExchangeId

Sender = Literal["client", "server"]
CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION_DATA = 1, 2, 3, 4
LEVELS = {1: "warning", 2: "critical", 3: "fatal"}


@dataclass(frozen=True)
class Record:
    """A record: header and fragment; `sequence` is None where the header has none."""

    type: int
    content_type: int
    protected: bool
    has_length: bool
    sequence: int | None
    fragment: bytes
    bytes: int


@dataclass(frozen=True)
class Alert:
    level: str
    description: int
    checksum: bytes


@dataclass(frozen=True)
class Item:
    """A record and what is in it; `handshake` is the message with its header."""

    sender: Sender
    datagram: int
    record: Record
    name: str
    handshake: bytes = b""
    body: Body | Alert | None = None


def records(datagram: bytes) -> tuple[Record, ...]:
    """Splits a datagram into records."""
    reader, found = Reader(datagram, "datagram"), []
    while reader.left:
        start = reader.at
        kind = reader.u8()
        if kind & 0x10:
            raise reader.fail("the reserved bit is set")
        if kind & 0x0F not in (CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION_DATA):
            raise reader.fail(f"content type {kind & 0x0F}")
        sequence = reader.u16() if kind & 0x40 else None
        fragment = reader.v16(1) if kind & 0x80 else reader.take(reader.left)
        if not fragment:
            raise reader.fail("an empty record")
        has_length = bool(kind & 0x80)
        protected = bool(kind & 0x20)
        found.append(Record(kind, kind & 0x0F, protected, has_length, sequence, fragment, reader.at - start))
    return tuple(found)


def checksum(record: bytes) -> bytes:
    """An alert's checksum over a record received: 4-byte blocks, zero padded, XORed."""
    total = 0
    for at in range(0, len(record), 4):
        total ^= int.from_bytes(record[at : at + 4].ljust(4, b"\0"))
    return total.to_bytes(4)


def _alert(reader: Reader) -> Alert:
    return Alert(LEVELS[reader.choice(1, 2, 3)], reader.u8(), reader.take(4))


@dataclass
class Decoder:
    """Reads a connection, datagram after datagram."""

    items: list[Item] = field(default_factory=list)
    client_hello: ClientHello | None = None
    server_hello: ServerHello | None = None
    _next: dict[Sender, int] = field(default_factory=lambda: {"client": 0, "server": 0})
    _changed: set[Sender] = field(default_factory=set)
    _datagrams: int = 0

    @property
    def offer(self) -> KeyExchangeId | None:
        """What the server chose among the client's offers; client_key_id counts from 1."""
        if self.client_hello is None or self.server_hello is None:
            return None
        number, offers = self.server_hello.client_key_id, self.client_hello.client_key_ids
        if number == 0 and self.resumed:
            return None
        if not 1 <= number <= len(offers):
            raise Malformed(f"client_key_id {number} of {len(offers)} offers")
        return offers[number - 1]

    @property
    def resumed(self) -> bool:
        """Whether the server resumed the session that the client offered."""
        hellos = self.client_hello, self.server_hello
        return bool(hellos[0] and hellos[1] and hellos[0].session_id) and (
            hellos[0].session_id == hellos[1].session_id  # type: ignore[union-attr]
        )

    def datagram(self, sender: Sender, data: bytes) -> list[Item]:
        """Reads one datagram and returns its items. Raises `Malformed`."""
        found = [self._item(sender, record) for record in records(data)]
        self._datagrams += 1
        self.items += found
        return found

    def _item(self, sender: Sender, record: Record) -> Item:
        name, handshake, body = "ApplicationData", b"", None
        self._number(sender, record)
        if record.protected != (sender in self._changed):
            if not (record.content_type == ALERT and not record.protected):
                raise Malformed(f"{sender}: protected {record.protected} at the wrong time")
        elif record.protected:
            name = {HANDSHAKE: "Finished", ALERT: "Alert", APPLICATION_DATA: "ApplicationData"}[
                record.content_type
            ]
            return Item(sender, self._datagrams, record, name)
        match record.content_type:
            case 1:
                name = "ChangeCipherSpec"
                whole(record.fragment, name, lambda reader: reader.choice(1))
                self._changed.add(sender)
                self._next[sender] = 0
            case 2:
                name, body = "Alert", whole(record.fragment, "alert", _alert)
            case 3:
                name, handshake = "", record.fragment
                name, body = self._handshake(record.fragment)
            case _:
                raise Malformed(f"{sender}: application data in the clear")
        return Item(sender, self._datagrams, record, name, handshake, body)

    def _number(self, sender: Sender, record: Record) -> None:
        if record.sequence is None:
            raise Malformed(f"{sender}: a record without a sequence number on datagrams")
        no_connection = (
            record.content_type == ALERT and not record.protected and record.fragment[1:2] == b"\x05"
        )
        if no_connection:
            if record.sequence != 65535:
                raise Malformed(f"no_connection with sequence number {record.sequence}")
            return
        if record.sequence != self._next[sender]:
            raise Malformed(f"{sender}: sequence number {record.sequence}, {self._next[sender]} expected")
        self._next[sender] += 1

    def _handshake(self, fragment: bytes) -> tuple[str, Body]:
        reader = Reader(fragment, "handshake message")
        number = reader.choice(*messages.NAMES)
        content = reader.v16()
        reader.end()
        suite = None if self.offer is None else self.offer.suite
        body = messages.body(number, content, suite)
        if isinstance(body, ClientHello):
            self.client_hello = body
        if isinstance(body, ServerHello):
            self.server_hello = body
        return messages.NAMES[number], body


def decode(datagrams: Iterable[tuple[Sender, bytes]]) -> Decoder:
    """Reads a whole connection."""
    decoder = Decoder()
    for sender, data in datagrams:
        decoder.datagram(sender, data)
    return decoder
