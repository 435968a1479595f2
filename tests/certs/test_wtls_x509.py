"""A user's own X.509 certificates in WTLS handshakes, made by OpenSSL's own program."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def chain(tmp_path: Path, peer: Callable[[str], str]) -> Callable[..., list[str]]:
    """`chain(root_name, extension)`: options of `measure` for a chain that was made so."""
    openssl = peer("openssl")

    def make(root_name: str = "/CN=Root", extension: str = "keyUsage=keyEncipherment") -> list[str]:
        (tmp_path / "extensions").write_text(f"subjectAltName=DNS:gw.example\n{extension}\n")
        key = ["-newkey", "rsa:1024", "-nodes"]
        for command in (
            ["req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", root_name],
            ["req", *key, "-keyout", "key.pem", "-out", "request", "-subj", "/CN=gw"],
            [
                *("x509", "-req", "-in", "request", "-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", "5"),
                *("-extfile", "extensions", "-out", "chain.pem"),
            ],
        ):
            subprocess.run([openssl, *command], cwd=tmp_path, capture_output=True, check=True)
        files = {"--chain": "chain.pem", "--key": "key.pem", "--ca": "ca.pem"}
        return [word for option, name in files.items() for word in (option, str(tmp_path / name))]

    return make


def test_a_root_with_a_long_name_is_asked_for_by_its_key(
    chain: Callable[..., list[str]], shakedown: Run
) -> None:
    part = "x" * 60
    options = chain(f"/O={part}/OU={part}/ST={part}/L={part}/CN={part}")
    done = shakedown("measure", "wtls/rsa", "--repeat", "1", "--json", *options)
    assert done.returncode == 0, done.stderr
    [measured] = json.loads(done.stdout)
    assert measured["suite"] == "wtls/rsa/rsa1024/server"
    hello = next(one for one in measured["messages"] if one["name"] == "ClientHello")
    # Suite, no parameters, and the hash instead of more than 255 bytes of name.
    assert hello["bytes"] < 100


def test_a_key_for_something_else_is_wrong_input(chain: Callable[..., list[str]], shakedown: Run) -> None:
    options = chain(extension="keyUsage=digitalSignature")
    done = shakedown("measure", "wtls/rsa", "--repeat", "1", *options)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {options[1]}: a WTLS peer would refuse it: ")
    assert done.stderr.endswith("does not allow key encipherment (key usage)\n")
    assert shakedown("measure", "tls1.2/ecdhe_rsa", "--repeat", "1", *options).returncode == 0
