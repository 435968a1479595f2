"""Each operation's cost is the device's own, else scaled, assumed or unknown, and marked as such."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from predict import handmade
from shakedown.errors import InputError
from shakedown.models.ranges import Range, combined, ratio
from shakedown.prediction.figures import call_figure
from shakedown.prediction.library import open_library
from shakedown.prediction.primitives import SIZE_EXPONENTS
from shakedown.prediction.side_cost import side_cost
from shakedown.prediction.stack_work import reference
from shakedown.prediction.trace import parse_trace
from shakedown.profiles import device_names, load_device, load_software, parse_device
from shakedown.profiles.overhead import MessageWork, Overhead

HEAD = {
    "schema": 1,
    "name": "board",
    "title": "A board",
    "chip": "C",
    "clock_hz": 100e6,
    "library": "L",
    "build": "B",
    "date": "2024",
    "source": ["x"],
}


def board(*primitives: tuple[str, str, str, float], **more):
    entries = [
        {"operation": operation, "algorithm": algorithm, "parameters": parameters, "time_ms": time_ms}
        for operation, algorithm, parameters, time_ms in primitives
    ]
    return parse_device({**HEAD, "primitive": entries, **more}, "board.toml")


def test_figures_of_the_device_are_not_scaled():
    device = load_device("cortex-m4")
    cost = side_cost(parse_trace(handmade.TLS13_P256, "x"), "client", device)
    own = cost.parts["cortex-m4: own"]
    assert own.mean == pytest.approx(31.969e-3 + 31.625e-3 + 2 * 94.417e-3)
    assert own.low == pytest.approx(own.mean / device.spread)
    assert {row["operation"] for row in cost.figures} == {"import", "stack"}
    assert all(row["basis"] == "assumed" and row["time_s"] > 0.0 for row in cost.figures)


def test_rejection_signature_varies_even_if_only_the_mean_is_published():
    """pqm4 publishes the minimum for one board; for all boards the expected rounds give the deviation."""
    known = load_device("cortex-m4:c").costs
    alone = board(*(("sign", "mldsa", token, 1.0) for token in ("mldsa44", "mldsa65", "mldsa87")))
    for token, rounds in (("mldsa44", 4.25), ("mldsa65", 5.1), ("mldsa87", 3.85)):
        figure = call_figure(alone, ("sign", "mldsa", token))
        share = figure.sd_s / figure.mean_s
        there = known["sign", "mldsa", token]
        of_all_rounds = math.sqrt(rounds * (rounds - 1)) / rounds
        assert 0.8 * there.sd_s / there.mean_s < share < of_all_rounds
    assert call_figure(load_device("server"), ("verify", "mldsa", "mldsa65")).sd_s == 0.0
    one = board(("sign", "mldsa", "mldsa44", 1.0))
    scaled = call_figure(one, ("sign", "mldsa", "mldsa65"))
    assert scaled.basis == "scaled"
    assert scaled.sd_s == pytest.approx(0.7 * scaled.mean_s)


def test_basis_is_that_of_the_parts_that_may_be_large():
    """A cipher estimated at a fortieth of the work, but perhaps a third of it, decides the basis."""
    device = software(
        ("derive", "ecdh", "p256", 250.0),
        ("keygen", "ecdh", "p256", 250.0),
        overhead={"per_handshake_us": 0.0},
    )
    trace = handmade.entry(
        "tls1.3/p256/p256/server",
        [("client", "ClientHello", 1, 200), ("server", "Certificate", 2, 900)],
        [("client", 0, "derive", "ecdh", "p256"), ("client", 1, "cipher", "aes-128-gcm", "")],
    )
    trace["operations"][1] |= {"count": 1, "bytes": 500}
    cost = side_cost(parse_trace(trace, "x"), "client", device)
    assert not cost.without_cost
    assert cost.bases["assumed"].mean < 0.05 * cost.total.mean < cost.bases["assumed"].high
    assert cost.basis == "assumed"


def test_stack_work_is_smaller_without_public_key_operations():
    """On large cores, as the reference's own handshakes of both kinds show."""
    shown = reference()
    warm, cold = (shown.message("tls1.2", "ClientHello", "process", public_keys=one) for one in (False, True))
    assert warm is not None
    assert cold is not None
    assert warm.mean_s < 0.7 * cold.mean_s
    library = open_library()
    psk = side_cost(library["tls1.2/psk"], "server", load_device("server")).total
    measured = side_cost(library["tls1.2/psk"], "server", load_device("epyc-turin")).total
    assert 0.6 < psk.mean / measured.mean < 1.7


