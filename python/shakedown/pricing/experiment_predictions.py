"""What an experiment's handshakes would cost elsewhere: its devices, bearers and rates, by the default model.

Everything a report needs to show it is computed here and saved with the results, so that a page is made from
saved results and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, cast

from shakedown.errors import InputError
from shakedown.experiment import Experiment
from shakedown.measurement import Measurement
from shakedown.results.captures import Capture

if TYPE_CHECKING:
    from shakedown.pricing.library import TraceLibrary
    from shakedown.pricing.predict import Scenario
    from shakedown.pricing.trace import Trace

CURVE_POINTS = 48
"""Rates at which a queue's curve is computed, from none to almost the limit."""

_NEAREST_TO_LIMIT = 0.99


class Queue(TypedDict):
    """A server's time for one handshake, by the rate at which handshakes arrive.

    `service_s` is the work itself, `knee_per_s` the rate with the highest power (rate over response time:
    Kleinrock 1979), `limit_per_s` the rate at which the queue runs away; `points` pairs rates with waits.
    """

    suite: str
    server_device: str
    service_s: float
    knee_per_s: float
    limit_per_s: float
    points: list[tuple[float, float]]


class Unpriced(TypedDict):
    """A scenario that no figure can price, and why."""

    suite: str
    device: str
    server_device: str
    reason: str
    capture: NotRequired[str]
    connection: NotRequired[int]


@dataclass(frozen=True)
class Forecast:
    """Rows of `predict` for every suite, device, bearer and rate; and the server's queue for every suite.

    Rows that price a captured trace name its `capture` and `connection`; queues are of measured suites alone.
    """

    predictions: tuple[dict[str, Any], ...] = ()
    queues: tuple[Queue, ...] = ()
    unpriced: tuple[Unpriced, ...] = ()


def forecast(
    experiment: Experiment, measurements: Sequence[Measurement], captures: Sequence[Capture] = ()
) -> Forecast:
    """Prices handshakes, measured and captured, on the experiment's devices; nothing where it names none.

    What it leaves out is as everywhere: device `phone`, server `server`, bearer `lte`, rate 0.
    """
    if not (experiment.devices or experiment.bearers or experiment.rates_per_s):
        return Forecast()
    from shakedown.pricing.trace import parse_trace

    predictions: list[dict[str, Any]] = []
    queues: list[Queue] = []
    unpriced: list[Unpriced] = []
    for one in measurements:
        trace = parse_trace(cast("Mapping[str, object]", one), one["suite"])
        rows, queue, without = _price(experiment, trace)
        predictions += rows
        queues += [queue] if queue else []
        unpriced += without
    for capture in captures:
        for captured in capture["traces"]:
            place = {"capture": capture["capture"], "connection": captured["connection"]}
            trace = parse_trace(captured["trace"], capture["capture"])
            rows, _, without = _price(experiment, trace)
            predictions += [{**row, **place} for row in rows]
            unpriced += [cast("Unpriced", {**one, **place}) for one in without]
    return Forecast(tuple(predictions), tuple(queues), tuple(unpriced))


def _price(experiment: Experiment, trace: Trace) -> tuple[list[dict[str, Any]], Queue | None, list[Unpriced]]:
    """One trace on the experiment's devices, over its bearers, at its rates."""
    from shakedown.pricing import predict

    devices = experiment.devices or (predict.DEFAULT_DEVICE,)
    bearers = experiment.bearers or (predict.DEFAULT_BEARER,)
    rates = experiment.rates_per_s or (0.0,)
    server_device = experiment.server_device or predict.DEFAULT_SERVER_DEVICE
    suite = trace.suite
    # A library is asked for suites by name and nothing else.
    traces = cast("TraceLibrary", {suite: trace})
    predictions: list[dict[str, Any]] = []
    unpriced: list[Unpriced] = []
    queue: Queue | None = None
    for device in devices:
        try:
            for bearer in bearers:
                scenario = predict.scenario(suite, device, server_device, bearer, traces=traces)
                queue = queue or queue_of(scenario)
                for rate in rates:
                    rows = predict.predict(
                        [suite],
                        device=device,
                        server_device=server_device,
                        bearer=bearer,
                        rate_per_s=rate,
                        traces=traces,
                    )
                    predictions += cast("list[dict[str, Any]]", rows)
        except InputError as error:
            unpriced.append(
                Unpriced(suite=suite, device=device, server_device=server_device, reason=str(error))
            )
    return predictions, queue, unpriced


def queue_of(scenario: Scenario) -> Queue | None:
    """The server's queue, or None where nothing that it does has a price, so that nothing limits it."""
    import numpy as np

    service_s = scenario.server.total.mean
    if service_s <= 0:
        return None
    limit = 1 / service_s
    rates = limit * np.linspace(0, _NEAREST_TO_LIMIT, CURVE_POINTS)
    waits = scenario.wait_s("default", rates, 1)
    fine = limit * np.linspace(0.001, _NEAREST_TO_LIMIT, 990)
    power = fine / (service_s + scenario.wait_s("default", fine, 1))
    points = [(float(rate), float(wait)) for rate, wait in zip(rates, waits, strict=True)]
    return Queue(
        suite=scenario.trace.suite,
        server_device=scenario.server_device.name,
        service_s=service_s,
        knee_per_s=float(fine[int(np.nanargmax(power))]),
        limit_per_s=limit,
        points=[(rate, wait) for rate, wait in points if math.isfinite(wait)],
    )
