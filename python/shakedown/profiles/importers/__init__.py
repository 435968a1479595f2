"""Device profiles from benchmark output: ``openssl speed -mr``, wolfCrypt's and mbedTLS's ``benchmark``,
ours.

Each reader turns text into primitives (a triple and its cost) and leaves out what no suite uses. Text that
holds nothing usable is refused.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from shakedown.errors import InputError, os_reason
from shakedown.profiles.device import parse_device
from shakedown.profiles.importers.common import Primitives
from shakedown.profiles.importers.mbedtls import read_mbedtls
from shakedown.profiles.importers.measured import read_measurements
from shakedown.profiles.importers.openssl import read_openssl_speed
from shakedown.profiles.importers.wolfcrypt import read_wolfcrypt
from shakedown.profiles.registry import shipped_names, user_data_dir
from shakedown.profiles.vocabulary import triple_fault


def import_benchmark(text: str, where: str) -> tuple[str, Primitives]:
    """Read benchmark output.

    Args:
        text: what the benchmark printed.
        where: how complaints name the file.

    Returns:
        The library as far as the output names it, and the primitives.

    Raises:
        InputError: if no known format yields a primitive.
    """
    readers: Mapping[str, Callable[[str], Primitives]] = {
        "shakedown": read_measurements,
        "OpenSSL": read_openssl_speed,
        "wolfSSL": read_wolfcrypt,
        "mbedTLS": read_mbedtls,
    }
    for library, reader in readers.items():
        found = {triple: cost for triple, cost in reader(text).items() if triple_fault(*triple) is None}
        if found:
            version = re.search(rf"(?i)(?:{library}|version:?)[ a-z]*?(\d+\.\d+[\w.]*)", text)
            return (f"{library} {version[1]}" if version else library), found
    raise InputError(
        f"{where}: no benchmark figures; accepted: output of openssl speed -mr, wolfCrypt's benchmark, "
        "mbedTLS's benchmark, shakedown measure --json"
    )


def profile_toml(
    name: str,
    title: str,
    chip: str,
    clock_hz: float,
    library: str,
    build: str,
    date: str,
    source: str,
    primitives: Primitives,
) -> str:
    """Return a device profile as TOML text."""

    def quoted(text: str) -> str:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ")
        return f'"{escaped}"'

    head = {
        "schema": "1",
        "name": quoted(name),
        "title": quoted(title),
        "chip": quoted(chip),
        "clock_hz": f"{clock_hz:.0f}",
        "library": quoted(library),
        "build": quoted(build),
        "date": quoted(date),
        "source": f"[{quoted(source)}]",
    }
    lines = [f"{key} = {value}" for key, value in head.items()]
    for (operation, algorithm, parameters), cost in sorted(primitives.items()):
        lines += ["", "[[primitive]]", f"operation = {quoted(operation)}", f"algorithm = {quoted(algorithm)}"]
        lines += [f"parameters = {quoted(parameters)}"] if parameters else []
        lines += [f"{key} = {value:.6g}" for key, value in cost.items()]
    return "\n".join(lines) + "\n"


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
) -> tuple[Path, int]:
    """Make a device profile of benchmark output and write it, among the user's own unless ``out`` says where.

    Returns:
        The file written and the number of primitives in it.

    Raises:
        InputError: for an unreadable file, one without figures, a taken name, or a place that cannot be
            written.
    """
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{file}: {os_reason(error)}; accepted: benchmark output") from None
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise InputError(f"name is {name!r}; accepted: lower-case letters, digits and hyphens")
    if out is None and name in shipped_names("devices"):
        raise InputError(f"name is {name!r}, which the package ships; accepted: a name of its own")
    found_library, primitives = import_benchmark(text, str(file))
    document = profile_toml(
        name, title, chip, clock_hz, library or found_library, build, date, source, primitives
    )
    path = out or user_data_dir() / "devices" / f"{name}.toml"
    parse_device(tomllib.loads(document), str(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {os_reason(error)}; accepted: a place to write") from None
    return path, len(primitives)
