"""The tables of shares, on handshakes whose parts are known."""

from __future__ import annotations

import pytest

import synthetic
from shakedown.report.shares import cases_section, families, shares
from shakedown.results.folder import results_of

SUITES = [
    f"wtls/ecdh_ecdsa/{keys}/{authentication}"
    for authentication in ("requested", "mutual")
    for keys in ("160p", "163k", "160p@224p", "163k@233k")
]


def test_parts_add_up_and_each_holds_its_operations():
    measurement = synthetic.measurement()
    prf = {"operation": "prf", "algorithm": "TLS1-PRF", "class": "common", "mean_us": 2.0, "side": "client"}
    place = {message["name"]: message["index"] for message in measurement["messages"]}
    measurement["operations"] += [
        {**measurement["operations"][0], **prf, "message": place["ClientKeyExchange"]},
        {**measurement["operations"][0], **prf, "message": place["Finished"]},
    ]
    of = {
        (one["side"], one["operation"], one["message"]): one["mean_us"] for one in measurement["operations"]
    }
    client, server = shares(measurement, "client"), shares(measurement, "server")
    exchange = place["ClientKeyExchange"]
    assert client.public_key_us == pytest.approx(
        of["client", "keygen", exchange] + of["client", "derive", exchange]
    )
    assert client.master_secret_us == 2.0
    assert server.master_secret_us == 0.0
    assert client.verify_certificate_us == of["client", "verify", place["Certificate"]]
    assert client.verify_signature_us == of["client", "verify", place["ServerKeyExchange"]]
    assert server.sign_us == of["server", "sign", place["ServerKeyExchange"]]
    assert client.others_us > 0
    parts = (
        client.others_us,
        client.key_exchange_us,
        client.verify_certificate_us,
        client.verify_signature_us,
    )
    assert sum(parts) == pytest.approx(client.total_us)


def test_cases_are_grouped_by_key_exchange_and_authentication():
    results = results_of(synthetic.measurement(suite) for suite in [*SUITES, "wtls/rsa/rsa1024/mutual"])
    found = families(results)
    assert list(found) == [("ecdh_ecdsa", "requested"), ("ecdh_ecdsa", "mutual")]
    assert [(case.issuer, case.end) for case in found["ecdh_ecdsa", "mutual"]] == [
        ("160p", "160p"),
        ("163k", "163k"),
        ("224p", "160p"),
        ("233k", "163k"),
    ]


def test_the_section_has_times_for_each_family_and_shares_for_each_side():
    section = cases_section(results_of(synthetic.measurement(suite) for suite in SUITES))
    assert section is not None
    assert len(section.blocks) == 2 + 2 * 2
    for block in section.blocks:
        assert len(block.table.rows) == 4
    for block in section.blocks[2:]:
        names = [name for name in block.table.head if name.startswith(("others", "key", "verify", "sign"))]
        for row in block.table.rows:
            values = dict(zip(block.table.head, row, strict=True))
            assert sum(float(values[name]) for name in names) == pytest.approx(100, abs=0.05)


def test_other_reports_have_no_such_section():
    assert cases_section(results_of([synthetic.measurement()])) is None
