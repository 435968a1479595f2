"""Drafts that killed commands left: the next writer of the file removes them, and nothing else."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runs import written
from shakedown.errors import InputError, ShakedownError
from shakedown.files import write as files
from shakedown.files.write import draft_of, write
from shakedown.results.folder import load_results

WRITER = (
    "import signal, sys, time\n"
    # Even if the parent shell or nohup ignores SIGHUP.
    "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
    "from pathlib import Path\n"
    "from shakedown.files.write import Destination\n"
    "made = Destination(Path(sys.argv[1]), replace=True)\n"
    "made.write(b'half')\n"
    "print('begun', flush=True)\n"
    "time.sleep(600)\n"
)


def writing_to(path: Path) -> subprocess.Popen[str]:
    """A process in the middle of writing a file."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=300)


def left_over(path: Path) -> Path:
    """A draft as a killed writer leaves it."""
    draft_of(path).write_text("half")
    return draft_of(path)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))  # noqa: PTH208 - names alone


def test_next_write_removes_the_draft_of_a_killed_writer(tmp_path):
    path = tmp_path / "x"
    kill(writing_to(path))
    [draft] = names(tmp_path)
    assert draft.startswith(".x.")
    write(tmp_path / "y", "another file")
    assert names(tmp_path) == [draft, "y"]
    write(path, "whole")
    assert names(tmp_path) == ["x", "y"]
    assert path.read_text() == "whole"


def test_draft_of_a_running_writer_is_kept(tmp_path):
    path = tmp_path / "x"
    alive = writing_to(path)
    with pytest.raises(ShakedownError, match="another process is writing it"):
        write(path, "whole")
    assert names(tmp_path) == [draft_of(path).name]
    kill(alive)
    write(path, "again")
    assert (names(tmp_path), path.read_text()) == (["x"], "again")


def test_draft_linked_to_its_final_name_does_not_harm_the_file(tmp_path):
    """The writer was killed after linking the new name and before removing the draft's."""
    path = tmp_path / "x"
    path.write_text("whole")
    draft_of(path).hardlink_to(path)
    with pytest.raises(InputError, match="exists already"):
        write(path, "again")
    assert path.read_text() == "whole"
    write(path, "again", replace=True)
    assert (names(tmp_path), path.read_text()) == (["x"], "again")


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_foreign_files_are_not_removed_as_drafts(tmp_path, kind):
    path, mine = tmp_path / "x", tmp_path / "mine"
    mine.write_text("mine")
    if kind == "link":
        draft_of(path).symlink_to("mine")
    elif kind == "folder":
        draft_of(path).mkdir()
    else:
        os.mkfifo(draft_of(path))
    before = names(tmp_path)
    with pytest.raises(ShakedownError, match="another process is writing it"):
        write(path, "whole")
    assert names(tmp_path) == before
    assert mine.read_text() == "mine"


def test_only_the_draft_of_the_file_is_removed(tmp_path):
    others = [left_over(tmp_path / name) for name in ("xy", "y", ".x")]
    (tmp_path / ".x.draft").write_text("mine")
    write(tmp_path / "x", "whole")
    assert names(tmp_path) == sorted([*(one.name for one in others), ".x.draft", "x"])


def test_drafts_of_unusual_file_names_are_removed(tmp_path):
    for name in ("a*b?[c]", "new\nline", "..x", "\udcff", "x.draft"):
        path = tmp_path / name
        left_over(path)
        write(path, "whole")
    assert not [name for name in names(tmp_path) if "half" in (tmp_path / name).read_text()]
    assert len(names(tmp_path)) == 5


def test_existing_draft_is_kept_if_locks_are_unsupported(tmp_path, monkeypatch):
    def refused(handle: int, how: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(files.fcntl, "flock", refused)
    write(tmp_path / "x", "whole")
    draft = left_over(tmp_path / "x")
    with pytest.raises(ShakedownError, match=f"another process is writing it .{draft.name}."):
        write(tmp_path / "x", "again", replace=True)
    assert names(tmp_path) == [draft.name, "x"]


def test_draft_removed_by_another_process_is_created_again(tmp_path, monkeypatch):
    """Another process removed the draft between its creation and its locking."""
    locked, taken = files._locked, []

    def late(handle: int) -> bool | None:
        if not taken:
            taken.append(Path(f"/proc/self/fd/{handle}").readlink())
            taken[0].unlink()
        return locked(handle)

    monkeypatch.setattr(files, "_locked", late)
    write(tmp_path / "x", "whole")
    assert taken
    assert (names(tmp_path), (tmp_path / "x").read_text()) == (["x"], "whole")


def test_killed_writers_leave_a_complete_file(tmp_path):
    """The file is always complete, and the last writer leaves nothing of the others."""
    path, chance = tmp_path / "x", random.Random(11)
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from shakedown.errors import ShakedownError\n"
        "from shakedown.files.write import write\n"
        "print('begun', flush=True)\n"
        "while True:\n"
        "    try:\n"
        "        write(Path(sys.argv[1]), sys.argv[2] * 100_000, replace=True)\n"
        "    except ShakedownError as error:\n"
        "        assert 'another process is writing it' in str(error)\n"
    )
    running: list[subprocess.Popen[str]] = []
    for _ in range(12):
        letter = chance.choice("abc")
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(path), letter],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        running.append(process)
        time.sleep(chance.uniform(0.0, 0.05))
        if len(running) == 3:
            ended = running.pop(chance.randrange(3))
            assert ended.poll() is None, ended.communicate()
            kill(ended)
        if path.exists():
            text = path.read_text()
            assert (len(text), len(set(text))) == (100_000, 1)
    for process in running:
        kill(process)
    write(path, "last", replace=True)
    assert (names(tmp_path), path.read_text()) == (["x"], "last")


def test_report_removes_the_drafts_of_a_killed_report(fake, tmp_path, capsys):
    from shakedown.cli import exit_status

    folder = tmp_path / "r"
    experiment = written(tmp_path, f"suites = {json.dumps(['tls1.2/psk'])}\nrepeat = 2\n")
    assert exit_status(["run", str(experiment), "--out", str(folder)]) == 0
    [figure, *_] = (folder / "figures").glob("*.svg")
    drafts_there = [
        left_over(one) for one in (folder / "report.html", figure, folder / ".report.html.files.json")
    ]
    foreign = left_over(folder / "figures" / "mine.svg")
    assert exit_status(["report", str(folder)]) == 0
    assert not any(draft.exists() for draft in drafts_there)
    assert foreign.exists()
    assert load_results(folder).is_whole


def test_run_removes_the_drafts_of_a_killed_run(fake, tmp_path):
    from shakedown.cli import exit_status

    folder = tmp_path / "r"
    experiment = written(tmp_path, f"suites = {json.dumps(['tls1.2/psk'])}\nrepeat = 2\n")
    folder.mkdir()
    left_over(folder / "manifest.json")
    assert exit_status(["run", str(experiment), "--out", str(folder), "--no-report"]) == 0
    before = names(folder)
    assert before == ["manifest.json", "part-0001.parquet"]
    for name in ("manifest.json", "part-0001.parquet", "part-0007.parquet"):
        left_over(folder / name)
    foreign = left_over(folder / "notes.txt")
    assert exit_status(["run", str(experiment), "--out", str(folder), "--no-report", "--force"]) == 0
    assert names(folder) == sorted([*before, foreign.name])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_next_write_succeeds_after_any_signal(tmp_path, number):
    process = writing_to(tmp_path / "x")
    process.send_signal(number)
    process.communicate(timeout=300)
    write(tmp_path / "x", "whole")
    assert names(tmp_path) == ["x"]
