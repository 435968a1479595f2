"""The output of `simulate --json`: one fleet of clients, replayed in virtual time. Times are seconds.

Every figure is simulated: recorded handshakes, estimated on devices, over links, transports and a server's
queue. If work has no cost figure, the simulation uses lower bounds of that side's work; figures that depend
on this work list it in `missing`, and are lower bounds.
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
    """A distribution over clients; null without clients. Percentiles need a number of clients: p90 10, p95
    20, and p99 100.

    `margin` is half of the mean's 95 % confidence interval over replications; null with fewer than two, or if
    it is not known. `p50_margin` and the others are the same for the percentiles. `basis` is that of the
    costs; null if the distribution depends on no cost. The ranges of costs are not simulated. If anything
    is `missing`, each statistic is a lower bound, or null if there is no bound.
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
    """The precision of a steady load's figures: mean, median, p95 and p99 of `ready_s` (also of each kind of
    client), mean of `queue_wait_s`, and `utilisation`. `max` has no precision, because it grows with the
    number of clients.

    `asked` and `reached` are half the width of the 95 % interval, as a share of the figure. (For a wait, the
    share is of the wait or of a hundredth of the mean `ready_s`, whichever is more.) `reached` is that of the
    figure `widest`; null with fewer than two replications. `is_settled`: warm-up and replications are long
    compared with the correlation time of the server's and the cells' queues, and the data show no trend after
    the warm-up. `is_long_enough`: the run has the length that theory and an earlier, independent run
    require; a shorter run may have narrow intervals by chance. `is_met`: settled, long enough, and as
    precise as requested.
    """

    asked: Number
    reached: Number | None
    widest: str
    is_settled: bool
    is_long_enough: bool
    is_met: bool


class ClientInterval(Object, frozen=True, kw_only=True):
    """Clients in an interval of the time series: counts, and means over the interval and the replications.

    `in_flight` counts clients that have arrived, are not ready, and have not given up. They are `pausing`
    between attempts, `seeking` access to their cell, `at_server` (waiting or in service), or otherwise
    `under_way`.
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
    """An interval of the time series: all clients, and the servers.

    `servers` counts servers in service, `starting` starting servers; null if their number is fixed.
    """

    start_s: Number
    retries: Number
    refused: Number
    waiting: Number
    busy_workers: Number
    servers: Number | None
    starting: Number | None


class Traffic(Object, frozen=True, kw_only=True):
    """Packets and bytes of all clients, including IP headers; retransmissions and dropped packets.

    `dropped` counts packets by cause. ``no-access``: the cell refused the client. ``collided``: the packet
    was given up after collisions; ``channel-busy``: without being sent, because the channel was busy.
    ``server-full``: the server ignored the packet, because it had reached its limit of connections or
    handshakes.
    """

    packets: Count
    up_bytes: Count
    down_bytes: Count
    retransmissions: Count
    dropped: dict[str, Count]


class Pauses(Object, frozen=True, kw_only=True):
    """Pauses between attempts: the first one, the ratio of each to the previous one, the longest one, and the
    random share of a pause.
    """

    base_s: Number
    factor: Number
    max_s: Number
    jitter: Share


class Admission(Object, frozen=True, kw_only=True):
    """The token bucket of each server, which is full at first, and the numbers of admitted and refused
    connections: SYNs, datagrams, or with `alert` handshakes.
    """

    rate_per_s: Number
    burst: Count
    refuse: Literal["reset", "alert", "silence"]
    admitted: Count
    refused: Count


class Autoscaling(Object, frozen=True, kw_only=True):
    """The numbers of servers that started and stopped in all replications, and the largest number in service.

    `server_s` is the total time of servers in service, `starting_s` that of starting servers: the mean over
    replications.
    """

    peak: Count
    started: Count
    stopped: Count
    server_s: Number
    starting_s: Number


class Records(Object, frozen=True, kw_only=True):
    """Data after the handshake. Each client sends `size_bytes` every `interval_s`, `count` times; then it
    closes its connection. At a rate, the run begins with the open connections of a steady state.

    `work_s` is the server's work on `size_bytes` (for a mixture, the mean over the kinds): cipher, library,
    and receiving. `extrapolated` lists the parts that are not the device's own figures. `utilisation` is
    the servers' utilisation by this work. `wait_s` is the wait of one record for a worker. `peak_open` is
    the largest number of connections that were open after their handshakes. Records use only the server's
    time: no link and no cell. A run ends with its last handshake: `not_simulated` is the number of records of
    a storm, a file or a log that are due later; null at a rate.
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
    not_simulated: Count | None = None


