"""The thesis's networks: traversal delays on CSD and GPRS, with and without the factor 8 that it omits."""

from __future__ import annotations

import numpy as np

from shakedown.models.arrays import Floats
from shakedown.models.transmission import (
    transmission_s,
    traversal_from_ping_s,
    traversal_from_transmission_s,
    traversed_transmission_s,
)
from shakedown.papers.load import PaperData
from shakedown.papers.thesis.inputs import CSD_BITS_PER_S, Authentication, Case, Thesis

RATES, PINGS = "table_4_13_gprs_data_rates", "figures_4_25_to_4_31_gprs_average_rtt"
TRAVERSALS = "table_4_14_gprs_traversal_delays"
COMPARISON = "table_4_15_traversal_comparison"
SLOT_OF_CASE = {"worst": "8 PM", "average": "12 PM", "best": "12 AM"}
"""The time slot of each GPRS row of table 4.15."""

PING_BYTES = 64


def arrays(thesis: Thesis) -> tuple[Floats, Floats, Floats]:
    """Delay in s, bytes and messages n of all 48 cases."""
    cases = list(thesis.all())
    return (
        np.array([thesis.transmission_s(*one) for one in cases]),
        np.array([thesis.size_bytes(*one) for one in cases]),
        np.array([case.messages(authentication) for case, authentication in cases], dtype=float),
    )


def csd_traversal_s(thesis: Thesis) -> Floats:
    """The traversal delay computed from each of the 48 cases (4.1)."""
    delay_s, size_bytes, messages = arrays(thesis)
    return traversal_from_transmission_s(delay_s, size_bytes, CSD_BITS_PER_S, messages)


def serialisation_s(thesis: Thesis) -> Floats:
    """The transmission time at the rate alone in each of the 48 cases (3.83)."""
    return transmission_s(arrays(thesis)[1], CSD_BITS_PER_S)


def csd_predicted_s(thesis: Thesis, case: Case, authentication: Authentication) -> float:
    """Transmission by 3.84 with the mean traversal delay."""
    return float(
        traversed_transmission_s(
            thesis.size_bytes(case, authentication),
            CSD_BITS_PER_S,
            case.messages(authentication),
            float(csd_traversal_s(thesis).mean()),
        )
    )


def slots(data: PaperData) -> list[str]:
    """The time slots, in the thesis's order."""
    return [row["time_slot"] for row in data.tables[PINGS].rows]


def gprs_traversal_ms(data: PaperData, slot: str, *, as_computed: bool) -> float:
    """Mean traversal delay of a time slot by 4.2; ``as_computed``: without the factor 8, as in the thesis."""
    rates = data.tables[RATES].one(time_slot=slot)
    return 1e3 * float(
        traversal_from_ping_s(
            float(data.tables[PINGS].one(time_slot=slot)["average_rtt_ms"]) / 1e3,
            1e3 * float(rates["upload_kbps"]),
            1e3 * float(rates["download_kbps"]),
            PING_BYTES,
            as_computed=as_computed,
        )
    )


def gprs_rate_bits_per_s(data: PaperData, slot: str) -> float:
    """One rate for both directions, for equal bytes in each, because the thesis does not split its sizes."""
    rates = data.tables[RATES].one(time_slot=slot)
    up, down = (1e3 * float(rates[f"{way}load_kbps"]) for way in ("up", "down"))
    return 2.0 / (1.0 / up + 1.0 / down)


def gprs_transmission_s(thesis: Thesis, case: Case, authentication: Authentication, which: str) -> float:
    """Transmission over GPRS (3.84) with the traversal delay that table 4.15 prints for a case."""
    slot = SLOT_OF_CASE[which]
    printed_ms = float(thesis.data.tables[COMPARISON].one(bearer="GPRS", case=which)["mean_ms"])
    return float(
        traversed_transmission_s(
            thesis.size_bytes(case, authentication),
            gprs_rate_bits_per_s(thesis.data, slot),
            case.messages(authentication),
            printed_ms / 1e3,
        )
    )
