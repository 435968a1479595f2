"""Ranges of scaled figures hold as often as they say, and what the package ships is what the profiles
give.
"""

from __future__ import annotations

import dataclasses
import json
import math
import random
from collections import defaultdict
from pathlib import Path

import pytest

from shakedown.prediction.calibration import (
    CLOCK,
    PAIR,
    SCENARIOS,
    SOFTWARE,
    clock_trials,
    pair_trials,
    reference_builds,
    software_trials,
    trials,
)
from shakedown.prediction.coverage import coverage_tables
from shakedown.prediction.library import open_library
from shakedown.prediction.pairs import conformal_rank
from shakedown.prediction.prices import price
from shakedown.prediction.ratios import DATA, WIDEST, Ratios, from_json, shipped, to_json
from shakedown.prediction.relations import group, kind, relation
from shakedown.profiles import load_device
from shakedown.profiles.registry import shipped_names

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "extrapolation.md"


@pytest.fixture(scope="module")
def found():
    ratios = shipped()
    return [*trials(ratios), *pair_trials(ratios), *software_trials(ratios), *clock_trials(ratios)]


def test_the_shipped_builds_are_those_of_the_profiles():
    """Else `make fit` is due. Devices that came after the last release are no references yet."""
    devices = shipped().devices
    assert len(devices) > 60
    now = to_json(Ratios(reference_builds(devices), shipped().fit, devices))
    assert now == json.loads(DATA.read_bytes())


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_nine_ranges_of_ten_hold(found, scenario):
    known = [trial for trial in found if trial.scenario == scenario and trial.known]
    assert len(known) > 400
    held = sum(trial.held for trial in known) / len(known)
    assert 0.89 <= held <= 0.96


def test_nine_ranges_of_ten_hold_between_curves_of_one_size(found):
    trials_of = [trial for trial in found if trial.scenario == PAIR]
    assert len(trials_of) > 50
    assert len({trial.board for trial in trials_of}) >= 15
    for family in ("prime-curve", "montgomery-curve"):
        of = [trial for trial in trials_of if kind(trial.target) == family]
        assert 0.9 <= sum(trial.held for trial in of) / len(of) <= 0.97


def test_a_range_of_few_boards_has_the_rank_of_conformal_prediction():
    """The next of N + 1 exchangeable distances is below the k-th with probability k / (N + 1)."""
    for count in range(10, 60):
        rank = conformal_rank(count)
        assert rank / (count + 1) >= 0.9
        assert (rank - 1) / (count + 1) < 0.9
    drawn = random.Random(1)
    held = 0
    for _ in range(4000):
        *some, following = (drawn.lognormvariate(0.0, 1.0) for _ in range(12))
        held += following <= sorted(some)[conformal_rank(11) - 1]
    assert 0.9 <= held / 4000 <= 0.94


def test_nine_ranges_of_ten_hold_of_curves_in_a_library_s_c(found):
    trials_of = [trial for trial in found if trial.scenario == SOFTWARE and trial.known]
    assert len(trials_of) >= 75
    for family in ("prime-curve", "montgomery-curve"):
        of = [trial for trial in trials_of if kind(trial.target) == family]
        assert sum(trial.held for trial in of) / len(of) >= 0.9
    assert 0.9 <= sum(trial.held for trial in trials_of) / len(trials_of) <= 0.97
    assert len({trial.board for trial in trials_of}) >= 9


@pytest.mark.parametrize("suite", ["tls1.3/x25519/p256/server", "tls1.2/psk"])
def test_totals_hold_where_a_rough_cipher_counts(suite):
    """Every cipher of a build hidden: the total's range is to hold what the total is with the own one."""
    trace, held = open_library()[suite], []
    for name in shipped_names("devices"):
        board = load_device(name)
        for device in (board, *board.variants):
            if ("cipher", "aes-128-gcm", "") not in device.costs:
                continue
            left = {triple: cost for triple, cost in device.costs.items() if triple[0] != "cipher"}
            for side in ("client", "server"):
                truth, guess = (
                    price(trace, side, one) for one in (device, dataclasses.replace(device, costs=left))
                )
                if all(row["operation"] != "cipher" for row in guess.unpriced):
                    held.append(guess.total.low <= truth.total.mean <= guess.total.high)
    assert len(held) > 50
    assert sum(held) / len(held) >= 0.9


@pytest.mark.parametrize("mode", ["gcm", "ccm", "cbc", "poly1305"])
def test_nine_ranges_of_ten_hold_by_the_clock_however_wide(found, mode):
    trials_of = [
        one
        for one in found
        if one.scenario == CLOCK
        and one.estimate
        and one.target[0] == "cipher"
        and one.target[1].endswith(mode)
    ]
    assert len(trials_of) > 30
    assert 0.9 <= sum(trial.held for trial in trials_of) / len(trials_of) <= 0.97


def test_no_family_with_many_figures_is_held_much_less_often(found):
    by_family = defaultdict(list)
    for trial in found:
        if trial.known and trial.scenario in ("figure", "size"):
            by_family[trial.scenario, kind(trial.target)].append(trial)
    for trials_of in by_family.values():
        if len(trials_of) >= 15:
            assert sum(trial.held for trial in trials_of) / len(trials_of) >= 0.85


def test_the_truth_is_within_a_factor_of_four_where_a_figure_is_given(found):
    known = [trial for trial in found if trial.known and trial.scenario in SCENARIOS]
    near = sum(abs(trial.error) <= math.log(WIDEST) for trial in known) / len(known)
    assert near >= 0.95


def test_the_page_says_what_the_trials_found(found):
    assert coverage_tables(shipped(), found) in PAGE.read_text(encoding="utf-8")


def test_relations_are_the_same_both_ways():
    triples = shipped().triples()
    for target in triples[::5]:
        for base in triples[::7]:
            there, back = relation(target, base), relation(base, target)
            assert (there is None) == (back is None)
            if there is not None and back is not None:
                assert there.name == back.name
                if there.expected is not None:
                    assert there.expected == pytest.approx(-(back.expected or 0.0))
            assert (
                target == base
                or there is None
                or group(target) in ("curves", "integers", "lattices", "symmetric")
            )


def test_the_shipped_data_survive_reading_and_writing():
    assert to_json(from_json(to_json(shipped()))) == to_json(shipped())
