"""The common parts of reproduced papers: suites to measure, checks, cells, figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from shakedown.papers import verdicts
from shakedown.papers.drawing import Drawing
from shakedown.papers.load import PaperData
from shakedown.papers.replication import Replication, Transfers
from shakedown.papers.rows import MEASURED_HERE
from shakedown.papers.verdicts import Check
from shakedown.schema.replication import Kind, Row


@dataclass(frozen=True)
class ModernRerun:
    """A further row of a claim: the measured quantity, and the check that gives its verdict."""

    claim_id: str
    quantity: str
    suites: Sequence[str]
    check: Callable[[], Check]


@dataclass(frozen=True)
class Paper:
    """The interface of a paper's package.

    Attributes:
        suites: handshakes that are measured for it.
        checks: a check for each claim.
        cells: rows for the cells of its result tables, from its own inputs.
        modern_rerun: further rows of claims, measured on this machine.
        measured_cells: rows that compare cells with ratios measured on this machine.
        transfers: bulk data that is measured for it.
        words: texts for its page.
    """

    slug: str
    suites: Sequence[str]
    checks: Callable[[PaperData, Replication], Mapping[str, Check]]
    cells: Callable[[PaperData], list[Row]]
    modern_rerun: Callable[[PaperData, Replication], Sequence[ModernRerun]]
    figures: Callable[[PaperData, Replication], list[Drawing]]
    measured_cells: Callable[[PaperData, Replication], list[Row]] = lambda data, replication: []
    transfers: Sequence[Transfers] = ()
    words: Callable[[PaperData, Replication], dict[str, str]] = lambda data, replication: {}


@dataclass(frozen=True)
class Reproduction:
    """A reproduced paper: its data, its measurements, and all rows."""

    paper: Paper
    data: PaperData
    replication: Replication
    rows: tuple[Row, ...]

    def __repr__(self) -> str:
        counts = Counter(row.verdict for row in self.rows)
        listed = ", ".join(f"{many} {verdict}" for verdict, many in counts.items())
        return f"Reproduction({self.paper.slug}: {listed})"

    def drawings(self) -> list[Drawing]:
        figures = self.paper.figures(self.data, self.replication)
        return [replace(one, slug=self.paper.slug) for one in figures]

    def claims(self) -> dict[str, Row]:
        return {row.claim_id: row for row in self.rows if row.claim_id}

    def cells(self, kind: Kind = "modelled") -> list[Row]:
        return [row for row in self.rows if not row.claim_id and row.kind == kind and not _is_rerun(row)]

    def modern_rerun(self) -> list[Row]:
        """The further rows of claims, from the modern rerun."""
        return [row for row in self.rows if _is_rerun(row)]


def _is_rerun(row: Row) -> bool:
    return not row.claim_id and row.item.startswith("claim ")


def reproduce(
    paper: Paper, data: PaperData, replication: Replication, variants: Sequence[Replication] = ()
) -> Reproduction:
    """Reproduce a paper: a row for each claim, each cell, and each claim that can be measured here.

    ``variants`` are other possible results of the measurement (``variants.variants``).
    """
    checks = paper.checks(data, replication)
    strangers = set(checks) ^ set(data.claims)
    if strangers:
        raise ValueError(f"{paper.slug}: claims and checks do not match: {', '.join(sorted(strangers))}")
    others = [paper.checks(data, one) for one in variants]
    rows = [
        verdicts.combined(checks[claim.id](claim), [one[claim.id](claim) for one in others])
        for claim in data.claims.values()
    ]
    rows += paper.cells(data)
    cells = [paper.measured_cells(data, one) for one in variants]
    rows += [
        verdicts.combined(
            structs.replace(row, kind="measured", depends_on=MEASURED_HERE), [one[number] for one in cells]
        )
        for number, row in enumerate(paper.measured_cells(data, replication))
    ]
    modern = [paper.modern_rerun(data, one) for one in variants]
    rows += [
        _rerun_row(data, replication, modern_rerun, [one[number] for one in modern])
        for number, modern_rerun in enumerate(paper.modern_rerun(data, replication))
    ]
    return Reproduction(
        paper, data, replication, tuple(structs.replace(row, paper=paper.slug) for row in rows)
    )


def _rerun_row(
    data: PaperData, replication: Replication, modern_rerun: ModernRerun, others: Sequence[ModernRerun]
) -> Row:
    claim = data.claims[modern_rerun.claim_id]
    reason = replication.why_not(modern_rerun.suites)
    every = [verdicts.untestable(reason)] if reason else [one.check() for one in (modern_rerun, *others)]
    whole, *varied = (verdicts.measured(check)(claim) for check in every)
    return structs.replace(
        verdicts.combined(whole, varied),
        item=f"claim {claim.id} (modern rerun)",
        claim_id=None,
        quantity=modern_rerun.quantity,
    )
