"""Shell completion of suites, devices and bearers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def completed(words: str, shell: str = "bash") -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "shakedown"],
        env={
            **os.environ,
            "_SHAKEDOWN_COMPLETE": f"{shell}_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1),
        },
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_suites_complete_part_by_part():
    assert completed("shakedown measure tls1.") == ["tls1.0/", "tls1.1/", "tls1.2/", "tls1.3/"]
    assert "tls1.3/x25519mlkem768/" in completed("shakedown measure tls1.3/x25")
    assert "tls1.3/x25519/mldsa65/" in completed("shakedown measure tls1.3/x25519/mld")
    # The list of suites does not have these; it has one suite of each kind.
    mldsa = completed("shakedown measure tls1.3/x448/mldsa6")
    assert {"tls1.3/x448/mldsa65/server", "tls1.3/x448/mldsa65/mutual"} < set(mldsa)
    assert "tls1.3/x448/mldsa65/mutual" in completed("shakedown measure tls1.3/x448/mldsa65/m")


def test_devices_and_bearers_complete():
    assert completed("shakedown predict tls1.2/psk --device cortex-m") == ["cortex-m33", "cortex-m4"]
    assert completed("shakedown simulate tls1.2/psk --bearer leo") == ["leo"]
    assert completed("shakedown devices cortex-m4 esp32-") == ["esp32-c3"]
    assert completed("shakedown devices cortex-m3") == ["cortex-m33"]
    assert completed("shakedown bearers geo") == ["geo"]
    assert completed("shakedown bearer run geo") == ["geo"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("predict tls1.2/psk --columns suite,ready_p9", ["suite,ready_p99_s", "suite,ready_p95_s"]),
        ("compare a b --sort ch", ["change"]),
        ("measure tls1.2/psk --columns oper", ["operations"]),
        ("simulate --mix m.toml --columns sh", ["share"]),
        ("devices --columns clock", ["clock_hz"]),
    ],
)
def test_names_of_columns_complete(words, found):
    assert completed(f"shakedown {words}") == found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_is_printed_for_each_shell(shell):
    done = subprocess.run(
        [sys.executable, "-m", "shakedown"],
        env={**os.environ, "_SHAKEDOWN_COMPLETE": f"{shell}_source"},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert f"_SHAKEDOWN_COMPLETE={shell}_complete" in done.stdout
    # Fish would end a list of columns at its first comma.
    assert ('split --max 1 ","' in done.stdout) == (shell == "fish")


@pytest.mark.parametrize(
    "words", ["shakedown predct tls1.3/", "shakedown $(x) ", "shakedown devices nosuch "]
)
def test_unknown_commands_complete_to_nothing_without_errors(words):
    """Shells would show a completion's standard error in the middle of the line."""
    assert [one for one in completed(words) if one.startswith("tls")] == []


def test_failed_completion_prints_nothing():
    done = subprocess.run(
        [sys.executable, "-m", "shakedown"],
        env={**os.environ, "_SHAKEDOWN_COMPLETE": "bash_complete", "COMP_WORDS": "a", "COMP_CWORD": "abc"},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
