"""Scenarios: what a figure is about, frozen and hashable, whatever kind of figure it is.

A handshake's identity, where its sides run, over which bearer, under which load, with which options.
An experiment is a list of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from shakedown.errors import InputError
from shakedown.files.limits import MAX_FRAGMENT_BYTES, MAX_REPEAT, MAX_TICKETS, MAX_UNIX_S
from shakedown.schema.base import MAX_NUMBER, SIDES, Carrier, Kind, Object, Side

DEFAULT_REPEAT = 30
DEFAULT_DEVICE, DEFAULT_SERVER_DEVICE, DEFAULT_BEARER = "phone", "server", "lte"

WITH_CHAIN = {"chain": ("key", "ca"), "client_chain": ("client_key", "client_ca", "client_password")}
"""Each side's chain among the options, and what has no use without it."""


def _meta(about: str, *, table: str = "", form: str = "", metavar: str = "", **bounds: int) -> Any:  # noqa: ANN401 - msgspec.Meta
    """What command line, experiment file and documentation say of an option.

    `table` is the experiment's table where it stands (none: the file's top), `form` what its text is: a
    `time`, a `file`, or the `name or file` of a profile.
    """
    extra = {"table": table, "form": form, "metavar": metavar}
    return msgspec.Meta(description=about, extra=extra, **bounds)  # type: ignore[call-overload]  # ge and le


class Options(Object, frozen=True, kw_only=True):
    """What `measure` takes beside the suite: the one definition of its options.

    The command line, experiment files and the Python API read it; a new option is a line here, and what the
    core does with it.
    """

    repeat: Annotated[int, _meta("Handshakes per suite.", metavar="N", ge=1, le=MAX_REPEAT)] = DEFAULT_REPEAT
    seed: (
        Annotated[
            int, _meta("Seed of the randomness that is not cryptographic.", metavar="N", ge=0, le=MAX_NUMBER)
        ]
        | None
    ) = None
    now: (
        Annotated[
            int,
            _meta(
                "Verification time of certificates.  [default: a fixed day; today for user-supplied ones]",
                form="time",
                ge=0,
                le=MAX_UNIX_S,
            ),
        ]
        | None
    ) = None
    tickets: (
        Annotated[int, _meta("TLS 1.3 tickets that the server sends.", metavar="N", ge=0, le=MAX_TICKETS)]
        | None
    ) = None
    carrier: (
        Annotated[
            Literal["bare", "eap"],
            _meta("What carries the handshake: nothing, or EAP-TLS in fragments.  [default: bare]"),
        ]
        | None
    ) = None
    fragment: (
        Annotated[
            int,
            _meta(
                "TLS bytes in an EAP packet, of either side.  [default: 1398]",
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
            _meta(
                'Certificate profile; "certs profiles" lists those that come along.',
                form="name or file",
                metavar="NAME|FILE.toml",
            ),
        ]
        | None
    ) = None
    certificate_form: (
        Annotated[
            Literal["wtls", "x509"],
            _meta(
                "WTLS: form of the generated certificates; user-supplied ones have theirs.  [default: wtls]",
                table="wtls",
            ),
        ]
        | None
    ) = None
    private_curves: Annotated[
        bool,
        _meta(
            "WTLS: private numbers for curves without one, whose parameters are otherwise sent in full.",
            table="wtls",
        ),
    ] = False
    chain: (
        Annotated[
            str, _meta("The server's chain, leaf first.  [default: generated]", table="server", form="file")
        ]
        | None
    ) = None
    key: (
        Annotated[str, _meta("Its private key, if not in the same file.", table="server", form="file")] | None
    ) = None
    ca: (
        Annotated[
            str, _meta("The root that clients trust, if not at the chain's end.", table="server", form="file")
        ]
        | None
    ) = None
    client_chain: (
        Annotated[str, _meta("The client's chain, in mutual suites.", table="client", form="file")] | None
    ) = None
    client_key: Annotated[str, _meta("Its private key.", table="client", form="file")] | None = None
    client_ca: Annotated[str, _meta("The root that servers trust.", table="client", form="file")] | None = (
        None
    )
    password: Annotated[str, _meta("Password of these files.", form="secret")] | None = None
    client_password: (
        Annotated[str, _meta("Password of the client's files, where it is another.", form="secret")] | None
    ) = None

    def __repr__(self) -> str:
        given = {key: "…" if "password" in key else value for key, value in self.given().items()}
        return f"Options({', '.join(f'{key}={value!r}' for key, value in given.items())})"

    def given(self) -> dict[str, Any]:
        """Those that differ from their defaults."""
        return {
            field.name: value
            for field in msgspec.structs.fields(self)
            if (value := getattr(self, field.name)) != field.default
        }

    @property
    def user_supplied(self) -> tuple[Side, ...]:
        """Sides with certificates of the user's."""
        return tuple(side for side in SIDES if getattr(self, "chain" if side == "server" else "client_chain"))

    def files(self) -> tuple[Path, ...]:
        """The files that it names, of both sides."""
        named = (self.chain, self.key, self.ca, self.client_chain, self.client_key, self.client_ca)
        return tuple(Path(one) for one in named if one is not None)

    def unpaired(self) -> tuple[str, str] | None:
        """An option that has no use without a chain, and which chain is missing; None where all fit."""
        for chain, others in WITH_CHAIN.items():
            for other in others:
                if getattr(self, other) and not getattr(self, chain):
                    return other, chain
        return None

    def checked(self) -> Options:
        """The same, once they go together, with the verification time that they ask for.

        User-supplied certificates are for the world as it is, not for the laboratory's fixed day. Raises
        `InputError`.
        """
        alone = self.unpaired()
        if alone is not None:
            raise InputError(f"{alone[0]} goes with {alone[1]}, which is missing")
        if self.now is None and self.user_supplied:
            return msgspec.structs.replace(self, now=int(time.time()))
        return self


def options_of(given: Mapping[str, object]) -> Options:
    """Options from keywords; None is left out, paths become text. Raises `InputError`."""
    from shakedown.errors import did_you_mean
    from shakedown.schema.base import convert

    known = {field.name for field in msgspec.structs.fields(Options)}
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) or f"; accepted: {', '.join(sorted(known))}"
            raise InputError(f"unknown option {name}{hint}")
    plain = {
        key: str(value) if isinstance(value, os.PathLike) else value
        for key, value in given.items()
        if value is not None
    }
    return convert(plain, Options)


