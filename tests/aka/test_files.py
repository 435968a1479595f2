"""Invalid files of nodes and cards: one line with file, field and the accepted values."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from aka.nodes import Process, free_port, sgsn

Edit = Callable[[dict[str, Any], dict[str, Any]], None]


def field(name: str, value: object) -> Edit:
    """Puts a value into a file."""
    return lambda file, _: file.update({name: value})


def from_other(name: str) -> Edit:
    """Takes a field from another file of the site."""
    return lambda file, other: file.update({name: other[name]})


CARD, NODE, REGISTER = "card-0.json", "sgsn-1.json", "hss-20201.json"
LONG = "2" * 300


@pytest.mark.parametrize(
    ("name", "edit", "says"),
    [
        (CARD, from_other("key"), '"key" (p256) is not the key of "leaf" (p256); accepted: the private key'),
        (NODE, from_other("key"), '"key" (p256) is not the key of "leaf" (p256); accepted: the private key'),
        (CARD, field("key", "none"), '"key" is not a private key; accepted: the leaf\'s private key in PEM'),
        (CARD, field("leaf", ""), '"leaf" is not a certificate; accepted: one certificate in PEM'),
        (
            CARD,
            field("suite", "tls1.2/ecdhe_ecdsa/p384"),
            '"leaf" has another key (p256) than its suite says',
        ),
        (CARD, field("suite", "tls1.3/x25519/p256"), "accepted: tls1.0, tls1.1, tls1.2"),
        (CARD, field("imsi", "x"), '"imsi": "x" is not an IMSI; accepted: 6 to 15 digits'),
        (
            CARD,
            field("imsi", "208010000000000"),
            "is of another network; accepted: IMSIs that begin with 20201",
        ),
        (CARD, field("home", LONG), "is not a network; accepted: 5 or 6 digits"),
        (
            CARD,
            field("authorities", {"20801": "x"}),
            '"authorities": that of network 20801 is not a certificate',
        ),
        (NODE, field("name", ""), '"name": "" is not a node\'s name'),
        (NODE, field("network", ""), '"network": "" is not a network'),
        (NODE, field("partners", {"": "x"}), '"partners": "" is not a network'),
        (REGISTER, field("network", ""), '"network": "" is not a network; accepted: 5 or 6 digits'),
        (REGISTER, field("network", LONG), "is not a network; accepted: 5 or 6 digits"),
        (REGISTER, field("network", "20801"), "is of another network; accepted: IMSIs that begin with 20801"),
        (REGISTER, field("barred", ["202019999999999"]), "202019999999999 is not a subscriber"),
        (
            REGISTER,
            field("subscribers", {"202010000000000": "x"}),
            "that of 202010000000000 is not a certificate",
        ),
        (REGISTER, field("certified", {"../x": "x"}), '"certified": "../x" is not a network'),
        (REGISTER, field("more", 1), "unknown field"),
    ],
)
def test_errors_name_the_file_and_the_wrong_value(shakedown, site, name, edit, says):
    path = site / name
    others = {CARD: "card-1.json", NODE: "sgsn-2.json", REGISTER: NODE}
    other = json.loads((site / others[name]).read_text())
    text = json.loads(path.read_text())
    edit(text, other)
    path.write_text(json.dumps(text))
    done = {
        CARD: lambda: shakedown("aka", "mobile", "--sgsn", f"127.0.0.1:{free_port()}", "--card", path),
        NODE: lambda: shakedown("aka", "sgsn", "--listen", "127.0.0.1:0", "--node", path),
        REGISTER: lambda: shakedown("aka", "hss", "--listen", "127.0.0.1:0", "--register", path),
    }[name]()
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {path}: ")
    assert says in line
    assert len(line) < 500


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--hss", "x=127.0.0.1:1"), '"x" is not a network; accepted: 5 or 6 digits'),
        (("--hss", "20201=nowhere"), "accepted: ADDRESS:PORT"),
        (("--hss", "20201"), "accepted: NAME=ADDR:PORT"),
        (("--hss", "20201=127.0.0.1:1", "--hss", "20201=127.0.0.1:2"), "--hss: 20201 twice"),
        (("--neighbour", "A=127.0.0.1:1"), '"A" is not a node\'s name'),
        (("--neighbour", "sgsn-1=127.0.0.1:1"), "neighbour: sgsn-1; accepted: another SGSN than this one"),
        (("--first-message", "0s"), "--first-message: 0; accepted: a time above 0"),
    ],
)
def test_sgsn_refuses_invalid_names_of_other_nodes(shakedown, site, arguments, says):
    done = shakedown("aka", "sgsn", "--listen", "127.0.0.1:0", "--node", site / NODE, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert says in line


def test_user_data_beyond_the_maximum_is_refused_and_maximum_is_echoed(shakedown, site, hss, processes):
    processes.append(sgsn(site, hss, "sgsn-1"))
    mobile = ("aka", "mobile", "--sgsn", processes[-1].addresses[0], "--card", site / CARD)
    most = 65_535 - 16
    done = shakedown(*mobile, "--data", "x" * (most + 1))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: user data: 65520 bytes; accepted: up to 65519 bytes, what a message holds under protection\n"
    )
    done = shakedown(*mobile, "--data", "x" * most)
    assert done.returncode == 0, done.stderr
    assert "user data returned under the derived keys: 1 of 1" in done.stdout


def test_unknown_home_network_and_dead_hss_have_different_causes(shakedown, site, processes):
    dead = f"127.0.0.1:{free_port()}"
    told = {
        (): ("unknown_home", "no HSS of network 20201 is known here"),
        ("--hss", f"20201={dead}"): ("network_failure", "the HSS of network 20201 does not respond"),
    }
    for options, (cause, reason) in told.items():
        node = Process("sgsn", "--listen", "127.0.0.1:0", "--node", str(site / NODE), *options)
        processes.append(node)
        done = shakedown("aka", "mobile", "--sgsn", node.addresses[0], "--card", site / CARD, "--json")
        assert done.returncode == 1
        assert json.loads(done.stdout)[0]["failed"] == {cause: 1}
        assert done.stderr.endswith(f"the network rejected the attach: {cause}\n")
        assert f"  rejected: 1 {cause}, the first: {reason}\n" in node.stop()
