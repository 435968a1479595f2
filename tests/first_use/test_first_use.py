"""Several threads may use the package for the first time concurrently, whatever the functions."""

from __future__ import annotations

import ast
import inspect
import random
import subprocess
import sys
from pathlib import Path

import pytest

import shakedown

CHILD = Path(__file__).with_name("child.py")
PROCESSES = 20
FEWER = {"attach": 5, "compare_pair": 5, "report": 5}
"""Fewer processes, for functions whose eight calls take several seconds of CPU time."""
FUNCTIONS = sorted(
    name
    for name in shakedown.__all__
    if callable(getattr(shakedown, name)) and not inspect.isclass(getattr(shakedown, name))
)


def run(folder: Path, processes: int, *names: str) -> str:
    command = [sys.executable, str(CHILD), str(folder), str(processes), *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)
    return done.stdout + (done.stderr if done.returncode else "")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_eight_threads_begin_with_the_same_function(tmp_path, name):
    assert run(tmp_path, FEWER.get(name, PROCESSES), name) == ""


@pytest.mark.parametrize("seed", range(4))
def test_eight_threads_begin_with_different_functions(tmp_path, seed):
    assert run(tmp_path, PROCESSES // 4, *random.Random(seed).sample(FUNCTIONS, 8)) == ""


def test_every_package_that_imports_its_modules_is_listed():
    """Papers are exempt: each is loaded as a package only, never through one of its modules."""
    source = Path(shakedown.__file__).parent
    found = set()
    for init in source.rglob("*/__init__.py"):
        package = ".".join(init.parent.relative_to(source.parent).parts)
        for node in ast.parse(init.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package + "."):
                found.add(package.removeprefix("shakedown."))
    assert {one for one in found if not one.startswith("papers.")} == set(shakedown._WITH_MODULES)
