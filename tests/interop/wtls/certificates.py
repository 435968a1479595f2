"""WTLS certificates (WAP-261-WTLS, section 10.5.2)."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Literal

from interop.wtls.reader import Reader, whole
from interop.wtls.structures import (
    Identifier,
    ParameterSpecifier,
    RSAPublicKey,
    identifier,
    parameter_specifier,
    rsa_public_key,
)


@dataclass(frozen=True)
class Certificate:
    signature_algorithm: Literal["anonymous", "ecdsa_sha", "rsa_sha"]
    issuer: Identifier
    not_before_s: int
    not_after_s: int
    subject: Identifier
    key_type: Literal["rsa", "ecdh", "ecdsa"]
    parameters: ParameterSpecifier
    key: RSAPublicKey | bytes  # a point
    signed: bytes
    signature: bytes
    bytes: int


def certificate(reader: Reader) -> Certificate:
    """Reads a certificate, which has no length field."""
    start = reader.at
    reader.choice(1)
    algorithm = ("anonymous", "ecdsa_sha", "rsa_sha")[reader.choice(0, 1, 2)]
    issuer, before, after, subject = identifier(reader), reader.u32(), reader.u32(), identifier(reader)
    key_type = {2: "rsa", 3: "ecdh", 4: "ecdsa"}[reader.choice(2, 3, 4)]
    parameters = parameter_specifier(reader, "rsa" if key_type == "rsa" else "ec")
    key = rsa_public_key(reader) if key_type == "rsa" else reader.v8(1)
    signed = reader.data[start : reader.at]
    signature = b"" if algorithm == "anonymous" else reader.v16(1)
    if after < before:
        raise reader.fail("validity ends before it begins")
    return Certificate(
        algorithm,  # type: ignore[arg-type]
        issuer,
        before,
        after,
        subject,
        key_type,  # type: ignore[arg-type]
        parameters,
        key,
        signed,
        signature,
        reader.at - start,
    )


def from_pem(text: str) -> tuple[Certificate, ...]:
    """The certificates of a file (WAP-217-WPKI, section 7.2.1)."""
    found = re.findall(
        r"-----BEGIN WTLS CERTIFICATE-----\n(.*?)-----END WTLS CERTIFICATE-----", text, re.DOTALL
    )
    return tuple(whole(base64.b64decode(one), "certificate", certificate) for one in found)
