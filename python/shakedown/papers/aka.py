"""Kambourakis et al. on SSL-based access to 3G networks: NRT, RPT, THT, TST, SCRT, resumption, battery."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from shakedown.models import access, energy
from shakedown.models.transmission import scaled_round_trip_s
from shakedown.models.transport import flight_s
from shakedown.papers import draw, judge
from shakedown.papers.draw import Drawing
from shakedown.papers.here import Here
from shakedown.papers.judge import Check, cell_row
from shakedown.papers.load import PaperData
from shakedown.papers.paper import Paper, Today
from shakedown.papers.rows import Row

SLUG = "aka-ssl"

FULL = "tls1.0/dhe_rsa+dh1024/rsa1024/mutual/3des-sha"
RESUMED = "tls1.0/dhe_rsa+dh1024/rsa1024/mutual/resumed/3des-sha"
SUITES = (FULL, RESUMED)

SETUPS = {
    "iPAQ, GPRS": ("1", "table_1_ipaq_gprs"),
    "laptop, GPRS": ("3", "table_3_laptop_gprs"),
    "iPAQ, WLAN": ("4", "table_4_ipaq_wlan"),
}
GPRS, LAPTOP, WLAN = SETUPS
TIMES = ("nrt", "rpt", "tht", "tst", "scrt")

RESUMED_FLIGHTS = 3
"""ClientHello; ServerHello to Finished; Finished (figure 5 with the TLS specification)."""

USUAL_BATTERY_MAH = 1400.0
"""What this device's battery usually holds; the paper prints 400."""

_INPUT = "an input: measured by the authors, and nothing else in the paper decides it"
_CITED = "cited by the paper from elsewhere; it holds nothing that decides it"
_AKA = "needs access runs against a loaded server, a part that is not built yet"


class Study:
    """The paper's averages in ms and its other numbers."""

    def __init__(self, data: PaperData) -> None:
        self._data = data

    def ms(self, setup: str, time: str, statistic: str = "average") -> float:
        """A time's average, or its deviation, in a set-up."""
        return float(self._data.tables[SETUPS[setup][1]].one(statistic=statistic)[f"{time}_ms"])

    def text(self, quantity: str) -> float:
        """A number of the text."""
        return float(self._data.tables["text_numbers"].one(quantity=quantity)["value"])

    def energy(self, quantity: str) -> float:
        """A number of the section on energy."""
        return float(self._data.tables["energy_numbers"].one(quantity=quantity)["value"])


def _five_trips_ms(study: Study, setup: str, computation_ms: float) -> float:
    trips = float(access.round_trips(study.text("handshake_messages")))
    return 1e3 * float(access.handshake_time_s(computation_ms / 1e3, study.ms(setup, "nrt") / 1e3, trips))


def _setup_ms(study: Study, setup: str) -> float:
    return 1e3 * float(access.total_setup_s(study.ms(setup, "rpt") / 1e3, study.ms(setup, "tht") / 1e3))


def _client_hello_ms(study: Study) -> float:
    """What of the second between THT and SCRT is not half a round trip, on the iPAQ over GPRS."""
    return study.ms(GPRS, "tht") - study.ms(GPRS, "scrt") - study.ms(GPRS, "nrt") / 2


def base_current_ma(study: Study, capacity_mah: float) -> float:
    """The device's own draw that makes an idle GPRS connection last its 2.5 h."""
    charge = capacity_mah * study.energy("initial_charge") / 100
    return charge / study.energy("lifetime_gprs_connected_almost") - study.energy(
        "nokia_d211_gprs_connected_idle_current"
    )


def ssl_hours(study: Study, capacity_mah: float) -> tuple[float, float]:
    """Lifetime under continuous SSL traffic, with the card's greatest and least draw."""
    base = base_current_ma(study, capacity_mah)
    low, high = (
        float(
            energy.lifetime_h(
                capacity_mah,
                base + study.energy(f"nokia_d211_gprs_downloading_current_{end}"),
                study.energy("initial_charge") / 100,
            )
        )
        for end in ("max", "min")
    )
    return low, high


