"""Two conditions measured in interleaved pairs.

A block has one process for each condition, which measure alternately on one processor. The rounds have the
orders ABBA and BAAB, so a linear drift of the machine cancels out. A block's figure is the median of its
rounds, so one disturbed round has no effect. Each block has new processes, because the memory layout of a
process affects its times.

Rounds count that were measured at the processor's full speed, by the rule of `processor_speed`: a fixed loop
runs between the readings, and the choice depends on the loop alone. A block measures more rounds until enough
count; at a limit those with the fastest loops do.
"""

from __future__ import annotations

import os
import re
import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import polars as pl

from shakedown.comparison.figures import Figure, Figures, Handshake, handshakes
from shakedown.comparison.verdicts import Pair, comparison, logarithms, pairs_of
from shakedown.errors import InputError, ShakedownError
from shakedown.native.processors import placed, processors
from shakedown.prediction.processor_speed import Speed, Timed
from shakedown.schema.base import decode
from shakedown.schema.comparison import Comparison, Method
from shakedown.schema.measured import Measurement

DEFAULT_BLOCKS, MIN_BLOCKS, MAX_BLOCKS = 24, 4, 1000
ROUNDS, MAX_ROUNDS = 5, 15
"""Rounds of two readings of each condition: the number that counts in a block, and the limit per block."""
ORDERS = ("ABBA", "BAAB")
REPEAT = 50
"""Default number of handshakes of a reading. The first few are slower, because the other process used the
caches between two readings.
"""

TIMES = "times"
"""A request to measure without counting instructions."""

Reading = Mapping[Handshake, Figures]
Progress = Callable[[int, str], None]


