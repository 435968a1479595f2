"""The one door to the native core. Everything typed, nothing measured or decided here."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from shakedown.errors import InputError, NoUseError, ShakedownError, did_you_mean

if TYPE_CHECKING:
    from types import ModuleType

    from shakedown._core import Inspected as Inspected
    from shakedown._core import Inspection as Inspection
    from shakedown.measurement import Measurement

DEFAULT_REPEAT = 30

_SAMPLES = re.compile("(.*_)?samples(_us)?")

OWN_MATERIAL = {"chain": ("key", "ca"), "client_chain": ("client_key", "client_ca", "client_password")}
"""Each side's own chain among the options of `measure`, and what has no use without it."""


def native() -> ModuleType:
    """The extension module; where it is missing, the error says how to get it."""
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
    core = native()
    try:
        return cast(str, core.canonical(suite))
    except core.InvalidSuite as error:
        raise InputError(_with_suggestion(str(error), suite)) from error


def runnable(suite: str) -> str:
    """The one spelling of a suite that can be run here; raises `InputError` for any other, saying why."""
    core = native()
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
    core = native()
    try:
        return cast("dict[str, Any]", core.describe(suite))
    except core.InvalidSuite as error:
        raise InputError(_with_suggestion(str(error), suite)) from error


def suites(*, all: bool = False) -> list[dict[str, Any]]:
    """Suites that can be run; with `all`, those that cannot too, each with the reason."""
    return cast("list[dict[str, Any]]", native().suites(all))


def machine() -> dict[str, Any]:
    """What this machine is: the provenance of every figure measured here."""
    return cast("dict[str, Any]", native().machine())


def build() -> dict[str, str]:
    """Versions and profile of the build that measures."""
    core = native()
    return {
        "shakedown": core.__version__,
        "profile": core.BUILD_PROFILE,
        "openssl": core.OPENSSL_VERSION,
    }


def measure(
    suite: str,
    repeat: int = DEFAULT_REPEAT,
    *,
    seed: int | None = None,
    now: int | None = None,
    tickets: int | None = None,
    profile: str | Path | None = None,
    samples: bool = False,
    progress: Callable[[int], None] | None = None,
    **options: object,
) -> Measurement:
    """Runs a suite's handshake `repeat` times in memory and says what each part of it cost.

    `seed` fixes the randomness that is not the cryptography's own; `now` is the time (Unix seconds) at
    which certificates are checked: left out, a fixed day, or the present where some are your own; `tickets`
    is how many TLS 1.3 tickets the server sends; `profile` is a certificate profile (TOML). With `samples`
    every repetition's figure is given beside each median. `client_stack` and `server_stack` name the stacks
    of the two sides, `stack` that of both; the default is the first that runs the suite. `progress` is
    called with the number of repetitions done. Ctrl-C stops it. A debug build is refused: its times mean
    nothing.

    `options` are files of your own certificates instead of made ones: `chain` is the server's, leaf first,
    `key` its private key and `ca` the root that clients trust, where they are not in the chain's file;
    `client_chain`, `client_key` and `client_ca` are the client's, in mutual suites; `password` opens them
    (`client_password` the client's, where it differs). The result's suite is then named by their keys. For
    WTLS, `certificate_form="x509"` makes certificates of that form, and `private_curves=True` gives numbers
    to curves that have none.

    Raises `InputError` for names that name nothing, options that don't go together and certificates that
    are no good, the core's `Unsupported` for suites that cannot run here, its `HandshakeFailed` where the
    peers did not come to terms.
    """
    if repeat < 1:
        raise InputError(f"repeat is {repeat}; accepted: 1 or more")
    core = native()
    if core.BUILD_PROFILE != "release":
        raise ShakedownError(
            'this is a debug build, whose times mean nothing; "make build" makes a release one'
        )
    chosen = _fitting([suite], seed=seed, now=now, tickets=tickets, profile=profile, **options)
    try:
        result = core.measure(suite, repeat, options=chosen, progress=progress)
    except core.InvalidSuite as error:
        raise InputError(_with_suggestion(str(error), suite)) from error
    except core.InvalidOption as error:
        raise InputError(str(error)) from error
    result["certificates"] = certificates_of(result["suite"], options)
    return cast("Measurement", result if samples else without_samples(result))


