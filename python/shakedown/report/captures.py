"""What captures told: connections, each priced handshake message by message, and its cost elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shakedown.report.elsewhere import time_map
from shakedown.report.figure import Figure
from shakedown.report.ladder import ladder
from shakedown.report.section import Block, Section, Table
from shakedown.report.words import Piece, Sentence, count, count_round_trips
from shakedown.results.captures import sealed_bytes, wire_bytes
from shakedown.results.folder import Results
from shakedown.terminal.captured_tables import kind_cells, kind_name
from shakedown.units import seconds

if TYPE_CHECKING:
    from shakedown.results.captures import Capture

MOST_LADDERS = 8
"""Handshakes of a capture that are drawn; those that make a trace come first."""

MOST_OPEN_LADDERS = 3
"""Of these, the ones that are not folded behind their names."""

Row = Mapping[str, Any]


def captures_section(results: Results) -> Section | None:
    """The captures, one after the other, then all that was priced of them."""
    if not results.captures:
        return None
    blocks: list[Block] = []
    for number, capture in enumerate(results.captures, start=1):
        blocks += _blocks(number, capture)
    blocks += _elsewhere(results)
    outlook = _outlook(results)
    leads = [*(_lead(capture) for capture in results.captures), "".join(piece.text for piece in outlook)]
    return Section("captures", "From your captures", " ".join(leads).strip(), blocks)


def answer(results: Results) -> list[Sentence]:
    """A sentence for each capture: how its usual handshake went; and what it would take elsewhere."""
    sentences: list[Sentence] = []
    for capture in results.captures:
        usual = next((kind for kind in capture["kinds"] if kind["complete"]), None)
        if usual is None:
            continue
        sentence = [
            Piece(f"In {capture['capture']}, "),
            Piece(kind_name(usual), suite=True),
            Piece(f" ({_number(usual['count'], capture)}) takes "),
            Piece(f"{usual['bytes'][1]:,.0f} bytes", strong=True),
        ]
        if usual["handshake_s"] is not None:
            sentence += [Piece(" and "), Piece(seconds(usual["handshake_s"][1]), strong=True)]
            sentence += [Piece(" on the wire, on the mean." if usual["count"] > 1 else " on the wire.")]
        else:
            sentence += [Piece(".")]
        sentences.append(sentence)
    outlook = _outlook(results)
    return [*sentences, outlook] if outlook else sentences


def _outlook(results: Results) -> Sentence:
    """The captured handshake where it takes longest, and the quickest measured one in the same place."""
    rows = [row for row in results.captured_predictions if row["total_s"] is not None]
    if not rows:
        return []
    lowest = min(row["rate_per_s"] for row in rows)
    first = min((row["capture"], row["connection"]) for row in rows)
    here = [
        row for row in rows if row["rate_per_s"] == lowest and (row["capture"], row["connection"]) == first
    ]
    longest = max(here, key=lambda row: float(row["total_s"]))
    sentence = [
        Piece(f"On {longest['device']} over {longest['bearer']} the captured "),
        Piece(longest["suite"], suite=True),
        Piece(" would take "),
        Piece(seconds(longest["total_s"]), strong=True),
    ]
    others = [
        row
        for row in results.predictions
        if row["total_s"] is not None
        and all(row[column] == longest[column] for column in ("device", "bearer", "rate_per_s"))
        and row["suite"] != longest["suite"]
    ]
    if not others:
        return [*sentence, Piece(".")]
    quickest = min(others, key=lambda row: float(row["total_s"]))
    return [
        *sentence,
        Piece("; the quickest of the others, "),
        Piece(quickest["suite"], suite=True),
        Piece(", "),
        Piece(seconds(quickest["total_s"]), strong=True),
        Piece("."),
    ]


def _number(of: int, capture: Capture) -> str:
    total = _total(capture)
    if total == 1:
        return "its only connection"
    return f"all {total:,} connections" if of == total > 1 else f"{of:,} of {count(total, 'connection')}"


def _total(capture: Capture) -> int:
    return sum(kind["count"] for kind in capture["kinds"]) + capture["uncounted"]


def _lead(capture: Capture) -> str:
    """What the capture holds, and what its waits were made of, in words."""
    name = capture["capture"]
    if not capture["kinds"]:
        return f"{name} holds no handshake."
    complete = sum(kind["count"] for kind in capture["kinds"] if kind["complete"])
    resumed = sum(kind["count"] for kind in capture["kinds"] if kind["resumed"])
    words = f"{name} holds {count(_total(capture), 'connection')}, {complete:,} with a complete handshake"
    words += f", {resumed:,} resumed." if resumed else "."
    shares = _shares(capture)
    if shares:
        words += f" Of the time of the handshakes shown, {shares}."
    if capture["problem"]:
        words += f" The file could not be read to its end: {capture['problem']}."
    return words


def _shares(capture: Capture) -> str:
    """Network and peers as shares of the handshakes' time."""
    spent = {"network": 0.0, "client": 0.0, "server": 0.0}
    whole = 0.0
    for connection in capture["connections"]:
        for message in connection["messages"]:
            if message["flight"] is None or message["wait_s"] is None:
                continue
            whole += message["wait_s"]
            spent["network"] += message["network_s"] or 0.0
            spent[message["from"]] += message["peer_s"] or 0.0
    if whole <= 0:
        return ""
    parts = {
        "the network": spent["network"],
        "the clients": spent["client"],
        "the servers": spent["server"],
    }
    told = [f"{who} took {share / whole:.0%}" for who, share in parts.items() if share / whole >= 0.005]
    rest = 1 - sum(spent.values()) / whole
    return ", ".join([*told, *([f"and {rest:.0%} cannot be told apart"] if told and rest >= 0.005 else [])])


