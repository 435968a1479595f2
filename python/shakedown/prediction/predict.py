"""What a handshake costs elsewhere: the question behind ``predict``.

A recorded handshake is priced on two devices, sent over a bearer and queued at the server: by the ``default``
model (own pricing; the network's model, as distributions; M/G/c per handshake), or by one of the literature,
each a module of `shakedown.prediction.literature`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from shakedown.errors import InputError, ShakedownError, did_you_mean, without_name
from shakedown.files.limits import MAX_WORKERS
from shakedown.models import queueing
from shakedown.models.arrays import Floats
from shakedown.models.distribution import Distribution
from shakedown.models.ranges import Range, ratio
from shakedown.prediction.eap import Carried, carried, exchanged
from shakedown.prediction.library import TraceLibrary, opened
from shakedown.prediction.scenario import (
    DEFAULT_BEARER,
    DEFAULT_DEVICE,
    DEFAULT_SERVER_DEVICE,
    MODELS,
    Scenario,
    scenario,
)
from shakedown.prediction.trace import Trace
from shakedown.schema.arguments import checked, profile_name, several
from shakedown.schema.base import in_objects
from shakedown.schema.predictions import FailedPrediction, Prediction

__all__ = [
    "DEFAULT_BEARER",
    "DEFAULT_DEVICE",
    "DEFAULT_SERVER_DEVICE",
    "MODELS",
    "Scenario",
    "predict",
    "predict_rows",
    "row",
    "scenario",
]


INTERVAL = 0.9
"""The share of handshakes, and of what the figures allow, that ranges hold."""

Row = dict[str, Any]


@checked
def predict_rows(
    suites: str | Sequence[str],
    *,
    device: str | Path = DEFAULT_DEVICE,
    server_device: str | Path = DEFAULT_SERVER_DEVICE,
    bearer: str | Path = DEFAULT_BEARER,
    rate_per_s: float = 0.0,
    model: str = "default",
    server_workers: int = 1,
    traces: TraceLibrary | Mapping[str, Trace] | str | Path | None = None,
    scale_from: str | Path | None = None,
    carrier: str = "bare",
    fragment_bytes: int | None = None,
    radius_hop_s: float | None = None,
    battery_j: float | None = None,
    from_idle: bool = False,
) -> list[Row]:
    """Predict handshakes: one row a suite, as `shakedown.schema.predictions.Prediction` says.

    A suite that cannot be predicted has a row that says why (``FailedPrediction``), where others can; alone,
    it is an error.

    Args:
        suites: a suite's name, or several.
        device, server_device, bearer: profile names or paths.
        rate_per_s: handshakes per second that arrive at the server, in every model.
        model: one of ``MODELS``.
        server_workers: the server's workers (default model only).
        traces: where recorded handshakes come from: a file of ``measure --json`` or ``inspect --traces-out``;
            default: the shipped library.
        scale_from: device whose figures stand in, scaled by the clock, for one without primitives.
        carrier: the carrier, ``bare`` or ``eap``: EAP-TLS over RADIUS.
        fragment_bytes: TLS bytes in an EAP packet; default 1398.
        radius_hop_s: round trip between access point and RADIUS server; default 5 ms, assumed.
        from_idle: the radio begins idle: its set-up comes first, in time and energy.
        battery_j: what the client's battery holds; default: what its profile says.

    Raises:
        InputError: naming what was wrong and what is accepted.
    """
    inside_eap = _carrier(carrier, fragment_bytes, radius_hop_s, model)
    check_model(model, server_workers)
    if not (math.isfinite(rate_per_s) and rate_per_s >= 0.0):
        raise InputError(f"rate is {rate_per_s}; accepted: handshakes per second, 0 or more")
    if battery_j is not None and not (math.isfinite(battery_j) and battery_j > 0.0):
        raise InputError(f"battery is {battery_j}; accepted: joules, above 0")
    library = opened(traces)
    device, server_device, bearer = map(profile_name, (device, server_device, bearer))
    scale_from = profile_name(scale_from)

    def one(suite: str) -> tuple[Scenario, Row]:
        found = scenario(
            suite,
            device,
            server_device,
            bearer,
            traces=library,
            scale_from=scale_from,
            inside_eap=inside_eap,
            from_idle=from_idle,
        )
        if battery_j is not None:
            found = with_battery(found, battery_j)
        return found, row(found, model, rate_per_s, server_workers)

    place = {"device": device, "server_device": server_device, "bearer": bearer, "kind": "modelled"}
    found = each(several(suites), one, place)
    compare([(pair[0], pair[1]) for pair in found if pair[0] is not None])
    return [pair[1] for pair in found]


predict = in_objects("predict", predict_rows, Prediction, FailedPrediction)


def with_battery(found: Scenario, battery_j: float) -> Scenario:
    """A scenario whose client has a battery of so many joules."""
    energy = replace(found.device.energy, battery_j=battery_j)
    return replace(found, device=replace(found.device, energy=energy))


def _carrier(
    carrier: str, fragment_bytes: int | None, radius_hop_s: float | None, model: str
) -> Carried | None:
    """How EAP carries handshakes, None where they are bare. Raises `InputError`."""
    if carrier not in ("bare", "eap"):
        raise InputError(f'carrier "{carrier}"; accepted: bare, eap')
    if carrier == "bare":
        if fragment_bytes is not None or radius_hop_s is not None:
            raise InputError(
                "a fragment size or RADIUS hop says nothing of bare handshakes; accepted over eap"
            )
        return None
    if model != "default":
        raise InputError(f"model {model} over eap; accepted: default, the others know no EAP")
    return carried(fragment_bytes, radius_hop_s)


def each(
    suites: Sequence[str],
    one: Callable[[str], tuple[Scenario, Row]],
    place: Mapping[str, Any],
) -> list[tuple[Scenario | None, Row]]:
    """Run something for every suite; one that fails becomes a row with its error, unless all do."""
    found: list[tuple[Scenario | None, Row]] = []
    errors: list[ShakedownError] = []
    for suite in suites:
        try:
            found.append(one(suite))
        except Exception as error:
            if not _of_one_suite(error):
                raise
            errors.append(error if isinstance(error, ShakedownError) else InputError(str(error)))
            found.append((None, {"suite": suite, **place, "error": without_name(str(error), suite)}))
    if errors and len(errors) == len(suites):
        raise errors[0]
    return found


def _of_one_suite(error: Exception) -> bool:
    """Whether an error is about one suite alone, so that the others may go on."""
    from shakedown import native

    return isinstance(error, InputError) or native.is_failure(error)


def compare(rows: Sequence[tuple[Scenario | None, Row]]) -> None:
    """Fill ``ratio_to_first``: client and server work against the first suite's, shared guesses
    cancelling.
    """
    first: Scenario | None = None
    for found, one in rows:
        if found is None:
            continue
        if first is None:
            first = found
        elif not (
            first.client.unpriced or first.server.unpriced or found.client.unpriced or found.server.unpriced
        ):
            mine, theirs = ({**one.client.parts, **_server_parts(one)} for one in (found, first))
            if sum(part.mean for part in theirs.values()) > 0.0 < sum(part.mean for part in mine.values()):
                low, mean, high = ratio(mine, theirs)
                one["ratio_to_first"] = {"mean": mean, "low": low, "high": high}


def _server_parts(found: Scenario) -> dict[str, Range]:
    return {
        f"server {cause}" if found.device.name != found.server_device.name else cause: part
        for cause, part in found.server.parts.items()
    }


def row(one: Scenario, model: str, rate_per_s: float, workers: int) -> Row:
    """One row of ``predict``."""
    return rows(one, model, [rate_per_s], workers)[0]


def rows(one: Scenario, model: str, rates_per_s: Sequence[float], workers: int) -> list[Row]:
    """A row of ``predict`` for each rate; what does not depend on the rate is found once, and shared."""
    ready, done = one.unloaded(model)
    rates = np.asarray(rates_per_s, dtype=np.float64)
    waits = one.wait_s(model, rates, workers).tolist()
    used = queueing.utilisation(rates, _service_s(one, model), workers).tolist()
    ranges = _ranges_s(one, model, rates, workers, ready)
    client, server = one.client.total, one.server.total
    same: Row = {
        "suite": one.trace.suite,
        "device": one.device.name,
        "server_device": one.server_device.name,
        "bearer": one.bearer.name,
        "kind": "modelled",
        "model": model,
        "client_s": client.mean,
        "server_s": server.mean,
        # Both sides may work at once, on messages of one flight: then their work is longer than the rest.
        "transmission_s": max(0.0, done.mean - client.mean - server.mean),
        "extrapolated": [*one.client.figures, *one.server.figures],
        "workers": workers,
        "basis": one.basis,
        "unpriced": [*one.client.unpriced, *one.server.unpriced],
        "client_range_s": _ends(client, unknown=bool(one.client.unpriced)),
        "server_range_s": _ends(server, unknown=bool(one.server.unpriced)),
        "connection_s": {"client": one.client.connection_s, "server": one.server.connection_s},
        "failed": one.exchange.failed if model == "default" else 0.0,
        "carrier": "bare" if one.eap is None else "eap",
        "eap": None if one.eap is None else _inside_eap(one, one.eap),
        "handshake_bytes": one.handshake_bytes._asdict(),
        "wire_bytes": one.link_bytes and one.link_bytes._asdict(),
    }
    found = []
    for number, rate_per_s in enumerate(rates_per_s):
        wait_s = waits[number]
        steady = math.isfinite(wait_s)
        mine: Row = {
            "rate_per_s": rate_per_s,
            "queue_s": wait_s if steady else None,
            "utilisation": used[number],
            "range_s": ranges[number],
            **loaded_times(one, model, rate_per_s, workers, wait_s if steady else None),
            **_energy(one, done.mean + wait_s if steady else None),
            "ratio_to_first": None,
        }
        mine["p99_interval_s"] = _p99_interval_s(one, model, mine["ready_s"])
        found.append({key: mine[key] if key in mine else same[key] for key in _KEYS})
    return found


_KEYS = (
    "suite", "device", "server_device", "bearer", "rate_per_s", "kind", "model", "client_s", "server_s",
    "transmission_s", "queue_s", "utilisation", "energy_j", "range_s", "extrapolated", "workers",
    "basis", "unpriced", "ready_s", "done_s", "p99_interval_s", "client_range_s", "server_range_s",
    "connection_s", "energy_parts_j", "energy_missing", "energy_tail", "handshakes_per_charge",
    "ratio_to_first", "failed", "carrier", "eap", "handshake_bytes", "wire_bytes",
)  # fmt: skip
"""Keys of a row, in order."""


def loaded_times(one: Scenario, model: str, rate_per_s: float, workers: int, wait_s: float | None) -> Row:
    """Ready and done with the queue's wait; none without a steady state."""
    if wait_s is None:
        return {"ready_s": None, "done_s": None}
    wait = one.wait(rate_per_s, workers) if model == "default" else None
    delay = wait or Distribution.exactly(wait_s)
    # Without the wait's spread nothing is to be added up, and all points are kept.
    ready, done = one.unloaded(model)
    points = one.few_points(model) if len(delay.values_s) > 1 else (ready, done)
    last = points[1].plus(delay)
    first = last if points[0] is points[1] else points[0].plus(delay)
    return {"ready_s": times(first, ready.mean + wait_s), "done_s": times(last, done.mean + wait_s)}


