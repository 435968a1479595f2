"""``capacity``: the highest rate of a server within a time limit, and the workers that a rate needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from shakedown.errors import InputError
from shakedown.files.limits import MAX_WORKERS
from shakedown.models.distribution import Distribution
from shakedown.models.handshake import highest_rate_per_s, is_within_limit, min_workers
from shakedown.models.ranges import Range
from shakedown.models.waiting import Service
from shakedown.native.scenario import DEFAULT_BEARER, DEFAULT_DEVICE
from shakedown.native.suite_names import listed
from shakedown.prediction.bounds import bounds, lower_bound, upper_bound
from shakedown.prediction.figures import weakest
from shakedown.prediction.inputs import Costs, ServerModel
from shakedown.prediction.library import announce
from shakedown.prediction.predict import Row, check_model, each, loaded_times, wait_range
from shakedown.prediction.scenario import Scenario, scenario
from shakedown.prediction.work import SideCost, known_basis
from shakedown.profiles.registry import Names, places
from shakedown.schema.arguments import checked
from shakedown.schema.base import Basis, builtins, convert
from shakedown.schema.predictions import MAX_WITHIN_S, Calibration, max_failed_share


@checked
def capacity_rows(
    suites: str | Sequence[str],
    *,
    within_s: float,
    percentile: float | None = None,
    rate_per_s: float | None = None,
    device: Names = DEFAULT_DEVICE,
    bearer: Names = DEFAULT_BEARER,
    server: ServerModel = ServerModel(),
    costs: Costs = Costs(),
    calibrations: Sequence[Calibration] = (),
) -> list[Row]:
    """Find the highest rate at which the whole handshake stays within a time limit: one row
    (`shakedown.schema.predictions.Capacity`) per suite and place.

    Args:
        suites: a suite's name, or a list of names and patterns.
        within_s: limit of the time until the client is ready.
        percentile: percentage of all handshakes, failed ones included, that must be ready within it; default:
            the mean time of those that complete must be, and at most 1 % may fail.
        rate_per_s: a rate for which the smallest number of workers is also computed.
        device, bearer: a profile's name or path, or a list of them and of patterns.
        server: its device, workers and software.
        costs: the recorded handshakes, and a device whose figures are scaled.
        calibrations: measurements of running servers, from `calibrate`. A suite's calibration replaces the
            server's modelled work; the model then only divides it among messages.

    Raises:
        InputError: for invalid arguments.
    """
    check_within(within_s)
    if percentile is not None and not 0.0 < percentile < 100.0:
        raise InputError(f"percentile is {percentile}; accepted: above 0 and below 100")
    if rate_per_s is not None and not (math.isfinite(rate_per_s) and rate_per_s > 0.0):
        raise InputError(f"rate is {rate_per_s}; accepted: handshakes per second, above 0")
    workers = server.workers
    check_model("default", workers)
    library = costs.library(server)
    names = listed(suites)
    announce(library, names)
    calibrated = _by_suite(convert(builtins(calibrations), tuple[Calibration, ...], "calibrations"))

    def rows_at(device: str, server_device: str, bearer: str) -> list[Row]:
        def one(suite: str) -> Row:
            found = scenario(suite, device, server_device, bearer, traces=library, scale_from=costs.stand_in)
            known = calibrated.get(found.trace.suite)
            if known is not None:
                took = known.server_s
                measured = found.server.measured(Range(took.lower, took.estimate, took.upper))
                found = replace(found, server=measured)
            check_percentile(found, percentile)
            row = capacity_row(found, within_s, percentile, workers, rate_per_s)
            return row if known is None else row | {"calibration": builtins(known)}

        place = {"server_device": server_device, "device": device, "bearer": bearer}
        return each(names, one, dict, place)

    return [found for place in places(device, server.device, bearer) for found in rows_at(*place)]


def _by_suite(calibrations: Sequence[Calibration]) -> dict[str, Calibration]:
    """Calibrations by suite. Raises `InputError` for a duplicate suite, and for invalid times."""
    found: dict[str, Calibration] = {}
    for one in calibrations:
        took = one.server_s
        if not 0.0 < took.lower <= took.estimate <= took.upper:
            raise InputError(
                f"calibrations: {one.suite}: server_s is {took.estimate:g} s from {took.lower:g} to "
                f"{took.upper:g}; accepted: above 0, the estimate between both ends"
            )
        if one.suite in found:
            raise InputError(
                f"calibrations: {one.suite} is there twice, of {found[one.suite].target} and {one.target}; "
                "accepted: one of a suite"
            )
        found[one.suite] = one
    return found


def check_within(within_s: float) -> None:
    if not 0.0 < within_s <= MAX_WITHIN_S:
        raise InputError(
            f"within is {within_s:.10g}; accepted: a time above 0 s, {MAX_WITHIN_S:,.0f} s at most"
        )


def check_percentile(one: Scenario, percentile: float | None) -> None:
    """Raise `InputError` for a percentile that the replayed handshakes do not determine."""
    replayed = one.exchange
    if percentile is None or replayed.failed > max_failed_share(percentile):
        return
    if percentile > replayed.highest_percentile:
        highest = math.floor(1e3 * replayed.highest_percentile) / 1e3
        raise InputError(
            f"percentile is {percentile:.12g}, but handshakes over {one.bearer.name!r} are replayed only "
            f"{replayed.handshakes:,} times; accepted there: up to {highest:g}"
        )


def capacity_row(
    one: Scenario, within_s: float, percentile: float | None, workers: int, rate_per_s: float | None = None
) -> Row:
    """One row of `capacity_rows`: the highest rate at the mean and at both ends of the figures' ranges."""
    case = _Case(one, within_s, percentile)
    basis, missing = known_basis([one.client, one.server]), one.missing
    rate, fewest, highest = (case.rate(end, workers) for end in ("mean", "high", "low"))
    service = one.service_s
    wait = wait_range(one, "default", rate, workers) if rate and not missing else None
    unloaded_s = case.unloaded_s()
    # The server's cost may be negligible in the work of both sides, but the rate depends on it.
    serving = weakest((basis, known_basis([one.server])))
    found: Row = {
        **one.names,
        "within_s": within_s,
        "percentile": percentile,
        "workers": workers,
        "rate_per_s": None
        if rate is None
        else upper_bound(highest, serving, missing)
        if missing
        else bounds(Range(fewest or 0.0, rate, math.inf if highest is None else highest), serving),
        "utilisation": None if rate is None or missing else rate * service.mean / workers,
        "failed": one.exchange.failed,
        "handshake_bytes": one.handshake_bytes._asdict(),
        "unused_key_share_s": one.unused_key_share_s,
        "basis": one.basis,
        "without_cost": [*one.client.without_cost, *one.server.without_cost],
        "extrapolated": [*one.client.figures, *one.server.figures],
        "limit_per_s": limit(one, workers),
        "unloaded_s": None
        if unloaded_s is None
        else lower_bound(unloaded_s.low, basis, missing)
        if missing
        else bounds(unloaded_s, basis),
        **loaded_times(one, "default", rate or 0.0, workers, wait),
    }
    if rate_per_s is not None:
        [(needed, fewer, more)] = workers_needed(one, within_s, percentile, [rate_per_s])
        found["asked_rate_per_s"] = rate_per_s
        none = needed is None and fewer is None
        found["workers_needed"] = None if none else _workers(needed, fewer, more, basis, missing)
    return found


