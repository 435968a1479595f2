"""The entry point to the native core: its errors, its suites, and measurements in memory.

The functions only convert arguments and results, to types of the schema. The other modules of this package
contain the core's other functions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from msgspec import structs

from shakedown.errors import InputError, NoUseError, ShakedownError, did_you_mean
from shakedown.files.text import visible
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
    """The exit status for an error of the native core; None for any other error."""
    module = sys.modules.get("shakedown._core")
    if module is None or not isinstance(error, module.CoreError):
        return None
    wrong_input = (module.InvalidSuite, module.InvalidOption, module.Unsupported, module.CaptureError)
    return 2 if isinstance(error, wrong_input) else 1


def is_failure(error: BaseException) -> bool:
    """Whether a handshake failed or a suite cannot run; a run continues with its other suites."""
    module = sys.modules.get("shakedown._core")
    return module is not None and isinstance(error, (module.HandshakeFailed, module.Unsupported))


def least_values() -> Mapping[str, int]:
    """The minimum number of values for each percentile (`p99`); with fewer, the core omits it."""
    found: dict[str, int] = extension().MIN_VALUES
    return found


def canonical(suite: str) -> str:
    """The canonical spelling of a suite's name; raises `InputError` if no such suite is possible."""
    check("suite", suite, "str")
    check_text("suite", suite)
    with name_errors_as_input(suite):
        return cast(str, extension().canonical(suite))


def possible(suite: str) -> str | None:
    """The canonical spelling of a suite's name; None if no such suite is possible."""
    core = extension()
    try:
        return cast(str, core.canonical(suite))
    except core.InvalidSuite:
        return None


def runnable(suite: str) -> str:
    """The canonical spelling of a suite that can run here; raises `InputError` with the reason otherwise."""
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
    """The suite's parts, and properties derived from them.

    Parts: protocol, key_exchange, group, keys, authentication, mode, cipher, stack. Properties: transport
    (stream or datagram), is_resumption, full (the suite that creates the session), sent_keys, key_family,
    group_family and the curve families of both, and operations: the public-key calls by side and message.
    """
    check("suite", suite, "str")
    check_text("suite", suite)
    with name_errors_as_input(suite):
        return cast("dict[str, Any]", extension().describe(suite))


def suites(*, all: bool = False) -> list[SuiteEntry]:
    """Suites that can run; with `all`, also those that cannot, each with the reason."""
    return convert(extension().suites(all), list[SuiteEntry])


def stacks() -> list[StackEntry]:
    return convert(extension().stacks(), list[StackEntry])


def profile_suites() -> dict[str, int]:
    """The suites that are measured for a device profile, with the number of tickets of each."""
    return dict(extension().profile_suites())


def machine() -> Machine:
    """A description of this machine, the provenance of all figures measured here."""
    return convert(extension().machine(), Machine)


def build() -> Build:
    core = extension()
    return Build(shakedown=core.__version__, profile=core.BUILD_PROFILE, openssl=core.OPENSSL_VERSION)


def measure(
    handshake: HandshakeId, options: MeasureOptions, progress: Callable[[int], None] | None = None
) -> Measurement:
    """Runs a suite's handshake in memory and measures its parts; errors are those of `shakedown.measure`."""
    from shakedown.native import counted

    core = release_build()
    chosen = chosen_options(options, handshake)
    if options.counter is not None:
        counted.valgrind()
    with name_errors_as_input(handshake.suite):
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
    """Notices for the user since the last call, one line each: stored keys that were damaged and were
    generated again.
    """
    return cast("list[str]", extension().take_notices())


