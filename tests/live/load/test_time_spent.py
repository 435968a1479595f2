"""The time of sampled handshakes by message, on both sides, for a fast and a slowed client."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

import shakedown
from live.load import servers
from live.serve.serving import ask, serving
from shakedown.errors import InputError
from shakedown.live.load_test.time_spent import read_halves, time_spent
from shakedown.schema.base import decode
from shakedown.schema.identity import StackId
from shakedown.schema.live import SampledHandshakes
from shakedown.schema.serving import HalfMessage, HalfOperation, HalfTrace

SUITE = "tls1.3/x25519/p256/server"
SHORT = ("--rate", "50/s", "--arrivals", "deterministic", "--duration", "1s", "--clients", "4")
SLOW = "cortex-m4"
"""A device a thousand times slower than any test machine, so that not even a busy one takes as long."""
RECENT = 15
"""Number of handshakes whose median time gives a slowed client's factor."""
DURATIONS_S = (1, 2, 4, 8, 16)
"""On a busy machine the clients' thread is preempted in most handshakes: a run is repeated for longer,
until enough of its samples are left."""


def message(index: int, sender: str, name: str, us: float, waited_us: float = 0.0) -> HalfMessage:
    return HalfMessage(
        index=index,
        sender=sender,
        name=name,
        flight=1,
        unit=1,
        retransmissions=0,
        bytes=10,
        us=us,
        waited_us=waited_us,
    )


def operation(side: str, place: int | None, us: float) -> HalfOperation:
    return HalfOperation(
        side=side,
        message=place,
        operation="sign",
        algorithm="ecdsa",
        parameters="p256",
        class_="signature",
        us=us,
        count=1,
        bytes=0,
    )


def half(side: str, messages: list[HalfMessage], **changes: object) -> HalfTrace:
    usual = HalfTrace(
        kind="live",
        side=side,
        suites=(SUITE,),
        stack=StackId(name="openssl", version="3"),
        protocol="tls1.3",
        cipher_suite="TLS_AES_128_GCM_SHA256",
        group="x25519",
        resumed=False,
        client_address="127.0.0.1:1000",
        ended_unix_s=100.0,
        clock="tsc",
        counter="ns",
        connect_us=40.0 if side == "client" else None,
        total_us=sum(one.us for one in messages) + 5.0,
        unattributed_us=5.0,
        messages=tuple(messages),
        operations=(),
    )
    return msgspec.structs.replace(usual, **changes)


CLIENT = [message(0, "client", "ClientHello", 30.0), message(1, "server", "ServerHello", 20.0, 300.0)]
SERVER = [
    message(0, "client", "ClientHello", 7.0),
    message(1, "server", "ServerHello", 100.0),
    message(2, "server", "Certificate", 9.0),
]


def sampled(*halves: HalfTrace, preempted: int = 0) -> SampledHandshakes:
    return SampledHandshakes(kept=halves, preempted=preempted)


def test_no_samples_give_no_time_spent():
    assert time_spent(sampled()) is None


def test_client_half_alone_gives_client_times():
    found = time_spent(sampled(half("client", CLIENT), preempted=2))
    assert (found.sampled, found.handshakes, found.joined, found.preempted) == (1, 1, 0, 2)
    assert [(step.name, step.server) for step in found.steps] == [
        ("ClientHello", None),
        ("ServerHello", None),
    ]
    assert found.steps[1].client.waited_us == 300.0
    assert found.server_unattributed_us is None


def test_halves_of_a_handshake_are_joined_by_address_and_time():
    client = half("client", CLIENT, operations=(operation("client", 1, 15.0),))
    other = half("client", CLIENT, client_address="127.0.0.1:2000")
    servers_halves = [
        # An hour ago another client had this address.
        half("server", [message(0, "client", "ClientHello", 9e9)], ended_unix_s=100.0 - 3600.0),
        half("server", SERVER, ended_unix_s=100.1, operations=(operation("server", 1, 80.0),)),
    ]
    found = time_spent(sampled(client, other), servers_halves)
    assert (found.sampled, found.handshakes, found.joined) == (2, 1, 1)
    names = [(step.sender, step.name) for step in found.steps]
    assert names == [("client", "ClientHello"), ("server", "ServerHello"), ("server", "Certificate")]
    hello = found.steps[1]
    assert (hello.client.cryptography_us, hello.client.other_us, hello.client.waited_us) == (15.0, 5.0, 300.0)
    assert (hello.server.cryptography_us, hello.server.other_us) == (80.0, 20.0)
    # The client's half does not have this message, so reading it took no time.
    assert found.steps[2].client.other_us == 0.0
    assert found.steps[2].server.other_us == 9.0


