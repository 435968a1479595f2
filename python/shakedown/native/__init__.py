"""The entry point to the native core: loading it, its errors, its suites, and what it measures in memory.

Everything is typed by the schema; nothing is measured or decided here. What else the core does
is in modules of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from msgspec import structs

from shakedown.errors import InputError, NoUseError, ShakedownError, did_you_mean
from shakedown.native.core import extension
from shakedown.schema.arguments import check
from shakedown.schema.base import builtins, convert
from shakedown.schema.catalogue import Build, StackEntry, SuiteEntry
from shakedown.schema.measured import Machine, Measurement, Transfer
from shakedown.schema.primitives import Timing

if TYPE_CHECKING:
    from types import ModuleType

    from shakedown.native.scenario import HandshakeId, MeasureOptions


def exit_status(error: BaseException) -> int | None:
    """Which exit status an error of the native core asks for; None for any other error."""
    module = sys.modules.get("shakedown._core")
    if module is None or not isinstance(error, module.CoreError):
        return None
    wrong_input = (module.InvalidSuite, module.InvalidOption, module.Unsupported, module.CaptureError)
    return 2 if isinstance(error, wrong_input) else 1


def is_failure(error: BaseException) -> bool:
    """True where a handshake failed or a suite cannot run: one suite's trouble, not the whole run's."""
    module = sys.modules.get("shakedown._core")
    return module is not None and isinstance(error, (module.HandshakeFailed, module.Unsupported))


def least_values() -> Mapping[str, int]:
    """How many values a percentile needs, by its name, as `p99`; with fewer the core leaves it out."""
    found: dict[str, int] = extension().LEAST_VALUES
    return found


def canonical(suite: str) -> str:
    """The one spelling of a suite's name; raises `InputError` where it names no possible suite."""
    check("suite", suite, "str")
    with complaints(suite):
        return cast(str, extension().canonical(suite))


def possible(suite: str) -> str | None:
    """The one spelling of a suite's name; None where it names no possible suite."""
    core = extension()
    try:
        return cast(str, core.canonical(suite))
    except core.InvalidSuite:
        return None


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
    check("suite", suite, "str")
    with complaints(suite):
        return cast("dict[str, Any]", extension().describe(suite))


def suites(*, all: bool = False) -> list[SuiteEntry]:
    """Suites that can be run; with `all`, those that cannot too, each with the reason."""
    return convert(extension().suites(all), list[SuiteEntry])


def stacks() -> list[StackEntry]:
    return convert(extension().stacks(), list[StackEntry])


def profile_suites() -> dict[str, int]:
    """The suites of a device's profile, and the number of tickets that each sends."""
    return dict(extension().profile_suites())


def machine() -> Machine:
    """What this machine is: the provenance of every figure measured here."""
    return convert(extension().machine(), Machine)


def build() -> Build:
    core = extension()
    return Build(shakedown=core.__version__, profile=core.BUILD_PROFILE, openssl=core.OPENSSL_VERSION)


def measure(
    handshake: HandshakeId, options: MeasureOptions, progress: Callable[[int], None] | None = None
) -> Measurement:
    """Runs a suite's handshake in memory and measures each part of it; raises as `shakedown.measure`."""
    from shakedown.native import counted

    core = release_build()
    chosen = chosen_options(options, handshake)
    if options.counter is not None:
        counted.valgrind()
    with complaints(handshake.suite):
        found = core.measure(handshake.suite, options.repeat, options=chosen, progress=progress)
    measured = convert(found, Measurement)
    if options.counter is None:
        return measured
    counts = counted.count_instructions(handshake.suite, chosen)
    return structs.replace(measured, instructions=counts)


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
    handshakes: Sequence[HandshakeId], path: str | Path, *, keylog: str | Path | None, options: MeasureOptions
) -> None:
    """Writes one handshake of each suite into a capture, with its server's tickets, and their secrets into a
    key log.

    Raises the core's `CaptureError` where a file cannot be written.
    """
    extension().capture(
        [one.suite for one in handshakes],
        str(path),
        keylog=None if keylog is None else str(keylog),
        options=chosen_options(options, handshakes[0] if handshakes else None),
        tickets={one.suite: issued for one in handshakes if (issued := options.issuing(one.suite).tickets)},
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
    core = release_build()
    words = None if filter is None else list(filter)
    with refused():
        timed = core.primitives(
            filter=words, seconds=float(seconds), back_to_back=back_to_back, progress=progress
        )
    return convert(timed, list[Timing])


def device_profile(timed: Sequence[Timing], *, name: str, date: str, title: str | None = None) -> str:
    """What `primitives` timed on this machine, as the text of a device profile (TOML)."""
    return cast(str, extension().device_profile(builtins(timed), name=name, title=title, date=date))


def transfers(
    handshake: HandshakeId, sizes_bytes: Sequence[int], *, link: str, options: MeasureOptions
) -> list[Transfer]:
    """Bulk data after the handshake: for each size, both sides' time (us) and the bytes on the link.

    `link` is `open`, or `wep`, which encrypts every frame. Raises `InputError`.
    """
    core = extension()
    with complaints(handshake.suite):
        found = core.transfers(
            handshake.suite,
            list(sizes_bytes),
            link=cast(Any, link),
            repeat=options.repeat,
            options=chosen_options(options, handshake),
        )
    return convert(found, list[Transfer])


def paths_as_text(options: Mapping[str, object]) -> dict[str, object]:
    """Options as the core takes them: those that were given, paths as text."""
    given = {key: value for key, value in options.items() if value is not None}
    return {key: str(value) if isinstance(value, Path) else value for key, value in given.items()}


def named_by_chain(suite: str, options: MeasureOptions) -> tuple[str, list[str]]:
    """The suite's name with the keys of user-supplied certificates, and remarks on them.

    Raises `NoUseError` if the suite cannot use them, `InputError` if they are invalid.
    """
    core = extension()
    try:
        with complaints(suite):
            found = core.named_by_chain(suite, chosen_options(options, None) or {})
        return cast("tuple[str, list[str]]", found)
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
    given = paths_as_text(request)
    try:
        answer = core.certs(given)
    except core.CoreError as error:
        raise InputError(str(error)) from error
    return answer if isinstance(answer, list) else [answer]


@contextmanager
def refused() -> Iterator[None]:
    """What the core refuses as `InputError`."""
    try:
        yield
    except ValueError as error:
        raise InputError(str(error)) from error


def release_build() -> ModuleType:
    """The extension module where its times mean something. Raises `ShakedownError` for a debug build."""
    core = extension()
    if core.BUILD_PROFILE != "release":
        raise ShakedownError(
            'this is a debug build, whose times mean nothing; "make build" makes a release one'
        )
    return core


@contextmanager
def complaints(suite: str) -> Iterator[None]:
    """The core's errors about names and options, converted to the package's."""
    core = extension()
    try:
        yield
    except core.InvalidSuite as error:
        raise InputError(_with_suggestion(str(error), suite)) from error
    except core.InvalidOption as error:
        raise InputError(str(error)) from error


def chosen_options(options: MeasureOptions, handshake: HandshakeId | None) -> dict[str, object] | None:
    """The options that were given, as the core takes them; None where there are none."""
    apart = ("repeat", "counter", "server_software")  # this and its tickets: `MeasureOptions.issuing`
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
