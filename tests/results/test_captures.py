"""Captures in an experiment: read, bounded, saved, priced and reported; and everything wrong with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import own_material as own
import synthetic
from shakedown import core
from shakedown.errors import InputError
from shakedown.experiment import load_experiment
from shakedown.pricing.predict import predict
from shakedown.pricing.trace import parse_trace
from shakedown.report import write_report
from shakedown.report.ladder import waits
from shakedown.results import captures
from shakedown.results.captures import sealed_bytes, wire_bytes
from shakedown.results.folder import load_results, results_of_json
from shakedown.runner import read_capture, run_experiment

SUITES = ("tls1.2/ecdhe_rsa/rsa2048", "tls1.3/x25519/p256/server", "tls1.2/psk", "tls1.3/x25519/p256/mutual")
NAMES = [core.canonical(suite) for suite in SUITES]
TEXT = """
repeat = 2
suites = ["tls1.2/psk"]
devices = ["cortex-m4"]
bearers = ["nb-iot", "lte"]
captures = [{ file = "gateway.pcap", keylog = "gateway.keys" }]
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    own.capture(folder, *SUITES)
    return folder


@pytest.fixture(scope="module")
def results(home, tmp_path_factory):
    experiment = load_experiment(own.experiment(home, TEXT))
    return load_results(run_experiment(experiment, tmp_path_factory.mktemp("out") / "r").folder)


def test_every_connection_is_kept_and_counted(results):
    [found] = results.captures
    assert (found["capture"], found["keylog"], found["problem"]) == ("gateway.pcap", "gateway.keys", None)
    assert [one["suite"] for one in found["connections"]] == NAMES
    assert sorted(kind["suite"] for kind in found["kinds"]) == sorted(NAMES)
    assert all(kind["count"] == 1 and kind["complete"] for kind in found["kinds"])


def test_captured_rows_say_what_inspect_says(results, home):
    direct = [one.connection for one in core.inspect(home / "gateway.pcap", home / "gateway.keys")]
    rows = results.table.filter(results.table["kind"] == "captured")
    assert set(rows["capture"]) == {"gateway.pcap"}
    for connection in direct:
        mine = rows.filter(rows["connection"] == connection["index"])
        total = mine.filter((mine["quantity"] == "handshake.bytes") & mine["side"].is_null())["value"].item()
        assert total == connection["bytes"]["total"]
        waited = mine.filter(mine["quantity"] == "message.wait")["value"].sum()
        assert waited == pytest.approx(sum(message["wait_s"] for message in connection["messages"]))


def test_a_captured_handshake_is_priced_as_predict_prices_its_trace(results, home):
    traces = {
        one.trace["suite"]: parse_trace(one.trace, "here")
        for one in core.inspect(home / "gateway.pcap", home / "gateway.keys")
    }
    assert [row["suite"] for row in results.captured_predictions] == [n for n in NAMES for _ in range(2)]
    for row in results.captured_predictions:
        [alone] = predict([row["suite"]], device="cortex-m4", bearer=row["bearer"], traces=traces)
        assert row["kind"] == "modelled"
        assert row["capture"] == "gateway.pcap"
        assert {key: row[key] for key in alone} == alone
    # The measured suite of the same name stays apart.
    assert {row["suite"] for row in results.predictions} == {"tls1.2/psk"}
    assert all("capture" not in row for row in results.predictions)


def test_the_report_holds_connections_waits_and_prices(results, tmp_path):
    page = write_report(results, tmp_path / "report.html").read_text()
    section = page.split('<section id="captures">')[1].split("</section>")[0].replace("<wbr>", "")
    for name in NAMES:
        assert name in section
    assert section.count(">captured</span>") >= 2 + len(NAMES)
    assert 'id="figure-captured-elsewhere"' in section
    assert {path.name for path in (tmp_path / "figures").glob("captured-1-*.csv")} == {
        f"captured-1-{number}.csv" for number in range(len(NAMES))
    }


def test_without_suites_an_experiment_runs_and_its_report_answers(home, tmp_path, shakedown):
    own.experiment(home, 'captures = [{ file = "gateway.pcap" }]\nbearers = ["lte"]\n')
    done = shakedown("run", home / "e.toml", "--out", tmp_path / "r")
    assert done.returncode == 0, done.stderr
    assert "gateway.pcap: 4 connections" in done.stdout
    page = (tmp_path / "r" / "report.html").read_text().replace("<wbr>", "")
    assert "From your captures" in page
    assert "All handshakes" not in page
    # Without the key log TLS 1.3 does not tell its keys, so that two suites look alike.
    assert "2 of 4 connections" in page


def test_bytes_that_stayed_encrypted_count(home):
    with_keys = read_capture(home / "gateway.pcap", home / "gateway.keys")["connections"]
    without = read_capture(home / "gateway.pcap")["connections"]
    for opened, closed in zip(with_keys, without, strict=True):
        assert wire_bytes(closed) == wire_bytes(opened) == opened["bytes"]["total"]
    assert sealed_bytes(without[1]) > sealed_bytes(with_keys[1]) == 0


