"""Every command that prints figures, as a function: what `shakedown.measure`, `shakedown.predict` … are.

They take and return the objects of `shakedown.schema`, which show themselves in a few lines; what goes wrong
raises `ShakedownError`, wrong input `InputError`. Each loads what it needs when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from shakedown.errors import InputError, os_reason
from shakedown.scenario import DEFAULT_BEARER, DEFAULT_DEVICE, DEFAULT_SERVER_DEVICE

if TYPE_CHECKING:
    from shakedown.core import Inspection
    from shakedown.results.folder import Results
    from shakedown.scenario import HandshakeId, Options
    from shakedown.schema.aka import AttachRun
    from shakedown.schema.bearer import BearerCheck
    from shakedown.schema.catalogue import StackEntry, SuiteEntry
    from shakedown.schema.eap import Authentications
    from shakedown.schema.live import Arrivals, LoadProgress, LoadRun
    from shakedown.schema.measured import Machine, Measurement
    from shakedown.schema.primitives import Timing
    from shakedown.schema.simulated import FailedSimulation, Simulated
    from shakedown.serving import Server


def suites(*words: str, all: bool = False) -> list[SuiteEntry]:
    """Suites that can be run, whose names hold all of the words; with `all`, those that cannot too."""
    from shakedown import core

    return [entry for entry in core.suites(all=all) if all_in(words, entry.suite)]


def all_in(words: Iterable[str], text: str) -> bool:
    """Whether a text holds every word."""
    return not [word for word in words if word not in text]


def stacks() -> list[StackEntry]:
    """The implementations that run suites."""
    from shakedown import core

    return core.stacks()


def machine() -> Machine:
    """What this machine is: the provenance of every figure measured here."""
    from shakedown import core

    return core.machine()


def measure(
    suite: str,
    repeat: int | None = None,
    *,
    stack: str | None = None,
    client_stack: str | None = None,
    server_stack: str | None = None,
    samples: bool = False,
    transfer_bytes: Sequence[int] = (),
    link: str = "open",
    progress: Callable[[int], None] | None = None,
    **options: object,
) -> Measurement:
    """Runs a suite's handshake `repeat` times in memory and says what each part of it cost.

    Args:
        suite: its name; with user-supplied certificates the result's is that of their keys.
        repeat: handshakes; 30 where it is left out.
        stack, client_stack, server_stack: which implementations run both sides, or one; the suite's usual
        one. samples: keep every repetition's figure beside the medians.
        transfer_bytes: after the handshake, transfer as many bytes from server to client, each in turn.
        link: what lies under a transfer: `open`, or `wep`, which encrypts every frame.
        progress: called with the number of repetitions done. Ctrl-C stops it.
        **options: those of `shakedown.scenario.Options`: `seed`, `now`, `tickets`, `profile`, files of
            certificates (`chain`, `key`, `ca`, `client_chain` …), `certificate_form`, `private_curves`.

    Raises:
        InputError: for names that name nothing, options that don't go together, certificates that are no
        good. ShakedownError: for a debug build, whose times mean nothing.
        CoreError: the core's own, where the handshake failed (`HandshakeFailed`) or cannot run here
            (`Unsupported`).
    """
    from shakedown.scenario import options_of

    given = {**options, **({} if repeat is None else {"repeat": repeat})}
    chosen = options_of(given).checked()
    if chosen.user_supplied:
        suite, _ = named_by_chain(suite, chosen)
    handshake = identity(suite, chosen, client_stack or stack, server_stack or stack)
    return measure_one(
        handshake, chosen, samples=samples, transfer_bytes=transfer_bytes, link=link, progress=progress
    )


def identity(
    suite: str, options: Options, client_stack: str | None = None, server_stack: str | None = None
) -> HandshakeId:
    """The identity under which a suite is measured. Raises `InputError` for stacks that there are not."""
    from shakedown.scenario import HandshakeId

    for name in (client_stack, server_stack):
        if name is not None:
            check_stack(name)
    return HandshakeId(
        suite=suite,
        client_stack=client_stack,
        server_stack=server_stack,
        carrier=options.over or "bare",
        credentials="user-supplied" if options.user_supplied else "generated",
    )


def check_stack(name: str) -> None:
    """Raises `InputError` for a stack that there is not."""
    from shakedown import core
    from shakedown.errors import did_you_mean

    known = [one.name for one in core.stacks()]
    if name not in known:
        hint = did_you_mean(name, known) or f"; accepted: {', '.join(known)}"
        raise InputError(f'there is no stack "{name}"{hint}')


def named_by_chain(suite: str, options: Options) -> tuple[str, list[str]]:
    """The suite's name with the keys of user-supplied certificates, and remarks on them. Raises
    `InputError`.
    """
    from shakedown import core

    named = core.named_by_chain(suite, options)
    if options.certificate_form and set(core.presenting(suite)) <= set(options.user_supplied):
        raise InputError(
            f"{suite}: a certificate form is for generated certificates, and all that this suite presents "
            "are yours; accepted: one or the other"
        )
    return named


def measure_one(
    handshake: HandshakeId,
    options: Options,
    *,
    samples: bool = False,
    transfer_bytes: Sequence[int] = (),
    link: str = "open",
    progress: Callable[[int], None] | None = None,
) -> Measurement:
    """As `measure`, of a handshake that is checked and named already."""
    import msgspec

    from shakedown import core
    from shakedown.kinds.measured import without_samples

    for size in transfer_bytes:
        if not 1 <= size <= 1 << 30:
            raise InputError(f"a transfer of {size} bytes; accepted: from 1 to {1 << 30:,}")
    found = core.measure(handshake, options, progress=progress)
    if transfer_bytes:
        moved = core.transfers(handshake, transfer_bytes, link=link, options=options)
        found = msgspec.structs.replace(found, transfers=tuple(moved))
    return found if samples else without_samples(found)


def capture(
    suites: Sequence[str],
    path: str | Path,
    *,
    keylog: str | Path | None = None,
    replace: bool = False,
    **options: object,
) -> None:
    """Writes one handshake of each suite into a capture, and their secrets into a key log.

    `options` are those of `measure`. Neither file may exist, unless `replace`. Raises `InputError`.
    """
    from shakedown.scenario import options_of

    chosen = options_of(options).checked()
    names = [named_by_chain(suite, chosen)[0] if chosen.user_supplied else suite for suite in suites]
    write_capture([identity(name, chosen) for name in names], Path(path), keylog, chosen, replace=replace)


def write_capture(
    handshakes: Sequence[HandshakeId],
    path: Path,
    keylog: str | Path | None,
    options: Options,
    *,
    replace: bool,
) -> None:
    """As `capture`, of handshakes that are checked and named already."""
    import tempfile

    from shakedown import core
    from shakedown.errors import ShakedownError, without_codes
    from shakedown.files.write import check_free, write

    check_free(path, replace)
    targets = {path: replace}
    if keylog is not None:
        # A key log is never replaced: other programs' secrets may be in it.
        check_free(Path(keylog), accepted="another name")
        targets[Path(keylog)] = False
    # The core writes into a folder of its own; what comes out takes its name once it is whole.
    with tempfile.TemporaryDirectory(prefix="shakedown-") as folder:
        drafts = [Path(folder) / f"{number}{target.suffix}" for number, target in enumerate(targets)]
        keys = drafts[1] if len(drafts) > 1 else None
        try:
            core.capture(handshakes, drafts[0], keylog=keys, options=options)
        except core.native().CaptureError as error:
            raise ShakedownError(without_codes(str(error))) from error
        for draft, (target, may_replace) in zip(drafts, targets.items(), strict=True):
            write(target, draft.read_bytes(), replace=may_replace)


def primitives(
    *words: str,
    seconds: float = 1.0,
    back_to_back: bool = False,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Timing]:
    """Times every primitive that the suites use, or those whose names the words begin; see
    `core.primitives`.
    """
    from shakedown import core

    return core.primitives(filter=words, seconds=seconds, back_to_back=back_to_back, progress=progress)


def load(
    target: str,
    suite: str | None = None,
    *,
    rate_per_s: float | None = None,
    arrivals: Arrivals = "poisson",
    duration_s: float = 10.0,
    max_starts: int | None = None,
    clients: int = 16,
    resume_ratio: float = 0.0,
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
    may_load: str | None = None,
    rate_cap: bool = True,
    background_per_s: float | None = None,
    traces: int = 0,
    traces_out: str | Path | None = None,
    server_traces: str | Path | None = None,
    slow_to: str | None = None,
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
        resume_ratio: share of connections that resume a session.
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
        may_load: a host that is not this machine and may be loaded.
        rate_cap: keep such a host below 50 starts a second.
        background_per_s: starts a second, at exponential gaps, of a load beside the measured one.
        traces: handshakes that are sampled, spread evenly over the run; all run instrumented then.
        traces_out: a file for the clients' halves of them, as lines of JSON.
        server_traces: the file of the server's halves, as `serve --traces` writes it on this machine.
        slow_to: a device; clients take as many times as long as its profile says, by waiting.
        generators: machines that share the load, as `shakedown.cluster.Generators`; None: this process.
        progress: told about ten times a second how far it is. Ctrl-C ends the run early.

    Raises:
        InputError: for a target, a suite or options that are no good, and hosts that may not be loaded.
    """
    import msgspec

    from shakedown import core
    from shakedown.files.read import check_readable
    from shakedown.requirements import parse
    from shakedown.schema.base import encode
    from shakedown.schema.live import LoadRun, Requirement
    from shakedown.time_spent import read_halves, time_spent

    for file in (client_chain, client_key, server_traces):
        if file is not None:
            check_readable(file)
    thresholds = [parse(text) for text in requirements]
    name = None if suite is None else core.canonical(suite)
    options = {"client_stack": client_stack, "client_chain": client_chain, "client_key": client_key}
    if not traces and (traces_out is not None or server_traces is not None):
        raise InputError("no handshakes are sampled; accepted with files of traces: a number of traces")
    known = None if traces_out is None else _writable(Path(traces_out))
    slowdown = None if slow_to is None else _slowdown(slow_to, name, client_stack, client_chain, client_key)
    config = {
        "target": target,
        "arrivals": arrivals,
        "rate_per_s": rate_per_s,
        "duration_s": duration_s,
        "max_starts": max_starts,
        "clients": clients,
        "resume_ratio": resume_ratio,
        "seed": seed,
        "timeout_s": timeout_s,
        "max_open": max_open,
        "request": None if http is None else _http_request(http, server_name or target),
        "await_first_byte": await_first_byte,
        "ca": ca,
        "server_name": server_name,
        "check": check,
        "may_load": may_load,
        "rate_cap": rate_cap,
        "background_per_s": background_per_s,
        "traces": traces,
        "slowdown": slowdown,
    }
    if generators is None:
        outcome = core.load(config, name, options, progress)
    else:
        shares = _shares(config, generators.count())
        outcome = core.merge_loads(
            generators.results([partial(core.load_part, share, name, options) for share in shares])
        )
    if known is not None:
        known.write_bytes(b"".join(encode(one) + b"\n" for one in outcome.traces.kept))
    figures = msgspec.structs.asdict(outcome)
    del figures["traces"]
    return LoadRun(
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
        slow_to=slow_to,
        slowdown=slowdown,
        time_spent=time_spent(
            outcome.traces,
            () if server_traces is None else read_halves(Path(server_traces)),
            slow_to=slow_to,
            slowdown=slowdown,
        ),
    )


