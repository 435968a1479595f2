"""Every command that prints figures, as a function: what `shakedown.measure`, `shakedown.predict` … are.

They take and return the objects of `shakedown.schema`, which show themselves in a few lines; what goes wrong
raises `ShakedownError`, wrong input `InputError`. Each loads what it needs when it is called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from shakedown.errors import InputError
from shakedown.native.scenario import DEFAULT_BEARER, DEFAULT_DEVICE, DEFAULT_SERVER_DEVICE
from shakedown.schema.arguments import check, check_fields, checked, profile_name, several

if TYPE_CHECKING:
    from shakedown.experiments.file import Experiment
    from shakedown.native.scenario import HandshakeId, Options
    from shakedown.native.serving import Server
    from shakedown.results.folder import Results
    from shakedown.schema.aka import AttachRun, LiveAttaches
    from shakedown.schema.bearer import BearerCheck, MeasuredPath
    from shakedown.schema.catalogue import SuiteEntry
    from shakedown.schema.eap import Authentications
    from shakedown.schema.live import LiveRun
    from shakedown.schema.measured import Measurement
    from shakedown.schema.primitives import Timing
    from shakedown.schema.simulated import FailedSimulation, Simulated, SimulatedMix
    from shakedown.simulation.mix import Kind


@checked
def suites(*words: str, all: bool = False) -> list[SuiteEntry]:
    """Suites that can be run, whose names hold all of the words; with `all`, those that cannot too."""
    from shakedown import native

    return [entry for entry in native.suites(all=all) if all_in(words, entry.suite)]


def all_in(words: Iterable[str], text: str) -> bool:
    """Whether a text holds every word."""
    return not [word for word in words if word not in text]


@checked
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
        **options: those of `shakedown.native.scenario.Options`: `seed`, `now`, `tickets`, `profile`, files of
            certificates (`chain`, `key`, `ca`, `client_chain` …), `certificate_form`, `private_curves`.

    Raises:
        InputError: for names that name nothing, options that don't go together, certificates that are no
        good. ShakedownError: for a debug build, whose times mean nothing.
        CoreError: the core's own, where the handshake failed (`HandshakeFailed`) or cannot run here
            (`Unsupported`).
    """
    from shakedown.native.scenario import options_of

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
    from shakedown.native.scenario import HandshakeId

    for name in (client_stack, server_stack):
        if name is not None:
            check_stack(name)
    return HandshakeId(
        suite=suite,
        client_stack=client_stack,
        server_stack=server_stack,
        carrier=options.carrier or "bare",
        credentials="user-supplied" if options.user_supplied else "generated",
    )


def check_stack(name: str) -> None:
    """Raises `InputError` for a stack that there is not."""
    from shakedown import native
    from shakedown.errors import did_you_mean

    known = [one.name for one in native.stacks()]
    if name not in known:
        hint = did_you_mean(name, known) or f"; accepted: {', '.join(known)}"
        raise InputError(f'there is no stack "{name}"{hint}')


def named_by_chain(suite: str, options: Options) -> tuple[str, list[str]]:
    """The suite's name with the keys of user-supplied certificates, and remarks on them. Raises
    `InputError`.
    """
    from shakedown import native

    named = native.named_by_chain(suite, options)
    if options.certificate_form and set(native.presenting(suite)) <= set(options.user_supplied):
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

    from shakedown import native
    from shakedown.experiments.figure_kinds.measured import without_samples

    for size in transfer_bytes:
        if not 1 <= size <= 1 << 30:
            raise InputError(f"a transfer of {size} bytes; accepted: from 1 to {1 << 30:,}")
    found = native.measure(handshake, options, progress=progress)
    if transfer_bytes:
        moved = native.transfers(handshake, transfer_bytes, link=link, options=options)
        found = msgspec.structs.replace(found, transfers=tuple(moved))
    return found if samples else without_samples(found)


