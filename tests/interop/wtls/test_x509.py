"""X.509 certificates in WTLS: OpenSSL's program verifies the certificates that are sent."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from interop.wtls.captures import read
from interop.wtls.decoder import Decoder, decode
from interop.wtls.messages import Certificates
from shakedown import _core
from shakedown.native import captures

SUITES = (
    "wtls/rsa/rsa1024/server",
    "wtls/rsa/rsa1024/mutual",
    "wtls/rsa/rsa512@rsa1024@rsa512/server",
    "wtls/ecdh_ecdsa/160p/server",
    "wtls/ecdh_ecdsa/163k@283k/mutual",
    "wtls/ecdh_ecdsa/256p/mutual/optimized",
)
SECTION = "-----END CERTIFICATE-----\n"


@pytest.fixture(scope="module", params=SUITES)
def captured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Decoder, Path]:
    folder = tmp_path_factory.mktemp("x509")
    options = {"cache": str(folder / "keys"), "certificate_form": "x509"}
    _core.capture([request.param], str(folder / "one.pcap"), options=options)
    (datagrams,) = read(folder / "one.pcap").values()
    return request.param, decode(datagrams), folder


def test_same_bytes_as_measured(captured: tuple[str, Decoder, Path]) -> None:
    suite, connection, folder = captured
    options = {"cache": str(folder / "keys"), "certificate_form": "x509"}
    measured = _core.measure(suite, 1, options=options)
    seen = [(item.sender, item.name, item.record.bytes) for item in connection.items]
    assert seen == [(one["from"], one["name"], one["bytes"]) for one in measured["messages"]]


def test_inspect_names_the_suite(captured: tuple[str, Decoder, Path]) -> None:
    suite, _, folder = captured
    (found,) = captures.inspect(folder / "one.pcap")
    assert found.connection.suite == suite


def test_openssl_verifies_each_chain(
    captured: tuple[str, Decoder, Path], peer: Callable[[str], str], tmp_path: Path
) -> None:
    suite, connection, folder = captured
    openssl = peer("openssl")
    links = suite.split("/")[2].count("@") or 1
    chains = {item.sender: item.body.x509 for item in connection.items if isinstance(item.body, Certificates)}
    assert set(chains) == ({"server", "client"} if suite.endswith("/mutual") else {"server"})
    for sender, chain in chains.items():
        assert len(chain) == links
        names = []
        for number, der in enumerate(chain):
            name = tmp_path / f"{sender}-{number}.pem"
            subprocess.run([openssl, "x509", "-inform", "DER", "-out", name], input=der, check=True)
            names.append(name)
        (kept,) = [file for file in folder.rglob(f"{sender}-*.pem") if "CERTIFICATE" in file.read_text()]
        root = tmp_path / f"{sender}-root.pem"
        root.write_text(kept.read_text().split(SECTION)[-2] + SECTION)
        middle = tmp_path / f"{sender}-middle.pem"
        middle.write_text("".join(name.read_text() for name in names[1:]))
        command = [openssl, "verify", "-auth_level", "0", "-check_ss_sig", "-CAfile", root]
        command += ["-untrusted", middle] if names[1:] else []
        done = subprocess.run([*command, names[0]], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