def test_symmetric_work_is_estimated_by_call_and_kib():
    device = board(
        primitive=[{"operation": "digest", "algorithm": "sha256", "per_call_us": 2.0, "per_kib_us": 10.0}],
        overhead={"per_handshake_us": 0.0},
    )
    trace = handmade.entry(
        "tls1.2/psk", [("client", "Finished", 1, 50)], [("client", 0, "digest", "sha256", "")]
    )
    trace["operations"][0] |= {"count": 3, "bytes": 2048}
    assert side_cost(parse_trace(trace, "x"), "client", device).total.mean == pytest.approx(26e-6)


@pytest.mark.parametrize(
    "triple", [("cipher", "aes-128-cbc", ""), ("digest", "sha256", ""), ("mac", "hmac-sha256", "")]
)
def test_kib_of_symmetric_work_is_estimated_if_the_profile_has_the_time_of_a_call_only(triple):
    names = ("operation", "algorithm", "parameters")
    device = board(
        primitive=[
            {**dict(zip(names, triple, strict=True)), "per_call_us": 2.0},
            {"operation": "cipher", "algorithm": "aes-256-cbc", "per_kib_us": 100.0},
            {"operation": "digest", "algorithm": "sha512", "per_kib_us": 100.0},
        ],
        overhead={"per_handshake_us": 0.0},
        implementation={"symmetric": "c"},
    )
    trace = handmade.entry("tls1.2/psk", [("client", "Finished", 1, 50)], [("client", 0, *triple)])

    def cost(size_bytes):
        trace["operations"][0] |= {"count": 3, "bytes": size_bytes}
        return side_cost(parse_trace(trace, "x"), "client", device)

    assert cost(0).total.mean == pytest.approx(6e-6)
    assert cost(0).basis == "own"
    long = cost(1_048_576)
    assert long.parts["board: own"].mean == pytest.approx(6e-6)
    assert 20e-6 * 1024 < long.total.mean < 2e-3 * 1024
    assert long.basis != "own"
    (row,) = long.figures
    assert (row["operation"], row["algorithm"]) == triple[:2]
    assert not long.without_cost


def test_key_derivation_with_a_digest_without_a_time_per_kib_is_assumed():
    """The profile has the digest's time of a call only."""
    device = board(
        primitive=[{"operation": "digest", "algorithm": "sha256", "per_call_us": 2.0}],
        overhead={"per_handshake_us": 0.0},
    )
    cost = side_cost(open_library()["tls1.3/x25519/p256/server"], "client", device)
    (basis,) = {one["basis"] for one in cost.figures if one["operation"] == "prf"}
    assert basis == "assumed"


def test_symmetric_work_at_a_published_rate_adds_padding_and_calls():
    """A rate of long messages contains neither padding nor the cost of a call: both are added, and marked."""
    device = board(
        primitive=[{"operation": "digest", "algorithm": "sha256", "per_kib_us": 1000.0}],
        overhead={"per_handshake_us": 0.0},
        implementation={"symmetric": "c"},
    )
    trace = handmade.entry(
        "tls1.2/psk", [("client", "Finished", 1, 50)], [("client", 0, "prf", "tls1-prf-sha256", "")]
    )
    trace["operations"][0] |= {"count": 1, "bytes": 48}
    cost = side_cost(parse_trace(trace, "x"), "client", device)
    blocks_s = 64 * (2.0 + 2 * 5.5) / 1024 * 1000e-6
    assert cost.total.mean > blocks_s
    (row,) = (one for one in cost.figures if one["operation"] == "prf")
    assert row["basis"] == "assumed"  # the weaker of the two
    assert row["count"] == 1
    assert "blocks of sha256" in row["method"]
    assert cost.bases["scaled"].mean == pytest.approx(blocks_s)
    assert not cost.without_cost


