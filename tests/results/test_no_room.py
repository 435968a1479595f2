"""No room for what a command writes: one line, exit status 1, nothing left that looks whole.

Files of a process are held to so many bytes, as a full disk would hold them, and everybody may try that.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from shakedown import api
from shakedown.cli import exit_status
from shakedown.results.folder import load_results

SUITES = ["tls1.2/psk", "tls1.3/x25519/p256/server"]
NAMED = ["--name", "b", "--chip", "C", "--clock", "1"]
BEHIND = ["--", sys.executable, "-c", "import socket; socket.socket().connect_ex(('198.18.0.2', 1))"]
OUT = {
    "bearer": ["bearer", "run", "--pcap", "out/b", "ethernet", *BEHIND],
    "run": ["run", "e.toml", "--out", "out/r"],
    "report": ["report", "r", "--out", "out/p.html"],
    "csv": ["report", "r", "--out", "p.html", "--csv", "out/t.csv"],
    "traces": ["inspect", "c.pcap", "--keylog", "c.keys", "--traces", "out/t"],
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
    api.capture(SUITES, folder / "c.pcap", keylog=folder / "c.keys")
    assert exit_status(["run", str(folder / "e.toml"), "--out", str(folder / "r"), "--no-report"]) == 0
    return folder


@pytest.mark.parametrize("most_bytes", [9, 700, 9000])
@pytest.mark.parametrize("what", OUT)
def test_files_that_may_not_grow(inputs, tmp_path, what, most_bytes):
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
    assert not list(out.rglob("*.draft"))
    if done.returncode == 0:
        # Some fits; what is there is all of it.
        return
    assert done.returncode == 1, done.stderr
    line = done.stderr.splitlines()[-1]
    assert line.startswith("error: ")
    assert "file too large" in line.lower() or "no space left on device" in line
    if what == "certs":
        assert list((out / "c").iterdir()) == []
    if what in ("csv", "traces", "import", "bearer"):
        assert [path.name for path in out.iterdir()] == ["mine.txt"]
    if what == "run" and (out / "r" / "manifest.json").exists():
        left = load_results(out / "r")
        assert not left.is_whole
        assert left.table.height == 0 or left.handshakes.height == 1
