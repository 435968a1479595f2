"""The report's figures 4.1 to 4.7, from measurements on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from shakedown.models.handshake import duration_s
from shakedown.models.transmission import (
    transmission_s,
)
from shakedown.papers.drawing import Drawing, waiting
from shakedown.papers.load import PaperData
from shakedown.papers.psk.inputs import (
    CLASSES,
    DSS_ORDER,
    KEY_BITS,
    NAMES,
    RATES_BITS_PER_S,
    SUITES,
    size_bytes,
    suite,
)
from shakedown.papers.psk.rates import fast_factor, slowness
from shakedown.papers.replication import Replication
from shakedown.reporting import charts
from shakedown.schema.base import SIDES, Side


def figures(data: PaperData, replication: Replication) -> list[Drawing]:
    if replication.why_not(SUITES):
        waits = "handshakes measured here (the report prints no processing time)"
        return [waiting(f"4.{number}", "processing or duration", waits) for number in range(1, 8)]
    compared = (
        (("plain_psk", "rsa", "rsa_mutual", "dhe_dss", "dhe_dss_mutual"), "PSK, RSA and DHE_DSS"),
        (DSS_ORDER, "DH_anon, DHE_PSK and DHE_DSS"),
    )
    drawings = [
        _processing_figure(replication, f"4.{number}", side, mechanisms, words)
        for number, ((mechanisms, words), side) in enumerate(product(compared, SIDES), start=1)
    ]
    return [*drawings, *_duration_figures(data, replication)]


def _processing_figure(
    replication: Replication, number: str, side: Side, mechanisms: Sequence[str], words: str
) -> Drawing:
    values = [
        {
            "mechanism": NAMES[name],
            "key": f"{bits} bit",
            "class": f"{kind} operations"
            if kind == "common"
            else f"{kind}-related"
            if kind == "key"
            else kind,
            "time in ms": round(replication.costs[suite(name, bits)].class_us(side, kind) / 1e3, 5),
        }
        for bits in KEY_BITS
        for name in mechanisms
        for kind in CLASSES
    ]
    return Drawing(
        number,
        f"{side.capitalize()}'s processing time: {words}",
        "Modern rerun; the report printed no values. Each panel has a scale of its own.",
        "measured",
        charts.stacked_bars(values, "mechanism", "class", "time in ms", facet="key", free=True),
        values,
    )


def _durations(
    data: PaperData,
    replication: Replication,
    factors: Mapping[Side, float],
    name: str,
    bits: int,
    rate: float,
) -> float:
    cost = replication.costs[suite(name, bits)]
    processing = factors["client"] * cost.client_us / 1e6 + factors["server"] * cost.server_us / 1e6
    return float(duration_s(processing, transmission_s(size_bytes(data, name, bits), rate), 0.0))


def _duration_figures(data: PaperData, replication: Replication) -> list[Drawing]:
    fast = fast_factor(data, replication)
    most, least = (slowness(data, replication, 1024, rate) for rate in (1e4, 1e5))
    pairs: dict[str, dict[Side, float]] = {
        "fast server to fast client": {"client": fast, "server": fast},
        "slow server to slow client": {"client": fast * 2000 / 533, "server": fast * 2530 / 533},
    }
    shown = ("plain_psk", "dhe_psk", "rsa", "rsa_mutual", "dhe_dss_mutual")
    note = (
        f"Bytes of table 4.1. Measured processing times are multiplied by {fast:.0f} for the fast pair, and "
        f"also by the ratio of clocks for the slow pair. {fast:.0f} is the geometric mean of {least:.0f} and "
        f"{most:.0f}, between which both orders of the report at 1024 bit hold (DHE_PSK faster than RSA at "
        "10 kbit/s, slower at 100 kbit/s)."
    )
    sweep = [
        {
            "throughput in bit/s": float(f"{rate:.4g}"),
            "duration in s": round(_durations(data, replication, factors, name, 1024, rate), 5),
            "mechanism": NAMES[name],
            "pair": pair,
        }
        for pair, factors in pairs.items()
        for name in shown
        for rate in np.geomspace(1e4, 1e6, 41)
    ]
    drawings = [
        Drawing(
            "4.5",
            "Handshake duration against throughput, 1024 bit",
            note,
            "modelled",
            charts.lines(
                sweep,
                "throughput in bit/s",
                "duration in s",
                "mechanism",
                log_x=True,
                log_y=True,
                panels="pair",
            ),
            sweep,
        )
    ]
    for number, (pair, factors) in zip(("4.6", "4.7"), pairs.items(), strict=True):
        values = [
            {
                "key size": f"{bits} bit",
                "mechanism": NAMES[name],
                "duration in s": round(_durations(data, replication, factors, name, bits, rate), 5),
                "rate": f"{rate / 1e3:g} kbit/s",
            }
            for rate in RATES_BITS_PER_S
            for bits in KEY_BITS
            for name in ("plain_psk", "dhe_psk", "rsa", "dhe_dss", "dhe_dss_mutual")
        ]
        drawings.append(
            Drawing(
                number,
                f"Handshake duration by key size, {pair}",
                note + " Each panel has a scale of its own.",
                "modelled",
                charts.grouped_bars(
                    values, "key size", "mechanism", "duration in s", facet="rate", free=True
                ),
                values,
            )
        )
    return drawings
