"""The parts that every report has, from the table of all suites to where the figures come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shakedown.measurement import CLASSES, SIDES, Measurement, Operation, time_by_class_us
from shakedown.report.bars import Segment, stacked_bars
from shakedown.report.figure import Figure
from shakedown.report.section import Block, Section, Table
from shakedown.report.waterfall import waterfall
from shakedown.report.words import count_round_trips, duration, mean_us
from shakedown.results.folder import Results
from shakedown.units import seconds

if TYPE_CHECKING:
    from shakedown.results.captures import Capture

MOST_OPEN_WATERFALLS = 16
"""With more suites than these, each waterfall is folded behind its name."""

_CLASS_WORDS = {"key": "key exchange", "signature": "signature", "common": "common"}
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


def overview(results: Results) -> Section | None:
    """The table of all suites; those that showed the user's own certificates are marked."""
    if not results.measurements:
        return None
    owned = any(whose_own(one) for one in results.measurements)
    remembered = any(one.get("memory") is not None for one in results.measurements)
    rows = []
    for one in results.measurements:
        cells = [
            one["suite"],
            *([whose_own(one) or "–"] if owned else []),
            f"{one['bytes']['total']:,.0f}",
            f"{one['flights'] / 2:g}",
        ]
        for side in SIDES:
            split = time_by_class_us(one, side)
            spread = one["handshake"]["client_us" if side == "client" else "server_us"]
            share = spread["sd"] / spread["mean"] if spread["mean"] else 0.0
            cells.append(f"{_ms(spread['mean'])} ± {share:.0%}")
            cells += [_ms(split[kind]) if split[kind] else "–" for kind in CLASSES]
        memory = one.get("memory")
        if memory is not None:
            peaks = (memory["client_peak_bytes"], memory["server_peak_bytes"])
            cells += [f"{peak / 1024:,.0f}" for peak in peaks]
        elif remembered:
            cells += ["–", "–"]
        rows.append(cells)
    head = ["suite", *(["yours"] if owned else []), "bytes", "round trips"]
    for side in SIDES:
        head += [f"{side}, ms", "key", "sign", "rest"]
    caption = (
        "Time is CPU time of one side for one handshake, mean ± standard deviation in milliseconds; "
        "key and sign are its public-key operations, rest is all other work; the three add up to the mean. "
        "Bytes are those on the wire, both ways."
    )
    if remembered:
        head += ["client memory, KiB", "server memory, KiB"]
        caption += " Memory is the most that a side holds for one connection."
    if owned:
        caption += " Yours: whose of the two sides showed your own certificates."
    table = Table(head, rows, len(head) - (2 if owned else 1), caption, "measured")
    return Section("overview", "All handshakes", "", [Block(table=table)])


def whose_own(measurement: Measurement) -> str:
    """Which sides showed the user's own certificates; nothing where none did."""
    sides = [side for side, whose in measurement.get("certificates", {}).items() if whose == "own"]
    return " and ".join(sides)


def time_section(results: Results) -> Section | None:
    """Time by side and class."""
    if not results.measurements:
        return None
    segments, totals, data = [], [], []
    for one in results.measurements:
        for side in SIDES:
            split = time_by_class_us(one, side)
            totals.append(duration(mean_us(one, side)))
            for kind in CLASSES:
                segments.append(
                    Segment(one["suite"], side, _CLASS_WORDS[kind], kind, max(split[kind], 0.0) / 1000)
                )
                data.append(
                    {
                        "suite": one["suite"],
                        "side": side,
                        "class": kind,
                        "mean_us": split[kind],
                        "kind": one["kind"],
                    }
                )
    figure = Figure(
        name="time",
        title="CPU time of each side, by class of work",
        kind="measured",
        alternative="Stacked bars: mean CPU time per handshake of client and server, by class, per suite",
        define=lambda width: stacked_bars(segments, "ms of CPU time (mean)", totals, width),
        data=data,
        caption="Means, so that the pieces add up. Common is all that is no public-key operation.",
    )
    return Section("time", "Where the time goes", "", [Block(figure=figure)])


def bytes_section(results: Results) -> Section | None:
    """Bytes by sender and content."""
    if not results.measurements:
        return None
    segments, totals, data = [], [], []
    for one in results.measurements:
        for side in SIDES:
            sent: dict[str, float] = dict.fromkeys(_CONTENT_WORDS, 0.0)
            for message in one["messages"]:
                if message["from"] == side:
                    sent[_CONTENT.get(message["name"], "common")] += message["bytes"]
            totals.append(f"{sum(sent.values()):,.0f}")
            for content, size in sent.items():
                segments.append(Segment(one["suite"], side, _CONTENT_WORDS[content], content, size))
                data.append(
                    {
                        "suite": one["suite"],
                        "sender": side,
                        "content": _CONTENT_WORDS[content],
                        "bytes": size,
                        "kind": one["kind"],
                    }
                )
    figure = Figure(
        name="bytes",
        title="Bytes that each side sends, by what they carry",
        kind="measured",
        alternative="Stacked bars: bytes sent by client and server in one handshake, by content, per suite",
        define=lambda width: stacked_bars(segments, "bytes on the wire", totals, width),
        data=data,
        caption=(
            "Record headers, padding and tags are counted with their message. TLS 1.3 carries its "
            "key shares, and a resumption its ticket, in the hellos."
        ),
    )
    return Section("bytes", "What travels", "", [Block(figure=figure)])


