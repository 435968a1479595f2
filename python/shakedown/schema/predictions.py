"""What `predict --json` and `capacity --json` print: one suite in one scenario. Times are seconds.

Every figure is modelled. `basis` says what the device figures stand on, the weakest that matters: the
device's `own`, `scaled` from its others, `assumed`, or `unknown`. A figure that depends on work without a
cost names that in its `missing`: it has no estimate, and its bounds come from the least work that is known.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from shakedown.schema.base import Amount, Basis, Bounds, Carrier, Count, Number, Object, Side, Text

MATTERS = 0.05
"""Parts that are, at the upper ends of their ranges, a smaller share of the total than this do not decide
what the total stands on.
"""


class Times(Object, frozen=True, kw_only=True):
    """A distribution of times over handshakes.

    `lower` and `upper` hold 90 % of handshakes, the device figures' uncertainty included. With anything
    `missing`, each statistic is a lower bound: that of the least work that is known, with the low ends of
    the other figures' ranges.
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
    """A figure that is not the device's own: what it stands on, how it was made, and how sure it is."""

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
    """What has no figure, and why."""

    side: Side
    operation: Text
    algorithm: str
    parameters: str
    count: Count
    reason: str


class Connections(Object, frozen=True, kw_only=True):
    """What the TCP connection costs each side, kernel included; 0 over datagrams."""

    client: Number
    server: Number


class BytesEachWay(Object, frozen=True, kw_only=True):
    """Bytes from the client and to it."""

    up: Amount
    down: Amount


class EnergyParts(Object, frozen=True, kw_only=True):
    """Energy of the client by part, in joules; null is unknown."""

    processor: Number | None
    radio: Number | None
    setup: Number | None
    tail: Number | None


class InsideEap(Object, frozen=True, kw_only=True):
    """What EAP-TLS over RADIUS makes of the handshake, for an identity of one byte.

    `ticket_bytes` is the new ticket that follows a resumption of TLS 1.3, as long as the one presented; after
    a full handshake there are only those of the trace. `round_trips` are Access-Requests; the bearer has one
    more, for EAPOL-Start. `radius_hop_s`, between access point and RADIUS server and back, is assumed unless
    it was given.
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
    """One row of `predict`; null where there is no steady state.

    `ready_s` is until the client may send data, `done_s` until both sides have finished: the sum of client,
    server, transmission and queue. `p99_interval_s` is the interval (95 %) of the 99th percentile of
    `ready_s` that the number of replayed handshakes leaves; both ends are the same where nothing varies, and
    literature's models have none. `ratio_to_first` compares with the first suite asked for: what both assume
    is wrong in both alike.
    `energy_j` is the client's for the handshake itself, `wake_tail_j` what waking the radio and its
    inactivity tail add, `resumption_saves_j` how much less the handshake itself takes where it resumes a
    session, null for suites whose sessions are not resumed; `energy_terms` says what is assumed of the radio
    before and after. `handshakes_per_charge` counts the first two.
    `server_software` is what the server runs, which decides on its tickets; null where the traces recorded a
    server that is not known. `unused_key_share_s` is what a key share would add to the client that the stack
    sends and the suite does not use; it is in no other figure, and null where there is none, as opposed to
    one without a cost figure.
    `handshake_bytes` are the messages', as `measure` has them; `wire_bytes` all that goes over the bearer
    on average: headers, acknowledgements, what is sent again. Null where no handshake completes, of which
    the literature's models know nothing.
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
    energy_terms: Text
    handshakes_per_charge: Bounds | None
    ratio_to_first: Bounds | None
    failed: Number = 0.0
    carrier: Carrier = "bare"
    eap: InsideEap | None = None
    server_software: Text | None = None
    unused_key_share_s: Bounds | None = None
    handshake_bytes: BytesEachWay
    wire_bytes: BytesEachWay | None


class Failed(Object, frozen=True, kw_only=True):
    """A suite that has no figures in a place, and why."""

    suite: Text
    device: Text
    server_device: Text
    bearer: Text
    error: Text


class FailedPrediction(Failed, frozen=True, kw_only=True):
    """A suite that cannot be predicted, and why."""

    kind: Literal["modelled"]


class Promise(Object, frozen=True, kw_only=True):
    """The highest rate that keeps a promise: `ready` stays within `within_s`, mean or percentile.

    `rate_per_s` is 0 if the promise cannot be kept, null where no server cost is known. With work that has
    no cost it is an upper bound. `limit_per_s` is where the queue saturates. `handshake_bytes` are the
    messages', and `unused_key_share_s` is left out, as of a prediction.
    """

    suite: Text
    server_device: Text
    server_software: Text | None = None
    device: Text
    bearer: Text
    within_s: Number
    percentile: Number | None
    workers: Count
    rate_per_s: Bounds | None
    utilisation: Number | None
    limit_per_s: Bounds | None
    handshake_bytes: BytesEachWay
    unused_key_share_s: Bounds | None = None
    basis: Basis
    without_cost: tuple[PartWithoutCost, ...]


class MeasuredTime(Object, frozen=True, kw_only=True):
    """Seconds, with what holds them nine times in ten."""

    estimate: Amount
    lower: Amount
    upper: Amount


class Calibration(Object, frozen=True, kw_only=True):
    """What a running server takes for a connection of a suite (`server_s`, s), from loads of it.

    `method`: the CPU time of its `processes` here; or, where it runs elsewhere, workers by the rate that it
    reached. The interval holds all rounds that count, and what a machine differs from itself at another time.
    `full_speed` is the share of time at which the server's processors had their full speed, for which the
    figure is; null where it is not known, as of a server elsewhere.
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

    `workers_needed` answers `--rate`: null where no number of workers up to 100,000 keeps the promise.
    `unloaded_s` is ready without load, on the mean or at the percentile: where it is above the promise, no
    rate keeps that. `ready_s` and `done_s` are the times at that rate, null where there is none.
    `calibration` is the running server's work, where that took the place of the modelled.
    """

    ready_s: Times | None
    done_s: Times | None
    extrapolated: tuple[GuessedFigure, ...]
    unloaded_s: Bounds
    workers_needed: Bounds | UnsetType | None = UNSET
    asked_rate_per_s: Number | UnsetType = UNSET
    calibration: Calibration | UnsetType = UNSET


class FailedCapacity(Failed, frozen=True, kw_only=True):
    """A suite whose capacity cannot be told, and why."""


PRINTED = {
    "prediction": (Prediction, "An object of predict --json."),
    "prediction-failure": (FailedPrediction, "An object of predict --json where a suite has no prediction."),
    "capacity": (Capacity, "An object of capacity --json."),
    "capacity-failure": (FailedCapacity, "An object of capacity --json where a suite has no capacity."),
}
