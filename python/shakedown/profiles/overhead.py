"""What a device profile says of work outside the primitives: a stack's own, and a TCP connection's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shakedown.profiles.tables import Table

EMPTY_BYTES = 64
"""A Certificate message of fewer bytes holds no certificate."""
WORKS = ("generate", "process")
SIDES = ("client", "server")


def message_kind(name: str, size_bytes: float) -> str:
    """A message's name, an empty list of certificates apart from a real one."""
    return f"{name}, empty" if name == "Certificate" and size_bytes < EMPTY_BYTES else name


def handshake_kind(protocol: str, *, public_keys: bool) -> str:
    """A protocol, handshakes without public-key operations apart: caches stay warm in these, and the same
    message takes a fraction of the time.
    """
    return protocol if public_keys else f"{protocol}, symmetric"


@dataclass(frozen=True, slots=True)
class MessageWork:
    """A stack's own work on a message of one kind: mean and deviation in seconds, and what each KiB adds."""

    mean_s: float
    sd_s: float = 0.0
    per_kib_s: float = 0.0


MessageKey = tuple[str, str, str]
"""Protocol (as `handshake_kind` has it), message name, and ``generate`` or ``process``."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """Work outside the primitives, in seconds: parsing, copying, allocation.

    Either figures for any handshake (per handshake, message and byte), or figures by kind of message, with
    which those per message and byte have no use; ``known`` is False where the profile has neither.
    """

    per_handshake_s: float = 0.0
    per_message_s: float = 0.0
    per_byte_s: float = 0.0
    sd_s: float = 0.0
    stack: str = ""
    messages: Mapping[MessageKey, MessageWork] = field(default_factory=dict)
    handshakes: Mapping[tuple[str, str], MessageWork] = field(default_factory=dict)
    known: bool = False

    def of(self, protocol: str, message: str, work: str, *, public_keys: bool = True) -> MessageWork | None:
        """The stack's work on one message, or None where this profile has none of that kind."""
        kind = handshake_kind(protocol, public_keys=public_keys)
        return self.messages.get((kind, message, work), self.messages.get((protocol, message, work)))

    def outside(self, protocol: str, side: str, *, public_keys: bool = True) -> MessageWork | None:
        """The stack's work outside any message, or None where this profile has none."""
        kind = handshake_kind(protocol, public_keys=public_keys)
        return self.handshakes.get((kind, side), self.handshakes.get((protocol, side)))


@dataclass(frozen=True, slots=True)
class Connection:
    """What a TCP connection costs a side, kernel included, in seconds: set-up to close, and each KiB
    moved.
    """

    server_s: float | None = None
    client_s: float | None = None
    sd_s: float = 0.0
    per_kib_s: float = 0.0

    def of(self, side: str) -> float | None:
        """One side's mean, None where unknown."""
        return self.server_s if side == "server" else self.client_s


def read_overhead(table: Table) -> Overhead:
    """Read ``[overhead]``. Raises `InputError` naming the key and what is accepted."""
    keys = ["per_handshake_us", "per_message_us", "per_byte_us", "sd_us"]
    known = any(key in table for key in keys) or "message" in table or "handshake" in table
    base_s, message_s, byte_s, sd_s = (table.number(key, 0.0) * 1e-6 for key in keys)
    stack = table.text("stack", "")
    messages: dict[MessageKey, MessageWork] = {}
    for one in table.tables("message"):
        protocol, name = one.text("protocol"), one.text("name")
        key = (protocol, name, one.text("work", accepted=WORKS))
        if key in messages:
            raise one.fail(f"duplicate message {' '.join(key)}; accepted: one entry a kind")
        messages[key] = _work(one, ["protocol", "name", "work"])
    handshakes: dict[tuple[str, str], MessageWork] = {}
    for one in table.tables("handshake"):
        side = (one.text("protocol"), one.text("side", accepted=SIDES))
        if side in handshakes:
            raise one.fail(f"duplicate handshake {' '.join(side)}; accepted: one entry a side")
        handshakes[side] = _work(one, ["protocol", "side"])
    table.finish([*keys, "stack", "message", "handshake"])
    return Overhead(base_s, message_s, byte_s, sd_s, stack, messages, handshakes, known)


def _work(table: Table, read: list[str]) -> MessageWork:
    keys = ["mean_us", "sd_us", "per_kib_us"]
    mean_s = table.number("mean_us") * 1e-6
    sd_s, per_kib_s = table.number("sd_us", 0.0) * 1e-6, table.number("per_kib_us", 0.0) * 1e-6
    table.finish([*read, *keys])
    return MessageWork(mean_s, sd_s, per_kib_s)


def read_connection(table: Table) -> Connection:
    """Read ``[connection]``. Raises `InputError` naming the key and what is accepted."""
    keys = ["server_us", "client_us", "sd_us", "per_kib_us"]
    server, client = (table.number(key) * 1e-6 if key in table else None for key in keys[:2])
    sd_s, per_kib_s = (table.number(key, 0.0) * 1e-6 for key in keys[2:])
    table.finish(keys)
    return Connection(server, client, sd_s, per_kib_s)
