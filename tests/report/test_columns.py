"""Columns: selection by width, shortened names, sorting, CSV."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from scipy import stats

from shakedown.errors import InputError
from shakedown.reporting.columns import ALWAYS, ROOM, USUAL, WIDE, Column, Selection, label, named, shared
from shakedown.reporting.columns.capacity import CAPACITIES
from shakedown.reporting.columns.fleet_notes import imprecise, saturation
from shakedown.reporting.columns.measured import HANDSHAKES, student, uncertainty
from shakedown.reporting.columns.modelled import PREDICTIONS
from shakedown.reporting.columns.simulated import FLEETS, utilisation
from shakedown.reporting.figures import (
    bounded,
    energy,
    number,
    rate,
    rounded_down,
    rounded_up,
    share,
    share_down,
    time,
    time_with_margin,
)
from shakedown.reporting.html.tables import html_table
from shakedown.reporting.terminal.listing import layout, listing
from shakedown.schema.base import SIDES
from shakedown.schema.simulated import Access, Precision, SaturatedCells

COLUMNS = (
    label("suite", "suite", path=True),
    Column(key="a_s", name="first figure", rank=ALWAYS),
    Column(key="b_s", name="second", rank=USUAL),
    Column(key="c_s", name="third", rank=ROOM),
    Column(key="d_s", name="fourth", rank=WIDE),
    label("place", "place", identity=True),
    label("why", "why", prose=True, rank=USUAL),
)


def row(suite: str, number: int, **more: object) -> dict[str, object]:
    figures = {f"{name}_s": number for name in "abcd"}
    return {"suite": suite, **figures, "place": "here", "why": "", **more}


def lines(rows: list[dict[str, object]], width: int = 80, **selected: object) -> list[str]:
    return list(listing(COLUMNS, rows, Selection(**selected), width=width))  # type: ignore[arg-type]


def test_shared_parts_go_into_the_title():
    rows = [row("tls1.3/x25519/p256/server", 1), row("tls1.3/x25519mlkem768/p256/server", 2)]
    title, heading, one, two = lines(rows)
    assert title == "tls1.3/…/p256/server"
    assert "place" not in heading
    assert (one.split()[0], two.split()[0]) == ("x25519", "x25519mlkem768")


SECTIONED = (
    label("suite", "suite", path=True, section=lambda row: str(row["suite"])),
    label("figure", "figure"),
    Column(key="a_s", name="value", rank=ALWAYS),
)
TWO = [
    {"suite": suite, "figure": figure, "a_s": 1}
    for suite in ("tls1.3/x25519/p256/server", "tls1.2/psk")
    for figure in ("bytes", "time")
]


def sectioned(**selected: object) -> list[str]:
    return list(listing(SECTIONED, TWO, Selection(**selected), width=40))  # type: ignore[arg-type]


def test_section_is_printed_once_above_its_rows():
    heading, first, one, _, second, *rest = sectioned()
    assert heading.split() == ["figure", "value"]
    assert (first, second) == ("tls1.3/x25519/p256/server", "tls1.2/psk")
    assert one.startswith("  bytes")
    assert len(rest) == 2


@pytest.mark.parametrize("selected", [{"wide": True}, {"columns": ("suite", "a_s")}, {"sort": "a_s"}])
def test_sections_become_columns_with_columns_or_sort(selected):
    assert sum("psk" in line for line in sectioned(**selected)) == 2


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), min_size=2, max_size=6))
def test_short_names_are_distinct_and_restore_the_full_names(parts):
    names = ["/".join(one) for one in parts]
    found = shared(names)
    if not found.pattern:
        return
    assert len(set(found.short.values())) == len(set(names))
    begin, _, end = found.pattern.partition("…")
    assert all(f"{begin}{found.short[name]}{end}" == name for name in names)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_table_fits_the_width_for_any_rows(width):
    rows = [row("x/" + "long-part/" * 6 + "end", 1, why="for many reasons " * 9), row("y/other", 123_456)]
    found = lines(rows, width)
    assert max(map(len, found)) <= width
    text = "".join("".join(found).split())
    assert "123,456" in text
    # Long names lose parts before they are folded, and a line states this.
    assert (text.count("long-part/") == 6) == (width == 200)
    assert any(line.startswith("… marks ") for line in found) == (width != 200)


def test_shortened_names_remain_distinct():
    names = ["x/" + "long-part/" * 6 + end for end in ("one", "two", "end/one", "end/two")]
    found = lines([row(f"{name}", 1) for name in [*names, "y/other"]], 60)
    heading, *shown, legend = found
    assert legend == "… marks the omitted part of a name"
    labels = [line.split()[0] for line in shown]
    assert len(labels) == len(names) + 1
    assert max(map(len, [*labels, heading])) <= 60
    for short in labels:
        # Each stands for one name only.
        begin, _, end = short.partition("…")
        assert sum(name.startswith(begin) and name.endswith(end) for name in [*names, "y/other"]) == 1


def test_wider_screens_show_more_and_only_wide_shows_all():
    rows = [row("x/one", 1), row("y/two", 2)]
    assert "second" not in lines(rows, 22)[0]
    assert "third" in lines(rows, 120)[0]
    assert "fourth" not in lines(rows, 120)[0]
    assert all(one.name in lines(rows, 40, wide=True)[0] for one in COLUMNS[:-1])


def test_omitted_columns_are_named_and_rows_are_not_wrapped():
    many = (COLUMNS[0], *(Column(key=f"{name}_s", name=name, rank=ALWAYS) for name in "abcd"))
    heading, *found, omitted = listing(
        many, [row("x/one", 10**12), row("y/two", 10**12)], Selection(), width=48
    )
    assert heading.split() == ["suite", "a", "b"]
    assert len(found) == 2
    assert omitted == "not printed (--wide): c, d"


@pytest.mark.parametrize("width", range(50, 200, 10))
def test_columns_do_not_depend_on_measurement_noise(width):
    rows = [
        {
            "label": suite, "bytes": 4321, "flights": 4, "repeat": 30, "preempted": 0,
            **{f"{side}_{what}": 0.0 for side in SIDES for what in ("key_us", "signature_us", "common_us")},
        }
        for suite in ("tls1.3/x25519/p256/server", "tls1.2/rsa/rsa2048/server/resumed")
    ]  # fmt: skip

    def shown(mean_us: float, sd_us: float) -> tuple[list[str], bool]:
        times = {f"{side}{what}": us for side in SIDES for what, us in (("_us", mean_us), ("_sd_us", sd_us))}
        found = layout(HANDSHAKES, [row | times for row in rows], Selection(), width)
        return [one.key for one in found.columns], found.fold_headings

    assert shown(12.3, 0.0) == shown(99.9, 99.0) == shown(1234.0, 10.0) == shown(999_900.0, 900_000.0)


def test_bounded_values_are_a_column_of_wide_tables():
    bounded = Column(key="a_s", name="bounded", text=lambda row: "9 ms – 300 ms")
    unknown = Column(key="b_s", name="nothing", text=lambda row: "unknown")
    rows = [row("x/one", 1, a_s=None, b_s=None)]
    heading = next(listing((COLUMNS[0], bounded, unknown), rows, Selection(wide=True), width=80))
    assert heading.split() == ["suite", "bounded"]


def test_mean_of_widely_spread_times_has_two_digits():
    (ready,) = (one for one in PREDICTIONS if one.name == "ready")
    assert ready.cell({"ready_mean_s": 0.296, "ready_low_s": 0.057, "ready_high_s": 3.1}) == "300 ms"
    assert ready.cell({"ready_mean_s": 0.346, "ready_low_s": 0.057, "ready_high_s": 3.1}) == "350 ms"


@pytest.mark.parametrize(
    ("mean", "margin", "text"),
    [
        (0.14793, 228e-6, "147.9 ± 0.2 ms"),
        (11.93, 0.457, "11.9 ± 0.5 s"),
        (0.0432, 0.00191, "43.2 ± 1.9 ms"),
        (762e-6, 16e-6, "762 ± 16 µs"),
        (0.5, 0.0996, "500 ± 100 ms"),
        (3e-6, 1e-3, "3 ± 1,000 µs"),
        (0.99996, 0.005, "1.000 ± 0.005 s"),
        (0.148, 1e-9, "148.00 ms"),
    ],
)
def test_a_margin_is_in_the_unit_of_its_value(mean, margin, text):
    assert time_with_margin(mean, margin) == text


def test_sorting_puts_unknown_values_last():
    rows = [row("x/a", 2), row("x/b", 9), row("x/c", 1, a_s=None)]
    assert [one["suite"] for one in Selection(sort="a_s").ordered(COLUMNS, rows)] == ["x/a", "x/b", "x/c"]
    assert [one["suite"] for one in Selection(sort="-a_s").ordered(COLUMNS, rows)] == ["x/b", "x/a", "x/c"]


def test_columns_are_found_by_key_and_heading():
    assert named(COLUMNS, "first_figure").key == named(COLUMNS, "a_s").key == "a_s"
    with pytest.raises(
        InputError, match=r'unknown column "sute"; did you mean "suite"\? --csv prints all columns$'
    ):
        named(COLUMNS, "sute")


def test_marks_are_explained_only_where_they_occur():
    marked = [Column(key="a_s", name="a", rank=ALWAYS, show=lambda value: f"≈ {value}")]
    assert list(listing(marked, [{"a_s": 1}], Selection(), width=80))[-1] == "≈ in part assumed"
    plain = [Column(key="a_s", name="a", rank=ALWAYS)]
    assert len(list(listing(plain, [{"a_s": 1}], Selection(), width=80))) == 2


def test_csv_has_keys_and_exact_values(capsys):
    from shakedown.cli._output import print_rows

    print_rows(COLUMNS, [row('a,"b', 1, a_s=0.1 + 0.2), row("c", 2, place=None)], Selection(csv=True))
    found = pl.read_csv(io.StringIO(capsys.readouterr().out))
    assert found.columns == [one.key for one in COLUMNS]
    assert found["a_s"].to_list() == [0.1 + 0.2, 2.0]
    assert found["suite"].to_list() == ['a,"b', "c"]


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("client_high_s", 0.32843, "0.328"),
        ("energy_high_j", 0.85512, "0.855"),
        ("handshakes_per_charge_high", 61234.5, "61,234"),
        ("ready_margin_s", 7.6e-6, "0.00000760"),
        ("offered", 0.20842, "21%"),
        ("precision", None, "–"),
        ("replications", 25, "25"),
    ],
)
def test_selected_columns_of_the_csv_print_their_values(key, value, text):
    assert named((*PREDICTIONS, *FLEETS), key).cell({key: value}) == text


@pytest.mark.parametrize("columns", [PREDICTIONS, CAPACITIES], ids=["predict", "capacity"])
def test_csv_has_both_ends_of_every_interval(columns):
    keys = {one.key for one in columns}
    ends = {key for key in keys if "_low" in key or "_high" in key}
    flipped = {
        key.replace("_low", "_high") if "_low" in key else key.replace("_high", "_low") for key in ends
    }
    assert flipped <= keys


@pytest.mark.parametrize(
    ("part", "digits", "text"),
    [
        (4999 / 5000, 1, "> 99.9%"),
        (0.9994, 1, "99.9%"),
        (0.996, 0, "> 99%"),
        (0.994, 0, "99%"),
        (0.1 + 0.2 + 0.3 + 0.4, 1, "100.0%"),
        (0.7 + 0.1 + 0.2 - 1e-16, 0, "100%"),
        (1.0, 1, "100.0%"),
        (1.2, 0, "120%"),
        (1 / 5000, 1, "< 0.1%"),
    ],
)
def test_share_that_is_not_all_is_not_printed_as_all(part: float, digits: int, text: str) -> None:
    assert share(part, digits) == text


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"utilisation": 0.004, "offered": 0.004}, "< 1%"),
        ({"utilisation": None, "utilisation_low": 0.004, "offered_low": 0.004}, "unknown"),
        ({"utilisation": None, "utilisation_low": 0.3, "offered_low": 0.3}, "≥ 30%"),
        (
            {"utilisation": None, "utilisation_low": 0.9, "offered_low": 1.2, "unstable": True},
            "≥ 90%, offered load ≥ 120% unstable",
        ),
        ({"utilisation": 0.19199, "offered": 0.22835}, "19%, offered load 23%"),
        ({"utilisation": 0.3}, "30%"),
    ],
)
def test_value_is_not_both_a_lower_and_an_upper_bound(row: dict[str, object], text: str) -> None:
    """A text such as "at least less than 1 %" would state nothing."""
    assert utilisation(row) == text


@given(st.floats(1e-9, 1e9), st.sampled_from([time, number, energy, rate]))
def test_bounds_are_rounded_outwards(value, show):
    """A lower bound is never printed above its value, an upper bound never below it."""
    least, most = rounded_down(value), rounded_up(value)
    assert value * 0.9 <= least <= value <= most <= value * 1.1
    # Two digits are printed as they are.
    if show(least) != "< 1 ns":
        assert bounded(show, None, value, None) == f"≥ {show(least)}"
    assert bounded(show, None, None, value) == f"≤ {show(most)}"


def test_lower_and_upper_bounds_have_their_sign():
    assert bounded(time, None, 0.1483, None) == "≥ 140 ms"
    assert bounded(rate, None, None, 1210.0) == "≤ 1,300"
    assert bounded(share, None, share_down(0.0678), None) == "≥ 6%"
    assert bounded(time, None, 0.15, 0.31) == "150 ms – 310 ms"


@pytest.mark.parametrize(
    ("reached", "is_long_enough", "why"),
    [(0.07, True, ""), (0.07, False, ""), (0.047, False, "; the run is short for this precision")],
)
def test_a_narrow_interval_of_a_short_run_is_explained(
    reached: float, is_long_enough: bool, why: str
) -> None:
    found = Precision(
        asked=0.05,
        reached=reached,
        widest="p99",
        is_settled=True,
        is_long_enough=is_long_enough,
        is_met=False,
    )
    text, _, reason = imprecise(found).partition("target ± 5%")
    assert text.startswith("p99 ± ")
    assert reason.startswith(why)
    assert bool(reason) == bool(why)


def test_saturated_cells_are_the_only_reason_of_a_mark_if_the_intervals_meet_the_target():
    access: dict[str, Any] = dict.fromkeys(Access.__struct_fields__)
    cells = SaturatedCells(medium="nb-iot", ways="down", offered=6.09)
    found = Precision(
        asked=0.05, reached=0.04, widest="p95", is_settled=False, is_long_enough=True, is_met=False
    )
    row: Any = SimpleNamespace(access=Access(**access | {"saturated": (cells,)}), carried=None)
    assert saturation(row).startswith("cells of nb-iot saturated (6")
    assert imprecise(found, saturation(row)) == saturation(row)
    missed = structs.replace(found, reached=0.06)
    assert imprecise(missed, saturation(row)) == f"p95 ± 6%, target ± 5%; {saturation(row)}"


def test_target_below_one_per_cent_is_printed_unrounded():
    found = Precision(
        asked=0.001, reached=0.0053, widest="p99", is_settled=True, is_long_enough=True, is_met=False
    )
    assert imprecise(found) == "p99 ± 0.5%, target ± 0.1%"


@pytest.mark.parametrize(
    ("reached", "said"),
    [(0.0507, "p99 ± 5.1%"), (0.05004, "p99 ± 5.004%"), (0.0551, "p99 ± 6%"), (0.21, "p99 ± 21%")],
)
def test_missed_target_and_reached_precision_differ_in_print(reached, said):
    found = Precision(
        asked=0.05, reached=reached, widest="p99", is_settled=True, is_long_enough=True, is_met=False
    )
    assert imprecise(found) == f"{said}, target ± 5%"


def test_interval_of_few_repetitions_uses_student_t():
    """With the normal distribution's 1.96, intervals of five would miss the mean in 12 % of all cases."""
    for degrees in (*range(1, 60), 1000):
        assert student(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=0.002)
    known = [29.0, 31.5, 30.2, 33.0, 30.9]
    row = {"client_us": sum(known) / 5, "client_sd_us": float(stats.tstd(known)), "repeat": 5}
    low, high = stats.t.interval(0.95, 4, row["client_us"], stats.sem(known))
    assert uncertainty(row, "client") * row["client_us"] == pytest.approx((high - low) / 2, rel=0.002)


def test_html_cell_is_one_line():
    column = label("operations", "operations (µs)")
    (cells,) = html_table([column], [{"operations": "keygen x25519 40.0\nderive x25519 31.3"}]).rows
    assert cells == ["keygen x25519 40.0; derive x25519 31.3"]
