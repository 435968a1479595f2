"""Errors suggest only options of the command that prints them."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from call_graph import PACKAGE, Unit, modules, reached
from every_command import commands
from shakedown.cli import app, exit_status, options_of
from shakedown.errors import with_options

COMMANDS = dict(commands(app))
OPTION = re.compile(r"(?P<before>[\w -]*?)[ \"(]*(?<![\w-])(?P<option>--[a-z][a-z-]*[a-z])")
OTHERS = {"shakedown-probe"}
"""Names of other programs."""


def options(command: click.Command) -> set[str]:
    """A command's options."""
    return {name for one in command.params for name in (*one.opts, *one.secondary_opts)}


def foreign(line: str, own: set[str]) -> list[str]:
    """Options in an error that belong neither to the command nor to a command named before them."""
    found = []
    for one in OPTION.finditer(line):
        words = one["before"].split()
        named = [COMMANDS[name] for name in (" ".join(words[-many:]) for many in (1, 2)) if name in COMMANDS]
        known = own.union(*map(options, named))
        if one["option"] not in known and not OTHERS.intersection(words):
            found.append(one["option"])
    return found


def starts(command: click.Command) -> list[Unit]:
    """A command's function, and the decorators around it that read options for it."""
    found, function = [], command.callback
    while function is not None:
        path = Path(function.__code__.co_filename)
        if path.is_relative_to(PACKAGE):
            module = ".".join(("shakedown", *path.relative_to(PACKAGE).with_suffix("").parts))
            found.append(modules()[module][1][function.__code__.co_qualname.partition(".")[0]])
        function = getattr(function, "__wrapped__", None)
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_no_error_of_a_command_names_an_option_that_it_lacks(name):
    own = options(COMMANDS[name]) | {"--help"}
    wrong = {
        f"{unit.module}.{unit.name}: {text}"
        for start in starts(COMMANDS[name])
        for unit in reached(start)
        for text in unit.errors
        if not unit.module.startswith("shakedown.schema.") and foreign(with_options(text, own), own)
    }
    assert not wrong


def test_every_error_is_reached_by_a_command():
    """Without this test, the one above would pass if it found no errors."""
    begun = [start for command in COMMANDS.values() for start in starts(command)]
    found = {(unit.module, unit.name) for start in begun for unit in reached(start)}
    raising = {
        (module, name)
        for module, (_, units) in modules().items()
        for name, unit in units.items()
        if any(map(OPTION.search, unit.errors)) and not name.isupper()
        if not module.startswith(("shakedown.api", "shakedown.schema", "shakedown.cli._"))
    }
    assert len(raising) > 20
    assert raising - found == set()


def test_suggested_options_that_a_command_lacks_are_dropped():
    line = "device 'x' has none; accepted: a device, or --scale-from DEVICE to scale; see below"
    assert with_options(line, ()) == "device 'x' has none; accepted: a device; see below"
    assert with_options(line, {"--scale-from"}) == line
    assert with_options("f: exists; accepted: another name, or --force", {"--out"}).endswith("another name")


def test_options_of_the_called_command_are_found():
    assert "--scale-from" in options_of(["predict", "tls1.2/psk", "--device", "x"])
    assert "--mobiles" in options_of(["aka", "run", "x"])
    assert "--scale-from" not in options_of(["check", "budget.toml"])
    assert "--version" in options_of(["nothing"])


def test_check_and_predict_suggest_only_their_own_options(tmp_path, capsys):
    budget = tmp_path / "budget.toml"
    budget.write_text('[[budget]]\nsuite = "tls1.2/psk"\ndevice = "axim-x51v"\nready_s = 1.0\n')
    assert exit_status(["check", str(budget)]) == 2
    assert capsys.readouterr().err.endswith("accepted: a device with primitives\n")
    assert exit_status(["predict", "tls1.2/psk", "--device", "axim-x51v"]) == 2
    assert "or --scale-from DEVICE" in capsys.readouterr().err