def checks(data: PaperData, here: Here) -> Mapping[str, Check]:
    """A check for each claim."""
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
            _setup_ms(study, setup),
            study.ms(setup, "tst"),
            _setup_ms(study, setup) / study.ms(setup, "tst") - 1,
        )
        for setup in SETUPS
    }
    worst = max(sums, key=lambda setup: abs(sums[setup][2]))
    smaller = [time for time in TIMES if study.ms(WLAN, time, "sd") < study.ms(GPRS, time, "sd")]
    resumed_ms = study.text("resumed_tht")
    trips_ms = RESUMED_FLIGHTS / 2 * study.ms(GPRS, "nrt")
    return {
        "ak-001": judge.number(
            gap[GPRS],
            f"table 1: 1427 - 1391; the laptop's is {gap[LAPTOP]:.0f}, the same device on WLAN "
            f"{gap[WLAN]:.0f} ms",
        ),
        "ak-002": judge.number(
            study.ms(GPRS, "tht") - study.ms(GPRS, "scrt"),
            "table 1: 9480 - 8469; laptop "
            f"{study.ms(LAPTOP, 'tht') - study.ms(LAPTOP, 'scrt'):.0f}, WLAN "
            f"{study.ms(WLAN, 'tht') - study.ms(WLAN, 'scrt'):.0f} ms",
        ),
        "ak-003": judge.number(study.ms(GPRS, "nrt") / 2, "half of table 1's NRT"),
        "ak-004": judge.holds(
            max(relative) / min(relative) <= 1.2,
            "; ".join(f"{one:.1f} %" for one in relative),
            "deviation over mean of TST, THT, SCRT, all that is published of the three distributions; the "
            "deviations are "
            f"{', '.join(f'{one:.0f}' for one in deviations[GPRS])} ms",
        ),
        "ak-005": judge.number(
            float(access.round_trips(study.text("handshake_messages"))),
            "ten messages, two to a round trip; in flights, as SSL sends them, they are two round trips and "
            "a third for the "
            "connection",
        ),
        "ak-006": judge.number(_five_trips_ms(study, GPRS, 0.0), "5 x 1391 ms"),
        "ak-007": judge.number(_setup_ms(study, GPRS), "1427 + 9480 ms"),
        "ak-012": judge.number(
            1e3
            * float(
                access.corrected_setup_s(
                    study.ms(GPRS, "tst") / 1e3, study.text("extra_network_delay_per_round_trip") / 1e3
                )
            ),
            "10950 - 5 x 220 ms",
        ),
        "ak-013": judge.number(
            1e3
            * float(
                scaled_round_trip_s(
                    study.ms(GPRS, "nrt") / 1e3,
                    1e3 * study.text("gprs_rate_max"),
                    1e3 * study.text("assumed_3g_rate"),
                )
            ),
            "1391 x 36 / 144 ms; the test-bed's own 220 ms would not shrink with the rate",
        ),
        "ak-014": judge.number(
            study.text("assumed_3g_rate") / study.text("gprs_rate_max"), "144 over 36 kbit/s"
        ),
        "ak-015": judge.number(
            trips_ms, "three flights, one and a half NRT of 1391 ms, and no public-key work"
        ),
        "ak-016": judge.number(
            100 * float(access.resumption_gain(study.ms(GPRS, "tht"), resumed_ms)),
            "1 - 2100 / 9480; printed truncated",
        ),
        "ak-019": judge.number(gap[LAPTOP], "table 3: 1343 - 1342"),
        "ak-020": judge.holds(
            max(deviations[LAPTOP]) / min(deviations[LAPTOP]) <= 1.05,
            "; ".join(f"{one:.0f}" for one in deviations[LAPTOP]),
            "deviations of TST, THT, SCRT in ms; shifted versions of one distribution have one deviation",
        ),
        "ak-021": judge.number(study.ms(WLAN, "tst") / study.ms(WLAN, "tht"), "table 4: 2730 over 2605"),
        "ak-022": judge.number(
            _five_trips_ms(study, GPRS, study.ms(WLAN, "tht")),
            "2605 + 5 x 1391 ms; on the laptop five round trips alone are "
            f"{_five_trips_ms(study, LAPTOP, 0):.0f} ms, more than "
            f"its whole handshake of {study.ms(LAPTOP, 'tht'):.0f} ms",
        ),
        "ak-023": judge.holds(
            len(smaller) == len(TIMES),
            "sd(WLAN) < sd(GPRS)" if len(smaller) == len(TIMES) else f"only {', '.join(smaller)}",
            "all five times, tables 1 and 4; but the NRT's 377 ms are 3.7 times its mean of 103 ms",
        ),
        "ak-024": judge.holds(
            abs(sums[worst][2]) <= 0.01,
            "; ".join(f"{total:.0f} for {printed:.0f}" for total, printed, _ in sums.values()),
            f"RPT + THT for TST in ms, three tables; {worst} is {100 * sums[worst][2]:+.1f} % off: its RPT "
            "looks wrong "
            "(NRT + THT fits)",
        ),
    }


