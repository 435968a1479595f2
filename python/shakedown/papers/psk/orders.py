"""Claims about processing time and its parts, from measured handshakes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from shakedown.papers import verdicts
from shakedown.papers.load import PaperData
from shakedown.papers.psk.inputs import KEY_BITS, NAMES, processing_s, size_bytes, suite
from shakedown.papers.psk.rates import crossovers_bits_per_s
from shakedown.papers.replication import Replication
from shakedown.papers.verdicts import Check
from shakedown.schema.base import SIDES


def _ascending(replication: Replication, order: Sequence[str], bits: int) -> bool:
    times = [processing_s(replication, name, bits) for name in order]
    return all(a < b for a, b in pairwise(times))


def _ms(replication: Replication, order: Sequence[str], bits: int) -> str:
    return " < ".join(f"{NAMES[name]} {1e3 * processing_s(replication, name, bits):.3g}" for name in order)


def order_check(order: Sequence[str], data: PaperData, replication: Replication) -> Check:
    """The mechanisms' times increase in this order, at every key size."""
    broken = [bits for bits in KEY_BITS if not _ascending(replication, order, bits)]
    return verdicts.holds(
        not broken,
        " < ".join(order) if not broken else f"not at {', '.join(map(str, broken))} bit",
        f"client and server together here, ms at 1024 bit: {_ms(replication, order, 1024)}",
    )


def shortest(data: PaperData, replication: Replication) -> Check:
    """Plain PSK is faster than all others."""
    others = ("rsa", "dhe_psk", "dhe_dss")
    good = all(_ascending(replication, ("plain_psk", name), bits) for name in others for bits in KEY_BITS)
    return verdicts.holds(
        good,
        "psk < rsa, dhe_psk, dhe_dss" if good else "not everywhere",
        "ms here at 1024 bit: "
        + ", ".join(
            f"{NAMES[n]} {1e3 * processing_s(replication, n, 1024):.3g}" for n in ("plain_psk", *others)
        ),
    )


def rsa_psk_bytes(data: PaperData, replication: Replication) -> Check:
    """RSA_PSK sends fewer bytes than mutual RSA."""
    pairs = [
        [replication.costs[suite(name, bits)].size_bytes for name in ("rsa_psk", "rsa_mutual")]
        for bits in KEY_BITS
    ]
    return verdicts.holds(
        all(a < b for a, b in pairs),
        "; ".join(f"{a:.0f} < {b:.0f}" for a, b in pairs),
        "RSA_PSK is not in table 4.1; bytes here at 512, 1024 and 2048 bit",
    )


def common_work(data: PaperData, replication: Replication) -> Check:
    """Common work differs by at most 20 % between mechanisms."""
    worst, words = 0.0, []
    for side in SIDES:
        times = [
            replication.costs[suite(name, 1024)].class_us(side, "common")
            for name in ("plain_psk", "rsa", "dhe_dss")
        ]
        worst = max(worst, max(times) / min(times) - 1)
        words.append(f"{side} {', '.join(f'{time:.0f}' for time in times)}")
    return verdicts.holds(
        worst <= 0.20,
        f"up to {100 * worst:.0f} % apart",
        f"µs of common work here with PSK, RSA, DHE_DSS at 1024 bit: {'; '.join(words)}. Parsing of "
        "certificates and keys is also common work, "
        "and no longer small compared with public-key work",
    )


def negligible(data: PaperData, replication: Replication) -> Check:
    """The key exchange work of PSK compared with that of the others."""
    ratios, words = [], []
    for bits in KEY_BITS:
        psk, *others = (
            sum(replication.costs[suite(name, bits)].class_us(side, "key") for side in SIDES)
            for name in ("plain_psk", "rsa", "dhe_dss")
        )
        ratios += [math.inf if psk == 0 else other / psk for other in others]
        words.append(f"{psk:.0f}, {', '.join(f'{other:.0f}' for other in others)}")
    return verdicts.holds(
        min(ratios) >= 10,
        "none" if min(ratios) == math.inf else f"{min(ratios):.3g} times",
        f"µs of key-related work here with PSK, RSA, DHE_DSS at 512, 1024, 2048 bit: {'; '.join(words)}",
    )