class Generators(Protocol):
    """Machines or processes that load a server together."""

    def count(self) -> int:
        """How many there are."""

    def results(self, jobs: Sequence[Callable[[], dict[str, Any]]]) -> list[dict[str, Any]]:
        """Runs a job on each, all at once."""


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
        for name in ("clients", "max_starts", "traces"):
            share[name] = part(config[name], index)
        # Each draws arrivals of its own.
        shares.append(share | {"seed": (config["seed"] + index * 1_000_003) % 2**53, "generators": count})
    return shares


def _writable(path: Path) -> Path:
    """A file that can be written; raises `InputError` before anything runs."""
    try:
        path.touch()
    except OSError as error:
        raise InputError(f'"{path}" cannot be written: {os_reason(error)}') from error
    return path


def _slowdown(
    device: str,
    suite: str | None,
    stack: str | None,
    chain: str | Path | None,
    key: str | Path | None,
) -> float:
    from shakedown.pricing.slowdown import slowdown

    if suite is None:
        raise InputError(
            "a slowed client's time is that of a suite; accepted with a device to slow to: a SUITE"
        )
    given = [None if one is None else str(one) for one in (chain, key)]
    return slowdown(device, suite, client_stack=stack, client_chain=given[0], client_key=given[1])


def _http_request(path: str, target: str) -> str:
    """A request after whose answer the server closes."""
    host = target.partition("://")[2] or target
    if not path.startswith("/") or any(ord(letter) <= ord(" ") for letter in path + host):
        raise InputError(f'"{path[:60]}" is no path; accepted: /, /index.html and the like')
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"