def test_device_overhead_counts_messages_and_bytes_per_message():
    device = board(
        ("sign", "rsa", "rsa2048", 1.0),
        overhead={"per_handshake_us": 100.0, "per_message_us": 10.0, "per_byte_us": 0.1},
    )
    trace = parse_trace(handmade.TLS12_PSK, "x")
    cost = side_cost(trace, "client", device)
    assert cost.total.mean == pytest.approx((100 + 8 * 10 + 291 * 0.1) * 1e-6)
    assert cost.message_s[0] == pytest.approx((10 + 100 * 0.1) * 1e-6)
    assert cost.message_s[None] == pytest.approx(100e-6)
    assert cost.basis == "own"


@pytest.mark.parametrize("name", ["phone", "server", "cortex-m4", "palm-vii", "esp32", "rp2350"])
def test_handshake_without_public_keys_has_a_cost_on_every_device(name):
    """Even PSK has a cost, and its basis is "assumed"."""
    for side in ("client", "server"):
        cost = side_cost(parse_trace(handmade.TLS12_PSK, "x"), side, load_device(name))
        assert cost.total.mean > 1e-6
        assert cost.total.low < cost.total.mean < cost.total.high
        assert cost.basis == "assumed"
        assert sum(cost.message_s.values()) == pytest.approx(cost.total.mean)


def test_operation_without_cost_figure_is_unknown_and_named():
    trace = parse_trace(
        handmade.entry(
            "tls1.2/ecdhe_ecdsa/sect571r1/server",
            [("client", "ClientHello", 1, 50), ("server", "Certificate", 2, 900)],
            [("client", 1, "verify", "ecdsa", "sect571r1"), ("client", 1, "verify", "ecdsa", "sect571r1")],
        ),
        "x",
    )
    cost = side_cost(trace, "client", load_device("cortex-m4"))
    (missing,) = cost.without_cost
    assert (missing["operation"], missing["algorithm"], missing["count"]) == ("verify", "ecdsa", 2)
    assert missing["reason"]
    assert cost.basis == "unknown"


def test_single_key_size_is_scaled_by_the_size_law():
    """No build has this size: the family's law decides, and how far other sizes are from it."""
    figure = call_figure(board(("decrypt", "rsa", "rsa1024", 10.0)), ("decrypt", "rsa", "rsa1280"))
    assert figure.time is not None
    assert figure.time.mean == pytest.approx(10e-3 * 1.25 ** SIZE_EXPONENTS["rsa-private"], rel=0.15)
    assert figure.time.low < figure.time.mean < figure.time.high
    assert figure.basis == "scaled"
    assert figure.method.startswith("same operation: decrypt rsa rsa1024")


def test_a_private_operation_does_not_depend_on_the_exponent():
    device = board(("sign", "rsa", "rsa1024", 10.0))
    for triple in (
        ("sign", "rsa", "rsa1024e3"),
        ("decrypt", "rsa", "rsa1024"),
        ("decrypt", "rsa", "rsa1024e3"),
    ):
        figure = call_figure(device, triple)
        assert figure.time is not None
        assert figure.time.mean == pytest.approx(10e-3, rel=0.1)
        assert figure.method.startswith("same work")


