"""Experiments: a TOML file that names suites, repetitions, and what they are asked.

    name = "quickstart"
    title = "Which handshake for a small device?"
    question = "What does a sensor pay to open a connection?"
    suites = ["tls1.2/psk", "tls1.3/x25519/p256/server"]
    repeat = 30

A table for each side names the user's own certificates, and captures are inspected and priced beside suites:

    captures = [{ file = "gateway.pcapng", keylog = "keys.log" }]

    [server]
    chain = "gateway.pem"
    key = "gateway.key"

Every complaint is one line: file, line, key, what was found, what is accepted.
"""

from __future__ import annotations

import os
import re
import time as clock
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

from shakedown.credentials import OwnFiles, OwnMaterial, WrongMaterialError, assign
from shakedown.errors import InputError, did_you_mean, os_reason
from shakedown.measurement import SIDES, Side
from shakedown.toml_text import describe, locate, syntax_error
from shakedown.units import parse_rate_per_s

DEFAULT_REPEAT = 30
_MOST_REPETITIONS = 1_000_000
_MOST_TICKETS = 16
_KEYS = {
    "name", "title", "question", "suites", "repeat", "seed", "now", "tickets", "profile",
    "devices", "server_device", "bearers", "rates", "captures", "wtls", *SIDES,
}  # fmt: skip
_OWN_KEYS = ("chain", "key", "ca", "password_env")
_CAPTURE_KEYS = ("file", "keylog")
_CERTIFICATE_FORMS = ("wtls", "x509")
_WTLS_KEYS = ("certificate_form", "private_curves")


@dataclass(frozen=True)
class CaptureFile:
    """A capture to inspect, and the key log that unlocks it."""

    file: Path
    keylog: Path | None = None


@dataclass(frozen=True)
class Experiment:
    """What to run, and what to ask of it; suites are canonical, in the order of the file.

    With own certificates, a suite that shows them is called by their keys.
    """

    name: str
    suites: tuple[str, ...]
    repeat: int = DEFAULT_REPEAT
    title: str = ""
    question: str = ""
    seed: int | None = None
    now: int | None = None
    tickets: int | None = None
    profile: str | None = None
    devices: tuple[str, ...] = ()
    server_device: str | None = None
    bearers: tuple[str, ...] = ()
    rates_per_s: tuple[float, ...] = ()
    own: OwnMaterial = field(default_factory=OwnMaterial)
    captures: tuple[CaptureFile, ...] = ()
    wtls: Mapping[str, object] = field(default_factory=dict)
    text: str = field(default="", repr=False)

    def options(self, suite: str) -> dict[str, object]:
        """What `measure` takes beside the suite and the number of repetitions."""
        given = {"seed": self.seed, "now": self.now, "tickets": self.tickets, "profile": self.profile}
        options: dict[str, object] = {key: value for key, value in given.items() if value is not None}
        if suite.startswith("wtls/"):
            options |= self.wtls
        options |= self.own.options(suite)
        if "certificate_form" in options and suite in self.own.used:
            from shakedown.core import certificates_of

            if "made" not in certificates_of(suite, options).values():
                # The form is for certificates that are made, and this suite shows none.
                del options["certificate_form"]
        return options