def _p99_interval_s(one: Scenario, model: str, ready: Row | None) -> list[float] | None:
    """How sure the 99th percentile is: the replay's interval about it, whatever else varies."""
    if model != "default" or ready is None:
        return None
    p99_s = one.exchange.ready.p99
    return [ready["p99"] + end_s - p99_s for end_s in one.exchange.p99_interval_s]


def times(found: Distribution, mean_s: float) -> dict[str, float]:
    """A distribution as JSON has it; the mean exactly, as the sum of the parts' means."""
    return {"mean": mean_s, "p50": found.p50, "p95": found.p95, "p99": found.p99}


def _energy(one: Scenario, done_s: float | None) -> Row:
    """The client's energy where a handshake takes so long."""
    energy = one.energy(done_s)
    joules, missing = energy.total, energy.missing
    parts = {
        "processor": energy.processor,
        "radio": energy.radio,
        "setup": energy.setup,
        "tail": energy.tail,
    }
    return {
        "energy_j": None
        if joules is None
        else {"mean": joules.mean, "low": joules.low, "high": None if missing else joules.high},
        "energy_parts_j": {name: None if part is None else part.mean for name, part in parts.items()},
        "energy_missing": list(missing),
        "energy_tail": energy.tail_text,
        "handshakes_per_charge": None
        if joules is None or one.device.energy.battery_j is None or joules.mean <= 0.0
        else one.device.energy.battery_j / joules.mean,
    }


