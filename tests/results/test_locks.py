"""A folder has one writer at a time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from results.folders import SUITES, manifest, table_of
from shakedown.errors import InputError
from shakedown.reporting.html.write import write_report
from shakedown.results.folder import load_results
from shakedown.results.lock import FolderLock
from shakedown.results.writer import ResultsWriter


def test_two_runs_do_not_share_a_folder(tmp_path):
    first = ResultsWriter(tmp_path / "r", manifest())
    for replace in (False, True):
        with pytest.raises(InputError, match="another run is writing there"):
            ResultsWriter(tmp_path / "r", manifest(), replace=replace)
    first.close("complete")
    with pytest.raises(InputError, match="already contains results"):
        ResultsWriter(tmp_path / "r", manifest())


def test_report_of_replaced_results_is_refused(tmp_path):
    """If results were or are being replaced, no page of the old results is written beside them."""
    with ResultsWriter(tmp_path / "r", manifest()) as writer:
        writer.add("measured", SUITES[0], table_of(SUITES[0]))
    old = load_results(writer.folder)
    page = writer.folder / "report.html"
    new = ResultsWriter(writer.folder, manifest(provenance="another"), replace=True)
    with pytest.raises(InputError, match="another run is writing there"):
        write_report(old, page)
    new.close("complete")
    with pytest.raises(InputError, match="another run has replaced these results"):
        write_report(old, page)
    assert not page.exists()
    assert write_report(old, tmp_path / "elsewhere.html").exists()


def test_lock_of_the_caller_is_held_after_the_results_are_closed(tmp_path):
    with FolderLock(tmp_path / "r") as lock:
        with ResultsWriter(tmp_path / "r", manifest(), lock=lock) as writer:
            writer.add("measured", SUITES[0], table_of(SUITES[0]))
        with pytest.raises(InputError, match="another run is writing there"):
            ResultsWriter(tmp_path / "r", manifest(), replace=True)
        write_report(load_results(tmp_path / "r"), tmp_path / "r" / "report.html", lock=lock)
    with ResultsWriter(tmp_path / "r", manifest(), replace=True):
        pass


def test_empty_folder_created_for_a_lock_is_removed(tmp_path):
    with FolderLock(tmp_path / "r"):
        pass
    assert not (tmp_path / "r").exists()
    (tmp_path / "r").mkdir()
    with FolderLock(tmp_path / "r"):
        pass
    assert (tmp_path / "r").exists()


@pytest.mark.parametrize("made_again", [False, True])
def test_folder_removed_before_locking_is_created_again(tmp_path, monkeypatch, made_again):
    """Another run created the folder, failed and removed it; a third one may have created it again."""
    from shakedown.results import lock as module

    folder, flock, went = tmp_path / "r", module.fcntl.flock, []

    def late(handle: int, how: int) -> None:
        if not went:
            went.append(os.fstat(handle).st_ino)
            folder.rmdir()
            if made_again:
                folder.mkdir()
        flock(handle, how)

    monkeypatch.setattr(module.fcntl, "flock", late)
    with FolderLock(folder):
        assert went
        monkeypatch.undo()
        with pytest.raises(InputError, match="another run is writing there"):
            FolderLock(folder)


def test_only_one_of_many_runs_gets_the_folder(tmp_path):
    """At any time at most one run has the folder, whatever the others create and remove meanwhile."""
    code = (
        "import sys\n"
        "from shakedown.errors import InputError\n"
        "from shakedown.results.lock import FolderLock\n"
        "from pathlib import Path\n"
        "won = 0\n"
        "for _ in range(400):\n"
        "    try:\n"
        "        with FolderLock(sys.argv[1]) as lock:\n"
        "            token = lock.folder / 'held'\n"
        "            token.touch(exist_ok=False)\n"
        "            won += 1\n"
        "            token.unlink()\n"
        "    except InputError as error:\n"
        "        assert 'another run is writing there' in str(error), error\n"
        "print(won)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "r")]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)
    ]
    ended = [process.communicate(timeout=300) for process in running]
    # The scheduler decides how often each process wins.
    assert not any(err for _, err in ended), ended
    assert sum(int(out) for out, _ in ended) > 0
    assert not list(tmp_path.rglob("held"))