class CellInterval(Object, frozen=True, kw_only=True):
    """An interval of the time series of all cells. `utilisation` is the share of time in which their channels
    carried bytes. Pairs are up and down.
    """

    requests: Count
    admitted: Count
    refused: Count
    transmissions: Count
    collided: Count
    utilisation: tuple[Number, Number]
    bytes: tuple[Count, Count]


class SaturatedCells(Object, frozen=True, kw_only=True):
    """Cells of a steady load that are saturated.

    `offered` is the airtime that the clients need, including retransmissions, as a share of a channel's
    time: in the direction `ways`, or in both directions if these share a channel.
    """

    medium: Text
    ways: Literal["up", "down", "both"]
    offered: Number


class Access(Object, frozen=True, kw_only=True):
    """Access to all cells; pairs are up and down.

    `requests` counts accesses of clients whose radios were idle. `transmissions` counts preambles and
    frames that may collide, `collided` those that collided, `collisions` the collisions. `attempts` is the
    number of preambles of a successful access, `delay_s` its time from the first preamble until the client
    is connected, without the radio's set-up.
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
    """The figures of `predict` for the same scenario, with the queue by formula. They are null without a
    steady state, and if work has no cost figure.

    `queue_wait_s` is that of an M/G/c queue with whole handshakes as customers. `flights_queue_wait_s` is
    that of the Pollaczek–Khinchine formula, with each of the server's jobs as a customer (only for one
    worker). `ready_s` includes the connection's work and `queue_wait_s`.
    """

    rate_per_s: Number
    utilisation: Number
    queue_wait_s: Number | None
    flights_queue_wait_s: Number | None
    ready_s: Number | None


class Replayed(Object, frozen=True, kw_only=True):
    """The same scenario replayed from the recording, as without `--endpoints`, with another seed.

    `mean_ratio` is its mean divided by that of the endpoints; null if either has none. `distance` is the
    Kolmogorov–Smirnov distance between the distributions; times within 1 % count as equal. If both samples
    had the same distribution, the distance would exceed `critical` with a probability of at most 1 %. This
    holds for independent times: `critical` is null if clients share cells, or if more than 5 % of the
    replay's clients wait for the server longer than 1 % of the mean time until ready.
    """

    clients: Count
    ready_s: Spread
    mean_ratio: Number | None
    distance: Number | None
    critical: Number | None


class Endpoints(Object, frozen=True, kw_only=True):
    """The protocol engines that ran in virtual time, and the difference of a replay from them."""

    client_stack: Text
    server_stack: Text
    replayed: Replayed


class Counted(Object, frozen=True, kw_only=True):
    """The figures of a fleet, with one kind of client or several.

    `clients` is the number of counted clients in all replications: those in `completed`, and those in
    `failed` by cause. `ready_s` is the time from a client's arrival until it may send data, including
    failed attempts and pauses; `done_s` is the time until both sides have finished. `queue_wait_s` is a
    client's wait for workers in all flights together; `job_wait_s` is the wait of each flight.
    `unstable`: more work arrives than the workers can do, so times and failures grow with the number of
    clients; null without a steady rate, and if this is not known because a cost is missing, because
    attempts that ended early or were repeated changed the work, or, with `max_handshakes`, because clients
    wait to be accepted, or the run is too short or without a precision to exclude this. `carried` is the
    share of the arriving clients whose handshakes are completed in the same time, if `max_handshakes` does
    not permit all; times then grow with the number of clients. It is null otherwise. `utilisation` is the
    share of the workers' time in which they worked: at a rate while counted clients arrived, in a storm
    until the end of the simulation (`virtual_s`). `offered` is the work of all clients per second, as a
    share of the workers' time; null without a steady rate. `precision` is null for an unstable load, for
    storms and autoscaling; with protocol engines it is that of a replay of the same length. `recovery_s` is
    the time until the last client of a storm is ready; null if clients failed. `last_ready_s` is the same
    for the clients that did not fail; null if all did.
    `missing` lists all work without a cost figure; counts, traffic and time series are computed without it.
    There are `servers` identical servers, each with `workers`; `balance` states how connections are
    distributed. With `autoscaling`, `servers` is the initial number, and `utilisation` is that of servers
    in service.
    `energy_j` is the energy of the handshake itself, `wake_tail_j` the additional energy of waking the
    radio and of its inactivity tail. A client tries again up to `retries` times, after `pauses`. `tcp`
    contains the settings of both hosts' TCP; null over datagrams.
    `own_links`: all clients arrive at once over a shared medium, but each has its own link, because no
    number of `cells` was given. The times are then those of an empty cell.
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
    carried: Share | None = None
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
    last_ready_s: Bounds
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
    cooldown_clients: Count
    precision: Precision | None = None
    servers: Count = 1
    balance: Literal["round-robin", "least-connections", "hash", "cell"] = "round-robin"
    seed: Count
    series_s: Number | UnsetType = UNSET
    series: tuple[Interval, ...] | UnsetType = UNSET

    def uncounted(self) -> int:
        """The number of clients in the warm-ups and cool-downs of all replications."""
        return (self.warmup_clients + self.cooldown_clients) * self.replications


