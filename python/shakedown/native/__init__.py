"""The entry point to the native core: everything typed by the schema, nothing measured or decided here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from shakedown.errors import InputError, NoUseError, ShakedownError, did_you_mean
from shakedown.schema.arguments import check, checked

if TYPE_CHECKING:
    from types import ModuleType

    from shakedown.native.scenario import HandshakeId, Options
    from shakedown.schema.aka import HssSummary, ProvisionedFiles, SgsnSummary
    from shakedown.schema.captured import CaptureSummary, Connection
    from shakedown.schema.catalogue import Build, StackEntry, SuiteEntry
    from shakedown.schema.eap import Authentications, ServerTally
    from shakedown.schema.live import LoadOutcome, LoadProgress
    from shakedown.schema.measured import Machine, Measurement, Transfer
    from shakedown.schema.primitives import Timing
    from shakedown.schema.trace import CapturedTrace


def extension() -> ModuleType:
    """The extension module; if it is missing, the error explains how to build it."""
    try:
        from shakedown import _core
    except ImportError as error:
        if error.name not in (None, "shakedown", "shakedown._core"):
            raise
        raise ShakedownError(
            f'the native core cannot be loaded ({error}); "make build" or "pip install ." makes it'
        ) from error
    return _core


def exit_status(error: BaseException) -> int | None:
    """Which exit status an error of the native core asks for; None for any other error."""
    import sys

    module = sys.modules.get("shakedown._core")
    if module is None or not isinstance(error, module.CoreError):
        return None
    wrong_input = (module.InvalidSuite, module.InvalidOption, module.Unsupported, module.CaptureError)
    return 2 if isinstance(error, wrong_input) else 1


def is_failure(error: BaseException) -> bool:
    """True where a handshake failed or a suite cannot run: one suite's trouble, not the whole run's."""
    import sys

    module = sys.modules.get("shakedown._core")
    return module is not None and isinstance(error, (module.HandshakeFailed, module.Unsupported))


def canonical(suite: str) -> str:
    """The one spelling of a suite's name; raises `InputError` where it names no possible suite."""
    core = extension()
    check("suite", suite, "str")
    with _complaints(suite):
        return cast(str, core.canonical(suite))


def runnable(suite: str) -> str:
    """The one spelling of a suite that can be run here; raises `InputError` for any other, saying why."""
    core = extension()
    name = canonical(suite)
    try:
        about = core.describe(name)
    except core.CoreError as error:
        raise InputError(str(error)) from error
    if about.get("stack") is None:
        raise InputError(f"{name}: no stack here runs it")
    return name


def describe(suite: str) -> dict[str, Any]:
    """The suite's parts and what follows from them.

    Parts: protocol, key_exchange, group, keys, authentication, mode, cipher, stack. What follows: transport
    (stream or datagram), is_resumption, full (the suite that makes the session), sent_keys, key_family,
    group_family and the curve families of both, and operations: the public-key calls by side and message.
    """
    core = extension()
    check("suite", suite, "str")
    with _complaints(suite):
        return cast("dict[str, Any]", core.describe(suite))


def suites(*, all: bool = False) -> list[SuiteEntry]:
    """Suites that can be run; with `all`, those that cannot too, each with the reason."""
    from shakedown.schema import convert
    from shakedown.schema.catalogue import SuiteEntry

    return convert(extension().suites(all), list[SuiteEntry])


def stacks() -> list[StackEntry]:
    """The implementations that run suites."""
    from shakedown.schema import convert
    from shakedown.schema.catalogue import StackEntry

    return convert(extension().stacks(), list[StackEntry])


def machine() -> Machine:
    """What this machine is: the provenance of every figure measured here."""
    from shakedown.schema import convert
    from shakedown.schema.measured import Machine

    return convert(extension().machine(), Machine)


def build() -> Build:
    """Versions and profile of the build that measures."""
    from shakedown.schema.catalogue import Build

    core = extension()
    return Build(shakedown=core.__version__, profile=core.BUILD_PROFILE, openssl=core.OPENSSL_VERSION)


