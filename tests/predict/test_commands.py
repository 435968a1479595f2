"""The commands predict, capacity, devices and bearers."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from typing import Any

import pytest

import shakedown
from shakedown.cli import exit_status
from shakedown.prediction.literature import LITERATURE
from shakedown.reporting.figures import time_beyond
from shakedown.simulation.capacity import simulated_capacity

P256 = "tls1.3/x25519/p256/server"


def asked(capsys, *arguments: object) -> list[dict[str, object]]:
    assert exit_status([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments: object) -> str:
    assert exit_status([*map(str, arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err


def test_predict_prints_only_json(capsys, library_path):
    row, psk = asked(capsys, "predict", P256, "tls1.2/psk", "--traces", library_path, "--rate", "60/min")
    assert row["suite"] == P256
    assert row["rate_per_s"] == 1.0
    assert psk["suite"] == "tls1.2/psk"


def test_equal_commands_print_equal_bytes(capsys, library_path):
    answers = []
    for _ in range(2):
        assert (
            exit_status(["predict", P256, "--traces", str(library_path), "--device", "cortex-m33", "--json"])
            == 0
        )
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]


def test_predict_prints_a_table_with_marks_and_notes(capsys, library_path):
    assert (
        exit_status(
            ["predict", P256, "--traces", str(library_path), "--device", "cortex-m4", "--rate", "1e9"]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "modelled: cortex-m4 over lte to server" in out
    assert re.search(r"[~≈]? ?2[5-9]0 ms", out)
    assert "in part assumed" in out
    assert "unstable" in out


def test_capacity_prints_json_and_a_table(capsys, library_path):
    options = ("--traces", library_path, "--within", "500ms", "--percentile", "99", "--server-workers", "2")
    (row,) = asked(capsys, "capacity", P256, *options)
    assert row["within_s"] == 0.5
    assert row["workers"] == 2
    assert (
        exit_status(["capacity", P256, "tls1.2/psk", "--traces", str(library_path), "--within", "10ms"]) == 0
    )
    printed = capsys.readouterr().out
    assert "unreachable" in printed
    assert "without any load" in printed
    assert "in part assumed" not in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("predict", P256, "--rate", "fast"), ["--rate", "not a rate", "300/s"]),
        (("predict", P256, "--device", "kuo-p4"), ["kuo-p4", "--scale-from DEVICE"]),
        (("predict", P256, "--bearer", "gpsr"), ["unknown bearer 'gpsr'", 'did you mean "gprs"']),
        (("predict", P256, "--model", "quo"), ["unknown model", "kuo"]),
        (("predict", P256, "--server-workers", "0"), ["--server-workers"]),
        (("predict", P256, "--server-workers", "\u0663"), ["--server-workers", "not a whole number"]),
        (("predict", P256, "--initial-window", "\uff13"), ["initial-window", "accepted: 1 to 1,000"]),
        (("predict", P256, "--loss", "1_0%"), ["loss is '1_0%'"]),
        (("predict", P256, "--carrier", "eap", "--fragment", "1_000"), ["--fragment", "not a whole number"]),
        (("predict",), ["SUITE"]),
        (("capacity", P256), ["--within"]),
        (("capacity", P256, "--within", "soon"), ["--within", "not a duration"]),
        (("capacity", P256, "--within", "1s", "--percentile", "101"), ["percentile is 101"]),
        (("capacity", P256, "--within", "1s", "--percentile", "9_9"), ["--percentile", "not a number"]),
        (
            ("capacity", P256, "--within", "1s", "--simulated", "--cells", "1_0"),
            ["--cells", "not a whole num"],
        ),
        (("simulate", P256, "--arrivals", "storm:1s", "--seed", "\u0663"), ["--seed", "not a whole number"]),
    ],
)
def test_wrong_input_is_reported_in_one_line(capsys, library_path, arguments, words):
    line = refused(capsys, *arguments, *(["--traces", library_path] if len(arguments) > 1 else []))
    for word in words:
        assert word in line


@pytest.mark.parametrize("model", LITERATURE)
def test_predict_names_settings_of_the_bearer_that_the_model_ignores(capsys, library_path, model):
    words = ("predict", P256, "--traces", str(library_path), "--model", model, "--bearer", "lte")
    assert exit_status([*words, "--loss", "50%", "--initial-window", "1"]) == 0
    note = f"model {model} ignores the bearer's loss=50%,initial-window=1: only energies include it\n"
    assert note in capsys.readouterr().out
    assert exit_status([*words]) == 0
    assert "ignores" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"), [((), "on average"), (("--percentile", "99.9"), "(p99.9)")], ids=["mean", "p99.9"]
)
def test_unreachable_limit_names_the_statistic_that_exceeds_it(capsys, library_path, options, words):
    arguments = ["capacity", P256, "--within", "50ms", "--traces", str(library_path), *options]
    assert exit_status(arguments) == 0
    assert re.search(rf"ready after \d+ ms {re.escape(words)} even without any load", capsys.readouterr().out)


@pytest.mark.parametrize(("within", "printed"), [("8ms", "10 ms"), ("10ms", "11 ms"), ("10.6ms", "11 ms")])
def test_unreachable_limit_is_below_the_printed_time(capsys, library_path, within, printed):
    """The range supports one digit; more are printed if one would not exceed the limit."""
    place = ["--device", "cortex-m4", "--bearer", "ethernet", "--traces", str(library_path)]
    assert exit_status(["capacity", "tls1.2/psk", "--within", within, "--rate", "9/s", *place]) == 0
    found = capsys.readouterr().out
    assert f"tls1.2/psk: ready after {printed} on average even without any load\n" in found
    # The low end of the ranges is within these limits.
    assert re.search(r"unreachable +0 – 2\d,000 +no number suffices \(1 – \?\)", found)


def test_time_beyond_a_limit_has_as_many_digits_as_show_that_it_is_beyond():
    assert time_beyond(612.0, 600.0, 1) == "610 s"
    assert time_beyond(912.0, 600.0, 2) == "15 min"
    assert time_beyond(0.0113, 0.011, 2, down=True) == "11.3 ms"
    assert time_beyond(0.01142, 0.01141, 1) == "11.42 ms"


def test_predict_prints_the_share_of_handshakes_that_fail(capsys, library_path):
    words = ("predict", P256, "tls1.2/psk", "--traces", library_path, "--bearer", "nb-iot", "--loss", "70%")
    shares = [row["failed"] for row in asked(capsys, *words)]
    assert all(0.1 < share < 0.3 for share in shares)
    assert exit_status([*map(str, words)]) == 0
    printed = capsys.readouterr().out
    for suite, share in zip((P256, "tls1.2/psk"), shares, strict=True):
        assert f"{suite}: failed handshakes: {share:.1%}; times are those of the others\n" in printed
    assert exit_status([*map(str, words), "--columns", "failed"]) == 0
    assert f"{shares[0]:.1%}" in capsys.readouterr().out.splitlines()[2]
    assert exit_status(["predict", P256, "--traces", str(library_path)]) == 0
    assert "failed" not in capsys.readouterr().out


def test_capacity_prints_the_share_of_handshakes_that_fail(capsys, library_path):
    words = (
        "capacity",
        P256,
        "--traces",
        library_path,
        "--bearer",
        "nb-iot",
        "--loss",
        "70%",
        "--within",
        "2h",
    )
    (row,) = asked(capsys, *words, "--percentile", "50")
    assert 0.1 < row["failed"] < 0.3
    for percentile, permitted in ((["--percentile", "50"], None), (["--percentile", "99"], "1%"), ([], "1%")):
        assert exit_status([*map(str, words), *percentile]) == 0
        printed = capsys.readouterr().out
        assert f"{P256}: failed handshakes: {row['failed']:.1%}; times are those of the others\n" in printed
        unreachable = f"{P256}: {row['failed']:.1%} fail; the limit permits {permitted}\n"
        assert (unreachable in printed) == (permitted is not None)
    assert exit_status([*map(str, words), "--columns", "failed"]) == 0
    assert f"{row['failed']:.1%}" in capsys.readouterr().out.splitlines()[2]
    assert exit_status(["capacity", P256, "--traces", str(library_path), "--within", "2s"]) == 0
    assert "fail" not in capsys.readouterr().out


def test_devices_are_listed_and_described(capsys):
    listed = asked(capsys, "devices")
    palm = next(device for device in listed if device["name"] == "palm-vii")
    assert palm["primitives"] == 10
    (shown,) = asked(capsys, "devices", "palm-vii")
    assert {"operation": "sign", "algorithm": "ecdsa"}.items() <= shown["primitives"][5].items()
    assert exit_status(["devices"]) == 0
    [old] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("aka-laptop-p4 ")]
    assert " none" in old
    assert exit_status(["devices", "ipaq-h3970"]) == 0
    assert "9480 ms" in capsys.readouterr().out
    assert "did you mean" in refused(capsys, "devices", "palm-vo")


def test_all_devices_are_listed_where_this_machine_has_no_profile(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    names = [one.name for one in shakedown.devices()]
    assert names == [one["name"] for one in asked(capsys, "devices")]
    assert "this-machine" not in names


def test_device_prints_its_power_and_no_zero_for_unknown_values(capsys):
    assert exit_status(["devices", "cortex-m4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in lines if "W computing" in line] == [
        "21.8 mW computing, 7.71 µW waiting (×/÷ 1.25)"
    ]
    cells = {tuple(line.split()[:3]): line.split()[3:] for line in lines}
    assert cells["derive", "ecdh", "p256"] == ["68.8", "ms"]
    assert cells["cipher", "chacha20", "–"] == ["337", "µs"]


def test_a_row_that_failed_does_not_repeat_its_suite(capsys):
    (_, bad) = asked(capsys, "predict", "tls1.2/psk", "tls1.9/psk")
    assert bad["suite"] == "tls1.9/psk"
    assert "unknown protocol 'tls1.9'" in str(bad["error"])


def test_a_suite_that_cannot_run_is_tried_and_named_once(capsys):
    places = ("--device", "{phone,cortex-m4}", "--bearer", "{lte,gprs}")
    assert exit_status(["predict", "tls1.2/psk", "dtls1.2/psk", *places]) == 0
    out, err = capsys.readouterr()
    assert out.count("dtls1.2/psk: no stack here runs dtls1.2") == 1
    assert err.count("recording it once") == 1


def test_devices_import_reads_wolfcrypt_output(capsys, tmp_path, library_path):
    benchmark = tmp_path / "wolfcrypt.txt"
    benchmark.write_text(
        "ECC   [      SECP256R1]   256  key gen       982 ops took 1.000 sec, avg 1.018 ms, 982.000 ops/sec\n"
        "ECDHE [      SECP256R1]   256    agree       456 ops took 1.000 sec, avg 2.193 ms, 456.000 ops/sec\n"
        "ECDSA [      SECP256R1]   256   verify  288 ops took 1.004 sec, avg 3.486 ms, 286.853 ops/sec\n",
        encoding="utf-8",
    )
    assert (
        exit_status(["devices", "import", str(benchmark), "--name", "mine", "--chip", "M7", "--clock", "480"])
        == 0
    )
    assert "3 primitives" in capsys.readouterr().out
    (row,) = asked(capsys, "predict", P256, "--traces", library_path, "--device", "mine")
    assert row["device"] == "mine"
    assert "no benchmark figures" in refused(
        capsys, "devices", "import", __file__, "--name", "other", "--chip", "M7", "--clock", "480"
    )
    assert "no such file" in refused(
        capsys, "devices", "import", tmp_path / "gone", "--name", "other", "--chip", "M7", "--clock", "480"
    )


def test_bearers_are_listed_and_described(capsys):
    listed = asked(capsys, "bearers")
    assert {"gsm-csd", "nb-iot", "3g"} <= {bearer["name"] for bearer in listed}
    (shown,) = asked(capsys, "bearers", "gsm-csd")
    assert shown["thesis"]["traversal_s"] == pytest.approx(0.3913)
    assert exit_status(["bearers", "gsm-csd"]) == 0
    out = capsys.readouterr().out
    assert "391.3 ms" in out
    assert "tables 4.11 and 4.12" in out


@pytest.mark.parametrize("arguments", [("bearers", "gprs", "lte"), ("devices", "phone", "esp32")])
def test_lines_fit_the_terminal(arguments):
    """Lines are folded for a terminal only."""
    told: dict[bool, str] = {}
    for on_a_terminal in (True, False):
        terminal, end = pty.openpty() if on_a_terminal else os.pipe()
        with subprocess.Popen(
            [sys.executable, "-m", "shakedown", *arguments],
            stdout=end,
            env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"},
        ) as process:
            os.close(end)
            found = b""
            # Reading a terminal whose other end is closed raises an error.
            with suppress(OSError):
                while block := os.read(terminal, 65536):
                    found += block
            os.close(terminal)
        assert process.returncode == 0
        told[on_a_terminal] = found.decode()
    # An address is left whole: broken, it could not be followed.
    assert all(len(line) <= 80 or " " not in line.strip() for line in told[True].splitlines())
    assert any(len(line) > 200 for line in told[False].splitlines())


def test_energy_counts_the_port_of_a_cable_and_the_tail_of_gprs(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    said = {}
    for bearer in ("ethernet", "gprs"):
        place = ("--device", "cortex-m4", "--bearer", bearer)
        assert exit_status(["predict", "tls1.2/psk", *place, "--wide"]) == 0
        said[bearer] = capsys.readouterr().out
    assert (
        "wake and tail over ethernet: the client is already connected, there is no tail (the link is up"
        in said["ethernet"]
    )
    assert (
        "wake and tail over gprs: the client is already connected, the tail is ≈ 6 s at ≈ 0.25 W"
        in said["gprs"]
    )
    assert re.search(r" mJ +\S+ mJ – \S+ mJ .* 0 +–", said["ethernet"])
    assert re.search(r" 1\.5 J +0\.75 J – 3\.0 J", said["gprs"])


FLEET = ("--arrivals", "storm:2s", "--clients", "200")
SCREENS = {
    "predict": ("--rate", "10"),
    "capacity": ("--within", "20s", "--percentile", "99", "--rate", "2000"),
    "capacity --simulated": ("--within", "5s"),
    "simulate": FLEET,
    "simulate --mix": FLEET,
}


@pytest.mark.parametrize("command", SCREENS)
def test_one_table_fits_the_screen(monkeypatch, capsys, tmp_path, library_path, command):
    # Only the table is tested, so one coarse search by simulation is enough for all widths.
    monkeypatch.setattr("shakedown.simulation.capacity.MAX_EVENTS", 400_000)
    monkeypatch.setattr("shakedown.simulation.capacity.MAX_EVENTS_TRIED", 200_000)
    monkeypatch.setattr("shakedown.simulation.capacity.REPLICATIONS", 2)
    monkeypatch.setattr("shakedown.simulation.capacity.STEP", 2.0)
    found: list[object] = []

    def once(*arguments: Any, **options: Any) -> list[object]:
        found.extend(() if found else simulated_capacity(*arguments, **options))
        return found

    monkeypatch.setattr("shakedown.simulation.capacity.simulated_capacity", once)
    suites = [P256, "tls1.2/psk", "tls1.3/x25519mlkem768/mldsa65/server"]
    if command == "simulate --mix":
        mix = tmp_path / "mix.toml"
        mix.write_text("".join(f'[[clients]]\nsuite = "{one}"\n' for one in suites))
        arguments = [str(mix)]
    else:
        arguments = suites
    place = ("--device", "cortex-m4", "--bearer", "nb-iot", "--traces", str(library_path))
    for width in (66, 80, 100, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        assert exit_status([*command.split(), *arguments, *SCREENS[command], *place]) == 0
        title, *lines = capsys.readouterr().out.splitlines()
        assert title.startswith(("modelled", "simulated"))
        notes = (
            "≈",
            "≥",
            "wake and tail",
            "no estimate",
            "no figure",
            "utilisation",
            "energy",
            "by formula",
            "… marks",
            "server software",
        )
        table = [line for line in lines if not line.startswith((*notes, *(f"{one}: " for one in suites)))]
        assert max(map(len, table)) <= width
        # A name may lose whole parts; nothing else is cut.
        assert not any(re.search(r"(?<=[^/])…|…(?=[^/ ])", line) for line in table)
        # Headings appear once, with one or two lines for each row.
        assert sum("suite" in line for line in table) == 1


def test_wide_shows_the_omitted_columns(capsys, library_path):
    place = ("--traces", str(library_path), "--device", "cortex-m4", "--bearer", "nb-iot", "--rate", "10")
    assert exit_status(["predict", P256, *place, "--wide"]) == 0
    heading = capsys.readouterr().out.splitlines()[1]
    for name in ("p99", "queue wait", "energy", "90 % interval", "utilisation", "wake and tail", "done p95"):
        assert name in heading
    assert exit_status(["predict", P256, *place, "--columns", "suite,queue_s"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split("  ")[-1] == "queue wait"


def test_capacity_prints_the_workers_that_a_rate_needs(capsys, library_path):
    options = ("--traces", library_path, "--within", "200ms", "--percentile", "99", "--bearer", "ethernet")
    (row,) = asked(capsys, "capacity", P256, *options, "--rate", "20000/s")
    assert row["workers_needed"]["estimate"] > 1
    assert exit_status(["capacity", P256, *map(str, options), "--rate", "20000/s"]) == 0
    assert "workers for 20,000/s" in capsys.readouterr().out


@pytest.mark.parametrize(("percentile", "name"), [("50", "median"), ("95", "p95"), ("99", "p99")])
def test_the_percentile_that_must_meet_the_limit_is_printed(percentile, name, capsys, library_path):
    options = ("--traces", str(library_path), "--within", "1s", "--percentile", percentile)
    assert exit_status(["capacity", P256, *options, "--bearer", "ethernet", "--rate", "20000/s"]) == 0
    assert name in capsys.readouterr().out.split()


def test_another_build_of_a_board_is_named_with_a_colon(capsys, library_path):
    usual, plain = (
        asked(capsys, "predict", "tls1.2/rsa/rsa2048/server", "--traces", library_path, "--device", name)[0]
        for name in ("cortex-m4", "cortex-m4:c")
    )
    assert plain["device"] == "cortex-m4:c"
    assert plain["client_s"]["estimate"] > usual["client_s"]["estimate"]
    assert "cortex-m4:asm" in refused(capsys, "predict", P256, "--device", "cortex-m4:asn")


def test_lists_of_profiles_are_not_truncated_at_80_columns(monkeypatch, capsys):
    from shakedown.profiles import bearer_names, device_names

    monkeypatch.setenv("COLUMNS", "80")
    for command, names in (("bearers", bearer_names()), ("devices", device_names())):
        assert exit_status([command]) == 0
        out = capsys.readouterr().out
        assert "…" not in out
        assert all(len(line) <= 80 for line in out.splitlines())
        firsts = [line.split()[0] for line in out.splitlines() if line[:1].strip()]
        assert set(names) - {"this-machine"} <= set(firsts)
        if command == "bearers":
            # Below the heading, which may fold: one line per bearer, and a pointer to the titles.
            assert firsts == ["bearer", *sorted(names), "titles:"]
            assert len(out.splitlines()) <= 4 + len(names)


def test_battery_gives_handshakes_per_charge(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    place = ("--device", "cortex-m4", "--bearer", "nb-iot")
    (row,) = asked(capsys, "predict", "tls1.2/psk", *place, "--battery", "1.2Ah@3.6V")
    spent_j = row["energy_j"]["estimate"] + row["wake_tail_j"]["estimate"]
    assert row["handshakes_per_charge"]["estimate"] == pytest.approx(1.2 * 3600 * 3.6 / spent_j)
    assert exit_status(["predict", "tls1.2/psk", *place, "--battery", "15552J"]) == 0
    out = capsys.readouterr().out
    assert "per charge" in out
    assert re.search(r"≈ \d\d,000 +\d\d,000 – \d\d,000 ", out)
    for wrong in ("5", "5mAh", "3V", "5Wh@3V", "0J", "1e300J", "-5J"):
        line = refused(capsys, "predict", "tls1.2/psk", *place, "--battery", wrong)
        assert "is not a charge; accepted: energy such as 9000J or 2.5Wh" in line


def test_output_does_not_depend_on_the_hash_seed(shakedown):
    """Sums of rounded numbers depend on their order, which may not be that of a set."""
    suites = (P256, "tls1.2/rsa/rsa2048/server", "tls1.2/psk")
    printed = {
        shakedown(
            "predict",
            *suites,
            "--device",
            "{lpc55s36,nrf52840,esp32-c3}",
            "--json",
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in "012"
    }
    assert len(printed) == 1
    assert len(json.loads(printed.pop())) == 9


@pytest.mark.parametrize(("model", "shown"), [("default", "≥ 4.3 ms"), ("kuo", "2.8 µs")])
def test_transmission_is_a_lower_bound_if_work_has_no_figure(capsys, monkeypatch, model, shown):
    """It contains work on the TCP connection, except in models of the literature."""
    monkeypatch.setenv("COLUMNS", "200")
    place = ("--server-device", "stm32f0", "--bearer", "ethernet", "--model", model)
    assert exit_status(["predict", "tls1.2/psk", *place, "--columns", "transmission_s"]) == 0
    assert capsys.readouterr().out.splitlines()[2].strip() == shown


def test_titles_print_the_given_rate_and_limit_without_rounding(capsys, library_path):
    words = ("tls1.2/psk", "--traces", str(library_path), "--bearer", "ethernet")
    assert exit_status(["capacity", *words, "--within", "258.5ms", "--rate", "12345/s"]) == 0
    assert "the mean within 258.5 ms, workers for 12,345/s" in capsys.readouterr().out
    assert exit_status(["predict", *words, "--rate", "1234.5/s"]) == 0
    assert "1,234.5 handshakes/s\n" in capsys.readouterr().out


def test_many_workers_and_few_handshakes_give_no_queue_wait(capsys):
    (row,) = asked(capsys, "predict", "tls1.2/psk", "--rate", "300/s", "--server-workers", "5000")
    assert row["done_s"]["p99"] < 1.0
    assert row["queue_s"]["estimate"] == pytest.approx(0.0, abs=1e-9)


def test_offered_load_is_printed_if_it_exceeds_the_utilisation(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    for rate, shown in (("1000/s", False), ("1e6/s", True)):
        assert exit_status(["predict", P256, "--rate", rate]) == 0
        out = capsys.readouterr().out
        assert ("offered load" in out) == shown
        assert ("100%" in out) == shown
    (row,) = asked(capsys, "simulate", "tls1.2/psk", "--arrivals", "poisson:1e6/s", "--clients", "200")
    assert row["modelled"]["utilisation"] == 1.0
    assert row["offered"]["estimate"] > 1.0


def test_utilisation_is_a_lower_bound_only_without_server_figures(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    place = ("--device", "nrf52840", "--bearer", "ble")
    assert exit_status(["predict", "tls1.3/x25519/ed25519/server", *place, "--rate", "1"]) == 0
    out = capsys.readouterr().out
    assert "≥ 0%" not in out
    assert re.search(r"  (< 1|0)%", out)
    assert "other builds of nrf52840: nrf52840:c, nrf52840:asm" in out


def test_one_broken_profile_does_not_hide_the_others(capsys):
    from shakedown.profiles.registry import user_data_dir

    folder = user_data_dir() / "devices"
    folder.mkdir(parents=True)
    (folder / "broken.toml").write_text("garbage\n")
    assert exit_status(["devices", "--json"]) == 0
    captured = capsys.readouterr()
    assert {"phone", "server"} <= {one["name"] for one in json.loads(captured.out)}
    assert captured.err.startswith("skipped: ")
    assert "broken.toml, line 1: not valid TOML" in captured.err


def test_many_workers_are_rounded_to_two_digits():
    from shakedown.reporting.columns.capacity import many_workers

    assert [many_workers(count) for count in (1, 99, 100, 101, 9470, 22029)] == [
        "1", "99", "100", "110", "9,500", "23,000"
    ]  # fmt: skip


def test_bearer_prints_its_radio_power_and_the_source(capsys):
    assert exit_status(["bearers", "nb-iot", "gprs"]) == 0
    out = capsys.readouterr().out
    assert (
        "nb-iot: radio: 1.1 W sending, 90 mW receiving, 90 mW connected, 255 mJ from idle, tail of 1 s" in out
    )
    assert "gprs: radio: 1.18 W sending, 790 mW receiving, 250 mW connected, tail of 6 s at 250 mW" in out
    assert "gprs: energy: SIM800H and SIM800L hardware design" in out


def test_bearer_prints_its_cell_and_random_access(capsys):
    assert exit_status(["bearers", "nb-iot", "802154", "gsm-csd", "ethernet"]) == 0
    out = capsys.readouterr().out
    assert "nb-iot: cell: 216 kbit/s up, 85 kbit/s down, scheduler: proportional\n" in out
    assert (
        "nb-iot: access: random-access: opportunity_ms 320, preambles 12, attempts 10, response_ms 100, "
        "backoff_ms 256, detection certain, transmissions 1\n"
    ) in out
    assert "802154: cell: rates of one client\n" in out
    assert "802154: access: aloha: channels 1, attempts 4, sense: unit_ms 0.32, min_exponent 3, " in out
    assert "gsm-csd: access: circuits: channels 14\n" in out
    assert "ethernet: cell" not in out


def test_measure_and_validate_name_suites_the_software_lacks(capsys, tmp_path):
    said = "tls1.2/psk: go does not offer it; figures are those of a server that would\n"
    command = [
        "measure",
        "tls1.2/psk",
        "tls1.2/ecdhe_ecdsa+x25519/p256/server",
        "--server-software",
        "go",
        "--repeat",
        "2",
    ]
    assert exit_status(command) == 0
    assert capsys.readouterr().err.endswith(said)
    experiment = tmp_path / "e.toml"
    experiment.write_text(
        'suites = ["tls1.2/psk", "tls1.2/ecdhe_ecdsa+x25519/p256/server"]\nserver_software = "go"\n'
    )
    assert exit_status(["validate", str(experiment)]) == 0
    assert capsys.readouterr().err.endswith(said)
