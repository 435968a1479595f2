"""A bearer that TCP's timers jam is an answer in one line, and not one of weeks after minutes."""

import pytest

import shakedown
from shakedown.errors import InputError
from shakedown.prediction.predict import predict

SLOW = "lorawan-sf12"
"""A packet of data leaves it every five minutes, and no timer of TCP's is longer than two."""
CHAIN = "tls1.3/x25519mlkem768/mldsa65/server"
"""Hundreds of segments there."""


def test_what_tcp_cannot_carry_is_refused_by_itself():
    with pytest.raises(InputError, match=f"'{SLOW}': TCP's timers, of 120 s at most, send .* over datagrams"):
        predict([CHAIN], bearer=SLOW)


def test_datagrams_beside_it_have_their_figures():
    secret, chain = predict(["wtls/shared_secret", CHAIN], bearer=SLOW)
    assert "TCP's timers" in chain["error"]
    ready, done = (secret[what] for what in ("ready_s", "done_s"))
    assert 60.0 < ready["p50"] <= done["p50"] < done["p95"] < done["p99"]
    assert secret["range_s"][0] < secret["total_s"]


@pytest.mark.parametrize("bearer", ["nb-iot", "nb-iot-ce2", "lorawan-sf7"])
def test_what_timers_send_again_costs_energy_too(bearer):
    """As much as in virtual time, where every packet is counted."""
    (row,) = predict([CHAIN], device="cortex-m4", bearer=bearer)
    options = {"arrivals": "poisson:0.001/s", "clients": 300, "replications": 1}
    (fleet,) = shakedown.simulate(CHAIN, device="cortex-m4", bearer=bearer, **options)
    clients = fleet.clients + fleet.warmup_clients
    for way in ("up", "down"):
        simulated = getattr(fleet.traffic, f"{way}_bytes") / clients
        assert row["wire_bytes"][way] == pytest.approx(simulated, rel=0.08)
        assert row["wire_bytes"][way] > 1.2 * row["handshake_bytes"][way]
    parts = row["energy_parts_j"]
    assert sum(parts.values()) - parts["setup"] == pytest.approx(fleet.energy_j.mean, rel=0.08)


@pytest.mark.parametrize("suite", ["wtls/ecdh_ecdsa/160p/server", "wtls/rsa/rsa1024/server"])
def test_datagrams_wait_for_answers_of_a_network_with_a_duty_cycle(suite):
    """Timers of three seconds would have given up before the first answer, in both; two in a hundred packets
    are lost, so each time is made of steps, as long as such a timer.
    """
    (row,) = predict([suite], device="cortex-m4", bearer="lorawan-sf7")
    options = {"arrivals": "deterministic:0.001/s", "clients": 5_000, "replications": 2}
    (fleet,) = shakedown.simulate(suite, device="cortex-m4", bearer="lorawan-sf7", **options)
    assert row["failed"] < 1e-4
    assert fleet.failed == {}
    assert row["done_s"]["mean"] == pytest.approx(fleet.ready_s.mean, rel=0.03)
    assert row["done_s"]["p50"] == pytest.approx(fleet.ready_s.p50, rel=0.03)
    assert row["done_s"]["p99"] > 1.5 * row["done_s"]["p50"]


def test_models_without_timers_say_which_energy_a_jam_leaves_unknown():
    (row,) = predict(["tls1.2/psk"], device="cortex-m4", bearer=SLOW, model="kuo")
    assert row["total_s"] > 0.0
    assert row["wire_bytes"] is None
    assert row["energy_parts_j"]["radio"] is None
    assert f"sending and receiving over {SLOW} (TCP sends without end there)" in row["energy_missing"]


def test_a_bearer_whose_packets_a_simulation_has_no_use_for_is_named():
    with pytest.raises(InputError, match=f"bearer '{SLOW}' carries packets of 51 bytes; accepted in a simul"):
        shakedown.simulate("wtls/ecdh_ecdsa/160p/server", bearer=SLOW)
