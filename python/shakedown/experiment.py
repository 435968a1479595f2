"""Experiments: a TOML file that names suites, repetitions, and where they are priced.

    name = "quickstart"
    title = "Which handshake for a small device?"
    question = "What does a sensor pay to open a connection?"
    suites = ["tls1.2/psk", "tls1.3/x25519/p256/server"]
    repeat = 30

A table for each side names the user's certificates, and captures are inspected and priced beside suites:

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
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, Literal

import msgspec

from shakedown.credentials import Assigned, SideFiles, WrongChainError, assign
from shakedown.errors import InputError, did_you_mean
from shakedown.files import limits
from shakedown.files.toml import describe, load_toml, locate
from shakedown.scenario import (
    DEFAULT_PERCENTILE,
    CaptureFile,
    Fleet,
    Fleets,
    HandshakeId,
    Live,
    Options,
    Places,
    Scenario,
)
from shakedown.schema.base import SIDES, Side
from shakedown.schema.saved import AboutExperiment
from shakedown.units import parse_duration_s, parse_rate_per_s

FILE_KEYS = ("chain", "key", "ca", "password_env")
CAPTURE_KEYS = ("file", "keylog")
SIMULATED_KEYS = (
    "arrivals", "clients", "timeout", "retries", "resumption", "from_idle", "discipline",
    "max_handshakes", "accept_queue", "replications", "seed", "endpoints",
)  # fmt: skip
LIVE_KEYS = (
    "rate", "utilisation", "arrivals", "duration", "count", "clients", "resumption", "timeout", "workers",
    "compare", "traces", "slow_to",
)  # fmt: skip
_OTHER_KEYS = {
    "name", "title", "question", "suites", "devices", "server_device", "bearers", "rates", "workers",
    "within", "percentile", "captures",
    "stack", "client_stack", "server_stack", "simulated", "live", *SIDES,
}  # fmt: skip


@dataclass(frozen=True)
class Experiment:
    """What to run, and where to price it; scenarios are in the order of the file.

    With user-supplied certificates, a suite that presents them is called by their keys.
    """

    about: AboutExperiment
    scenarios: tuple[Scenario, ...]
    places: Places = field(default_factory=Places)
    fleets: Fleets = field(default_factory=Fleets)
    live: tuple[Live, ...] = ()
    chains: Mapping[Side, SideFiles] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name: the file's, where it gives none."""
        return self.about.name

    def of(self, kind: Literal["measured", "captured"]) -> tuple[Scenario, ...]:
        """Scenarios of a kind."""
        return tuple(one for one in self.scenarios if one.kind == kind)

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites that are measured."""
        return tuple(one.label for one in self.of("measured"))

    def presented(self, side: Side) -> tuple[str, ...]:
        """The suites in which a side presents the user's certificates."""
        return tuple(one.label for one in self.of("measured") if side in one.options.user_supplied)


def load_experiment(path: str | Path) -> Experiment:
    """Reads and checks an experiment; raises `InputError`."""
    path = Path(path)
    data, text = load_toml(path, limits.MAX_EXPERIMENT_BYTES, "TOML file")
    return _Reader(path, text, data).experiment()