def without_samples(figures: Any) -> Any:  # noqa: ANN401 - JSON has any type
    """A measurement, or part of one, without every repetition's figure."""
    if isinstance(figures, dict):
        kept = {key: value for key, value in figures.items() if not _SAMPLES.fullmatch(key)}
        return {key: without_samples(value) for key, value in kept.items()}
    return [without_samples(one) for one in figures] if isinstance(figures, list) else figures


def as_agreed(result: dict[str, Any]) -> dict[str, Any]:
    """A measurement as `shakedown.schema` has it: whose certificates they are is in its credentials."""
    return {key: value for key, value in result.items() if key != "certificates"}


def stacks() -> list[dict[str, Any]]:
    """The stacks there are: name, version, and the protocols that each runs as client and as server."""
    return cast("list[dict[str, Any]]", native().stacks())


def certificates_of(suite: str, options: Mapping[str, object]) -> dict[str, str]:
    """Whose certificates each side that has any shows in a suite: the user's `own`, or `made` ones."""
    about = describe(suite)
    authentication = about.get("authentication")
    sides = {"server": "chain"} if authentication or about.get("key_exchange") == "rsa_psk" else {}
    if authentication == "mutual":
        sides["client"] = "client_chain"
    return {side: "own" if options.get(option) else "made" for side, option in sides.items()}


def unpaired(options: Mapping[str, object]) -> tuple[str, str] | None:
    """An option that has no use without a chain, and which chain is missing; None where all go together."""
    for chain, others in OWN_MATERIAL.items():
        for other in others:
            if options.get(other) and not options.get(chain):
                return other, chain
    return None


def moment(now: int | None, options: Mapping[str, object]) -> int | None:
    """When certificates are checked (Unix seconds): `now`, else today where some are the user's own.

    None is the laboratory's fixed day, which is for those that are made.
    """
    if now is None and any(options.get(chain) for chain in OWN_MATERIAL):
        return int(time.time())
    return now


def _fitting(suites: Sequence[str], **options: object) -> dict[str, object] | None:
    """Options of `measure` for the core, once they go together and the user's own files are sound.

    Raises `InputError`.
    """
    alone = unpaired(options)
    if alone is not None:
        raise InputError(f"{alone[0]} goes with {alone[1]}, which is missing")
    chosen = _chosen(**{**options, "now": moment(cast("int | None", options.get("now")), options)})
    for suite in suites if any(options.get(chain) for chain in OWN_MATERIAL) else ():
        _named_by_own(suite, chosen)
        _check_form(suite, options)
    return chosen


def _check_form(suite: str, options: Mapping[str, object]) -> None:
    if options.get("certificate_form") and set(certificates_of(suite, options).values()) == {"own"}:
        raise InputError(
            f"{suite}: a certificate form is for certificates that are made, and all that this suite "
            "shows are your own; accepted: one or the other"
        )


def take_notices() -> list[str]:
    """What a user should know although nothing failed, since the last call: kept keys that were damaged and
    made again, one line each.
    """
    return cast("list[str]", native().take_notices())


def capture(
    suites: Sequence[str],
    path: str | Path,
    *,
    keylog: str | Path | None = None,
    **options: object,
) -> None:
    """Writes one handshake of each suite into a capture, and their secrets into a key log.

    `options` are those of `measure`. Raises `InputError` where they don't go together, the core's
    `CaptureError` where a file cannot be written.
    """
    native().capture(
        list(suites),
        str(path),
        keylog=None if keylog is None else str(keylog),
        options=_fitting(suites, **options),
    )


def _chosen(**options: object) -> dict[str, object] | None:
    """The options that were given, paths as text; None where there are none."""
    given = {key: value for key, value in options.items() if value is not None}
    return {key: str(value) if isinstance(value, Path) else value for key, value in given.items()} or None


