"""Work that a capture does not contain (symmetric work, decoding of keys), taken from a measured handshake.

A suite determines which side computes which public-key operation, but not how often a side hashes, derives
and encrypts. This work is taken from a measured handshake of the suite, message by message; the range covers
other stacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from shakedown.prediction.symmetric import Part
from shakedown.prediction.trace import Message, Operation, Trace
from shakedown.profiles.overhead import is_public_key
from shakedown.schema.base import SIDES, Side

STACK_SPREAD = 1.4
"""Factor, ×/÷, by which this work differs between stacks. For both sides of five suites of TLS 1.2 and 1.3 on
two devices, rustls needed 0.73 to 1.12 times OpenSSL's time, and once 0.55.
"""
_LIKE_BYTES = ("digest", "cipher")
"""Operations whose bytes grow with the message."""


def completed(captured: Trace, measured: Trace) -> Trace:
    """A captured handshake with all work of a measured one of its suite except public-key operations.

    Messages are matched by sender, name and order; surplus messages of a name have the work of the last one.
    A message that the measured handshake lacks is hashed by both sides.
    """
    theirs = {place: message for message, place in _places(measured.messages)}
    last = {place[:2]: message for message, place in _places(measured.messages)}
    hidden = [one for one in measured.operations if not is_public_key(one.operation)]
    taken = [structs.replace(one, borrowed=True) for one in hidden if one.message is None]
    for message, place in _places(captured.messages):
        like = theirs.get(place) or last.get(place[:2])
        if like is None:
            taken += [_hashed(message, side, hidden) for side in SIDES]
            continue
        longer = message.size_bytes / like.size_bytes if like.size_bytes else 1.0
        taken += [
            structs.replace(
                one,
                message=message.index,
                bytes=one.size_bytes * (longer if one.operation in _LIKE_BYTES else 1.0),
                borrowed=True,
            )
            for one in hidden
            if one.message == like.index
        ]
    return replace(captured, operations=(*captured.operations, *taken), partial=False)


def of_stack(part: Part) -> Part:
    """A part of the borrowed work, with the range of other stacks."""
    method = "; ".join(filter(None, (part.method, "not in the capture: as in a measured handshake")))
    scaled = "scaled" if part.basis == "own" else part.basis
    return replace(part, time=part.time.scaled(1.0, STACK_SPREAD), basis=scaled, method=method)


def _places(messages: Sequence[Message]) -> list[tuple[Message, tuple[Side, str, int]]]:
    """Messages with their sender, name, and number among messages of this sender and name."""
    seen: dict[tuple[Side, str], int] = {}
    found = []
    for message in messages:
        alike = message.sender, message.name
        seen[alike] = seen.get(alike, 0) + 1
        found.append((message, (*alike, seen[alike])))
    return found


def _hashed(message: Message, side: Side, like: Sequence[Operation]) -> Operation:
    """One side's hashing of a message, with the digest that it uses most often."""
    digests = [one.algorithm for one in like if one.side == side and one.operation == "digest"]
    return Operation(
        side=side,
        message=message.index,
        operation="digest",
        algorithm=max(digests, key=digests.count, default="sha256"),
        parameters="",
        calls=1,
        bytes=message.size_bytes,
        borrowed=True,
    )
