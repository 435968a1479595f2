"""Errors in profiles are one line: file, place, accepted values."""

from __future__ import annotations

import os

import pytest

from shakedown.errors import InputError
from shakedown.profiles import (
    bearer_names,
    load_bearer,
    load_device,
    parse_bearer,
    parse_device,
    this_machine_path,
)
from shakedown.profiles.registry import shipped_names
from shakedown.profiles.software import parse_software

HEAD = {
    "schema": 1,
    "name": "board",
    "title": "A board",
    "chip": "C",
    "clock_hz": 80e6,
    "library": "L 1",
    "build": "-O2",
    "date": "2024",
    "source": ["https://example.org"],
}
SIGN = {"operation": "sign", "algorithm": "ecdsa", "parameters": "p256"}
LINK = {
    "schema": 2,
    "name": "link",
    "title": "A link",
    "date": "2024",
    "source": ["https://example.org"],
    "up_bps": 9600,
    "down_bps": 9600,
    "traversal_ms": 100,
}


def device(**changes: object) -> dict[str, object]:
    return {key: value for key, value in {**HEAD, **changes}.items() if value is not ...}


def bearer(**changes: object) -> dict[str, object]:
    return {key: value for key, value in {**LINK, **changes}.items() if value is not ...}


def cell(**tables: object) -> dict[str, object]:
    return bearer(cell={"medium": "m", "up_bps": 1e5, "down_bps": 1e5, **tables})


