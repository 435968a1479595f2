"""Properties of the reproductions: exact sums, residuals, and known errors of the papers."""

from __future__ import annotations

import pytest

from shakedown.papers.thesis import network
from shakedown.papers.thesis.inputs import Thesis
from shakedown.papers.thesis.queue import points, queue


def row(modelled, slug, claim):
    return modelled[slug].claims()[claim]


@pytest.mark.parametrize(
    ("figure", "total"),
    [("4", 2471.6), ("5a", 1220), ("5b", 2104), ("6", 2614), ("7a", 22954), ("7b", 23838)],
)
def test_daswani_totals_are_reproduced_exactly(modelled, figure, total):
    (found,) = [one for one in modelled["wtls-palm"].rows if one.item == f"figure {figure}, total"]
    assert (found.published, found.replication, found.difference, found.verdict) == (
        total,
        total,
        0,
        "agrees",
    )


def test_daswani_wrong_ratios_differ(modelled):
    assert row(modelled, "wtls-palm", "wp-013").replication == pytest.approx(22954 / 2614, abs=1e-6)
    assert row(modelled, "wtls-palm", "wp-016").replication == pytest.approx(23838 / 2359.2, abs=1e-6)
    for claim in ("wp-002", "wp-013", "wp-016", "wp-019"):
        assert row(modelled, "wtls-palm", claim).verdict == "differs"


def test_daswani_bounds_are_checked_on_every_device(modelled):
    least, words = row(modelled, "wtls-palm", "wp-001"), row(modelled, "wtls-palm", "wp-022")
    assert (least.replication, least.verdict) == (pytest.approx(2.026, abs=0.001), "agrees")
    assert all(device in least.reason for device in ("20 MHz", "Palm V, ", "old"))
    assert (words.replication, words.verdict) == ("2.28 and 7.98", "agrees")


def test_traversal_delay_and_its_deviation_agree(modelled):
    mean, deviation = (row(modelled, "wtls-nokia7650", claim) for claim in ("wn-057", "wn-058"))
    assert mean.replication == pytest.approx(391.30, abs=0.005)
    assert deviation.replication == pytest.approx(90.01, abs=0.005)
    assert mean.verdict == deviation.verdict == "agrees"


@pytest.mark.parametrize(
    ("slot", "with_8", "without_8"),
    [
        ("12 PM", 342.9, 376.1),
        ("2 PM", 332.3, 364.1),
        ("4 PM", 355.1, 397.0),
        ("6 PM", 350.3, 384.5),
        ("8 PM", 366.9, 398.4),
        ("10 PM", 342.3, 367.9),
        ("12 AM", 326.1, 351.4),
    ],
)
def test_gprs_means_agree_only_without_the_factor_8(modelled, slot, with_8, without_8):
    rows = {
        one.item: one for one in modelled["wtls-nokia7650"].cells() if one.quantity.startswith("mean GPRS")
    }
    printed, slip = rows[f"table 4.14, {slot}"], rows[f"table 4.14 without the factor 8, {slot}"]
    assert printed.published == slip.published == without_8
    assert (printed.replication, printed.verdict) == (pytest.approx(with_8, abs=0.05), "differs")
    assert (slip.replication, slip.verdict) == (pytest.approx(without_8, abs=0.1), "agrees")


MET_AT = {
    "wn-043": (68.3, 69.7),
    "wn-045": (68.2, 69.7),
    "wn-046": (69.0, 69.1),
    "wn-047": (23.7, 23.8),
    "wn-050": (12.7, 12.9),
    "wn-052": (31.9, 32.1),
    "wn-053": (4.9, 5.1),
    "wn-054": (18.9, 19.1),
}


def test_published_queue_points_have_higher_rates_than_the_model(modelled):
    found = {point.claim_id: point for point in points(Thesis(modelled["wtls-nokia7650"].data))}
    assert set(found) == set(MET_AT)
    for claim, (low, high) in MET_AT.items():
        least, most = found[claim].rates_here_per_s()
        assert low <= least <= most <= high
        assert 0.9 <= found[claim].rate_per_s - least <= 4
        assert row(modelled, "wtls-nokia7650", claim).verdict == "differs"