def test_means_use_the_most_frequent_message_sequence():
    longer = [*CLIENT, message(2, "server", "NewSessionTicket", 1.0)]
    twice = [message(0, "client", "ClientHello", 50.0), CLIENT[1]]
    found = time_spent(sampled(half("client", CLIENT), half("client", longer), half("client", twice)))
    assert (found.sampled, found.handshakes) == (3, 2)
    assert found.steps[0].client.other_us == 40.0


def client_us(found: dict) -> float:
    """The whole time of a client's handshake, waits included."""
    shares = [step["client"] for step in found["steps"]]
    parts = sum(one["cryptography_us"] + one["other_us"] + one["waited_us"] for one in shares)
    return parts + found["connect_us"] + found["client_unattributed_us"]


def sampling(
    load, target: str, *arguments: str | Path, least: int = 1, out: Path | None = None
) -> tuple[dict, int]:
    """A load's object with at least `least` usable samples, and the number of starts of all loads."""
    starts = 0
    for seconds in DURATIONS_S:
        kept: tuple[str | Path, ...] = ()
        if out is not None:
            out.unlink(missing_ok=True)
            kept = ("--traces-out", out)
        status, found, err = load(target, *arguments, *SHORT, "--duration", f"{seconds}s", *kept)
        assert status == 0, err
        assert found["planned"] == 50 * seconds
        starts += found["planned"] + 1
        if found["time_spent"] is not None and found["time_spent"]["handshakes"] >= least:
            return found, starts
    pytest.fail(f"the clients' thread was preempted in nearly all of {starts} handshakes")


@pytest.mark.parametrize("suite", [SUITE, "tls1.2/rsa/rsa2048/server", "wtls/ecdh_ecdsa/163k/mutual"])
def test_both_halves_of_our_server_are_joined(load, tmp_path, suite):
    traces, kept = tmp_path / "server.jsonl", tmp_path / "client.jsonl"
    with serving(suite, "--traces-out", traces, "--sample", 1) as server:
        options = ("--trace-count", "8", "--server-traces", traces)
        found, starts = sampling(load, server.target, suite, *options, least=3, out=kept)
        counted = server.stop()
    assert counted["traces"] == starts
    spent = found["time_spent"]
    # Each preempted handshake is replaced by another sample, as long as there are others.
    assert spent["sampled"] <= 8 <= spent["sampled"] + spent["preempted"]
    assert spent["handshakes"] == spent["joined"] <= spent["sampled"]
    assert len(read_halves(kept)) == spent["sampled"]
    assert all(step["server"] is not None for step in spent["steps"])
    names = [(step["from"], step["name"]) for step in spent["steps"]]
    assert names[0] == ("client", "ClientHello")
    assert ("server", "Finished") in names
    # Public-key operations are cryptography on the side that does them.
    for side in ("client", "server"):
        assert sum(step[side]["cryptography_us"] for step in spent["steps"]) > 0.0
    # Each side waits at least for the other side's work.
    hello = next(step for step in spent["steps"] if step["name"] == "ServerHello")
    worked = spent["steps"][0]["server"]
    assert hello["client"]["waited_us"] > worked["cryptography_us"] + worked["other_us"]
    # The time from start to end of the handshake, as the generator measured it, without lateness.
    times = found["handshake_s"]
    assert 0.0 < client_us(spent) * 1e-6 <= times["max"]


def test_halves_are_joined_where_clients_reset_their_connections(load, tmp_path):
    """A client that closes with unread tickets resets the connection; the server still knows its address."""
    traces = tmp_path / "server.jsonl"
    suite = "tls1.3/x25519/p256/mutual"
    with serving(suite, "--traces-out", traces, "--sample", 1, "--tickets", 2) as server:
        load(server.target, suite, *SHORT)
    halves = read_halves(traces)
    assert len(halves) == 51
    assert all(half.client_address is not None for half in halves)


def test_foreign_server_gives_only_client_times(load, start, peer, pair, tmp_path):
    server = start(servers.s_server(peer("openssl"), tmp_path, pair))
    spent = sampling(load, server.target, "--trace-count", "5")[0]["time_spent"]
    assert (spent["joined"], spent["handshakes"]) == (0, spent["sampled"])
    assert {step["server"] for step in map(dict, spent["steps"])} == {None}