ACCESS = {
    "opportunity_ms": 10,
    "preambles": 54,
    "attempts": 10,
    "response_ms": 5,
    "connect_ms": 10,
    "backoff_ms": 20,
}
CSMA = {
    "slot_ms": 0.01,
    "window": 16,
    "max_window": 1024,
    "attempts": 7,
    "frame_ms": 0.1,
    "acknowledgement_ms": 0.1,
    "idle_ms": 0.03,
}
SENSE = {"unit_ms": 0.32, "min_exponent": 3, "max_exponent": 5, "busy": 4, "turnaround_ms": 0.2}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (
            device(primitive=[{**SIGN, "time": 3}]),
            ["primitive 1 (sign ecdsa p256)", "time lacks a unit", "time_us"],
        ),
        (device(primitive=[{**SIGN, "time_ms": -1}]), ["time_ms is -1", "at least 0"]),
        (device(primitive=[{**SIGN, "time_ms": "3"}]), ["time_ms is '3'", "a number"]),
        (device(primitive=[{**SIGN, "time_ms": 1, "mean_ms": 1}]), ["not exactly one form of cost"]),
        (device(primitive=[{**SIGN, "time_ms": 1, "time_us": 1}]), ["time is given in", "one unit"]),
        (
            device(primitive=[{**SIGN, "mean_ms": 1, "min_ms": 2, "max_ms": 3}]),
            ["mean is not between min and max"],
        ),
        (device(primitive=[{**SIGN, "mean_ms": 1, "min_ms": 0.5}]), ["only one of min and max is given"]),
        (device(primitive=[{**SIGN, "base_ms": 1}]), ["base without round"]),
        (device(primitive=[{**SIGN, "time_ms": 1, "engery_j": 1}]), ["unknown key 'engery_j'", '"energy_j"']),
        (
            device(primitive=[{**SIGN, "operation": "sing", "time_ms": 1}]),
            ["unknown operation 'sing'", '"sign"'],
        ),
        (device(primitive=[{**SIGN, "algorithm": "rssa", "time_ms": 1}]), ["no algorithm 'rssa'", '"rsa"']),
        (
            device(primitive=[{**SIGN, "parameters": "p25", "time_ms": 1}]),
            ["unknown parameters 'p25'", "p256"],
        ),
        *(
            (
                device(primitive=[{"time_ms": 1, **dict(zip(SIGN, triple.split(), strict=True))}]),
                [f"primitive 1: unknown parameters '{triple.split()[2]}' of {triple.split()[1]}; ", said],
            )
            for triple, said in (
                ("sign ecdsa p999", "accepted: a curve such as p256"),
                ("derive ecdh sect163k2", "accepted: x25519, x448, or a curve"),
                ("sign rsa rsa01024", "accepted: rsaBITS"),
                ("derive dh ffdhe2047", "accepted: dhBITS, ffdhe2048"),
                ("derive dh wtlsdh1024", "wtlsdh512, wtlsdh768"),
            )
        ),
        (
            device(
                primitive=[{"operation": "digest", "algorithm": "sha256", "parameters": "x", "per_kib_us": 1}]
            ),
            ["digest takes no parameters"],
        ),
        (device(primitive=[{"operation": "digest", "algorithm": "sha256"}]), ["no cost", "per_kib_us"]),
        (
            device(primitive=[{**SIGN, "time_ms": 1}, {**SIGN, "time_ms": 2}]),
            ["primitive 2", "duplicate primitive sign ecdsa p256"],
        ),
        (device(primitive=[{**SIGN, "time_ms": 1}], library=...), ["library and build are missing"]),
        (device(clock_hz=0), ["clock_hz is 0", "at least 1000"]),
        (device(clock_hz=80), ["clock_hz is 80", "at least 1000 and at most 1e+12"]),
        (device(clock_hz=1e300), ["clock_hz is 1e+300", "at most 1e+12"]),
        (device(primitive=[{**SIGN, "time_ms": 1e300}]), ["time_ms is 1e+300", "value from 1e-18 to"]),
        (device(primitive=[{**SIGN, "time_ms": 1e-300}]), ["time_ms is 1e-300", "with an absolute value"]),
        (device(primitive=[{**SIGN, "time_ms": float("inf")}]), ["time_ms is inf", "a number at least 0"]),
        (device(primitive=[{**SIGN, "time_ms": float("nan")}]), ["time_ms is nan", "a number at least 0"]),
        (device(primitive=[{**SIGN, "time_ms": 10**400}]), ["time_ms is 1000", "with an absolute value"]),
        (device(primitive=[{**SIGN, "time_ms": 0}]), ["the time is 0", "a note with the reason"]),
        (device(overhead={"per_byte_us": 1e300}), ["[overhead]: per_byte_us is 1e+300"]),
        (device(energy={"battery_j": 1e-300}), ["[energy]: battery_j is 1e-300"]),
        (device(chip=...), ["chip is missing"]),
        (device(source=[]), ["source is empty"]),
        (device(schema=2), ["schema is 2", "accepted: 1"]),
        (device(primitives=[]), ["unknown key 'primitives'", '"primitive"']),
        (device(overhead={"per_handshake": 1}), ["[overhead]", "unknown key 'per_handshake'"]),
        (
            device(overhead={"handshake": [{"protocol": "tls1.3", "side": "client", "mean_us": 1}]}),
            ["[overhead]: handshake has entries without message entries; accepted: both"],
        ),
    ],
)
def test_bad_device_profile_is_reported_in_one_line(document, words):
    with pytest.raises(InputError) as caught:
        parse_device(document, "boards/board.toml")
    line = str(caught.value)
    assert line.startswith("boards/board.toml: ")
    assert "\n" not in line
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (bearer(schema=1), ["schema is 1", "accepted: 2"]),
        (bearer(up_bps=-9600), ["up_bps is -9600", "above 0"]),
        (bearer(up_bps=...), ["up_bps is missing"]),
        (bearer(up=9600), ["up lacks a unit", "up_bps"]),
        (bearer(traversal_ms=-1), ["traversal_ms is -1"]),
        (bearer(loss=1.5), ["loss is 1.5", "at most 0.9"]),
        (bearer(link_encryption="wpe"), ["link_encryption is 'wpe'", '"wep"']),
        (bearer(energy={"tail_w": 1.0}), ["[energy]: tail_w is given alone", "both tail_w and tail_s"]),
        (bearer(energy={"send_w": 1.0}), ["[energy]: send_w is given alone", "both send_w and receive_w"]),
        (bearer(energy={"setup_j": 1.0}), ["[energy]: setup_j is given without setup_ms"]),
        (bearer(energy={"spread": 0.5}), ["[energy]: spread is 0.5", "at least 1"]),
        (bearer(energy={"tail_w": 1.0, "tail_s": 1e18}), ["[energy]: tail_s is 1e+18", "at most 1e+09"]),
        (bearer(mtu_bytes=10**12), ["mtu_bytes is 1000000000000", "at most 1e+06"]),
        (bearer(packet_overhead_bytes=10**9), ["packet_overhead_bytes is 1000000000", "at most 65535"]),
        (bearer(delay_holds_ms=1e15), ["delay_holds_ms is 1000000000000000.0", "at most 1e+12"]),
        (bearer(up_bps=1e-17), ["up_bps is 1e-17", "above 0.001"]),
        (bearer(setup_ms=1e18), ["setup_ms is 1e+18", "at most 1e+12"]),
        (bearer(setup_ms={"minimum": 0, "median": 1e-9, "p95": 9}), ["setup_ms", "a larger median"]),
        (bearer(setup_ms={"quantiles": [[0, 1], [1, 1e15]]}), ["quantiles"]),
        (bearer(mtu_bytes=5), ["mtu_bytes is 5", "at least 8"]),
        (bearer(mtu_bytes=28), ["mtu_bytes is 28", "more than the bytes of the headers, 28"]),
        (bearer(up={"rate_bps": 1}), ["up_bps and [up] are both given"]),
        (bearer(setup_ms={"minimum": 5, "median": 4, "p95": 9}), ["setup_ms", "minimum < median < p95"]),
        (bearer(setup_ms={"quantiles": [[0, 1], [0.5, 9]]}), ["quantiles", "the last 1"]),
        (cell(random_access={**ACCESS, "preambles": 0}), ["[cell]: [random_access]: preambles is 0", "1"]),
        (cell(random_access={**ACCESS, "attempts": 10**12}), ["attempts is 1000000000000", "10000"]),
        (cell(random_access={**ACCESS, "grants": 0}), ["grants is 0", "at least 1"]),
        (cell(random_access={**ACCESS, "opportunity_ms": 0}), ["opportunity_ms is 0", "at least 0.001"]),
        (cell(random_access={**ACCESS, "backoff_ms": 1e15}), ["backoff_ms is 1000000000000000.0", "1e+12"]),
        (cell(circuits={"channels": 0}), ["[circuits]: channels is 0", "at least 1"]),
        (cell(circuits={"channels": 100_001}), ["[circuits]: channels is 100001", "at most 100000"]),
        (cell(csma={**CSMA, "slot_ms": 0}), ["[csma]: slot_ms is 0", "at least 1e-06"]),
        (cell(csma={**CSMA, "max_window": 8}), ["max_window is 8", "window or more"]),
        (cell(csma={**CSMA, "window": 10**12}), ["window is 1000000000000", "at most 1e+06"]),
        (cell(aloha={"channels": 0}), ["[aloha]: channels is 0", "at least 1"]),
        (cell(aloha={"sense": {**SENSE, "max_exponent": 21}}), ["max_exponent is 21", "at most 20"]),
        (cell(aloha={"sense": {**SENSE, "max_exponent": 2}}), ["max_exponent is 2", "min_exponent or more"]),
        (cell(rach=ACCESS), ["[cell]: unknown key 'rach'", " random_access, circuits, csma, aloha, "]),
        (cell(aloha={"channels": 1, "sensing": SENSE}), ["[aloha]: unknown key 'sensing'", "sense"]),
        (bearer(set_up_ms=5), ["unknown key 'set_up_ms'", ", setup_ms", ", cell"]),
        (cell(up_bps=1e18), ["[cell]: up_bps is 1e+18", "at most 1e+15"]),
        (bearer(half_duplex=1), ["half_duplex is 1", "true or false"]),
        (bearer(mtu_bytes=1500.5), ["mtu_bytes", "a whole number"]),
        (bearer(traversal_sd=1), ["traversal_sd lacks a unit", "traversal_sd_ms"]),
    ],
)
def test_bad_bearer_profile_is_reported_with_its_key(document, words):
    with pytest.raises(InputError) as caught:
        parse_bearer(document, "links/link.toml")
    for word in ["links/link.toml: ", *words]:
        assert word in str(caught.value)


