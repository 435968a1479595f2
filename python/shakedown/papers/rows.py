"""The rows of a reproduction: for each claim, each cell of a result table, each of the modern rerun."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal["agrees", "differs", "undecided", "cannot be tested"]
Kind = Literal["modelled", "measured"]

AGREES: Verdict = "agrees"
DIFFERS: Verdict = "differs"
UNDECIDED: Verdict = "undecided"
UNTESTABLE: Verdict = "cannot be tested"
VERDICTS: tuple[Verdict, ...] = (AGREES, DIFFERS, UNDECIDED, UNTESTABLE)

RULE = """\
A verdict compares one figure with one statement. The unit is that of the statement's text; all
statements of a section count alike. The tolerance stands beside the statement and was set before
anything was computed: the paper's own spread where it prints one, else half of its last printed digit;
a bound is exact where the paper says "at least" or "every", and holds to its printed digits elsewhere.
What is measured here is measured in several rounds, and each round is compared by itself: the statement
*agrees* or *differs* only if the interval of the rounds does; else it is *undecided*. The interval
leaves out as many of the least rounds, and of the greatest, as it may and still encloses the median
that endless rounds would have with a probability of 95 %: none of six to eight, one of nine to eleven,
five of twenty at either end. A statement *cannot be tested* if it is an input of the computation
itself, a figure of a device or person that nobody has here, or a statement without a bound; one that
compares two machines needs two machines, or published figures of both."""
"""How verdicts are reached, as the pages print it."""


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        paper: the paper's short name.
        item: the claim, table row or figure that is compared.
        claim_id: the claim's id, or None for cells of tables and for what a modern rerun gives.
        quantity: what is compared.
        unit: unit of ``published``, ``replication`` and ``difference``.
        published: the paper's figure, a number or as it is written.
        here: ours, a number or in words; None where there is none.
        difference: ``replication`` less ``published``; to the nearest end of a published range.
        tolerance: what difference still counts as agreement, as written; None where nothing is compared.
        kind: ``modelled`` (from the paper's own inputs) or ``measured`` (here, the modern rerun).
        verdict: agrees, differs, undecided or cannot be tested (see ``RULE``).
        interval: of the rounds' median, where a number was measured.
        depends_on: what the verdict depends on: the paper's own figures, or handshakes measured here.
        reason: why.
    """

    paper: str
    item: str
    claim_id: str | None
    quantity: str
    unit: str
    published: float | str | None
    replication: float | str | None
    difference: float | None
    tolerance: str | None
    kind: Kind
    verdict: Verdict
    reason: str
    interval: tuple[float, float] | None = None
    depends_on: str = ""

    def __post_init__(self) -> None:
        """Say what the verdict depends on where nobody did."""
        if not self.depends_on:
            words = "handshakes measured here" if self.kind == "measured" else "the paper's own figures"
            object.__setattr__(self, "depends_on", words)

    def as_object(self) -> dict[str, Any]:
        """The row as JSON has it."""
        return asdict(self)


def tidy_number(value: float) -> float | int:
    """A number without the noise of binary fractions, whole ones as such."""
    rounded = float(f"{value:.8g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded
