"""A recorded handshake between two devices over a bearer, estimated once for all rates, numbers of workers
and models.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from msgspec import structs

from shakedown.errors import InputError
from shakedown.files.limits import MAX_RATES
from shakedown.models import queueing
from shakedown.models.arrays import Floats
from shakedown.models.distribution import Distribution
from shakedown.models.energy import LinkBytes
from shakedown.models.ranges import Range, combined, merged
from shakedown.models.waiting import Service, Wait, mgc_wait, spread_service
from shakedown.native.scenario import DEFAULT_BEARER, DEFAULT_DEVICE, DEFAULT_SERVER_DEVICE
from shakedown.prediction import eap
from shakedown.prediction.bounds import bounds
from shakedown.prediction.eap import Carried
from shakedown.prediction.energy import Energy, client_energy
from shakedown.prediction.figures import Same, call_figure, weakest
from shakedown.prediction.library import TraceLibrary, open_library
from shakedown.prediction.literature import LITERATURE, load_model
from shakedown.prediction.network import Exchange, exchange
from shakedown.prediction.records import MAX_RECORD_BYTES, record_cost
from shakedown.prediction.side_cost import side_cost
from shakedown.prediction.spec import handshake_spec
from shakedown.prediction.trace import Trace
from shakedown.prediction.work import SideCost, Work, basis_of
from shakedown.profiles import Bearer, Device, load_bearer, load_device, load_software
from shakedown.schema.base import SIDES, Basis, Side

MODELS = ("default", *LITERATURE)
_WAIT_SHARES = 1.0 - np.concatenate([np.linspace(1.0, 0.1, 46)[1:], np.geomspace(0.1, 1e-6, 60)[1:]])
_WORK_BINS = 48
_PROTECTION_BYTES = 64
"""The most bytes that record protection adds to a datagram."""


@dataclass(frozen=True)
class Scenario:
    """A recorded handshake between two devices over a bearer, estimated.

    `from_idle`: the radio is set up first. `server_scale`: the device whose figures, scaled by the clock
    rate, replace the server's. `lowest`: all work is at the low end of its range, because the
    work of other clients has no cost figure.
    """

    trace: Trace
    device: Device
    server_device: Device
    bearer: Bearer
    client: SideCost
    server: SideCost
    eap: Carried | None = None
    from_idle: bool = False
    server_scale: Device | None = None
    lowest: bool = False

    @property
    def names(self) -> dict[str, str | None]:
        """The names of the suite, devices, software and bearer, as in rows. `server_software` is None for a
        handshake that keeps its recorded tickets: the software of the recording is unknown.
        """
        software = self.trace.software
        return {
            "suite": self.trace.suite,
            "server_device": self.server_device.name,
            "server_software": None if software is None else software.name,
            "server_software_note": None if software is None else software.note(self.trace.suite),
            "device": self.device.name,
            "bearer": self.bearer.name,
        }

    @property
    def unused_key_share_s(self) -> dict[str, Any] | None:
        """The time to generate the recorded client's unused key share on this device; None: it sent none."""
        if not self.trace.unused:
            return None
        figures = [(one, call_figure(self.device, one.triple)) for one in self.trace.unused]
        unknown = [(one, figure) for one, figure in figures if figure.time is None]
        missing = [" ".join(("client", *one.triple)).strip() for one, _ in unknown]
        known = combined(
            merged(
                {figure.cause: figure.time.times(one.count)}
                for one, figure in figures
                if figure.time is not None
            )
        )
        known = known._replace(
            high=known.high + math.fsum(figure.at_most_s * one.count for one, figure in unknown)
        )
        return bounds(known, weakest(figure.basis for _, figure in figures), missing)

    @property
    def basis(self) -> Basis:
        """The basis of the two costs: the weakest one that contributes noticeably to their sum."""
        return basis_of([self.client, self.server])

    @property
    def missing(self) -> tuple[str, ...]:
        return self.both.missing

    @cached_property
    def both(self) -> Work:
        """Both sides' work, with the ranges of all that has a cost figure."""
        return Work(self.client, self.server, self.device.name == self.server_device.name)

    @cached_property
    def work(self) -> Work:
        """Both sides' work, from which times are computed. If a part of it has no cost figure, both sides are
        at their low ends: times are then lower bounds.
        """
        return self.both.at_low() if self.lowest or self.missing else self.both

    @cached_property
    def served(self) -> SideCost:
        """The server's work, from which its utilisation is computed, whatever is missing at the client."""
        return self.server.at_low() if self.server.without_cost else self.server

    @cached_property
    def without_connection(self) -> Scenario:
        """The same handshake without the work on a TCP connection, which models of the literature ignore."""
        client, server = (
            replace(one, connection=None, connection_sd_s=0.0) for one in (self.client, self.server)
        )
        return replace(self, client=client, server=server)

    def record(self, size_bytes: int) -> SideCost:
        """The server's work on data that a client sends after the handshake. Raises `InputError`."""
        link = self.bearer
        room_bytes = link.mtu_bytes - link.ip_bytes - link.udp_bytes - _PROTECTION_BYTES
        piece_bytes = max(1, room_bytes) if self.trace.datagrams else MAX_RECORD_BYTES
        return record_cost(self.trace, self.server_device, self.server_scale, size_bytes, piece_bytes)

    @cached_property
    def exchange(self) -> Exchange:
        """The handshake over the network, with the mean work of both sides and without a queue."""
        client, server = self.work
        if self.eap is not None:
            return eap.carry(self.trace, client, server, self.bearer, self.eap, from_idle=self.from_idle)
        handshake = handshake_spec(self.trace, client, server, self.bearer, spread=False)
        return exchange(handshake, self.bearer, from_idle=self.from_idle)

    @property
    def work_s(self) -> float:
        """Mean work of both sides, without that on the TCP connection."""
        return math.fsum(one.total.mean for one in self.work)

    @cached_property
    def service_s(self) -> Range:
        """A server worker's time for one handshake, including its TCP connection."""
        return self.served.with_connection

    @property
    def service_sd_s(self) -> float:
        return self.served.sd_with_connection_s

    def service(self, mean_s: float) -> Service:
        """The service time as a distribution, at a mean within its range."""
        scale = mean_s / self.service_s.mean if self.service_s.mean > 0.0 else 1.0
        return spread_service(mean_s, self.service_sd_s * scale)

    def unloaded(self, model: str = "default") -> tuple[Distribution, Distribution]:
        """Ready and done without a queue, including the spread of the devices' work."""
        if model not in self._unloaded:
            if model == "default":
                ready, done = self.exchange.ready, self.exchange.done
            else:
                ready = done = load_model(model).transmission(self).shifted(self.work_s)
            deviations_s = (one.sd_with_connection_s for one in self.work)
            spread = work_spread(self.work.with_connection.mean, *deviations_s)
            spread_done = done.plus(spread)
            self._unloaded[model] = (spread_done if ready is done else ready.plus(spread)), spread_done
        return self._unloaded[model]

    @cached_property
    def _unloaded(self) -> dict[str, tuple[Distribution, Distribution]]:
        """The results by model, which all rates share."""
        return {}

    def wait_s(self, model: str, rates_per_s: Floats, workers: int, factor: float = 1.0) -> Floats:
        """Mean wait at each rate, NaN without a steady state; ``factor`` scales the service time, for
        ranges. Shape ``(rates,)``.
        """
        if model == "default":
            return waits_s(rates_per_s, self.service_s.mean * factor, self.service_sd_s * factor, workers)
        wait = load_model(model).wait_s(self, rates_per_s, factor)
        loads = queueing.utilisation(rates_per_s, self.service_s.mean * factor, workers)
        return np.where(loads < 1.0, wait, np.nan)

    def wait(self, rate_per_s: float, workers: int, mean_s: float | None = None) -> Distribution | None:
        """The wait at the server as a distribution, None without a steady state."""
        service_s = self.service_s.mean if mean_s is None else mean_s
        if rate_per_s <= 0.0 or service_s <= 0.0:
            return Distribution.exactly(0.0)
        scale = service_s / self.service_s.mean
        return _wait(rate_per_s, service_s, self.service_sd_s * scale, workers)

    @property
    def handshake_bytes(self) -> LinkBytes:
        """The bytes of the handshake's messages, with record headers; inside EAP, of the messages that TLS
        sends inside EAP."""
        if self.eap is None:
            return LinkBytes(self.trace.size_bytes("client"), self.trace.size_bytes("server"))
        flights = eap.flights_of(self.trace, self.eap.ticket_bytes)
        up, down = (sum(size for sender, size in flights if sender == side) for side in SIDES)
        return LinkBytes(up, down)

    @cached_property
    def link_bytes(self) -> LinkBytes | None:
        """The bytes that the handshake sends over the link; None if no handshake succeeds (models of the
        literature do not compute this).
        """
        try:
            return self.exchange.link_bytes
        except InputError:
            return None

    def energy(self, elapsed_s: float | None, model: str = "default", longer_s: float = 0.0) -> Energy:
        """The client's energy, by part, for one handshake that lasts `elapsed_s`, or up to `longer_s` longer.
        Only the durations of the default model contain the radio's set-up.
        """
        setup_s = self.exchange.setup_s if self.from_idle and model == "default" else 0.0
        return client_energy(
            self.link_bytes,
            self.device,
            self.bearer,
            self.both,
            elapsed_s,
            setup_s,
            longer_s,
            from_idle=self.from_idle,
        )


