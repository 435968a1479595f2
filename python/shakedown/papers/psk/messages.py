"""Table 4.1 compared with our bytes, message by message: differences, and what the report does not explain.

The report prints one total per handshake. RFC 2246 and RFC 4279 determine parts of the two key exchange
messages. The formula for anonymous DH therefore gives the sum of all other messages, and the totals of the
PSK suites give the rest for hint and identity.
"""

from __future__ import annotations

from dataclasses import dataclass

from shakedown.papers.load import PaperData
from shakedown.papers.psk.inputs import NAMES, size_bytes, suite
from shakedown.papers.replication import Cost, Replication
from shakedown.papers.text import figure_text, markdown_table

MECHANISMS = ("dh_anon", "dhe_psk", "plain_psk")
KEY_BITS = 1024
"""One size is sufficient: anonymous DH and DHE_PSK grow equally, in the report and here."""

NEWER_BYTES = 10 + 15 + 2 + 2 * 4
"""Bytes in our messages that did not exist in 2006: extensions of the two hellos (encrypt-then-MAC, RFC 7366,
extended master secret, RFC 7627, renegotiation, RFC 5746, and the lengths of the lists), the signalling
cipher suite, and what encrypt-then-MAC adds to each Finished."""

_HEADERS = 5 + 4
_GENERATOR = 1
_LENGTH = 2


@dataclass(frozen=True)
class Parts:
    """A handshake's bytes.

    Attributes:
        server_fields: ServerKeyExchange without hint and numbers: headers, lengths, the generator.
        client_fields: ClientKeyExchange without identity and numbers.
        numbers: the prime and two public values.
        names: the hint and the identity.
        others: messages of all mechanisms: hellos, ServerHelloDone, ChangeCipherSpec, Finished.
    """

    server_fields: float
    client_fields: float
    numbers: float
    names: float
    others: float

    @property
    def total(self) -> float:
        return self.server_fields + self.client_fields + self.numbers + self.names + self.others


def fields(mechanism: str, *, hint: bool) -> tuple[int, int]:
    """Fields of ServerKeyExchange and ClientKeyExchange (RFC 2246, 7.4.3 and 7.4.7; RFC 4279, 2 and 3)."""
    server = client = 0
    if mechanism in ("dh_anon", "dhe_psk"):
        server += 3 * _LENGTH + _GENERATOR
        client += _LENGTH
    if mechanism in ("plain_psk", "dhe_psk"):
        server += _LENGTH if hint or mechanism == "dhe_psk" else 0
        client += _LENGTH
    return (_HEADERS + server if server else 0), _HEADERS + client


def numbers(mechanism: str) -> int:
    """Bytes of the prime and two public values."""
    return 0 if mechanism == "plain_psk" else 3 * KEY_BITS // 8


def replicated_parts(replication: Replication, mechanism: str) -> Parts:
    """The measured bytes, message by message; our server sends no hint."""
    cost = replication.costs[suite(mechanism, KEY_BITS)]
    server, client = fields(mechanism, hint=False)
    exchange = _bytes(cost, "ServerKeyExchange") + _bytes(cost, "ClientKeyExchange")
    known = numbers(mechanism)
    return Parts(server, client, known, exchange - server - client - known, cost.size_bytes - exchange)


def printed_parts(data: PaperData, mechanism: str, *, hint: bool = True) -> Parts:
    """The parts of table 4.1's totals, if common messages have the same length in all mechanisms.

    ``hint``: whether plain PSK has a ServerKeyExchange with a hint.
    """
    others = size_bytes(data, "dh_anon", KEY_BITS) - sum(fields("dh_anon", hint=False)) - numbers("dh_anon")
    server, client = fields(mechanism, hint=hint)
    known = numbers(mechanism)
    total = size_bytes(data, mechanism, KEY_BITS)
    return Parts(server, client, known, total - others - server - client - known, others)


def certificate_bytes(data: PaperData, mechanism: str) -> float:
    """The size of the server's Certificate in the report, under this assumption: the rest of the total."""
    others = printed_parts(data, "dh_anon").others
    key_bytes = KEY_BITS // 8
    exchange = _HEADERS + _LENGTH + key_bytes
    if mechanism == "dhe_dss":
        signature = 47  # DER of two numbers of 160 bits, on average
        exchange += _HEADERS + 3 * _LENGTH + _GENERATOR + 2 * key_bytes + _LENGTH + signature
    return size_bytes(data, mechanism, KEY_BITS) - others - exchange


def _bytes(cost: Cost, name: str) -> float:
    return sum(message.size_bytes for message in cost.messages if message.name == name)


def words(data: PaperData, replication: Replication) -> dict[str, str]:
    """Texts for the page with the bytes; dashes if nothing was measured."""
    with_hint, without = printed_parts(data, "plain_psk"), printed_parts(data, "plain_psk", hint=False)
    names = printed_parts(data, "dhe_psk").names
    measured = not replication.why_not([suite(name, KEY_BITS) for name in (*MECHANISMS, "rsa", "dhe_dss")])

    def ours(mechanism: str) -> Parts | None:
        return replicated_parts(replication, mechanism) if measured else None

    psk, anonymous = ours("plain_psk"), ours("dh_anon")
    return {
        "bytes_table": _table(data, replication) if measured else "*Our handshakes were not measured.*",
        "printed_bytes": figure_text(size_bytes(data, "plain_psk", KEY_BITS)),
        "replicated_bytes": figure_text(psk.total if psk else None),
        "others_printed": figure_text(with_hint.others),
        "others_replicated": figure_text(anonymous.others if anonymous else None),
        "others_bare": figure_text(anonymous.others - NEWER_BYTES if anonymous else None),
        "names_psk": figure_text(with_hint.names),
        "names_psk_without_hint": figure_text(without.names),
        "names_dhe_psk": figure_text(names),
        "names_short": figure_text(names - with_hint.names),
        "certificates": "; ".join(
            f"{NAMES[name]} {figure_text(certificate_bytes(data, name))}, "
            f"ours {_replicated_certificate(replication, name)}"
            for name in ("rsa", "dhe_dss")
        ),
    }


def _replicated_certificate(replication: Replication, mechanism: str) -> str:
    cost = replication.costs.get(suite(mechanism, KEY_BITS))
    return "not measured" if cost is None else figure_text(_bytes(cost, "Certificate"))


def _table(data: PaperData, replication: Replication) -> str:
    labels = {
        "server_fields": "ServerKeyExchange: headers, lengths, generator",
        "client_fields": "ClientKeyExchange: headers, lengths",
        "numbers": "prime and two public values",
        "names": "hint and identity",
        "others": "all other messages",
        "total": "**total**",
    }
    columns = []
    for mechanism in MECHANISMS:
        columns += [printed_parts(data, mechanism), replicated_parts(replication, mechanism)]
    head = [
        "at 1024 bit",
        *(f"{NAMES[name]}, {where}" for name in MECHANISMS for where in ("printed", "here")),
    ]
    rows = [
        [label, *(figure_text(getattr(column, part)) for column in columns)] for part, label in labels.items()
    ]
    return markdown_table(head, rows)
