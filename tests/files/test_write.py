"""Output files of commands: written completely or not at all, and never replaced unless requested."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shakedown.errors import InputError, ShakedownError
from shakedown.files.write import (
    Destination,
    check_distinct,
    check_free,
    digest_of,
    write,
    write_durably,
    writing,
)


def test_existing_file_is_refused_and_replaced_on_request(tmp_path):
    path = tmp_path / "x"
    write(path, "one")
    with pytest.raises(InputError, match="exists already; accepted: another name, or --force"):
        write(path, "two")
    assert path.read_text() == "one"
    write(path, "three", replace=True)
    assert path.read_text() == "three"
    assert [one.name for one in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("dangling", [False, True])
def test_symbolic_link_counts_as_existing_and_is_not_followed(tmp_path, dangling):
    target = tmp_path / "target"
    if not dangling:
        target.write_text("mine")
    link = tmp_path / "link"
    link.symlink_to(target)
    with pytest.raises(InputError, match="exists already"):
        write(link, "theirs")
    write(link, "theirs", replace=True)
    assert not link.is_symlink()
    assert link.read_text() == "theirs"
    assert target.exists() is not dangling
    assert dangling or target.read_text() == "mine"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400, 0o664, 0o755])
def test_replacement_keeps_the_mode_of_the_old_file(tmp_path, mode):
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(mode)
    with writing(path, replace=True) as file:
        file.write("new")
        # Nor is the draft open to others.
        assert file.temp_path.stat().st_mode & 0o077 & ~mode == 0
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o7777 == mode


def test_replacement_of_a_link_keeps_the_mode_of_its_target(tmp_path):
    (tmp_path / "private").write_text("mine")
    (tmp_path / "private").chmod(0o600)
    (tmp_path / "x").symlink_to(tmp_path / "private")
    write(tmp_path / "x", "new", replace=True)
    assert (tmp_path / "x").lstat().st_mode & 0o777 == 0o600


def test_outputs_that_are_the_same_file_are_refused(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "d").symlink_to("real")
    a, spelled = tmp_path / "real" / "a", tmp_path / "d" / ".." / "real" / "a"
    with pytest.raises(InputError, match=r"a: is written too; accepted: another name"):
        check_distinct([a, a])
    with pytest.raises(InputError, match=r"a: is the same file as .*, which is written too"):
        check_distinct([a, spelled])  # neither is there yet
    a.write_text("mine")
    (tmp_path / "hard").hardlink_to(a)
    (tmp_path / "soft").symlink_to(a)
    for other in (spelled, tmp_path / "d" / "a", tmp_path / "hard", tmp_path / "soft"):
        with pytest.raises(InputError, match=r"is the same file as .*, which is read too"):
            check_distinct([other], [None, a])
        with pytest.raises(InputError, match=r"is the same file as .*, which is read too"):
            check_distinct([a], [other])
    (tmp_path / "loop").symlink_to("loop")
    check_distinct([a, None, tmp_path / "b", None], [tmp_path / "b2", tmp_path / "loop"])
    check_distinct([Path("/dev/null"), Path("/dev/null")], [Path("/dev/null")])


def test_error_while_writing_leaves_no_file(tmp_path):
    def fail() -> None:
        with writing(tmp_path / "x") as file:
            file.write("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_second_writer_is_refused(tmp_path):
    first = Destination(tmp_path / "x", replace=False)
    first.write("first")
    with pytest.raises(ShakedownError, match="cannot be written: another process is writing it"):
        Destination(tmp_path / "x", replace=True)
    first.commit()
    assert (tmp_path / "x").read_text() == "first"
    assert [one.name for one in tmp_path.iterdir()] == ["x"]


def test_file_created_during_writing_is_not_replaced(tmp_path):
    """The name was free when the draft was begun."""
    file = Destination(tmp_path / "x", replace=False)
    (tmp_path / "x").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        file.commit()
    assert (tmp_path / "x").read_text() == "mine"
    assert [one.name for one in tmp_path.iterdir()] == ["x"]


def test_ended_writer_does_not_remove_the_next_draft(tmp_path):
    """A writer that has ended removes no draft of the next one."""
    first = Destination(tmp_path / "x", replace=True)
    first.commit()
    second = Destination(tmp_path / "x", replace=True)
    first.abandon()
    second.write("second")
    second.commit()
    assert (tmp_path / "x").read_text() == "second"


def test_full_disk_is_reported_and_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_text("mine")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ShakedownError, match="x: cannot be written: no space left on device") as told:
        write(path, "theirs", replace=True)
    assert told.value.exit_status == 1, "the input is valid"
    with pytest.raises(OSError, match="No space left"):
        write_durably(path, b"theirs", replace=True)
    assert path.read_text() == "mine"
    assert [one.name for one in tmp_path.iterdir()] == ["x"]


def test_devices_and_pipes_are_written_into(tmp_path):
    write(Path("/dev/null"), "gone")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    write(pipe, "through")
    assert reader.communicate(timeout=300)[0] == b"through"
    assert pipe.is_fifo()


@pytest.mark.parametrize("path", ["nowhere/x", "."])
def test_impossible_paths_are_refused_first(tmp_path, path):
    with pytest.raises(InputError, match=r"cannot be written: (no such folder|is a directory)"):
        check_free(tmp_path / path)


def test_a_link_has_no_digest(tmp_path):
    (tmp_path / "x").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "x")
    assert digest_of(tmp_path / "x")
    assert digest_of(tmp_path / "link") is None
    assert digest_of(tmp_path / "nowhere") is None


KILLED = """
import os, signal, sys
from pathlib import Path
from shakedown.files import write as files

step = int(sys.argv[2])
real = {name: getattr(os, name) for name in ("fsync", "link", "replace", "open")}
calls = 0

def wrapped(name):
    def call(*arguments, **options):
        global calls
        calls += 1
        if calls > step:
            os.kill(os.getpid(), signal.SIGKILL)
        return real[name](*arguments, **options)
    return call

for name in real:
    setattr(os, name, wrapped(name))
Path.replace = lambda self, target: os.replace(self, target)
files.write(Path(sys.argv[1]), "new" * 1000, replace=sys.argv[3] == "replace")
"""


@pytest.mark.parametrize("mode", ["replace", "new"])
@pytest.mark.parametrize("step", range(6))
def test_file_is_old_or_new_after_a_kill_at_any_step(tmp_path, mode, step):
    path = tmp_path / "x"
    if mode == "replace":
        path.write_text("old")
    done = subprocess.run([sys.executable, "-c", KILLED, path, str(step), mode], timeout=300, check=False)
    assert done.returncode in (0, -signal.SIGKILL)
    found = path.read_text() if path.exists() else None
    assert found in ("new" * 1000, "old" if mode == "replace" else None)
    if done.returncode == 0:
        assert found == "new" * 1000
    write(path, "again", replace=True)
    assert path.read_text() == "again"