def measure(
    handshake: HandshakeId, options: Options, progress: Callable[[int], None] | None = None
) -> Measurement:
    """Runs a suite's handshake in memory and measures each part of it.

    `progress` is called with the number of repetitions done. Ctrl-C stops it. A debug build is an error,
    because its times are meaningless. Raises `InputError` for unknown names and invalid options, the core's
    `Unsupported` for suites that cannot run here, its `HandshakeFailed` if the handshake failed.
    """
    import msgspec

    from shakedown.native import counted
    from shakedown.schema import convert
    from shakedown.schema.measured import Measurement

    core = _release_build()
    chosen = _chosen(options, handshake)
    if options.counter is not None:
        counted.valgrind()
    with _complaints(handshake.suite):
        found = core.measure(handshake.suite, options.repeat, options=chosen, progress=progress)
    measured = convert(found, Measurement)
    if options.counter is None:
        return measured
    counts = counted.count_instructions(handshake.suite, chosen)
    return msgspec.structs.replace(measured, instructions=counts)


def presenting(suite: str) -> tuple[Literal["client", "server"], ...]:
    """The sides that present certificates in a suite."""
    about = describe(suite)
    if about.get("authentication") == "mutual":
        return ("client", "server")
    return ("server",) if about.get("authentication") or about.get("key_exchange") == "rsa_psk" else ()


def take_notices() -> list[str]:
    """What a user should know although nothing failed, since the last call: kept keys that were damaged and
    generated again, one line each.
    """
    return cast("list[str]", extension().take_notices())


def capture(
    handshakes: Sequence[HandshakeId], path: str | Path, *, keylog: str | Path | None, options: Options
) -> None:
    """Writes one handshake of each suite into a capture, and their secrets into a key log.

    Raises the core's `CaptureError` where a file cannot be written.
    """
    extension().capture(
        [one.suite for one in handshakes],
        str(path),
        keylog=None if keylog is None else str(keylog),
        options=_chosen(options, handshakes[0] if handshakes else None),
    )


def primitives(
    *,
    filter: Sequence[str] | None = None,
    seconds: float = 1.0,
    back_to_back: bool = False,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Timing]:
    """Times every primitive that the suites use, on this machine; one object a triple.

    `filter` holds words, each of which must begin the operation, algorithm or parameters of a primitive.
    `seconds` is the longest time for each key, group or algorithm. With `back_to_back` primitives run in
    loops of nothing else, as in libraries' benchmarks; without, a handshake comes between two rounds.
    `progress` is called with the number of keys, groups and algorithms that are done, the number of all, and
    the current one. Raises `InputError` if nothing matches or `seconds` is invalid.
    """
    from shakedown.schema import convert
    from shakedown.schema.primitives import Timing

    core = _release_build()
    words = None if filter is None else list(filter)
    with _refused():
        timed = core.primitives(
            filter=words, seconds=float(seconds), back_to_back=back_to_back, progress=progress
        )
    return convert(timed, list[Timing])


def device_profile(timed: Sequence[Timing], *, name: str, date: str, title: str | None = None) -> str:
    """What `primitives` timed on this machine, as the text of a device profile (TOML)."""
    from shakedown.schema import builtins

    return cast(str, extension().device_profile(builtins(timed), name=name, title=title, date=date))


def transfers(
    handshake: HandshakeId, sizes_bytes: Sequence[int], *, link: str, options: Options
) -> list[Transfer]:
    """Bulk data after the handshake: for each size, both sides' time (us) and the bytes on the link.

    `link` is `open`, or `wep`, which encrypts every frame. Raises `InputError`.
    """
    from shakedown.schema import convert
    from shakedown.schema.measured import Transfer

    core = extension()
    with _complaints(handshake.suite):
        found = core.transfers(
            handshake.suite,
            list(sizes_bytes),
            link=cast(Any, link),
            repeat=options.repeat,
            options=_chosen(options, handshake),
        )
    return convert(found, list[Transfer])


def eap_peer(
    options: Mapping[str, object],
    *,
    identity: str,
    count: int,
    rate_per_s: float | None,
    in_flight: int | None,
    resume: bool,
    timeout_s: float,
    progress: Callable[[int], None] | None = None,
) -> tuple[Authentications, str | None]:
    """Authenticates against a RADIUS server; what came of it, and the first failure in a line.

    `options` holds address, secret and suite, and may hold chain, key, ca, password and fragment (bytes).
    Raises `InputError`.
    """
    from shakedown.schema import convert
    from shakedown.schema.eap import Authentications

    core = extension()
    suite = str(options["suite"])
    with _complaints(suite):
        found = core.eap_peer(
            _paths_as_text(options),
            count=count,
            rate_per_s=rate_per_s,
            identity=identity,
            max_in_flight=in_flight,
            resume=resume,
            timeout_s=timeout_s,
            progress=progress,
        )
    failure = found.pop("first_failure")
    found |= {"kind": "live", "server": options["address"]}
    return convert(found, Authentications), failure


