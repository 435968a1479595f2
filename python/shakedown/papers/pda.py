"""Shin, Gupta and Myers on SSL on a PDA and a laptop: step shares, resumption, RSA against DH."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from shakedown.measurement import Side
from shakedown.models.access import resumption_gain, share_without_network
from shakedown.models.transport import flight_s, wep_wire_bytes
from shakedown.papers import draw, judge
from shakedown.papers.draw import Drawing
from shakedown.papers.here import Bulk, Cost, Here, Transfers
from shakedown.papers.judge import Check, cell_row
from shakedown.papers.load import PaperData
from shakedown.papers.paper import Paper, Today
from shakedown.papers.rows import Row
from shakedown.papers.text import markdown_table

SLUG = "ssl-pda"

RSA = "tls1.0/rsa/rsa1024/server"
RESUMED = "tls1.0/rsa/rsa1024/server/resumed"
DH = "tls1.0/dhe_rsa+dh1024/rsa1024/server"
SUITES = (RSA, RESUMED, DH)

FILE_SIZES_KIB = (130, 256, 512, 1024, 2048)
CIPHERS = {RSA: "AES-256", f"{RSA}/3des-sha": "3DES", f"{RSA}/rc4-sha": "RC4"}
TRANSFERS = Transfers(tuple(CIPHERS), ("open", "wep"), tuple(1024 * size for size in FILE_SIZES_KIB))

STEPS = (1, 2, 3, 4, 5, 6)
NETWORK_BITS_PER_S = 10e6
"""The rate of the study's network, as printed."""

_NOT_PRINTED = "step times stand only in bar charts without values"
_DEVICE = "needs the device itself: an input"
_BULK = (
    "needs transfers after the handshake, with and without WEP framing, which were not measured in this run"
)

_TO_SERVER = ("ServerHello", "Certificate", "ServerKeyExchange", "ServerHelloDone")


class Study:
    """The numbers that the text prints."""

    def __init__(self, data: PaperData) -> None:
        self._values = {
            row["quantity"]: float(row["value"])
            for row in data.tables["text_numbers"].rows
            if row["quantity"] != "transfer_file_size"
        }

    def __getitem__(self, quantity: str) -> float:
        return self._values[quantity]

    @property
    def laptop_ms(self) -> float:
        """The laptop's full handshake: its share of the PDA's."""
        return self["pda_open_full_handshake_total"] * self["laptop_open_total_over_pda_open_total"] / 100

    @property
    def step_6_ms(self) -> float:
        """Step 6 from its two printed parts."""
        return self["pda_open_step6_symmetric_decrypt_and_hash"] + self["pda_open_step6_rest"]

    @property
    def blocking_ms(self) -> float:
        """The blocking read of step 6."""
        return self["pda_open_step6_rest"] * self["pda_open_step6_blocking_read_share_of_rest"] / 100