def test_small_exponent_range_contains_the_figures_of_daswani():
    """598 ms with e = 3 and 1482 ms with e = 65537, on one device."""
    figure = call_figure(board(("verify", "rsa", "rsa1024", 1482.0)), ("verify", "rsa", "rsa1024e3"))
    assert figure.time is not None
    assert figure.time.low < 0.598 < figure.time.high
    back = call_figure(board(("verify", "rsa", "rsa1024e3", 598.0)), ("verify", "rsa", "rsa1024"))
    assert back.time is not None
    assert back.time.low < 1.482 < 1.05 * back.time.high  # the range ends 3 % below


def test_hybrid_cost_is_the_sum_of_its_parts():
    device = load_device("cortex-m4")
    costs = device.costs
    figure = call_figure(device, ("encapsulate", "hybrid", "x25519mlkem768"))
    parts = (("keygen", "ecdh", "x25519"), ("derive", "ecdh", "x25519"), ("encapsulate", "mlkem", "mlkem768"))
    assert figure.mean_s == pytest.approx(sum(costs[part].mean_s for part in parts))


def test_a_device_without_primitives_is_refused_in_one_line():
    trace = parse_trace(handmade.TLS12_RSA, "x")
    with pytest.raises(InputError, match=r"'kuo-p4' has no primitives.*--scale-from DEVICE") as caught:
        side_cost(trace, "client", load_device("kuo-p4"))
    assert "\n" not in str(caught.value)


def test_clock_scaling_is_optional_and_named():
    trace = parse_trace(handmade.TLS12_RSA, "x")
    palm, iphone = load_device("palm-vii"), load_device("via-533")
    own, scaled = side_cost(trace, "client", palm), side_cost(trace, "client", iphone, palm)
    assert scaled.total.mean == pytest.approx(own.total.mean * 20 / 533)
    assert scaled.basis in ("assumed", "unknown")
    for row in scaled.figures:
        assert row["method"].startswith("clock: palm-vii's figure")
        assert row["range_s"][0] <= row["time_s"] / 2


DEVICES = [name for name in device_names() if name != "this-machine" and load_device(name).has_primitives]
TRIPLES = [
    ("sign", "rsa", "rsa2048"),
    ("verify", "rsa", "rsa3072e3"),
    ("encrypt", "rsa", "rsa512"),
    ("sign", "dsa", "dsa1024"),
    ("verify", "ecdsa", "sect283r1"),
    ("sign", "ecdsa", "brainpoolp384r1"),
    ("derive", "ecdh", "secp160r1"),
    ("keygen", "ecdh", "p256"),
    ("derive", "ecdh", "x448"),
    ("sign", "eddsa", "ed25519"),
    ("sign", "mldsa", "mldsa87"),
    ("decapsulate", "mlkem", "mlkem512"),
    ("decapsulate", "hybrid", "secp256r1mlkem768"),
    ("derive", "dh", "wtlsdh512"),
    ("keygen", "dh", "ffdhe3072"),
]


@pytest.mark.parametrize("name", DEVICES)
def test_every_figure_has_a_basis_and_a_method(name):
    device = load_device(name)
    for triple in TRIPLES:
        figure = call_figure(device, triple)
        assert (figure.basis == "own") == (triple in device.costs)
        assert bool(figure.method) == (figure.basis != "own")
        if figure.basis == "unknown":
            assert figure.time is None
        else:
            assert figure.time is not None
            assert 0.0 <= figure.time.low <= figure.time.mean <= figure.time.high
            assert figure.basis == "own" or figure.time.low < figure.time.mean < figure.time.high
        if figure.basis == "scaled" and triple[1] != "hybrid" and device.spread <= 1.1:
            assert figure.time.high / figure.time.mean <= 4.0 * 1.0001


