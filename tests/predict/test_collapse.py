"""Bearers whose packets are hardly larger than TCP's headers, or slower than its timers."""

import pytest

import shakedown
from shakedown.errors import InputError
from shakedown.native.scenario import Fleet
from shakedown.prediction.predict import predict_rows
from shakedown.schema.base import Bounds, convert
from shakedown.schema.options import PredictionOptions

SLOW = "lorawan-sf12"
"""Its packets hold 51 bytes, and TCP's headers have 52; one leaves every five minutes."""
CHAIN = "tls1.3/x25519mlkem768/mldsa65/server"
"""Hundreds of segments there."""


def test_bearer_with_packets_too_small_for_tcp_is_refused():
    with pytest.raises(
        InputError,
        match=f"{SLOW}' carries packets of 51 bytes, too small for the 52 bytes of h.*, or a suite over UDP",
    ):
        predict_rows([CHAIN], bearer=SLOW)


def test_other_bearers_are_predicted_beside_a_refused_one():
    first, second = predict_rows(["tls1.2/psk"], bearer=[SLOW, "nb-iot"])
    assert first["bearer"] == SLOW
    assert "too small for the 52 bytes" in first["error"]
    assert second["ready_s"]["mean"] > 0
    # An unknown name is refused whatever the others are.
    with pytest.raises(InputError, match="unknown bearer 'nothing'"):
        predict_rows(["tls1.2/psk"], bearer=["nb-iot", "nothing"])


def test_datagrams_are_predicted_beside_a_refused_tcp_suite():
    secret, chain = predict_rows(["wtls/shared_secret", CHAIN], bearer=SLOW)
    assert "too small for the 52 bytes" in chain["error"]
    ready, done = (secret[what] for what in ("ready_s", "done_s"))
    assert 60.0 < ready["p50"] <= done["p50"] < done["p95"] <= done["p99"]
    assert ready["lower"] < ready["mean"]


@pytest.mark.parametrize("bearer", ["nb-iot", "nb-iot-ce2", "lorawan-sf7"])
@pytest.mark.parametrize("from_idle", [False, True])
def test_retransmissions_by_timers_cost_energy(bearer, from_idle):
    """The energy is that of the simulation, which counts every packet."""
    (row,) = predict_rows(
        [CHAIN], device="cortex-m4", bearer=bearer, options=PredictionOptions(from_idle=from_idle)
    )
    wanted = Fleet(arrivals="poisson:0.001/s", clients=2000, replications=1, from_idle=from_idle)
    (fleet,) = shakedown.simulate(CHAIN, wanted, device="cortex-m4", bearer=bearer)
    clients = fleet.clients + fleet.warmup_clients
    for way in ("up", "down"):
        simulated = getattr(fleet.traffic, f"{way}_bytes") / clients
        assert row["wire_bytes"][way] == pytest.approx(simulated, rel=0.08)
        assert row["wire_bytes"][way] > 1.2 * row["handshake_bytes"][way]
    parts = row["energy_parts_j"]
    assert parts["processor"] + parts["radio"] == pytest.approx(fleet.energy_j.mean, rel=0.05)
    assert parts["setup"] + parts["tail"] == pytest.approx(fleet.wake_tail_j.estimate)
    assert convert(row["wake_tail_j"], Bounds) == fleet.wake_tail_j
    assert (parts["setup"] > 0.0) == from_idle


