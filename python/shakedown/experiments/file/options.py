"""The options of measuring that an experiment sets, at its top and in the table `[wtls]`."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Any

import msgspec

from shakedown.errors import InputError, did_you_mean
from shakedown.experiments.file.document import Document
from shakedown.files import limits
from shakedown.files.toml import describe
from shakedown.native.scenario import Options


def keys(table: str = "") -> list[str]:
    """The options that stand in a table, or at the top. Passwords are in the sides' tables, by variable."""
    found = []
    for field in msgspec.structs.fields(Options):
        about = _about(field.type)
        if about.get("table", "") == table and about["form"] != "secret":
            found.append(field.name)
    return found


def read_options(document: Document) -> Options:
    """The options that a file sets. Raises `InputError`."""
    given = {
        name: _option(document, name, name, document.data[name]) for name in keys() if name in document.data
    }
    if given.get("carrier") != "eap" and "fragment" in given:
        raise document.wrong("fragment", 'bounds the packets of EAP; accepted beside carrier = "eap"')
    table = document.table("wtls", keys("wtls"))
    given |= {name: _option(document, name, f"wtls.{name}", value) for name, value in table.items()}
    suites = document.strings("suites", limits.MAX_SUITES)
    if table and not any(one.strip().lower().startswith("wtls/") for one in suites):
        raise document.wrong("wtls", "no suite of wtls is there to have a use for it")
    return Options(**given)


def _option(document: Document, name: str, key: str, value: object) -> Any:  # noqa: ANN401 - as its field is
    """One option's value, checked against its definition."""
    kind = next(one.type for one in msgspec.structs.fields(Options) if one.name == name)
    form = _about(kind)["form"]
    if form == "time":
        return _unix_s(document, key, value)
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        raise document.wrong(key, f"found {describe(value)}; accepted: {_accepted(kind)}") from None
    return _profile(document, key, str(value)) if form == "name or file" else value


def _unix_s(document: Document, key: str, value: object) -> int:
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if isinstance(value, datetime):
        value = int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= limits.MAX_UNIX_S:
        return value
    raise document.wrong(
        key,
        f"found {describe(value)}; accepted: Unix seconds before the year 10000, or a date as 2026-01-31",
    )


def _profile(document: Document, key: str, name: str) -> str:
    """A certificate profile: its name, or the path of a file beside the experiment."""
    from shakedown import native

    if name.endswith(".toml") or "/" in name:
        path = document.path.parent / name
        if not path.is_file():
            raise document.wrong(key, f'there is no file "{name}" beside the experiment')
        try:
            native.certs({"do": "profile", "name": str(path)})
        except InputError as error:
            raise document.wrong(key, str(error)) from error
        return str(path)
    known = [str(one["name"]) for one in native.certs({"do": "profiles"})]
    if name not in known:
        hint = did_you_mean(name, known) or f"; accepted: {', '.join(known)}, or a .toml file"
        raise document.wrong(key, f'there is no certificate profile "{name}"{hint}')
    return name


def _accepted(kind: Any) -> str:  # noqa: ANN401 - a type
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


def _about(kind: Any) -> dict[str, str]:  # noqa: ANN401 - a type
    """What an option's definition says of it besides its type."""
    about = msgspec.inspect.type_info(kind)
    for one in about.types if isinstance(about, msgspec.inspect.UnionType) else [about]:
        if isinstance(one, msgspec.inspect.Metadata) and one.extra:
            return one.extra
    return {}
