"""Work outside the primitives in a device profile: a stack's own work, and the work of a TCP connection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shakedown.profiles.costs import Cost, Triple, read_primitive
from shakedown.profiles.tables import Table
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS
from shakedown.schema.base import SIDES
from shakedown.schema.profiles import Cooling, DeviceConnection

EMPTY_BYTES = 64
"""A smaller Certificate message contains no certificate."""
WORKS = ("generate", "process")


def message_kind(name: str, size_bytes: float) -> str:
    """A message's name; an empty Certificate message has a different one."""
    return f"{name}, empty" if name == "Certificate" and size_bytes < EMPTY_BYTES else name


def handshake_kind(protocol: str, *, public_keys: bool) -> str:
    """A protocol; handshakes without public-key operations have a separate name, because caches stay warm in
    these, and the same message takes a fraction of the time.
    """
    return protocol if public_keys else f"{protocol}, symmetric"


def is_public_key(operation: str) -> bool:
    """Whether an operation is a public-key call, not symmetric work or reading a key."""
    return operation not in SYMMETRIC_OPERATIONS and operation != "import"


def message_key(operations: Iterable[Triple]) -> str:
    """The algorithms of a side's public-key work in a message, joined; empty for none.

    The stack's own work depends on them: it decodes a certificate, sets up a key exchange, converts a point.
    """
    return "+".join(sorted({_kind_of_key(one) for one in operations if one[0] not in SYMMETRIC_OPERATIONS}))


def _likeness(key: str, other: str) -> tuple[int, int]:
    """The similarity of two messages' public-key work: number of common algorithms, then of all algorithms.

    A server's key exchange that is signed with Ed25519 is more similar to one that is signed with ECDSA than
    to an unsigned one, if all use X25519.
    """
    one, two = set(filter(None, key.split("+"))), set(filter(None, other.split("+")))
    shared = len(one & two)
    return shared, -abs(len(one) - len(two)) if shared else 0


def _kind_of_key(triple: Triple) -> str:
    """The algorithm; X25519 and X448 have another name than curves whose points have two coordinates."""
    _, algorithm, parameters = triple
    return "xdh" if parameters in ("x25519", "x448") else algorithm


