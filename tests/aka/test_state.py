"""State files of servers that are damaged, in use, or belong to other programs or roots."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from aka.nodes import TIMEOUT_S, Access, sgsn
from shakedown.errors import InputError
from shakedown.files.write import SPECIAL
from shakedown.live.eap_sessions import EapSessions
from shakedown.live.sgsn_state import SgsnState
from shakedown.live.state_file import StateFile


def filled(kind: type[StateFile], path: Path) -> bytes:
    """Writes two hundred sessions to a file, closes it and returns its bytes."""
    state = kind(path)
    now_s = int(time.time())
    for number in range(200):
        session = number.to_bytes(32, "big")
        if isinstance(state, SgsnState):
            state.keep_session(session, bytes(48), f"imsi{number}", "20201", 0, 0, bytes(32))
        elif isinstance(state, EapSessions):
            state.put(session, bytes(32), bytes(48), now_s)
    state.close()
    kind(path).close()
    return path.read_bytes()


@pytest.mark.parametrize("kind", [SgsnState, EapSessions])
@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[:4096] + random.Random(1).randbytes(3000) + whole[7096:],
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:5000],
        lambda whole: whole[:50],
        lambda whole: random.Random(2).randbytes(100) + whole[100:],
    ],
    ids=["middle", "half", "little more than a page", "half a header", "no header"],
)
def test_a_damaged_file_is_refused_and_left_as_it_is(tmp_path, kind, damage):
    path = tmp_path / "state.sqlite"
    damaged = damage(filled(kind, path))
    path.write_bytes(damaged)
    with pytest.raises(InputError, match=r"state\.sqlite: .*; accepted: ") as said:
        kind(path)
    assert len(str(said.value).splitlines()) == 1
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("kind", [SgsnState, EapSessions])
def test_file_with_the_name_of_a_database_in_memory_is_a_file(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    assert filled(kind, Path(":memory:")).startswith(b"SQLite format 3")


@pytest.mark.parametrize("kind", [SgsnState, EapSessions])
@pytest.mark.parametrize("what", ["pipe", "device"])
def test_special_file_is_refused_and_left_as_it_is(tmp_path, kind, what):
    """Otherwise SQLite leaves a journal beside a device, and root could change the device's mode."""
    path = tmp_path / "special"
    if what == "pipe":
        os.mkfifo(path)
    else:
        try:
            os.mknod(path, stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root can make a device")
    path.chmod(0o666)
    with pytest.raises(InputError, match=f"special: {SPECIAL}; accepted: .* or a new file"):
        kind(path)
    assert path.stat().st_mode & 0o777 == 0o666
    assert [one.name for one in tmp_path.iterdir()] == ["special"]


@pytest.mark.parametrize("kind", [SgsnState, EapSessions])
def test_a_file_of_another_program_or_layout_is_refused_and_left_as_it_is(tmp_path, kind):
    path = tmp_path / "notes.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE note (text TEXT)")
    other = EapSessions if kind is SgsnState else SgsnState
    filled(other, tmp_path / "other.sqlite")
    for foreign in (path, tmp_path / "other.sqlite"):
        before = foreign.read_bytes()
        with pytest.raises(InputError, match="is another program's database; accepted: "):
            kind(foreign)
        assert foreign.read_bytes() == before


