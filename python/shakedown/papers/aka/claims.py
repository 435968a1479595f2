"""A check for each claim."""

from __future__ import annotations

import math
from collections.abc import Mapping

from shakedown.models import access
from shakedown.models.transmission import scaled_round_trip_s
from shakedown.papers import verdicts
from shakedown.papers.aka import runs
from shakedown.papers.aka.inputs import (
    CITED,
    GPRS,
    INPUT,
    LAPTOP,
    RESUMED_FLIGHTS,
    RESUMED_MESSAGES,
    SETUPS,
    TIMES,
    USUAL_BATTERY_MAH,
    WLAN,
    Study,
    five_trips_ms,
    setup_ms,
    ssl_hours,
)
from shakedown.papers.load import PaperData
from shakedown.papers.replication import Replication
from shakedown.papers.verdicts import Check


def checks(data: PaperData, replication: Replication) -> Mapping[str, Check]:
    return {**_times(Study(data)), **_rest(Study(data))}


def _times(study: Study) -> dict[str, Check]:
    deviations = {
        setup: [study.ms(setup, time, "sd") for time in ("tst", "tht", "scrt")] for setup in (GPRS, LAPTOP)
    }
    means = [study.ms(GPRS, time) for time in ("tst", "tht", "scrt")]
    relative = [100 * sd / mean for sd, mean in zip(deviations[GPRS], means, strict=True)]
    gap = {setup: study.ms(setup, "rpt") - study.ms(setup, "nrt") for setup in SETUPS}
    sums = {
        setup: (
            setup_ms(study, setup),
            study.ms(setup, "tst"),
            setup_ms(study, setup) / study.ms(setup, "tst") - 1,
        )
        for setup in SETUPS
    }
    worst = max(sums, key=lambda setup: abs(sums[setup][2]))
    smaller = [time for time in TIMES if study.ms(WLAN, time, "sd") < study.ms(GPRS, time, "sd")]
    count = int(study.text("measurements_per_scenario"))
    chance = _chance_ratio(count)
    resumed_ms = study.text("resumed_tht")
    trips_ms = 1e3 * float(
        access.handshake_time_s(0.0, study.ms(GPRS, "nrt") / 1e3, access.round_trips(RESUMED_MESSAGES))
    )
    return {
        "ak-001": verdicts.number(
            gap[GPRS],
            f"table 1: 1427 - 1391; the laptop's is {gap[LAPTOP]:.0f}, the same device on WLAN "
            f"{gap[WLAN]:.0f} ms",
        ),
        "ak-002": verdicts.number(
            study.ms(GPRS, "tht") - study.ms(GPRS, "scrt"),
            "table 1: 9480 - 8469; laptop "
            f"{study.ms(LAPTOP, 'tht') - study.ms(LAPTOP, 'scrt'):.0f}, WLAN "
            f"{study.ms(WLAN, 'tht') - study.ms(WLAN, 'scrt'):.0f} ms",
        ),
        "ak-003": verdicts.number(study.ms(GPRS, "nrt") / 2, "half of table 1's NRT"),
        "ak-004": verdicts.untestable(
            "'nearly' has no bound; of the distributions of TST, THT and SCRT only means and "
            "deviations are "
            f"published; the deviations are {', '.join(f'{one:.0f}' for one in deviations[GPRS])} ms, "
            f"{', '.join(f'{one:.1f} %' for one in relative)} of the means, and those of {count:,} "
            f"runs differ "
            f"by chance by {100 * (chance - 1):.0f} %",
        ),
        "ak-005": verdicts.untestable(
            "an input: five is half of the ten messages that the paper counts; SSL sends "
            "them in flights, which need two round trips and a third for the connection"
        ),
        "ak-006": verdicts.number(five_trips_ms(study, GPRS, 0.0), "5 x 1391 ms"),
        "ak-007": verdicts.number(setup_ms(study, GPRS), "1427 + 9480 ms"),
        "ak-012": verdicts.number(
            1e3
            * float(
                access.corrected_setup_s(
                    study.ms(GPRS, "tst") / 1e3, study.text("extra_network_delay_per_round_trip") / 1e3
                )
            ),
            "10950 - 5 x 220 ms",
        ),
        "ak-013": verdicts.number(
            1e3
            * float(
                scaled_round_trip_s(
                    study.ms(GPRS, "nrt") / 1e3,
                    1e3 * study.text("gprs_rate_max"),
                    1e3 * study.text("assumed_3g_rate"),
                )
            ),
            "1391 x 36 / 144 ms; the test-bed's own delay of 220 ms would not shrink with the rate",
        ),
        "ak-014": verdicts.number(
            study.text("assumed_3g_rate") / study.text("gprs_rate_max"), "144 over 36 kbit/s"
        ),
        "ak-015": verdicts.number(
            trips_ms,
            f"{RESUMED_MESSAGES} messages in round trips of 1391 ms, two to a round trip as the paper counts "
            "its ten, without public-key work; counted by flights, as SSL sends them, it is "
            f"{RESUMED_FLIGHTS / 2 * study.ms(GPRS, 'nrt'):.0f} ms; in virtual time "
            f"{runs.resumed_ms():.0f} ms",
        ),
        "ak-016": verdicts.number(
            100 * float(access.resumption_gain(study.ms(GPRS, "tht"), resumed_ms)),
            "1 - 2100 / 9480; printed truncated; in virtual time "
            f"{100 * float(access.resumption_gain(runs.mean_ms(GPRS, 'tht'), runs.resumed_ms())):.1f} %",
        ),
        "ak-019": verdicts.number(gap[LAPTOP], "table 3: 1343 - 1342"),
        "ak-020": verdicts.holds(
            max(deviations[LAPTOP]) / min(deviations[LAPTOP]) <= chance,
            "; ".join(f"{one:.0f}" for one in deviations[LAPTOP]),
            "standard deviations of TST, THT, SCRT in ms; shifted versions of one distribution have equal "
            f"deviations; those of two samples of {count:,} runs differ by chance by at most "
            f"{100 * (chance - 1):.0f} %; in virtual time they are "
            + ", ".join(f"{runs.sd_ms(LAPTOP, time):.0f}" for time in ("tst", "tht", "scrt")),
        ),
        "ak-021": verdicts.number(
            study.ms(WLAN, "tst") / study.ms(WLAN, "tht"),
            "table 4: 2730 over 2605; in virtual time "
            f"{runs.mean_ms(WLAN, 'tst') / runs.mean_ms(WLAN, 'tht'):.3f}",
        ),
        "ak-022": verdicts.number(
            five_trips_ms(study, GPRS, study.ms(WLAN, "tht")),
            f"2605 + 5 x 1391 ms; in virtual time {runs.mean_ms(GPRS, 'tht'):.0f} ms; on the laptop five "
            f"round trips alone are {five_trips_ms(study, LAPTOP, 0):.0f} ms, more than "
            f"its whole handshake of {study.ms(LAPTOP, 'tht'):.0f} ms",
        ),
        "ak-023": verdicts.holds(
            len(smaller) == len(TIMES),
            "sd(WLAN) < sd(GPRS)" if len(smaller) == len(TIMES) else f"only {', '.join(smaller)}",
            "all five times, tables 1 and 4; but the NRT's 377 ms are 3.7 times its mean of 103 ms",
        ),
        "ak-024": verdicts.holds(
            abs(sums[worst][2]) <= 0.01,
            "; ".join(f"{total:.0f} for {printed:.0f}" for total, printed, _ in sums.values()),
            f"RPT + THT for the printed TST in ms, in three tables; for {worst} the difference is "
            f"{100 * sums[worst][2]:+.1f} %; its printed RPT is probably wrong, because NRT + THT is close "
            "to TST",
        ),
    }


