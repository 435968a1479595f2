"""A row for each numeric cell of the thesis's result tables, from its own inputs, and for queue points."""

from __future__ import annotations

from collections.abc import Iterator

from shakedown.papers.load import PaperData
from shakedown.papers.thesis import network
from shakedown.papers.thesis.additive import Primitives
from shakedown.papers.thesis.inputs import (
    AUTHENTICATIONS,
    COLUMNS,
    DELAYS,
    SIZES,
    TIME_TABLES,
    WORDS,
    Thesis,
    share_cells,
)
from shakedown.papers.thesis.messages import handshake_bytes
from shakedown.papers.thesis.queue import points, span_words
from shakedown.papers.verdicts import cell_row, input_row
from shakedown.schema.base import SIDES
from shakedown.schema.replication import Row

TIME_TOLERANCE, SHARE_TOLERANCE, DELAY_TOLERANCE = "5 %", "1", "10 %"
"""Tolerances of processing times, of shares (in percentage points), and of transmission delays."""

_INPUT = "an input: measured by the author, and not derived from other figures"


def cells(data: PaperData) -> list[Row]:
    """Rows for tables 4.1 to 4.15 and figures 4.25 to 4.38, then for queue points in the text."""
    thesis = Thesis(data)
    primitives = Primitives(thesis)
    return [
        *_times(thesis, primitives),
        *_shares(thesis, primitives),
        *_sizes_and_delays(thesis),
        *_gprs(data),
        *_comparison(thesis),
        *_points(thesis),
    ]


def _times(thesis: Thesis, primitives: Primitives) -> Iterator[Row]:
    for authentication in AUTHENTICATIONS:
        number, table = TIME_TABLES[authentication]
        for case in thesis.cases:
            for side in SIDES:
                yield cell_row(
                    f"table {number}, {case.name}",
                    f"{side}'s processing time, {WORDS[authentication]}",
                    "ms",
                    thesis.printed(table, case)[f"{side}_ms"],
                    1e3 * primitives.time_s(case, authentication, side),
                    TIME_TOLERANCE,
                    "sum of its primitives' medians over all cases",
                )


def _shares(thesis: Thesis, primitives: Primitives) -> Iterator[Row]:
    for number, table, case, authentication, side, column in share_cells(thesis):
        yield cell_row(
            f"table {number}, {case.name}",
            f"{side}'s share, {WORDS[authentication]}: {COLUMNS[column]}",
            "%",
            thesis.printed(table, case)[column],
            primitives.share(case, authentication, side, column),
            SHARE_TOLERANCE,
            "from its primitives' medians over all cases; tolerance in percentage points",
        )


def _sizes_and_delays(thesis: Thesis) -> Iterator[Row]:
    for case in thesis.cases:
        for authentication in AUTHENTICATIONS:
            yield cell_row(
                f"table 4.11, {case.name}",
                f"handshake data, {WORDS[authentication]}",
                "bytes",
                thesis.printed(SIZES, case)[f"{authentication}_bytes"],
                handshake_bytes(thesis, case, authentication),
                "exact",
                "the family's first case, plus the differences in signatures and public keys",
            )
    for case in thesis.cases:
        for authentication in AUTHENTICATIONS:
            yield cell_row(
                f"table 4.12, {case.name}",
                f"transmission delay on CSD, {WORDS[authentication]}",
                "ms",
                thesis.printed(DELAYS, case)[f"{authentication}_ms"],
                1e3 * network.csd_predicted_s(thesis, case, authentication),
                DELAY_TOLERANCE,
                "equation 3.84 with the mean traversal delay of 391.3 ms",
            )


