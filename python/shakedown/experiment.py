"""Experiments: a TOML file that names suites, repetitions, and what they are asked.

    name = "quickstart"
    title = "Which handshake for a small device?"
    question = "What does a sensor pay to open a connection?"
    suites = ["tls1.2/psk", "tls1.3/x25519/p256/server"]
    repeat = 30

Every complaint is one line: file, line, key, what was found, what is accepted.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

from shakedown.errors import InputError, did_you_mean, os_reason
from shakedown.units import parse_rate_per_s

DEFAULT_REPEAT = 30
_MOST_REPETITIONS = 1_000_000
_MOST_TICKETS = 16


@dataclass(frozen=True)
class Experiment:
    """What to run, and what to ask of it; suites are canonical, in the order of the file."""

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
    text: str = field(default="", repr=False)

    def options(self) -> dict[str, object]:
        """What `measure` takes beside the suite and the number of repetitions."""
        given = {"seed": self.seed, "now": self.now, "tickets": self.tickets, "profile": self.profile}
        return {key: value for key, value in given.items() if value is not None}


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
        raise InputError(_syntax_error(path, text, str(error))) from error
    return _Reader(path, text, data).experiment(canonical)


def _syntax_error(path: Path, text: str, reason: str) -> str:
    """tomllib's complaint as ours, with the line and what stands on it."""
    match = re.fullmatch(r"(.*?) \(at (?:line (\d+), column \d+|end of document)\)", reason, re.DOTALL)
    lines = text.splitlines() or [""]
    number = int(match[2]) if match and match[2] else len(lines)
    what = match[1] if match else reason
    what = what[:1].lower() + what[1:]
    key = re.match(r"\s*([\w.\-]+)\s*=", lines[number - 1] if number <= len(lines) else "")
    named = f", key {key[1]}" if key else ""
    return f"{path}, line {number}{named}: not valid TOML: {what}"


def locate(text: str, key: str, element: str | None = None) -> int:
    """The line on which a top-level key of a TOML text stands, or a string in its array; 1 if nowhere."""
    lines = text.splitlines()
    at = re.compile(rf"""\s*(?:\[+\s*)?["']?{re.escape(key)}["']?\s*(?:=|\.|\])""")
    for number, line in enumerate(lines, start=1):
        if not at.match(line):
            continue
        if element is not None:
            for later, candidate in enumerate(lines[number - 1 :], start=number):
                if element in candidate:
                    return later
        return number
    return 1


class _Reader:
    """One file under scrutiny: every taker says where the offending key stands."""

    def __init__(self, path: Path, text: str, data: Mapping[str, Any]) -> None:
        self.path, self.text, self.data = path, text, data

    def experiment(self, canonical: Callable[[str], str]) -> Experiment:
        known = {
            "name", "title", "question", "suites", "repeat", "seed", "now", "tickets", "profile",
            "devices", "server_device", "bearers", "rates",
        }  # fmt: skip
        for key in self.data:
            if key not in known:
                hint = did_you_mean(key, known) or f"; accepted: {', '.join(sorted(known))}"
                raise self.wrong(key, f"unknown key{hint}")
        if "suites" not in self.data:
            raise InputError(f'{self.path}: key suites is missing; accepted: suites = ["tls1.2/psk", …]')
        profile = self.string("profile", "")
        from_file = profile.endswith(".toml") or "/" in profile
        if from_file and not (self.path.parent / profile).is_file():
            raise self.wrong("profile", f'there is no file "{profile}" beside the experiment')
        return Experiment(
            name=self.string("name", self.path.stem, pattern=r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"),
            title=self.string("title", ""),
            question=self.string("question", ""),
            suites=self.suites(canonical),
            repeat=self.whole("repeat", 1, _MOST_REPETITIONS) or DEFAULT_REPEAT,
            seed=self.whole("seed", 0, 2**64 - 1),
            now=self.moment("now"),
            tickets=self.whole("tickets", 0, _MOST_TICKETS),
            profile=str(self.path.parent / profile) if from_file else profile or None,
            devices=self.profiles("devices", self.strings("devices")),
            server_device=next(iter(self.profiles("server_device", self.optional("server_device"))), None),
            bearers=self.profiles("bearers", self.strings("bearers")),
            rates_per_s=self.rates("rates"),
            text=self.text,
        )

    def wrong(self, key: str, what: str, element: str | None = None) -> InputError:
        return InputError(f"{self.path}, line {locate(self.text, key, element)}, key {key}: {what}")

    def string(self, key: str, default: str, pattern: str | None = None) -> str:
        value = self.data.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, f"found {_describe(value)}; accepted: a string")
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

    def whole(self, key: str, least: int, most: int) -> int | None:
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.wrong(
                key, f"found {_describe(value)}; accepted: a whole number from {least} to {most}"
            )
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
        raise self.wrong(key, f"found {_describe(value)}; accepted: Unix seconds, or a date as 2026-01-31")

    def strings(self, key: str) -> tuple[str, ...]:
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(key, f'found {_describe(value)}; accepted: an array of strings, as ["…", "…"]')
        twice = next((item for position, item in enumerate(value) if item in value[:position]), None)
        if twice is not None:
            raise self.wrong(key, f'"{twice}" stands there twice', twice)
        return tuple(value)

    def suites(self, canonical: Callable[[str], str]) -> tuple[str, ...]:
        written = self.strings("suites")
        if not written:
            raise self.wrong("suites", "is empty; accepted: one suite or more")
        found: dict[str, str] = {}
        for name in written:
            try:
                suite = canonical(name)
            except InputError as error:
                raise self.wrong("suites", str(error), name) from error
            if suite in found:
                raise self.wrong("suites", f'"{name}" and "{found[suite]}" are the same suite, {suite}', name)
            found[suite] = name
        return tuple(found)

    def rates(self, key: str) -> tuple[float, ...]:
        value = self.data.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(
                key, f'found {_describe(value)}; accepted: an array of rates, as ["10/s", "300/s"]'
            )
        rates = []
        for item in value:
            if isinstance(item, bool) or not isinstance(item, str | int | float):
                raise self.wrong(key, f'found {_describe(item)}; accepted: a rate, as "10/s"')
            try:
                rates.append(parse_rate_per_s(item))
            except InputError as error:
                raise self.wrong(key, str(error), str(item)) from error
        return tuple(rates)


def _describe(value: object) -> str:
    """A TOML value as an error line names it."""
    names: dict[type, str] = {dict: "a table", list: "an array", bool: "a truth value"}
    if type(value) in names:
        return f"{names[type(value)]} ({value})" if isinstance(value, bool) else names[type(value)]
    return f'"{value}"' if isinstance(value, str) else str(value)
