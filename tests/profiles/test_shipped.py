"""All profiles of the package have names and sources, and agree with their derivations."""

from __future__ import annotations

import statistics

import pytest

from models.papers import by_certificates, table
from shakedown.models.energy import LinkBytes
from shakedown.prediction.energy import client_energy
from shakedown.prediction.predict import predict_rows
from shakedown.prediction.work import SideCost, Work
from shakedown.profiles import THIS_MACHINE, bearer_names, device_names, load_bearer, load_device
from shakedown.profiles.delay import distribution, quantile_s

DESCRIPTION_ONLY = """
    ipaq-h3970 aka-laptop-p4 aka-server-piii axim-x51v shin-laptop shin-server via-533 kuo-p4
"""
DEVICES = f"""
    palm-vii palm-vii-old palm-v nokia-7650 wap-gateway-p4 cortex-m4 cortex-m33 esp32 raspberry-pi phone
    server
    {DESCRIPTION_ONLY}
"""
BEARERS = """
    gsm-csd gprs gprs-best gprs-worst gprs-12pm gprs-2pm gprs-4pm gprs-6pm gprs-8pm gprs-10pm gprs-12am
    gprs-cs1 umts-144 umts-384 umts-2000 wifi-11b wifi-11b-wep wifi lte lte-m nb-iot 5g leo geo ble
    ethernet 2g 3g 4g
"""
NO_WORK = Work(SideCost(), SideCost(), one_device=False)
CURVES = {
    "160p": "secp160r1",
    "163k": "sect163k1",
    "163r": "sect163r2",
    "224p": "p224",
    "233k": "sect233k1",
    "233r": "sect233r1",
    "256p": "p256",
    "283k": "sect283k1",
    "283r": "sect283r1",
}