class HandshakeId(Object, frozen=True, kw_only=True):
    """The identity under which anything is measured, kept, compared, cached.

    A stack is None where the suite's usual one is meant, or where it is unknown.
    """

    suite: str
    client_stack: str | None = None
    server_stack: str | None = None
    carrier: Carrier = "bare"
    credentials: str | None = "generated"


DEFAULT_PERCENTILE = 99.0


class Load(Object, frozen=True, kw_only=True):
    """An arrival process: rates at which handshakes arrive at the server (one a figure), and its workers.

    With `within_s`, the workers that each rate needs are asked for: `percentile` per cent of handshakes are
    to be done within that time. `battery_j` is what a client's battery holds, where not its profile says it.
    """

    rates_per_s: tuple[float, ...] = (0.0,)
    workers: int = 1
    within_s: float | None = None
    percentile: float = DEFAULT_PERCENTILE
    battery_j: float | None = None


class ClientKind(Object, frozen=True, kw_only=True):
    """A kind of client of a mixture; what is None is as the fleet or its place has it."""

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
    """Many clients of a server in virtual time: when they arrive, how patient they are, how they are served.

    `arrivals` is as `shakedown.simulation.arrivals` reads it. What is None has a default that goes with it.
    `endpoints`: protocol engines shake hands in virtual time in place of a replay. `mix`: clients of several
    kinds in place of one.
    """

    arrivals: str
    clients: int | None = None
    timeout_s: float | None = None
    retries: int | None = None
    resumption: float = 0.0
    from_idle: bool = False
    discipline: Literal["fifo", "ps"] = "fifo"
    max_handshakes: int | None = None
    accept_queue: int | None = None
    replications: int | None = None
    endpoints: bool = False
    mix: Mix | None = None


DEFAULT_UTILISATION = 0.3
DEFAULT_LIVE_S = 10.0


class Live(Object, frozen=True, kw_only=True):
    """A load on a real server on this machine's loopback.

    `rate_per_s` None: the rate at which what was measured fills `utilisation` of the workers' time; of no
    meaning in a closed loop. `compare`: the same modelled and simulated, beside it, and with `endpoints` by
    the protocol engines in virtual time. `trace_count`: handshakes that are sampled on both sides in a load
    of their own, and in one for each device of `emulate_device`.
    """

    rate_per_s: float | None = None
    utilisation: float = DEFAULT_UTILISATION
    arrivals: Literal["poisson", "deterministic", "closed"] = "poisson"
    duration_s: float = DEFAULT_LIVE_S
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
    """What a figure is about. What a kind of figure has no use for is None.

    `asked` is what its kind alone knows: a `Fleet`, a `Live` load.
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
        """Of what is random and not cryptographic."""
        return self.options.seed

    @property
    def label(self) -> str:
        """What a person calls it."""
        from pathlib import Path

        if self.capture is not None and self.handshake is None:
            return Path(self.capture.file).name
        if isinstance(self.asked, Fleet) and self.asked.mix is not None:
            return self.asked.mix.name
        return self.handshake.suite if self.handshake is not None else self.kind

    @property
    def key(self) -> str:
        """Twelve hexadecimal digits that no other scenario has; passwords are no part of it."""
        plain = msgspec.structs.replace(
            self, options=msgspec.structs.replace(self.options, password=None, client_password=None)
        )
        return sha256(msgspec.json.encode(plain, order="sorted")).hexdigest()[:12]


class Fleets(Object, frozen=True, kw_only=True):
    """What an experiment simulates in each of its places: a fleet for each arrival process, of each handshake
    and of each mixture.
    """

    fleets: tuple[Fleet, ...] = ()
    mixes: tuple[Mix, ...] = ()
    seed: int | None = None


class Places(Object, frozen=True, kw_only=True):
    """Where an experiment prices its handshakes; empty where it asks for no prices."""

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
        """The places of one handshake, each with all rates; what is not given is as everywhere."""
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
