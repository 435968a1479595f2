"""WTLS handshake messages (WAP-261-WTLS, section 10.5)."""

from __future__ import annotations

from dataclasses import dataclass

from interop.wtls.certificates import Certificate, certificate
from interop.wtls.reader import Malformed, Reader, many, whole
from interop.wtls.structures import (
    Family,
    KeyExchangeId,
    ParameterSpecifier,
    RSAPublicKey,
    family,
    key_exchange_ids,
    parameter_specifier,
    rsa_public_key,
)

NAMES = {
    0: "HelloRequest",
    1: "ClientHello",
    2: "ServerHello",
    11: "Certificate",
    12: "ServerKeyExchange",
    13: "CertificateRequest",
    14: "ServerHelloDone",
    15: "CertificateVerify",
    16: "ClientKeyExchange",
    20: "Finished",
}


@dataclass(frozen=True)
class ClientHello:
    time_s: int
    random: bytes
    session_id: bytes
    client_key_ids: tuple[KeyExchangeId, ...]
    trusted_key_ids: tuple[KeyExchangeId, ...]
    cipher_suites: tuple[tuple[int, int], ...]
    compression_methods: bytes
    sequence_mode: int
    key_refresh: int


@dataclass(frozen=True)
class ServerHello:
    time_s: int
    random: bytes
    session_id: bytes
    client_key_id: int
    cipher_suite: tuple[int, int]
    compression_method: int
    sequence_mode: int
    key_refresh: int


@dataclass(frozen=True)
class Certificates:
    """A chain; X.509 certificates stay DER."""

    chain: tuple[Certificate, ...]
    x509: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class ServerKeyExchange:
    parameters: ParameterSpecifier
    key: RSAPublicKey | bytes


@dataclass(frozen=True)
class CertificateRequest:
    authorities: tuple[KeyExchangeId, ...]


@dataclass(frozen=True)
class ClientKeyExchange:
    content: bytes  # an enciphered secret, a Diffie-Hellman value or a point


@dataclass(frozen=True)
class CertificateVerify:
    signature: bytes


@dataclass(frozen=True)
class Finished:
    verify_data: bytes


@dataclass(frozen=True)
class Empty:
    """HelloRequest and ServerHelloDone."""


Body = (
    ClientHello
    | ServerHello
    | Certificates
    | ServerKeyExchange
    | CertificateRequest
    | ClientKeyExchange
    | CertificateVerify
    | Finished
    | Empty
)


def cipher_suite(reader: Reader) -> tuple[int, int]:
    return reader.choice(*range(12)), reader.choice(*range(8))


def _client_hello(reader: Reader) -> ClientHello:
    reader.choice(1)
    random = reader.take(16)
    return ClientHello(
        int.from_bytes(random[:4]),
        random,
        reader.v8(0, 8),
        key_exchange_ids(reader.v16(), "client_key_ids"),
        key_exchange_ids(reader.v16(), "trusted_key_ids"),
        many(reader.v8(2), "cipher_suites", cipher_suite),
        reader.v8(1),
        reader.choice(0, 1, 2),
        reader.u8(),
    )


def _server_hello(reader: Reader) -> ServerHello:
    reader.choice(1)
    random = reader.take(16)
    return ServerHello(
        int.from_bytes(random[:4]),
        random,
        reader.v8(0, 8),
        reader.u8(),
        cipher_suite(reader),
        reader.choice(0),
        reader.choice(0, 1, 2),
        reader.u8(),
    )


def _one_certificate(reader: Reader) -> Certificate | bytes:
    if reader.choice(1, 2) == 2:  # X509Cert; the other formats do not appear here
        return reader.v16(1)
    return certificate(reader)


def _certificates(reader: Reader) -> Certificates:
    entries = many(reader.v16(), "certificate_list", _one_certificate)
    chain = tuple(one for one in entries if isinstance(one, Certificate))
    return Certificates(chain, tuple(one for one in entries if isinstance(one, bytes)))


def _server_key_exchange(reader: Reader, kind: Family) -> ServerKeyExchange:
    parameters = parameter_specifier(reader, kind)
    if kind == "rsa":
        return ServerKeyExchange(parameters, rsa_public_key(reader))
    return ServerKeyExchange(parameters, reader.v8(1) if kind == "ec" else reader.v16(1))


def body(number: int, content: bytes, suite: int | None) -> Body:
    """Reads a message's body; `suite` is the key exchange that the server chose, or None before that."""
    name = NAMES[number]
    kind = None if suite is None else family(suite)
    if name in ("ServerKeyExchange", "ClientKeyExchange") and kind in (None, "none"):
        raise Malformed(f"{name} without a key exchange that has one")

    def read(reader: Reader) -> Body:
        match name:
            case "ClientHello":
                return _client_hello(reader)
            case "ServerHello":
                return _server_hello(reader)
            case "Certificate":
                return _certificates(reader)
            case "ServerKeyExchange":
                assert kind is not None
                return _server_key_exchange(reader, kind)
            case "CertificateRequest":
                return CertificateRequest(key_exchange_ids(reader.v16(), "trusted_authorities"))
            case "ClientKeyExchange":
                return ClientKeyExchange(reader.v8(1) if kind == "ec" else reader.v16(1))
            case "CertificateVerify":
                return CertificateVerify(reader.v16(1))
            case "Finished":
                return Finished(reader.take(12))
        return Empty()

    return whole(content, name, read)
