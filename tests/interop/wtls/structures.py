"""Structures that several WTLS messages share (WAP-261-WTLS, section 10.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from interop.wtls.reader import Reader, many, whole

Family = Literal["rsa", "dh", "ec", "none"]

SUITES = (
    *("NULL", "SHARED_SECRET", "DH_anon", "DH_anon_512", "DH_anon_768", "RSA_anon", "RSA_anon_512"),
    *("RSA_anon_768", "RSA", "RSA_512", "RSA_768", "ECDH_anon", "ECDH_anon_113", "ECDH_anon_131"),
    *("ECDH_ECDSA", "ECDH_anon_uncomp", "ECDH_anon_uncomp_113", "ECDH_anon_uncomp_131", "ECDH_ECDSA_uncomp"),
)


def family(suite: int) -> Family:
    """The kind of public key of a key exchange suite."""
    name = SUITES[suite]
    for start, kind in (("RSA", "rsa"), ("DH", "dh"), ("ECDH", "ec")):
        if name.startswith(start):
            return kind  # type: ignore[return-value]
    return "none"


@dataclass(frozen=True)
class Identifier:
    """An identifier: a name, a key's hash, or null."""

    kind: Literal["null", "text", "binary", "key_hash_sha", "x509_name"]
    character_set: int | None
    value: bytes

    @property
    def text(self) -> str:
        assert (self.kind, self.character_set) == ("text", 106)
        return self.value.decode("utf-8")


def identifier(reader: Reader) -> Identifier:
    match reader.choice(0, 1, 2, 254, 255):
        case 0:
            return Identifier("null", None, b"")
        case 1:
            return Identifier("text", reader.u16(), reader.v8(1))
        case 2:
            return Identifier("binary", None, reader.v8(1))
        case 254:
            return Identifier("key_hash_sha", None, reader.take(20))
    return Identifier("x509_name", None, reader.v8(1))


@dataclass(frozen=True)
class PrimeField:
    p: int


@dataclass(frozen=True)
class BinaryField:
    m: int
    exponents: tuple[int, ...]  # of the terms between x^m and 1


@dataclass(frozen=True)
class ECParameters:
    """A curve's explicit parameters."""

    field: PrimeField | BinaryField
    a: bytes
    b: bytes
    seed: bytes
    base: bytes
    order: int
    cofactor: int


def ec_parameters(reader: Reader) -> ECParameters:
    field: PrimeField | BinaryField
    if reader.choice(1, 2) == 1:
        field = PrimeField(int.from_bytes(reader.v8(1)))
    else:
        m = reader.u16()
        count = {2: 1, 3: 3}[reader.choice(2, 3)]  # the other two kinds of basis are not used
        exponents = tuple(reader.u16() for _ in range(count))
        if list(exponents) != sorted(set(exponents)) or not 0 < exponents[0] <= exponents[-1] < m:
            raise reader.fail(f"x^{m} with the exponents {exponents}")
        field = BinaryField(m, exponents)
    return ECParameters(
        field,
        reader.v8(1),
        reader.v8(1),
        reader.v8(),
        reader.v8(1),
        int.from_bytes(reader.v8(1)),
        int.from_bytes(reader.v8(1)),
    )


@dataclass(frozen=True)
class DHParameters:
    exponent_bytes: int
    p: int
    g: int


@dataclass(frozen=True)
class ParameterSpecifier:
    """Which group: none (0), an assigned number, or explicit (255)."""

    index: int
    explicit: ECParameters | DHParameters | None
    bytes: int


def parameter_specifier(reader: Reader, kind: Family) -> ParameterSpecifier:
    start = reader.at
    index, explicit = reader.u8(), None
    if kind in ("rsa", "none") and index:
        raise reader.fail(f"parameter index {index} where there are no parameters")
    if index == 255:
        content = reader.v16(1)
        if kind == "ec":
            explicit = whole(content, "ECParameters", ec_parameters)
        else:
            explicit = whole(content, "DHParameters", _dh_parameters)
    elif kind == "ec" and index not in (0, 1, *range(3, 13)):
        raise reader.fail(f"no curve has the number {index}")
    elif kind == "dh" and index > 2:
        raise reader.fail(f"no group has the number {index}")
    return ParameterSpecifier(index, explicit, reader.at - start)


def _dh_parameters(reader: Reader) -> DHParameters:
    return DHParameters(reader.u8(), int.from_bytes(reader.v16(1)), int.from_bytes(reader.v16(1)))


@dataclass(frozen=True)
class KeyExchangeId:
    suite: int
    parameters: ParameterSpecifier
    identifier: Identifier


def key_exchange_ids(data: bytes, what: str) -> tuple[KeyExchangeId, ...]:
    def read(reader: Reader) -> KeyExchangeId:
        suite = reader.choice(*range(len(SUITES)))
        return KeyExchangeId(suite, parameter_specifier(reader, family(suite)), identifier(reader))

    return many(data, what, read)


@dataclass(frozen=True)
class RSAPublicKey:
    exponent: int
    modulus: int
    encoded: bytes


def rsa_public_key(reader: Reader) -> RSAPublicKey:
    start = reader.at
    exponent, modulus = reader.v16(1), reader.v16(1)
    if 0 in (exponent[0], modulus[0]):
        raise reader.fail("an integer that is not minimal")
    return RSAPublicKey(int.from_bytes(exponent), int.from_bytes(modulus), reader.data[start : reader.at])