def inspect(
    path: str | Path,
    keylog: str | Path | None = None,
    *,
    progress: Callable[[int], None] | None = None,
) -> Inspection:
    """Opens a capture and reads it as it is iterated over, in bounded memory: its connections as they end.

    Each item has `connection`: an object with messages, flights and bytes; `trace`: what `predict` can use,
    or None, and then `refused`: why not. After the last, the iterator's `summary` says what the file held,
    and `problem` why reading ended before the end of the file, else None. `progress` is called with the
    number of bytes read. Raises `InputError` where nothing could be read.
    """
    from shakedown import core

    return core.inspect(path, keylog, progress=progress)


def predict(
    suites: str | Sequence[str],
    *,
    device: str = DEFAULT_DEVICE,
    server_device: str = DEFAULT_SERVER_DEVICE,
    bearer: str = DEFAULT_BEARER,
    rate_per_s: float = 0.0,
    model: str = "default",
    workers: int = 1,
    traces: str | Path | None = None,
    scale_from: str | None = None,
    over: str = "bare",
    fragment_bytes: int | None = None,
    radius_hop_s: float | None = None,
) -> list[Any]:
    """What handshakes cost elsewhere: a row a suite, priced from recorded traces and profiles.

    `traces` is a file that `measure --json` or `inspect --traces` wrote; left out, the library that comes
    along. See `shakedown.pricing.predict.predict`.
    """
    from shakedown.pricing import predict as pricing

    return list(
        pricing.predict(
            _several(suites),
            device=device,
            server_device=server_device,
            bearer=bearer,
            rate_per_s=rate_per_s,
            model=model,
            workers=workers,
            traces=_library(traces),
            scale_from=scale_from,
            over=over,
            fragment_bytes=fragment_bytes,
            radius_hop_s=radius_hop_s,
        )
    )


