"""Invalid values of every option and argument of every command: one line and exit status 2, or accepted;
never another status, a traceback, or an operating system's error code.

`serve`, `eap` and the nodes of `aka` would not end, and have separate tests.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click
import pytest

import real
from every_command import commands
from shakedown.api import in_memory
from shakedown.cli import app, exit_status
from shakedown.schema.base import encode_pretty

SUITE = "tls1.2/psk"
HOSTILE = "\x1b]0;owned\x07\x1b[31m\u202egnp\x9b2J\r\n"

NUMBERS = (
    "nan",
    "inf",
    "-inf",
    "1e400",
    "-1",
    "-0.5",
    "1e-400",
    "9" * 5000,
    "0x10",
    "",
    " ",
    "x",
    "½",
)
TEXTS = ("", " ", HOSTILE, "x" * 100_000, "\udcff", "{}%s", "-", "/dev/zero", "1e300")
FILES = (
    "/proc/nowhere/x",
    ".",
    "empty",
    "junk",
    "/dev/null",
    "/dev/zero",
    "x" * 300,
    "a\0b",
    HOSTILE,
    "loop",
    "",
)
PLACES = ("/proc/nowhere/x", ".", "/dev/full", "x" * 300, "a\0b", "file/x", "/proc/x", "taken", "loop", "")

BASES: dict[str, tuple[str, ...]] = {
    "doctor": (),
    "suites": (),
    "stacks": (),
    "measure": (SUITE, "--repeat", "1"),
    "primitives": ("digest", "md5", "--seconds", "1ms"),
    "run": ("e.toml", "--no-report"),
    "inspect": ("c.pcap",),
    "certs show": ("chain.pem",),
    "certs make": ("p256", "--out", "made"),
    "certs issue": ("root", "p256", "--out", "made"),
    "certs profiles": (),
    "predict": (SUITE,),
    "capacity": (SUITE, "--within", "1s"),
    "simulate": (SUITE, "--clients", "20"),
    "aka run": ("--attaches", "2"),
    "aka provision": ("made",),
    "aka mobile": ("--sgsn", "127.0.0.1:1", "--card", "card.json", "--timeout", "1ms"),
    "devices": (),
    "devices show": ("phone",),
    "devices import": ("speed.txt", "--name", "b", "--chip", "C", "--clock", "1", "--out", "b.toml"),
    "bearers": (),
    "report": ("results",),
    "compare": ("results", "results"),
    "check": ("budget.toml",),
    "reproduce": ("tls-psk", "--no-measure"),
    "validate": ("e.toml",),
    "load": ("127.0.0.1:1", SUITE, "--rate", "9", "--count", "1", "--duration", "1ms", "--timeout", "1ms"),
    "bearer check": ("nowhere",),
    "bearer run": ("nowhere", "--", "true"),
    "bearer measure": ("127.0.0.1:1", "--seconds", "0.5", "--out", "b.toml"),
}
"""Arguments with which each command succeeds quickly, except commands on the network."""

NOT_HERE = ("serve", "explore", "eap peer", "eap serve", "aka hss", "aka sgsn", "devices measure")
FAILS_HERE = ("load", "bearer", "aka")
"""Commands that fail with their base: no process listens, or a requirement is missing."""


def wrong(parameter: click.Parameter) -> tuple[str, ...]:
    """Values that are wrong for a parameter."""
    name = (parameter.name or "").lower()
    if isinstance(parameter.type, click.Path):
        out = any(word in name for word in ("out", "pcap", "csv")) or name == "traces"
        return (*FILES, *PLACES) if out else FILES
    if isinstance(parameter.type, (click.types.StringParamType, click.Choice)):
        return TEXTS
    return (*NUMBERS, HOSTILE)


def cases() -> list[Any]:
    """Every command and parameter."""
    found = []
    for name, command in commands(app):
        if name in NOT_HERE:
            continue
        for parameter in command.get_params(click.Context(command)):
            if isinstance(parameter, click.Option) and parameter.is_flag:
                continue
            found.append(pytest.param(name, parameter, id=f"{name} {parameter.name}"))
    return found


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the commands in `BASES` read."""
    folder = tmp_path_factory.mktemp("inputs")
    in_memory.capture([SUITE], folder / "c.pcap")
    (folder / "e.toml").write_text(f'suites = ["{SUITE}"]\nrepeat = 1\n')
    (folder / "budget.toml").write_text(f'[[budget]]\nsuite = "{SUITE}"\nbytes = 344\n')
    (folder / "speed.txt").write_text("+F2:2:2048:4000.000000:80000.000000\n")
    (folder / "traces.json").write_text(encode_pretty([real.measurement(SUITE)]))
    assert exit_status(["run", str(folder / "e.toml"), "--out", str(folder / "results"), "--no-report"]) == 0
    assert exit_status(["certs", "make", "p256@p256", "--out", str(folder / "pki")]) == 0
    assert exit_status(["aka", "provision", str(folder / "site")]) == 0
    (folder / "card.json").write_bytes((folder / "site" / "card-0.json").read_bytes())
    (folder / "chain.pem").write_bytes((folder / "pki" / "chain.pem").read_bytes())
    return folder


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("name", "parameter"), cases())
def test_unsuitable_values_cause_no_internal_error(inputs, tmp_path, monkeypatch, capfd, name, parameter):
    for path in inputs.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "empty").touch()
    (tmp_path / "file").touch()
    (tmp_path / "junk").write_bytes(bytes(range(256)) * 16)
    (tmp_path / "taken").write_text("mine")
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    wrong_answers: list[str] = []
    for value in wrong(parameter):
        if value == "/dev/zero" and parameter.name == "traces" and name != "predict":
            continue  # the reader is the same, and reads half a gigabyte before it refuses
        base = list(BASES[name])
        if isinstance(parameter, click.Option):
            option = max(parameter.opts, key=len)
            arguments = [*name.split(), f"{option}={value}", *base]
        else:
            arguments = (
                [*name.split(), "--", value, *base[1:]]
                if value.startswith("-")
                else [*name.split(), value, *base[1:]]
            )
        status = exit_status(arguments)
        out, err = capfd.readouterr()
        accepted = (0, 1, 2) if name.split()[0] in FAILS_HERE else (0, 2)
        faults = [word for word in ("internal error", "Traceback", "os error") if word in err]
        # A full disk is not invalid input.
        if status not in accepted and "no space left on device" not in err:
            faults.append(f"status {status}")
        if not all(one.isprintable() or one == "\n" for one in out + err):
            faults.append("unprintable")
        if status == 2 and not (err.startswith("error: ") and err.count("\n") == 1 and len(err) < 3000):
            faults.append("not one line")
        if faults:
            wrong_answers.append(f"{arguments!r:.200}: {', '.join(faults)}: {err[:400]!r}")
        for made in ("made", "b.toml", "results-of-mine"):
            _remove(tmp_path / made)
    assert not wrong_answers, "\n".join(wrong_answers)
    assert (tmp_path / "taken").read_text() == "mine"


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def test_every_command_is_covered():
    assert {name for name, _ in commands(app)} == {*BASES, *NOT_HERE}