@dataclass(frozen=True)
class Condition:
    """A condition: a program, arguments of its command `measure`, and environment variables."""

    label: str
    program: tuple[str, ...]
    arguments: tuple[str, ...]
    environment: Mapping[str, str]

    @contextmanager
    def worker(self, request: str) -> Iterator[Callable[[], list[Measurement]]]:
        """A process of a condition; each call measures once. Raises `ShakedownError` with the process's
        error.
        """
        repeats = any(word.partition("=")[0] == "--repeat" for word in self.arguments)
        command = [
            *self.program,
            "measure",
            *(() if repeats else ("--repeat", str(REPEAT))),
            *self.arguments,
            "--json",
            "--on-request",
        ]
        process = subprocess.Popen(
            command,
            env={**os.environ, **self.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

        def measure() -> list[Measurement]:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(f"{request}\n")
                process.stdin.flush()
                answer = process.stdout.readline()
            except BrokenPipeError:
                answer = ""
            if not answer:
                raise self._failure(process)
            return decode(answer, list[Measurement], self.label)

        with process:
            try:
                yield measure
            finally:
                process.terminate()

    def _failure(self, process: subprocess.Popen[str]) -> ShakedownError:
        _, errors = process.communicate()
        line = (errors.strip().splitlines() or [f"exit status {process.returncode}"])[-1]
        kind = InputError if process.returncode == 2 else ShakedownError
        return kind(f"{self.label}: {line.removeprefix('error: ')}")


def condition(text: str, program: Path | None = None) -> Condition:
    """Parses a condition: `[NAME=VALUE]… SUITE… [--option …]`. Raises `InputError`."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f'"{text}": {error}; accepted: arguments of measure, as in a shell') from None
    environment = {}
    while words and re.fullmatch(r"[A-Za-z_]\w*=.*", words[0]):
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    if not words:
        raise InputError(f'"{text}" names no suite; accepted: [NAME=VALUE]… SUITE… [options of measure]')
    if program is not None and not (program.is_file() and os.access(program, os.X_OK)):
        raise InputError(f"{program}: is not a program; accepted: another build's shakedown")
    # An absolute path, because a name without a slash would be looked up in PATH.
    runs = (sys.executable, "-m", "shakedown") if program is None else (str(program.absolute()),)
    return Condition(text if program is None else f"{text} ({program})", runs, tuple(words), environment)


@dataclass(frozen=True)
class Block:
    """Readings of both conditions: each round has two consecutive readings of each condition.

    `clocks` are the processors and clocks with which they were measured.
    """

    before: list[Reading] = field(default_factory=list)
    after: list[Reading] = field(default_factory=list)
    clocks: frozenset[tuple[str, str]] = frozenset()

    def difference(self, handshakes: tuple[Handshake, Handshake], figure: Figure) -> float | None:
        """Median difference of logarithms over the rounds. None if a reading is missing or not positive."""
        sides = (_series(self.before, handshakes[0], figure), _series(self.after, handshakes[1], figure))
        logs = [logarithms(side) for side in sides if len(side) == len(self.before)]
        if len(logs) < 2 or logs[0] is None or logs[1] is None:
            return None
        one, other = logs[0], logs[1]
        return statistics.median(
            (other[at] + other[at + 1] - one[at] - one[at + 1]) / 2 for at in range(0, len(one), 2)
        )


def measured_blocks(before: Condition, after: Condition, blocks: int, progress: Progress) -> Iterator[Block]:
    """Measures blocks of both conditions, one after the other. Raises `ShakedownError`."""
    conditions = {"A": before, "B": after}
    with placed(processors()[-1:]):
        speed = Speed.warmed_up()
        for number in range(blocks):
            progress(number, f"block {number + 1} of {blocks}")
            yield _block(number, conditions, speed)
    progress(blocks, "")


def _block(number: int, conditions: Mapping[str, Condition], speed: Speed) -> Block:
    clocks: set[tuple[str, str]] = set()

    def read(worker: Callable[[], list[Measurement]]) -> Reading:
        measured = worker()
        clocks.update((one.machine.cpu, one.clock) for one in measured)
        return handshakes(_table(measured))

    with ExitStack() as stack:
        # Counts do not vary, so only the first block measures them.
        request = TIMES if number else ""
        # Alternates, because the memory layout may depend on the order in which processes start.
        readers = {
            letter: partial(read, stack.enter_context(conditions[letter].worker(request)))
            for letter in ("AB" if number % 2 == 0 else "BA")
        }
        rounds: list[Timed[Block]] = []
        while len(rounds) < ROUNDS or (len(rounds) < MAX_ROUNDS and not speed.has(ROUNDS, rounds)):
            letters = ORDERS[(number + len(rounds)) % 2]
            rounds.append(_round(speed, letters, readers))
    counted = speed.counted(rounds, ROUNDS)
    return Block(
        [one for each in counted for one in each.before],
        [one for each in counted for one in each.after],
        frozenset(clocks),
    )


def _round(speed: Speed, letters: str, readers: Mapping[str, Callable[[], Reading]]) -> Timed[Block]:
    """Readings of both conditions in an order, and the slowest loop between them."""
    found, loops_s = Block(), [speed.sample()]
    for letter in letters:
        (found.before if letter == "A" else found.after).append(readers[letter]())
        loops_s.append(speed.sample())
    return Timed(found, max(loops_s))


def _table(measured: Sequence[Measurement]) -> pl.DataFrame:
    from shakedown.experiments.figure_kinds.in_memory_results import results_of

    return results_of(measured).table


def compared(before: str, after: str, blocks: Sequence[Block], *, rules: Method) -> Comparison:
    """The verdicts of measured blocks, at least one."""
    same = len(frozenset().union(*(block.clocks for block in blocks))) == 1
    reason = None if same else "processors or clocks differ"
    pairs: list[Pair] = []
    for names in paired(list(blocks[0].before[0]), list(blocks[0].after[0])):
        figures = (
            medians([one for block in blocks for one in block.before], names[0]),
            medians([one for block in blocks for one in block.after], names[1]),
        )

        def varying(
            figure: Figure,
            names: tuple[Handshake, Handshake] = names,
            figures: tuple[Figures, Figures] = figures,
        ) -> Pair | None:
            if figure.quantity != "time":
                # Counts have one reading per process.
                reason = "counted without a seed"
                return Pair(names, figure, figures[0][figure], figures[1][figure], reason=reason)
            differences = [block.difference(names, figure) for block in blocks]
            known = tuple(one for one in differences if one is not None)
            if len(known) < len(blocks):
                return None
            return Pair(names, figure, figures[0][figure], figures[1][figure], differences=known)

        pairs += pairs_of(names, *figures, varying, reason)
    return comparison(before, after, pairs, rules)


def paired(before: Sequence[Handshake], after: Sequence[Handshake]) -> list[tuple[Handshake, Handshake]]:
    """Pairs equal handshakes if both conditions have the same; otherwise by order. Raises `InputError`."""
    if set(before) == set(after):
        return [(one, one) for one in before]
    if len(before) != len(after):
        raise InputError(
            f"{len(before)} suites and {len(after)} to be paired in their order; accepted: as many in both"
        )
    return list(zip(before, after, strict=True))


def _series(readings: Sequence[Reading], handshake: Handshake, figure: Figure) -> list[float]:
    found = (one[handshake].get(figure) for one in readings)
    return [one.median for one in found if one is not None]


def medians(readings: Sequence[Reading], handshake: Handshake) -> Figures:
    """The figures of the first reading, each with its median over all readings."""
    return {
        figure: replace(one, median=statistics.median(_series(readings, handshake, figure)))
        for figure, one in readings[0][handshake].items()
    }
