"""Modelled figures: recorded handshakes on devices, over bearers and in servers' queues, by formulas."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from shakedown.errors import InputError, with_options
from shakedown.experiments.figure_kinds.measured import place_columns
from shakedown.native.scenario import Load, Scenario
from shakedown.results.quantities import UNITS, column
from shakedown.results.queries import BOUNDED, MARKED
from shakedown.results.table import SCHEMA, Row, complete, fact, figure, frame, identity_columns
from shakedown.schema import builtins
from shakedown.schema.base import Basis
from shakedown.schema.identity import Identified
from shakedown.schema.trace import Trace

if TYPE_CHECKING:
    from shakedown.experiments.figure_kinds import Need, Run, Source
    from shakedown.experiments.file.experiment import Experiment
    from shakedown.prediction.library import TraceLibrary
    from shakedown.prediction.scenario import Scenario as Estimate
    from shakedown.prediction.trace import Trace as Recorded
    from shakedown.results.folder import Results


CURVE_POINTS = 48
"""Number of rates of a queue's curve, from 0 to almost the saturation rate."""

NEAREST_TO_SATURATION = 0.99

_ENDS = {"estimate": None, "lower": "low", "upper": "high"}
"""Keys of a printed figure whose names differ from those of the statistics."""

_WIDE: dict[tuple[str, str | None], tuple[str, str | None]] = {
    (column(f"predicted.{name}"), place): (f"predicted.{name}", _ENDS.get(place or "", place))
    for names, places in (
        (("transmission", "failed"), (None,)),
        (BOUNDED, ("estimate", "lower", "upper")),
        (("ready", "done"), ("mean", "p50", "p95", "p99", "lower", "upper")),
    )
    for name in names
    for place in places
}
"""Quantity and statistic of a figure in a row of `predict`, by its key and the key in it."""


@dataclass(frozen=True)
class Queue:
    """A server's time for one handshake, by arrival rate. If the basis is unknown, times are lower bounds,
    and rates upper bounds.
    """

    basis: Basis
    service_s: float
    knee_per_s: float
    saturation_per_s: float
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Modelled:
    """One handshake in one place: rows of `predict` by rate, or the reason without any; and the queue."""

    identity: Identified
    capture: str | None = None
    connection: int | None = None
    predictions: tuple[Mapping[str, Any], ...] = ()
    workers: tuple[tuple[int | None, int | None, int | None], ...] = ()
    queue: Queue | None = None
    without_cost: str | None = None


def needs(experiment: Experiment) -> tuple[Need, ...]:
    return ("traces",) if experiment.places else ()


def scenarios(run: Run) -> Iterator[Sequence[Scenario]]:
    """All recorded handshakes in all places of the experiment; one batch each, measured ones first."""
    places = run.experiment.places
    if not places:
        return
    for handshake, capture, connection in sorted(run.traces, key=lambda source: source[1] is not None):
        yield tuple(places.scenarios(handshake, capture=capture, connection=connection))


def run(scenario: Scenario, run: Run) -> Modelled:
    run.progress(0, f"estimating {scenario.label}{run.place}")
    return take(scenario, job(scenario, run)(), run)


def job(scenario: Scenario, run: Run) -> Callable[[], Modelled]:
    """Estimates a handshake in one place; if that is impossible, the result has the reason."""
    return partial(_modelled, scenario, run.traces[source_of(scenario)], run.experiment.options.fragment)


def source_of(scenario: Scenario) -> Source:
    assert scenario.handshake is not None
    return scenario.handshake, scenario.capture, scenario.connection


def take(scenario: Scenario, found: Modelled, run: Run) -> Modelled:
    """The queue is the same in all places of a handshake, so it is saved with the first place that has a
    cost.
    """
    source = source_of(scenario)
    if found.without_cost is not None:
        return found
    kept = found if scenario.capture is None and source not in run.queued else replace(found, queue=None)
    run.queued.add(source)
    return kept


def _modelled(scenario: Scenario, trace: Trace, fragment_bytes: int | None) -> Modelled:
    from shakedown.prediction import predict

    name = None if scenario.capture is None else Path(scenario.capture.file).name
    try:
        estimate = recorded_on(scenario, recorded(trace), fragment_bytes)
        rows = tuple(predict.rows(estimate, "default", scenario.load.rates_per_s, scenario.load.workers))
        workers = _workers(estimate, scenario.load)
    except InputError as error:
        return Modelled(trace, name, scenario.connection, without_cost=with_options(str(error), ()))
    queue = queue_of(estimate, scenario.load.workers) if scenario.capture is None else None
    return Modelled(trace, name, scenario.connection, rows, workers, queue)


def _workers(estimate: Estimate, load: Load) -> tuple[tuple[int | None, int | None, int | None], ...]:
    """The workers that each rate needs to meet `within_s`, with their range; empty without a limit, or if the
    replayed handshakes do not determine its percentile.
    """
    from shakedown.prediction.capacity import workers_needed

    if load.within_s is None:
        return ()
    try:
        return tuple(workers_needed(estimate, load.within_s, load.percentile, load.rates_per_s))
    except InputError:
        return ()


