"""What each quantity of the tidy table is: its unit, what it is in words, and what views call it.

A quantity without a unit is a text. One that several kinds of figures have is declared by one of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Quantity(NamedTuple):
    """What a quantity is, for readers of the table."""

    name: str
    unit: str
    about: str


QUANTITIES: dict[str, tuple[Quantity, ...]] = {
    "captured": (
        Quantity(
            "capture.connections", "1", "connections of a kind (suite, resumption, completeness): all of them"
        ),
        Quantity("capture.uncounted", "1", "connections of kinds that are not counted separately"),
        Quantity("capture.protocol", "", "text: protocol of the connections of a kind"),
        Quantity("capture.cipher", "", "text: of a kind"),
        Quantity("capture.resumed", "1", "of a kind: 1 or 0; null if unknown"),
        Quantity("capture.complete", "1", "of a kind: 1 or 0"),
        Quantity("capture.bytes", "bytes", "of the connections of a kind, by statistic low, mean, high"),
        Quantity("capture.duration", "s", "of the handshakes of a kind, by statistic low, mean, high"),
        Quantity("capture.packets", "1", "packets read"),
        Quantity("capture.length", "s", "from the first packet to the last"),
        Quantity("capture.keylog", "", "text: the key log's name"),
        Quantity("capture.problem", "", "text: why reading ended before the file did"),
        Quantity("capture.without_cost", "", "text: a suite beyond the limit of suites that are estimated"),
        Quantity(
            "connection.client",
            "",
            "text: the client's address",
        ),
        Quantity("connection.server", "", "text: the server's address"),
        Quantity("connection.server_name", "", "text: name that the client asked for"),
        Quantity("connection.protocol", "", "text: protocol and version"),
        Quantity("connection.cipher", "", "text: negotiated cipher suite"),
        Quantity("connection.resumed", "1", "1 or 0; null if unknown"),
        Quantity("connection.complete", "1", "1 or 0"),
        Quantity("connection.alert", "", "text: an alert of `side`"),
        Quantity("connection.problem", "", "text: a limitation of the figures"),
        Quantity("connection.refused", "", "text: why there is no trace of it"),
        Quantity("connection.messages", "1", "messages, those that are not kept included"),
        Quantity(
            "handshake.duration", "s", "from a connection's first packet to the last flight's last message"
        ),
        Quantity("handshake.undecrypted", "bytes", "handshake bytes of a side that stayed encrypted"),
        Quantity("message.at", "s", "end of a message, since the start of the connection"),
        Quantity("message.wait", "s", "since the message before it"),
        Quantity("message.wait.sender", "s", "the part of the wait spent by the message's sender"),
        Quantity("message.wait.network", "s", "the part of the wait spent on the network"),
        Quantity("retransmission.segments", "1", "segments that a side sent more than once"),
        Quantity("retransmission.bytes", "bytes", "their bytes"),
    ),
    "measured": (
        Quantity("handshake.time", "us", "CPU time of a side for a whole handshake, by statistic"),
        Quantity("handshake.bytes", "bytes", "bytes that a side sent; without a side: of both"),
        Quantity("handshake.flights", "1", "flights; two make a round trip"),
        Quantity("handshake.repeat", "1", "repetitions used"),
        Quantity("handshake.preempted", "1", "repetitions discarded because the kernel preempted them"),
        Quantity("handshake.clock", "", "text: by which clock"),
        Quantity("credentials.user-supplied", "", "a side that presented the user's certificates"),
        Quantity("message.bytes", "bytes", "one message on the wire"),
        Quantity("message.retransmissions", "1", "how often it was sent again"),
        Quantity("message.generate", "us", "time its sender took, by statistic"),
        Quantity("message.process", "us", "time its receiver took, by statistic"),
        Quantity("operation.time", "us", "one public-key call, or one kind of symmetric work in a message"),
        Quantity("operation.count", "1", "calls in it"),
        Quantity("operation.bytes", "bytes", "bytes worked on"),
        Quantity("unattributed.time", "us", "time of a side outside any message"),
        Quantity("accounting.coverage", "1", "attributed time over the CPU time of the thread"),
        Quantity("handshake.instructions", "1", "instructions of a side for a whole handshake, by statistic"),
        Quantity(
            "handshake.instructions_seed",
            "1",
            "seed of the random numbers; missing if the stack uses none",
        ),
        Quantity("message.instructions", "1", "instructions of the side that built or read it"),
        Quantity("operation.instructions", "1", "instructions in it"),
        Quantity("memory.peak", "bytes", "peak heap of a side for the connection"),
        Quantity("memory.held", "bytes", "heap of the connection after the handshake"),
        Quantity("memory.context", "bytes", "heap of the context, shared by all connections"),
        Quantity("memory.released", "bytes", "heap of both sides that the connection's release did not free"),
    ),
    "modelled": (
        Quantity("predicted.client", "s", "the client's processing, on its device; also low and high"),
        Quantity("predicted.server", "s", "the server's; also low and high"),
        Quantity("predicted.transmission", "s", "on the bearer"),
        Quantity(
            "predicted.queue",
            "s",
            "wait for a worker of the server; also low and high; null: no steady state",
        ),
        Quantity(
            "predicted.ready",
            "s",
            "time until the client may send: mean, p50, p95, p99; 90 % lie between low and high",
        ),
        Quantity(
            "predicted.done",
            "s",
            "time until both sides have finished: mean, p50, p95, p99; 90 % lie between low and high",
        ),
        Quantity(
            "predicted.utilisation", "1", "share of time that a worker of the server works; low and high"
        ),
        Quantity(
            "predicted.workers", "1", "smallest number of workers that meets `within`; also low and high"
        ),
        Quantity(
            "predicted.energy",
            "J",
            "energy of the client for the handshake itself; also low and high; null where a part is unknown",
        ),
        Quantity(
            "predicted.wake-tail", "J", "energy of waking the radio and of its inactivity tail; low and high"
        ),
        Quantity("predicted.energy.basis", "", "text: basis of the handshake's energy, as of the time"),
        Quantity("predicted.wake-tail.basis", "", "text: basis of the energy of waking and tail"),
        Quantity("predicted.energy.missing", "", "text: the parts that the two energies lack"),
        Quantity("predicted.energy.terms", "", "text: assumptions about waking the radio and its tail"),
        Quantity(
            "predicted.handshakes_per_charge",
            "1",
            "handshakes that the battery lasts for; also low and high; null without one",
        ),
        Quantity("predicted.basis", "", "text: basis of the time: own, scaled, assumed, unknown"),
        Quantity(
            "predicted.missing",
            "",
            "text: why work has no figure; what depends on it has no estimate, times are lower bounds",
        ),
        Quantity(
            "predicted.extrapolated", "s", "work whose cost is not the device's own; text: how it was found"
        ),
        Quantity("predicted.extrapolated.source", "", "text: from whose figures"),
        Quantity("predicted.without_cost", "", "text: why there is no cost"),
        Quantity("queue.service", "s", "the server's work for one handshake"),
        Quantity("queue.wait", "s", "wait at the server, at `rate_per_s`"),
        Quantity(
            "queue.knee", "1/s", "rate with the highest power: rate over response time (Kleinrock 1979)"
        ),
        Quantity("queue.saturation", "1/s", "rate at which the queue saturates"),
    ),
    "simulated": (
        Quantity("simulated.arrivals", "", "text: when clients arrive"),
        Quantity("simulated.clients", "1", "clients that are counted"),
        Quantity("simulated.cells", "1", "cells that they share; none where each has a link of its own"),
        Quantity("simulated.retry", "", "text: pauses between attempts, if given"),
        Quantity("simulated.admission", "", "text: each server's token bucket, if given"),
        Quantity("simulated.admitted", "1", "connections that the token buckets accepted"),
        Quantity("simulated.refused", "1", "connections that it refused"),
        Quantity("simulated.autoscale", "", "text: when servers start and stop, if given"),
        Quantity("simulated.servers.peak", "1", "the most servers in service at once"),
        Quantity("simulated.servers.time", "s", "time of servers in service, of a replication"),
        Quantity("simulated.sessions", "", "text: lifetime and interval of sessions, if given"),
        Quantity("simulated.records", "", "text: data that clients send after their handshakes, if given"),
        Quantity("simulated.records.work", "s", "the server's work on what is sent at once; low and high"),
        Quantity("simulated.records.utilisation", "1", "the part of `simulated.utilisation` that it is"),
        Quantity("simulated.records.wait", "s", "the wait of each for a worker, by statistic"),
        Quantity("simulated.records.open", "1", "the most connections open at once after their handshakes"),
        Quantity("simulated.completed", "1", "of these, those that became ready"),
        Quantity("simulated.failed", "1", "those that did not; text: why"),
        Quantity("simulated.attempts", "1", "attempts of all clients"),
        Quantity("simulated.handshake", "s", "from a client's arrival until it may send data, by statistic"),
        Quantity("simulated.done", "s", "the same until both sides have finished"),
        Quantity("simulated.connect", "s", "the same until the transport is open"),
        Quantity(
            "simulated.wait", "s", "a client's wait for workers of the server, all its flights together"
        ),
        Quantity("simulated.job-wait", "s", "the wait of each of its flights"),
        Quantity(
            "simulated.wait.missing",
            "",
            "text: parts of a worker's work without a cost figure; waits are then lower bounds",
        ),
        Quantity(
            "simulated.energy", "J", "of a client for the handshake itself; null where a part is unknown"
        ),
        Quantity("simulated.wake-tail", "J", "energy of waking the radio and of its tail; also low and high"),
        Quantity("simulated.energy.missing", "", "text: the parts that the two energies lack"),
        Quantity("simulated.energy.terms", "", "text: assumptions about waking the radio and its tail"),
        Quantity(
            "simulated.missing",
            "",
            "text: work without a cost figure, and the reason; times are then lower bounds",
        ),
        Quantity(
            "simulated.utilisation",
            "1",
            "share of time that the workers worked while clients arrived; low: where work has no figure",
        ),
        Quantity("simulated.offered", "1", "offered load as a share of the workers' time; null: no rate"),
        Quantity(
            "simulated.precision",
            "1",
            "half the widest 95 % interval of a steady load's figures, as a share of the figure; text: which",
        ),
        Quantity("simulated.imprecise", "", "text: why the figures are less precise than asked"),
        Quantity(
            "simulated.recovery", "s", "time until the last client was ready; low: where work has no figure"
        ),
        Quantity("simulated.in-flight", "1", "maximum number of clients in progress"),
        Quantity("simulated.retransmissions", "1", "segments and datagrams sent again"),
        Quantity(
            "simulated.modelled.handshake", "s", "`simulated.handshake` by formula; null: no steady state"
        ),
        Quantity("simulated.modelled.wait", "s", "`simulated.wait` by formula, a handshake as one customer"),
        Quantity("simulated.modelled.flights-wait", "s", "the same, each flight as a customer of its own"),
        Quantity("simulated.seed", "1", "random seed"),
        Quantity("simulated.endpoints", "", "text: the stacks whose engines ran in place of a replay"),
        Quantity(
            "simulated.endpoints.mean-ratio", "1", "mean time of a replay of the same over the engines'"
        ),
        Quantity(
            "simulated.endpoints.distance", "1", "Kolmogorov and Smirnov's, of a replay from the engines"
        ),
        Quantity("simulated.endpoints.critical", "1", "critical distance at the 1 % level"),
        Quantity(
            "simulated.mix", "", "text: the mixture of clients, whose kinds have rows with an `item` each"
        ),
        Quantity("simulated.share", "1", "of all clients, those of kind `item`"),
        Quantity("simulated.resumption", "1", "of these, those that resume"),
        Quantity("simulated.without_cost", "", "text: why there is no cost"),
        Quantity("series.width", "s", "length of the intervals of a time series"),
        Quantity("series.arrived", "1", "clients that arrived in interval `item`, over all replications"),
        Quantity("series.completed", "1", "clients that became ready in it"),
        Quantity("series.failed", "1", "clients that failed in it"),
        Quantity("series.retries", "1", "attempts after a first, in it"),
        Quantity("series.refused", "1", "connections that servers refused in it"),
        Quantity("series.in-flight", "1", "clients in progress, on average over it"),
        Quantity("series.pausing", "1", "of these, those between two attempts"),
        Quantity("series.seeking", "1", "those that sought access to their cell"),
        Quantity("series.at-server", "1", "those at the server, in its queues or in work"),
        Quantity("series.under-way", "1", "all others"),
        Quantity(
            "series.servers", "1", "servers in service, on average over it; null: their number is fixed"
        ),
        Quantity("series.starting", "1", "servers being started, on average over it"),
        Quantity("series.waiting", "1", "flights that waited for a worker, on average over it"),
        Quantity("series.busy", "1", "workers that worked, on average over it"),
        Quantity("series.sent", "1", "preambles and frames that may collide, sent to cells in it"),
        Quantity("series.collided", "1", "of these, those that collided"),
        Quantity("series.up", "1", "share of a cell's time that went to packets from clients"),
        Quantity("series.down", "1", "share of a cell's time that went to packets to clients"),
        Quantity("series.bytes", "bytes", "that crossed all cells in it, both ways"),
    ),
    "live": (
        Quantity("live.arrivals", "", "text: when connections are started: poisson, deterministic, closed"),
        Quantity("live.planned", "1", "connections planned"),
        Quantity("live.completed", "1", "of these, those whose handshake was completed"),
        Quantity("live.failed", "1", "those that failed; text: the cause"),
        Quantity("live.rate", "1/s", "completed connections a second"),
        Quantity("live.connect", "s", "from a connection's planned start until it was open, by statistic"),
        Quantity("live.handshake", "s", "the same until the end of its handshake"),
        Quantity("live.lateness", "s", "the same until its actual start"),
        Quantity("live.resumed.asked", "1", "completed connections that were to resume a session"),
        Quantity("live.resumed.confirmed", "1", "of these, those that the server resumed"),
        Quantity("live.generator-cpu", "s", "CPU time of the generator"),
        Quantity("live.saturated", "", "text: by what the generator was the bottleneck"),
        Quantity("live.own-core", "1", "1: server and generator had cores of their own; 0: they shared one"),
        Quantity(
            "live.server-cpu", "s", "mean CPU time of the server's threads for one handshake, kernel included"
        ),
        Quantity("live.busy", "s", "time that the server's stack worked for one handshake, by statistic"),
        Quantity("live.busy.second-moment", "s²", "its second moment"),
        Quantity("live.utilisation", "1", "share of time that the server's stack worked"),
        Quantity("live.wait.formula", "s", "mean wait at the server, by formula from its own busy times"),
        Quantity("live.unloaded", "s", "mean of `live.handshake` at a rate without a queue"),
        Quantity("live.wait", "s", "time that the load added to that; noise can make it negative"),
        Quantity(
            "live.modelled.connection",
            "s",
            "what a connection costs beyond the handshake in memory, by this machine's profile; in what is "
            "modelled and simulated",
        ),
        Quantity(
            "live.modelled.server-cpu", "s", "CPU time of the server's stack as measured in memory, and that"
        ),
        Quantity("live.modelled.server-busy", "s", "CPU time of the server's stack as measured in memory"),
        Quantity("live.modelled.handshake", "s", "`live.handshake` by formula, without lateness"),
        Quantity("live.modelled.wait", "s", "`live.wait` by formula"),
        Quantity("live.simulated.server-cpu", "s", "the same in virtual time"),
        Quantity("live.simulated.server-busy", "s", "the same"),
        Quantity("live.simulated.handshake", "s", "`live.handshake` in virtual time, without lateness"),
        Quantity("live.simulated.wait", "s", "`live.wait` in virtual time"),
        Quantity("live.endpoints", "", "text: the stacks whose engines ran in virtual time, too"),
        Quantity("live.endpoints.server-cpu", "s", "`live.simulated.server-cpu` by these engines"),
        Quantity("live.endpoints.server-busy", "s", "the same of `live.simulated.server-busy`"),
        Quantity("live.endpoints.handshake", "s", "the same of `live.simulated.handshake`"),
        Quantity("live.endpoints.wait", "s", "the same of `live.simulated.wait`"),
        Quantity("live.endpoints.distance", "1", "Kolmogorov and Smirnov's, of a replay from the engines"),
        Quantity("live.endpoints.critical", "1", "critical distance at the 1 % level"),
        Quantity(
            "live.sampled",
            "1",
            "handshakes sampled on both sides, over which the figures below are means; `device` is the one "
            "whose time the client took, null: this machine's",
        ),
        Quantity("live.slowdown", "1", "the device's processing time divided by this machine's"),
        Quantity("live.step.cryptography", "us", "a side's time in cryptography for a message"),
        Quantity("live.step.other", "us", "the rest of its own time for it; without a message: for none"),
        Quantity(
            "live.step.waited",
            "us",
            "time outside the side's own work until the message arrived; without a message: until the "
            "connection was open",
        ),
    ),
}

UNITS = {one.name: one.unit for some in QUANTITIES.values() for one in some}
"""By quantity."""

_ENDINGS = {"s": "_s", "us": "_us", "J": "_j", "bytes": "_bytes", "1/s": "_per_s"}
"""How a column's name ends, by unit."""

Names = dict[tuple[str, str | None, str | None], str]
"""A view's column for each (quantity, side, statistic)."""


def column(quantity: str, statistic: str | None = None) -> str:
    """What views and printed rows call a quantity: without its kind, with statistic and unit."""
    name = quantity.partition(".")[2].replace(".", "_").replace("-", "_")
    ending = _ENDINGS.get(UNITS[quantity], "")
    middle = "" if statistic is None else f"_{statistic}"
    return f"{name}{middle}{'' if ending == f'_{name}' else ending}"


def columns(
    kind: str, names: Iterable[str], statistics: Iterable[str | None] = (None,), side: str | None = None
) -> Names:
    """The columns of quantities, by name without their kind, and of their statistics."""
    found = [f"{kind}.{name}" for name in names]
    return {(one, side, what): column(one, what) for one in found for what in statistics}


def texts(kind: str, *names: str) -> dict[str, str]:
    """The same of quantities that are texts, by quantity."""
    return {f"{kind}.{name}": column(f"{kind}.{name}") for name in names}
