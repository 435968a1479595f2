"""Sessions of `eap serve` in a file: they survive the server, and only their peers can resume them."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import shakedown as product
import supplied
from shakedown.errors import InputError, ShakedownError
from shakedown.live.eap_sessions import MAX_AGE_S, EapSessions

SECRET = "rehearsal"
SUITES = ("tls1.2/ecdhe_ecdsa/p256", "tls1.3/x25519/p256")


@contextlib.contextmanager
def serving(
    suite: str, *options: str, port: int = 0, how: int = signal.SIGTERM, tallies: list[str] | None = None
) -> Iterator[int]:
    """`eap serve`, ended by a signal; what it prints then goes to `tallies`."""
    command = [sys.executable, "-m", "shakedown", "eap", "serve", "--listen", f"127.0.0.1:{port}"]
    process = subprocess.Popen(
        [*command, "--secret", SECRET, "--suite", suite, *options], stdout=subprocess.PIPE, text=True
    )
    try:
        found = re.search(r":(\d+)\n", process.stdout.readline())
        assert found
        yield int(found[1])
        process.send_signal(how)
        process.wait(300)
        if tallies is not None:
            tallies.append(process.stdout.read())
    finally:
        process.kill()
        process.communicate()


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
@pytest.mark.parametrize("suite", SUITES)
def test_a_session_made_before_a_restart_is_resumed_after_it(tmp_path, suite, how):
    """One peer resumes its session throughout: none of its authentications is full."""
    state = tmp_path / "sessions.sqlite"
    port, count = free_port(), 150
    begun = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with serving(suite, "--state", str(state), port=port, how=how):
            running = pool.submit(
                product.authenticate,
                f"127.0.0.1:{port}",
                SECRET,
                suite,
                product.EapOptions(count=count, rate_per_s=30.0, resume=True, timeout_s=60.0),
                progress=lambda done: begun.set() if done >= count // 15 else None,
            )
            assert begun.wait(300)
        assert state.stat().st_mode & 0o777 == 0o600
        tallies: list[str] = []
        with serving(suite, "--state", str(state), port=port, tallies=tallies):
            run = running.result(300)
    # A killed server loses the authentications in progress.
    lost = sum(run.failed.values())
    assert run.completed + lost == count
    assert lost == 0 or how == signal.SIGKILL
    assert run.resumed == run.completed
    accepted, resumed = re.match(r"(\d+) accepted \((\d+) resumed\)", tallies[0]).groups()
    assert int(accepted) == int(resumed) > 0


@pytest.mark.parametrize("suite", SUITES)
def test_a_session_is_not_resumed_by_a_server_that_trusts_another_root(site, tmp_path, suite):
    """The state file survives a change of --ca; sessions of peers that are no longer accepted do not."""
    state = ("--state", str(tmp_path / "sessions.sqlite"))
    stranger = supplied.chain(tmp_path / "other", "p256", "client")
    port, count = free_port(), 100
    begun = threading.Event()
    own = {
        "chain": site.client / "chain.pem", "key": site.client / "key.pem", "ca": site.server / "ca.pem"
    }  # fmt: skip
    with ThreadPoolExecutor(1) as pool:
        with serving(suite, *site.authenticator(), *state, port=port):
            running = pool.submit(
                product.authenticate, f"127.0.0.1:{port}", SECRET, suite,
                product.EapOptions(count=count, rate_per_s=20.0, resume=True, timeout_s=60.0, **own),
                progress=lambda over: begun.set() if over >= count // 10 else None,
            )  # fmt: skip
            assert begun.wait(300)
        options = (*site.authenticator()[:4], "--ca", str(stranger / "ca.pem"))
        tallies: list[str] = []
        with serving(suite, *options, *state, port=port, tallies=tallies):
            run = running.result(300)
    assert run.resumed == run.completed > 0
    assert tallies[0].startswith("0 accepted (0 resumed), ")
    assert run.failed == {"tls_unknown_ca": count - run.completed}


def test_ticket_is_a_session_name_with_state_and_a_session_without(shakedown, tmp_path):
    suite = "tls1.3/x25519/p256/mutual"
    sizes = {}
    for options in ((), ("--state", str(tmp_path / "sessions.sqlite"))):
        with serving(suite, *options) as port:
            done = shakedown(
                *("eap", "peer", "--server", f"127.0.0.1:{port}", "--secret", SECRET, "--suite", suite),
                *("--resume", "--count", "3", "--json"),
            )
        (found,) = json.loads(done.stdout)
        assert (found["completed"], found["resumed"]) == (3, 3), done.stderr
        sizes[options] = found["eap_bytes"]
    small, large = sorted(sizes.values())
    assert sizes[()] == large
    assert large - small > 500


@pytest.mark.parametrize("how", ["offered", "opened"])
def test_session_from_the_future_is_deleted(tmp_path, how):
    """Otherwise the session would seem young once the clock has caught up, whatever its age."""
    now = [2_000_000]
    path = tmp_path / "sessions.sqlite"
    kept = EapSessions(path, clock=lambda: now[0])
    kept.put(b"ahead", b"b", b"s", now[0])
    now[0] = 1_000_000
    kept.put(b"now", b"b", b"t", now[0])
    if how == "offered":
        assert kept.get(b"ahead", b"b") is None
    else:
        kept.close()
        kept = EapSessions(path, clock=lambda: now[0])
    assert kept.get(b"now", b"b") == b"t"
    now[0] = 2_000_001
    assert kept.get(b"ahead", b"b") is None
    kept.close()


def test_stored_sessions_are_limited_by_number_and_age(tmp_path):
    times = itertools.count(1_000_000)
    now = [next(times)]
    path = tmp_path / "sessions.sqlite"
    kept = EapSessions(path, max_sessions=10, clock=lambda: now[0])
    for number in range(95):
        kept.put(number.to_bytes(4, "big"), b"b", b"s%d" % number, now[0])
    assert kept.get((94).to_bytes(4, "big"), b"b") == b"s94"
    assert kept.get((0).to_bytes(4, "big"), b"b") is None
    assert kept._database.execute("SELECT count(*) FROM session").fetchone()[0] < 20
    now[0] += MAX_AGE_S
    assert kept.get((94).to_bytes(4, "big"), b"b") is None
    kept.close()
    again = EapSessions(path, max_sessions=10, clock=lambda: now[0])
    assert again._database.execute("SELECT count(*) FROM session").fetchone()[0] == 0
    again.close()


def test_a_file_of_another_program_is_refused_and_left_as_it_is(tmp_path):
    import sqlite3

    from shakedown.live.sgsn_state import SgsnState

    path = tmp_path / "sgsn.sqlite"
    SgsnState(path).close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="another program's database"):
        EapSessions(path)
    assert path.read_bytes() == before
    first = EapSessions(tmp_path / "own.sqlite")
    with pytest.raises(InputError, match="locked"):
        EapSessions(tmp_path / "own.sqlite")
    first.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "own.sqlite")) as database:
        database.execute("PRAGMA user_version = 9")
    with pytest.raises(
        InputError, match="has layout 9, another version's; accepted: layout 1, or a new file"
    ):
        EapSessions(tmp_path / "own.sqlite")
    assert (tmp_path / "own.sqlite").stat().st_mode & 0o777 == 0o600


def test_resumed_session_keeps_the_age_of_its_full_authentication(tmp_path):
    """A peer that resumes every hour presents its certificate again after a day."""
    now = [1_000_000.0]
    with contextlib.closing(EapSessions(tmp_path / "s.sqlite", clock=lambda: now[0])) as sessions:
        sessions.put(b"0", b"bound", b"secret", 1_000_000)
        for hour in range(1, 24):
            now[0] += 3600.0
            assert sessions.get(b"%d" % (hour - 1), b"bound") == b"secret"
            sessions.put(b"%d" % hour, b"bound", b"secret", 1_000_000)
        now[0] += 3600.0
        assert sessions.get(b"23", b"bound") is None


def test_session_from_the_future_is_not_resumed(tmp_path):
    """After a clock is set back, a session's age is unknown."""
    now = [1_000_000.0]
    with contextlib.closing(EapSessions(tmp_path / "s.sqlite", clock=lambda: now[0])) as sessions:
        sessions.put(b"id", b"bound", b"secret", 1_000_000)
        assert sessions.get(b"id", b"bound") == b"secret"
        now[0] -= 10.0
        assert sessions.get(b"id", b"bound") is None
        now[0] += 20.0
        assert sessions.get(b"id", b"bound") is None, "forgotten: it may be of any age by now"


def test_readable_file_becomes_private_to_its_owner(tmp_path):
    path = tmp_path / "s.sqlite"
    path.touch(0o644)
    path.chmod(0o644)
    EapSessions(path).close()
    assert path.stat().st_mode & 0o777 == 0o600
    foreign = tmp_path / "foreign.sqlite"
    foreign.write_text("somebody's notes")
    foreign.chmod(0o644)
    with pytest.raises(InputError):
        EapSessions(foreign)
    assert foreign.stat().st_mode & 0o777 == 0o644


def test_full_disk_is_not_reported_as_wrong_input(tmp_path):
    class Small(EapSessions):
        def _make_tables(self, database):
            database.execute("PRAGMA max_page_count = 1")
            super()._make_tables(database)

    with pytest.raises(ShakedownError, match=r"s\.db: database or disk is full$") as found:
        Small(tmp_path / "s.db")
    assert found.type is ShakedownError