def _workers(
    needed: int | None, fewer: int | None, more: int | None, basis: Basis, missing: Sequence[str]
) -> Row:
    if missing:
        return lower_bound(fewer, basis, missing)
    return {"estimate": needed, "lower": fewer, "upper": more, "basis": basis, "missing": []}


def limit(one: Scenario, workers: int, after: SideCost | None = None) -> Row | None:
    """The rate at which a server's queue saturates; None if no server cost is known. `after` is the server's
    work for a client after the handshake.
    """
    parts = [one.server] if after is None else [one.server, after]
    service, basis = one.service_s, known_basis(parts)
    if after is not None:
        service = service.plus(after.total)
    if service.low <= 0.0:
        return None
    if missing := list(dict.fromkeys(name for part in parts for name in part.missing)):
        return upper_bound(workers / service.low, basis, missing)
    return bounds(Range(*(workers / end for end in reversed(service))), basis)


Workers = tuple[int | None, int | None, int | None]
"""Numbers of workers for the mean, low and high ends of the figures' ranges; None: no number is sufficient,
or (high) part of the work has no figure.
"""


def workers_needed(
    one: Scenario, within_s: float, percentile: float | None, rates_per_s: Sequence[float]
) -> list[Workers]:
    """The smallest numbers of workers that keep the limit at each rate; None if no number does, and for the
    high end if part of the work has no figure. Raises `InputError` as `check_percentile`.
    """
    check_percentile(one, percentile)
    case = _Case(one, within_s, percentile)
    mean, low = (case.workers(end, rates_per_s) for end in ("mean", "low"))
    high = [None] * len(rates_per_s) if one.missing else case.workers("high", rates_per_s)
    return list(zip(mean, low, high, strict=True))


