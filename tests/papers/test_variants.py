"""Variants of measured figures: halves of the rounds, and small errors of every kind of work."""

from __future__ import annotations

import pytest

from papers.conftest import DOCUMENTED
from shakedown.papers import replication
from shakedown.papers.replication import MIN_ROUNDS, Replication
from shakedown.papers.rows import COMMON_OFF, PRIMITIVE_OFF, RULE
from shakedown.papers.variants import PATTERNS, shifted, variants
from shakedown.papers.write import MEASURED
from shakedown.schema.base import SIDES

RSA, DSS, PSK = (f"tls1.0/{name}" for name in ("rsa/rsa1024/server", "dhe_dss+dh1024/dsa1024/server", "psk"))


@pytest.fixture(scope="module")
def known() -> Replication:
    return replication.load(DOCUMENTED / MEASURED)


@pytest.fixture(scope="module")
def patterns(known) -> list[Replication]:
    return [shifted(known, pattern) for pattern in range(PATTERNS)]


def test_too_few_rounds_give_no_variants(known):
    few = replication.summary(known.rounds[: MIN_ROUNDS - 1], {})
    assert variants(few) == []
    assert len(variants(replication.summary(known.rounds[:MIN_ROUNDS], {}))) == 2 + PATTERNS


def test_half_variants_use_every_other_round(known):
    even, odd = variants(known)[:2]
    assert even.costs == replication.summary(known.rounds[0::2], {}).costs
    assert odd.costs == replication.summary(known.rounds[1::2], {}).costs


def test_parts_of_a_variant_add_up_to_the_side(known, patterns):
    for suite in (RSA, DSS, PSK):
        before = known.costs[suite]
        for one in patterns:
            after = one.costs[suite]
            for side in SIDES:
                outside, left = (
                    sum(part.us for part in cost.parts if (part.side, part.message) == (side, None))
                    for cost in (before, after)
                )
                ends = ((1 - COMMON_OFF) * outside, (1 + COMMON_OFF) * outside)
                assert any(left == pytest.approx(end, abs=1e-6) for end in ends)
                assert sum(after.class_us(side, kind) for kind in ("key", "signature", "common")) == (
                    pytest.approx(after.us(side))
                )


def test_variant_scales_a_primitive_equally_in_every_suite(known, patterns):
    for one in patterns:
        factors: dict[tuple[str, str, str], set[float]] = {}
        for suite, cost in known.costs.items():
            for before, after in zip(cost.parts, one.costs[suite].parts, strict=True):
                if before.is_public and before.us > 0:
                    key = (before.operation, before.algorithm, before.parameters)
                    factors.setdefault(key, set()).add(round(after.us / before.us, 6))
        assert {len(found) for found in factors.values()} == {1}
        off = {round(1 - PRIMITIVE_OFF, 6), round(1 + PRIMITIVE_OFF, 6)}
        assert {factor for found in factors.values() for factor in found} <= off


def test_variants_scale_common_work_of_two_suites_in_both_directions(known, patterns):
    ratios = {
        round(
            (one.costs[RSA].class_us("client", "common") / known.costs[RSA].class_us("client", "common"))
            / (one.costs[PSK].class_us("client", "common") / known.costs[PSK].class_us("client", "common")),
            4,
        )
        for one in patterns
    }
    high, low = 1 + COMMON_OFF, 1 - COMMON_OFF
    assert ratios == {1.0, round(high / low, 4), round(low / high, 4)}


def test_variants_cover_every_combination_of_classes(known, patterns):
    before = known.costs[DSS]
    ways = {
        tuple(
            one.costs[DSS].class_us("server", kind) > before.class_us("server", kind)
            for kind in ("key", "signature", "common")
        )
        for one in patterns
    }
    assert len(ways) == 8


def test_rule_text_states_the_deviations():
    assert f"{PRIMITIVE_OFF:.0%}" in RULE
    assert f"{COMMON_OFF:.0%}" in RULE
    assert "{" not in RULE
