"""The study's figures."""

from __future__ import annotations

import numpy as np

from shakedown.models import energy
from shakedown.papers.aka import runs
from shakedown.papers.aka.inputs import GPRS, LAPTOP, SETUPS, TIMES, WLAN, Study, base_current_ma
from shakedown.papers.drawing import Drawing
from shakedown.papers.load import PaperData
from shakedown.papers.replication import Replication
from shakedown.reporting import charts


def figures(data: PaperData, replication: Replication) -> list[Drawing]:
    study = Study(data)
    drawings = []
    for number, setup in zip(("8", "9", "10"), SETUPS, strict=True):
        densities = runs.runs()["setups"][setup]["densities"]
        values = [
            {"time in s": x, "density in 1/s": y, "of": time.upper()}
            for time in _drawn(setup)
            for x, y in densities[time]
        ]
        labels = (
            {"scrt": "", "tst": "SCRT, TST printed"}
            if setup == WLAN
            else dict.fromkeys(("nrt", "scrt", "tst"))
        )
        marks = [
            {
                "time in s": study.ms(setup, time) / 1e3,
                "density in 1/s": 0.0,
                "label": f"{time.upper()} printed" if label is None else label,
            }
            for time, label in labels.items()
        ]
        drawings.append(
            Drawing(
                number,
                f"Densities of the times of an access, {setup}",
                f"{runs.runs()['runs']:,} accesses in virtual time, {_computing(setup)}; crosses are printed "
                "means."
                + (" NRT and RPT, a peak at 0.06 s, are omitted." if setup == WLAN else "")
                + " The measured series were never published.",
                "simulated",
                charts.lines(
                    values,
                    "time in s",
                    "density in 1/s",
                    "of",
                    marks=marks,
                ),
                values,
            )
        )
    values = [
        {"THT in s": x, "density in 1/s": y, "set-up": setup}
        for setup in SETUPS
        for x, y in runs.runs()["setups"][setup]["densities"]["tht"]
    ]
    marks = [
        {"THT in s": study.ms(setup, "tht") / 1e3, "density in 1/s": 0.0, "label": "printed"}
        for setup in SETUPS
    ]
    drawings.append(
        Drawing(
            "11(a)",
            "Handshake time (THT) in the three set-ups",
            f"{runs.runs()['runs']:,} accesses in virtual time each; crosses are the printed means: iPAQ "
            "on WLAN, "
            "laptop on GPRS, iPAQ on GPRS, from the left.",
            "simulated",
            charts.lines(values, "THT in s", "density in 1/s", "set-up", marks=marks),
            values,
        )
    )
    return [*drawings, _battery(study)]


def _drawn(setup: str) -> tuple[str, ...]:
    """The times whose densities fit on one axis."""
    return TIMES[2:] if setup == WLAN else TIMES


def _computing(setup: str) -> str:
    """The devices' processing time in a set-up."""
    if setup == LAPTOP:
        return "without processing time"
    found = runs.runs()["computing_s"]
    return f"{found['mean']:.2f} ± {found['sd']:.2f} s of processing time, derived from table 4"


def _battery(study: Study) -> Drawing:
    capacity = study.energy("ipaq_main_battery_capacity_as_printed")
    charge = study.energy("initial_charge")
    base = base_current_ma(study, capacity)
    idle = study.energy("nokia_d211_gprs_connected_idle_current")
    active = (
        study.energy("nokia_d211_gprs_downloading_current_min")
        + study.energy("nokia_d211_gprs_downloading_current_max")
    ) / 2

    def with_handshakes_ma(busy_s: float) -> float:
        period_s = study.energy("handshake_period_scenario_c")
        return float(energy.mean_current_ma(base + idle, active - idle, busy_s, period_s))

    currents = {
        "idle": base,
        "GPRS connected, idle": base + idle,
        "handshake every 10 s": with_handshakes_ma(study.ms(GPRS, "tht") / 1e3),
        "the same, the radio busy as simulated": with_handshakes_ma(
            sum(runs.runs()["setups"][GPRS][f"{way}_s"] for way in ("sending", "receiving"))
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
        "11(b)",
        "Battery over time in four situations",
        f"Linear discharge from {charge:.0f} % of the printed {capacity:.0f} mAh. The current of the device "
        f"itself ({base:.0f} mA) limits an idle connection to 2.5 h. Only the two lifetimes were printed.",
        "modelled",
        charts.lines(values, "time in h", "charge in %", "situation", marks=marks, x_max=3.6),
        values,
    )
