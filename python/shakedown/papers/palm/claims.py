"""A check for each claim."""

from __future__ import annotations

from collections.abc import Mapping

from shakedown.papers import verdicts
from shakedown.papers.load import PaperData
from shakedown.papers.palm.inputs import (
    CLOCKS_MHZ,
    DEVICES,
    ECC_MUTUAL,
    ECC_SERVER,
    FLOWS,
    NEW,
    OLDER,
    RSA_MUTUAL,
    RSA_SERVER,
    times,
)
from shakedown.papers.replication import Replication
from shakedown.papers.verdicts import Check


def checks(data: PaperData, replication: Replication) -> Mapping[str, Check]:
    new = times(data, NEW)
    every = {name: times(data, device) for device, name in DEVICES.items()}
    ecc, mutual = new.total_s("ecc163", "server"), new.total_s("ecc163", "mutual")
    rsa3, rsa65537 = (new.total_s("rsa1024", "server", exponent) for exponent in ("3", "65537"))
    mutual3, mutual65537 = (new.total_s("rsa1024", "mutual", exponent) for exponent in ("3", "65537"))
    stored, stored_mutual = (new.total_s("ecc163", how, expanded=True) for how in ("server", "mutual"))
    server_ratios = {
        n: t.total_s("ecc163", "server") / t.total_s("rsa1024", "server", "3") for n, t in every.items()
    }
    mutual_ratios = {
        n: t.total_s("rsa1024", "mutual", "3") / t.total_s("ecc163", "mutual") for n, t in every.items()
    }
    clocks = data.tables["figure_8_pda_processors"]
    signing = {name: t.verify_s / t.sign_s for name, t in every.items()}
    return {
        "wp-001": verdicts.number(
            min(server_ratios.values()),
            "time of ECC over time of RSA, e = 3; RSA's share is largest where this ratio is smallest: "
            f"{_each(server_ratios)}",
        ),
        "wp-002": verdicts.holds(
            min(mutual_ratios.values()) >= 8,
            round(min(mutual_ratios.values()), 3),
            f"RSA over ECC, both mutual, e = 3: {_each(mutual_ratios)}; below eight on the old Palm VII",
        ),
        "wp-003": verdicts.number(
            max(len(flow) for flow in FLOWS.values()) / 2, "four flights in both flows, two to a round trip"
        ),
        "wp-004": verdicts.measured(_hashing(replication)),
        "wp-005": verdicts.holds(
            all(t.rsa_verify_s["65537"] > t.rsa_verify_s["3"] for t in every.values()),
            "; ".join(f"{t.rsa_verify_s['65537'] / t.rsa_verify_s['3']:.2f}" for t in every.values()),
            "e = 65537 over e = 3 on the three devices of figure 3",
        ),
        "wp-006": verdicts.number(
            _expansions(data), "rows of key expansion in figure 4 and in figure 6, two each"
        ),
        "wp-007": verdicts.number(ecc, "254.8 + 1254 + 372.4 + 254.8 + 335.6 ms"),
        "wp-008": verdicts.number(rsa3, "598 + 622 ms"),
        "wp-009": verdicts.number(rsa65537, "1482 + 622 ms"),
        "wp-010": verdicts.number(mutual, "254.8 + 1254 + 254.8 + 335.6 + 514.8 ms"),
        "wp-011": verdicts.number(mutual3, "598 + 622 + 21734 ms; printed truncated, not rounded"),
        "wp-012": verdicts.number(mutual65537, "1482 + 622 + 21734 ms"),
        "wp-013": verdicts.number(
            mutual3 / mutual,
            f"22954 over 2614 ms; with e = 65537 {mutual65537 / mutual:.2f}; no sum of its primitives gives "
            "8.64",
        ),
        "wp-014": verdicts.number(stored, "2471.6 ms less one expansion of 254.8 ms"),
        "wp-015": verdicts.holds(
            abs(stored / rsa65537 - 1) <= 0.10,
            f"{stored:.3f} vs {rsa65537:.3f}",
            f"{stored / rsa65537:.3f} times",
        ),
        "wp-016": verdicts.number(
            mutual65537 / stored_mutual,
            f"23838 over {1e3 * stored_mutual:.1f} ms; the result is 10.75 if the divisor is the "
            f"server-authenticated handshake's {1e3 * stored:.1f} ms: {mutual65537 / stored:.2f}",
        ),
        "wp-017": verdicts.measured(_sizes(replication)),
        "wp-018": verdicts.number(sum(signing.values()) / 3, f"mean of three devices: {_each(signing)}"),
        "wp-019": _clock(data),
        "wp-020": verdicts.spans(
            [(min(clocks.column("clock_min_mhz")), max(clocks.column("clock_max_mhz")))],
            "lowest and highest clock of figure 8",
        ),
        "wp-021": verdicts.holds(
            _slowest_and_fastest(data) == ("RIM Interactive Pager", "HP Jornada 820"),
            " < … < ".join(_slowest_and_fastest(data)),
            "by clock, the only published figure: 10 and 190 MHz",
        ),
        "wp-022": verdicts.holds(
            max(server_ratios.values()) <= 2.5 and min(mutual_ratios.values()) >= 7.5,
            f"{max(server_ratios.values()):.2f} and {min(mutual_ratios.values()):.2f}",
            "to the one printed digit, on every device: at most two and a half, at least seven and "
            f"a half; server authentication: {_each(server_ratios)}; mutual: {_each(mutual_ratios)}",
        ),
    }


