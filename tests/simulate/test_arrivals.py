"""Specifications of arrival processes: their meaning, and one line for invalid ones."""

from __future__ import annotations

import contextlib
import json
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shakedown.errors import InputError
from shakedown.native import virtual_time
from shakedown.native.core import extension
from shakedown.native.scenario import Fleet
from shakedown.prediction.library import open_library
from shakedown.prediction.scenario import scenario
from shakedown.simulation import arrivals, memory_limit
from shakedown.simulation.arrivals import parse_arrivals
from shakedown.simulation.fleet import settle
from shakedown.simulation.memory_limit import at_once, check_room
from shakedown.simulation.spec import Client, simulation_spec


@pytest.mark.parametrize(
    ("text", "spec", "rate"),
    [
        ("poisson:50/s", {"kind": "poisson", "per_s": 50.0}, 50.0),
        ("POISSON: 90/min", {"kind": "poisson", "per_s": 1.5}, 1.5),
        ("deterministic:2", {"kind": "deterministic", "per_s": 2.0}, 2.0),
        ("bursts:100@2/min", {"kind": "bursts", "per_s": 2 / 60, "size": 100}, 100 * 2 / 60),
        ("storm:10s", {"kind": "storm", "within_s": 10.0}, None),
        ("storm:0", {"kind": "storm", "within_s": 0.0}, None),
        ("storm:2min+backoff", {"kind": "storm", "within_s": 120.0}, None),
    ],
)
def test_arrivals_are_parsed(text, spec, rate):
    found = parse_arrivals(text)
    assert found.spec() == pytest.approx(spec)
    assert found.rate_per_s == (None if rate is None else pytest.approx(rate))
    assert found.backoff == text.endswith("backoff")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "accepted: poisson:50/s"),
        ("poison:5/s", 'did you mean "poisson"'),
        ("poisson", "poisson has no value"),
        ("poisson:", "poisson has no value"),
        ("poisson:0/s", "a rate above 0"),
        ("poisson:-1/s", "is not a rate"),
        ("poisson:1e400/s", "is not a rate"),
        ("poisson:1e300/s", "out of range; accepted: from"),
        ("poisson:1e-300/s", "out of range; accepted: from"),
        ("storm:1e300s", "out of range"),
        ("poisson:nan", "is not a rate"),
        ("deterministic:5/year", "is not a rate"),
        ("bursts:5", "SIZE@RATE"),
        ("bursts:0@1/s", "from 1 to"),
        ("bursts:1.5@1/s", "from 1 to"),
        ("bursts:²@1/s", "from 1 to"),
        ("bursts:" + "9" * 5000 + "@1/s", "from 1 to"),
        ("bursts:5@0/s", "a rate above 0"),
        ("storm:", "storm has no value"),
        ("storm:-3s", "is not a duration"),
        ("storm:10s+backof", 'did you mean "backoff"'),
        ("storm:10s+", 'there is no "+"'),
        ("storm:1e9s", "at most"),
        ("diurnal:1/s,peak=25h", "0h to 24h"),
        ("diurnal:1/s,swing=2", "a share from 0 to 1"),
        ("diurnal:1/s,swing=0.1_0", "a share from 0 to 1"),
        ("diurnal:1/s,peak=1h,peak=2h", "peak is there twice"),
        ("file:/no/such/file", "cannot be read"),
    ],
)
def test_invalid_arrivals_are_reported_in_one_line(text, says):
    with pytest.raises(InputError) as found:
        parse_arrivals(text)
    assert says in str(found.value)
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 400


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(text):
    written = text if not text.strip().lower().startswith("file") else f"x{text}"
    with contextlib.suppress(InputError):
        found = parse_arrivals(written)
        assert found.rate_per_s is None or found.rate_per_s > 0.0


def test_file_of_times_is_read(tmp_path):
    path = tmp_path / "times.txt"
    path.write_text("# seconds\n0\n0.5  # half\n\n0.5\n12\n")
    found = parse_arrivals("file:times.txt", tmp_path)
    assert list(found.at_s) == [0.0, 0.5, 0.5, 12.0]
    assert found.spec() == {"kind": "times", "at_s": array("d", [0.0, 0.5, 0.5, 12.0])}
    assert found.span_s == 12.0


def test_first_line_of_rates_may_be_a_header(tmp_path):
    path = tmp_path / "rates.csv"
    path.write_text("seconds, clients per second\n0,5\n10,2.5e0\n")
    assert parse_arrivals(f"rates:{path}").points == ((0.0, 5.0), (10.0, 2.5))


@pytest.mark.parametrize("line", ["0,5,3", "0;50", ".0,x", "-1;2", "0,1_0", "0,\u0665", "\u0660,5", "0,inf"])
def test_wrong_first_line_of_rates_is_not_taken_for_a_header(tmp_path, line):
    path = tmp_path / "rates.csv"
    path.write_text(f"{line}\n0,5\n10,5\n", encoding="utf-8")
    with pytest.raises(InputError, match=f'line 1: "{line}"; accepted: seconds, clients per second'):
        parse_arrivals(f"rates:{path}")