def waits_s(rates_per_s: Floats, mean_s: float, sd_s: float, workers: int) -> Floats:
    """Mean wait at a server at each rate, NaN without a steady state. Shape ``(rates,)``."""
    wait = _waits_s(tuple(rates_per_s.tolist()), mean_s, sd_s, workers)
    return np.where(queueing.utilisation(rates_per_s, mean_s, workers) < 1.0, wait, np.nan)


@lru_cache(maxsize=64)
def _waits_s(rates_per_s: tuple[float, ...], mean_s: float, sd_s: float, workers: int) -> Floats:
    """Mean waits at a server, which do not depend on the clients' devices and bearers. The array is cached
    and read-only.
    """
    found = queueing.mgc_wait_s(np.array(rates_per_s), mean_s, sd_s, workers)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=MAX_RATES)
def _wait(rate_per_s: float, mean_s: float, sd_s: float, workers: int) -> Distribution | None:
    """The wait at a server, which does not depend on its clients' devices and bearers."""
    found = mgc_wait(rate_per_s, spread_service(mean_s, sd_s), workers)
    return None if found is None else wait_distribution(found)


def wait_distribution(found: Wait) -> Distribution:
    """A wait on a lattice as a distribution of few points: zero, then equal shares of the rest, and smaller
    shares at its upper end.

    The mean of each share is kept.
    """
    mass = np.diff(found.cdf, prepend=0.0).clip(0.0)
    values = found.step_s * np.arange(len(found.cdf))
    none = float(mass[0])
    shares = none + (1.0 - none) * _WAIT_SHARES
    ends = np.searchsorted(found.cdf, shares)
    cells = np.searchsorted(np.unique(ends), np.arange(len(mass)), side="right")
    cells[0] = -1
    weights = np.bincount(cells + 1, mass)
    moments = np.bincount(cells + 1, mass * values)
    kept = weights > 0.0
    return Distribution.of_samples(moments[kept] / weights[kept], weights[kept])


