"""`aka provision`: writes all files of a site or none; sites of unusual shapes."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import pytest

from aka.nodes import Process, sgsn


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--sgsn", "a", "--sgsn", "a"), "SGSN: a, twice; accepted: a name that no other node or card has"),
        (("--sgsn", "good", "--sgsn", "../../x"), "accepted: 1 to 32 of a-z, 0-9, '-'"),
        (("--sgsn", "hss-20201"), "SGSN: hss-20201, the name of another file of the site"),
        (("--sgsn", "card-3"), "SGSN: card-3, the name of another file of the site"),
        (("--home", "20201", "--serving", "202015"), "20201 and 202015, whose IMSIs could be of either"),
        (("--serving", "1"), "accepted: 5 or 6 digits"),
        (("--suite", "tls1.3/x25519/p256/mutual"), "accepted: tls1.0, tls1.1, tls1.2"),
        (("--suite", "nonsense"), "nonsense"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_input_leaves_no_files(shakedown, tmp_path, options, says):
    done = shakedown("aka", "provision", "deep/site", *options, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert says in line
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_files_is_refused_and_stays_as_it_was(shakedown, tmp_path):
    first = shakedown("aka", "provision", "site", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert first.stdout.split() == [
        "site/card-0.json", "site/hss-20201.json", "site/sgsn-1.json", "site/sgsn-2.json"
    ]  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "site").iterdir()}
    assert ((tmp_path / "site").stat().st_mode & 0o777, modes) == (0o700, {0o600})
    before = {path.name: path.read_bytes() for path in (tmp_path / "site").iterdir()}
    again = shakedown("aka", "provision", "site", "--sgsn", "sgsn-9", cwd=tmp_path)
    assert again.returncode == 2
    assert again.stderr == "error: site: has files in it; accepted: a new folder, or an empty one\n"
    assert {path.name: path.read_bytes() for path in (tmp_path / "site").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_killed_provisioning_leaves_no_temporary_folder(tmp_path):
    """The command is killed as soon as its folder exists."""
    site = tmp_path / "site"
    command = [sys.executable, "-m", "shakedown", "aka", "provision", "site", "--subscribers", "50"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 300
        while not site.is_dir() and process.poll() is None:
            assert [path.name for path in tmp_path.iterdir()] in ([], ["site"])
            assert time.monotonic() < deadline
        process.kill()
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
    assert site.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in site.iterdir()} <= {0o600}


@pytest.mark.parametrize("site", ["deep/er/site", "there/site", "there"])
def test_full_disk_leaves_no_files(tmp_path, site):
    (tmp_path / "there").mkdir()
    command = [sys.executable, "-B", "-m", "shakedown", "aka", "provision", site]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700)),
    )
    assert done.returncode == 1
    assert done.stderr == f"error: {site}/card-0.json: File too large\n"
    assert list(tmp_path.rglob("*")) == [tmp_path / "there"]


def test_empty_folder_is_filled_and_keeps_its_mode(shakedown, tmp_path):
    (tmp_path / "empty").mkdir(mode=0o750)
    done = shakedown("aka", "provision", ".", cwd=tmp_path / "empty")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "empty").iterdir())) == 4
    assert (tmp_path / "empty").stat().st_mode & 0o777 == 0o750


def test_a_network_may_serve_its_own_subscribers(shakedown, tmp_path, processes):
    """Home and serving network are one: there is no roaming, and no cross-certificate is requested."""
    site = tmp_path / "home"
    made = shakedown("aka", "provision", site, "--serving", "20201")
    assert made.returncode == 0, made.stderr
    processes.append(Process("hss", "--listen", "127.0.0.1:0", "--register", str(site / "hss-20201.json")))
    processes.append(sgsn(site, processes[0].addresses[0], "sgsn-1"))
    mobile = ("aka", "mobile", "--sgsn", processes[-1].addresses[0], "--card", site / "card-0.json", "--json")
    done = shakedown(*mobile, "--serving", "20201", "--attaches", "3")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert (found["full"]["attaches"], found["resumed"]["attaches"]) == (1, 2)
    # One query, from the full handshake: may the subscriber attach?
    assert processes[0].stop() == "1 queries granted, 0 refused\n"
    elsewhere = shakedown(*mobile)
    assert elsewhere.returncode == 2
    assert "serving network: 20801" in elsewhere.stderr
    assert "a roaming agreement: 20201" in elsewhere.stderr