def _chance_ratio(count: int) -> float:
    """The factor within which the deviations of two samples of one normal distribution differ in 95 % of
    pairs.
    """
    return math.exp(1.96 / math.sqrt(count - 1))


def _load() -> Check:
    """The handshake's simulated mean over GPRS, at server utilisations up to three quarters."""
    most = runs.runs()["load"][-1]
    effect = runs.load_effect_percent()
    return verdicts.holds(
        effect <= 5.0,
        f"{effect:+.1f} %",
        f"THT at {100 * most['utilisation']:.0f} % utilisation compared with no load, "
        f"{runs.runs()['runs']:,} simulated accesses each, exponential gaps between other requests "
        f"({most['rate_per_s']:g}/s); assumed: {1e3 * most['work_s']:.0f} ms of server time for a handshake, "
        f"{most['workers']} processors",
    )


def _rest(study: Study) -> dict[str, Check]:
    capacity = study.energy("ipaq_main_battery_capacity_as_printed")
    low, high = ssl_hours(study, capacity)
    usual = ssl_hours(study, USUAL_BATTERY_MAH)
    rates = [slots * study.text("gprs_cs1_rate_per_slot") for slots in (3, 4)]
    charge = capacity * study.energy("initial_charge") / 100
    return {
        "ak-008": _load(),
        **dict.fromkeys(("ak-010", "ak-018", "ak-027", "ak-028"), verdicts.untestable(CITED)),
        **dict.fromkeys(("ak-011", "ak-025"), verdicts.untestable(INPUT)),
        "ak-009": verdicts.untestable("a statement of the authors without published figures"),
        "ak-017": verdicts.number(
            study.text("session_id") + study.text("cached_secret"),
            "32 bytes of session ID and 48 of master secret",
        ),
        "ak-026": verdicts.spans(
            [(rates[0], rates[1])], "three and four slots of 9.05 kbit/s; printed rounded"
        ),
        "ak-029": verdicts.holds(
            low < 2 and high >= 1.8,
            f"{low:.2f}..{high:.2f}",
            "'somewhat less' is taken as at most a tenth less. Computed for the printed 400 mAh, from the "
            "card's 200 to 150 mA and a current of the device itself that makes ak-030 true; for "
            f"{USUAL_BATTERY_MAH:.0f} mAh, the device's usual capacity, it is {usual[0]:.2f} to "
            f"{usual[1]:.2f} h, which is somewhat less than 2 h",
        ),
        "ak-030": verdicts.untestable(
            "the current of the device itself is not printed; 320 mAh would last "
            f"{charge / 23:.1f} h with the card's 23 mA alone; 2.5 h correspond to {charge / 2.5:.0f} mA in "
            "all, which is low for a device with its screen on"
        ),
        "ak-031": verdicts.untestable("from a data sheet"),
        "ak-032": verdicts.untestable("the two limits have no values"),
        "ak-033": verdicts.untestable("a configuration of the authors' program"),
    }