def checks(data: PaperData, here: Here) -> Mapping[str, Check]:
    """A check for each claim."""
    study = Study(data)
    pda_ms = study["pda_open_full_handshake_total"]
    laptop_ms = study.laptop_ms
    resumed = {"pda": study["pda_resumption_time"], "laptop": study["laptop_resumption_time"]}
    gains = {
        name: float(resumption_gain(full, resumed[name]))
        for name, full in (("pda", pda_ms), ("laptop", laptop_ms))
    }
    steps_2_3 = study["pda_open_step2_share_of_total_almost"] + study["pda_open_step3_share_of_total_almost"]
    sum_of_crypto = steps_2_3 + 100 * study["pda_open_step6_symmetric_decrypt_and_hash"] / pda_ms
    left = 100 - steps_2_3 - 100 * study.step_6_ms / pda_ms
    crypto_ms = study["pda_open_crypto_share_of_total"] / 100 * pda_ms
    without = 100 * float(share_without_network(crypto_ms, pda_ms, study.blocking_ms))
    laptop_crypto_ms = study["laptop_open_crypto_share_of_total"] / 100 * laptop_ms
    shares = (study["pda_open_crypto_share_of_total"], study["laptop_open_crypto_share_of_total"])
    return {
        "sp-001": judge.number(
            100 / study["laptop_open_total_over_pda_open_total"], "inverse of the 31 % of section V-A"
        ),
        "sp-002": judge.holds(
            max(shares) < 50, "crypto < rest", f"{shares[0]} % on the PDA, {shares[1]} % on the laptop"
        ),
        "sp-003": judge.untestable(_DEVICE),
        "sp-004": judge.untestable(f"{_NOT_PRINTED}: an input; it is used in sp-010 and sp-014"),
        "sp-005": judge.untestable(f"{_NOT_PRINTED}: an input; it is used in sp-010 and sp-014"),
        "sp-006": judge.number(
            100 * study.step_6_ms / pda_ms,
            f"its printed parts, 0.129 + 25.21 ms of 50.6 ms; 46 % is the blocking read alone "
            f"({study.blocking_ms:.2f} ms, {100 * study.blocking_ms / pda_ms:.1f} %)",
        ),
        "sp-007": judge.untestable(_DEVICE),
        "sp-008": judge.untestable(_DEVICE),
        "sp-009": judge.number(
            study["pda_open_step6_share_of_total"] * pda_ms / study["pda_open_step6_rest"],
            "46 % of 50.6 ms over 25.21 ms, if the 46 % are the blocking read",
        ),
        "sp-010": judge.holds(
            left / 3 <= study["pda_open_step2_share_of_total_almost"],
            f"{{2,3,6}} {100 - left:.0f} %, {{1,4,5}} {left:.0f} %",
            "together 2, 3 and 6 do outweigh the rest; but if six steps make up the 50.6 ms, one of 1, 4 "
            "and 5 takes at "
            f"least {left / 3:.1f} % on the PDA, more than step 2 (7 %) and step 3 (10 %)",
        ),
        "sp-011": judge.untestable(_NOT_PRINTED),
        "sp-012": judge.untestable("the laptop's total is printed as this ratio only: an input"),
        "sp-013": judge.untestable("printed as this share only: an input"),
        "sp-014": judge.number(sum_of_crypto, "almost 7 % + almost 10 % + 0.129 of 50.6 ms"),
        "sp-015": judge.untestable(
            "the network parts that were removed are not printed; without the blocking read alone it is "
            f"{without:.1f} %, and "
            f"72 % means that {pda_ms - crypto_ms / 0.72:.1f} of 50.6 ms were network"
        ),
        "sp-016": judge.untestable(
            "the network parts that were removed are not printed; 90 % means "
            f"{laptop_ms - laptop_crypto_ms / 0.90:.1f} of "
            f"{laptop_ms:.1f} ms"
        ),
        "sp-017": judge.untestable("printed as this share only: an input"),
        "sp-018": judge.untestable("printed as this share only: an input"),
        "sp-019": judge.untestable(_NOT_PRINTED),
        "sp-020": judge.untestable(_NOT_PRINTED),
        "sp-021": _when(here, (RSA, DH), lambda: _steps_longer(here, one_way_s(data))),
        "sp-022": _when(here, (RSA, DH), lambda: _dh_over_rsa(here, "PDA")),
        "sp-023": _when(here, (RSA, DH), lambda: _dh_over_rsa(here, "laptop")),
        "sp-024": _when(here, (RSA, DH), lambda: _server_longer(here)),
        "sp-025": judge.number(
            resumed["pda"] / pda_ms, f"4.89 over 50.6 ms; 28 % would need {0.28 * pda_ms:.1f} ms"
        ),
        "sp-026": judge.number(
            resumed["laptop"] / laptop_ms,
            f"4.18 over 0.31 x 50.6 ms; 14 % would need {0.14 * laptop_ms:.1f} ms; exchanging the two "
            "percentages does not "
            "help either",
        ),
        "sp-027": judge.untestable(_DEVICE),
        "sp-028": judge.untestable(_DEVICE),
        "sp-029": judge.number(resumed["pda"] / resumed["laptop"], "4.89 over 4.18 ms"),
        "sp-030": _growth(here, study["laptop_open_total_over_pda_open_total"] / 100),
        "sp-031": judge.holds(
            gains["laptop"] > gains["pda"],
            f"laptop {100 * gains['laptop']:.0f} % < pda {100 * gains['pda']:.0f} %",
            "1 - resumed / full by the printed times; the conclusion follows the printed percentages (28 "
            "and 14) and "
            "contradicts the times",
        ),
        "sp-032": judge.holds(
            min(study["pda_dh_total_over_rsa_total"], study["laptop_dh_total_over_rsa_total"]) > 1,
            "rsa < dh",
            "by the printed ratios of 6 and 3",
        ),
    }


