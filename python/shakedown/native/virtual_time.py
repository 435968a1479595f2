"""Simulations in virtual time: complete, in pieces, and with protocol engines.

`spec` is `Scenario` of `crates/sim`. The core returns a report, and an outcome, which is much larger and can
be merged with others.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from shakedown.errors import InputError
from shakedown.native import chosen_options, name_errors_as_input, value_errors_as_input
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
    """Runs a simulation and returns its report.

    `progress` is called with the number of completed clients and of all clients. Ctrl-C stops the simulation.
    Replications share threads, by default one per processor (`use_threads`); their number does not change the
    figures. Raises `InputError`.
    """
    options = {} if _threads is None else {"threads": _threads}
    with value_errors_as_input():
        return _parts(extension().simulate(spec_text(spec), progress, **options))[0]


def _parts(answer: str) -> tuple[dict[str, Any], msgspec.Raw]:
    """Report and outcome of the core's answer; the outcome is not decoded."""
    parts = msgspec.json.decode(answer, type=dict[str, msgspec.Raw])
    return cast("dict[str, Any]", msgspec.json.decode(parts["report"])), parts["outcome"]


def replay(spec: str) -> dict[str, Any]:
    """Replays one handshake over a path, without a queue, until its percentiles are precise enough. `spec` is
    a `Replay` as JSON, and the result a `Replayed` of `crates/sim`. Raises `InputError`.
    """
    with value_errors_as_input():
        return cast("dict[str, Any]", json.loads(extension().replay(spec)))


def spec_text(spec: Mapping[str, object]) -> str:
    """A simulation as JSON, for the core.

    Arrival times are converted in blocks: as Python objects, millions need much more memory than as text.
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
    """The first of a simulation's replications, their number, and the number of parts of each for a number of
    threads. Parts share no servers, clients or cells. Raises `InputError` for an invalid simulation.
    """
    with value_errors_as_input():
        return cast("tuple[int, int, int]", extension().simulate_pieces(text, threads))


def piece(text: str, replication: int, part: tuple[int, int] | None = None) -> str:
    """The outcome of one replication, or of a part of it (its number, number of parts), for `merged`."""
    with value_errors_as_input():
        return cast(str, extension().simulate_piece(text, replication, part))


def merged(outcomes: Sequence[str]) -> tuple[dict[str, Any], str]:
    """The report and the outcome of all pieces of a simulation, in any order."""
    with value_errors_as_input():
        report, outcome = _parts(extension().simulate_merge(outcomes))
    return report, bytes(outcome).decode()


def longer(text: str, outcome: str, spent: int) -> str | None:
    """The simulation that continues after an outcome; None if the outcome is precise enough, or the limit of
    events is reached. `spent` is the number of events so far.
    """
    with value_errors_as_input():
        return cast("str | None", extension().simulate_longer(text, outcome, spent))


def with_endpoints(
    handshake: HandshakeId,
    spec: Mapping[str, object],
    options: MeasureOptions,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """As `simulate`, with a suite's protocol engines instead of a replay, over simulated links and TCP. Their
    processing times are the costs of the recorded messages.

    The result also has the stacks, `replayed` (the report of a replay with another seed), `distance`
    (Kolmogorov-Smirnov, between the times of both) and `critical` (its critical value at 1 %). Raises
    `InputError` and the errors of `measure`.
    """
    core = extension()
    chosen = chosen_options(options, handshake)
    try:
        with name_errors_as_input(handshake.suite):
            text = core.simulate_endpoints(
                handshake.suite, spec_text(spec), options=chosen, progress=progress
            )
    except ValueError as error:
        if isinstance(error, core.CoreError):
            raise
        raise InputError(str(error)) from error
    return cast("dict[str, Any]", json.loads(text))
