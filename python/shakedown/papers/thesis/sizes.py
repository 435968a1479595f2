"""Table 4.11 compared with our bytes, message by message: all differences between the totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shakedown.papers.load import PaperData
from shakedown.papers.replication import Replication
from shakedown.papers.text import figure_text, markdown_table
from shakedown.papers.thesis.inputs import Authentication, Case, Thesis
from shakedown.papers.thesis.messages import (
    EXPLICIT,
    Kind,
    Message,
    constant_bytes,
    first,
    kinds,
    numbers,
    order,
    parameter_set_bytes,
)

CA_NAME = 43
NAMES = {"server": CA_NAME + 56, "client": CA_NAME + 55}
"""Bytes of text: the CA's name, and both names in a side's certificate (those of our generated ones)."""

_RECORD = {"record header": 5}
_FRAME = {"record header": 5, "handshake header": 3}
_CERTIFICATE = {
    "list length and format": 3,
    "version, algorithm, dates": 10,
    "types and lengths of two names": 8,
    "key type, curve number, lengths": 5,
}

ENCODING: Mapping[str, Mapping[str, int]] = {
    "ClientHello": {
        **_FRAME,
        "version and random": 17,
        "empty session id": 1,
        "one key exchange": 5,
        "one trusted CA": 8,
        "the CA's name": CA_NAME,
        "one cipher suite": 3,
        "compression": 2,
        "sequence numbers and key refresh": 2,
    },
    "ServerHello": {
        **_FRAME,
        "version and random": 17,
        "session id": 9,
        "choices": 6,
    },
    "CertificateRequest": {**_FRAME, "one key exchange": 5},
    "ServerHelloDone": _FRAME,
    "Certificate": {**_FRAME, **_CERTIFICATE},
    "empty Certificate": {**_FRAME, "list length": 2},
    "ClientKeyExchange": {**_FRAME, "length of the point": 1},
    "CertificateVerify": {**_FRAME, "length of the signature": 2},
    "ChangeCipherSpec": {**_RECORD, "type": 1},
    "Finished": {**_FRAME, "verify data": 12, "MAC": 20, "padding": 5},
}
"""The parts of our messages besides numbers and certificates' names, in bytes (WAP-261-WTLS, 9.2 and 10.5).

RC5 with 64-bit blocks and SHA-1. A key exchange consists of suite, parameter number and null identifier; a
trusted CA also has the type, character set and length of its name.
"""


@dataclass(frozen=True)
class Line:
    """One case: the steps from the thesis's bytes to ours."""

    case: Case
    authentication: Authentication
    printed_bytes: float
    compression_bytes: int
    explicit_bytes: int
    constant_bytes: float
    replicated_bytes: float

    @property
    def alike_bytes(self) -> float:
        """Our bytes if curves had the thesis's private numbers, and points were uncompressed."""
        return self.replicated_bytes - self.explicit_bytes + self.compression_bytes

    @property
    def residue_bytes(self) -> float:
        """The difference that no part explains."""
        return (
            self.printed_bytes
            - self.compression_bytes
            + self.explicit_bytes
            + self.constant_bytes
            - self.replicated_bytes
        )


def fixed_bytes(data: PaperData, replication: Replication, kind: Kind, case: Case) -> dict[Message, float]:
    """The bytes of our messages in a case without the numbers, whose sizes keys determine."""
    cost = replication.costs[case.suite(kind.authentication)]
    return {
        message: one.size_bytes - numbers(case, kind.authentication, message).replicated_bytes
        for message, one in zip(order(data, kind), cost.messages, strict=True)
    }


def lines(thesis: Thesis, replication: Replication) -> list[Line]:
    """All 48 cases. The difference of a constant is that of a kind's first case, used for all others."""
    found = []
    for kind in kinds():
        messages = order(thesis.data, kind)
        fixed = fixed_bytes(thesis.data, replication, kind, first(thesis, kind))
        constant = sum(fixed.values()) - constant_bytes(thesis, kind)
        for case in thesis.cases:
            if case.family != kind.family:
                continue
            parts = [numbers(case, kind.authentication, message) for message in messages]
            found.append(
                Line(
                    case,
                    kind.authentication,
                    thesis.size_bytes(case, kind.authentication),
                    sum(part.compression_bytes for part in parts),
                    sum(part.explicit_bytes for part in parts),
                    constant,
                    replication.costs[case.suite(kind.authentication)].size_bytes,
                )
            )
    return found


