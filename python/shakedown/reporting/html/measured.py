"""Measured handshakes in the report: the table of all, the parts of time and bytes, and each in detail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from shakedown.reporting.charts.figure import Figure
from shakedown.reporting.charts.sides import Segment, stacked_bars
from shakedown.reporting.charts.timeline import traced, waterfall
from shakedown.reporting.columns import Row
from shakedown.reporting.columns.measured import (
    CLASS_WORDS,
    HANDSHAKES,
    MESSAGES,
    by_scenario,
    count_round_trips,
    mean_digits,
    message_rows,
    uncertainty,
)
from shakedown.reporting.figures import (
    share,
    time_us,
    whole,
)
from shakedown.reporting.html.cases import cases_section
from shakedown.reporting.html.measured_findings import answer as answer
from shakedown.reporting.html.measured_findings import findings as findings
from shakedown.reporting.html.section import Block, Section
from shakedown.reporting.html.tables import html_table
from shakedown.schema.base import CLASSES, SIDES

if TYPE_CHECKING:
    from shakedown.results.folder import Results

MAX_OPEN_WATERFALLS = 16
"""If there are more suites, each waterfall is folded."""

MAX_BARS = 100
"""Handshakes in a figure of bars; its CSV contains all."""

MAX_WATERFALLS = 100
"""Handshakes that are drawn in detail; the table contains all."""

_CONTENT = {
    "ClientHello": "hello",
    "ServerHello": "hello",
    "HelloRetryRequest": "hello",
    "HelloVerifyRequest": "hello",
    "ServerKeyExchange": "key",
    "ClientKeyExchange": "key",
    "Certificate": "signature",
    "CertificateRequest": "signature",
    "CertificateVerify": "signature",
    "CertificateStatus": "signature",
}
_CONTENT_WORDS = {
    "hello": "hello",
    "key": "key exchange",
    "signature": "certificates, signatures",
    "common": "finishing",
}


def sections(results: Results) -> Iterator[Section]:
    rows = results.handshakes.to_dicts()
    if not rows:
        return
    messages, operations = by_scenario(results.messages), by_scenario(results.operations)
    yield overview(rows)
    yield from cases_section(rows, messages, operations)
    yield time_section(rows)
    yield bytes_section(rows, messages)
    yield waterfalls(rows, messages, operations)


def overview(rows: Sequence[Row]) -> Section:
    """The table of all handshakes; those that presented the user's certificates are marked."""
    caption = (
        "Time is mean CPU time of one side for one handshake; ± is the 95 % interval of the mean, where "
        "wide. Key exchange and signatures are public-key operations, other is all else; the three add up to "
        "the mean. Bytes are those on the wire, both ways."
    )
    if any(row["client_peak_bytes"] is not None for row in rows):
        caption += " Memory is the most that a side holds for one connection."
    if any(row["user_supplied"] for row in rows):
        caption += " Yours: which of the two sides presented your certificates."
    table = html_table(HANDSHAKES, rows, caption, "measured")
    return Section("overview", "All handshakes", "", [Block(table=table)])


def time_section(rows: Sequence[Row]) -> Section:
    segments, totals, data = [], [], []
    for row in rows:
        for side in SIDES:
            totals.append(time_us(row[f"{side}_us"], mean_digits(row, side)))
            spread = f" ± {share(uncertainty(row, side), 1)} (95 % interval)"
            for kind in CLASSES:
                mean_us = row[f"{side}_{kind}_us"]
                drawn_ms = max(mean_us, 0.0) / 1000
                segments.append(Segment(row["label"], side, CLASS_WORDS[kind], kind, drawn_ms, spread))
                about = {"suite": row["label"], "side": side, "class": kind}
                data.append({**about, "mean_us": mean_us, "kind": "measured"})
    figure = Figure(
        name="time",
        title="CPU time of each side, by class of work",
        kind="measured",
        alternative="Stacked bars: mean CPU time per handshake of client and server, by class, per suite",
        define=lambda width: stacked_bars(*_first(segments, totals), "ms of CPU time (mean)", width),
        data=data,
        caption="Means, so that the pieces add up. Other: everything except public-key operations."
        + _how_many(rows),
    )
    return Section("time", "Where the time goes", "", [Block(figure=figure)])