def primitives(
    *,
    filter: Sequence[str] | None = None,
    seconds: float = 1.0,
    back_to_back: bool = False,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[dict[str, Any]]:
    """Times every primitive that the suites use, on this machine; one object a triple.

    `filter` holds words, each of which must begin the operation, algorithm or parameters of a primitive.
    `seconds` is the longest time for each key, group or algorithm. With `back_to_back` primitives run in
    loops of nothing else, as in libraries' benchmarks; without, a handshake comes between two rounds.
    `progress` is told how many keys, groups and algorithms are done, of how many, and which is at work.
    Raises `InputError` where nothing matches or `seconds` is none.
    """
    core = native()
    if core.BUILD_PROFILE != "release":
        raise ShakedownError(
            'this is a debug build, whose times mean nothing; "make build" makes a release one'
        )
    words = None if filter is None else list(filter)
    try:
        timed = core.primitives(
            filter=words, seconds=float(seconds), back_to_back=back_to_back, progress=progress
        )
    except ValueError as error:
        raise InputError(str(error)) from error
    return cast("list[dict[str, Any]]", timed)


def device_profile(
    timed: Sequence[Mapping[str, Any]], *, name: str, date: str, title: str | None = None
) -> str:
    """What `primitives` timed on this machine, as the text of a device profile (TOML)."""
    return cast(str, native().device_profile(list(timed), name=name, title=title, date=date))


def transfers(
    suite: str,
    sizes_bytes: Sequence[int],
    *,
    link: str = "open",
    repeat: int = DEFAULT_REPEAT,
    **options: object,
) -> list[dict[str, Any]]:
    """Bulk data after the handshake: for each size, both sides' time (us) and the bytes on the link.

    `link` is `open`, or `wep`, which enciphers every frame. `options` are `measure`'s. Raises `InputError`.
    """
    core = native()
    chosen = _fitting([suite], **options)
    try:
        found = core.transfers(suite, list(sizes_bytes), link=cast(Any, link), repeat=repeat, options=chosen)
    except (core.InvalidSuite, core.InvalidOption, core.Unsupported) as error:
        raise InputError(str(error)) from error
    return cast("list[dict[str, Any]]", found)


def inspect(
    path: str | Path,
    keylog: str | Path | None = None,
    *,
    progress: Callable[[int], None] | None = None,
) -> Inspection:
    """Opens a capture and reads it as it is iterated over, in bounded memory: its connections as they end.

    Each item has `connection`: its fields, with messages, flights and bytes; `json`: the same as a line of
    text; `trace`: what `predict --traces` can use, or None, and then `refused`: why not. Connections that the
    capture leaves open come last, by their index. After the last, the iterator's `summary` says what the file
    held, and `problem` why reading ended before the end of the file, else None. `progress` is called with the
    number of bytes read. Ctrl-C stops it. Raises `InputError` where nothing could be read.
    """
    core = native()
    try:
        found = core.inspect(str(path), None if keylog is None else str(keylog), progress=progress)
    except core.CaptureError as error:
        raise InputError(str(error)) from error
    return cast("Inspection", found)


def own(suite: str, **options: object) -> tuple[str, list[str]]:
    """The suite's name with the keys of the user's own certificates, and remarks on them.

    `options` are `measure`'s: `chain`, `key`, `ca` are the server's files, `client_chain`, `client_key`,
    `client_ca` the client's, `password` theirs (`client_password` where the client differs), `now` the time
    at which they must be valid: left out, today.
    Raises `NoUseError` where the suite has no use for them, `InputError` where something is wrong with them.
    """
    named = _named_by_own(suite, _fitting([], **options))
    _check_form(suite, options)
    return named


def _named_by_own(suite: str, chosen: dict[str, object] | None) -> tuple[str, list[str]]:
    core = native()
    try:
        return cast("tuple[str, list[str]]", core.own(suite, chosen or {}))
    except core.InvalidSuite as error:
        raise InputError(_with_suggestion(str(error), suite)) from error
    except core.Unsupported as error:
        raise NoUseError(str(error)) from error
    except core.CoreError as error:
        raise InputError(str(error)) from error


def certs(request: Mapping[str, object]) -> list[dict[str, Any]]:
    """Makes, issues or describes certificates: `request["do"]` is show, make, issue or profiles.

    Fields and answers are those of `Request` and `Response` in `crates/certs/src/request.rs`; fields that are
    None are left out, and what was made comes as a list of one. Raises `InputError` with the core's one line.
    """
    core = native()
    try:
        answer = core.certs(_chosen(**request))
    except core.CoreError as error:
        raise InputError(str(error)) from error
    return answer if isinstance(answer, list) else [answer]


def _with_suggestion(message: str, suite: str) -> str:
    """The core's line, with the nearest name it could have been, where a slip of the hand explains it."""
    if "did you mean" in message or "impossible" in message:
        return message
    known = (entry["suite"] for entry in suites())
    return message + did_you_mean(suite.lower(), known, cutoff=0.8)
