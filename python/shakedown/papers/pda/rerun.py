"""The modern rerun of the claims."""

from __future__ import annotations

from collections.abc import Sequence

from shakedown.papers import verdicts
from shakedown.papers.load import PaperData
from shakedown.papers.paper import ModernRerun
from shakedown.papers.pda.inputs import BULK, DH, RESUMED, RSA, STEPS
from shakedown.papers.pda.steps import one_way_s, steps_us, time_ratio, with_network_us
from shakedown.papers.pda.transfers import wep_growth
from shakedown.papers.replication import Replication
from shakedown.papers.verdicts import Check


def modern_rerun(data: PaperData, replication: Replication) -> Sequence[ModernRerun]:
    def public_us() -> float:
        cost = replication.costs[RSA]
        return cost.class_us("client", "key") + cost.class_us("client", "signature")

    def with_network() -> float:
        total_us = sum(with_network_us(replication.costs[RSA], one_way_s(data), wep=False).values())
        return 100 * public_us() / total_us

    def step(number: int) -> Check:
        own = steps_us(replication.costs[RSA], "client")
        share = 100 * own[number] / sum(own.values())
        return verdicts.number(share, "without network waits, which the study's shares include")

    def resumed(printed: str) -> Check:
        ratio = time_ratio(replication, "client", RESUMED, RSA)
        return verdicts.number(ratio, f"CPU time; by the study's times {printed}")

    network = (
        "network waits from the study's 10 Mbit/s and the delay derived from the laptop's resumed handshake"
    )
    return [
        ModernRerun(
            "sp-002",
            "public-key work's share of the client's handshake, network included",
            (RSA,),
            lambda: verdicts.holds(with_network() < 50, f"crypto {with_network():.2g} %", network),
        ),
        ModernRerun("sp-004", "step 2's share of the client's own work", (RSA,), lambda: step(2)),
        ModernRerun("sp-005", "step 3's share of the client's own work", (RSA,), lambda: step(3)),
        ModernRerun(
            "sp-014",
            "public-key work's share of the client's handshake, network included",
            (RSA,),
            lambda: verdicts.number(with_network(), network),
        ),
        ModernRerun(
            "sp-016",
            "public-key work's share of the client's own work",
            (RSA,),
            lambda: verdicts.number(
                100 * public_us() / replication.costs[RSA].client_us, "CPU time, without network"
            ),
        ),
        ModernRerun(
            "sp-017",
            "WEP's work for a handshake's bytes over the handshake, network included",
            (RSA,),
            lambda: _wep_in_a_handshake(data, replication),
        ),
        ModernRerun(
            "sp-021",
            "the client's steps, DH over RSA, waits for the network included",
            (RSA, DH),
            lambda: _steps_longer(replication, one_way_s(data)),
        ),
        ModernRerun("sp-025", "client's time, resumed over full", (RSA, RESUMED), lambda: resumed("9.7 %")),
        ModernRerun("sp-026", "client's time, resumed over full", (RSA, RESUMED), lambda: resumed("26.6 %")),
        ModernRerun(
            "sp-032",
            "client's time, RSA below DH",
            (RSA, DH),
            lambda: verdicts.holds(
                time_ratio(replication, "client", DH, RSA) > 1,
                f"DH {time_ratio(replication, 'client', DH, RSA):.2f} times RSA",
                "CPU time",
            ),
        ),
    ]


def _wep_in_a_handshake(data: PaperData, replication: Replication) -> Check:
    found = [wep_growth(replication, RSA, side) for side in ("client", "server")]
    if found[0] is None or found[1] is None:
        return verdicts.untestable(BULK)
    cost = replication.costs[RSA]
    added_us = sum(1e6 * one.s_per_byte * cost.size_bytes for one in found if one)
    added_us += sum(with_network_us(cost, one_way_s(data), wep=True).values())
    total_us = sum(with_network_us(cost, one_way_s(data), wep=False).values())
    return verdicts.number(
        100 * (added_us / total_us - 1),
        f"{cost.size_bytes:.0f} bytes at the slope of transfers, 8 bytes more per frame",
    )


def _steps_longer(replication: Replication, one_way: float) -> Check:
    rsa, dh = (with_network_us(replication.costs[one], one_way, wep=False) for one in (RSA, DH))
    longer = {step: dh[step] / rsa[step] for step in (2, 3, 6)}
    dominate = min(dh[2], dh[3], dh[6]) > max(dh[1], dh[4])
    return verdicts.holds(
        dominate and all(ratio > 1 for ratio in longer.values()),
        ", ".join(f"step {step} {ratio:.2f} times" for step, ratio in longer.items()),
        "our client, with the study's network waits in steps "
        "2 and 6, DH over RSA; µs by step with DH: "
        + ", ".join(f"{step}: {dh[step]:.0f}" for step in STEPS if step != 5),
    )
