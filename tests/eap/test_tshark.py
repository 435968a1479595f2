"""tshark decodes our packets: RADIUS, EAP and the reassembled TLS."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from capture.peers import capturing
from eap.freeradius import SECRET
from eap.test_serve import SUITES, serving

FIELDS = (
    "radius.code",
    "radius.authenticator.valid",
    "eap.code",
    "eap.type",
    "eap.tls.reassembled.len",
    "tls.handshake.type",
    "_ws.malformed",
)
REQUEST, ACCEPT, CHALLENGE = "1", "2", "11"


def decoded(path: Path, port: int) -> list[dict[str, str]]:
    """The fields of each packet."""
    command = ["tshark", "-r", str(path), "-d", f"udp.port=={port},radius", "-Y", "radius"]
    command += ["-o", f"radius.shared_secret:{SECRET}", "-o", "radius.validate_authenticator:TRUE"]
    command += ["-T", "fields", "-E", "separator=|"]
    for one in FIELDS:
        command += ["-e", one]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [dict(zip(FIELDS, line.split("|"), strict=True)) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("suite", SUITES)
def test_tshark_decodes_tls_inside_eap_inside_radius(peer, shakedown, site, tmp_path, suite):
    peer("tshark")
    path = tmp_path / "eap.pcapng"
    with serving(suite, *site.authenticator(), "--fragment", "300") as port:
        try:
            with capturing(path, range(port, port + 1)):
                done = shakedown(
                    "eap", "peer", "--server", f"127.0.0.1:{port}", "--secret", SECRET, "--suite", suite,
                    *site.peer(), "--fragment", "300",
                )  # fmt: skip
        except PermissionError as error:
            pytest.skip(f"may not capture: {error}")
    assert done.returncode == 0, done.stderr
    packets = decoded(path, port)
    assert [one["_ws.malformed"] for one in packets if one["_ws.malformed"]] == []
    codes = [one["radius.code"] for one in packets]
    assert codes[::2] == [REQUEST] * (len(codes) // 2)
    assert codes[1::2] == [CHALLENGE] * (len(codes) // 2 - 1) + [ACCEPT]
    # tshark knows the secret and checks the authenticators.
    answers = packets[1::2]
    assert {one["radius.authenticator.valid"] for one in answers} <= {"1", "True"}
    assert {one["eap.code"] for one in packets[::2]} == {"2"}
    assert [one["eap.code"] for one in answers] == ["1"] * (len(answers) - 1) + ["3"]
    assert [one["eap.type"] for one in packets[:2]] == ["1", "13"]
    handshake = [kind for one in packets for kind in one["tls.handshake.type"].split(",") if kind]
    # Hellos are unencrypted in every version, in TLS 1.2 both certificates are, too.
    assert handshake[:2] == ["1", "2"]
    assert handshake.count("11") == (2 if suite.startswith("tls1.2") else 0)
    assert any(one["eap.tls.reassembled.len"] for one in packets)
