"""Options as frozen structs: command line, experiment files and functions derive theirs from one declaration.

A field is an option; its name ends with its unit (`timeout_s` is `--timeout`, and `timeout` in a file).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import inspect as types

from shakedown.errors import InputError, did_you_mean
from shakedown.schema.arguments import plain
from shakedown.schema.base import Object

T = TypeVar("T", bound=Object)
UNITS = ("_per_s", "_s", "_bytes")


def option(
    about: str,
    *,
    name: str = "",
    form: str = "",
    table: str = "",
    metavar: str = "",
    default: str = "",
    **bounds: float,
) -> Any:  # noqa: ANN401 - msgspec.Meta
    """What command line, experiment file and documentation print of an option.

    `name` is the option's where the field's is another, `table` the experiment's table where it stands (none:
    the file's top). `form` is what its text is: a `time`, a `duration`, a `rate`, a `share`, a `file`, a
    `secret`, the `name or file` of a certificate profile, or of `server software`. `default` describes what
    None stands for.
    """
    extra = {"name": name, "table": table, "form": form, "metavar": metavar, "default": default}
    return msgspec.Meta(description=about, extra=extra, **bounds)  # type: ignore[call-overload]  # ge and le


@dataclass(frozen=True)
class Declared:
    """An option as its field declares it; `inner` is its type without what may be left out."""

    field: str
    default: Any
    kind: Any
    inner: types.Type
    about: str
    name: str = ""
    form: str = ""
    table: str = ""
    metavar: str = ""
    default_text: str = ""

    @property
    def key(self) -> str:
        """Its name in an experiment's file: the field's, without its unit."""
        unit = next((one for one in UNITS if self.field.endswith(one)), "")
        return self.field.removesuffix(unit)

    @property
    def choices(self) -> tuple[str, ...]:
        """The words of which it is one, in the order of their declaration; empty where it is no such word."""
        return _words(self.kind)

    @property
    def accepted(self) -> str:
        """What it takes, in words."""
        inner = self.inner
        if self.form == "rate":
            return 'a rate, as "10/s"'
        if isinstance(inner, types.IntType):
            if inner.ge is None and inner.le is None:
                return "a whole number"
            return f"a whole number from {inner.ge or 0} to {2**64 - 1 if inner.le is None else inner.le:,}"
        if isinstance(inner, types.FloatType):
            if self.form == "duration":
                return 'a time, as "10s"' + (f", above 0, at most {inner.le:g} s" if inner.le else "")
            if inner.ge is None or inner.le is None:
                return "a number"
            return f"a {self.form or 'number'} from {inner.ge:g} to {inner.le:g}"
        if self.choices:
            return ", ".join(self.choices)
        if isinstance(inner, types.VarTupleType):
            return "a list of strings"
        return "true, false" if isinstance(inner, types.BoolType) else "a string"


def _words(kind: Any) -> tuple[str, ...]:  # noqa: ANN401 - a type
    if get_origin(kind) is Literal:
        return get_args(kind)
    return next((found for one in get_args(kind) if (found := _words(one))), ())


def declared(kind: type[Object]) -> Iterator[Declared]:
    """The options of a struct, in order; fields without a description are none."""
    for field in msgspec.structs.fields(kind):
        found = types.type_info(field.type)
        for one in found.types if isinstance(found, types.UnionType) else (found,):
            if isinstance(one, types.Metadata) and one.extra is not None:
                text = str((one.extra_json_schema or {}).get("description", ""))
                extra = dict(one.extra)
                extra["default_text"] = extra.pop("default")
                yield Declared(field.name, field.default, field.type, one.type, text, **extra)


def options_of(kind: type[T], given: Mapping[str, Any], **fixed: Any) -> T:  # noqa: ANN401 - as its fields are
    """Options from keywords, and fields that are none; None is left out, paths become text. Raises
    `InputError`.
    """
    known = {one.field: one for one in declared(kind)}
    values = {}
    for name, value in given.items():
        if name not in known:
            hint = did_you_mean(name, known) or f"; accepted: {', '.join(sorted(known))}"
            raise InputError(f"unknown option {name}{hint}")
        value = str(value) if isinstance(value, os.PathLike) else plain(value)
        if value is None:
            continue
        try:
            values[name] = msgspec.convert(value, known[name].kind)
        except msgspec.ValidationError:
            raise InputError(f"{name} is {value!r:.80}; accepted: {known[name].accepted}") from None
    return kind(**values, **fixed)


class ServerOptions(Object, frozen=True, kw_only=True):
    """What a server does beside the handshakes of its suites."""

    workers: Annotated[int, option("Threads of the server.", name="server-workers", ge=1, le=1024)] = 1
    payload_bytes: Annotated[int, option("Bytes of a response.", metavar="BYTES", ge=0, le=1 << 40)] = 0
    payload_when: Annotated[
        Literal["request", "handshake"],
        option("Send the payload in response to requests, or when the handshake has ended."),
    ] = "request"
    handshake_timeout_s: Annotated[
        float, option("Timeout of a handshake.", form="duration", gt=0, le=86_400)
    ] = 10.0
    idle_timeout_s: Annotated[
        float, option("Timeout between two requests.", form="duration", gt=0, le=86_400)
    ] = 60.0
    drain_timeout_s: Annotated[
        float, option("Timeout of connections after SIGTERM.", form="duration", gt=0, le=86_400)
    ] = 5.0
    max_handshakes: Annotated[
        int, option("Limit of handshakes in progress; when reached, the oldest is dropped.", ge=1, le=1 << 20)
    ] = 4096
    max_connections: Annotated[
        int, option("Limit of connections; when reached, none is accepted until one ends.", ge=1, le=1 << 20)
    ] = 65_536
    client_ca: (
        Annotated[str, option("The root of clients' certificates, in mutual suites.", form="file")] | None
    ) = None
    metrics: (
        Annotated[str, option("Address for Prometheus metrics (/metrics).", metavar="HOST:PORT")] | None
    ) = None
    traces_out: (
        Annotated[str, option("Write sampled handshakes as JSON lines, when they end.", form="file")] | None
    ) = None
    sample: Annotated[
        int,
        option("Sample one handshake in N, for --traces-out and --metrics.", metavar="N", ge=1, le=1 << 40),
    ] = 100
    queue_times: Annotated[bool, option("Measure the queue of messages, with the kernel's time stamps.")] = (
        False
    )
    max_passages: (
        Annotated[int, option("Limit of queue records that a worker keeps until they are collected.", ge=1)]
        | None
    ) = None


class LoadOptions(Object, frozen=True, kw_only=True):
    """How clients load a server."""

    rate_per_s: (
        Annotated[float, option("New connections per second: 300/s, 20/min.", form="rate", metavar="R")]
        | None
    ) = None
    arrivals: (
        Annotated[
            Literal["poisson", "deterministic", "closed"],
            option(
                "Gaps between starts: exponential, equal, or none (closed loop).",
                default="poisson; closed with --background and without --rate",
            ),
        ]
        | None
    ) = None
    background_per_s: (
        Annotated[
            float,
            option(
                "New connections per second of a second load, at exponential gaps.",
                form="rate",
                metavar="R",
            ),
        ]
        | None
    ) = None
    duration_s: Annotated[float, option("Duration of the load.", form="duration", metavar="T")] = 10.0
    max_starts: (
        Annotated[int, option("Stop after N connections.", name="count", metavar="N", ge=1, le=10**9)] | None
    ) = None
    clients: (
        Annotated[
            int,
            option(
                "Clients, each with its own session; in a closed loop, connections at a time.",
                metavar="N",
                default="16; 1 with --background",
                ge=1,
                le=100_000,
            ),
        ]
        | None
    ) = None
    resumption: Annotated[
        float,
        option("Share of connections that resume a session.", form="share", metavar="SHARE", ge=0.0, le=1.0),
    ] = 0.0
    seed: Annotated[int, option("Random seed.", metavar="N", ge=0, le=2**53)] = 1
    timeout_s: Annotated[
        float,
        option("Timeout of a connection, from its planned start.", form="duration", metavar="T"),
    ] = 10.0
    max_open: Annotated[int, option("Limit of open connections.", metavar="N", ge=1, le=100_000)] | None = (
        None
    )
    http: (
        Annotated[str, option("Send an HTTP request for PATH and wait for the response.", metavar="PATH")]
        | None
    ) = None
    await_first_byte: Annotated[bool, option("Wait for the first byte, from servers that send first.")] = (
        False
    )
    ca: Annotated[str, option("Roots for validating the target's certificate.", form="file")] | None = None
    server_name: (
        Annotated[str, option("Server name to request and to check.", metavar="NAME", default="the host")]
        | None
    ) = None
    check: Annotated[bool, option("Do not check generated certificates.")] = True
    client_stack: (
        Annotated[str, option('Stack of the clients; "stacks" lists them.', metavar="NAME")] | None
    ) = None
    client_chain: (
        Annotated[str, option("Chain that clients present in mutual suites.", form="file")] | None
    ) = None
    client_key: (
        Annotated[str, option("Private key of --client-chain.  [default: in the same file]", form="file")]
        | None
    ) = None
    requirements: Annotated[
        tuple[str, ...],
        option(
            "A threshold that sets the exit status: handshake.p99<2s, failed.share<1%; may be repeated.",
            name="require",
            metavar="WHAT",
        ),
    ] = ()
    trace_count: (
        Annotated[
            int, option("Sample N handshakes, and print where the time goes.", metavar="N", ge=1, le=10_000)
        ]
        | None
    ) = None
    traces_out: (
        Annotated[str, option("Write the client's side of sampled handshakes.", form="file")] | None
    ) = None
    server_traces: (
        Annotated[str, option('Join samples with the file of "serve --traces-out".', form="file")] | None
    ) = None
    emulate_device: (
        Annotated[str, option("Make clients as slow as this device, by waiting.", metavar="DEVICE")] | None
    ) = None
    authorized_target: (
        Annotated[str, option("Permit load on HOST, another machine; its owner must agree.", metavar="HOST")]
        | None
    ) = None
    rate_cap: Annotated[bool, option("Allow more than 50/s on another machine.")] = True

    def settled(self) -> LoadOptions:
        """The same, with the defaults that go with each other: beside a background one client at a time."""
        beside = self.background_per_s is not None
        return msgspec.structs.replace(
            self,
            arrivals=self.arrivals or ("closed" if beside and self.rate_per_s is None else "poisson"),
            clients=self.clients or (1 if beside else 16),
        )
