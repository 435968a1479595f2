"""A server exchanges keys only in its suite's group, whatever `openssl s_client` offers."""

from __future__ import annotations

import re
import subprocess

import pytest

from live.serve.serving import TIMEOUT_S, Running, serving

GROUPS = {"x25519": "X25519", "x448": "X448", "p256": "P-256", "p384": "P-384", "p521": "P-521"}
CURVES = {
    "X25519": "X25519",
    "X448": "X448",
    "prime256v1": "P-256",
    "secp384r1": "P-384",
    "secp521r1": "P-521",
}


def negotiated(server: Running, offered: list[str]) -> str | None:
    """The group negotiated by a client that offers these groups; None if it was refused."""
    command = ["openssl", "s_client", "-connect", server.target, "-tls1_2", "-groups", ":".join(offered)]
    done = subprocess.run(command, input=b"", capture_output=True, check=False, timeout=TIMEOUT_S)
    output = done.stdout.decode(errors="replace")
    found = re.search(r"(?:Server|Peer) Temp Key: (?:ECDH, )?([\w-]+)", output)
    if found is None or "Cipher is (NONE)" in output:
        assert b"handshake failure" in done.stderr, done.stderr
        return None
    return CURVES[found[1]]


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(
    ("exchange", "key"), [("ecdhe_rsa", "rsa2048"), ("ecdhe_ecdsa", "p256"), ("ecdhe_ecdsa", "p384")]
)
def test_keys_are_exchanged_only_in_the_group_of_the_suite(exchange: str, key: str, group: str):
    ours = GROUPS[group]
    # A client that does not list a certificate's curve cannot use that certificate.
    needed = GROUPS[key] if exchange == "ecdhe_ecdsa" else ours
    with serving(f"tls1.2/{exchange}+{group}/{key}/server") as server:
        for other in GROUPS.values():
            others = [name for name in dict.fromkeys([other, needed]) if name != ours]
            if others:
                assert negotiated(server, others) is None
            assert negotiated(server, [*others, ours]) == ours


def test_client_preference_does_not_change_the_key_exchange_group():
    with serving("tls1.2/ecdhe_ecdsa+x25519/p256/mutual") as server:
        # The client has no certificate, so it is refused, but only after the key exchange.
        command = ["openssl", "s_client", "-connect", server.target, "-tls1_2", "-groups", "P-256:X25519"]
        done = subprocess.run(command, input=b"", capture_output=True, check=False, timeout=TIMEOUT_S)
        assert b"Server Temp Key: X25519" in done.stdout, done.stderr
        assert negotiated(server, ["P-256"]) is None