def words(data: PaperData, replication: Replication) -> dict[str, str]:
    """The page's tables of bytes; a note if nothing was measured."""
    thesis = Thesis(data)
    suites = [case.suite(how) for case, how in thesis.all()]
    if replication.why_not(suites):
        absent = "*Our handshakes were not measured.*"
        tables = ("fixed_table", "constants_table", "sizes_table", "messages_tables")
        return {**dict.fromkeys(tables, absent), "explicit_curves": _explicit_words()}
    return {
        "explicit_curves": _explicit_words(),
        "fixed_table": _fixed_table(thesis, replication),
        "constants_table": _constants_table(thesis, replication),
        "sizes_table": _sizes_table(thesis, replication),
        "messages_tables": "\n\n".join(_messages_table(thesis, replication, kind) for kind in kinds()),
    }


def _fixed_table(thesis: Thesis, replication: Replication) -> str:
    """Each message: its bytes besides numbers, their parts, and the numbers in it."""
    fixed = {kind: fixed_bytes(thesis.data, replication, kind, first(thesis, kind)) for kind in kinds()}
    rows = []
    for message in order(thesis.data, Kind("rsa", "mutual")):  # the one kind that has all twelve
        cells = [figure_text(found[message]) if message in found else "–" for found in fixed.values()]
        rows.append([f"{message[0]}: {message[1]}", *cells, _contents(message), _numbers_words(message)])
    rows.append(
        [
            "**total**",
            *(f"**{figure_text(sum(found.values()))}**" for found in fixed.values()),
            "",
            "",
        ]
    )
    head = ["message", *(kind.name for kind in fixed), "fixed parts (bytes)", "variable parts"]
    return markdown_table(head, rows)


def _contents(message: Message) -> str:
    parts = [f"{what} {size}" for what, size in ENCODING[message[1]].items()]
    if message[1] == "Certificate":
        parts.append(f"text of two names {NAMES[message[0]]}")
        parts.append("RSA: 6 more for the exponent and lengths")
        if message[0] == "client":
            parts.append("empty: headers and list length 2")
    if message[1] == "ClientKeyExchange":
        parts.append("RSA: 1 more")
    return ", ".join(parts)


def _numbers_words(message: Message) -> str:
    return {
        "Certificate": "the CA's signature, a public key",
        "ClientKeyExchange": "a point, or the encrypted secret",
        "CertificateVerify": "a signature",
    }.get(message[1], "")


def _constants_table(thesis: Thesis, replication: Replication) -> str:
    """The thesis's totals without the numbers, compared with ours."""
    rows = []
    for kind in kinds():
        there = constant_bytes(thesis, kind)
        ours = sum(fixed_bytes(thesis.data, replication, kind, first(thesis, kind)).values())
        messages = len(order(thesis.data, kind))
        rows.append(
            [kind.name, f"{messages}", figure_text(there), figure_text(ours), figure_text(there - ours)]
        )
    return markdown_table(["handshake", "messages", "thesis", "here", "additional in the thesis"], rows)


def _sizes_table(thesis: Thesis, replication: Replication) -> str:
    rows = [
        [
            f"{line.case.name}, {'mutual' if line.authentication == 'mutual' else 'server auth'}",
            figure_text(line.printed_bytes),
            _signed(-line.compression_bytes),
            _signed(line.explicit_bytes),
            _signed(line.constant_bytes),
            figure_text(line.replicated_bytes),
            figure_text(line.residue_bytes),
            figure_text(line.alike_bytes),
        ]
        for line in lines(thesis, replication)
    ]
    head = [
        "case",
        "thesis",
        "points compressed",
        "explicit curves",
        "constant",
        "here",
        "remainder",
        "here, same encoding",
    ]
    return markdown_table(head, rows)


def _signed(size: float) -> str:
    return f"{size:+.0f}".replace("-", "−") if size else "0"


def _messages_table(thesis: Thesis, replication: Replication, kind: Kind) -> str:
    """Our bytes of each message in each case of a kind; in brackets the thesis's numbers in it."""
    messages = order(thesis.data, kind)
    rows = []
    for case in thesis.cases:
        if case.family != kind.family:
            continue
        cost = replication.costs[case.suite(kind.authentication)]
        cells = []
        for message, one in zip(messages, cost.messages, strict=True):
            known = numbers(case, kind.authentication, message).thesis_bytes
            cells.append(figure_text(one.size_bytes) + (f" ({known})" if known else ""))
        rows.append([case.name, *cells, figure_text(cost.size_bytes)])
    head = ["", *(f"{side}: {name}" for side, name in messages), "total"]
    title = f"Bytes of each message, ours: {kind.name}"
    return f"<details><summary>{title}</summary>\n\n{markdown_table(head, rows)}\n\n</details>"


def _explicit_words() -> str:
    """The curves without a number, and the additional bytes wherever one is named."""
    return ", ".join(f"{curve} {parameter_set_bytes(curve)}" for curve in EXPLICIT)
