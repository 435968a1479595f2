"""Our datagrams, decoded by a decoder that was written from the specification alone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from typing import TypeVar

import pytest

from interop.wtls.cases import CASES, NUMBERS, ORDERS, cipher, finished_bytes
from interop.wtls.certificates import Certificate
from interop.wtls.conftest import Captured
from interop.wtls.curves import curve
from interop.wtls.decoder import Decoder, checksum
from interop.wtls.messages import (
    CertificateRequest,
    Certificates,
    CertificateVerify,
    ClientKeyExchange,
    ServerKeyExchange,
)
from interop.wtls.signatures import rsa_verifies, signed_by
from interop.wtls.structures import SUITES, ECParameters, PrimeField, RSAPublicKey
from shakedown import _core
from shakedown.native import captures

Body = TypeVar("Body")


def sorted_by_index(connections: Iterable[captures.Inspected]) -> list[captures.Inspected]:
    return sorted(connections, key=lambda one: int(one.connection.index))


NOW_S = 1767225600  # 2026-01-01, the verification time
EXPLICIT_ORDERS = {
    # SEC 2, version 2.0, and FIPS 186-4.
    "163r": 0x040000000000000000000292FE77E70C12A4234C33,
    "256p": 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
    "283k": 0x01FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFE9AE2ED07577265DFF7F94451E061E163C61,
    "283r": 0x03FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEF90399660FC938A90165B042A7CEFADB307,
}


def all_of(connection: Decoder, kind: type[Body]) -> list[tuple[str, Body]]:
    return [(item.sender, item.body) for item in connection.items if isinstance(item.body, kind)]


def keys(suite: str) -> list[str]:
    return suite.split("/")[2].split("@")


each_suite = pytest.mark.parametrize("suite", CASES)


@each_suite
def test_same_messages_and_bytes_as_measured(captured: Captured, suite: str) -> None:
    seen = [(item.sender, item.name, item.record.bytes) for item in captured.connections[suite].items]
    measured = _core.measure(suite, 1, options={"cache": str(captured.cache)})
    assert seen == [(one["from"], one["name"], one["bytes"]) for one in measured["messages"]]
    for sender, direction in (("client", "client_to_server"), ("server", "server_to_client")):
        assert sum(size for who, _, size in seen if who == sender) == measured["bytes"][direction]


def test_inspect_names_the_suite_of_each_handshake(captured: Captured) -> None:
    """Except for sessions established outside the capture."""
    found = [one.connection.suite for one in sorted_by_index(captures.inspect(captured.path))]
    assert found == [None if suite.endswith("/resumed") else suite for suite in CASES]


@each_suite
def test_message_order_and_flights_follow_the_specification(captured: Captured, suite: str) -> None:
    """The order is the specification's, and a flight is sent in one datagram."""
    items = captured.connections[suite].items
    flights = [list(group) for _, group in groupby(items, key=lambda item: item.datagram)]
    assert [[(item.sender, item.name) for item in flight] for flight in flights] == ORDERS[CASES[suite]]


@each_suite
def test_record_headers_and_numbers_follow_the_specification(captured: Captured, suite: str) -> None:
    """Sequence numbers include the ChangeCipherSpec and restart after it; each header is complete."""
    for item in captured.connections[suite].items:
        assert item.record.has_length
        assert item.record.protected == (item.name == "Finished")
        if item.name == "Finished":
            assert item.record.sequence == 0
            assert item.record.bytes == finished_bytes(suite)
    for sender in ("client", "server"):
        own = [item for item in captured.connections[suite].items if item.sender == sender]
        assert [item.record.sequence for item in own[:-1]] == list(range(len(own) - 1))


@each_suite
def test_hellos_match_the_suite(captured: Captured, suite: str) -> None:
    connection = captured.connections[suite]
    client, server = connection.client_hello, connection.server_hello
    assert client is not None
    assert server is not None
    bulk, mac, _ = cipher(suite)
    assert (bulk, mac) in client.cipher_suites
    assert server.cipher_suite == (bulk, mac)
    assert server.compression_method == 0
    assert 0 in client.compression_methods
    assert client.sequence_mode == server.sequence_mode == 2
    assert server.key_refresh <= client.key_refresh
    assert client.random != server.random
    assert client.time_s == server.time_s == NOW_S
    assert connection.resumed == suite.endswith("/resumed")
    if connection.resumed:
        assert client.session_id == server.session_id
        return
    assert not client.session_id
    assert connection.offer is not None
    wanted = re.split(r"[/+]", suite)[1]
    name = SUITES[connection.offer.suite].lower()
    assert name == wanted or re.fullmatch(rf"{wanted}_(512|768)", name)
    if suite == "wtls/shared_secret":
        assert connection.offer.identifier.kind != "null"
    if CASES[suite] == "optimised":
        assert connection.offer.identifier.kind != "null"


def chains(connection: Decoder) -> Iterator[tuple[str, tuple[Certificate, ...]]]:
    for sender, body in all_of(connection, Certificates):
        yield sender, body.chain


def same_kind(root: Certificate, key: str) -> bool:
    if isinstance(root.key, RSAPublicKey):
        return key == f"rsa{root.key.modulus.bit_length()}"
    if root.parameters.explicit is None:
        return root.parameters.index == NUMBERS.get(key)
    return curve(root.parameters).order == EXPLICIT_ORDERS.get(key)


