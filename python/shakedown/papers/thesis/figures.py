"""The thesis's figures 4.1 to 4.46, drawn from our computation.

The original drawings are not in the text that was used; their content follows from tables and captions.
Figure 4.24 is a photograph of the test-bed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from shakedown.papers.drawing import Drawing
from shakedown.papers.load import PaperData
from shakedown.papers.replication import Replication
from shakedown.papers.thesis import network
from shakedown.papers.thesis.inputs import (
    AUTHENTICATIONS,
    COLUMNS,
    SHARE_TABLES,
    WORDS,
    Authentication,
    Case,
    Thesis,
)
from shakedown.papers.thesis.network_claims import modelled_s, overall_s
from shakedown.papers.thesis.queue import RATES_PER_S, Point, Queue, points, queue
from shakedown.reporting import charts
from shakedown.schema.base import SIDES

GROUPS = {1: "prime curves", 2: "Koblitz curves", 3: "random curves", 4: "RSA"}

_WAIT, _RATE = "mean wait in ms", "arrival rate in messages/s (the thesis: requests/s)"
_WAIT_LIMIT_MS = {1: 20.0, 2: 500.0, 3: 500.0, 4: 500.0}
_SERVER_WAIT_LIMIT_MS = {1: 2.0, 2: 20.0, 3: 20.0, 4: 4000.0}


def figures(data: PaperData, replication: Replication) -> list[Drawing]:
    """All figures of chapter 4 except 4.24."""
    thesis = Thesis(data)
    return [
        *_processing(thesis),
        *_percentages(thesis),
        *_waits(thesis),
        *_pings(data),
        *_overall(thesis),
        *_bearers(thesis),
        *_with_queue(thesis),
    ]


def _processing(thesis: Thesis) -> Iterator[Drawing]:
    """4.1 to 4.6: tables 4.1 and 4.2, one figure for each category."""
    y = "processing time in ms (logarithmic)"
    for position, authentication in enumerate(AUTHENTICATIONS):
        for category in (1, 2, 3):
            values = [
                {
                    "CA/end": case.name,
                    "side": side,
                    y: round(1e3 * thesis.time_s(case, authentication, side), 4),
                }
                for case in thesis.cases
                if case.category == category
                for side in SIDES
            ]
            yield Drawing(
                f"4.{1 + 3 * position + category - 1}",
                f"Processing times, category {category}, {WORDS[authentication]}",
                f"Table {4.1 + position / 10:.1f}. The client is the Nokia 7650, the server the WAP gateway.",
                "published",
                charts.grouped_bars(values, "CA/end", "side", y, log=True, x_title="certificate of CA / end"),
                values,
            )


_PARTS = ("others_pct", "client_kx_pct", "server_kx_pct", "verify_server_cert_pct", "verify_client_cert_pct",
          "certificate_verify_sign_pct", "certificate_verify_check_pct")  # fmt: skip


def _percentages(thesis: Thesis) -> Iterator[Drawing]:
    """4.7 to 4.12: tables 4.3 to 4.8. Tables 4.9 and 4.10 have one component each and no figure."""
    y = "share of processing time in %"
    shown = [entry for entry in SHARE_TABLES.items() if entry[1][0] not in ("4.9", "4.10")]
    for number, ((authentication, family, side), (table_number, table)) in enumerate(shown, start=7):
        columns = [column for column in thesis.data.tables[table].columns if column in _PARTS]
        # The large parts are at the bottom, the rest at the top.
        columns.sort(key=lambda column: column == "others_pct")
        values = [
            {
                "CA/end": f"{row['ca_cert']}/{row['end_cert']}",
                "part": COLUMNS[column],
                y: float(row[column]),
            }
            for row in thesis.data.tables[table].rows
            for column in columns
        ]
        yield Drawing(
            f"4.{number}",
            f"Parts of the {side}'s time, {WORDS[authentication]}, "
            + ("ECDH_ECDSA" if family == "ecc" else "RSA"),
            f"Table {table_number}.",
            "published",
            charts.stacked_bars(values, "CA/end", "part", y, y_max=100, x_title="certificate of CA / end"),
            values,
        )


def _curve(one: Queue, name: str, limit_ms: float) -> list[dict[str, object]]:
    waits_ms = 1e3 * one.wait_s(RATES_PER_S)
    rows: list[dict[str, object]] = [
        {_RATE: float(rate), _WAIT: round(float(wait), 5), "certificates": name}
        for rate, wait in zip(RATES_PER_S, waits_ms, strict=True)
        if np.isfinite(wait) and wait <= limit_ms
    ]
    end = one.rate_at_per_s(limit_ms / 1e3)
    if end < RATES_PER_S[-1]:
        rows.append({_RATE: round(end, 4), _WAIT: limit_ms, "certificates": name})
    return rows


def mixtures(thesis: Thesis, group: int) -> list[tuple[str, Sequence[Case], Sequence[float]]]:
    """Five mixtures under the CA key of category 3: the pure suites, and half-and-half ones between them."""
    a, b, c = (case for case in thesis.cases if (case.category, case.group) == (3, group))
    return [
        (a.end, (a,), (1.0,)),
        (f"½ {a.end} + ½ {b.end}", (a, b), (0.5, 0.5)),
        (b.end, (b,), (1.0,)),
        (f"½ {b.end} + ½ {c.end}", (b, c), (0.5, 0.5)),
        (c.end, (c,), (1.0,)),
    ]


def _waits(thesis: Thesis) -> Iterator[Drawing]:
    """4.13 to 4.23: waits in the server's queue."""
    note = (
        "Equation 3.12 with 3.13 to 3.82. The rate counts messages: a handshake sends "
        "four (mutual ECDH), six (mutual RSA) or five (server-authenticated)."
    )
    mixed = (
        note + " Of mixtures, the thesis states only those of two kinds of RSA certificates, half and half; "
        "the other mixtures are ours."
    )
    yield from _group_waits(thesis, "mutual", 12, mixed, _WAIT_LIMIT_MS)
    for level, number in ((1, 17), (2, 18), (3, 19)):
        queues = [(case.name, queue(thesis, "mutual", [case])) for case in thesis.select(3, level)]
        yield _wait_figure(
            f"4.{number}",
            f"Mean wait, mutual, the four groups at level {level} of end certificates",
            note,
            queues,
            300.0,
            [],
        )
    yield from _group_waits(thesis, "serverauth", 19, mixed, _SERVER_WAIT_LIMIT_MS)


