"""The figures of each paper are drawn and legible."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

PUBLISHED = {
    "wtls-nokia7650": {f"4.{number}" for number in range(1, 47) if number != 24},
    "wtls-palm": {"3", "4 to 7"},
    "tls-psk": {f"4.{number}" for number in range(1, 8)},
    "ssl-pda": {str(number) for number in range(2, 7)},
    "aka-ssl": {"8", "9", "10", "11(a)", "11(b)"},
}
"""The papers' own figures; a page may have more."""


@pytest.mark.parametrize("slug", PUBLISHED)
def test_every_figure_is_there_and_drawn_once(documented, slug):
    drawings = documented[slug].drawings()
    assert {one.number for one in drawings} >= PUBLISHED[slug]
    assert len({one.name for one in drawings}) == len(drawings)
    assert [one.number for one in drawings if one.waits_for] == []


def test_without_measurements_figures_name_what_they_need(modelled):
    waiting = {
        (slug, one.number): one for slug, all in modelled.items() for one in all.drawings() if one.waits_for
    }
    need_times = ("tls-psk", "ssl-pda")
    assert waiting.keys() >= {(slug, number) for slug in need_times for number in PUBLISHED[slug]}
    assert {slug for slug, _ in waiting} == set(need_times)
    for one in waiting.values():
        with pytest.raises(ValueError, match="waits for"):
            one.figure()


@pytest.mark.parametrize("number", ["4.1", "4.10", "4.16", "4.29", "4.39", "4.45"])
def test_figure_is_reproducible_and_has_axes_with_units(documented, number):
    (one,) = [one for one in documented["wtls-nokia7650"].drawings() if one.number == number]
    svg = one.figure().svg
    assert svg == one.figure().svg
    words = " ".join(
        "".join(element.itertext()) for element in ET.fromstring(svg).iter() if element.tag.endswith("text")
    )
    assert f"Figure {number}" in words
    assert any(unit in words for unit in (" in ms", " in s", " in %"))


def test_every_figure_has_data_and_complete_csv(documented):
    for all in documented.values():
        for one in all.drawings():
            assert one.data, one.number
            assert one.note or one.kind == "published"
            assert len(one.figure().csv.splitlines()) == len(one.data) + 1


def test_unpublished_series_are_labelled(documented):
    numbers = {f"4.{number}" for number in range(25, 39)}
    for one in documented["wtls-nokia7650"].drawings():
        if one.number in numbers:
            assert "never published" in one.note
    for one in documented["aka-ssl"].drawings():
        if one.number in ("8", "9", "10"):
            assert "never published" in one.note
