"""The growth of a stack's work with public-key work: fitted to known growth, and used in estimates."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from shakedown.prediction.side_cost import SideEstimator, side_cost
from shakedown.prediction.this_machine import profile_of
from shakedown.prediction.trace import parse_trace
from shakedown.profiles import load_device
from shakedown.profiles.importers.measured import summarise

EXPONENT, BASE_US = 0.3, 100.0
PUBLIC_US = (100.0, 300.0, 1000.0, 3000.0, 9000.0)
MIDDLE = (BASE_US + 1000.0) ** EXPONENT


def made(public_us: float, factor: float = 1.0, preempted: int = 0) -> dict:
    """A handshake of one derivation; the stack's work is a power of the public-key time."""
    names = ("ClientKeyExchange", "ClientHello", "ServerHello", "Certificate", "Finished")
    slower = factor * (BASE_US + public_us) ** EXPONENT
    messages = [
        {
            "index": number,
            "from": "client",
            "name": name,
            "flight": 1,
            "bytes": 100,
            "generate_us": slower * (number + 1) + (0.0 if number else public_us),
            "process_us": slower * (number + 2),
        }
        for number, name in enumerate(names)
    ]
    call = {"side": "client", "message": 0, "operation": "derive", "algorithm": "ecdh", "parameters": "p256"}
    spread = {"median": public_us + BASE_US, "mean": 0.0, "sd": 0.0}
    return {
        "suite": "tls1.2/psk",
        "messages": messages,
        "operations": [{**call, "us": public_us, "mean_us": public_us, "count": 1, "bytes": 0}],
        "handshake": {"client_us": spread, "server_us": {**spread, "median": 0.0}},
        "unattributed_us": {"client": slower, "server": slower},
        "repeat": 1,
        "preempted": preempted,
    }


def test_cooling_exponent_is_found_for_a_power_law():
    found = summarise([made(us) for us in PUBLIC_US])
    assert found.cooling["messages"] == pytest.approx(EXPONENT)
    assert found.cooling["from_us"] == pytest.approx(BASE_US)
    # Figures hold at the middle of the measured range.
    rows = {
        (row["name"], row["work"], row.get("key", "")): row["mean_us"] for row in found.overhead["message"]
    }
    assert rows["Certificate", "generate", ""] == pytest.approx(4.0 * MIDDLE)
    assert rows["ClientKeyExchange", "generate", "ecdh"] == pytest.approx(MIDDLE)


def test_preempted_measurements_do_not_affect_cooling():
    quiet = [made(us) for us in PUBLIC_US]
    loud = [made(us, 5.0, preempted=9) for us in (200.0, 500.0)]
    assert summarise([*quiet, *loud]).cooling == summarise(quiet).cooling


def test_too_few_suites_give_no_cooling():
    assert summarise([made(us) for us in (100.0, 3000.0)]).cooling == {}


def test_profile_with_cooling_estimates_cheap_handshakes_as_warm(tmp_path):
    path = tmp_path / "it.toml"
    path.write_text(profile_of("it", [], [made(us) for us in PUBLIC_US], None))
    device = load_device(str(path))
    trace = parse_trace(made(100.0), "tls1.2/psk")
    # The derivation costs the median, 1,000 us, so the other work is that at the middle.
    work_us = (1 + 2 + 3 + 4 + 5 + 1) * MIDDLE
    assert side_cost(trace, "client", device).total.mean * 1e6 == pytest.approx(1000.0 + work_us, rel=1e-3)
    twice = parse_trace({**made(100.0), "operations": made(100.0)["operations"] * 2}, "tls1.2/psk")
    cooler = ((BASE_US + 2000.0) / (BASE_US + 1000.0)) ** EXPONENT
    expected_us = 2000.0 + work_us * cooler
    assert side_cost(twice, "client", device).total.mean * 1e6 == pytest.approx(expected_us, rel=1e-3)


def test_symmetric_work_is_slower_even_if_the_stack_is_not(tmp_path):
    path = tmp_path / "it.toml"
    path.write_text(profile_of("it", [], [made(us) for us in PUBLIC_US], None))
    device = load_device(str(path))
    cooling = structs.replace(device.overhead.cooling, messages=0.0, symmetric=0.5, from_s=0.0, at_s=250e-6)
    device = replace(device, overhead=replace(device.overhead, cooling=cooling))
    one = SideEstimator(parse_trace(made(100.0), "tls1.2/psk"), "client", device)
    # The derivation costs 1,000 us.
    assert (one.slower_stack, one.slower_symmetric) == (1.0, pytest.approx(2.0))
