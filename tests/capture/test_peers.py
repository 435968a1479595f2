"""Connections of real peers, compared with Wireshark's decoding."""

from __future__ import annotations

import subprocess
from pathlib import Path

from capture.oracle import Captured, Observed, differences, inspect


def matched(captured: Captured, protocol: str, *, keys: bool) -> list[tuple[dict, Observed]]:
    """Our view and Wireshark's of each connection over one transport."""
    transport = "udp" if protocol == "dtls" else "tcp"
    ours = [one for one in captured.ours(keys=keys) if one["transport"] == transport]
    theirs = captured.theirs(protocol, keys=keys)
    assert sorted(one["client"] for one in ours) == sorted(theirs)
    return [(one, theirs[one["client"]]) for one in ours]


def test_tls_messages_bytes_and_times_match_wireshark(captured: Captured) -> None:
    pairs = matched(captured, "tls", keys=True)
    assert len(pairs) == captured.made
    wrong = {one["client"]: found for one, seen in pairs if (found := differences(one, seen))}
    assert not wrong


def test_dtls_messages_match_wireshark(captured: Captured) -> None:
    pairs = matched(captured, "dtls", keys=True)
    assert len(pairs) == captured.made_datagram
    for one, seen in pairs:
        assert one["complete"], one
        for sender in ("client", "server"):
            names = [message["name"] for message in one["messages"] if message["from"] == sender]
            # Wireshark lists each fragment of a message, so only the sets of names are compared.
            theirs = [name for index, (name, _, _) in enumerate(seen.messages[sender])]
            assert set(names) == set(theirs)
        direction = {"client": "client_to_server", "server": "server_to_client"}
        repeated = one["retransmissions"]
        for sender, key in direction.items():
            assert one["bytes"][key] + repeated[key]["bytes"] == seen.record_bytes[sender]


def test_flights_and_byte_sums_follow_the_protocol(captured: Captured) -> None:
    for one in captured.ours():
        if not one["complete"]:
            continue
        messages = one["messages"]
        assert sum(message["bytes"] for message in messages) == one["bytes"]["total"]
        flights = [message["flight"] for message in messages if message["flight"] is not None]
        assert flights == sorted(flights)
        assert set(flights) == set(range(1, one["flights"] + 1))
        after = [message["name"] for message in messages if message["flight"] is None]
        assert set(after) <= {"NewSessionTicket", "KeyUpdate"}
        if one["protocol"] == "tls1.3":
            retried = any(message["name"] == "HelloRetryRequest" for message in messages)
            undecrypted = one["encrypted"]["client_to_server"]["bytes"] > 0
            # A client's compatibility ChangeCipherSpec may fall into the server's flight (RFC 8446, D.4).
            third = [message["name"] for message in messages if message["flight"] == 3]
            early = one["flights"] == 5 and third == ["ChangeCipherSpec"]
            assert one["flights"] == (5 if retried or early else 3) or (undecrypted and one["flights"] == 2)
        elif one["protocol"].startswith("tls"):
            assert one["flights"] == (3 if one["resumed"] else 4)
        assert set(one["problems"]) <= {"the key log has no secrets of this connection"}


def test_resumed_handshakes_are_detected(captured: Captured) -> None:
    resumed = [one["protocol"] for one in captured.ours() if one["resumed"]]
    assert sorted(resumed) == ["tls1.2", "tls1.2", "tls1.3"]


def test_resumed_handshakes_have_the_suite_of_their_session(captured: Captured) -> None:
    """OpenSSL's ticket, session identifier, and TLS 1.3 ticket, which is visible only with the key log."""
    resumed = [one["suite"] for one in captured.ours() if one["resumed"]]
    assert resumed == [
        "tls1.3/x25519/rsa2048/server/resumed/aes256-gcm",
        "tls1.2/ecdhe_rsa+x25519/rsa2048/server/ticket/aes256-gcm",
        "tls1.2/ecdhe_rsa+x25519/rsa2048/server/resumed/aes256-gcm",
    ]
    closed = [one["suite"] for one in captured.ours(keys=False) if one["resumed"]]
    assert closed == ["tls1.3/psk_dhe+x25519/aes256-gcm", *resumed[1:]]


