"""The modern rerun of the claims that table 4.1 decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shakedown.papers import verdicts
from shakedown.papers.load import PaperData
from shakedown.papers.paper import ModernRerun
from shakedown.papers.psk.inputs import KEY_BITS, NAMES, suite
from shakedown.papers.replication import Replication
from shakedown.papers.verdicts import Check


def modern_rerun(data: PaperData, replication: Replication) -> Sequence[ModernRerun]:
    suites = [suite(name, bits) for name in NAMES for bits in KEY_BITS]

    def sizes(name: str) -> list[float]:
        return [replication.costs[suite(name, bits)].size_bytes for bits in KEY_BITS]

    def smaller(less: str, more: str) -> bool:
        return all(a < b for a, b in zip(sizes(less), sizes(more), strict=True))

    def extreme(name: str, words: str, largest: bool) -> Check:
        good = all(
            smaller(other, name) if largest else smaller(name, other) for other in NAMES if other != name
        )
        return verdicts.holds(
            good,
            words if good else "not at every key size",
            f"our TLS 1.0 handshakes: {', '.join(f'{size:.0f}' for size in sizes(name))} bytes",
        )

    def below_certificates() -> Check:
        good = all(
            smaller(less, more)
            for less in ("dh_anon", "dhe_psk")
            for more in ("rsa", "dhe_dss", "rsa_mutual", "dhe_dss_mutual")
        )
        words = ", ".join(f"{a:.0f} and {b:.0f}" for a, b in zip(sizes("dhe_psk"), sizes("rsa"), strict=True))
        return verdicts.holds(good, "dhe_psk < rsa" if good else "not at every key size", words)

    def mutual_above() -> Check:
        good = smaller("rsa", "rsa_mutual") and smaller("dhe_dss", "dhe_dss_mutual")
        return verdicts.holds(
            good,
            "rsa < rsa_mutual; dhe_dss < dhe_dss_mutual" if good else "no",
            "our TLS 1.0 handshakes",
        )

    def over_anonymous() -> Check:
        differences = [b - a for a, b in zip(sizes("dh_anon"), sizes("dhe_psk"), strict=True)]
        return verdicts.number(
            max(differences, key=lambda value: abs(value - 72)),
            "two lengths, and hint and identity: 68 bytes in the report, 15 in ours; at 512, 1024, 2048 bit: "
            + ", ".join(f"{one:.0f}" for one in differences),
        )

    rows: list[tuple[str, str, Callable[[], Check]]] = [
        (
            "tp-012",
            "bytes of plain PSK against all others",
            lambda: extreme("plain_psk", "plain_psk smallest", False),
        ),
        ("tp-013", "bytes of anonymous DH and DHE_PSK against certificates", below_certificates),
        ("tp-014", "bytes of mutual against server-authenticated suites", mutual_above),
        (
            "tp-015",
            "bytes of mutual DHE_DSS",
            lambda: extreme("dhe_dss_mutual", "dhe_dss_mutual largest", True),
        ),
        ("tp-016", "bytes of DHE_PSK over anonymous DH", over_anonymous),
    ]
    return [ModernRerun(claim, words, suites, check) for claim, words, check in rows]
