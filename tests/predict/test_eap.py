"""Handshakes inside EAP: the model's arithmetic, and `predict --carrier eap`."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shakedown.cli import exit_status
from shakedown.models import eap
from shakedown.schema.options import EapOptions

P256 = "tls1.3/x25519/p256/mutual"
LONG = "tls1.3/x25519mlkem768/mldsa65@mldsa65@mldsa65/mutual"


@settings(deadline=None, max_examples=50)
@given(
    flights=st.lists(st.integers(1, 9000), min_size=3, max_size=4),
    client=st.integers(40, 1400),
    server=st.integers(40, 1400),
)
def test_packets_alternate_and_round_trips_match_the_formula(flights, client, server):
    sides = [("client", "server")[i % 2] for i in range(len(flights))]
    packets = eap.tls_packets(list(zip(sides, flights, strict=True)), client, server)
    assert [one.sender for one in packets] == ["client", "server"] * (len(packets) // 2)
    counts = {"client": [], "server": []}
    for sender, size in zip(sides, flights, strict=True):
        counts[sender].append(-(-size // (client if sender == "client" else server)))
    found = eap.exchanged(packets)
    # The identity, an answer to the server's start and to each of its fragments, and one to each
    # acknowledgement of a fragment that others follow.
    assert found.round_trips == 2 + sum(counts["server"]) + sum(one - 1 for one in counts["client"])
    assert found.fragments == sum(map(sum, counts.values()))
    overhead = found.eap_bytes - sum(flights)
    announced = sum(count > 1 for side in counts.values() for count in side)
    # Identity, and EAP-Success; all other packets are EAP-TLS.
    assert overhead == 5 + 24 + 4 + 6 * (len(packets) - 2) + 4 * announced


def test_authentication_matches_the_rfc_examples():
    # RFC 5216 section 2.1.1 with one fragment a flight: four responses after EAP-Response/Identity's request.
    flights = [("client", 100), ("server", 1000), ("client", 500), ("server", 50)]
    assert eap.exchanged(eap.tls_packets(flights, 1400, 1400)).round_trips == 4
    # RFC 5216 section 2.1.5: three fragments from the server, two from the peer.
    flights = [("client", 100), ("server", 3000), ("client", 2000), ("server", 50)]
    assert eap.exchanged(eap.tls_packets(flights, 1400, 1400)).round_trips == 7


def test_eap_aka_takes_two_round_trips_and_few_bytes():
    found = eap.exchanged(eap.aka_packets())
    # RFC 4187 figure 1: the identity, and the challenge.
    assert found.round_trips == 2
    assert found.eap_bytes == 5 + 24 + (8 + 60) + (8 + 12 + 20) + 4


def test_the_modelled_identity_is_the_one_that_peers_send_by_default():
    assert len(EapOptions().identity) == eap.IDENTITY_BYTES


def test_flights_must_alternate():
    with pytest.raises(ValueError, match="alternate"):
        eap.tls_packets([("server", 10)], 500, 500)


def asked(capsys, *arguments: str) -> list[dict]:
    assert exit_status(["predict", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_each_eap_round_trip_costs_a_bearer_round_trip(capsys):
    small, large = (
        asked(capsys, P256, LONG, "--carrier", "eap", "--bearer", "gprs", "--fragment", size)
        for size in ("500", "1390")
    )
    for short, long in zip(small, large, strict=True):
        assert short["carrier"] == long["carrier"] == "eap"
        further = short["eap"]["round_trips"] - long["eap"]["round_trips"]
        assert further > 0
        # Two crossings of 330 ms at least, the RADIUS hop, two packets of headers at 10.5 and 18.77 kbit/s.
        least_s = further * (2 * 0.33 + 0.005 + 80 / 10500 + 80 / 18770)
        taken_s = short["done_s"]["mean"] - long["done_s"]["mean"]
        assert least_s < taken_s < 1.1 * least_s
        assert short["ready_s"] == short["done_s"]
        assert short["connection_s"] == {"client": 0.0, "server": 0.0}


def test_radius_hop_is_added_once_per_round_trip(capsys):
    (near,) = asked(capsys, P256, "--carrier", "eap", "--bearer", "ethernet", "--radius-hop", "0ms")
    (far,) = asked(capsys, P256, "--carrier", "eap", "--bearer", "ethernet", "--radius-hop", "100ms")
    assert far["done_s"]["mean"] - near["done_s"]["mean"] == pytest.approx(
        0.1 * near["eap"]["round_trips"], rel=1e-4
    )


def test_server_software_applies_inside_eap_without_tickets(capsys):
    ours, haproxy, none = (
        asked(capsys, P256, "--carrier", "eap", "--server-software", name)[0]
        for name in ("openssl", "haproxy", "none")
    )
    assert [row["server_software"] for row in (ours, haproxy, none)] == ["openssl", "haproxy", "none"]
    assert ours["server_s"] == none["server_s"]
    assert haproxy["server_s"]["estimate"] > 1.03 * ours["server_s"]["estimate"]
    assert ours["handshake_bytes"] == haproxy["handshake_bytes"] == none["handshake_bytes"]


def test_prediction_without_eap_has_carrier_bare(capsys):
    (row,) = asked(capsys, P256)
    assert (row["carrier"], row["eap"]) == ("bare", None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tls1.2/psk", "--carrier", "eap"], "suites with certificates"),
        (["wtls/rsa", "--carrier", "eap"], "TLS 1.0 to 1.3"),
        ([P256, "--carrier", "eap", "--fragment", "0"], "1 to 3000"),
        ([P256, "--carrier", "eap", "--bearer", "lorawan-sf7"], "accepted: fragments up to"),
        ([P256, "--carrier", "eap", "--bearer", "sigfox"], "accepted: a bearer with larger packets"),
        ([P256, "--carrier", "eap", "--model", "thesis"], "accepted: default"),
        ([P256, "--fragment", "500"], "accepted: with carrier eap"),
    ],
)
def test_options_unsupported_by_eap_are_refused_in_one_line(capsys, arguments, words):
    assert exit_status(["predict", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert words in captured.err