def _group_waits(
    thesis: Thesis, authentication: Authentication, before: int, note: str, limits_ms: Mapping[int, float]
) -> Iterator[Drawing]:
    """The mixtures of each group of keys; the first figure's number is that after `before`."""
    for group, words in GROUPS.items():
        yield _wait_figure(
            f"4.{before + group}",
            f"Mean wait, {WORDS[authentication]}, group {group} ({words})",
            note,
            [
                (name, queue(thesis, authentication, cases, shares))
                for name, cases, shares in mixtures(thesis, group)
            ],
            limits_ms[group],
            [one for one in points(thesis) if _belongs(one, authentication, group)],
        )


def _belongs(point: Point, authentication: Authentication, group: int) -> bool:
    messages = {"mutual": 6 if group == 4 else 4, "serverauth": 5}[authentication]
    key = {1: "256p", 2: "283k", 3: "283r", 4: "rsa3072"}[group]
    return point.queues[0].messages == messages and key in point.queues[0].name


def _wait_figure(
    number: str,
    title: str,
    note: str,
    queues: Sequence[tuple[str, Queue]],
    limit_ms: float,
    printed: Sequence[Point],
) -> Drawing:
    values = [row for name, one in queues for row in _curve(one, name, limit_ms)]
    marks = [
        {
            _RATE: point.rate_per_s,
            _WAIT: wait,
            "label": f"printed: {point.rate_per_s:g}/s, {wait:g} ms",
            "below": bool(number % 2),
        }
        for number, point in enumerate(sorted(printed, key=lambda point: point.rate_per_s))
        for wait in point.waits_ms[:1]
        if wait <= limit_ms
    ]
    capacities = ", ".join(f"{one.capacity_per_s:.3g} ({name})" for name, one in queues)
    return Drawing(
        number,
        title,
        f"{note} Capacity of the server in whole handshakes per second: {capacities}."
        + (" Crosses are the thesis's printed points." if marks else ""),
        "modelled",
        charts.lines(
            values, _RATE, _WAIT, "certificates", marks=marks, y_max=limit_ms, x_max=float(RATES_PER_S[-1])
        ),
        values,
    )


def _band(name: str, mean: float, sd: float) -> dict[str, object]:
    """A mean with one deviation either way."""
    series = f"{name}, {mean:.1f} ms, deviation {sd:.0f} ms"
    return {"series": series, "mean": mean, "low": mean - sd, "high": mean + sd}


