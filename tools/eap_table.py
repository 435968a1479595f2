"""The table of docs/explanation/eap.md: `python -m tools.eap_table`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shakedown.models import eap as model
from shakedown.prediction.eap import Carried, carry_packets
from shakedown.prediction.predict import predict_rows
from shakedown.profiles import load_bearer
from shakedown.schema.options import PredictionOptions

SIZES = (500, 1390)
BEARERS = ("wifi", "gprs")
SUITES = {
    "TLS 1.2, P-256": "tls1.2/ecdhe_ecdsa+x25519/p256/mutual",
    "TLS 1.3, P-256": "tls1.3/x25519/p256/mutual",
    "TLS 1.3, P-256, resumed": "tls1.3/x25519/p256/mutual/resumed",
    "TLS 1.3, RSA-2048": "tls1.3/x25519/rsa2048/mutual",
    "ML-DSA-44, 2 levels": "tls1.3/x25519mlkem768/mldsa44/mutual",
    "ML-DSA-44, 2 levels, resumed": "tls1.3/x25519mlkem768/mldsa44/mutual/resumed",
    "ML-DSA-44, 3 levels": "tls1.3/x25519mlkem768/mldsa44@mldsa44@mldsa44/mutual",
    "ML-DSA-65, 2 levels": "tls1.3/x25519mlkem768/mldsa65/mutual",
    "ML-DSA-65, 3 levels": "tls1.3/x25519mlkem768/mldsa65@mldsa65@mldsa65/mutual",
}


def line(
    label: str, eap: Sequence[Mapping[str, Any]], done_s: Sequence[Sequence[Mapping[str, float]]]
) -> str:
    """A line of the table: round trips and bytes at each size of fragments, and times by bearer and size."""
    trips = " / ".join(str(one["round_trips"]) for one in eap)
    cells = (
        " / ".join(f"{one[share]:{'.2g' if one[share] < 10 else '.0f'}}" for one in of_bearer)
        for of_bearer in done_s
        for share in ("p50", "p95")
    )
    return f"| {label} | {trips} | {eap[-1]['eap_bytes']:,.0f} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table's lines; EAP-AKA has no fragments."""
    packets = model.aka_packets()
    aka = model.exchanged(packets)
    carried = (carry_packets(packets, load_bearer(name), Carried()).done for name in BEARERS)
    done_s = [[{"p50": one.p50, "p95": one.p95}] for one in carried]
    print(line("EAP-AKA", [{"round_trips": aka.round_trips, "eap_bytes": aka.eap_bytes}], done_s))
    suites = list(SUITES.values())
    found = [
        [
            predict_rows(suites, bearer=name, options=PredictionOptions(carrier="eap", fragment_bytes=size))
            for size in SIZES
        ]
        for name in BEARERS
    ]
    for at, label in enumerate(SUITES):
        rows = [[of_size[at] for of_size in of_bearer] for of_bearer in found]
        print(
            line(label, [row["eap"] for row in rows[0]], [[row["done_s"] for row in some] for some in rows])
        )


if __name__ == "__main__":
    main()
