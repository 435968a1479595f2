"""Simulations in virtual time: whole, in pieces, and with protocol engines.

`spec` is `Scenario` of `crates/sim`. The core returns a report of it, and an outcome, which
merges and is longer by far.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from shakedown.errors import InputError
from shakedown.native import chosen_options, complaints, refused
from shakedown.native.core import extension

if TYPE_CHECKING:
    from shakedown.native.scenario import HandshakeId, MeasureOptions

_threads: int | None = None


def use_threads(count: int) -> None:
    """Sets the number of threads that this process's simulations share."""
    global _threads
    _threads = count


def simulate(
    spec: Mapping[str, object], progress: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """Runs a simulation; its report.

    `progress` is called with the clients that are through, of how many. Ctrl-C stops it. Replications share
    threads, by default one a processor (`use_threads`); the figures are the same. Raises `InputError`.
    """
    options = {} if _threads is None else {"threads": _threads}
    with refused():
        return _parts(extension().simulate(spec_text(spec), progress, **options))[0]


def _parts(answer: str) -> tuple[dict[str, Any], msgspec.Raw]:
    """Report and outcome of the core's answer; the outcome is not read."""
    parts = msgspec.json.decode(answer, type=dict[str, msgspec.Raw])
    return cast("dict[str, Any]", msgspec.json.decode(parts["report"])), parts["outcome"]


def replay(spec: str) -> dict[str, Any]:
    """Replays one handshake over a path, without a queue, until its percentiles are known; `spec` and what is
    returned are `Replay`, as JSON, and `Replayed` of `crates/sim`. Raises `InputError`.
    """
    with refused():
        return cast("dict[str, Any]", json.loads(extension().replay(spec)))


def spec_text(spec: Mapping[str, object]) -> str:
    """A simulation as the core reads it, JSON.

    Times of arrival are written some at a time: as objects, millions would take many times their text.
    """
    arrivals = spec.get("arrivals")
    times = arrivals.get("at_s") if isinstance(arrivals, Mapping) else None
    if not isinstance(arrivals, Mapping) or not isinstance(times, array):
        return json.dumps(spec)
    place = '"at_s": []'
    before, _, after = json.dumps({**spec, "arrivals": {**arrivals, "at_s": []}}).partition(place)
    some = 1 << 16
    written = (",".join(map(repr, times[at : at + some])) for at in range(0, len(times), some))
    return f"{before}{place[:-1]}{','.join(written)}]{after}"


def pieces(text: str, threads: int) -> tuple[int, int, int]:
    """The first of a simulation's replications, how many they are, and into how many parts each is cut for so
    many threads: parts have servers, clients and cells of their own. Raises `InputError` for what cannot be.
    """
    with refused():
        return cast("tuple[int, int, int]", extension().simulate_pieces(text, threads))


def piece(text: str, replication: int, part: tuple[int, int] | None = None) -> str:
    """The outcome of one replication, or of a part of it (its number, and of how many), for `merged`."""
    with refused():
        return cast(str, extension().simulate_piece(text, replication, part))


def merged(outcomes: Sequence[str]) -> tuple[dict[str, Any], str]:
    """The report and the outcome of all pieces of a simulation, in any order."""
    with refused():
        report, outcome = _parts(extension().simulate_merge(outcomes))
    return report, bytes(outcome).decode()


def longer(text: str, outcome: str, spent: int) -> str | None:
    """What is simulated after an outcome of a simulation, with so many events in all so far; None where it is
    precise enough, or no events are left.
    """
    with refused():
        return cast("str | None", extension().simulate_longer(text, outcome, spent))


def with_endpoints(
    handshake: HandshakeId,
    spec: Mapping[str, object],
    options: MeasureOptions,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """The same with a suite's own endpoints in place of the recorded handshake: real protocol engines over
    simulated links and TCP, charged by the recorded messages' costs.

    Besides the report: the stacks, `replayed` (the report of a replay with another seed),
    `distance` (Kolmogorov and Smirnov's, between the times of both) and `critical`, at 1 %. Raises
    `InputError`, and what `measure` raises.
    """
    core = extension()
    chosen = chosen_options(options, handshake)
    try:
        with complaints(handshake.suite):
            text = core.simulate_endpoints(
                handshake.suite, spec_text(spec), options=chosen, progress=progress
            )
    except ValueError as error:
        if isinstance(error, core.CoreError):
            raise
        raise InputError(str(error)) from error
    return cast("dict[str, Any]", json.loads(text))
