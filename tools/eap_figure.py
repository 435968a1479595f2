"""The figure and table of docs/background/eap.md: EAP-TLS round trips and times, by `predict --carrier eap`.

.venv/bin/python -m tools.eap_figure     writes docs/background/figures/eap.svg, prints the table's lines
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shakedown.models import eap as model
from shakedown.prediction import eap as pricing
from shakedown.prediction.predict import predict_rows
from shakedown.profiles import load_bearer
from shakedown.reporting.charts.canvas import across, down, texts, ticks
from shakedown.reporting.charts.figure import Definition, Figure
from shakedown.reporting.charts.theme import FILLS, INK, LANE

OUT = Path(__file__).parent.parent / "docs" / "background" / "figures"
SIZES = (500, 1390)
TICKS_S = (0.03, 0.1, 0.3, 1, 2, 5, 10, 20, 50, 100)
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
ROW_PX, LABEL_PX = 38, 15


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
            name: predict_rows(list(SUITES.values()), bearer=name, carrier="eap", fragment_bytes=size)
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


def define(found: list[Row], width: int) -> Definition:
    """Panels of dots, a row a suite: round trips with FreeRADIUS's wall, and seconds over each bearer."""
    inner = (width - 90) / 3
    wall = model.FREERADIUS_ROUNDS + 1.5
    trips = [float(row.round_trips) for row in found]
    panels = [_panel("round trips (Access-Requests)", found, trips, (0.0, 70.0), inner, wall=wall)]
    for name in BEARERS:
        times = [row.median_s[name] for row in found]
        panels.append(_panel(f"{name}: median time (s)", found, times, None, inner))
    return {"hconcat": panels, "spacing": 30}


def _panel(
    title: str,
    found: list[Row],
    numbers: list[float],
    ends: tuple[float, float] | None,
    inner: float,
    wall: float = 0.0,
) -> Definition:
    labels = [AKA, *SUITES]
    height = ROW_PX * len(labels)
    y = down(height)
    log = ends is None
    low, high = ends or (min(numbers) / 1.5, max(numbers) * 1.7)
    marks = {"values": [one for one in TICKS_S if low <= one <= high]} if log else {}
    x = across(low, high, log=log)
    dots = [
        {
            "at": value,
            "y": labels.index(row.label) * ROW_PX + LABEL_PX + 9,
            "what": f"fragments of {row.fragment:,} bytes",
        }
        for row, value in zip(found, numbers, strict=True)
    ]
    spans = []
    for number, label in enumerate(labels):
        mine = [value for row, value in zip(found, numbers, strict=True) if row.label == label]
        spans.append({"from": min(mine), "to": max(mine), "y": number * ROW_PX + LABEL_PX + 9})
    names = [f"fragments of {size:,} bytes" for size in SIZES]
    at_y: dict[str, Any] = {"field": "y", **y}
    lanes = [{"top": one["y"] - 8, "bottom": one["y"] + 8} for one in spans]
    layer: list[Definition] = [
        {
            "data": {"values": lanes},
            "mark": {"type": "rect", "color": LANE},
            "encoding": {
                "x": {"value": 0},
                "x2": {"value": inner},
                "y": {"field": "top", **y},
                "y2": {"field": "bottom"},
            },
        },
        {
            "data": {"values": spans},
            "mark": {"type": "rule", "color": FILLS["common"].light, "strokeWidth": 3},
            "encoding": {
                "x": {"field": "from", "axis": ticks(title, 300, grid=False, **marks), **x},
                "x2": {"field": "to"},
                "y": at_y,
            },
        },
        {
            "data": {"values": dots},
            "mark": {"type": "point", "filled": True, "opacity": 1, "size": 65},
            "encoding": {
                "x": {"field": "at", **x},
                "y": at_y,
                "shape": {
                    "field": "what",
                    "type": "nominal",
                    "scale": {"domain": names, "range": ["diamond", "circle"]},
                    "title": None,
                },
                "color": {
                    "field": "what",
                    "type": "nominal",
                    "title": None,
                    "scale": {"domain": names, "range": [FILLS["signature"].light, FILLS["key"].light]},
                },
            },
        },
        texts(
            [{"y": number * ROW_PX + 7, "text": label} for number, label in enumerate(labels)],
            "text",
            {"value": 2},
            at_y,
            fontSize=11,
            fontWeight=600,
        ),
    ]
    if wall:
        layer += [
            {
                "data": {"values": [{"at": wall}]},
                "mark": {"type": "rule", "color": INK, "strokeDash": [5, 4], "strokeWidth": 1.5},
                "encoding": {"x": {"field": "at", **x}},
            },
            texts(
                [
                    {"at": wall, "y": ROW_PX + 12, "text": "FreeRADIUS"},
                    {"at": wall, "y": ROW_PX + 26, "text": "gives up"},
                ],
                "text",
                {"field": "at", **x},
                at_y,
                fontSize=11,
                dx=5,
            ),
        ]
    return {"width": inner, "layer": layer}


def figure(found: list[Row]) -> Figure:
    """The figure."""
    return Figure(
        "eap",
        "Network access by EAP",
        "modelled",
        "Round trips and median times of EAP-AKA and EAP-TLS over Wi-Fi and GPRS, for two fragment sizes",
        lambda width: define(found, width),
        [],
    )


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
    ROWS = rows()
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "eap.svg").write_text(figure(ROWS).svg)
    print("\n".join(table(ROWS)))
