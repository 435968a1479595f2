"""The thesis's claims about transmission and whole handshakes (sections 4.3, 4.4, 5)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shakedown.models.handshake import duration_s
from shakedown.models.transmission import transmission_s
from shakedown.papers import verdicts
from shakedown.papers.thesis import network
from shakedown.papers.thesis.inputs import CSD_BITS_PER_S, Authentication, Case, Thesis
from shakedown.papers.verdicts import Check


def checks(thesis: Thesis) -> Mapping[str, Check]:
    return {**_csd(thesis), **_gprs(thesis), **_overall(thesis)}


def _csd(thesis: Thesis) -> dict[str, Check]:
    delay_s, size_bytes, messages = network.arrays(thesis)
    tau_s = network.csd_traversal_s(thesis)
    wire_s = network.serialisation_s(thesis)
    traversal_s = 2 * messages * tau_s
    by_cases = float(traversal_s.sum() / delay_s.sum())
    by_means = 10 * float(tau_s.mean() / delay_s.mean())
    weaker = [
        f"{case.name} ({how})"
        for (case, how), crossing, wire in zip(thesis.all(), traversal_s, wire_s, strict=True)
        if crossing < wire
    ]
    on_gprs = min(_gprs_crossing_share(thesis, *one) for one in thesis.all())
    per_n = ", ".join(f"{1e3 * tau_s[messages == n].mean():.0f} ms (n = {n})" for n in (4, 5, 6))
    share = verdicts.number(
        100 * by_means,
        "10 x 391.3 over 5042.8 ms, the thesis's own quotient; summed over the 48 cases it is "
        f"{100 * by_cases:.1f} %",
    )
    coefficients = _standardised(messages, size_bytes, delay_s)
    spread = float(delay_s.std(ddof=1) / delay_s.mean())
    apart = delay_s / delay_s.mean() - 1
    return {
        "wn-004": verdicts.holds(
            by_cases > 0.5 and on_gprs > 0.5,
            f"{100 * by_cases:.1f} % of the delay",
            f"traversal's share over the 48 CSD cases; below half in {' and '.join(weaker)}; on GPRS (12 PM) "
            f"at least {100 * on_gprs:.0f} % in each",
        ),
        "wn-056": verdicts.untestable(
            f"an input: {CSD_BITS_PER_S:g} bit/s, with which equation 4.1 gives the printed 391.3 ms"
        ),
        "wn-057": verdicts.number(
            1e3 * float(tau_s.mean()),
            f"equation 4.1, 48 cases; by messages it is {per_n}: the model hides a trend",
        ),
        "wn-058": verdicts.number(1e3 * float(tau_s.std(ddof=1)), "sample deviation over the 48 cases"),
        "wn-059": verdicts.number(float(messages.mean()), "(18 x 4 + 6 x 6 + 24 x 5) / 48"),
        "wn-060": verdicts.number(1e3 * float(delay_s.mean()), "table 4.12"),
        "wn-061": verdicts.number(1e4 * float(tau_s.mean()), "five messages and five acknowledgements"),
        "wn-062": share,
        "wn-073": share,
        "wn-063": verdicts.holds(
            coefficients[0] > abs(coefficients[1]),
            f"{coefficients[0]:+.2f} (n), {coefficients[1]:+.2f} (size)",
            "standardised coefficients of a regression of table 4.12 on both: the delay grows with neither, "
            "and falls a little with n",
        ),
        "wn-093": verdicts.spans(
            [(1.0 + float(apart.min()), 1.0 + float(apart.max()))],
            "smallest and largest of the 48 delays over their mean, because the statement is about all; "
            f"{int((np.abs(apart) > 0.07).sum())} differ from the mean by more than 7 %, 283r/233r mutual "
            f"(an outlier) by most; the standard deviation is {100 * spread:.1f} % of the mean",
        ),
    }


def _gprs_crossing_share(thesis: Thesis, case: Case, authentication: Authentication) -> float:
    total_s = network.gprs_transmission_s(thesis, case, authentication, "average")
    rate = network.gprs_rate_bits_per_s(thesis.data, network.SLOT_OF_CASE["average"])
    return 1 - float(transmission_s(thesis.size_bytes(case, authentication), rate)) / total_s


def _standardised(*columns: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float]:
    scaled = [(column - column.mean()) / column.std() for column in map(np.asarray, columns)]
    *inputs, output = scaled
    solution = np.linalg.lstsq(np.stack(inputs, axis=1), output, rcond=None)[0]
    return [float(one) for one in solution]


def _gprs(thesis: Thesis) -> dict[str, Check]:
    data = thesis.data
    slots = network.slots(data)
    rtts = data.tables[network.PINGS].column("average_rtt_ms")
    with_factor = [network.gprs_traversal_ms(data, slot, as_computed=False) for slot in slots]
    without = [network.gprs_traversal_ms(data, slot, as_computed=True) for slot in slots]
    downloads = data.tables[network.RATES].column("download_kbps")
    deviations = data.tables[network.TRAVERSALS].column("sd_ms")
    means = data.tables[network.TRAVERSALS].column("mean_ms")
    testbed = data.about["testbed"]
    infrared_ms = 8 * network.PING_BYTES / testbed["network"]["gprs"]["infrared_rate_kbps_as_printed"]
    slot_kbps = testbed["network"]["gprs"]["rate_per_slot_kbps_as_printed"]
    client = testbed["client"]
    noon = slots.index("12 PM")
    csd_ms = 1e3 * float(network.csd_traversal_s(thesis).mean())
    return {
        "wn-064": verdicts.holds(
            infrared_ms < 1,
            f"{infrared_ms:.2f} ms",
            f"64 bytes at 916 kbit/s, {100 * infrared_ms / min(rtts):.2f} % of the shortest mean round trip",
        ),
        "wn-065": verdicts.untestable(
            f"{client['gprs_slots_upload']} and {client['gprs_slots_download']} slots at the {slot_kbps:g} "
            "kbit/s that the thesis prints for CS-2 (the standard's is 13.4): inputs"
        ),
        "wn-066": verdicts.holds(
            max(downloads) < 43.2,
            f"{min(downloads):g}..{max(downloads):g}",
            "table 4.13, against 43.2 kbit/s",
        ),
        "wn-067": verdicts.untestable(
            f"the captions of figures 4.25 to 4.31, {min(rtts):g} to {max(rtts):g} ms: inputs"
        ),
        "wn-068": verdicts.within(
            min(with_factor),
            max(with_factor),
            "equation 4.2 as printed; the printed means follow only without its factor 8 "
            f"({min(without):.1f}..{max(without):.1f} ms)",
        ),
        "wn-069": verdicts.untestable(
            "'high' has no bound, and its figures are from table 4.14: inputs; they are "
            f"{100 * min(s / m for s, m in zip(deviations, means, strict=True)):.0f} to "
            f"{100 * max(s / m for s, m in zip(deviations, means, strict=True)):.0f} % of the means",
        ),
        "wn-070": verdicts.holds(
            abs(with_factor[noon] / csd_ms / (376.1 / 391.3) - 1) <= 0.10,
            f"{with_factor[noon] / csd_ms:.3f}",
            f"12 PM by equation 4.2 as printed over CSD, against 0.961 printed (without the factor 8: "
            f"{without[noon] / csd_ms:.3f})",
        ),
    }


def overall_s(thesis: Thesis, case: Case, authentication: Authentication, wait_s: float = 0.0) -> float:
    """A whole handshake on CSD with the measured delay (3.1)."""
    return float(
        duration_s(
            thesis.processing_s(case, authentication), thesis.transmission_s(case, authentication), wait_s
        )
    )


def modelled_s(thesis: Thesis, case: Case, authentication: Authentication, bearer: str) -> float:
    """A whole handshake with transmission by 3.84: ``CSD``, or a GPRS case of table 4.15."""
    if bearer == "CSD":
        crossing_s = network.csd_predicted_s(thesis, case, authentication)
    else:
        crossing_s = network.gprs_transmission_s(thesis, case, authentication, bearer)
    return float(duration_s(thesis.processing_s(case, authentication), crossing_s, 0.0))


def _overall(thesis: Thesis) -> dict[str, Check]:
    def processing_share(name: str, how: Authentication) -> float:
        case = thesis.case(name)
        return thesis.processing_s(case, how) / overall_s(thesis, case, how)

    ecdh = {
        f"{case.name} ({how})": 1 - thesis.processing_s(case, how) / overall_s(thesis, case, how)
        for case, how in thesis.all()
        if case.family == "ecc"
    }
    least = min(ecdh, key=lambda name: ecdh[name])
    rsa = [case.name for case in thesis.cases if case.family == "rsa"]
    mutual = {name: processing_share(name, "mutual") for name in rsa}
    server = {name: processing_share(name, "serverauth") for name in rsa}
    second = {name: share for name, share in mutual.items() if name.startswith("rsa2048")}
    third = [name for name in rsa if name.startswith("rsa3072")]
    early = [name for name in rsa if name not in third]
    small, large = thesis.case("163k/163k"), thesis.case("rsa1024/rsa1024")
    growth = [
        thesis.size_bytes(large, how) / thesis.size_bytes(small, how) for how in ("mutual", "serverauth")
    ]
    ratios = [modelled_s(thesis, *one, "average") / modelled_s(thesis, *one, "CSD") for one in thesis.all()]
    ends = {
        name: overall_s(thesis, thesis.case(name), "mutual")
        for name in ("256p/256p", "283k/283k", "283r/283r")
    }
    slow = {
        f"{name} ({how})": overall_s(thesis, thesis.case(name), how)
        for name in ("rsa2048/rsa2048", "rsa3072/rsa3072")
        for how in ("serverauth", "mutual")
    }
    return {
        "wn-071": verdicts.holds(
            min(ecdh.values()) > 0.5, 100 * min(ecdh.values()), f"smallest share of transmission: {least}"
        ),
        "wn-072": verdicts.number(
            growth[0], f"rsa1024 over 163k mutual, table 4.11; server auth {growth[1]:.2f}; no size doubles"
        ),
        "wn-074": verdicts.holds(
            min(second.values()) > 0.5,
            100 * min(second.values()),
            "smallest share of processing: "
            + ", ".join(f"{100 * share:.0f} % ({name})" for name, share in second.items()),
        ),
        "wn-075": verdicts.holds(
            max(server[name] for name in early) < 0.5,
            100 - 100 * max(server[name] for name in early),
            "smallest share of transmission: "
            + ", ".join(f"{100 - 100 * server[name]:.0f} % ({name})" for name in early),
        ),
        "wn-076": verdicts.holds(
            min([*mutual.values(), *(server[name] for name in third)]) > 0.5,
            100 * min([*mutual.values(), *(server[name] for name in third)]),
            "smallest share of processing: rsa1024/rsa1024 mutual, where transmission is larger; all "
            "others are "
            f"above {100 * min(share for name, share in mutual.items() if name != 'rsa1024/rsa1024'):.0f} %",
        ),
        "wn-077": verdicts.holds(
            all(abs(ratio - 1) <= 0.10 for ratio in ratios),
            f"{min(ratios):.3f}..{max(ratios):.3f}",
            "GPRS (average) over CSD by equation 3.84 with the traversal delays of table 4.15, over 48 "
            "cases; half of the bytes taken each way",
        ),
        "wn-090": verdicts.untestable(
            "a statement without a bound; whole handshakes on CSD take "
            + ", ".join(f"{value:.1f} s ({name})" for name, value in {**ends, **slow}.items())
        ),
    }
