"""Every command that prints figures, as a function: what `shakedown.measure`, `shakedown.predict` … are.

They take and return the objects of `shakedown.schema`, which show themselves in a few lines; what goes wrong
raises `ShakedownError`, wrong input `InputError`. Each loads what it needs when it is called.

One or several: a name or path alone is one; a list is several, and names in it may be patterns. What a
function returns of several is `Rows`, a list that displays itself as a table; `measure` and `simulate_mix`
return the object itself for one given alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from shakedown.errors import InputError
from shakedown.native.scenario import DEFAULT_BEARER, DEFAULT_DEVICE, DEFAULT_SERVER_DEVICE
from shakedown.schema import base
from shakedown.schema.arguments import check_fields, checked, profile_name, several

if TYPE_CHECKING:
    from shakedown.experiments.file import Experiment
    from shakedown.native.scenario import HandshakeId, Options
    from shakedown.native.serving import Server
    from shakedown.papers.paper import Reproduction
    from shakedown.profiles.bearer import Bearer
    from shakedown.profiles.device import Device
    from shakedown.reporting.rows import Rows
    from shakedown.results.folder import Results
    from shakedown.schema.aka import AttachRun, LiveAttaches
    from shakedown.schema.bearer import BearerCheck, MeasuredPath
    from shakedown.schema.catalogue import StackEntry, SuiteEntry
    from shakedown.schema.eap import Authentications
    from shakedown.schema.live import LiveRun
    from shakedown.schema.measured import Measurement
    from shakedown.schema.primitives import Timing


P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")
Listed = list[str] | tuple[str, ...]


def _html_of(one: object) -> str | None:
    from shakedown.reporting.display import object_html

    return object_html(one)


base.html_of = _html_of


class OneOrRows(Protocol[P, T]):
    """A function that returns the object of a suite given alone, and rows of a list."""

    @overload
    def __call__(self, suites: str, /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def __call__(self, suites: Listed, /, *args: P.args, **kwargs: P.kwargs) -> Rows[T]: ...


class RowsOf(Protocol[P, T, U]):
    """A function that returns rows; of a list, suites that have no figures are rows of another type."""

    @overload
    def __call__(self, suites: str, /, *args: P.args, **kwargs: P.kwargs) -> Rows[T]: ...
    @overload
    def __call__(self, suites: Listed, /, *args: P.args, **kwargs: P.kwargs) -> Rows[T | U]: ...


OfSuites = Callable[Concatenate[str | Sequence[str], P], list[T]]


def one_or_rows(function: OfSuites[P, T]) -> OneOrRows[P, T]:
    """A function of suites that returns the object of one given alone."""

    @wraps(function)
    def call(suites: str | Sequence[str], /, *args: P.args, **kwargs: P.kwargs) -> object:
        from shakedown.reporting.rows import Rows

        found = function(suites, *args, **kwargs)
        return found[0] if isinstance(suites, str) else Rows(found)

    kind = function.__annotations__["return"][len("list[") : -1]
    call.__annotations__["return"] = f"{kind} | Rows[{kind}]"
    return cast("OneOrRows[P, T]", call)


def rows_of(kind: type[T], failed: type[U]) -> Callable[[OfSuites[P, Any]], RowsOf[P, T, U]]:
    """Makes a function's rows objects of the schema; those with an error are objects of their own."""

    def decorated(function: OfSuites[P, Any]) -> RowsOf[P, T, U]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Rows[object]:  # noqa: ANN401 - RowsOf has the types
            from shakedown.reporting.rows import Rows

            found = function(*args, **kwargs)
            return Rows(
                base.convert(one, failed if "error" in one else kind) if isinstance(one, dict) else one
                for one in found
            )

        call.__annotations__["return"] = f"Rows[{kind.__name__} | {failed.__name__}]"
        return cast("RowsOf[P, T, U]", call)

    return decorated


