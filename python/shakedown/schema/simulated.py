"""What `simulate --json` prints: one fleet of clients, replayed in virtual time. Times are seconds.

Every figure is simulated: recorded handshakes, estimated on devices, over links, transports and a server's
queue. Where work has no cost, the simulation runs with the least that is known of that side's work; figures
that depend on it name it in `missing`, and are lower bounds.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from shakedown.schema.base import Amount, Basis, Bounds, Count, Number, Object, Text
from shakedown.schema.predictions import BytesEachWay, Failed, GuessedFigure, PartWithoutCost, Promise
from shakedown.schema.profiles import HostTcp

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Spread(Object, frozen=True, kw_only=True):
    """A distribution over clients; null where there are none, and percentiles of too few: p90 of fewer than
    10, p95 of 20, p99 of 100.

    `margin` is half of the mean's 95 % confidence interval over replications, null with fewer than two and
    where none is known; `p50_margin` and the others are the same of the percentiles. `basis` is what the
    costs behind it stand on, null where it depends on none; the ranges of costs are not simulated. With
    anything `missing`, each statistic is a lower bound; null if nothing bounds it.
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
    p50_margin: Number | None = None
    p90_margin: Number | None = None
    p95_margin: Number | None = None
    p99_margin: Number | None = None
    basis: Basis | None = None
    missing: tuple[str, ...] = ()


class Precision(Object, frozen=True, kw_only=True):
    """How well the figures of a steady load are known: mean, median, p95 and p99 of `ready_s` (of each kind
    of client, too), mean of `queue_wait_s`, and `utilisation`. `max` grows with the number of clients and
    has no precision.

    `asked` and `reached` are half the width of the 95 % interval as a share of the figure (of a wait, or of a
    hundredth of the mean `ready_s` where that is more); `reached` is that of the figure `widest`, null with
    fewer than two replications. `is_settled`: warm-up and replications are long beside the memory of the
    queues of server and cells, and the data show no trend after the warm-up. `is_long_enough`: the run has
    the length that theory and an earlier, independent run ask for; a shorter run may have narrow intervals by
    chance. `is_met`: settled, long enough, and as precise as asked.
    """

    asked: Number
    reached: Number | None
    widest: str
    is_settled: bool
    is_long_enough: bool
    is_met: bool


class ClientInterval(Object, frozen=True, kw_only=True):
    """Clients in a part of the time: counts, and means over the interval and replications.

    `in_flight` have arrived and are neither ready nor gone: `pausing` between attempts, `seeking` access to
    their cell, `at_server` in its queues or in work, or else `under_way`.
    """

    arrived: Number
    completed: Number
    failed: Number
    in_flight: Number
    pausing: Number
    seeking: Number
    at_server: Number
    under_way: Number


class Interval(ClientInterval, frozen=True, kw_only=True):
    """What happened in a part of the time, to all clients and at the servers.

    `servers` are those in service, `starting` those that are being started; null where their number is fixed.
    """

    start_s: Number
    retries: Number
    refused: Number
    waiting: Number
    busy_workers: Number
    servers: Number | None
    starting: Number | None


class Traffic(Object, frozen=True, kw_only=True):
    """What all clients put on their networks, IP headers included, and what was lost or sent again.

    `dropped`: packets by cause; those of ``server-full`` reached a server without room for another connection
    or handshake, which ignored them.
    """

    packets: Count
    up_bytes: Count
    down_bytes: Count
    retransmissions: Count
    dropped: dict[str, Count]


class Pauses(Object, frozen=True, kw_only=True):
    """Pauses between attempts: the first, the ratio of each to the one before, the longest, and the share of
    a pause that is random.
    """

    base_s: Number
    factor: Number
    max_s: Number
    jitter: Share


class Admission(Object, frozen=True, kw_only=True):
    """The token bucket of each server, which begins full, and connections that it let in and refused: SYNs,
    datagrams, or with `alert` handshakes.
    """

    rate_per_s: Number
    burst: Count
    refuse: Literal["reset", "alert", "silence"]
    admitted: Count
    refused: Count


class Autoscaling(Object, frozen=True, kw_only=True):
    """Servers that started and stopped, over all replications, and the most in service at once.

    `server_s` is the time of servers in service, `starting_s` of servers being started: of one replication,
    on average.
    """

    peak: Count
    started: Count
    stopped: Count
    server_s: Number
    starting_s: Number


class Records(Object, frozen=True, kw_only=True):
    """What each client sends after its handshake: `size_bytes` every `interval_s`, `count` times; then it
    closes its connection. At a rate, the connections of a steady state are open from the start.

    `work_s` is the server's on `size_bytes` (of a mixture, on average over the kinds): cipher, library, and
    receiving; `extrapolated` names what of it is not the device's own. `utilisation` is the part of the
    fleet's that went to such work. `wait_s` is how long each waited for a worker. `peak_open` is the most
    connections that were open at once after their handshakes. Records take the server's time alone: they
    cross no link and no cell.
    """

    bytes_per_s: Number
    size_bytes: Count
    interval_s: Number
    count: Count
    work_s: Bounds
    extrapolated: tuple[GuessedFigure, ...]
    utilisation: Bounds
    wait_s: Spread
    peak_open: Count


class CellInterval(Object, frozen=True, kw_only=True):
    """What happened in all cells in an interval of the time series; `utilisation` is the share of their
    channels' time in which they carried bytes. Pairs are up and down.
    """

    requests: Count
    admitted: Count
    refused: Count
    transmissions: Count
    collided: Count
    utilisation: tuple[Number, Number]
    bytes: tuple[Count, Count]


