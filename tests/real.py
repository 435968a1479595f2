"""Measurements for tests: made by the real core, once a suite, so that none of them is impossible."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from shakedown.native import extension
from shakedown.native.scenario import HandshakeId
from shakedown.schema import builtins
from shakedown.schema.measured import Measurement

native = extension()
"""The real core, whatever takes its place in a test."""


@cache
def measurement(suite: str = "tls1.2/dhe_rsa+dh2048/rsa2048/server", repeat: int = 3) -> Measurement:
    """One suite, measured here; the same object every time."""
    found = native.measure(native.canonical(suite), repeat, options=None, progress=None)
    return msgspec.convert(found, Measurement)


def named(suite: str) -> Measurement:
    """A real measurement under another name."""
    return msgspec.structs.replace(measurement("tls1.2/psk"), suite=suite)


def raw(suite: str, repeat: int = 3) -> dict[str, Any]:
    """A measurement as the core returns it."""
    found = builtins(measurement(suite))
    return {**found, "repeat": repeat}


def identity(one: Measurement) -> HandshakeId:
    """Under which name a measurement is kept."""
    return HandshakeId(
        suite=one.suite,
        client_stack=one.client_stack.name,
        server_stack=one.server_stack.name,
        credentials=one.credentials,
    )
