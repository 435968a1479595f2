"""What a handshake costs elsewhere, and how many a server takes: the questions behind ``predict`` and
``capacity``.

A recorded handshake is priced on two devices, sent over a bearer and queued at the server, by one of four
models:

``default``     own pricing; packets, TCP set-up and slow start; M/G/c per handshake
``thesis``      Bayoglu 2004: D = 8 B / r + 2 n τ (3.84), Pollaczek-Khinchine per message (3.12-3.18)
``kuo``         Kuo et al. 2006: bytes over throughput (4.1), no latency, no queue
``levi-savas``  Levi and Savas 2003, as the thesis cites them: key material over the rate, M/M/1
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict

import numpy as np

from shakedown.errors import InputError, did_you_mean
from shakedown.models import handshake, network, queueing, transmission
from shakedown.models.arrays import Floats
from shakedown.models.energy import byte_energy_j, handshake_energy_j
from shakedown.models.network import Step
from shakedown.models.ranges import Range
from shakedown.models.waiting import spread_service
from shakedown.pricing.library import TraceLibrary, open_library
from shakedown.pricing.prices import Price, price
from shakedown.pricing.trace import Trace
from shakedown.profiles import Bearer, Device, load_bearer, load_device

MODELS = ("default", "thesis", "kuo", "levi-savas")
DEFAULT_DEVICE, DEFAULT_SERVER_DEVICE, DEFAULT_BEARER = "phone", "server", "lte"
_KEY_MATERIAL = ("Certificate", "ServerKeyExchange", "ClientKeyExchange", "CertificateVerify")


class Prediction(TypedDict):
    """One row of ``predict``; times in seconds, null where there is no steady state."""

    suite: str
    device: str
    server_device: str
    bearer: str
    rate_per_s: float
    kind: str
    model: str
    client_s: float
    server_s: float
    transmission_s: float
    queue_s: float | None
    total_s: float | None
    utilisation: float
    energy_j: float | None
    range_s: list[float | None]
    extrapolated: list[dict[str, Any]]


class Capacity(TypedDict):
    """One row of ``capacity``; ``rate_per_s`` is 0 if unreachable, null if nothing priced limits the
    server.
    """

    suite: str
    server_device: str
    device: str
    bearer: str
    within_s: float
    percentile: float | None
    workers: int
    rate_per_s: float | None
    utilisation: float | None


@dataclass(frozen=True)
class Scenario:
    """A recorded handshake between two devices over a bearer, priced once for any rate and model."""

    trace: Trace
    device: Device
    server_device: Device
    bearer: Bearer
    client: Price
    server: Price

    @cached_property
    def applicable_messages(self) -> int:
        """The thesis's n: messages from client to server, unless the bearer fixes it."""
        if self.bearer.applicable_messages is not None:
            return self.bearer.applicable_messages
        return sum(message.sender == "client" for message in self.trace.messages)

    @cached_property
    def queued_message_s(self) -> list[float]:
        """Server time of each message from the client (thesis, 3.15 and 3.18).

        What the server does for a message of its own counts for the client's message that it answers; the
        thesis's suites have no such work.
        """
        times: list[float] = []
        pending = self.server.message_s.get(None, 0.0)
        for message in self.trace.messages:
            work_s = self.server.message_s.get(message.index, 0.0)
            if message.sender == "client":
                times.append(work_s + pending)
                pending = 0.0
            elif times:
                times[-1] += work_s
            else:
                pending += work_s
        return times

    def transmission(self, model: str) -> Range:
        """Transmission time under a model; its range holds nine of ten, by the bearer's delay and loss."""
        bearer, trace = self.bearer, self.trace
        if model == "default":
            steps = [Step(m.sender, m.size_bytes) for m in trace.messages if m.flight is not None]
            carried = network.exchange(steps, bearer.path(), network.transport(trace.suite.split("/", 1)[0]))
            low_s, high_s = carried.done.interval(0.9)
            return Range(low_s, carried.done.mean, high_s)
        up_bytes, down_bytes = trace.size_bytes("client"), trace.size_bytes("server")
        if model == "levi-savas":
            sizes = [0.0, 0.0]
            for message in trace.messages:
                if message.name in _KEY_MATERIAL and message.flight is not None:
                    sizes[message.sender == "server"] += message.size_bytes
            up_bytes, down_bytes = sizes
        sent_s = float(
            transmission.transmission_s(up_bytes, bearer.up_bits_per_s)
            + transmission.transmission_s(down_bytes, bearer.down_bits_per_s)
        )
        if model != "thesis":
            return Range(sent_s, sent_s, sent_s)
        if bearer.thesis is not None:
            sent_s += float(transmission.transmission_s(bearer.thesis.overhead_bytes, bearer.up_bits_per_s))
        crossings = 2.0 * self.applicable_messages
        # Nine in ten, all crossings alike.
        low_s = max(0.0, bearer.traversal_s - 1.645 * bearer.traversal_sd_s)
        high_s = bearer.traversal_s + 1.645 * bearer.traversal_sd_s
        return Range(
            sent_s + crossings * low_s, sent_s + crossings * bearer.traversal_s, sent_s + crossings * high_s
        )

    def wait_s(self, model: str, rates_per_s: Floats, workers: int, factor: float = 1.0) -> Floats:
        """Mean wait at each rate, NaN without a steady state; ``factor`` scales the service time, for
        ranges.
        """
        mean_s, sd_s = self.server.total.mean * factor, self.server.sd_s * factor
        if model == "thesis":
            times = np.array(self.queued_message_s or [0.0]) * factor
            wait = queueing.message_wait_s(rates_per_s, times)
        elif model == "kuo":
            wait = np.zeros(rates_per_s.shape)
        elif model == "levi-savas":
            wait = queueing.mm1_wait_s(rates_per_s, mean_s)
        else:
            wait = queueing.mgc_wait_s(rates_per_s, mean_s, sd_s, workers)
        return np.where(queueing.utilisation(rates_per_s, mean_s, workers) < 1.0, wait, np.nan)

    def energy_j(self, elapsed_s: float | None) -> float | None:
        """Energy of the client for one handshake, or None where the profiles do not give it."""
        power, radio = self.device.energy, self.bearer.energy
        up_bytes, down_bytes = self.trace.size_bytes("client"), self.trace.size_bytes("server")
        computing_s = self.client.total.mean
        computing_j = self.client.primitive_energy_j
        if power.active_w is not None:
            waiting_s = max(0.0, (elapsed_s or computing_s) - computing_s)
            computing_j = float(
                handshake_energy_j(
                    computing_s, power.active_w, waiting_s=waiting_s, idle_w=power.idle_w or 0.0
                )
            )
        if computing_j is None:
            return None
        if radio.send_j_per_byte is not None and radio.receive_j_per_byte is not None:
            radio_j = byte_energy_j(up_bytes, radio.send_j_per_byte, down_bytes, radio.receive_j_per_byte)
            return computing_j + float(radio_j)
        if radio.send_w is None or radio.receive_w is None:
            return computing_j
        sending_s = 8.0 * up_bytes / self.bearer.up_bits_per_s
        receiving_s = 8.0 * down_bytes / self.bearer.down_bits_per_s
        waiting_s = max(0.0, (elapsed_s or 0.0) - sending_s - receiving_s)
        radio_j = handshake_energy_j(
            0.0, 0.0, sending_s, radio.send_w, receiving_s, radio.receive_w, waiting_s, radio.idle_w or 0.0
        )
        return computing_j + float(radio_j)