def _rest(study: Study) -> dict[str, Check]:
    capacity = study.energy("ipaq_main_battery_capacity_as_printed")
    low, high = ssl_hours(study, capacity)
    usual = ssl_hours(study, USUAL_BATTERY_MAH)
    rates = [slots * study.text("gprs_cs1_rate_per_slot") for slots in (3, 4)]
    charge = capacity * study.energy("initial_charge") / 100
    return {
        "ak-008": judge.untestable(_AKA),
        "ak-009": judge.untestable("a statement of the authors without figures behind it"),
        "ak-010": judge.untestable(_CITED),
        "ak-011": judge.untestable(_INPUT),
        "ak-017": judge.number(
            study.text("session_id") + study.text("cached_secret"),
            "32 bytes of session ID and 48 of master secret",
        ),
        "ak-018": judge.untestable(_CITED),
        "ak-025": judge.untestable(_INPUT),
        "ak-026": judge.spans([(rates[0], rates[1])], "three and four slots of 9.05 kbit/s; printed rounded"),
        "ak-027": judge.untestable(_CITED),
        "ak-028": judge.untestable(_CITED),
        "ak-029": judge.holds(
            high < 2,
            f"{low:.2f}..{high:.2f}",
            "with the device's own draw that makes ak-030 true and the card's 200 to 150 mA; well below 2 h "
            "for the printed 400 "
            f"mAh; with the {USUAL_BATTERY_MAH:.0f} mAh that the device usually has it is {usual[0]:.2f} to "
            f"{usual[1]:.2f} h, "
            "which is somewhat less than 2 h",
        ),
        "ak-030": judge.untestable(
            "the device's own draw is not printed; 320 mAh over the card's 23 mA alone would last "
            f"{charge / 23:.1f} h, and "
            f"2.5 h mean {charge / 2.5:.0f} mA in all, little for a device with its screen on"
        ),
        "ak-031": judge.untestable("from a data sheet"),
        "ak-032": judge.untestable("the two limits have no values"),
        "ak-033": judge.untestable("a configuration of the authors' program"),
    }


def cells(data: PaperData) -> list[Row]:
    """Tables 1, 3 and 4 by the paper's own relations; table 2 as input."""
    study = Study(data)
    rows = []
    for setup, (number, table) in SETUPS.items():
        for statistic, words in (("average", "mean"), ("sd", "standard deviation")):
            printed = data.tables[table].one(statistic=statistic)
            for time in TIMES:
                here, tolerance, reason = (
                    _relation(study, setup, time) if statistic == "average" else (None, "", _INPUT)
                )
                rows.append(
                    cell_row(
                        SLUG,
                        f"table {number}, {setup}",
                        f"{time.upper()}, {words}",
                        "ms",
                        printed[f"{time}_ms"],
                        here,
                        tolerance,
                        reason,
                    )
                )
    for row in data.tables["table_2_memory"].rows:
        rows.append(
            cell_row(SLUG, "table 2", row["item"].replace("_", " "), "KB", row["memory_kb"], None, "", _INPUT)
        )
    return rows


