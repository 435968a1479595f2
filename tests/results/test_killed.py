"""kill -9 at any time in `run` and `report`: what was complete is there, nothing foreign is touched, and the
next command says what it found.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shakedown.cli import exit_status
from shakedown.errors import InputError
from shakedown.files.write import digest_of
from shakedown.results.folder import load_results
from shakedown.results.reader import load_manifest

KILLS = int(os.environ.get("SHAKEDOWN_KILLS", "6"))
SUITES = ["tls1.2/psk", "tls1.3/x25519/p256/server", "tls1.2/psk/aes256-gcm", "tls1.3/psk", "tls1.1/psk"]


def killed_after(arguments: list[str], delay_s: float, watched: Path) -> None:
    """Runs a command and kills it so long after its first file is there, or lets it end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "shakedown", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while not watched.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(delay_s)
    process.kill()
    process.wait(timeout=60)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(KILLS))
def test_a_run(tmp_path, capsys, seed):
    chance = random.Random(seed)
    experiment, folder = tmp_path / "e.toml", tmp_path / "r"
    experiment.write_text(f"suites = {SUITES}\nrepeat = 20\ndevices = ['phone']\n".replace("'", '"'))
    killed_after(["run", str(experiment), "--out", str(folder)], chance.uniform(0, 1.2), folder)
    foreign = folder / "notes.txt"
    there = {path.name: digest_of(path) for path in folder.iterdir()} if folder.exists() else {}
    if "manifest.json" in there:
        manifest, _ = load_manifest(folder)
        loaded = load_results(folder)
        # Every part that has its name is whole, known, and read.
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
        with pytest.raises(InputError, match="holds results already"):
            run_again(experiment, folder, force=False)
    run_again(experiment, folder, force=True)
    again = load_results(folder)
    assert again.is_whole
    assert again.handshakes.height == len(SUITES)
    leftovers = {name for name in os.listdir(folder) if name.endswith(".draft")}  # noqa: PTH208 - names alone
    assert leftovers <= set(there), "nobody knows whose others' drafts are"
    if "manifest.json" in there:
        assert foreign.read_text() == "mine"


def run_again(experiment: Path, folder: Path, *, force: bool) -> None:
    from shakedown.experiment import load_experiment
    from shakedown.runner import run_experiment

    run_experiment(load_experiment(experiment), folder, replace=force)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    experiment = folder / "e.toml"
    experiment.write_text(f"suites = {SUITES}\nrepeat = 2\n".replace("'", '"'))
    run_again(experiment, folder / "r", force=False)
    return folder / "r"


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(KILLS))
def test_a_report(whole, tmp_path, capsys, seed):
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
    assert f"report:  {page}" in capsys.readouterr().err
    assert page.read_text().endswith("</html>")
    assert (folder / "figures" / "mine.svg").read_text() == "mine"
    page.write_text("changed by hand")
    assert exit_status(["report", str(folder)]) == 2
    assert "report.html: exists already; accepted: another --out, or --force" in capsys.readouterr().err
    assert page.read_text() == "changed by hand"