@pytest.mark.parametrize("suite", [suite for suite in CASES if "anon" not in suite and "shared" not in suite])
def test_certificates_match_the_suite_and_verify(captured: Captured, suite: str) -> None:
    """Fields fit the suite's name, and each signature is the next certificate's, up to a trusted root."""
    connection, described = captured.connections[suite], keys(suite)
    described = described if len(described) > 1 else described * 2
    for sender, chain in chains(connection):
        if sender == "client" and CASES[suite] == "requested":
            assert chain == ()
            continue
        assert len(chain) == len(described) - 1
        for number, (key, one) in enumerate(zip(described, chain, strict=False)):
            assert one.not_before_s <= NOW_S <= one.not_after_s
            fields = one.subject.text.split("; ")
            assert ("T=ca" in fields) == (number > 0)
            if key.startswith("rsa"):
                assert one.key_type == "rsa"
                assert isinstance(one.key, RSAPublicKey)
                assert (one.key.modulus.bit_length(), one.key.exponent) == (int(key[3:]), 65537)
            else:
                assert one.key_type == ("ecdsa" if number else "ecdh")
                assert isinstance(one.key, bytes)
                assert one.key[0] in (2, 3), "compressed"
                curve(one.parameters).point(one.key)
                assert one.parameters.index == NUMBERS.get(key, 255)
        for one, issuer in pairwise(chain):
            assert one.issuer == issuer.subject
            assert signed_by(one, issuer)
        assert chain[-1].issuer != chain[-1].subject, "the root stays at home"
        # A chain's last signature is made on the root's own curve, so only a few of the roots are tried.
        likely = [root for root in captured.roots if same_kind(root, described[-1])]
        assert [root for root in likely if signed_by(chain[-1], root)]


@pytest.mark.parametrize("key", EXPLICIT_ORDERS)
def test_explicit_curve_parameters_are_the_standard_ones(captured: Captured, key: str) -> None:
    """The parameters are the standard curve's: the order is the same, and the base point has this order."""
    ((_, chain),) = chains(captured.connections[f"wtls/ecdh_ecdsa/{key}/server"])
    parameters = chain[0].parameters
    assert isinstance(parameters.explicit, ECParameters)
    found = curve(parameters)
    assert found.order == EXPLICIT_ORDERS[key]
    assert found.times(found.order, found.base) is None
    # Hasse: with this order, nothing but the true cofactor fits the field's size.
    size = found.field.p if isinstance(found.field, PrimeField) else 1 << found.field.m
    assert (found.cofactor * found.order - size - 1) ** 2 <= 4 * size


@pytest.mark.parametrize("suite", [suite for suite in CASES if "request" in suite or "mutual" in suite])
def test_certificate_request_names_suitable_authorities(captured: Captured, suite: str) -> None:
    for _, request in all_of(captured.connections[suite], CertificateRequest):
        offer = captured.connections[suite].offer
        assert offer is not None
        assert [one.suite for one in request.authorities] == [offer.suite]
        assert {one.identifier.kind for one in request.authorities} <= {"null", "key_hash_sha"}


@pytest.mark.parametrize("suite", [suite for suite in CASES if CASES[suite] == "anonymous"])
def test_anonymous_keys_match_the_suite(captured: Captured, suite: str) -> None:
    connection = captured.connections[suite]
    ((_, server),) = all_of(connection, ServerKeyExchange)
    ((_, client),) = all_of(connection, ClientKeyExchange)
    assert connection.offer is not None
    group = suite.rpartition("+")[2]
    if isinstance(server.key, RSAPublicKey):
        assert server.parameters.index == 0
        assert len(client.content) * 8 == server.key.modulus.bit_length() == int(suite.rpartition("rsa")[2])
        assert int.from_bytes(client.content) < server.key.modulus
        return
    parameters = server.parameters if server.parameters.index else connection.offer.parameters
    if group.startswith("dh"):
        assert parameters.index == {"dh512": 1, "dh768": 2}[group]
        assert {len(server.key), len(client.content)} == {int(group[2:]) // 8}
        return
    assert parameters.index == NUMBERS.get(group, 255)
    on = curve(parameters)
    points = [on.point(server.key), on.point(client.content)]
    assert points[0] != points[1]
    assert all(on.times(on.order, point) is None for point in points)


@pytest.mark.parametrize("suite", [suite for suite in CASES if CASES[suite] in ("server", "requested")])
def test_client_key_exchange_matches_the_server_key(captured: Captured, suite: str) -> None:
    """A block as long as the modulus, or a point on the curve of the server's certificate."""
    connection = captured.connections[suite]
    (leaf, *_) = next(chain for sender, chain in chains(connection) if sender == "server")
    ((_, body),) = all_of(connection, ClientKeyExchange)
    if isinstance(leaf.key, RSAPublicKey):
        assert len(body.content) * 8 == leaf.key.modulus.bit_length()
        assert int.from_bytes(body.content) < leaf.key.modulus
    else:
        on = curve(leaf.parameters)
        assert body.content[0] in (2, 3)
        assert on.times(on.order, on.point(body.content)) is None


@pytest.mark.parametrize("suite", [suite for suite in CASES if CASES[suite] == "mutual RSA"])
def test_certificate_verify_signs_all_previous_messages(captured: Captured, suite: str) -> None:
    """The client signed all handshake messages before this one, with the key of its certificate."""
    connection = captured.connections[suite]
    ((_, verify),) = all_of(connection, CertificateVerify)
    before = b""
    for item in connection.items:
        if item.name == "CertificateVerify":
            break
        before += item.handshake
    (leaf, *_) = next(chain for sender, chain in chains(connection) if sender == "client")
    assert isinstance(leaf.key, RSAPublicKey)
    assert rsa_verifies(leaf.key, hashlib.sha1(before).digest(), verify.signature)
    assert not rsa_verifies(leaf.key, hashlib.sha1(before + b"\0").digest(), verify.signature)


def test_checksum_of_empty_data_is_zero() -> None:
    assert checksum(b"") == bytes(4)
