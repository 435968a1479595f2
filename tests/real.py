"""Measurements by the real core for tests, one per suite."""

from __future__ import annotations

from functools import cache
from math import sqrt
from typing import Any

import msgspec

from shakedown.native.core import extension
from shakedown.native.scenario import HandshakeId
from shakedown.reporting.columns.measured import student
from shakedown.schema import builtins
from shakedown.schema.measured import Measurement, Spread

native = extension()
"""The real core, even if a test replaces it."""


@cache
def measurement(suite: str = "tls1.2/dhe_rsa+dh2048/rsa2048/server", repeat: int = 3) -> Measurement:
    """One suite, measured here; the same object every time."""
    found = native.measure(native.canonical(suite), repeat, options=None, progress=None)
    return msgspec.convert(found, Measurement)


def named(suite: str) -> Measurement:
    """A real measurement under another name."""
    return msgspec.structs.replace(measurement("tls1.2/psk"), suite=suite)


def known(suite: str, off: float = 0.0) -> Measurement:
    """A real measurement with deviations that give its means a relative uncertainty of `off`."""

    def changed(spread: Spread) -> Spread:
        # On a busy machine, fewer repetitions than requested are used.
        sd = off * spread.mean / student(one.repeat - 1) * sqrt(one.repeat)
        return msgspec.structs.replace(spread, sd=sd, n=one.repeat)

    one = measurement(suite)
    both = one.handshake
    handshake = msgspec.structs.replace(
        both, client_us=changed(both.client_us), server_us=changed(both.server_us)
    )
    return msgspec.structs.replace(one, handshake=handshake)


def raw(suite: str, repeat: int = 3) -> dict[str, Any]:
    """A measurement as the core returns it."""
    found = builtins(measurement(suite))
    return {**found, "repeat": repeat}


def identity(one: Measurement) -> HandshakeId:
    """The identity under which a measurement is kept."""
    return HandshakeId(
        suite=one.suite,
        client_stack=one.client_stack.name,
        server_stack=one.server_stack.name,
        credentials=one.credentials,
    )
