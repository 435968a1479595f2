"""The profile of this machine: the stack's own work in measured handshakes, and estimates with it."""

from __future__ import annotations

import json

import pytest
from tools.check_this_machine import CHECKED, check

import real
from shakedown import native
from shakedown.errors import InputError
from shakedown.prediction.processor_speed import Speed
from shakedown.prediction.side_cost import side_cost
from shakedown.prediction.this_machine import MAX_ROUND_FACTOR, measure_suites, profile_of
from shakedown.prediction.trace import parse_trace
from shakedown.profiles import load_device
from shakedown.profiles.importers import import_benchmark, save_import
from shakedown.profiles.importers.measured import summarise
from shakedown.schema import builtins

FULL, SYMMETRIC = "tls1.3/x25519/p256/server", "tls1.2/psk"


def test_measured_handshakes_give_the_stack_overhead():
    """The objects are the core's, whose rows are tuples, not decoded JSON."""
    found = summarise([builtins(real.measurement(FULL)), builtins(real.measurement(SYMMETRIC))])
    kinds = {(row["protocol"], row["name"], row["work"]) for row in found.overhead["message"]}
    assert ("tls1.3", "ClientHello", "generate") in kinds
    # The same messages take less where no public-key operation cools the caches: they stay apart.
    assert ("tls1.2, symmetric", "Finished", "process") in kinds
    assert ("sign", "ecdsa", "p256") in found.primitives


@pytest.mark.parametrize("suite", [FULL, SYMMETRIC])
def test_profile_of_a_handshake_reproduces_its_cost(tmp_path, suite):
    # Medians of many repetitions; the closest of three, because other programs use the processors, too.
    errors = [_error_of_its_own(tmp_path, suite, 50 + attempt) for attempt in range(3)]
    # A single handshake cannot separate calls from bytes: part of its symmetric work stays assumed.
    assert min(errors) < 0.25, errors


def _error_of_its_own(tmp_path, suite, repeat):
    """The larger of the sides' relative differences between a handshake and its own profile's estimate."""
    measured = builtins(real.measurement(suite, repeat))
    path = tmp_path / f"it-{repeat}.toml"
    path.write_text(profile_of("it", [], [measured], None))
    device = load_device(str(path))
    errors = []
    for side in ("client", "server"):
        cost = side_cost(parse_trace(measured, suite), side, device)
        assert not cost.without_cost
        own = [
            one["generate_us"] if one["from"] == side else one["process_us"] for one in measured["messages"]
        ]
        attributed_us = sum(own) + measured["unattributed_us"][side]
        errors.append(abs(cost.total.mean * 1e6 / attributed_us - 1))
    return max(errors)


class Steady(Speed):
    """A processor whose speed does not change."""

    def sample(self) -> float:
        return self.note(0.001)


class Slowing(Speed):
    """A processor that was fast once, and never is again."""

    def sample(self) -> float:
        return self.note(0.001 if len(self.loops_s) < 1 else 0.002)

    @property
    def full_s(self) -> float:
        return 0.001


def test_rounds_are_reported_as_they_are_measured(fake):
    seen: list[int] = []
    few = {"rounds": 3, "repeat": 2}
    measure_suites(["tls1.2/psk"], **few, speed=Steady(), on_round=lambda found: seen.append(len(found)))
    assert seen == [1, 1, 1]
    measure_suites(["tls1.2/psk"], **few, speed=Steady(), minutes=0.0, on_round=lambda found: seen.append(0))
    assert seen == [1, 1, 1, 0]


def test_rounds_are_added_until_one_is_at_full_speed(fake):
    seen: list[int] = []
    measure_suites(
        ["tls1.2/psk"], rounds=3, repeat=2, speed=Slowing(), on_round=lambda found: seen.append(len(found))
    )
    assert seen == [1] * (MAX_ROUND_FACTOR * 3)


def test_forty_checked_suites_are_not_in_the_fit():
    from shakedown import native

    wanted = {native.runnable(name) for name in CHECKED}
    assert len(wanted) == 40
    suites = native.profile_suites()
    assert {name.split("/")[0] for name in wanted} == {one.split("/")[0] for one in suites}
    assert {name for name, tickets in suites.items() if tickets}.isdisjoint(wanted)
    one = builtins(real.measurement(SYMMETRIC))
    with pytest.raises(ValueError, match="among the fitted"):
        check([], [one], [one])


def test_every_profile_suite_is_runnable_and_canonical():
    assert all(native.runnable(name) == name for name in native.profile_suites())


@pytest.mark.parametrize("protocol", ["tls1.2", "tls1.3"])
def test_profile_suites_cover_every_signature_kind(protocol):
    """A stack's work around a signature depends on the kind of signature."""
    keys = {
        key
        for name in native.profile_suites()
        if name.startswith(f"{protocol}/")
        for key in native.describe(name)["keys"]
    }
    assert keys >= {"rsa2048", "p256", "ed25519"}


def test_probe_output_is_imported_as_a_profile(tmp_path):
    timed = [builtins(one) for one in native.primitives(filter=["sign"], seconds=0.001)]
    handshakes = [builtins(real.measurement(FULL)), builtins(real.measurement(SYMMETRIC))]
    text = json.dumps({"machine": {}, "primitives": timed, "handshakes": handshakes})
    library, found = import_benchmark(text, "router.json")
    assert "openssl" in library.lower()
    assert found.primitives["sign", "ecdsa", "p256"]["time_us"] > 0.0  # in a handshake
    assert found.primitives["sign", "rsa", "rsa4096"]["time_us"] > 0.0  # apart
    assert found.overhead["message"]
    assert not found.connection
    with pytest.raises(InputError, match="shakedown-probe --handshakes"):
        import_benchmark(json.dumps({"primitives": [1], "handshakes": handshakes}), "router.json")


def test_connection_costs_of_the_probe_are_imported(tmp_path):
    times = {"server_us": 90.0, "client_us": 80.0, "sd_us": 4.0, "per_kib_us": 0.5}
    connection = {**times, "server_cold": 0.05, "client_cold": 0.25}
    document = {
        "machine": {},
        "primitives": [builtins(one) for one in native.primitives(filter=["sign", "ecdsa"], seconds=0.001)],
        "handshakes": [builtins(real.measurement(SYMMETRIC))],
        "connection": connection,
    }
    file = tmp_path / "router.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    about = {
        "chip": "a router's",
        "clock_hz": 8.8e8,
        "title": "Router",
        "build": "static",
        "date": "2026-01-01",
    }
    out = tmp_path / "router.toml"
    save_import(file, name="router", library=None, source="here", out=out, **about)
    found = load_device(str(out)).connection
    assert (found.server_s, found.client_s, found.per_kib_s) == pytest.approx((90e-6, 80e-6, 0.5e-6))
    assert (found.server_cold, found.client_cold) == (0.05, 0.25)
    file.write_text(json.dumps({**document, "connection": {"server_us": 90.0}}), encoding="utf-8")
    with pytest.raises(InputError, match="damaged output of shakedown's benchmark"):
        import_benchmark(file.read_text(encoding="utf-8"), "router.json")
