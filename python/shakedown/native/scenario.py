"""Scenarios: frozen, hashable descriptions of the inputs of a figure, for all kinds of figures.

A scenario contains a handshake's identity, its devices, bearer, load and options. An experiment is a list of
them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from shakedown.errors import InputError
from shakedown.files.limits import (
    MAX_FRAGMENT_BYTES,
    MAX_LIVE_CLIENTS,
    MAX_LIVE_S,
    MAX_LIVE_STARTS,
    MAX_LIVE_TRACES,
    MAX_LIVE_WORKERS,
    MAX_REPEAT,
    MAX_TICKETS,
    MAX_UNIX_S,
)
from shakedown.schema.base import MAX_NUMBER, SIDES, Carrier, Kind, Object, Side
from shakedown.schema.options import option

DEFAULT_REPEAT = 30
DEFAULT_DEVICE, DEFAULT_SERVER_DEVICE, DEFAULT_BEARER = "phone", "server", "lte"

WITH_CHAIN = {"chain": ("key", "ca"), "client_chain": ("client_key", "client_ca", "client_password")}
"""Each side's chain among the options, and the options that need it."""


class Options(Object, frozen=True, kw_only=True):
    """The options of `measure`, defined once.

    The command line, experiment files and the Python API derive their options from it. A new option is a
    field here, and its implementation in the core.
    """

    repeat: Annotated[int, option("Handshakes per suite.", metavar="N", ge=1, le=MAX_REPEAT)] = DEFAULT_REPEAT
    seed: (
        Annotated[
            int, option("Seed of the non-cryptographic random numbers.", metavar="N", ge=0, le=MAX_NUMBER)
        ]
        | None
    ) = None
    counter: (
        Annotated[
            Literal["instructions"],
            option(
                "Also count instructions, by valgrind: the same count in every run (seed 1 without --seed)."
            ),
        ]
        | None
    ) = None
    now: (
        Annotated[
            int,
            option(
                "Verification time of certificates.  [default: a fixed day; today for user-supplied ones]",
                form="time",
                ge=0,
                le=MAX_UNIX_S,
            ),
        ]
        | None
    ) = None
    tickets: (
        Annotated[
            int,
            option(
                "Tickets that the server issues.  [default: its software's in TLS 1.3, else 0]",
                metavar="N",
                ge=0,
                le=MAX_TICKETS,
            ),
        ]
        | None
    ) = None
    server_software: (
        Annotated[
            str,
            option(
                "Software of the server: its tickets.  [default: openssl, which issues two]",
                form="server software",
                metavar="NAME|FILE.toml",
            ),
        ]
        | None
    ) = None
    carrier: (
        Annotated[
            Literal["bare", "eap"],
            option("Transport: none (bare), or fragments of EAP-TLS.  [default: bare]"),
        ]
        | None
    ) = None
    fragment: (
        Annotated[
            int,
            option(
                "TLS bytes in an EAP packet.  [default: 1398]",
                metavar="BYTES",
                ge=1,
                le=MAX_FRAGMENT_BYTES,
            ),
        ]
        | None
    ) = None
    profile: (
        Annotated[
            str,
            option(
                'Certificate profile; "certs profiles" lists the shipped ones.',
                form="name or file",
                metavar="NAME|FILE.toml",
            ),
        ]
        | None
    ) = None
    certificate_form: (
        Annotated[
            Literal["wtls", "x509"],
            option(
                "WTLS: form of generated certificates.  [default: wtls]",
                table="wtls",
            ),
        ]
        | None
    ) = None
    private_curves: Annotated[
        bool,
        option(
            "WTLS: private numbers for curves without a number (else sent in full).",
            table="wtls",
        ),
    ] = False
    chain: (
        Annotated[
            str, option("The server's chain, leaf first.  [default: generated]", table="server", form="file")
        ]
        | None
    ) = None
    key: (
        Annotated[
            str, option("The server's private key, if not in the same file.", table="server", form="file")
        ]
        | None
    ) = None
    ca: (
        Annotated[
            str,
            option("The root that clients trust, if not at the chain's end.", table="server", form="file"),
        ]
        | None
    ) = None
    client_chain: (
        Annotated[str, option("The client's chain, in mutual suites.", table="client", form="file")] | None
    ) = None
    client_key: (
        Annotated[
            str, option("The client's private key, if not in the same file.", table="client", form="file")
        ]
        | None
    ) = None
    client_ca: Annotated[str, option("The root that servers trust.", table="client", form="file")] | None = (
        None
    )
    password: Annotated[str, option("Password of these files.", form="secret")] | None = None
    client_password: (
        Annotated[str, option("Password of the client's files, where it is another.", form="secret")] | None
    ) = None

    def __repr__(self) -> str:
        given = {key: "…" if "password" in key else value for key, value in self.given().items()}
        return f"Options({', '.join(f'{key}={value!r}' for key, value in given.items())})"

    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        return {
            field.name: value
            for field in msgspec.structs.fields(self)
            if (value := getattr(self, field.name)) != field.default
        }

    @property
    def user_supplied(self) -> tuple[Side, ...]:
        """Sides with user-supplied certificates."""
        return tuple(side for side in SIDES if getattr(self, "chain" if side == "server" else "client_chain"))

    def files(self) -> tuple[Path, ...]:
        """The files of both sides that it names."""
        named = (self.chain, self.key, self.ca, self.client_chain, self.client_key, self.client_ca)
        return tuple(Path(one) for one in named if one is not None)

    def unpaired(self) -> tuple[str, str] | None:
        """An option that needs a chain, and the missing chain; None if there is none."""
        for chain, others in WITH_CHAIN.items():
            for other in others:
                if getattr(self, other) and not getattr(self, chain):
                    return other, chain
        return None

    def issuing(self, suite: str) -> Options:
        """The options for a suite, with the number of TLS 1.3 tickets that the server's software issues."""
        from shakedown.profiles.registry import load_software
        from shakedown.profiles.software import DEFAULT_SOFTWARE

        software = load_software(self.server_software or DEFAULT_SOFTWARE)
        if self.tickets is not None or not suite.startswith("tls1.3/") or self.carrier == "eap":
            return self
        tickets = software.tickets_of(resumption="/resumed" in suite)
        return msgspec.structs.replace(self, tickets=tickets)

    def checked(self) -> Options:
        """The validated options, with the verification time.

        User-supplied certificates are validated at the present time, generated ones on a fixed day. Raises
        `InputError`.
        """
        alone = self.unpaired()
        if alone is not None:
            raise InputError(f"{alone[0]} goes with {alone[1]}, which is missing")
        if self.now is None and self.user_supplied:
            return msgspec.structs.replace(self, now=int(time.time()))
        return self


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


