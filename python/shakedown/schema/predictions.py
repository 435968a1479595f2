"""What `predict --json` and `capacity --json` print: one suite in one scenario. Times are seconds.

Every figure is modelled. `basis` says what the device figures stand on, the weakest that matters: the
device's
`own`, `scaled` from its others, `assumed`, or `unknown`. With anything `unpriced` the sums are lower bounds.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from shakedown.schema.base import Amount, Carrier, Count, Number, Object, Side, Text

Basis = Literal["own", "scaled", "assumed", "unknown"]
Ends = tuple[Number | None, Number | None]


class Times(Object, frozen=True, kw_only=True):
    """A distribution of times over handshakes."""

    mean: Number
    p50: Number
    p95: Number
    p99: Number


class Uncertain(Object, frozen=True, kw_only=True):
    """A figure and its 90 % range; `high` is null where a part has no figure, and `mean` then a least
    value.
    """

    mean: Number
    low: Number
    high: Number | None


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


class UnpricedPart(Object, frozen=True, kw_only=True):
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

    `ready_s` is until the client may send data, `done_s` until both sides are through: the sum of client,
    server, transmission and queue. `range_s` holds 90 % of handshakes' times until ready, the device figures'
    uncertainty included. `p99_interval_s` is the interval (95 %) of the 99th percentile of `ready_s` that the
    number of replayed handshakes leaves; both ends are the same where nothing varies, and literature's models
    have none. `ratio_to_first` compares with the first suite asked for: what both assume is wrong in both
    alike. `energy_tail` says whether the radio's inactivity tail is in the energy, and how much of it; null
    where it is missing.
    `handshake_bytes` are the messages', as `measure` has them; `wire_bytes` all that goes over the bearer
    on average: headers, acknowledgements, what is sent again. Null where no handshake gets through, of which
    the literature's models know nothing.
    """

    suite: Text
    device: Text
    server_device: Text
    bearer: Text
    rate_per_s: Number
    kind: Literal["modelled"]
    model: Text
    client_s: Number
    server_s: Number
    transmission_s: Number
    queue_s: Number | None
    utilisation: Number
    energy_j: Uncertain | None
    range_s: Ends
    extrapolated: tuple[GuessedFigure, ...]
    workers: Count
    basis: Basis
    unpriced: tuple[UnpricedPart, ...]
    ready_s: Times | None
    done_s: Times | None
    p99_interval_s: tuple[Number, Number] | None
    client_range_s: Ends
    server_range_s: Ends
    connection_s: Connections
    energy_parts_j: EnergyParts
    energy_missing: tuple[str, ...]
    energy_tail: str | None
    handshakes_per_charge: Number | None
    ratio_to_first: Uncertain | None
    failed: Number = 0.0
    carrier: Carrier = "bare"
    eap: InsideEap | None = None
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
    """The highest rate that keeps a promise: `ready` stays within `within_s`, mean or percentile."""

    suite: Text
    server_device: Text
    device: Text
    bearer: Text
    within_s: Number
    percentile: Number | None
    workers: Count
    rate_per_s: Number | None
    utilisation: Number | None
    limit_per_s: Number | None
    basis: Basis
    unpriced: tuple[UnpricedPart, ...]


class Capacity(Promise, frozen=True, kw_only=True):
    """One row of `capacity`: `rate_per_s` is 0 if the promise cannot be kept.

    With anything of the server `unpriced`, the rate is an upper bound. `workers_needed` answers
    `--rate`: null where no number of workers up to 100,000 keeps the promise. `unloaded_s` is
    ready without load, on the mean or at the percentile: where it is above the promise, no rate keeps that.
    `ready_s` and `done_s` are the times at that rate, null where there is none.
    """

    rate_range_per_s: Ends
    ready_s: Times | None
    done_s: Times | None
    extrapolated: tuple[GuessedFigure, ...]
    unloaded_s: Number
    workers_needed: Count | UnsetType | None = UNSET
    workers_range: tuple[Count | None, Count | None] | UnsetType = UNSET
    asked_rate_per_s: Number | UnsetType = UNSET


class FailedCapacity(Failed, frozen=True, kw_only=True):
    """A suite whose capacity cannot be told, and why."""


PRINTED = {
    "prediction": (Prediction, "An object of predict --json."),
    "prediction-failure": (FailedPrediction, "An object of predict --json where a suite has no prediction."),
    "capacity": (Capacity, "An object of capacity --json."),
    "capacity-failure": (FailedCapacity, "An object of capacity --json where a suite has no capacity."),
}
