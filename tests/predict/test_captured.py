"""Predictions of captured handshakes, whose symmetric work is that of measured ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from predict import handmade
from shakedown.api import in_memory
from shakedown.cli import exit_status
from shakedown.prediction.captured import completed
from shakedown.prediction.inputs import Costs, ServerModel
from shakedown.prediction.library import TraceLibrary
from shakedown.prediction.predict import predict_rows
from shakedown.prediction.trace import parse_trace

SUITES = [
    "tls1.3/x25519/p256/server",
    "tls1.3/x25519/rsa2048/mutual",
    "tls1.3/psk_dhe+x25519",
    "tls1.3/psk",
    "tls1.2/ecdhe_ecdsa+p256/p256/server",
    "tls1.2/psk",
    "tls1.0/rsa/rsa1024/server",
    "wtls/rsa/rsa1024/server",
]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The traces that `inspect` writes of a capture of shipped suites."""
    folder = tmp_path_factory.mktemp("captured")
    capture, key_log, out = folder / "all.pcap", folder / "all.keys", folder / "traces.json"
    in_memory.capture(SUITES, capture, keylog=key_log)
    arguments = ["inspect", str(capture), "--keylog", str(key_log), "--summary", "--traces-out", str(out)]
    assert exit_status(arguments) == 0
    return out


@pytest.mark.parametrize("device", ["cortex-m4", "server"])
def test_captured_handshake_costs_the_same_as_the_measured_one(traces, device):
    captured = predict_rows(
        SUITES, device=device, server=ServerModel(software="openssl"), costs=Costs(traces)
    )
    measured = predict_rows(SUITES, device=device)
    for one, other in zip(captured, measured, strict=True):
        for name in ("client_s", "server_s"):
            found, wanted = one[name], other[name]
            assert found["missing"] == wanted["missing"] == []
            assert found["estimate"] == pytest.approx(wanted["estimate"], rel=0.02), one["suite"]
            # Another stack may do this work in another way.
            assert found["upper"] > wanted["upper"]
        assert one["ready_s"]["mean"] == pytest.approx(other["ready_s"]["mean"], rel=0.02)
        borrowed = [row for row in one["extrapolated"] if row["operation"] == "digest"]
        assert borrowed
        assert all("not in the capture" in row["method"] for row in borrowed)
        assert all(row["basis"] != "own" for row in borrowed)


def test_work_without_a_measured_handshake_is_missing(tmp_path):
    entry = {**handmade.TLS12_RSA, "kind": "captured", "suite": "tls1.2/rsa/rsa7680/server"}
    path = tmp_path / "captured.json"
    path.write_text(json.dumps([entry]))
    [row] = predict_rows([entry["suite"]], device="cortex-m4", costs=Costs(TraceLibrary(path)))
    for name in ("client_s", "server_s"):
        side = name.removesuffix("_s")
        assert row[name]["estimate"] is None
        assert row[name]["upper"] is None
        assert f"{side} symmetric work" in row[name]["missing"]
    assert row["ready_s"]["upper"] is None


def test_longer_and_additional_messages_are_hashed():
    measured = parse_trace(
        handmade.entry(
            "tls1.3/x25519/p256/server",
            [("server", "Certificate", 2, 500), ("server", "NewSessionTicket", None, 240)],
            [
                ("server", 0, "digest", "sha384", ""),
                ("client", 0, "verify", "ecdsa", "p256"),
                ("client", 0, "import", "ec", "p256"),
                ("server", 1, "mac", "hmac-sha256", ""),
            ],
        ),
        "x",
    )
    hashed = [
        structs.replace(one, bytes=500 if one.operation == "digest" else 0) for one in measured.operations
    ]
    measured = replace(measured, operations=tuple(hashed))
    captured = parse_trace(
        {
            **handmade.entry(
                "tls1.3/x25519/p256/server",
                [
                    ("server", "CertificateStatus", 2, 300),
                    ("server", "Certificate", 2, 1500),
                    ("server", "NewSessionTicket", None, 240),
                    ("server", "NewSessionTicket", None, 240),
                ],
                [("client", 1, "verify", "ecdsa", "p256")],
            ),
            "kind": "captured",
        },
        "x",
    )
    assert captured.partial
    found = completed(captured, measured)
    assert not found.partial
    assert found.operations[0] == captured.operations[0]
    taken = {
        (one.side, one.message, one.operation, one.algorithm, one.size_bytes) for one in found.operations[1:]
    }
    assert taken == {
        ("client", 0, "digest", "sha256", 300),
        ("server", 0, "digest", "sha384", 300),
        ("server", 1, "digest", "sha384", 1500),
        ("client", 1, "import", "ec", 0),
        ("server", 2, "mac", "hmac-sha256", 0),
        ("server", 3, "mac", "hmac-sha256", 0),
    }
    assert all(one.borrowed for one in found.operations[1:])
