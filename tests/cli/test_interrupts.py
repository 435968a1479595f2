"""Ctrl-C interrupts the core in every long computation."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from runs import COMMAND, of_group, python, running, written

SUITE = "tls1.3/x25519/p256/server"
BEGUN = "begun"

WORK = {
    "measure": f"native.measure({SUITE!r}, 1_000_000, options={{'tickets': 16}})",
    "measure post-quantum": "native.measure('tls1.3/mlkem1024/mldsa87/mutual', 1_000_000)",
    "measure WTLS": "native.measure('wtls/rsa/rsa2048/mutual', 1_000_000)",
    "transfers": f"native.transfers({SUITE!r}, [1 << 32], repeat=1000)",
    "transfers over WEP": "native.transfers('tls1.2/psk', [1] * 1_000_000, link='wep', repeat=1_000_000)",
    "capture": f"native.capture([{SUITE!r}] * 2_000_000, 'c.pcap')",
    "primitives": "native.primitives(seconds=3600.0)",
    "certificates": "native.certs({'do': 'make', 'keys': '@'.join(['rsa4096'] * 500), 'out': 'c', 'now': 1})",
    "WTLS certificates": "native.certs("
    "{'do': 'make', 'wtls': True, 'keys': '@'.join(['rsa4096'] * 500), 'out': 'c', 'now': 1})",
}


def worked_s(process: subprocess.Popen[str]) -> float:
    """CPU time of a process that runs."""
    assert process.poll() is None, process.communicate()
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ended_after_s(command: list[str]) -> float:
    """CPU time of a command from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True, timeout=300)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("work", WORK)
def test_ctrl_c_interrupts_the_core(tmp_path, work):
    code = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from shakedown import native as wrapped\n"
        f"native = wrapped if {work == 'primitives'} else wrapped.extension()\n"
        "try:\n"
        f"    print({BEGUN!r}, flush=True)\n"
        f"    {WORK[work]}\n"
        "except KeyboardInterrupt:\n"
        "    print('heard', flush=True)\n"
    )
    with running([sys.executable, "-c", code], cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == BEGUN
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (0, "heard\n", "")
    assert os.listdir(tmp_path) in ([], ["c.pcap"])  # noqa: PTH208 - names alone


def test_second_ctrl_c_during_the_first_report_prints_nothing():
    code = (
        "import click, shakedown.cli as cli\n"
        "def interrupted(*_, **__): raise KeyboardInterrupt\n"
        "click.echo = interrupted\n"
        "cli.app.invoke = interrupted\n"
        "cli.main(['suites'])\n"
    )
    done = python(code)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_ctrl_c_in_a_destructor_is_not_lost():
    """Python ignores exceptions in `__del__`, and the command would continue."""
    code = (
        "import os, signal, time, shakedown.cli as cli\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Short:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        for _ in range(1000): pass\n"
        "def invoke(*_, **__):\n"
        "    Short()\n"
        "    print('on', flush=True)\n"
        "    time.sleep(1000)\n"
        "cli.app.invoke = invoke\n"
        "cli.main(['suites'])\n"
    )
    done = python(code)
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")


def test_ctrl_c_interrupts_waiting_for_a_pipe_with_polars_loaded(tmp_path):
    """polars would let the system restart the waiting call, and Python would not see the signal."""
    os.mkfifo(tmp_path / "pipe")
    code = (
        "import os, signal, sys, threading\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import shakedown.results.table\n"
        "threading.Timer(200.0, os._exit, (9,)).start()\n"
        "try:\n"
        "    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    open(sys.argv[1])\n"
        "except KeyboardInterrupt:\n"
        "    os._exit(0)\n"
    )
    assert python(code, str(tmp_path / "pipe")).returncode == 0


def test_server_prints_its_summary_whenever_signals_arrive():
    """One signal comes right after the announcement, a second one while the tally is printed."""
    code = (
        "import os, signal\n"
        "import shakedown.cli as cli, shakedown.cli.eap as eap\n"
        "def and_then(first, second): return lambda *given: (first(*given), second(*given))\n"
        "interrupt = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "eap.announce = and_then(eap.announce, interrupt)\n"
        "eap._show_tally = and_then(interrupt, eap._show_tally)\n"
        "cli.main(['eap', 'serve', '--listen', '127.0.0.1:0', '--secret', 's', '--suite', 'tls1.3/x25519'])\n"
    )
    done = python(code)
    assert (done.returncode, done.stderr) == (0, "")
    serving, tally = done.stdout.splitlines()
    assert serving.startswith("serving ")
    assert tally.startswith("0 accepted (0 resumed), 0 rejected, ")


def test_ticket_count_is_limited(shakedown):
    done = shakedown("measure", SUITE, "--tickets", "100000000")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: invalid value for '--tickets': \"100000000\"")


