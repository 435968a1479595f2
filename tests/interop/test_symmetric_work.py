"""Recorded symmetric work: for each message, the bytes that its protocol prescribes.

The expected bytes are computed from the messages' bytes on the wire and from the RFCs (2246, 5246, 7366,
8446) or WAP-261-WTLS, and not from the recordings. An operation has the bytes that are passed to its call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from shakedown.api import in_memory
from shakedown.native.scenario import MeasureOptions
from shakedown.schema import builtins

SIDES = ("client", "server")
HEADER, TYPE, VERIFY_DATA = 5, 1, 12
FINISHED = 4 + VERIFY_DATA  # up to TLS 1.2: type, length of three bytes, verify_data
PSEUDO_HEADER = (
    8 + 1 + 2 + 2
)  # sequence number, type, version, length: what a MAC covers besides the fragment
TAG = 16


@dataclass(frozen=True)
class Recorded:
    """One handshake's messages and operations."""

    messages: Sequence[Any]
    operations: Sequence[Any]

    def work(self, side: str, operation: str, message: int | None = None) -> list[tuple[str, int, int]]:
        """A side's operations of a kind that processed bytes: algorithm, count, bytes."""
        return [
            (one["algorithm"], one["count"], one["bytes"])
            for one in self.operations
            if (one["side"], one["operation"]) == (side, operation)
            and message in (None, one["message"])
            and one["bytes"]
        ]

    def total(self, side: str, operation: str, algorithm: str) -> int:
        return sum(size for name, _, size in self.work(side, operation) if name == algorithm)

    def named(self, name: str) -> list[Any]:
        return [one for one in self.messages if one["name"] == name]

    def handshake(self) -> list[Any]:
        return [one for one in self.messages if one["name"] != "ChangeCipherSpec"]


def recorded(suite: str) -> Recorded:
    found = builtins(in_memory.measure(suite, 3, options=MeasureOptions(tickets=0)))
    return Recorded(found["messages"], found["operations"])


