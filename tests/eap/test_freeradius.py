"""Our peer against FreeRADIUS."""

from __future__ import annotations

import json

import pytest

SUITES = ("tls1.2/ecdhe_ecdsa", "tls1.3/x25519/p256")
RESUMED_ROUND_TRIPS = {"tls1.2/ecdhe_ecdsa": 3, "tls1.3/x25519/p256": 4}


@pytest.mark.parametrize("suite", SUITES)
def test_a_peer_authenticates(authenticate, radius, suite):
    found = authenticate(radius, suite)
    assert (found["kind"], found["completed"], found["failed"], found["resumed"]) == ("live", 1, {}, 0)
    assert found["suite"].endswith("/mutual")
    # The server's flight fits one fragment, and so does the peer's: identity, hello, flight, acknowledgement.
    assert found["round_trips"] == 4
    assert len(found["msk_sha256"]) == 64
    assert found["eap_bytes"] < found["radius_bytes"]
    times = found["authentication_s"]
    assert 0 < times["p50"] <= times["p95"] <= times["p99"] <= times["max"]


@pytest.mark.parametrize("suite", SUITES)
def test_a_peer_resumes(authenticate, radius, suite):
    found = authenticate(radius, suite, "--resume")
    assert (found["completed"], found["resumed"], found["failed"]) == (1, 1, {})
    assert found["round_trips"] == RESUMED_ROUND_TRIPS[suite]


def test_a_wrong_secret_is_told_from_a_server_that_is_not_there(shakedown, radius, site):
    arguments = ("--suite", "tls1.2/ecdhe_ecdsa", *site.peer(), "--timeout", "1s", "--json")
    done = shakedown("eap", "peer", "--server", radius.address, "--secret", "another", *arguments)
    assert done.returncode == 1
    (found,) = json.loads(done.stdout)
    assert (found["completed"], found["failed"]) == (0, {"no_answer": 1})
    assert found["authentication_s"] is None
    assert "no answer" in done.stderr
    assert len(done.stderr.splitlines()) == 1