def capture(
    handshakes: Sequence[HandshakeId], path: str | Path, *, keylog: str | Path | None, options: MeasureOptions
) -> None:
    """Writes one handshake of each suite into a capture, with its server's tickets, and their secrets into a
    key log.

    Raises the core's `CaptureError` if a file cannot be written.
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
    on_timed: Callable[[list[Timing]], None] | None = None,
) -> list[Timing]:
    """Times the primitives that the suites use, on this machine.

    Each word of `filter` must be a prefix of a primitive's operation, algorithm or parameters. `seconds` is
    the maximum time for each key, group or algorithm. With `back_to_back`, primitives run in tight loops, as
    in libraries' benchmarks; otherwise a handshake runs between two rounds. `progress` is called with the
    number of completed keys, groups and algorithms, the number of all, and the current one; `on_timed` with
    the timings of each, except the last, when it is completed. Raises `InputError` if nothing matches or
    `seconds` is invalid.
    """
    core = release_build()
    words = None if filter is None else list(filter)
    check_text("filter", words)

    def tell(timings: list[dict[str, Any]]) -> None:
        if on_timed is not None:
            on_timed(convert(timings, list[Timing]))

    with value_errors_as_input():
        timed = core.primitives(
            filter=words, seconds=float(seconds), back_to_back=back_to_back, progress=progress, timed=tell
        )
    return convert(timed, list[Timing])


def device_profile(timed: Sequence[Timing], *, name: str, date: str, title: str | None = None) -> str:
    """Converts results of `primitives` to the text of a device profile (TOML)."""
    return cast(str, extension().device_profile(builtins(timed), name=name, title=title, date=date))


def transfers(
    handshake: HandshakeId, sizes_bytes: Sequence[int], *, link: str, options: MeasureOptions
) -> list[Transfer]:
    """Bulk data after the handshake: for each size, both sides' time (us) and the bytes on the link.

    `link` is `open`, or `wep`, which encrypts every frame. Raises `InputError`.
    """
    core = extension()
    with name_errors_as_input(handshake.suite):
        found = core.transfers(
            handshake.suite,
            list(sizes_bytes),
            link=cast(Any, link),
            repeat=options.repeat,
            options=chosen_options(options, handshake),
        )
    return convert(found, list[Transfer])


def check_text(name: str, value: object) -> None:
    """Raises `InputError` for a text or a path, or one in a list or mapping, whose bytes are not UTF-8."""
    if isinstance(value, str | Path):
        try:
            str(value).encode()
        except UnicodeEncodeError:
            shown = "…" if name.endswith(("password", "secret")) else visible(value)
            raise InputError(f'{name} is "{shown:.80}"; accepted: UTF-8') from None
    elif isinstance(value, list | tuple | Mapping):
        for one in (*value, *value.values()) if isinstance(value, Mapping) else value:
            check_text(name, one)


def paths_as_text(options: Mapping[str, object]) -> dict[str, object]:
    """Options as the core expects them: without None, and with paths as text. Raises `InputError` for text
    that is not UTF-8.
    """
    given = {key: value for key, value in options.items() if value is not None}
    for key, value in given.items():
        check_text(key, value)
    return {key: str(value) if isinstance(value, Path) else value for key, value in given.items()}


def named_by_chain(suite: str, options: MeasureOptions) -> tuple[str, list[str]]:
    """The suite's name with the keys of user-supplied certificates, and remarks on them.

    Raises `NoUseError` if the suite cannot use them, `InputError` if they are invalid.
    """
    core = extension()
    try:
        with name_errors_as_input(suite):
            found = core.named_by_chain(suite, chosen_options(options, None) or {})
        return cast("tuple[str, list[str]]", found)
    except core.Unsupported as error:
        raise NoUseError(str(error)) from error
    except core.CoreError as error:
        raise InputError(str(error)) from error


def certs(request: Mapping[str, object]) -> list[dict[str, Any]]:
    """Generates, issues or describes certificates: `request["do"]` is show, make, issue, profiles or profile.

    Fields and results are those of `Request` and `Response` in `crates/certs/src/request.rs`. Fields that are
    None are omitted; a single result is returned as a list. Raises `InputError` with the core's message.
    """
    core = extension()
    given = paths_as_text(request)
    try:
        answer = core.certs(given)
    except core.CoreError as error:
        raise InputError(str(error)) from error
    return answer if isinstance(answer, list) else [answer]


@contextmanager
def value_errors_as_input() -> Iterator[None]:
    """Converts `ValueError` of the core to `InputError`."""
    try:
        yield
    except ValueError as error:
        raise InputError(str(error)) from error


def release_build() -> ModuleType:
    """The extension module. Raises `ShakedownError` for a debug build, whose times are meaningless."""
    core = extension()
    if core.BUILD_PROFILE != "release":
        raise ShakedownError(
            'this is a debug build, whose times mean nothing; "make build" makes a release one'
        )
    return core


@contextmanager
def name_errors_as_input(suite: str) -> Iterator[None]:
    """Converts the core's errors about names and options to `InputError`."""
    core = extension()
    try:
        yield
    except core.InvalidSuite as error:
        raise InputError(_with_suggestion(str(error), suite)) from error
    except core.InvalidOption as error:
        raise InputError(str(error)) from error


def chosen_options(options: MeasureOptions, handshake: HandshakeId | None) -> dict[str, object] | None:
    """The options that differ from their defaults, as the core expects them; None if there are none.

    Raises `InputError` for text that is not UTF-8.
    """
    apart = ("repeat", "counter", "server_software")  # `MeasureOptions.issuing` handles the software
    given: dict[str, object] = {key: value for key, value in options.given().items() if key not in apart}
    if handshake is not None:
        stacks = {"client_stack": handshake.client_stack, "server_stack": handshake.server_stack}
        given |= {side: name for side, name in stacks.items() if name is not None}
    return paths_as_text(given) or None


def _with_suggestion(message: str, suite: str) -> str:
    """The core's message, with or replaced by a suggestion if there is a similar suite."""
    from shakedown.native.suite_names import meant

    if "did you mean" in message or "impossible" in message:
        return message
    reason = _not_run_here(suite)
    if reason:
        return reason
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
