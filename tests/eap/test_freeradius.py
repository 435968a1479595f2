"""Shakedown's EAP peer with FreeRADIUS."""

from __future__ import annotations

import json

import pytest

import supplied
from eap.freeradius import SECRET, free_port

SUITES = ("tls1.2/ecdhe_ecdsa", "tls1.3/x25519/p256")
RESUMED_ROUND_TRIPS = {"tls1.2/ecdhe_ecdsa": 3, "tls1.3/x25519/p256": 4}


@pytest.mark.parametrize("suite", SUITES)
def test_a_peer_authenticates(authenticate, radius, suite):
    found = authenticate(radius, suite)
    assert (found["kind"], found["completed"], found["failed"], found["resumed"]) == ("live", 1, {}, 0)
    assert found["suite"].endswith("/mutual")
    # Each flight fits one fragment: the peer sends identity, hello, flight and acknowledgement.
    assert found["round_trips"] == 4
    assert len(found["msk_sha256"]) == 64
    assert found["eap_bytes"] < found["radius_bytes"]
    times = found["authentication_s"]
    assert 0 < times["p50"] == times["mean"] == times["max"]
    # One authentication has no tail.
    assert times["p95"] is times["p99"] is None


@pytest.mark.parametrize("suite", SUITES)
def test_a_peer_resumes(authenticate, radius, suite):
    found = authenticate(radius, suite, "--resume")
    assert (found["completed"], found["resumed"], found["failed"]) == (1, 1, {})
    assert found["round_trips"] == RESUMED_ROUND_TRIPS[suite]


def test_wrong_secret_is_distinguished_from_an_absent_server(shakedown, radius, site):
    arguments = ("--suite", "tls1.2/ecdhe_ecdsa", *site.peer(), "--timeout", "1s", "--json")
    done = shakedown("eap", "peer", "--server", radius.address, "--secret", "another", *arguments)
    assert done.returncode == 1
    (found,) = json.loads(done.stdout)
    assert (found["completed"], found["failed"]) == (0, {"no_answer": 1})
    assert found["authentication_s"] is None
    assert "no response" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("suite", SUITES)
def test_a_server_of_another_authority_is_refused_with_an_alert(shakedown, radius, site, tmp_path, suite):
    stranger = supplied.chain(tmp_path / "stranger", "p256")
    done = shakedown(
        "eap", "peer", "--server", radius.address, "--secret", radius.secret, "--suite", suite,
        *site.peer()[:4], "--ca", stranger / "ca.pem", "--json",
    )  # fmt: skip
    assert done.returncode == 1
    (found,) = json.loads(done.stdout)
    # The names are equal, the keys are not; OpenSSL chooses the alert.
    (cause,) = found["failed"]
    assert cause in ("tls_unknown_ca", "tls_decrypt_error", "tls_bad_certificate")
    (line,) = done.stderr.splitlines()
    assert "client failed" in line


@pytest.mark.parametrize("suite", SUITES)
def test_fragments_of_a_few_bytes_arrive(authenticate, radius, suite):
    # The peer sends about 1,000 bytes, in nearly as many round trips as FreeRADIUS accepts.
    found = authenticate(radius, suite, "--fragment", "40")
    assert (found["completed"], found["failed"]) == (1, {})
    assert 20 < found["round_trips"] <= 50


def test_absent_server_is_reported(shakedown, site):
    port = free_port()
    done = shakedown(
        "eap", "peer", "--server", f"127.0.0.1:{port}", "--secret", SECRET, "--suite", SUITES[0],
        *site.peer(), "--timeout", "0.5s",
    )  # fmt: skip
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "no response" in line
    assert "no process listens there" in line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--server", "here", "--suite", SUITES[0]), "here: not an address; accepted: ADDRESS:PORT"),
        (("--server", "127.0.0.1:1812", "--suite", "tls1.2/psk"), "EAP-TLS authenticates by certificates"),
        (("--server", "127.0.0.1:1812", "--suite", "wtls/rsa"), "EAP-TLS carries TLS 1.0 to 1.3"),
        (("--server", "127.0.0.1:1812", "--suite", SUITES[0], "--fragment", "0"), "fragment: 0; accepted:"),
        (
            ("--server", "127.0.0.1:1812", "--suite", SUITES[0], "--count", "0"),
            "authentications: 0; accepted:",
        ),
        (
            ("--server", "127.0.0.1:1812", "--suite", SUITES[0], "--rate", "0"),
            "a rate of 0 starts nothing; accepted:",
        ),
        (("--server", "127.0.0.1:1812", "--suite", SUITES[0], "--ca", "no.pem"), "no.pem"),
    ],
)
def test_wrong_input_is_reported_in_one_line(shakedown, arguments, said):
    done = shakedown("eap", "peer", "--secret", SECRET, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert said in line