def test_capacity_of_72_requests_is_13_to_17_handshakes(modelled):
    found = {point.claim_id: point for point in points(Thesis(modelled["wtls-nokia7650"].data))}
    low, high = found["wn-043"].capacities_per_s()
    assert 13 <= low < high <= 17.2
    capacities = [
        one
        for one in modelled["wtls-nokia7650"].cells()
        if one.item.startswith("queue point") and one.unit == "handshakes/s"
    ]
    assert len(capacities) == len(MET_AT)
    assert all(one.verdict == "differs" and one.replication < one.published / 3 for one in capacities)


def test_two_printed_rates_have_no_steady_state(modelled):
    for claim, load in (("wn-053", "1.044"), ("wn-054", "1.021")):
        found = row(modelled, "wtls-nokia7650", claim)
        assert found.replication == "no steady state"
        assert load in found.reason


def test_certificate_mixture_is_averaged_before_squaring(modelled):
    thesis = Thesis(modelled["wtls-nokia7650"].data)
    cases = [thesis.case("rsa3072/rsa1024"), thesis.case("rsa3072/rsa2048")]
    printed = queue(thesis, "mutual", cases, (0.5, 0.5))
    proper = queue(thesis, "mutual", cases, (0.5, 0.5), as_printed=False)
    assert 1e3 * float(printed.wait_s(25)) == pytest.approx(204, abs=0.5)
    assert 1e3 * float(proper.wait_s(25)) == pytest.approx(307, abs=0.5)


def test_all_handshake_sizes_follow_from_keys_and_signatures(modelled):
    sizes = [one for one in modelled["wtls-nokia7650"].cells() if one.item.startswith("table 4.11")]
    assert len(sizes) == 48
    assert all(one.difference == 0 for one in sizes)


def test_errors_of_the_thesis_differ_and_its_tables_agree(modelled):
    claims = modelled["wtls-nokia7650"].claims()
    differing = {claim for claim, one in claims.items() if one.verdict == "differs"}
    assert {
        "wn-017",
        "wn-033",
        "wn-034",
        "wn-035",
        "wn-044",
        "wn-051",
        "wn-059",
        "wn-062",
        "wn-068",
    } <= differing
    assert {"wn-072", "wn-073", "wn-076", "wn-083"} <= differing
    agreeing = {claim for claim, one in claims.items() if one.verdict == "agrees"}
    assert {
        "wn-001",
        "wn-011",
        "wn-018",
        "wn-025",
        "wn-040",
        "wn-041",
        "wn-057",
        "wn-060",
        "wn-079",
    } <= agreeing


def test_the_transmission_model_does_not_fit_its_data(modelled):
    tau_s = network.csd_traversal_s(Thesis(modelled["wtls-nokia7650"].data))
    messages = network.arrays(Thesis(modelled["wtls-nokia7650"].data))[2]
    means = [1e3 * tau_s[messages == n].mean() for n in (4, 5, 6)]
    assert means == pytest.approx([474, 371, 225], abs=1)


def test_kuo_byte_formulas_and_orders_agree(modelled):
    cells = modelled["tls-psk"].cells()
    law = [one for one in cells if one.item in ("table 4.1, DH_anon", "table 4.1, DHE_PSK")]
    assert len(law) == 6
    assert all(one.difference == 0 for one in law)
    for claim in ("tp-012", "tp-013", "tp-014", "tp-015", "tp-016", "tp-018"):
        found = row(modelled, "tls-psk", claim)
        assert (found.kind, found.verdict) == ("modelled", "agrees")
    at_rates = row(modelled, "tls-psk", "tp-018").reason
    assert "PSK 468.8 / 46.88 / 4.688" in at_rates
    assert "RSA server 1151 / 115.1 / 11.51" in at_rates