@pytest.mark.parametrize("name", DEVICES)
def test_kem_keygen_and_decapsulation_are_within_a_factor_of_three(name):
    device = load_device(name)
    for token in ("mlkem512", "mlkem768", "mlkem1024"):
        made, opened = (call_figure(device, (step, "mlkem", token)) for step in ("keygen", "decapsulate"))
        if made.time is not None and opened.time is not None:
            assert 1 / 3 < made.time.mean / opened.time.mean < 3


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(DEVICES), st.sampled_from(TRIPLES), st.floats(1.0, 50.0))
def test_a_faster_clock_of_the_same_core_never_costs_more(name, triple, times):
    """If every figure of a profile shrinks with the clock, each cost shrinks by the same factor."""
    from dataclasses import replace

    device = load_device(name)
    costs = {
        key: replace(
            cost, mean_s=cost.mean_s / times, sd_s=cost.sd_s / times, per_kib_s=cost.per_kib_s / times
        )
        for key, cost in device.costs.items()
    }
    faster = replace(device, clock_hz=device.clock_hz * times, costs=costs)
    slow, fast = call_figure(device, triple), call_figure(faster, triple)
    assert (slow.time is None) == (fast.time is None)
    if slow.time is not None and fast.time is not None:
        assert fast.time.mean <= slow.time.mean * (1 + 1e-9)
        assert fast.time.mean == pytest.approx(slow.time.mean / times, rel=1e-6)


@pytest.mark.parametrize("name", DEVICES)
def test_a_larger_key_is_never_cheaper(name):
    for operation, algorithm, sizes in (
        ("decrypt", "rsa", ("rsa1024", "rsa2048", "rsa4096")),
        ("derive", "dh", ("dh1024", "dh2048", "dh3072")),
    ):
        figures = [call_figure(load_device(name), (operation, algorithm, size)) for size in sizes]
        times = [figure.time.mean for figure in figures if figure.time is not None]
        assert times == sorted(times)


def test_independent_deviations_combine_in_quadrature():
    parts = {"a": Range(8.0, 10.0, 13.0), "b": Range(16.0, 20.0, 24.0)}
    whole = combined(parts)
    assert whole.mean == 30.0
    assert whole.low == pytest.approx(30.0 - math.hypot(2.0, 4.0))
    assert whole.high == pytest.approx(30.0 + math.hypot(3.0, 4.0))


def test_shared_assumptions_cancel_in_a_ratio():
    shared = Range(1.0, 10.0, 100.0)
    assert ratio({"x": shared}, {"x": shared.times(2.0)}) == pytest.approx((0.5, 0.5, 0.5))
    apart = ratio({"x": shared}, {"y": shared.times(2.0)})
    assert apart.low < 0.06 < 0.5 < 4.0 < apart.high


def software(*primitives: tuple[str, str, str, float], **more):
    kinds = {"curves": "c", "integers": "c", "symmetric": "c"}
    return board(*primitives, implementation=kinds, core={"word_bits": 32}, **more)


def test_x25519_is_scaled_from_p256_if_the_library_is_known():
    figures = [("derive", "ecdh", "p256", 100.0), ("sign", "ecdsa", "p256", 110.0)]
    figure = call_figure(software(*figures, library="mbed TLS (mbedTLS) 3"), ("derive", "ecdh", "x25519"))
    assert figure.time is not None
    assert figure.basis == "scaled"
    assert figure.method.startswith("same group: derive ecdh p256")
    assert 0.03 < figure.time.mean < 0.2
    assert figure.time.high / figure.time.mean < 4.0
    unknown = call_figure(software(*figures), ("derive", "ecdh", "x25519"))
    assert unknown.basis == "unknown"
    assert "uncertain by" in unknown.method


def test_operation_that_an_accelerator_lacks_is_unknown():
    device = board(("derive", "ecdh", "p256", 1.0), implementation={"curves": "accelerator"})
    assert call_figure(device, ("derive", "ecdh", "x25519")).basis == "unknown"