def capacity(
    suites: str | Sequence[str],
    *,
    within_s: float,
    device: str = DEFAULT_DEVICE,
    server_device: str = DEFAULT_SERVER_DEVICE,
    bearer: str = DEFAULT_BEARER,
    percentile: float | None = None,
    workers: int = 1,
    traces: str | Path | None = None,
    scale_from: str | None = None,
) -> list[Any]:
    """The highest rate at which handshakes stay within a promised time: a row a suite.

    See `predict`, and `shakedown.pricing.predict.capacity`.
    """
    from shakedown.pricing import predict as pricing

    return list(
        pricing.capacity(
            _several(suites),
            within_s=within_s,
            device=device,
            server_device=server_device,
            bearer=bearer,
            percentile=percentile,
            workers=workers,
            traces=_library(traces),
            scale_from=scale_from,
        )
    )


def serve(
    suites: Sequence[str], listen: str = "127.0.0.1:0", *, stack: str | None = None, **settings: object
) -> Server:
    """Starts a server of `suites`: as a context manager it stops in good order at the end of the block.

    Args:
        suites: what it serves at one address.
        listen: `HOST:PORT`; port 0 is any that is free, which `Server.address` then names.
        stack: which implementation serves.
        settings: as `shakedown.serving.start` takes them.

    Raises:
        InputError: also where the address is taken, or a suite cannot be served.
    """
    from shakedown.serving import start

    return start(suites, listen, stack=stack, **cast(Any, settings))


def check_bearer(name: str, *, seed: int = 0, seconds: float = 5.0) -> BearerCheck:
    """Measures an emulated bearer with packets of its own, and holds it against its profile.

    Args:
        name: the bearer's profile.
        seed: names every random draw of the bearer.
        seconds: for each of three parts: delay, rate up, rate down.

    Raises:
        ShakedownError: for an unknown bearer, and where namespaces cannot be made, with what to enable.
    """
    from shakedown.live.bearer import check
    from shakedown.profiles.registry import load_bearer

    return check(load_bearer(name), seed=seed, seconds=seconds)


