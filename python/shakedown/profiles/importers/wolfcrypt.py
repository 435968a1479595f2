"""Reading the output of wolfCrypt's ``benchmark``."""

from __future__ import annotations

import re

from shakedown.profiles.costs import Triple
from shakedown.profiles.importers.common import CURVE_NAMES, Figures, Imported
from shakedown.profiles.vocabulary import triple_fault

_BITS_TO_CURVE = {192: "p192", 224: "p224", 256: "p256", 384: "p384", 521: "p521"}
_STEPS = {
    "key gen": ("keygen",),
    "agree": ("derive",),
    "sign": ("sign",),
    "verify": ("verify",),
    "encap": ("encapsulate",),
    "decap": ("decapsulate",),
    "public": ("verify", "encrypt"),
    "private": ("sign", "decrypt"),
}
_OPERATIONS = re.compile(
    r"^\s*([A-Za-z-]+)\s*(?:\[\s*(\w+)\s*\])?\s*(\d+)?\s+(?:\d+\s+)?([a-z][a-z -]*?)\s+"
    r"\d+ ops took .*?avg ([\d.]+)"
)
_FIGURE = re.compile(r"\btook [\d.]+ sec")
_BYTES = re.compile(r"^\s*([A-Z][\w/-]*?)\s+[\d.]+ [KM]i?B took [\d.]+ seconds,\s+([\d.]+) ([KM])i?B/s")


def read_wolfcrypt(text: str) -> Imported:
    """Read wolfCrypt's ``benchmark``: lines of operations with an average, and lines of bytes with a rate."""
    primitives = Figures()
    found = Imported(primitives)
    for primitives.line, line in enumerate(text.splitlines(), start=1):
        if not _FIGURE.search(line):
            continue
        triples: list[Triple] = []
        cost: dict[str, float] = {}
        match = _OPERATIONS.match(line)
        if match:
            triples = _wolfcrypt_triples(match[1].upper(), match[2], int(match[3] or 0), match[4].strip())
            cost = {"time_us": float(match[5]) * 1e3}
        else:
            match = _BYTES.match(line)
            name = _wolfcrypt_symmetric(match[1]) if match else None
            if match and name:
                rate = float(match[2]) * (1024.0 if match[3] == "M" else 1.0)
                triples, cost = [(*name, "")], {"per_kib_us": 1e6 / rate if rate > 0 else 0.0}
        usable = [triple for triple in triples if triple_fault(*triple) is None and any(cost.values())]
        for triple in usable:
            found.primitives[triple] = cost
        if not usable:
            found.omitted.append(f"{line.strip()}: no suite uses it, or a form that is not known")
    return found


def _wolfcrypt_triples(family: str, curve: str | None, bits: int, step: str) -> list[Triple]:
    """The triples of a step. They include invalid ones, for operations that the family does not have."""
    operations = _STEPS.get(step.removesuffix(" time"), ())
    if family in ("ECC", "ECDHE", "ECDSA"):
        token = CURVE_NAMES.get((curve or "").upper()) or _BITS_TO_CURVE.get(bits, "")
        return [(one, "ecdsa" if one in ("sign", "verify") else "ecdh", token) for one in operations]
    algorithm, token = {
        "RSA": ("rsa", f"rsa{bits}"),
        "DH": ("dh", f"ffdhe{bits}"),  # wolfCrypt's groups have exponents of about 256 bits
        "CURVE": ("ecdh", f"x{bits}"),
        "ED": ("eddsa", "ed25519" if bits == 25519 else ""),
        "ML-KEM": ("mlkem", f"mlkem{bits}"),
        "ML-DSA": ("mldsa", f"mldsa{bits}"),
    }.get(family, ("", ""))
    return [(one, algorithm, token) for one in operations]


def _wolfcrypt_symmetric(name: str) -> tuple[str, str] | None:
    lower = name.lower()
    if re.fullmatch(r"aes-\d+-(cbc|gcm|ccm|ctr)-enc", lower):
        return "cipher", lower.removesuffix("-enc")
    if re.fullmatch(r"hmac-(md5|sha\d*)", lower):
        return "mac", "hmac-" + {"sha": "sha1"}.get(lower[5:], lower[5:])
    if re.fullmatch(r"(md5|sha|sha-\d+)", lower):
        return "digest", {"sha": "sha1"}.get(lower, lower.replace("-", ""))
    return ("cipher", "chacha20-poly1305") if lower == "cha-poly" else None