@checked
def capture(
    suites: str | Sequence[str],
    path: str | Path,
    *,
    keylog: str | Path | None = None,
    replace: bool = False,
    **options: object,
) -> None:
    """Writes one handshake of each suite into a capture, and their secrets into a key log.

    `options` are those of `measure`. Neither file may exist; the capture may, with `replace`. Raises
    `InputError`.
    """
    from shakedown import native
    from shakedown.native.scenario import options_of

    chosen = options_of(options).checked()
    names = [
        named_by_chain(suite, chosen)[0] if chosen.user_supplied else native.canonical(suite)
        for suite in several(suites)
    ]
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

    from shakedown import native
    from shakedown.errors import ShakedownError, without_codes
    from shakedown.files.write import check_distinct, check_free, write

    check_free(path, replace)
    targets = [(path, replace)]
    if keylog is not None:
        # A key log is never replaced: other programs' secrets may be in it.
        check_free(Path(keylog), accepted="another name")
        targets.append((Path(keylog), False))
    check_distinct([target for target, _ in targets], options.files())
    # The core writes into a folder of its own; what comes out takes its name once it is whole.
    with tempfile.TemporaryDirectory(prefix="shakedown-") as folder:
        drafts = [Path(folder) / f"{number}{target.suffix}" for number, (target, _) in enumerate(targets)]
        keys = drafts[1] if len(drafts) > 1 else None
        try:
            native.capture(handshakes, drafts[0], keylog=keys, options=options)
        except native.extension().CaptureError as error:
            raise ShakedownError(without_codes(str(error))) from error
        for draft, (target, may_replace) in zip(drafts, targets, strict=True):
            write(target, draft.read_bytes(), replace=may_replace)


@checked
def primitives(
    *words: str,
    seconds: float = 1.0,
    back_to_back: bool = False,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Timing]:
    """Times every primitive that the suites use, or those whose names the words begin; see
    `native.primitives`.
    """
    from shakedown import native

    return native.primitives(filter=words, seconds=seconds, back_to_back=back_to_back, progress=progress)


@checked
def serve(
    suites: str | Sequence[str], listen: str = "127.0.0.1:0", *, stack: str | None = None, **settings: object
) -> Server:
    """Starts a server of `suites`: as a context manager it stops in good order at the end of the block.

    Args:
        suites: what it serves at one address.
        listen: `HOST:PORT`; port 0 is any that is free, which `Server.address` then names.
        stack: which implementation serves.
        settings: as `shakedown.native.serving.start` takes them.

    Raises:
        InputError: also where the address is taken, or a suite cannot be served.
    """
    from shakedown.native.serving import start

    return start(several(suites), listen, stack=stack, **cast(Any, settings))


@checked
def check_bearer(name: str | Path, *, seed: int = 0, seconds: float = 5.0) -> BearerCheck:
    """Measures an emulated bearer with packets of its own, and compares it with its profile.

    Args:
        name: the bearer's profile.
        seed: names every random draw of the bearer.
        seconds: for each of three parts: delay, rate up, rate down.

    Raises:
        ShakedownError: for an unknown bearer, and where namespaces cannot be made, with what to enable.
    """
    from shakedown.live.bearer import check
    from shakedown.profiles.registry import load_bearer

    return check(load_bearer(profile_name(name)), seed=seed, seconds=seconds)