@checked
def suites(*words: str, all: bool = False) -> Rows[SuiteEntry]:
    """Suites that can be run, whose names hold all of the words or match those that are patterns; with `all`,
    those that cannot too.
    """
    from shakedown import native
    from shakedown.files.patterns import is_pattern
    from shakedown.native.suite_names import expand, holding
    from shakedown.reporting.rows import Rows
    from shakedown.schema.catalogue import SuiteEntry

    listed = native.suites(all=all)
    patterns, plain = [word for word in words if is_pattern(word)], [w for w in words if not is_pattern(w)]
    if patterns:
        names = [name for name in expand(patterns) if all_in(plain, name)]
    else:
        found = [entry for entry in listed if all_in(plain, entry.suite)]
        if found or not plain:
            return Rows(found)
        names = holding(plain)
    known = {entry.suite: entry for entry in listed}
    return Rows(
        known.get(name)
        or SuiteEntry(suite=name, stack=native.describe(name)["stack"], supported=True, reason=None)
        for name in names
    )


def stacks() -> Rows[StackEntry]:
    """The implementations that run suites."""
    from shakedown import native
    from shakedown.reporting.rows import Rows

    return Rows(native.stacks())


def all_in(words: Iterable[str], text: str) -> bool:
    """Whether a text holds every word."""
    return not [word for word in words if word not in text]


@one_or_rows
@checked
def measure(
    suites: str | Sequence[str],
    /,
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
) -> list[Measurement]:
    """Runs each suite's handshake `repeat` times in memory and measures what each part of it costs.

    A suite given alone returns its `Measurement`; a list returns `Rows` of them.

    Args:
        suites: a suite's name, or a list of names and patterns; with user-supplied certificates the result's
            name is that of their keys.
        repeat: handshakes; 30 where it is left out.
        stack, client_stack, server_stack: which implementations run both sides, or one; the suite's usual
        one. samples: keep every repetition's figure with the medians.
        transfer_bytes: after the handshake, transfer as many bytes from server to client, each in turn.
        link: the link layer of a transfer: `open`, or `wep`, which encrypts every frame.
        progress: called with the number of repetitions done, of all suites together. Ctrl-C stops it.
        **options: those of `shakedown.native.scenario.Options`: `seed`, `now`, `server_software`, `tickets`,
            `profile`, files of certificates (`chain`, `key`, `ca`, `client_chain` …), `certificate_form`,
            `private_curves`.

    Raises:
        InputError: for unknown names, options that exclude each other, and invalid certificates.
        ShakedownError: for a debug build, whose times are meaningless.
        CoreError: from the core, if the handshake failed (`HandshakeFailed`) or cannot run here
            (`Unsupported`).
    """
    from shakedown.native.scenario import Options
    from shakedown.native.suite_names import listed
    from shakedown.schema.options import options_of

    given = {**options, **({} if repeat is None else {"repeat": repeat})}
    chosen = options_of(Options, given).checked()
    names = listed(suites)
    if chosen.user_supplied:
        names = [named_by_chain(suite, chosen)[0] for suite in names]
    handshakes = [identity(suite, chosen, client_stack or stack, server_stack or stack) for suite in names]

    def measured(number: int) -> Measurement:
        done_before = number * chosen.repeat
        return measure_one(
            handshakes[number],
            chosen,
            samples=samples,
            transfer_bytes=transfer_bytes,
            link=link,
            progress=None if progress is None else lambda done: progress(done_before + done),
        )

    return [measured(number) for number in range(len(handshakes))]


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

    for size in transfer_bytes:
        if not 1 <= size <= 1 << 30:
            raise InputError(f"a transfer of {size} bytes; accepted: from 1 to {1 << 30:,}")
    options = options.issuing(handshake.suite)
    found = native.measure(handshake, options, progress=progress)
    if transfer_bytes:
        moved = native.transfers(handshake, transfer_bytes, link=link, options=options)
        found = msgspec.structs.replace(found, transfers=tuple(moved))
    return found if samples else found.without_samples()


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
    from shakedown.native.scenario import Options
    from shakedown.native.suite_names import listed
    from shakedown.schema.options import options_of

    chosen = options_of(Options, options).checked()
    names = [
        named_by_chain(suite, chosen)[0] if chosen.user_supplied else native.canonical(suite)
        for suite in listed(suites)
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

    if len({one.suite.split("/", 1)[0] for one in handshakes}) == 1:
        options = options.issuing(handshakes[0].suite)  # the core takes one number of tickets for all
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
) -> Rows[Timing]:
    """Times every primitive that the suites use, or those whose names the words begin; see
    `native.primitives`.
    """
    from shakedown import native
    from shakedown.reporting.rows import Rows

    return Rows(
        native.primitives(filter=words, seconds=seconds, back_to_back=back_to_back, progress=progress)
    )


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
    from shakedown.native.suite_names import listed

    return start(listed(suites), listen, stack=stack, **cast(Any, settings))


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
        InputError: for an invalid address or name, and an existing file.
        ShakedownError: if the reflector does not respond.
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
        secret: shared by access point and server.
        suite: the suite to negotiate.
        count: number of authentications.
        rate_per_s: new connections per second, in an open loop; None: one after the other.
        in_flight: limit of authentications at a time.
        identity: the identity that is sent unencrypted.
        resume: one full authentication first, uncounted; the others resume its session.
        timeout_s: timeout of a request.
        chain, key, password: of the peer; default: generated.
        ca: the root that the peer trusts.
        fragment: TLS bytes in an EAP packet.
        progress: called with the number done.

    Raises:
        InputError: for an invalid suite, file or number.
    """
    from shakedown.native import eap

    found, _ = eap.peer(
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
) -> Rows[LiveRun]:
    """Lays handshakes modelled, simulated and live side by side, as `validate --live` does.

    Each suite is measured in memory, then served to a load on this machine's loopback. What fails is left
    out.

    Args:
        experiment: read already, or its file.
        rate_per_s: new connections per second; default: the experiment's.
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
    from shakedown.reporting.rows import Rows
    from shakedown.schema.live import LiveRun

    wanted = load_experiment(experiment) if isinstance(experiment, str | Path) else experiment
    wanted = compared(wanted, rate_per_s, time_s, endpoints=endpoints)
    found: Rows[LiveRun] = Rows()
    with TemporaryDirectory() as temporary:
        run_experiment(
            wanted,
            Path(temporary) / "results" if folder is None else folder,
            printed=lambda one: found.append(one) if isinstance(one, LiveRun) else None,
        )
    return found