class Simulated(Counted, frozen=True, kw_only=True):
    """One row of `simulate`. With `endpoints` real protocol engines perform the handshakes; otherwise they
    are replayed. `handshake_bytes`, `unused_key_share_s` and `server_software_note` are those of a
    prediction.
    """

    suite: Text
    device: Text
    server_software: Text | None = None
    server_software_note: Text | None = None
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
    """A kind of client of `simulate --mix`. `clients` is its number of counted clients; `failed` of these
    failed.
    """

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

    The figures are those of all clients together; each kind also has its own times. The `share` of a kind
    is its share of all arrivals.
    """

    mix: Text
    kinds: tuple[MixedClients, ...]


class FailedSimulation(Failed, frozen=True, kw_only=True):
    """A suite that cannot be simulated, and the reason."""

    kind: Literal["simulated"]


class SimulatedCapacity(Promise, frozen=True, kw_only=True):
    """One row of `capacity --simulated`: `rate_per_s` is 0 if no rate meets the limit, and null if nothing
    limits the rate. The whole 95 % interval of the figure is below the limit. A percentile is that of the
    clients that complete, not of all as by formula; the share that may fail is the same.

    `ready_s` (until the client may send data), `done_s` (until both sides have finished) and `utilisation`
    are the figures of `clients` at this rate, with `precision`; if it is 0, of the clients that were ready at
    the lowest rate tried. `modelled_rate_per_s` is the rate by formula; null with `records` or `cells`, for
    which there is no formula. `records` describes the data
    that each client sends after its handshake, and its work at this rate; `limit_per_s` includes it.
    `cells` is the number of cells that the clients share; null: each client has its own link.
    `cells_limit_per_s` is an upper bound of the cells' rate: without any contention, the resource
    `cells_limit_of` would be used up at this rate. `from_idle`: the radios are set up first.
    `confirmed_clients` is the number of further clients, simulated at this rate with other seeds, that met
    the limit without an overloaded cell; null without cells, and if no rate was found.
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
    confirmed_clients: Count | None = None
    precision: Precision | None = None
    records: Records | UnsetType = UNSET
    seed: Count


class FailedSimulatedCapacity(Failed, frozen=True, kw_only=True):
    """A suite whose capacity cannot be simulated, and the reason."""

    kind: Literal["simulated"]


PRINTED = {
    "simulation": (Simulated, "An object of simulate --json."),
    "simulation-mix": (SimulatedMix, "An object of simulate --mix --json."),
    "simulated-capacity": (SimulatedCapacity, "An object of capacity --simulated --json."),
}
