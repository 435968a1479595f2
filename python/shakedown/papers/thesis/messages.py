"""A handshake's messages in the thesis: their order (tables 3.5 and 3.7), and the numbers in each.

Table 4.11 prints one total per case. For single messages, the thesis gives only the keys and signatures that
they contain; all else, including acknowledgements, is one constant for each kind of handshake.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shakedown.papers.load import PaperData
from shakedown.papers.thesis.inputs import AUTHENTICATIONS, WORDS, Authentication, Case, Thesis
from shakedown.schema.base import Side

_ORDER_BYTES = {
    **{"160p": 21, "163k": 21, "163r": 21, "224p": 28, "233k": 29, "233r": 30},
    **{"256p": 32, "283k": 36, "283r": 36},
}
_POINT_BYTES = {
    **{"160p": 41, "163k": 43, "163r": 43, "224p": 57, "233k": 61, "233r": 61},
    **{"256p": 65, "283k": 73, "283r": 73},
}


def field_bytes(curve: str) -> int:
    """Bytes of a coordinate."""
    return (_POINT_BYTES[curve] - 1) // 2


def signature_bytes(key: str) -> int:
    """Bytes of a signature: two numbers of the length of the curve's order, or one of that of the modulus."""
    return int(key[3:]) // 8 if key.startswith("rsa") else 2 * _ORDER_BYTES[key]


def public_bytes(key: str) -> int:
    """Bytes of a public key: an uncompressed point (SEC 1), or the modulus."""
    return int(key[3:]) // 8 if key.startswith("rsa") else _POINT_BYTES[key]


FLOW = "tables_3_5_to_3_9_message_flow"

Message = tuple[Side, str]

FAMILIES = {"ecc": "ecdh", "rsa": "rsa"}
"""Families of certificates, each with its name in the columns for its key exchange."""

EXPLICIT = ("163r", "256p", "283k", "283r")
"""Curves of the thesis without a number in WAP-261-WTLS (table 8): our messages contain their parameters, the
thesis used private numbers (table 3.2)."""

_PRIME_CURVES = ("256p",)


@dataclass(frozen=True)
class Kind:
    """One kind of handshake: the family of certificates, and which side is authenticated."""

    family: str
    authentication: Authentication

    @property
    def name(self) -> str:
        """The name: ``ECDH_ECDSA, mutual``."""
        return f"{'RSA' if self.family == 'rsa' else 'ECDH_ECDSA'}, {WORDS[self.authentication]}"


def kinds() -> Iterator[Kind]:
    for authentication in AUTHENTICATIONS:
        for family in FAMILIES:
            yield Kind(family, authentication)


def first(thesis: Thesis, kind: Kind) -> Case:
    """A kind's first case in the tables, which has the smallest keys."""
    return next(case for case in thesis.cases if case.family == kind.family)


def order(data: PaperData, kind: Kind) -> list[Message]:
    """The messages of a kind in their order; an empty Certificate counts as a message."""
    column = f"sent_{kind.authentication}_{FAMILIES[kind.family]}"
    return [
        ("client" if row["direction"] == "client_to_server" else "server", row["message"])
        for row in data.tables[FLOW].rows
        if row[column] != "no"
    ]


@dataclass(frozen=True)
class Numbers:
    """The parts of a message whose length depends on a key, in bytes: in the thesis and in our engine.

    Attributes:
        signatures_bytes: in a certificate or in CertificateVerify; equal in both.
        publics_bytes: public keys and encrypted secrets; curve points are uncompressed, as in the thesis.
        compression_bytes: by how much points are shorter in our messages, which compress them.
        explicit_bytes: the parameters of a curve, if our messages contain them.
    """

    signatures_bytes: int = 0
    publics_bytes: int = 0
    compression_bytes: int = 0
    explicit_bytes: int = 0

    @property
    def thesis_bytes(self) -> int:
        return self.signatures_bytes + self.publics_bytes

    @property
    def replicated_bytes(self) -> int:
        return self.thesis_bytes - self.compression_bytes + self.explicit_bytes


def numbers(case: Case, authentication: Authentication, message: Message) -> Numbers:
    side, name = message
    point_saves = 0 if case.family == "rsa" else field_bytes(case.end)
    spelt_out = parameter_set_bytes(case.end) if case.end in EXPLICIT else 0
    if name in ("ClientHello", "CertificateRequest"):
        return Numbers(explicit_bytes=spelt_out)
    if name == "Certificate" and (side == "server" or authentication == "mutual"):
        return Numbers(signature_bytes(case.ca), public_bytes(case.end), point_saves, spelt_out)
    if name == "ClientKeyExchange":
        return Numbers(publics_bytes=public_bytes(case.end), compression_bytes=point_saves)
    if name == "CertificateVerify":
        return Numbers(signatures_bytes=signature_bytes(case.end))
    return Numbers()


def parameter_set_bytes(curve: str) -> int:
    """The additional bytes of a curve if specifier 255 and a ParameterSet replace a number.

    WAP-261-WTLS, section 10.5: the set's length, the field, a, b, an empty seed, the compressed base point,
    its order, the cofactor. Binary fields have pentanomials.
    """
    size, order_size = field_bytes(curve), _ORDER_BYTES[curve]
    field = 1 + 1 + size if curve in _PRIME_CURVES else 1 + 2 + 1 + 3 * 2
    return 2 + field + 2 * (1 + size) + 1 + (1 + 1 + size) + (1 + order_size) + (1 + 1)


def numbers_bytes(thesis: Thesis, kind: Kind, case: Case) -> int:
    """All numbers of a case's handshake in the thesis."""
    return sum(
        numbers(case, kind.authentication, message).thesis_bytes for message in order(thesis.data, kind)
    )


def constant_bytes(thesis: Thesis, kind: Kind) -> float:
    """The rest of table 4.11 without the numbers: one figure for all cases of a kind."""
    case = first(thesis, kind)
    return thesis.size_bytes(case, kind.authentication) - numbers_bytes(thesis, kind, case)


def handshake_bytes(thesis: Thesis, case: Case, authentication: Authentication) -> float:
    """A cell of table 4.11 from the constant and the numbers."""
    kind = Kind(case.family, authentication)
    return constant_bytes(thesis, kind) + numbers_bytes(thesis, kind, case)
