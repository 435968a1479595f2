"""Reads a results folder: checks every part against the manifest, and reports damage in one line."""

from __future__ import annotations

import io
import json
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import polars as pl

from shakedown.errors import InputError, os_failure, os_reason
from shakedown.files.limits import MAX_MANIFEST_BYTES, MAX_PART_BYTES, parse_json, read_bytes
from shakedown.files.write import digest
from shakedown.results import parts
from shakedown.results.names import JOURNAL, MANIFEST, PART_NAME, line_digest, manifest_digest
from shakedown.results.parts import Table
from shakedown.results.quantities import UNITS
from shakedown.results.table import SCHEMA, empty
from shakedown.schema.base import MAX_NUMBER, SIDES, convert, decode
from shakedown.schema.saved import FORMAT, SCHEMA_VERSION, Failure, Manifest, Part, Planned

ACCEPTED = 'accepted: a folder that "run" wrote'

MAX_REASON = 160
MAX_PART_NOTE = 200

# The beginning of the metadata in a part's footer, see `ResultsWriter.add`.
PART_NOTE = b'{"schema": '

WORDS: dict[str, Container[str | None]] = {
    "quantity": UNITS,
    **dict.fromkeys(("side", "sender"), (*SIDES, None)),
}
"""The values that columns of text may contain, by column."""

# Quantities of other units may be negative: noise can make a difference of times negative.
NOT_NEGATIVE = tuple(name for name, unit in UNITS.items() if unit in ("1", "1/s", "bytes", "s²"))

# Polars panics on some damaged files, and its panics are not of class `Exception`.
POLARS_ERRORS = pl.exceptions.PolarsError, pl.exceptions.PanicException
CONTENT_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    InputError,
    LookupError,
    TypeError,
    ValueError,
)


def load_manifest(folder: Path, *, again: bool = False) -> tuple[Manifest, bool]:
    """A folder's manifest with the parts listed so far, and whether the file of the last part may be missing.

    Raises `InputError` if the manifest is missing or damaged.
    """
    path = folder / MANIFEST
    found = _read(folder)
    if found.get("schema") != SCHEMA_VERSION:
        raise InputError(
            f"{path}: results of schema version {found.get('schema')}; accepted: {SCHEMA_VERSION}, "
            "as this version's run writes it"
        )
    manifest = convert(found, Manifest, f"{path}: damaged")
    if manifest.sha256 != manifest_digest(found):
        raise InputError(f"{path}: damaged: changed since it was written")
    if manifest.ended is not None:
        return manifest, False
    journal = folder / JOURNAL
    parts, failures = load_journal(journal)
    if not journal.exists():
        if not again:
            # The run may have ended between reading the manifest and the journal.
            return load_manifest(folder, again=True)
        if any(PART_NAME.fullmatch(path.name) for path in folder.iterdir()):
            raise InputError(f"{journal}: is missing: it lists the parts of a run that has not ended")
    return msgspec.structs.replace(manifest, parts=tuple(parts), failures=tuple(failures)), bool(parts)


def listed_parts(folder: Path) -> Sequence[Part]:
    """The parts to remove when results are replaced, also those of another schema version.

    Raises `InputError` if the folder has no results, or damaged results of this version.
    """
    found = _read(folder)
    if found.get("schema") == SCHEMA_VERSION:
        return load_manifest(folder)[0].parts
    listed = found.get("parts")
    entries: list[object] = list(listed) if isinstance(listed, list) else []
    if (folder / JOURNAL).is_file():
        for line in read_bytes(folder / JOURNAL, MAX_MANIFEST_BYTES, "list of parts").splitlines():
            with suppress(InputError):
                entries.append(parse_json(line.rpartition(b"\t")[0] or line, ""))
    names = [(one.get("file"), one.get("sha256")) for one in entries if isinstance(one, dict)]
    return [
        Part(file=file, sha256=whole, kind="", about="")
        for file, whole in names
        if isinstance(file, str) and isinstance(whole, str) and PART_NAME.fullmatch(file)
    ]


def _read(folder: Path) -> dict[str, object]:
    """The content of a folder's manifest, of any schema version."""
    path = folder / MANIFEST
    check_exists(folder)
    if not path.is_file():
        raise InputError(f"{folder}: not a results folder: it holds no {MANIFEST}; {ACCEPTED}")
    found = parse_json(read_bytes(path, MAX_MANIFEST_BYTES, "manifest"), f"{path}: damaged")
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f'{path}: not a results folder: its manifest\'s format is not "{FORMAT}"')
    return found


def check_exists(folder: Path) -> None:
    """Raises `InputError` if there is no such folder."""
    try:
        there = folder.exists()
    except OSError as error:
        raise os_failure(f"{folder}: cannot be read: {os_reason(error)}", error) from error
    if not there:
        raise InputError(f"{folder}: there is no such folder; {ACCEPTED}")


def load_journal(path: Path) -> tuple[list[Part], list[Failure]]:
    """The parts and failures listed by a run in progress. Raises `InputError` for other lines."""
    parts: list[Part] = []
    failures: list[Failure] = []
    if not path.is_file():
        return parts, failures
    lines = read_bytes(path, MAX_MANIFEST_BYTES, "list of parts").split(b"\n")
    # Text after the last line break is a line whose writing was interrupted.
    so_far = ""
    for number, line in enumerate(lines[:-1], start=1):
        where = f"{path}, line {number}: damaged"
        content, _, noted = line.rpartition(b"\t")
        if b'"file"' in line[:20]:
            parts.append(decode(content, Part, where))
        else:
            failures.append(decode(content, Failure, where))
        so_far = line_digest(so_far, content)
        if noted != so_far.encode():
            raise InputError(f"{where}: it, or a line before it, changed since it was written")
    return parts, failures


