"""The output of `predict --json` and `capacity --json`: one suite in one scenario. Times are seconds.

Every figure is modelled. `basis` is the weakest basis of the device figures that matter: the device's `own`,
`scaled` from its other figures, `assumed`, or `unknown`. `missing` lists work without a cost figure. A figure
that depends on such work has no estimate, and its bounds are computed without this work.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from shakedown.schema.base import Amount, Basis, Bounds, Carrier, Count, Number, Object, Side, Text

NEGLIGIBLE_SHARE = 0.05
"""A part determines the basis of a total only if the upper end of its range is at least this share of the
total.
"""

MAX_WITHIN_S = 1e7
"""Maximum of a time limit: near saturation, waits depend on the last digits of the utilisation."""

MAX_FAILED_SHARE = 0.01
"""Share of handshakes that may fail if a limit is for the mean time."""


def max_failed_share(percentile: float | None) -> float:
    """Share of handshakes that may fail if a limit is for a percentile (in per cent) or the mean (None)."""
    return MAX_FAILED_SHARE if percentile is None else 1.0 - percentile / 100.0


class Times(Object, frozen=True, kw_only=True):
    """A distribution of times over handshakes.

    90 % of the handshakes are between `lower` and `upper`; the interval includes the uncertainty of the
    device figures. If anything is `missing`, each statistic is a lower bound: it is computed without the
    missing work, and with the lower ends of the other figures' ranges.
    """

    mean: Number
    p50: Number
    p95: Number
    p99: Number
    lower: Number | None
    upper: Number | None
    basis: Basis
    missing: tuple[str, ...] = ()


class GuessedFigure(Object, frozen=True, kw_only=True):
    """A figure that is not the device's own: its basis, method and range."""

    side: Literal["client", "server", ""]
    operation: Text
    algorithm: str
    parameters: str
    count: Count
    basis: Basis
    method: str
    source: str
    time_s: Number
    range_s: tuple[Number, Number]


class PartWithoutCost(Object, frozen=True, kw_only=True):
    """Work without a cost figure, and the reason."""

    side: Side
    operation: Text
    algorithm: str
    parameters: str
    count: Count
    reason: str


class Connections(Object, frozen=True, kw_only=True):
    """Each side's cost of the TCP connection, including the kernel's work; 0 over datagrams."""

    client: Number
    server: Number


class BytesEachWay(Object, frozen=True, kw_only=True):
    """Bytes from the client (`up`) and to the client (`down`)."""

    up: Amount
    down: Amount


class EnergyParts(Object, frozen=True, kw_only=True):
    """Energy of the client by part, in joules; null is unknown."""

    processor: Number | None
    radio: Number | None
    setup: Number | None
    tail: Number | None


class InsideEap(Object, frozen=True, kw_only=True):
    """The handshake inside EAP-TLS over RADIUS, for the default identity of 24 bytes.

    `ticket_bytes` is the size of the new ticket after a resumption in TLS 1.3; it is that of the presented
    ticket. After a full handshake there are only the tickets of the trace. `round_trips` counts
    Access-Requests; over the bearer there is one more round trip, for EAPOL-Start. `radius_hop_s` is the
    round trip between access point and RADIUS server; it is assumed unless it was given.
    """

    fragment_bytes: Count
    server_fragment_bytes: Count
    radius_hop_s: Number
    ticket_bytes: Number
    round_trips: Count
    fragments: Count
    eap_bytes: Number
    radius_bytes: Number


class Prediction(Object, frozen=True, kw_only=True):
    """One row of `predict`. Times that need a steady state of the queue are null if there is none.

    `ready_s` is the time until the client may send data. `done_s` is the time until both sides have finished:
    the sum of client, server, transmission and queue. In the default model `transmission_s` contains both
    sides' work on the TCP connection; if some work has no cost figure, it is a lower bound.
    `p99_interval_s` is the 95 % interval of `ready_s.p99` that the number of replayed handshakes leaves; both
    ends are equal if nothing varies, and it is null for models from the literature.
    `utilisation` is the share of time in which a worker of the server works.
    `offered` is the offered load: the work that arrives per second, as a share of the workers' time; at 1 or
    more there is no steady state. `ratio_to_first` is the processing time divided by that of the first suite;
    errors that both suites share cancel out.
    `energy_j` is the client's energy for the handshake itself, `wake_tail_j` the additional energy of waking
    the radio and of its inactivity tail. `energy_terms` states the assumptions about the radio before and
    after the handshake. `resumption_saves_j` is the energy that a resumed handshake saves; null if sessions
    of the suite cannot be resumed, if the server's software does not resume them, if the library of recorded
    handshakes has no resumed handshake of the suite, inside EAP, and for models from the literature.
    `handshakes_per_charge` includes `energy_j` and `wake_tail_j`.
    `server_software` determines the server's tickets; null if the traces were recorded from an unknown
    server. `server_software_note` states that it does not offer the suite, or does not resume its sessions;
    null if it does.
    `unused_key_share_s` is the client's cost of a key share that the stack sends although the suite does not
    use it. No other figure includes it; it is null if there is no such key share.
    `handshake_bytes` counts the bytes of the messages, as `measure` does. `wire_bytes` counts all bytes on
    the bearer, on average: also headers, acknowledgements and retransmissions; null if no handshake
    completes, and for models from the literature.
    """

    suite: Text
    device: Text
    server_device: Text
    bearer: Text
    rate_per_s: Number
    kind: Literal["modelled"]
    model: Text
    client_s: Bounds
    server_s: Bounds
    transmission_s: Number
    queue_s: Bounds | None
    utilisation: Bounds
    offered: Bounds
    energy_j: Bounds
    wake_tail_j: Bounds
    resumption_saves_j: Bounds | None
    extrapolated: tuple[GuessedFigure, ...]
    workers: Count
    basis: Basis
    without_cost: tuple[PartWithoutCost, ...]
    ready_s: Times | None
    done_s: Times | None
    p99_interval_s: tuple[Number, Number] | None
    connection_s: Connections
    energy_parts_j: EnergyParts
    energy_terms: tuple[Text, ...]
    handshakes_per_charge: Bounds | None
    ratio_to_first: Bounds | None
    failed: Number = 0.0
    carrier: Carrier = "bare"
    eap: InsideEap | None = None
    server_software: Text | None = None
    server_software_note: Text | None = None
    unused_key_share_s: Bounds | None = None
    handshake_bytes: BytesEachWay
    wire_bytes: BytesEachWay | None


