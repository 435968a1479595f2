"""`inspect` on generated captures: few and many connections, truncated files, and other files."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shakedown.api import in_memory
from shakedown.cli import exit_status

SUITES = ("tls1.2/ecdhe_rsa/rsa2048", "tls1.3/x25519/p256", "wtls/rsa/rsa1024/mutual")
PACKET_HEADER_BYTES, FILE_HEADER_BYTES = 16, 24


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("capture") / "some.pcap"
    in_memory.capture(SUITES, path, keylog=path.with_suffix(".keys"))
    return path


def repeated(capture: Path, times: int) -> bytes:
    """The TCP packets of a capture again and again, from other addresses each time."""
    whole = capture.read_bytes()
    packets, at = [], FILE_HEADER_BYTES
    while at < len(whole):
        size = PACKET_HEADER_BYTES + int.from_bytes(whole[at + 8 : at + 12], "little")
        packets.append(whole[at : at + size])
        at += size
    out = [whole[:FILE_HEADER_BYTES]]
    for number in range(times):
        for packet in packets:
            changed = bytearray(packet)
            ip = PACKET_HEADER_BYTES + 14
            source, destination = ip + 12, ip + 16
            client = source if changed[source + 1] == 0 else destination
            changed[client + 2 : client + 4] = (number + 1).to_bytes(2, "big")
            if changed[ip + 9] == 6:
                out.append(bytes(changed))
    return b"".join(out)


def out_of(capsys: pytest.CaptureFixture[str], *arguments: object, status: int = 0) -> str:
    assert exit_status(["inspect", *map(str, arguments)]) == status
    return capsys.readouterr().out


def test_few_connections_are_shown_message_by_message(capture, capsys):
    text = out_of(capsys, capture, "--keylog", capture.with_suffix(".keys"))
    assert text.count("connection ") == 3
    assert text.count("ClientHello") == 3
    assert "tls1.3/x25519/p256/server" in text
    for heading in ("wait ms", "network", "flight  bytes"):
        assert text.count(heading) == 3


def test_many_connections_are_shown_in_one_line_each(capture, tmp_path, capsys):
    path = tmp_path / "many.pcap"
    path.write_bytes(repeated(capture, 40))
    lines = out_of(capsys, path).splitlines()
    assert sum("tls1." in line for line in lines) == 80
    assert "ClientHello" not in "".join(lines)
    assert sum("tls1.2/ecdhe_rsa+x25519/rsa2048/server" in line for line in lines) == 40
    assert "connections with a handshake: 80" in lines[-1]
    few = tmp_path / "few.pcap"
    few.write_bytes(repeated(capture, 10))
    assert out_of(capsys, few).count("connection ") == 20


def test_connection_option_shows_one_connection_in_full(capture, tmp_path, capsys):
    path = tmp_path / "many.pcap"
    path.write_bytes(repeated(capture, 40))
    text = out_of(capsys, path, "--connection", 7)
    assert text.startswith("connection 7, ")
    assert text.count("connection ") == 1
    (only,) = json.loads(out_of(capsys, path, "--connection", 7, "--json"))
    assert only["index"] == 7
    assert exit_status(["inspect", str(path), "--connection", "80"]) == 2
    assert capsys.readouterr().err == f"error: {path}: no connection 80; there are 80: from 0 to 79\n"


def test_json_is_valid_for_truncated_captures(capture, tmp_path, capsys):
    whole = repeated(capture, 30)
    path = tmp_path / "cut.pcap"
    for size in (FILE_HEADER_BYTES, 100, 5000, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        status = 0 if size == FILE_HEADER_BYTES else 2
        assert exit_status(["inspect", "--json", str(path)]) == status
        out, err = capsys.readouterr()
        told = json.loads(out)
        assert all(one["messages"] for one in told)
        assert err.count("\n") == (1 if status else 0)
        assert "the capture is cut" in err or not status


def test_traces_out_contains_the_handshakes_that_can_be_traced(capture, tmp_path, capsys):
    path = tmp_path / "traces.json"
    out_of(capsys, capture, "--traces-out", path)
    traces = json.loads(path.read_text(encoding="utf-8"))
    assert [trace["suite"] for trace in traces] == [
        "tls1.2/ecdhe_rsa+x25519/rsa2048/server",
        "wtls/rsa/rsa1024/mutual",
    ]
    before = path.read_bytes()
    assert exit_status(["inspect", str(capture), "--traces-out", str(path)]) == 2
    assert capsys.readouterr().err == f"error: {path}: exists already; accepted: another name, or --force\n"
    assert path.read_bytes() == before
    out_of(capsys, capture, "--traces-out", path, "--force", "--keylog", capture.with_suffix(".keys"))
    assert len(json.loads(path.read_text(encoding="utf-8"))) == 3
    assert [one.name for one in tmp_path.iterdir()] == ["traces.json"]


def test_without_a_trace_no_traces_file_is_written(tmp_path, capsys):
    capture, path = tmp_path / "closed.pcap", tmp_path / "traces.json"
    in_memory.capture(["tls1.3/x25519/p256"], capture)
    out_of(capsys, capture, "--traces-out", path, status=2)
    assert [one.name for one in tmp_path.iterdir()] == ["closed.pcap"]


def test_other_protocols_are_reported_in_one_line(capture, tmp_path, capsys):
    path = tmp_path / "plain.pcap"
    # Every record's content type and version is another protocol's.
    path.write_bytes(repeated(capture, 5).replace(b"\x16\x03", b"GE").replace(b"\x14\x03", b"TT"))
    text = out_of(capsys, path)
    assert text.startswith(f"{path}: no handshake of TLS, DTLS or WTLS in it; ")
    assert "10 connections of other protocols" in text
    assert text.count("\n") == 1
    assert json.loads(out_of(capsys, path, "--json")) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"GET / HTTP/1.0\r\n", "not a capture: the file begins with 47 45 54 20"),
        (b"\x1f\x8b\x08\x00", "gzip: decompress it first"),
        (b"\xd4\xc3\xb2\xa1\x02\x00", "needs 24 bytes, and the file has 6"),
    ],
)
def test_file_that_is_not_a_capture_is_named(content, words, tmp_path, capsys):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert exit_status(["inspect", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {path}: ")
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("content", [b"hello\n", b"\x00\xff" * 9000, b"CLIENT_RANDOM 12 34\n"])
def test_file_that_is_not_a_key_log_is_named(content, capture, tmp_path, capsys):
    path = tmp_path / "keys"
    path.write_bytes(content)
    assert exit_status(["inspect", str(capture), "--keylog", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {path}: key log, line 1: ")
    assert err.count("\n") == 1


def test_progress_on_a_terminal_does_not_mix_with_the_data(capture, tmp_path):
    many, told = tmp_path / "many.pcap", tmp_path / "told"
    many.write_bytes(repeated(capture, 500))
    for option, lines in (("--json", 1000 + 2), ("--summary", 1000 + 2)):
        terminal, end = pty.openpty()
        with told.open("wb") as output:
            command = [sys.executable, "-m", "shakedown", "inspect", option, str(many)]
            subprocess.run(command, stdout=output, stderr=end, timeout=300, check=True)
        os.close(end)
        assert b"MB read" in os.read(terminal, 10_000)
        os.close(terminal)
        assert len(told.read_text(encoding="utf-8").splitlines()) == lines


def test_interrupted_inspect_closes_the_json_array(capture, tmp_path):
    """A capture that never ends, through a pipe; Ctrl-C after the first connections."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    told = tmp_path / "told.json"
    with told.open("wb") as output:
        command = [sys.executable, "-u", "-m", "shakedown", "inspect", "--json", str(pipe)]
        reader = subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE)
        # More connections than `inspect` keeps after their end.
        some = repeated(capture, 3000)
        with pipe.open("wb", buffering=0) as file:
            file.write(some)
            deadline = time.monotonic() + 300
            while told.stat().st_size < 10_000 and time.monotonic() < deadline:
                time.sleep(0.05)
            reader.send_signal(signal.SIGINT)
            # A reader that waits for bytes checks for the signal when bytes arrive.
            while reader.poll() is None and time.monotonic() < deadline:
                try:
                    file.write(some[FILE_HEADER_BYTES:])
                except BrokenPipeError:
                    break
        _, complaint = reader.communicate(timeout=300)
    assert reader.returncode == 130
    assert complaint == b"error: interrupted\n"
    assert json.loads(told.read_text(encoding="utf-8"))


def test_error_about_a_truncated_capture_mentions_the_truncation(capture, tmp_path, capsys):
    path = tmp_path / "cut.pcap"
    path.write_bytes(capture.read_bytes()[:1200])
    for none, *more in (
        ("no trace can be made", "--traces-out", tmp_path / "t.json"),
        ("no connection 7", "--connection", "7"),
    ):
        assert exit_status(["inspect", str(path), *map(str, more)]) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith(f"error: {path}: {none}")
        assert "; the capture was not read completely: the capture is cut" in line
    assert [one.name for one in tmp_path.iterdir()] == ["cut.pcap"]


def test_unwritable_traces_out_is_refused_before_reading(capture, tmp_path, capsys):
    path = tmp_path / "nowhere" / "t.json"
    assert exit_status(["inspect", str(capture), "--traces-out", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"error: {path}: cannot be written: no such folder\n"