def _when(here: Here, suites: Sequence[str], check: Callable[[], Check]) -> Check:
    reason = here.why_not(suites)
    return judge.untestable(f"{_NOT_PRINTED}; {reason}", "measured") if reason else check()


def client_steps_us(cost: Cost) -> dict[int, float]:
    """The client's own work in the study's six steps, without waiting; step 5 is the server's."""
    return {
        1: cost.at("client", "ClientHello"),
        2: sum(cost.at("client", name, "server") for name in _TO_SERVER),
        3: cost.at("client", "ClientKeyExchange"),
        4: cost.at("client", "ChangeCipherSpec", "client") + cost.at("client", "Finished", "client"),
        5: 0.0,
        6: cost.at("client", "ChangeCipherSpec", "server") + cost.at("client", "Finished", "server"),
    }


def server_steps_us(cost: Cost) -> dict[int, float]:
    """The server's own work in the same steps; step 3 is the client's."""
    return {
        1: cost.at("server", "ClientHello"),
        2: sum(cost.at("server", name, "server") for name in _TO_SERVER),
        3: 0.0,
        4: cost.at("server", "ChangeCipherSpec", "client") + cost.at("server", "Finished", "client"),
        5: cost.at("server", "ClientKeyExchange"),
        6: cost.at("server", "ChangeCipherSpec", "server") + cost.at("server", "Finished", "server"),
    }


def with_network_us(cost: Cost, one_way_s: float, *, wep: bool) -> dict[int, float]:
    """The client's steps as the study timed them: waits for the server's flights are in steps 2 and 6.

    WEP adds its bytes on the air; what its cipher costs is not in here.
    """
    own, server = client_steps_us(cost), server_steps_us(cost)
    flights_us = [
        1e6
        * float(flight_s(size + (float(wep_wire_bytes(size)) if wep else 0.0), NETWORK_BITS_PER_S, one_way_s))
        for _, size in cost.flight_bytes()
    ]
    own[2] += flights_us[0] + flights_us[1] + server[1] + server[2]
    own[6] += flights_us[2] + flights_us[3] + server[4] + server[5] + server[6]
    return own


def one_way_s(data: PaperData) -> float:
    """One-way delay of the study's network: half of the laptop's resumed handshake, which is one round trip
    and no public-key work.
    """
    return Study(data)["laptop_resumption_time"] / 2e3


def _ratio(here: Here, side: Side, above: str, below: str) -> float:
    return here.costs[above].us(side) / here.costs[below].us(side)


def _steps_longer(here: Here, one_way: float) -> Check:
    rsa, dh = (with_network_us(here.costs[one], one_way, wep=False) for one in (RSA, DH))
    longer = {step: dh[step] / rsa[step] for step in (2, 3, 6)}
    dominate = min(dh[2], dh[3], dh[6]) > max(dh[1], dh[4])
    return judge.holds(
        dominate and all(ratio > 1 for ratio in longer.values()),
        ", ".join(f"step {step} {ratio:.2f} times" for step, ratio in longer.items()),
        "our client, waits for the study's network in steps 2 and 6 as it timed them, DH over RSA; with DH, "
        "µs by step: " + ", ".join(f"{step}: {dh[step]:.0f}" for step in STEPS if step != 5),
        "measured",
    )


