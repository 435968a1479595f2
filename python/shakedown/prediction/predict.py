"""``predict``: the cost of a handshake on other devices, over other networks and at a load.

The processing times of a recorded handshake are estimated for two devices. The handshake is then sent over a
bearer, and queued at the server. The ``default`` model uses the cost model, a replay over the network, and an
M/G/c queue of handshakes. The other models are modules of `shakedown.prediction.literature`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
from msgspec import structs

from shakedown.errors import InputError, ShakedownError, did_you_mean, without_name
from shakedown.files.limits import MAX_WORKERS
from shakedown.models import queueing
from shakedown.models.arrays import Floats
from shakedown.models.distribution import Distribution
from shakedown.models.ranges import Range, exactly, ratio
from shakedown.native.scenario import DEFAULT_BEARER, DEFAULT_DEVICE
from shakedown.native.suite_names import listed
from shakedown.prediction.bounds import bounds, upper_bound
from shakedown.prediction.eap import Carried, carried, exchanged
from shakedown.prediction.energy import Energy
from shakedown.prediction.figures import weakest
from shakedown.prediction.inputs import Costs, ServerModel
from shakedown.prediction.library import TraceLibrary, announce, of_one_suite, resumed_of
from shakedown.prediction.scenario import MODELS, Scenario, scenario
from shakedown.prediction.spec import UnfitBearerError
from shakedown.prediction.trace import Trace
from shakedown.prediction.work import known_basis
from shakedown.profiles.registry import Names, places
from shakedown.schema.arguments import checked
from shakedown.schema.options import PredictionOptions
from shakedown.schema.predictions import Prediction

INTERVAL = 0.9
"""The share of handshakes, and of the possible values of uncertain figures, that a range contains."""

Row = dict[str, Any]
T = TypeVar("T")


@checked
def predict_rows(
    suites: str | Sequence[str],
    *,
    device: Names = DEFAULT_DEVICE,
    bearer: Names = DEFAULT_BEARER,
    rate_per_s: float | Sequence[float] = 0.0,
    server: ServerModel = ServerModel(),
    costs: Costs = Costs(),
    options: PredictionOptions = PredictionOptions(),
) -> list[Row]:
    """Predict handshakes: one row per suite, place and rate (`shakedown.schema.predictions.Prediction`).

    A place is a device of the client, a device of the server, and a bearer.

    A suite that cannot be predicted has a row with the reason (``FailedPrediction``). On a bearer
    whose packets are too small, every suite has such a row. If no suite can be predicted, the first error is
    raised.

    Args:
        suites: a suite's name, or a list of names and patterns.
        device, bearer: a profile's name or path, or a list of them and of patterns.
        rate_per_s: handshakes per second that arrive at the server, in every model; one rate, or several.
        server: its device, workers and software. Only the default model supports several workers.
        costs: the recorded handshakes, and a device whose figures are scaled.
        options: the model, EAP-TLS, the client's battery and radio.

    Raises:
        InputError: for invalid arguments.
    """
    model, workers, battery_j = options.model, server.workers, options.battery_j
    inside_eap = _inside_eap_of(options)
    check_model(model, workers)
    if options.from_idle and model != "default":
        raise InputError(f"model {model} does not include the radio's set-up; accepted from idle: default")
    rates = [rate_per_s] if isinstance(rate_per_s, int | float) else [float(one) for one in rate_per_s]
    for rate in rates:
        if not (math.isfinite(rate) and rate >= 0.0):
            raise InputError(f"rate is {rate}; accepted: handshakes per second, 0 or more")
    if battery_j is not None and not (math.isfinite(battery_j) and battery_j > 0.0):
        raise InputError(f"battery is {battery_j}; accepted: joules, above 0")
    library = costs.library(server)

    def rows_at(device: str, server_device: str, bearer: str) -> list[Row]:
        @cache
        def estimate(suite: str) -> Scenario:
            found = scenario(
                suite,
                device,
                server_device,
                bearer,
                traces=library,
                scale_from=costs.stand_in,
                inside_eap=inside_eap,
                from_idle=options.from_idle,
            )
            return found if battery_j is None else with_battery(found, battery_j)

        place = {"device": device, "server_device": server_device, "bearer": bearer, "kind": "modelled"}
        try:
            return [
                row
                for rate in rates
                for _, row in suite_rows(names, estimate, library, rate, place, model=model, workers=workers)
            ]
        except UnfitBearerError as error:
            unfit.append(error)
            return [{"suite": suite, **place, "error": str(error)} for suite in names]

    names = listed(suites)
    announce(library, names)
    unfit: list[UnfitBearerError] = []
    found = [rows_at(*place) for place in places(device, server.device, bearer)]
    if unfit and len(unfit) == len(found):
        raise unfit[0]
    return [row for rows in found for row in rows]


def suite_rows(
    suites: Sequence[str],
    estimate: Callable[[str], Scenario],
    library: TraceLibrary,
    rate_per_s: float,
    place: Mapping[str, Any],
    *,
    model: str = "default",
    workers: int = 1,
    resumptions: bool = True,
) -> list[tuple[Scenario | None, Row]]:
    """The rows of suites at one place and rate, each with its estimated handshake, which `estimate` returns.

    A suite that cannot be predicted has a row with the reason. Without `resumptions`, rows do not contain the
    energy that resumption saves, which needs the estimate of another handshake. Raises `InputError` if no
    suite can be predicted.
    """

    def one(suite: str) -> tuple[Scenario | None, Row]:
        found = estimate(suite)
        made = row(found, model, rate_per_s, workers)
        if resumptions and model == "default" and found.eap is None:
            resumed = resumption(found.trace, library)
            made["resumption_saves_j"] = resumed and _saved([found, estimate(resumed)], rate_per_s, workers)
        return found, made

    found = each(suites, one, lambda row: (None, row), place)
    compare(found)
    return found


def resumption(trace: Trace, library: TraceLibrary) -> str | None:
    """The suite of the resumed handshake; None if there is none, or the library does not contain it, or the
    server permits no resumption: in TLS 1.3 by a ticket, else by the ID of the session.
    """
    if trace.protocol == "tls1.3":
        permits = any(message.flight is None for message in trace.messages)
    else:
        permits = trace.software is None or trace.software.session_ids
    try:
        resumed = resumed_of(trace.suite) if permits else None
    except InputError:
        return None
    return resumed if resumed is not None and resumed in library else None


def _saved(pair: Sequence[Scenario], rate_per_s: float, workers: int) -> Row:
    """The energy that the client saves in the handshake itself if it resumes a session."""
    spent = []
    for found in pair:
        wait = wait_range(found, "default", rate_per_s, workers)
        spent.append(found.energy(None if wait is None else found.unloaded()[1].mean + wait.mean))
    full, again = spent
    basis, missing = weakest((full.basis, again.basis)), dict.fromkeys((*full.missing, *again.missing))
    if not (full.known and again.known):
        return upper_bound(None, basis, list(missing))
    # The errors of assumed powers and work are the same in both handshakes.
    apart = [here - there for here, there in zip(full.handshake, again.handshake, strict=True)]
    return bounds(Range(min(apart), apart[1], max(apart)), basis, list(missing), known=True)


def with_battery(found: Scenario, battery_j: float) -> Scenario:
    """A scenario whose client has a battery, in joules."""
    energy = structs.replace(found.device.energy, battery_j=battery_j)
    return replace(found, device=replace(found.device, energy=energy))


def _inside_eap_of(options: PredictionOptions) -> Carried | None:
    """The parameters of EAP; None for handshakes without EAP. Raises `InputError`."""
    if options.carrier == "bare":
        if options.fragment_bytes is not None or options.radius_hop_s is not None:
            raise InputError("a fragment size or RADIUS hop applies only to EAP; accepted: with carrier eap")
        return None
    if options.model != "default":
        raise InputError(f"model {options.model} does not support EAP; accepted: default")
    return carried(options.fragment_bytes, options.radius_hop_s)


def each(
    suites: Sequence[str], one: Callable[[str], T], failed: Callable[[Row], T], place: Mapping[str, Any]
) -> list[T]:
    """Call a function for every suite, and another with a row of the error for a failed one; if all fail, the
    first error is raised.
    """
    found: list[T] = []
    errors: list[ShakedownError] = []
    for suite in suites:
        try:
            found.append(one(suite))
        except Exception as error:
            if not of_one_suite(error):
                raise
            errors.append(error if isinstance(error, ShakedownError) else InputError(str(error)))
            found.append(failed({"suite": suite, **place, "error": without_name(str(error), suite)}))
    if errors and len(errors) == len(suites):
        raise errors[0]
    return found


def compare(rows: Sequence[tuple[Scenario | None, Row]]) -> None:
    """Fill ``ratio_to_first``: the work of both sides divided by the first suite's. Errors of shared
    assumptions cancel out.
    """
    first: Scenario | None = None
    for found, one in rows:
        if found is None:
            continue
        if first is None:
            first = found
        elif not (first.missing or found.missing):
            mine, theirs = found.both.parts, first.both.parts
            if sum(part.mean for part in theirs.values()) > 0.0 < sum(part.mean for part in mine.values()):
                low, mean, high = ratio(mine, theirs)
                basis = known_basis([*found.work, *first.work])
                one["ratio_to_first"] = bounds(Range(low, mean, high), basis)


def row(one: Scenario, model: str, rate_per_s: float, workers: int) -> Row:
    return rows(one, model, [rate_per_s], workers)[0]


def rows(one: Scenario, model: str, rates_per_s: Sequence[float], workers: int) -> list[Row]:
    """A row of ``predict`` for each rate; figures that do not depend on the rate are computed once."""
    timed = one if model == "default" else one.without_connection
    done = timed.unloaded(model)[1]
    rates = np.asarray(rates_per_s, dtype=np.float64)
    waits = timed.wait_s(model, rates, workers).tolist()
    loads = queueing.utilisation(rates, timed.service_s.mean, workers).tolist()
    waits_low, waits_high = (_waits_at(timed, model, rates, workers, end) for end in ("low", "high"))
    same: Row = {
        **one.names,
        "kind": "modelled",
        "model": model,
        "client_s": bounds(one.client.whole, known_basis([one.client]), one.client.missing),
        "server_s": bounds(one.server.whole, known_basis([one.server]), one.server.missing),
        # Both sides may work at the same time on messages of one flight, so the sum of their work can exceed
        # the total.
        "transmission_s": max(0.0, done.mean - timed.work_s),
        "extrapolated": [*one.client.figures, *one.server.figures],
        "workers": workers,
        "basis": one.basis,
        "without_cost": [*one.client.without_cost, *one.server.without_cost],
        "connection_s": {"client": one.client.connection_s, "server": one.server.connection_s},
        "failed": one.exchange.failed if model == "default" else 0.0,
        "carrier": "bare" if one.eap is None else "eap",
        "eap": None if one.eap is None else _inside_eap(one, one.eap),
        "unused_key_share_s": one.unused_key_share_s,
        "handshake_bytes": one.handshake_bytes._asdict(),
        "wire_bytes": one.link_bytes and one.link_bytes._asdict(),
    }
    found = []
    for number, rate_per_s in enumerate(rates_per_s):
        wait_s = waits[number]
        steady = math.isfinite(wait_s)
        queued = one.server.missing if rate_per_s > 0.0 else ()
        basis = known_basis([one.server])
        wait = Range(waits_low[number], wait_s, math.inf if queued else waits_high[number])
        waited_s = wait.low if one.missing else wait.mean
        offered = bounds(_offered(timed, loads[number], queued), basis, queued)
        known = [end for end in ("estimate", "lower", "upper") if offered[end] is not None]
        mine: Row = {
            "rate_per_s": rate_per_s,
            "queue_s": bounds(wait, basis, queued) if steady else None,
            "utilisation": offered | {end: min(1.0, offered[end]) for end in known},
            "offered": offered,
            **loaded_times(timed, model, rate_per_s, workers, wait if steady else None),
            **_energy(one, done.mean + waited_s if steady else None, model, wait.high - waited_s),
            "ratio_to_first": None,
        }
        mine["p99_interval_s"] = _p99_interval_s(one, model, mine["ready_s"])
        row = same | mine
        found.append({key: row[key] for key in Prediction.__struct_fields__})
    return found


def loaded_times(one: Scenario, model: str, rate_per_s: float, workers: int, wait: Range | None) -> Row:
    """Ready and done, including the wait in the queue; None without a steady state."""
    if wait is None:
        return {"ready_s": None, "done_s": None}
    # If a cost is missing, all statistics are lower bounds: they use the shortest wait.
    wait_s = wait.low if one.missing else wait.mean
    service_s = one.service_s.low if one.missing else None
    queue = one.wait(rate_per_s, workers, service_s) if model == "default" else None
    delay = queue or Distribution.exactly(wait_s)
    # A wait with many values is added to the compact distributions, which is faster. A wait with one value is
    # added to the full ones.
    ready, done = one.unloaded(model)
    points = (ready.compact, done.compact) if len(delay.values_s) > 1 else (ready, done)
    last = points[1].plus(delay)
    first = last if points[0] is points[1] else points[0].plus(delay)
    stands: Row = {"basis": known_basis([one.client, one.server]), "missing": list(one.missing)}
    times = {}
    for name, found, plain in (("ready_s", first, ready), ("done_s", last, done)):
        lower, upper = _interval_s(one, found, plain, wait._replace(mean=wait_s))
        times[name] = {
            "mean": plain.mean + wait_s,
            "p50": found.p50,
            "p95": found.p95,
            "p99": found.p99,
            "lower": lower,
            "upper": upper,
            **stands,
        }
    return times


def _p99_interval_s(one: Scenario, model: str, ready: Row | None) -> list[float] | None:
    """The interval of the 99th percentile that results from the limited number of replays; other
    uncertainty is not included.
    """
    if model != "default" or ready is None:
        return None
    p99_s = one.exchange.ready.p99
    return [ready["p99"] + (end_s - p99_s) for end_s in one.exchange.p99_interval_s]


def _energy(one: Scenario, done_s: float | None, model: str, longer_s: float) -> Row:
    """The client's energy for a handshake that lasts until `done_s`, or up to `longer_s` longer."""
    energy = one.energy(done_s, model, longer_s)
    parts = {name: getattr(energy, name) for name in ("processor", "radio", "setup", "tail")}
    battery_j = one.device.energy.battery_j
    return {
        "energy_j": bounds(energy.handshake, energy.basis, energy.missing, known=energy.known),
        "wake_tail_j": bounds(energy.wake_tail, energy.wake_tail_basis, energy.wake_tail_missing),
        "resumption_saves_j": None,
        "energy_parts_j": {name: None if part is None else part.mean for name, part in parts.items()},
        "energy_terms": [energy.terms],
        "handshakes_per_charge": None if battery_j is None else _per_charge(battery_j, energy),
    }