class ClientKind(Object, frozen=True, kw_only=True):
    """A kind of client of a mixture; None stands for the value of the fleet or its place."""

    suite: str
    weight: float = 1.0
    device: str | None = None
    bearer: str | None = None
    resumption: float | None = None


class Mix(Object, frozen=True, kw_only=True):
    """Clients of several kinds at one server."""

    name: str
    kinds: tuple[ClientKind, ...]


class Fleet(Object, frozen=True, kw_only=True):
    """A fleet of clients in virtual time: arrivals, timeouts, retries, and service.

    The syntax of `arrivals` is documented in `shakedown.simulation.arrivals`. None stands for a default.
    `retry`: pauses between attempts, as `shakedown.simulation.retry` reads them. `servers`: how many, each
    with the workers and limits; `balance`: which of them a connection goes to. `admission`: connections that
    each begins in a time, as `shakedown.simulation.admission` reads it; `autoscale`: when servers start and
    stop, as `shakedown.simulation.autoscaling` reads it. `sessions`: their lifetime and the time between a
    client's connections, as `shakedown.simulation.sessions` reads it, from which `resumption` follows.
    `records`: what clients send after their handshakes, as `shakedown.simulation.records` reads it.
    `precision` and `max_events`: how long a steady load is simulated, where `clients` does not say it.
    `endpoints`: protocol stacks run in virtual time instead of a replay. `mix`: clients of several kinds
    instead of one. `cells`: over which the clients are spread; None: each client has its own link.
    `clients_per_cell`: how many of them share one, from which `cells` follows.
    """

    arrivals: str
    clients: (
        Annotated[
            int,
            option(
                "Clients that are counted.",
                metavar="N",
                default="at a rate as the precision needs; storm: 10,000; file: all",
            ),
        ]
        | None
    ) = None
    timeout_s: (
        Annotated[
            float,
            option(
                "Timeout of one attempt.",
                form="duration",
                default="the transport's; with retries 30s",
            ),
        ]
        | None
    ) = None
    retries: (
        Annotated[int, option("Attempts after the first.", metavar="N", default="0; 10 with +backoff")] | None
    ) = None
    retry: (
        Annotated[
            str,
            option(
                "Pauses between attempts: base=1s,factor=2,max=60s,jitter=full.",
                metavar="SPEC",
                default="1s, constant",
            ),
        ]
        | None
    ) = None
    precision: (
        Annotated[
            float,
            option(
                "At a rate: relative half-width of each figure's 95 % interval.",
                form="share",
                metavar="SHARE",
                default="5%",
            ),
        ]
        | None
    ) = None
    max_events: (
        Annotated[
            int,
            option("Limit of events; figures that need more are marked.", metavar="N", default="100,000,000"),
        ]
        | None
    ) = None
    servers: Annotated[int, option("Identical servers behind a load balancer.", metavar="N")] = 1
    balance: Annotated[
        Literal["round-robin", "least-connections", "hash", "cell"],
        option("How the balancer selects a server."),
    ] = "round-robin"
    resumption: Annotated[
        float,
        option("Share of clients that resume a session.", form="share", metavar="SHARE", ge=0.0, le=1.0),
    ] = 0.0
    sessions: (
        Annotated[
            str,
            option(
                "In place of a share: lifetime=2h,interval=1h,away=30min of returning clients.",
                metavar="SPEC",
                default="none",
            ),
        ]
        | None
    ) = None
    records: (
        Annotated[
            str,
            option(
                "Data that each client sends after its handshake: rate=100B/s,for=10min,size=512B.",
                metavar="SPEC",
                default="none",
            ),
        ]
        | None
    ) = None
    from_idle: Annotated[bool, option("Radios are idle at first and have to be set up.")] = False
    discipline: Annotated[
        Literal["fifo", "ps"],
        option("Order of service: first come, first served, or processor sharing."),
    ] = "fifo"
    max_handshakes: (
        Annotated[int, option("Limit of handshakes in progress at the server.", metavar="N", default="any")]
        | None
    ) = None
    accept_queue: (
        Annotated[int, option("Limit of connections that wait for a worker.", metavar="N", default="any")]
        | None
    ) = None
    admission: (
        Annotated[
            str,
            option(
                "Token bucket of each server: rate=100/s,burst=20,refuse=reset (or alert, silence).",
                metavar="SPEC",
                default="any number of connections",
            ),
        ]
        | None
    ) = None
    autoscale: (
        Annotated[
            str,
            option(
                "Servers start and stop: max=10,up=80%,down=30%,queue=5,step=1,interval=15s,startup=60s,"
                "cooldown=5min.",
                metavar="SPEC",
                default="their number is fixed",
            ),
        ]
        | None
    ) = None
    replications: (
        Annotated[
            int,
            option(
                "Runs that share the clients; several give intervals.",
                metavar="N",
                default="25 at a rate; 10 with clients",
            ),
        ]
        | None
    ) = None
    endpoints: bool = False
    mix: Mix | None = None
    cells: (
        Annotated[
            int,
            option("Cells that clients share.", metavar="N", default="each client has its own link"),
        ]
        | None
    ) = None
    clients_per_cell: (
        Annotated[
            int,
            option(
                "Limit of clients in a cell; sets the number of cells.",
                metavar="N",
                default="clients divided by cells",
            ),
        ]
        | None
    ) = None


