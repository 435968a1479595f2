"""kill -9 at any time in `run`, `report`, `inspect --traces-out` and `devices import`: complete files are
kept, other files are not changed, and the next command reports the state.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runs import written
from shakedown.cli import exit_status
from shakedown.errors import InputError
from shakedown.files.write import DRAFT, digest_of
from shakedown.results.folder import load_results
from shakedown.results.reader import load_manifest

KILLS = int(os.environ.get("SHAKEDOWN_KILLS", "6"))
SUITES = ["tls1.2/psk", "tls1.3/x25519/p256/server", "tls1.2/psk/aes256-gcm", "tls1.3/psk", "tls1.1/psk"]


def killed_after(arguments: list[str], delay_s: float, watched: Path | None = None) -> None:
    """Runs a command and kills it `delay_s` after its start or after the watched file appears."""
    process = subprocess.Popen(
        [sys.executable, "-m", "shakedown", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 300
    while watched and not watched.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(delay_s)
    process.kill()
    process.wait(timeout=300)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(KILLS))
def test_killed_run_leaves_readable_or_replaceable_results(tmp_path, capsys, seed):
    chance = random.Random(seed)
    folder = tmp_path / "r"
    experiment = written(tmp_path, f"suites = {SUITES}\nrepeat = 20\ndevices = ['phone']\n".replace("'", '"'))
    killed_after(["run", str(experiment), "--out", str(folder)], chance.uniform(0, 1.2), folder)
    foreign = folder / "notes.txt"
    there = {path.name: digest_of(path) for path in folder.iterdir()} if folder.exists() else {}
    if "manifest.json" in there:
        manifest, _ = load_manifest(folder)
        loaded = load_results(folder)
        # Every part with its final name is complete, listed and loaded.
        parts = {name for name in there if name.startswith("part-")}
        assert parts <= {part.file for part in manifest.parts}
        assert loaded.table["scenario"].n_unique() == len(parts)
        if manifest.ended is None:
            assert not loaded.is_whole
            if loaded.table.height:
                assert exit_status(["report", str(folder)]) == 0
                assert "This run has not ended" in capsys.readouterr().err
                assert "This run has not ended" in (folder / "report.html").read_text()
        foreign.write_text("mine")
        with pytest.raises(InputError, match="already contains results"):
            run_again(experiment, folder, force=False)
    run_again(experiment, folder, force=True)
    again = load_results(folder)
    assert again.is_whole
    assert again.handshakes.height == len(SUITES)
    assert not [name for name in os.listdir(folder) if name.endswith(DRAFT)]  # noqa: PTH208 - names alone
    if "manifest.json" in there:
        assert foreign.read_text() == "mine"


def run_again(experiment: Path, folder: Path, *, force: bool) -> None:
    from shakedown.experiments.figure_kinds import load_experiment
    from shakedown.experiments.runner import run_experiment

    run_experiment(load_experiment(experiment), folder, replace=force)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    experiment = written(folder, f"suites = {SUITES}\nrepeat = 2\n".replace("'", '"'))
    run_again(experiment, folder / "r", force=False)
    return folder / "r"


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(KILLS))
def test_killed_report_leaves_old_or_new_files(whole, tmp_path, capsys, seed):
    import shutil

    chance = random.Random(1000 + seed)
    folder = tmp_path / "r"
    shutil.copytree(whole, folder)
    (folder / "figures").mkdir()
    (folder / "figures" / "mine.svg").write_text("mine")
    before = {path.name: digest_of(path) for path in folder.glob("*.*")}
    first = folder / ".report.html.files.json"
    killed_after(["report", str(folder)], chance.uniform(0, 0.15), first)
    assert {name: digest_of(folder / name) for name in before} == before
    page = folder / "report.html"
    if page.exists():
        assert page.read_text().endswith("</html>")
    # The next report knows what the killed one wrote, and only that.
    assert exit_status(["report", str(folder)]) == 0
    assert not list(folder.rglob(f"*{DRAFT}"))
    assert f"report:  {page}" in capsys.readouterr().err
    assert page.read_text().endswith("</html>")
    assert (folder / "figures" / "mine.svg").read_text() == "mine"
    page.write_text("changed by hand")
    assert exit_status(["report", str(folder)]) == 2
    assert "report.html: exists already; accepted: another --out, or --force" in capsys.readouterr().err
    assert page.read_text() == "changed by hand"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    """A capture with its keys, and benchmark output."""
    from shakedown.api import in_memory

    folder = tmp_path_factory.mktemp("inputs")
    in_memory.capture(SUITES, folder / "some.pcap", keylog=folder / "some.keys")
    rsa = [
        f"+F2:{index}:{bits}:0.000{index + 1}:0.00002" for index, bits in enumerate((1024, 2048, 3072, 4096))
    ]
    (folder / "speed.txt").write_text("OpenSSL 3.0.2 15 Mar 2022\n" + "\n".join(rsa) + "\n")
    return folder


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("what", ["traces", "profile"])
@pytest.mark.parametrize("seed", range(KILLS))
def test_killed_writer_leaves_the_old_or_the_new_file(inputs, tmp_path, capsys, seed, what):
    """One file of traces, or one profile, new or replacing another: it is the old or the new one."""
    chance = random.Random(f"{what} {seed}")
    target, foreign = tmp_path / "target", tmp_path / "notes.txt"
    foreign.write_text("mine")
    if what == "traces":
        capture, keys = str(inputs / "some.pcap"), str(inputs / "some.keys")
        command = ["inspect", capture, "--keylog", keys, "--summary", "--traces-out", str(target)]
    else:
        command = ["devices", "import", str(inputs / "speed.txt"), "--name", "board", "--chip", "Chip"]
        command += ["--clock", "100", "--date", "2026-01-01", "--out", str(target)]
    assert exit_status([*command]) == 0
    new = target.read_bytes()
    old = b"old" if seed % 2 else None
    target.write_bytes(old) if old else target.unlink()
    killed_after([*command, "--force"] if old else command, chance.uniform(0, 1.5))
    assert (target.read_bytes() if target.exists() else None) in (old, new)
    assert foreign.read_text() == "mine"
    drafts = {path.name for path in tmp_path.iterdir()} - {target.name, foreign.name}
    assert all(name.endswith(DRAFT) for name in drafts), drafts
    capsys.readouterr()
    # Without --force, the next command refuses to replace the file; with it, the command succeeds.
    if target.exists():
        assert exit_status(command) == 2
        assert "already; accepted: another name" in capsys.readouterr().err
    assert exit_status([*command, "--force"] if target.exists() else command) == 0
    assert target.read_bytes() == new
    assert {path.name for path in tmp_path.iterdir()} == {target.name, foreign.name}
