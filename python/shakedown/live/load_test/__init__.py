"""The load generator as a function, `shakedown.load`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec

from shakedown import native
from shakedown.errors import InputError, ShakedownError
from shakedown.files.limits import check_readable
from shakedown.files.write import check_distinct, check_writable, write
from shakedown.native import load_generator
from shakedown.schema.arguments import checked
from shakedown.schema.base import encode
from shakedown.schema.live import LoadOutcome, LoadProgress, LoadRun, Requirement
from shakedown.schema.options import LoadOptions

NOT_THE_CORES = ("http", "requirements", "traces_out", "server_traces", "emulate_device")
"""Options that are not passed to the core's load generator."""


@checked
def load(
    target: str,
    suite: str | None = None,
    options: LoadOptions = LoadOptions(),
    *,
    replace: bool = False,
    generators: Generators | None = None,
    progress: Callable[[LoadProgress], None] | None = None,
) -> LoadRun:
    """Loads a TLS server or a WTLS gateway, and returns the times that the clients measured.

    Args:
        target: `HOST:PORT`, `tls://HOST:PORT` or `wtls://HOST:PORT`.
        suite: the only suite that clients offer; None: the defaults of their library.
        options: the rate or a closed loop, the duration, the number of clients, and others.
        replace: whether `traces_out` may replace a file.
        generators: machines that share the load (`shakedown.experiments.load_generators.Generators`); None:
            this process.
        progress: called about ten times a second (not with `generators`). Ctrl-C ends the run early.

    Raises:
        InputError: for an invalid target, suite or option, and for a host that may not be loaded.
        UnwrittenTracesError: if the run succeeded, but `traces_out` could not be written.
    """
    from shakedown.live.load_test.requirements import parse
    from shakedown.live.load_test.time_spent import read_halves, time_spent

    # With a background load, one client at a time is measured by default.
    beside = options.background_per_s is not None
    arrivals = options.arrivals or ("closed" if beside and options.rate_per_s is None else "poisson")
    emulate_device = None if options.emulate_device is None else str(options.emulate_device)
    if options.rate_per_s is None and arrivals != "closed":
        raise InputError(
            "no rate; accepted: new connections per second such as --rate 50/s, or --arrivals closed"
        )
    server_traces = options.server_traces
    for file in (options.client_chain, options.client_key, server_traces):
        if file is not None:
            check_readable(file)
    thresholds = [parse(text) for text in options.requirements]
    name = None if suite is None else native.canonical(suite)
    if not options.trace_count and (options.traces_out is not None or server_traces is not None):
        raise InputError("no handshakes are sampled; accepted: files of traces with trace_count")
    known = None if options.traces_out is None else Path(options.traces_out)
    if known is not None:
        read = (options.ca, options.client_chain, options.client_key, server_traces)
        check_distinct([known], [None if one is None else Path(one) for one in read])
        check_writable(known, replace)
    host = options.server_name or target
    clients = {one: getattr(options, one) for one in ("client_stack", "client_chain", "client_key")}
    slowed = {} if emulate_device is None else _slowed(emulate_device, name, clients)
    config = {
        one: value
        for one, value in msgspec.structs.asdict(options).items()
        if one not in (*NOT_THE_CORES, *clients)
    }
    config |= {
        "target": target,
        "arrivals": arrivals,
        "clients": options.clients or (1 if beside else 16),
        "request": None if options.http is None else _http_request(options.http, host),
        "trace_count": options.trace_count or 0,
        **slowed,
    }
    if generators is None:
        parts = [load_generator.part(config, name, clients, progress)]
    else:
        shares = _shares(config, generators.count())
        parts = generators.results([partial(load_generator.part, share, name, clients) for share in shares])
    outcome = load_generator.merge(parts)
    if generators is not None and outcome.generators < generators.count():
        # Generators that had no figures when the run was interrupted are missing from the outcome.
        outcome = msgspec.structs.replace(outcome, interrupted=True)
    run = load_run(
        outcome,
        name,
        config,
        requirements=tuple(
            Requirement(text=one.text, value=one.value(outcome), met=one.is_met(outcome))
            for one in thresholds
        ),
        emulate_device=emulate_device,
        time_spent=time_spent(
            outcome.traces,
            () if server_traces is None else read_halves(Path(server_traces)),
            emulate_device=emulate_device,
            slowdown=outcome.slowdown,
        ),
    )
    if known is not None:
        try:
            write(known, b"".join(encode(one) + b"\n" for one in outcome.traces.kept), replace=replace)
        except ShakedownError as error:
            raise UnwrittenTracesError(error, run) from error
    return run


def load_run(outcome: LoadOutcome, suite: str | None, config: Mapping[str, Any], **more: object) -> LoadRun:
    """A run: the figures of the generators, the requested target and load, and more fields."""
    figures = msgspec.structs.asdict(outcome)
    del figures["traces"]
    asked = {name: config[name] for name in ("target", "arrivals", "duration_s", "clients", "seed")}
    return LoadRun(**figures | asked | more, suite=suite)


class UnwrittenTracesError(ShakedownError):
    """The traces of a run could not be written: the file was created during the run, or the disk is full.

    Attributes:
        run: the run's figures.
    """

    def __init__(self, reason: ShakedownError, run: LoadRun) -> None:
        super().__init__(str(reason))
        self.exit_status = reason.exit_status
        self.run = run


class Generators(Protocol):
    """Machines or processes that load a server together."""

    def count(self) -> int:
        """The number of generators."""

    def results(
        self, jobs: Sequence[Callable[[Callable[..., None]], dict[str, Any]]]
    ) -> list[dict[str, Any]]:
        """Runs a job on each generator, concurrently, and returns their results. A job regularly calls its
        argument; if that raises `KeyboardInterrupt`, the job ends with its figures so far. Jobs without
        figures are omitted.
        """


def _shares(config: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """The configuration of each generator: its share of rate, clients, starts and samples.

    The combined load of generators with exponential gaps also has exponential gaps. The combined load of
    generators with equal gaps has unequal gaps, because they do not start at the same time.
    """

    def part(whole: int | None, index: int) -> int | None:
        return None if whole is None else whole // count + (index < whole % count)

    if config["clients"] < count or (config["max_starts"] or count) < count:
        raise InputError(f"{count} generators share clients and starts; accepted: at least {count} of each")
    shares = []
    for index in range(count):
        share = dict(config)
        for name in ("rate_per_s", "background_per_s"):
            share[name] = None if config[name] is None else config[name] / count
        for name in ("clients", "max_starts", "trace_count"):
            share[name] = part(config[name], index)
        # Each generator draws its own arrivals.
        shares.append(share | {"seed": (config["seed"] + index * 1_000_003) % 2**53, "generators": count})
    return shares


def _slowed(device: str, suite: str | None, clients: Mapping[str, str | None]) -> dict[str, float]:
    from shakedown.prediction.slowdown import slowed

    if suite is None:
        raise InputError("an emulated device needs a suite; accepted: with a SUITE")
    return slowed(device, suite, **clients)


def _http_request(path: str, target: str) -> str:
    """An HTTP request with which the server closes the connection after its response."""
    host = (target.partition("://")[2] or target).removesuffix("/")
    if not path.startswith("/") or any(ord(letter) <= ord(" ") for letter in path + host):
        raise InputError(f'"{path[:60]}" is not a path; accepted: /, /index.html and the like')
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
