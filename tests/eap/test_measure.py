"""`measure --carrier eap`, compared with arithmetic and with RADIUS on sockets."""

from __future__ import annotations

import pytest

from eap.freeradius import SECRET
from eap.test_serve import serving
from runs import printed
from shakedown.models import eap as model
from shakedown.schema.measured import Measurement

SUITES = ("tls1.2/ecdhe_ecdsa/p256/mutual", "tls1.3/x25519/p256/mutual")


@pytest.fixture
def measure(shakedown):
    def run(suite: str, *options: str) -> dict:
        done = shakedown("measure", suite, "--repeat", "3", *options, "--json")
        (one,) = printed(done, Measurement)
        return one

    return run


def flights(one: dict) -> list[tuple[str, float]]:
    """The sender and the bytes of each flight, in order."""
    found: list[tuple[str, float]] = []
    for message in one["messages"]:
        before = found.pop()[1] if found and found[-1][0] == message["from"] else 0.0
        found.append((message["from"], before + message["bytes"]))
    return found


@pytest.mark.parametrize("fragment", [300, 1000])
@pytest.mark.parametrize("suite", SUITES)
def test_round_trips_and_fragments_match_the_model_and_radius(shakedown, measure, suite, fragment):
    found = measure(suite, "--carrier", "eap", "--fragment", str(fragment))
    assert found["carrier"] == "eap"
    assert found["memory"] is None
    carried = found["eap"]
    sent = flights(found)
    if suite.startswith("tls1.3"):
        sent.append(("server", model.INDICATION_BYTES))
    count = {
        side: [model.fragments(size, fragment) for sender, size in sent if sender == side]
        for side in ("client", "server")
    }
    # The identity, an answer to the server's start and to each of its fragments, and an answer to each
    # acknowledgement of a fragment that others follow.
    acknowledged = sum(one - 1 for one in count["client"])
    assert carried["round_trips"] == 2 + sum(count["server"]) + acknowledged
    assert carried["fragments"] == sum(map(sum, count.values()))
    with serving(suite, "--fragment", str(fragment), "--no-resume") as port:
        done = shakedown(
            "eap", "peer", "--server", f"127.0.0.1:{port}", "--secret", SECRET, "--suite", suite,
            "--fragment", str(fragment), "--json",
        )  # fmt: skip
    (live,) = printed(done)
    assert (live["round_trips"], live["fragments"]) == (carried["round_trips"], carried["fragments"])
    # A signature in DER has a byte more or less; on a network the weakest schemes are not offered.
    assert live["eap_bytes"] == pytest.approx(carried["eap_bytes"], abs=24)


@pytest.mark.parametrize("suite", [SUITES[1], "tls1.3/x25519/ed25519/mutual"])
def test_server_that_can_resume_sends_one_more_ticket(shakedown, measure, suite):
    """A live server sends a ticket unless --no-resume is given; `measure` sends one only with --tickets."""
    live = {}
    for options in ((), ("--no-resume",)):
        with serving(suite, *options) as port:
            done = shakedown(
                "eap", "peer", "--server", f"127.0.0.1:{port}", "--secret", SECRET, "--suite", suite, "--json"
            )
        (live[options],) = printed(done)
    without, ticket = (measure(suite, "--carrier", "eap", *options) for options in ((), ("--tickets", "1")))
    names = [[one["name"] for one in found["messages"]] for found in (without, ticket)]
    assert [one.count("NewSessionTicket") for one in names] == [0, 1]
    # Signatures of P-256 have a byte more or less; over a network fewer schemes are offered.
    for found, run in ((without, live["--no-resume",]), (ticket, live[()])):
        assert run["eap_bytes"] == pytest.approx(found["eap"]["eap_bytes"], abs=24)
        assert run["fragments"] == found["eap"]["fragments"]
    (size,) = (one["bytes"] for one in ticket["messages"] if one["name"] == "NewSessionTicket")
    assert live[()]["eap_bytes"] - live["--no-resume",]["eap_bytes"] == pytest.approx(size, abs=12)


def test_eap_has_no_middlebox_mode_and_the_same_operations(measure):
    bare, inside = (
        measure(SUITES[1], *options) for options in (("--server-software", "none"), ("--carrier", "eap"))
    )
    assert (bare["carrier"], "eap" in bare) == ("bare", False)
    # Inside EAP, Hellos have no session ID, and no ChangeCipherSpec (six bytes) is sent.
    difference = bare["bytes"]["total"] - inside["bytes"]["total"]
    assert difference == pytest.approx(2 * model.SESSION_ID_BYTES + 2 * 6, abs=8)
    names = [
        [
            (one["side"], one["message"], one["operation"])
            for one in row["operations"]
            if one["class"] != "common"
        ]
        for row in (bare, inside)
    ]
    assert [(side, operation) for side, _, operation in names[0]] == [
        (side, operation) for side, _, operation in names[1]
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("tls1.2/psk", "--carrier", "eap"), "EAP-TLS authenticates by certificates"),
        (("wtls/rsa/rsa1024/mutual", "--carrier", "eap"), "EAP-TLS carries TLS 1.0 to 1.3"),
        (("tls1.3/x25519/p256", "--fragment", "100"), "--fragment requires --carrier eap"),
        (
            ("tls1.3/x25519/p256", "--carrier", "eap", "--transfer", "4"),
            "--carrier eap is given with --transfer or --pcap",
        ),
        (("tls1.3/x25519/p256", "--carrier", "eap", "--fragment", "0"), "1"),
    ],
)
def test_options_unsupported_by_eap_are_reported_in_one_line(shakedown, arguments, says):
    done = shakedown("measure", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert says in line
