"""Verifies signatures with Python integers (WAP-261-WTLS, section 11.1)."""

from __future__ import annotations

import hashlib

from interop.wtls.certificates import Certificate
from interop.wtls.curves import curve
from interop.wtls.structures import RSAPublicKey


def rsa_verifies(key: RSAPublicKey, digest: bytes, signature: bytes) -> bool:
    """PKCS #1 block type 1 around the bare digest."""
    size = (key.modulus.bit_length() + 7) // 8
    if len(signature) != size:
        return False
    block = pow(int.from_bytes(signature), key.exponent, key.modulus).to_bytes(size)
    return block == b"\0\1" + b"\xff" * (size - 3 - len(digest)) + b"\0" + digest


def signed_by(certificate: Certificate, issuer: Certificate) -> bool:
    """Whether the issuer's key made the certificate's signature, and may sign."""
    digest = hashlib.sha1(certificate.signed).digest()
    if isinstance(issuer.key, RSAPublicKey):
        return certificate.signature_algorithm == "rsa_sha" and rsa_verifies(
            issuer.key, digest, certificate.signature
        )
    if certificate.signature_algorithm != "ecdsa_sha" or issuer.key_type != "ecdsa":
        return False
    on = curve(issuer.parameters)
    return on.verifies(on.point(issuer.key), digest, certificate.signature)
