"""The triples in traces and device profiles: operation, algorithm, parameters.

A triple names a cryptographic operation: ``("sign", "ecdsa", "p256")``. Public-key operations have a
parameter token (key size, curve or group); for symmetric ones (``digest``, ``mac``, ``cipher``, ``prf``) it
is empty.
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

_PRIME_CURVES = """
    p192 p224 p256 p384 p521 secp112r1 secp112r2 secp128r1 secp128r2 secp160k1 secp160r1 secp160r2
    secp192k1 secp224k1 secp256k1 brainpoolp160r1 brainpoolp160t1 brainpoolp192r1 brainpoolp192t1
    brainpoolp224r1 brainpoolp224t1 brainpoolp256r1 brainpoolp256t1 brainpoolp320r1 brainpoolp320t1
    brainpoolp384r1 brainpoolp384t1 brainpoolp512r1 brainpoolp512t1
"""
_BINARY_CURVES = """
    sect113r1 sect113r2 sect131r1 sect131r2 sect163k1 sect163r1 sect163r2 sect193r1 sect193r2
    sect233k1 sect233r1 sect239k1 sect283k1 sect283r1 sect409k1 sect409r1 sect571k1 sect571r1
    c2pnb163v1 c2pnb163v2 c2pnb163v3
"""
_CURVES = {
    **{
        name: (kind, int(bits[0]))
        for kind, names in (("prime-curve", _PRIME_CURVES), ("binary-curve", _BINARY_CURVES))
        for name in names.split()
        if (bits := re.search(r"\d{3}", name))
    },
    "wtls1": ("binary-curve", 113),
    "wtls8": ("prime-curve", 112),
    "wtls9": ("prime-curve", 160),
}
_NAMED_GROUP_BITS = {"ffdhe": (2048, 3072, 4096, 6144, 8192), "wtlsdh": (512, 768)}
_CURVE_EXAMPLES = "p256, secp160r1, brainpoolp256r1, sect163k1, c2pnb163v1, wtls1, wtls8, wtls9"
_MONTGOMERY_CURVES = {"x25519": 255, "x448": 448}
_ML_KEM = {"mlkem512": 2, "mlkem768": 3, "mlkem1024": 4}
HYBRID_PARTS = {
    "x25519mlkem768": ("x25519", "mlkem768"),
    "secp256r1mlkem768": ("p256", "mlkem768"),
    "secp384r1mlkem1024": ("p384", "mlkem1024"),
}
_SIZES: dict[str, tuple[str, dict[str, int]]] = {
    "eddsa": ("edwards-curve", {"ed25519": 255, "ed448": 448}),
    "mldsa": ("mldsa", {"mldsa44": 4, "mldsa65": 6, "mldsa87": 8}),
    "mlkem": ("mlkem", _ML_KEM),
    "hybrid": ("hybrid", {name: _ML_KEM[kem] for name, (_, kem) in HYBRID_PARTS.items()}),
}
"""Kind and sizes of all parameters of an algorithm."""
_SYMMETRIC_NAME = re.compile(r"[a-z0-9][a-z0-9./\-]*")


@dataclass(frozen=True, slots=True)
class Parameters:
    """The meaning of a parameter token: a kind, within which costs scale with ``size``, and the size.

    ``size`` is in bits; for lattice schemes it is the module rank.
    """

    kind: str
    size: int


@lru_cache(maxsize=512)
def parse_parameters(algorithm: str, parameters: str) -> Parameters | None:
    """Return the meaning of ``parameters`` for ``algorithm``, or None if the token is unknown."""
    if algorithm == "rsa":
        match = re.fullmatch(r"rsa([1-9]\d{2,4})(e3)?", parameters)
        return Parameters("rsa-e3" if match[2] else "rsa", int(match[1])) if match else None
    if algorithm == "dsa":
        match = re.fullmatch(r"dsa([1-9]\d{2,4})", parameters)
        return Parameters("dsa", int(match[1])) if match else None
    if algorithm == "dh":
        match = re.fullmatch(r"(dh|ffdhe|wtlsdh)([1-9]\d{2,4})", parameters)
        if match is None or int(match[2]) not in _NAMED_GROUP_BITS.get(match[1], (int(match[2]),)):
            return None
        return Parameters("ffdhe" if match[1] == "ffdhe" else "dh", int(match[2]))
    if algorithm in ("ec", "ecdh", "ecdsa"):
        if algorithm != "ecdsa" and parameters in _MONTGOMERY_CURVES:
            return Parameters("montgomery-curve", _MONTGOMERY_CURVES[parameters])
        return Parameters(*_CURVES[parameters]) if parameters in _CURVES else None
    kind, sizes = _SIZES.get(algorithm, ("", {}))
    return Parameters(kind, sizes[parameters]) if parameters in sizes else None


def accepted_parameters(algorithm: str) -> str:
    """Return the accepted parameters of ``algorithm``, for error messages."""
    if algorithm in _SIZES:
        return ", ".join(_SIZES[algorithm][1])
    return {
        "rsa": "rsaBITS, rsaBITSe3",
        "dsa": "dsaBITS",
        "dh": "dhBITS, ffdhe2048, ffdhe3072, ffdhe4096, ffdhe6144, ffdhe8192, wtlsdh512, wtlsdh768",
        "ecdsa": f"a curve such as {_CURVE_EXAMPLES}",
        "ecdh": f"x25519, x448, or a curve such as {_CURVE_EXAMPLES}",
        "ec": f"x25519, x448, or a curve such as {_CURVE_EXAMPLES}",
    }[algorithm]


def triple_fault(operation: str, algorithm: str, parameters: str) -> str | None:
    """Return the error of a triple with the accepted values, or None if it is well formed."""
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