@lru_cache(maxsize=1)
def recorded(trace: Trace) -> Recorded:
    """A trace in the form for estimates, cached for all places of one handshake. Raises `InputError`."""
    from shakedown.prediction.library import open_library
    from shakedown.prediction.trace import parse_trace

    parsed = parse_trace(builtins(trace), trace.suite)
    return open_library().completed(parsed) if parsed.partial else parsed


def recorded_on(
    scenario: Scenario, trace: Recorded, fragment_bytes: int | None = None, *, from_idle: bool = False
) -> Estimate:
    """A trace with its costs on a scenario's devices, inside EAP if recorded there. Raises `InputError`."""
    from shakedown.prediction import predict
    from shakedown.prediction.eap import carried
    from shakedown.prediction.library import open_library
    from shakedown.prediction.scenario import scenario as estimated

    known = {trace.suite: trace}
    inside_eap = carried(fragment_bytes, None) if trace.inside_eap else None
    if inside_eap is not None and (full := trace.suite.removesuffix("/resumed")) != trace.suite:
        known[full] = open_library()[full]
    # Only suites are looked up in the library, so a dict is sufficient.
    traces = cast("TraceLibrary", known)
    device, server, bearer = scenario.device, scenario.server_device, scenario.bearer
    assert device is not None
    assert server is not None
    assert bearer is not None
    found = estimated(
        trace.suite, device, server, bearer, traces=traces, inside_eap=inside_eap, from_idle=from_idle
    )
    battery_j = scenario.load.battery_j
    return found if battery_j is None else predict.with_battery(found, battery_j)


def queue_of(estimate: Estimate, workers: int = 1) -> Queue | None:
    """The server's queue, or None if no server cost is known, so that nothing limits the rate."""
    from shakedown.prediction.work import basis_of

    service_s = estimate.service_s.mean
    basis = basis_of([estimate.server])
    return None if service_s <= 0 else _queue(service_s, estimate.service_sd_s, workers, basis)


@lru_cache(maxsize=16)
def _queue(service_s: float, sd_s: float, workers: int, basis: Basis) -> Queue:
    """The queue of a server, which is the same for one handshake in all places."""
    import numpy as np

    from shakedown.prediction.scenario import waits_s

    saturation = workers / service_s
    rates = saturation * np.linspace(0, NEAREST_TO_SATURATION, CURVE_POINTS)
    waits = waits_s(rates, service_s, sd_s, workers)
    fine = saturation * np.linspace(0.001, NEAREST_TO_SATURATION, 990)
    power = fine / (service_s + waits_s(fine, service_s, sd_s, workers))
    points = [(float(rate), float(wait)) for rate, wait in zip(rates, waits, strict=True)]
    return Queue(
        basis=basis,
        service_s=service_s,
        knee_per_s=float(fine[int(np.nanargmax(power))]),
        saturation_per_s=saturation,
        points=tuple((rate, wait) for rate, wait in points if math.isfinite(wait)),
    )


def table(made: Sequence[tuple[Scenario, Modelled]]) -> pl.DataFrame:
    """Converts predictions of many places to rows, place by place. The rows are created column by column,
    because there may be very many places and rates.
    """
    facts = [list(_facts(found)) for _, found in made]
    numbers = [number for number, some in enumerate(facts) for _ in some]
    tables = [
        frame((one for some in facts for one in some), {}).with_columns(
            pl.Series(_PLACE, numbers, pl.Int32())
        )
    ]
    predictions = [(number, one) for number, (_, found) in enumerate(made) for one in found.predictions]
    if predictions:
        tables.append(_predicted(predictions))
    together = pl.concat(tables).sort(_PLACE, maintain_order=True)
    return _placed(together, [_common(scenario, found) for scenario, found in made])


def _common(scenario: Scenario, found: Modelled) -> Row:
    return {
        **place_columns(scenario),
        **identity_columns(found.identity),
        "workers": scenario.load.workers,
        "model": "default",
        "capture": found.capture,
    }


_PLACE = "place"
"""Temporary column with the number of the place."""


