"""The help of each command ends with an example, and the example works."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from shakedown.cli import app

ROOT = Path(__file__).parents[2]
WAIT_FOR_PEERS = ("serve", "load", "explore", "eap", "aka hss", "aka sgsn", "aka mobile", "bearer measure")
"""Examples that need a server or a client: `load` is run against `serve`, the others are only parsed."""
LONG = (
    "run",
    "reproduce",
    "devices measure",
    "bearer check",
    "bearer run",
    "report",
    "devices import",
    "compare",
    "check",
)
"""Examples that run long, or need files of other programs: they are only parsed."""


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, f"{path}{name} ")
        if not isinstance(found, click.Group) or found.invoke_without_command:
            yield f"{path}{name}", found


NAMED = {name: one for name, one in commands(app) if not one.hidden}


def example(command: click.Command) -> list[str]:
    head, _, words = (command.epilog or "").partition("Example: shakedown ")
    assert not head
    return shlex.split(words)


@pytest.mark.parametrize("name", NAMED)
def test_each_help_ends_with_an_example_of_the_command(name):
    words = example(NAMED[name])
    assert words[: len(name.split())] == name.split()
    context = click.Context(NAMED[name], info_name=name)
    assert context.get_help().rstrip().replace("\n", " ").split()[-1] == words[-1].replace(
        "'", ""
    ) or "'" in (NAMED[name].epilog or "")
    NAMED[name].make_parser(context).parse_args(words[len(name.split()) :])


@pytest.mark.parametrize("name", NAMED)
def test_no_help_states_bounds_that_do_not_exist(name):
    assert "None]" not in NAMED[name].get_help(click.Context(NAMED[name], info_name=name))


@pytest.mark.parametrize(
    "name", [one for one in NAMED if one not in LONG and not one.startswith(WAIT_FOR_PEERS)]
)
def test_the_example_works(name, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    before = {
        "inspect": ["measure", "tls1.2/psk", "--pcap", "handshake.pcap", "--repeat", "2"],
        "certs show": ["certs", "make", "p256", "--out", "chain"],
    }
    for words in (before.get(name), example(NAMED[name])):
        if words is not None:
            done = subprocess.run(
                [sys.executable, "-m", "shakedown", *words],
                cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            assert done.stdout


def test_load_example_works_with_the_serve_example(tmp_path):
    server = subprocess.Popen(
        [sys.executable, "-m", "shakedown", *example(NAMED["serve"])], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        assert "127.0.0.1:8443" in server.stdout.readline()
        words = [one if one != "100/s" else "20/s" for one in example(NAMED["load"])]
        done = subprocess.run(
            [sys.executable, "-m", "shakedown", *words],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "completed" in done.stdout
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)
        assert server.stdout is not None
        server.stdout.close()
