"""The triples that traces and device profiles share: operation, algorithm, parameters.

A triple names a piece of cryptographic work: ``("sign", "ecdsa", "p256")``. Public-key operations carry a
parameter token (key size, curve or group); symmetric ones (``digest``, ``mac``, ``cipher``, ``prf``) carry an
empty one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from shakedown.errors import did_you_mean

PUBLIC_KEY_OPERATIONS = (
    "sign",
    "verify",
    "encrypt",
    "decrypt",
    "derive",
    "keygen",
    "encapsulate",
    "decapsulate",
    "import",
)
SYMMETRIC_OPERATIONS = ("digest", "mac", "cipher", "prf")
OPERATIONS = PUBLIC_KEY_OPERATIONS + SYMMETRIC_OPERATIONS

_SIGNATURES = ("rsa", "dsa", "ecdsa", "eddsa", "mldsa")
_KEMS = ("mlkem", "hybrid")
ALGORITHMS: dict[str, tuple[str, ...]] = {
    "sign": _SIGNATURES,
    "verify": _SIGNATURES,
    "encrypt": ("rsa",),
    "decrypt": ("rsa",),
    "derive": ("dh", "ecdh"),
    "keygen": ("dh", "ecdh", *_KEMS, *_SIGNATURES),
    "encapsulate": _KEMS,
    "decapsulate": _KEMS,
    "import": ("dh", "ecdh", *_KEMS, *_SIGNATURES),
}

_PRIME_CURVES = {
    "secp112r1": 112,
    "wtls8": 112,
    "secp160r1": 160,
    "secp160r2": 160,
    "wtls9": 160,
    "p192": 192,
    "p224": 224,
    "p256": 256,
    "p384": 384,
    "p521": 521,
}
_BINARY_CURVES = {
    "wtls1": 113,
    "sect113r1": 113,
    "sect163k1": 163,
    "sect163r1": 163,
    "sect163r2": 163,
    "c2pnb163v1": 163,
    "sect233k1": 233,
    "sect233r1": 233,
    "sect283k1": 283,
    "sect283r1": 283,
    "sect409k1": 409,
    "sect409r1": 409,
    "sect571k1": 571,
    "sect571r1": 571,
}
_MONTGOMERY_CURVES = {"x25519": 255, "x448": 448}
_EDWARDS_CURVES = {"ed25519": 255, "ed448": 448}
_ML_DSA = {"mldsa44": 4, "mldsa65": 6, "mldsa87": 8}
_ML_KEM = {"mlkem512": 2, "mlkem768": 3, "mlkem1024": 4}
HYBRID_PARTS = {
    "x25519mlkem768": ("x25519", "mlkem768"),
    "secp256r1mlkem768": ("p256", "mlkem768"),
    "secp384r1mlkem1024": ("p384", "mlkem1024"),
}
_SYMMETRIC_NAME = re.compile(r"[a-z0-9][a-z0-9.\-]*")


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a parameter token means: a kind inside which costs scale with ``size``, and that size.

    ``size`` is in bits, except for the lattice schemes, where it is the module rank that costs grow with.
    """

    kind: str
    size: int


@lru_cache(maxsize=512)
def parse_parameters(algorithm: str, parameters: str) -> Parameters | None:
    """Return the meaning of ``parameters`` under ``algorithm``, or None if the token is none of its own."""
    if algorithm == "rsa":
        match = re.fullmatch(r"rsa(\d{3,5})(e3)?", parameters)
        return Parameters("rsa-e3" if match[2] else "rsa", int(match[1])) if match else None
    if algorithm == "dsa":
        match = re.fullmatch(r"dsa(\d{3,5})", parameters)
        return Parameters("dsa", int(match[1])) if match else None
    if algorithm == "dh":
        match = re.fullmatch(r"(dh|ffdhe|wtlsdh)(\d{3,5})", parameters)
        return Parameters("ffdhe" if match[1] == "ffdhe" else "dh", int(match[2])) if match else None
    tables: dict[str, tuple[tuple[str, dict[str, int]], ...]] = {
        "ecdsa": (("prime-curve", _PRIME_CURVES), ("binary-curve", _BINARY_CURVES)),
        "ecdh": (
            ("prime-curve", _PRIME_CURVES),
            ("binary-curve", _BINARY_CURVES),
            ("montgomery-curve", _MONTGOMERY_CURVES),
        ),
        "eddsa": (("edwards-curve", _EDWARDS_CURVES),),
        "mldsa": (("mldsa", _ML_DSA),),
        "mlkem": (("mlkem", _ML_KEM),),
    }
    for kind, table in tables.get(algorithm, ()):
        if parameters in table:
            return Parameters(kind, table[parameters])
    if algorithm == "hybrid" and parameters in HYBRID_PARTS:
        return Parameters("hybrid", _ML_KEM[HYBRID_PARTS[parameters][1]])
    return None


def accepted_parameters(algorithm: str) -> str:
    """Return what an error message says is accepted as parameters of ``algorithm``."""
    return {
        "rsa": "rsaBITS, rsaBITSe3",
        "dsa": "dsaBITS",
        "dh": "dhBITS, ffdheBITS, wtlsdh512, wtlsdh768",
        "ecdsa": ", ".join([*_PRIME_CURVES, *_BINARY_CURVES]),
        "ecdh": ", ".join([*_MONTGOMERY_CURVES, *_PRIME_CURVES, *_BINARY_CURVES]),
        "eddsa": ", ".join(_EDWARDS_CURVES),
        "mldsa": ", ".join(_ML_DSA),
        "mlkem": ", ".join(_ML_KEM),
        "hybrid": ", ".join(HYBRID_PARTS),
    }[algorithm]


def triple_fault(operation: str, algorithm: str, parameters: str) -> str | None:
    """Return what is wrong with a triple and what is accepted, or None if it is well formed."""
    if operation not in OPERATIONS:
        hint = did_you_mean(operation, OPERATIONS)
        return f"unknown operation {operation!r}; accepted: {', '.join(OPERATIONS)}{hint}"
    if operation in SYMMETRIC_OPERATIONS:
        if parameters:
            return f"{operation} takes no parameters, but has {parameters!r}; accepted: an empty string"
        if not _SYMMETRIC_NAME.fullmatch(algorithm):
            return f"algorithm {algorithm!r} is not a lower-case name such as 'sha256' or 'aes-128-gcm'"
        return None
    if algorithm not in ALGORITHMS[operation]:
        hint = did_you_mean(algorithm, ALGORITHMS[operation])
        choices = ", ".join(ALGORITHMS[operation])
        return f"{operation} has no algorithm {algorithm!r}; accepted: {choices}{hint}"
    if parse_parameters(algorithm, parameters) is None:
        return f"unknown parameters {parameters!r} of {algorithm}; accepted: {accepted_parameters(algorithm)}"
    return None
