"""The study's figures, and the page's table of steps."""

from __future__ import annotations

from collections.abc import Mapping

from shakedown.papers.drawing import Drawing, waiting
from shakedown.papers.load import PaperData
from shakedown.papers.pda.inputs import CIPHERS, DH, RSA, STEPS, SUITES, Study
from shakedown.papers.pda.steps import one_way_s, steps_us, with_network_us
from shakedown.papers.pda.transfers import side_s, transfers_of, wep_growth
from shakedown.papers.replication import Replication
from shakedown.papers.text import markdown_table
from shakedown.reporting import charts
from shakedown.schema.base import SIDES


def figures(data: PaperData, replication: Replication) -> list[Drawing]:
    bulk = _figure_6(replication)
    if replication.why_not(SUITES):
        waits = "handshakes measured here (the study prints no step times)"
        titles = {
            "2": "Client's time by step",
            "3": "Server's time by step",
            "4": "Client's time by step, RSA and DH",
            "5": "Server's time by step, RSA and DH",
        }
        return [*(waiting(number, title, waits) for number, title in titles.items()), bulk]
    study = Study(data)
    pda_ms = study["pda_open_full_handshake_total"]
    published = {
        2: study["pda_open_step2_share_of_total_almost"] / 100 * pda_ms,
        3: study["pda_open_step3_share_of_total_almost"] / 100 * pda_ms,
        6: study.step_6_ms,
    }
    delay_s = one_way_s(data)
    y = "time in ms (logarithmic)"
    clients: dict[str, Mapping[int, float]] = {
        "PDA, open, as printed": {step: 1e3 * value for step, value in published.items()},
        "here, open": with_network_us(replication.costs[RSA], delay_s, wep=False),
        "here, WEP's bytes": with_network_us(replication.costs[RSA], delay_s, wep=True),
        "here, no network": steps_us(replication.costs[RSA], "client"),
    }
    servers: dict[str, Mapping[int, float]] = {"here": steps_us(replication.costs[RSA], "server")}
    drawn: list[tuple[str, str, str, Mapping[str, Mapping[int, float]]]] = [
        (
            "2",
            "Client's time by step, full handshake with RSA",
            "Our measured steps; network waits from the study's 10 Mbit/s and "
            f"the one-way delay derived from the laptop's resumed handshake ({1e3 * delay_s:.2f} ms). The "
            "study printed only steps 2, 3 and "
            "6 of the PDA, and none of the laptop.",
            clients,
        ),
        (
            "3",
            "Server's time by step, full handshake with RSA",
            "Modern rerun, without network. The study printed no "
            "step times of the server, which WEP does not affect.",
            servers,
        ),
        *(
            (
                number,
                f"{side.capitalize()}'s time by step, RSA and DH",
                "Measured here, without network; no values were printed.",
                {
                    name: steps_us(replication.costs[one], side)
                    for name, one in (("RSA 1024", RSA), ("DH 1024", DH))
                },
            )
            for number, side in zip(("4", "5"), SIDES, strict=True)
        ),
    ]
    drawings = []
    for number, title, note, series in drawn:
        values = [
            {"step": str(step), "series": name, y: round(steps[step] / 1e3, 6)}
            for step in STEPS
            for name, steps in series.items()
            if steps.get(step, 0.0) > 0
        ]
        drawings.append(
            Drawing(
                number,
                title,
                note,
                "measured",
                charts.grouped_bars(values, "step", "series", y, log=True, x_title="step of the handshake"),
                values,
            )
        )
    return [*drawings, bulk]


def words(data: PaperData, replication: Replication) -> dict[str, str]:
    """Tables of the page: transfers of 1 MiB with each cipher, without and with WEP."""
    rows = []
    for suite, cipher in CIPHERS.items():
        found = [replication.transfers(suite, link, [1024 * 1024]) for link in ("open", "wep")]
        if found[0] and found[1]:
            plain, wep = found[0][0], found[1][0]
            times = [plain.client_us, wep.client_us, plain.server_us, wep.server_us]
            rows.append(
                [
                    cipher,
                    *(f"{time / 1e3:.2f}" for time in times),
                    f"{plain.wire_bytes:,.0f}",
                    f"{wep.wire_bytes:,.0f}",
                ]
            )
    if not rows:
        return {"transfers": ""}
    head = [
        "1 MiB with",
        "client, open (ms)",
        "client, WEP (ms)",
        "server, open (ms)",
        "server, WEP (ms)",
        "bytes, open",
        "bytes, WEP",
    ]
    return {"transfers": "Per cipher:\n\n" + markdown_table(head, rows)}


def _figure_6(replication: Replication) -> Drawing:
    """WEP's additional time over the size of the transfer, with its regression."""
    title = "WEP's additional transfer time by file size"
    x, y = "file size in KiB", "additional time with WEP in ms"
    values: list[dict[str, object]] = []
    words = []
    for side in ("client", "server"):
        pairs, growth = transfers_of(replication, RSA), wep_growth(replication, RSA, side)
        if pairs is None or growth is None:
            return waiting("6", title, "transfers after a handshake, with WEP framing")
        name = f"{side}, {'receives' if side == 'client' else 'sends'}"
        words.append(
            f"{side} {1e6 * 2**20 * growth.s_per_byte:.0f} µs per MiB (R² {growth.determination:.3f})"
        )
        for size, plain, wep in pairs:
            extra_s = side_s(wep, side) - side_s(plain, side)
            values.append({x: size / 1024, y: round(1e3 * extra_s, 6), "side": name, "what": "measured"})
        for size in (0, 2048 * 1024):
            line_s = growth.s_per_byte * size + growth.fixed_s
            values.append({x: size / 1024, y: round(1e3 * line_s, 6), "side": name, "what": "regression"})
    return Drawing(
        "6",
        title,
        "Modern rerun over TLS 1.0 with AES-256, frames of 1500 bytes encrypted "
        f"with RC4 and CRC-32. Regression: {'; '.join(words)}. The study plotted PDA and laptop without "
        "values.",
        "measured",
        charts.regression(values, x, y, "side", "what"),
        values,
    )
