"""The decoder: a handshake computed by hand, and invalid input that it must refuse."""

from __future__ import annotations

import hashlib

import pytest

from interop.wtls import worked
from interop.wtls.certificates import certificate
from interop.wtls.curves import NUMBERED
from interop.wtls.decoder import Alert, Decoder, checksum, decode
from interop.wtls.messages import Certificates, ClientHello
from interop.wtls.reader import Malformed, whole
from interop.wtls.signatures import rsa_verifies
from interop.wtls.structures import RSAPublicKey


def test_worked_handshake_is_decoded() -> None:
    decoder = decode([*worked.FULL, ("client", worked.CLIENT_DATA)])
    names = [item.name for item in decoder.items]
    assert names == [
        *("ClientHello", "ServerHello", "Certificate", "ServerHelloDone"),
        *("ClientKeyExchange", "ChangeCipherSpec", "Finished", "ChangeCipherSpec", "Finished"),
        "ApplicationData",
    ]
    assert [item.record.sequence for item in decoder.items] == [0, 0, 1, 2, 1, 2, 0, 3, 0, 1]
    hello = decoder.client_hello
    assert isinstance(hello, ClientHello)
    assert [one.suite for one in hello.client_key_ids] == [8, 14]
    assert hello.client_key_ids[1].identifier.kind == "key_hash_sha"
    assert hello.trusted_key_ids[0].identifier.text == "Test Root; Test Org; US"
    assert hello.cipher_suites == ((3, 3), (6, 2), (5, 3))
    assert decoder.offer == hello.client_key_ids[0]
    chain = decoder.items[2].body
    assert isinstance(chain, Certificates)
    leaf = chain.chain[0]
    root = RSAPublicKey(65537, worked.ROOT_MODULUS, b"")
    digest = hashlib.sha1(leaf.signed).digest()
    assert rsa_verifies(root, digest, leaf.signature)
    assert not rsa_verifies(root, digest[::-1], leaf.signature)


def test_worked_alerts_are_decoded() -> None:
    decoder = decode([("client", worked.CLIENT_HELLO), ("server", worked.NO_CONNECTION)])
    assert decoder.items[-1].body == Alert("critical", 5, bytes.fromhex("42fa49bd"))
    assert checksum(worked.CLIENT_DATA).hex() == "42fa49bd"
    # An unencrypted alert on a connection that has changed its cipher.
    decoder = decode(worked.FULL)
    alert = bytes.fromhex("c20001") + worked.BAD_RECORD_MAC[3:]
    assert decoder.datagram("server", alert)[0].body == Alert("warning", 20, bytes.fromhex("42fa49bd"))


def test_worked_curve_certificate_verifies() -> None:
    leaf = whole(worked.EC_CERTIFICATE, "certificate", certificate)
    curve = NUMBERED[leaf.parameters.index]
    root = curve.point(worked.EC_ROOT_POINT)
    digest = hashlib.sha1(leaf.signed).digest()
    assert curve.verifies(root, digest, leaf.signature)
    assert not curve.verifies(root, digest, leaf.signature[:-1] + b"\0")
    assert curve.point(bytes(leaf.key))  # type: ignore[arg-type]


@pytest.mark.parametrize("number", NUMBERED)
def test_base_points_have_their_orders(number: int) -> None:
    curve = NUMBERED[number]
    assert curve.contains(curve.base)
    assert curve.times(curve.order, curve.base) is None
    size = curve.field_bytes
    for form in (2, 3):
        x, y = curve.point(bytes([form]) + curve.base[0].to_bytes(size))
        assert x == curve.base[0]
        assert curve.point(b"\4" + x.to_bytes(size) + y.to_bytes(size)) == (x, y)


@pytest.mark.parametrize("number", range(len(worked.FULL)))
def test_datagram_with_missing_or_extra_bytes_is_refused(number: int) -> None:
    """Any datagram cut short anywhere, or with a byte more, is refused."""
    before = worked.FULL[:number]
    sender, data = worked.FULL[number]
    starts = {0}
    for record in Decoder().datagram("client", data) if number == 0 else decode(worked.FULL).items:
        if number and record.datagram == number:
            starts.add(max(starts) + record.record.bytes)
    for size in range(1, len(data)):
        if size in starts:
            continue  # whole records
        with pytest.raises(Malformed):
            decode([*before, (sender, data[:size])])
    with pytest.raises(Malformed):
        decode([*before, (sender, data + b"\0")])


@pytest.mark.parametrize(
    ("at", "value", "why"),
    [
        (0, 0xD3, "reserved"),
        (0, 0xC5, "content type"),
        (2, 1, "sequence number 1, 0 expected"),
        (5, 3, "3 is none of"),
        (8, 2, "2 is none of"),
        (28, 19, "19 is none of"),
        (29, 1, "parameter index 1 where there are no parameters"),
        (32, 2, "no curve has the number 2"),
    ],
)
def test_altered_client_hello_is_refused(at: int, value: int, why: str) -> None:
    data = bytearray(worked.CLIENT_HELLO)
    data[at] = value
    with pytest.raises(Malformed, match=why):
        decode([("client", bytes(data))])


def test_server_choice_that_was_not_offered_is_refused() -> None:
    data = bytearray(worked.SERVER_FLIGHT)
    at = data.index(bytes.fromhex("5e55104e")) + 4
    data[at] = 3
    with pytest.raises(Malformed, match="client_key_id 3 of 2 offers"):
        decode([worked.FULL[0], ("server", bytes(data))])
