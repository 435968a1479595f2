"""A handshake as reported by `measure`: each message, and the bytes on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shakedown import _core

KEY = b"shakedown laboratory key of both"
"""The pre-shared key of in-memory handshakes (as in the stack's source)."""


@dataclass(frozen=True)
class Message:
    """A message on the wire: sender, RFC name, and bytes with record header, padding, MAC or tag."""

    sender: str
    name: str
    bytes: int


def measured(suite: str, cache: Path) -> list[Message]:
    """The messages of a suite as `measure` reports them."""
    found = _core.measure(suite, 5, options={"cache": str(cache)})
    return [Message(message["from"], message["name"], message["bytes"]) for message in found["messages"]]


def captured(suites: Sequence[str], folder: Path, cache: Path) -> tuple[Path, Path]:
    """A capture of one handshake of each suite, in order, and the key log to it."""
    capture, key_log = folder / "handshakes.pcap", folder / "keys.log"
    _core.capture(list(suites), str(capture), keylog=str(key_log), options={"cache": str(cache)})
    return capture, key_log


def certificate_files(cache: Path, side: str, keys: str) -> tuple[Path, list[str]]:
    """The private key of a side, and its PEM certificates, leaf first and root last."""
    chain = next(cache.glob(f"x509-*/*/{side}-{keys}.pem"))
    leaf = keys.split("@")[0]
    key = next(cache.glob(f"keys-*/{side}-0-{leaf}.pem"))
    end = "-----END CERTIFICATE-----\n"
    return key, [part + end for part in chain.read_text().split(end) if part.strip()]