def scenario(
    suite: str,
    device: str = DEFAULT_DEVICE,
    server_device: str = DEFAULT_SERVER_DEVICE,
    bearer: str = DEFAULT_BEARER,
    *,
    traces: TraceLibrary | None = None,
    scale_from: str | None = None,
) -> Scenario:
    """Load and price one scenario.

    Raises:
        InputError: for unknown names, bad files, devices without primitives, or nothing to price an
            operation by.
    """
    client, server, link = load_device(device), load_device(server_device), load_bearer(bearer)
    scale = None if scale_from is None else load_device(scale_from)
    if scale is not None and client.priced and server.priced:
        raise InputError(
            f"--scale-from {scale_from} has nothing to do: {device} and {server_device} have primitives; "
            "accepted with a device that has none"
        )
    trace = (traces or open_library())[suite]
    return Scenario(
        trace,
        client,
        server,
        link,
        price(trace, "client", client, None if client.priced else scale),
        price(trace, "server", server, None if server.priced else scale),
    )


def predict(
    suites: Sequence[str],
    *,
    device: str = DEFAULT_DEVICE,
    server_device: str = DEFAULT_SERVER_DEVICE,
    bearer: str = DEFAULT_BEARER,
    rate_per_s: float = 0.0,
    model: str = "default",
    workers: int = 1,
    traces: TraceLibrary | None = None,
    scale_from: str | None = None,
) -> list[Prediction]:
    """Predict handshakes: one row a suite.

    Args:
        suites: suite names.
        device, server_device, bearer: profile names or paths.
        rate_per_s: handshakes per second that arrive at the server, in every model.
        model: one of ``MODELS``.
        workers: the server's workers (default model only).
        traces: where recorded handshakes come from; left out, the shipped library.
        scale_from: device whose figures stand in, scaled by the clock, for one without primitives.

    Raises:
        InputError: naming what was wrong and what is accepted.
    """
    _check_model(model, workers)
    if not (math.isfinite(rate_per_s) and rate_per_s >= 0.0):
        raise InputError(f"rate is {rate_per_s}; accepted: handshakes per second, 0 or more")
    library = traces or open_library()
    return [
        _row(
            scenario(suite, device, server_device, bearer, traces=library, scale_from=scale_from),
            model,
            rate_per_s,
            workers,
        )
        for suite in suites
    ]


