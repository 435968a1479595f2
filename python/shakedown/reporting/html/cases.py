"""Shares of the parts of a handshake in each side's time, certificate by certificate.

The layout is that of the WTLS literature (B. Bayoglu's measurements of a Nokia 7650 against a WAP gateway,
2004, tables 4.3 to 4.10): one table for each key exchange, authentication and side; a row for each pair of
issuer and end certificate; the key exchange split into its public-key part and the derivation of the master
secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shakedown.reporting.columns import Row
from shakedown.reporting.figures import NOTHING, count, time_us, whole
from shakedown.reporting.html.section import Block, Section, Table
from shakedown.schema.base import SIDES, Side

MIN_CASES = 4
"""Below this many suites of one family a table of shares says less than the figures above it."""


@dataclass(frozen=True)
class Shares:
    """One side's mean time in parts; µs."""

    total_us: float
    key_exchange_us: float
    public_key_us: float
    master_secret_us: float
    verify_certificate_us: float
    sign_us: float
    verify_signature_us: float

    @property
    def others_us(self) -> float:
        named = self.key_exchange_us + self.verify_certificate_us + self.sign_us + self.verify_signature_us
        return self.total_us - named


def shares(row: Row, messages: Sequence[Row], operations: Sequence[Row], side: Side) -> Shares:
    """Splits one side's mean time.

    The master secret is the PRF's work in the messages that complete the key exchange: those in which this
    side derives, encrypts or decrypts, or else ClientKeyExchange.
    """
    names = {message["message_index"]: message["message"] for message in messages}
    mine = [operation for operation in operations if operation["side"] == side]
    key = [operation for operation in mine if operation["class"] == "key"]
    homes = {operation["message_index"] for operation in key if operation["operation"] != "keygen"}
    homes |= {index for index, name in names.items() if name == "ClientKeyExchange"}
    public_us = _sum(key)
    secret_us = _sum(one for one in mine if one["operation"] == "prf" and one["message_index"] in homes)

    def signature_us(operation: str, *where: str) -> float:
        return _sum(
            one for one in mine if one["operation"] == operation and names.get(one["message_index"]) in where
        )

    return Shares(
        total_us=row[f"{side}_us"],
        key_exchange_us=public_us + secret_us,
        public_key_us=public_us,
        master_secret_us=secret_us,
        verify_certificate_us=signature_us("verify", "Certificate"),
        sign_us=signature_us("sign", "CertificateVerify", "ServerKeyExchange"),
        verify_signature_us=signature_us("verify", "CertificateVerify", "ServerKeyExchange"),
    )


def _sum(operations: Iterable[Row]) -> float:
    return sum((operation["us"] for operation in operations), 0.0)


@dataclass(frozen=True)
class Case:
    """A suite as the tables name it."""

    issuer: str
    end: str
    row: Row


def families(rows: Sequence[Row]) -> dict[tuple[str, str], list[Case]]:
    """WTLS suites with certificates by key exchange and authentication, in the results' order."""
    found: dict[tuple[str, str], list[Case]] = {}
    for row in rows:
        parts = row["suite"].split("/")
        if parts[0] == "wtls" and len(parts) == 4:
            keys = parts[2].split("@")
            found.setdefault((parts[1], parts[3]), []).append(Case(keys[-1], keys[0], row))
    return {family: cases for family, cases in found.items() if len(cases) >= MIN_CASES}


def cases_section(
    rows: Sequence[Row], messages: Mapping[str, Sequence[Row]], operations: Mapping[str, Sequence[Row]]
) -> Iterator[Section]:
    """Client and server time for each case, and the shares of their parts."""
    found = families(rows)
    if not found:
        return
    blocks = []
    for family, cases in found.items():
        blocks.append(Block(_title(family), count(len(cases), "case"), table=_times(cases)))
    for side in SIDES:
        for family, cases in found.items():
            split = [
                shares(case.row, messages[case.row["scenario"]], operations[case.row["scenario"]], side)
                for case in cases
            ]
            table = _shares(cases, split)
            blocks.append(Block(f"{_title(family)}, {side}", "shares of its time", table=table))
    lead = (
        "WTLS cases by issuer's and end certificate. Shares are of the mean time of the side; those of the "
        "key exchange's two parts are of the key exchange. Others: imports of keys, symmetric work, parsing."
    )
    yield Section("cases", "Case by case", lead, blocks)


def _title(family: tuple[str, str]) -> str:
    return f"wtls/{family[0]}, {family[1]}"


def _times(cases: Sequence[Case]) -> Table:
    head = ["issuer", "end", "client", "server", "client : server", "bytes"]
    rows = []
    for case in cases:
        client, server = case.row["client_us"], case.row["server_us"]
        ratio = f"{client / server:.2f}" if server else NOTHING
        sizes = whole(case.row["bytes"])
        rows.append([case.issuer, case.end, time_us(client), time_us(server), ratio, sizes])
    return Table(head, rows, 4, "Means of CPU time.", "measured")


def _shares(cases: Sequence[Case], split: Sequence[Shares]) -> Table:
    columns = [
        ("others", [one.others_us / one.total_us for one in split]),
        ("key exchange", [one.key_exchange_us / one.total_us for one in split]),
        ("of it: public key", [_part(one.public_key_us, one.key_exchange_us) for one in split]),
        ("of it: master secret", [_part(one.master_secret_us, one.key_exchange_us) for one in split]),
        ("verify certificate", [one.verify_certificate_us / one.total_us for one in split]),
        ("sign", [one.sign_us / one.total_us for one in split]),
        ("verify signature", [one.verify_signature_us / one.total_us for one in split]),
    ]
    shown = [(name, values) for name, values in columns if any(values)]
    rows = [
        [case.issuer, case.end, *(f"{100 * values[number]:.2f}" for _, values in shown)]
        for number, case in enumerate(cases)
    ]
    head = ["issuer", "end", *(f"{name}, %" for name, _ in shown)]
    return Table(head, rows, len(shown), "Percent of the mean.", "measured")


def _part(value: float, whole: float) -> float:
    return value / whole if whole else 0.0
