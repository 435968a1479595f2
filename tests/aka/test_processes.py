"""Mobile, SGSNs and HSS as processes on sockets; the SGSN's state after a crash."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

import shakedown
from aka.nodes import TIMEOUT_S, Access, Process, free_port, sgsn
from runs import COMMAND, printed, running
from shakedown.schema.aka import LiveAttaches, SgsnSummary
from shakedown.schema.base import decode

IMSI = "202010000000000"


def attached(done: subprocess.CompletedProcess[str]) -> dict:
    (found,) = printed(done, LiveAttaches)
    return found


def summary(told: str) -> dict:
    decode(told, list[SgsnSummary])
    (found,) = json.loads(told)
    return found


def test_mobile_attaches_and_data_is_echoed_under_the_derived_keys(shakedown, site, hss, processes):
    processes.append(sgsn(site, hss, "sgsn-1", "--max-resumptions", "3"))
    done = shakedown(
        *("aka", "mobile", "--sgsn", processes[-1].addresses[0], "--card", site / "card-0.json"),
        *("--attaches", "6", "--data", "forty-two", "--json"),
    )
    found = attached(done)
    assert (found["completed"], found["failed"], found["echoed"]) == (6, {}, 6)
    assert (found["full"]["attaches"], found["resumed"]["attaches"]) == (2, 4)
    did = summary(processes[-1].stop())
    assert (did["full"], did["resumed"], did["rejected"]) == (2, 4, {})
    assert did["not_resumed"] == {"too_often": 1}
    assert (len(did["scrt_full_s"]), len(did["scrt_resumed_s"])) == (2, 4)


def test_a_mobile_attaches_from_python(site, hss, processes):
    processes += [sgsn(site, hss, "sgsn-1", "--max-resumptions", "3"), sgsn(site, hss, "sgsn-2")]
    told: list[int] = []
    found = shakedown.attach_live(
        processes[-2].addresses[0],
        site / "card-0.json",
        shakedown.MobileOptions(attaches=3, gap_s=0.5, data="forty-two"),
        samples=True,
        progress=told.append,
    )
    assert (found.attaches, found.completed, found.failed, found.echoed) == (3, 3, {}, 3)
    assert (found.full.attaches, found.resumed.attaches) == (1, 2)
    assert len(found.resumed.attach_s.samples) == 2
    assert found.suite == "tls1.2/ecdhe_ecdsa+x25519/p256@p256@p256/mutual"
    assert told
    assert told == sorted(told)
    assert set(told) <= {0, 1, 2}, "how many were done when one began"
    assert len(summary(processes[-2].stop())["scrt_resumed_s"]) == 2
    # SGSNs are used in turn; the first has stopped, so every second attach of another subscriber fails.
    turns = [node.addresses[0] for node in processes[-2:]]
    found = shakedown.attach_live(
        turns, str(site / "card-1.json"), shakedown.MobileOptions(attaches=2, timeout_s=5.0)
    )
    assert (found.attaches, found.completed, sum(found.failed.values())) == (2, 1, 1)
    assert (found.full.attaches, found.resumed, found.echoed) == (1, None, None)
    assert summary(processes[-1].stop())["full"] == 1


def test_session_moves_with_its_mobile_to_another_sgsn(shakedown, site, hss, processes):
    # Each SGSN is configured with the other's address, so the ports must be known beforehand.
    first, second = free_port(), free_port()
    for name, own, other in (("sgsn-1", first, ("sgsn-2", second)), ("sgsn-2", second, ("sgsn-1", first))):
        processes.append(
            sgsn(
                *(site, hss, name, "--core", f"127.0.0.1:{own}"),
                *("--neighbour", f"{other[0]}=127.0.0.1:{other[1]}"),
            )
        )
    nodes = processes[-2:]
    turns = [part for node in nodes for part in ("--sgsn", node.addresses[0])]
    found = attached(
        shakedown("aka", "mobile", *turns, "--card", site / "card-1.json", "--attaches", "5", "--json")
    )
    assert (found["full"]["attaches"], found["resumed"]["attaches"]) == (1, 4)
    did = [summary(node.stop()) for node in nodes]
    assert [one["taken_over"] for one in did] == [2, 2]
    assert [one["handed_over"] for one in did] == [2, 2]
    assert [one["resumed"] for one in did] == [2, 2]


def held(state: Path) -> list[tuple]:
    """Sessions in a file that no process has open."""
    with contextlib.closing(sqlite3.connect(state)) as database:
        return database.execute("SELECT imsi, resumptions FROM session").fetchall()


def test_sessions_and_their_counts_survive_an_sgsn_that_is_killed(shakedown, site, hss, processes, tmp_path):
    state = tmp_path / "state.sqlite"
    options = ("--state", str(state), "--max-resumptions", "1")
    processes.append(sgsn(site, hss, "sgsn-1", *options))
    address = processes[-1].addresses[0]
    assert state.stat().st_mode & 0o777 == 0o600
    again = shakedown("aka", "sgsn", "--listen", "127.0.0.1:0", "--node", site / "sgsn-1.json", *options)
    assert again.returncode == 2, again.stderr
    assert "locked" in again.stderr

    with Access(address) as access:
        thrice = ("--attaches", "3", "--timeout", "600s", "--json")
        card = ("--card", str(site / "card-0.json"))
        with running([*COMMAND, "aka", "mobile", "--sgsn", access.address, *card, *thrice]) as mobile:
            # The SGSN is killed between two attaches and restarted on the same port.
            for round_number in range(2):
                access.attach_ended()
                processes[-1].kill()
                assert held(state) == [(IMSI, round_number)]
                processes.append(sgsn(site, hss, "sgsn-1", *options, listen=address))
                access.go_on()
            access.attach_ended()
            told, complaints = mobile.communicate(timeout=TIMEOUT_S)
    assert mobile.returncode == 0, complaints
    (found,) = json.loads(told)
    # Full, resumed, then full, because the stored count has reached its limit.
    assert (found["full"]["attaches"], found["resumed"]["attaches"]) == (2, 1)
    assert summary(processes[-1].stop())["not_resumed"] == {"too_often": 1}


@pytest.mark.parametrize("accepts", [True, False], ids=["handshake", "connection"])
def test_attach_in_progress_can_be_interrupted(site, accepts):
    """The network accepts the connection, or not even that, and never answers."""
    with contextlib.ExitStack() as open_sockets, socket.socket() as network:
        network.bind(("127.0.0.1", 0))
        network.listen(8 if accepts else 0)
        if not accepts:
            # Its backlog is full: the next connection waits.
            for _ in range(4):
                waiting = open_sockets.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(network.getsockname())
        address = "{}:{}".format(*network.getsockname())
        command = (*COMMAND, "aka", "mobile", "--sgsn", address, "--timeout", "600s")
        with running((*command, "--card", str(site / "card-0.json"))) as mobile:
            if accepts:
                network.settimeout(TIMEOUT_S)
                connection = open_sockets.enter_context(network.accept()[0])
                assert connection.recv(1) == b"\x01"
            else:
                wait_for_connecting(mobile.pid)
            mobile.send_signal(signal.SIGINT)
            told, complaints = mobile.communicate(timeout=TIMEOUT_S)
    assert (mobile.returncode, told) == (130, ""), complaints
    assert "Traceback" not in complaints


def wait_for_connecting(process: int) -> None:
    """Waits until a process has a TCP connection in the state SYN-SENT."""
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until:
        inodes = set()
        for path in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):
                inodes.update(re.findall(r"socket:\[(\d+)\]", str(path.readlink())))
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "02" and fields[9] in inodes:
                return
        time.sleep(0.05)
    raise AssertionError("no client connects")


def test_absent_sgsn_and_barred_mobile_are_reported_in_one_line(shakedown, site, hss, processes):
    refused = shakedown("aka", "mobile", "--sgsn", f"127.0.0.1:{free_port()}", "--card", site / "card-0.json")
    assert refused.returncode == 1
    assert "1 of 1 attaches failed; the first: 127.0.0.1" in refused.stderr
    register = site / "hss-20201.json"
    text = json.loads(register.read_text())
    text["barred"] = [IMSI]
    register.write_text(json.dumps(text))
    processes.append(Process("hss", "--listen", "127.0.0.1:0", "--register", str(register)))
    barring = processes[-1].addresses[0]
    processes.append(sgsn(site, barring, "sgsn-1"))
    barred = shakedown(
        *("aka", "mobile", "--sgsn", processes[-1].addresses[0], "--card", site / "card-0.json", "--json"),
    )
    assert barred.returncode == 1
    assert "the network rejected the attach: barred" in barred.stderr
    assert json.loads(barred.stdout)[0]["failed"] == {"barred": 1}
    taken = shakedown("aka", "hss", "--listen", barring, "--register", register)
    assert taken.returncode == 2
    assert "another program listens there" in taken.stderr