class Live(Object, frozen=True, kw_only=True):
    """A load on a real server on this machine's loopback.

    `rate_per_s` None: the rate at which the measured work results in `utilisation`; not used in a closed
    loop. `compare`: also modelled and simulated figures, and with `endpoints` those of protocol stacks in
    virtual time. `trace_count`: handshakes that are sampled on both sides in a load of their own, and in one
    for each device of `emulate_device`.
    """

    rate_per_s: (
        Annotated[
            float,
            option('new connections per second: `"100/s"`', form="rate", default="each of `rates`"),
        ]
        | None
    ) = None
    utilisation: Annotated[
        float,
        option(
            "without any rate: the workers' utilisation by the measured work of the handshake",
            form="share",
            ge=0.01,
            le=1.0,
        ),
    ] = 0.3
    arrivals: Annotated[
        Literal["poisson", "deterministic", "closed"],
        option(
            '`"poisson"`, `"deterministic"`, or `"closed"`: a client\'s next begins when its last is over'
        ),
    ] = "poisson"
    duration_s: Annotated[
        float,
        option(
            'how long connections are started: `"10s"`', form="duration", default="10 s", gt=0, le=MAX_LIVE_S
        ),
    ] = 10.0
    count: (
        Annotated[int, option("limit of connections", default="any number", ge=1, le=MAX_LIVE_STARTS)] | None
    ) = None
    clients: Annotated[int, option("clients, each with a session of its own", ge=1, le=MAX_LIVE_CLIENTS)] = 16
    resumption: Annotated[
        float,
        option(
            "share of the connections that resume",
            form="share",
            default="0; all in suites that resume",
            ge=0.0,
            le=1.0,
        ),
    ] = 0.0
    timeout_s: Annotated[
        float,
        option("timeout of a connection", form="duration", default="10 s", gt=0, le=MAX_LIVE_S),
    ] = 10.0
    workers: Annotated[
        int,
        option("the server's threads", default="the experiment's `workers`", ge=1, le=MAX_LIVE_WORKERS),
    ] = 1
    compare: Annotated[bool, option("`true`: also the modelled and simulated figures")] = False
    endpoints: Annotated[bool, option("`true`: with `compare`, also the protocol stacks in virtual time")] = (
        False
    )
    trace_count: Annotated[
        int,
        option(
            "handshakes sampled on both sides, in a separate load without a queue",
            default="none",
            ge=1,
            le=MAX_LIVE_TRACES,
        ),
    ] = 0
    emulate_device: Annotated[
        tuple[str, ...],
        option("a device, or an array of devices, for which the client is slowed down"),
    ] = ()


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
    options: Options = Options()
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
        """Its name in output."""
        from pathlib import Path

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
    """The fleets that an experiment simulates in each of its places: one for each arrival process, and each
    handshake or mixture.
    """

    fleets: tuple[Fleet, ...] = ()
    mixes: tuple[Mix, ...] = ()
    seed: int | None = None


