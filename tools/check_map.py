"""Compare ARCHITECTURE.md with the code: every part of two levels is on its map, with what it uses.

Run as `python -m tools.check_map`, by `make lint`. Prints a line for each difference and exits with 1.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator

import grimp

from tools.pages import ROOT, status

PAGE = ROOT / "ARCHITECTURE.md"
CRATES = ROOT / "crates"
WORD = re.compile(r"`([^`]+)`")


def rows(heading: str) -> Iterator[tuple[str, set[str], set[str]]]:
    """Each row of the table under a heading: its name, its modules, and the parts that it may use."""
    section = PAGE.read_text().split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != 4 or not cells[0].startswith("`"):
            continue
        name, _, modules, uses = cells
        yield WORD.findall(name)[0], set(WORD.findall(modules)), set(WORD.findall(uses))


def rust_parts() -> dict[str, tuple[set[str], set[str]]]:
    """Each crate: its top-level modules, and the crates of this workspace that it depends on."""
    parts = {}
    for manifest in sorted(CRATES.glob("*/Cargo.toml")):
        content = tomllib.loads(manifest.read_text())
        depends = {
            name.removeprefix("shakedown-")
            for name in content.get("dependencies", {})
            if name.startswith("shakedown-")
        }
        modules = {
            path.stem for path in (manifest.parent / "src").iterdir() if path.suffix == ".rs" or path.is_dir()
        }
        parts[manifest.parent.name] = modules - {"lib", "main"}, depends
    return parts


def python_parts() -> dict[str, tuple[set[str], set[str]]]:
    """Each package or module at the root: its modules, and the other packages that it imports."""
    graph = grimp.build_graph("shakedown", cache_dir=None)
    parts = [one for one in graph.find_children("shakedown") if not _last(one).startswith("_")]
    modules = {part: {_last(one) for one in graph.find_children(part)} for part in parts}
    for part in parts:
        graph.squash_module(part)
    uses = {part: {_last(one) for one in graph.find_modules_directly_imported_by(part)} for part in parts}
    return {_last(part): (modules[part], uses[part] - {"shakedown", _last(part)}) for part in parts}


def _last(module: str) -> str:
    return module.rpartition(".")[2]


def differences(heading: str, parts: dict[str, tuple[set[str], set[str]]], exact: bool) -> Iterator[str]:
    """Differences between page and code, and rows that use a part that is not above them; `exact`: a part
    uses all parts that it may use.
    """
    listed = {name: (modules, uses) for name, modules, uses in rows(heading)}
    order = list(listed)
    for place, name in enumerate(order):
        for used in sorted(listed[name][1] & set(order[place:])):
            yield f"{heading}: {name} may use {used}, which is not listed above it"
    for name in sorted(parts.keys() - listed.keys()):
        yield f"{heading}: {name} is not on the map"
    for name in sorted(listed.keys() - parts.keys()):
        yield f"{heading}: {name} is on the map and not in the code"
    for name in sorted(parts.keys() & listed.keys()):
        (modules, uses), (listed_modules, allowed) = parts[name], listed[name]
        for module in sorted(modules - listed_modules):
            yield f"{heading}: {name}/{module} is not on the map"
        for module in sorted(listed_modules - modules):
            yield f"{heading}: {name}/{module} is on the map and not in the code"
        for used in sorted(uses - allowed):
            yield f"{heading}: {name} uses {used}, which the map does not allow"
        for used in sorted(allowed - uses if exact else ()):
            yield f"{heading}: {name} does not use {used}, though the map says so"


def main() -> int:
    """Print the differences."""
    found = [
        *differences("Rust crates", rust_parts(), True),
        *differences("Python packages", python_parts(), False),
    ]
    return status(f"ARCHITECTURE.md: {line}" for line in found)


if __name__ == "__main__":
    sys.exit(main())