def test_shin_shares_are_reproduced(modelled):
    claims = modelled["ssl-pda"].claims()
    assert claims["sp-025"].replication == pytest.approx(4.89 / 50.6)
    assert claims["sp-026"].replication == pytest.approx(4.18 / (0.31 * 50.6))
    assert claims["sp-006"].replication == pytest.approx(50.08, abs=0.005)
    for claim in ("sp-006", "sp-025", "sp-026", "sp-031"):
        assert claims[claim].verdict == "differs"
    for claim in ("sp-001", "sp-002", "sp-014", "sp-029"):
        assert claims[claim].verdict == "agrees"


def test_kambourakis_sums_agree(modelled):
    claims = modelled["aka-ssl"].claims()
    sums = {
        "ak-007": 10907,
        "ak-012": 9850,
        "ak-013": 347.75,
        "ak-022": 9560,
        "ak-003": 695.5,
        "ak-006": 6955,
    }
    for claim, value in sums.items():
        assert (claims[claim].replication, claims[claim].verdict) == (value, "agrees")
    for claim in ("ak-001", "ak-020", "ak-024"):
        assert claims[claim].verdict == "differs"
    totals = {one.item: one.verdict for one in modelled["aka-ssl"].cells() if one.quantity == "TST, mean"}
    assert list(totals.values()) == ["agrees", "agrees", "differs"]


INPUTS = {
    "wtls-nokia7650": ("wn-039", "wn-056", "wn-065", "wn-067"),
    "ssl-pda": ("sp-012", "sp-013", "sp-017", "sp-018"),
    "aka-ssl": ("ak-005", "ak-011", "ak-025"),
}
TWO_MACHINES = {
    "tls-psk": ("tp-008", "tp-019", "tp-023"),
    "ssl-pda": ("sp-021", "sp-022", "sp-023", "sp-030"),
}
UNBOUNDED = {"wtls-nokia7650": ("wn-069",), "tls-psk": ("tp-024",), "aka-ssl": ("ak-004",)}


@pytest.mark.parametrize(("slug", "claims"), [*INPUTS.items(), *TWO_MACHINES.items(), *UNBOUNDED.items()])
def test_untestable_claims_are_not_decided(documented, slug, claims):
    for claim in claims:
        assert row(documented, slug, claim).verdict == "cannot be tested"


def test_nearly_equal_is_checked_for_each_suite(modelled):
    found = row(modelled, "wtls-nokia7650", "wn-093")
    assert (found.replication, found.verdict) == ("0.86152..1.3387", "differs")


def test_limits_count_messages_as_the_curves_do(modelled):
    limit = row(modelled, "wtls-nokia7650", "wn-048")
    assert (limit.replication, limit.verdict) == (pytest.approx(6.74, abs=0.01), "differs")
    assert row(modelled, "wtls-nokia7650", "wn-082").verdict == "cannot be tested"
    assert row(modelled, "wtls-nokia7650", "wn-091").replication == pytest.approx(5.747, abs=0.001)


def test_practical_limits_are_read_at_the_printed_waits(modelled):
    for claim in ("wn-049", "wn-078"):
        found = row(modelled, "wtls-nokia7650", claim)
        assert found.verdict == "agrees"
        assert "waits of 146 to 160 ms" in found.reason


def test_resumption_messages_are_counted_as_in_the_paper(modelled):
    found = row(modelled, "aka-ssl", "ak-015")
    assert (found.replication, found.verdict) == (pytest.approx(3 * 1391), "differs")


def test_stated_shares_and_lower_bounds_are_tested(modelled, documented):
    """Covers two steps' shares together, the share of public-key work, and a lower bound."""
    assert row(modelled, "ssl-pda", "sp-010").verdict == "agrees"
    share = row(documented, "tls-psk", "tp-001").replication
    assert isinstance(share, str)
    assert 0.0 < float(share.removesuffix(" %")) < 100.0
    assert row(documented, "tls-psk", "tp-001").verdict != "agrees"
    assert row(modelled, "aka-ssl", "ak-029").verdict == "differs"