def authenticate(
    server: str,
    secret: str,
    suite: str,
    *,
    count: int = 1,
    rate_per_s: float | None = None,
    in_flight: int | None = None,
    identity: str = "anonymous@shakedown.test",
    resume: bool = False,
    timeout_s: float = 10.0,
    chain: str | Path | None = None,
    key: str | Path | None = None,
    ca: str | Path | None = None,
    password: str | None = None,
    fragment: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Authentications:
    """Authenticates by EAP-TLS against a RADIUS server; what failed is counted by its cause.

    Args:
        server: `ADDRESS:PORT`.
        secret: what access point and server share.
        suite: what is negotiated.
        count: how many authentications.
        rate_per_s: starts a second, whatever becomes of those before; None: one after the other.
        in_flight: the most at a time.
        identity: the name in the clear.
        resume: one full authentication first, uncounted; the others resume its session.
        timeout_s: the longest wait for the answer to a request.
        chain, key, password: what the peer presents, where it is not generated.
        ca: the root that the peer trusts.
        fragment: TLS bytes in an EAP packet.
        progress: told how many are done.

    Raises:
        InputError: for a suite, files or numbers that are no good.
    """
    from shakedown import core

    found, _ = core.eap_peer(
        {
            "address": server, "secret": secret, "suite": suite, "chain": chain, "key": key, "ca": ca,
            "password": password, "fragment": fragment,
        },
        identity=identity,
        count=count,
        rate_per_s=rate_per_s,
        in_flight=in_flight,
        resume=resume,
        timeout_s=timeout_s,
        progress=progress,
    )  # fmt: skip
    return found


def attach(
    suite: str | None = None,
    *,
    device: str = DEFAULT_DEVICE,
    server_device: str = DEFAULT_SERVER_DEVICE,
    bearer: str = DEFAULT_BEARER,
    traces: str | Path | None = None,
    scale_from: str | None = None,
    samples: bool = False,
    progress: Callable[[int], None] | None = None,
    **attaching: float,
) -> AttachRun:
    """Attaches mobiles by SSL-based AKA in virtual time; the same arguments give the same result.

    `attaching` are the fields of `simulation.attaches.Attaching`: `attaches`, `mobiles`, `gap_s`, `roaming`,
    `moves`, `background_per_s`, `workers`, `max_resumptions`, `max_age_s`, `seed` and others. Raises
    `InputError`.
    """
    from shakedown.simulation.attaches import DEFAULT_SUITE, Attaching, simulate_attaches

    known = Attaching.__dataclass_fields__
    for name in attaching:
        if name not in known:
            raise InputError(f"there is no option {name}; accepted: {', '.join(known)}")
    return simulate_attaches(
        DEFAULT_SUITE if suite is None else suite,
        Attaching(**attaching),  # type: ignore[arg-type]  # checked when it is used
        device=device,
        server_device=server_device,
        bearer=bearer,
        traces=_library(traces),
        scale_from=scale_from,
        samples=samples,
        progress=progress,
    )


def simulate(
    suites: str | Sequence[str],
    arrivals: str = "poisson:10/s",
    *,
    clients: int | None = None,
    device: str = DEFAULT_DEVICE,
    server_device: str = DEFAULT_SERVER_DEVICE,
    bearer: str = DEFAULT_BEARER,
    workers: int = 1,
    seed: int | None = None,
    timeout_s: float | None = None,
    retries: int | None = None,
    resumption: float = 0.0,
    from_idle: bool = False,
    discipline: Literal["fifo", "ps"] = "fifo",
    max_handshakes: int | None = None,
    accept_queue: int | None = None,
    replications: int | None = None,
    traces: str | Path | None = None,
    scale_from: str | None = None,
    endpoints: bool = False,
    client_stack: str | None = None,
    server_stack: str | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Simulated | FailedSimulation]:
    """A fleet of clients in virtual time: a row a suite, the same for the same seed.

    `arrivals` is `poisson:50/s`, `fixed:50/s`, `bursts:100@2/min`, `storm:10s`, `storm:10s+backoff` or
    `file:PATH`; the others are the options of the command `simulate`. With `endpoints` protocol engines of
    these stacks shake hands instead of a replay. Raises `InputError`.
    """
    from shakedown.scenario import Fleet
    from shakedown.simulation.simulate import Stacks
    from shakedown.simulation.simulate import simulate as run

    fleet = Fleet(
        arrivals=arrivals,
        clients=clients,
        timeout_s=timeout_s,
        retries=retries,
        resumption=resumption,
        from_idle=from_idle,
        discipline=discipline,
        max_handshakes=max_handshakes,
        accept_queue=accept_queue,
        replications=replications,
    )
    return run(
        _several(suites),
        fleet,
        device=device,
        server_device=server_device,
        bearer=bearer,
        workers=workers,
        seed=seed,
        traces=_library(traces),
        scale_from=scale_from,
        endpoints=Stacks(client_stack, server_stack) if endpoints else None,
        progress=progress,
    )


def _several(suites: str | Sequence[str]) -> list[str]:
    return [suites] if isinstance(suites, str) else list(suites)


def _library(traces: str | Path | None) -> Any:  # noqa: ANN401 - pricing is imported late
    from shakedown.pricing.library import open_library

    return open_library(None if traces is None else Path(traces))


def devices(*names: str) -> list[Any]:
    """Device profiles: those of these names, or paths; without any, all."""
    from shakedown.profiles import device_names, load_device

    return [load_device(name) for name in names or device_names()]


def bearers(*names: str) -> list[Any]:
    """Bearer profiles: those of these names, or paths; without any, all."""
    from shakedown.profiles import bearer_names, load_bearer

    return [load_bearer(name) for name in names or bearer_names()]


def reproduce(
    paper: str = "all",
    *,
    repeat: int = 30,
    measured: str | Path | None = None,
    measure: bool = True,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Any]:
    """Repeats founding papers: their tables, figures and claims, beside what the same handshakes cost here.

    `measured` is a file of figures that were measured before (`measured.jsonl`); with `measure=False` all is
    computed from the papers' own inputs. Raises `InputError`.
    """
    from shakedown import papers
    from shakedown.papers import replication

    known = None if measure else replication.Replication()
    if measured is not None:
        known = replication.load(Path(measured))
    return papers.reproduce(papers.names(paper), repeat=repeat, measured=known, progress=progress)


def certs(do: str, **request: object) -> list[Any]:
    """Makes, issues or describes certificates: `do` is `show`, `make`, `issue` or `profiles`.

    The fields of a request are the options of the command: `certs("show", files=["chain.pem"])`,
    `certs("make", keys="p256@rsa2048", out="folder")`. Returns objects of `shakedown.schema.certificates`.
    Raises `InputError`.
    """
    import time

    from shakedown import core
    from shakedown.schema import convert
    from shakedown.schema.certificates import CertificateProfile, DescribedFile, MadeChain

    kinds = {"show": DescribedFile, "make": MadeChain, "issue": MadeChain, "profiles": CertificateProfile}
    if do not in kinds:
        raise InputError(f'"{do}" is nothing that certs does; accepted: {", ".join(kinds)}')
    now = {} if do == "profiles" else {"now": int(time.time())}
    given = {key: value for key, value in request.items() if value is not None}
    found = core.certs({"do": do, **now, **given})
    return convert(found, list[kinds[do]])  # type: ignore[valid-type]  # the types of a table


def report(results: Results | str | Path, path: str | Path | None = None, *, replace: bool = False) -> Path:
    """Writes results, or a folder of them, as a page with its figures; returns where it is.

    Left out, `path` is the folder's own `report.html`. Raises `InputError`.
    """
    from shakedown.kinds import reported
    from shakedown.reporting import write_report

    loaded = load_any(results) if isinstance(results, (str, Path)) else results
    if path is None:
        if loaded.folder is None:
            raise InputError("results that are in no folder need a path for their page")
        path = loaded.folder / "report.html"
    return write_report(loaded, path, reported(), replace=replace)


def load_any(path: str | Path) -> Results:
    """A results folder, or a file that `measure --json` or `inspect --traces` wrote. Raises `InputError`."""
    from shakedown.kinds.unsaved import results_of_json
    from shakedown.results.folder import load_results

    return load_results(path) if not Path(path).exists() or Path(path).is_dir() else results_of_json(path)
