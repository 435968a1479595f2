"""Measured and captured handshakes in memory, and the timing of primitives."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from shakedown import native
from shakedown.api.rows import one_or_rows
from shakedown.errors import InputError, ShakedownError, did_you_mean, without_codes
from shakedown.files.write import check_distinct, check_free, check_writable, write
from shakedown.native.core import extension
from shakedown.native.scenario import HandshakeId, MeasureOptions, Stacks
from shakedown.native.suite_names import listed
from shakedown.reporting.rows import Rows
from shakedown.schema.arguments import checked
from shakedown.schema.measured import Measurement
from shakedown.schema.primitives import Timing

NEW_KEY_LOG = "another name: a key log is never replaced, for it may hold secrets that other programs wrote"


@one_or_rows
@checked
def measure(
    suites: str | Sequence[str],
    /,
    repeat: int | None = None,
    *,
    options: MeasureOptions = MeasureOptions(),
    stack: str | Stacks | None = None,
    samples: bool = False,
    transfer_bytes: Sequence[int] = (),
    link: str = "open",
    progress: Callable[[int], None] | None = None,
) -> list[Measurement]:
    """Runs each suite's handshake `repeat` times in memory and measures the cost of each of its parts.

    For one name, the result is a `Measurement`; for a list, `Rows` of them.

    Args:
        suites: a suite's name, or a list of names and patterns. With user-supplied certificates, the keys in
            the name are replaced by those of the certificates.
        repeat: number of handshakes; default: that of `options`, by default 30.
        options: seed, time at which certificates are validated, tickets, certificates and others.
        stack: the implementation that runs both sides, or `Stacks` with one for each; default: the suite's
            usual one.
        samples: keep the figures of every repetition, in addition to the medians.
        transfer_bytes: sizes of transfers from server to client after the handshake, one after the other.
        link: the link layer of a transfer: `open`, or `wep`, which encrypts every frame.
        progress: called with the number of completed repetitions of all suites. Ctrl-C stops the measurement.

    Raises:
        InputError: for unknown names, options that exclude each other, and invalid certificates.
        ShakedownError: for a debug build, whose times are meaningless.
        CoreError: from the core, if the handshake failed (`HandshakeFailed`) or cannot run here
            (`Unsupported`).
    """
    given = options if repeat is None else msgspec.structs.replace(options, repeat=repeat)
    chosen, names = given.checked(), listed(suites)
    stacks = stack if isinstance(stack, Stacks) else Stacks(stack, stack)
    if chosen.user_supplied:
        names = [named_by_chain(suite, chosen)[0] for suite in names]
    handshakes = [identity(suite, chosen, stacks.client, stacks.server) for suite in names]

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
    suite: str, options: MeasureOptions, client_stack: str | None = None, server_stack: str | None = None
) -> HandshakeId:
    """The identity under which a suite is measured. Raises `InputError` for unknown stacks."""
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
    """Raises `InputError` for an unknown stack."""
    known = [one.name for one in native.stacks()]
    if name not in known:
        hint = did_you_mean(name, known) or f"; accepted: {', '.join(known)}"
        raise InputError(f'there is no stack "{name}"{hint}')


def named_by_chain(suite: str, options: MeasureOptions) -> tuple[str, list[str]]:
    """The suite's name with the keys of user-supplied certificates, and remarks on them. Raises
    `InputError`.
    """
    named = native.named_by_chain(suite, options)
    if options.certificate_form and set(native.presenting(suite)) <= set(options.user_supplied):
        raise InputError(
            f"{suite}: a certificate form is for generated certificates, but all certificates in this suite "
            "are yours; accepted: one or the other"
        )
    return named


def measure_one(
    handshake: HandshakeId,
    options: MeasureOptions,
    *,
    samples: bool = False,
    transfer_bytes: Sequence[int] = (),
    link: str = "open",
    progress: Callable[[int], None] | None = None,
) -> Measurement:
    """`measure` for a validated handshake."""
    for size in transfer_bytes:
        if not 1 <= size <= 1 << 30:
            raise InputError(f"a transfer of {size} bytes; accepted: from 1 to {1 << 30:,}")
    note, options = options.software_note(handshake.suite), options.issuing(handshake.suite)
    found = native.measure(handshake, options, progress=progress)
    if note is not None:
        found = msgspec.structs.replace(found, server_software_note=note)
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
    options: MeasureOptions = MeasureOptions(),
    replace: bool = False,
) -> None:
    """Writes one handshake of each suite into a capture, and their secrets into a key log.

    `options` are those of `measure`. Existing files are refused; `replace` replaces an existing capture, but
    never a key log. Raises `InputError`.
    """
    chosen = options.checked()
    names = [
        named_by_chain(suite, chosen)[0] if chosen.user_supplied else native.canonical(suite)
        for suite in listed(suites)
    ]
    write_capture([identity(name, chosen) for name in names], Path(path), keylog, chosen, replace=replace)


def write_capture(
    handshakes: Sequence[HandshakeId],
    path: Path,
    keylog: str | Path | None,
    options: MeasureOptions,
    *,
    replace: bool,
) -> None:
    """`capture` for validated handshakes."""
    check_free(path, replace)
    targets = [(path, replace)]
    if keylog is not None:
        # Checked before the handshakes: a capture whose key log cannot be written must not remain.
        check_writable(Path(keylog), accepted=NEW_KEY_LOG)
        targets.append((Path(keylog), False))
    check_distinct([target for target, _ in targets], options.files())
    # The core writes into a temporary folder; complete files are then renamed.
    with tempfile.TemporaryDirectory(prefix="shakedown-") as folder:
        drafts = [Path(folder) / f"{number}{target.suffix}" for number, (target, _) in enumerate(targets)]
        keys = drafts[1] if len(drafts) > 1 else None
        try:
            native.capture(handshakes, drafts[0], keylog=keys, options=options)
        except extension().CaptureError as error:
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
    """Times the primitives that the suites use: all, or only those that match the words."""
    return Rows(
        native.primitives(filter=words, seconds=seconds, back_to_back=back_to_back, progress=progress)
    )
