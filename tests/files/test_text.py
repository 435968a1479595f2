"""Foreign text is printed so that a terminal has nothing to obey."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shakedown
from shakedown.cli import exit_status
from shakedown.text import json_safe, visible, visible_lines

HOSTILE = "\x1b]0;owned\x07\x1b[31m\u202egnp.exe\u2066\x9b2J\r"


@given(st.text())
def test_nothing_unprintable_is_left_and_the_rest_stays(text):
    safe = visible(text)
    assert all(one.isprintable() or one in "\u200c\u200d" or one.isspace() for one in safe)
    assert not set(safe) & set("\x1b\x07\x9b\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\r\n")
    if text.isprintable():
        assert safe == text
    assert visible(safe) == safe


@given(st.text())
def test_json_says_the_same(text):
    plain = json.dumps([text], ensure_ascii=False)
    safe = json_safe(plain)
    assert json.loads(safe) == [text]
    assert not set(safe) & set("\x1b\x9b\x7f\u202e\u2066")


def test_lines_and_tabs_stay_in_texts_of_several_lines():
    assert visible_lines("a\n\tb\x1bc\r\nd") == "a\n\tb\\x1bc\nd"


def test_undecodable_names_of_files_are_shown_byte_by_byte():
    assert visible(b"\xff\xfe.pcap".decode("utf-8", "surrogateescape")) == "\\xff\\xfe.pcap"


def clean(text: str) -> bool:
    return all(one.isprintable() or one in "\n" for one in text)


@pytest.mark.parametrize(
    "text",
    [
        'suites = ["{}"]\n',
        'suites = ["tls1.2/psk"]\n"{}" = 1\n',
        'suites = ["tls1.2/psk"]\ntitle = 3\n# {}\n',
        'suites = ["tls1.2/psk"]\ndevices = ["{}"]\n',
        'suites = ["tls1.2/psk"]\nprofile = "{}.toml"\n',
        'captures = [{{ file = "{}" }}]\n',
    ],
)  # fmt: skip
def test_complaints_about_experiments(fake, capsys, tmp_path, text):
    escaped = HOSTILE.encode("unicode_escape").decode().replace("\\x", "\\u00")
    path = tmp_path / "e\x1b[31m.toml"
    path.write_text(text.format(escaped))
    assert exit_status(["validate", str(path)]) == 2
    out, err = capsys.readouterr()
    assert clean(out + err)
    assert "\\x1b" in err


def test_suites_on_the_command_line(fake, capsys):
    for arguments in (["measure", f"tls9{HOSTILE}/psk"], [f"mea{HOSTILE}sure"], ["run", HOSTILE]):
        assert exit_status(arguments) == 2
        out, err = capsys.readouterr()
        assert clean(out + err)


def test_captures_with_strange_names(capsys, tmp_path):
    from shakedown import api

    plain, strange = tmp_path / "a.pcap", tmp_path / f"{HOSTILE.replace('/', '')}.pcap"
    api.capture(["tls1.2/psk"], plain)
    strange.write_bytes(plain.read_bytes())
    for arguments in (["inspect", str(strange)], ["inspect", "--summary", str(strange)]):
        assert exit_status(arguments) == 0
        out, err = capsys.readouterr()
        assert clean(out + err)
    experiment = tmp_path / "e.toml"
    escaped = strange.name.encode("unicode_escape").decode().replace("\\x", "\\u00")
    experiment.write_text(f'captures = [{{ file = "{escaped}" }}]\n')
    assert exit_status(["run", str(experiment), "--out", str(tmp_path / "r")]) == 0
    out, err = capsys.readouterr()
    assert clean(out + err)
    assert "\\x1b" in out
    page = (tmp_path / "r" / "report.html").read_text()
    assert all(one.isprintable() or one in "\n\t" for one in page)


PACKAGE = Path(shakedown.__file__).parent
PRINTERS = {"cli/_output.py", "cli/__init__.py"}
"""The modules that print; all others ask them."""


def prints(path: Path) -> list[str]:
    """Calls that put text on a terminal by themselves."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in ("print", "click.echo", "click.secho", "Console", "rich.print") or name.startswith(
                ("sys.stdout.write", "sys.stderr.write", "sys.stdout.buffer", "sys.stderr.buffer")
            ):
                found.append(f"{path.relative_to(PACKAGE)}:{node.lineno}: {name}")
    return found


def test_nothing_is_printed_past_the_one_place_that_makes_it_visible():
    measuring_width = {"cli/_scenario.py", "terminal/tables.py"}
    bypasses = [
        line
        for path in sorted(PACKAGE.rglob("*.py"))
        if str(path.relative_to(PACKAGE)) not in PRINTERS | measuring_width
        for line in prints(path)
    ]
    assert bypasses == []
