"""Captures in the report: their connections, and each handshake message by message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from shakedown.reporting.charts.figure import Figure
from shakedown.reporting.charts.ladder import ladder, traced
from shakedown.reporting.columns import Row
from shakedown.reporting.columns.captured import CONNECTIONS, KINDS, MESSAGES, kind_name, waited
from shakedown.reporting.columns.measured import count_round_trips
from shakedown.reporting.figures import count, time, whole
from shakedown.reporting.html.modelled import captured_blocks, outlook
from shakedown.reporting.html.section import Block, Section, Table
from shakedown.reporting.html.tables import html_table
from shakedown.reporting.html.text import Piece, Sentence, plain, sentence
from shakedown.results import queries
from shakedown.schema.base import SIDES

if TYPE_CHECKING:
    from shakedown.results.folder import Results

MAX_LADDERS = 8
"""Limit of the drawn handshakes of a capture; those that make a trace come first."""

MAX_OPEN_LADDERS = 3
"""Number of drawings that are open; the others are folded."""


class _Capture:
    """The rows of one capture in the views."""

    def __init__(self, results: Results, about: Row) -> None:
        here = pl.col("scenario") == about["scenario"]
        self.about = about
        self.name: str = about["capture"]
        self.total: int = about["connections"]
        self.kinds = queries.capture_kinds(results).filter(here).to_dicts()
        self.connections = queries.connections(results).filter(here).to_dicts()
        notes = queries.connection_notes(results)
        self.notes = {at: note for (scenario, at), note in notes.items() if scenario == about["scenario"]}
        self.messages: dict[int, list[Row]] = {}
        for message in queries.captured_messages(results).filter(here).to_dicts():
            self.messages.setdefault(message["connection"], []).append(message)


def _captures(results: Results) -> list[_Capture]:
    return [_Capture(results, about) for about in queries.captures(results).to_dicts()]


def sections(results: Results) -> Iterator[Section]:
    """The captures, one after the other, then the estimates for them."""
    captures = _captures(results)
    if not captures:
        return
    blocks: list[Block] = []
    for number, capture in enumerate(captures, start=1):
        blocks += _blocks(number, capture)
    connections = (one for capture in captures for one in capture.connections)
    estimable = any(one["suite"] is not None and one["refused"] is None for one in connections)
    blocks += captured_blocks(results, estimable=estimable)
    leads = [*(_lead(capture) for capture in captures), plain(outlook(results))]
    yield Section("captures", "From your captures", " ".join(leads).strip(), blocks)


def answer(results: Results) -> list[Sentence]:
    """A sentence for each capture about its most frequent handshake."""
    sentences: list[Sentence] = []
    for capture in _captures(results):
        usual = next((kind for kind in capture.kinds if kind["complete"]), None)
        if usual is None:
            continue
        template = "In {capture}, {suite} ({number}) takes {!bytes}"
        timed = usual["mean_s"] is not None
        ending = " and {!time} on the wire" + (" on average." if usual["count"] > 1 else ".")
        sentences.append(
            sentence(
                template + (ending if timed else "."),
                capture=Piece(capture.name),
                suite=kind_name(usual),
                number=Piece(_number(int(usual["count"]), capture)),
                bytes=f"{whole(usual['mean_bytes'])} bytes",
                time=time(usual["mean_s"], 2),
            )
        )
    return sentences


def _number(of: int, capture: _Capture) -> str:
    if capture.total == 1:
        return "its only connection"
    if of == capture.total:
        return f"all {capture.total:,} connections"
    return f"{of:,} of {count(capture.total, 'connection')}"


def _lead(capture: _Capture) -> str:
    """Sentences on the content of the capture and the causes of its waits."""
    if not capture.kinds:
        return f"{capture.name} holds no handshake."
    complete = sum(int(kind["count"]) for kind in capture.kinds if kind["complete"])
    resumed = sum(int(kind["count"]) for kind in capture.kinds if kind["resumed"])
    words = (
        f"{capture.name} holds {count(capture.total, 'connection')}, {complete:,} with a complete handshake"
    )
    words += f", {resumed:,} resumed." if resumed else "."
    shares = _shares(capture)
    if shares:
        words += f" Of the time of the handshakes shown, {shares}."
    if capture.about["problem"]:
        words += f" The file could not be read to its end: {capture.about['problem']}."
    return words


def _shares(capture: _Capture) -> str:
    """Network and peers as shares of the handshakes' time."""
    spent = {"network": 0.0, "client": 0.0, "server": 0.0}
    total = 0.0
    for messages in capture.messages.values():
        for message in messages:
            if message["flight"] is None or message["wait_s"] is None:
                continue
            total += message["wait_s"]
            spent["network"] += message["network_s"] or 0.0
            spent[message["sender"]] += message["sender_s"] or 0.0
    if total <= 0:
        return ""
    parts = {"the network": spent["network"], "the clients": spent["client"], "the servers": spent["server"]}
    shares = [f"{who} took {one / total:.0%}" for who, one in parts.items() if one / total >= 0.005]
    rest = 1 - sum(spent.values()) / total
    unknown = [f"and {rest:.0%} cannot be separated"] if shares and rest >= 0.005 else []
    return ", ".join([*shares, *unknown])