@checked
def measure_path(
    target: str,
    profile: str | Path | None = None,
    *,
    name: str = "measured",
    replace: bool = False,
    seconds: float = 5.0,
) -> MeasuredPath:
    """Measures the path to a reflector (`shakedown bearer measure --reflect`) and writes it as a profile.

    Args:
        target: the reflector's HOST:PORT.
        profile: the profile's file; left out, NAME.toml among the user's own profiles.
        name: of the profile.
        replace: a file that is there.
        seconds: for each of three parts: round trips, rate up, rate down.

    Raises:
        InputError: for an address or a name that is none, and a file that is there.
        ShakedownError: where the reflector does not answer.
    """
    import re
    from datetime import date

    from shakedown.files.write import check_free, write
    from shakedown.live import path_probe
    from shakedown.live.measured_profile import profile_text, quantile
    from shakedown.profiles.registry import user_data_dir
    from shakedown.schema.bearer import MeasuredPath, Percentiles

    if re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name) is None:
        raise InputError(f"name is {name!r}; accepted: small letters, digits, dots, hyphens")
    if not 0.5 <= seconds <= 30.0:
        raise InputError(f"seconds is {seconds}; accepted: from 0.5 to 30")
    host, port = path_probe.address(target)
    file = user_data_dir() / "bearers" / f"{name}.toml" if profile is None else Path(profile)
    if profile is None:
        file.parent.mkdir(parents=True, exist_ok=True)
    check_free(file, replace)
    found = path_probe.measure(host, port, seconds=seconds)
    text = profile_text(found, name=name, target=target, date=date.today().isoformat())
    write(file, text, replace=replace)
    trips_s = sorted(found.round_trips_s)
    return MeasuredPath(
        target=target,
        pings=found.pings,
        round_trip_s=Percentiles(
            min=trips_s[0], p50=quantile(trips_s, 0.5), p95=quantile(trips_s, 0.95), max=trips_s[-1]
        ),
        up_bits_per_s=found.up_bits_per_s,
        down_bits_per_s=found.down_bits_per_s,
        loss_up=found.loss_up,
        loss_down=found.loss_down,
        mtu_bytes=found.mtu_bytes,
        profile=str(file),
    )


