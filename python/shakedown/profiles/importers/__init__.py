"""Device profiles from benchmark output: ``openssl speed -mr``, wolfCrypt's and mbedTLS's ``benchmark``,
pqm4's results, and Shakedown's output.

Each reader converts text to primitives (triples and their costs), and lists the figures that it skips. The
reader of Shakedown's output also reads a stack's own work. Text without usable figures is refused.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from shakedown.errors import InputError
from shakedown.files.limits import MAX_IMPORT_BYTES, read_bytes
from shakedown.files.write import check_distinct, check_free, made_folders, write
from shakedown.profiles.device import parse_device
from shakedown.profiles.importers.common import ContradictionError, Imported
from shakedown.profiles.importers.mbedtls import read_mbedtls
from shakedown.profiles.importers.measured import read_ours
from shakedown.profiles.importers.openssl import read_openssl_speed
from shakedown.profiles.importers.pqm4 import read_pqm4
from shakedown.profiles.importers.wolfcrypt import read_wolfcrypt
from shakedown.profiles.profile_text import About, profile_toml
from shakedown.profiles.registry import shipped_names, user_data_dir
from shakedown.profiles.vocabulary import triple_fault

MAX_REASON = 120
RESERVED = ("import", "measure", "show")
"""Subcommands of `devices`, which cannot be names of profiles."""


def import_benchmark(text: str, where: str) -> tuple[str, Imported]:
    """Read benchmark output; returns the library, as far as the output names it, and the figures.

    `where` is the file's name in errors. Raises `InputError` if no known format yields a primitive, or two
    lines give different figures for one.
    """
    readers: tuple[tuple[str, Callable[[str], Imported]], ...] = (
        ("shakedown", read_ours),
        ("OpenSSL", read_openssl_speed),
        ("wolfSSL", read_wolfcrypt),
        ("mbedTLS", read_mbedtls),
        ("pqm4", read_pqm4),
    )
    for library, reader in readers:
        try:
            found = reader(text)
        except ContradictionError as error:
            raise InputError(f"{where}: {error}") from None
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())[:MAX_REASON]
            raise InputError(f"{where}: damaged output of {library}'s benchmark: {reason}") from error
        unusable = {triple: fault for triple in found.primitives if (fault := triple_fault(*triple))}
        for triple, fault in unusable.items():
            del found.primitives[triple]
            found.omitted.append(f"{' '.join(triple).strip()}: {fault}")
        if found.primitives:
            version = re.search(rf"(?i)(?:{library}|version:?)[ a-z]*?(\d+\.\d+[\w.]*)", text)
            named = f"{library} {version[1]}" if version else library
            return found.stack or named, found
    raise InputError(
        f"{where}: no benchmark figures; accepted: output of openssl speed -mr, wolfCrypt's benchmark, "
        "mbedTLS's benchmark, pqm4's benchmarks.csv or .md, shakedown measure --json, "
        "shakedown primitives --json, shakedown-probe --handshakes"
    )


@dataclass(frozen=True)
class Saved:
    """A written profile: path, number of primitives, whether it has overhead, and skipped figures."""

    path: Path
    primitives: int
    overhead: bool
    omitted: tuple[str, ...]


def save_import(
    file: Path,
    *,
    name: str,
    chip: str,
    clock_hz: float,
    title: str,
    library: str | None,
    build: str,
    date: str,
    source: str,
    out: Path | None,
    replace: bool = False,
) -> Saved:
    """Convert benchmark output to a device profile; write it to ``out``, by default in the user's folder.

    Raises:
        InputError: for an unreadable file, a file without figures, a name that is in use, an existing file
            without ``replace``, or a file that cannot be written.
    """
    text = read_bytes(file, MAX_IMPORT_BYTES, "file of benchmark output").decode("utf-8", errors="replace")
    path = profile_path(name, out, replace=replace)
    check_distinct([path], [file])
    found_library, found = import_benchmark(text, str(file))
    about = About(name, title, chip, clock_hz, library or found_library, build, date, (source,))
    document = profile_toml(
        about, found.primitives, found.overhead, found.connection, stack=found.stack, cooling=found.cooling
    )
    write_profile(path, document, replace=replace)
    return Saved(path, len(found.primitives), bool(found.overhead.get("message")), tuple(found.omitted))


def profile_path(name: str, out: Path | None, *, replace: bool) -> Path:
    """The path of a new profile. Raises `InputError` for a name that is invalid or in use."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise InputError(f"name is {name!r}; accepted: lower-case letters, digits and hyphens")
    if name in RESERVED:
        raise InputError(f"name is {name!r}, which is reserved; accepted: another name")
    if out is None and name in shipped_names("devices"):
        raise InputError(f"name is {name!r}, the name of a shipped profile; accepted: another name")
    path = out or user_data_dir() / "devices" / f"{name}.toml"
    with made_folders(path.parent) if out is None else nullcontext():
        check_free(path, replace)
    return path


def write_profile(path: Path, document: str, *, replace: bool) -> None:
    """Validates and writes a profile; creates its folder. Raises `InputError` if the file exists or cannot be
    written.
    """
    parse_device(tomllib.loads(document), str(path))
    with made_folders(path.parent):
        write(path, document, replace=replace)
