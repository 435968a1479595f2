"""Output files of commands: links, files that are also inputs, permissions, kills."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import real
from live.serve.serving import SUITE, Running, serving
from shakedown.api import in_memory
from shakedown.cli import exit_status
from shakedown.errors import InputError, ShakedownError
from shakedown.files.write import DRAFT, draft_of
from shakedown.live.load_test import UnwrittenTracesError, load
from shakedown.live.load_test.time_spent import read_halves
from shakedown.native import load_generator
from shakedown.schema.base import encode_pretty
from shakedown.schema.options import LoadOptions

SHORT = ["--rate", "50/s", "--duration", "300ms"]


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with serving(SUITE) as running:
        yield running


@pytest.fixture
def link(tmp_path: Path) -> Iterator[Path]:
    """A link to a file that must not change; afterwards, the link itself is a regular file."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    link = tmp_path / "link"
    link.symlink_to(precious)
    yield link
    assert precious.read_text() == "precious"
    assert link.is_file()
    assert not link.is_symlink()
    assert not list(tmp_path.glob(f".*{DRAFT}"))


@pytest.mark.parametrize("option", ["--traces-out", "--ca-out"])
def test_serve_replaces_links(link, option):
    with serving(SUITE, option, link, "--force"):
        # The link is replaced before the server is stopped.
        assert not link.is_symlink()
        assert link.read_text()[:27] == ("" if option == "--traces-out" else "-----BEGIN CERTIFICATE-----")


def test_load_replaces_links(link, server):
    arguments = [
        "load",
        server.target,
        SUITE,
        *SHORT,
        "--trace-count",
        "3",
        "--traces-out",
        str(link),
        "--force",
    ]
    assert exit_status(arguments) == 0
    assert read_halves(link)


def test_bearer_run_replaces_links(link):
    assert exit_status(["bearer", "run", "--pcap", str(link), "--force", "ethernet", "--", "true"]) == 0
    assert link.read_bytes()[:4] == bytes.fromhex("4d3cb2a1")


def test_server_traces_exist_while_it_runs_and_after_it_is_killed(tmp_path, server):
    traces = tmp_path / "t.jsonl"
    traces.write_text("of another run")
    traces.chmod(0o600)
    with serving(SUITE, "--traces-out", traces, "--sample", 1, "--force") as running:
        assert traces.read_text() == ""
        load(running.target, SUITE, LoadOptions(rate_per_s=50.0, duration_s=0.2))
        count = len(read_halves(traces))
        assert count
        running.process.kill()
        running.process.wait(timeout=300)
    assert len(read_halves(traces)) >= count
    assert traces.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["t.jsonl"]


def test_a_server_that_cannot_start_replaces_nothing(tmp_path, capfd, server):
    for name in ("traces", "ca"):
        (tmp_path / name).write_text("mine")
    files = ["--traces-out", str(tmp_path / "traces"), "--ca-out", str(tmp_path / "ca")]
    assert exit_status(["serve", SUITE, "--listen", server.target, *files, "--force"]) in (1, 2)
    assert "another program listens there" in capfd.readouterr().err
    assert exit_status(["serve", SUITE, "--listen", "127.0.0.1:0", *files]) == 2
    assert "ca: exists already" in capfd.readouterr().err
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"traces": "mine", "ca": "mine"}


def test_file_created_while_load_runs_is_kept(tmp_path, monkeypatch, capfd, server):
    path = tmp_path / "m"
    run_core = load_generator.part

    def meanwhile(*arguments: object) -> object:
        outcome = run_core(*arguments)
        path.write_text("somebody else's")
        return outcome

    monkeypatch.setattr(load_generator, "part", meanwhile)
    options = LoadOptions(rate_per_s=50.0, duration_s=0.2, trace_count=2, traces_out=path)
    with pytest.raises(UnwrittenTracesError, match="m: exists already") as told:
        load(server.target, SUITE, options)
    assert told.value.run.completed > 0
    path.unlink()
    arguments = [
        "load",
        server.target,
        SUITE,
        *SHORT,
        "--trace-count",
        "2",
        "--traces-out",
        str(path),
        "--json",
    ]
    assert exit_status(arguments) == 2
    out, err = capfd.readouterr()
    assert err.endswith("m: exists already; accepted: another name, or --force\n")
    assert '"completed"' in out, "the run is not lost with its traces"
    assert path.read_text() == "somebody else's"
    assert [one.name for one in tmp_path.iterdir()] == ["m"]


def killed_once_at_it(arguments: list[str], is_at_it: Callable[[], bool]) -> None:
    """Runs a command and kills it once a condition holds."""
    with subprocess.Popen([sys.executable, "-m", "shakedown", *arguments], stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 300
        while not is_at_it():
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=300)