def waterfalls(results: Results) -> Section | None:
    """Every handshake in time, message by message."""
    if not results.measurements:
        return None
    folded = len(results.measurements) > MOST_OPEN_WATERFALLS
    blocks = [_waterfall_block(one, folded) for one in results.measurements]
    lead = (
        "Each handshake on its own scale, as it ran in memory: one side works at a time and the network "
        "takes none, so an arrow is a moment. Light blocks are messages at work, generated by their sender "
        "and then processed by the other side; the operations inside them stand first in their block, since "
        "their order within a message is not recorded."
    )
    return Section("waterfalls", "Inside each handshake", lead, blocks)


def _waterfall_block(one: Measurement, folded: bool) -> Block:
    rows, data = [], []
    for message in one["messages"]:
        operations = [op for op in one["operations"] if op["message"] == message["index"]]
        public = [
            f"{operation['side']} {_words(operation)} {duration(operation['mean_us'])}"
            for operation in operations
            if operation["class"] != "common"
        ]
        flight = "–" if message["flight"] is None else str(message["flight"])
        rows.append(
            [
                f"{message['index'] + 1}",
                f"{message['from']}: {message['name']}",
                "; ".join(public) or "–",
                flight,
                f"{message['bytes']:,.0f}",
                f"{message['generate_mean_us']:,.1f}",
                f"{message['process_mean_us']:,.1f}",
            ]
        )
        data.append(
            {
                "suite": one["suite"],
                "message": message["index"] + 1,
                "from": message["from"],
                "name": message["name"],
                "flight": message["flight"],
                "bytes": message["bytes"],
                "generate_mean_us": message["generate_mean_us"],
                "process_mean_us": message["process_mean_us"],
                "public_key_operations": "; ".join(public),
                "kind": one["kind"],
            }
        )
    outside = one["unattributed_us"]
    figure = Figure(
        name=f"waterfall-{slug(one['suite'])}",
        title=one["suite"],
        kind=one["kind"],
        alternative=f"Timeline of {one['suite']}: messages on two lanes, client and server; flights between",
        define=lambda width: waterfall(one, width),
        data=data,
        caption=(
            f"Outside any message: client {duration(outside['client_mean'])}, "
            f"server {duration(outside['server_mean'])}; not drawn. Numbers are those of the table."
        ),
    )
    summary = (
        f"client {duration(mean_us(one, 'client'))}, server {duration(mean_us(one, 'server'))}, "
        f"{one['bytes']['total']:,.0f} bytes, {count_round_trips(one['flights'])}"
    )
    if whose_own(one):
        summary += f"; your certificates on the {whose_own(one)}'s side"
    table = Table(
        ["#", "message", "public-key operations (mean)", "flight", "bytes", "generate, µs", "process, µs"],
        rows,
        4,
        kind=one["kind"],
    )
    return Block(one["suite"], summary, figure, table, "Message by message", folded)


def provenance(results: Results) -> Section:
    """What made these figures, so that somebody else can make them again."""
    manifest = results.manifest
    build = manifest.get("build") or {}
    stacks = sorted({f"{one['client_stack']['name']} {one['client_stack']['version']}" for one in results.measurements})
    clocks = sorted({one["clock"] for one in results.measurements})
    used = sorted({one["repeat"] for one in results.measurements})
    preempted = sum(one["preempted"] for one in results.measurements)
    facts: dict[str, Any] = {
        "date": manifest.get("created"),
        "machine": _facts(manifest.get("machine") or {}),
        "stack": ", ".join(stacks),
        "build": _facts(build),
        "clock": ", ".join(clocks),
        "repetitions": f"{', '.join(map(str, used))} of each suite; {preempted} preempted ones thrown away"
        if used
        else None,
        "captures": "; ".join(_capture_facts(one) for one in results.captures),
        "seed": manifest.get("seed"),
        "command": " ".join(manifest.get("command") or []),
        "ended": manifest.get("ended"),
        "not measured": "; ".join(f"{f['suite']}: {f['reason']}" for f in manifest.get("failures") or []),
        "provenance": manifest.get("provenance"),
    }
    rows = [[name, str(value)] for name, value in facts.items() if value not in (None, "")]
    return Section("provenance", "Where the figures come from", "", [Block(table=Table(["", ""], rows, 0))])


def _capture_facts(capture: Capture) -> str:
    """What was read of a capture, in a line."""
    summary = capture["summary"]
    if not summary:
        return capture["capture"]
    key_log = f" with {capture['keylog']}" if capture["keylog"] else ", no key log"
    return (
        f"{capture['capture']}{key_log}: {summary['packets']:,} packets over {seconds(summary['duration_s'])}"
    )


def _facts(facts: Mapping[str, Any]) -> str:
    """A flat line of a machine's or a build's description, units put beside their figures."""
    words = []
    for name, value in facts.items():
        if value in (None, "", [], {}):
            continue
        plain = name.replace("_", " ")
        if name.endswith("_bytes") and isinstance(value, (int, float)):
            words.append(f"{plain.removesuffix(' bytes')} {value / 2**30:.1f} GiB")
        elif name.endswith("_hz") and isinstance(value, (int, float)):
            words.append(f"{plain.removesuffix(' hz')} {value / 1e9:.2f} GHz")
        else:
            words.append(f"{plain} {value}")
    return ", ".join(words)


def _words(operation: Operation) -> str:
    """`sign rsa2048`, `derive ecdh p256`: the algorithm only where its parameters don't say it."""
    parameters = operation["parameters"] or ""
    named = (
        parameters
        if parameters.startswith(operation["algorithm"])
        else f"{operation['algorithm']} {parameters}"
    )
    return f"{operation['operation']} {named}".rstrip()


def slug(suite: str) -> str:
    """A suite's name as a file's."""
    return suite.replace("/", "-").replace("+", "-").replace("@", "-")


def _ms(microseconds: float) -> str:
    value = microseconds / 1000
    return f"{value:,.{3 if value < 0.1 else 2 if value < 10 else 1}f}"