class SaturatedCells(Object, frozen=True, kw_only=True):
    """Cells of a steady load that cannot carry what their clients send.

    `medium` is the medium of the cells. `offered` is the airtime that the clients need, as a share of a
    channel's time, with what is sent again: in the direction `ways`, or in both where they share a channel.
    """

    medium: Text
    ways: Literal["up", "down", "both"]
    offered: Number


class Access(Object, frozen=True, kw_only=True):
    """What happened in all cells; pairs are up and down.

    `requests` are accesses of clients whose radios were idle. `transmissions` are preambles and frames that
    may collide, `collided` those that did, `collisions` how often any did. `attempts` are the preambles of an
    access that succeeded, `delay_s` its time from the first of them until connected, without the radio's
    set-up.
    """

    cells: Count
    requests: Count
    admitted: Count
    refused: Count
    transmissions: Count
    collided: Count
    collisions: Count
    attempts: Spread
    delay_s: Spread
    airtime_s: tuple[Number, Number]
    saturated: tuple[SaturatedCells, ...]
    bytes: tuple[Count, Count]
    series: tuple[CellInterval, ...]


class ClosedForm(Object, frozen=True, kw_only=True):
    """The same scenario as `predict` has it, the queue by formula; null without a steady state, and where
    work has no cost.

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
    included; `done_s` until both sides have finished. `queue_wait_s` is a client's wait for workers, all its
    flights together; `job_wait_s` that of each flight. `unstable`: more work arrives than the workers can do,
    so that the figures grow with the number of clients; null where work without a cost leaves that open.
    `precision` is null for such a load, for storms, autoscaling and protocol engines. Of a storm,
    `recovery_s` is when the last client was in. `missing` is all work without a cost: counts, traffic and
    time series are those of the least work.
    There are `servers` alike, each with `workers`; `balance` is which of them a connection goes to. With
    `autoscaling` they are the first, and `utilisation` is that of those in service.
    `energy_j` is the handshake itself, `wake_tail_j` what waking the radio and its inactivity tail add.
    A client tries again up to `retries` times after `pauses`; `tcp` is how both hosts do TCP, null without.
    `own_links`: clients came at once over a shared medium, no number of `cells` was given, and each had a
    link of its own: times are then those of an empty cell.
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
    utilisation: Bounds
    offered: Bounds | None
    unstable: bool | None
    workers: Count
    discipline: Literal["fifo", "ps"]
    admission: Admission | None = None
    autoscaling: Autoscaling | None = None
    records: Records | UnsetType = UNSET
    energy_j: Spread
    wake_tail_j: Bounds
    energy_terms: tuple[str, ...]
    missing: tuple[str, ...]
    virtual_s: Number
    recovery_s: Bounds
    peak_in_flight: Count
    traffic: Traffic
    from_idle: bool
    cells: Count | None
    own_links: bool
    access: Access | None
    timeout_s: Number | None
    retries: Count
    pauses: Pauses | None = None
    tcp: HostTcp | None = None
    replications: Count
    warmup_clients: Count
    precision: Precision | None = None
    servers: Count = 1
    balance: Literal["round-robin", "least-connections", "hash", "cell"] = "round-robin"
    seed: Count
    series_s: Number | UnsetType = UNSET
    series: tuple[Interval, ...] | UnsetType = UNSET


class Simulated(Counted, frozen=True, kw_only=True):
    """One row of `simulate`. With `endpoints` the handshakes are those of real protocol engines; else they
    are replayed. `handshake_bytes` and `unused_key_share_s` are as of a prediction.
    """

    suite: Text
    device: Text
    server_software: Text | None = None
    bearer: Text
    resumption: Share
    handshake_bytes: BytesEachWay
    unused_key_share_s: Bounds | None = None
    modelled: ClosedForm | None
    basis: Basis
    without_cost: tuple[PartWithoutCost, ...]
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
    unused_key_share_s: Bounds | None = None
    clients: Count
    failed: Count
    ready_s: Spread
    series: tuple[ClientInterval, ...] | UnsetType = UNSET
    basis: Basis
    without_cost: tuple[PartWithoutCost, ...]
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

    `ready_s` (until the client may send data), `done_s` (until both sides have finished), `utilisation` are
    those at that rate, known to `precision`, of `clients`; `modelled_rate_per_s` is the formula's. The
    whole 95 % interval of the figure is below the limit. `records` is what each client sends after its
    handshake and what that takes at that rate; `limit_per_s` counts it, and there is no formula with it. Nor
    is there one with `cells` that clients share; null: each client has a link of its own. Cells cannot carry
    more than `cells_limit_per_s`, at which what is named in `cells_limit_of` would be used up without any
    contention. `from_idle`: radios are set up first.
    """

    kind: Literal["simulated"]
    cells: Count | None
    cells_limit_per_s: Amount | None
    cells_limit_of: Literal["airtime", "circuits", "random access"] | None
    from_idle: bool
    ready_s: Spread | None
    done_s: Spread | None
    modelled_rate_per_s: Bounds | None
    clients: Count
    precision: Precision | None = None
    records: Records | UnsetType = UNSET
    seed: Count


class FailedSimulatedCapacity(Failed, frozen=True, kw_only=True):
    """A suite whose capacity cannot be simulated, and why."""

    kind: Literal["simulated"]


PRINTED = {
    "simulation": (Simulated, "An object of simulate --json."),
    "simulation-mix": (SimulatedMix, "An object of simulate --mix --json."),
    "simulated-capacity": (SimulatedCapacity, "An object of capacity --simulated --json."),
}
