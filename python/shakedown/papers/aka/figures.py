"""The study's figures."""

from __future__ import annotations

import numpy as np

from shakedown import charts
from shakedown.models import energy
from shakedown.papers.aka.inputs import GPRS, SETUPS, SLUG, TIMES, Study, base_current_ma
from shakedown.papers.drawing import Drawing
from shakedown.papers.load import PaperData
from shakedown.papers.replication import Replication


def figures(data: PaperData, replication: Replication) -> list[Drawing]:
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
                charts.spans(values, "time", "mean_ms", "low_ms", "high_ms", "time in ms"),
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
            charts.spans(setups, "set-up", "mean_ms", "low_ms", "high_ms", "THT in ms"),
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
        charts.lines(values, "time in h", "charge in %", "situation", marks=marks, x_max=3.6),
        values,
    )
