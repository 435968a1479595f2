"""Wireshark decodes the messages that we report, each with the reported bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from interop.ours import Message, captured, measured
from interop.tshark import connections
from shakedown.api import in_memory
from shakedown.native.scenario import MeasureOptions

# Signatures by RSA and Ed25519 are always of one length, so every byte must agree.
EXACT = [
    "ssl3/rsa/rsa1024/server/rc4-md5",
    "ssl3/dhe_rsa+dh1024/rsa1024/mutual",
    "tls1.0/rsa/rsa512/server",
    "tls1.0/dh_anon+dh2048",
    "tls1.0/dhe_psk+dh512",
    "tls1.1/ecdhe_rsa+p256/rsa2048/requested",
    "tls1.2/psk",
    "tls1.2/rsa_psk/rsa2048",
    "tls1.2/dhe_rsa+ffdhe2048/rsa1024@rsa2048@rsa3072/mutual",
    "tls1.2/ecdhe_ecdsa+x25519/ed25519/mutual/chacha20",
    "tls1.2/rsa/rsa2048/server/resumed",
    "tls1.2/rsa/rsa2048/server/ticket",
    "tls1.3/x25519/ed25519/server",
    "tls1.3/p384/rsa2048/mutual/aes256-gcm",
    "tls1.3/x25519mlkem768/mldsa65/mutual",
    "tls1.3/psk",
    "tls1.3/psk_dhe+x25519",
    "tls1.3/x25519/ed25519/server/resumed",
]
# DER gives signatures by DSA and ECDSA a byte or two more or less (r and s, with or without leading zeros).
VARYING = {
    "tls1.0/dhe_dss+dh1024/dsa1024/mutual": ("ServerKeyExchange", "CertificateVerify"),
    "tls1.2/ecdhe_ecdsa+p256/p256/server": ("ServerKeyExchange",),
    "tls1.3/x25519/p256/mutual": ("CertificateVerify",),
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Callable[[str], dict[str, list[Message]]]:
    """Reads the capture of all suites once."""
    folder = tmp_path_factory.mktemp("capture")
    suites = [*EXACT, *VARYING]
    kept: dict[str, list[Message]] = {}

    def read(program: str) -> dict[str, list[Message]]:
        if not kept:
            found = connections(program, *captured(suites, folder, cache))
            assert len(found) == len(suites)
            kept.update(zip(suites, found, strict=True))
        return kept

    return read


@pytest.mark.parametrize("suite", EXACT)
def test_messages_and_bytes_match_tshark(
    suite: str, seen: Callable, peer: Callable[[str], str], cache: Path
) -> None:
    assert seen(peer("tshark"))[suite] == measured(suite, cache)


@pytest.mark.parametrize("suite", VARYING)
def test_messages_match_tshark_except_signature_lengths(
    suite: str, seen: Callable, peer: Callable[[str], str], cache: Path
) -> None:
    theirs, ours = seen(peer("tshark"))[suite], measured(suite, cache)
    assert [(message.sender, message.name) for message in theirs] == [
        (message.sender, message.name) for message in ours
    ]
    for one, other in zip(theirs, ours, strict=True):
        # These messages are unencrypted or under GCM, so no padding enlarges the difference.
        assert abs(one.bytes - other.bytes) <= (4 if one.name in VARYING[suite] else 0), (one, other)


@pytest.mark.parametrize(("software", "issued"), [("openssl", (2, 1)), ("nginx", (2, 1)), ("none", (0, 0))])
def test_capture_has_tickets_only_where_tls13_issues_them(
    software: str, issued: tuple[int, int], peer: Callable[[str], str], tmp_path: Path
) -> None:
    tickets = {
        "tls1.3/x25519/p256/server": issued[0],
        "tls1.2/rsa/rsa2048/server": 0,
        "tls1.3/x25519/p256/server/resumed": issued[1],
        "tls1.0/rsa/rsa512/server": 0,
    }
    capture, key_log = tmp_path / "all.pcap", tmp_path / "all.keys"
    options = MeasureOptions(server_software=software)
    in_memory.capture(list(tickets), capture, keylog=key_log, options=options)
    for (suite, count), messages in zip(
        tickets.items(), connections(peer("tshark"), capture, key_log), strict=True
    ):
        ours = in_memory.measure(suite, 1, options=options).messages
        assert [one.name for one in messages] == [one.name for one in ours]
        assert [one.name for one in messages].count("NewSessionTicket") == count
