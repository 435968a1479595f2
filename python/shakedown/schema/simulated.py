"""What `simulate --json` prints: one fleet of clients, replayed in virtual time. Times are seconds.

Every figure is simulated: recorded handshakes, priced on devices, over links, transports and a server's
queue. With anything `unpriced` the times are lower bounds.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from shakedown.schema.base import Amount, Count, Number, Object, Text
from shakedown.schema.predictions import Basis, Failed, GuessedFigure, Promise, UnpricedPart

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Spread(Object, frozen=True, kw_only=True):
    """A distribution over clients; null where there are none.

    `margin` is half of the mean's 95 % confidence interval over replications, null with fewer than two.
    """

    n: Count
    mean: Number | None
    margin: Number | None
    min: Number | None
    p50: Number | None
    p90: Number | None
    p95: Number | None
    p99: Number | None
    max: Number | None


class Interval(Object, frozen=True, kw_only=True):
    """What happened in a part of the time: counts, and means over the interval and replications."""

    start_s: Number
    arrived: Number
    completed: Number
    failed: Number
    retries: Number
    in_flight: Number
    waiting: Number
    busy_workers: Number


class Traffic(Object, frozen=True, kw_only=True):
    """What all clients put on their networks, IP headers included, and what was lost or sent again."""

    packets: Count
    up_bytes: Count
    down_bytes: Count
    retransmissions: Count
    dropped: dict[str, Count]


class ClosedForm(Object, frozen=True, kw_only=True):
    """The same scenario as `predict` has it, the queue by formula; null without a steady state.

    `queue_wait_s` is M/G/c's with whole handshakes as customers; `flights_queue_wait_s` is Pollaczek and
    Khinchine's with each of the server's jobs as a customer of its own (one worker only). `ready_s` has
    the connection's work in it, and the first of the two waits.
    """

    rate_per_s: Number
    utilisation: Number
    queue_wait_s: Number | None
    flights_queue_wait_s: Number | None
    ready_s: Number | None


class Replayed(Object, frozen=True, kw_only=True):
    """The same scenario replayed from the recording, with another seed: how `simulate` does it without
    `--endpoints`.

    `mean_ratio` is its mean over that of the endpoints, null where either has none. `distance` is the
    greatest difference between the shares of handshakes that take no longer than a time, over all times
    (Kolmogorov and Smirnov's, where times 1 % apart count as equal); of samples so large from one
    distribution at most 1 % are further apart than `critical`.
    """

    clients: Count
    ready_s: Spread
    mean_ratio: Number | None
    distance: Number | None
    critical: Number | None


class Endpoints(Object, frozen=True, kw_only=True):
    """Which protocol engines ran in virtual time, and how far the replay is from them."""

    client_stack: Text
    server_stack: Text
    replayed: Replayed


class Counted(Object, frozen=True, kw_only=True):
    """What is said of a fleet, of one kind of clients or of several.

    `clients` are those counted, over all replications: `completed` and those in `failed` by cause.
    `ready_s` is from a client's arrival until it may send data, failed attempts and pauses before it
    included; `done_s` until both sides are through. `queue_wait_s` is a client's waiting for workers, all its
    flights together; `job_wait_s` that of each flight. `unstable`: more work arrives than the workers can do,
    so that the figures grow with the number of clients. Of a storm, `recovery_s` is when the last client was
    in.
    """

    kind: Literal["simulated"]
    server_device: Text
    arrivals: Text
    rate_per_s: Number | None
    clients: Count
    completed: Count
    failed: dict[str, Count]
    attempts: Count
    ready_s: Spread
    done_s: Spread
    connect_s: Spread
    queue_wait_s: Spread
    job_wait_s: Spread
    utilisation: Number
    offered: Number | None
    unstable: bool
    workers: Count
    discipline: Literal["fifo", "ps"]
    energy_j: Spread
    energy_missing: tuple[str, ...]
    virtual_s: Number
    recovery_s: Number
    peak_in_flight: Count
    traffic: Traffic
    from_idle: bool
    timeout_s: Number | None
    retries: Count
    replications: Count
    warmup_clients: Count
    seed: Count
    series_s: Number | UnsetType = UNSET
    series: tuple[Interval, ...] | UnsetType = UNSET


class Simulated(Counted, frozen=True, kw_only=True):
    """One row of `simulate`. With `endpoints` the handshakes are those of real protocol engines; else they
    are replayed.
    """

    suite: Text
    device: Text
    bearer: Text
    resumption: Share
    modelled: ClosedForm | None
    basis: Basis
    unpriced: tuple[UnpricedPart, ...]
    extrapolated: tuple[GuessedFigure, ...]
    endpoints: Endpoints | UnsetType = UNSET


class MixedClients(Object, frozen=True, kw_only=True):
    """A kind of client of `simulate --mix`: `clients` of all that are counted, `failed` of these."""

    suite: Text
    device: Text
    bearer: Text
    weight: Amount
    share: Share
    resumption: Share
    clients: Count
    failed: Count
    ready_s: Spread
    basis: Basis
    unpriced: tuple[UnpricedPart, ...]
    extrapolated: tuple[GuessedFigure, ...]


class SimulatedMix(Counted, frozen=True, kw_only=True):
    """The row of `simulate --mix`: several kinds of clients at one server.

    Figures are of all clients together; each kind has its own times. `share` is a kind's part of all
    arrivals.
    """

    mix: Text
    kinds: tuple[MixedClients, ...]


class FailedSimulation(Failed, frozen=True, kw_only=True):
    """A suite that cannot be simulated, and why."""

    kind: Literal["simulated"]


class SimulatedCapacity(Promise, frozen=True, kw_only=True):
    """One row of `capacity --simulated`: `rate_per_s` is 0 if the promise cannot be kept, null if nothing
    limits it.

    `ready_s` (until the client may send data), `done_s` (until both sides are through) and `utilisation` are
    those at that rate, `modelled_rate_per_s` is
    what `capacity` says by formula.
    """

    kind: Literal["simulated"]
    ready_s: Spread | None
    done_s: Spread | None
    modelled_rate_per_s: Number | None
    clients: Count
    seed: Count


class FailedSimulatedCapacity(Failed, frozen=True, kw_only=True):
    """A suite whose capacity cannot be simulated, and why."""

    kind: Literal["simulated"]


PRINTED = {
    "simulation": (Simulated, "An object of simulate --json."),
    "simulation-mix": (SimulatedMix, "An object of simulate --mix --json."),
}
