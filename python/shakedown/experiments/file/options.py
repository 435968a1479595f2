"""The options of `measure` that an experiment sets, at top level and in the table `[wtls]`."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Any

from shakedown import native
from shakedown.errors import did_you_mean
from shakedown.experiments.file.document import Document
from shakedown.files import limits
from shakedown.files.toml import describe
from shakedown.native.scenario import MeasureOptions
from shakedown.schema.options import Declared, declared


def keys(table: str = "") -> list[str]:
    """The options in a table, or at top level. Passwords are environment variables in the sides' tables."""
    return [one.field for one in declared(MeasureOptions) if one.table == table and one.form != "secret"]


def read_options(document: Document) -> MeasureOptions:
    """The options that a file sets. Raises `InputError`."""
    known = {one.field: one for one in declared(MeasureOptions)}
    given = {
        name: _option(document, known[name], name, document.data[name])
        for name in keys()
        if name in document.data
    }
    if given.get("carrier") != "eap" and "fragment" in given:
        raise document.wrong("fragment", 'applies only to EAP; accepted: with carrier = "eap"')
    table = document.table("wtls", keys("wtls"))
    given |= {name: _option(document, known[name], f"wtls.{name}", value) for name, value in table.items()}
    suites = document.strings("suites", limits.MAX_SUITES)
    if table and not any(one.strip().lower().startswith("wtls/") for one in suites):
        raise document.wrong(
            "wtls", "applies only to wtls suites, and none is named; accepted: with a wtls suite"
        )
    return MeasureOptions(**given)


def _option(document: Document, one: Declared, key: str, value: object) -> Any:  # noqa: ANN401 - as its field is
    if one.form == "time":
        return _unix_s(document, key, value)
    found = document.option(one, key, value)
    if one.form == "server software":
        return _software(document, key, str(found))
    return _profile(document, key, str(found)) if one.form == "name or file" else found


def _unix_s(document: Document, key: str, value: object) -> int:
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if isinstance(value, datetime):
        value = int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= limits.MAX_UNIX_S:
        return value
    raise document.wrong(
        key,
        f"found {describe(value)}; accepted: Unix seconds before the year 10000, or a date such as "
        "2026-01-31",
    )


def _profile(document: Document, key: str, name: str) -> str:
    """A certificate profile: its name, or a path relative to the experiment file."""
    if name.endswith(".toml") or "/" in name:
        path = document.path.parent / name
        if not path.is_file():
            raise document.wrong(key, f'there is no file "{name}" in the folder of the experiment')
        with document.at(key):
            native.certs({"do": "profile", "name": str(path)})
        return str(path)
    known = [str(one["name"]) for one in native.certs({"do": "profiles"})]
    if name not in known:
        hint = did_you_mean(name, known) or f"; accepted: {', '.join(known)}, or a .toml file"
        raise document.wrong(key, f'there is no certificate profile "{name}"{hint}')
    return name


def _software(document: Document, key: str, name: str) -> str:
    """A server's software: its profile's name, or a path relative to the experiment file."""
    from shakedown.profiles import load_software

    place = str(document.path.parent / name) if name.endswith(".toml") or "/" in name else name
    with document.at(key):
        load_software(place)
    return place
