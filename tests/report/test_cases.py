"""The tables of shares, on handshakes with known parts."""

from __future__ import annotations

import pytest

import real
from shakedown.experiments.figure_kinds.in_memory_results import results_of
from shakedown.reporting.html.cases import families, shares
from shakedown.reporting.html.measured import sections
from shakedown.results.folder import Results

SUITES = [
    f"wtls/ecdh_ecdsa/{keys}/{authentication}"
    for authentication in ("requested", "mutual")
    for keys in ("160p", "163k", "160p@224p", "163k@233k")
]


def parts(results: Results, side: str):
    [row] = results.handshakes.to_dicts()
    return shares(row, results.messages.to_dicts(), results.operations.to_dicts(), side)


def test_parts_add_up_and_contain_their_operations():
    one = real.measurement()
    results = results_of([one])
    place = {message.name: message.index for message in one.messages}

    def us(side: str, operation: str, *messages: str) -> float:
        where = [place[name] for name in messages]
        return sum(
            op.mean_us for op in one.operations
            if (op.side, op.operation) == (side, operation) and op.message in where
        )  # fmt: skip

    client, server = parts(results, "client"), parts(results, "server")
    exchange = ("ClientKeyExchange", "ServerKeyExchange")
    assert client["of it: public key"] == pytest.approx(
        us("client", "keygen", *exchange) + us("client", "derive", *exchange)
    )
    assert client["of it: master secret"] == pytest.approx(us("client", "prf", "ClientKeyExchange")) != 0
    assert server["of it: master secret"] == pytest.approx(us("server", "prf", "ClientKeyExchange")) != 0
    assert client["verify certificate"] == pytest.approx(us("client", "verify", "Certificate")) != 0
    assert client["verify signature"] == pytest.approx(us("client", "verify", "ServerKeyExchange")) != 0
    assert server["sign"] == pytest.approx(us("server", "sign", "ServerKeyExchange")) != 0
    assert client["others"] > 0
    named = ("others", "key exchange", "verify certificate", "verify signature")
    [row] = results.handshakes.to_dicts()
    assert sum(client[name] for name in named) == pytest.approx(row["client_us"])


def test_cases_are_grouped_by_key_exchange_and_authentication():
    results = results_of(real.measurement(suite) for suite in [*SUITES, "wtls/rsa/rsa1024/mutual"])
    found = families(results.handshakes.to_dicts())
    assert list(found) == [("ecdh_ecdsa", "requested"), ("ecdh_ecdsa", "mutual")]
    assert [(case["issuer"], case["end"]) for case in found["ecdh_ecdsa", "mutual"]] == [
        ("160p", "160p"),
        ("163k", "163k"),
        ("224p", "160p"),
        ("233k", "163k"),
    ]


def test_the_section_has_times_for_each_family_and_shares_for_each_side():
    results = results_of(real.measurement(suite) for suite in SUITES)
    [section] = [one for one in sections(results) if one.anchor == "cases"]
    assert len(section.blocks) == 2 + 2 * 2
    for block in section.blocks:
        assert len(block.table.rows) == 4
    for block in section.blocks[2:]:
        names = [name for name in block.table.head if name.startswith(("others", "key", "verify", "sign"))]
        for row in block.table.rows:
            values = dict(zip(block.table.head, row, strict=True))
            assert sum(float(values[name]) for name in names) == pytest.approx(100, abs=0.05)


def test_reports_of_other_suites_have_no_cases_section():
    assert "cases" not in [one.anchor for one in sections(results_of([real.measurement()]))]
