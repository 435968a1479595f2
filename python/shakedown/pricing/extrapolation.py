"""What a call costs on a device whose profile lacks it: extrapolated, with the method and a range.

In this order:

1. the same operation under another name: RSA signing and decryption, a private key of another exponent;
2. the same family at another size, by the device's own exponent where it has two sizes, else the family's
   (``EXPONENTS``);
3. the parts of a hybrid;
4. the ratio to the nearest family that the device has, taken from a named reference profile, with a range of
   at least ×/÷ 2.

An import without a figure counts as 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from shakedown.errors import InputError
from shakedown.models.ranges import Range, exactly
from shakedown.profiles.device import Cost, Device, Triple
from shakedown.profiles.vocabulary import (
    HYBRID_PARTS,
    SYMMETRIC_OPERATIONS,
    Parameters,
    parse_parameters,
)

REFERENCES = ("reference", "phone", "cortex-m4")
"""Profiles asked for ratios between families, in this order."""

EXPONENTS: dict[str, float] = {
    "rsa-private": 3.0,  # n-bit exponent, n-bit modulus, schoolbook multiplication
    "rsa-public": 2.0,  # fixed exponent
    "dsa": 2.5,  # modulus squared, subgroup about half as fast growing
    "dh": 3.0,  # exponent as long as the prime
    "ffdhe": 2.3,  # short exponents
    "prime-curve": 2.6,  # field multiplications squared, times bits of the scalar, less better reduction
    "binary-curve": 2.3,  # word-parallel field arithmetic
    "montgomery-curve": 2.8,
    "edwards-curve": 2.8,
    "mlkem": 1.3,  # module rank k: between k (noise) and k² (matrix)
    "mldsa": 1.4,
    "hybrid": 1.3,
}
EXPONENT_SPREAD = 0.5
LEAST_SPREAD = 1.1
SAME_SIZE_SPREAD = 1.25
REFERENCE_SPREAD = 2.0
FAR_SPREAD = 4.0
FAR_DISTANCE = 4.0
_LIGHT = ("verify", "encrypt", "encapsulate")
_RSA_TWINS = {"sign": "decrypt", "decrypt": "sign", "verify": "encrypt", "encrypt": "verify"}
_GROUPS = {
    "rsa": "integer",
    "rsa-e3": "integer",
    "dsa": "integer",
    "dh": "integer",
    "ffdhe": "integer",
    "prime-curve": "curve",
    "binary-curve": "curve",
    "montgomery-curve": "curve",
    "edwards-curve": "curve",
    "mlkem": "lattice",
    "mldsa": "lattice",
    "hybrid": "lattice",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """The time of one call: range, standard deviation, and how it was come by ("" for the device's own
    figure).
    """

    time: Range
    sd_s: float = 0.0
    method: str = ""
    source: str = ""
    energy_j: float | None = None


def call_figure(device: Device, triple: Triple) -> Figure:
    """Return what one public-key call costs on a device that has primitives.

    Raises:
        InputError: if neither the device nor a reference gives a way to price it.
    """
    return _call_figure(_Key(device), triple)


class _Key:
    """A device as a cache key: profiles are loaded once and compared by identity."""

    __slots__ = ("device",)

    def __init__(self, device: Device) -> None:
        self.device = device

    def __hash__(self) -> int:
        return id(self.device)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.device is self.device


@lru_cache(maxsize=4096)
def _call_figure(key: _Key, triple: Triple) -> Figure:
    device = key.device
    figure = _within(device, triple)
    if figure is not None:
        return figure
    if triple[0] == "import":
        return Figure(exactly(0.0), method="none: counts as 0", energy_j=0.0)
    if triple[1] == "hybrid":
        return _hybrid(device, triple)
    return _by_reference(device, triple)


def _within(device: Device, triple: Triple) -> Figure | None:
    """What the device's own family says."""
    return (
        _own(device, triple)
        or _same_operation(device, triple)
        or _same_family(device, triple)
        or _rsa(device, triple)
        or _diffie_hellman(device, triple)
    )


def _own(device: Device, triple: Triple) -> Figure | None:
    cost = device.costs.get(triple)
    return None if cost is None else _of(cost)


def _of(cost: Cost, method: str = "", source: str = "", spread: float = 1.0) -> Figure:
    time = Range(cost.low_s, cost.mean_s, cost.high_s)
    if spread > 1.0:
        time = time.widened(spread)
    return Figure(time, cost.sd_s, method, source, cost.energy_j if not method else None)


def _same_operation(device: Device, triple: Triple) -> Figure | None:
    """RSA: signing is decryption, checking is encryption; a private key's time does not hang on e."""
    operation, algorithm, token = triple
    if algorithm != "rsa" or operation not in _RSA_TWINS:
        return None
    twin = _RSA_TWINS[operation]
    other_token = token.removesuffix("e3") if token.endswith("e3") else token + "e3"
    private = operation in ("sign", "decrypt")
    for known_token in (token, other_token) if private else (token,):
        for known in (operation, twin):
            cost = device.costs.get((known, algorithm, known_token))
            if cost is not None:
                return _of(cost, f"same operation: {known} {known_token}", device.name, LEAST_SPREAD)
    for known in () if private else (operation, twin):
        cost = device.costs.get((known, algorithm, other_token))
        if cost is not None:
            return _other_exponent(cost, token.endswith("e3"), f"{known} {other_token}", device.name)
    return None