@pytest.mark.parametrize("rates", ["--arrivals=poisson:1000/s", "--arrivals=storm:10000s"])
def test_ctrl_c_interrupts_a_simulation(rates):
    command = [*COMMAND, "simulate", SUITE, rates, "--clients"]
    begun_s = 2.0 * ended_after_s([*command, "1"])
    command.append("10000000")
    with running(command) as process:
        # CPU time is compared, because a program may start slowly on a busy machine.
        while worked_s(process) < begun_s:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (130, "error: interrupted\n")


def test_ctrl_c_interrupts_reading_an_endless_key_log(tmp_path):
    """A pipe that gives lines without end, and no faster than they are read."""
    keys = tmp_path / "keys"
    os.mkfifo(keys)
    command = [*COMMAND, "inspect", "nothing.pcap", "--keylog", str(keys)]
    lines = f"CLIENT_RANDOM {0:064x} {0:096x}\n".encode() * 2000
    deadline = time.monotonic() + 300
    written = 0
    with running(command, cwd=tmp_path) as process:
        with keys.open("wb", buffering=0) as pipe, suppress(BrokenPipeError):
            while process.poll() is None and time.monotonic() < deadline:
                pipe.write(lines)
                written += 1
                if written == 20:
                    process.send_signal(signal.SIGINT)
                time.sleep(0.02)
        _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (130, "error: interrupted\n")


READ = {
    "certificates": ["certs", "show", "pipe"],
    "a profile": ["certs", "make", "p256@p256", "--profile", "./pipe", "--out", "c"],
    "a chain": ["measure", "tls1.3/x25519", "--chain", "pipe", "--key", "pipe"],
    "a capture": ["inspect", "pipe"],
    "a key log": ["inspect", "nothing.pcap", "--keylog", "pipe"],
    "certificates to trust": ["load", "127.0.0.1:9", SUITE, "--rate", "1", "--ca", "pipe"],
    "a card": ["aka", "mobile", "--sgsn", "127.0.0.1:9", "--card", "pipe"],
}


@pytest.mark.parametrize("what", READ)
def test_ctrl_c_interrupts_waiting_for_a_pipe_without_writer(tmp_path, what):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with running([*COMMAND, *READ[what]], cwd=tmp_path) as process:
        while pipe not in opened(process):
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (130, "error: interrupted\n")


def opened(process: subprocess.Popen[str]) -> set[Path]:
    """The files that a process has open."""
    found = set()
    for link in Path(f"/proc/{process.pid}/fd").glob("*"):
        with suppress(OSError):
            found.add(link.readlink())
    return found


def threads(process: subprocess.Popen[str]) -> set[tuple[str, str]]:
    """The names of a process's threads and their states ("S": sleeping)."""
    found = set()
    for thread in Path(f"/proc/{process.pid}/task").glob("*/stat"):
        with suppress(OSError):
            name, _, rest = thread.read_text().partition("(")[2].rpartition(")")
            found.add((name, rest.split()[0]))
    return found


def test_ctrl_c_interrupts_a_bearer_check():
    """The check spends nearly all of its time waiting."""
    command = [*COMMAND, "bearer", "check", "gprs", "lte", "--seconds", "600"]
    with running(command) as process:
        while ("bearer", "S") not in threads(process):
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (130, "", "error: interrupted\n")


@pytest.mark.parametrize("seed", range(4))
def test_ctrl_c_interrupts_a_cluster_at_start_work_and_end(tmp_path, seed):
    """A terminal sends the signal to all processes, the workers included."""
    pytest.importorskip("distributed")
    experiment = written(
        tmp_path,
        f'suites = ["{SUITE}", "tls1.2/psk"]\nrepeat = 2\ndevices = ["phone", "esp32"]\n'
        'bearers = ["lte", "gprs", "geo", "ble"]\nrates = [1, 10, 100]\n',
    )
    out = tmp_path / "r"
    command = [*COMMAND, "run", str(experiment), "--out", str(out), "--processes", "2"]
    process = subprocess.Popen(
        [*command, "--no-report"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    )
    try:
        # Wait until the process group has a second process.
        while len(of_group(process.pid)) < 2 and process.poll() is None:
            time.sleep(0.005)
        time.sleep(random.Random(seed).uniform(0.0, 1.5 * seed))
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=300)
        # multiprocessing's resource tracker ends when its parent has.
        deadline_s = time.monotonic() + 300.0
        while (left := of_group(process.pid)) and time.monotonic() < deadline_s:
            time.sleep(0.05)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not left
    assert "Traceback" not in err
    lines = [line for line in err.splitlines() if not line.startswith("results: ")]
    if process.returncode != 0:
        assert process.returncode in (130, -signal.SIGINT)
        assert all(line.startswith("error: interrupted") for line in lines), err