def test_operation_that_an_accelerator_lacks_is_computed_in_c():
    """The board's own build of that library in C gives the cost; the library's class alone is uncertain."""
    x25519 = ("derive", "ecdh", "x25519")
    there = load_device("k82:c")
    figure = call_figure(load_device("k82"), x25519)
    assert (figure.basis, figure.time) == ("assumed", call_figure(there, x25519).time)
    assert figure.method.startswith("in software, as k82:c has it: same group: derive ecdh p256")
    alike = call_figure(load_device("lpc55s36"), x25519)
    assert alike.basis == "assumed"
    assert alike.time is not None
    assert alike.method.endswith("as on 7 boards alike in library")
    cycles = [device.costs[x25519].mean_s * device.clock_hz for device in map(load_device, IN_C)]
    clock_hz = load_device("lpc55s36").clock_hz
    assert min(cycles) < alike.time.mean * clock_hz < max(cycles)
    assert alike.time.low * clock_hz < min(cycles)
    assert max(cycles) < alike.time.high * clock_hz
    # Few other boards of the library publish X25519; the board itself does, with another library.
    here, other = call_figure(load_device("nrf52840"), x25519), load_device("nrf52840:c").costs[x25519]
    assert here.basis == "assumed"
    assert here.method.endswith("alike in library and in another library on this one")
    assert here.time.low < other.mean_s < here.time.high
    unknown = call_figure(load_device("k230"), x25519)  # no other board of the library has its word size
    assert (unknown.basis, unknown.time) == ("unknown", None)
    assert 0.0 < unknown.at_most_s < 1.0


IN_C = ("k32w148", "kw47", "mcx-n947", "imx-rt1180", "rw612:c", "nrf52840:c", "k64f")
"""Boards of mbedTLS in C that publish X25519."""


@pytest.mark.parametrize(("time_ms", "counted"), [(500.0, True), (0.5, False)])
def test_uncertain_cipher_is_used_only_beside_much_longer_work(time_ms, counted):
    """Without a figure for any cipher, a C core's AES-GCM is known within a factor of about twenty."""
    device = software(
        ("derive", "ecdh", "p256", time_ms),
        ("keygen", "ecdh", "p256", time_ms),
        overhead={"per_handshake_us": 0.0},
    )
    trace = handmade.entry(
        "tls1.3/p256/p256/server",
        [("client", "ClientHello", 1, 200), ("server", "Certificate", 2, 900)],
        [("client", 0, "derive", "ecdh", "p256"), ("client", 1, "cipher", "aes-128-gcm", "")],
    )
    trace["operations"][1] |= {"count": 2, "bytes": 1000}
    cost = side_cost(parse_trace(trace, "x"), "client", device)
    assert (not cost.without_cost) == counted
    if counted:
        (row,) = (one for one in cost.figures if one["operation"] == "cipher")
        assert row["basis"] == "assumed"
        assert row["range_s"][1] > 4.0 * row["time_s"]
        assert cost.total.high - cost.total.mean >= 0.9 * (row["range_s"][1] - row["time_s"])
    else:
        assert cost.basis == "unknown"
        assert "by the clock it is uncertain" in cost.without_cost[0]["reason"]


def test_server_software_sets_connection_work_and_library():
    """Go's RSA is compared with OpenSSL's X25519: it is no faster where OpenSSL's RSA is vectorised."""
    suite, device = "tls1.3/x25519/rsa3072/server", load_device("epyc-turin")
    ours, haproxy, go = (
        side_cost(open_library(server_software=name)[suite], "server", device)
        for name in ("openssl", "haproxy", "go")
    )
    software = load_software("haproxy")
    assert haproxy.connection.mean == pytest.approx(ours.connection.mean * software.connection.times)
    assert haproxy.connection.low / haproxy.connection.mean < ours.connection.low / ours.connection.mean
    rsa = device.costs["sign", "rsa", "rsa3072"].mean_s
    public = rsa + sum(device.costs[what, "ecdh", "x25519"].mean_s for what in ("keygen", "derive"))
    beside = (ours.total.mean - public) * software.work.times
    assert haproxy.total.mean == pytest.approx(public + beside, rel=1e-3)
    known = go.parts["Go's crypto"]
    unit = device.costs["derive", "ecdh", "x25519"].mean_s
    factors = load_software("go").library.primitives
    calls = ("sign rsa rsa3072", "keygen ecdh x25519", "derive ecdh x25519")
    assert known.mean == pytest.approx(unit * sum(factors[one].times for one in calls))
    assert known.mean > 2 * rsa
    # On another processor all operations of the library are slower or faster together.
    spread = min(factors[one].spread for one in calls)
    assert known.low <= known.mean / spread * (1 + 1e-9) < known.mean * spread <= known.high * (1 + 1e-9)
    # The server's software does not change the client's cost.
    clients = [
        side_cost(open_library(server_software=name)[suite], "client", device)
        for name in ("nginx", "haproxy")
    ]
    assert clients[0].total == clients[1].total


