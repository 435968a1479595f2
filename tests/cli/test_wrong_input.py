"""Wrong input ends in one clear line and exit status 2: never in a traceback, never with data on stdout."""

from __future__ import annotations

import os

import pytest

from runs import written
from shakedown.cli import exit_status

GOOD = 'suites = ["tls1.2/psk"]\n'


def complain(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 2) -> str:
    """Runs the command and returns its one line of complaint."""
    assert exit_status([str(argument) for argument in arguments]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err[len("error: ") : -1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["certs", "make", "p256", "--out", ""],
        ["certs", "issue", "root", "p256", "--out", ""],
        ["reproduce", "tls-psk", "--no-measure", "--out", ""],
        ["run", "e.toml", "--out", ""],
        ["validate", "e.toml", "--live", "--out", ""],
        ["aka", "provision", ""],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_empty_name_of_a_folder_is_refused_and_not_the_current_folder(
    arguments, tmp_path, monkeypatch, capsys
):
    written(tmp_path, GOOD)
    monkeypatch.chdir(tmp_path)
    assert '"" names no folder; accepted: a path, as "." for the current folder' in complain(
        capsys, *arguments
    )
    assert [path.name for path in tmp_path.iterdir()] == ["e.toml"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["simulate", "tls1.2/psk", "--rate", "9/s"], ["did you mean --arrivals poisson:300/s?"]),
        (["mesure"], ['unknown command "mesure"', 'did you mean "measure"']),
        (["frobnicate"], ['unknown command "frobnicate"', "accepted: doctor, suites, stacks"]),
        (["measure"], ["missing argument", "SUITE"]),
        (["measure", "tls1.2/psk", "--repaet", "3"], ["--repaet", "--repeat"]),
        (["measure", "tls1.2/psk", "--repeat", "0"], ['"0" is out of range; accepted: 1 to 1,000,000']),
        (["measure", "tls1.2/psk", "--repeat", "many"], ['"many" is not a whole number; accepted: 1 to']),
        (["report", "."], ["holds no manifest.json", 'accepted: a folder that "run" wrote']),
        (
            ["predict", "tls1.2/psk", "--columns", "reddy"],
            ['unknown column "reddy"; did you mean "ready"? --csv prints all columns'],
        ),
        (
            ["predict", "tls1.2/psk", "--device", "palm-vii", "--device", "cortex-m4"],
            ["--device is given 2 times; accepted: once, or a pattern", "--device '{A,B}'"],
        ),
        (["predict", "tls1.2/psk", "--columns", " ,,"], ["--columns names no column"]),
        (["predict", "tls1.2/psk", "--sort", "qqqq"], ['unknown column "qqqq"; accepted: suite, device,']),
        (["measure", "tls1.2/psk", "--now", "99999999999999999999"], ["--now", "is not a time"]),
        (["measure", "tls1.2/psk", "--now", "9" * 5000], ["--now", "is not a time"]),
        (["measure", "tls1.2/psk", "--now", "tomorrow"], ["--now", "tomorrow", "ISO date"]),
        (["measure", "tls1.2/psk", "--keylog", "k"], ["--keylog", "--pcap"]),
        (["measure", "tls9/psk"], ['unknown protocol "tls9"', "accepted"]),
        (["suites", "foo"], ['no suite matches "foo"', 'as in "suites tls1.3 mutual"']),
        (["suites", "x25591", "--json"], ['no suite matches "x25591"; did you mean "x25519"']),
        (["inspect", "/dev/null"], ["/dev/null: not a capture"]),
        (["run", "/nowhere/x.toml"], ["/nowhere/x.toml", "no such file"]),
        (["validate", "/"], ["/: cannot be read", "directory"]),
        (["report", "/nowhere"], ["/nowhere", "no such folder"]),
        (["--frob"], ["--frob"]),
    ],
)
def test_usage_errors_are_reported_in_one_line(arguments, words, fake, capsys):
    line = complain(capsys, *arguments)
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('suites = ["tls1.2/psk"\nrepeat = 3\n', ["line 2", "not valid TOML"]),
        ("suites = [\n", ["line 1", "not valid TOML"]),
        ("repeat 3\n", ["line 1", "not valid TOML"]),
        ("", ["suites is missing", "accepted"]),
        ("suites = []\n", ["line 1", "key suites", "empty"]),
        ("\nsuites = 3\n", ["line 2", "key suites", "found 3", "array of strings"]),
        (GOOD + "repaet = 3\n", ["line 2", "key repaet", 'did you mean "repeat"']),
        (GOOD + "zzz = 3\n", ["line 2", "key zzz", "accepted: battery, bearers, captures"]),
        (GOOD + "repeat = 0\n", ["line 2", "key repeat", "found 0", "from 1 to"]),
        (GOOD + "repeat = true\n", ["key repeat", "found true; accepted"]),
        (GOOD + 'repeat = "30"\n', ["key repeat", 'found "30"']),
        (GOOD + "seed = -1\n", ["key seed", "found -1"]),
        (GOOD + 'now = "yesterday"\n', ["key now", '"yesterday"', "Unix seconds"]),
        (GOOD + 'rates = ["fast"]\n', ["line 2", "key rates", '"fast"', "300/s"]),
        (GOOD + "workers = 0\n", ["line 2", "key workers", "a whole number from 1 to 100,000"]),
        (GOOD + "within = true\n", ["key within", "found true", 'a time such as "10s"']),
        (GOOD + "within = 0\n", ["key within", "found 0", "a time above 0"]),
        (GOOD + 'within = "1e8s"\n', ["line 2", "key within", 'found "1e8s"', "10,000,000 s at most"]),
        (GOOD + 'within = "1s"\npercentile = 100\n', ["key percentile", "above 0 and below 100"]),
        (GOOD + "percentile = 95\n", ["key percentile", 'with "within"']),
        (GOOD + "battery = 9000\n", ["key battery", 'a charge such as "2.5Wh"']),
        (GOOD + 'battery = "5mAh"\n', ["key battery", '"5mAh" is not a charge', "230mAh@3V"]),
        (GOOD + 'devices = ["nrf52840:x"]\n', ["key devices", "no variant 'x'", "nrf52840:cc310"]),
        (GOOD + "bearers = [1]\n", ["key bearers", "array of strings"]),
        (GOOD + 'name = "a/b"\n', ["key name", '"a/b"']),
        (
            'suites = [\n  "tls1.2/psk",\n  "tls9/psk",\n]\n',
            ["line 3", "key suites", 'unknown protocol "tls9"'],
        ),
        ('suites = [\n  "tls1.2/psk",\n  "TLS1.2/psk",\n]\n', ["line 3", "same suite"]),
        ('suites = ["ssl3/rsa"]\n', ["line 1", "no SSL 3.0"]),
        (GOOD + 'profile = "names.toml"\n', ["line 2", "key profile", 'no file "names.toml"']),
        (
            GOOD + 'bearers = ["gprz"]\n',
            ["line 2", "key bearers", 'no profile "gprz"', 'did you mean "gprs"'],
        ),
        (
            GOOD + 'server_device = "abacus"\n',
            ["key server_device", 'no profile "abacus"', "accepted", "phone"],
        ),
        (
            GOOD + 'devices = ["phone", "boards/other.toml"]\n',
            ["line 2", '"boards/other.toml" is a path', "the name of a profile", "/shakedown/devices"],
        ),
        (GOOD + 'bearers = ["my.toml"]\n', ['"my.toml" is a path', "/shakedown/bearers"]),
        (GOOD + 'server_device = "./s.toml"\n', ['"./s.toml" is a path', "/shakedown/devices"]),
        (GOOD + "[repeat]\nx = 1\n", ["line 2", "key repeat", "a table"]),
        (GOOD + "wtls = 1\n", ["line 2", "key wtls", "found 1", "a table"]),
        (GOOD + "[wtls]\nprivate_curves = true\n", ["line 2", "key wtls", "applies only to wtls suites"]),
        (GOOD + '[wtls]\ncurves = "all"\n', ["line 3", "key wtls.curves", 'did you mean "private_curves"']),
        (GOOD + '[wtls]\ncertificate_form = "pgp"\n', ["line 3", 'found "pgp"', "accepted: wtls, x509"]),
        (GOOD + "[wtls]\nprivate_curves = 1\n", ["line 3", "found 1", "true, false"]),
    ],
)
def test_wrong_experiments_are_reported_in_one_line(text, words, fake, capsys, tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text(text)
    line = complain(capsys, "validate", path)
    assert line.startswith(str(path))
    for word in words:
        assert word in line
    assert complain(capsys, "run", path, "--out", tmp_path / "results") == line
    assert not (tmp_path / "results").exists()


def test_experiment_that_is_not_utf8_is_refused(fake, capsys, tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_bytes(b"suites = \xff\xfe")
    assert "UTF-8 (byte 9)" in complain(capsys, "validate", path)


def test_unwritable_results_folder_is_reported(fake, capsys, tmp_path):
    experiment = written(tmp_path, GOOD)
    (tmp_path / "file").touch()
    line = complain(capsys, "run", experiment, "--out", tmp_path / "file" / "results")
    assert "cannot be written" in line
    assert "ot a directory" in line


def test_results_are_replaced_only_with_force(fake, capsys, tmp_path):
    experiment = written(tmp_path, GOOD)
    assert exit_status(["run", str(experiment), "--out", str(tmp_path / "r"), "--no-report"]) == 0
    capsys.readouterr()
    assert "already contains results" in complain(capsys, "run", experiment, "--out", tmp_path / "r")
    assert exit_status(["run", str(experiment), "--out", str(tmp_path / "r"), "--no-report", "--force"]) == 0


BYTE = os.fsdecode(b"\xff")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("certs", "show", BYTE), 'files is "\\xff"'),
        (("certs", "make", "p256", "--out", BYTE), '--out is "\\xff"'),
        (("measure", BYTE), 'suite is "\\xff"'),
        (("measure", "tls1.2/psk", "--client-chain", BYTE), '--client-chain is "\\xff"'),
        (("measure", "tls1.2/psk", "--profile", BYTE), '--profile is "\\xff"'),
        (("measure", "tls1.2/psk", "--password", BYTE), '--password is "…"'),
        (("serve", "tls1.2/psk", "--listen", "127.0.0.1:0", "--traces-out", BYTE), '--traces-out is "\\xff"'),
        (("serve", "tls1.2/psk", "--listen", "127.0.0.1:0", "--client-ca", BYTE), '--client-ca is "\\xff"'),
        (("load", "127.0.0.1:1", "tls1.2/psk", "--rate", "1/s", "--ca", BYTE), '--ca is "\\xff"'),
        (("eap", "peer", "--server", "127.0.0.1:1", "--secret", BYTE, "--suite", "x"), '--secret is "…"'),
        (("aka", "provision", BYTE), 'folder is "\\xff"'),
        (("aka", "hss", "--listen", "127.0.0.1:0", "--register", BYTE), '--register is "\\xff"'),
        (("aka", "sgsn", "--listen", "127.0.0.1:0", "--core", "127.0.0.1:0", "--node", BYTE), "--node is"),
        (("aka", "mobile", "--sgsn", "127.0.0.1:1", "--card", BYTE), '--card is "\\xff"'),
        (("primitives", BYTE), '--filter is "\\xff"'),
    ],
)
def test_names_that_are_not_utf8_are_refused_with_their_option(
    capsys, tmp_path, monkeypatch, arguments, said
):
    monkeypatch.chdir(tmp_path)
    line = complain(capsys, *arguments)
    assert line.startswith(said)
    assert line.endswith("; accepted: UTF-8")
    assert list(tmp_path.iterdir()) == []


def test_missing_capture_is_named_byte_by_byte(capsys):
    assert complain(capsys, "inspect", BYTE) == "cannot open \\xff: No such file or directory"
