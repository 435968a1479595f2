"""The pages in the documentation are generated from the papers' data and the recorded measurements."""

from __future__ import annotations

import re

import pytest

from papers.conftest import DOCUMENTED
from shakedown import papers
from shakedown.papers.page import index, page
from shakedown.papers.write import write


@pytest.mark.parametrize("slug", papers.MODULES)
def test_a_page_is_up_to_date(documented, slug):
    assert (DOCUMENTED / f"{slug}.md").read_text(encoding="utf-8") == page(documented[slug])


def test_the_index_is_up_to_date(documented):
    assert (DOCUMENTED / "README.md").read_text(encoding="utf-8") == index(list(documented.values()))


def test_the_headline_counts_every_comparison(documented):
    """Each row stands in one column of the table, and the sentence above it has their sums."""
    rows = [row for one in documented.values() for row in one.rows]
    text = (DOCUMENTED / "README.md").read_text(encoding="utf-8")
    (total,) = re.findall(r"^\| all \|(.*)\|$", text, re.MULTILINE)
    sums = [
        sum(found)
        for found in zip(
            *([int(n) for n in re.findall(r"\d+", cell)] for cell in total.split("|")[:4]), strict=True
        )
    ]
    (headline,) = re.findall(
        r"^Of ([\d,]+) comparisons (\d+) agree, (\d+) differ, (\d+) are undecided, and (\d+) cannot",
        text,
        re.MULTILINE,
    )
    whole, *counts = (int(one.replace(",", "")) for one in headline)
    assert counts == sums
    assert whole == len(rows) == sum(sums)
    assert counts[1] == sum(row.verdict == "differs" for row in rows)


def test_a_modern_rerun_that_differs_has_figures_to_check(documented):
    for slug in ("wtls-nokia7650", "wtls-palm"):
        for row in documented[slug].modern_rerun():
            if row.verdict == "differs":
                assert not row.reason.startswith("our WTLS engine")
                assert re.search(
                    r"\d+ of \d+ µs|\d+ of \d+|not so: .*\d|\d+ ratios|CertificateVerify", row.reason
                )


@pytest.mark.parametrize("slug", papers.MODULES)
def test_page_has_every_figure_and_every_claim(documented, slug):
    text = page(documented[slug])
    pictures = re.findall(r"\]\((figures/[^)]+)\)", text)
    assert len(pictures) == len(documented[slug].drawings())
    assert [one for one in pictures if not (DOCUMENTED / one).is_file()] == []
    for claim in documented[slug].claims():
        assert f"| {claim} |" in text
    assert "{{" not in text


@pytest.mark.parametrize("slug", [slug for slug in papers.MODULES if slug != "aka-ssl"])
def test_page_is_written_without_measurements(modelled, slug):
    assert "not measured" in page(modelled[slug]).lower()


def test_output_folder_has_pages_figures_and_rows(modelled, tmp_path):
    write([modelled["aka-ssl"]], tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"aka-ssl.md", "figures", "rows.json", "rows.csv", "measured.jsonl"}
    assert {path.suffix for path in (tmp_path / "out" / "figures").iterdir()} == {".svg", ".png", ".csv"}
