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

SYMMETRIC_OPERATIONS = ("digest", "mac", "cipher", "prf")
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
    "import": ("dh", "ec", *_KEMS, "rsa", "dsa", "eddsa", "mldsa"),
}
PUBLIC_KEY_OPERATIONS = tuple(ALGORITHMS)
OPERATIONS = PUBLIC_KEY_OPERATIONS + SYMMETRIC_OPERATIONS

_PRIME_CURVES = re.compile(r"(?:p|secp|brainpoolp)(\d{3})(?:[kr][12]|t1)?")
_BINARY_CURVES = re.compile(r"(?:sect|c2pnb)(\d{3})(?:[kr][12]|v1)")
_WTLS_CURVES = {
    "wtls1": ("binary-curve", 113),
    "wtls8": ("prime-curve", 112),
    "wtls9": ("prime-curve", 160),
}
_CURVE_EXAMPLES = "p256, secp160r1, brainpoolp256r1, sect163k1, c2pnb163v1, wtls1, wtls8, wtls9"
_MONTGOMERY_CURVES = {"x25519": 255, "x448": 448}
_EDWARDS_CURVES = {"ed25519": 255, "ed448": 448}
_ML_DSA = {"mldsa44": 4, "mldsa65": 6, "mldsa87": 8}
_ML_KEM = {"mlkem512": 2, "mlkem768": 3, "mlkem1024": 4}
HYBRID_PARTS = {
    "x25519mlkem768": ("x25519", "mlkem768"),
    "secp256r1mlkem768": ("p256", "mlkem768"),
    "secp384r1mlkem1024": ("p384", "mlkem1024"),
}
_SYMMETRIC_NAME = re.compile(r"[a-z0-9][a-z0-9./\-]*")


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
    if algorithm in ("ec", "ecdh", "ecdsa"):
        if algorithm != "ecdsa" and parameters in _MONTGOMERY_CURVES:
            return Parameters("montgomery-curve", _MONTGOMERY_CURVES[parameters])
        return _curve(parameters)
    tables = {
        "eddsa": ("edwards-curve", _EDWARDS_CURVES),
        "mldsa": ("mldsa", _ML_DSA),
        "mlkem": ("mlkem", _ML_KEM),
    }
    if algorithm in tables and parameters in tables[algorithm][1]:
        kind, table = tables[algorithm]
        return Parameters(kind, table[parameters])
    if algorithm == "hybrid" and parameters in HYBRID_PARTS:
        return Parameters("hybrid", _ML_KEM[HYBRID_PARTS[parameters][1]])
    return None


def _curve(name: str) -> Parameters | None:
    if name in _WTLS_CURVES:
        return Parameters(*_WTLS_CURVES[name])
    for kind, form in (("prime-curve", _PRIME_CURVES), ("binary-curve", _BINARY_CURVES)):
        match = form.fullmatch(name)
        if match:
            return Parameters(kind, int(match[1]))
    return None


def accepted_parameters(algorithm: str) -> str:
    """Return what an error message says is accepted as parameters of ``algorithm``."""
    return {
        "rsa": "rsaBITS, rsaBITSe3",
        "dsa": "dsaBITS",
        "dh": "dhBITS, ffdheBITS, wtlsdh512, wtlsdh768",
        "ecdsa": f"a curve such as {_CURVE_EXAMPLES}",
        "ecdh": f"x25519, x448, or a curve such as {_CURVE_EXAMPLES}",
        "ec": f"x25519, x448, or a curve such as {_CURVE_EXAMPLES}",
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
