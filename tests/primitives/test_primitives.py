"""Primitives are the triples of traces, and their times a device profile for estimates."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from shakedown import native
from shakedown.api import in_memory
from shakedown.cli import exit_status
from shakedown.errors import InputError
from shakedown.profiles import parse_device, this_machine_path
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS, triple_fault

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.toml"
SUITES = tomllib.loads(QUICKSTART.read_text(encoding="utf-8"))["suites"]


@pytest.fixture(scope="module")
def names() -> set[tuple[str, str, str]]:
    """Every primitive that there is a timing of."""
    return set(native.extension().primitive_names())


@pytest.mark.parametrize("suite", SUITES)
def test_every_public_key_operation_of_a_trace_is_a_primitive(
    suite: str, names: set[tuple[str, str, str]]
) -> None:
    operations = in_memory.measure(suite, repeat=1).operations
    public = {one.triple for one in operations if one.operation not in SYMMETRIC_OPERATIONS}
    assert public <= names


def test_every_primitive_is_in_the_vocabulary_of_profiles(names: set[tuple[str, str, str]]) -> None:
    faults = {name: triple_fault(*name) for name in names}
    assert {name: fault for name, fault in faults.items() if fault} == {}


def test_timings_become_a_profile_with_the_same_figures() -> None:
    timed = native.primitives(filter=["x25519"], seconds=0.05)
    text = native.device_profile(timed, name="bench-board", title='A "board"', date="2026-01-01")
    device = parse_device(tomllib.loads(text), "bench-board.toml")
    assert (device.name, device.title, device.date) == ("bench-board", 'A "board"', "2026-01-01")
    assert len(device.costs) == len(timed) > 0
    for one in timed:
        cost = device.costs[one.operation, one.algorithm, one.parameters]
        assert cost.mean_s == pytest.approx(one.us.median * 1e-6, rel=1e-3)


def test_signing_with_ml_dsa_is_a_distribution() -> None:
    timed = native.primitives(filter=["sign mldsa44"], seconds=0.05)
    device = parse_device(tomllib.loads(native.device_profile(timed, name="x", date="2026-01-01")), "x.toml")
    cost = device.costs["sign", "mldsa", "mldsa44"]
    assert cost.low_s < cost.mean_s < cost.high_s
    assert cost.sd_s > 0


@pytest.mark.parametrize(
    ("options", "named"), [({"filter": ["sgin"]}, "sgin"), ({"seconds": 0.0}, "0"), ({"seconds": -1.0}, "-1")]
)
def test_wrong_options_are_named_in_one_line(options: dict, named: str) -> None:
    with pytest.raises(InputError) as caught:
        native.primitives(**options)
    message = str(caught.value)
    assert named in message
    assert "accepted" in message
    assert "\n" not in message


@pytest.mark.parametrize("there", [False, True])
def test_interrupted_command_prints_the_timed_primitives_and_writes_a_new_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], there: bool
) -> None:
    out = tmp_path / "p.toml"
    real = native.extension().primitives

    def interrupted(*, progress: Callable[[int, int, str], None], **options: object) -> list:
        def tell(done: int, total: int, name: str) -> None:
            if name.endswith("dsa2048"):
                raise KeyboardInterrupt
            progress(done, total, name)

        return real(progress=tell, **options)

    monkeypatch.setattr(native.extension(), "primitives", interrupted)
    if there:
        out.write_text("a complete profile")
    arguments = ["primitives", "sign", "dsa", "--seconds", "1ms", "--out", str(out), "--json", "--force"]
    assert exit_status(arguments) == 130
    printed, error = capsys.readouterr()
    assert [one["parameters"] for one in json.loads(printed)] == ["dsa512", "dsa1024"]
    assert error.endswith("error: interrupted: 2 of 3 primitives timed\n")
    if there:
        assert out.read_text() == "a complete profile"
    else:
        costs = parse_device(tomllib.loads(out.read_text()), "p.toml").costs
        assert set(costs) == {("sign", "dsa", "dsa512"), ("sign", "dsa", "dsa1024")}


@pytest.mark.parametrize("options", [["--out", "/proc/p.toml"], []])
def test_place_that_cannot_be_written_is_refused_before_timing(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(native, "primitives", lambda **_: pytest.fail("it was timed"))
    monkeypatch.setenv("XDG_DATA_HOME", "/proc")
    assert exit_status(["primitives", *options]) != 0
    error = capsys.readouterr().err
    assert error.startswith("error: /proc/")
    assert ": cannot be written: " in error


def test_timings_are_printed_if_their_profile_cannot_be_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["primitives", "digest", "md5-sha1", "--seconds", "1ms", "--out", "/dev/full", "--json"]
    assert exit_status(arguments) == 1
    printed, error = capsys.readouterr()
    assert [one["algorithm"] for one in json.loads(printed)] == ["md5-sha1"]
    assert error == "error: /dev/full: cannot be written: no space left on device\n"


def test_profile_of_devices_measure_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(native, "primitives", lambda **_: pytest.fail("it was timed"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = this_machine_path()
    path.parent.mkdir(parents=True)
    timed = native.device_profile([], name="this-machine", date="2026-01-01")
    path.write_text(f"{timed}\n[overhead]\nper_handshake_us = 10\n")
    assert exit_status(["primitives"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f'error: {path}: contains measurements of "devices measure"')
    assert error.endswith("accepted: --out FILE, or --force to replace it\n")
