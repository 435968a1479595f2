"""What a capture does not show: symmetric work and the reading of keys, taken from a measured handshake.

A suite determines who computes which public-key operation, but not how often a side hashes, derives and
encrypts. A captured handshake is estimated with this work of a measured one of the suite, message by message;
the range contains what other stacks need.
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
"""How far, ×/÷, this work differs between stacks. Of both sides of five suites of TLS 1.2 and 1.3, estimated
on two devices, rustls's was 0.73 to 1.12 times OpenSSL's, and once 0.55.
"""
_LIKE_BYTES = ("digest", "cipher")
"""Operations over a whole message: of a longer one they have more bytes."""


def completed(captured: Trace, measured: Trace) -> Trace:
    """A captured handshake with the work of a measured one of its suite that is no public-key operation.

    Work belongs to the message of the same sender and name, counted from the first; further messages of a
    name are as the last. Both sides hash a message that the measured handshake does not have.
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
    """A part of the borrowed work as another stack may have it."""
    method = "; ".join(filter(None, (part.method, "not in the capture: as in a measured handshake")))
    scaled = "scaled" if part.basis == "own" else part.basis
    return replace(part, time=part.time.scaled(1.0, STACK_SPREAD), basis=scaled, method=method)


def _places(messages: Sequence[Message]) -> list[tuple[Message, tuple[Side, str, int]]]:
    """Messages with their sender, name and number among those alike."""
    seen: dict[tuple[Side, str], int] = {}
    found = []
    for message in messages:
        alike = message.sender, message.name
        seen[alike] = seen.get(alike, 0) + 1
        found.append((message, (*alike, seen[alike])))
    return found


def _hashed(message: Message, side: Side, like: Sequence[Operation]) -> Operation:
    """A message in one side's hash of the handshake, which most of its other messages are in."""
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