def _each(ratios: Mapping[str, float]) -> str:
    return ", ".join(f"{ratio:.2f} ({name})" for name, ratio in ratios.items())


def _expansions(data: PaperData) -> float:
    rows = data.tables["figures_4_to_7_handshake_steps"].rows
    counts = {
        figure: sum(
            1 for row in rows if row["figure"] == figure and row["primitive"].endswith("key_expansion")
        )
        for figure in ("4", "6")
    }
    (count,) = set(counts.values())
    return float(count)


def _clock(data: PaperData) -> Check:
    rows = data.tables["figure_3_primitive_times"].rows
    ratios = [float(row[device]) / float(row[NEW]) for row in rows for device in OLDER]
    expected = CLOCKS_MHZ[NEW] / CLOCKS_MHZ[OLDER[0]]
    furthest = max(ratios, key=lambda ratio: abs(ratio - expected))
    return verdicts.holds(
        all(abs(ratio / expected - 1) <= 0.05 for ratio in ratios),
        round(furthest, 3),
        f"time ratios of the same primitives range from {min(ratios):.2f} to {max(ratios):.2f} for a clock "
        f"ratio of {expected:.3f}; RSA and ECC scale differently",
    )


def _slowest_and_fastest(data: PaperData) -> tuple[str, str]:
    rows = data.tables["figure_8_pda_processors"].rows
    slowest = min(rows, key=lambda row: float(row["clock_min_mhz"]))
    return slowest["device"], max(rows, key=lambda row: float(row["clock_max_mhz"]))["device"]


def _hashing(replication: Replication) -> Check:
    """The check of the share of hashing; no time of a hash is printed, so it needs a measurement."""
    reason = replication.why_not([ECC_SERVER, RSA_SERVER])
    if reason:
        return verdicts.untestable(f"no time of hashing is printed; {reason}")
    shares = {
        name: replication.costs[suite].master_secret_us("client") / replication.costs[suite].client_us
        for name, suite in (("ECC", ECC_SERVER), ("RSA", RSA_SERVER))
    }
    words = ", ".join(f"{100 * share:.2f} % ({name})" for name, share in shares.items())
    return verdicts.holds(
        max(shares.values()) < 0.01,
        words,
        "no time of hashing is printed; measured here: the master secret's share of the client's time. "
        "Public-key work is now so fast that hashing is visible",
    )


def _sizes(replication: Replication) -> Check:
    """The check of sizes; no byte count is printed, so it needs a measurement."""
    reason = replication.why_not([ECC_SERVER, RSA_SERVER, ECC_MUTUAL, RSA_MUTUAL])
    if reason:
        return verdicts.untestable(f"no sizes are printed; {reason}")
    pairs = [
        (replication.costs[rsa].size_bytes, replication.costs[ecc].size_bytes)
        for rsa, ecc in ((RSA_SERVER, ECC_SERVER), (RSA_MUTUAL, ECC_MUTUAL))
    ]
    words = "; ".join(f"{rsa:.0f} > {ecc:.0f}" for rsa, ecc in pairs)
    return verdicts.holds(
        all(rsa > ecc for rsa, ecc in pairs),
        words,
        "no sizes are printed; bytes of our WTLS handshakes, server-authenticated and mutual",
    )
