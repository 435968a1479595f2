"""What the benchmark readers share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shakedown.profiles.costs import Triple

Primitives = dict[Triple, dict[str, float]]
"""Cost of each triple, as the keys of a profile: ``time_us``, or ``per_call_us`` and ``per_kib_us``."""

CURVE_NAMES = {
    "SECP160R1": "secp160r1",
    "SECP192R1": "p192",
    "SECP224R1": "p224",
    "SECP256R1": "p256",
    "SECP384R1": "p384",
    "SECP521R1": "p521",
    "BRAINPOOLP256R1": "brainpoolp256r1",
    "BRAINPOOLP384R1": "brainpoolp384r1",
    "BRAINPOOLP512R1": "brainpoolp512r1",
    "X25519": "x25519",
    "CURVE25519": "x25519",
    "X448": "x448",
    "CURVE448": "x448",
}


@dataclass
class Imported:
    """What a reader found in benchmark output.

    Attributes:
        primitives: cost of each triple.
        left_out: figures of the output that no profile can hold, each with the reason.
        overhead: rows of ``[[overhead.message]]``, ``[[overhead.handshake]]`` and ``[[overhead.primitive]]``,
            by table name.
        cooling: the table ``[overhead.cooling]``; empty where nothing shows any.
        stack: whose overhead it is.
    """

    primitives: Primitives = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    overhead: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    cooling: dict[str, float] = field(default_factory=dict)
    stack: str = ""
