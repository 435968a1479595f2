"""Shares of the parts of a handshake in each side's time, by certificates.

The layout is that of the WTLS literature (B. Bayoglu's measurements of a Nokia 7650 against a WAP gateway,
2004, tables 4.3 to 4.10): one table for each key exchange, authentication and side; a row for each pair of
issuer and end certificate; the key exchange split into its public-key part and the derivation of the master
secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from shakedown.reporting.columns import Row
from shakedown.reporting.figures import NOTHING, count, time_us, whole
from shakedown.reporting.html.section import Block, Section, Table
from shakedown.schema.base import SIDES, Side

MIN_CASES = 4
"""With fewer suites of one family there is no table of shares."""

OF_EXCHANGE = ("of it: public key", "of it: master secret")


def shares(row: Row, messages: Sequence[Row], operations: Sequence[Row], side: Side) -> dict[str, float]:
    """One side's mean time (µs) by part; two parts are `OF_EXCHANGE`, the others add up to the total.

    The master secret is the PRF's work in the messages that complete the key exchange: those in which this
    side derives, encrypts or decrypts, and ClientKeyExchange.
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

    exchange_us = public_us + secret_us
    signing = {
        "verify certificate": signature_us("verify", "Certificate"),
        "sign": signature_us("sign", "CertificateVerify", "ServerKeyExchange"),
        "verify signature": signature_us("verify", "CertificateVerify", "ServerKeyExchange"),
    }
    return {
        "others": row[f"{side}_us"] - exchange_us - sum(signing.values()),
        "key exchange": exchange_us,
        **dict(zip(OF_EXCHANGE, (public_us, secret_us), strict=True)),
        **signing,
    }


def _sum(operations: Iterable[Row]) -> float:
    return sum((operation["us"] for operation in operations), 0.0)


def families(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """WTLS suites with certificates by key exchange and authentication, in the results' order; each row with
    its `issuer` and `end` certificate.
    """
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        parts = row["suite"].split("/")
        if parts[0] == "wtls" and len(parts) == 4:
            keys = parts[2].split("@")
            case = {**row, "issuer": keys[-1], "end": keys[0]}
            found.setdefault((parts[1], parts[3]), []).append(case)
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
                shares(case, messages[case["scenario"]], operations[case["scenario"]], side) for case in cases
            ]
            table = _shares(cases, split, side)
            blocks.append(Block(f"{_title(family)}, {side}", "shares of its time", table=table))
    lead = (
        "WTLS cases by issuer's and end certificate. Shares are of the mean time of the side; those of the "
        "key exchange's two parts are of the key exchange. Others: imports of keys, symmetric work, parsing."
    )
    yield Section("cases", "Case by case", lead, blocks)


def _title(family: tuple[str, str]) -> str:
    return f"wtls/{family[0]}, {family[1]}"


def _times(cases: Sequence[Row]) -> Table:
    head = ["issuer", "end", "client", "server", "client : server", "bytes"]
    rows = []
    for case in cases:
        client, server = case["client_us"], case["server_us"]
        ratio = f"{client / server:.2f}" if server else NOTHING
        sizes = whole(case["bytes"])
        rows.append([case["issuer"], case["end"], time_us(client), time_us(server), ratio, sizes])
    return Table(head, rows, 4, "Means of CPU time.", "measured")


def _shares(cases: Sequence[Row], split: Sequence[Mapping[str, float]], side: Side) -> Table:
    shown = [name for name in split[0] if any(one[name] for one in split)]

    def percent(case: Row, parts: Mapping[str, float], name: str) -> str:
        whole_us = parts["key exchange"] if name in OF_EXCHANGE else case[f"{side}_us"]
        return f"{100 * parts[name] / whole_us if whole_us else 0.0:.2f}"

    rows = [
        [case["issuer"], case["end"], *(percent(case, parts, name) for name in shown)]
        for case, parts in zip(cases, split, strict=True)
    ]
    head = ["issuer", "end", *(f"{name}, %" for name in shown)]
    return Table(head, rows, len(shown), "Percent of the mean.", "measured")
