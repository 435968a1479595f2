"""Untrusted text is printed without terminal escapes."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shakedown
from runs import written
from shakedown.cli import exit_status
from shakedown.files.text import json_safe, visible, visible_lines
from shakedown.results.names import manifest_digest

HOSTILE = "\x1b]0;owned\x07\x1b[31m\u202egnp.exe\u2066\x9b2J\r"


@given(st.text())
def test_unprintable_characters_are_escaped_and_others_kept(text):
    safe = visible(text)
    assert all(one.isprintable() or one in "\u200c\u200d" or one.isspace() for one in safe)
    assert not set(safe) & set("\x1b\x07\x9b\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\r\n")
    if text.isprintable():
        assert safe == text
    assert visible(safe) == safe


@given(st.text())
def test_escaped_json_decodes_to_the_same_text(text):
    plain = json.dumps([text], ensure_ascii=False)
    safe = json_safe(plain)
    assert json.loads(safe) == [text]
    assert not set(safe) & set("\x1b\x9b\x7f\u202e\u2066")


def test_newlines_and_tabs_are_kept_in_multiline_text():
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
def test_hostile_text_in_experiment_errors_is_escaped(fake, capsys, tmp_path, text):
    escaped = HOSTILE.encode("unicode_escape").decode().replace("\\x", "\\u00")
    path = tmp_path / "e\x1b[31m.toml"
    path.write_text(text.format(escaped))
    assert exit_status(["validate", str(path)]) == 2
    out, err = capsys.readouterr()
    assert clean(out + err)
    assert "\\x1b" in err


def test_hostile_text_on_the_command_line_is_escaped(fake, capsys):
    for arguments in (["measure", f"tls9{HOSTILE}/psk"], [f"mea{HOSTILE}sure"], ["run", HOSTILE]):
        assert exit_status(arguments) == 2
        out, err = capsys.readouterr()
        assert clean(out + err)


def test_hostile_capture_file_names_are_escaped(capsys, tmp_path):
    from shakedown.api import in_memory

    plain, strange = tmp_path / "a.pcap", tmp_path / f"{HOSTILE.replace('/', '')}.pcap"
    in_memory.capture(["tls1.2/psk"], plain)
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


def poisoned(folder: str, name: str) -> str:
    """A shipped profile whose every text is hostile."""
    shipped = (Path(shakedown.__file__).parent / "profiles" / folder / f"{name}.toml").read_text()
    found, count = re.subn(
        r'^(title|note|chip|library|build|date|description) = ".*"$',
        lambda key: f"{key[1]} = {json.dumps(HOSTILE)}",
        shipped,
        flags=re.MULTILINE,
    )
    assert count
    return found.replace(f'name = "{name}"', 'name = "evil"', 1)


@pytest.fixture
def evil(tmp_path, monkeypatch) -> Path:
    """Profiles of the user's own, with escapes in every text."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for folder, name in (("devices", "cortex-m4"), ("bearers", "lte")):
        (tmp_path / "shakedown" / folder).mkdir(parents=True)
        (tmp_path / "shakedown" / folder / "evil.toml").write_text(poisoned(folder, name))
    return tmp_path


PLACE = ("--device", "evil", "--server-device", "evil", "--bearer", "evil")


@pytest.mark.parametrize(
    "arguments",
    [
        ("devices",),
        ("devices", "show", "evil"),
        ("devices", "show", "evil", "--json"),
        ("bearers",),
        ("bearers", "evil"),
        ("bearers", "evil", "--json"),
        ("predict", "tls1.2/psk", *PLACE),
        ("predict", "tls1.2/psk", *PLACE, "--json"),
        ("capacity", "tls1.2/psk", "--within", "9s", *PLACE),
        ("simulate", "tls1.2/psk", "--clients", "5", *PLACE),
        ("simulate", "tls1.2/psk", "--clients", "5", *PLACE, "--json"),
    ],
    ids=" ".join,
)
def test_hostile_text_in_profiles_is_escaped(evil, capsys, arguments):
    assert exit_status(list(arguments)) == 0
    out, err = capsys.readouterr()
    assert clean(out + err)


def test_hostile_text_in_results_is_escaped(evil, capsys):
    """Hostile texts in an experiment, and in a foreign manifest."""
    folder = evil / "r"
    words = json.dumps(HOSTILE)
    experiment = written(
        evil,
        f'title = {words}\nquestion = {words}\nsuites = ["tls1.2/psk"]\nrepeat = 1\ndevices = ["evil"]\n'
        'bearers = ["evil"]\n[simulated]\narrivals = ["poisson:5/s"]\nclients = 20\n',
    )
    assert exit_status(["run", str(experiment), "--out", str(folder)]) == 0
    manifest = json.loads((folder / "manifest.json").read_text())
    script = f"{HOSTILE}<script>alert(1)</script>"
    manifest |= {"command": [script], "machine": {**manifest["machine"], "cpu": script}}
    manifest["experiment"] |= {"title": script, "question": script}
    manifest["sha256"] = manifest_digest(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert exit_status(["report", str(folder), "--force"]) == 0
    assert exit_status(["report", str(folder), "--json"]) == 0
    out, err = capsys.readouterr()
    assert clean(out + err)
    page = (folder / "report.html").read_text()
    assert all(one.isprintable() or one in "\n\t" for one in page)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    for figure in (folder / "figures").glob("*.svg"):
        assert clean(figure.read_text().replace("\t", ""))


PACKAGE = Path(shakedown.__file__).parent
PRINTERS = {"cli/_output.py", "cli/__init__.py", "__main__.py", "native/counted.py"}
"""The modules that print; all others call them. A parent process reads the output of `native/counted.py`."""


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


def test_all_output_goes_through_the_escaping_functions():
    bypasses = [
        line
        for path in sorted(PACKAGE.rglob("*.py"))
        if str(path.relative_to(PACKAGE)) not in PRINTERS
        for line in prints(path)
    ]
    assert bypasses == []