def _per_charge(battery_j: float, energy: Energy) -> Row:
    """The number of handshakes on one charge of a battery."""
    total, missing = energy.total, (*energy.missing, *energy.wake_tail_missing)
    unbounded = energy.missing and not energy.known and math.isinf(total.high)
    if unbounded or energy.wake_tail_missing or total.low <= 0.0:
        return upper_bound(None, energy.basis, missing)
    ends = Range(*(battery_j / end for end in reversed(total)))
    lasts = bounds(ends, energy.basis, missing, known=energy.known)
    return lasts if math.isfinite(total.high) else lasts | {"lower": None}


def _inside_eap(one: Scenario, how: Carried) -> Row:
    return {
        "fragment_bytes": how.fragment_bytes,
        "server_fragment_bytes": how.server_fragment_bytes,
        "radius_hop_s": how.radius_hop_s,
        "ticket_bytes": how.ticket_bytes,
        **asdict(exchanged(one.trace, how)),
    }


def _offered(one: Scenario, mean: float, missing: Sequence[str]) -> Range:
    """The range of the offered load, from that of the service time."""
    service = one.service_s
    found = service.times(mean / service.mean) if service.mean > 0.0 else exactly(mean)
    return found._replace(high=math.inf) if missing else found


def _waits_at(one: Scenario, model: str, rates_per_s: Floats, workers: int, end: str) -> list[float]:
    """The mean wait at each rate, with the service time at one end of its range; infinite if unstable."""
    service = one.service_s
    factor = getattr(service, end) / service.mean if service.mean > 0.0 else 1.0
    waits_s = one.wait_s(model, rates_per_s, workers, factor)
    return [wait if math.isfinite(wait) else math.inf for wait in waits_s.tolist()]


