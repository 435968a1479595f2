"""What the benchmark readers share."""

from __future__ import annotations

from shakedown.profiles.device import Triple

Primitives = dict[Triple, dict[str, float]]
"""Cost of each triple, as the keys of a profile: ``time_us``, or ``per_call_us`` and ``per_kib_us``."""

CURVE_NAMES = {
    "SECP160R1": "secp160r1",
    "SECP192R1": "p192",
    "SECP224R1": "p224",
    "SECP256R1": "p256",
    "SECP384R1": "p384",
    "SECP521R1": "p521",
}
