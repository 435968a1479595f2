"""The pages in the documentation are what the papers' data and the recorded measurements give."""

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


@pytest.mark.parametrize("slug", papers.MODULES)
def test_every_picture_and_every_claim_of_a_page_is_there(documented, slug):
    text = page(documented[slug])
    pictures = re.findall(r"\]\((figures/[^)]+)\)", text)
    assert len(pictures) == len(documented[slug].drawings())
    assert [one for one in pictures if not (DOCUMENTED / one).is_file()] == []
    for claim in documented[slug].claims():
        assert f"| {claim} |" in text
    assert "{{" not in text


@pytest.mark.parametrize("slug", papers.MODULES)
def test_a_page_is_written_without_measuring_too(modelled, slug):
    assert "not measured" in page(modelled[slug]).lower() or slug == "aka-ssl"


def test_a_folder_holds_everything(modelled, tmp_path):
    write([modelled["aka-ssl"]], tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"aka-ssl.md", "figures", "rows.json", "rows.csv", "measured.jsonl"}
    assert {path.suffix for path in (tmp_path / "out" / "figures").iterdir()} == {".svg", ".png", ".csv"}
