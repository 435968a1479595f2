"""Names of pipes, sockets, devices and folders: written to or refused, never replaced."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import real
from shakedown.api import in_memory, reports
from shakedown.cli import exit_status
from shakedown.errors import InputError, ShakedownError
from shakedown.files.write import SPECIAL, Destination, write, write_durably
from shakedown.schema.base import encode_pretty

SUITE = "tls1.2/psk"
IMPORT = ["devices", "import", "speed.txt", "--name", "b", "--chip", "C", "--clock", "1", "--out"]
WRITTEN = {
    "a table": ["report", "t.json", "--out", "page.html", "--csv"],
    "traces": ["inspect", "c.pcap", "--keylog", "c.keys", "--traces-out"],
    "a profile": IMPORT,
    "a capture": ["measure", SUITE, "--repeat", "1", "--pcap"],
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    in_memory.capture([SUITE], folder / "c.pcap", keylog=folder / "c.keys")
    (folder / "t.json").write_text(encode_pretty([real.measurement(SUITE)]))
    (folder / "speed.txt").write_text("+F2:2:2048:4000.000000:80000.000000\n")
    return folder


@pytest.fixture(params=["pipe", "socket", "link to a pipe", "link to a device"])
def special(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A special file, which must stay unchanged and alone in its folder."""
    folder = tmp_path / "special"
    folder.mkdir()
    path = folder / "x"
    with socket.socket(socket.AF_UNIX) as listener:
        if request.param == "pipe":
            os.mkfifo(path)
        elif request.param == "socket":
            listener.bind(str(path))
        elif request.param == "link to a pipe":
            os.mkfifo(tmp_path / "pipe")
            path.symlink_to(tmp_path / "pipe")
        else:
            path.symlink_to("/dev/null")
        before = path.lstat()
        yield path
        after = path.lstat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert [one.name for one in folder.iterdir()] == ["x"]


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_report_to_a_special_file_is_refused(special, inputs, capfd, force):
    assert exit_status(["report", str(inputs / "t.json"), "--out", str(special), *force]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    if force:
        assert err == f"error: {special}: {SPECIAL}; accepted: another --out\n"
    with pytest.raises(InputError, match="is a device"):
        reports.report(inputs / "t.json", special, replace=True)


def test_report_with_a_special_file_as_figure_is_refused(inputs, tmp_path, capfd):
    made = reports.report(inputs / "t.json", tmp_path / "p.html")
    figure = next((tmp_path / "figures").glob("*.svg"))
    figure.unlink()
    os.mkfifo(figure)
    before = made.read_bytes()
    assert exit_status(["report", str(inputs / "t.json"), "--out", str(made), "--force"]) == 2
    assert capfd.readouterr().err.endswith(f"error: {figure}: {SPECIAL}; accepted: another --out\n")
    assert stat.S_ISFIFO(figure.lstat().st_mode)
    assert made.read_bytes() == before


@pytest.mark.parametrize("what", WRITTEN)
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_other_outputs_are_written_to_special_files(inputs, tmp_path, monkeypatch, what, kind):
    monkeypatch.chdir(inputs)
    folder = tmp_path / "special"
    folder.mkdir()
    path = folder / "x"
    read: list[bytes] = []
    if kind == "pipe":
        os.mkfifo(path)
        reader = threading.Thread(target=lambda: read.append(path.read_bytes()), daemon=True)
    else:
        path.symlink_to("/dev/full")
        reader = threading.Thread()
    reader.start()
    before = path.lstat().st_ino
    status = exit_status([*WRITTEN[what], str(path), "--force"])
    assert path.lstat().st_ino == before
    assert [one.name for one in folder.iterdir()] == ["x"]
    if kind == "pipe":
        assert status == 0
        reader.join(timeout=300)
        assert read[0]
    else:
        # Writing to /dev/full fails, so the bytes went to the device.
        assert status == 1


def test_writing_to_a_socket_fails_and_keeps_it(special):
    if not stat.S_ISSOCK(special.lstat().st_mode):
        with pytest.raises(OSError, match="is a device"):
            write_durably(special, b"x", replace=True)
        return
    with pytest.raises(InputError, match="cannot be written"):
        write(special, "x", replace=True)


def test_special_file_created_during_writing_is_kept(tmp_path):
    path = tmp_path / "x"
    destination = Destination(path, replace=True)
    os.mkfifo(path)
    with pytest.raises(ShakedownError, match=SPECIAL):
        destination.commit()
    assert stat.S_ISFIFO(path.lstat().st_mode)
    assert [one.name for one in tmp_path.iterdir()] == ["x"]


def test_dev_stdout_is_not_replaced(inputs, tmp_path):
    before = Path("/dev/stdout").readlink()
    with (tmp_path / "out").open("wb") as out:
        command = [sys.executable, "-m", "shakedown", "report", "t.json", "--csv", "/dev/stdout", "--force"]
        subprocess.run([*command, "--json"], cwd=inputs, stdout=out, check=True, timeout=300)
    assert Path("/dev/stdout").readlink() == before
    assert (tmp_path / "out").stat().st_size


def test_folder_as_output_is_refused(inputs, tmp_path, capfd):
    for arguments in (["report", "t.json", "--out"], *WRITTEN.values()):
        words = [str(inputs / word) if (inputs / word).is_file() else word for word in arguments]
        words = [str(tmp_path / word) if word == "page.html" else word for word in words]
        assert exit_status([*words, str(tmp_path), "--force"]) == 2
        assert "directory" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []
