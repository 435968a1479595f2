"""The client's energy: of the handshake itself, of waking and tail, and the saving by a resumption."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import pytest
from msgspec import structs
from tools.energy_table import DEVICES, PAGE, lines

import runs
import shakedown
from shakedown.cli import exit_status
from shakedown.errors import InputError
from shakedown.models.energy import LinkBytes
from shakedown.native.scenario import Fleet
from shakedown.prediction.energy import client_energy
from shakedown.prediction.inputs import ServerModel
from shakedown.prediction.predict import predict_rows
from shakedown.prediction.work import SideCost, Work
from shakedown.profiles import bearer_names, load_bearer, load_device
from shakedown.schema.options import PredictionOptions

PSK, ML_DSA, RSA = "tls1.2/psk", "tls1.3/x25519mlkem768/mldsa65/server", "tls1.2/rsa/rsa2048/server"


def ends(figure):
    return figure["lower"] is not None and figure["upper"] is not None


@pytest.mark.parametrize("device", DEVICES)
def test_nearly_every_bearer_has_an_energy_range_for_every_device(device):
    """A few have packets too small for TCP."""
    whole = refused = 0
    for bearer in bearer_names():
        try:
            [row] = predict_rows(
                [PSK], device=device, bearer=bearer, options=PredictionOptions(battery_j=1e4)
            )
        except InputError:
            assert load_bearer(bearer).mtu_bytes <= 52
            refused += 1
            continue
        handshake, around, lasts = (
            row[name] for name in ("energy_j", "wake_tail_j", "handshakes_per_charge")
        )
        whole += ends(handshake) and ends(around) and ends(lasts)
        for figure in (handshake, lasts):
            if figure["estimate"] is not None:
                assert figure["lower"] < figure["estimate"] < figure["upper"]
    assert whole == len(bearer_names()) - refused >= 57


@pytest.mark.parametrize("bearer", ["lte", "nb-iot", "wifi", "ble", "sigfox"])
def test_documented_energy_table_matches_the_predictions(bearer):
    text = PAGE.read_text("utf-8")
    for line, _ in lines(bearer):
        assert line in text


def test_documented_energy_table_covers_bearers_and_devices():
    """If this fails, run `make energy-table`. Bearers added after the last release have no lines yet."""
    text = PAGE.read_text("utf-8")
    listed = re.findall(rf"^\| (\S+) \| ({'|'.join(DEVICES)}) \| ", text, re.MULTILINE)
    bearers = {bearer for bearer, _ in listed}
    assert len(bearers) > 60
    assert bearers <= set(bearer_names())
    assert sorted(listed) == sorted(product(bearers, DEVICES))
    psk, of, p256 = re.search(
        r"have a lower and an upper end in (\d+) of (\d+) lines for PSK and in (\d+) for P-256", text
    ).groups()
    assert int(of) == len(listed)
    assert min(int(psk), int(p256)) >= 200


def test_suites_differ_in_the_handshake_and_not_in_the_tail():
    psk, rsa, ml_dsa = predict_rows([PSK, RSA, ML_DSA], device="cortex-m4", bearer="lte")
    assert psk["wake_tail_j"] == rsa["wake_tail_j"] == ml_dsa["wake_tail_j"]
    assert psk["wake_tail_j"]["estimate"] == pytest.approx(10.6)
    assert 1.4 * psk["energy_j"]["estimate"] < ml_dsa["energy_j"]["estimate"] < 1.0
    saved = rsa["resumption_saves_j"]
    [resumed] = predict_rows([f"{RSA}/resumed"], device="cortex-m4", bearer="lte")
    assert saved["estimate"] == pytest.approx(rsa["energy_j"]["estimate"] - resumed["energy_j"]["estimate"])
    assert 0.0 < saved["lower"] < saved["estimate"] < saved["upper"] < rsa["energy_j"]["upper"]
    assert saved["basis"] == "assumed"
    assert not saved["missing"]
    assert psk["resumption_saves_j"] is resumed["resumption_saves_j"] is None


@pytest.mark.parametrize("pair", [("wifi", "wifi-preset"), ("lte", "lte-measured"), ("3g", "umts")])
def test_preset_has_the_wake_energy_of_the_measured_bearer(pair):
    """Each row states its energy terms, so that rows can be compared."""
    rows = [
        predict_rows([PSK], device="cortex-m4", bearer=one, options=PredictionOptions(from_idle=True))[0]
        for one in pair
    ]
    assert rows[0]["wake_tail_j"] == rows[1]["wake_tail_j"]
    terms = [
        row["energy_terms"][0].removeprefix(f"over {one}: ") for row, one in zip(rows, pair, strict=True)
    ]
    assert [term.partition("(")[0] for term in terms] == ["the radio wakes from idle "] * 2


def test_waking_adds_time_and_energy_or_a_note(capsys):
    awake, woken = (
        predict_rows([PSK], device="cortex-m4", bearer="lte", options=PredictionOptions(from_idle=idle))[0]
        for idle in (False, True)
    )
    setup = load_bearer("lte")
    assert woken["ready_s"]["mean"] - awake["ready_s"]["mean"] == pytest.approx(setup.setup_s, rel=0.05)
    added = woken["wake_tail_j"]["estimate"] - awake["wake_tail_j"]["estimate"]
    waits_w = load_device("cortex-m4").power.idle_w
    assert waits_w is not None
    assert added == pytest.approx(setup.energy.setup_j + waits_w * setup.setup_s)
    for command in (("predict", PSK), ("simulate", PSK, "--arrivals", "storm:1s", "--clients", "20")):
        for bearer, noted in (("lte", False), ("ethernet", True)):
            assert exit_status([*command, "--bearer", bearer, "--from-idle"]) == 0
            note = capsys.readouterr().err
            assert ("--from-idle changes nothing over ethernet: the line is up" in note) == noted


def test_note_reports_clients_in_cells_without_random_access(capsys):
    storm = ("simulate", PSK, "--arrivals", "storm:1s", "--clients", "20", "--clients-per-cell", "10")
    for bearer, more, noted in (
        ("nb-iot", (), True), ("nb-iot", ("--from-idle",), False), ("wifi", (), False),
    ):  # fmt: skip
        assert exit_status([*storm, "--bearer", bearer, *more]) == 0
        note = capsys.readouterr().err
        assert ("without --from-idle clients over nb-iot are connected at first: no random" in note) == noted


def test_waking_includes_random_access_in_shared_cells(tmp_path, capsys):
    """This also holds without a radio set-up; without cells there is no random access."""
    (tmp_path / "own.toml").write_text(
        'schema = 2\nname = "own"\ntitle = "t"\ndate = "2024"\nsource = ["s"]\nup_bps = 9600\n'
        'down_bps = 9600\ntraversal_ms = 10\n[cell]\nmedium = "m"\n'
        "up_bps = 1e5\ndown_bps = 1e5\n[cell.random_access]\n"
        "opportunity_ms = 10\npreambles = 54\nattempts = 9\nresponse_ms = 5\n"
        "connect_ms = 9\nbackoff_ms = 20\n"
    )
    storm = ("--arrivals", "storm:1s", "--clients", "20", "--bearer", str(tmp_path / "own.toml"))
    for cells, noted in ((("--cells", "2"), False), (("--clients-per-cell", "9"), False), ((), True)):
        assert exit_status(["simulate", PSK, *storm, "--from-idle", *cells]) == 0
        assert ("--from-idle changes nothing over own" in capsys.readouterr().err) == noted


@pytest.mark.parametrize(
    ("suite", "ratio", "more_bytes"),
    [(PSK, 1.24, (60, 180)), ("tls1.3/x25519/p256/mutual", 0.77, (-753, -500))],
)
def test_long_setup_repeats_syns_but_not_long_flights(suite, ratio, more_bytes):
    """The SYN's wait enters the measured round trip; without such a wait, a long flight is repeated."""
    (awake,), (woken,) = (
        predict_rows([suite], device="cortex-m4", bearer="nb-iot", options=PredictionOptions(from_idle=idle))
        for idle in (False, True)
    )
    assert woken["energy_j"]["estimate"] / awake["energy_j"]["estimate"] == pytest.approx(ratio, rel=0.03)
    assert more_bytes[0] < woken["wire_bytes"]["up"] - awake["wire_bytes"]["up"] < more_bytes[1]