@pytest.mark.parametrize("suite", ["wtls/ecdh_ecdsa/160p/server", "wtls/rsa/rsa1024/server"])
def test_datagram_timers_wait_for_the_duty_cycle_of_the_network(suite):
    """With timers of three seconds, prediction and simulation would give up before the first answer. Two per
    cent of the packets are lost, so times differ in steps of one timer.
    """
    (row,) = predict_rows([suite], device="cortex-m4", bearer="lorawan-sf7")
    wanted = Fleet(arrivals="deterministic:0.001/s", clients=5_000, replications=2)
    (fleet,) = shakedown.simulate(suite, wanted, device="cortex-m4", bearer="lorawan-sf7")
    assert row["failed"] < 1e-4
    assert fleet.failed == {}
    assert row["done_s"]["mean"] == pytest.approx(fleet.ready_s.mean, rel=0.03)
    assert row["done_s"]["p50"] == pytest.approx(fleet.ready_s.p50, rel=0.03)
    assert row["done_s"]["p99"] > 1.5 * row["done_s"]["p50"]


def test_answer_does_not_wait_for_the_silence_of_the_client():
    """The client sends 91 bytes, is silent for 99 times as long, and sends 191 bytes. The answer to these, 53
    bytes, comes in the receive window; the first answer came during the silence.
    """
    (row,) = predict_rows(["wtls/rsa/rsa1024/server"], device="cortex-m4", bearer="lorawan-sf7:loss=0")
    assert row["wire_bytes"]["up"] == 91 + 191
    byte_s = 8.0 / 4814.0
    expected_s = 100 * 91 * byte_s + (191 + 53) * byte_s + 0.020 + 1.020
    assert row["ready_s"]["p50"] == pytest.approx(expected_s, rel=0.01)


def test_fragments_repeat_the_compressed_header():
    """A fragment of 51 bytes at most has a header of one byte and up to 48 bytes of content."""
    (row,) = predict_rows(["wtls/rsa/rsa1024/server"], device="cortex-m4", bearer=f"{SLOW}:loss=0")
    # Two datagrams each way, in 2, 4, 10 and 2 fragments.
    assert row["wire_bytes"] == {"up": (91 + 1) + (191 + 3), "down": (445 + 9) + (53 + 1)}


def test_models_without_packets_name_the_unknown_energy():
    (row,) = predict_rows(
        ["tls1.2/psk"], device="cortex-m4", bearer=SLOW, options=PredictionOptions(model="kuo")
    )
    assert row["done_s"]["mean"] > 0.0
    assert row["wire_bytes"] is None
    assert row["energy_parts_j"]["radio"] is None
    assert f"sending and receiving over {SLOW} (no handshake completes there)" in row["energy_j"]["missing"]


@pytest.mark.parametrize("command", [predict_rows, shakedown.simulate])
@pytest.mark.parametrize(("mtu_bytes", "ip_bytes", "udp_bytes"), [(8, 1, 1), (35, 28, 0)])
def test_packets_too_small_for_fragments_are_refused(tmp_path, command, mtu_bytes, ip_bytes, udp_bytes):
    path = tmp_path / "small.toml"
    path.write_text(
        'schema = 2\nname = "small"\ntitle = "Small"\ndate = "2026-01-01"\nsource = ["a test"]\n'
        f"mtu_bytes = {mtu_bytes}\nip_bytes = {ip_bytes}\nudp_bytes = {udp_bytes}\n"
        "up_bps = 100\ndown_bps = 100\ntraversal_ms = 10\n"
    )
    with pytest.raises(InputError) as refused:
        command(["wtls/ecdh_ecdsa/160p/server"], bearer=str(path))
    needed = f"the {ip_bytes + 8} bytes of the smallest fragment"
    assert f"'small' carries packets of {mtu_bytes} bytes, too small for {needed}" in str(refused.value)


def test_packets_of_twelve_bytes_carry_datagrams():
    """Each of the two answers is divided into fragments of 8 bytes; four are sent in a day."""
    (row,) = predict_rows(["wtls/rsa/rsa1024/server"], device="cortex-m4", bearer="sigfox:loss=0")
    fragments = -(-444 // 8) + -(-52 // 8)
    assert row["wire_bytes"]["down"] == 444 + 52 + fragments
    assert row["ready_s"]["p50"] == pytest.approx((fragments - 1) / 4 * 86_400, rel=0.02)
