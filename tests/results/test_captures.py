"""Captures in an experiment: read, limited, saved, estimated and reported; and all errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

import real
import supplied
from runs import written
from shakedown import native
from shakedown.errors import InputError
from shakedown.experiments.figure_kinds import captured, load_experiment
from shakedown.experiments.figure_kinds.in_memory_results import results_of_json
from shakedown.experiments.runner import run_experiment
from shakedown.native import captures
from shakedown.prediction.inputs import Costs
from shakedown.prediction.library import open_library
from shakedown.prediction.predict import predict_rows
from shakedown.prediction.trace import parse_trace
from shakedown.reporting.charts.ladder import waits
from shakedown.reporting.html.write import write_report
from shakedown.results import queries
from shakedown.results.folder import load_results
from shakedown.schema import builtins
from shakedown.schema.base import SIDES

SUITES = ("tls1.2/ecdhe_rsa/rsa2048", "tls1.3/x25519/p256/server", "tls1.2/psk", "tls1.3/x25519/p256/mutual")
NAMES = [native.canonical(suite) for suite in SUITES]
TEXT = """
repeat = 2
suites = ["tls1.2/psk"]
devices = ["cortex-m4"]
bearers = ["nb-iot", "lte"]
captures = [{ file = "gateway.pcap", keylog = "gateway.keys" }]
"""


def read_capture(file: Path, keylog: Path | None = None) -> captured.Capture:
    return captured.keep(file, keylog, captures.inspect(file, keylog))


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    supplied.capture(folder, *SUITES)
    return folder


@pytest.fixture(scope="module")
def results(home, tmp_path_factory):
    experiment = load_experiment(written(home, TEXT))
    return load_results(run_experiment(experiment, tmp_path_factory.mktemp("out") / "r").folder)


def test_captured_figures_as_objects_name_their_connection(results):
    [found] = [one for one in results.figures() if one.kind == "captured"]
    duration = "handshake.duration"
    suites = [(one.connection, one.suite) for one in found.figures if one.quantity == duration]
    assert suites == list(enumerate(NAMES))
    assert sum(len(one.figures) for one in results.figures()) == results.height


def test_every_connection_is_kept_and_counted(results):
    [found] = queries.captures(results).to_dicts()
    assert (found["capture"], found["keylog"], found["problem"]) == ("gateway.pcap", "gateway.keys", None)
    assert queries.connections(results)["suite"].to_list() == NAMES
    kinds = queries.capture_kinds(results)
    assert sorted(kinds["suite"]) == sorted(NAMES)
    assert kinds.select("count", "complete").unique().rows() == [(1.0, 1.0)]


def test_captured_rows_match_inspect(results, home):
    direct = [one.connection for one in captures.inspect(home / "gateway.pcap", home / "gateway.keys")]
    rows = results.table.filter(results.table["kind"] == "captured")
    assert set(rows["capture"]) == {"gateway.pcap"}
    view = queries.connections(results)
    messages = queries.captured_messages(results)
    for connection in direct:
        [row] = view.filter(pl.col("connection") == connection.index).to_dicts()
        assert (row["bytes"], row["flights"]) == (connection.bytes.total, connection.flights)
        assert (row["client"], row["server"]) == (connection.client, connection.server)
        assert (row["resumed"], row["complete"]) == (connection.resumed, connection.complete)
        mine = messages.filter(pl.col("connection") == connection.index)
        assert mine["message"].to_list() == [message.name for message in connection.messages]
        assert mine["wait_s"].to_list() == [message.wait_s for message in connection.messages]


def test_captured_handshake_is_estimated_as_its_trace_in_predict(results, home):
    traces = {
        one.trace.suite: open_library().completed(parse_trace(builtins(one.trace), "here"))
        for one in captures.inspect(home / "gateway.pcap", home / "gateway.keys")
    }
    predicted = results.predictions.filter(pl.col("capture").is_not_null()).to_dicts()
    assert [row["suite"] for row in predicted] == [n for n in NAMES for _ in range(2)]
    for row in predicted:
        [alone] = predict_rows([row["suite"]], device="cortex-m4", bearer=row["bearer"], costs=Costs(traces))
        assert row["capture"] == "gateway.pcap"
        alone["energy_terms"] = "; ".join(alone["energy_terms"])
        # The table has ranges in columns of their own.
        for name, found in alone.items():
            if isinstance(found, dict) and "estimate" in found:
                alone[name] = found["estimate"]
        assert {key: row[key] for key in alone if key in row} == {
            key: value for key, value in alone.items() if key in row
        }
    # The measured suite of the same name stays apart.
    own = results.predictions.filter(pl.col("capture").is_null())
    assert set(own["suite"]) == {"tls1.2/psk"}


def test_report_has_connections_waits_and_predictions(results, tmp_path):
    page = write_report(results, tmp_path / "report.html").read_text()
    section = page.split('<section id="captures">')[1].split("</section>")[0].replace("<wbr>", "")
    for name in NAMES:
        assert name in section
    assert section.count(">captured</span>") >= 2 + len(NAMES)
    assert 'id="figure-captured-predictions"' in section
    assert {path.name for path in (tmp_path / "figures").glob("captured-1-*.csv")} == {
        f"captured-1-{number}.csv" for number in range(len(NAMES))
    }


def test_experiment_without_suites_runs_and_has_a_report(home, tmp_path, shakedown):
    written(home, 'captures = [{ file = "gateway.pcap" }]\nbearers = ["lte"]\n')
    done = shakedown("run", home / "e.toml", "--out", tmp_path / "r")
    assert done.returncode == 0, done.stderr
    assert "gateway.pcap: 4 connections" in done.stdout
    page = (tmp_path / "r" / "report.html").read_text().replace("<wbr>", "")
    assert "From your captures" in page
    assert "All handshakes" not in page
    # Without the key log TLS 1.3 does not reveal its certificates' keys, so two suites look alike.
    assert "2 of 4 connections" in page


def test_undecrypted_bytes_are_counted(home):
    with_keys = read_capture(home / "gateway.pcap", home / "gateway.keys").connections
    without = read_capture(home / "gateway.pcap").connections
    for opened, closed in zip(with_keys, without, strict=True):
        # Encrypted tickets, which follow the handshake, look like application data.
        tickets = sum(one.bytes for one in opened.connection.messages if one.flight is None)
        assert closed.connection.wire_bytes == opened.connection.wire_bytes - tickets
        assert opened.connection.wire_bytes == opened.connection.bytes.total
    encrypted = [
        sum(one[1].connection.encrypted.of(side).bytes for side in SIDES) for one in (without, with_keys)
    ]
    assert encrypted[0] > encrypted[1] == 0


def test_kept_connections_are_limited_and_all_are_counted(home, monkeypatch):
    monkeypatch.setattr(captured, "MAX_CONNECTIONS", 1)
    monkeypatch.setattr(captured, "MAX_KINDS", 2)
    monkeypatch.setattr(captured, "MAX_TRACES", 2)
    monkeypatch.setattr(captured, "MAX_MESSAGES", 3)
    found = read_capture(home / "gateway.pcap", home / "gateway.keys")
    # The first connections, those with an estimate.
    assert [one.connection.suite for one in found.connections] == NAMES[:2]
    assert [len(one.connection.messages) for one in found.connections] == [3, 3]
    assert found.connections[1].omitted_messages > 0
    assert sum(sizes.count for sizes, _ in found.kinds.values()) + found.uncounted == 4
    assert len(found.traces) == 2
    assert list(found.without_cost) == NAMES[2:]


def test_capture_whose_first_packet_is_cut_off_has_nothing_to_use(home, tmp_path, shakedown):
    (tmp_path / "c.pcap").write_bytes((home / "gateway.pcap").read_bytes()[:30])
    done = shakedown("inspect", "c.pcap", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: c.pcap: ")
    assert "what came before" not in done.stderr


def test_truncated_capture_keeps_what_was_read_and_is_reported(home, tmp_path, shakedown):
    whole = (home / "gateway.pcap").read_bytes()
    (tmp_path / "gateway.pcap").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "gateway.keys").write_bytes((home / "gateway.keys").read_bytes())
    written(tmp_path, TEXT)
    done = shakedown("run", "e.toml", "--out", "r", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "gateway.pcap: " in done.stderr
    assert "what came before is used, and connections may lack what came after" in done.stderr
    inspected = shakedown("inspect", "gateway.pcap", cwd=tmp_path)
    assert inspected.returncode == 2
    [line] = inspected.stderr.splitlines()
    assert line.removeprefix("error: ") in done.stderr.splitlines()
    results = load_results(tmp_path / "r")
    assert queries.captures(results)["problem"].item()
    assert queries.connections(results)["complete"][0] == 1
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
            'key captures.file: "gateway.pcap" is repeated',
        ),
        ("[[captures]]\nfile = 'gateway.pcap'\nkeylog = 'gateway.pcap'", "key captures.keylog: "),
        ("suites = []\n", "line 1, key suites: is empty"),
        ("title = 'nothing'", "key suites is missing"),
    ],
)
def test_wrong_captures_are_reported_with_line_number_and_key(home, text, said):
    path = written(home, text)
    with pytest.raises(InputError) as caught:
        load_experiment(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_damaged_captures_in_results_are_reported_in_one_line(home, tmp_path):
    experiment = load_experiment(written(home, 'captures = [{ file = "gateway.pcap" }]'))
    folder = run_experiment(experiment, tmp_path / "r").folder
    part = folder / "part-0001.parquet"
    part.write_bytes(part.read_bytes()[:-50])
    with pytest.raises(InputError, match=r"part-0001\.parquet: damaged"):
        load_results(folder)
    part.unlink()
    with pytest.raises(InputError, match=r"part-0001\.parquet is missing"):
        load_results(folder)


def test_waits_cover_the_time_and_name_their_cause():
    def message(index, sender, time_s, wait_s, network_s, sender_s):
        return {
            "message_index": index,
            "sender": sender,
            "time_s": time_s,
            "wait_s": wait_s,
            "network_s": network_s,
            "sender_s": sender_s,
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
        (0, "not separated", 0.0, 0.1),
        (1, "network", 0.1, 0.3),
        (1, "server at work", 0.3, 0.4),
        (2, "network", 0.4, 0.5),
        (2, "client at work", 0.5, 0.6),
        (2, "not separated", 0.6, 0.9),
    ]


def test_report_accepts_a_file_of_traces(home, tmp_path, shakedown):
    done = shakedown(
        "inspect", "gateway.pcap", "--keylog", "gateway.keys", "--traces-out", tmp_path / "t.json", cwd=home
    )
    assert done.returncode == 0, done.stderr
    done = shakedown("report", "t.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "t.html").read_text().replace("<wbr>", "")
    for name in NAMES:
        assert name in page
    assert ">captured</span>" in page


def test_page_is_replaced_only_with_force(home, tmp_path, shakedown):
    assert shakedown("inspect", "gateway.pcap", "--traces-out", tmp_path / "t.json", cwd=home).returncode == 0
    page = tmp_path / "t.html"
    page.write_text("mine")
    for more in ((), ("--out", "t.html")):
        done = shakedown("report", "t.json", *more, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr == "error: t.html: exists already; accepted: another --out, or --force\n"
        assert (done.stdout, page.read_text()) == ("", "mine")
    done = shakedown("report", "t.json", "--force", cwd=tmp_path)
    assert (done.returncode, page.read_text() == "mine") == (0, False)


def test_names_are_printed_without_markup_or_emoji(home, tmp_path, shakedown):
    """Brackets are no markup, and what stands between colons is no emoji."""
    name = "[b]:bee:.pcap"
    (tmp_path / name).write_bytes((home / "gateway.pcap").read_bytes())
    written(tmp_path, f'captures = [{{ file = "{name}" }}]')
    done = shakedown("run", "e.toml", "--out", "r", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"captured in {name}: " in done.stdout
    again = shakedown("report", "r", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, done.stdout)


def test_report_accepts_the_output_of_measure(tmp_path, shakedown):
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
MEASURED = real.raw("tls1.2/psk")


def spoilt(whole: Mapping[str, object], key: str, value: object) -> str:
    """A valid trace, then an invalid one."""
    return json.dumps([CAPTURED, {**whole, key: value}])


def test_valid_trace_is_accepted(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps([CAPTURED, MEASURED]))
    found = results_of_json(path)
    assert (queries.captures(found).height, found.handshakes.height) == (1, 1)


def test_largest_accepted_numbers_of_messages_fit_the_table(tmp_path):
    path, most = tmp_path / "x.json", 2**31 - 1
    message = {**MEASURED["messages"][0], "index": most, "flight": most, "unit": most}
    path.write_text(json.dumps([{**MEASURED, "messages": [message], "operations": []}]))
    [row] = results_of_json(path).messages.to_dicts()
    assert [row[name] for name in ("message_index", "flight", "message_unit")] == [most] * 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON"),
        ("[]", "holds no traces"),
        ('{"suite": "tls1.2/psk"}', "holds no traces"),
        ("[1]", "holds no traces"),
        ('[{"suite": "tls1.2/psk"}]', 'kind is neither "measured" nor "captured"'),
        (
            '[{"suite": "tls1.2/psk", "kind": "captured"}]',
            "trace 1: the key bytes is missing",
        ),
        ('[{"suite": "tls1.2/psk", "kind": "measured"}]', "trace 1: the key "),
        (json.dumps([MEASURED] * 2), "is repeated"),
        (spoilt(CAPTURED, "bytes", None), "trace 2: bytes: expected an object, got null; accepted"),
        (spoilt(CAPTURED, "bytes", {"total": 1}), "bytes: the key client_to_server is missing"),
        (spoilt(CAPTURED, "flights", -3), "trace 2: flights: expected a whole number >= 0"),
        (spoilt(CAPTURED, "messages", []), "trace 2: messages: is empty"),
        (spoilt(CAPTURED, "messages", [7]), "trace 2: messages[0]: expected an object, got a whole number"),
        (spoilt(CAPTURED, "suite", 7), "trace 2: suite: expected a string, got a whole number"),
        (spoilt(CAPTURED, "suite", " "), "trace 2: suite: expected a non-empty string"),
        (spoilt(CAPTURED, "suite", "banana"), "trace 2: suite 'banana'"),
        (spoilt(CAPTURED, "suite", "tls9/psk"), "trace 2: suite 'tls9/psk': unknown protocol 'tls9'"),
        (spoilt(CAPTURED, "kind", ["captured"]), 'kind is neither "measured" nor "captured"'),
        (spoilt(CAPTURED, "colour", "red"), "trace 2: unknown key colour"),
        (
            spoilt(MEASURED, "handshake", {"client_us": 3}),
            "handshake.client_us: expected an object",
        ),
        (spoilt(MEASURED, "operations", {}), "trace 2: operations: expected an array, got an object"),
        (spoilt(MEASURED, "client_stack", None), "trace 2: client_stack: expected an object, got null"),
        (spoilt(MEASURED, "preempted", 10**400), "trace 2: preempted: "),
        (spoilt(MEASURED, "flights", 2**60), "trace 2: flights: expected a whole number <= 9007199254740992"),
        *(
            (
                spoilt(MEASURED, "messages", [{**MEASURED["messages"][0], key: 2**31}]),
                f"trace 2: messages[0].{key}: expected a whole number <= 2147483647",
            )
            for key in ("index", "flight", "unit")
        ),
        (spoilt(MEASURED, "carrier", "pigeon"), "trace 2: carrier: expected bare or eap, got 'pigeon'"),
        ("[" * 100_000, "not JSON: nested deeper than"),
        ('[{"kind": "measured", "repeat": ' + "9" * 5000 + "}]", "more than 4,300 digits"),
    ],
    ids=lambda value: value[:40],
)
def test_other_json_is_refused_in_one_line(tmp_path, content, said):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        results_of_json(path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