def wait_range(one: Scenario, model: str, rate_per_s: float, workers: int) -> Range | None:
    """The range of the mean wait at a rate, from that of the service time; None without a steady state."""
    rate = np.array([rate_per_s])
    mean_s = float(one.wait_s(model, rate, workers)[0])
    if not math.isfinite(mean_s):
        return None
    low, high = (_waits_at(one, model, rate, workers, end)[0] for end in ("low", "high"))
    return Range(low, mean_s, high)


def _interval_s(
    one: Scenario, found: Distribution, unloaded: Distribution, wait: Range
) -> tuple[float, float | None]:
    """The 90 % interval of a time of handshakes, including the uncertainty of the device's figures.

    The spread of handshakes and the uncertainty of the figures are independent, so the squares of their
    distances from the mean are added. `wait` is the mean wait that `found` includes, with its values at both
    ends of the range of the server's time. `unloaded` is the time without a wait.
    """
    worked = one.work.with_connection
    less, more = worked.low - worked.mean, worked.high - worked.mean
    mean_s = unloaded.mean + wait.mean
    low, high = found.interval(INTERVAL)
    # No wait is shorter than none.
    shortest = unloaded.mean - math.hypot(unloaded.interval(INTERVAL)[0] - unloaded.mean, less)
    lower = max(0.0, shortest, mean_s - math.hypot(low - mean_s, less) - (wait.mean - wait.low))
    upper = mean_s + math.hypot(high - mean_s, more) + (wait.high - wait.mean)
    if one.missing:
        # The known work is at the low ends of its ranges.
        known_s = one.both.with_connection.high
        upper += known_s - worked.mean + math.fsum(side.without_cost_high_s for side in one.both)
    return lower, upper if math.isfinite(upper) else None


def check_model(model: str, workers: int) -> None:
    """Raise `InputError` for an unknown model, or for several workers with a model of one worker."""
    if model not in MODELS:
        raise InputError(
            f'unknown model "{model}"; accepted: {", ".join(MODELS)}{did_you_mean(model, MODELS)}'
        )
    if not 1 <= workers <= MAX_WORKERS:
        raise InputError(f"workers is {workers}; accepted: 1 or more, up to {MAX_WORKERS:,}")
    if workers > 1 and model != "default":
        raise InputError(f"workers is {workers}; accepted with model {model}: 1")
