"""Every claim and every numeric cell of a result table has a row in the documented form."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from shakedown import papers
from shakedown.papers.load import DATA
from shakedown.papers.rows import VERDICTS

FIELDS = [
    "paper",
    "item",
    "claim_id",
    "quantity",
    "unit",
    "published",
    "replication",
    "difference",
    "tolerance",
    "kind",
    "verdict",
    "reason",
    "interval",
    "depends_on",
]
NO_RESULTS = (
    "claims",
    "text_numbers",
    "energy_numbers",
    "section_",
    "table_2_1",
    "table_2_2",
    "table_3_",
    "tables_3_",
)
KEYS = {"category", "group", "figure", "step", "key_bits", "rsa_public_exponent"}
"""Tables of descriptions, not of results; and columns that name a row."""


def result_cells(slug: str) -> Counter[float]:
    """The numeric cells of a paper's result tables, read without the code under test."""
    found: Counter[float] = Counter()
    for path in sorted((DATA / slug).glob("*.csv")):
        if slug != "aka-ssl" and path.stem.startswith(NO_RESULTS):
            continue
        if path.stem in ("claims", "text_numbers", "energy_numbers", "figure_1_handshake_steps"):
            continue
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                for column, text in row.items():
                    try:
                        value = float(text)
                    except ValueError:
                        continue
                    if column not in KEYS:
                        found[value] += 1
    return found


@pytest.mark.parametrize("slug", papers.MODULES)
def test_every_claim_has_one_row_modelled_or_with_a_reason(modelled, slug):
    one = modelled[slug]
    with (DATA / slug / "claims.csv").open(newline="") as file:
        expected = [row["id"] for row in csv.DictReader(file)]
    assert [row.claim_id for row in one.rows if row.claim_id] == expected
    for row in one.claims().values():
        assert row.kind == "modelled" or "measured" in row.reason, row


@pytest.mark.parametrize("slug", papers.MODULES)
def test_every_numeric_cell_of_a_result_table_has_a_row(modelled, slug):
    rows = Counter(row.published for row in modelled[slug].cells())
    missing = result_cells(slug) - rows
    assert not missing


def test_number_of_cells_matches_the_tables(modelled):
    extra = ("queue point", "table 4.14 without")
    for slug, one in modelled.items():
        plain = [row for row in one.cells() if not row.item.startswith(extra)]
        assert len(plain) == result_cells(slug).total(), slug


def test_rows_have_exactly_the_documented_fields_and_values(documented):
    for one in documented.values():
        for row in one.rows:
            fields = row.__struct_fields__
            assert list(fields) == FIELDS
            assert row.verdict in VERDICTS
            assert row.kind in ("modelled", "measured")
            assert row.reason
            if row.verdict != "cannot be tested":
                assert row.replication is not None
            if row.replication is None:
                assert row.difference is None


def test_unmeasured_rows_cannot_be_tested_and_have_a_reason(modelled):
    for one in modelled.values():
        for row in one.modern_rerun():
            assert (row.verdict, row.replication, row.kind, row.claim_id) == (
                "cannot be tested",
                None,
                "measured",
                None,
            )
            assert row.reason.startswith("cannot be tested yet: ")


def test_measuring_does_not_change_modelled_verdicts(modelled, documented):
    for slug, one in modelled.items():
        for claim, row in one.claims().items():
            if row.kind == "modelled":
                assert documented[slug].claims()[claim] == row
        assert documented[slug].cells() == one.cells()


def test_every_row_of_the_rerun_names_a_claim_of_its_paper(documented):
    for one in documented.values():
        named = {row.item.split()[1] for row in one.modern_rerun()}
        assert named <= set(one.data.claims)


def test_measured_verdicts_are_reached_wherever_suites_ran(documented):
    untested = [
        (slug, row.item)
        for slug, one in documented.items()
        for row in one.modern_rerun()
        if row.verdict == "cannot be tested"
    ]
    assert untested == []


def test_every_paper_has_a_data_folder():
    assert {path.name for path in Path(DATA).iterdir() if path.is_dir()} == set(papers.MODULES)