def bytes_section(rows: Sequence[Row], messages: Mapping[str, Sequence[Row]]) -> Section:
    segments, totals, data = [], [], []
    for row in rows:
        for side in SIDES:
            sent: dict[str, float] = dict.fromkeys(_CONTENT_WORDS, 0.0)
            for message in messages[row["scenario"]]:
                if message["sender"] == side:
                    sent[_CONTENT.get(message["message"], "common")] += message["bytes"]
            totals.append(whole(sum(sent.values())))
            for content, size in sent.items():
                segments.append(Segment(row["label"], side, _CONTENT_WORDS[content], content, size))
                about = {"suite": row["label"], "sender": side, "content": _CONTENT_WORDS[content]}
                data.append({**about, "bytes": size, "kind": "measured"})
    figure = Figure(
        name="bytes",
        title="Bytes that each side sends, by what they carry",
        kind="measured",
        alternative="Stacked bars: bytes sent by client and server in one handshake, by content, per suite",
        define=lambda width: stacked_bars(*_first(segments, totals), "bytes on the wire", width),
        data=data,
        caption=(
            "Record headers, padding and tags are counted with their message. TLS 1.3 carries its "
            "key shares, and a resumption its ticket, in the hellos." + _how_many(rows)
        ),
    )
    return Section("bytes", "Bytes sent", "", [Block(figure=figure)])


def _first(segments: Sequence[Segment], totals: Sequence[str]) -> tuple[Sequence[Segment], Sequence[str]]:
    """The bars of as many handshakes as a figure may contain."""
    suites = set(list(dict.fromkeys(one.suite for one in segments))[:MAX_BARS])
    return [one for one in segments if one.suite in suites], totals[: len(SIDES) * MAX_BARS]


def _how_many(rows: Sequence[Row]) -> str:
    return f" The first {MAX_BARS} of {len(rows):,}; the CSV has all." if len(rows) > MAX_BARS else ""


def waterfalls(
    rows: Sequence[Row], messages: Mapping[str, Sequence[Row]], operations: Mapping[str, Sequence[Row]]
) -> Section:
    folded = len(rows) > MAX_OPEN_WATERFALLS
    blocks = [
        waterfall_block(row, messages[row["scenario"]], operations.get(row["scenario"], ()), folded)
        for row in rows[:MAX_WATERFALLS]
    ]
    lead = (
        "Each handshake on its own scale, as it ran in memory: one side works at a time and the network "
        "takes none, so an arrow has no width. Light blocks are messages at work, generated by their sender "
        "and then processed by the other side; the operations inside them stand first in their block, since "
        "their order within a message is not recorded."
    )
    if len(rows) > MAX_WATERFALLS:
        lead += f" The first {MAX_WATERFALLS} of {len(rows):,}."
    return Section("waterfalls", "Inside each handshake", lead, blocks)


def waterfall_block(
    row: Row, messages: Sequence[Row], operations: Sequence[Row], folded: bool = False
) -> Block:
    """One handshake: its drawing, and its messages with their operations."""
    found = message_rows(row, messages, operations)
    data = [
        {
            "suite": row["label"],
            "message": message["message_index"] + 1,
            "from": message["sender"],
            "name": message["message"],
            "flight": message["flight"],
            "unit": message["message_unit"],
            "bytes": message["bytes"],
            "generate_mean_us": message["generate_us"],
            "process_mean_us": message["process_us"],
            "public_key_operations": one["operations"].replace("\n", "; "),
            "kind": "measured",
        }
        for message, one in zip(messages, found, strict=False)
    ]
    figure = Figure(
        name=f"waterfall-{slug(row['label'])}",
        title=row["label"],
        kind="measured",
        alternative=f"Timeline of {row['label']}: messages on two lanes, client and server; flights between",
        define=lambda width: waterfall(messages, operations, width),
        data=data,
        caption=(
            f"Unattributed, outside any message: client {time_us(row['client_unattributed_us'])}, "
            f"server {time_us(row['server_unattributed_us'])}; not drawn. Numbers are those of the table."
        ),
        trace=traced(messages, operations),
    )
    means = (f"{side} {time_us(row[f'{side}_us'], mean_digits(row, side))}" for side in SIDES)
    summary = f"{', '.join(means)}, {whole(row['bytes'])} bytes, {count_round_trips(row['flights'])}"
    if row["user_supplied"]:
        summary += f"; your certificates on the {row['user_supplied']}'s side"
    table = html_table(MESSAGES, found, kind="measured")
    return Block(row["label"], summary, figure, table, "Message by message", folded, suite=row["label"])


def slug(label: str) -> str:
    return "".join(one if one.isalnum() or one in "._-" else "-" for one in label.replace(" · ", "-"))[:120]
