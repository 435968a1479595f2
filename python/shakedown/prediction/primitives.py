"""The similarity of primitives: the levels at which the cost model shares information between them."""

from __future__ import annotations

import math
import re
from functools import lru_cache

from shakedown.profiles.costs import Triple
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS, parse_parameters

GROUPS = ("curves", "integers", "lattices", "symmetric")
LEVELS = (
    "everything",
    "group",
    "family",
    "character",
    "operation",
    "size",
    "operation and size",
    "primitive",
)
"""From all primitives to a single one; each level has a label in `levels`."""
TWINS = {"sign": "decrypt", "decrypt": "sign", "verify": "encrypt", "encrypt": "verify"}
"""RSA's pairs of operations that do the same work."""

SIZE_EXPONENTS: dict[str, float] = {
    "rsa-private": 3.0,  # n-bit exponent, n-bit modulus, schoolbook multiplication
    "rsa-public": 2.0,  # fixed exponent
    "dsa": 2.5,  # modulus squared, subgroup about half as fast growing
    "dh": 3.0,  # exponent as long as the prime
    "ffdhe": 2.3,  # short exponents
    "prime-curve": 2.6,  # field multiplications squared, times bits of the scalar, less better reduction
    "random-curve": 2.8,  # no prime of special form
    "binary-curve": 2.3,  # word-parallel field arithmetic
    "montgomery-curve": 2.8,
    "edwards-curve": 2.8,
    "mlkem": 1.3,  # module rank k: between k (noise) and k² (matrix)
    "mldsa": 1.4,
    "hybrid": 1.3,
}
"""Expected growth of time with size in a family; the model estimates the deviation from it."""
_USUAL_SIZE = {"curves": 256, "integers": 2048, "lattices": 3}
_GROUP = {
    **dict.fromkeys(("rsa", "rsa-e3", "dsa", "dh", "ffdhe"), "integers"),
    **dict.fromkeys(("mlkem", "mldsa", "hybrid"), "lattices"),
    "symmetric": "symmetric",
}
_FAMILY = {"rsa-e3": "rsa", "ffdhe": "dh", "random-curve": "prime-curve"}
_CIPHER = re.compile(r"(?P<name>rc5-32|des-ede3|[a-z0-9]+?)(?:[-/](?P<size>\d+))?(?:-(?P<mode>[a-z0-9]+))?")
_CUT_SHORT = {"sha224": "sha256", "sha384": "sha512", "sha3-384": "sha3-512"}
"""Digests that are another digest's function, or nearly, with a truncated output."""
_AEAD = ("gcm", "ccm", "poly1305")


@lru_cache(maxsize=4096)
def kind(triple: Triple) -> str:
    """The family of a primitive, in which costs scale with size."""
    operation, algorithm, token = triple
    if operation in SYMMETRIC_OPERATIONS:
        return "symmetric"
    parameters = parse_parameters(algorithm, token)
    if parameters is None:
        raise ValueError(f"no parameters of {algorithm}: {token!r}")
    if parameters.kind == "prime-curve" and token.startswith("brainpool"):
        return "random-curve"
    return parameters.kind


def group(triple: Triple) -> str:
    """What a primitive computes with: ``curves``, ``integers``, ``lattices`` or ``symmetric``."""
    return _GROUP.get(kind(triple), "curves")


def size(triple: Triple) -> int:
    """The size inside the family: bits, or the module's rank."""
    parameters = parse_parameters(triple[1], triple[2])
    assert parameters is not None
    return parameters.size


def short_exponent_bits(prime_bits: int) -> int:
    """Twice the security strength of a prime (NIST SP 800-56A rev. 3, appendix D), as in OpenSSL."""
    strengths = {1024: 160, 2048: 225, 3072: 275, 4096: 325, 6144: 375, 8192: 400}
    return strengths.get(prime_bits) or min(prime_bits, round(2.0 * 80.0 * (prime_bits / 1024.0) ** 0.45))


@lru_cache(maxsize=4096)
def expected(triple: Triple) -> float:
    """The expected logarithm of a cost, relative to its family's usual size.

    The time of a DH operation is proportional to the length of the exponent. With e = 3 an RSA public
    operation takes between 2/17 of its time with 65537 (the multiplications) and all of it (the rest).
    """
    if group(triple) == "symmetric":
        match = _CIPHER.fullmatch(triple[1])
        if match and match["name"] == "des-ede3":
            return math.log(3.0)
        bits = {"aes": 128, "aria": 128, "camellia": 128, "rc5-32": 12}.get(match["name"] if match else "")
        growth = 1.0 if match and match["name"] == "rc5-32" else 0.4  # RC5 by rounds, others by key bits
        return growth * math.log(int(match["size"]) / bits) if match and bits and match["size"] else 0.0
    family = kind(triple)
    law, found = family, 0.0
    if family in ("rsa", "rsa-e3"):
        public = triple[0] in ("verify", "encrypt")
        law = "rsa-public" if public else "rsa-private"
        found = math.log(2.0 / 17.0) / 2.0 if public and family == "rsa-e3" else 0.0
    elif family == "dh":
        law, found = "ffdhe", math.log(size(triple) / short_exponent_bits(size(triple)))
    return found + SIZE_EXPONENTS[law] * math.log(size(triple) / _USUAL_SIZE[group(triple)])


@lru_cache(maxsize=4096)
def levels(triple: Triple) -> tuple[tuple[object, ...], ...]:
    """A primitive's label at each of `LEVELS`."""
    of = group(triple)
    operation, algorithm, _ = triple
    if of == "symmetric":
        return (("all",), (of,), *_symmetric_levels(operation, algorithm), (triple,))
    family = _FAMILY.get(kind(triple), kind(triple))
    same = operation if algorithm != "dh" else "derive"
    if algorithm == "rsa":
        same = {"decrypt": "sign", "encrypt": "verify"}.get(operation, operation)
    token = triple[2] if of == "curves" else str(size(triple))
    exact = (kind(triple), token) if same != "sign" or family != "rsa" else (token,)
    return (
        ("all",),
        (of,),
        (of, family),
        (of, family, "like", _character(operation, algorithm)),
        (of, family, same),
        (of, family, "size", token),
        (of, family, same, *exact),
        (triple,),
    )


def _symmetric_levels(operation: str, algorithm: str) -> tuple[tuple[object, ...], ...]:
    of = "symmetric"
    if operation != "cipher":
        name = algorithm.removeprefix("hmac-")
        name = _CUT_SHORT.get(name, name)
        words = "64-bit" if name in ("sha512", "sha3-256", "sha3-512") else "32-bit"
        return (
            (of, "digest"),
            (of, operation),
            (of, "digest", words),
            (of, "digest", name),
            (of, operation, name),
        )
    match = _CIPHER.fullmatch(algorithm)
    cipher, mode = (match["name"], match["mode"] or match["name"]) if match else (algorithm, algorithm)
    cipher = cipher.removesuffix("-ede3")
    return (
        (of, operation),
        (of, "AEAD", mode in _AEAD),
        (of, "mode", mode),
        (of, cipher),
        (of, cipher, mode),
    )


def _character(operation: str, algorithm: str) -> str:
    """Operations of one character do similar work: fixed and variable base, public and private exponent."""
    if algorithm == "rsa":
        return "public" if operation in ("verify", "encrypt") else "exponentiation"
    if algorithm in ("mlkem", "mldsa", "hybrid"):
        return "rejection" if operation == "sign" else "lattice"
    return "fixed base" if operation in ("sign", "keygen") and algorithm != "dh" else "variable base"