def _blocks(number: int, capture: Capture) -> list[Block]:
    if not capture["kinds"]:
        return []
    blocks = [Block(capture["capture"], _summary(capture), table=_kinds(capture))]
    blocks.append(Block(table=_connections(capture), folded_table="Connection by connection"))
    priced = {one["connection"] for one in capture["traces"]}
    timed = [one for one in capture["connections"] if _timed(one)]
    chosen = sorted(timed, key=lambda one: (one["index"] not in priced, not one["complete"], one["index"]))
    for position, connection in enumerate(chosen[:MOST_LADDERS]):
        blocks.append(_ladder_block(number, capture, connection, folded=position >= MOST_OPEN_LADDERS))
    return blocks


def _timed(connection: Row) -> bool:
    return bool(connection["messages"]) and connection["messages"][0]["time_s"] is not None


def _summary(capture: Capture) -> str:
    total, kept = _total(capture), len(capture["connections"])
    words = count(total, "connection")
    if kept < total:
        words += f", {kept:,} of them kept message by message"
    return words + ("" if capture["keylog"] or not capture["summary"] else "; no key log")


def _kinds(capture: Capture) -> Table:
    rows = [kind_cells(kind) for kind in capture["kinds"]]
    if capture["uncounted"]:
        rows.append(["other kinds", f"{capture['uncounted']:,}", "–", "–", "–", "–"])
    caption = "Every connection of the file. Handshake: from first packet to the last flight's last message."
    if capture["unpriced"]:
        caption += f" Not priced, for want of room: {', '.join(capture['unpriced'])}."
    return Table(
        ["suite, as far as it was visible", "connections", "complete", "resumed", "bytes", "handshake"],
        rows,
        5,
        caption,
        "captured",
    )


def _connections(capture: Capture) -> Table:
    rows = []
    for one in capture["connections"]:
        again = one["retransmissions"]
        segments = (
            "–"
            if again is None
            else f"{again['client_to_server']['segments'] + again['server_to_client']['segments']:,}"
        )
        rows.append(
            [
                f"{one['index']}  {kind_name(one)}",
                one["client"] or "–",
                (one["server"] or "–") + (f" ({one['server_name']})" if one["server_name"] else ""),
                {True: "yes", False: "no", None: "–"}[one["resumed"]],
                "; ".join(_troubles(one)) or "–",
                f"{len(one['messages']) + one['messages_left_out']}",
                f"{one['flights']}",
                f"{wire_bytes(one):,}",
                _time(one["handshake_s"]),
                _time(_sum(one, "network_s")),
                _time(_sum(one, "peer_s")),
                segments,
            ]
        )
    head = ["connection", "client", "server", "resumed", "what to know"]
    head += ["messages", "flights", "bytes", "handshake", "network", "peers", "sent again"]
    caption = (
        "Network and peers: what the handshake's waits were made of, as far as the capture tells; "
        "sent again: segments that travelled more than once."
    )
    if len(rows) < _total(capture):
        caption += f" The first {len(rows)} of {_total(capture):,}, and those that were priced."
    return Table(head, rows, 7, caption, "captured")


def _troubles(connection: Row) -> list[str]:
    """What a reader should know before believing a connection's figures."""
    troubles = [] if connection["complete"] else ["not complete"]
    sealed = sealed_bytes(connection)
    troubles += [f"{sealed:,} bytes stayed encrypted"] if sealed else []
    troubles += [
        f"{alert['from']} alert {alert['description'] or 'encrypted'}"
        for alert in connection["alerts"]
        if alert["description"] != "close_notify"
    ]
    return [*troubles, *connection["problems"]]


