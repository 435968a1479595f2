"""Reading ``openssl speed -mr``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from shakedown.profiles.importers.common import Figures, Imported, Primitives
from shakedown.profiles.vocabulary import parse_parameters, triple_fault

_OPENSSL_CURVES = [
    "secp160r1",
    *(f"p{bits}" for bits in (192, 224, 256, 384, 521)),
    *(f"sect{bits}k1" for bits in (163, 233, 283, 409, 571)),
    "sect163r2",
    *(f"sect{bits}r1" for bits in (233, 283, 409, 571)),
    *(f"brainpoolp{bits}{form}" for bits in (256, 384, 512) for form in ("r1", "t1")),
]
"""Curves in the order of ``speed.c``; a build without binary curves does not number these."""
_OPENSSL_MONTGOMERY = {253: "x25519", 448: "x448"}
_STEPS = {"mlkem": ("keygen", "encapsulate", "decapsulate"), "mldsa": ("keygen", "sign", "verify")}


def read_openssl_speed(text: str) -> Imported:
    """Read ``openssl speed -mr``. Figures of at least 1 are operations per second (since OpenSSL 1.1.0);
    smaller ones are seconds.
    """
    found = Figures()
    result = Imported(found)

    def put(operation: str, algorithm: str, parameters: str, figure: str) -> None:
        per_s = float(figure)
        triple = (operation, algorithm, parameters)
        if triple_fault(*triple) is not None:
            return
        if not 0 < per_s < math.inf:
            what = " ".join(triple)
            result.omitted.append(f"line {found.line}: {what}: {figure}, which is not a time or rate")
        else:
            found[triple] = {"time_us": 1e6 / per_s if per_s >= 1 else per_s * 1e6}

    sizes: list[int] = []
    for found.line, line in enumerate(text.splitlines(), start=1):
        kind, *fields = line.strip().split(":")
        before = len(found)
        if kind == "+H":
            sizes = [int(field) for field in fields]
            continue
        if not re.fullmatch(r"\+F\d*", kind):
            continue
        if kind == "+F" and sizes:
            _openssl_symmetric(found, fields, sizes)
        elif kind in ("+F2", "+F3") and len(fields) >= 4:
            algorithm = "rsa" if kind == "+F2" else "dsa"
            put("sign", algorithm, f"{algorithm}{fields[1]}", fields[2])
            put("verify", algorithm, f"{algorithm}{fields[1]}", fields[3])
            if algorithm == "rsa" and len(fields) >= 6:
                put("encrypt", "rsa", f"rsa{fields[1]}", fields[4])
                put("decrypt", "rsa", f"rsa{fields[1]}", fields[5])
        elif kind == "+F4" and len(fields) >= 4 and (curve := _openssl_curve(fields)):
            put("sign", "ecdsa", curve, fields[2])
            put("verify", "ecdsa", curve, fields[3])
        elif kind == "+F5" and len(fields) >= 3:
            if curve := _OPENSSL_MONTGOMERY.get(int(fields[1])) or _openssl_curve(fields):
                put("derive", "ecdh", curve, fields[2])
        elif kind == "+F6" and len(fields) >= 5:
            put("sign", "eddsa", fields[2].lower(), fields[3])
            put("verify", "eddsa", fields[2].lower(), fields[4])
        elif kind == "+F8" and len(fields) >= 3:
            put("derive", "dh", f"ffdhe{fields[1]}", fields[2])
        elif kind in ("+F9", "+F10", "+F11"):
            _openssl_named(put, fields)
        if len(found) == before:
            result.omitted.append(f"{line.strip()}: no suite uses it, or a form that is not known")
    return result


def _openssl_curve(fields: list[str]) -> str:
    """The curve with a number and a size in bits; empty if it is unknown."""
    number, bits = int(fields[0]), int(fields[1])
    with_binary = _OPENSSL_CURVES
    without = [one for one in with_binary if not one.startswith("sect")]
    for curves in (with_binary, without):
        known = parse_parameters("ecdsa", curves[number]) if 0 <= number < len(curves) else None
        if known is not None and known.size == bits:
            return curves[number]
    return ""


def _openssl_named(put: Callable[[str, str, str, str], None], fields: list[str]) -> None:
    """Reads a KEM or a signature by name, with three figures: keygen, encapsulate or sign, decapsulate or
    verify.
    """
    name = next((field for field in fields if re.search(r"[A-Za-z]", field)), "")
    figures = [field for field in fields if re.fullmatch(r"\d+\.\d+", field)][:3]
    if len(figures) < 3:
        return
    if match := re.fullmatch(r"(ML)-(KEM|DSA)-(\d+)", name):
        algorithm, token = f"ml{match[2].lower()}", name.replace("-", "").lower()
        for step, figure in zip(_STEPS[algorithm], figures, strict=True):
            put(step, algorithm, token, figure)


def _openssl_symmetric(found: Primitives, fields: list[str], sizes: list[int]) -> None:
    """Reads bytes per second by block size: the time per KiB is that of the largest block, and the time per
    call follows from the smallest.
    """
    name, rates = fields[1].lower(), [float(field) for field in fields[2:]]
    if len(rates) != len(sizes) or not all(0 < rate < math.inf for rate in rates):
        return
    if name.startswith("hmac("):
        operation, name = "mac", "hmac-" + name[5:-1]
    elif re.match(r"(md5|sha)", name):
        operation = "digest"
    elif re.match(r"(aes|camellia|des|chacha|aria|rc4|idea)", name):
        operation = "cipher"
    else:
        return
    per_kib_us = 1024e6 / rates[-1]
    per_call_us = sizes[0] * 1e6 / rates[0] - per_kib_us * sizes[0] / 1024
    call = {"per_call_us": per_call_us} if per_call_us > 0.0 else {}
    found[operation, name, ""] = {**call, "per_kib_us": per_kib_us}