def load_experiment(path: str | Path, canonical: Callable[[str], str] | None = None) -> Experiment:
    """Reads and checks an experiment; raises `InputError`.

    `canonical` turns a suite's name into its one spelling, or raises `InputError`; left out, the native
    core's is used.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {os_reason(error)}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a text file in UTF-8 (byte {error.start})") from error
    if canonical is None:
        from shakedown.core import runnable

        canonical = runnable
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(syntax_error(path, text, str(error))) from error
    return _Reader(path, text, data).experiment(canonical)


class _Reader:
    """One file under scrutiny: every taker says where the offending key stands."""

    def __init__(self, path: Path, text: str, data: Mapping[str, Any]) -> None:
        self.path, self.text, self.data = path, text, data

    def experiment(self, canonical: Callable[[str], str]) -> Experiment:
        self.no_others(self.data, _KEYS)
        if "suites" not in self.data and "captures" not in self.data:
            raise InputError(f'{self.path}: key suites is missing; accepted: suites = ["tls1.2/psk", …]')
        profile = self.string("profile", "")
        from_file = profile.endswith(".toml") or "/" in profile
        if from_file and not (self.path.parent / profile).is_file():
            raise self.wrong("profile", f'there is no file "{profile}" beside the experiment')
        if profile and not from_file:
            self.certificate_profile(profile)
        captures = self.captures()
        now = self.moment("now")
        suites, own = self.suites(canonical, now)
        return Experiment(
            name=self.string("name", self.path.stem, pattern=r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"),
            title=self.string("title", ""),
            question=self.string("question", ""),
            suites=suites,
            repeat=self.whole("repeat", 1, _MOST_REPETITIONS) or DEFAULT_REPEAT,
            seed=self.whole("seed", 0, 2**64 - 1),
            now=now,
            tickets=self.whole("tickets", 0, _MOST_TICKETS),
            profile=str(self.path.parent / profile) if from_file else profile or None,
            devices=self.profiles("devices", self.strings("devices")),
            server_device=next(iter(self.profiles("server_device", self.optional("server_device"))), None),
            bearers=self.profiles("bearers", self.strings("bearers")),
            rates_per_s=self.rates("rates"),
            own=own,
            captures=captures,
            wtls=self.wtls(suites),
            text=self.text,
        )

    def wrong(self, key: str, what: str, element: str | None = None) -> InputError:
        return InputError(f"{self.path}, line {locate(self.text, key, element)}, key {key}: {what}")

    def string(self, key: str, default: str, pattern: str | None = None) -> str:
        value = self.data.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, f"found {describe(value)}; accepted: a string")
        if pattern and not re.fullmatch(pattern, value):
            raise self.wrong(key, f'found "{value}"; accepted: letters, digits, ".", "_" and "-", at most 64')
        return value

    def optional(self, key: str) -> tuple[str, ...]:
        value = self.string(key, "")
        return (value,) if value else ()

    def profiles(self, key: str, names: tuple[str, ...]) -> tuple[str, ...]:
        """The names, each of which must be a profile's."""
        if names:
            from shakedown.profiles import bearer_names, device_names

            known = bearer_names() if key == "bearers" else device_names()
            for name in names:
                if name not in known:
                    hint = did_you_mean(name, known) or f"; accepted: {', '.join(known)}"
                    raise self.wrong(key, f'there is no profile "{name}"{hint}', name)
        return names

    def certificate_profile(self, name: str) -> None:
        """Refuses what is no certificate profile's name."""
        from shakedown import core

        known = [str(one["name"]) for one in core.certs({"do": "profiles"})]
        if name not in known:
            hint = did_you_mean(name, known) or f"; accepted: {', '.join(known)}, or a .toml file"
            raise self.wrong("profile", f'there is no certificate profile "{name}"{hint}')

    def wtls(self, suites: Collection[str]) -> dict[str, object]:
        """The table of what only WTLS suites know."""
        table = self.data.get("wtls", {})
        if not isinstance(table, dict):
            raise self.wrong("wtls", f"found {describe(table)}; accepted: a table, as [wtls]")
        self.no_others(table, _WTLS_KEYS, "wtls")
        form = table.get("certificate_form", _CERTIFICATE_FORMS[0])
        if form not in _CERTIFICATE_FORMS:
            accepted = ", ".join(_CERTIFICATE_FORMS)
            raise self.wrong("wtls.certificate_form", f"found {describe(form)}; accepted: {accepted}")
        private = table.get("private_curves", False)
        if not isinstance(private, bool):
            raise self.wrong("wtls.private_curves", f"found {describe(private)}; accepted: true, false")
        if table and not any(suite.startswith("wtls/") for suite in suites):
            raise self.wrong("wtls", "no suite of wtls is there to have a use for it")
        return dict(table)

    def whole(self, key: str, least: int, most: int) -> int | None:
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.wrong(key, f"found {describe(value)}; accepted: a whole number from {least} to {most}")
        return value

    def moment(self, key: str) -> int | None:
        value = self.data.get(key)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime.combine(value, time())
        if isinstance(value, datetime):
            return int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())
        raise self.wrong(key, f"found {describe(value)}; accepted: Unix seconds, or a date as 2026-01-31")

    def strings(self, key: str) -> tuple[str, ...]:
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(key, f'found {describe(value)}; accepted: an array of strings, as ["…", "…"]')
        twice = next((item for position, item in enumerate(value) if item in value[:position]), None)
        if twice is not None:
            raise self.wrong(key, f'"{twice}" stands there twice', twice)
        return tuple(value)

    def suites(self, canonical: Callable[[str], str], now: int | None) -> tuple[tuple[str, ...], OwnMaterial]:
        """The suites, and which of them show the user's own certificates."""
        written = self.strings("suites")
        files = {side: files for side in SIDES if (files := self.own_files(side)) is not None}
        if not written:
            if files:
                raise self.wrong(next(iter(files)), "no suite is there to show these certificates")
            if "captures" in self.data:
                return (), OwnMaterial()
            raise self.wrong("suites", "is empty; accepted: one suite or more")
        # The user's own certificates are for the world as it is, not for the laboratory's fixed day.
        today = int(clock.time()) if now is None else now
        found: dict[str, str] = {}
        used: dict[str, tuple[Side, ...]] = {}
        notes: list[str] = []
        for name in written:
            try:
                suite = canonical(name)
            except InputError as error:
                raise self.wrong("suites", str(error), name) from error
            if files:
                try:
                    shown = assign(name, suite, files, today)
                except WrongMaterialError as error:
                    raise self.wrong(error.side, str(error)) from error
                suite, used[shown.suite] = shown.suite, shown.sides
                notes += [f"{suite}: {note}" for note in shown.notes]
            if suite in found:
                raise self.wrong("suites", f'"{name}" and "{found[suite]}" are the same suite, {suite}', name)
            found[suite] = name
        for side, one in files.items():
            if not any(side in sides for sides in used.values()):
                raise self.wrong(side, self.nobody_shows(one, today))
        return tuple(found), OwnMaterial(files, today, used, tuple(notes))

    def nobody_shows(self, files: OwnFiles, now: int) -> str:
        """Why files go to no suite, and what would have a use for them."""
        keys = files.about(now)["keys_name"]
        if files.side == "client":
            return (
                "no suite here shows these certificates; accepted: a suite with /mutual that leaves its keys "
                f"out, or names these: {keys}"
            )
        return (
            "no suite here shows these certificates; accepted: a suite that leaves its keys out, as "
            f"tls1.3/x25519, or names these: {keys}"
        )

    def own_files(self, side: Side) -> OwnFiles | None:
        """A side's table of certificates."""
        table = self.data.get(side)
        if table is None:
            return None
        if not isinstance(table, dict):
            raise self.wrong(
                side, f'found {describe(table)}; accepted: a table, as [{side}] with chain = "…", key = "…"'
            )
        self.no_others(table, _OWN_KEYS, side)
        if "chain" not in table:
            raise self.wrong(side, f'chain is missing; accepted: [{side}] with chain = "…", key = "…"')
        variable = self.entry(table, side, "password_env")
        if variable is not None and variable not in os.environ:
            raise self.wrong(f"{side}.password_env", f"the environment has no variable {variable}", variable)
        chain, key, ca = (self.file(table, side, name) for name in ("chain", "key", "ca"))
        assert chain is not None
        return OwnFiles(side, chain, key, ca, variable)

    def captures(self) -> tuple[CaptureFile, ...]:
        value = self.data.get("captures", [])
        shape = 'an array of tables, as [{ file = "gateway.pcapng", keylog = "keys.log" }]'
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.wrong("captures", f"found {describe(value)}; accepted: {shape}")
        if not value and "captures" in self.data and "suites" not in self.data:
            raise self.wrong("captures", f"is empty; accepted: {shape}")
        found: list[CaptureFile] = []
        for table in value:
            self.no_others(table, _CAPTURE_KEYS, "captures")
            if "file" not in table:
                raise self.wrong("captures", f"file is missing; accepted: {shape}")
            file, keylog = (self.file(table, "captures", name) for name in _CAPTURE_KEYS)
            assert file is not None
            if any(one.file == file for one in found):
                raise self.wrong("captures.file", f'"{table["file"]}" stands there twice', table["file"])
            self.opens(file, keylog, table)
            found.append(CaptureFile(file, keylog))
        return tuple(found)

    def opens(self, file: Path, keylog: Path | None, table: Mapping[str, Any]) -> None:
        """Refuses what is no capture, or no key log, before anything is measured."""
        from shakedown import core

        try:
            core.inspect(file, keylog)
        except InputError as error:
            told = "keylog" if keylog is not None and str(error).startswith(str(keylog)) else "file"
            raise self.wrong(f"captures.{told}", str(error), table[told]) from error

    def no_others(self, table: Mapping[str, Any], known: Collection[str], inside: str = "") -> None:
        """Refuses keys that mean nothing."""
        for key in table:
            if key not in known:
                hint = did_you_mean(key, known) or f"; accepted: {', '.join(sorted(known))}"
                raise self.wrong(f"{inside}.{key}" if inside else key, f"unknown key{hint}")

    def entry(self, table: Mapping[str, Any], inside: str, key: str) -> str | None:
        """A string of a table, which may be left out but not empty."""
        value = table.get(key)
        if value is None or (isinstance(value, str) and value):
            return value
        raise self.wrong(f"{inside}.{key}", f"found {describe(value)}; accepted: a string")

    def file(self, table: Mapping[str, Any], inside: str, key: str) -> Path | None:
        """A file that a table names, its path taken from the experiment's folder."""
        name = self.entry(table, inside, key)
        if name is None:
            return None
        path = self.path.parent / name
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist"
            raise self.wrong(
                f"{inside}.{key}", f'"{name}" {what}; accepted: a file, from the experiment\'s folder', name
            )
        return path

    def rates(self, key: str) -> tuple[float, ...]:
        value = self.data.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(
                key, f'found {describe(value)}; accepted: an array of rates, as ["10/s", "300/s"]'
            )
        rates = []
        for item in value:
            if isinstance(item, bool) or not isinstance(item, str | int | float):
                raise self.wrong(key, f'found {describe(item)}; accepted: a rate, as "10/s"')
            try:
                rates.append(parse_rate_per_s(item))
            except InputError as error:
                raise self.wrong(key, str(error), str(item)) from error
        return tuple(rates)