@dataclass(frozen=True)
class Record:
    """A cipher suite up to TLS 1.2.

    Attributes:
        explicit: bytes of the IV or nonce that are sent in each record.
        key_block: bytes of keys and IVs that both directions take from it.
        transcript: the hash of the handshake's messages.
        block: the cipher's block, for a cipher in CBC mode.
        mac: the MAC's hash; empty for a cipher that authenticates by itself.
    """

    cipher: str
    explicit: int
    key_block: int
    transcript: str
    block: int = 0
    mac: str = ""

    def finished(self) -> tuple[int, int, int, int]:
        """For a Finished: bytes ciphered by sender and by receiver, bytes under the MAC, record size."""
        plain = self.explicit + FINISHED
        if not self.mac:
            return plain + TAG, plain + TAG, 0, HEADER + plain + TAG
        if not self.block:
            return plain + 20, plain + 20, PSEUDO_HEADER + FINISHED, HEADER + plain + 20
        # Encrypt-then-MAC (RFC 7366); the sender's padding is made inside the call.
        padded = (plain // self.block + 1) * self.block
        return plain, padded, PSEUDO_HEADER + padded, HEADER + padded + 20


SHA1 = "hmac-sha1"
RECORDS = {
    "tls1.0/rsa/rsa2048/server": Record("aes-256-cbc", 0, 2 * (20 + 32 + 16), "md5-sha1", 16, SHA1),
    "tls1.1/rsa/rsa2048/server/rc4-sha": Record("rc4", 0, 2 * (20 + 16), "md5-sha1", 0, SHA1),
    "tls1.2/rsa/rsa2048/server/aes256-sha": Record("aes-256-cbc", 16, 2 * (20 + 32 + 16), "sha256", 16, SHA1),
    "tls1.2/rsa/rsa2048/server/aes128-gcm": Record("aes-128-gcm", 8, 2 * (16 + 4), "sha256"),
    "tls1.2/ecdhe_rsa+x25519/rsa2048/mutual/aes256-gcm": Record("aes-256-gcm", 8, 2 * (32 + 4), "sha384"),
    "tls1.2/ecdhe_rsa+x25519/rsa2048/server/chacha20": Record(
        "chacha20-poly1305", 0, 2 * (32 + 12), "sha256"
    ),
    "tls1.2/psk/aes128-sha": Record("aes-128-cbc", 16, 2 * (20 + 16 + 16), "sha256", 16, SHA1),
}


@pytest.mark.parametrize("suite", RECORDS)
def test_finished_is_encrypted_and_authenticated(suite: str) -> None:
    found, suite_record = recorded(suite), RECORDS[suite]
    sent, received, authenticated, record = suite_record.finished()
    finished = found.named("Finished")
    assert [one["bytes"] for one in finished] == [record, record]
    for message in finished:
        for side in SIDES:
            ciphered = sent if side == message["from"] else received
            assert found.work(side, "cipher", message["index"]) == [(suite_record.cipher, 1, ciphered)]
            macs = [(suite_record.mac, 1, authenticated)] if suite_record.mac else []
            assert found.work(side, "mac", message["index"]) == macs
    for side in SIDES:
        assert len(found.work(side, "cipher")) == 2, "nothing else is enciphered"
        assert len(found.work(side, "mac")) == (2 if suite_record.mac else 0)


@pytest.mark.parametrize("suite", RECORDS)
def test_every_handshake_byte_is_hashed_once(suite: str) -> None:
    """Each side hashes all messages once, both Finished included, as they are before encryption."""
    found = recorded(suite)
    plain = sum(FINISHED if one["name"] == "Finished" else one["bytes"] - HEADER for one in found.handshake())
    for side in SIDES:
        assert found.total(side, "digest", RECORDS[suite].transcript) == plain


@pytest.mark.parametrize("suite", RECORDS)
def test_the_prf_makes_master_secret_key_block_and_both_verify_data(suite: str) -> None:
    found, suite_record = recorded(suite), RECORDS[suite]
    name = f"tls1-prf-{suite_record.transcript}"
    for side in SIDES:
        exchange = [one["index"] for one in found.named("ClientKeyExchange")]
        assert found.work(side, "prf", exchange[0]) == [(name, 1, 48)]
        for message in found.named("Finished"):
            assert found.work(side, "prf", message["index"]) == [(name, 1, VERIFY_DATA)]
        assert found.total(side, "prf", name) == 48 + suite_record.key_block + 2 * VERIFY_DATA


TLS_1_3 = {
    "tls1.3/x25519/rsa2048/server": ("aes-128-gcm", "sha256", 16),
    "tls1.3/x25519/rsa2048/mutual/aes256-gcm": ("aes-256-gcm", "sha384", 32),
    "tls1.3/p256/rsa2048/server/chacha20": ("chacha20-poly1305", "sha256", 32),
    "tls1.3/psk_dhe+x25519": ("aes-128-gcm", "sha256", 16),
}
HASH_BYTES = {"sha256": 32, "sha384": 48}


@pytest.mark.parametrize("suite", TLS_1_3)
def test_tls_1_3_encrypts_each_message_without_a_record_mac(suite: str) -> None:
    found = recorded(suite)
    cipher, hashing, _ = TLS_1_3[suite]
    for message in found.handshake():
        open_ = message["name"] in ("ClientHello", "ServerHello")
        for side in SIDES:
            expected = [] if open_ else [(cipher, 1, message["bytes"] - HEADER - TAG)]
            assert found.work(side, "cipher", message["index"]) == expected
            macs = found.work(side, "mac", message["index"])
            # An HMAC over the transcript's hash makes a Finished; a PSK's binder is one more of that kind.
            finishing = message["name"] == "Finished"
            binder = "psk" in suite and message["name"] == "ClientHello"
            assert macs == ([(f"hmac-{hashing}", 1, HASH_BYTES[hashing])] if finishing or binder else [])


@pytest.mark.parametrize("suite", [suite for suite in TLS_1_3 if "psk" not in suite])
def test_tls_1_3_hashes_every_handshake_byte_once(suite: str) -> None:
    found = recorded(suite)
    plain = 0
    for one in found.handshake():
        open_ = one["name"] in ("ClientHello", "ServerHello")
        plain += one["bytes"] - HEADER - (0 if open_ else TYPE + TAG)
    for side in SIDES:
        assert found.total(side, "digest", TLS_1_3[suite][1]) == plain


@pytest.mark.parametrize("suite", [suite for suite in TLS_1_3 if "psk" not in suite])
def test_tls_1_3_derives_its_schedule(suite: str) -> None:
    """Three extractions, five traffic and exporter secrets, resumption, two Finished keys; keys and IVs.

    The two "derived" secrets of RFC 8446, section 7.1, are derived within an extraction and not recorded.
    """
    found = recorded(suite)
    _, hashing, key = TLS_1_3[suite]
    secrets = 3 + 5 + 1 + 2
    for side in SIDES:
        expected = secrets * HASH_BYTES[hashing] + 4 * (key + 12)
        assert found.total(side, "prf", f"hkdf-{hashing}") == expected
        assert sum(count for _, count, _ in found.work(side, "prf")) == secrets + 4 * 2


@dataclass(frozen=True)
class Wtls:
    """A cipher suite of WTLS: algorithms, the MAC's size, the block, and key bytes per direction."""

    cipher: str
    hash: str
    mac_bytes: int
    block: int
    keys: int


WTLS = {
    "wtls/rsa/rsa1024/server/rc5-sha": Wtls("rc5-32/16-cbc", "sha1", 20, 8, 20 + 16 + 8),
    "wtls/ecdh_ecdsa/160p/mutual/rc5-sha": Wtls("rc5-32/16-cbc", "sha1", 20, 8, 20 + 16 + 8),
    "wtls/rsa/rsa1024/mutual/3des-sha80": Wtls("des-ede3-cbc", "sha1", 10, 8, 20 + 24 + 8),
    "wtls/rsa/rsa1024/server/des-md5": Wtls("des-cbc", "md5", 16, 8, 16 + 8 + 8),
    "wtls/rsa/rsa1024/server/null-sha40": Wtls("", "sha1", 5, 0, 20),
}
WTLS_FINISHED = 3 + VERIFY_DATA
WTLS_PSEUDO_HEADER = 2 + 1 + 2  # sequence number, record type, length


@pytest.mark.parametrize("suite", WTLS)
def test_wtls_finished_is_encrypted_and_authenticated(suite: str) -> None:
    """content + MAC + padding are enciphered; the MAC covers number, type, length and content."""
    found, parts = recorded(suite), WTLS[suite]
    fragment = WTLS_FINISHED + parts.mac_bytes
    if parts.block:
        fragment = (fragment // parts.block + 1) * parts.block
    for message in found.named("Finished"):
        assert message["bytes"] == HEADER + fragment
        for side in SIDES:
            ciphers = [(parts.cipher, 1, fragment)] if parts.cipher else []
            assert found.work(side, "cipher", message["index"]) == ciphers
            assert found.work(side, "mac", message["index"]) == [
                (f"hmac-{parts.hash}", 1, WTLS_PSEUDO_HEADER + WTLS_FINISHED)
            ]
            assert found.work(side, "prf", message["index"]) == [(f"wtls-prf-{parts.hash}", 1, VERIFY_DATA)]


@pytest.mark.parametrize("suite", WTLS)
def test_wtls_hashes_the_handshake_for_each_finished(suite: str) -> None:
    """The engine keeps the messages and hashes all that came before again for each Finished."""
    found, parts = recorded(suite), WTLS[suite]
    before = sum(one["bytes"] - HEADER for one in found.handshake() if one["name"] != "Finished")
    first, second = found.named("Finished")
    for side in SIDES:
        assert found.work(side, "digest", first["index"]) == [(parts.hash, 1, before)]
        assert found.work(side, "digest", second["index"]) == [(parts.hash, 1, before + WTLS_FINISHED)]


@pytest.mark.parametrize("suite", WTLS)
def test_wtls_makes_a_master_secret_and_a_block_of_keys_for_each_direction(suite: str) -> None:
    found, parts = recorded(suite), WTLS[suite]
    name = f"wtls-prf-{parts.hash}"
    for side in SIDES:
        for message in found.named("ChangeCipherSpec"):
            assert found.work(side, "prf", message["index"]) == [(name, 1, parts.keys)]
        assert found.total(side, "prf", name) == 20 + 2 * parts.keys + 2 * VERIFY_DATA


@pytest.mark.parametrize("suite", [*RECORDS, *TLS_1_3, *WTLS])
def test_counted_symmetric_operations_have_bytes(suite: str) -> None:
    """Operations recorded with a count have bytes; key set-ups have neither."""
    for one in recorded(suite).operations:
        if one["operation"] in ("cipher", "mac", "prf"):
            assert (one["count"] > 0) == (one["bytes"] > 0), one