def _placed(rows: pl.DataFrame, commons: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Adds the columns that all rows of a place share."""
    places = rows[_PLACE]
    columns = [
        pl.Series(name, [one[name] for one in commons], SCHEMA[name]).gather(places) for name in commons[0]
    ]
    return rows.with_columns(columns).drop(_PLACE)


def _predicted(predictions: Sequence[tuple[int, Mapping[str, Any]]]) -> pl.DataFrame:
    """Converts figures of predictions, each with the number of its place, to rows with that number."""
    columns = {
        f"{key}|{place}": (quantity, UNITS[quantity], statistic)
        for (key, place), (quantity, statistic) in _WIDE.items()
    }
    wide = pl.DataFrame(
        {
            _PLACE: [number for number, _ in predictions],
            "rate_per_s": [one["rate_per_s"] for _, one in predictions],
            **{
                f"{key}|{place}": [_figure(one, key, place) for _, one in predictions] for key, place in _WIDE
            },
        },
        schema={_PLACE: pl.Int32(), "rate_per_s": pl.Float64(), **dict.fromkeys(columns, pl.Float64())},
    )
    utilisation, offered = (
        [f"{column(f'predicted.{name}')}|{place}" for place in ("estimate", "lower", "upper")]
        for name in ("utilisation", "offered")
    )
    # Few offered loads differ from the utilisation.
    differ = pl.any_horizontal(
        pl.col(one).ne_missing(pl.col(other)) for one, other in zip(offered, utilisation, strict=True)
    )
    index = [_PLACE, "rate_per_s"]
    long = pl.concat(
        [
            wide.unpivot(
                index=index, on=[one for one in columns if one not in offered], variable_name="name"
            ),
            wide.filter(differ).unpivot(index=index, on=offered, variable_name="name"),
        ]
    )
    named = {
        one: pl.col("name").replace_strict(
            {name: what[at] for name, what in columns.items()}, return_dtype=pl.String
        )
        for at, one in enumerate(("quantity", "unit", "statistic"))
    }
    return complete(long.with_columns(**named).drop("name"), _PLACE)


def _figure(one: Mapping[str, Any], key: str, place: str | None) -> float | None:
    """A figure of a row of `predict`; None if it is missing."""
    value = one[key]
    if value is None or place is None:
        return cast("float | None", value)
    return cast("float | None", value[place])


def _facts(found: Modelled) -> Iterator[Row]:
    if found.without_cost is not None:
        yield fact("predicted.without_cost", found.without_cost)
    for number, one in enumerate(found.predictions):
        rate = one["rate_per_s"]
        yield fact("predicted.basis", one["basis"], rate_per_s=rate)
        for name in MARKED:
            if (bounds := one[column(f"predicted.{name}")]) is not None:
                yield fact(f"predicted.{name}.basis", bounds["basis"], rate_per_s=rate)
        for name, energy in (("energy", one["energy_j"]), ("wake-tail", one["wake_tail_j"])):
            if energy["missing"]:
                yield fact(f"predicted.{name}.missing", ", ".join(energy["missing"]), rate_per_s=rate)
        yield fact("predicted.energy.terms", "; ".join(one["energy_terms"]), rate_per_s=rate)
        for row in key_share("predicted", one["unused_key_share_s"]):
            yield {**row, "rate_per_s": rate}
        if found.workers:
            for statistic, value in zip((None, "low", "high"), found.workers[number], strict=True):
                yield figure("predicted.workers", value, statistic=statistic, rate_per_s=rate)
    for one in found.predictions[0]["without_cost"] if found.predictions else ():
        place = {key: one[key] for key in ("side", "operation", "algorithm", "parameters")}
        yield fact("predicted.missing", one["reason"], n=int(one["count"]), **place)
    for one in found.predictions[0]["extrapolated"] if found.predictions else ():
        place = {key: one[key] for key in ("side", "operation", "algorithm", "parameters")}
        place["n"] = int(one["count"])
        how = {"text": one["method"], **place}
        yield figure("predicted.extrapolated", one["time_s"], statistic="mean", **how)
        for statistic, value in zip(("low", "high"), one["range_s"], strict=True):
            yield figure("predicted.extrapolated", value, statistic=statistic, **place)
        yield fact("predicted.extrapolated.source", one.get("source") or None, **place)
    if found.queue is not None:
        queue = found.queue
        yield fact("queue.basis", queue.basis)
        yield figure("queue.service", queue.service_s)
        yield figure("queue.knee", queue.knee_per_s)
        yield figure("queue.saturation", queue.saturation_per_s)
        for rate, wait in queue.points:
            yield figure("queue.wait", wait, rate_per_s=rate)


def key_share(kind: str, found: Mapping[str, Any] | None) -> Iterator[Row]:
    """The rows of an unused key share, if there is one."""
    if found is None:
        return
    quantity = f"{kind}.unused-key-share"
    for statistic, end in ((None, "estimate"), ("low", "lower"), ("high", "upper")):
        yield figure(quantity, found[end], statistic=statistic)
    yield fact(f"{quantity}.basis", found["basis"])
    if found["missing"]:
        yield fact(f"{quantity}.missing", ", ".join(found["missing"]))


def printed(found: Modelled) -> Iterable[Any]:
    place = {} if found.capture is None else {"capture": found.capture, "connection": found.connection}
    return ({**one, **place} for one in found.predictions)


def terminal(results: Results, width: int) -> Iterable[str]:
    from shakedown.reporting.terminal.modelled import predicted_tables

    return predicted_tables(results, width)
