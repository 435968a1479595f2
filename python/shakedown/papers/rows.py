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

PRIMITIVE_OFF = 0.05
"""By what share a public-key primitive's cost differs between runs, relative to the others'."""

COMMON_OFF = 0.12
"""The same of all other work of one side in one suite, and of a transfer."""

RULE = f"""\
A verdict compares one figure with one statement. The unit is that of the statement's text; all
statements of a section count alike. The tolerance was set before anything was computed. For a printed
figure it is the paper's own digits or spread: half of the last printed digit, or all of it where the paper
cuts digits off. Words that leave room ("about", "similar", "equal"), figures read off a curve and sums of
figures that are themselves rounded have the tolerance that stands with them (±); it was noted when the
statement was collected, and so was that above a table whose cells follow from each other. A bound is
exact where the paper says "at least" or "every", and holds to its printed digits elsewhere.
What is measured here is measured in several rounds, all suites in turn, and of each part of a handshake
the least time counts, for whatever else a machine does only adds; a primitive costs the same in every suite
of a protocol that uses it in the same message. The interval holds what follows from
either half of the rounds alone, and from costs that are off as far as they are between a quiet run and a
loaded one: each public-key primitive by {PRIMITIVE_OFF:.0%} either way, a side's other work in each suite by
{COMMON_OFF:.0%}. The statement *agrees* or *differs* only if all of the interval does; else it is
*undecided*. A statement *cannot be tested* if it is an input of the computation itself, a figure of a device
or person that is not available here, or a statement without a bound; one that compares two machines needs two
machines, or published figures of both. Tables of times and of their shares are their devices': what the same
handshakes give here stands beside them with its interval, and without a verdict."""
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
        interval: of a number that was measured: the least and the greatest of its variants.
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
        """Say what the verdict depends on where the row does not."""
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