def test_rsa_decryption_of_a_library_takes_as_long_as_its_signature():
    """Both are the same operation with the private key."""
    device = load_device("epyc-turin")
    decrypts, signs = (
        side_cost(open_library(server_software="go")[f"tls1.2/{exchange}/rsa2048/server"], "server", device)
        for exchange in ("rsa", "ecdhe_rsa+x25519")
    )
    primitives = load_software("go").library.primitives
    curves = sum(primitives[f"{what} ecdh x25519"].times for what in ("keygen", "derive"))
    unit = device.costs["derive", "ecdh", "x25519"].mean_s
    known = decrypts.parts["Go's crypto"]
    assert known.mean == pytest.approx(signs.parts["Go's crypto"].mean - unit * curves)
    assert known.high < 2 * known.mean


def test_connection_range_contains_the_deviation_of_its_measurement():
    device, suite = load_device("epyc-turin"), open_library()["tls1.2/psk"]
    steady = dataclasses.replace(device, connection=structs.replace(device.connection, sd_s=0.0))
    found, narrow = (side_cost(suite, "server", one).connection for one in (device, steady))
    assert found.mean == narrow.mean
    assert narrow.high == pytest.approx(narrow.mean * device.spread)
    assert found.high >= found.mean + 1.645 * device.connection.sd_s > narrow.high
    assert found.low < narrow.low


def test_message_work_uses_the_nearest_public_key_operations():
    """A key exchange that signs with Ed25519 is not the average of all, most of them with larger numbers."""
    measured = {"": 13.0, "dh+rsa": 26.0, "ecdh+rsa": 20.0, "ecdsa+xdh": 7.0, "rsa+xdh": 8.0, "xdh": 3.0}
    overhead = Overhead(
        messages={
            ("tls1.2", "ServerKeyExchange", "generate", key): MessageWork(mean_s)
            for key, mean_s in measured.items()
        }
    )

    def of(key: str) -> float:
        found = overhead.of("tls1.2", "ServerKeyExchange", "generate", key)
        assert found is not None
        return found.mean_s

    assert of("eddsa+xdh") == 7.0
    assert of("ecdsa+ecdh") == 7.0  # two share one algorithm with it
    assert of("rsa+xdh") == 8.0
    assert of("mlkem") == of("") == 13.0
    assert overhead.of("tls1.2", "Finished", "generate", "xdh") is None


def test_server_software_has_a_separate_factor_without_public_keys():
    go, device = load_software("go"), load_device("epyc-turin")
    assert go.symmetric_work is not None
    for suite, factor in (
        ("tls1.2/ecdhe_ecdsa+x25519/p256/server/ticket", go.symmetric_work),
        ("tls1.2/ecdhe_ecdsa+x25519/p256/server", go.work),
        ("tls1.3/x25519/p256/server/resumed", go.work),
    ):
        cost = side_cost(open_library(server_software="go")[suite], "server", device)
        assert any(f"public-key operations: × {factor.times:g}" in one["method"] for one in cost.figures)