@pytest.fixture(autouse=True)
def nobody_elses_profiles(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def test_every_documented_profile_is_shipped():
    assert set(DEVICES.split()) <= set(device_names())
    assert THIS_MACHINE in device_names()
    assert set(BEARERS.split()) <= set(bearer_names())


@pytest.mark.parametrize("name", sorted(set(device_names()) - {THIS_MACHINE}))
def test_device_has_title_chip_and_source(name):
    device = load_device(name)
    assert device.name == name
    assert device.title
    assert device.chip
    assert device.source
    assert device.has_primitives == (name not in DESCRIPTION_ONLY.split())


@pytest.mark.parametrize("name", bearer_names())
def test_bearer_has_title_and_a_source_for_every_parameter(name):
    bearer = load_bearer(name)
    assert bearer.name == name
    assert bearer.title
    about = {"rate", "delay", "delay_holds", "loss", "queue", "setup", "duplex", "mtu"}
    if bearer.packet_overhead_bytes:
        about.add("overhead")
    if bearer.link_encryption != "none":
        about.add("encryption")
    if bearer.ip_bytes != 20:
        about.add("headers")
    about.add("energy")
    if bearer.thesis is not None:
        about.add("thesis")
    assert bearer.source
    assert about <= set(bearer.source) | set(bearer.assumed)
    for way in (bearer.up, bearer.down):
        assert distribution(way.delay).sd > 0.0


@pytest.mark.parametrize("name", bearer_names())
def test_every_bearer_has_an_energy_with_a_source_or_a_reason(name):
    bearer = load_bearer(name)
    found = client_energy(LinkBytes(1200.0, 2400.0), load_device("cortex-m4"), bearer, NO_WORK, 60.0)
    assert (found.missing, found.wake_tail_missing) == ((), ())
    assert bearer.source.get("energy") or bearer.assumed["energy"]
    assert bearer.energy.spread > 1.0 or name == "loopback"
    assert found.terms.startswith(f"over {name}: the client is already connected")
    idle = client_energy(LinkBytes(1.0, 1.0), load_device("cortex-m4"), bearer, NO_WORK, 60.0, from_idle=True)
    assert idle.wake_tail_missing == ()
    if bearer.setup is None:
        assert f"idle makes no difference ({bearer.assumed['setup']})" in idle.terms
    else:
        assert idle.setup.low < idle.setup.mean < idle.setup.high
        assert "the radio wakes from idle (" in idle.terms


@pytest.mark.parametrize(
    ("name", "up_bytes", "down_bytes", "published_j"),
    [
        ("nb-iot", 400, 0, 0.377),
        ("nb-iot", 400, 40, 0.512),
        ("lte-m", 400, 0, 0.510),
        ("lte-m", 400, 40, 0.540),
        ("edge", 1_000, 51_200, 5.0),
        ("umts", 1_000, 51_200, 12.5),
    ],
)
def test_exchange_energy_matches_published_measurements(name, up_bytes, down_bytes, published_j):
    """An nRF9160-DK woken for one exchange, by a power profiler (boaks/zephyr-coaps-client); a phone's
    download of 50 KB over GSM and 3G, tail included (Balasubramanian et al., IMC 2009, table 3).
    """
    bearer = load_bearer(name)
    header = bearer.ip_bytes + bearer.udp_bytes
    sent = LinkBytes(up_bytes + header, down_bytes + header if down_bytes else 0.0)
    way_s = distribution(bearer.up.delay).mean * (2 if down_bytes else 1)
    elapsed_s = 8 * sent.up / bearer.up_bits_per_s + 8 * sent.down / bearer.down_bits_per_s + way_s
    found = client_energy(sent, load_device("palm-vii"), bearer, NO_WORK, elapsed_s, from_idle=True)
    whole = found.total
    assert whole is not None
    assert whole.low < published_j < whole.high


def test_palm_profiles_match_figure_3():
    figures = {
        (row["primitive"], row["rsa_public_exponent"]): float(row["palm_vii_new_20mhz_ms"]) / 1e3
        for row in table("wtls-palm", "figure_3_primitive_times")
    }
    costs = load_device("palm-vii").costs
    assert costs["sign", "ecdsa", "sect163k1"].mean_s == pytest.approx(figures["ecdsa_sign", ""])
    assert costs["keygen", "ecdh", "sect163k1"].mean_s == pytest.approx(figures["key_generation", ""])
    assert costs["verify", "rsa", "rsa1024e3"].mean_s == pytest.approx(figures["public_decrypt", "3"])
    expansion = figures["key_expansion", ""]
    assert costs["verify", "ecdsa", "sect163k1"].mean_s == pytest.approx(
        figures["ecdsa_verify", ""] + expansion
    )


def test_nokia_primitives_follow_from_totals_and_percentages():
    totals = {
        "mutual": by_certificates("table_4_1_mutual_processing_times"),
        "server": by_certificates("table_4_2_serverauth_processing_times"),
    }
    shares = {
        "mutual": by_certificates("table_4_3_mutual_ecdh_client_pct"),
        "server": by_certificates("table_4_7_serverauth_ecdh_client_pct"),
    }
    verifies: dict[str, list[float]] = {}
    for mode, rows in shares.items():
        for key, row in rows.items():
            time_s = float(totals[mode][key]["client_ms"]) / 1e3 * float(row["verify_server_cert_pct"]) / 100
            verifies.setdefault(CURVES[key[0]], []).append(time_s)
    costs = load_device("nokia-7650").costs
    for curve, times in verifies.items():
        assert costs["verify", "ecdsa", curve].mean_s == pytest.approx(statistics.median(times), rel=1e-4)
    keygen = costs["keygen", "ecdh", "p256"]
    assert keygen.mean_s == 0.0
    assert "one multiplication" in keygen.note


def test_gprs_profiles_match_the_thesis_tables():
    rates = {row["time_slot"]: row for row in table("wtls-nokia7650", "table_4_13_gprs_data_rates")}
    delays = {row["time_slot"]: row for row in table("wtls-nokia7650", "table_4_14_gprs_traversal_delays")}
    for slot, rate in rates.items():
        bearer = load_bearer("gprs-" + slot.replace(" ", "").lower())
        assert bearer.up_bits_per_s == pytest.approx(float(rate["upload_kbps"]) * 1e3)
        assert bearer.down_bits_per_s == pytest.approx(float(rate["download_kbps"]) * 1e3)
        assert bearer.traversal_s == pytest.approx(float(delays[slot]["mean_ms"]) / 1e3)
        assert bearer.traversal_sd_s == pytest.approx(float(delays[slot]["sd_ms"]) / 1e3)


def test_ml_dsa_signing_is_a_distribution():
    cost = load_device("cortex-m4").costs["sign", "mldsa", "mldsa44"]
    assert cost.low_s < cost.mean_s < cost.high_s
    assert cost.sd_s > 0.0


def test_power_is_data_sheet_current_times_voltage():
    m4, c3 = load_device("cortex-m4").energy, load_device("esp32-c3").energy
    assert m4.active_w == pytest.approx(91e-6 * 80 * 3.0)
    assert m4.idle_w == pytest.approx(2.57e-6 * 3.0)
    assert c3.active_w == pytest.approx(26.8e-3 * 3.3)
    assert c3.idle_w == pytest.approx(0.35e-3 * 3.3)


def test_board_over_nb_iot_has_a_plausible_energy():
    (row,) = predict_rows(["tls1.3/x25519/p256/server"], device="cortex-m4", bearer="nb-iot")
    energy = row["energy_j"]
    assert 0.01 < energy["lower"] < energy["estimate"] < 3.0
    computing_s = row["client_s"]["estimate"] + row["connection_s"]["client"]
    processor_j = computing_s * 0.02184 + (row["done_s"]["mean"] - computing_s) * 7.71e-6
    assert row["energy_parts_j"]["processor"] == pytest.approx(processor_j)
    parts = row["energy_parts_j"]
    assert energy["estimate"] == pytest.approx(parts["processor"] + parts["radio"])
    assert row["wake_tail_j"]["estimate"] == pytest.approx(parts["setup"] + parts["tail"])


MODERN = """
    stm32f4 stm32f7 stm32h7 stm32h7s cortex-m4 stm32l5 stm32u5 stm32wb55 stm32wl55 cortex-m33 stm32g0
    nrf52840 rp2350
    esp32 esp32-c3 k64f k32w148 kw47 mcx-n947 lpc55s36 rw612 imx-rt685 imx-rt1180 imx-8ulp imx-7ulp
    efr32 hifive1
    raspberry-pi-3 raspberry-pi phone phone-little apple-m1 apple-m3 sifive-u540 graviton3 altra
    cobalt100 grace server
    xeon-6242r core-i7-13700h epyc-7543p epyc-turin
"""


@pytest.mark.parametrize("name", MODERN.split())
def test_modern_devices_have_eight_figures_with_sources(name):
    device = load_device(name)
    assert len(device.costs) >= 8
    assert device.date
    assert device.core.word_bits
    for one in (device, *device.variants):
        assert one.source
        assert one.library
        assert one.build
        assert all(0 <= cost.source <= len(one.source) for cost in one.costs.values())


def test_there_are_thirty_modern_devices():
    assert len(MODERN.split()) >= 30


def test_contradicted_figures_of_a_source_are_omitted():
    """A figure that a board's other sources contradict is in no profile."""
    assert ("verify", "rsa", "rsa2048") not in load_device("esp32-c3").costs
    assert ("encapsulate", "mlkem", "mlkem512") not in load_device("raspberry-pi").costs
    assert load_device("raspberry-pi").spread > 1.2
    assert not load_device("raspberry-pi").reference
    sign = load_device("cortex-m4").costs["sign", "mldsa", "mldsa65"]
    assert sign.low_s == pytest.approx(2_918_295 / 80e6)


def test_profiles_accept_every_algorithm_of_handshakes():
    from shakedown import native
    from shakedown.profiles.vocabulary import ALGORITHMS

    named = {
        (one["operation"], one["algorithm"])
        for suite in native.suites()
        for one in native.describe(suite.suite)["operations"]
    }
    accepted = {(operation, one) for operation, algorithms in ALGORITHMS.items() for one in algorithms}
    assert named <= accepted
    # Each operation occurs in some suite, except the import of keys, which suites do not list.
    assert {operation for operation, _ in named} == set(ALGORITHMS) - {"import"}


@pytest.mark.parametrize("name", ["nb-iot", "nb-iot-ce1", "nb-iot-ce2"])
def test_connected_module_draws_its_receive_power(name):
    """Without discontinuous reception the module reads the control channel all the time."""
    energy = load_bearer(name).energy
    assert energy.idle_w == energy.receive_w == 0.09


@pytest.mark.parametrize(
    ("text", "share", "delay_s"),
    [
        ({"minimum": 220, "median": 400, "p95": 720}, 0.5, 0.4),
        ({"minimum": 220, "median": 400, "p95": 720}, 0.95, 0.72),
        ({"minimum": 0, "maximum": 75}, 0.95, 0.07125),
        ({"quantiles": [[0, 20], [0.5, 28], [0.99, 60], [1, 150]]}, 0.5, 0.028),
        ({"quantiles": [[0, 20], [0.5, 28], [0.99, 60], [1, 150]]}, 0.745, 0.044),
        ({"quantiles": [[0, 20], [0.5, 28], [0.99, 60], [1, 150]]}, 1.0, 0.15),
        ({"fixed": 35}, 0.95, 0.035),
    ],
)
def test_delay_has_the_percentiles_of_the_profile(tmp_path, text, share, delay_s):
    shape = ", ".join(f"{key} = {value}" for key, value in text.items())
    (tmp_path / "x.toml").write_text(
        'schema = 2\nname = "x"\ntitle = "x"\ndate = "2024-01-01"\nsource = ["x"]\n'
        + "".join(f"[{way}]\nrate_bps = 9600\ndelay_ms = {{ {shape} }}\n" for way in ("up", "down"))
    )
    delay = load_bearer(str(tmp_path / "x.toml")).up.delay
    assert quantile_s(delay, share) == pytest.approx(delay_s, rel=1e-6)
    assert distribution(delay).quantile(min(share, 0.95)) == pytest.approx(
        quantile_s(delay, min(share, 0.95)), rel=0.02
    )