def totals_s(
    scenarios: Sequence[Scenario], rates_per_s: Sequence[float], model: str = "default", workers: int = 1
) -> Floats:
    """Total mean duration of each scenario at each rate, NaN without a steady state.

    Returns:
        Seconds, shape ``(scenarios, rates)``.
    """
    _check_model(model, workers)
    rates = np.asarray(rates_per_s, dtype=np.float64)
    totals = np.empty((len(scenarios), len(rates)))
    for index, one in enumerate(scenarios):
        processing_s = one.client.total.mean + one.server.total.mean
        wait_s = one.wait_s(model, rates, workers)
        totals[index] = handshake.duration_s(processing_s, one.transmission(model).mean, wait_s)
    return totals


def _row(one: Scenario, model: str, rate_per_s: float, workers: int) -> Prediction:
    sent = one.transmission(model)
    server = one.server.total
    rates = np.array([rate_per_s])
    ends = []
    for end in ("low", "mean", "high"):
        service_s = getattr(server, end)
        factor = service_s / server.mean if server.mean > 0.0 else 1.0
        wait_s = float(one.wait_s(model, rates, workers, factor)[0])
        total_s = getattr(one.client.total, end) + service_s + getattr(sent, end) + wait_s
        ends.append((wait_s, total_s))
    (_, low_s), (wait_s, total_s), (_, high_s) = ends
    return Prediction(
        suite=one.trace.suite,
        device=one.device.name,
        server_device=one.server_device.name,
        bearer=one.bearer.name,
        rate_per_s=rate_per_s,
        kind="modelled",
        model=model,
        client_s=one.client.total.mean,
        server_s=server.mean,
        transmission_s=sent.mean,
        queue_s=_known(wait_s),
        total_s=_known(total_s),
        utilisation=float(queueing.utilisation(rate_per_s, server.mean, workers)),
        energy_j=one.energy_j(_known(total_s)),
        range_s=[_known(low_s), _known(high_s)],
        extrapolated=[*one.client.extrapolated, *one.server.extrapolated],
    )


def capacity(
    suites: Sequence[str],
    *,
    within_s: float,
    device: str = DEFAULT_DEVICE,
    server_device: str = DEFAULT_SERVER_DEVICE,
    bearer: str = DEFAULT_BEARER,
    percentile: float | None = None,
    workers: int = 1,
    traces: TraceLibrary | None = None,
    scale_from: str | None = None,
) -> list[Capacity]:
    """Find the highest rate at which the whole handshake stays within a promise: one row a suite.

    Args:
        suites: suite names.
        within_s: the promised time.
        device, server_device, bearer: profile names or paths.
        percentile: share in per cent of handshakes that must keep the promise; left out, their mean must.
        workers: the server's workers.
        traces: where recorded handshakes come from; left out, the shipped library.
        scale_from: device whose figures stand in, scaled by the clock, for one without primitives.

    Raises:
        InputError: naming what was wrong and what is accepted.
    """
    if not (math.isfinite(within_s) and within_s > 0.0):
        raise InputError(f"within is {within_s}; accepted: a time above 0")
    if percentile is not None and not 0.0 < percentile < 100.0:
        raise InputError(f"percentile is {percentile}; accepted: above 0 and below 100")
    _check_model("default", workers)
    library = traces or open_library()
    rows: list[Capacity] = []
    for suite in suites:
        one = scenario(suite, device, server_device, bearer, traces=library, scale_from=scale_from)
        sent = one.transmission("default")
        service = spread_service(one.server.total.mean, one.server.sd_s)
        # The delay is the bearer's for a whole handshake: its crossings are late or early together.
        spread_s = math.hypot(sent.high - sent.mean, one.client.sd_s)
        unloaded_s = one.client.total.mean + one.server.total.mean + sent.mean
        rate = handshake.highest_rate_per_s(within_s, unloaded_s, service, workers, percentile, spread_s)
        limited = math.isfinite(rate)
        rows.append(
            Capacity(
                suite=one.trace.suite,
                server_device=one.server_device.name,
                device=one.device.name,
                bearer=one.bearer.name,
                within_s=within_s,
                percentile=percentile,
                workers=workers,
                rate_per_s=rate if limited else None,
                utilisation=rate * service.mean_s / workers if limited else None,
            )
        )
    return rows


def _check_model(model: str, workers: int) -> None:
    if model not in MODELS:
        raise InputError(
            f'unknown model "{model}"; accepted: {", ".join(MODELS)}{did_you_mean(model, MODELS)}'
        )
    if workers < 1:
        raise InputError(f"workers is {workers}; accepted: 1 or more")
    if workers > 1 and model != "default":
        raise InputError(f"workers is {workers}; accepted with model {model}: 1, it has one server")


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
