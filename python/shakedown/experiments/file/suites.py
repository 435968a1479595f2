"""The suites that an experiment measures, with their stacks, options and certificates."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from shakedown import native
from shakedown.errors import did_you_mean
from shakedown.experiments.file.credentials import Assigned, SideFiles, WrongChainError, assign
from shakedown.experiments.file.document import Document
from shakedown.files import limits
from shakedown.files.toml import describe
from shakedown.native.scenario import HandshakeId, MeasureOptions, Scenario
from shakedown.schema.base import SIDES, Side

KEYS = ("suites", "stack", "client_stack", "server_stack", *SIDES)
FILE_KEYS = ("chain", "key", "ca", "password_env")


def read_side_files(document: Document) -> dict[Side, SideFiles]:
    """The user-supplied certificates of the sides that have a table. Raises `InputError`."""
    return {side: _side_files(document, side) for side in SIDES if side in document.data}


def _side_files(document: Document, side: Side) -> SideFiles:
    table = document.table(side, FILE_KEYS)
    if "chain" not in table:
        raise document.wrong(side, 'chain is missing; accepted: chain = "…", a file of certificates')
    variable = document.entry(table, side, "password_env")
    if variable is not None and variable not in os.environ:
        raise document.wrong(f"{side}.password_env", f"the environment has no variable {variable}", variable)
    chain, key, ca = (document.file(table, side, name) for name in ("chain", "key", "ca"))
    assert chain is not None
    return SideFiles(side, chain, key, ca, variable)


def read_suites(
    document: Document, files: Mapping[Side, SideFiles], today: int, options: MeasureOptions
) -> tuple[list[Scenario], tuple[str, ...]]:
    """One scenario per suite, and notes on them.

    Suites that present user-supplied certificates are named after their keys. Raises `InputError`.
    """
    written = document.strings("suites", limits.MAX_SUITES)
    if not written:
        if files:
            raise document.wrong(next(iter(files)), "no suite presents these certificates")
        if "captures" not in document.data:
            raise document.wrong("suites", "is empty; accepted: one suite or more")
    found: dict[str, str] = {}
    scenarios: list[Scenario] = []
    notes: list[str] = []
    stacks = _stacks(document)
    for name in written:
        one = _assigned(document, name, files, today)
        if one.suite in found:
            raise document.wrong(
                "suites",
                f"{describe(name)} and {describe(found[one.suite])} are the same suite, {one.suite}",
                name,
            )
        found[one.suite] = name
        notes += [f"{one.suite}: {note}" for note in one.notes]
        if (note := options.software_note(one.suite)) is not None:
            notes.append(note)
        handshake = HandshakeId(
            suite=one.suite,
            client_stack=stacks["client"],
            server_stack=stacks["server"],
            carrier=options.carrier or "bare",
            credentials="user-supplied" if one.sides else "generated",
        )
        chosen = _options_of(one, files, today, options)
        _check_stacks(document, stacks, one.suite, name)
        scenarios.append(Scenario(kind="measured", handshake=handshake, options=chosen))
    for side, side_files in files.items():
        if not any(side in one.options.user_supplied for one in scenarios):
            raise document.wrong(side, _not_presented(side_files, today))
    return scenarios, tuple(notes)


def _stacks(document: Document) -> dict[Side, str | None]:
    """The stacks of the two sides; None for the suite's usual one."""
    both = document.string("stack", "")
    found = {side: document.string(f"{side}_stack", both) or None for side in SIDES}
    for side, name in found.items():
        if name:
            known = [one.name for one in native.stacks()]
            if name not in known:
                key = f"{side}_stack" if f"{side}_stack" in document.data else "stack"
                hint = did_you_mean(name, known) or f"; accepted: {', '.join(known)}"
                raise document.wrong(key, f"there is no stack {describe(name)}{hint}")
    return found


def _check_stacks(document: Document, stacks: Mapping[Side, str | None], suite: str, written: str) -> None:
    """Refuses a suite whose protocol a requested stack does not support as client or as server."""
    for side, name in stacks.items():
        if name is None:
            continue
        protocol = native.describe(suite)["protocol"]
        known = [one.name for one in native.stacks() if protocol in getattr(one, side)]
        if name not in known:
            raise document.wrong(
                "suites",
                f"{written}: the stack {name} runs no {side} of {protocol}; accepted: {', '.join(known)}",
                written,
            )


def _assigned(document: Document, name: str, files: Mapping[Side, SideFiles], today: int) -> Assigned:
    with document.at("suites", name):
        suite = native.runnable(name)
    if not files:
        return Assigned(suite)
    try:
        return assign(name, suite, files, today)
    except WrongChainError as error:
        raise document.wrong(error.side, str(error)) from error


def _options_of(
    one: Assigned, files: Mapping[Side, SideFiles], today: int, options: MeasureOptions
) -> MeasureOptions:
    """The other arguments of `measure` for this suite."""
    changes: dict[str, Any] = {}
    if not one.suite.startswith("wtls/"):
        changes |= {"certificate_form": None, "private_curves": False}
    if one.sides:
        changes["now"] = today
        for side in one.sides:
            changes |= files[side].options()
        if set(native.presenting(one.suite)) <= set(one.sides):
            # The form is for generated certificates, and this suite presents none.
            changes["certificate_form"] = None
    return replace(options, **changes) if changes else options


def _not_presented(files: SideFiles, now: int) -> str:
    """The error for files that no suite presents, with the suites that would present them."""
    keys = files.described(now).keys_name
    kind, example = (" with /mutual", "") if files.side == "client" else ("", ", as tls1.3/x25519")
    return (
        f"no suite here presents these certificates; accepted: a suite{kind} that leaves its keys "
        f"out{example}, or names these: {keys}"
    )