NO_COOLING = Cooling(0.0, 0.0, 1.0, 1.0)
UNKNOWN_CONNECTION = DeviceConnection(None, None, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class MessageWork:
    """A stack's own work on a kind of message: mean and standard deviation, and time per KiB, in seconds."""

    mean_s: float
    sd_s: float = 0.0
    per_kib_s: float = 0.0


MessageKey = tuple[str, str, str, str]
"""Protocol (from `handshake_kind`), message name, ``generate`` or ``process``, and the public-key work in the
message (from `message_key`; empty: any).
"""
PrimitiveKey = tuple[str, str, Triple]
"""Protocol and message, empty for any, and the operation."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """Work outside the primitives, in seconds: parsing, copying, allocation.

    The figures are either for all handshakes (per handshake, message and byte), or by kind of message; then
    those per message and byte are not used. ``known`` is False if the profile has neither.
    """

    per_handshake_s: float = 0.0
    per_message_s: float = 0.0
    per_byte_s: float = 0.0
    sd_s: float = 0.0
    stack: str = ""
    messages: Mapping[MessageKey, MessageWork] = field(default_factory=dict)
    handshakes: Mapping[tuple[str, str], MessageWork] = field(default_factory=dict)
    primitives: Mapping[PrimitiveKey, Cost] = field(default_factory=dict)
    cooling: Cooling = NO_COOLING
    known: bool = False

    def of(
        self, protocol: str, message: str, work: str, key: str = "", *, public_keys: bool = True
    ) -> MessageWork | None:
        """The stack's work on one message, or None if this profile has no such message.

        If no message with the same public-key work was measured, the result is that of the most similar one
        (`_likeness`); if none is similar, that of any.
        """
        for kind in (handshake_kind(protocol, public_keys=public_keys), protocol):
            found = self.messages.get((kind, message, work, key)) or self._nearest(kind, message, work, key)
            found = found or self.messages.get((kind, message, work, ""))
            if found is not None:
                return found
        return None

    def _nearest(self, kind: str, message: str, work: str, key: str) -> MessageWork | None:
        """The work on the message with the most similar public-key work, or the median of several such."""
        alike = [
            (likeness, one)
            for (*place, other), one in self.messages.items()
            if place == [kind, message, work] and (likeness := _likeness(key, other)) > (0, 0)
        ]
        nearest = max((likeness for likeness, _ in alike), default=None)
        found = sorted((one for likeness, one in alike if likeness == nearest), key=lambda one: one.mean_s)
        return found[(len(found) - 1) // 2] if found else None

    def primitive(self, protocol: str, message: str, triple: Triple) -> Cost | None:
        """An operation's cost in a protocol or message, if it differs from the profile's usual cost."""
        places = ((protocol, message), (protocol, ""), ("", message))
        return next(filter(None, (self.primitives.get((*place, triple)) for place in places)), None)

    def outside(self, protocol: str, side: str, *, public_keys: bool = True) -> MessageWork | None:
        """The stack's work outside any message, or None if this profile has none."""
        kind = handshake_kind(protocol, public_keys=public_keys)
        return self.handshakes.get((kind, side), self.handshakes.get((protocol, side)))


def read_overhead(table: Table, clock_hz: float) -> Overhead:
    """Read ``[overhead]``. Raises `InputError` with the key and the accepted values."""
    keys = ["per_handshake_us", "per_message_us", "per_byte_us", "sd_us"]
    known = any(key in table for key in keys) or "message" in table
    base_s, message_s, byte_s, sd_s = (table.number(key, 0.0) * 1e-6 for key in keys)
    stack = table.text("stack", "")
    messages: dict[MessageKey, MessageWork] = {}
    for one in table.tables("message"):
        protocol, name = one.text("protocol"), one.text("name")
        key = (protocol, name, one.text("work", accepted=WORKS), one.text("key", ""))
        if key in messages:
            raise one.fail(f"duplicate message {' '.join(key).strip()}; accepted: one entry per kind")
        messages[key] = _work(one)
    handshakes: dict[tuple[str, str], MessageWork] = {}
    for one in table.tables("handshake"):
        side = (one.text("protocol"), one.text("side", accepted=SIDES))
        if side in handshakes:
            raise one.fail(f"duplicate handshake {' '.join(side)}; accepted: one entry per side")
        handshakes[side] = _work(one)
    if handshakes and not messages:
        raise table.fail("handshake has entries without message entries; accepted: both")
    primitives: dict[PrimitiveKey, Cost] = {}
    for one in table.tables("primitive"):
        place = (one.text("protocol", ""), one.text("message", ""))
        triple, cost = read_primitive(one, clock_hz, 0)
        primitives[(*place, triple)] = cost
    cooling = _cooling(table.table("cooling"))
    table.finish()
    return Overhead(base_s, message_s, byte_s, sd_s, stack, messages, handshakes, primitives, cooling, known)


def _cooling(table: Table) -> Cooling:
    messages, symmetric = (table.number(key, 0.0, maximum=1.0) for key in ("messages", "symmetric"))
    from_s, at_s = (table.number(key, 1e6, above=0.0) * 1e-6 for key in ("from_us", "at_us"))
    table.finish()
    return Cooling(messages, symmetric, from_s, at_s)


def _work(table: Table) -> MessageWork:
    mean_s = table.number("mean_us") * 1e-6
    sd_s, per_kib_s = table.number("sd_us", 0.0) * 1e-6, table.number("per_kib_us", 0.0) * 1e-6
    table.finish()
    return MessageWork(mean_s, sd_s, per_kib_s)


def read_connection(table: Table) -> DeviceConnection:
    """Read ``[connection]``. Raises `InputError` with the key and the accepted values."""
    server_us, client_us = (table.maybe(key) for key in ("server_us", "client_us"))
    server_s, client_s = (None if us is None else us * 1e-6 for us in (server_us, client_us))
    sd_s, per_kib_s = (table.number(key, 0.0) * 1e-6 for key in ("sd_us", "per_kib_us"))
    cold = [table.number(key, 0.0) for key in ("server_cold", "client_cold")]
    table.finish()
    return DeviceConnection(server_s, client_s, sd_s, per_kib_s, *cold)
