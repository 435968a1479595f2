"""Rules of this project that no other tool checks."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import shakedown

PACKAGE = Path(shakedown.__file__).parent
CRATES = Path(__file__).parents[2] / "crates"


def imported(path: Path) -> set[str]:
    """Every name that a module imports, in full: `shakedown._core`, `shakedown.native.measure` …"""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_only_one_module_imports_the_native_core():
    callers = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if any(name.startswith("shakedown._core") for name in imported(path))
    }
    assert callers == {"native/core.py"}


def test_no_module_is_longer_than_800_lines():
    long = {
        str(path.relative_to(PACKAGE)): lines
        for path in PACKAGE.rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > 800
    }
    assert long == {}


def test_crates_without_unsafe_forbid_it():
    allowed = set()
    for crate in CRATES.iterdir():
        sources = [path.read_text() for path in (crate / "src").rglob("*.rs")]
        code = "\n".join(line for text in sources for line in text.splitlines() if "//" not in line)
        if "#![forbid(unsafe_code)]" in code:
            continue
        allowed.add(crate.name)
        # PyO3's macros generate unsafe code, though the bindings themselves contain none.
        assert crate.name == "python" or re.search(r"\bunsafe\b", code), crate.name
    assert allowed == {"live", "ossl", "pki", "python", "stacks", "trace", "wtls"}