def _gprs(data: PaperData) -> Iterator[Row]:
    for row in data.tables[network.RATES].rows:
        for way in ("upload", "download"):
            yield input_row(
                f"table 4.13, {row['time_slot']}",
                f"GPRS {way} rate",
                "kbit/s",
                row[f"{way}_kbps"],
                _INPUT,
            )
    for row in data.tables[network.PINGS].rows:
        yield input_row(
            f"figure {row['figure']}, {row['time_slot']}",
            "mean GPRS round trip of a ping",
            "ms",
            row["average_rtt_ms"],
            _INPUT,
        )
    averages = data.tables["figures_4_32_to_4_38_gprs_average_traversal"]
    for row in averages.rows:
        yield _traversal(
            data, f"figure {row['figure']}", row["time_slot"], row["average_traversal_ms"], with_8=True
        )
    for row in data.tables[network.TRAVERSALS].rows:
        yield _traversal(data, "table 4.14", row["time_slot"], row["mean_ms"], with_8=True)
        yield input_row(
            f"table 4.14, {row['time_slot']}",
            "standard deviation of the GPRS traversal delay",
            "ms",
            row["sd_ms"],
            "an input: the single pings were never published",
        )
    for row in data.tables[network.TRAVERSALS].rows:
        yield _traversal(
            data, "table 4.14 without the factor 8", row["time_slot"], row["mean_ms"], with_8=False
        )


def _traversal(data: PaperData, item: str, slot: str, printed: str, *, with_8: bool) -> Row:
    other = network.gprs_traversal_ms(data, slot, as_computed=with_8)
    return cell_row(
        f"{item}, {slot}",
        "mean GPRS traversal delay" + ("" if with_8 else ", rates times bytes instead of bits"),
        "ms",
        printed,
        network.gprs_traversal_ms(data, slot, as_computed=not with_8),
        "0.1",
        f"equation 4.2 as printed; without its factor 8: {other:.1f} ms, which is what the thesis computed"
        if with_8
        else "equation 4.2 without its factor 8: the error in the printed means",
    )


def _comparison(thesis: Thesis) -> Iterator[Row]:
    data = thesis.data
    tau_s = network.csd_traversal_s(thesis)
    for row in data.tables[network.COMPARISON].rows:
        slot = network.SLOT_OF_CASE.get(row["case"])
        item = f"table 4.15, {row['bearer']} {row['case']}"
        if slot is None:
            replication = {"mean_ms": 1e3 * float(tau_s.mean()), "sd_ms": 1e3 * float(tau_s.std(ddof=1))}
            reason = "equation 4.1 over the 48 cases, sample deviation"
        else:
            replication = {
                "mean_ms": network.gprs_traversal_ms(data, slot, as_computed=False),
                "sd_ms": float(data.tables[network.TRAVERSALS].one(time_slot=slot)["sd_ms"]),
            }
            reason = f"{slot}: equation 4.2 as printed; the printed mean lacks its factor 8"
        for column, words in (("mean_ms", "mean traversal delay"), ("sd_ms", "its standard deviation")):
            yield cell_row(
                item,
                words,
                "ms",
                row[column],
                replication[column],
                "0.05",
                reason if slot is None or column == "mean_ms" else f"{slot} of table 4.14",
            )


def _points(thesis: Thesis) -> Iterator[Row]:
    """For each published point of the queue: the rate at which its wait occurs, and the true capacity."""
    for point in points(thesis):
        low, high = point.rates_here_per_s()
        middle = (low + high) / 2
        words = span_words(low, high)
        wait = " to ".join(f"{one:g}" for one in dict.fromkeys(point.waits_ms))
        item = f"queue point, {point.what}: {point.rate_per_s:g}/s, {wait} ms"
        yield cell_row(
            item,
            "messages per second at which the printed wait occurs",
            "messages/s",
            f"{point.rate_per_s:g}",
            middle,
            "10 %",
            f"equation 3.12 solved for the rate: {words} messages/s",
        )
        capacities = point.capacities_per_s()
        yield cell_row(
            item,
            "capacity in handshakes per second, 1 over the server's time for one",
            "handshakes/s",
            f"{point.rate_per_s:g}",
            sum(capacities) / 2,
            "10 %",
            f"{span_words(*capacities)} handshakes/s: the published rate counts messages, "
            f"{point.queues[0].messages} to a handshake, and leaves work out",
        )