def _pings(data: PaperData) -> Iterator[Drawing]:
    """4.25 to 4.38: only means and deviations of the series were published."""
    y = "round trip in ms"
    for row in data.tables[network.PINGS].rows:
        mean = float(row["average_rtt_ms"])
        sd = 2 * float(data.tables[network.TRAVERSALS].one(time_slot=row["time_slot"])["sd_ms"])
        values = [_band("published mean", mean, sd)]
        yield Drawing(
            row["figure"],
            f"Round trips of 100 pings over GPRS, {row['time_slot']}",
            "The series was never published; the figure shows its mean (line), plus and minus one standard "
            "deviation (grey), twice "
            "that of the traversal delay in table 4.14.",
            "published",
            charts.bands(values, "ping", 100, y, ("series", "mean", "low", "high")),
            values,
        )
    y = "traversal delay in ms"
    for row in data.tables["figures_4_32_to_4_38_gprs_average_traversal"].rows:
        slot = row["time_slot"]
        mean = float(row["average_traversal_ms"])
        sd = float(data.tables[network.TRAVERSALS].one(time_slot=slot)["sd_ms"])
        eight = network.gprs_traversal_ms(data, slot, as_computed=False)
        without = network.gprs_traversal_ms(data, slot, as_computed=True)
        values = [
            _band("published mean", mean, sd),
            {**_band("", eight, sd), "series": f"equation 4.2 as printed, {eight:.1f} ms"},
        ]
        yield Drawing(
            row["figure"],
            f"Traversal delay over GPRS, {slot}",
            "The series was never published; the figure shows its mean, plus and minus one standard "
            "deviation (grey). Equation 4.2 "
            f"gives {eight:.1f} ms as printed, and {without:.1f} ms without its factor 8.",
            "modelled",
            charts.bands(values, "ping", 100, y, ("series", "mean", "low", "high")),
            values,
        )


def _overall(thesis: Thesis) -> Iterator[Drawing]:
    """4.39 to 4.41: whole handshakes on CSD by category."""
    y = "time in s"
    for category in (1, 2, 3):
        values = [
            {
                "CA/end": case.name,
                "part": part,
                y: round(value, 5),
                "authentication": WORDS[authentication],
            }
            for authentication in AUTHENTICATIONS
            for case in thesis.cases
            if case.category == category
            for part, value in (
                ("transmission", thesis.transmission_s(case, authentication)),
                *((f"{side}'s processing", thesis.time_s(case, authentication, side)) for side in SIDES),
            )
        ]
        yield Drawing(
            f"4.{38 + category}",
            f"Whole handshakes on CSD, category {category}",
            "Tables 4.1, 4.2 and 4.12, no queue. Each panel has a scale of its own.",
            "modelled",
            charts.stacked_bars(
                values,
                "CA/end",
                "part",
                y,
                panels="authentication",
                free=True,
                x_title="certificate of CA / end",
            ),
            values,
        )


def _bearers(thesis: Thesis) -> Iterator[Drawing]:
    """4.42, 4.43: CSD compared with GPRS."""
    y = "time in s (logarithmic)"
    for number, authentication in zip(("4.42", "4.43"), AUTHENTICATIONS, strict=True):
        values = [
            {
                "CA/end": case.name,
                "bearer": bearer if bearer == "CSD" else f"GPRS, {bearer}",
                y: round(modelled_s(thesis, case, authentication, bearer), 5),
            }
            for case in thesis.cases
            if case.category == 3
            for bearer in ("CSD", "best", "average", "worst")
        ]
        yield Drawing(
            number,
            f"Whole handshakes on CSD and GPRS, category 3, {WORDS[authentication]}",
            "Equation 3.84 with the traversal delays of table 4.15 and the rates of table 4.13; the thesis "
            "does not split the sizes by direction, "
            "so half of the bytes are assumed each way.",
            "modelled",
            charts.grouped_bars(values, "CA/end", "bearer", y, log=True, x_title="certificate of CA / end"),
            values,
        )


def _with_queue(thesis: Thesis) -> Iterator[Drawing]:
    """4.44 to 4.46: whole mutual handshakes on CSD by rate, for each level of end certificates."""
    y = "whole handshake in s (logarithmic)"
    for level in (1, 2, 3):
        values = []
        for case in thesis.select(3, level):
            one = queue(thesis, "mutual", [case])
            for rate, wait in zip(RATES_PER_S, one.wait_s(RATES_PER_S), strict=True):
                total = overall_s(thesis, case, "mutual", float(wait))
                if np.isfinite(total) and total <= 100.0:
                    values.append({_RATE: float(rate), y: round(total, 5), "certificates": case.name})
        yield Drawing(
            f"4.{43 + level}",
            f"Whole mutual handshakes on CSD with the queue, level {level} of end certificates",
            "Equation 3.1 with tables 4.1 and 4.12 and one wait in the "
            "queue. Each curve ends where its queue becomes unstable.",
            "modelled",
            charts.lines(
                values,
                _RATE,
                y,
                "certificates",
                log_y=True,
                y_min=5.0,
                y_max=100.0,
                x_max=float(RATES_PER_S[-1]),
            ),
            values,
        )