@checked
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
    from shakedown import native

    found, _ = native.eap_peer(
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


@checked
def attach(
    suite: str | None = None,
    *,
    device: str | Path = DEFAULT_DEVICE,
    server_device: str | Path = DEFAULT_SERVER_DEVICE,
    bearer: str | Path = DEFAULT_BEARER,
    traces: str | Path | None = None,
    scale_from: str | Path | None = None,
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

    check_fields(attaching, Attaching)
    return simulate_attaches(
        DEFAULT_SUITE if suite is None else suite,
        Attaching(**attaching),  # type: ignore[arg-type]  # checked when it is used
        device=profile_name(device),
        server_device=profile_name(server_device),
        bearer=profile_name(bearer),
        traces=_library(traces),
        scale_from=profile_name(scale_from),
        samples=samples,
        progress=progress,
    )


@checked
def attach_live(
    sgsns: str | Sequence[str],
    card: str | Path,
    *,
    serving: str = "20801",
    attaches: int = 1,
    gap_s: float = 0.0,
    timeout_s: float = 60.0,
    data: str | None = None,
    samples: bool = False,
    progress: Callable[[int], None] | None = None,
) -> LiveAttaches:
    """Attaches to SGSNs on sockets (ADDR:PORT, in turn), each time with what the last attach left.

    `card` is what `aka provision` wrote; `serving` the network of the SGSNs; `data` is sent under the derived
    keys, and the SGSN returns it. Failed attaches are counted by cause. Raises `InputError`.
    """
    from shakedown.simulation import attaches as attaching

    if timeout_s <= 0.0:
        raise InputError("timeout_s: 0; accepted: a time above 0")
    found, _ = attaching.attach_live(
        {
            "sgsns": several(sgsns),
            "serving": serving,
            "card": Path(card),
            "attaches": attaches,
            "gap_s": gap_s,
            "timeout_s": timeout_s,
            "data": data,
        },
        samples=samples,
        progress=progress or (lambda done: None),
    )
    return found


@checked
def compare_live(
    experiment: Experiment | str | Path,
    *,
    rate_per_s: float | None = None,
    time_s: float = 20.0,
    endpoints: bool = False,
    folder: str | Path | None = None,
) -> list[LiveRun]:
    """Lays handshakes modelled, simulated and live side by side, as `validate --live` does.

    Each suite is measured in memory, then served to a load on this machine's loopback. What fails is left
    out.

    Args:
        experiment: read already, or its file.
        rate_per_s: handshakes that are started a second; left out, the experiment's.
        time_s: how long all loads take together.
        endpoints: the protocol engines in virtual time, too.
        folder: keeps the results there.

    Raises:
        InputError: where there is nothing to compare.
    """
    from tempfile import TemporaryDirectory

    from shakedown.experiments.figure_kinds import load_experiment
    from shakedown.experiments.figure_kinds.live import compared
    from shakedown.experiments.runner import run_experiment
    from shakedown.schema.live import LiveRun

    wanted = load_experiment(experiment) if isinstance(experiment, str | Path) else experiment
    wanted = compared(wanted, rate_per_s, time_s, endpoints=endpoints)
    found: list[LiveRun] = []
    with TemporaryDirectory() as temporary:
        run_experiment(
            wanted,
            Path(temporary) / "results" if folder is None else folder,
            printed=lambda one: found.append(one) if isinstance(one, LiveRun) else None,
        )
    return found


@checked
def simulate(
    suites: str | Sequence[str],
    arrivals: str = "poisson:10/s",
    *,
    clients: int | None = None,
    device: str | Path = DEFAULT_DEVICE,
    server_device: str | Path = DEFAULT_SERVER_DEVICE,
    bearer: str | Path = DEFAULT_BEARER,
    server_workers: int = 1,
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
    scale_from: str | Path | None = None,
    endpoints: bool = False,
    client_stack: str | None = None,
    server_stack: str | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Simulated | FailedSimulation]:
    """A fleet of clients in virtual time: a row a suite, the same for the same seed.

    `arrivals` is `poisson:50/s`, `deterministic:50/s`, `bursts:100@2/min`, `storm:10s`, `storm:10s+backoff`
    or `file:PATH`; the others are the options of the command `simulate`. With `endpoints` protocol engines of
    these stacks shake hands instead of a replay. Raises `InputError`.
    """
    from shakedown.native.scenario import Fleet
    from shakedown.simulation.deployment import Site
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
    site = Site(
        profile_name(device),
        profile_name(server_device),
        profile_name(bearer),
        server_workers,
        seed,
        _library(traces),
        profile_name(scale_from),
    )
    engines = Stacks(client_stack, server_stack) if endpoints else None
    return run(several(suites), fleet, site, endpoints=engines, progress=progress)


@checked
def simulate_mix(
    mix: str | Path | Sequence[Kind],
    arrivals: str = "poisson:10/s",
    *,
    progress: Callable[[int, int], None] | None = None,
    **options: object,
) -> SimulatedMix:
    """A fleet of several kinds of clients at one server, in virtual time; the same for the same seed.

    `mix` is a file of tables `[[clients]]`, or kinds of clients (`shakedown.simulation.mix.Kind`). The others
    are as in `simulate`, but for endpoints and their stacks: device, bearer and resumption hold for kinds
    that name none. Raises `InputError`.
    """
    from shakedown.native.scenario import Fleet
    from shakedown.schema.base import convert
    from shakedown.simulation.deployment import Site
    from shakedown.simulation.mix import read_mix
    from shakedown.simulation.mix import simulate_mix as run

    of_site = {name: options.pop(name) for name in Site.__dataclass_fields__ if name in options}
    of_fleet = set(Fleet.__struct_fields__) - {"arrivals", "endpoints", "mix"}
    for name in options:
        if name not in of_fleet:
            accepted = ", ".join(sorted(of_fleet | set(Site.__dataclass_fields__)))
            raise InputError(f"there is no option {name}; accepted: {accepted}")
    traces = of_site.pop("traces", None)
    check("traces", traces, "str | Path | None")
    for name in ("device", "server_device", "bearer", "scale_from"):
        if isinstance(of_site.get(name), Path):
            of_site[name] = profile_name(cast(Path, of_site[name]))
    check_fields(of_site, Site)
    of_site["traces"] = _library(cast("str | None", traces))
    return run(
        read_mix(mix) if isinstance(mix, str | Path) else mix,
        convert({"arrivals": arrivals, **options}, Fleet),
        Site(**cast(Any, of_site)),
        name=Path(mix).stem if isinstance(mix, str | Path) else "mix",
        progress=progress,
    )


def _library(traces: str | Path | None) -> Any:  # noqa: ANN401 - pricing is imported late
    from shakedown.prediction.library import opened

    return opened(traces)


@checked
def devices(*names: str | Path) -> list[Any]:
    """Device profiles: those of these names, or paths; without any, all that there are."""
    from shakedown.profiles import existing_device_names, load_device

    return [load_device(profile_name(name)) for name in names or existing_device_names()]


@checked
def bearers(*names: str | Path) -> list[Any]:
    """Bearer profiles: those of these names, or paths; without any, all."""
    from shakedown.profiles import bearer_names, load_bearer

    return [load_bearer(profile_name(name)) for name in names or bearer_names()]


@checked
def reproduce(
    paper: str = "all",
    *,
    repeat: int | None = None,
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
    repeat = papers.DEFAULT_REPEAT if repeat is None else repeat
    return papers.reproduce(papers.names(paper), repeat=repeat, measured=known, progress=progress)


@checked
def certs(do: str, **request: object) -> list[Any]:
    """Makes, issues or describes certificates: `do` is `show`, `make`, `issue` or `profiles`.

    The fields of a request are the options of the command: `certs("show", files=["chain.pem"])`,
    `certs("make", keys="p256@rsa2048", out="folder")`. Returns objects of `shakedown.schema.certificates`.
    Raises `InputError`.
    """
    import time

    from shakedown import native
    from shakedown.schema import convert
    from shakedown.schema.certificates import CertificateProfile, DescribedFile, GeneratedChain

    kinds = {
        "show": DescribedFile,
        "make": GeneratedChain,
        "issue": GeneratedChain,
        "profiles": CertificateProfile,
    }
    if do not in kinds:
        raise InputError(f'"{do}" is nothing that certs does; accepted: {", ".join(kinds)}')
    now = {} if do == "profiles" else {"now": int(time.time())}
    given = {key: _as_text(value) for key, value in request.items() if value is not None}
    if isinstance(given.get("files"), str):
        given["files"] = [given["files"]]
    found = native.certs({"do": do, **now, **given})
    return convert(found, list[kinds[do]])  # type: ignore[valid-type]  # the types of a table


def _as_text(value: object) -> object:
    """Paths, and those in a list, as text."""
    if isinstance(value, list | tuple):
        return [_as_text(one) for one in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value


@checked
def report(results: Results | str | Path, path: str | Path | None = None, *, replace: bool = False) -> Path:
    """Writes results, or a folder of them, as a page with its figures; returns where it is.

    Left out, `path` is the folder's own `report.html`. Raises `InputError`.
    """
    from shakedown.experiments.figure_kinds import reported
    from shakedown.reporting.html import write_report

    loaded = load_any(results) if isinstance(results, (str, Path)) else results
    if path is None:
        if loaded.folder is None:
            raise InputError("results that are in no folder need a path for their page")
        path = loaded.folder / "report.html"
    return write_report(loaded, path, reported(), replace=replace)


def load_any(path: str | Path) -> Results:
    """A results folder, or a file of `measure --json` or `inspect --traces-out`. Raises `InputError`."""
    from shakedown.experiments.figure_kinds.in_memory_results import results_of_json
    from shakedown.results.folder import load_results

    return load_results(path) if not Path(path).exists() or Path(path).is_dir() else results_of_json(path)
