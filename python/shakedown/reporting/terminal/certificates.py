"""Certificates on a terminal: their contents, the bytes of each part, and what peers would refuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shakedown.reporting.columns import ALWAYS, DATA, Column, label

if TYPE_CHECKING:
    from shakedown.schema.certificates import Certificate, Description, Extension, Signature

FORMATS = {"pem": "PEM", "der": "DER", "pkcs12": "PKCS #12"}

MAX_NAMES = 6
"""Number of alternative names that are printed; certificates of content networks have a hundred."""


def headline(file: str, description: Description) -> str:
    """A file in one line: kind, number, keys as in suite names, bytes sent."""
    many = len(description.certificates)
    kind = description.certificates[0].kind
    keys = description.keys_name
    strength = f", security level at most {description.security_level}" if kind == "X.509" else ""
    form = f" ({FORMATS[description.format]})" if description.format in FORMATS else ""
    return (
        f"{file}: {many} {kind} certificate{'' if many == 1 else 's'}{form}"
        f"{f', keys {keys}' if keys else ''}, {description.bytes_sent:,} bytes sent{strength}"
    )


def certificate_columns(place: int = 1) -> Sequence[Column]:
    """The columns of a certificate: its contents on the left, the bytes of each part on the right."""
    return (
        label("file", "file", rank=DATA),
        Column(key="certificate", name="certificate", rank=DATA),
        label("name", f"certificate {place}"),
        label("text", "", prose=True),
        Column(
            key="bytes", name="bytes", rank=ALWAYS, show=lambda value: "" if value is None else f"{value:,}"
        ),
    )


def certificate_rows(file: str, place: int, certificate: Certificate) -> Iterator[dict[str, object]]:
    """One certificate, one row per part of its contents."""
    where = {"file": file, "certificate": place}
    for name, text, size in _rows(certificate):
        yield {**where, "name": name, "text": text, "bytes": size}
    whole = f"SHA-256 {certificate.fingerprint}"
    yield {**where, "name": "certificate", "text": whole, "bytes": certificate.bytes}


def _rows(certificate: Certificate) -> Iterator[tuple[str, str, int | None]]:
    left: Counter[str] = Counter()
    for part in certificate.parts:
        left[part.name] += part.bytes
    key, signature = certificate.key, certificate.signature
    root = ", self-signed" if certificate.is_self_signed else ""
    yield "subject", certificate.subject, left.pop("subject", None)
    yield "issuer", certificate.issuer + root, left.pop("issuer", None)
    yield "valid", f"{certificate.not_before} to {certificate.not_after}", left.pop("validity", None)
    if certificate.serial:
        yield "serial number", certificate.serial, left.pop("serial number", None)
    strength = f"{key.bits:,} bits, strength {key.security_bits} bits"
    yield "key", f"{key.name} ({strength})", left.pop("public key", None)
    for extension in certificate.extensions:
        critical = " (critical)" if extension.critical else ""
        yield extension.name + critical, _shortened(certificate, extension), extension.bytes
        left.pop(f"extension {extension.name}", None)
    yield "signature", signed(signature), left.pop("signature", None)
    if left:
        yield "encoding, algorithms", "", left.total()


def signed(signature: Signature) -> str:
    """The signature's algorithm, and its digest if the algorithm's name does not contain it."""
    algorithm, digest = signature.algorithm, signature.digest
    if digest and digest.replace("sha1", "sha") not in algorithm.lower():
        return f"{algorithm} with {digest}"
    return algorithm


def _shortened(certificate: Certificate, extension: Extension) -> str:
    names = certificate.alternative_names
    if extension.oid == "2.5.29.17" and len(names) > MAX_NAMES:
        return f"{', '.join(names[:MAX_NAMES])} and {len(names) - MAX_NAMES} more"
    value = extension.value
    return value if len(value) <= 220 else f"{value[:200]} …"


def finding_lines(description: Description, level: str) -> Iterator[str]:
    """The violations that a peer of a security level would refuse, one line each, or that there are none."""
    violations = description.violations
    # Security levels are OpenSSL's; WTLS has none.
    levelled = description.certificates[0].kind == "X.509"
    peer = f"A peer at {level}" if levelled else "A peer"
    if not violations:
        yield f"{peer} accepts these certificates."
        return
    yield f"{peer} would reject:"
    for violation in violations:
        where = "the chain" if violation.place is None else f"certificate {violation.place + 1}"
        yield f"  {where}: {violation.detail}"