def _dh_over_rsa(here: Here, device: str) -> Check:
    return judge.number(
        _ratio(here, "client", DH, RSA),
        f"client's CPU time here; the {device}'s total holds network waits too, and only this ratio of it "
        "is printed. DH-1024 "
        "with exponents as long as the prime",
        "measured",
    )


def _server_longer(here: Here) -> Check:
    ratio = _ratio(here, "server", DH, RSA)
    return judge.holds(ratio > 1, f"{ratio:.2f}", "server's CPU time here, DH over RSA", "measured")


class Growth(NamedTuple):
    """WEP's additional time as a line over the size of a transfer, and how well it fits."""

    s_per_byte: float
    fixed_s: float
    determination: float


def wep_growth(here: Here, suite: str, side: Side) -> Growth | None:
    """Regression of (WEP time - open time) over file size, as the study's figure 6; None if not measured."""
    pairs = _pairs(here, suite)
    if pairs is None:
        return None
    sizes = np.array([size for size, _, _ in pairs], dtype=float)
    extra = np.array([_side_s(wep, side) - _side_s(plain, side) for _, plain, wep in pairs])
    slope, fixed = np.polyfit(sizes, extra, 1)
    left = extra - (slope * sizes + fixed)
    return Growth(
        float(slope), float(fixed), 1 - float((left**2).sum() / ((extra - extra.mean()) ** 2).sum())
    )


def _pairs(here: Here, suite: str) -> list[tuple[int, Bulk, Bulk]] | None:
    plain, wep = (here.transfers(suite, link, TRANSFERS.sizes_bytes) for link in ("open", "wep"))
    if plain is None or wep is None:
        return None
    return list(zip(TRANSFERS.sizes_bytes, plain, wep, strict=True))


def _side_s(bulk: Bulk, side: Side) -> float:
    return (bulk.client_us if side == "client" else bulk.server_us) / 1e6


def _growth(here: Here, laptop_over_pda: float) -> Check:
    found = wep_growth(here, RSA, "client")
    if found is None:
        return judge.untestable(_BULK, "measured")
    return judge.holds(
        found.s_per_byte > 0 and found.determination > 0.9,
        "slope pda > slope laptop" if found.s_per_byte > 0 else "no growth",
        f"one machine here: WEP's work grows by {1e6 * 2**20 * found.s_per_byte:.0f} µs a MiB on the "
        "receiving side, a line "
        f"(R² {found.determination:.3f}); a processor {1 / laptop_over_pda:.1f} times slower, as the PDA "
        "against the laptop, "
        "pays as many times more",
        "measured",
    )


def cells(data: PaperData) -> list[Row]:
    """Table 1 describes the test-bed: inputs, nothing to compute."""
    rows = []
    for row in data.tables["table_1_devices"].rows:
        for column, words, unit in (("clock_mhz", "clock", "MHz"), ("ram_mb", "memory", "MB")):
            rows.append(
                cell_row(
                    SLUG,
                    f"table 1, {row['role']}",
                    words,
                    unit,
                    row[column],
                    None,
                    "",
                    "an input: the test-bed",
                )
            )
    return rows


def measured_cells(data: PaperData, here: Here) -> list[Row]:
    """What table 1 describes is not here."""
    return []