class Failed(Object, frozen=True, kw_only=True):
    """A suite that has no figures in a place, and the reason."""

    suite: Text
    device: Text
    server_device: Text
    bearer: Text
    error: Text


class FailedPrediction(Failed, frozen=True, kw_only=True):
    """A suite that cannot be predicted, and the reason."""

    kind: Literal["modelled"]


class Promise(Object, frozen=True, kw_only=True):
    """The highest rate at which the mean or the percentile of `ready` is within `within_s`.

    The percentile is that of all handshakes: failed ones are not ready in time. `failed` is their share;
    times are those of the others. For the mean, at most 1 % may fail.
    `rate_per_s` is 0 if no rate meets the limit, and null if no server cost is known. If work has no cost
    figure, it is an upper bound, and `failed` a lower bound. `limit_per_s` is the rate at which the queue
    saturates. `handshake_bytes`, `unused_key_share_s` and `server_software_note` are those of a prediction.
    """

    suite: Text
    server_device: Text
    server_software: Text | None = None
    server_software_note: Text | None = None
    device: Text
    bearer: Text
    within_s: Number
    percentile: Number | None
    workers: Count
    rate_per_s: Bounds | None
    utilisation: Number | None
    limit_per_s: Bounds | None
    failed: Number | None
    handshake_bytes: BytesEachWay
    unused_key_share_s: Bounds | None = None
    basis: Basis
    without_cost: tuple[PartWithoutCost, ...]


class MeasuredTime(Object, frozen=True, kw_only=True):
    """A time in seconds, with its 90 % interval."""

    estimate: Amount
    lower: Amount
    upper: Amount


class Calibration(Object, frozen=True, kw_only=True):
    """A running server's cost of a connection of a suite (`server_s`, in seconds), measured by loading it.

    `method`: `process`: the CPU time of its `processes` on this machine; `rate`: the number of workers
    divided by the rate that the server reached. The interval contains all rounds that count, and the usual
    variation of a machine over time. The figure is for processors at full speed; `full_speed` is the share
    of the time in which they had it, and null if it is not known, as for a server on another machine.
    """

    target: Text
    suite: Text
    method: Literal["process", "rate"]
    processes: tuple[Text, ...]
    server_s: MeasuredTime
    rounds: Count
    handshakes: Count
    full_speed: Number | None = None
    warnings: tuple[Text, ...] = ()


class Capacity(Promise, frozen=True, kw_only=True):
    """One row of `capacity`.

    `workers_needed` is the number of workers for the rate of `--rate`; its `estimate` and `upper` are null if
    no number up to 100,000 meets the limit, and it is null if none does even at the low ends of the ranges.
    `unloaded_s` is the mean or the percentile of `ready` without load; if it is above the limit,
    no rate meets the limit. It is null if more handshakes fail than the percentile permits. `ready_s` and
    `done_s` are the times at the found rate; null if there is none.
    `calibration` is the measured work of a running server, if it was used instead of the modelled work.
    """

    ready_s: Times | None
    done_s: Times | None
    extrapolated: tuple[GuessedFigure, ...]
    unloaded_s: Bounds | None
    workers_needed: Bounds | UnsetType | None = UNSET
    asked_rate_per_s: Number | UnsetType = UNSET
    calibration: Calibration | UnsetType = UNSET


class FailedCapacity(Failed, frozen=True, kw_only=True):
    """A suite whose capacity cannot be computed, and the reason."""


PRINTED = {
    "prediction": (Prediction, "An object of predict --json."),
    "prediction-failure": (FailedPrediction, "An object of predict --json where a suite has no prediction."),
    "capacity": (Capacity, "An object of capacity --json."),
    "capacity-failure": (FailedCapacity, "An object of capacity --json where a suite has no capacity."),
}