def _blocks(number: int, capture: _Capture) -> Iterator[Block]:
    if not capture.kinds:
        return
    yield Block(capture.name, _summary(capture), table=_kinds(capture))
    yield Block(table=_connections(capture), folded_table="Connection by connection")
    timed = [one for one in capture.connections if _timed(capture, one)]
    first: dict[str, int] = {}
    for one in capture.connections:
        if one["suite"] is not None and one["refused"] is None:
            first.setdefault(one["suite"], one["connection"])
    estimated = set(first.values())
    chosen = sorted(
        timed, key=lambda one: (one["connection"] not in estimated, not one["complete"], one["connection"])
    )
    for position, connection in enumerate(chosen[:MAX_LADDERS]):
        yield _ladder_block(number, capture, connection, folded=position >= MAX_OPEN_LADDERS)


def _timed(capture: _Capture, connection: Row) -> bool:
    messages = capture.messages.get(connection["connection"], ())
    return bool(messages) and all(message["time_s"] is not None for message in messages)


def _summary(capture: _Capture) -> str:
    kept = len(capture.connections)
    words = count(capture.total, "connection")
    if kept < capture.total:
        words += f", {kept:,} of them kept message by message"
    return words + ("" if capture.about["keylog"] or capture.about["packets"] is None else "; no key log")


def _kinds(capture: _Capture) -> Table:
    caption = "Every connection of the file. Handshake: from first packet to the last flight's last message."
    if capture.about["uncounted"]:
        caption += f" {count(capture.about['uncounted'], 'more connection')} are of other kinds."
    if capture.about["without_cost"]:
        caption += (
            f" No figures for these, as there are too many: {', '.join(capture.about['without_cost'])}."
        )
    return html_table(KINDS, capture.kinds, caption, "captured")


def _connections(capture: _Capture) -> Table:
    known = capture.about["packets"] is not None

    def waits(one: Row) -> dict[str, float | None]:
        messages = capture.messages.get(one["connection"], ())
        return {
            "network_s": waited(messages, "network_s"),
            **{f"{side}_wait_s": waited(messages, "sender_s", side) for side in SIDES},
        }

    rows = [
        {
            **one,
            "bytes": one["wire_bytes"],
            "state": "; ".join(_troubles(capture, one)),
            "resent": one["client_segments"] + one["server_segments"] if known else None,
            **waits(one),
            "start_s": None,
        }
        for one in capture.connections
    ]
    caption = (
        "Network, client and server: what the handshake's waits were made of, as far as the capture shows; "
        "resent: segments that were sent more than once."
    )
    if len(rows) < capture.total:
        caption += f" The first {len(rows)} of {capture.total:,}, and those that were estimated."
    return html_table(CONNECTIONS, rows, caption, "captured", most=len(rows))


def _troubles(capture: _Capture, connection: Row) -> Iterator[str]:
    """Problems of a connection that affect its figures."""
    if not connection["complete"]:
        yield "not complete"
    if connection["undecrypted_bytes"]:
        yield f"{whole(connection['undecrypted_bytes'])} bytes stayed encrypted"
    for quantity, side, text in capture.notes.get(connection["connection"], ()):
        if quantity == "connection.problem":
            yield text or ""
        elif text != "close_notify":
            yield f"{side} alert {text or 'encrypted'}"


def _ladder_block(number: int, capture: _Capture, connection: Row, folded: bool) -> Block:
    index, messages = connection["connection"], capture.messages[connection["connection"]]
    refused = (connection["refused"] or "").removeprefix(f"connection {index}: ")
    figure = Figure(
        name=f"captured-{number}-{index}",
        title=kind_name(connection),
        kind="captured",
        alternative=f"Connection {index} of {capture.name}: each message's wait, by its cause",
        define=lambda width: ladder(messages, width),
        trace=traced(messages),
        data=[
            {
                "capture": capture.name,
                "connection": index,
                "message": message["message_index"] + 1,
                "from": message["sender"],
                "name": message["message"],
                **{
                    key: message[key]
                    for key in ("flight", "bytes", "time_s", "wait_s", "network_s", "sender_s")
                },
                "kind": "captured",
            }
            for message in messages
        ],
        caption=(
            "Each bar is the wait for a message, ended by its last byte; a wait's causes are drawn one after "
            "the other, network first, whatever their order was. A message that came with the one before it "
            "has none." + (f" Not estimated: {refused}." if refused else "")
        ),
    )
    who = connection["server_name"] or connection["server"]
    summary = (
        f"connection {index}, {connection['client']} to {who}: {time(connection['handshake_s'], 2)}, "
        f"{whole(connection['wire_bytes'])} bytes, {count_round_trips(connection['flights'])}"
    )
    return Block(
        kind_name(connection),
        summary,
        figure,
        html_table(MESSAGES, messages, kind="captured"),
        "Message by message",
        folded,
    )