class Places(Object, frozen=True, kw_only=True):
    """The places in which an experiment estimates its handshakes; empty if it requests no estimates."""

    devices: tuple[str, ...] = ()
    server_device: str | None = None
    bearers: tuple[str, ...] = ()
    rates_per_s: tuple[float, ...] = ()
    workers: int = 1
    within_s: float | None = None
    percentile: float = DEFAULT_PERCENTILE
    battery_j: float | None = None

    def __bool__(self) -> bool:
        return bool(self.devices or self.bearers or self.rates_per_s)

    def scenarios(
        self, handshake: HandshakeId, *, capture: CaptureFile | None = None, connection: int | None = None
    ) -> Iterator[Scenario]:
        """The places of one handshake, each with all rates; other options have their defaults."""
        for device in self.devices or (DEFAULT_DEVICE,):
            for bearer in self.bearers or (DEFAULT_BEARER,):
                yield Scenario(
                    kind="modelled",
                    handshake=handshake,
                    device=device,
                    server_device=self.server_device or DEFAULT_SERVER_DEVICE,
                    bearer=bearer,
                    load=Load(
                        rates_per_s=self.rates_per_s or (0.0,),
                        workers=self.workers,
                        within_s=self.within_s,
                        percentile=self.percentile,
                        battery_j=self.battery_j,
                    ),
                    capture=capture,
                    connection=connection,
                )
