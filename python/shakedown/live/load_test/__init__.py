"""The load generator as a function: what `shakedown.load` is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from shakedown.errors import InputError, ShakedownError
from shakedown.schema.arguments import checked, profile_name

if TYPE_CHECKING:
    from shakedown.prediction.slowdown import Slowed
    from shakedown.schema.live import Arrivals, LoadProgress, LoadRun


@checked
def load(
    target: str,
    suite: str | None = None,
    *,
    rate_per_s: float | None = None,
    arrivals: Arrivals = "poisson",
    duration_s: float = 10.0,
    max_starts: int | None = None,
    clients: int = 16,
    resumption: float = 0.0,
    seed: int = 1,
    timeout_s: float = 10.0,
    max_open: int | None = None,
    http: str | None = None,
    await_first_byte: bool = False,
    ca: str | Path | None = None,
    server_name: str | None = None,
    check: bool = True,
    client_stack: str | None = None,
    client_chain: str | Path | None = None,
    client_key: str | Path | None = None,
    requirements: Sequence[str] = (),
    authorized_target: str | None = None,
    rate_cap: bool = True,
    background_per_s: float | None = None,
    trace_count: int = 0,
    traces_out: str | Path | None = None,
    replace: bool = False,
    server_traces: str | Path | None = None,
    emulate_device: str | Path | None = None,
    generators: Generators | None = None,
    progress: Callable[[LoadProgress], None] | None = None,
) -> LoadRun:
    """Loads a TLS server or a WTLS gateway, and says what its clients saw.

    Args:
        target: `HOST:PORT`, `tls://HOST:PORT` or `wtls://HOST:PORT`.
        suite: what clients offer; None: what their library offers by itself.
        rate_per_s: starts a second; none in a closed loop.
        arrivals: `poisson`, `deterministic`, or `closed`: each client starts again when it is done.
        duration_s: how long connections are started.
        max_starts: the most of them.
        clients: identities, each with a session of its own.
        resumption: share of connections that resume a session.
        seed: of arrivals and choices.
        timeout_s: the longest that a connection may take from its start.
        max_open: the most open connections.
        http: path of a request whose answer is waited for.
        await_first_byte: wait for a server that speaks first.
        ca: certificates to trust; the target's is checked against them.
        server_name: name to ask for and to check, where it is not the target's host.
        check: check generated certificates, where the target presents them.
        client_stack: which implementation runs the clients.
        client_chain, client_key: what clients present in mutual suites.
        requirements: thresholds, as `handshake.p99<2s`.
        authorized_target: a host that is not this machine and may be loaded.
        rate_cap: keep such a host below 50 starts a second.
        background_per_s: starts a second, at exponential gaps, of a load beside the measured one.
        trace_count: handshakes that are sampled, spread evenly over the run; all run instrumented then.
        traces_out: a file for the clients' halves of them, as lines of JSON; `replace` says whether it may
            replace a file.
        server_traces: the file of the server's halves, as `serve --traces-out` writes it on this machine.
        emulate_device: a device, its name or its profile; clients take as many times as long as that says, by
            waiting.
        generators: machines that share the load (`shakedown.experiments.cluster.Generators`); None: this
            process.
        progress: told about ten times a second how far it is, but with generators. Ctrl-C ends the run early.

    Raises:
        InputError: for a target, a suite or options that are no good, and hosts that may not be loaded.
        UnwrittenTracesError: where the run went well, and `traces_out` could not be written afterwards.
    """
    from typing import get_args

    import msgspec

    from shakedown import native
    from shakedown.files.read import check_readable
    from shakedown.files.write import check_distinct, check_writable, write
    from shakedown.live.load_test.requirements import parse
    from shakedown.live.load_test.time_spent import read_halves, time_spent
    from shakedown.schema.base import encode
    from shakedown.schema.live import Arrivals, LoadRun, Requirement

    if arrivals not in get_args(Arrivals):
        raise InputError(f"arrivals is {arrivals!r:.80}; accepted: {', '.join(get_args(Arrivals))}")
    for file in (client_chain, client_key, server_traces):
        if file is not None:
            check_readable(file)
    thresholds = [parse(text) for text in requirements]
    name = None if suite is None else native.canonical(suite)
    options = {"client_stack": client_stack, "client_chain": client_chain, "client_key": client_key}
    if not trace_count and (traces_out is not None or server_traces is not None):
        raise InputError("no handshakes are sampled; accepted with files of traces: trace_count")
    known = None if traces_out is None else Path(traces_out)
    if known is not None:
        read = (ca, client_chain, client_key, server_traces)
        check_distinct([known], [None if one is None else Path(one) for one in read])
        check_writable(known, replace)
    emulate_device = profile_name(emulate_device)
    slowed = (
        None
        if emulate_device is None
        else _slowed(emulate_device, name, client_stack, client_chain, client_key)
    )
    config = {
        "target": target,
        "arrivals": arrivals,
        "rate_per_s": rate_per_s,
        "duration_s": duration_s,
        "max_starts": max_starts,
        "clients": clients,
        "resumption": resumption,
        "seed": seed,
        "timeout_s": timeout_s,
        "max_open": max_open,
        "request": None if http is None else _http_request(http, server_name or target),
        "await_first_byte": await_first_byte,
        "ca": ca,
        "server_name": server_name,
        "check": check,
        "authorized_target": authorized_target,
        "rate_cap": rate_cap,
        "background_per_s": background_per_s,
        "trace_count": trace_count,
        **({} if slowed is None else slowed.config()),
    }
    if generators is None:
        outcome = native.load(config, name, options, progress)
    else:
        shares = _shares(config, generators.count())
        parts = generators.results([partial(native.load_part, share, name, options) for share in shares])
        outcome = native.merge_loads(parts)
    figures = msgspec.structs.asdict(outcome)
    del figures["traces"]
    # Those that had nothing to say when the run was interrupted are missing.
    figures["interrupted"] |= generators is not None and outcome.generators < generators.count()
    run = LoadRun(
        **figures,
        target=target,
        suite=name,
        arrivals=arrivals,
        duration_s=duration_s,
        clients=clients,
        seed=seed,
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


class UnwrittenTracesError(ShakedownError):
    """A run whose traces could not be written: somebody took the name meanwhile, or the disk is full.

    Attributes:
        run: its figures.
    """

    def __init__(self, reason: ShakedownError, run: LoadRun) -> None:
        super().__init__(str(reason))
        self.exit_status = reason.exit_status
        self.run = run


class Generators(Protocol):
    """Machines or processes that load a server together."""

    def count(self) -> int:
        """How many there are."""

    def results(self, jobs: Sequence[Callable[[Callable[[], None]], dict[str, Any]]]) -> list[dict[str, Any]]:
        """Runs a job on each, all at once. Each calls what it is told now and then; where that raises
        `KeyboardInterrupt`, the job ends with what it has. Those that had nothing are left out.
        """


def _shares(config: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """What each of several generators is told: its part of rate, clients, starts and samples.

    Exponential gaps of parts add up to exponential gaps; equal gaps of parts that begin when they are ready
    do not add up to equal ones.
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
        # Each draws arrivals of its own.
        shares.append(share | {"seed": (config["seed"] + index * 1_000_003) % 2**53, "generators": count})
    return shares


def _slowed(
    device: str,
    suite: str | None,
    stack: str | None,
    chain: str | Path | None,
    key: str | Path | None,
) -> Slowed:
    from shakedown.prediction.slowdown import slowed

    if suite is None:
        raise InputError(
            "a slowed client's time is that of a suite; accepted with a device to emulate: a SUITE"
        )
    given = [None if one is None else str(one) for one in (chain, key)]
    return slowed(device, suite, client_stack=stack, client_chain=given[0], client_key=given[1])


def _http_request(path: str, target: str) -> str:
    """A request after whose answer the server closes."""
    host = (target.partition("://")[2] or target).removesuffix("/")
    if not path.startswith("/") or any(ord(letter) <= ord(" ") for letter in path + host):
        raise InputError(f'"{path[:60]}" is no path; accepted: /, /index.html and the like')
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
