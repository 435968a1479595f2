"""Handshakes of `measure`, written as packets, are read back by `inspect`, also WTLS and old protocols."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from shakedown.api import in_memory
from shakedown.native import captures
from shakedown.schema.captured import Connection

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.toml"
OTHERS = [
    "wtls/rsa/rsa1024/mutual",
    "wtls/ecdh_ecdsa/163k/server/resumed",
    "ssl3/rsa/rsa1024",
    "tls1.1/rsa/rc4-sha",
    "tls1.3/psk",
]
SUITES = tomllib.loads(QUICKSTART.read_text(encoding="utf-8"))["suites"] + OTHERS


@pytest.fixture(scope="module")
def read_back(tmp_path_factory: pytest.TempPathFactory) -> list[Connection]:
    folder = tmp_path_factory.mktemp("capture")
    in_memory.capture(SUITES, folder / "all.pcap", keylog=folder / "all.keys")
    found = captures.inspect(folder / "all.pcap", folder / "all.keys")
    connections = sorted((one.connection for one in found), key=lambda one: one.index)
    assert found.problem is None
    assert len(connections) == len(SUITES)
    return connections


@pytest.mark.parametrize("place", range(len(SUITES)), ids=SUITES)
def test_inspect_reads_back_what_measure_recorded(place: int, read_back: list[Connection]) -> None:
    connection, measured = read_back[place], in_memory.measure(SUITES[place], 1)
    assert connection.flights == measured.flights
    pairs = zip(connection.messages, measured.messages, strict=True)
    for theirs, ours in pairs:
        assert (theirs.sender, theirs.name, theirs.flight) == (ours.sender, ours.name, ours.flight)
        # A DER signature of DSA or ECDSA is a byte or two longer or shorter from one handshake to the next.
        assert abs(theirs.bytes - ours.bytes) <= 4