def _library(traces: str | Path | None, software: str | Path | None = None) -> Any:  # noqa: ANN401 - imported late
    from shakedown.prediction.library import opened

    return opened(traces, software)


@checked
def devices(*names: str | Path) -> Rows[Device]:
    """Device profiles: those of these names, patterns or paths; without any, all that there are."""
    from shakedown.profiles import existing_device_names, load_device
    from shakedown.profiles.registry import listed
    from shakedown.reporting.rows import Rows

    known = existing_device_names()
    return Rows(load_device(name) for name in (listed(names, lambda: known, "device") if names else known))


@checked
def bearers(*names: str | Path) -> Rows[Bearer]:
    """Bearer profiles: those of these names, patterns or paths; without any, all."""
    from shakedown.profiles import bearer_names, load_bearer
    from shakedown.profiles.registry import listed
    from shakedown.reporting.rows import Rows

    return Rows(load_bearer(name) for name in listed(names or ("*",), bearer_names, "bearer"))


@checked
def reproduce(
    paper: str = "all",
    *,
    repeat: int | None = None,
    measured: str | Path | None = None,
    measure: bool = True,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Reproduction]:
    """Reproduces papers: their tables, figures and claims, and the same handshakes on this machine.

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
def certs(do: str, **request: object) -> Rows[Any]:
    """Makes, issues or describes certificates: `do` is `show`, `make`, `issue` or `profiles`.

    The fields of a request are the options of the command: `certs("show", files=["chain.pem"])`,
    `certs("make", keys="p256@rsa2048", out="folder")`. Returns objects of `shakedown.schema.certificates`.
    Raises `InputError`.
    """
    import time

    from shakedown import native
    from shakedown.reporting.rows import Rows
    from shakedown.schema import convert
    from shakedown.schema.certificates import CertificateProfile, DescribedFile, GeneratedChain

    kinds = {
        "show": DescribedFile,
        "make": GeneratedChain,
        "issue": GeneratedChain,
        "profiles": CertificateProfile,
    }
    if do not in kinds:
        raise InputError(f'"{do}" is not a command of certs; accepted: {", ".join(kinds)}')
    now = {} if do == "profiles" else {"now": int(time.time())}
    given = {key: _as_text(value) for key, value in request.items() if value is not None}
    if isinstance(given.get("files"), str):
        given["files"] = [given["files"]]
    found = native.certs({"do": do, **now, **given})
    return Rows(convert(found, list[kinds[do]]))  # type: ignore[valid-type]  # the types of a table


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
    from shakedown.reporting.html.write import write_report

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
