"""Messages of `measure` about missing profiles and damaged stored keys."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("more", [(), ("--transfer", "1"), ("--pcap", "x.pcap")], ids=str)
@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "own.toml: reading failed: No such file"), ("x = 3", "own.toml line 1: unknown field `x`")],
)
def test_wrong_profile_is_reported_in_one_line_with_status_2(shakedown, tmp_path, content, said, more):
    if content is not None:
        (tmp_path / "own.toml").write_text(content)
    done = shakedown("measure", "tls1.2/rsa", "--repeat", "1", "--profile", "own.toml", *more, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("suite", ["tls1.2/rsa", "wtls/rsa", "wtls/rsa_anon"])
def test_damaged_cached_keys_are_regenerated_and_reported(shakedown, tmp_path, suite):
    environment = {"SHAKEDOWN_CACHE": str(tmp_path / "cache")}

    def said() -> list[str]:
        done = shakedown("measure", suite, "--repeat", "1", env=environment)
        assert done.returncode == 0, done.stderr
        return done.stderr.splitlines()

    assert said() == []
    [key] = (tmp_path / "cache").glob("keys-*/*0-rsa*.pem")
    key.write_text(key.read_text() + "x")
    lines = said()
    assert lines[0] == f"{key}: the content does not match its digest; regenerated"
    assert said() == []


def test_run_reports_regenerated_keys(shakedown, tmp_path):
    environment = {"SHAKEDOWN_CACHE": str(tmp_path / "cache")}
    (tmp_path / "e.toml").write_text('suites = ["tls1.2/rsa"]\nrepeat = 1\n')
    run = ("run", "e.toml", "--out", "r", "--force", "--no-report")
    assert shakedown(*run, env=environment, cwd=tmp_path).stderr == "results: r\n"
    [key] = (tmp_path / "cache").glob("keys-*/*0-rsa*.pem")
    key.write_text("")
    done = shakedown(*run, env=environment, cwd=tmp_path)
    assert "regenerated" in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("question", [("predict",), ("capacity", "--within", "2s")])
def test_recording_a_trace_reports_regenerated_keys(shakedown, tmp_path, question):
    environment = {"SHAKEDOWN_CACHE": str(tmp_path / "cache"), "XDG_DATA_HOME": str(tmp_path / "data")}
    done = shakedown("measure", "tls1.2/rsa", "--repeat", "1", env=environment)
    assert done.returncode == 0, done.stderr
    [key] = (tmp_path / "cache").glob("keys-*/*0-rsa*.pem")
    key.write_text("")
    psk = shakedown("measure", "tls1.2/psk", "--repeat", "1", "--json").stdout
    (tmp_path / "other.json").write_text(psk)
    asked = (question[0], "tls1.2/rsa", *question[1:], "--traces", tmp_path / "other.json")
    done = shakedown(*asked, env=environment)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert lines[0].startswith(f"{tmp_path / 'other.json'}: no trace of tls1.2/rsa/")
    assert lines[1].startswith(f"{key}: ")
    assert lines[1].endswith("regenerated")
