"""The study's set-ups and suites, and figures derived from its printed ones."""

from __future__ import annotations

from shakedown.models import access, energy
from shakedown.papers.load import PaperData

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

RESUMED_MESSAGES = 6
"""Two Hellos, and ChangeCipherSpec and Finished of each side."""

RESUMED_FLIGHTS = 3
"""ClientHello; ServerHello to Finished; Finished (figure 5 with the TLS specification)."""

USUAL_BATTERY_MAH = 1400.0
"""The usual capacity of this device's battery; the paper prints 400."""

INPUT = "an input: measured by the authors, and not derived from other figures"
CITED = "cited from another work; the paper has no figures to check it"


class Study:
    """The paper's averages in ms, and its other figures."""

    def __init__(self, data: PaperData) -> None:
        self._data = data

    def ms(self, setup: str, time: str, statistic: str = "average") -> float:
        """A time's average, or another statistic of it, in a set-up."""
        return float(self._data.tables[SETUPS[setup][1]].one(statistic=statistic)[f"{time}_ms"])

    def text(self, quantity: str) -> float:
        return float(self._data.tables["text_numbers"].one(quantity=quantity)["value"])

    def energy(self, quantity: str) -> float:
        """A figure of the section on energy."""
        return float(self._data.tables["energy_numbers"].one(quantity=quantity)["value"])


def five_trips_ms(study: Study, setup: str, computation_ms: float) -> float:
    """A handshake as the sum of its round trips and its computation, in ms."""
    trips = float(access.round_trips(study.text("handshake_messages")))
    return 1e3 * float(access.handshake_time_s(computation_ms / 1e3, study.ms(setup, "nrt") / 1e3, trips))


def setup_ms(study: Study, setup: str) -> float:
    """Preparation and handshake together, in ms."""
    return 1e3 * float(access.total_setup_s(study.ms(setup, "rpt") / 1e3, study.ms(setup, "tht") / 1e3))


def client_hello_ms(study: Study) -> float:
    """The part of the second between THT and SCRT that is not half a round trip, on the iPAQ over GPRS."""
    return study.ms(GPRS, "tht") - study.ms(GPRS, "scrt") - study.ms(GPRS, "nrt") / 2


def base_current_ma(study: Study, capacity_mah: float) -> float:
    """The device's own current at which an idle GPRS connection lasts 2.5 h, as printed."""
    charge = capacity_mah * study.energy("initial_charge") / 100
    return charge / study.energy("lifetime_gprs_connected_almost") - study.energy(
        "nokia_d211_gprs_connected_idle_current"
    )


def ssl_hours(study: Study, capacity_mah: float) -> tuple[float, float]:
    """Lifetime under continuous SSL traffic, with the card's highest and lowest current."""
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