@pytest.mark.parametrize(
    "command",
    [
        ("aka", "sgsn", "--node", "{site}/sgsn-1.json"),
        ("eap", "serve", "--secret", "s", "--suite", "tls1.3/x25519/p256"),
    ],
    ids=["sgsn", "eap"],
)
def test_server_reports_a_damaged_or_locked_file_in_one_line(shakedown, site, tmp_path, command):
    kind = SgsnState if command[0] == "aka" else EapSessions
    path = tmp_path / "state.sqlite"
    whole = filled(kind, path)
    arguments = [part.format(site=site) for part in command]
    serve = (*arguments, "--listen", "127.0.0.1:0", "--state", str(path))
    holder = kind(path)
    locked = shakedown(*serve)
    holder.close()
    path.write_bytes(whole[: len(whole) // 2])
    damaged = shakedown(*serve)
    for done, says in ((locked, "locked"), (damaged, "state.sqlite: ")):
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        (line,) = done.stderr.splitlines()
        assert says in line
        assert "accepted: " in line


def test_sessions_of_other_roots_are_not_resumed(site, hss, processes, tmp_path):
    """The state file survives a change of trusted roots; earlier sessions are not resumed."""

    def a_partner_more(_: Path) -> None:
        node = site / "sgsn-1.json"
        text = json.loads(node.read_text())
        text["partners"]["31099"] = text["root"]
        node.write_text(json.dumps(text))

    assert not_resumed(site, hss, processes, tmp_path, a_partner_more) == {"other_basis": 1}


@pytest.mark.parametrize("kind", [SgsnState, EapSessions])
@pytest.mark.parametrize("before", [None, b"", "ours"], ids=["no file", "an empty one", "ours"])
def test_journal_files_are_never_readable_by_other_users(tmp_path, monkeypatch, kind, before):
    """Checks modes after each statement: SQLite gives a journal the file's mode at its first write."""
    path = tmp_path / "state.sqlite"
    if before == "ours":
        filled(kind, path)
    elif before is not None:
        path.write_bytes(before)
    if before is not None:
        path.chmod(0o644)
    modes: dict[str, set[int]] = {}
    connect = sqlite3.connect

    class Watched(sqlite3.Connection):
        def execute(self, *arguments):
            result = super().execute(*arguments)
            for one in tmp_path.iterdir():
                modes.setdefault(one.name, set()).add(one.stat().st_mode & 0o777)
            return result

    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Watched))
    umask = os.umask(0)
    try:
        filled(kind, path)
    finally:
        os.umask(umask)
    beside = "state.sqlite-journal" if kind is SgsnState else "state.sqlite-wal"
    assert modes.keys() >= {"state.sqlite", beside}
    assert set().union(*modes.values()) == {0o600}


@pytest.mark.parametrize("kind", [SgsnState, EapSessions])
def test_error_for_other_tables_or_layout_names_a_remedy(tmp_path, kind):
    path = tmp_path / "state.sqlite"
    kind(path).close()
    with closing(sqlite3.connect(path)) as database:
        database.execute("DROP TABLE session")
    with pytest.raises(InputError, match=r"has unexpected tables; accepted: .*, or a new file$"):
        kind(path)
    path.unlink()
    kind(path).close()
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {kind.LAYOUT - 1}")
    with pytest.raises(InputError, match=rf"has layout .* \(delete this one: {kind.WITHOUT_IT}\)$"):
        kind(path)


@pytest.mark.parametrize("column", ["imsi = 'x'", "basis = X'00'", "resumptions = -1", "secret = 'text'"])
def test_unreadable_session_counts_as_unknown(shakedown, site, hss, processes, tmp_path, column):
    def spoil(state: Path) -> None:
        with closing(sqlite3.connect(state)) as database:
            assert database.execute(f"UPDATE session SET {column}").rowcount == 1
            database.commit()

    assert not_resumed(site, hss, processes, tmp_path, spoil) == {"unknown": 1}


def not_resumed(site, hss, processes, tmp_path, change: Callable[[Path], None]) -> dict[str, int]:
    """The reasons why an SGSN restarted after a change resumes no session; both attaches are full."""
    state = tmp_path / "state.sqlite"
    processes.append(sgsn(site, hss, "sgsn-1", "--state", str(state)))
    address = processes[-1].addresses[0]
    with Access(address) as access:
        command = (sys.executable, "-m", "shakedown", "aka", "mobile", "--sgsn", access.address, "--json")
        options = ("--card", str(site / "card-0.json"), "--attaches", "2", "--timeout", "600s")
        mobile = subprocess.Popen((*command, *options), stdout=subprocess.PIPE, text=True)
        try:
            access.attach_ended()
            processes[-1].stop()
            change(state)
            processes.append(sgsn(site, hss, "sgsn-1", "--state", str(state), listen=address))
            access.go_on()
            access.attach_ended()
            printed, _ = mobile.communicate(timeout=TIMEOUT_S)
        finally:
            mobile.kill()
            mobile.communicate()
    (found,) = json.loads(printed)
    assert (found["full"]["attaches"], found["resumed"], found["failed"]) == (2, None, {})
    (did,) = json.loads(processes[-1].stop())
    return dict(did["not_resumed"])
