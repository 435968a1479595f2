"""All commands that print rows: on a terminal of 80 columns, in a pipe, as JSON and as CSV."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl
import pytest

from shakedown.cli import _output

COLUMNS = 80
COMMAND = [sys.executable, "-m", "shakedown"]
SUITES = ("tls1.2/ecdhe_ecdsa+p256/p256/mutual", "tls1.3/x25519mlkem768/mldsa65/mutual", "tls1.2/psk")
EXPERIMENT = """
suites = ["tls1.2/psk", "tls1.0/dhe_dss+dh1024/dsa1024/mutual", "tls1.3/x25519mlkem768/mldsa65/server"]
repeat = 10
devices = ["cortex-m4", "esp32"]
bearers = ["gprs", "nb-iot", "lte"]
rates = ["10/s", "300/s"]
"""
BUDGET = """
[[budget]]
suite = "tls1.2/psk"
bytes = 400
"""

PLACES = ("--device", "cortex-m4", "--bearer", "nb-iot")
STORM = ("--arrivals", "storm:2s+backoff", "--clients", "200")
ROWS = {
    "doctor": ("doctor",),
    "suites": ("suites", "tls1.3", "mldsa65"),
    "stacks": ("stacks",),
    "measure": ("measure", *SUITES, "--repeat", "5"),
    "measure one": ("measure", SUITES[1], "--repeat", "5"),
    "primitives": ("primitives", "ecdh", "--seconds", "0.01"),
    "inspect": ("inspect", "handshake.pcap"),
    "predict": ("predict", *SUITES, *PLACES),
    "predict several": ("predict", *SUITES, "--device", "cortex-*", "--bearer", "{nb-iot,lte}"),
    "capacity": ("capacity", *SUITES, "--within", "2s", *PLACES),
    "simulate": ("simulate", *SUITES, *STORM, *PLACES, "--cells", "20"),
    "devices": ("devices",),
    "bearers": ("bearers",),
    "compare": ("compare", "results", "results"),
    "check": ("check", "budget.toml"),
    "aka run": ("aka", "run", "--attaches", "5"),
}
"""Commands with `--csv` and `--json`, each a table."""
OTHERS = {
    "devices one": ("devices", "cortex-m4"),
    "bearers one": ("bearers", "nb-iot"),
    "run": ("run", "experiment.toml", "--out", "third"),
    "report": ("report", "results", "--force"),
    "certs show": ("certs", "show", "chain/chain.pem"),
    "validate": ("validate", "experiment.toml"),
    "reproduce": ("reproduce", "tls-psk", "--no-measure"),
}
"""Commands that print texts, or several tables."""
BUSY = ("primitives", "measure", "run")
"""Commands that certainly show their progress."""

CSI = re.compile(r"\x1b\[[0-9;?]*([A-Za-z])")


class Terminal:
    """A command's output on a terminal: each piece that it drew, and the lines that remain."""

    def __init__(self, text: str) -> None:
        self.drawn: list[str] = []
        self.lines: list[str] = []
        self.headings = 0
        bold = False
        for raw in text.replace("\r\n", "\n").split("\n"):
            assert set(CSI.findall(raw)) <= {"m", "K"}, "the cursor goes to other lines"
            line = ""
            for piece in raw.split("\r"):
                plain = CSI.sub("", piece)
                self.drawn.append(plain)
                line = plain if piece.startswith("\x1b[K") else plain + line[len(plain) :]
            self.lines.append(line)
            begins = "\x1b[1m" in raw
            self.headings += begins and not bold
            bold = begins


