"""Scenarios: frozen, hashable descriptions of the inputs of a figure, for all kinds of figures.

A scenario contains a handshake's identity, its devices, bearer, load and options. An experiment is a list of
them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from shakedown.errors import InputError
from shakedown.schema.arguments import check, check_fields
from shakedown.schema.base import SIDES, Carrier, Kind, Object, Side
from shakedown.schema.options import FileName, OptionGroup

if TYPE_CHECKING:
    from shakedown.profiles.software import ServerSoftware

DEFAULT_REPEAT = 30
DEFAULT_DEVICE, DEFAULT_SERVER_DEVICE, DEFAULT_BEARER = "phone", "server", "lte"
DEFAULT_ARRIVALS = "poisson:10/s"

WITH_CHAIN = {"chain": ("key", "ca"), "client_chain": ("client_key", "client_ca", "client_password")}
"""Each side's chain among the options, and the options that need it."""


class MeasureOptions(OptionGroup, frozen=True, kw_only=True):
    """The options of `measure`, defined once.

    The command line, experiment files and the Python API derive their options from it. A new option is a
    field here, a line of `schema/options.csv`, and its implementation in the core.
    """

    repeat: int = DEFAULT_REPEAT
    seed: int | None = None
    counter: Literal["instructions"] | None = None
    now: int | None = None
    tickets: int | None = None
    server_software: FileName | None = None
    carrier: Literal["bare", "eap"] | None = None
    fragment: int | None = None
    profile: FileName | None = None
    certificate_form: Literal["wtls", "x509"] | None = None
    private_curves: bool = False
    chain: FileName | None = None
    key: FileName | None = None
    ca: FileName | None = None
    client_chain: FileName | None = None
    client_key: FileName | None = None
    client_ca: FileName | None = None
    password: str | None = None
    client_password: str | None = None

    def __post_init__(self) -> None:
        """Checks the values; raises `InputError` also for software without a valid profile."""
        super().__post_init__()
        if self.server_software is not None:
            self._software()

    @property
    def user_supplied(self) -> tuple[Side, ...]:
        return tuple(side for side in SIDES if getattr(self, "chain" if side == "server" else "client_chain"))

    def files(self) -> tuple[Path, ...]:
        named = (self.chain, self.key, self.ca, self.client_chain, self.client_key, self.client_ca)
        return tuple(Path(one) for one in named if one is not None)

    def unpaired(self) -> tuple[str, str] | None:
        """An option that needs a chain, and the missing chain; None if there is none."""
        for chain, others in WITH_CHAIN.items():
            for other in others:
                if getattr(self, other) and not getattr(self, chain):
                    return other, chain
        return None

    def _software(self) -> ServerSoftware:
        from shakedown.profiles.registry import load_software
        from shakedown.profiles.software import DEFAULT_SOFTWARE

        return load_software(str(DEFAULT_SOFTWARE if self.server_software is None else self.server_software))

    def issuing(self, suite: str) -> MeasureOptions:
        """The options for a suite, with the number of TLS 1.3 tickets that the server's software issues."""
        software = self._software()
        if self.tickets is not None or not suite.startswith("tls1.3/") or self.carrier == "eap":
            return self
        tickets = software.tickets_of(resumption="/resumed" in suite)
        return msgspec.structs.replace(self, tickets=tickets)

    def software_note(self, suite: str) -> str | None:
        """The note that the server's software does not offer the suite, or does not resume its sessions."""
        return self._software().note(suite)

    def checked(self) -> MeasureOptions:
        """The validated options, with the time at which certificates are validated.

        User-supplied certificates are validated at the present time, generated ones on a fixed day. Raises
        `InputError`.
        """
        alone = self.unpaired()
        if alone is not None:
            raise InputError(f"{alone[0]} requires {alone[1]}")
        if self.now is None and self.user_supplied:
            return msgspec.structs.replace(self, now=int(time.time()))
        return self


@dataclass(frozen=True)
class Stacks:
    """The stacks of both sides; None: the suite's usual ones."""

    client: str | None = None
    server: str | None = None

    def __post_init__(self) -> None:
        check_fields(vars(self), Stacks)


class HandshakeId(Object, frozen=True, kw_only=True):
    """The identity under which handshakes are measured, stored, compared and cached.

    A stack is None for the suite's usual one, or if it is unknown.
    """

    suite: str
    client_stack: str | None = None
    server_stack: str | None = None
    carrier: Carrier = "bare"
    credentials: str | None = "generated"


DEFAULT_PERCENTILE = 99.0


class Load(Object, frozen=True, kw_only=True):
    """Rates at which handshakes arrive at the server (one per figure), and the server's workers.

    With `within_s`, the number of workers is computed with which `percentile` per cent of the handshakes are
    ready within that time. `battery_j` is the energy of a client's battery; None: that of its profile.
    """

    rates_per_s: tuple[float, ...] = (0.0,)
    workers: int = 1
    within_s: float | None = None
    percentile: float = DEFAULT_PERCENTILE
    battery_j: float | None = None


class ClientKind(Object, frozen=True):
    """A kind of client of a mixture; None means the value of the fleet or its place."""

    suite: str
    weight: float = 1.0
    device: str | None = None
    bearer: str | None = None
    resumption: float | None = None

    def share_resuming(self, fleet: Fleet) -> float:
        return fleet.resumption if self.resumption is None else self.resumption


class Mix(Object, frozen=True, kw_only=True):
    """Clients of several kinds at one server."""

    name: str
    kinds: tuple[ClientKind, ...]