def work_spread(mean_s: float, *deviations_s: float) -> Distribution:
    """The deviation of a handshake's work from its mean: centred, skewed like the time of a rejection loop
    (as in ML-DSA signing), and never below the negative mean.
    """
    deviation_s = math.hypot(*deviations_s)
    if deviation_s <= 0.0:
        return Distribution.exactly(0.0)
    shorter_s = min(mean_s, deviation_s)
    service = spread_service(shorter_s, deviation_s, bins=_WORK_BINS)
    return Distribution.of_samples(service.points_s - shorter_s, service.weights)


@lru_cache(maxsize=64)
def _cached_cost(
    trace: Same[Trace], side: Side, device: Same[Device], scale: Same[Device | None]
) -> SideCost:
    """A side's cost, which does not depend on the bearer and the other side. It is cached and must not be
    modified.
    """
    return side_cost(trace.thing, side, device.thing, scale.thing)


def scenario(
    suite: str,
    device: str = DEFAULT_DEVICE,
    server_device: str = DEFAULT_SERVER_DEVICE,
    bearer: str = DEFAULT_BEARER,
    *,
    traces: TraceLibrary | None = None,
    scale_from: str | None = None,
    inside_eap: Carried | None = None,
    from_idle: bool = False,
) -> Scenario:
    """Load and estimate one scenario, with TCP, or inside EAP without the cost of a TCP connection.

    Raises `InputError` for unknown names, bad files, or devices without primitives.
    """
    client, server, link = load_device(device), load_device(server_device), load_bearer(bearer)
    scale = None if scale_from is None else load_device(scale_from)
    if scale is not None and client.has_primitives and server.has_primitives:
        raise InputError(
            f"{scale_from}'s figures are not needed: {device} and {server_device} have primitives; "
            "accepted: with a device that has none"
        )
    library = traces or open_library()
    trace = library[suite]
    if trace.inside_eap and inside_eap is None:
        raise InputError(f"{suite}: was recorded inside EAP; accepted: with carrier eap")
    if inside_eap is not None and not trace.inside_eap:
        # EAP servers issue tickets only if configured.
        software = trace.software or load_software("none")
        trace = trace.served_by(structs.replace(software, tickets=0, resumption_tickets=0))
    costs = [
        _cached_cost(Same(trace), "client", Same(client), Same(None if client.has_primitives else scale)),
        _cached_cost(Same(trace), "server", Same(server), Same(None if server.has_primitives else scale)),
    ]
    if inside_eap is not None:
        costs = [replace(one, connection=None) for one in costs]
        inside_eap = replace(inside_eap, ticket_bytes=eap.renewed_ticket_bytes(trace, library))
    by_clock = None if server.has_primitives else scale
    return Scenario(trace, client, server, link, costs[0], costs[1], inside_eap, from_idle, by_clock)