def load_parts(folder: Path, manifest: Manifest, last_may_miss: bool) -> tuple[Table, list[Part]]:
    """The table, as `Parts` if it is large, and the parts that exist. Raises `InputError` if one is missing
    or damaged.
    """
    heights: list[int] = []
    rows = 0
    tables: list[pl.DataFrame] = []
    contents: list[bytes] = []
    there: list[Part] = []
    seen: set[str] = set()
    for number, part in enumerate(manifest.parts, start=1):
        path = folder / part.file
        if part.file in seen or part.sha256 in seen:
            raise InputError(f"{folder / MANIFEST}: damaged: {part.file} is listed twice")
        if not path.is_file():
            if last_may_miss and number == len(manifest.parts):
                break
            many = len(manifest.parts)
            raise InputError(
                f"{folder}: {part.file} is missing ({many} part{'' if many == 1 else 's'} listed)"
            )
        seen |= {part.file, part.sha256}
        content, table = _load_part(path, part, manifest.provenance)
        # A table that fits into one chunk is kept decoded; of a larger one only the encoded parts are kept.
        if rows < parts.ROWS_AT_A_TIME:
            tables.append(table)
        else:
            tables.clear()
        rows += table.height
        contents.append(content)
        heights.append(table.height)
        there.append(part)
    if len(tables) == len(there):
        return pl.concat([empty(), *tables]), there
    return parts.Parts([one.kind for one in there], heights, contents), there


def _load_part(path: Path, part: Part, provenance: str) -> tuple[bytes, pl.DataFrame]:
    """The bytes and the rows of a part. Raises `InputError` if they are damaged."""
    content = read_bytes(path, MAX_PART_BYTES, "part")
    if digest(content) != part.sha256:
        raise InputError(f"{path}: {_what_is_wrong(content, part, provenance)}")
    with damage_reported(path):
        table = pl.read_parquet(io.BytesIO(content))
        if dict(table.schema) != SCHEMA:
            raise ValueError(f"its columns are not those of schema {SCHEMA_VERSION}")
        if table["kind"].unique().to_list() not in ([], [part.kind]):
            raise ValueError(f'its figures are not of the kind "{part.kind}", as the manifest says')
        for name, known in WORDS.items():
            other = [word for word in table[name].unique() if word not in known]
            if other:
                raise ValueError(f"unknown {name}: {other[0]}")
        _check_numbers(table)
        return content, table


def _check_numbers(table: pl.DataFrame) -> None:
    """Raises `ValueError` for numbers that no program writes: outside of `MAX_NUMBER`, or negative."""
    least = pl.when(pl.col("quantity").is_in(NOT_NEGATIVE)).then(0).otherwise(-MAX_NUMBER)
    sampled = table.filter(pl.col("samples").is_not_null())
    samples = sampled.select("quantity", value=pl.col("samples")).explode("value")
    for numbers in (table, samples):
        # NaN is larger than all numbers.
        wrong = numbers.filter(~pl.col("value").is_between(least, MAX_NUMBER))
        if wrong.height:
            name, value = wrong.row(0, named=True)["quantity"], wrong["value"][0]
            raise ValueError(
                f"{name} is {value}; accepted: from {'0' if name in NOT_NEGATIVE else '-2^53'} to 2^53"
            )
    for name, kind in SCHEMA.items():
        if kind.is_numeric() and name != "value":
            wrong = table.filter(~pl.col(name).is_between(0, MAX_NUMBER))
            if wrong.height:
                raise ValueError(f"{name} is {wrong[name][0]}; accepted: from 0 to 2^53")


def _what_is_wrong(content: bytes, part: Part, provenance: str) -> str:
    """Why a part is not the one that the manifest lists, from the part's own metadata."""
    # Searched as text in the footer, because polars panics and prints a backtrace for some damaged files.
    note = content[content.rfind(PART_NOTE) :][:MAX_PART_NOTE].decode("utf-8", "replace")
    try:
        about, _ = json.JSONDecoder().raw_decode(note)
        theirs, name = about["provenance"], about["file"]
    except (ValueError, KeyError, TypeError):
        return "damaged: not the file that the manifest lists"
    if theirs != provenance:
        return f"a part of another run ({theirs}), not of this one ({provenance})"
    if name != part.file:
        return f"a copy of {name}, not the part that the manifest lists"
    return "damaged: changed since it was written"


@contextmanager
def damage_reported(path: Path | None) -> Iterator[None]:
    """Converts errors about the content of a file or folder to one line that names it. Errors about results
    in memory, without a path, are not converted.
    """
    try:
        yield
    except (*POLARS_ERRORS, *CONTENT_ERRORS) as error:
        if path is None:
            raise
        # The text of a `KeyError` is the key in quotes.
        reason = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
        reason = " ".join(reason.split()) or type(error).__name__
        raise InputError(f"{path}: damaged: {reason[:MAX_REASON]}") from error


def missing(manifest: Manifest, there: Sequence[Part]) -> list[Planned]:
    """The planned parts that are neither written nor failed."""
    done = {(part.kind, part.about) for part in there}
    known = done | {(one.kind, one.suite) for one in manifest.failures}
    # An estimate is missing only if its handshake was measured.
    return [
        one
        for one in manifest.planned
        if (one.kind, one.about) not in known and (one.after is None or (one.after, one.about) in done)
    ]
