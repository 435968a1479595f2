"""Recorded handshakes: found by name, read quickly, and recorded once if they are missing."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from predict import handmade
from shakedown.errors import InputError
from shakedown.native.scenario import MeasureOptions
from shakedown.prediction.library import TraceLibrary, announce, open_library, write_library
from shakedown.prediction.trace import parse_trace
from shakedown.profiles import load_software


def test_library_returns_the_written_traces(library):
    for entry in handmade.LIBRARY:
        assert library[entry["suite"]] == parse_trace(entry, "as written")
    trace = library["tls1.3/x25519/p256/server"]
    assert trace.size_bytes("client") == 230 + 58
    assert not trace.datagrams


def test_every_trace_is_at_its_index_position(library_path):
    first, *lines = library_path.read_bytes().splitlines(keepends=True)
    index = json.loads(first)["shakedown_traces"]
    whole = first + b"".join(lines)
    for suite, (at, length) in index.items():
        assert json.loads(whole[at : at + length])["suite"] == suite


def test_the_same_traces_make_the_same_file(library_path, tmp_path):
    write_library(tmp_path / "again.json", reversed(handmade.LIBRARY))
    assert (tmp_path / "again.json").read_bytes() == library_path.read_bytes()


@pytest.mark.parametrize("lines", [False, True])
def test_json_array_and_json_lines_are_read_as_a_library(tmp_path, lines):
    path = tmp_path / "measured.json"
    text = (
        "\n".join(json.dumps(e) for e in handmade.LIBRARY)
        if lines
        else json.dumps(handmade.LIBRARY, indent=2)
    )
    path.write_text(text, encoding="utf-8")
    assert TraceLibrary(path)["tls1.2/psk"].suite == "tls1.2/psk"


def test_tickets_belong_to_no_flight():
    late = handmade.entry("tls1.3/psk", [("client", "ClientHello", 1, 100)], [])
    late["messages"].append({**late["messages"][0], "index": 1, "name": "NewSessionTicket", "flight": None})
    trace = parse_trace(late, "x")
    assert [one.flight for one in trace.messages] == [1, None]
    assert trace.size_bytes("client") == 200


def test_operations_without_a_call_cost_nothing():
    idle = handmade.entry(
        "tls1.3/psk", [("client", "ClientHello", 1, 100)], [("client", 0, "import", "ec", "p256")]
    )
    idle["operations"][0]["count"] = 0
    assert parse_trace(idle, "x").operations[0].count == 0


def test_a_missing_trace_is_recorded_once_and_kept(library_path, tmp_path):
    recorded, said = [], []

    def record(suite):
        recorded.append(suite)
        return handmade.entry(suite, [("client", "ClientHello", 1, 100)], [])

    def library():
        return TraceLibrary(
            library_path, own=tmp_path / "own", record=record, canonical=str.lower, say=said.append
        )

    assert library()["TLS1.3/PSK"].suite == "tls1.3/psk"
    assert library()["tls1.3/psk"].suite == "tls1.3/psk"
    assert recorded == ["tls1.3/psk"]
    # The file was given, so traces from elsewhere are reported.
    assert said == [
        f"{library_path}: no trace of tls1.3/psk: recording it once",
        f"{library_path}: no trace of tls1.3/psk; using the one recorded earlier",
    ]


def test_one_notice_announces_all_suites_that_have_to_be_recorded(library_path, tmp_path):
    said = []

    def library():
        return TraceLibrary(
            library_path,
            own=tmp_path / "own",
            record=lambda suite: handmade.entry(suite, [("client", "ClientHello", 1, 100)], []),
            canonical=str.lower,
            say=said.append,
        )

    suites = ["tls1.3/a", "tls1.3/b", "TLS1.3/B", "tls1.3/c"]
    traces = library()
    announce(traces, suites)
    assert [traces[suite].suite for suite in suites] == [suite.lower() for suite in suites]
    assert said == [f"{library_path}: no traces of 3 suites: recording each once"]
    said.clear()
    announce(library(), suites)
    announce({}, suites)
    assert not said


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda line: line.replace(b'{"tls1.2', b'["tls1.2', 1), "not JSON"),
        (lambda line: b'{"shakedown_traces":[]}', "its index is not an object"),
        (lambda line: b'{"shakedown_traces":{"tls1.2/psk":7}}', "its index has no position for tls1.2/psk"),
        (lambda line: b'{"shakedown_traces":{"tls1.2/psk":[1]}}', "its index has no position for tls1.2/psk"),
        (lambda line: b'{"shakedown_traces":{"tls1.2/psk":[-1,5]}}', "its index has no position for"),
        (lambda line: b'{"shakedown_traces":{"tls1.2/psk":["0",5]}}', "its index has no position"),
        (
            lambda line: b'{"shakedown_traces":{"tls1.2/psk":[0,' + b"9" * 30 + b"]}}",
            "its index has no position",
        ),
        (lambda line: b'{"shakedown_traces":{"tls1.2/psk":[0,' + b"9" * 5000 + b"]}}", "4,300 digits"),
        (lambda line: b'{"shakedown_traces":{"tls1.2/psk":[3,9]}}', "not JSON"),
        (lambda line: b'{"shakedown_traces":' + b"[" * 100_000, "not JSON: nested deeper"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damaged_index_is_reported_in_one_line(library_path, spoil, said):
    first, rest = library_path.read_bytes().split(b"\n", 1)
    library_path.write_bytes(spoil(first) + b"\n" + rest)
    with pytest.raises(InputError) as caught:
        TraceLibrary(library_path)["tls1.2/psk"]
    assert said in str(caught.value)
    assert str(library_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_index_that_points_to_another_trace_is_refused(library_path):
    whole = library_path.read_bytes()
    library_path.write_bytes(whole.replace(b'"suite":"tls1.2/psk"', b'"suite":"tls1.2/pks"'))
    with pytest.raises(InputError, match=r"damaged: tls1\.2/psk is not at the position in its index"):
        TraceLibrary(library_path)["tls1.2/psk"]


def test_endless_file_of_traces_is_refused(monkeypatch):
    from shakedown.prediction import library

    monkeypatch.setattr(library, "MAX_TRACES_BYTES", 1 << 20)
    with pytest.raises(InputError, match="/dev/zero: longer than 1 MiB; accepted: a file of traces"):
        TraceLibrary(Path("/dev/zero"))["tls1.2/psk"]


def test_missing_trace_that_cannot_be_recorded_is_reported(library):
    with pytest.raises(InputError, match=r'no trace of "tls1.2/pks".*did you mean "tls1.2/psk"'):
        library["tls1.2/pks"]


def spoilt(change) -> str:
    """A library of one trace with an error in it, under a name that the search finds."""
    one = copy.deepcopy(handmade.TLS12_RSA)
    change(one)
    return json.dumps([{**one, "suite": "tls1.2/psk"}])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "holds no traces"),
        ("[]", "holds no traces"),
        ("{", "not JSON"),
        ('[{"suite": "tls1.2/psk"}]', "the key messages is missing"),
        (
            '[{"suite": "tls1.2/psk", "messages": [], "operations": []}]',
            "messages: expected an array of length >= 1",
        ),
        (
            spoilt(lambda one: one["operations"][1].update(side="both")),
            r"operations\[1\]\.side: expected client or server, got 'both'",
        ),
        (
            spoilt(lambda one: one["messages"][0].update(bytes=-1)),
            r"messages\[0\]\.bytes: expected a number >= 0",
        ),
        (
            spoilt(lambda one: one["messages"][0].update(bytes=None)),
            r"messages\[0\]\.bytes: expected a number, got null",
        ),
        (
            spoilt(lambda one: one["messages"][0].update(bytes=float("nan"))),
            r"messages\[0\]\.bytes: expected a number >= 0",
        ),
        (
            spoilt(lambda one: one["messages"][0].update(flight="1")),
            r"messages\[0\]\.flight: expected a whole number or null, got a string",
        ),
        (
            spoilt(lambda one: one["operations"][0].update(count=-2)),
            r"operations\[0\]\.count: expected a whole number >= 0",
        ),
        (
            spoilt(lambda one: one["operations"][0].update(algorithm=["rsa"])),
            r"algorithm: expected a string, got an array",
        ),
    ],
)
def test_file_without_traces_is_refused(tmp_path, content, words):
    path = tmp_path / "bad.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        TraceLibrary(path)["tls1.2/psk"]


def test_missing_file_is_reported(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        TraceLibrary(tmp_path / "nowhere.json")["tls1.2/psk"]


def test_first_of_several_handshakes_is_used_with_a_notice(tmp_path):
    path = tmp_path / "captured.json"
    small = handmade.entry("tls1.3/psk", [("client", "ClientHello", 1, 100)], [])
    large = handmade.entry("tls1.3/psk", [("client", "ClientHello", 1, 900)], [])
    for first, second, total in ((small, large, 100), (large, small, 900)):
        path.write_text(json.dumps([first, second]))
        said: list[str] = []
        library = TraceLibrary(path, say=said.append)
        assert library["tls1.3/psk"].size_bytes("client") == total
        assert library["tls1.3/psk"].size_bytes("client") == total
        [line] = said
        assert line.startswith(f"{path}: contains 2 handshakes of tls1.3/psk; the first is used")


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"suite": "tls1.2/rsa/rsa2048/server"}'])
def test_damaged_cached_trace_is_recorded_again(library_path, tmp_path, text):
    entry = handmade.entry("tls1.2/dhe_psk+dh1024", [("client", "ClientHello", 1, 100)], [])
    kept = tmp_path / "tls1.2%2Fdhe_psk%2Bdh1024.json"
    kept.write_text(text)
    said: list[str] = []

    def library() -> TraceLibrary:
        return TraceLibrary(library_path, own=tmp_path, record=lambda suite: entry, say=said.append)

    assert library()[entry["suite"]].size_bytes("client") == 100
    assert said[0].startswith(str(kept))
    assert said[0].endswith("recorded again")
    assert json.loads(kept.read_text()) == entry
    assert list(tmp_path.glob("*.part")) == list(tmp_path.glob(".*")) == []


def test_saving_a_trace_does_not_follow_links(library_path, tmp_path):
    entry = handmade.entry("tls1.2/dhe_psk+dh1024", [("client", "ClientHello", 1, 100)], [])
    precious = tmp_path / "precious"
    precious.write_text("mine")
    own = tmp_path / "own"
    own.mkdir()
    for name in ("tls1.2%2Fdhe_psk%2Bdh1024.part", "tls1.2%2Fdhe_psk%2Bdh1024.json.part"):
        (own / name).symlink_to(precious)
    TraceLibrary(library_path, own=own, record=lambda suite: entry)[entry["suite"]]
    assert precious.read_text() == "mine"


TICKETS = [
    ("server", "Certificate", 2, 500),
    *[("server", "NewSessionTicket", None, size) for size in (240, 239)],
]


@pytest.mark.parametrize(
    ("software", "sizes"), [("none", []), ("go", [240]), ("openssl", [240, 239]), ("nginx", [240, 239])]
)
def test_server_software_sets_number_and_size_of_tickets(software, sizes):
    operations = [("server", index, "mac", "hmac-sha256", "") for index in (1, 2)]
    trace = parse_trace(handmade.entry("tls1.3/x25519/p256/server", TICKETS, operations), "x")
    served = trace.served_by(load_software(software))
    assert [one.size_bytes for one in served.messages if one.flight is None] == sizes
    assert [one.message for one in served.operations] == list(range(1, 1 + len(sizes)))


def test_additional_tickets_are_copies_of_the_last_one():
    trace = parse_trace(
        handmade.entry("tls1.3/x25519/p256/server", TICKETS, [("server", 2, "mac", "x", "")]), "x"
    )
    served = trace.served_by(replace(load_software("openssl"), tickets=4))
    assert [one.size_bytes for one in served.messages[1:]] == [240, 239, 239, 239]
    assert [(one.message, one.triple[0]) for one in served.operations] == [(2, "mac"), (3, "mac"), (4, "mac")]


def test_missing_ticket_in_the_trace_is_refused():
    trace = parse_trace(handmade.entry("tls1.3/x25519/p256/server", TICKETS[:1], []), "x")
    with pytest.raises(InputError, match="its trace has no ticket, and openssl issues 2"):
        trace.served_by(load_software("openssl"))


def test_operation_that_does_not_exist_is_refused():
    made = [("client", "ClientHello", 1, 100)]
    for operation, said in (
        ("sign", "sign has no algorithm 'sha256'; accepted: "),
        ("brew", "unknown operation"),
    ):
        with pytest.raises(InputError, match=f"x: operations: {said}"):
            parse_trace(handmade.entry("tls1.2/psk", made, [("client", 0, operation, "sha256", "")]), "x")


def test_a_bare_psk_needs_no_key_share():
    share = [("client", 0, "keygen", "ecdh", "x25519")]
    hello = [("client", "ClientHello", 1, 100)]
    trace = parse_trace(handmade.entry("tls1.3/psk", hello, share), "x")
    assert trace.operations == ()
    assert [one.triple for one in trace.unused] == [("keygen", "ecdh", "x25519")]
    used = parse_trace(handmade.entry("tls1.3/psk_dhe+x25519", hello, share), "x")
    assert len(used.operations) == 1
    assert used.unused == ()


@pytest.mark.parametrize(
    ("software", "suite", "offered"),
    [
        ("go", "tls1.2/rsa/rsa2048/server", False),
        ("go", "tls1.2/ecdhe_rsa+x25519/rsa2048/server", True),
        ("go", "tls1.1/ecdhe_rsa+x25519/rsa2048/server", False),
        ("go", "tls1.0/rsa/rsa2048/server", False),
        ("go", "tls1.2/ecdhe_ecdsa+x25519/p256/server", True),
        ("go", "tls1.3/x25519mlkem768/p256/server", True),
        ("go", "tls1.2/dhe_rsa+dh2048/rsa2048/server", False),
        ("go", "tls1.2/psk", False),
        ("go", "tls1.2/psk/resumed", False),
        ("go", "tls1.3/psk_dhe+x25519", False),
        ("go", "tls1.3/x25519/mldsa44/server", False),
        ("go", "wtls/rsa/rsa1024/server", False),
        ("go", "tls1.2/ecdhe_rsa+brainpoolp256r1/rsa2048/server", False),
        ("nginx", "tls1.2/rsa/rsa2048/server", True),
        ("nginx", "tls1.2/psk", False),
        ("nginx", "wtls/rsa/rsa1024/server", False),
        ("haproxy", "tls1.3/psk_dhe+x25519", False),
        ("rustls", "tls1.2/ecdhe_ecdsa+x25519/p256/server", True),
        ("rustls", "tls1.3/x25519mlkem768/p256/server", True),
        ("rustls", "tls1.2/rsa/rsa2048/server", False),
        ("rustls", "tls1.2/psk", False),
        ("rustls", "tls1.3/p521/p256/server", False),
        ("openssl", "tls1.2/psk", True),
    ],
)
def test_suites_that_the_server_software_lacks_are_named(software, suite, offered):
    said: list[str] = []
    library = TraceLibrary(
        software=load_software(software),
        record=lambda name: handmade.entry(name, TICKETS, []),
        say=said.append,
    )
    assert library[suite].suite == suite
    assert any(f"{software} does not offer it" in line for line in said) == (not offered)


def test_empty_server_software_name_is_refused():
    with pytest.raises(InputError, match="unknown server software ''"):
        open_library(None, server_software="")
    with pytest.raises(InputError, match="unknown server software ''"):
        MeasureOptions(server_software="").issuing("tls1.2/psk")
