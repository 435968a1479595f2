"""Under which name anything is measured, kept, compared: the handshake's identity."""

from __future__ import annotations

from shakedown.schema.base import Carrier, Object, Text


class StackId(Object, frozen=True, kw_only=True):
    """An implementation that runs suites."""

    name: Text
    version: str


class Identified(Object, frozen=True, kw_only=True):
    """The identity of a handshake: two results may be laid side by side under any of its parts.

    A stack is null where it is unknown: of the two ends of a captured connection. `credentials` says whose
    certificates and keys are presented: `generated`, `generated:PROFILE`, or `user-supplied:FINGERPRINT`;
    null where unknown.
    """

    suite: Text
    client_stack: StackId | None = None
    server_stack: StackId | None = None
    carrier: Carrier = "bare"
    credentials: str | None = None

    @property
    def stacks(self) -> str:
        """`openssl`, or `openssl → rustls` where the two sides differ; nothing where they are unknown."""
        names = [one.name for one in (self.client_stack, self.server_stack) if one is not None]
        return " → ".join(dict.fromkeys(names))
