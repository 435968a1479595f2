"""Measured handshakes in the report: the table of all, where time and bytes go, each from inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from shakedown.reporting.charts.figure import Figure
from shakedown.reporting.charts.sides import Segment, stacked_bars
from shakedown.reporting.charts.timeline import traced, waterfall
from shakedown.reporting.columns import Row, html_table
from shakedown.reporting.columns.measured import (
    CLASS_WORDS,
    HANDSHAKES,
    MESSAGES,
    by_scenario,
    count_round_trips,
    message_rows,
    uncertainty,
)
from shakedown.reporting.html.cases import cases_section
from shakedown.reporting.html.section import Block, Section
from shakedown.reporting.html.text import Sentence, sentence
from shakedown.reporting.terminal.figures import (
    count,
    share,
    time_us,
    times,
    whole,
)
from shakedown.schema.base import CLASSES, SIDES

if TYPE_CHECKING:
    from shakedown.results.folder import Results

MAX_OPEN_WATERFALLS = 16
"""With more suites than these, each waterfall is folded behind its name."""

MAX_BARS = 100
"""Handshakes of a figure of bars; its CSV has all."""

MAX_WATERFALLS = 100
"""Handshakes that are drawn from inside; all are in the table."""

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
    """The parts of the page that measured handshakes have."""
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
    """Time by side and class."""
    segments, totals, data = [], [], []
    for row in rows:
        for side in SIDES:
            totals.append(time_us(row[f"{side}_us"]))
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
    """Bytes by sender and content."""
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
    """The bars of as many handshakes as a figure shows."""
    suites = set(list(dict.fromkeys(one.suite for one in segments))[:MAX_BARS])
    return [one for one in segments if one.suite in suites], totals[: len(SIDES) * MAX_BARS]


def _how_many(rows: Sequence[Row]) -> str:
    return f" The first {MAX_BARS} of {len(rows):,}; the CSV has all." if len(rows) > MAX_BARS else ""


def waterfalls(
    rows: Sequence[Row], messages: Mapping[str, Sequence[Row]], operations: Mapping[str, Sequence[Row]]
) -> Section:
    """Every handshake in time, message by message."""
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
    summary = (
        f"client {time_us(row['client_us'])}, server {time_us(row['server_us'])}, "
        f"{whole(row['bytes'])} bytes, {count_round_trips(row['flights'])}"
    )
    if row["user_supplied"]:
        summary += f"; your certificates on the {row['user_supplied']}'s side"
    table = html_table(MESSAGES, found, kind="measured")
    return Block(row["label"], summary, figure, table, "Message by message", folded, suite=row["label"])


def slug(label: str) -> str:
    """A handshake's name as a file's."""
    return "".join(one if one.isalnum() or one in "._-" else "-" for one in label.replace(" · ", "-"))[:120]


def both_us(row: Row) -> float:
    """Mean time of a whole handshake, both sides together."""
    return float(row["client_us"] + row["server_us"])


def answer(results: Results) -> list[Sentence]:
    """One sentence on time and one on bytes: the least, the most, and how far apart they are."""
    rows = results.handshakes.to_dicts()
    if not rows:
        return []
    if len(rows) == 1:
        return [_single(rows[0])]
    least, most = min(rows, key=both_us), max(rows, key=both_us)
    small, large = min(rows, key=lambda row: row["bytes"]), max(rows, key=lambda row: row["bytes"])
    return [
        sentence(
            f"Of {count(len(rows), 'handshake')}, {{least}} takes the least time, {{!low}} of both sides "
            f"together, and {{most}} the most, {{!high}}: {times(both_us(most) / both_us(least))} as long.",
            least=least["label"],
            low=time_us(both_us(least)),
            most=most["label"],
            high=time_us(both_us(most)),
        ),
        sentence(
            "On the wire they take from {!few} ({small}) to {!many} ({large}).",
            few=f"{whole(small['bytes'])} bytes",
            small=small["label"],
            many=f"{whole(large['bytes'])} bytes",
            large=large["label"],
        ),
    ]


def _single(row: Row) -> Sentence:
    return sentence(
        f"{{suite}} costs the client {{!client}} and the server {{!server}}, and {{!bytes}} on the wire in "
        f"{count_round_trips(row['flights'])}.",
        suite=row["label"],
        client=time_us(row["client_us"]),
        server=time_us(row["server_us"]),
        bytes=f"{whole(row['bytes'])} bytes",
    )


def findings(results: Results) -> list[Sentence]:
    """What stands out, where the suites allow the comparison."""
    rows = {row["label"]: row for row in results.handshakes.to_dicts()}
    made = (find(rows) for find in (_resumption, _mutual, _post_quantum, _heaviest_part))
    return [found for found in made if found]


def _pairs(rows: Mapping[str, Row], old: str, new: str) -> list[tuple[str, str]]:
    """Suites whose names differ in one part only: `old` in the first is `new` in the second."""
    renamed = {
        suite: "/".join(part for part in (new if part == old else part for part in suite.split("/")) if part)
        for suite in rows
        if old in suite.split("/")
    }
    return [(suite, other) for suite, other in renamed.items() if other in rows and other != suite]


def _resumption(rows: Mapping[str, Row]) -> Sentence | None:
    pairs = [(full, resumed) for resumed, full in _pairs(rows, "resumed", "")]
    if not pairs:
        return None
    saved = {pair: 1 - both_us(rows[pair[1]]) / both_us(rows[pair[0]]) for pair in pairs}
    full, resumed = max(saved, key=saved.__getitem__)
    verb = "saves" if saved[full, resumed] >= 0 else "adds"
    return sentence(
        f"Resuming {{full}} {verb} {{!part}} of the time of both sides, and takes "
        f"{whole(rows[resumed]['bytes'])} bytes instead of {whole(rows[full]['bytes'])}.",
        full=full,
        part=share(abs(saved[full, resumed])),
    )


def _mutual(rows: Mapping[str, Row]) -> Sentence | None:
    pairs = _pairs(rows, "server", "mutual") or _pairs(rows, "requested", "mutual")
    if not pairs:
        return None
    one_way, mutual = pairs[0]
    ratio = rows[mutual]["client_us"] / rows[one_way]["client_us"]
    more = rows[mutual]["bytes"] - rows[one_way]["bytes"]
    than = "as long as" if ratio >= 1 else "less than"
    return sentence(
        f"When the client must authenticate too ({{mutual}}), it works {{!ratio}} {than} with the server's "
        f"certificate alone, and {whole(more)} more bytes are sent.",
        mutual=mutual,
        ratio=times(ratio) if ratio >= 1 else share(1 - ratio),
    )


def _post_quantum(rows: Mapping[str, Row]) -> Sentence | None:
    def rest(suite: str) -> tuple[str, ...]:
        parts = suite.split("/")
        return (parts[0], *parts[3:])

    classical: dict[tuple[str, ...], str] = {
        rest(suite): suite
        for suite in reversed(list(rows))
        if "mlkem" not in suite and "mldsa" not in suite and len(suite.split("/")) >= 3
    }
    for suite in rows:
        old = classical.get(rest(suite))
        if "mlkem" in suite and "mldsa" in suite and old is not None:
            now, then = rows[suite], rows[old]
            return sentence(
                "Post-quantum {suite} sends {!bytes} the bytes of {old} and takes {!time} its time.",
                suite=suite,
                bytes=times(now["bytes"] / then["bytes"]),
                old=old,
                time=times(both_us(now) / both_us(then)),
            )
    return None


def _heaviest_part(rows: Mapping[str, Row]) -> Sentence | None:
    shares = {}
    for suite, row in rows.items():
        public = sum(row[f"{side}_{kind}_us"] for side in SIDES for kind in ("key", "signature"))
        if public:
            shares[suite] = public / both_us(row)
    if not shares:
        return None
    least, most = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    if least == most:
        return sentence("Public-key operations are {!part} of its time.", part=share(shares[most]))
    return sentence(
        "Where there are public-key operations, they are {!low} ({least}) to {!high} ({most}) of the time; "
        "the rest is symmetric work, parsing and bookkeeping.",
        low=share(shares[least]),
        least=least,
        high=share(shares[most]),
        most=most,
    )