def today(data: PaperData, here: Here) -> Sequence[Today]:
    """What today's hardware says to shares, resumption and key exchange."""

    def share(side: Side) -> float:
        cost = here.costs[RSA]
        return 100 * (cost.class_us(side, "key") + cost.class_us(side, "signature")) / cost.us(side)

    def with_network() -> float:
        total = sum(with_network_us(here.costs[RSA], one_way_s(data), wep=False).values())
        cost = here.costs[RSA]
        return 100 * (cost.class_us("client", "key") + cost.class_us("client", "signature")) / total

    def step(number: int) -> float:
        own = client_steps_us(here.costs[RSA])
        return 100 * own[number] / sum(own.values())

    def resumed(side: Side) -> float:
        return _ratio(here, side, RESUMED, RSA)

    network = "waits by the study's 10 Mbit/s and the delay that the laptop's resumed handshake shows"
    return [
        Today(
            "sp-002",
            "public-key work's share of the client's handshake, network included",
            (RSA,),
            lambda: judge.holds(with_network() < 50, f"crypto {with_network():.2g} %", network, "measured"),
        ),
        Today(
            "sp-004",
            "step 2's share of the client's own work",
            (RSA,),
            lambda: judge.number(
                step(2), "without network waits, which the study's shares include", "measured"
            ),
        ),
        Today(
            "sp-005",
            "step 3's share of the client's own work",
            (RSA,),
            lambda: judge.number(
                step(3), "without network waits, which the study's shares include", "measured"
            ),
        ),
        Today(
            "sp-014",
            "public-key work's share of the client's handshake, network included",
            (RSA,),
            lambda: judge.number(with_network(), network, "measured"),
        ),
        Today(
            "sp-016",
            "public-key work's share of the client's own work",
            (RSA,),
            lambda: judge.number(share("client"), "CPU time, nothing of the network in it", "measured"),
        ),
        Today(
            "sp-017",
            "WEP's work for a handshake's bytes over the handshake, network included",
            (RSA,),
            lambda: _wep_in_a_handshake(data, here),
        ),
        Today(
            "sp-019",
            "server's and client's own work by step, on one machine",
            (RSA,),
            lambda: _server_by_step(here),
        ),
        Today(
            "sp-025",
            "client's time, resumed over full",
            (RSA, RESUMED),
            lambda: judge.number(resumed("client"), "CPU time; by the study's times 9.7 %", "measured"),
        ),
        Today(
            "sp-026",
            "server's time, resumed over full",
            (RSA, RESUMED),
            lambda: judge.number(resumed("server"), "CPU time of the server", "measured"),
        ),
        Today(
            "sp-032",
            "client's time, RSA below DH",
            (RSA, DH),
            lambda: judge.holds(
                _ratio(here, "client", DH, RSA) > 1,
                f"DH {_ratio(here, 'client', DH, RSA):.2f} times RSA",
                "CPU time",
                "measured",
            ),
        ),
    ]


def _wep_in_a_handshake(data: PaperData, here: Here) -> Check:
    found = [wep_growth(here, RSA, side) for side in ("client", "server")]
    if found[0] is None or found[1] is None:
        return judge.untestable(_BULK, "measured")
    cost = here.costs[RSA]
    added_us = sum(1e6 * one.s_per_byte * cost.size_bytes for one in found if one)
    added_us += sum(with_network_us(cost, one_way_s(data), wep=True).values())
    total_us = sum(with_network_us(cost, one_way_s(data), wep=False).values())
    return judge.number(
        100 * (added_us / total_us - 1),
        f"{cost.size_bytes:.0f} bytes at the slope of transfers, 8 bytes a frame on the air",
        "measured",
    )


def _server_by_step(here: Here) -> Check:
    client, server = client_steps_us(here.costs[RSA]), server_steps_us(here.costs[RSA])
    shorter = [step for step in (1, 2, 4, 6) if server[step] < client[step]]
    return judge.holds(
        len(shorter) == 4,
        f"shorter in {', '.join(map(str, shorter)) or 'none'}",
        "both sides on this machine, µs server against client: "
        + ", ".join(f"{step}: {server[step]:.0f}, {client[step]:.0f}" for step in STEPS),
        "measured",
    )


