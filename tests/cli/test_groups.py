"""Groups of commands: the help lists the commands in full; an error names them if none is given."""

from __future__ import annotations

import click
import pytest

from shakedown.cli import app, exit_status

TOP = click.Context(app)
GROUPS = {
    name: one for name in app.list_commands(TOP) if isinstance(one := app.get_command(TOP, name), click.Group)
}


def test_command_groups_are_complete():
    assert {"aka", "bearer", "certs", "devices", "eap"} == set(GROUPS)


@pytest.mark.parametrize("name", GROUPS)
def test_lists_of_commands_are_not_cut_at_80_columns(name, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert exit_status([name, "--help"]) == 0
    listed = capsys.readouterr().out.partition("Commands:")[2]
    assert listed
    assert "..." not in listed
    assert max(map(len, listed.splitlines())) <= 80


@pytest.mark.parametrize("name", [name for name, one in GROUPS.items() if not one.invoke_without_command])
def test_group_without_a_command_lists_its_commands_in_one_line(name, capsys):
    assert exit_status([name]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f'error: "shakedown {name}" needs a command; accepted: ')
    for one in GROUPS[name].list_commands(TOP):
        assert one in err
