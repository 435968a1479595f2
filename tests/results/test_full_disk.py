"""No disk space for a command's output: one line, exit status 1, and no file that looks complete.

A limit of the process's file size stands in for a full disk, because it needs no privileges.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from shakedown.api import in_memory, reports
from shakedown.cli import exit_status
from shakedown.files.write import DRAFT
from shakedown.results.folder import load_results

SUITES = ["tls1.2/psk", "tls1.3/x25519/p256/server"]
NAMED = ["--name", "b", "--chip", "C", "--clock", "1"]
BEHIND = ["--", sys.executable, "-c", "import socket; socket.socket().connect_ex(('198.18.0.2', 1))"]
OUT = {
    "bearer": ["bearer", "run", "--pcap", "out/b", "ethernet", *BEHIND],
    "run": ["run", "e.toml", "--out", "out/r"],
    "report": ["report", "r", "--out", "out/p.html"],
    "csv": ["report", "r", "--out", "p.html", "--csv", "out/t.csv"],
    "traces": ["inspect", "c.pcap", "--keylog", "c.keys", "--traces-out", "out/t"],
    "import": ["devices", "import", "speed.txt", *NAMED, "--out", "out/b.toml"],
    "pcap": ["measure", *SUITES, "--repeat", "1", "--pcap", "out/c.pcap", "--keylog", "out/c.keys"],
    "certs": ["certs", "make", "p256@p256", "--out", "out/c"],
    "reproduce": ["reproduce", "tls-psk", "--no-measure", "--out", "out/q"],
}  # fmt: skip


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "e.toml").write_text(f"suites = {SUITES}\nrepeat = 2\n".replace("'", '"'))
    (folder / "speed.txt").write_text("+F2:2:2048:4000.000000:80000.000000\n")
    in_memory.capture(SUITES, folder / "c.pcap", keylog=folder / "c.keys")
    assert exit_status(["run", str(folder / "e.toml"), "--out", str(folder / "r"), "--no-report"]) == 0
    return folder


@pytest.mark.parametrize("most_bytes", [9, 700, 9000])
@pytest.mark.parametrize("what", OUT)
def test_file_size_limit_is_reported_and_keeps_other_files(inputs, tmp_path, what, most_bytes):
    for path in inputs.iterdir():
        (tmp_path / path.name).symlink_to(path)
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    done = subprocess.run(
        [sys.executable, "-B", "-m", "shakedown", *OUT[what]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes)),
    )
    assert (out / "mine.txt").read_text() == "mine"
    assert not list(out.rglob(f"*{DRAFT}"))
    if done.returncode == 0:
        # Everything fitted.
        if what == "run":
            assert load_results(out / "r").is_whole
        return
    assert done.returncode == 1, done.stderr
    line = done.stderr.splitlines()[-1]
    assert line.startswith("error: ")
    assert "file too large" in line.lower() or "no space left on device" in line
    if what in ("csv", "traces", "import", "bearer", "certs"):
        assert [path.name for path in out.iterdir()] == ["mine.txt"]
    if what == "report":
        # Neither the page nor its figures nor their list is left.
        assert [path.name for path in out.iterdir()] == ["mine.txt"]
    if what == "run" and (out / "r" / "manifest.json").exists():
        left = load_results(out / "r")
        assert not left.is_whole
        assert left.table.height == 0 or left.handshakes.height == 1


NEW = {
    "run": ["run", "e.toml", "--out", "new/er/r"],
    "certs": ["certs", "make", "p256@p256", "--out", "new/er/c"],
    "reproduce": ["reproduce", "tls-psk", "--no-measure", "--out", "new/er/q"],
    "import": ["devices", "import", "speed.txt", *NAMED],
    "provision": ["aka", "provision", "new/er/site"],
}


@pytest.mark.parametrize("what", NEW)
def test_failed_command_leaves_no_new_folders(inputs, tmp_path, what):
    for path in inputs.iterdir():
        (tmp_path / path.name).symlink_to(path)
    before = sorted(tmp_path.rglob("*"))
    done = subprocess.run(
        [sys.executable, "-B", "-m", "shakedown", *NEW[what]],
        cwd=tmp_path,
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path / "new" / "data")},
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
    )
    assert done.returncode == 1, done.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_failed_report_keeps_the_old_files(inputs, tmp_path, monkeypatch, capfd):
    from shakedown.reporting.html import write as writing

    page = reports.report(inputs / "r", tmp_path / "p.html")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    next((tmp_path / "figures").glob("*.png")).unlink()
    page.unlink()
    real = writing.write_durably

    def fail_at_page(path: Path, content: bytes, *, replace: bool) -> None:
        if path == page:
            raise OSError(28, "No space left on device", str(path))
        real(path, content, replace=replace)

    monkeypatch.setattr(writing, "write_durably", fail_at_page)
    assert exit_status(["report", str(inputs / "r"), "--out", str(page)]) == 1
    assert "no space left on device" in capfd.readouterr().err
    left = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert len(left) == len(before) - 2
    assert all(before[path] == content for path, content in left.items() if path.parent.name == "figures")
    monkeypatch.undo()
    assert exit_status(["report", str(inputs / "r"), "--out", str(page)]) == 0
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_run_names_the_option_to_replace_a_foreign_report(inputs, tmp_path, capfd):
    arguments = ["run", str(inputs / "e.toml"), "--out", str(tmp_path / "r"), "--force"]
    assert exit_status([*arguments, "--no-report"]) == 0
    page, manifest = tmp_path / "r" / "report.html", tmp_path / "r" / "manifest.json"
    page.write_text("mine")
    before = manifest.read_bytes()
    capfd.readouterr()
    assert exit_status(arguments) == 2
    advice = 'another folder, or first "shakedown report FOLDER --force"'
    assert capfd.readouterr().err.endswith(f"{page}: exists already; accepted: {advice}\n")
    assert page.read_text() == "mine"
    assert manifest.read_bytes() == before, "results are replaced only where their report can be written"
    assert exit_status(["report", str(tmp_path / "r"), "--force"]) == 0
    assert exit_status(arguments) == 0
