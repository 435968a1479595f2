"""The rounds of a block that count are those at the processor's full speed (with a scripted loop)."""

from __future__ import annotations

import json
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

import real
from shakedown.cli import exit_status
from shakedown.comparison import pairs
from shakedown.comparison.figures import handshakes
from shakedown.comparison.pairs import MAX_ROUNDS, ROUNDS, Block, condition, measured_blocks
from shakedown.errors import InputError, ShakedownError
from shakedown.prediction.processor_speed import Speed

ROUND = 4
"""Readings."""
SAMPLES = ROUND + 1
FULL_S, SLOW_S = 1.0, 1.5


@pytest.fixture
def readings(monkeypatch):
    """A condition whose readings are (worker, number); and the loop's next times."""
    numbers, workers = count(), count()
    loops_s: list[float] = []

    class Scripted(Speed):
        @classmethod
        def warmed_up(cls):
            return cls([FULL_S] * 100)

        def sample(self):
            return self.note(loops_s.pop(0) if loops_s else FULL_S)

    class Condition:
        @contextmanager
        def worker(self, _request):
            worker, machine = next(workers), SimpleNamespace(cpu="cpu")
            yield lambda: [SimpleNamespace(machine=machine, clock="clock", read=(worker, next(numbers)))]

    monkeypatch.setattr(pairs, "Speed", Scripted)
    monkeypatch.setattr(pairs, "_table", lambda measured: measured[0].read)
    monkeypatch.setattr(pairs, "handshakes", lambda read: read)
    return Condition(), loops_s


def read_in(blocks):
    (block,) = blocks
    return sorted(number for side in (block.before, block.after) for _, number in side)


def test_rounds_are_measured_until_enough_are_at_full_speed(readings):
    condition, loops_s = readings
    # One slow loop at the beginning of the first round, and one at the end of the third.
    loops_s += [SLOW_S, *[FULL_S] * ROUND, *[FULL_S] * SAMPLES, *[FULL_S] * ROUND, SLOW_S]
    blocks = list(measured_blocks(condition, condition, 1, lambda done, label: None))
    assert blocks[0].clocks == {("cpu", "clock")}
    assert read_in(blocks) == [n for n in range((ROUNDS + 2) * ROUND) if n // ROUND not in (0, 2)]
    # The same build in both conditions still has a process for each.
    assert [{worker for worker, _ in side} for side in (blocks[0].before, blocks[0].after)] == [{0}, {1}]


def test_at_the_round_limit_the_fastest_rounds_are_used(readings):
    condition, loops_s = readings
    slow_s = [SLOW_S + 0.1 * (number % 3) for number in range(MAX_ROUNDS)]
    loops_s += [one for one in slow_s for _ in range(SAMPLES)]
    blocks = list(measured_blocks(condition, condition, 1, lambda done, label: None))
    assert read_in(blocks) == [n for n in range(MAX_ROUNDS * ROUND) if n // ROUND % 3 == 0]


def test_program_in_the_current_folder_runs_rather_than_one_of_the_same_name_in_path(tmp_path, monkeypatch):
    for folder in ("here", "path"):
        (tmp_path / folder).mkdir()
        program = tmp_path / folder / "shakedown"
        program.write_text(f"#!/bin/sh\necho run from {folder} >&2\nexit 1\n")
        program.chmod(0o755)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PATH", str(tmp_path / "path"), prepend=":")
    one = condition("tls1.2/psk", Path("./shakedown"))
    with one.worker("") as measure, pytest.raises(ShakedownError, match="run from here"):
        measure()


def test_folder_is_refused_as_program(tmp_path):
    with pytest.raises(InputError, match="is not a program; accepted"):
        condition("tls1.2/psk", tmp_path)


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), ShakedownError("x: failed")])
def test_comparison_that_stops_prints_the_blocks_so_far(monkeypatch, capsys, stop):
    reading = handshakes(pairs._table([real.measurement("tls1.2/psk")]))

    def stopping(*_):
        yield from [Block([reading] * 2, [reading] * 2, frozenset({("cpu", "clock")}))] * 3
        raise stop

    monkeypatch.setattr(pairs, "measured_blocks", stopping)
    status = exit_status(["compare", "--pair", "tls1.2/psk", "tls1.2/psk", "--json"])
    out, err = capsys.readouterr()
    times = [row for row in json.loads(out) if row["quantity"] == "time"]
    assert {row["verdict"] for row in times} == {"undecided"}
    if isinstance(stop, KeyboardInterrupt):
        assert (status, err) == (130, "error: interrupted: 3 of 24 blocks measured\n")
    else:
        assert (status, err) == (1, "error: x: failed\n")