def figures(data: PaperData, here: Here) -> list[Drawing]:
    """Figures 2 to 6."""
    bulk = _figure_6(here)
    if here.why_not(SUITES):
        waits = "handshakes measured here (the study prints no step times)"
        titles = {
            "2": "Client's time by step",
            "3": "Server's time by step",
            "4": "Client's time by step, RSA and DH",
            "5": "Server's time by step, RSA and DH",
        }
        return [*(draw.waiting(SLUG, number, title, waits) for number, title in titles.items()), bulk]
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
        "here, open": with_network_us(here.costs[RSA], delay_s, wep=False),
        "here, WEP's bytes": with_network_us(here.costs[RSA], delay_s, wep=True),
        "here, no network": client_steps_us(here.costs[RSA]),
    }
    servers: dict[str, Mapping[int, float]] = {"here": server_steps_us(here.costs[RSA])}
    exchange = "RSA 1024", "DH 1024"
    drawn: list[tuple[str, str, str, Mapping[str, Mapping[int, float]]]] = [
        (
            "2",
            "Client's time by step, full handshake with RSA",
            "Our steps measured here; waits by the study's 10 Mbit/s and the one-way delay that the "
            "laptop's resumed handshake "
            f"shows ({1e3 * delay_s:.2f} ms). Of the PDA only steps 2, 3 and 6 were printed, of the laptop "
            "none.",
            clients,
        ),
        (
            "3",
            "Server's time by step, full handshake with RSA",
            "Measured here, without network; of the server no step time was printed, and WEP does not reach "
            "it.",
            servers,
        ),
        (
            "4",
            "Client's time by step, RSA and DH",
            "Measured here, without network; no values were printed.",
            {name: client_steps_us(here.costs[one]) for name, one in zip(exchange, (RSA, DH), strict=True)},
        ),
        (
            "5",
            "Server's time by step, RSA and DH",
            "Measured here, without network; no values were printed.",
            {name: server_steps_us(here.costs[one]) for name, one in zip(exchange, (RSA, DH), strict=True)},
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
                SLUG,
                number,
                title,
                note,
                "measured",
                draw.grouped_bars(values, "step", "series", y, log=True, x_title="step of the handshake"),
                values,
            )
        )
    return [*drawings, bulk]


def words(data: PaperData, here: Here) -> dict[str, str]:
    """For the page: transfers of 1 MiB with each cipher, open and with WEP."""
    rows = []
    for suite, cipher in CIPHERS.items():
        found = [here.transfers(suite, link, [1024 * 1024]) for link in ("open", "wep")]
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


def _figure_6(here: Here) -> Drawing:
    """WEP's additional time over the size of the transfer, with its regression."""
    title = "WEP's additional transfer time by file size"
    x, y = "file size in KiB", "additional time with WEP in ms"
    values: list[dict[str, object]] = []
    words = []
    for side in ("client", "server"):
        pairs, growth = _pairs(here, RSA), wep_growth(here, RSA, side)
        if pairs is None or growth is None:
            return draw.waiting(SLUG, "6", title, "transfers after a handshake, with WEP framing")
        name = f"{side}, {'receives' if side == 'client' else 'sends'}"
        words.append(f"{side} {1e6 * 2**20 * growth.s_per_byte:.0f} µs a MiB (R² {growth.determination:.3f})")
        for size, plain, wep in pairs:
            extra_s = _side_s(wep, side) - _side_s(plain, side)
            values.append({x: size / 1024, y: round(1e3 * extra_s, 6), "side": name, "what": "measured"})
        for size in (0, 2048 * 1024):
            line_s = growth.s_per_byte * size + growth.fixed_s
            values.append({x: size / 1024, y: round(1e3 * line_s, 6), "side": name, "what": "regression"})
    return Drawing(
        SLUG,
        "6",
        title,
        "Measured here over TLS 1.0 with AES-256, frames of 1500 bytes really enciphered with RC4 and "
        "CRC-32. Regression: "
        f"{'; '.join(words)}. The study drew PDA and laptop and printed no values.",
        "measured",
        draw.regression(values, x, y, "side", "what"),
        values,
    )


PAPER = Paper(SLUG, SUITES, checks, cells, today, measured_cells, figures, (TRANSFERS,), words)