def slightly(data: PaperData, replication: Replication) -> Check:
    """DHE_PSK takes within 10 % of anonymous DH's time."""
    ratios = [
        processing_s(replication, "dhe_psk", bits) / processing_s(replication, "dh_anon", bits)
        for bits in KEY_BITS
    ]
    return verdicts.holds(
        all(abs(ratio - 1) <= 0.10 for ratio in ratios),
        "; ".join(f"{ratio:.3f}" for ratio in ratios),
        "DHE_PSK over DH_anon here at 512, 1024, 2048 bit",
    )


def dh_over_dss(data: PaperData, replication: Replication) -> Check:
    """The ratio of DH to signatures in DHE_DSS."""
    ratios = []
    for bits in KEY_BITS:
        cost = replication.costs[suite("dhe_dss", bits)]
        exchange = sum(cost.class_us(side, "key") for side in SIDES)
        ratios.append(exchange / sum(cost.class_us(side, "signature") for side in SIDES))
    gains = [
        1 - processing_s(replication, "dhe_psk", bits) / processing_s(replication, "dhe_dss", bits)
        for bits in KEY_BITS
    ]
    return verdicts.holds(
        min(ratios) > 1,
        "; ".join(f"{ratio:.2f}" for ratio in ratios),
        "time of DH over time of DSS in DHE_DSS here at 512, 1024, 2048 bit, with exponents as long as the "
        f"prime; DHE_PSK saves {', '.join(f'{100 * gain:.0f} %' for gain in gains)} of DHE_DSS",
    )


def always_beats(data: PaperData, replication: Replication) -> Check:
    """DHE_PSK needs fewer bytes and less time than DHE_DSS."""
    order = ("dhe_psk", "dhe_dss", "dhe_dss_mutual")
    times = all(_ascending(replication, order, bits) for bits in KEY_BITS)
    sizes = all(
        size_bytes(data, a, bits) < size_bytes(data, b, bits) for bits in KEY_BITS for a, b in pairwise(order)
    )
    return verdicts.holds(
        times and sizes,
        " < ".join(order) if times and sizes else "not everywhere",
        "fewer bytes (table 4.1) and less processing with every key size, "
        "and therefore faster at every rate and on every machine",
    )


def similar_gain(data: PaperData, replication: Replication) -> Check:
    """RSA_PSK's gain over mutual RSA, compared with DHE_PSK's over DHE_DSS."""

    def gains(of: str, against: str) -> tuple[float, float]:
        mine, other = replication.costs[suite(of, 1024)], replication.costs[suite(against, 1024)]
        times = processing_s(replication, of, 1024) / processing_s(replication, against, 1024)
        return 1 - mine.size_bytes / other.size_bytes, 1 - times

    rsa, dss = gains("rsa_psk", "rsa_mutual"), gains("dhe_psk", "dhe_dss_mutual")
    return verdicts.untestable(
        "'similar' has no bound; compared with mutual RSA at 1024 bit, RSA_PSK saves "
        f"{100 * rsa[0]:.0f} % of bytes and {100 * rsa[1]:.0f} % of time, DHE_PSK against DHE_DSS mutual "
        f"{100 * dss[0]:.0f} % and {100 * dss[1]:.0f} %",
    )


def best_overall(data: PaperData, replication: Replication) -> Check:
    """Plain PSK needs the fewest bytes and the least time, and crossover rates decrease with the key size."""
    best = all(
        _ascending(replication, ("plain_psk", name), bits)
        and size_bytes(data, "plain_psk", bits) < size_bytes(data, name, bits)
        for name in NAMES
        if name != "plain_psk"
        for bits in KEY_BITS
    )
    rates = crossovers_bits_per_s(data, replication)
    return verdicts.holds(
        best and rates[0] > rates[1] > rates[2],
        "psk best" if best else "psk not best everywhere",
        "fewest bytes (table 4.1) and least processing with every key size; DHE_PSK and RSA as in tp-023",
    )