def test_resumed_handshakes_without_the_full_one_have_no_suite(captured: Captured, tmp_path: Path) -> None:
    resumed = [one for one in captured.ours() if one["resumed"]]
    path = tmp_path / "resumed.pcapng"
    ports = " || ".join(f"tcp.port == {one['client'].rpartition(':')[2]}" for one in resumed)
    subprocess.run(["tshark", "-r", captured.path, "-Y", ports, "-w", path], check=True, capture_output=True)
    told = inspect(captured.program, path, captured.key_log)
    assert [one["resumed"] for one in told] == [True, True, True]
    assert [one["suite"] for one in told] == ["tls1.3/psk_dhe+x25519/aes256-gcm", None, None]


def test_failed_handshakes_have_their_alerts(captured: Captured) -> None:
    failed = [one for one in captured.ours() if one["transport"] == "tcp" and not one["complete"]]
    refused = [alert["description"] for one in failed for alert in one["alerts"] if alert["level"] == "fatal"]
    assert refused == ["handshake_failure"]
    after = [
        one
        for one in captured.ours()
        for alert in one["alerts"]
        if alert["description"] == "certificate_required"
    ]
    assert len(after) == 1


def test_readable_messages_are_the_same_without_keys(captured: Captured) -> None:
    with_keys = {one["client"]: one for one in captured.ours()}
    readable = {"ClientHello", "ServerHello", "HelloRetryRequest", "ChangeCipherSpec"}
    for one in captured.ours(keys=False):
        full = with_keys[one["client"]]
        if one["protocol"] != "tls1.3":
            assert [(m["name"], m["bytes"]) for m in one["messages"]] == [
                (m["name"], m["bytes"]) for m in full["messages"]
            ]
            continue
        expected = [
            (m["from"], m["name"], m["bytes"], m["time_s"]) for m in full["messages"] if m["name"] in readable
        ]
        assert [(m["from"], m["name"], m["bytes"], m["time_s"]) for m in one["messages"]] == expected
        if full["encrypted"]["server_to_client"]["bytes"] > 0:
            continue  # a peer that logs no keys
        undecrypted = {
            key: one["encrypted"][key]["bytes"] for key in ("client_to_server", "server_to_client")
        }
        names = {"client_to_server": "client", "server_to_client": "server"}
        for key, sender in names.items():
            hidden = [
                m
                for m in full["messages"]
                if m["from"] == sender and m["flight"] and m["name"] not in readable
            ]
            assert undecrypted[key] == sum(m["bytes"] for m in hidden), one["client"]


def test_waits_are_the_sum_of_peer_and_network_time(captured: Captured) -> None:
    opened_in_s = captured.opened_in_s()
    for one in captured.ours():
        for message in one["messages"]:
            assert message["wait_s"] >= 0
            if message["peer_s"] is not None:
                assert abs(message["peer_s"] + message["network_s"] - message["wait_s"]) < 1e-9
        if one["transport"] == "tcp":
            # The shortest round trip of a connection is at most that of its opening.
            assert 0 <= one["round_trip"]["server_side_s"] <= opened_in_s[one["client"]] + 1.5e-6
            first_answer = next(message for message in one["messages"] if message["from"] == "server")
            assert first_answer["peer_s"] is not None


def test_key_log_inside_the_capture_is_used(captured: Captured, tmp_path: Path) -> None:
    path = tmp_path / "with-secrets.pcapng"
    subprocess.run(
        ["editcap", "--inject-secrets", f"tls,{captured.key_log}", captured.path, path],
        check=True,
        capture_output=True,
    )
    assert inspect(captured.program, path) == captured.ours()