def _inside_eap(one: Scenario, how: Carried) -> Row:
    found = exchanged(one.trace, how)
    return {
        "fragment_bytes": how.fragment_bytes,
        "server_fragment_bytes": how.server_fragment_bytes,
        "radius_hop_s": how.radius_hop_s,
        "ticket_bytes": how.ticket_bytes,
        "round_trips": found.round_trips,
        "fragments": found.fragments,
        "eap_bytes": found.eap_bytes,
        "radius_bytes": found.radius_bytes,
    }


def _service_s(one: Scenario, model: str) -> float:
    return one.service_s.mean if model == "default" else one.server.total.mean


def _ends(figure: Range, *, unknown: bool) -> list[float | None]:
    return [figure.low, None if unknown else figure.high]


def _ranges_s(
    one: Scenario, model: str, rates_per_s: Floats, workers: int, ready: Distribution
) -> list[list[float | None]]:
    """What 90 % of handshakes lie within at each rate, the device figures' uncertainty included.

    The spread of handshakes and the uncertainty of the figures are independent: distances from the mean add
    as the root of their squares. The wait is taken at the ends of the server's range.
    """
    sides = (one.client, one.server)
    client, server = (side.with_connection if model == "default" else side.total for side in sides)
    interval = ready.interval(INTERVAL)
    columns: list[list[float | None]] = []
    for end, side in (("low", 0), ("high", 1)):
        if side and (one.client.unpriced or one.server.unpriced):
            columns.append([None] * len(rates_per_s))
            continue
        factor = getattr(one.service_s, end) / one.service_s.mean if one.service_s.mean > 0.0 else 1.0
        waits_s = one.wait_s(model, rates_per_s, workers, factor).tolist()
        figures = math.hypot(getattr(client, end) - client.mean, getattr(server, end) - server.mean)
        away = math.hypot(figures, interval[side] - ready.mean)
        edge = max(0.0, ready.mean + (away if side else -away))
        columns.append([edge + wait_s if math.isfinite(wait_s) else None for wait_s in waits_s])
    return [list(ends) for ends in zip(*columns, strict=True)]


def check_model(model: str, workers: int) -> None:
    """Raise `InputError` for an unknown model, or workers that a model does not have."""
    if model not in MODELS:
        raise InputError(
            f'unknown model "{model}"; accepted: {", ".join(MODELS)}{did_you_mean(model, MODELS)}'
        )
    if not 1 <= workers <= MAX_WORKERS:
        raise InputError(f"workers is {workers}; accepted: 1 or more, up to {MAX_WORKERS:,}")
    if workers > 1 and model != "default":
        raise InputError(f"workers is {workers}; accepted with model {model}: 1, it has one server")
