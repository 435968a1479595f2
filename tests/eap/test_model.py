"""The model of EAP-TLS compared with counts on sockets, with Shakedown's server and FreeRADIUS."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import supplied
from eap.conftest import Site
from eap.freeradius import SECRET, freeradius
from eap.test_serve import serving
from runs import printed
from shakedown.models import eap as model
from shakedown.prediction import eap as prediction
from shakedown.prediction.library import open_library

SIZES = (500, 1000, 1390)
P256, TLS12 = "tls1.3/x25519/p256/mutual", "tls1.2/ecdhe_ecdsa+x25519/p256/mutual"
MLDSA44 = "tls1.3/x25519mlkem768/mldsa44/mutual"
LONG = "tls1.3/x25519mlkem768/mldsa65@mldsa65@mldsa65/mutual"
SLACK = {P256: 8, TLS12: 16, MLDSA44: 0, LONG: 0}
"""Bytes by which ECDSA signatures differ in length; TLS 1.2's hellos over EAP are some bytes shorter, too."""


FREERADIUS_ROUNDS = 50
"""Rounds after the first request at which FreeRADIUS 3.2 drops a session (`rlm_eap/mem.c`)."""


def counted(shakedown, port: int, suite: str, fragment: int, *options: str) -> dict[str, int]:
    done = shakedown(
        "eap", "peer", "--server", f"127.0.0.1:{port}", "--secret", SECRET, "--suite", suite,
        "--fragment", str(fragment), *options, "--json",
    )  # fmt: skip
    return printed(done)[0]


def modelled(suite: str, fragment: int) -> tuple[model.Exchanged, prediction.Carried]:
    library = open_library(server_software="none")
    trace = library[suite]
    how = prediction.carried(fragment, None)
    how = replace(how, ticket_bytes=prediction.renewed_ticket_bytes(trace, library))
    return prediction.exchanged(trace, how), how


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("suite", [P256, TLS12, MLDSA44, LONG])
def test_full_handshake_matches_the_model(shakedown, suite, size):
    with serving(suite, "--fragment", str(size), "--no-resume") as port:
        found = counted(shakedown, port, suite, size)
    says, _ = modelled(suite, size)
    assert (says.round_trips, says.fragments) == (found["round_trips"], found["fragments"])
    assert says.eap_bytes == pytest.approx(found["eap_bytes"], abs=SLACK[suite])
    assert says.radius_bytes == pytest.approx(found["radius_bytes"], abs=SLACK[suite])


@pytest.mark.parametrize("suite", [P256, TLS12, LONG])
def test_resumed_handshake_with_a_new_ticket_matches_the_model(shakedown, suite):
    with serving(suite, "--fragment", "500") as port:
        found = counted(shakedown, port, suite, 500, "--resume")
    assert found["resumed"] == 1
    says, how = modelled(f"{suite}/resumed", 500)
    assert (how.ticket_bytes > 0) == suite.startswith("tls1.3")
    assert (says.round_trips, says.fragments) == (found["round_trips"], found["fragments"])
    assert says.eap_bytes == pytest.approx(found["eap_bytes"], abs=SLACK[suite])


CHAINS = {"p256": "tls1.3/x25519/p256/mutual", "p256@p256@p256": "tls1.3/x25519/p256@p256@p256/mutual"}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("keys", CHAINS)
def test_freeradius_needs_the_modelled_round_trips(peer, shakedown, tmp_path, keys, size):
    peer("freeradius")
    site = Site(
        supplied.chain(tmp_path / "server", keys), supplied.chain(tmp_path / "client", keys, "client")
    )
    theirs = {"fragment": size + model.LENGTH_BYTES, "cache": False}
    with freeradius(tmp_path / "radius", site.server, site.client / "ca.pem", **theirs) as radius:
        found = counted(shakedown, radius.port, CHAINS[keys], size, *site.peer())
    # These certificates are not the traces'; our own server's count gives the difference in length.
    with serving(CHAINS[keys], *site.authenticator(), "--no-resume", "--fragment", str(size)) as port:
        ours = counted(shakedown, port, CHAINS[keys], size, *site.peer())
    trace = open_library(server_software="none")[CHAINS[keys]]
    flights = prediction.flights_of(trace)
    bare = model.exchanged(model.tls_packets(flights, size, size))
    longer = (ours["eap_bytes"] - bare.eap_bytes) / 2
    stretched = [
        (sender, size_bytes + (longer if index in (1, 2) else 0.0))
        for index, (sender, size_bytes) in enumerate(flights)
    ]
    packets = model.tls_packets(stretched, size, size, length_always=True)
    says = model.exchanged(packets, state_bytes=16)
    assert (says.round_trips, says.fragments) == (found["round_trips"], found["fragments"])
    assert says.eap_bytes == pytest.approx(found["eap_bytes"], abs=24)


def test_freeradius_gives_up_after_fifty_rounds(peer, shakedown, tmp_path):
    peer("freeradius")
    keys = "p256@p256@p256"
    suite = CHAINS[keys]
    site = Site(
        supplied.chain(tmp_path / "server", keys), supplied.chain(tmp_path / "client", keys, "client")
    )
    with freeradius(
        tmp_path / "radius", site.server, site.client / "ca.pem", fragment=100 + 4, cache=False
    ) as radius:
        for fragment, passes, timeout in ((100, True, "60s"), (30, False, "3s")):
            done = shakedown(
                "eap", "peer", "--server", radius.address, "--secret", SECRET, "--suite", suite,
                *site.peer(), "--fragment", str(fragment), "--timeout", timeout, "--json",
            )  # fmt: skip
            (found,) = json.loads(done.stdout)
            assert (found["completed"] == 1) == passes, found
            if passes:
                assert found["round_trips"] <= FREERADIUS_ROUNDS + 1