def _relation(study: Study, setup: str, time: str) -> tuple[float | None, str, str]:
    """A mean by a relation of the paper, the tolerance of the claim that states it, and the relation."""
    if time == "tst":
        return _setup_ms(study, setup), "1 %", "RPT + THT (ak-024)"
    if time == "tht" and setup == GPRS:
        value = _five_trips_ms(study, GPRS, study.ms(WLAN, "tht"))
        return value, "2 %", "THT on WLAN + 5 NRT (ak-022)"
    if time == "tht" and setup == LAPTOP:
        value = _five_trips_ms(study, LAPTOP, 0.0)
        return value, "2 %", "5 NRT and no computation at all (ak-006): already more than was measured"
    if time == "scrt" and setup != GPRS:
        value = 1e3 * float(
            access.server_response_s(
                study.ms(setup, "tht") / 1e3, study.ms(setup, "nrt") / 1e3, _client_hello_ms(study) / 1e3
            )
        )
        return (
            value,
            "5 %",
            f"THT - NRT / 2 - {_client_hello_ms(study):.0f} ms, the client's start in table 1 (ak-002)",
        )
    if time == "rpt" and setup == LAPTOP:
        return (
            study.ms(LAPTOP, "nrt"),
            "2",
            "NRT, preparation being nothing on a fast laptop (ak-019); tolerance in ms",
        )
    if time == "rpt":
        return study.ms(setup, "nrt") + 100.0, "20", "NRT + 0.1 s (ak-001); tolerance in ms"
    return None, "", _INPUT


def measured_cells(data: PaperData, here: Here) -> list[Row]:
    """Times in ms of a network that is not here have no counterpart; ratios are in the rows of claims."""
    return []


def handshake_here_s(here: Here, suite: str, bearer: str) -> float:
    """Our handshake over a bearer: flights at the bearer's rates and delay, and our processing."""
    from shakedown.profiles import load_bearer

    network, cost = load_bearer(bearer), here.costs[suite]
    transmission = sum(
        float(
            flight_s(
                size,
                network.up_bits_per_s if side == "client" else network.down_bits_per_s,
                network.traversal_s,
            )
        )
        for side, size in cost.flight_bytes()
    )
    return transmission + (cost.client_us + cost.server_us) / 1e6


def today(data: PaperData, here: Here) -> Sequence[Today]:
    """What today's stack says, over the paper's own bearer."""

    def number(value: Callable[[], float], reason: str) -> Callable[[], Check]:
        return lambda: judge.number(value(), reason, "measured")

    def tht(suite: str) -> float:
        return 1e3 * handshake_here_s(here, suite, "gprs-cs1")

    bearer = "our bytes, flights and processing over the bearer gprs-cs1"
    return [
        Today(
            "ak-005",
            "round trips: flights over two",
            (FULL,),
            number(lambda: here.costs[FULL].flights / 2, "the ten messages travel in four flights"),
        ),
        Today(
            "ak-015",
            "resumed handshake's THT",
            SUITES,
            number(
                lambda: tht(RESUMED),
                f"{bearer}: {here.costs[RESUMED].size_bytes:.0f} bytes" if here.cost(RESUMED) else "",
            ),
        ),
        Today(
            "ak-016",
            "resumption's gain",
            SUITES,
            number(
                lambda: 100 * float(access.resumption_gain(tht(FULL), tht(RESUMED))),
                f"{bearer}; full {tht(FULL):.0f} ms, resumed {tht(RESUMED):.0f} ms"
                if here.all(SUITES)
                else "",
            ),
        ),
        Today(
            "ak-022",
            "full handshake's THT on GPRS",
            (FULL,),
            number(
                lambda: tht(FULL),
                f"{bearer}: two round trips and {here.costs[FULL].size_bytes:.0f} bytes"
                if here.cost(FULL)
                else "",
            ),
        ),
    ]


