"""What `load --json` prints: a run against a real server."""

from __future__ import annotations

from typing import Literal

from shakedown.schema.base import Amount, Count, Number, Object, Side, Text
from shakedown.schema.serving import HalfTrace, Serving
from shakedown.schema.simulated import Endpoints

Arrivals = Literal["poisson", "deterministic", "closed"]
CertificateChecked = Literal["no", "ca", "generated"]


class Times(Object, frozen=True, kw_only=True):
    """Times (s): how many, mean and percentiles; null where there are none. Of fewer than 100 times `p99` is
    null, of fewer than 20 `p95`, of fewer than 10 `p90`: too few lie beyond these.
    """

    n: Count
    mean: Amount | None
    p50: Amount | None
    p90: Amount | None
    p95: Amount | None
    p99: Amount | None
    max: Amount | None


class RatesPerS(Object, frozen=True, kw_only=True):
    """New connections per second: asked for (null in a closed loop) and completed."""

    planned: Amount | None
    achieved: Amount


class Resumptions(Object, frozen=True, kw_only=True):
    """Completed connections that were to resume a session, those that the server resumed, and those whose
    client had no session to offer.
    """

    asked: Count
    confirmed: Count
    without_session: Count


class NegotiatedCount(Object, frozen=True, kw_only=True):
    """What handshakes came to, and how many did."""

    protocol: Text
    cipher_suite: str
    group: str | None
    count: Count


class LoadFigures(Object, frozen=True, kw_only=True):
    """What generators counted. Times count from the planned start; those of connections are of completed
    ones. Planned starts are completed or failed. `slowdown`: how many times as long a slowed client's steps
    took as this machine's, in the end. `background`: the load beside this one.
    """

    generators: Count
    planned: Count
    started: Count
    completed: Count
    failed: dict[str, Count]
    rate_per_s: RatesPerS
    elapsed_s: Amount
    connect_s: Times
    handshake_s: Times
    first_byte_s: Times
    resumed: Resumptions
    negotiated: tuple[NegotiatedCount, ...]
    start_lateness_s: Times
    generator_cpu_s: Amount
    saturated: bool
    saturated_by: tuple[str, ...]
    certificate_checked: CertificateChecked
    interrupted: bool
    slowdown: Amount | None = None
    background: LoadFigures | None = None

    @property
    def failed_count(self) -> int:
        return sum(self.failed.values())


class SampledHandshakes(Object, frozen=True, kw_only=True):
    """Handshakes as clients saw them, and how many were left out because the client's thread lost its
    processor in them.
    """

    kept: tuple[HalfTrace, ...]
    preempted: Count


class LoadOutcome(LoadFigures, frozen=True, kw_only=True):
    """What the core returns: the figures, and sampled handshakes."""

    traces: SampledHandshakes


class Share(Object, frozen=True, kw_only=True):
    """One side's time for a message, means (us): cryptography, the rest of its own work, and what passed
    outside it until the message was there.
    """

    cryptography_us: Amount
    other_us: Amount
    waited_us: Amount


class Step(Object, frozen=True, kw_only=True, rename={"sender": "from"}):
    """A message, and each side's time for it; null where that side's is not known."""

    index: Count
    sender: Side
    name: Text
    client: Share
    server: Share | None


class TimeSpent(Object, frozen=True, kw_only=True):
    """Where the time of sampled handshakes goes, from the client's start to the end of its handshake.

    `handshakes` are those averaged here: of the `sampled` ones the most frequent sequence of messages, each
    with its server's half where there are halves of servers. `preempted` ones, in which the client's thread
    lost its processor, are left out of all. `emulate_device` is the device whose time the client took,
    `slowdown` times that of this machine; its times are as stretched. The client's shares, `connect_us` and
    `client_unattributed_us` add up to its handshake time.
    """

    sampled: Count
    handshakes: Count
    joined: Count
    preempted: Count
    emulate_device: Text | None
    slowdown: Amount | None
    connect_us: Amount
    client_unattributed_us: Amount
    server_unattributed_us: Amount | None
    steps: tuple[Step, ...]


class Requirement(Object, frozen=True, kw_only=True):
    """A threshold, the value that it was compared with (null: there was none), and whether it was met."""

    text: Text
    value: float | None
    met: bool


class LoadRun(LoadFigures, frozen=True, kw_only=True):
    """A load, and what came of it. `time_spent`: null unless handshakes were sampled."""

    kind: Literal["live"] = "live"
    target: Text
    suite: Text | None
    arrivals: Arrivals
    duration_s: Amount
    clients: Count
    seed: Count
    requirements: tuple[Requirement, ...] = ()
    emulate_device: Text | None = None
    time_spent: TimeSpent | None = None


class LoadProgress(Object, frozen=True, kw_only=True):
    """How far a load is."""

    elapsed_s: Amount
    planned: Count
    started: Count
    completed: Count
    failed: Count
    open: Count
    handshake_s: Times


class ComparedFigure(Object, frozen=True, kw_only=True):
    """One figure (s) in several ways; null: that way says nothing. `…_off` are the others' distances from the
    live one as a share of it, null where it is not above 0. `endpoints` is by the protocol engines in virtual
    time, where they were asked for.
    """

    figure: Literal["server-cpu", "server-busy", "handshake", "wait"]
    live_s: Number | None
    modelled_s: Number | None
    simulated_s: Number | None
    endpoints_s: Number | None
    modelled_off: Number | None
    simulated_off: Number | None
    endpoints_off: Number | None


class Comparison(Object, frozen=True, kw_only=True):
    """The same handshake modelled, simulated and live, at the rate that was achieved.

    Modelled and simulated are estimated with the times measured in memory on this machine, over the bearer
    `loopback`, and with what a connection costs beyond that (`connection_s`, by side) where this machine's
    profile knows it; null: it does not, or there is no connection, and the kernel's work is in the live
    figures alone. `server-busy` is the stack's time by the clock on the wall, interruptions included.
    `unloaded_s` is the mean live handshake time at a rate without a queue; the live wait is what a load adds
    to it, and may be negative where noise exceeds it. `endpoints` says whose engines ran in virtual time, and
    how far a replay of the same is from them; null: none did.
    """

    connection_s: dict[Side, Amount] | None = None
    endpoints: Endpoints | None = None
    unloaded_s: Amount | None
    unloaded_n: Count
    figures: tuple[ComparedFigure, ...]


class LiveRun(Object, frozen=True, kw_only=True):
    """A load on a server of its own, as both sides counted it.

    `server_cpu_s` is the CPU time of the server's threads for one handshake, kernel included, null where
    it is unknown; `utilisation` the share of the workers' time that the stack worked. `formula_wait_s` is
    the mean wait by Pollaczek and Khinchine's formula from the busy times of this server, null without a
    steady state or in a closed loop. The server's counts hold the generator's first handshakes, which make
    sessions. `time_spent`: where the time of handshakes sampled on both sides goes, for a client of this
    machine and one as slow as each device asked for.
    """

    kind: Literal["live"] = "live"
    suite: Text
    rate_per_s: Amount | None
    workers: Count
    own_core: bool
    server_cpu_s: Amount | None
    utilisation: Amount | None
    formula_wait_s: Amount | None
    load: LoadRun
    server: Serving
    comparison: Comparison | None
    time_spent: tuple[TimeSpent, ...] = ()


PRINTED = {
    "load": (LoadRun, "An object of load --json."),
    "live": (LiveRun, "A live object of run --json, and an object of validate --live --json."),
}
