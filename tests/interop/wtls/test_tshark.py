"""Wireshark's dissector and the second decoder on the same datagrams.

The dissector has limits (packet-wtls.c, 4.0): it reports a certificate with a curve's key as malformed and
ignores the rest of the datagram, decodes only type and length of key exchange messages, does not decrypt, and
starts session identifiers one byte early.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from interop.wtls import worked
from interop.wtls.captures import WTLS_PORT, write
from interop.wtls.cases import CASES
from interop.wtls.conftest import Captured
from interop.wtls.decoder import LEVELS, Alert, Decoder, Item, decode
from interop.wtls.messages import Certificates, ClientHello, ServerHello

BULK_NAMES = {0: "Null", 1: "RC5 CBC 40", 3: "RC5 CBC", 5: "DES CBC", 6: "3DES CBC cwEDE40"}
MAC_NAMES = {1: "SHA 40", 2: "SHA 80", 3: "SHA", 6: "MD5 80", 7: "MD5"}


@dataclass(frozen=True)
class Frame:
    source: bytes
    port: int
    records: list[dict[str, Any]]
    malformed: bool


def listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def dissect(tshark: str, capture: Path) -> list[Frame]:
    command = [
        tshark,
        "-r",
        str(capture),
        "-d",
        f"udp.port=={WTLS_PORT},wtls",
        "-T",
        "json",
        "--no-duplicate-keys",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    frames = []
    for packet in json.loads(done.stdout):
        layers = packet["_source"]["layers"]
        port, client = int(layers["udp"]["udp.srcport"]), layers["ip"]["ip.src"]
        if port == WTLS_PORT:
            port, client = int(layers["udp"]["udp.dstport"]), layers["ip"]["ip.dst"]
        source = bytes(map(int, client.split(".")))
        records = listed(layers["wtls"]["wtls.record_tree"])
        frames.append(Frame(source, port, records, "_ws.malformed" in json.dumps(layers)))
    return frames


def with_curve(item: Item) -> bool:
    """Whether the dissector gives up here."""
    return isinstance(item.body, Certificates) and any(one.key_type != "rsa" for one in item.body.chain)


def compare(frames: list[Frame], connection: Decoder) -> int:
    """Compares each record that the dissector reaches with ours; returns their number."""
    compared = 0
    for number, frame in enumerate(frames):
        items = [item for item in connection.items if item.datagram == number]
        reached = next((at + 1 for at, item in enumerate(items) if with_curve(item)), len(items))
        assert frame.malformed == any(map(with_curve, items))
        assert len(frame.records) == reached
        for shown, item in zip(frame.records, items, strict=False):
            same_record(shown, item, frame.malformed and with_curve(item))
            compared += 1
    return compared


def same_record(shown: dict[str, Any], item: Item, cut: bool) -> None:
    record = item.record
    assert int(shown["wtls.rec_type"]) == record.content_type
    assert int(shown["wtls.rec_seq"]) == record.sequence
    assert int(shown["wtls.rec_length"]) == len(record.fragment)
    assert ("wtls.rec_cipher" in shown) == record.protected
    if isinstance(item.body, Alert):
        level = LEVELS[int(shown["wtls.alert"]["wtls.alert.level"])]
        assert (level, int(shown["wtls.alert"]["wtls.alert.description"])) == (
            item.body.level,
            item.body.description,
        )
    if not item.handshake:
        assert "wtls.handshake" not in shown
        return
    message = shown["wtls.handshake_tree"]
    assert int(message["wtls.handshake.type"]) == item.handshake[0]
    assert int(message["wtls.handshake.length"]) == len(item.handshake) - 3
    if isinstance(item.body, ClientHello):
        same_client_hello(message["wtls.handshake.client_hello"], item.body)
    if isinstance(item.body, ServerHello):
        same_server_hello(message["wtls.handshake.server_hello"], item.body)
    if isinstance(item.body, Certificates) and not cut:
        same_certificates(message["wtls.handshake.certificates"], item.body)


def same_client_hello(shown: dict[str, Any], hello: ClientHello) -> None:
    prefix = "wtls.handshake.client_hello."
    ciphers = [f"{BULK_NAMES[bulk]}, {MAC_NAMES[mac]}" for bulk, mac in hello.cipher_suites]
    assert [str(one).strip() for one in listed(shown[prefix + "ciphers"][prefix + "cipher"])] == ciphers
    assert int(shown[prefix + "sequence_mode"]) == hello.sequence_mode
    assert int(shown[prefix + "refresh"]) == hello.key_refresh
    for field, offers in (
        ("client_keys_id", hello.client_key_ids),
        ("trusted_keys_id", hello.trusted_key_ids),
    ):
        block = shown.get(prefix + field, {})
        suites = [int(one) for one in listed(block.get(prefix + "key.key_exchange"))]
        assert suites == [one.suite for one in offers]
        trees = listed(block.get(prefix + "key.key_exchange_tree"))
        for tree, offer in zip(trees, offers, strict=True):
            assert int(tree[prefix + "parameter_index"]) == offer.parameters.index
            if offer.identifier.kind == "text":
                assert tree[prefix + "ident_name"] == offer.identifier.text


def same_server_hello(shown: dict[str, Any], hello: ServerHello) -> None:
    prefix = "wtls.handshake.server_hello."
    cipher = shown[prefix + "cipher"]
    assert (int(cipher[prefix + "cipher.bulk"]), int(cipher[prefix + "cipher.mac"])) == hello.cipher_suite
    assert int(shown[prefix + "key"], 0) == hello.client_key_id
    assert int(shown[prefix + "compression"], 0) == hello.compression_method
    assert int(shown[prefix + "sequence_mode"]) == hello.sequence_mode
    assert int(shown[prefix + "refresh"]) == hello.key_refresh


def same_certificates(shown: dict[str, Any] | str, body: Certificates) -> None:
    trees = listed(shown.get("wtls.handshake.certificate")) if isinstance(shown, dict) else []
    prefix = "wtls.handshake.certificate."
    assert len(trees) == len(body.chain)
    for tree, one in zip(trees, body.chain, strict=True):
        assert tree[prefix + "issuer.name"] == one.issuer.text
        assert tree[prefix + "subject.name"] == one.subject.text
        assert int(tree[prefix + "public.type"]) == 2
        assert int(tree[prefix + "signature.signature"]) == 8 * len(one.signature)


def test_every_handshake_matches_tshark(captured: Captured, peer: Callable[[str], str]) -> None:
    frames = dissect(peer("tshark"), captured.path)
    by_client: dict[tuple[bytes, int], list[Frame]] = {}
    for frame in frames:
        by_client.setdefault((frame.source, frame.port), []).append(frame)
    assert len(by_client) == len(CASES)
    for own, connection in zip(by_client.values(), captured.connections.values(), strict=True):
        curves = sum(with_curve(item) for item in connection.items)
        compared = compare(own, connection)
        # If no certificate stops the dissector, it reaches all records.
        assert compared == len(connection.items) if not curves else 0 < compared < len(connection.items)


@pytest.mark.parametrize("alert", [worked.NO_CONNECTION, worked.BAD_RECORD_MAC])
def test_alerts_match_tshark(alert: bytes, tmp_path: Path, peer: Callable[[str], str]) -> None:
    """Unencrypted alerts after a handshake: sequence number 2, or 65535 without a connection."""
    if alert == worked.BAD_RECORD_MAC:
        alert = alert[:1] + b"\0\1" + alert[3:]  # the server's next number
    datagrams = [*worked.FULL, ("client", worked.CLIENT_DATA), ("server", alert)]
    write(tmp_path / "alert.pcap", datagrams)
    frames = dissect(peer("tshark"), tmp_path / "alert.pcap")
    assert compare(frames, decode(datagrams)) == 11