def figures(data: PaperData, here: Here) -> list[Drawing]:
    """Figures 8 to 11."""
    study = Study(data)
    drawings = []
    unpublished = (
        "The measured series were never published: mean (line) and one standard deviation either way "
        "(grey), not "
        "below 0."
    )
    for number, setup in zip(("8", "9", "10"), SETUPS, strict=True):
        values = [
            {
                "time": time.upper(),
                "mean_ms": study.ms(setup, time),
                "low_ms": max(0.0, study.ms(setup, time) - study.ms(setup, time, "sd")),
                "high_ms": study.ms(setup, time) + study.ms(setup, time, "sd"),
            }
            for time in TIMES
        ]
        drawings.append(
            Drawing(
                SLUG,
                number,
                f"Times of an access, {setup}",
                unpublished,
                "published",
                draw.spans(values, "time", "mean_ms", "low_ms", "high_ms", "time in ms"),
                values,
            )
        )
    setups = [
        {
            "set-up": setup,
            "mean_ms": study.ms(setup, "tht"),
            "low_ms": study.ms(setup, "tht") - study.ms(setup, "tht", "sd"),
            "high_ms": study.ms(setup, "tht") + study.ms(setup, "tht", "sd"),
        }
        for setup in SETUPS
    ]
    drawings.append(
        Drawing(
            SLUG,
            "11(a)",
            "Handshake time (THT) in the three set-ups",
            "Published means (line) and one standard deviation either way (grey).",
            "published",
            draw.spans(setups, "set-up", "mean_ms", "low_ms", "high_ms", "THT in ms"),
            setups,
        )
    )
    return [*drawings, _battery(study)]


def _battery(study: Study) -> Drawing:
    capacity = study.energy("ipaq_main_battery_capacity_as_printed")
    charge = study.energy("initial_charge")
    base = base_current_ma(study, capacity)
    idle = study.energy("nokia_d211_gprs_connected_idle_current")
    active = (
        study.energy("nokia_d211_gprs_downloading_current_min")
        + study.energy("nokia_d211_gprs_downloading_current_max")
    ) / 2
    currents = {
        "idle": base,
        "GPRS connected, idle": base + idle,
        "handshake every 10 s": float(
            energy.mean_current_ma(
                base + idle,
                active - idle,
                study.ms(GPRS, "tht") / 1e3,
                study.energy("handshake_period_scenario_c"),
            )
        ),
        "10 KB over SSL, all the time": base + active,
    }
    values = []
    for name, current in currents.items():
        life = float(energy.lifetime_h(capacity, current, charge / 100))
        for hour in [*np.arange(0.0, 3.51, 0.25), life]:
            if hour <= life:
                left = charge * (1 - hour / life)
                values.append(
                    {"time in h": round(float(hour), 4), "charge in %": round(left, 3), "situation": name}
                )
    values.sort(key=lambda row: (list(currents).index(str(row["situation"])), float(str(row["time in h"]))))
    marks = [
        {
            "time in h": study.energy("lifetime_gprs_connected_almost"),
            "charge in %": 0.0,
            "label": "printed: almost 2.5 h",
        },
        {
            "time in h": study.energy("lifetime_ssl_active_10kb_continuous_upper_bound"),
            "charge in %": 6.0,
            "label": "SSL: under 2 h",
        },
    ]
    return Drawing(
        SLUG,
        "11(b)",
        "Battery over time in four situations",
        f"Linear discharge from {charge:.0f} % of the printed {capacity:.0f} mAh; the device's own draw "
        f"({base:.0f} mA) is what "
        "makes an idle connection last 2.5 h. No values were printed but the two lifetimes.",
        "modelled",
        draw.lines(values, "time in h", "charge in %", "situation", marks=marks, x_max=3.6),
        values,
    )


PAPER = Paper(SLUG, SUITES, checks, cells, today, measured_cells, figures)
