"""`BEARER:loss=…,congestion=…,initial-window=…`: changed loss and TCP parameters of a bearer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

import shakedown
from shakedown.errors import InputError
from shakedown.prediction.predict import predict_rows
from shakedown.profiles import changed_bearer, load_bearer
from shakedown.schema.profiles import HostTcp


@pytest.mark.parametrize(("text", "loss"), [("5%", 0.05), ("0.05", 0.05), ("0%", 0.0), ("90%", 0.9)])
def test_loss_change_alters_only_the_loss(text, loss):
    plain, changed = load_bearer("nb-iot"), load_bearer(f"nb-iot:loss={text}")
    assert (changed.up.loss, changed.down.loss) == (loss, loss)
    same = replace(
        changed,
        name=plain.name,
        up=replace(changed.up, loss=plain.up.loss),
        down=replace(changed.down, loss=plain.down.loss),
    )
    assert same == plain


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("loss=91%", "loss is '91%'; accepted: 0% to 90%"),
        ("loss=-1%", "loss is '-1%'; accepted: 0% to 90%"),
        ("loss=nan", "loss is 'nan'; accepted: 0% to 90%"),
        ("loss=", "loss is ''; accepted: 0% to 90%"),
        ("loss", "loss is ''; accepted: 0% to 90%"),
        ("rate=3", "unknown setting 'rate=3'; accepted: loss=…, congestion=…, initial-window=…"),
        ("lose=3%", "unknown setting 'lose=3%'; did you mean \"loss\"?"),
        ("", "unknown setting ''; accepted: loss=…"),
        ("congestion=vegas", "congestion is 'vegas'; accepted: cubic, reno, bbr"),
        ("initial-window=0", "initial-window is '0'; accepted: 1 to 1,000"),
        ("syn-retries=21", "syn-retries is '21'; accepted: 0 to 20"),
        ("loss=1%,", "unknown setting ''; accepted: loss=…"),
        ("loss=1%,congestion=bbr,loss=2%", "loss is there twice; accepted: each setting once"),
    ],
)
def test_unknown_changes_are_refused(change, said):
    with pytest.raises(InputError) as caught:
        load_bearer(f"nb-iot:{change}")
    assert said in str(caught.value)


def test_an_unknown_bearer_is_named():
    with pytest.raises(InputError, match="nbiot"):
        load_bearer("nbiot:loss=5%")


def test_tcp_changes_set_the_host_settings():
    found = load_bearer("lte:congestion=bbr,initial-window=20,loss=1%")
    assert (found.tcp, found.up.loss) == (HostTcp("bbr", 20), 0.01)
    assert load_bearer("lte").tcp == HostTcp("cubic", 10)
    found = load_bearer("lte:super-packets=cut,quick-ack=true,reordering=10")
    assert (found.super_packets, found.tcp) == ("cut", HostTcp(quick_ack=True, reordering=10))
    found = load_bearer("lte:syn-linear-timeouts=0,syn-retries=3,synack-retries=2")
    assert found.tcp == HostTcp(syn_linear_timeouts=0, syn_retries=3, synack_retries=2)


def test_changes_add_up_in_the_name():
    once = changed_bearer("lte", loss="1%", congestion=None)
    assert once == "lte:loss=1%"
    assert (
        changed_bearer(once, congestion="reno", initial_window="4")
        == "lte:loss=1%,congestion=reno,initial-window=4"
    )
    assert changed_bearer("./a:b/my.toml", loss="0.1") == "./a:b/my.toml:loss=0.1"
    assert changed_bearer("lte") == "lte"


def test_profile_may_state_tcp_settings(tmp_path):
    plain = Path(shakedown.__file__).parent / "profiles" / "bearers" / "lte.toml"
    path = tmp_path / "mine.toml"
    path.write_text(
        plain.read_text().replace('name = "lte"', 'name = "mine"') + '\n[tcp]\ncongestion = "bbr"\n'
    )
    assert load_bearer(str(path)).tcp == HostTcp("bbr", 10)
    # Results contain the profile's name, not the path.
    assert load_bearer(f"{path}:loss=1%").name == "mine:loss=1%"
    path.write_text(path.read_text().replace('"bbr"', '"vegas"'))
    with pytest.raises(InputError, match="cubic, reno, bbr"):
        load_bearer(str(path))


@pytest.mark.parametrize(("policy", "syns"), [("", 11), (",syn-linear-timeouts=0,syn-retries=3", 4)])
def test_number_of_syns_follows_the_policy(shakedown, policy, syns):
    """A server that lets one of twenty in is silent to the others: a SYN, four a second apart, six more."""
    fleet = ("--arrivals", "storm:1ms", "--clients", "20", "--admission", "rate=0.001/s,refuse=silence")
    told = shakedown("simulate", "tls1.2/psk", *fleet, "--bearer", f"ethernet:loss=0%{policy}", "--json")
    (row,) = json.loads(told.stdout)
    assert row["failed"] == {"connect": 19}
    assert row["admission"]["refused"] == 19 * syns


def test_predict_and_simulate_apply_tcp_changes_equally(shakedown):
    """36 kB over 600 ms without loss: BBR is later than CUBIC, in both alike; a window of 40 is earlier."""
    suite = "tls1.3/x25519mlkem768/mldsa87@mldsa87@mldsa87@mldsa87/server"
    found = {}
    for name, options in {
        "cubic": (),
        "bbr": ("--congestion", "bbr"),
        "wide": ("--initial-window", "40"),
    }.items():
        place = ("--device", "server", "--bearer", "geo:loss=0%", *options, "--json")
        (predicted,) = json.loads(shakedown("predict", suite, *place).stdout)
        fleet = ("--arrivals", "deterministic:0.01/s", "--clients", "200")
        (simulated,) = json.loads(shakedown("simulate", suite, *fleet, *place).stdout)
        found[name] = predicted["ready_s"]["mean"]
        assert simulated["ready_s"]["mean"] == pytest.approx(found[name], rel=0.01)
    assert found["wide"] < found["cubic"] < found["bbr"]


def test_quick_ack_adds_one_acknowledgement_per_host():
    suite = "tls1.3/x25519/p256/mutual"
    usual, quick = (predict_rows([suite], bearer=one)[0] for one in ("lte", "lte:quick-ack=true"))
    more = {way: quick["wire_bytes"][way] - usual["wire_bytes"][way] for way in ("up", "down")}
    assert more == {"up": 52, "down": 52}


def test_higher_reordering_threshold_delays_retransmission():
    suite, lossy = "tls1.3/x25519mlkem768/mldsa65/mutual", "geo:loss=5%"
    usual, later = (predict_rows([suite], bearer=one)[0] for one in (lossy, f"{lossy},reordering=300"))
    assert later["ready_s"]["mean"] > 1.01 * usual["ready_s"]["mean"]


def test_fleet_with_different_tcp_settings_is_refused(tmp_path):
    from shakedown import Fleet, simulate_mix

    mix = tmp_path / "mix.toml"
    mix.write_text(
        "[[clients]]\nsuite = 'tls1.2/psk'\nbearer = 'lte'\n"
        "[[clients]]\nsuite = 'tls1.2/psk'\nbearer = 'lte:congestion=bbr'\n"
    )
    with pytest.raises(InputError, match="have different TCP settings"):
        simulate_mix(mix, Fleet(arrivals="poisson:1/s", clients=10))
