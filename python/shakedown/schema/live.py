"""The output of `load --json`: a load on a real server."""

from __future__ import annotations

from typing import Literal

from shakedown.schema.base import Amount, Count, Number, Object, Side, Text
from shakedown.schema.serving import HalfTrace, Serving
from shakedown.schema.simulated import Endpoints

Arrivals = Literal["poisson", "deterministic", "closed"]
CertificateChecked = Literal["no", "ca", "generated"]


class Times(Object, frozen=True, kw_only=True):
    """Times (s): number, mean and percentiles; null without times. `p99` is null for fewer than 100 times,
    `p95` for fewer than 20, `p90` for fewer than 10, because too few times exceed it.
    """

    n: Count
    mean: Amount | None
    p50: Amount | None
    p90: Amount | None
    p95: Amount | None
    p99: Amount | None
    max: Amount | None


class RatesPerS(Object, frozen=True, kw_only=True):
    """New connections per second: planned (null in a closed loop) and completed."""

    planned: Amount | None
    achieved: Amount


class Resumptions(Object, frozen=True, kw_only=True):
    """Connections that reached the server and should resume a session, including those whose handshake
    failed; those that the server resumed; and those whose client had no session.
    """

    asked: Count
    confirmed: Count
    without_session: Count


class NegotiatedCount(Object, frozen=True, kw_only=True):
    """The negotiated parameters of handshakes, and the number of these handshakes."""

    protocol: Text
    cipher_suite: str
    group: str | None
    count: Count


class LoadFigures(Object, frozen=True, kw_only=True):
    """The figures of load generators. Times begin at the planned start; those of connections are of completed
    ones. Each planned start is completed or failed. `slowdown`: the factor by which the steps of a slowed
    client took longer than on this machine, at the end. `background`: the concurrent load.
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
    """The clients' halves of sampled handshakes, and the number of handshakes that were discarded because the
    client's thread was preempted.
    """

    kept: tuple[HalfTrace, ...]
    preempted: Count


class LoadOutcome(LoadFigures, frozen=True, kw_only=True):
    """The core's result: the figures, and sampled handshakes."""

    traces: SampledHandshakes


class Share(Object, frozen=True, kw_only=True):
    """One side's mean times for a message (us): cryptography, its other work, and the time outside its work
    until the message arrived.
    """

    cryptography_us: Amount
    other_us: Amount
    waited_us: Amount


class Step(Object, frozen=True, kw_only=True, rename={"sender": "from"}):
    """A message, and each side's time for it; null if it is unknown."""

    index: Count
    sender: Side
    name: Text
    client: Share
    server: Share | None


class TimeSpent(Object, frozen=True, kw_only=True):
    """The time of sampled handshakes by step, from the client's start to the end of its handshake.

    `handshakes` is the number of averaged ones: those `sampled` ones with the most frequent sequence of
    messages, and with the server's half if servers were sampled. `preempted` handshakes, in which the
    client's thread was preempted, are excluded from all figures. `emulate_device` is the device that the
    client emulated by taking `slowdown` times this machine's time; the client's times include this. The
    client's shares, `connect_us` and `client_unattributed_us` add up to its handshake time.
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
    """A threshold, the value that was compared with it (null: there was none), and whether it was met."""

    text: Text
    value: float | None
    met: bool


class LoadRun(LoadFigures, frozen=True, kw_only=True):
    """A load and its results. `time_spent`: null unless handshakes were sampled."""

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
    """The progress of a load."""

    elapsed_s: Amount
    planned: Count
    started: Count
    completed: Count
    failed: Count
    open: Count
    handshake_s: Times


class ComparedFigure(Object, frozen=True, kw_only=True):
    """One figure (s) by several methods; null: the method has none. `…_off` are the relative differences from
    the live figure, null if that is not above 0. `endpoints` is the figure of the protocol engines in virtual
    time, if they were requested.
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

    Modelled and simulated figures are estimated from the times measured in memory on this machine, over the
    bearer `loopback`, and the additional cost of a connection (`connection_s`, by side) in this machine's
    profile. `connection_s` is null if the profile does not have it, or there is no connection; only the live
    figures then include the kernel's work. `server-busy` is the stack's wall-clock time, with interruptions.
    `unloaded_s` is the mean live handshake time at a rate without a queue; the live wait is the time that the
    load adds to it, and may be negative due to noise. `endpoints` has the stacks whose engines ran in virtual
    time, and their distance from a replay; null: none ran.
    """

    connection_s: dict[Side, Amount] | None = None
    endpoints: Endpoints | None = None
    unloaded_s: Amount | None
    unloaded_n: Count
    figures: tuple[ComparedFigure, ...]


class LiveRun(Object, frozen=True, kw_only=True):
    """A load on a server that was started for it, as counted by both sides.

    `server_cpu_s` is the CPU time of the server's threads for one handshake, with the kernel's; null if
    unknown. `utilisation` is the fraction of the workers' time in which the stack worked. `formula_wait_s` is
    the mean wait by the Pollaczek–Khinchine formula from the busy times of this server; null without a
    steady state or in a closed loop. The server's counts include the generator's first handshakes, which
    create sessions. `time_spent`: the time by step of handshakes sampled on both sides, for a client of this
    machine and for each emulated device.
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
