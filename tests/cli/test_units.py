"""All durations and rates: a number without a unit is in seconds, or per second."""

from __future__ import annotations

import click
import pytest

from every_command import commands
from shakedown.cli import app, exit_status
from shakedown.cli._types import Duration

DURATION_WORDS = ("seconds", "minutes", "timeout", "duration", "time", "within", "gap", "linger")
"""Words in the names of options whose value is a time."""


def options() -> list[tuple[str, click.Option]]:
    return [
        (name, one)
        for name, command in commands(app)
        for one in command.get_params(click.Context(command))
        if isinstance(one, click.Option)
    ]


def of_type(kind: str) -> list[object]:
    return [pytest.param(one, id=f"{name} {one.name}") for name, one in options() if one.type.name == kind]


@pytest.mark.parametrize("option", of_type("duration"))
def test_durations_need_no_unit(option):
    unit = "min" if "--minutes" in option.opts else "s"
    assert option.type.convert("2", option, None) == option.type.convert(f"2{unit}", option, None)
    assert option.type.convert("1500ms", option, None) == 1.5
    for text in ("nan", "-1", "2 parsecs", ""):
        with pytest.raises(click.BadParameter, match="accepted: "):
            option.type.convert(text, option, None)


@pytest.mark.parametrize(
    "option", [one for kind in ("integer", "integer range", "time") for one in of_type(kind)]
)
def test_whole_numbers_are_digits_of_ascii_only(option):
    for text in ("1_0", "١٠", "１０"):
        with pytest.raises(click.BadParameter, match=f'"{text}" is not a .*; accepted: '):
            option.type.convert(text, option, None)


@pytest.mark.parametrize("option", of_type("rate"))
def test_rates_need_no_unit(option):
    assert option.type.convert("3", option, None) == option.type.convert("3/s", option, None) == 3.0
    assert option.type.convert("30/min", option, None) == 0.5


def test_every_duration_option_accepts_units():
    plain = [
        f"{name} {one.opts[0]}"
        for name, one in options()
        if set(DURATION_WORDS) & set(max(one.opts, key=len).strip("-").split("-"))
        and not one.is_flag
        and not isinstance(one.type, Duration)
    ]
    assert plain == []


def test_within_without_a_unit_is_in_seconds(capsys):
    found = []
    for text in ("2", "2s", "2000ms"):
        assert exit_status(["capacity", "tls1.2/psk", "--within", text, "--json"]) == 0
        found.append(capsys.readouterr().out)
    assert len(set(found)) == 1


@pytest.mark.parametrize("text", ["2", '"2"', '"2s"'])
def test_within_in_an_experiment_accepts_the_same_forms(text, tmp_path, capsys):
    path = tmp_path / "e.toml"
    path.write_text(f'suites = ["tls1.2/psk"]\nrates = [10]\ndevices = ["phone"]\nwithin = {text}\n')
    assert exit_status(["validate", str(path)]) == 0, capsys.readouterr().err
