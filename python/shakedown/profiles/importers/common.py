"""Common parts of the benchmark readers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shakedown.errors import InputError
from shakedown.profiles.costs import Triple

Primitives = dict[Triple, dict[str, float]]
"""Cost of each triple, as the keys of a profile: ``time_us``, ``mean_cycles`` with ``min_cycles`` and
``max_cycles``, or ``per_call_us`` and ``per_kib_us``.
"""


class ContradictionError(InputError):
    """Two lines of one output that give different figures for the same thing."""


class Figures(Primitives):
    """Figures that are being read. Two different figures for the same triple are refused, because it is
    unknown which is correct.

    Attributes:
        line: the number of the current line or entry, from 1.
    """

    def __init__(self, what: str = "lines") -> None:
        super().__init__()
        self.line, self._what = 0, what
        self._lines: dict[Triple, int] = {}

    def __setitem__(self, triple: Triple, cost: dict[str, float]) -> None:
        """Adds a figure. Raises `ContradictionError` if a different one is known."""
        known = self.get(triple)
        if known is not None and known != cost:
            raise ContradictionError(
                f"{self._what} {self._lines[triple]} and {self.line} give different figures for "
                f"{' '.join(part for part in triple if part)} ({_as_text(known)}; {_as_text(cost)}); "
                "accepted: one figure of each"
            )
        self._lines.setdefault(triple, self.line)
        super().__setitem__(triple, cost)


def _as_text(cost: dict[str, float]) -> str:
    names = {"time_us": "us", "per_call_us": "us a call", "per_kib_us": "us a KiB"}
    return ", ".join(f"{value:.6g} {names[key]}" for key, value in cost.items())


CURVE_NAMES = {
    "SECP160R1": "secp160r1",
    **{f"SECP{bits}R1": f"p{bits}" for bits in (192, 224, 256, 384, 521)},
    **{f"BRAINPOOLP{bits}R1": f"brainpoolp{bits}r1" for bits in (256, 384, 512)},
    **{f"{prefix}{size}": f"x{size}" for prefix in ("X", "CURVE") for size in ("25519", "448")},
}


@dataclass
class Imported:
    """The figures of benchmark output.

    Attributes:
        primitives: cost of each triple.
        omitted: skipped figures of the output, each with the reason.
        overhead: rows of ``[[overhead.message]]``, ``[[overhead.handshake]]`` and ``[[overhead.primitive]]``,
            by table name.
        cooling: the table ``[overhead.cooling]``; empty if none was found.
        connection: the table ``[connection]``; empty if none was measured.
        stack: the stack of the overhead.
    """

    primitives: Primitives = field(default_factory=Figures)
    omitted: list[str] = field(default_factory=list)
    overhead: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    cooling: dict[str, float] = field(default_factory=dict)
    connection: dict[str, float] = field(default_factory=dict)
    stack: str = ""
