"""The rule by which the benchmark selects measured rounds of a server."""

from __future__ import annotations

import pytest
from bench.capacity import CASES, RUNS, Compared, ServerUse, rarely_sleeping, table

from shakedown.models.ranges import Range
from shakedown.prediction.processor_speed import Timed


def test_loads_in_which_the_server_slept_do_not_count():
    loads = [Timed(ServerUse(1e-3, sleeps), 1.0) for sleeps in (0.0, 0.5, 0.1)]
    assert [one.found.sleeps for one in rarely_sleeping(loads)] == [0.0, 0.1]


def test_table_counts_cases_within_tolerance_and_within_range():
    near = Compared(CASES[0], Range(80e-6, 100e-6, 120e-6), [110e-6], enough=True)
    far = Compared(CASES[1], Range(90e-6, 100e-6, 110e-6), [200e-6, 210e-6], enough=False)
    assert near.off == pytest.approx(100 / 110)
    text = table("nginx", [near, far])
    assert "nginx: 1 of 2 within 15 %, 1 in the 90 % ranges" in text
    assert "90 – 110, outside" in text
    assert f"| {CASES[0].suite} |" in text
    assert f"| {CASES[1].suite} * |" in text  # too few loads at full speed


def test_every_kind_of_resumption_has_a_case():
    resumed = {(one.suite.rsplit("/", 1)[1], one.suite.split("/", 1)[0]) for one in CASES if one.resumed}
    assert resumed == {("resumed", "tls1.3"), ("ticket", "tls1.2"), ("resumed", "tls1.2")}


def test_mldsa_runs_only_with_a_newer_openssl():
    runs = {one.suite: [run for run in RUNS if one.goes_with(run)] for one in CASES}
    assert runs["tls1.3/x25519mlkem768/mldsa65/server"] == ["nginx, OpenSSL 3.5", "haproxy, OpenSSL 3.5"]
    assert runs["tls1.3/x25519/rsa3072/server"] == ["nginx", "haproxy", "go"]
    assert "go" in runs["tls1.3/x25519mlkem768/p256/server"]