def _rsa(device: Device, triple: Triple) -> Figure | None:
    """Another size of the operation's twin, or of the other exponent."""
    operation, algorithm, token = triple
    if algorithm != "rsa" or operation not in _RSA_TWINS:
        return None
    twin = _same_family(device, (_RSA_TWINS[operation], "rsa", token))
    if twin is not None:
        return _scaled(twin, 1.0, f"same operation: {_RSA_TWINS[operation]} {token}", device.name)
    to_three = token.endswith("e3")
    other_token = token.removesuffix("e3") if to_three else token + "e3"
    for known in (operation, _RSA_TWINS[operation]):
        other = _same_family(device, (known, "rsa", other_token))
        if other is None:
            continue
        if operation in ("sign", "decrypt"):
            return _scaled(other, 1.0, f"same operation: {known} {other_token}", device.name)
        cost = Cost(other.time.mean, other.sd_s)
        return _other_exponent(cost, to_three, f"{known} {other_token}, by {other.method},", device.name)
    return None


def _diffie_hellman(device: Device, triple: Triple) -> Figure | None:
    """A share is made by exponentiation, like agreement; time goes with the exponent's length."""
    operation, algorithm, token = triple
    wanted = parse_parameters(algorithm, token)
    if algorithm != "dh" or operation not in ("keygen", "derive") or wanted is None:
        return None
    twin = "derive" if operation == "keygen" else "keygen"
    same = _own(device, (twin, "dh", token)) or _same_family(device, (twin, "dh", token))
    if same is not None:
        return _scaled(same, 1.0, f"same exponentiation: {twin} {token}", device.name)
    ratio = wanted.size / _short_exponent_bits(wanted.size)
    kind, factor = ("ffdhe", ratio) if wanted.kind == "dh" else ("dh", 1.0 / ratio)
    for known in (operation, twin):
        other = (known, "dh", f"{kind}{wanted.size}")
        figure = _own(device, other) or _same_family(device, other)
        if figure is not None:
            method = f"exponent length: {known} {other[2]} × {factor:.3g}"
            return _scaled(figure, factor, method, device.name)
    return None


def _short_exponent_bits(prime_bits: int) -> int:
    """Twice the security strength of a prime (NIST SP 800-56A rev. 3, appendix D), as OpenSSL takes it."""
    strengths = {1024: 160, 2048: 225, 3072: 275, 4096: 325, 6144: 375, 8192: 400}
    return strengths.get(prime_bits) or min(prime_bits, round(2.0 * 80.0 * (prime_bits / 1024.0) ** 0.45))


def _scaled(figure: Figure, factor: float, method: str, source: str) -> Figure:
    how = f"{method}, itself by {figure.method}" if figure.method else method
    return Figure(figure.time.times(factor).widened(SAME_SIZE_SPREAD), figure.sd_s * factor, how, source)


def _other_exponent(cost: Cost, to_three: bool, known: str, source: str) -> Figure:
    """e = 65537 takes 17 modular multiplications, e = 3 takes 2; padding and set-up take the same in both."""
    least = 2.0 / 17.0
    ratio = math.sqrt(least)  # geometric middle of all work scaling and none
    low, high = least, 1.0
    if not to_three:
        low, ratio, high = 1.0, 1.0 / ratio, 1.0 / least
    time = Range(cost.mean_s * low, cost.mean_s * ratio, cost.mean_s * high)
    return Figure(time, cost.sd_s * ratio, f"exponent: {known} × {ratio:.3g}", source)


def _law(operation: str, parameters: Parameters) -> float:
    if parameters.kind in ("rsa", "rsa-e3"):
        return EXPONENTS["rsa-public" if operation in ("verify", "encrypt") else "rsa-private"]
    return EXPONENTS[parameters.kind]


