"""`reproduce` on the command line."""

from __future__ import annotations

import json

import pytest

from papers.conftest import DOCUMENTED
from papers.test_rows import FIELDS
from shakedown.api import papers
from shakedown.cli import exit_status
from shakedown.papers import DEFAULT_REPEAT, replication
from shakedown.papers.replication import FORMAT


def test_only_json_goes_to_standard_output(shakedown):
    done = shakedown("reproduce", "wtls-palm", "--no-measure", "--json")
    rows = json.loads(done.stdout)
    assert done.returncode == 0
    assert all(list(row) == FIELDS for row in rows)
    assert {row["paper"] for row in rows} == {"wtls-palm"}
    assert any(row["verdict"] == "differs" for row in rows)


def test_reproduce_measures_one_paper(shakedown):
    done = shakedown("reproduce", "ssl-pda", "--repeat", "2", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row for row in rows if row["kind"] == "measured" and row["replication"] is not None]


def test_text_output_has_claims_differences_and_a_summary(shakedown):
    done = shakedown("reproduce", "wtls-palm", "--measured", DOCUMENTED / "measured.jsonl")
    assert done.returncode == 0
    for words in ("wp-001", "what differs, and why", "figures drawn"):
        assert words in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["wtls-plam"], 'did you mean "wtls-palm"'),
        (["nothing-like-it"], "accepted: wtls-nokia7650, wtls-palm, tls-psk, ssl-pda, aka-ssl, all"),
        (["wtls-palm", "--no-measure", "--repeat", "3"], "exclude each other"),
        (["wtls-palm", "--measured", "nowhere.jsonl"], "nowhere.jsonl"),
        (["wtls-palm", "--repeat", "0"], "--repeat"),
        ([], "PAPER"),
    ],
)
def test_wrong_input_is_reported_in_one_line(shakedown, tmp_path, arguments, words):
    done = shakedown("reproduce", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert words in line


def test_folder_that_cannot_be_created_is_reported_in_one_line(shakedown, tmp_path):
    (tmp_path / "file").write_text("")
    done = shakedown("reproduce", "wtls-palm", "--no-measure", "--out", tmp_path / "file" / "out")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_existing_files_are_replaced_only_with_force(shakedown, tmp_path):
    """Without --force existing files stay; with it, the targets of symbolic links still do."""
    for name in ("aka-ssl.md", "rows.csv", "measured.jsonl"):
        out = tmp_path / name
        out.mkdir()
        (out / name).write_text("mine")
        done = shakedown("reproduce", "aka-ssl", "--no-measure", "--out", out)
        assert done.returncode == 2
        assert done.stderr == f"error: {out / name}: exists already; accepted: another --out, or --force\n"
        assert [path.name for path in out.iterdir()] == [name]
        assert (out / name).read_text() == "mine"
    (tmp_path / "victim").write_text("mine")
    out = tmp_path / "linked"
    (out / "figures").mkdir(parents=True)
    for name in ("rows.json", "figures/aka-load.svg"):
        (out / name).symlink_to(tmp_path / "victim")
    assert shakedown("reproduce", "aka-ssl", "--no-measure", "--out", out).returncode == 2
    assert shakedown("reproduce", "aka-ssl", "--no-measure", "--out", out, "--force").returncode == 0
    assert (tmp_path / "victim").read_text() == "mine"
    assert shakedown("reproduce", "aka-ssl", "--no-measure", "--out", out, "--force").returncode == 0


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_reproduce_writes_nothing_through_a_linked_folder_of_figures(shakedown, tmp_path, force):
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "out"
    elsewhere.mkdir()
    out.mkdir()
    (out / "figures").symlink_to(elsewhere)
    done = shakedown("reproduce", "aka-ssl", "--no-measure", "--out", out, *force)
    error = f"error: {out / 'figures'}: is a symbolic link; accepted: another --out\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", error)
    assert list(elsewhere.iterdir()) == []
    assert [path.name for path in out.iterdir()] == ["figures"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a file of measured figures"),
        ("[" * 100_000, "nested deeper than 100"),
        (f'{{"format": "{FORMAT}", "machine": "", "date": "", "rounds": 1000000000000}}', "rounds"),
        ("9" * 5000, "digits"),
    ],
)
def test_excessive_measured_figures_are_refused(shakedown, tmp_path, text, words):
    path = tmp_path / "measured.jsonl"
    path.write_text(text)
    done = shakedown("reproduce", "aka-ssl", "--measured", path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert words in done.stderr


def test_endless_file_of_measured_figures_is_refused(shakedown):
    """Reading an endless file would take all memory."""
    done = shakedown("reproduce", "aka-ssl", "--measured", "/dev/zero")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        "/dev/zero: longer than 512 MiB; accepted: a file of measured figures up to this size" in done.stderr
    )


def test_only_a_failure_of_the_program_is_status_1(fake, monkeypatch):
    from shakedown.papers import paper

    monkeypatch.setattr(paper.verdicts, "combined", lambda *_: 1 / 0)
    assert exit_status(["reproduce", "wtls-palm", "--no-measure"]) == 1


def test_python_and_command_have_the_same_default_repeat(monkeypatch):
    asked: list[int] = []
    monkeypatch.setattr("shakedown.papers.reproduce", lambda *_, repeat, **__: asked.append(repeat))
    papers.reproduce("tls-psk")
    assert asked == [DEFAULT_REPEAT]


def test_interrupted_command_keeps_the_complete_rounds(monkeypatch, tmp_path, capsys):
    measure, seen = replication.native.measure, set()

    def interrupted(handshake, options):
        if handshake.suite in seen:
            raise KeyboardInterrupt
        seen.add(handshake.suite)
        return measure(handshake, options)

    monkeypatch.setattr(replication.native, "measure", interrupted)
    out = tmp_path / "out"
    arguments = ["reproduce", "tls-psk", "--repeat", "3", "--out", str(out), "--json"]
    assert exit_status(arguments) == 130
    printed, error = capsys.readouterr()
    rows = json.loads(printed)
    assert [row for row in rows if row["kind"] == "measured" and row["replication"] is not None]
    assert error == f"pages, figures, rows: {out}\nerror: interrupted: 1 of 3 rounds measured\n"
    assert set(replication.load(out / "measured.jsonl").costs) <= seen


def test_folder_that_cannot_be_written_is_refused_before_measuring(monkeypatch, capsys):
    monkeypatch.setattr(replication.native, "measure", lambda *_: pytest.fail("it was measured"))
    assert exit_status(["reproduce", "tls-psk", "--out", "/proc"]) != 0
    assert ": cannot be written: " in capsys.readouterr().err
