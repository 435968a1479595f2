"""The table of docs/explanation/eap.md: `python -m tools.eap_table`."""

from __future__ import annotations

from dataclasses import dataclass

from shakedown.models import eap as model
from shakedown.prediction import eap as pricing
from shakedown.prediction.predict import predict_rows
from shakedown.profiles import load_bearer
from shakedown.schema.options import PredictionOptions

SIZES = (500, 1390)
BEARERS = ("wifi", "gprs")
AKA = "EAP-AKA"
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


@dataclass(frozen=True)
class Row:
    """One authentication: EAP bytes, round trips and times (median, mean, seconds) by bearer."""

    label: str
    fragment: int
    round_trips: int
    eap_bytes: float
    median_s: dict[str, float]
    p95_s: dict[str, float]


def rows() -> list[Row]:
    """All authentications at each fragment size; EAP-AKA, which has no fragments, at the largest alone."""
    found = []
    packets = model.aka_packets()
    aka = model.exchanged(packets)
    done = {
        name: pricing.carry_packets(packets, load_bearer(name), pricing.Carried()).done for name in BEARERS
    }
    found.append(
        Row(AKA, SIZES[-1], aka.round_trips, aka.eap_bytes,
            {name: one.p50 for name, one in done.items()}, {name: one.p95 for name, one in done.items()})
    )  # fmt: skip
    for size in SIZES:
        by_bearer = {
            name: predict_rows(
                list(SUITES.values()),
                bearer=name,
                options=PredictionOptions(carrier="eap", fragment_bytes=size),
            )
            for name in BEARERS
        }
        for index, label in enumerate(SUITES):
            first = by_bearer[BEARERS[0]][index]["eap"]
            times = {name: by_bearer[name][index]["done_s"] for name in BEARERS}
            found.append(
                Row(label, size, first["round_trips"], first["eap_bytes"],
                    {name: one["p50"] for name, one in times.items()},
                    {name: one["p95"] for name, one in times.items()})
            )  # fmt: skip
    return found


def table(found: list[Row]) -> list[str]:
    """The lines of the page's table."""
    lines = []
    for label in [AKA, *SUITES]:
        mine = [row for row in found if row.label == label]
        trips = " / ".join(str(row.round_trips) for row in mine)
        sizes = f"{mine[-1].eap_bytes:,.0f}"
        cells = []
        for name in BEARERS:
            cells.append(" / ".join(_seconds(row.median_s[name]) for row in mine))
            cells.append(" / ".join(_seconds(row.p95_s[name]) for row in mine))
        lines.append(f"| {label} | {trips} | {sizes} | {' | '.join(cells)} |")
    return lines


def _seconds(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


if __name__ == "__main__":
    print("\n".join(table(rows())))
