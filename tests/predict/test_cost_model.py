"""Estimates follow the model's formulas, and their ranges hold as often as documented."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shakedown.prediction.cost_fit import BOARD, fit_variances, quantile, reference_builds, trials
from shakedown.prediction.cost_model import DATA, Build, CostModel, Fit, build_of, shipped, to_json
from shakedown.prediction.library import open_library
from shakedown.prediction.primitives import GROUPS, LEVELS, expected, levels
from shakedown.prediction.side_cost import side_cost
from shakedown.profiles import load_device
from shakedown.profiles.registry import shipped_names

PAGE = Path(__file__).parents[2] / "docs" / "validation" / "cost-model.md"
SIGN, VERIFY = ("sign", "ecdsa", "p256"), ("verify", "ecdsa", "p256")
TRIPLES = sorted({triple for build in shipped().builds for triple in build.log_s})


def test_shipped_builds_match_the_profiles():
    """If this fails, run `make fit`. Devices added after the last release are not references yet."""
    devices = shipped().devices
    assert len(devices) > 60
    now = to_json(CostModel(reference_builds(devices), shipped().fit, devices))
    assert now == json.loads(DATA.read_bytes())


def made(board: str, library: str, **log_s: float) -> Build:
    ways = dict.fromkeys(GROUPS, "c")
    return Build(
        board, library, 32, False, 1.0, ways, {(name, "ecdsa", "p256"): v for name, v in log_s.items()}
    )


def test_estimate_shrinks_the_mean_as_one_way_analysis_of_variance():
    """A class with effect variance a, boards with variance b: mean × n a / (n a + b) (Searle 1971)."""
    a, b, values = 0.5, 0.2, (1.0, 1.6, 0.4)
    variances = {(3, 7, "curves", ""): a, (5, 7, "curves", "32-bit"): b}
    model = CostModel([made(f"b{n}", "L", sign=v) for n, v in enumerate(values)], Fit(variances))
    found = model.estimate(SIGN, made("new", "L"))
    wanted = sum(values) / 3 * 3 * a / (3 * a + b + 1e-4)
    assert found.log_s - expected(SIGN) == pytest.approx(wanted, abs=1e-5)
    variance = a + b + 1e-4 - 3 * a**2 / (3 * a + b + 1e-4)
    assert (found.half / 1.645) ** 2 == pytest.approx(variance, abs=1e-5)
    assert found.boards == 3
    # The model has no data that applies to another library.
    assert model.estimate(SIGN, made("new", "M")).log_s == pytest.approx(expected(SIGN))


def test_fit_recovers_the_variances_of_simulated_figures():
    drawn = np.random.default_rng(7)
    builds = []
    for library in range(12):
        habit = drawn.normal(0.0, 0.8)
        for board in range(6):
            own = drawn.normal(0.0, 0.3)
            builds.append(
                made(f"{library}-{board}", f"l{library}", sign=habit + own, verify=habit + own + 1.0)
            )
    found = fit_variances(builds, 60)
    of_libraries = sum(v for (i, *_), v in found.items() if i == 3)
    of_boards = sum(v for (i, *_), v in found.items() if i in (4, 5))
    assert math.sqrt(of_libraries) == pytest.approx(0.8, rel=0.35)
    assert math.sqrt(of_boards) == pytest.approx(0.3, rel=0.35)


def test_range_factor_has_conformal_prediction_coverage():
    """The next of N + 1 exchangeable scores is below the k-th with probability k / (N + 1)."""
    drawn = random.Random(1)
    held = 0
    for _ in range(4000):
        *some, following = (drawn.lognormvariate(0.0, 1.0) for _ in range(12))
        held += following <= quantile(some)
    assert 0.9 <= held / 4000 <= 0.94


def rows_of_the_page() -> dict[str, tuple[int, float]]:
    """For each kind of hidden data: the number of figures, and the per cent whose range holds them."""
    found = re.findall(
        r"^\| ([^|]+) \| \d+ \| \d+ \| (\d+) \| ([\d.]+)% \|", PAGE.read_text("utf-8"), re.MULTILINE
    )
    return {name: (int(given), float(held)) for name, given, held in found}


def test_about_90_per_cent_of_ranges_contain_the_held_out_figure():
    """The limits of 87 and 93 % were fixed beforehand; the page names each row outside them."""
    rows, text = rows_of_the_page(), PAGE.read_text("utf-8")
    for name in (
        "one figure hidden",
        "a whole size hidden",
        "a whole family hidden",
        "all figures of a board hidden",
        "secure elements and TPMs, one figure hidden",
        "library openssl hidden, all three",
        "library mbedtls hidden, all three",
        "library wolfssl hidden, all three",
    ):
        given_figures, held = rows[name]
        assert given_figures >= 50
        assert 87.0 <= held <= 93.0 or f"*{name}*: {held:.1f} %" in text


def test_ranges_have_their_coverage_in_new_trials():
    """Applies the recorded factors to every seventh build, without its board."""
    model = shipped()
    found = [one for one in trials(model, model.builds[::7], BOARD) if one.scenario in ("figure", "family")]
    assert len(found) > 300
    assert 0.85 <= sum(one.held(model.fit) for one in found) / len(found) <= 0.97


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(["cortex-m4", "rw612:c", "core-i7-8565u"]), st.sampled_from(TRIPLES))
def test_unknown_library_widens_the_range(name, target):
    like = build_of(load_device(name))
    like = dataclasses.replace(like, log_s={k: v for k, v in like.log_s.items() if k != target})
    assume(target[0] not in ("cipher", "digest", "mac") and levels(target)[1] != ("lattices",))
    new = shipped().estimate(target, dataclasses.replace(like, lineage="unheard of"))
    assert new.novelty == "new library"
    assert new.half >= 0.25


def test_primitive_has_a_label_per_level_and_a_unique_last_one():
    labels = [levels(triple) for triple in TRIPLES]
    assert {len(one) for one in labels} == {len(LEVELS)}
    assert len({one[-1] for one in labels}) == len(TRIPLES)
    assert len({one[0] for one in labels}) == 1


@pytest.mark.parametrize("suite", ["tls1.3/x25519/p256/server", "tls1.2/psk"])
def test_total_range_holds_with_an_estimated_cipher(suite):
    """With a build's ciphers hidden, the total's range must hold the total with the build's own cipher."""
    trace, held = open_library()[suite], []
    for name in shipped_names("devices")[::2]:
        device = load_device(name)
        if ("cipher", "aes-128-gcm", "") not in device.costs:
            continue
        left = {triple: cost for triple, cost in device.costs.items() if triple[0] != "cipher"}
        for side in ("client", "server"):
            truth, guess = (
                side_cost(trace, side, one) for one in (device, dataclasses.replace(device, costs=left))
            )
            if all(row["operation"] != "cipher" for row in guess.without_cost):
                held.append(guess.total.low <= truth.total.mean <= guess.total.high)
    assert len(held) > 20
    assert sum(held) / len(held) >= 0.9