def _sum(connection: Row, key: str) -> float | None:
    found = [
        message[key]
        for message in connection["messages"]
        if message["flight"] is not None and message[key] is not None
    ]
    return sum(found) if found else None


def _time(value: float | None) -> str:
    return "–" if value is None else seconds(value) if value else "0"


def _ladder_block(number: int, capture: Capture, connection: Row, folded: bool) -> Block:
    index, messages = connection["index"], connection["messages"]
    name = kind_name(connection)
    refused = (connection["refused"] or "").removeprefix(f"connection {index}: ")
    figure = Figure(
        name=f"captured-{number}-{index}",
        title=name,
        kind="captured",
        alternative=f"Connection {index} of {capture['capture']}: each message's wait, by its cause",
        define=lambda width: ladder(messages, width),
        data=[
            {
                "capture": capture["capture"],
                "connection": index,
                "message": message["index"] + 1,
                "from": message["from"],
                "name": message["name"],
                "flight": message["flight"],
                "bytes": message["bytes"],
                "time_s": message["time_s"],
                "wait_s": message["wait_s"],
                "network_s": message["network_s"],
                "sender_s": message["peer_s"],
                "kind": "captured",
            }
            for message in messages
        ],
        caption=(
            "Each bar is the wait for a message, ended by its last byte; a wait's causes are drawn one after "
            "the other, network first, whatever their order was. A message that came with the one before it "
            "has none." + (f" Not priced: {refused}." if refused else "")
        ),
    )
    who = connection["server_name"] or connection["server"]
    summary = (
        f"connection {index}, {connection['client']} to {who}: {_time(connection['handshake_s'])}, "
        f"{wire_bytes(connection):,} bytes, {count_round_trips(connection['flights'])}"
    )
    table = _messages(messages)
    return Block(name, summary, figure, table, "Message by message", folded)


def _messages(messages: Sequence[Row]) -> Table:
    rows = [
        [
            f"{message['index'] + 1}",
            f"{message['from']}: {message['name']}",
            "–" if message["flight"] is None else f"{message['flight']}",
            f"{message['bytes']:,}",
            _time(message["time_s"]),
            _time(message["wait_s"]),
            _time(message["network_s"]),
            _time(message["peer_s"]),
        ]
        for message in messages
    ]
    head = ["#", "message", "flight", "bytes", "at", "wait", "network", "sender"]
    return Table(head, rows, 6, kind="captured")


def _elsewhere(results: Results) -> list[Block]:
    """The captured handshakes priced on the experiment's devices, above the measured ones."""
    rows = list(results.captured_predictions)
    unpriced = [one for one in results.unpriced if "capture" in one]
    blocks: list[Block] = []
    if rows:
        lowest = min(row["rate_per_s"] for row in rows)
        several = len({row["capture"] for row in rows}) > 1
        captured = [
            {**row, "suite": f"captured: {row['suite']}" + (f" ({row['capture']})" if several else "")}
            for row in rows
            if row["rate_per_s"] == lowest
        ]
        measured = [row for row in results.predictions if row["rate_per_s"] == lowest]
        figure = Figure(
            name="captured-elsewhere",
            title="Seconds for the captured handshakes elsewhere"
            + (", and for the measured ones" if measured else ""),
            kind="modelled",
            alternative="Map: rows are handshakes, columns devices and bearers, cells seconds for one",
            define=lambda width: time_map([*captured, *measured], width),
            data=[_flat(row) for row in rows],
            caption=(
                "The messages and bytes are the capture's, the public-key operations those of its suite; "
                "symmetric work and the import of keys do not show in a capture and are left out. Of each "
                "suite the first connection that shows all of it is priced."
            ),
        )
        blocks.append(Block(figure=figure))
    elif any(capture["traces"] for capture in results.captures):
        note = "Nothing is priced elsewhere: the experiment names no devices, bearers or rates."
        blocks.append(Block(table=Table(["", ""], [["elsewhere", note]], 0)))
    if unpriced:
        cells = [[f"{one['suite']} of {one['capture']}", one["device"], one["reason"]] for one in unpriced]
        blocks.append(
            Block(
                table=Table(["captured", "device", "why"], cells, 0),
                folded_table="What could not be priced",
            )
        )
    return blocks


def _flat(row: Row) -> dict[str, Any]:
    low, high = row["range_s"]
    plain = {key: value for key, value in row.items() if key not in ("range_s", "extrapolated")}
    return {**plain, "low_s": low, "high_s": high}