def test_what_is_kept_is_bounded_and_all_are_counted(home, monkeypatch):
    monkeypatch.setattr(captures, "MOST_CONNECTIONS", 1)
    monkeypatch.setattr(captures, "MOST_KINDS", 2)
    monkeypatch.setattr(captures, "MOST_TRACES", 2)
    monkeypatch.setattr(captures, "MOST_MESSAGES", 3)
    found = read_capture(home / "gateway.pcap", home / "gateway.keys")
    # The first, and those that are priced.
    assert [one["suite"] for one in found["connections"]] == NAMES[:2]
    assert [len(one["messages"]) for one in found["connections"]] == [3, 3]
    assert found["connections"][1]["messages_left_out"] > 0
    assert sum(kind["count"] for kind in found["kinds"]) + found["uncounted"] == 4
    assert len(found["traces"]) == 2
    assert found["unpriced"] == NAMES[2:]


def test_a_cut_capture_keeps_what_was_read_and_says_so(home, tmp_path, shakedown):
    whole = (home / "gateway.pcap").read_bytes()
    (tmp_path / "gateway.pcap").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "gateway.keys").write_bytes((home / "gateway.keys").read_bytes())
    own.experiment(tmp_path, TEXT)
    done = shakedown("run", "e.toml", "--out", "r", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "gateway.pcap: " in done.stderr
    assert "what was before that is told, and connections may lack what came after" in done.stderr
    inspected = shakedown("inspect", "gateway.pcap", cwd=tmp_path)
    assert inspected.returncode == 2
    [line] = inspected.stderr.splitlines()
    assert line.removeprefix("error: ") in done.stderr.splitlines()
    [found] = load_results(tmp_path / "r").captures
    assert found["problem"]
    assert found["connections"][0]["complete"]
    assert "could not be read to its end" in (tmp_path / "r" / "report.html").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "captures = 'gateway.pcap'",
            'line 1, key captures: found "gateway.pcap"; accepted: an array of tables',
        ),
        ("captures = ['gateway.pcap']", "line 1, key captures: found an array; accepted: an array of tables"),
        ("captures = []", "line 1, key captures: is empty"),
        ("[captures]\nfile = 'gateway.pcap'", "line 1, key captures: found a table"),
        ("[[captures]]\nkeylog = 'gateway.keys'", "line 1, key captures: file is missing"),
        (
            "[[captures]]\nfile = 'gateway.pcap'\nkeylg = 'x'",
            "line 3, key captures.keylg: unknown key; did you",
        ),
        ("[[captures]]\nfile = 'no.pcap'", 'line 2, key captures.file: "no.pcap" does not exist'),
        ("[[captures]]\nfile = 7", "line 2, key captures.file: found 7; accepted: a string"),
        ("[[captures]]\nfile = 'e.toml'", "line 2, key captures.file: "),
        (
            "[[captures]]\nfile = 'gateway.pcap'\n[[captures]]\nfile = 'gateway.pcap'",
            'key captures.file: "gateway.pcap" stands there twice',
        ),
        ("[[captures]]\nfile = 'gateway.pcap'\nkeylog = 'gateway.pcap'", "key captures.keylog: "),
        ("suites = []\n", "line 1, key suites: is empty"),
        ("title = 'nothing'", "key suites is missing"),
    ],
)
def test_wrong_captures_are_one_line_with_its_number_and_key(home, text, said):
    path = own.experiment(home, text)
    with pytest.raises(InputError) as caught:
        load_experiment(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_damaged_captures_in_results_are_told_in_one_line(home, tmp_path):
    experiment = load_experiment(own.experiment(home, 'captures = [{ file = "gateway.pcap" }]'))
    folder = run_experiment(experiment, tmp_path / "r").folder
    part = folder / "captured.parquet"
    part.write_bytes(part.read_bytes()[:-50])
    with pytest.raises(InputError, match=r"captured\.parquet: damaged"):
        load_results(folder)
    part.unlink()
    with pytest.raises(InputError, match=r"captured\.parquet is missing"):
        load_results(folder)


def test_waits_fill_the_time_and_are_named_by_their_cause():
    def message(index, sender, time_s, wait_s, network_s, peer_s):
        return {
            "index": index,
            "from": sender,
            "time_s": time_s,
            "wait_s": wait_s,
            "network_s": network_s,
            "peer_s": peer_s,
        }

    found = list(
        waits(
            [
                message(0, "client", 0.1, 0.1, None, None),
                message(1, "server", 0.4, 0.3, 0.2, 0.1),
                message(2, "client", 0.9, 0.5, 0.1, 0.1),
                message(3, "client", 0.9, 0.0, 0.0, 0.0),
            ]
        )
    )
    told = [(wait.row, wait.what, round(wait.start_s, 6), round(wait.end_s, 6)) for wait in found]
    assert told == [
        (0, "not told apart", 0.0, 0.1),
        (1, "network", 0.1, 0.3),
        (1, "server at work", 0.3, 0.4),
        (2, "network", 0.4, 0.5),
        (2, "client at work", 0.5, 0.6),
        (2, "not told apart", 0.6, 0.9),
    ]


def test_the_report_takes_the_file_of_traces(home, tmp_path, shakedown):
    done = shakedown(
        "inspect", "gateway.pcap", "--keylog", "gateway.keys", "--traces", tmp_path / "t.json", cwd=home
    )
    assert done.returncode == 0, done.stderr
    done = shakedown("report", "t.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "t.html").read_text().replace("<wbr>", "")
    for name in NAMES:
        assert name in page
    assert ">captured</span>" in page


def test_a_page_is_not_replaced_unasked(home, tmp_path, shakedown):
    assert shakedown("inspect", "gateway.pcap", "--traces", tmp_path / "t.json", cwd=home).returncode == 0
    page = tmp_path / "t.html"
    page.write_text("mine")
    for more in ((), ("--out", "t.html")):
        done = shakedown("report", "t.json", *more, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr == "error: t.html: exists already; accepted: another --out, or --force\n"
        assert (done.stdout, page.read_text()) == ("", "mine")
    done = shakedown("report", "t.json", "--force", cwd=tmp_path)
    assert (done.returncode, page.read_text() == "mine") == (0, False)


def test_names_are_printed_as_they_are(home, tmp_path, shakedown):
    """Brackets are no markup, and what stands between colons is no emoji."""
    name = "[b]:bee:.pcap"
    (tmp_path / name).write_bytes((home / "gateway.pcap").read_bytes())
    own.experiment(tmp_path, f'captures = [{{ file = "{name}" }}]')
    done = shakedown("run", "e.toml", "--out", "r", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"Captured in {name}: " in done.stdout
    again = shakedown("report", "r", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, done.stdout)


def test_the_report_takes_what_measure_prints(tmp_path, shakedown):
    done = shakedown("measure", "tls1.2/psk", "--repeat", "2", "--json")
    (tmp_path / "m.json").write_text(done.stdout)
    done = shakedown("report", "m.json", "--csv", "m.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "tls1.2/psk" in (tmp_path / "m.html").read_text().replace("<wbr>", "")
    assert (tmp_path / "m.csv").read_text().startswith("suite,")


CAPTURED = {
    "suite": "tls1.2/psk",
    "kind": "captured",
    "bytes": {"client_to_server": 100, "server_to_client": 0, "total": 100},
    "flights": 1,
    "messages": [{"index": 0, "from": "client", "name": "ClientHello", "flight": 1, "bytes": 100}],
    "operations": [],
}
MEASURED = synthetic.measurement("tls1.2/psk")


def spoilt(whole: Mapping[str, object], key: str, value: object) -> str:
    """A sound trace, then one that is not."""
    return json.dumps([CAPTURED, {**whole, key: value}])


def test_a_sound_trace_is_taken(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps([CAPTURED, MEASURED]))
    found = results_of_json(path, core.canonical)
    assert (len(found.captures), len(found.measurements)) == (1, 1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON"),
        ("[]", "holds no traces"),
        ('{"suite": "tls1.2/psk"}', "holds no traces"),
        ("[1]", "holds no traces"),
        ('[{"suite": "tls1.2/psk"}]', 'kind is neither "measured" nor "captured"'),
        ('[{"suite": "tls1.2/psk", "kind": "captured"}]', "trace 1: messages is missing; accepted: what"),
        ('[{"suite": "tls1.2/psk", "kind": "measured"}]', "trace 1: messages is missing; accepted: what"),
        (json.dumps([synthetic.measurement("tls1.2/psk")] * 2), "stands there twice"),
        (spoilt(CAPTURED, "bytes", None), "trace 2: bytes is null, not an object; accepted"),
        (spoilt(CAPTURED, "bytes", {"total": -1}), "trace 2: bytes.client_to_server is missing"),
        (spoilt(CAPTURED, "flights", -3), "trace 2: flights is -3, not a whole number of 0 or more"),
        (spoilt(CAPTURED, "messages", []), "trace 2: messages is empty"),
        (spoilt(CAPTURED, "messages", [7]), "trace 2: messages[0] is 7, not an object"),
        (spoilt(CAPTURED, "suite", 7), "trace 2: suite is 7, not a string"),
        (spoilt(CAPTURED, "suite", "banana"), "trace 2: suite 'banana'"),
        (spoilt(CAPTURED, "suite", "tls9/psk"), "trace 2: suite 'tls9/psk': unknown protocol 'tls9'"),
        (spoilt(CAPTURED, "kind", ["captured"]), 'kind is neither "measured" nor "captured"'),
        (spoilt(MEASURED, "handshake", {"client_us": 3}), "trace 2: handshake.client_us is 3, not an object"),
        (spoilt(MEASURED, "operations", {}), "trace 2: operations is an object, not an array"),
        (spoilt(MEASURED, "client_stack", None), "trace 2: client_stack is null, not an object"),
        (spoilt(MEASURED, "preempted", 10**400), "trace 2: preempted is 1000"),
        (spoilt(MEASURED, "certificates", {"server": "hers"}), 'is "hers", not "own" or "made"'),
    ],
)
def test_other_json_is_refused_in_one_line(tmp_path, content, said):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        results_of_json(path, core.canonical)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    assert "\n" not in str(caught.value)
