"""How two primitives are related: what one device's figure for the one may say of the other.

A relation's name says how near the two are; figures are scaled along relations, and the range of a scaled
figure is fitted to each relation apart (see `shakedown.prediction.ratios`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

from shakedown.profiles.costs import Triple
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS, parse_parameters

GROUPS = ("curves", "integers", "lattices", "symmetric")

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
"""How time grows with size inside a family, where the reference builds do not say; counts as one of them."""

_GROUP = {
    "rsa": "integers",
    "rsa-e3": "integers",
    "dsa": "integers",
    "dh": "integers",
    "ffdhe": "integers",
    "prime-curve": "curves",
    "random-curve": "curves",
    "binary-curve": "curves",
    "montgomery-curve": "curves",
    "edwards-curve": "curves",
    "mlkem": "lattices",
    "mldsa": "lattices",
    "hybrid": "lattices",
    "symmetric": "symmetric",
}
_CIPHER = re.compile(r"(aes|camellia)-(\d+)-(\w+)")


@dataclass(frozen=True, slots=True)
class Relation:
    """Its name, and what arithmetic expects of the logarithm of the two figures' ratio (None: nothing)."""

    name: str
    expected: float | None = None


@lru_cache(maxsize=4096)
def kind(triple: Triple) -> str:
    """The family a primitive belongs to, inside which costs scale with size."""
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
    return _GROUP[kind(triple)]


def size(triple: Triple) -> int:
    """The size inside the family: bits, or the module's rank."""
    parameters = parse_parameters(triple[1], triple[2])
    assert parameters is not None
    return parameters.size


def short_exponent_bits(prime_bits: int) -> int:
    """Twice the security strength of a prime (NIST SP 800-56A rev. 3, appendix D), as OpenSSL takes it."""
    strengths = {1024: 160, 2048: 225, 3072: 275, 4096: 325, 6144: 375, 8192: 400}
    return strengths.get(prime_bits) or min(prime_bits, round(2.0 * 80.0 * (prime_bits / 1024.0) ** 0.45))


@lru_cache(maxsize=65536)
def relation(target: Triple, base: Triple) -> Relation | None:
    """How ``target`` is related to ``base``; None where no ratio between the two is taken."""
    if target == base or "import" in (target[0], base[0]):
        return None
    wanted, known = kind(target), kind(base)
    if "symmetric" in (wanted, known):
        return _symmetric(target, base) if wanted == known else None
    if wanted == known:
        return _within_family(target, base, wanted)
    if {wanted, known} == {"rsa", "rsa-e3"}:
        return _other_exponent(target, base)
    if {wanted, known} == {"dh", "ffdhe"} and size(target) == size(base):
        factor = math.log(size(target) / short_exponent_bits(size(target)))
        return Relation("exponent length", factor if wanted == "dh" else -factor)
    if _GROUP[wanted] == _GROUP[known]:
        across = _across(target, base)
        return None if across and _GROUP[wanted] == "integers" else Relation("related family" + across)
    return Relation("other family")


def _within_family(target: Triple, base: Triple, family: str) -> Relation | None:
    if target[2] == base[2]:
        if target[1] == "rsa" and TWINS.get(target[0]) == base[0]:
            return Relation("same operation", 0.0)
        if target[1] == "dh":
            return Relation("same operation", 0.0)
        return Relation("other operation" + _across(target, base))
    if target[:2] == base[:2]:
        law = family
        if family in ("rsa", "rsa-e3"):
            law = "rsa-public" if target[0] in ("verify", "encrypt") else "rsa-private"
        return Relation("size", SIZE_EXPONENTS[law] * math.log(size(target) / size(base)))
    return Relation("size and operation" + _across(target, base))


def _other_exponent(target: Triple, base: Triple) -> Relation | None:
    """A private key's time does not depend on e; e = 65537 takes 17 modular multiplications, e = 3 takes 2,
    padding and set-up the same in both, so that the truth lies between 2/17 and 1.
    """
    if size(target) != size(base) or target[0] not in TWINS:
        return None
    private = ("sign", "decrypt")
    if target[0] in private and base[0] in private:
        return Relation("same operation", 0.0)
    if target[0] in private or base[0] in private:
        return None
    factor = math.log(2.0 / 17.0) / 2.0
    return Relation("public exponent", factor if kind(target) == "rsa-e3" else -factor)


def _across(target: Triple, base: Triple) -> str:
    """Two operations of different character (fixed and variable base, public and private) are farther
    apart.
    """
    return "" if _character(target) == _character(base) else ", of another character"


def _character(triple: Triple) -> str:
    operation, algorithm, _ = triple
    if group(triple) == "integers":
        return "public" if algorithm == "rsa" and operation in ("verify", "encrypt") else "exponentiation"
    if algorithm in ("mlkem", "mldsa", "hybrid"):
        return "rejection" if operation == "sign" else "lattice"
    if operation in ("sign", "keygen") and algorithm != "dh":
        return "fixed base"
    return "variable base"


def _symmetric(target: Triple, base: Triple) -> Relation | None:
    wanted, known = target[0], base[0]
    if {wanted, known} <= {"digest", "mac"}:
        if wanted == known:
            return Relation("related algorithm")
        same = target[1].removeprefix("hmac-") == base[1].removeprefix("hmac-")
        return Relation("same algorithm", 0.0) if same else Relation("related algorithm")
    if wanted == known == "cipher":
        one, other = _CIPHER.fullmatch(target[1]), _CIPHER.fullmatch(base[1])
        if one and other and one[1] == other[1]:
            if one[3] == other[3]:
                return Relation("size", 0.4 * math.log(float(one[2]) / float(other[2])))
            return Relation("mode") if one[2] == other[2] else Relation("size and mode")
        return Relation("related algorithm")
    return None