def test_killed_load_leaves_no_files(tmp_path):
    """None of the load's connections is answered."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.01)

        def somebody_came() -> bool:
            try:
                listener.accept()[0].close()
            except TimeoutError:
                return False
            return True

        target = f"127.0.0.1:{listener.getsockname()[1]}"
        out = ["--trace-count", "2", "--traces-out", str(tmp_path / "m")]
        killed_once_at_it(["load", target, SUITE, "--rate", "5/s", "--duration", "60s", *out], somebody_came)
    assert list(tmp_path.iterdir()) == []


def test_capture_gets_its_name_when_complete(tmp_path):
    begun, capture = tmp_path / "begun", tmp_path / "x.pcap"
    command = ["--", "sh", "-c", f"touch {begun}; sleep 60"]
    killed_once_at_it(["bearer", "run", "--pcap", str(capture), "ethernet", *command], begun.exists)
    assert not capture.exists()
    # The captured packets are in the draft.
    assert draft_of(capture).exists()
    assert exit_status(["bearer", "run", "--pcap", str(capture), "ethernet", "--", "true"]) == 0
    assert capture.is_file()


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_command_that_cannot_start_leaves_no_capture(tmp_path, force):
    if force:
        (tmp_path / "x").write_text("of another run")
    arguments = ["bearer", "run", "--pcap", str(tmp_path / "x"), *force, "lte", "--", "no-such-program"]
    assert exit_status(arguments) == 127
    left = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert left == ({"x": "of another run"} if force else {})


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    in_memory.capture([SUITE], folder / "c.pcap", keylog=folder / "c.keys")
    (folder / "e.toml").write_text(f'suites = ["{SUITE}"]\nrepeat = 1\n')
    (folder / "t.json").write_text(encode_pretty([real.measurement(SUITE)]))
    (folder / "speed.txt").write_text("+F2:2:2048:4000.000000:80000.000000\n")
    (folder / "lte.toml").write_text("")
    assert exit_status(["run", str(folder / "e.toml"), "--out", str(folder / "r"), "--no-report"]) == 0
    assert exit_status(["certs", "issue", "root", "p256", "--out", str(folder / "ca")]) == 0
    return folder


IMPORT = ["devices", "import", "speed.txt", "--name", "b", "--chip", "C", "--clock", "1"]
CHAIN = ["--chain", "ca/chain.pem", "--key", "ca/key.pem"]
LOAD = ["load", "127.0.0.1:1", SUITE, "--trace-count", "1", "--rate", "50/s"]
SERVE = ["serve", SUITE, "--listen", "127.0.0.1:0"]
SAME = {
    "a capture and its traces": ["inspect", "c.pcap", "--traces-out", "c.pcap", "--force"],
    "through a link": ["inspect", "c.pcap", "--traces-out", "link/c.pcap", "--force"],
    "a key log and traces": ["inspect", "c.pcap", "--keylog", "c.keys", "--traces-out", "c.keys", "--force"],
    "figures and their page": ["report", "t.json", "--out", "t.json", "--force"],
    "figures and their table": ["report", "t.json", "--csv", "t.json", "--force"],
    "a part and a table": ["report", "r", "--csv", "r/part-0001.parquet", "--force"],
    "a manifest and a page": ["report", "r", "--out", "r/manifest.json", "--force"],
    "a page and a table": ["report", "r", "--out", "x", "--csv", "x"],
    "a capture and its keys": ["measure", SUITE, "--repeat", "1", "--pcap", "x", "--keylog", "x"],
    "a chain and a capture": ["measure", SUITE, *CHAIN, "--pcap", "ca/chain.pem", "--force"],
    "roots and traces": [*SERVE, "--ca-out", "x", "--traces-out", "link/x"],
    "a key and roots": [*SERVE, *CHAIN, "--ca-out", "ca/key.pem", "--force"],
    "halves of both sides": [*LOAD, "--server-traces", "t.json", "--traces-out", "t.json", "--force"],
    "trust and halves": [*LOAD, "--ca", "ca/chain.pem", "--traces-out", "ca/chain.pem", "--force"],
    "a bearer and a capture": ["bearer", "run", "--pcap", "lte.toml", "--force", "./lte.toml", "--", "true"],
    "an output and a profile": [*IMPORT, "--out", "speed.txt", "--force"],
    "an issuer and its leaf": [
        "certs", "issue", "server", "p256", "--ca", "ca/chain.pem", "--ca-key", "ca/key.pem", "--out", "ca",
        "--force",
    ],
}  # fmt: skip


@pytest.mark.parametrize("what", SAME)
def test_output_equal_to_an_input_or_another_output_is_refused(inputs, monkeypatch, capfd, what):
    monkeypatch.chdir(inputs)
    if not (inputs / "link").exists():
        (inputs / "link").symlink_to(".")
    before = {path: path.read_bytes() for path in inputs.rglob("*") if path.is_file()}
    assert exit_status(SAME[what]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert " too; accepted: another name to write to\n" in err
    assert err.count("\n") == 1
    assert {path: path.read_bytes() for path in inputs.rglob("*") if path.is_file()} == before


def test_capture_function_refuses_equal_output_names(tmp_path):
    with pytest.raises(InputError, match="x: is written too"):
        in_memory.capture([SUITE], tmp_path / "x", keylog=tmp_path / "x")


def test_a_key_log_that_cannot_be_created_leaves_no_capture(tmp_path):
    # The draft's name is longer than a name may be.
    with pytest.raises(ShakedownError, match="k: cannot be written: "):
        in_memory.capture([SUITE], tmp_path / "x", keylog=tmp_path / ("k" * 250))
    assert list(tmp_path.iterdir()) == []
