"""The behaviour of the command line without errors."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import fakecore
import real
from runs import written
from shakedown import profiles
from shakedown.cli import SECTIONS, exit_status
from shakedown.experiments.figure_kinds import Run, modelled
from shakedown.experiments.figure_kinds.in_memory_results import results_of
from shakedown.experiments.file.experiment import Experiment
from shakedown.native.scenario import Places, Scenario
from shakedown.results.folder import Results, load_results
from shakedown.schema.saved import AboutExperiment

HEAVY = ("polars", "vl_convert", "jinja2", "numpy", "msgspec", "shakedown._core")


def loaded_by(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    return set(done.stdout.split())


def test_importing_loads_no_heavy_modules():
    assert loaded_by("import shakedown") == set()


def test_help_loads_no_heavy_modules():
    assert loaded_by("import shakedown.cli") == set()


def test_every_command_module_is_listed_in_the_help(fake, capsys):
    import shakedown.cli

    modules = {path.stem for path in Path(shakedown.cli.__file__).parent.glob("[a-z]*.py")}
    named = {name for names in SECTIONS.values() for name in names}
    assert modules <= named
    assert exit_status(["--help"]) == 0
    out = capsys.readouterr().out
    for name in modules:
        assert f"  {name} " in out


@pytest.mark.parametrize("encoding", ["latin-1", "cp1251", "cp1252", "utf-16", "ascii"])
def test_output_is_escaped_in_encodings_without_its_characters(tmp_path, encoding):
    shipped = profiles.load_bearer("ethernet")
    text = Path(profiles.__file__).with_name("bearers").joinpath("ethernet.toml").read_text("utf-8")
    (tmp_path / "b.toml").write_text(text.replace(shipped.title, "ж ≈ 😀"), "utf-8")

    def printed(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "shakedown", *arguments],
            env={**os.environ, "PYTHONIOENCODING": encoding},
            cwd=tmp_path,
            capture_output=True,
            timeout=300,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        # As without a locale, ASCII becomes UTF-8.
        return done.stdout.decode("utf-8" if encoding == "ascii" else encoding)

    assert json.loads(printed("bearers", "./b.toml", "--json"))[0]["title"] == "ж ≈ 😀"
    assert ("≈" if encoding in ("utf-16", "ascii") else "\\u2248") in printed("predict", "tls1.2/psk")


def test_without_arguments_the_usage_is_printed(fake, capsys):
    assert exit_status([]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Usage: shakedown")
    assert err == ""


def test_only_json_goes_to_standard_output(fake, capsys):
    assert exit_status(["measure", "tls1.2/psk", "tls1.3/x25519/p256/server", "--repeat", "7", "--json"]) == 0
    out, err = capsys.readouterr()
    assert [(one["suite"], one["repeat"]) for one in json.loads(out)] == [
        ("tls1.2/psk", 7),
        ("tls1.3/x25519/p256/server", 7),
    ]
    assert err == ""


def test_options_reach_the_core(fake, capsys, tmp_path):
    capture, keys = tmp_path / "a.pcap", tmp_path / "a.keys"
    arguments = ["--seed", "5", "--now", "2026-01-31", "--tickets", "0", "--pcap", capture, "--keylog", keys]
    # Without --repeat, more repetitions are made on a noisy machine.
    arguments += ["--repeat", "30"]
    assert exit_status(["measure", "tls1.2/psk", *map(str, arguments)]) == 0
    options = {"seed": 5, "now": 1769817600, "tickets": 0}
    assert fake.measured == [("tls1.2/psk", 30, options)]
    assert fake.captured == [(["tls1.2/psk"], options)]
    assert capture.read_text() == keys.read_text() == "1 suites"


def test_an_experiment_reaches_the_core(fake, capsys, tmp_path):
    experiment = written(
        tmp_path, 'suites = ["tls1.2/psk"]\nrepeat = 4\nseed = 9\nnow = 2026-01-31\nprofile = "names.toml"\n'
    )
    (tmp_path / "names.toml").touch()
    assert exit_status(["run", str(experiment), "--out", str(tmp_path / "r"), "--no-report", "--json"]) == 0
    assert fake.measured == [
        ("tls1.2/psk", 4, {"seed": 9, "now": 1769817600, "profile": str(tmp_path / "names.toml")})
    ]
    assert [one["suite"] for one in json.loads(capsys.readouterr().out)] == ["tls1.2/psk"]
    assert load_results(tmp_path / "r").manifest.experiment.text == experiment.read_text()


def test_runs_without_out_use_a_free_folder(fake, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.toml").write_text('name = "mine"\nsuites = ["tls1.2/psk"]\n')
    for _ in range(3):
        assert exit_status(["run", "e.toml", "--no-report"]) == 0
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["mine", "mine-2", "mine-3"]


def test_tables_name_bytes_round_trips_and_both_sides(fake, capsys):
    assert exit_status(["measure", "tls1.2/psk", "tls1.3/x25519/p256/server", "--wide"]) == 0
    out = capsys.readouterr().out
    for word in (
        "bytes",
        "round",
        "trips",
        "client",
        "server",
        "key",
        "exchange",
        "signatures",
        "other",
        "tls1.2/psk",
    ):
        assert word in out
    assert "\x1b[" not in out


NOTES = ("wake and tail", "energy of", "±", "≈", "modelled: offered load")
"""Beginnings of lines that a terminal folds between words."""


@pytest.mark.parametrize("width", [76, 200])
def test_tables_lose_nothing_on_narrow_screens(fake, width):
    from shakedown.experiments.figure_kinds import measured as kind
    from shakedown.reporting.figures import energy
    from shakedown.reporting.terminal.modelled import predicted_tables

    measured = [real.measurement(suite) for suite in fakecore.KNOWN]
    places = Places(devices=("phone", "cortex-m4"), bearers=("lte", "nb-iot"))
    run = Run(Experiment(AboutExperiment(name="e"), (), places))
    for one in measured:
        run.keep(Scenario(kind="measured", handshake=real.identity(one)), one)
    predicted = [
        modelled.table([(one, modelled.run(one, run))]) for batch in modelled.scenarios(run) for one in batch
    ]
    plain = results_of(measured)
    results = Results(plain.manifest, pl.concat([plain.table, *predicted]))
    printed = [*kind.terminal(results, width), *predicted_tables(results, width)]
    table = [line for line in printed if not line.startswith(NOTES)]
    text = "\n".join(printed)
    assert "…" not in text
    for suite in fakecore.KNOWN:
        assert suite in text
    for one in measured:
        assert f"{one.bytes.total:,}" in text
    for word in ("phone", "cortex-m4", "lte", "nb-iot"):
        assert word in text
    assert max(map(len, table)) <= width
    _, _, energies = text.partition("energy of the client for one handshake")
    for bearer in ("lte", "nb-iot"):
        assert f"over {bearer}: the client is already connected" in " ".join(energies.split())
    joules = pl.concat(predicted).filter(
        pl.col("quantity") == "predicted.energy", pl.col("statistic").is_null()
    )
    known = joules["value"].drop_nulls().to_list()
    assert len(known) >= len(fakecore.KNOWN)
    # Energies have as many digits as their ranges justify.
    assert all(f"≈ {energy(float(f'{found:.2g}'))}" in energies for found in known)


@pytest.mark.parametrize("width", [80, 200])
def test_many_bearers_and_rates_take_several_tables(width):
    """All bearers are shown, in several tables; some rates are shown, and the others are counted."""
    from shakedown.reporting.terminal.modelled import MAX_RATES, predicted_tables

    one = real.measurement("tls1.2/psk")
    bearers = ("2g", "gprs", "gsm-csd", "lte", "lte-m", "nb-iot", "umts-2000", "wifi-11b", "geo")
    rates = tuple(float(rate) for rate in range(101, 300))
    places = Places(devices=("cortex-m4",), bearers=bearers, rates_per_s=rates)
    run = Run(Experiment(AboutExperiment(name="e"), (), places))
    run.keep(Scenario(kind="measured", handshake=real.identity(one)), one)
    predicted = [
        modelled.table([(one, modelled.run(one, run))]) for batch in modelled.scenarios(run) for one in batch
    ]
    plain = results_of([one])
    results = Results(plain.manifest, pl.concat([plain.table, *predicted]))
    text = "\n".join(predicted_tables(results, width))
    assert "…" not in text
    for bearer in bearers:
        assert re.search(rf"\s{bearer}\s", text), bearer
    assert len(re.findall(r"\d/s", text)) == MAX_RATES
    assert "101/s" in text
    assert "299/s" in text
    assert f"{len(rates) - MAX_RATES} more rates are in the report and the table" in text


def test_report_exports_csv_and_json(fake, capsys, tmp_path):
    experiment = written(tmp_path, 'suites = ["tls1.2/psk"]\n')
    folder, table = str(tmp_path / "r"), tmp_path / "t.csv"
    assert exit_status(["run", str(experiment), "--out", folder, "--no-report"]) == 0
    capsys.readouterr()
    assert exit_status(["report", folder, "--csv", str(table), "--json"]) == 0
    [one] = json.loads(capsys.readouterr().out)
    loaded = load_results(folder)
    assert (one["suite"], one["kind"]) == ("tls1.2/psk", "measured")
    assert [figure.get("value") for figure in one["figures"]] == loaded.table["value"].to_list()
    assert table.read_text().startswith("suite,client_stack,client_stack_version,")
    assert table.read_text().count("\n") == 1 + loaded.table.height


@pytest.mark.parametrize(
    "command",
    [("predict",), ("capacity", "--within", "9s"), ("simulate", "--clients", "5")],
    ids=lambda one: one[0],
)
def test_a_suite_that_fails_is_named_once(capsys, command):
    from shakedown.cli import exit_status

    assert exit_status([command[0], "dtls1.2/psk", "tls1.2/psk", *command[1:]]) == 0
    out, err = capsys.readouterr()
    [line] = [line for line in (out + err).splitlines() if "no stack here" in line]
    assert line == "dtls1.2/psk: no stack here runs dtls1.2"
