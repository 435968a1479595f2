"""Each operation at the device's own figure, else extrapolated, and said so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predict import handmade
from shakedown.errors import InputError
from shakedown.pricing.extrapolation import EXPONENTS, call_figure
from shakedown.pricing.prices import price
from shakedown.pricing.trace import parse_trace
from shakedown.profiles import device_names, load_device, parse_device

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


def test_own_figures_are_not_extrapolated():
    device = load_device("cortex-m4")
    priced = price(parse_trace(handmade.TLS13_P256, "x"), "client", device)
    assert priced.total.mean == pytest.approx(31.969e-3 + 31.625e-3 + 2 * 94.417e-3)
    assert priced.total.low == priced.total.high == priced.total.mean
    assert priced.message_s[3] == pytest.approx(94.417e-3)
    (row,) = priced.extrapolated
    assert (row["operation"], row["time_s"], row["method"]) == ("import", 0.0, "none: counts as 0")


def test_symmetric_work_is_priced_by_call_and_kib():
    device = board(
        primitive=[{"operation": "digest", "algorithm": "sha256", "per_call_us": 2.0, "per_kib_us": 10.0}]
    )
    trace = handmade.entry(
        "tls1.2/psk", [("client", "Finished", 1, 50)], [("client", 0, "digest", "sha256", "")]
    )
    trace["operations"][0] |= {"count": 3, "bytes": 2048}
    assert price(parse_trace(trace, "x"), "client", device).total.mean == pytest.approx(26e-6)


def test_overhead_counts_messages_and_bytes():
    device = board(
        ("sign", "rsa", "rsa2048", 1.0),
        overhead={"per_handshake_us": 100.0, "per_message_us": 10.0, "per_byte_us": 0.1},
    )
    trace = parse_trace(handmade.TLS12_PSK, "x")
    assert price(trace, "client", device).total.mean == pytest.approx((100 + 8 * 10 + 291 * 0.1) * 1e-6)


def test_another_size_goes_by_the_familys_exponent():
    figure = call_figure(board(("decrypt", "rsa", "rsa1024", 10.0)), ("decrypt", "rsa", "rsa2048"))
    assert figure.time.mean == pytest.approx(10e-3 * 2 ** EXPONENTS["rsa-private"])
    assert figure.time.low < figure.time.mean < figure.time.high
    assert figure.method.startswith("size: rsa1024")


def test_two_sizes_of_its_own_tell_the_exponent():
    device = board(("decrypt", "rsa", "rsa1024", 10.0), ("decrypt", "rsa", "rsa2048", 55.0))
    figure = call_figure(device, ("decrypt", "rsa", "rsa4096"))
    assert figure.time.mean == pytest.approx(55e-3 * 5.5)


def test_a_private_operation_does_not_hang_on_the_exponent():
    device = board(("sign", "rsa", "rsa1024", 10.0))
    for triple in (
        ("sign", "rsa", "rsa1024e3"),
        ("decrypt", "rsa", "rsa1024"),
        ("decrypt", "rsa", "rsa1024e3"),
    ):
        figure = call_figure(device, triple)
        assert figure.time.mean == pytest.approx(10e-3)
        assert figure.method.startswith("same operation")


def test_the_small_exponents_range_holds_daswanis_figures():
    """598 ms with e = 3 and 1482 ms with e = 65537, on one device."""
    figure = call_figure(board(("verify", "rsa", "rsa1024", 1482.0)), ("verify", "rsa", "rsa1024e3"))
    assert figure.time.low < 0.598 < figure.time.high
    back = call_figure(board(("verify", "rsa", "rsa1024e3", 598.0)), ("verify", "rsa", "rsa1024"))
    assert back.time.low < 1.482 < back.time.high


def test_exponents_as_long_as_the_prime_cost_their_length():
    device = board(("derive", "dh", "ffdhe2048", 10.0))
    figure = call_figure(device, ("keygen", "dh", "dh2048"))
    assert figure.time.mean == pytest.approx(10e-3 * 2048 / 225)
    assert call_figure(device, ("keygen", "dh", "ffdhe2048")).time.mean == pytest.approx(10e-3)


def test_a_hybrid_is_its_parts():
    device = load_device("cortex-m4")
    costs = device.costs
    figure = call_figure(device, ("encapsulate", "hybrid", "x25519mlkem768"))
    parts = (("keygen", "ecdh", "x25519"), ("derive", "ecdh", "x25519"), ("encapsulate", "mlkem", "mlkem768"))
    assert figure.time.mean == pytest.approx(sum(costs[part].mean_s for part in parts))


def test_an_absent_family_is_the_ratio_of_a_named_reference():
    reference = load_device("reference").costs
    figure = call_figure(board(("sign", "ecdsa", "p256", 50.0)), ("sign", "eddsa", "ed25519"))
    ratio = reference["sign", "eddsa", "ed25519"].mean_s / reference["sign", "ecdsa", "p256"].mean_s
    assert figure.time.mean == pytest.approx(50e-3 * ratio)
    assert figure.method.endswith("as on reference")
    assert figure.time.low <= figure.time.mean / 2
    assert figure.time.high >= figure.time.mean * 2


def test_a_device_without_primitives_is_refused_in_one_line():
    trace = parse_trace(handmade.TLS12_RSA, "x")
    with pytest.raises(InputError, match=r"'kuo-p4' has no primitives.*--scale-from DEVICE") as caught:
        price(trace, "client", load_device("kuo-p4"))
    assert "\n" not in str(caught.value)


def test_clock_scaling_is_asked_for_and_named():
    trace = parse_trace(handmade.TLS12_RSA, "x")
    palm, iphone = load_device("palm-vii"), load_device("via-533")
    own, scaled = price(trace, "client", palm), price(trace, "client", iphone, palm)
    assert scaled.total.mean == pytest.approx(own.total.mean * 20 / 533)
    for row in scaled.extrapolated:
        if row["time_s"]:
            assert row["method"].startswith("clock: palm-vii's figure")
            assert row["range_s"][0] <= row["time_s"] / 2


PRICED = [name for name in device_names() if name != "this-machine" and load_device(name).priced]
TRIPLES = [
    ("sign", "rsa", "rsa2048"),
    ("verify", "rsa", "rsa3072e3"),
    ("encrypt", "rsa", "rsa512"),
    ("sign", "dsa", "dsa1024"),
    ("verify", "ecdsa", "sect283r1"),
    ("sign", "ecdsa", "brainpoolp384r1"),
    ("derive", "ecdh", "secp160r1"),
    ("keygen", "ecdh", "wtls9"),
    ("derive", "ecdh", "x448"),
    ("sign", "eddsa", "ed25519"),
    ("sign", "mldsa", "mldsa87"),
    ("decapsulate", "mlkem", "mlkem512"),
    ("decapsulate", "hybrid", "secp256r1mlkem768"),
    ("derive", "dh", "wtlsdh512"),
    ("keygen", "dh", "ffdhe3072"),
]


@pytest.mark.parametrize("name", PRICED)
@pytest.mark.parametrize("triple", TRIPLES, ids=" ".join)
def test_everything_has_a_price_everywhere(name, triple):
    figure = call_figure(load_device(name), triple)
    assert 0.0 <= figure.time.low <= figure.time.mean <= figure.time.high
    assert bool(figure.method) == (triple not in load_device(name).costs)


@given(st.sampled_from(PRICED), st.sampled_from([("decrypt", "rsa"), ("derive", "dh")]))
def test_a_larger_key_is_never_cheaper(name, kind):
    operation, algorithm = kind
    sizes = ("rsa1024", "rsa2048", "rsa4096") if algorithm == "rsa" else ("dh1024", "dh2048", "dh3072")
    device = load_device(name)
    times = [call_figure(device, (operation, algorithm, size)).time.mean for size in sizes]
    assert times == sorted(times)