@contextmanager
def terminal(words: tuple[str, ...], cwd: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    running = subprocess.Popen(
        [*COMMAND, *words], cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs,
        env={**environment, "TERM": "xterm-256color"}, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    try:
        yield running, ours
    finally:
        running.kill()
        running.wait()
        os.close(ours)


def shown(words: tuple[str, ...], cwd: Path, status: int = 0) -> Terminal:
    with terminal(words, cwd) as (running, ours):
        text = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            text += part
        assert running.wait(timeout=60) == status, text.decode()
    return Terminal(text.decode())


def piped(words: tuple[str, ...], cwd: Path) -> str:
    done = subprocess.run(
        [*COMMAND, *words], cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not set("\x1b\r") & set(done.stderr), "progress is for terminals"
    return done.stdout


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    (folder / "experiment.toml").write_text(EXPERIMENT)
    (folder / "budget.toml").write_text(BUDGET)
    for words in (
        ("run", "experiment.toml", "--out", "results", "--no-report"),
        ("measure", "tls1.2/psk", "--pcap", "handshake.pcap", "--repeat", "2"),
        ("certs", "make", "p256", "--out", "chain"),
    ):
        piped(words, folder)
    return folder


def check(found: Terminal) -> None:
    assert max(map(len, found.drawn)) <= COLUMNS, max(found.drawn, key=len)
    assert not [line for line in found.lines if "━" in line]
    broken = [line for line in found.lines if re.search(r"[a-z0-9]{3}…$", line)]
    assert not broken


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_one_table_of_80_columns(name, room):
    found = shown(ROWS[name], room)
    check(found)
    assert found.headings == (0 if name == "suites" else 1)
    if name in BUSY:
        assert any("━" in piece or "%" in piece for piece in found.drawn if piece not in found.lines)


@pytest.mark.parametrize("name", OTHERS)
def test_texts_fit_80_columns(name, room):
    check(shown(OTHERS[name], room))


def test_a_long_error_is_folded_between_words(room):
    words = ("predict", "tls1.2/psk", "--columns", "no-such-column-of-any-table")
    found = shown(words, room, status=2)
    check(found)
    done = subprocess.run([*COMMAND, *words], cwd=room, capture_output=True, text=True, check=False)
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) > 4 * COLUMNS
    assert " ".join(found.lines).split() == done.stderr.split()


@pytest.mark.parametrize("name", [*ROWS, "certs show", "reproduce"])
def test_piped_rows_are_plain_text_csv_or_json(name, room):
    words = {**ROWS, **OTHERS}[name]
    table = piped(words, room)
    assert "\x1b" not in table
    assert "\r" not in table
    values = pl.read_csv(io.StringIO(piped((*words, "--csv"), room)), infer_schema_length=None)
    assert values.height > 0
    objects = piped((*words, "--json"), room)
    counted = subprocess.run(["jq", "length"], input=objects, capture_output=True, text=True, check=True)
    assert int(counted.stdout) > 0


def test_a_load_shows_one_line_of_progress(room):
    serving = subprocess.Popen(
        [*COMMAND, "serve", SUITES[1], "--listen", "127.0.0.1:0"],
        cwd=room, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        address = serving.stdout.readline().split()[2]
        words = ("load", address, SUITES[1], "--rate", "200/s", "--duration", "1s")
        found = shown(words, room)
        check(found)
        assert found.headings == 1
        progress = [piece for piece in found.drawn if re.match(r"\d+\.\d of 1 s: ", piece)]
        assert len(progress) > 3
        assert max(map(len, progress)) < COLUMNS
        assert not set(progress) & set(found.lines)
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.communicate(timeout=60)


ENDED = {
    "serve": (("serve", SUITES[2], "--listen", "127.0.0.1:0"), "stopped: 0 handshakes"),
    "eap serve": (
        ("eap", "serve", "--listen", "127.0.0.1:0", "--secret", "s3cret", "--suite", SUITES[1]),
        "0 accepted (0 resumed), 0 rejected",
    ),
    "explore": (("explore", "--no-open"), "http://127.0.0.1:"),
}


@pytest.mark.parametrize("name", ENDED)
def test_ctrl_c_leaves_no_echo_in_the_output(name, room):
    """The terminal prints ^C at the start of the next line, so that this line would no longer fit."""
    words, last = ENDED[name]
    with terminal(words, room) as (running, ours):
        text = os.read(ours, 1 << 16)
        time.sleep(0.5)  # the line is printed before the core waits for signals
        os.write(ours, b"\x03")
        assert running.wait(timeout=60) == 0
        with suppress(OSError):  # the other end is closed
            while part := os.read(ours, 1 << 16):
                text += part
    found = Terminal(text.decode())
    check(found)
    assert "^C" in text.decode()
    assert not [line for line in found.lines if "^C" in line]
    assert [line for line in found.lines if line.startswith(last)]


@pytest.mark.parametrize("words", [OTHERS["report"], ("run", "experiment.toml", "--out", "with-report")])
def test_writing_the_report_is_shown_as_progress(words, room):
    found = shown(words, room)
    assert "writing the report" in found.drawn
    assert "writing the report" not in found.lines


def test_progress_never_exceeds_its_total(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(_output, "REFRESH_EVERY_S", 0.0)
    monkeypatch.setenv("COLUMNS", "50")
    with _output.progress_bar(4, "running") as update:
        update(2, "tls1.2/psk")
        update(4, "loading tls1.3/x25519/p256/server, 2 handshakes/s for 3 s")
    drawn = [piece.removeprefix("\x1b[K") for piece in capsys.readouterr().err.split("\r")]
    assert drawn[2].endswith(" 50%, 0:00 left  tls1.2/psk")
    assert drawn[3] == "loading tls1.3/x25519/p256/server, 2 handshakes/…"
    assert len(drawn[3]) == 49


def test_equal_notes_for_several_suites_are_one_line(capsys):
    _output.note_all(["tls1.2/psk: late", "a note: late", "tls1.3/psk: late", "tls1.3/psk: early", "late"])
    assert capsys.readouterr().err.splitlines() == [
        "tls1.2/psk, tls1.3/psk: late",
        "a note: late",
        "tls1.3/psk: early",
        "late",
    ]


def test_jq_is_installed():
    assert shutil.which("jq"), "make peers installs it"
