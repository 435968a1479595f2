"""The identity of a handshake, under which it is measured, stored and compared."""

from __future__ import annotations

from shakedown.schema.base import Carrier, Object, Text


class StackId(Object, frozen=True, kw_only=True):
    """An implementation that runs suites."""

    name: Text
    version: str


class Identified(Object, frozen=True, kw_only=True):
    """The identity of a handshake; results can be compared by any of its parts.

    A stack is null if it is unknown, as for captured connections. `credentials` are the certificates and keys
    that are presented: `generated`, `generated:PROFILE`, or `user-supplied:FINGERPRINT`; null if unknown.
    """

    suite: Text
    client_stack: StackId | None = None
    server_stack: StackId | None = None
    carrier: Carrier = "bare"
    credentials: str | None = None

    @property
    def stacks(self) -> str:
        """`openssl`, or `openssl → rustls` if the two sides differ; empty if they are unknown."""
        names = [one.name for one in (self.client_stack, self.server_stack) if one is not None]
        return " → ".join(dict.fromkeys(names))
