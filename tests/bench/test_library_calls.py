"""Ratios of a library's operations to their unit, over rounds at the processor's full speed."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from bench.library_calls import PROFILE, of_this_machine, table
from msgspec import structs

from bench import library_calls
from shakedown.prediction.processor_speed import Timed
from shakedown.profiles import load_software
from shakedown.profiles.software import UNIT


class Meter:
    """Every third pair of measurements runs at 0.6 of the processor's speed, where multiples differ."""

    def __init__(self):
        self.done = 0

    def timed(self, measure, speed):
        slow = self.done // 2 % 3 == 1
        self.done += 1
        found = measure()
        return Timed(
            2.0 * found if slow and isinstance(found, float) else found, speed.note(1.6 if slow else 1.0)
        )


def test_multiples_use_only_rounds_at_full_speed(monkeypatch, tmp_path):
    monkeypatch.setattr(library_calls, "shared", lambda there: nullcontext(Meter()))
    monkeypatch.setattr(library_calls, "called", lambda program, operation: {"a": 30.0, "b": 60.0}[operation])
    monkeypatch.setattr(library_calls, "openssl_speed", lambda program, name: {UNIT: 30.0})
    found = library_calls.multiples(tmp_path, ["a", "b"])
    assert found["a"] == [1.0] * library_calls.ROUNDS
    assert found["b"] == [2.0] * library_calls.ROUNDS


class FakeLibssl:
    """A library with 40 µs per key generation, and handshakes 100 µs above their public-key operations."""

    def __init__(self, path):
        assert path == "libssl"

    def keygen(self, name):
        return {("keygen", "ecdh", name): 40.0}

    def measure(self, plan, count):
        public_us = 0.0 if plan.resumed and not plan.tls13 else 80.0
        return {"server": public_us + (0.0 if plan.resumed else 30.0) + 100.0}


def test_other_work_excludes_public_key_operations(monkeypatch, tmp_path):
    """Go's operations take 50 µs each, and its handshakes 35 µs more; without any such operation, 80 µs."""

    def go(program, *arguments):
        if program.name == "calls":
            return 50.0
        files, protocol, mode = arguments
        assert Path(files).name in library_calls.SIGNATURES
        if mode == "resumed" and protocol == "tls1.2":
            return 80.0
        return 35.0 + (100.0 if mode == "resumed" else 150.0)

    signs = dict(library_calls.SIGNATURES.values())
    monkeypatch.setattr(library_calls, "shared", lambda there: nullcontext(Meter()))
    monkeypatch.setattr(library_calls, "called", go)
    monkeypatch.setattr(library_calls, "Libssl", FakeLibssl)
    monkeypatch.setattr(library_calls, "libssl_of", lambda program: "libssl")
    monkeypatch.setattr(
        library_calls,
        "openssl_speed",
        lambda program, name: {UNIT: 40.0} if name == "ecdhx25519" else {signs[name]: 30.0},
    )
    found = library_calls.works(tmp_path / "calls", tmp_path / "handshakes", tmp_path)
    assert found["work"] == [0.35] * 5
    assert found["symmetric_work"] == [0.8]


def test_a_profile_has_the_multiples_of_this_machine(tmp_path):
    """All factors of the library are replaced; the rest of the profile is unchanged."""
    shipped = load_software("go")
    names = list(shipped.library.primitives)
    assert len(names) > 12
    found = {name: [2.0 * at, 3.0 * at, 90.0 * at] for at, name in enumerate(names, 1)}
    found |= {"work": [0.3, 0.4, 0.9], "symmetric_work": [0.7]}
    path = tmp_path / "here.toml"
    path.write_text(of_this_machine(PROFILE.read_text("utf-8"), found), "utf-8")
    here = load_software(str(path))
    assert {name: factor.times for name, factor in here.library.primitives.items()} == {
        name: 3.0 * at for at, name in enumerate(names, 1)
    }
    assert (here.work.times, here.work_of(public_keys=False).times) == (0.4, 0.7)
    measured = {"library": None, "work": here.work, "symmetric_work": here.symmetric_work}
    assert structs.replace(shipped, **measured) == structs.replace(here, library=None)
    lines = table(shipped, found).splitlines()
    assert len(lines) == 2 + len(names) + 2
    assert lines[2].startswith("| sign ecdsa p256 | 3 | ")
