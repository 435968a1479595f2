"""Primitives are the triples of traces, and their times a device profile for estimates."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from shakedown import native
from shakedown.api import in_memory
from shakedown.errors import InputError
from shakedown.profiles import parse_device
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