def _same_family(device: Device, triple: Triple) -> Figure | None:
    operation, algorithm, token = triple
    wanted = parse_parameters(algorithm, token)
    if wanted is None or operation == "import":
        return None
    known: list[tuple[float, str, Cost]] = []
    for (other_operation, other_algorithm, other_token), cost in device.costs.items():
        if (other_operation, other_algorithm) != (operation, algorithm) or cost.mean_s <= 0.0:
            continue
        other = parse_parameters(other_algorithm, other_token)
        if other is not None and other.kind == wanted.kind:
            known.append((math.log(wanted.size / other.size), other_token, cost))
    if not known:
        return None
    known.sort(key=lambda item: (abs(item[0]), item[1]))
    steps, token_known, cost = known[0]
    law = _law(operation, wanted)
    others = [item for item in known[1:] if item[0] != steps]
    if others and steps:
        # Two sizes of its own tell the device's exponent; far from the family's law it is not trusted.
        own = math.log(cost.mean_s / others[0][2].mean_s) / (others[0][0] - steps)
        law = min(max(own, law - 2 * EXPONENT_SPREAD), law + 2 * EXPONENT_SPREAD)
    factor = math.exp(steps * law)
    spread = max(math.exp(abs(steps) * EXPONENT_SPREAD), LEAST_SPREAD if steps else SAME_SIZE_SPREAD)
    time = Range(cost.low_s, cost.mean_s, cost.high_s).times(factor)
    time = Range(min(time.low, time.mean / spread), time.mean, max(time.high, time.mean * spread))
    method = f"size: {token_known} × {factor:.3g} (exponent {law:.2f})"
    return Figure(time, cost.sd_s * factor, method, device.name)


def _hybrid(device: Device, triple: Triple) -> Figure:
    """A hybrid is a classical key agreement and a KEM; the answering side also makes a key pair."""
    classical, kem = HYBRID_PARTS[triple[2]]
    parts: list[Triple] = {
        "keygen": [("keygen", "ecdh", classical), ("keygen", "mlkem", kem)],
        "encapsulate": [
            ("keygen", "ecdh", classical),
            ("derive", "ecdh", classical),
            ("encapsulate", "mlkem", kem),
        ],
        "decapsulate": [("derive", "ecdh", classical), ("decapsulate", "mlkem", kem)],
    }[triple[0]]
    figures = [call_figure(device, part) for part in parts]
    time = exactly(0.0)
    for figure in figures:
        time = time.plus(figure.time)
    how = [
        f"{' '.join(part)} by {figure.method}"
        for part, figure in zip(parts, figures, strict=True)
        if figure.method
    ]
    method = "parts: " + " + ".join(f"{operation} {token}" for operation, _, token in parts)
    if how:
        method += "; " + "; ".join(how)
    sd_s = math.sqrt(sum(figure.sd_s**2 for figure in figures))
    return Figure(time.widened(LEAST_SPREAD), sd_s, method, device.name)


def _by_reference(device: Device, triple: Triple) -> Figure:
    best: tuple[float, Triple, float, Device] | None = None
    for reference in _references():
        if reference.name == device.name:
            continue
        target_s = _reference_time(reference, triple)
        nearest = None if target_s is None else _nearest(device, reference, triple)
        if target_s is None or nearest is None:
            continue
        distance, known, base_s = nearest
        if best is None or distance < best[0]:
            best = (distance, known, target_s / base_s, reference)
    if best is None:
        raise InputError(
            f"device {device.name!r} cannot be priced for {' '.join(triple)}: neither it nor a reference "
            f"profile ({', '.join(REFERENCES)}) has a figure to start from"
        )
    distance, known, ratio, reference = best
    cost = device.costs[known]
    spread = REFERENCE_SPREAD if distance < FAR_DISTANCE else FAR_SPREAD
    time = Range(cost.low_s, cost.mean_s, cost.high_s).times(ratio).widened(spread)
    method = f"ratio: {' '.join(known)} × {ratio:.3g}, as on {reference.name}"
    return Figure(time, cost.sd_s * ratio, method, reference.name)


def _reference_time(reference: Device, triple: Triple) -> float | None:
    figure = _within(reference, triple)
    return None if figure is None or figure.time.mean <= 0.0 else figure.time.mean


def _nearest(device: Device, reference: Device, triple: Triple) -> tuple[float, Triple, float] | None:
    best: tuple[float, Triple, float] | None = None
    for known, cost in device.costs.items():
        if known[0] in (*SYMMETRIC_OPERATIONS, "import") or cost.mean_s <= 0.0:
            continue
        base_s = _reference_time(reference, known)
        if base_s is None:
            continue
        distance = _distance(triple, known)
        if best is None or (distance, known) < (best[0], best[1]):
            best = (distance, known, base_s)
    return best


def _distance(wanted: Triple, known: Triple) -> float:
    """How far two primitives are from each other, for choosing the one to scale from."""
    want, have = parse_parameters(wanted[1], wanted[2]), parse_parameters(known[1], known[2])
    assert want is not None
    assert have is not None
    if want.kind == have.kind:
        distance = 0.5 if wanted[2] == known[2] else 1.0
    elif _GROUPS[want.kind] == _GROUPS[have.kind]:
        distance = 2.0
    else:
        distance = FAR_DISTANCE
    if wanted[0] != known[0]:
        distance += 0.3
    if _GROUPS[want.kind] == _GROUPS[have.kind]:
        distance += 0.1 * abs(math.log(want.size / have.size))
        distance += 0.3 * ((wanted[0] in _LIGHT) != (known[0] in _LIGHT))
    return distance


@lru_cache(maxsize=1)
def _references() -> tuple[Device, ...]:
    from shakedown.profiles import device_names, load_device

    shipped = device_names()
    return tuple(load_device(name) for name in REFERENCES if name in shipped)
