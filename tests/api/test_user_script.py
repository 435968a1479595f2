"""A user's script passes the type checker with the package's types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("user_script.py")


def test_mypy_accepts_a_users_script_and_its_errors(tmp_path):
    """With --strict, an expected error that mypy does not find is an error, too."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", "cache", SCRIPT],
        capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path,
        env={"MYPYPATH": str(Path(__file__).parents[2] / "python"), "PATH": ""},
    )  # fmt: skip
    assert done.stdout.startswith("Success"), done.stdout
