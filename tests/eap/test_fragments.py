"""Fragment sizes: round trips and bytes by arithmetic, and as FreeRADIUS and eapol_test exchange them."""

from __future__ import annotations

import pytest

import supplied
from eap.conftest import Site
from eap.freeradius import SECRET, freeradius
from eap.supplicant import eapol_test
from eap.test_serve import serving
from runs import printed

SUITE = "tls1.3/x25519/p256@p256@p256"
SIZES = (500, 1000, 1400)
EAP_HEADER_BYTES = 4 + 1 + 1
"""Header, type, flags."""
LENGTH_BYTES = 4


@pytest.fixture(scope="module")
def long_site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Chains of two certificates beside the root, so that flights take several fragments."""
    folder = tmp_path_factory.mktemp("long")
    keys = "p256@p256@p256"
    return Site(supplied.chain(folder / "server", keys), supplied.chain(folder / "client", keys, "client"))


def exchange(shakedown, site: Site, port: int, fragment: int) -> dict[str, int]:
    done = shakedown(
        "eap", "peer", "--server", f"127.0.0.1:{port}", "--secret", SECRET, "--suite", SUITE,
        *site.peer(), "--fragment", str(fragment), "--identity", "a", "--json",
    )  # fmt: skip
    return printed(done)[0]


@pytest.mark.parametrize("size", SIZES)
def test_round_trips_and_bytes_follow_from_flights(shakedown, long_site, size):
    with serving(SUITE, *long_site.authenticator(), "--fragment", str(size)) as port:
        found = exchange(shakedown, long_site, port, size)
        whole = exchange(shakedown, long_site, port, 3000)
    # With fragments of any length each flight is one packet, of the server's up to the access point's MTU.
    assert found["round_trips"] == found["fragments"]
    # The TLS bytes are the same except for signatures' lengths. Each further fragment costs two EAP-TLS
    # headers (its own and its acknowledgement's); the first of several also has a length field.
    further = found["round_trips"] - whole["round_trips"]
    assert further > 0 or size == max(SIZES)
    cost = further * 2 * EAP_HEADER_BYTES
    difference = found["eap_bytes"] - whole["eap_bytes"] - cost
    assert -16 <= difference <= 2 * LENGTH_BYTES + 16


@pytest.mark.parametrize("size", SIZES)
def test_freeradius_and_eapol_test_need_as_many_round_trips(peer, shakedown, long_site, tmp_path, size):
    peer("freeradius")
    peer("eapol_test")
    # FreeRADIUS writes the length field into every fragment and counts it in the fragment's size.
    theirs = {"fragment": size + LENGTH_BYTES, "cache": False}
    with freeradius(tmp_path / "radius", long_site.server, long_site.client / "ca.pem", **theirs) as radius:
        ours_with_theirs = exchange(shakedown, long_site, radius.port, size)["round_trips"]
        both_theirs = eapol_test(
            tmp_path, radius.port, SECRET, client=long_site.client, ca=long_site.server / "ca.pem",
            tls13=True, fragment=size,
        )  # fmt: skip
    with serving(SUITE, *long_site.authenticator(), "--no-resume", "--fragment", str(size)) as port:
        both_ours = exchange(shakedown, long_site, port, size)["round_trips"]
        theirs_with_ours = eapol_test(
            tmp_path, port, SECRET, client=long_site.client, ca=long_site.server / "ca.pem",
            tls13=True, fragment=size,
        )  # fmt: skip
    assert both_theirs.matching_keys == theirs_with_ours.matching_keys == (1, 0)
    requests = (ours_with_theirs, both_theirs.requests, both_ours, theirs_with_ours.requests)
    assert len(set(requests)) == 1, requests