def test_file_with_bom_and_crlf_is_read(tmp_path):
    (tmp_path / "times.txt").write_bytes(b"\xef\xbb\xbf0.25\r\n1\r\n")
    assert list(parse_arrivals("file:times.txt", tmp_path).at_s) == [0.25, 1.0]


def test_long_file_is_read_in_blocks_with_continuous_line_numbers(tmp_path):
    """Times are as written, whatever block holds them, and a line far into the file has its number."""
    path = tmp_path / "times.txt"
    times = [number / 1000 for number in range(400_000)]
    lines = [f"{time!r}" for time in times]
    lines[150_000] += "  # told apart by hand"
    path.write_text("\n".join(lines))
    assert path.stat().st_size > 2 << 20
    assert list(parse_arrivals(f"file:{path}").at_s) == times
    for wrong, says in (
        ("1 2", '"1 2" is not a time'),
        ("0.5", "0.5 comes after 350"),
        ("1e9", "not a time"),
    ):
        path.write_text("\n".join([*lines[:350_001], wrong, *lines[350_001:]]))
        with pytest.raises(InputError, match=f"line 350002: .*{says}"):
            parse_arrivals(f"file:{path}")


def test_file_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "times.txt"
    path.write_bytes(b"0\n\xff\xfe\n")
    with pytest.raises(InputError, match="line 2: not a text file in UTF-8"):
        parse_arrivals(f"file:{path}")


def test_a_file_that_is_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(arrivals, "MAX_TIMES_BYTES", 2 << 20)
    path = tmp_path / "times.txt"
    path.write_bytes(b"1\n" * (1 << 20))
    assert len(parse_arrivals(f"file:{path}").at_s) == 1 << 20
    path.write_bytes(b"1\n" * (1 << 20) + b"1")
    with pytest.raises(InputError, match="longer than 2 MiB; accepted: a file of times up to this size"):
        parse_arrivals(f"file:{path}")


@pytest.mark.parametrize("kind", ["file", "rates", "log"])
def test_endless_file_is_refused_by_its_first_line(kind):
    with pytest.raises(InputError, match="/dev/zero: a line is longer than 1 MiB"):
        parse_arrivals(f"{kind}:/dev/zero")


def test_log_may_contain_any_bytes_outside_the_time(tmp_path):
    """Bytes of another encoding, separators of other systems, brackets in a name."""
    line = "192.0.2.{} - {} [10/Oct/2026:13:55:{} +0200] {}\n"
    (tmp_path / "access.log").write_bytes(
        line.format(1, "-", 36, '"GET /\u2028\x0b\x85"').encode()
        + line.format(2, "bob[x]", 37, '"GET /na\xefve"').encode("latin-1")
    )
    assert list(parse_arrivals("log:access.log", tmp_path).at_s) == [0.5, 1.5]


@pytest.mark.parametrize(
    ("arrivals", "brings"),
    [("diurnal:1e-6/s", "0.0864"), ("diurnal:1e9/s", r"8\.64e\+13"), ("rates:curve.csv", r"5e\+15")],
)
def test_rate_curve_must_give_a_valid_number_of_clients(tmp_path, arrivals, brings):
    (tmp_path / "curve.csv").write_text("0,0\n1e7,1e9\n")
    with pytest.raises(InputError, match=rf"brings {brings} clients on average; accepted: 1 to"):
        settle(Fleet(arrivals=arrivals), tmp_path)


def test_core_reads_the_same_times_in_parts_or_at_once(tmp_path):
    """Times that are passed in blocks or at once give the same fleet."""
    (tmp_path / "times.txt").write_text("0\n1e-1\n0.125\n")
    found = Client(scenario("tls1.3/x25519/p256/server", traces=open_library()))
    settled = settle(Fleet(arrivals="file:times.txt"), tmp_path)
    spec = simulation_spec([found], settled, workers=1, seed=1)
    plain = {**spec, "arrivals": {"kind": "times", "at_s": [0.0, 0.1, 0.125]}}
    whole, again = (extension().simulate(virtual_time.spec_text(one), None) for one in (spec, plain))
    assert json.loads(whole) == json.loads(again)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0\nsoon\n", 'line 2: "soon" is not a time'),
        ("0\n-1\n", "line 2"),
        ("0\ninf\n", "line 2"),
        ("0\n1795867200\n", 'line 2: "1795867200" is not a time; accepted: one time per line, '),
        ("0\n1795867200\n", ", 10,000,000 at most"),
        ("0\n1_0\n", 'line 2: "1_0" is not a time'),
        ("0\n\u0661\n", "line 2"),
        ("0\n1\0\n", "line 2"),
        ("0\n" + "9" * 5000, "line 2"),
        ("# none\n5\n4\n", "line 3: 4 comes after 5"),
        ("# none\n", "holds no times"),
    ],
)
def test_wrong_line_of_a_file_is_named(tmp_path, text, says):
    path = tmp_path / "times.txt"
    path.write_text(text)
    with pytest.raises(InputError, match="accepted: one time per line") as found:
        parse_arrivals(f"file:{path}")
    assert says in str(found.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"clients": 0}, "clients is 0"),
        ({"clients": -5}, "clients is -5"),
        ({"clients": 2.5}, "clients is 2.5"),
        ({"replications": True}, "replications is True"),
        ({"max_handshakes": "many"}, "max_handshakes is 'many'"),
        ({"timeout_s": 0.0}, "timeout is 0"),
        ({"timeout_s": 1e12}, "timeout is 1e+12 s; accepted: 1e-09 to 1e+09 s"),
        ({"retry": ""}, 'retry ""'),
        ({"retry": "base"}, 'there is no "base"; accepted: base=1s,'),
        ({"admission": "rate=1e-9/s"}, "a rate of 1e-9/s; accepted: 1e-06/s to 1,000,000,000/s"),
        ({"timeout_s": float("inf")}, "timeout is inf"),
        ({"retries": -1}, "retries is -1"),
        ({"resumption": 1.5}, "resumption is 1.5"),
        ({"resumption": float("nan")}, "resumption is nan"),
        ({"max_handshakes": 0}, "max handshakes is 0"),
        ({"accept_queue": -1}, "accept queue is -1"),
        ({"replications": 0}, "replications is 0"),
        ({"clients": 100, "replications": 3}, "a divisor"),
    ],
)
def test_invalid_options_are_refused(options, says):
    with pytest.raises(InputError, match="accepted") as found:
        settle(Fleet(arrivals="poisson:5/s", **options))
    assert says in str(found.value)


