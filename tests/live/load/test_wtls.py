"""WTLS over UDP, and mutual TLS, against the program's own server."""

from __future__ import annotations

import pytest

from live.serve.serving import serving


@pytest.mark.parametrize(
    "suite",
    [
        "wtls/ecdh_anon+163k",
        "wtls/rsa/rsa1024/server",
        "wtls/ecdh_ecdsa/163k/mutual",
        "tls1.3/x25519/p256/mutual",
        "tls1.2/ecdhe_ecdsa+x25519/p256/mutual",
        "tls1.2/psk",
    ],
)
def test_every_wtls_suite_completes_with_our_server(load, suite):
    with serving(suite) as server:
        status, found, err = load(
            server.target, suite, "--rate", "100/s", "--duration", "1s", "--clients", "5"
        )
        counted = server.stop()
    assert status == 0, err
    assert found["failed"] == {}
    assert found["completed"] == found["planned"] > 50
    # A certificate that both sides can have is checked; anonymous and pre-shared keys have none.
    has_certificates = "anon" not in suite and "psk" not in suite
    assert found["certificate_checked"] == ("generated" if has_certificates else "no")
    assert counted["handshakes"]["full"] == found["completed"] + 1


def test_wtls_sessions_are_resumed(load):
    suite = "wtls/ecdh_ecdsa/163k/server/resumed"
    with serving(suite) as server:
        status, found, err = load(
            f"wtls://{server.target}", suite, "--rate", "100/s", "--duration", "1s", "--clients", "3"
        )
    assert status == 0, err
    assert found["resumed"]["asked"] == found["resumed"]["confirmed"] == found["completed"] > 50