def eap_serve(
    options: Mapping[str, object],
    *,
    resume: bool,
    sessions: object | None = None,
    listening: Callable[[str, str], None],
    stopped: Callable[[ServerTally], None],
) -> None:
    """Serves EAP-TLS until a signal's handler raises. `listening` is called with address and suite, `stopped`
    with the tally. `sessions` stores sessions, as `live.eap_sessions` does; default: memory.

    Raises `InputError`.
    """
    from shakedown.schema import convert
    from shakedown.schema.eap import ServerTally

    def tell(found: dict[str, Any]) -> None:
        stopped(convert(found, ServerTally))

    core = extension()
    with _complaints(str(options["suite"])):
        core.eap_serve(
            _paths_as_text(options), resume=resume, sessions=sessions, listening=listening, stopped=tell
        )


def aka_suites(suite: str) -> tuple[str, str]:
    """A suite as attaches by SSL-based AKA run it (mutual, chains of two levels), and the one they resume by.

    Raises `InputError`, and the core's `Unsupported` for one that cannot carry an attach.
    """
    core = extension()
    with _complaints(suite):
        return cast("tuple[str, str]", core.aka_suites(suite))


def aka_run(suite: str, plan: str, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
    """Runs attaches in virtual time; `plan` is JSON, as `simulation.attaches` makes it.

    Raises `InputError`.
    """
    core = extension()
    with _complaints(suite):
        return cast("dict[str, Any]", core.aka_run(suite, plan, progress=progress))


def aka_provision(
    folder: Path, suite: str, *, home: str, serving: str, nodes: Sequence[str], subscribers: int
) -> ProvisionedFiles:
    """Makes two operators, and the files of their HSS, SGSNs and subscribers. Raises `InputError`."""
    from shakedown.schema import convert
    from shakedown.schema.aka import ProvisionedFiles

    core = extension()
    with _complaints(suite):
        made = core.aka_provision(str(folder), suite, home, serving, list(nodes), subscribers)
    return convert({**made, "files": [str(path) for path in made["files"]]}, ProvisionedFiles)


def aka_hss(
    listen: str,
    register: Path,
    *,
    first_message_s: float,
    listening: Callable[[str], None],
    stopped: Callable[[HssSummary], None],
) -> None:
    """Serves an HSS until a signal's handler raises. Calls `listening` with the address, and `stopped`.

    Raises `InputError`.
    """
    from shakedown.schema import convert
    from shakedown.schema.aka import HssSummary

    def tell(found: dict[str, Any]) -> None:
        stopped(convert(found, HssSummary))

    core = extension()
    with _complaints(""):
        core.aka_hss(
            listen, str(register), first_message_s=first_message_s, listening=listening, stopped=tell
        )


def aka_sgsn(
    options: Mapping[str, object],
    *,
    store: object | None,
    listening: Callable[[str, str | None], None],
    stopped: Callable[[SgsnSummary], None],
) -> None:
    """Serves an SGSN until a signal's handler raises; `store` keeps its state, as `live.sgsn_state` does.

    `listening` is called with the addresses for mobiles and for other SGSNs, `stopped` with the summary.
    Raises `InputError`.
    """
    from shakedown.schema import convert
    from shakedown.schema.aka import SgsnSummary

    def tell(found: dict[str, Any]) -> None:
        stopped(convert(found, SgsnSummary))

    core = extension()
    with _complaints(""):
        core.aka_sgsn(_paths_as_text(options), store=store, listening=listening, stopped=tell)


def aka_mobile(
    options: Mapping[str, object], *, progress: Callable[[int], None] | None = None
) -> dict[str, Any]:
    """Attaches to an SGSN on sockets; the suite, and each attach. Raises `InputError`."""
    core = extension()
    with _complaints(""):
        return cast("dict[str, Any]", core.aka_mobile(_paths_as_text(options), progress=progress))


def _paths_as_text(options: Mapping[str, object]) -> dict[str, object]:
    """Options as the core takes them: those that were given, paths as text."""
    given = {key: value for key, value in options.items() if value is not None}
    return {key: str(value) if isinstance(value, Path) else value for key, value in given.items()}


def load(
    config: Mapping[str, object],
    suite: str | None,
    options: Mapping[str, object],
    progress: Callable[[LoadProgress], None] | None = None,
) -> LoadOutcome:
    """Loads a server, with the fields of `Config` in `crates/live/src/load`; None stands for a default.

    `progress` is called about ten times a second; Ctrl-C ends the run early. Raises `InputError` for invalid
    options, the core's `CoreError` if the server cannot be reached.
    """
    from shakedown.schema import convert
    from shakedown.schema.live import LoadOutcome, LoadProgress

    def tell(now: dict[str, object]) -> None:
        if progress is not None:
            progress(convert(now, LoadProgress))

    return convert(_load(config, suite, options, progress=tell), LoadOutcome)


def load_part(
    config: Mapping[str, object],
    suite: str | None,
    options: Mapping[str, object],
    look: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """What one generator of several counted, for `merge_loads`; raises as `load`.

    `look` is called about ten times a second: a `KeyboardInterrupt` that it raises ends the run early.
    """
    progress = None if look is None else lambda _now: look()
    return _load(config, suite, options, parts=True, progress=progress)


def _load(
    config: Mapping[str, object], suite: str | None, options: Mapping[str, object], **run: object
) -> dict[str, Any]:
    core: Any = _release_build()
    given, chosen = map(_paths_as_text, (config, options))
    with _complaints(suite or ""):
        found = cast("dict[str, Any]", core.load(given, suite=suite, options=chosen or None, **run))
    own = found.get("load", found)
    if own["interrupted"] and not own["elapsed_s"]:
        # Before the first start could be: there are no figures, and none a second.
        raise KeyboardInterrupt
    return found


def merge_loads(parts: Sequence[Mapping[str, Any]]) -> LoadOutcome:
    """The combined figures of concurrent generators, as if one had counted all times."""
    from shakedown.schema import convert
    from shakedown.schema.live import LoadOutcome

    with _complaints(""):
        return convert(_release_build().merge_loads(parts), LoadOutcome)


class Inspected:
    """A connection of a capture, decoded when asked for."""

    def __init__(self, inner: Any) -> None:  # noqa: ANN401 - the core's object
        """Wraps the core's."""
        self._inner = inner

    @property
    def json(self) -> str:
        """The connection as a line of JSON."""
        return cast(str, self._inner.json)

    @property
    def connection(self) -> Connection:
        """Its messages, flights and bytes."""
        from shakedown.schema import decode
        from shakedown.schema.captured import Connection

        return decode(self._inner.json, Connection)

    @property
    def trace(self) -> CapturedTrace | None:
        """What `predict --traces` can use; None where not all of the handshake is visible."""
        from shakedown.schema import convert
        from shakedown.schema.trace import CapturedTrace

        found = self._inner.trace
        return None if found is None else convert(found, CapturedTrace)

    @property
    def refused(self) -> str | None:
        """Why it makes no trace."""
        return cast("str | None", self._inner.refused)


class Inspection:
    """A capture being read: its connections as they end, those that it leaves open last, by their index."""

    def __init__(self, inner: Any) -> None:  # noqa: ANN401 - the core's object
        """Wraps the core's."""
        self._inner = inner

    def __iter__(self) -> Iterator[Inspected]:
        return map(Inspected, self._inner)

    @property
    def summary(self) -> CaptureSummary:
        """What the file held, as far as it was read."""
        from shakedown.schema import convert
        from shakedown.schema.captured import CaptureSummary

        return convert(self._inner.summary, CaptureSummary)

    @property
    def problem(self) -> str | None:
        """Why reading ended before the file did, else None."""
        return cast("str | None", self._inner.problem)


@checked
def inspect(
    path: str | Path,
    keylog: str | Path | None = None,
    *,
    progress: Callable[[int], None] | None = None,
) -> Inspection:
    """Opens a capture and reads it as it is iterated over, in bounded memory: its connections as they end.

    Each item has `connection`: an object with messages, flights and bytes; `trace`: what `predict` can use,
    or None, and then `refused`: the reason. After the last, the iterator's `summary` describes the file, and
    `problem` is why reading ended before the end of the file, else None. `progress` is called with the
    number of bytes read. Ctrl-C stops it. Raises `InputError` where nothing could be read.
    """
    core = extension()
    try:
        found = core.inspect(str(path), None if keylog is None else str(keylog), progress=progress)
    except core.CaptureError as error:
        raise InputError(str(error)) from error
    return Inspection(found)


def named_by_chain(suite: str, options: Options) -> tuple[str, list[str]]:
    """The suite's name with the keys of user-supplied certificates, and remarks on them.

    Raises `NoUseError` if the suite cannot use them, `InputError` if they are invalid.
    """
    core = extension()
    try:
        return cast("tuple[str, list[str]]", core.named_by_chain(suite, _chosen(options, None) or {}))
    except core.InvalidSuite as error:
        raise InputError(_with_suggestion(str(error), suite)) from error
    except core.Unsupported as error:
        raise NoUseError(str(error)) from error
    except core.CoreError as error:
        raise InputError(str(error)) from error


def certs(request: Mapping[str, object]) -> list[dict[str, Any]]:
    """Makes, issues or describes certificates: `request["do"]` is show, make, issue, profiles or profile.

    Fields and results are those of `Request` and `Response` in `crates/certs/src/request.rs`; fields that are
    None are left out, and what was made comes as a list of one. Raises `InputError` with the core's one line.
    """
    core = extension()
    given = _paths_as_text(request)
    try:
        answer = core.certs(given)
    except core.CoreError as error:
        raise InputError(str(error)) from error
    return answer if isinstance(answer, list) else [answer]


_threads: int | None = None


def use_threads(count: int) -> None:
    """Sets the number of threads that this process's simulations share, unless a call sets its own."""
    global _threads
    _threads = count


def simulate(
    spec: Mapping[str, object],
    progress: Callable[[int, int], None] | None = None,
    threads: int | None = None,
) -> dict[str, Any]:
    """Runs a simulation in virtual time; `spec` and what is returned are `Scenario` and the outcome of
    `crates/sim`.

    `progress` is called with the clients that are through, of how many. Ctrl-C stops it. Replications share
    `threads` threads, by default one a processor (`use_threads`); the figures are the same. Raises
    `InputError`.
    """
    import json

    return cast("dict[str, Any]", json.loads(_simulated(spec, progress, threads)))


def simulated_report(
    spec: Mapping[str, object],
    progress: Callable[[int, int], None] | None = None,
    threads: int | None = None,
) -> dict[str, Any]:
    """The `report` of `simulate` alone; the outcome, which merges, is longer by far and is not read."""
    import msgspec

    parts = msgspec.json.decode(_simulated(spec, progress, threads), type=dict[str, msgspec.Raw])
    return cast("dict[str, Any]", msgspec.json.decode(parts["report"]))


def replay(spec: Mapping[str, object]) -> dict[str, Any]:
    """Replays one handshake over a path, without a queue, until its percentiles are known; `spec` and what is
    returned are `Replay` and `Replayed` of `crates/sim`. Raises `InputError`.
    """
    import json

    with _refused():
        return cast("dict[str, Any]", json.loads(extension().replay(json.dumps(spec))))


def simulation_text(spec: Mapping[str, object]) -> str:
    """A simulation as the core reads it, JSON.

    Times of arrival are written some at a time: as objects, millions would take many times their text.
    """
    import json
    from array import array

    arrivals = spec.get("arrivals")
    times = arrivals.get("at_s") if isinstance(arrivals, Mapping) else None
    if not isinstance(arrivals, Mapping) or not isinstance(times, array):
        return json.dumps(spec)
    place = '"at_s": []'
    before, _, after = json.dumps({**spec, "arrivals": {**arrivals, "at_s": []}}).partition(place)
    some = 1 << 16
    written = (",".join(map(repr, times[at : at + some])) for at in range(0, len(times), some))
    return f"{before}{place[:-1]}{','.join(written)}]{after}"


def simulation_pieces(text: str, threads: int) -> tuple[int, int, int]:
    """The first of a simulation's replications, how many they are, and into how many parts each is cut for so
    many threads: parts have servers, clients and cells of their own. Raises `InputError` for what cannot be.
    """
    with _refused():
        return cast("tuple[int, int, int]", extension().simulate_pieces(text, threads))


def simulated_piece(text: str, replication: int, part: tuple[int, int] | None = None) -> str:
    """The outcome of one replication, or of a part of it (its number, and of how many), for `merged`."""
    with _refused():
        return cast(str, extension().simulate_piece(text, replication, part))


def merged(pieces: Sequence[str]) -> tuple[dict[str, Any], str]:
    """The report and the outcome of all pieces of a simulation, in any order."""
    import msgspec

    with _refused():
        answer = extension().simulate_merge(pieces)
    parts = msgspec.json.decode(answer, type=dict[str, msgspec.Raw])
    return cast("dict[str, Any]", msgspec.json.decode(parts["report"])), bytes(parts["outcome"]).decode()


def longer_simulation(text: str, outcome: str, spent: int) -> str | None:
    """What is simulated after an outcome of a simulation, with so many events in all so far; None where it is
    precise enough, or no events are left.
    """
    with _refused():
        return cast("str | None", extension().simulate_longer(text, outcome, spent))


@contextmanager
def _refused() -> Iterator[None]:
    """What the core refuses as `InputError`."""
    try:
        yield
    except ValueError as error:
        raise InputError(str(error)) from error


def _simulated(
    spec: Mapping[str, object], progress: Callable[[int, int], None] | None, threads: int | None
) -> str:
    count = _threads if threads is None else threads
    options = {} if count is None else {"threads": count}
    with _refused():
        return cast("str", extension().simulate(simulation_text(spec), progress, **options))


def simulate_endpoints(
    handshake: HandshakeId,
    spec: Mapping[str, object],
    options: Options,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """The same with a suite's own endpoints in place of the recorded handshake: real protocol engines over
    simulated links and TCP, charged by the recorded messages' costs.

    Besides what `simulate` returns: the stacks, `replayed` (the report of a replay with another seed),
    `distance` (Kolmogorov and Smirnov's, between the times of both) and `critical`, at 1 %. Raises
    `InputError`, and what `measure` raises.
    """
    import json

    core = extension()
    chosen = _chosen(options, handshake)
    try:
        with _complaints(handshake.suite):
            text = core.simulate_endpoints(
                handshake.suite, simulation_text(spec), options=chosen, progress=progress
            )
    except ValueError as error:
        if isinstance(error, core.CoreError):
            raise
        raise InputError(str(error)) from error
    return cast("dict[str, Any]", json.loads(text))


def _release_build() -> ModuleType:
    core = extension()
    if core.BUILD_PROFILE != "release":
        raise ShakedownError(
            'this is a debug build, whose times mean nothing; "make build" makes a release one'
        )
    return core


@contextmanager
def _complaints(suite: str) -> Iterator[None]:
    """The core's errors about names and options, converted to the package's."""
    core = extension()
    try:
        yield
    except core.InvalidSuite as error:
        raise InputError(_with_suggestion(str(error), suite)) from error
    except core.InvalidOption as error:
        raise InputError(str(error)) from error


def _chosen(options: Options, handshake: HandshakeId | None) -> dict[str, object] | None:
    """The options that were given, as the core takes them; None where there are none."""
    apart = ("repeat", "counter", "server_software")  # this and its tickets: `Options.issuing`
    given: dict[str, object] = {key: value for key, value in options.given().items() if key not in apart}
    if handshake is not None:
        stacks = {"client_stack": handshake.client_stack, "server_stack": handshake.server_stack}
        given |= {side: name for side, name in stacks.items() if name is not None}
    return given or None


def _with_suggestion(message: str, suite: str) -> str:
    """The core's line; first of all the suite that was meant, where a slip of the hand explains it."""
    from shakedown.native.suite_names import meant

    if "did you mean" in message or "impossible" in message:
        return message
    refused = _not_run_here(suite)
    if refused:
        return refused
    found = meant(suite)
    if found:
        return f'suite "{suite[:80]}": did you mean "{found}"?'
    known = (entry["suite"] for entry in extension().suites(False))
    hint = did_you_mean(suite.lower(), known, cutoff=0.8).removeprefix("; ")
    head, colon, rest = message.partition(": ")
    return f"{head}: {hint} {rest}" if hint and colon else message


def _not_run_here(suite: str) -> str:
    """The error for a known protocol that no stack supports."""
    protocol = suite.partition("/")[0]
    running = dict.fromkeys(one for stack in stacks() for one in stack.client)
    known = {entry["suite"].partition("/")[0] for entry in extension().suites(True)}
    if protocol not in known or protocol in running:
        return ""
    return f"{suite[:80]}: no stack here runs {protocol}; accepted: {' '.join(running)}"
