"""Rules of this project that no tool checks."""

from __future__ import annotations

import ast
from pathlib import Path

import shakedown

PACKAGE = Path(shakedown.__file__).parent


def imported(path: Path) -> set[str]:
    """Every name that a module imports, in full: `shakedown._core`, `shakedown.core.measure` …"""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_one_module_calls_the_native_core():
    callers = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if any(name.startswith("shakedown._core") for name in imported(path))
    }
    assert callers == {"core.py"}


def test_no_module_has_grown_beyond_reading():
    long = {
        str(path.relative_to(PACKAGE)): lines
        for path in PACKAGE.rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > 800
    }
    assert long == {}
