"""The output of `compare --json`: one figure of two conditions, and whether it differs."""

from __future__ import annotations

from typing import Literal

import msgspec

from shakedown.schema.base import Amount, Count, Number, Object, Side, Text

Verdict = Literal["different", "equivalent", "undecided", "not comparable"]
VERDICTS: tuple[Verdict, ...] = ("different", "equivalent", "undecided", "not comparable")
ComparedQuantity = Literal["time", "bytes", "instructions", "memory"]


class Compared(Object, frozen=True, kw_only=True):
    """A figure before and after: of a handshake, of a message of its `sender`, or of an operation in it.

    `change` is relative to `before`. `lower` and `upper` are its confidence interval, simultaneous for all
    times of the comparison; null for counts, and with too few readings. `after` of a compared time is
    `before` with the estimated change, at the same speed of the machine. `stacks` also names a carrier that
    is not `bare`, and credentials that are not `generated`. `n` is the number of pairs, or the size of the
    smaller group.
    """

    suite: Text
    after_suite: Text
    stacks: str
    after_stacks: str
    quantity: ComparedQuantity
    unit: str
    side: Side | None
    sender: Side | None
    message: str | None
    operation: str | None
    before: Amount | None
    after: Amount | None
    change: Number | None
    lower: Number | None
    upper: Number | None
    n: Count
    verdict: Verdict
    reason: str | None

    @property
    def level(self) -> Literal["handshake", "message", "operation"]:
        if self.operation is not None:
            return "operation"
        # For memory, `message` is a phase of the handshake.
        return "handshake" if self.message is None or self.quantity == "memory" else "message"


class Method(Object, frozen=True, kw_only=True):
    """The parameters of a comparison: the error probability of all intervals together, the margin of
    equivalence, and the known difference between two runs of one build, which widens each interval.
    """

    alpha: Number = 0.05
    margin: Number = 0.01
    floor: Number = 0.0


class Comparison(Object, frozen=True, kw_only=True):
    """All figures of two conditions."""

    before: Text
    after: Text
    method: Method
    rows: tuple[Compared, ...]
    failed: tuple[str, ...] = ()

    def __repr__(self) -> str:
        counted = ", ".join(f"{sum(one.verdict == name for one in self.rows)} {name}" for name in VERDICTS)
        return f"Comparison({self.before} → {self.after}: {counted})"


PRINTED: dict[str, tuple[type[msgspec.Struct], str]] = {
    "compared": (Compared, "A figure of compare --json."),
}