class Fleet(OptionGroup, frozen=True, kw_only=True):
    """A fleet of clients in virtual time: arrivals, timeouts, retries, and service. None stands for a
    default.

    `arrivals`: `poisson:50/s`, `deterministic:50/s`, `bursts:100@2/min`, `storm:10s`, `storm:10s+backoff`,
    `file:PATH` or another form of `shakedown.simulation.arrivals`.
    `retry`: pauses between attempts (`shakedown.simulation.retry`).
    `precision`: the target of a steady load's intervals; without `clients`, the run continues until it
    reaches this target, or the limit `max_events`.
    `servers`: number of servers, each with the workers and limits. `balance`: how connections are distributed
    over them. `admission`: limit of each server's rate of connections (`shakedown.simulation.admission`).
    `autoscale`: when servers start and stop (`shakedown.simulation.autoscaling`).
    `sessions`: lifetime of sessions and time between a client's connections, from which `resumption` is
    computed (`shakedown.simulation.sessions`).
    `records`: data that clients send after their handshakes (`shakedown.simulation.records`).
    `cells`: number of cells that the clients share; None: each client has its own link. `clients_per_cell`:
    number of clients that share one cell, from which `cells` is computed.
    In experiments, `endpoints`: protocol stacks run in virtual time instead of a replay; `mix`: clients of
    several kinds instead of one.
    """

    arrivals: str = DEFAULT_ARRIVALS
    clients: int | None = None
    timeout_s: float | None = None
    retries: int | None = None
    retry: str | None = None
    precision: float | None = None
    max_events: int | None = None
    servers: int = 1
    balance: Literal["round-robin", "least-connections", "hash", "cell"] = "round-robin"
    resumption: float = 0.0
    sessions: str | None = None
    records: str | None = None
    from_idle: bool = False
    discipline: Literal["fifo", "ps"] = "fifo"
    max_handshakes: int | None = None
    accept_queue: int | None = None
    admission: str | None = None
    autoscale: str | None = None
    replications: int | None = None
    endpoints: bool = False
    mix: Mix | None = None
    cells: int | None = None
    clients_per_cell: int | None = None

    def __post_init__(self) -> None:
        check("arrivals", self.arrivals, "str")
        super().__post_init__()


class Live(Object, frozen=True, kw_only=True):
    """A load on a real server on this machine's loopback.

    `rate_per_s`: None: the rate at which the measured work results in `utilisation`; not used in a closed
    loop. `compare`: adds modelled and simulated figures, and with `endpoints` those of protocol stacks in
    virtual time. `trace_count`: number of handshakes that are sampled on both sides, in a separate load and
    in one more load for each device of `emulate_device`.
    """

    rate_per_s: float | None = None
    utilisation: float = 0.3
    arrivals: Literal["poisson", "deterministic", "closed"] = "poisson"
    duration_s: float = 10.0
    count: int | None = None
    clients: int = 16
    resumption: float = 0.0
    timeout_s: float = 10.0
    workers: int = 1
    compare: bool = False
    endpoints: bool = False
    trace_count: int = 0
    emulate_device: tuple[str, ...] = ()


class CaptureFile(Object, frozen=True, kw_only=True):
    """A capture to inspect, and the key log that decrypts it."""

    file: str
    keylog: str | None = None


class Scenario(Object, frozen=True, kw_only=True):
    """The inputs of a figure. Fields that a kind of figure does not use are None. `asked` is specific to the
    kind: a `Fleet`, a `Live` load.
    """

    kind: Kind
    handshake: HandshakeId | None = None
    options: MeasureOptions = MeasureOptions()
    device: str | None = None
    server_device: str | None = None
    bearer: str | None = None
    load: Load = Load()
    asked: Object | None = None
    capture: CaptureFile | None = None
    connection: int | None = None

    @property
    def seed(self) -> int | None:
        """The seed of non-cryptographic random numbers."""
        return self.options.seed

    @property
    def label(self) -> str:
        if self.capture is not None and self.handshake is None:
            return Path(self.capture.file).name
        if isinstance(self.asked, Fleet) and self.asked.mix is not None:
            return self.asked.mix.name
        return self.handshake.suite if self.handshake is not None else self.kind

    @property
    def key(self) -> str:
        """A digest of twelve hexadecimal digits, without passwords."""
        plain = msgspec.structs.replace(
            self, options=msgspec.structs.replace(self.options, password=None, client_password=None)
        )
        return sha256(msgspec.json.encode(plain, order="sorted")).hexdigest()[:12]


class Fleets(Object, frozen=True, kw_only=True):
    """The fleets that an experiment simulates in each of its places: one for each combination of an arrival
    process with a handshake or a mixture.
    """

    fleets: tuple[Fleet, ...] = ()
    mixes: tuple[Mix, ...] = ()
    seed: int | None = None


class Places(Load, frozen=True, kw_only=True):
    """The places in which an experiment estimates its handshakes, and the load there; empty if it requests no
    estimates.
    """

    devices: tuple[str, ...] = ()
    server_device: str | None = None
    bearers: tuple[str, ...] = ()
    rates_per_s: tuple[float, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.devices or self.bearers or self.rates_per_s)

    def scenarios(
        self,
        handshake: HandshakeId | None,
        *,
        capture: CaptureFile | None = None,
        connection: int | None = None,
    ) -> Iterator[Scenario]:
        """The places of one handshake or mixture, each with all rates; other options have their defaults."""
        load = msgspec.convert(self, Load, from_attributes=True)
        load = msgspec.structs.replace(load, rates_per_s=self.rates_per_s or (0.0,))
        for device in self.devices or (DEFAULT_DEVICE,):
            for bearer in self.bearers or (DEFAULT_BEARER,):
                yield Scenario(
                    kind="modelled",
                    handshake=handshake,
                    device=device,
                    server_device=self.server_device or DEFAULT_SERVER_DEVICE,
                    bearer=bearer,
                    load=load,
                    capture=capture,
                    connection=connection,
                )
