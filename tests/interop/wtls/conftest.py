"""One capture of every kind of WTLS handshake, created once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from interop.wtls.captures import read
from interop.wtls.cases import CASES
from interop.wtls.certificates import Certificate, from_pem
from interop.wtls.decoder import Decoder, decode


@dataclass(frozen=True)
class Captured:
    """The capture, each suite's connection in it, and the roots that were trusted."""

    path: Path
    connections: dict[str, Decoder]
    roots: tuple[Certificate, ...]
    cache: Path


@pytest.fixture(scope="session")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    from shakedown import _core

    folder = tmp_path_factory.mktemp("wtls")
    path, cache = folder / "wtls.pcap", folder / "keys"
    _core.capture(list(CASES), str(path), options={"cache": str(cache)})
    found = read(path)
    assert len(found) == len(CASES)
    connections = {suite: decode(datagrams) for suite, datagrams in zip(CASES, found.values(), strict=True)}
    made = [one for file in cache.rglob("*.pem") for one in from_pem(file.read_text())]
    roots = tuple({one.signed: one for one in made if one.issuer == one.subject}.values())
    return Captured(path, connections, roots, cache)