@pytest.mark.parametrize("bearer", ["lte", "wifi-preset", "ble"])
def test_handshake_energy_excludes_waking(bearer):
    """Over bearers without loss; where packets get lost, a SYN that was sent again makes timers longer."""
    found = [
        predict_rows([PSK], device="cortex-m4", bearer=bearer, options=PredictionOptions(from_idle=idle))[0]
        for idle in (False, True)
    ]
    awake, woken = (one["energy_j"]["estimate"] for one in found)
    assert woken == pytest.approx(awake, rel=0.02)
    for idle in (False, True):
        fleet = Fleet(arrivals="poisson:1/s", clients=400, replications=1, from_idle=idle)
        [simulated] = shakedown.simulate(PSK, fleet, device="cortex-m4", bearer=bearer)
        assert simulated.energy_j.mean == pytest.approx(awake, rel=0.03)
        assert simulated.energy_j.basis == "assumed"


def test_paper_models_refuse_from_idle():
    with pytest.raises(InputError, match="does not include the radio's set-up"):
        predict_rows([PSK], options=PredictionOptions(model="thesis", from_idle=True))


def test_dominant_unknown_gives_no_energy_and_no_battery_life(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    place = ("--server-device", "stm32n6", "--device", "cortex-m4", "--battery", "1e4J")
    assert exit_status(["predict", "tls1.3/x25519/p256/server", *place]) == 0
    out = capsys.readouterr().out
    lacking = "energy of tls1.3/x25519/p256/server on cortex-m4 over lte is not estimated: no figure for the "
    assert f"{lacking}wait for a part of the server's work" in out
    assert "µJ" not in out


def test_unknown_tail_is_named_as_energy_for_wake_and_tail(capsys, tmp_path):
    """The energy of the handshake itself is known."""
    path = tmp_path / "tailless.toml"
    path.write_text(runs.TAILLESS)
    assert exit_status(["predict", PSK, "--device", "cortex-m4", "--bearer", str(path)]) == 0
    out = capsys.readouterr().out
    note = (
        f"energy for wake and tail of {PSK} on cortex-m4 over tailless is not estimated: no figure for the "
    )
    assert f"{note}radio's inactivity tail over tailless\n" in out
    assert f"energy of {PSK}" not in out


def test_server_without_tickets_has_no_resumption_saving():
    p256 = "tls1.3/x25519/p256/server"
    found = [predict_rows([p256], server=ServerModel(software=name))[0] for name in ("openssl", "none")]
    assert found[0]["resumption_saves_j"] is not None
    assert found[1]["resumption_saves_j"] is None


@pytest.mark.parametrize(("name", "resumes"), [("openssl", True), ("nginx", False), ("go", False)])
def test_server_that_resumes_no_session_by_its_id_has_no_resumption_saving(name, resumes):
    [row] = predict_rows([RSA], server=ServerModel(software=name))
    assert (row["resumption_saves_j"] is not None) == resumes
    [again] = predict_rows([f"{RSA}/resumed"], server=ServerModel(software=name))
    assert (again["server_software_note"] is None) == resumes


def test_energy_of_a_long_wait_has_the_range_of_the_idle_power():
    """A phone that waits minutes for LoRaWAN: its work, of which little is known, takes microseconds."""
    [row] = predict_rows([PSK], device="phone", bearer="lorawan-sf7")
    parts, spread = row["energy_parts_j"], load_device("phone").power.spread
    assert parts["processor"] > 50.0 * parts["radio"]
    for end, power in (("lower", 1.0 / spread), ("upper", spread)):
        assert row["energy_j"][end] / row["energy_j"]["estimate"] == pytest.approx(power, rel=0.05)
    assert row["client_s"]["upper"] / row["client_s"]["estimate"] > 1.5


@pytest.mark.parametrize(("waking_w", "basis"), [(1e-3, "measured"), (10.0, "assumed")])
def test_assumed_idle_power_marks_the_wake_energy_if_it_matters(waking_w, basis):
    bearer = load_bearer("lte")
    device = load_device("cortex-m4")
    device = replace(device, energy=structs.replace(device.energy, idle_w=waking_w))
    work = Work(SideCost(), SideCost(), one_device=False)
    energy = client_energy(LinkBytes(500, 500), device, bearer, work, 1.0, 0.3, from_idle=True)
    awake = client_energy(LinkBytes(500, 500), device, bearer, work, 1.0)
    assert energy.wake_tail_basis == basis
    assert awake.wake_tail_basis == "measured"


def test_stated_power_is_not_replaced_by_an_assumption():
    device = load_device("cortex-m4")
    for powers in ({"active_w": None, "idle_w": 5.0}, {"active_w": 0.5, "idle_w": None}):
        found = replace(device, energy=structs.replace(device.energy, **powers)).power
        for key, watts in powers.items():
            assert getattr(found, key) == watts if watts else 0.0 < getattr(found, key) < 0.1
        assert found.spread == 3.0
    assert device.power is device.energy


def test_rows_of_predict_and_simulate_state_energy_terms_in_the_same_form():
    [predicted] = shakedown.predict([PSK], bearer="lte")
    [replayed] = shakedown.simulate([PSK], shakedown.Fleet(arrivals="storm:5s", clients=20), bearer="lte")
    assert predicted.energy_terms == replayed.energy_terms != ()


OWN = """schema = 2
name = "own"
title = "Own"
date = "2026-01-01"
setup_ms = 900
[up]
rate_bps = 1000000
delay_ms = 50
[down]
rate_bps = 1000000
delay_ms = 50
[energy]
send_w = 1.0
receive_w = 0.8
idle_w = 0.1
setup_j = 0.3
tail_w = 0.5
tail_s = 2.0
[source]
rate = "a test"
"""


@pytest.mark.parametrize("tail_s", [2.0, 3.0])
def test_energy_of_attempts_is_the_sum_of_the_radios_states(tmp_path, tail_s):
    """Two pauses of 5 s, longer than the tail: a client sends a SYN and is reset, three times."""
    path = tmp_path / "own.toml"
    path.write_text(OWN.replace("tail_s = 2.0", f"tail_s = {tail_s}"))
    fleet = Fleet(
        arrivals="storm:1s",
        clients=50,
        replications=1,
        from_idle=True,
        admission="rate=0.001/s,burst=1,refuse=reset",
        retries=2,
        retry="base=5s,factor=1,jitter=none",
    )
    (found,) = shakedown.simulate(PSK, fleet, device="phone", bearer=str(path))
    assert found.failed == {"refused": 49}
    sent_s, received_s, round_trip_s = 60 * 8e-6, 40 * 8e-6, 0.1
    attempt_s = 0.9 + sent_s + received_s + round_trip_s
    radio = 3 * (sent_s * 1.0 + received_s * 0.8 + round_trip_s * 0.1)
    tails_and_setups = 2 * (tail_s * 0.5 + 0.3)
    idle_w = load_device("phone").power.idle_w
    assert idle_w == 0.1
    # Its wait for the first set-up is part of waking.
    processor = (3 * attempt_s + 2 * 5.0 - 0.9) * idle_w
    assert found.energy_j.p50 == pytest.approx(radio + tails_and_setups + processor, rel=5e-4)
    waking = 0.3 + 0.9 * idle_w + tail_s * 0.5
    assert found.wake_tail_j.estimate == pytest.approx(waking)
