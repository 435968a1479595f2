"""Certificates and captures in place of a user's."""

from __future__ import annotations

import time
from pathlib import Path

from shakedown import native
from shakedown.api import in_memory


def chain(folder: Path, keys: str, side: str = "server", **more: object) -> Path:
    """A new chain in a folder: chain.pem, key.pem, ca.pem."""
    native.certs(
        {"do": "make", "keys": keys, "out": str(folder), "side": side, "now": int(time.time()), **more}
    )
    return folder


def capture(folder: Path, *suites: str) -> Path:
    """One handshake of each suite: gateway.pcap and gateway.keys."""
    folder.mkdir(exist_ok=True)
    paths = folder / "gateway.pcap", folder / "gateway.keys"
    for path in paths:
        path.unlink(missing_ok=True)
    in_memory.capture(suites, paths[0], keylog=paths[1])
    return folder / "gateway.pcap"


def table(side: str, folder: Path | str) -> str:
    """A side's table of an experiment."""
    return f'[{side}]\nchain = "{folder}/chain.pem"\nkey = "{folder}/key.pem"\nca = "{folder}/ca.pem"\n'