def test_slowed_client_takes_the_time_of_the_device(load, tmp_path):
    """The client's work takes `slowdown` times as long; the generator's CPU time does not."""
    traces = tmp_path / "server.jsonl"
    with serving(SUITE, "--traces-out", traces, "--sample", 1, "--handshake-timeout", "300s") as server:
        options = (
            "--emulate-device",
            SLOW,
            "--trace-count",
            "6",
            "--server-traces",
            traces,
            "--timeout",
            "300s",
        )
        found, _ = sampling(load, server.target, SUITE, *options)
    assert found["emulate_device"] == SLOW
    factor = found["slowdown"]
    assert found["completed"] == found["planned"]
    # The factor is the device's time over the median of the endpoint's last handshakes. At least half of
    # those took at least the median, and the generator's CPU time includes them all.
    (predicted,) = shakedown.predict(SUITE, device=SLOW)
    assert factor >= predicted.client_s.estimate * RECENT / 2 / found["generator_cpu_s"]
    spent = found["time_spent"]
    assert (spent["emulate_device"], spent["slowdown"]) == (SLOW, factor)


@pytest.mark.parametrize(("suite", "device"), [(SUITE, SLOW), ("wtls/rsa/rsa1024/server", "nokia-7650")])
def test_slowed_handshakes_take_the_predicted_client_time(load, suite, device):
    """Only the first handshakes are slowed by the ratio measured in memory; later ones are not.

    There is no upper bound, because on a busy machine everything takes longer.
    """
    (predicted,) = shakedown.predict(suite, device=device)
    with serving(suite, "--handshake-timeout", "300s") as server:
        status, found, err = load(
            server.target, suite, "--emulate-device", device, "--arrivals", "closed", "--clients", "1",
            "--duration", "6s", "--timeout", "300s",
        )  # fmt: skip
    assert status == 0, err
    # No handshake's CPU time is below a tenth of the median.
    assert found["handshake_s"]["p50"] > 0.1 * predicted.client_s.estimate


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--emulate-device", "raspberry-pi"), "accepted: with a SUITE"),
        ((SUITE, "--emulate-device", "nothing-of-the-kind"), "nothing-of-the-kind"),
        ((SUITE, "--traces-out", "x.jsonl"), "no handshakes are sampled"),
        ((SUITE, "--trace-count", "0"), "0"),
        (
            (SUITE, "--trace-count", "3", "--traces-out", "/nowhere/x.jsonl"),
            "/nowhere/x.jsonl: cannot be written",
        ),
        ((SUITE, "--trace-count", "3", "--traces-out", __file__), "exists already"),
    ],
)
def test_wrong_input_is_reported_in_one_line(load, arguments, told):
    status, found, err = load("127.0.0.1:1", *arguments, *SHORT)
    assert (status, found) == (2, {})
    assert told in err
    assert err.count("\n") == 1


def test_full_disk_is_reported_with_the_file(load):
    with serving(SUITE) as server:
        status, found, err = load(
            server.target, SUITE, *SHORT, "--trace-count", "3", "--traces-out", "/dev/full"
        )
    told = err.splitlines()[-1]
    assert (status, told) == (1, "error: /dev/full: cannot be written: no space left on device")
    # The run's result is printed although its traces are lost.
    assert found["completed"] > 0


def test_invalid_half_trace_files_are_reported_with_their_line(tmp_path):
    file = tmp_path / "halves.jsonl"
    file.write_text("{}\n")
    with pytest.raises(InputError, match="line 1"):
        read_halves(file)
    for path in (tmp_path / "none", tmp_path, Path("/dev/zero")):
        with pytest.raises(InputError, match="is not a file"):
            read_halves(path)


def test_traces_of_serve_match_the_schema(tmp_path):
    """The line is decoded strictly, and its waits add up to no more than the handshake."""
    traces = tmp_path / "server.jsonl"
    with serving(SUITE, "--traces-out", traces, "--sample", 1) as server:
        ask(server)
        summary = server.stop()
    (line,) = traces.read_text().splitlines()
    found = decode(line, HalfTrace)
    waited_us = sum(one.waited_us for one in found.messages)
    assert 0.0 < waited_us <= summary["handshake_s"]["max"] * 1e6
    assert found.client_address.startswith("127.0.0.1:")
    assert json.loads(line)["connect_us"] is None