def test_cost_is_given_by_rounds_or_cycles():
    rounds = {
        **SIGN,
        "algorithm": "mldsa",
        "parameters": "mldsa44",
        "base_ms": 1,
        "round_ms": 2,
        "rounds_mean": 4,
    }
    cycles = {**SIGN, "time_cycles": 80_000}
    parsed = parse_device(device(primitive=[rounds, cycles]), "x").costs
    assert parsed["sign", "mldsa", "mldsa44"].mean_s == pytest.approx(9e-3)
    assert parsed["sign", "mldsa", "mldsa44"].sd_s == pytest.approx(2e-3 * 12**0.5)
    assert parsed["sign", "mldsa", "mldsa44"].low_s == pytest.approx(3e-3)
    assert parsed["sign", "ecdsa", "p256"].mean_s == pytest.approx(1e-3)


@pytest.fixture
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "shakedown" / "devices").mkdir(parents=True)
    return tmp_path / "shakedown" / "devices"


def test_unknown_names_suggest_the_nearest(home):
    with pytest.raises(InputError, match='did you mean "nokia-7650"'):
        load_device("nokia7650")
    with pytest.raises(InputError, match='did you mean "gsm-csd"'):
        load_bearer("gsm-cds")


def test_this_machine_needs_to_be_measured_first(home):
    with pytest.raises(InputError, match="shakedown devices measure"):
        load_device("this-machine")
    assert this_machine_path() == home / "this-machine.toml"


def test_user_profile_with_a_shipped_name_is_refused(home):
    (home / "phone.toml").write_text("schema = 1", encoding="utf-8")
    with pytest.raises(InputError, match="duplicate name 'phone'"):
        load_device("server")