class _Reader:
    """One file under scrutiny: every taker says where the offending key stands."""

    def __init__(self, path: Path, text: str, data: Mapping[str, Any]) -> None:
        self.path, self.text, self.data = path, text, data
        fields = {one.name: one for one in msgspec.structs.fields(Options)}
        self.tables: dict[str, list[str]] = {}
        for name, one in fields.items():
            self.tables.setdefault(_extra(one.type).get("table", ""), []).append(name)
        # Passwords are named by their variable, and stand in the sides' tables.
        self.top = [name for name in self.tables[""] if _extra(fields[name].type)["form"] != "secret"]

    def experiment(self) -> Experiment:
        self.no_others(self.data, {*_OTHER_KEYS, *self.top, "wtls"})
        if "suites" not in self.data and "captures" not in self.data:
            raise InputError(f'{self.path}: key suites is missing; accepted: suites = ["tls1.2/psk", …]')
        options = self.options()
        captures = self.captures()
        written = self.strings("suites", limits.MAX_SUITES)
        files = {side: files for side in SIDES if (files := self.side_files(side)) is not None}
        if not written:
            if files:
                raise self.wrong(next(iter(files)), "no suite is there to present these certificates")
            if "captures" not in self.data:
                raise self.wrong("suites", "is empty; accepted: one suite or more")
        # User-supplied certificates are for the world as it is, not for the laboratory's fixed day.
        today = int(clock.time()) if options.now is None else options.now
        measured, notes = self.measured(written, files, today, options)
        places = self.places()
        return Experiment(
            about=AboutExperiment(
                name=self.string("name", self.path.stem, pattern=r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"),
                title=self.string("title", ""),
                question=self.string("question", ""),
                text=self.text,
            ),
            scenarios=(*captures, *measured),
            places=places,
            fleets=self.fleets(places, options),
            live=self.live(places),
            chains=files,
            notes=notes,
        )

    def wrong(self, key: str, what: str, element: str | None = None) -> InputError:
        return InputError(f"{self.path}, line {locate(self.text, key, element)}, key {key}: {what}")

    def options(self) -> Options:
        """The options at the file's top and in the table of what only WTLS suites know."""
        given: dict[str, object] = {}
        for name in self.top:
            if name in self.data:
                given[name] = self.option(name, name, self.data[name])
        table = self.data.get("wtls", {})
        if not isinstance(table, dict):
            raise self.wrong("wtls", f"found {describe(table)}; accepted: a table, as [wtls]")
        self.no_others(table, self.tables["wtls"], "wtls")
        for name, value in table.items():
            given[name] = self.option(name, f"wtls.{name}", value)
        if table and not any(
            one.strip().lower().startswith("wtls/") for one in self.strings("suites", limits.MAX_SUITES)
        ):
            raise self.wrong("wtls", "no suite of wtls is there to have a use for it")
        return Options(**given)  # type: ignore[arg-type]  # each has been checked against its field

    def option(self, name: str, key: str, value: object) -> object:
        """One option's value, checked against its definition."""
        kind = next(one.type for one in msgspec.structs.fields(Options) if one.name == name)
        form = _extra(kind)["form"]
        if form == "time":
            return self.unix_s(key, value)
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError:
            raise self.wrong(key, f"found {describe(value)}; accepted: {accepted(kind)}") from None
        if form == "name or file":
            return self.profile_option(key, str(value))
        return value

    def unix_s(self, key: str, value: object) -> int:
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime.combine(value, time())
        if isinstance(value, datetime):
            value = int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= limits.MAX_UNIX_S:
            return value
        raise self.wrong(
            key,
            f"found {describe(value)}; accepted: Unix seconds before the year 10000, or a date as 2026-01-31",
        )

    def profile_option(self, key: str, name: str) -> str:
        """A certificate profile: its name, or the path of a file beside the experiment."""
        if name.endswith(".toml") or "/" in name:
            if not (self.path.parent / name).is_file():
                raise self.wrong(key, f'there is no file "{name}" beside the experiment')
            return str(self.path.parent / name)
        from shakedown import core

        known = [str(one["name"]) for one in core.certs({"do": "profiles"})]
        if name not in known:
            hint = did_you_mean(name, known) or f"; accepted: {', '.join(known)}, or a .toml file"
            raise self.wrong(key, f'there is no certificate profile "{name}"{hint}')
        return name

    def string(self, key: str, default: str, pattern: str | None = None) -> str:
        value = self.data.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, f"found {describe(value)}; accepted: a string")
        if pattern and not re.fullmatch(pattern, value):
            raise self.wrong(
                key, f'found {describe(value)}; accepted: letters, digits, ".", "_" and "-", at most 64'
            )
        return value

    def strings(self, key: str, most: int) -> tuple[str, ...]:
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(key, f'found {describe(value)}; accepted: an array of strings, as ["…", "…"]')
        self.bounded(key, value, most)
        seen: set[str] = set()
        for item in value:
            if item in seen:
                raise self.wrong(key, f"{describe(item)} is repeated", item)
            seen.add(item)
        return tuple(value)

    def bounded(self, key: str, value: Collection[object], most: int) -> None:
        if len(value) > most:
            raise self.wrong(key, f"found {len(value):,} of them; accepted: {most:,} at most")

    def places(self) -> Places:
        """Where the handshakes are priced."""
        server = self.string("server_device", "")
        devices = self.profiles("devices", self.strings("devices", limits.MAX_PLACES))
        bearers = self.profiles("bearers", self.strings("bearers", limits.MAX_PLACES))
        if len(devices) * len(bearers) > limits.MAX_PLACES:
            raise self.wrong(
                "bearers",
                f"found {len(devices):,} devices with {len(bearers):,} bearers each; accepted: "
                f"{limits.MAX_PLACES:,} pairs at most",
            )
        return Places(
            devices=devices,
            server_device=next(iter(self.profiles("server_device", (server,) if server else ())), None),
            bearers=bearers,
            rates_per_s=self.rates("rates"),
            workers=self.workers(),
            within_s=self.within(),
            percentile=self.percentile(),
        )

    def workers(self) -> int:
        """The server's workers."""
        value = self.data.get("workers", 1)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= limits.MAX_WORKERS:
            most = f"{limits.MAX_WORKERS:,}"
            raise self.wrong("workers", f"found {describe(value)}; accepted: a whole number from 1 to {most}")
        return value

    def within(self) -> float | None:
        """The promised time of a handshake, for which the workers needed are computed."""
        value = self.data.get("within")
        if value is None:
            return None
        try:
            if not isinstance(value, str) or value.strip().replace(".", "", 1).isdigit():
                raise InputError(f'found {describe(value)}; accepted: a time with its unit, as "200ms"')
            seconds = parse_duration_s(value)
            if not seconds > 0.0:
                raise InputError(f"found {describe(value)}; accepted: a time above 0")
        except InputError as error:
            raise self.wrong("within", str(error)) from error
        return seconds

    def percentile(self) -> float:
        """The share of handshakes that keep the promise, in per cent."""
        value = self.data.get("percentile", DEFAULT_PERCENTILE)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < 100.0:
            raise self.wrong("percentile", f"found {describe(value)}; accepted: above 0 and below 100")
        if "percentile" in self.data and "within" not in self.data:
            raise self.wrong("percentile", 'there is no promise that it is of; accepted: beside "within"')
        return float(value)

    def fleets(self, places: Places, options: Options) -> Fleets:
        """The fleets that are simulated in each place; none without the table."""
        if "simulated" not in self.data:
            return Fleets()
        table = self.data["simulated"]
        if not isinstance(table, dict):
            raise self.wrong("simulated", f"found {describe(table)}; accepted: a table, as [simulated]")
        self.no_others(table, SIMULATED_KEYS, "simulated")
        given = {
            name: self.number(table, name)
            for name in (
                "clients",
                "retries",
                "max_handshakes",
                "accept_queue",
                "replications",
                "seed",
            )
            if name in table
        }
        seed = given.pop("seed", options.seed)
        fleets = tuple(self.fleet(text, table, given) for text in self.arrivals(table, places.rates_per_s))
        fleets += self.engines(table, fleets)
        try:
            from shakedown.simulation.simulate import check_server

            check_server(places.workers, seed)
        except InputError as error:
            raise self.wrong("simulated.seed", str(error)) from error
        return Fleets(fleets=fleets, seed=seed)

    def engines(self, table: Mapping[str, Any], fleets: tuple[Fleet, ...]) -> tuple[Fleet, ...]:
        """The same fleets of protocol engines, beside the replayed ones, where they are asked for."""
        from shakedown.simulation.simulate import Stacks

        wanted = table.get("endpoints", False)
        if not isinstance(wanted, bool):
            raise self.wrong("simulated.endpoints", f"found {describe(wanted)}; accepted: true, false")
        if not wanted:
            return ()
        try:
            made = tuple(Stacks().fleet(fleet) for fleet in fleets)
        except InputError as error:
            raise self.wrong("simulated.endpoints", str(error)) from error
        return tuple(msgspec.structs.replace(fleet, endpoints=True) for fleet in made)

    def fleet(self, arrivals: str, table: Mapping[str, Any], given: Mapping[str, Any]) -> Fleet:
        """One fleet, refused where it makes no sense."""
        from shakedown.simulation.fleet import settle

        discipline, from_idle = table.get("discipline", "fifo"), table.get("from_idle", False)
        if discipline not in ("fifo", "ps"):
            raise self.wrong("simulated.discipline", f"found {describe(discipline)}; accepted: fifo, ps")
        if not isinstance(from_idle, bool):
            raise self.wrong("simulated.from_idle", f"found {describe(from_idle)}; accepted: true, false")
        resumption = table.get("resumption", 0.0)
        if isinstance(resumption, bool) or not isinstance(resumption, int | float):
            found = f"found {describe(resumption)}; accepted: a share from 0 to 1"
            raise self.wrong("simulated.resumption", found)
        named = dict(given)
        if arrivals.startswith("file:"):
            arrivals = f"file:{self.path.parent / arrivals.removeprefix('file:')}"
            named.pop("clients", None)
        try:
            timeout_s = parse_duration_s(table["timeout"]) if "timeout" in table else None
            fleet = Fleet(
                arrivals=arrivals,
                timeout_s=timeout_s,
                resumption=float(resumption),
                from_idle=from_idle,
                discipline="ps" if discipline == "ps" else "fifo",
                **named,
            )
            settle(fleet)
        except InputError as error:
            word = str(error).split(" ", 1)[0]
            key = next((name for name in SIMULATED_KEYS if name.startswith(word)), "arrivals")
            raise self.wrong(f"simulated.{key}", str(error)) from error
        return fleet

    def live(self, places: Places) -> tuple[Live, ...]:
        """The loads on real servers, one a rate; none without the table."""
        if "live" not in self.data:
            return ()
        table = self.data["live"]
        if not isinstance(table, dict):
            raise self.wrong("live", f"found {describe(table)}; accepted: a table, as [live]")
        self.no_others(table, LIVE_KEYS, "live")
        given: dict[str, Any] = {"workers": places.workers}
        for name, least, most in (
            ("count", 1, limits.MAX_LIVE_STARTS),
            ("clients", 1, limits.MAX_LIVE_CLIENTS),
            ("workers", 1, limits.MAX_LIVE_WORKERS),
            ("traces", 1, limits.MAX_LIVE_TRACES),
        ):
            if name in table or name in given:
                value = table.get(name, given.get(name))
                if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                    wanted = f"a whole number from {least} to {most:,}"
                    raise self.wrong(f"live.{name}", f"found {describe(value)}; accepted: {wanted}")
                given[name] = value
        for name, least_share in (("resumption", 0.0), ("utilisation", 0.01)):
            value = table.get(name, getattr(Live(), name))
            if isinstance(value, bool) or not isinstance(value, int | float) or not least_share <= value <= 1:
                wanted = f"a share from {least_share:g} to 1"
                raise self.wrong(f"live.{name}", f"found {describe(value)}; accepted: {wanted}")
            given[name] = float(value)
        arrivals = table.get("arrivals", "poisson")
        if arrivals not in ("poisson", "deterministic", "closed"):
            found = f"found {describe(arrivals)}; accepted: poisson, deterministic, closed"
            raise self.wrong("live.arrivals", found)
        if not isinstance(table.get("compare", False), bool):
            raise self.wrong("live.compare", f"found {describe(table['compare'])}; accepted: true, false")
        for name in ("duration", "timeout"):
            if name in table:
                given[f"{name}_s"] = self.live_time(name, table[name])
        if "rate" in table and "utilisation" in table:
            raise self.wrong("live.utilisation", "a rate is given too; accepted: one of the two")
        rates: tuple[float | None, ...] = tuple(rate for rate in places.rates_per_s if rate > 0.0) or (None,)
        if "rate" in table or "utilisation" in table or arrivals == "closed":
            rates = (self.live_rate(table["rate"]),) if "rate" in table else (None,)
        if arrivals == "closed" and "rate" in table:
            raise self.wrong(
                "live.rate", "a closed loop has no rate; accepted: poisson or deterministic arrivals"
            )
        given["slow_to"] = self.slow_to(table, given.get("traces", 0))
        compare = table.get("compare", False)
        return tuple(Live(rate_per_s=rate, arrivals=arrivals, compare=compare, **given) for rate in rates)

    def slow_to(self, table: Mapping[str, Any], traces: int) -> tuple[str, ...]:
        """Devices whose time sampled clients take."""
        from shakedown.profiles import load_device

        value = table.get("slow_to", [])
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            wanted = 'a device, or an array of them, as ["raspberry-pi"]'
            raise self.wrong("live.slow_to", f"found {describe(value)}; accepted: {wanted}")
        if names and not traces:
            raise self.wrong("live.slow_to", "no handshakes are sampled; accepted with it: traces")
        for name in names:
            try:
                load_device(name)
            except InputError as error:
                raise self.wrong("live.slow_to", str(error)) from error
        return tuple(dict.fromkeys(names))

    def live_rate(self, value: object) -> float:
        try:
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise InputError(f'found {describe(value)}; accepted: a rate, as "10/s"')
            rate_per_s = parse_rate_per_s(value)
            if rate_per_s <= 0.0:
                raise InputError("found 0; accepted: a rate above 0")
        except InputError as error:
            raise self.wrong("live.rate", str(error)) from error
        return rate_per_s

    def live_time(self, name: str, value: object) -> float:
        try:
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise InputError(f'found {describe(value)}; accepted: a time, as "10s"')
            time_s = parse_duration_s(value)
            if not 0.0 < time_s <= limits.MAX_LIVE_S:
                raise InputError(f"found {describe(value)}; accepted: above 0, at most {limits.MAX_LIVE_S} s")
        except InputError as error:
            raise self.wrong(f"live.{name}", str(error)) from error
        return time_s

    def arrivals(self, table: Mapping[str, Any], rates_per_s: tuple[float, ...]) -> list[str]:
        """Arrival processes; left out, Poisson's at each of the experiment's rates."""
        value = table.get("arrivals", [f"poisson:{rate:g}/s" for rate in rates_per_s if rate > 0.0])
        shape = 'an array of arrival processes, as ["storm:10s", "poisson:50/s"]'
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong("simulated.arrivals", f"found {describe(value)}; accepted: {shape}")
        if not value:
            what = "is empty" if "arrivals" in table else "is missing, and there are no rates"
            raise self.wrong("simulated.arrivals", f"{what}; accepted: {shape}")
        self.bounded("simulated.arrivals", value, limits.MAX_RATES)
        return value

    def number(self, table: Mapping[str, Any], name: str) -> int:
        """A whole number of the table."""
        value = table[name]
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(f"simulated.{name}", f"found {describe(value)}; accepted: a whole number")
        return value

    def profiles(self, key: str, names: tuple[str, ...]) -> tuple[str, ...]:
        """The names, each of which must be a profile's."""
        if names:
            from shakedown.profiles import bearer_names, device_names

            known = bearer_names() if key == "bearers" else device_names()
            for name in names:
                if name not in known:
                    hint = did_you_mean(name, known) or f"; accepted: {', '.join(known)}"
                    raise self.wrong(key, f"there is no profile {describe(name)}{hint}", name)
        return names

    def rates(self, key: str) -> tuple[float, ...]:
        value = self.data.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(
                key, f'found {describe(value)}; accepted: an array of rates, as ["10/s", "300/s"]'
            )
        self.bounded(key, value, limits.MAX_RATES)
        rates = []
        for item in value:
            if isinstance(item, bool) or not isinstance(item, str | int | float):
                raise self.wrong(key, f'found {describe(item)}; accepted: a rate, as "10/s"')
            try:
                rates.append(parse_rate_per_s(item))
            except InputError as error:
                raise self.wrong(key, str(error), describe(item).strip('"')) from error
        return tuple(rates)

    def measured(
        self, written: tuple[str, ...], files: Mapping[Side, SideFiles], today: int, options: Options
    ) -> tuple[list[Scenario], tuple[str, ...]]:
        """A scenario a suite; with those that present the user's certificates, under the name of their
        keys.
        """
        found: dict[str, str] = {}
        scenarios: list[Scenario] = []
        notes: list[str] = []
        stacks = self.stacks()
        for name in written:
            one = self.assigned(name, files, today)
            if one.suite in found:
                raise self.wrong(
                    "suites",
                    f"{describe(name)} and {describe(found[one.suite])} are the same suite, {one.suite}",
                    name,
                )
            found[one.suite] = name
            notes += [f"{one.suite}: {note}" for note in one.notes]
            scenarios.append(
                Scenario(
                    kind="measured",
                    handshake=HandshakeId(
                        suite=one.suite,
                        client_stack=stacks.get("client_stack"),
                        server_stack=stacks.get("server_stack"),
                        carrier=options.over or "bare",
                        credentials="user-supplied" if one.sides else "generated",
                    ),
                    options=self.for_suite(one, files, today, options),
                )
            )
        for side, side_files in files.items():
            if not any(side in one.options.user_supplied for one in scenarios):
                raise self.wrong(side, nobody_presents(side_files, today))
        return scenarios, tuple(notes)

    def assigned(self, name: str, files: Mapping[Side, SideFiles], today: int) -> Assigned:
        from shakedown.core import runnable

        try:
            suite = runnable(name)
        except InputError as error:
            raise self.wrong("suites", str(error), name) from error
        if not files:
            return Assigned(suite)
        try:
            return assign(name, suite, files, today)
        except WrongChainError as error:
            raise self.wrong(error.side, str(error)) from error

    def for_suite(
        self, one: Assigned, files: Mapping[Side, SideFiles], today: int, options: Options
    ) -> Options:
        """What `measure` takes beside this suite."""
        changes: dict[str, Any] = {}
        if not one.suite.startswith("wtls/"):
            changes |= {"certificate_form": None, "private_curves": False}
        if one.sides:
            changes["now"] = today
            for side in one.sides:
                changes |= files[side].options()
            from shakedown.core import presenting

            if set(presenting(one.suite)) <= set(one.sides):
                # The form is for generated certificates, and this suite presents none.
                changes["certificate_form"] = None
        return msgspec.structs.replace(options, **changes) if changes else options

    def stacks(self) -> dict[str, str]:
        """The stacks that run the two sides, where the file names them."""
        both = self.string("stack", "")
        found = {side: self.string(f"{side}_stack", both) for side in SIDES}
        for side, name in found.items():
            if name:
                from shakedown import core

                known = [one.name for one in core.stacks()]
                if name not in known:
                    key = f"{side}_stack" if f"{side}_stack" in self.data else "stack"
                    hint = did_you_mean(name, known) or f"; accepted: {', '.join(known)}"
                    raise self.wrong(key, f"there is no stack {describe(name)}{hint}")
        return {f"{side}_stack": name for side, name in found.items() if name}

    def side_files(self, side: Side) -> SideFiles | None:
        """A side's table of the user's certificates."""
        if side not in self.data:
            return None
        table = self.data[side]
        if not isinstance(table, dict):
            raise self.wrong(side, f"found {describe(table)}; accepted: a table, as [{side}]")
        self.no_others(table, FILE_KEYS, side)
        if "chain" not in table:
            raise self.wrong(side, 'chain is missing; accepted: chain = "…", a file of certificates')
        variable = self.entry(table, side, "password_env")
        if variable is not None and variable not in os.environ:
            raise self.wrong(f"{side}.password_env", f"the environment has no variable {variable}", variable)
        chain, key, ca = (self.file(table, side, name) for name in ("chain", "key", "ca"))
        assert chain is not None
        return SideFiles(side, chain, key, ca, variable)

    def captures(self) -> list[Scenario]:
        value = self.data.get("captures", [])
        shape = 'an array of tables, as [{ file = "gateway.pcapng", keylog = "keys.log" }]'
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.wrong("captures", f"found {describe(value)}; accepted: {shape}")
        if not value and "captures" in self.data and "suites" not in self.data:
            raise self.wrong("captures", f"is empty; accepted: {shape}")
        self.bounded("captures", value, limits.MAX_CAPTURES)
        found: dict[Path, Scenario] = {}
        for table in value:
            self.no_others(table, CAPTURE_KEYS, "captures")
            if "file" not in table:
                raise self.wrong("captures", f"file is missing; accepted: {shape}")
            file, keylog = (self.file(table, "captures", name) for name in CAPTURE_KEYS)
            assert file is not None
            if file in found:
                raise self.wrong("captures.file", f"{describe(table['file'])} is repeated", table["file"])
            self.opens(file, keylog, table)
            found[file] = Scenario(
                kind="captured", capture=CaptureFile(file=str(file), keylog=str(keylog) if keylog else None)
            )
        return list(found.values())

    def opens(self, file: Path, keylog: Path | None, table: Mapping[str, Any]) -> None:
        """Refuses what is no capture, or no key log, before anything is measured."""
        from shakedown import core

        try:
            core.inspect(file, keylog)
        except InputError as error:
            key = "keylog" if keylog is not None and str(error).startswith(str(keylog)) else "file"
            raise self.wrong(f"captures.{key}", str(error), table[key]) from error

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
        try:
            there, folder = path.is_file(), path.is_dir()
        except ValueError:
            there = folder = False
        if not there:
            what = "is a folder" if folder else "does not exist"
            raise self.wrong(
                f"{inside}.{key}",
                f"{describe(name)} {what}; accepted: a file, from the experiment's folder",
                name,
            )
        return path


