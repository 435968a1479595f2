"""A check for each claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from shakedown.models.access import resumption_gain, share_without_network
from shakedown.papers import verdicts
from shakedown.papers.load import PaperData
from shakedown.papers.pda.inputs import DEVICE, DH, NOT_PRINTED, RSA, Study
from shakedown.papers.pda.steps import time_ratio
from shakedown.papers.pda.transfers import growth_words
from shakedown.papers.replication import Replication
from shakedown.papers.verdicts import Check


def checks(data: PaperData, replication: Replication) -> Mapping[str, Check]:
    study = Study(data)
    pda_ms = study["pda_open_full_handshake_total"]
    laptop_ms = study.laptop_ms
    resumed = {"pda": study["pda_resumption_time"], "laptop": study["laptop_resumption_time"]}
    gains = {
        name: float(resumption_gain(full, resumed[name]))
        for name, full in (("pda", pda_ms), ("laptop", laptop_ms))
    }
    steps_2_3 = study["pda_open_step2_share_of_total_almost"] + study["pda_open_step3_share_of_total_almost"]
    sum_of_crypto = steps_2_3 + 100 * study["pda_open_step6_symmetric_decrypt_and_hash"] / pda_ms
    left = 100 - steps_2_3 - 100 * study.step_6_ms / pda_ms
    crypto_ms = study["pda_open_crypto_share_of_total"] / 100 * pda_ms
    without = 100 * float(share_without_network(crypto_ms, pda_ms, study.blocking_ms))
    laptop_crypto_ms = study["laptop_open_crypto_share_of_total"] / 100 * laptop_ms
    shares = (study["pda_open_crypto_share_of_total"], study["laptop_open_crypto_share_of_total"])
    return {
        **dict.fromkeys(("sp-003", "sp-007", "sp-008", "sp-027", "sp-028"), verdicts.untestable(DEVICE)),
        **dict.fromkeys(("sp-011", "sp-019", "sp-020"), verdicts.untestable(NOT_PRINTED)),
        **dict.fromkeys(
            ("sp-013", "sp-017", "sp-018"), verdicts.untestable("printed as this share only: an input")
        ),
        "sp-001": verdicts.number(
            100 / study["laptop_open_total_over_pda_open_total"], "inverse of the 31 % of section V-A"
        ),
        "sp-002": verdicts.holds(
            max(shares) < 50, "crypto < rest", f"{shares[0]} % on the PDA, {shares[1]} % on the laptop"
        ),
        "sp-004": verdicts.untestable(f"{NOT_PRINTED}: an input; it is used in sp-010 and sp-014"),
        "sp-005": verdicts.untestable(f"{NOT_PRINTED}: an input; it is used in sp-010 and sp-014"),
        "sp-006": verdicts.number(
            100 * study.step_6_ms / pda_ms,
            f"its printed parts, 0.129 + 25.21 ms of 50.6 ms; 46 % is the blocking read alone "
            f"({study.blocking_ms:.2f} ms, {100 * study.blocking_ms / pda_ms:.1f} %)",
        ),
        "sp-009": verdicts.number(
            study["pda_open_step6_share_of_total"] * pda_ms / study["pda_open_step6_rest"],
            "46 % of 50.6 ms over 25.21 ms, if the 46 % are the blocking read",
        ),
        "sp-010": verdicts.holds(
            100 - left > left,
            f"{{2,3,6}} {100 - left:.0f} %, {{1,4,5}} {left:.0f} %",
            "true for the three together; but if the six steps add up to 50.6 ms, one of steps 1, 4 and 5 "
            f"takes at least {left / 3:.1f} % on the PDA, more than step 2 (7 %) and step 3 (10 %)",
        ),
        "sp-012": verdicts.untestable("the laptop's total is printed as this ratio only: an input"),
        "sp-014": verdicts.number(sum_of_crypto, "almost 7 % + almost 10 % + 0.129 of 50.6 ms"),
        "sp-015": verdicts.untestable(
            "the removed network parts are not printed; without the blocking read alone it is "
            f"{without:.1f} %, and 72 % means that {pda_ms - crypto_ms / 0.72:.1f} of 50.6 ms were network"
        ),
        "sp-016": verdicts.untestable(
            "the removed network parts are not printed; 90 % means "
            f"{laptop_ms - laptop_crypto_ms / 0.90:.1f} of {laptop_ms:.1f} ms"
        ),
        "sp-021": verdicts.untestable(f"{NOT_PRINTED}, and the clients are not available"),
        "sp-022": verdicts.untestable(_total_of("PDA")),
        "sp-023": verdicts.untestable(_total_of("laptop")),
        "sp-024": _when(replication, (RSA, DH), lambda: _server_longer(replication)),
        "sp-025": verdicts.number(
            resumed["pda"] / pda_ms, f"4.89 over 50.6 ms; 28 % would need {0.28 * pda_ms:.1f} ms"
        ),
        "sp-026": verdicts.number(
            resumed["laptop"] / laptop_ms,
            f"4.18 over 0.31 x 50.6 ms; 14 % would need {0.14 * laptop_ms:.1f} ms; exchanging the two "
            "percentages "
            "does not fit either",
        ),
        "sp-029": verdicts.number(resumed["pda"] / resumed["laptop"], "4.89 over 4.18 ms"),
        "sp-030": verdicts.measured(verdicts.untestable(growth_words(replication))),
        "sp-031": verdicts.holds(
            gains["laptop"] > gains["pda"],
            f"laptop {100 * gains['laptop']:.0f} % < pda {100 * gains['pda']:.0f} %",
            "1 - resumed / full by the printed times; the conclusion follows the printed percentages (28 and "
            "14) and contradicts the times",
        ),
        "sp-032": verdicts.holds(
            min(study["pda_dh_total_over_rsa_total"], study["laptop_dh_total_over_rsa_total"]) > 1,
            "rsa < dh",
            "by the printed ratios of 6 and 3",
        ),
    }


def _when(replication: Replication, suites: Sequence[str], check: Callable[[], Check]) -> Check:
    reason = replication.why_not(suites)
    return verdicts.measured(verdicts.untestable(f"{NOT_PRINTED}; {reason}") if reason else check())


def _total_of(device: str) -> str:
    return (
        f"a ratio of the {device}'s totals, which include network waits; neither the "
        "device nor the parts of the totals are available"
    )


def _server_longer(replication: Replication) -> Check:
    ratio = time_ratio(replication, "server", DH, RSA)
    return verdicts.holds(ratio > 1, f"{ratio:.2f}", "server's CPU time here, DH over RSA")