class _Case:
    """A scenario and a time limit, with the device figures at their mean or at an end of their ranges."""

    def __init__(self, one: Scenario, within_s: float, percentile: float | None) -> None:
        self.one, self.within_s = one, within_s
        self.ready = one.unloaded()[0]
        failed = one.exchange.failed
        self.too_many_fail = failed > max_failed_share(percentile)
        # Of the handshakes that complete, this percentage is `percentile` of all.
        self.percentile = None if percentile is None else percentile / (1.0 - failed)

    def unloaded_s(self) -> Range | None:
        """The time without a queue that is compared with the limit: the mean, or the percentile; None if the
        handshake of this percentile fails.
        """
        if self.too_many_fail and self.percentile is not None:
            return None
        ends = [self._at(end)[0] for end in ("low", "mean", "high")]
        if self.percentile is None:
            return Range(*(ready.mean for ready in ends))
        return Range(*(ready.quantile(self.percentile / 100.0) for ready in ends))

    def _at(self, end: str) -> tuple[Distribution, Service]:
        one = self.one
        worked = one.work.with_connection
        return self.ready.shifted(getattr(worked, end) - worked.mean), one.service(
            getattr(one.service_s, end)
        )

    def rate(self, end: str, workers: int) -> float | None:
        """The highest rate; None if no server cost is known."""
        if self.too_many_fail:
            return 0.0
        unloaded, service = self._at(end)
        found = highest_rate_per_s(self.within_s, unloaded, service, workers, self.percentile)
        return found if math.isfinite(found) else None

    def workers(self, end: str, rates_per_s: Sequence[float]) -> list[int | None]:
        """The smallest number of workers at each rate; None if no number keeps the limit.

        The number grows with the rate, so each search starts at the result for the next lower rate, and a
        galloping search skips the rates for which the same number is sufficient.
        """
        if self.too_many_fail:
            return [None] * len(rates_per_s)
        unloaded, service = self._at(end)

        def is_sufficient(rate_per_s: float, workers: int) -> bool:
            return is_within_limit(rate_per_s, self.within_s, unloaded, service, workers, self.percentile)

        rates = sorted(set(rates_per_s))
        found: dict[float, int | None] = dict.fromkeys(rates)
        first, insufficient = 0, 0
        while first < len(rates):
            enough = min_workers(
                self.within_s, unloaded, service, rates[first], self.percentile, MAX_WORKERS, insufficient
            )
            if enough is None:
                break
            last, over = first, len(rates)  # the last rate within the limit, and the first beyond it
            step = 1
            while last + 1 < over:
                tried = min(last + step, over - 1)
                if is_sufficient(rates[tried], enough):
                    last, step = tried, step * 2
                else:
                    over, step = tried, max(1, (tried - last) // 2)
            for rate in rates[first : last + 1]:
                found[rate] = enough
            first, insufficient = last + 1, enough - 1
        return [found[rate] for rate in rates_per_s]