def nobody_presents(files: SideFiles, now: int) -> str:
    """Why files go to no suite, and what would have a use for them."""
    keys = files.described(now).keys_name
    if files.side == "client":
        return (
            "no suite here presents these certificates; accepted: a suite with /mutual that leaves its keys "
            f"out, or names these: {keys}"
        )
    return (
        "no suite here presents these certificates; accepted: a suite that leaves its keys out, as "
        f"tls1.3/x25519, or names these: {keys}"
    )


def accepted(kind: Any) -> str:  # noqa: ANN401 - a type
    """What an option takes, in words."""
    about = msgspec.inspect.type_info(kind)
    inner = next(
        one
        for one in (about.types if isinstance(about, msgspec.inspect.UnionType) else [about])
        if not isinstance(one, msgspec.inspect.NoneType)
    )
    if isinstance(inner, msgspec.inspect.Metadata):
        inner = inner.type
    if isinstance(inner, msgspec.inspect.IntType):
        least, most = inner.ge or 0, 2**64 - 1 if inner.le is None else inner.le
        return f"a whole number from {least} to {most}"
    if isinstance(inner, msgspec.inspect.LiteralType):
        return ", ".join(map(str, inner.values))
    return "true, false" if isinstance(inner, msgspec.inspect.BoolType) else "a string"


def _extra(kind: Any) -> dict[str, str]:  # noqa: ANN401 - a type
    """What an option's definition says of it besides its type."""
    about = msgspec.inspect.type_info(kind)
    for one in about.types if isinstance(about, msgspec.inspect.UnionType) else [about]:
        if isinstance(one, msgspec.inspect.Metadata) and one.extra:
            return one.extra
    return {}
