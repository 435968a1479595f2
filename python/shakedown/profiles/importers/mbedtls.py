"""Reading the output of mbedTLS's ``benchmark``."""

from __future__ import annotations

import re

from shakedown.profiles.importers.common import CURVE_NAMES, Primitives


def read_mbedtls(text: str) -> Primitives:
    """Read mbedTLS's ``benchmark``: rates or milliseconds per operation, KiB/s for symmetric work.

    Its "ECDHE … handshake" is one key pair and one agreement, "ECDH … handshake" one agreement.
    """
    found: Primitives = {}
    ephemeral: dict[str, float] = {}
    line_form = re.compile(
        r"^\s*([A-Za-z0-9-]+)\s*:\s*([\d.]+)\s*(?:(ms)/\s*(public|private|sign|verify|handshake)"
        r"|(public|private|sign|verify|handshake)/s|(?:Ki?B)/s)"
    )
    for line in text.splitlines():
        match = line_form.match(line)
        if match is None or float(match[2]) <= 0:
            continue
        name, figure = match[1], float(match[2])
        step = match[4] or match[5]
        if step is None:
            symmetric = _mbedtls_symmetric(name)
            if symmetric:
                found[*symmetric, ""] = {"per_kib_us": 1e6 / figure}
            continue
        time_us = figure * 1e3 if match[3] else 1e6 / figure
        family, _, rest = name.partition("-")
        token = CURVE_NAMES.get(rest.upper()) or {"Curve25519": "x25519", "x25519": "x25519"}.get(rest, "")
        if family == "RSA":
            for operation in ("verify", "encrypt") if step == "public" else ("sign", "decrypt"):
                found[operation, "rsa", f"rsa{rest}"] = {"time_us": time_us}
        elif family == "ECDSA" and token:
            found[step, "ecdsa", token] = {"time_us": time_us}
        elif family == "ECDH" and token:
            found["derive", "ecdh", token] = {"time_us": time_us}
        elif family == "ECDHE" and token:
            ephemeral[token] = time_us
    for token, both_us in ephemeral.items():
        derive = found.get(("derive", "ecdh", token))
        if derive is not None and derive["time_us"] < both_us:
            found["keygen", "ecdh", token] = {"time_us": both_us - derive["time_us"]}
        elif derive is None:
            found["derive", "ecdh", token] = {"time_us": both_us / 2}
            found["keygen", "ecdh", token] = {"time_us": both_us / 2}
    return found


def _mbedtls_symmetric(name: str) -> tuple[str, str] | None:
    lower = name.lower()
    if re.fullmatch(r"aes-(cbc|gcm|ccm)-\d+", lower):
        _, mode, bits = lower.split("-")
        return "cipher", f"aes-{bits}-{mode}"
    if re.fullmatch(r"(md5|sha-\d+)", lower):
        return "digest", lower.replace("-", "")
    return ("cipher", "chacha20-poly1305") if lower == "chachapoly" else None