@pytest.mark.parametrize("arrivals", ["poisson:1e-9/s", "deterministic:1e-8/s", "bursts:1@1e-9/s"])
def test_clients_beyond_the_end_of_virtual_time_are_refused(arrivals):
    """Virtual time ends after 584 years; later clients would silently be missing from every count."""
    with pytest.raises(
        InputError, match=r"clients is 200 and .* years for them; accepted: 100 years at most"
    ):
        settle(Fleet(arrivals=arrivals, clients=200))
    # At this rate the clients come within the limit.
    assert settle(Fleet(arrivals="poisson:1e-7/s", clients=200)).clients == 200


@pytest.mark.parametrize(
    ("arrivals", "clients", "workers", "many"),
    [
        ("storm:1s", 1_000_000, 1, 1_000_000),
        ("storm:0", 1_000_000, 1, 1_000_000),
        ("storm:10000s", 1_000_000, 1, 15),
        ("poisson:9000/s", 1_000_000, 1, 71_000),
        ("poisson:100/s", 1_000_000, 1, 15),
        ("bursts:5000@1/h", 1_000_000, 1, 5_000),
    ],
)
def test_number_of_concurrent_clients_is_estimated_in_advance(arrivals, clients, workers, many):
    found = Client(scenario("tls1.3/x25519/p256/server", traces=open_library()))
    settled = settle(Fleet(arrivals=arrivals, clients=clients))
    assert at_once([found], settled, workers) == pytest.approx(many, rel=0.15)


def test_fleet_larger_than_memory_is_refused(monkeypatch):
    monkeypatch.setattr(memory_limit, "free_bytes", lambda: 1 << 30)
    found = [Client(scenario("tls1.3/x25519/p256/server", traces=open_library()))]
    check_room(found, settle(Fleet(arrivals="storm:1s", clients=300_000)), 1)
    with pytest.raises(InputError, match=r"about 1,000,000 of them .* 2\.8 GiB .* 1\.0 are free; accepted"):
        check_room(found, settle(Fleet(arrivals="storm:1s", clients=1_000_000)), 1)
    with pytest.raises(InputError, match="would be in progress at once"):
        check_room(found, settle(Fleet(arrivals="storm:1s", clients=100_000)), 1, engines=True)
    # If clients are served as they come, any number of them fits.
    check_room(found, settle(Fleet(arrivals="poisson:100/s", clients=1_000_000_000)), 1)


def test_file_of_times_sets_the_number_of_clients(tmp_path):
    (tmp_path / "times.txt").write_text("0\n1\n2\n")
    fleet = Fleet(arrivals="file:times.txt")
    assert settle(fleet, tmp_path).clients == 3
    with pytest.raises(InputError, match="3 times"):
        settle(Fleet(arrivals="file:times.txt", clients=4), tmp_path)
    with pytest.raises(InputError, match="times from a file: 1"):
        settle(Fleet(arrivals="file:times.txt", replications=3), tmp_path)


def test_storm_with_backoff_has_default_timeout_and_retries():
    plain, backoff = (settle(Fleet(arrivals=f"storm:10s{more}")) for more in ("", "+backoff"))
    assert (plain.retry, plain.timeout_s, plain.warmup) == (None, None, 0)
    assert backoff.timeout_s == 30.0
    assert backoff.retry is not None
    assert (backoff.retry["attempts"], backoff.retry["factor"], backoff.retry["jitter"]) == (11, 2.0, 1.0)
    alike = settle(Fleet(arrivals="storm:10s", retries=3))
    assert alike.retry is not None
    assert (alike.retry["attempts"], alike.retry["factor"], alike.retry["jitter"]) == (4, 1.0, 0.0)
