"""The rows of a reproduction: for each claim, each numeric cell of a result table, each figure of today."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal["agrees", "differs", "cannot be tested"]
Kind = Literal["modelled", "measured"]

AGREES: Verdict = "agrees"
DIFFERS: Verdict = "differs"
UNTESTABLE: Verdict = "cannot be tested"
VERDICTS: tuple[Verdict, Verdict, Verdict] = (AGREES, DIFFERS, UNTESTABLE)


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        paper: the paper's short name.
        item: the claim, table row or figure that is compared.
        claim_id: the claim's id, or None for cells of tables and for what today's hardware gives.
        quantity: what is compared.
        unit: unit of ``published``, ``here`` and ``difference``.
        published: the paper's figure, a number or as it is written.
        here: ours, a number or in words; None where there is none.
        difference: ``here`` less ``published``; to the nearest end of a published range.
        tolerance: what difference still counts as agreement, as written; None where nothing is compared.
        kind: ``modelled`` (from the paper's own inputs) or ``measured`` (here, today).
        verdict: agrees, differs or cannot be tested.
        reason: why.
    """

    paper: str
    item: str
    claim_id: str | None
    quantity: str
    unit: str
    published: float | str | None
    here: float | str | None
    difference: float | None
    tolerance: str | None
    kind: Kind
    verdict: Verdict
    reason: str

    def as_object(self) -> dict[str, Any]:
        """The row as JSON has it."""
        return asdict(self)


def tidy_number(value: float) -> float | int:
    """A number without the noise of binary fractions, whole ones as such."""
    rounded = float(f"{value:.8g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded
