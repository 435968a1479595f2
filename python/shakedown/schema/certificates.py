"""The output of `certs --json`: descriptions of certificates, generated chains, certificate profiles."""

from __future__ import annotations

from typing import Annotated

import msgspec

from shakedown.schema.base import Count, Object, Text


class Key(Object, frozen=True, kw_only=True):
    """A public key; `name` is its name in suites if `has_suite_name`."""

    name: str
    has_suite_name: bool
    bits: Count
    bytes: Count
    security_bits: Count


class Signature(Object, frozen=True, kw_only=True):
    """A certificate's signature."""

    algorithm: str
    digest: str | None
    bytes: Count
    security_bits: Count


class Extension(Object, frozen=True, kw_only=True):
    """An extension of an X.509 certificate."""

    name: str
    oid: str
    critical: bool
    is_understood: bool
    bytes: Count
    value: str


class Part(Object, frozen=True, kw_only=True):
    """Bytes of one part of a certificate; the sum over all parts is the certificate's size."""

    name: str
    bytes: Count


class Certificate(Object, frozen=True, kw_only=True):
    """One certificate."""

    kind: Text
    version: int
    subject: str
    issuer: str
    serial: str
    not_before: str
    not_after: str
    alternative_names: tuple[str, ...]
    is_ca: bool
    is_self_signed: bool
    key: Key
    signature: Signature
    extensions: tuple[Extension, ...]
    bytes: Count
    parts: tuple[Part, ...]
    fingerprint: str


class Violation(Object, frozen=True, kw_only=True):
    """A reason for a peer to refuse a chain: of the certificate at a place, or of the whole chain."""

    reason: str
    place: Count | None
    detail: str


class Description(Object, frozen=True, kw_only=True):
    """A chain: its certificates, the bytes that are sent, and violations."""

    format: str
    certificates: Annotated[tuple[Certificate, ...], msgspec.Meta(min_length=1)]
    right_order: tuple[Count, ...]
    key: Key | None
    keys_name: str | None
    bytes_sent: Count
    security_level: Count
    violations: tuple[Violation, ...]


class DescribedFile(Description, frozen=True, kw_only=True):
    """A file of certificates."""

    file: str


class WrittenFile(Object, frozen=True, kw_only=True):
    """A file that was written."""

    path: str
    what: str
    bytes: Count


class GeneratedChain(Object, frozen=True, kw_only=True):
    """A new chain."""

    files: tuple[WrittenFile, ...]
    description: Description


class CertificateProfile(Object, frozen=True, kw_only=True):
    """A built-in certificate profile."""

    name: Text
    keys: str
    text: str


class ChainFiles(Object, frozen=True, kw_only=True):
    """Names of a side's files, without folders."""

    chain: Text
    key: str | None = None
    ca: str | None = None


class UserChain(Description, frozen=True, kw_only=True):
    """In a manifest: a side's user-supplied chain, the suites that present it, and the time at which it
    is validated."""

    suites: tuple[str, ...]
    files: ChainFiles
    verification_time: Annotated[int, msgspec.Meta(ge=0, lt=253_402_300_800)]
    level: Count


PRINTED = {
    "certificate": (DescribedFile, "An object of certs show --json."),
    "chain": (GeneratedChain, "An object of certs make --json and certs issue --json."),
    "certificate-profile": (CertificateProfile, "An object of certs profiles --json."),
}