def test_files_that_are_no_profiles_are_ignored_in_the_user_folder(home):
    folder = home.with_name("bearers")
    folder.mkdir()
    os.mkfifo(folder / "pipe.toml")
    for name in (".toml", "a:b.toml", "a*.toml", os.fsdecode(b"\xff.toml")):
        (folder / name).touch()
    (folder / "my-link.toml").touch()
    assert set(bearer_names()) - set(shipped_names("bearers")) == {"my-link"}
    with pytest.raises(InputError, match="unknown bearer 'pipe'"):
        load_bearer("pipe")


def test_profile_name_must_equal_its_file_name(home):
    lines = [f"{key} = {value!r}".replace("'", '"') for key, value in HEAD.items()]
    (home / "mine.toml").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match="name is 'board'"):
        load_device("mine")
    assert load_device(str(home / "mine.toml")).title == "A board"


@pytest.mark.parametrize("content", [b"schema = ", b"\xff\xfe", b"[[[["])
def test_file_that_is_not_toml_is_refused(home, content):
    (home / "torn.toml").write_bytes(content)
    with pytest.raises(InputError, match=r"torn\.toml(, line 1[^:]*)?: not"):
        load_device("torn")


def test_missing_path_is_reported(home):
    with pytest.raises(InputError, match=r"nowhere\.toml: no such file"):
        load_device("nowhere.toml")


@pytest.mark.parametrize(
    ("assumed", "words"),
    [
        ({"clock": "a guess"}, ["[assumed]", "'clock' is not in the profile", '"clock_hz"']),
        ({"energy.active_w": "a guess"}, ["'energy.active_w' is not in the profile"]),
        ({"clock_hz": ""}, ["clock_hz is ''", "a non-empty string"]),
        ({"clock_hz": 1}, ["clock_hz is 1", "a non-empty string"]),
    ],
)
def test_assumed_entries_must_name_profile_keys_with_reasons(assumed, words):
    with pytest.raises(InputError) as caught:
        parse_device(device(assumed=assumed, energy={"idle_w": 1}), "boards/board.toml")
    for word in words:
        assert word in str(caught.value)
    with pytest.raises(InputError, match=r"\[assumed\]: 'latency' is not in the profile"):
        parse_bearer(bearer(assumed={"latency": "a guess"}), "links/link.toml")


def test_assumed_entries_are_kept_and_exported():
    reasons = {"clock_hz": "its highest", "energy.idle_w": "asleep"}
    parsed = parse_device(device(assumed=reasons, energy={"idle_w": 1}), "x")
    assert parsed.assumed == reasons
    assert parsed.as_json()["assumed"] == reasons
    link = parse_bearer(bearer(assumed={"traversal_ms": "half the round trip"}), "x")
    assert link.as_json()["assumed"] == {"traversal_ms": "half the round trip"}


SOFTWARE = {
    "schema": 1,
    "name": "it",
    "title": "A server",
    "tickets": 1,
    "resumption_tickets": 1,
    "session_ids": True,
    "write_bytes": 0,
    "source": ["https://example.org"],
}


def library(**changes: object) -> dict[str, object]:
    return {"library": {"name": "its", "other": [1.0, 2.0], "primitives": {}, **changes}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"connection": [float("inf"), 1.1]}, r"connection\[0\]: expected a number <= 1000000"),
        ({"work": [float("nan"), 1.1]}, r"work\[0\]: expected a number >= 1e-06"),
        ({"work": [1.0, float("inf")]}, r"work\[1\]: expected a number <= 1000"),
        ({"work": [1e-308, 1.1]}, r"work\[0\]: expected a number >= 1e-06"),
        (library(primitives={"sign ecdsa q256": [1.0, 1.1]}), "unknown parameters 'q256' of ecdsa"),
        (
            library(primitives={"sign ecdsa p999": [1.0, 1.1]}),
            r"library\.primitives: 'sign ecdsa p999': unknown parameters 'p999' of ecdsa; accepted: a curve",
        ),
        (library(primitives={"sing ecdsa p256": [1.0, 1.1]}), r"unknown operation 'sing'.*\"sign\""),
        (library(primitives={"sign  ecdsa p256": [1.0, 1.1]}), "sign has no algorithm ''"),
        (library(primitives={"cipher aes-128-gcm ": [1.0, 1.1]}), "accepted: OPERATION ALGORITHM PARAMETERS"),
        (library(primitives={"import rsa rsa2048": [1.0, 1.1]}), "of a public-key operation"),
        (library(primitives={"sign ecdsa p256": [1e300, 1.1]}), "expected a number <= 1000000"),
    ],
)
def test_bad_server_software_is_reported_in_one_line(changes, said):
    """An unknown name would change no prediction; an extreme factor would overflow one."""
    with pytest.raises(InputError, match=said) as caught:
        parse_software({**SOFTWARE, **changes}, "it.toml")
    assert str(caught.value).startswith("it.toml: ")
    assert "\n" not in str(caught.value)
