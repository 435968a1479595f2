"""A check for each claim: from table 4.1, from the suites themselves, or from measured handshakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from shakedown.models.transmission import (
    transmission_s,
)
from shakedown.papers import verdicts
from shakedown.papers.load import PaperData
from shakedown.papers.psk.inputs import (
    ALL,
    BULK_SUITES,
    DSS_ORDER,
    KEY_BITS,
    LARGE_BYTES,
    NAMES,
    PREMASTER_SECRETS,
    RATES_BITS_PER_S,
    SMALL_BYTES,
    size_bytes,
    suite,
)
from shakedown.papers.psk.orders import (
    always_beats,
    best_overall,
    common_work,
    dh_over_dss,
    negligible,
    order_check,
    rsa_psk_bytes,
    shortest,
    similar_gain,
    slightly,
)
from shakedown.papers.psk.rates import above_100k, at_10k, small_or_slow
from shakedown.papers.replication import Replication
from shakedown.papers.verdicts import Check
from shakedown.schema.base import SIDES


def checks(data: PaperData, replication: Replication) -> Mapping[str, Check]:
    sizes = {name: [size_bytes(data, name, bits) for bits in KEY_BITS] for name in NAMES}

    def smaller(less: str, more: str) -> bool:
        return all(a < b for a, b in zip(sizes[less], sizes[more], strict=True))

    certificates = ("rsa", "dhe_dss", "rsa_mutual", "dhe_dss_mutual")
    differences = {b - a for a, b in zip(sizes["dh_anon"], sizes["dhe_psk"], strict=True)}
    fresh = [family for family, secret in PREMASTER_SECRETS.items() if "ephemeral" in secret]
    measured = {
        claim: verdicts.measured(_when_measured(replication, mechanisms, partial(check, data, replication)))
        for claim, (mechanisms, check) in _MEASURED.items()
    }
    return {
        "tp-001": verdicts.measured(_handshake_over_data(replication)),
        "tp-002": verdicts.measured(_same_transfer(replication)),
        "tp-005": verdicts.holds(
            fresh == ["dhe_psk"],
            ", ".join(fresh),
            "; ".join(f"{family}: {secret}" for family, secret in PREMASTER_SECRETS.items()),
        ),
        "tp-012": verdicts.holds(
            all(smaller("plain_psk", name) for name in NAMES if name != "plain_psk"),
            "plain_psk smallest",
            "table 4.1, every key size",
        ),
        "tp-013": verdicts.holds(
            all(smaller(less, more) for less in ("dh_anon", "dhe_psk") for more in certificates),
            "dh_anon < dhe_psk < rsa",
            "table 4.1, every key size: "
            + ", ".join(f"{a:.0f} < {b:.0f}" for a, b in zip(sizes["dhe_psk"], sizes["rsa"], strict=True)),
        ),
        "tp-014": verdicts.holds(
            smaller("rsa", "rsa_mutual") and smaller("dhe_dss", "dhe_dss_mutual"),
            "rsa < rsa_mutual; dhe_dss < dhe_dss_mutual",
            "table 4.1, every key size",
        ),
        "tp-015": verdicts.holds(
            all(smaller(name, "dhe_dss_mutual") for name in NAMES if name != "dhe_dss_mutual"),
            "dhe_dss_mutual largest",
            "table 4.1, every key size",
        ),
        "tp-016": verdicts.number(
            max(differences, key=lambda value: abs(value - 72)),
            "table 4.1, every key size; and both follow 527 + 3 k / 8 to the byte",
        ),
        "tp-017": verdicts.untestable("a definition, not a result: this is the model in use"),
        "tp-018": verdicts.holds(
            all(smaller("plain_psk", name) for name in NAMES if name != "plain_psk"),
            "psk smallest",
            "the slope is 8 B; at 1024 bit in ms at 10k, 100k and 1M bit/s: "
            + ", ".join(f"{NAMES[name]} {_times(sizes[name][1])}" for name in NAMES),
        ),
        "tp-008": verdicts.untestable(_TWO_MACHINES),
        "tp-019": verdicts.untestable(_TWO_MACHINES),
        **measured,
    }


_TWO_MACHINES = "compares two machines; only one is available, and no times of the report's two are published"
_NO_TRANSFERS = "no times are printed, and transfers after a handshake were not measured in this run"


def _handshake_over_data(replication: Replication) -> Check:
    name = suite("rsa", 1024)
    cost, found = replication.costs.get(name), replication.transfers(name, "open", [SMALL_BYTES])
    if cost is None or found is None:
        return verdicts.untestable(_NO_TRANSFERS)
    data_us = found[0].client_us + found[0].server_us
    handshake_us = cost.client_us + cost.server_us
    public_us = sum(cost.class_us(side, kind) for side in SIDES for kind in ("key", "signature"))
    share = public_us / (handshake_us + data_us)
    return verdicts.holds(
        share > 0.5,
        f"{100 * share:.0f} %",
        "public-key work's share of handshake and 15 KiB of data, RSA-1024, both sides here: public-key work "
        f"{public_us:.0f} µs, all of the handshake {handshake_us:.0f}, data {data_us:.0f}",
    )


def _same_transfer(replication: Replication) -> Check:
    found = {name: replication.transfers(name, "open", [LARGE_BYTES]) for name in BULK_SUITES}
    if any(one is None for one in found.values()):
        return verdicts.untestable(_NO_TRANSFERS)
    times = [one[0].client_us + one[0].server_us for one in found.values() if one]
    return verdicts.holds(
        max(times) / min(times) - 1 <= 0.05,
        f"{100 * (max(times) / min(times) - 1):.1f} % apart",
        "1 MiB with AES-256 and SHA-1 after PSK, RSA and DHE_DSS, both sides here: "
        + ", ".join(f"{time / 1e3:.2f} ms" for time in times),
    )


def _times(size: float) -> str:
    return " / ".join(f"{1e3 * float(transmission_s(size, rate)):.4g}" for rate in RATES_BITS_PER_S)


def _when_measured(replication: Replication, mechanisms: Sequence[str], check: partial[Check]) -> Check:
    reason = replication.why_not([suite(name, bits) for name in mechanisms for bits in KEY_BITS])
    if reason:
        return verdicts.untestable(f"no processing time is printed; {reason}")
    return check()


_MEASURED: dict[str, tuple[Sequence[str], Callable[[PaperData, Replication], Check]]] = {
    "tp-003": (("plain_psk", "rsa", "dhe_psk", "dhe_dss"), shortest),
    "tp-004": (("rsa_psk", "rsa_mutual"), rsa_psk_bytes),
    "tp-006": (("plain_psk", "rsa", "dhe_dss"), common_work),
    "tp-007": (("plain_psk", "rsa", "dhe_dss"), negligible),
    "tp-009": (("dh_anon", "dhe_psk"), slightly),
    "tp-010": (("dhe_psk", "dhe_dss"), dh_over_dss),
    "tp-011": (DSS_ORDER, partial(order_check, DSS_ORDER)),
    "tp-020": (("dhe_psk", "dhe_dss", "dhe_dss_mutual"), always_beats),
    "tp-021": (("dhe_psk", "rsa"), at_10k),
    "tp-022": (("dhe_psk", "rsa"), above_100k),
    "tp-023": (("dhe_psk", "rsa"), small_or_slow),
    "tp-024": (("rsa_psk", "rsa_mutual", "dhe_psk", "dhe_dss_mutual"), similar_gain),
    "tp-025": (ALL, best_overall),
}
"""Claims about processing, for which the report prints no figures: the required suites, and the check."""
