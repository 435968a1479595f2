"""The modern rerun of the ratios."""

from __future__ import annotations

from shakedown.papers import verdicts
from shakedown.papers.load import PaperData
from shakedown.papers.palm.inputs import (
    ECC_MUTUAL,
    ECC_SERVER,
    RSA3_MUTUAL,
    RSA3_SERVER,
    RSA_MUTUAL,
    RSA_SERVER,
    TLS_ECC,
    TLS_RSA,
    TLS_RSA3,
)
from shakedown.papers.palm.tables import ratios_here
from shakedown.papers.paper import ModernRerun
from shakedown.papers.replication import Replication
from shakedown.papers.verdicts import Check


def modern_rerun(data: PaperData, replication: Replication) -> list[ModernRerun]:
    def ratio(above: str, below: str) -> float:
        return replication.costs[above].client_us / replication.costs[below].client_us

    def shares(*suites: str) -> str:
        found = []
        for suite in suites:
            cost = replication.costs[suite]
            public_us = cost.client_us - cost.class_us("client", "common")
            found.append(f"{suite} {public_us:.0f} of {cost.client_us:.0f}")
        return f"public keys, of the client's µs: {', '.join(found)}"

    def verify_over_sign() -> Check:
        return verdicts.number(
            ratios_here(replication)["verify_sign"],
            "sect163k1 in a TLS 1.0 handshake: CertificateVerify signed by the client, checked by the server",
        )

    return [
        ModernRerun(
            "wp-001",
            "client time, server authenticated: ECC 163k over RSA-1024 with e = 3",
            (ECC_SERVER, RSA3_SERVER),
            lambda: verdicts.number(ratio(ECC_SERVER, RSA3_SERVER), shares(ECC_SERVER, RSA3_SERVER)),
        ),
        ModernRerun(
            "wp-002",
            "client time, mutual: RSA-1024 with e = 3 over ECC 163k",
            (RSA3_MUTUAL, ECC_MUTUAL),
            lambda: verdicts.holds(
                ratio(RSA3_MUTUAL, ECC_MUTUAL) >= 8,
                ratio(RSA3_MUTUAL, ECC_MUTUAL),
                f"{shares(RSA3_MUTUAL, ECC_MUTUAL)}; the mutual ECC client signs nothing (its certified key "
                "agrees)",
            ),
        ),
        ModernRerun(
            "wp-003",
            "flights over two, server authenticated and mutual",
            (ECC_SERVER, ECC_MUTUAL, RSA_SERVER, RSA_MUTUAL),
            lambda: verdicts.number(
                max(
                    replication.costs[one].flights for one in (ECC_SERVER, ECC_MUTUAL, RSA_SERVER, RSA_MUTUAL)
                )
                / 2,
                "counted on the wire",
            ),
        ),
        ModernRerun(
            "wp-005",
            "RSA-1024 verification: e = 65537 over e = 3",
            (TLS_RSA, TLS_RSA3),
            lambda: verdicts.holds(
                ratios_here(replication)["exponent"] > 1,
                f"{ratios_here(replication)['exponent']:.2f}",
                "CertificateVerify checked by a TLS 1.0 server; the report had 2.48, 2.45 and 2.49",
            ),
        ),
        ModernRerun("wp-018", "ECDSA on sect163k1: verify over sign", (TLS_ECC,), verify_over_sign),
    ]
