"""What every reproduced paper has: what it measures, its checks, its cells, its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from shakedown.papers import judge
from shakedown.papers.drawing import Drawing
from shakedown.papers.here import Here, Transfers
from shakedown.papers.judge import Check
from shakedown.papers.load import PaperData
from shakedown.papers.rows import Kind, Row


@dataclass(frozen=True)
class Today:
    """A claim's further row: what it measures here, and how that is judged once it is measured."""

    claim_id: str
    quantity: str
    suites: Sequence[str]
    check: Callable[[], Check]


@dataclass(frozen=True)
class Paper:
    """A paper's face: everything else about it lies behind these functions.

    Attributes:
        slug: the paper's short name.
        suites: handshakes that are measured for it.
        checks: a check for each claim.
        cells: rows for the cells of its result tables, from its own inputs.
        today: further rows of claims, measured here.
        measured_cells: rows that set cells against ratios measured here.
        figures: its figures, drawn or waiting.
        transfers: bulk data that is measured for it.
        words: pieces of text for its page.
    """

    slug: str
    suites: Sequence[str]
    checks: Callable[[PaperData, Here], Mapping[str, Check]]
    cells: Callable[[PaperData], list[Row]]
    today: Callable[[PaperData, Here], Sequence[Today]]
    measured_cells: Callable[[PaperData, Here], list[Row]]
    figures: Callable[[PaperData, Here], list[Drawing]]
    transfers: Sequence[Transfers] = ()
    words: Callable[[PaperData, Here], dict[str, str]] = lambda data, here: {}


@dataclass(frozen=True)
class Reproduction:
    """A paper repeated: its data, what was measured for it, and all rows."""

    paper: Paper
    data: PaperData
    here: Here
    rows: tuple[Row, ...]

    def drawings(self) -> list[Drawing]:
        """The paper's figures, drawn or waiting."""
        return self.paper.figures(self.data, self.here)

    def claims(self) -> dict[str, Row]:
        """The rows of claims by their ids."""
        return {row.claim_id: row for row in self.rows if row.claim_id}

    def cells(self, kind: Kind = "modelled") -> list[Row]:
        """The rows of tables' cells."""
        return [row for row in self.rows if not row.claim_id and row.kind == kind and not _is_today(row)]

    def today(self) -> list[Row]:
        """The further rows of claims: what today's hardware gives."""
        return [row for row in self.rows if _is_today(row)]


def _is_today(row: Row) -> bool:
    return not row.claim_id and row.item.startswith("claim ")


def reproduce(paper: Paper, data: PaperData, here: Here) -> Reproduction:
    """Repeats a paper: a row for each claim, each cell, and each claim that can be measured here."""
    checks = paper.checks(data, here)
    strangers = set(checks) ^ set(data.claims)
    if strangers:
        raise ValueError(f"{paper.slug}: claims and checks do not match: {', '.join(sorted(strangers))}")
    rounds = [paper.checks(data, one) for one in here.decisive_rounds]
    rows = [
        judge.claim_row(
            paper.slug,
            claim,
            judge.together(checks[claim.id](claim), [one[claim.id](claim) for one in rounds]),
        )
        for claim in data.claims.values()
    ]
    rows += paper.cells(data)
    cells = [paper.measured_cells(data, one) for one in here.decisive_rounds]
    rows += [
        judge.together_row(row, [one[number] for one in cells])
        for number, row in enumerate(paper.measured_cells(data, here))
    ]
    modern = [paper.today(data, one) for one in here.decisive_rounds]
    rows += [
        _today_row(paper.slug, data, here, today, [one[number] for one in modern])
        for number, today in enumerate(paper.today(data, here))
    ]
    return Reproduction(paper, data, here, tuple(rows))


def _today_row(slug: str, data: PaperData, here: Here, today: Today, rounds: Sequence[Today]) -> Row:
    claim = data.claims[today.claim_id]
    reason = here.why_not(today.suites)
    if reason:
        return judge.today_row(slug, claim, today.quantity, judge.untestable(reason, "measured")(claim))
    finding = judge.together(today.check()(claim), [one.check()(claim) for one in rounds])
    return judge.today_row(slug, claim, today.quantity, finding)
