"""Reading the output of mbedTLS's ``benchmark``."""

from __future__ import annotations

import re

from shakedown.profiles.importers.common import CURVE_NAMES, Figures, Imported, Primitives

_STEP = r"(public|private|sign|verify|(?:full )?handshake|shared secret)"
_LINE = re.compile(
    r"^\s*([A-Za-z][\w./-]*(?: \([A-Z]+\))?)\s*:\s*([\d.]+)\s*"
    rf"(?:(ms)\s*/\s*{_STEP}|{_STEP}\s*/s|(Ki?B)/s)"
)
_FIGURE = re.compile(r"^\s*[A-Za-z][\w./() -]*:\s*[\d.]+\s*(?:ms|Ki?B|[\w ]+/s)")


def read_mbedtls(text: str) -> Imported:
    """Read mbedTLS's ``benchmark``: rates or milliseconds per operation, KiB/s for symmetric work.

    Its "ECDHE … handshake" is one key generation and one key agreement, "… full handshake" two of each, "ECDH
    … handshake" and "… shared secret" one agreement. Its Diffie-Hellman exponents are as long as the prime.
    """
    primitives = Figures()
    found = Imported(primitives)
    pairs = Figures()
    for number, line in enumerate(text.splitlines(), start=1):
        primitives.line = pairs.line = number
        match = _LINE.match(line)
        if match is None or float(match[2]) <= 0.0:
            if _FIGURE.match(line):
                found.omitted.append(f"{line.strip()}: a form that is not known")
            continue
        name, figure = match[1], float(match[2])
        if match[6]:
            _symmetric(found, line, name, figure)
            continue
        step = match[4] or match[5]
        time_us = figure * 1e3 if match[3] else 1e6 / figure
        if not _public_key(found, pairs, name, step, time_us):
            found.omitted.append(f"{line.strip()}: no suite uses it")
    for (step, algorithm, token), cost in pairs.items():
        if step == "full handshake" and ("handshake", algorithm, token) in pairs:
            continue
        both_us, times = cost["time_us"], 2.0 if step == "full handshake" else 1.0
        derive = found.primitives.get(("derive", algorithm, token))
        if derive is not None and derive["time_us"] * times < both_us:
            found.primitives["keygen", algorithm, token] = {"time_us": both_us / times - derive["time_us"]}
        elif derive is None:
            for operation in ("derive", "keygen"):
                found.primitives[operation, algorithm, token] = {"time_us": both_us / times / 2.0}
    return found


def _public_key(found: Imported, pairs: Primitives, name: str, step: str, time_us: float) -> bool:
    family, _, rest = name.partition("-")
    token = CURVE_NAMES.get(rest.upper(), "")
    if family == "RSA" and rest.isdigit():
        for operation in ("verify", "encrypt") if step == "public" else ("sign", "decrypt"):
            found.primitives[operation, "rsa", f"rsa{rest}"] = {"time_us": time_us}
        return True
    if family == "ECDSA" and token and step in ("sign", "verify"):
        found.primitives[step, "ecdsa", token] = {"time_us": time_us}
        return True
    algorithm, parameters = (
        ("dh", f"dh{rest}") if family in ("DH", "DHE") and rest.isdigit() else ("ecdh", token)
    )
    if family in ("ECDH", "DH") and parameters:
        found.primitives["derive", algorithm, parameters] = {"time_us": time_us}
        return True
    if family in ("ECDHE", "DHE") and parameters:
        pairs["full handshake" if step.startswith("full") else "handshake", algorithm, parameters] = {
            "time_us": time_us
        }
        return True
    return False


def _symmetric(found: Imported, line: str, name: str, figure: float) -> None:
    lower = name.lower()
    if re.fullmatch(r"aes-(cbc|gcm|ccm)-\d+", lower):
        _, mode, bits = lower.split("-")
        found.primitives["cipher", f"aes-{bits}-{mode}", ""] = {"per_kib_us": 1e6 / figure}
    elif re.fullmatch(r"(md5|sha-\d+)", lower):
        found.primitives["digest", lower.replace("-", ""), ""] = {"per_kib_us": 1e6 / figure}
    elif lower == "chachapoly":
        found.primitives["cipher", "chacha20-poly1305", ""] = {"per_kib_us": 1e6 / figure}
    else:
        found.omitted.append(f"{line.strip()}: no suite uses it")
