"""Experiment files: accepted keys are documented; errors are one line with the place."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from shakedown.api.in_memory import measure
from shakedown.errors import InputError
from shakedown.experiments.figure_kinds import Run, kind, load_experiment, tables
from shakedown.experiments.file import known_keys
from shakedown.experiments.file.suites import FILE_KEYS
from shakedown.experiments.runner import run_experiment
from shakedown.native.scenario import MeasureOptions
from shakedown.prediction.inputs import Costs
from shakedown.prediction.library import TraceLibrary
from shakedown.prediction.predict import predict_rows
from shakedown.results.folder import load_results
from shakedown.results.reader import missing
from shakedown.schema import builtins
from shakedown.schema.options import PredictionOptions

PAGE = (Path(__file__).parents[2] / "docs/reference/experiments.md").read_text()
SUITES = 'suites = ["tls1.3/x25519"]\n'


def documented(head: str) -> set[str]:
    """The keys in the first column of the table under a head."""
    rows = PAGE.split(f"\n| {head} |")[1].split("\n\n")[0].splitlines()[2:]
    first = [row.split("|")[1] for row in rows if row.startswith("|")]
    return {name for cell in first for name in re.findall(r"`(\w+)`", cell)}


def test_documentation_lists_exactly_the_known_keys():
    assert documented("key") == known_keys(tables())
    assert documented("key of `[server]`, `[client]`") == set(FILE_KEYS)
    for name, table in tables().items():
        assert documented(f"key of `[{name}]`") == {key.name for key in table.keys}


def complaint(folder: Path, text: str | bytes) -> str:
    path = folder / "e.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as found:
        load_experiment(path)
    line = str(found.value)
    assert line.isprintable()
    assert line.startswith(str(path))
    return line.removeprefix(str(path))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SUITES + "rates = [10, '20/s', '10/s']", ', line 2, key rates: "10/s" is repeated'),
        (
            SUITES + '[simulated]\narrivals = ["storm:1s", "storm:1s"]',
            ', line 3, key simulated.arrivals: "storm:1s" is repeated',
        ),
        (
            SUITES + "[live]\nclients = 2\nrate = inf",
            ', line 4, key live.rate: "inf" is not a rate;',
        ),
        (
            SUITES + "fragment = 300",
            ", line 2, key fragment: applies only to EAP; accepted: with carrier",
        ),
        (SUITES + 'carrier = "eap"\n[live]', ", line 2, key carrier: live loads do not support EAP"),
        (
            SUITES + 'carrier = "eap"\nrates = [1]\n[simulated]',
            ", line 2, key carrier: [simulated] does not support EAP",
        ),
        (
            SUITES + 'stack = "wtls"',
            ", line 1, key suites: tls1.3/x25519: the stack wtls runs no client of tls1.3; accepted: ",
        ),
        (
            'suites = ["tls1.2/psk",\n  "ssl3/rsa"]\nserver_stack = "rustls"',
            ", line 2, key suites: ssl3/rsa: the stack rustls runs no server of ssl3; accepted: openssl",
        ),
        (
            SUITES + 'profile = "./e.toml"',
            ", line 2, key profile: certificate profile ",
        ),
        (SUITES + 'devices = ["a\\nb"]', ', line 2, key devices: there is no profile "a\\nb"'),
        (
            SUITES + "[[live]]\nrate = 1",
            ", line 2, key live: found an array; accepted: a table such as [live]",
        ),
        (
            SUITES + "simulated = true",
            ", line 2, key simulated: found true; accepted: a table",
        ),
    ],
)
def test_errors_are_reported_with_their_line(tmp_path, text, said):
    assert complaint(tmp_path, text).startswith(said)


def test_damaged_experiments_are_reported_in_one_line(tmp_path):
    """Bytes changed, removed, repeated: no traceback, and one line states what is wrong."""
    whole = (
        SUITES + 'repeat = 3\ndevices = ["phone"]\nrates = ["5/s", 20]\nwithin = "1s"\npercentile = 95\n'
        '[simulated]\narrivals = ["storm:1s"]\nclients = 5\ntimeout = "3s"\n'
        '[live]\nrate = "7/s"\ncompare = true\n'
        '[server]\nchain = "nothing.pem"\n'
    ).encode()
    draw = random.Random(5)
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(damaged))
            match draw.randrange(3):
                case 0:
                    damaged[at] = draw.randrange(256)
                case 1:
                    del damaged[at : at + draw.randint(1, 12)]
                case _:
                    damaged[at:at] = damaged[draw.randrange(len(damaged)) :][: draw.randint(1, 30)]
        complaint(tmp_path, bytes(damaged))


def test_handshake_measured_inside_eap_is_estimated_inside_eap(tmp_path):
    """`predict --carrier eap`, from the library's traces of bare handshakes, gives the same times."""
    suites = ["tls1.3/x25519/p256/server", "tls1.3/x25519/p256/server/resumed"]
    path = tmp_path / "eap.toml"
    path.write_text(f'suites = {suites}\nrepeat = 1\ncarrier = "eap"\nfragment = 200\ndevices = ["phone"]\n')
    run_experiment(load_experiment(path), tmp_path / "r")
    found = load_results(tmp_path / "r").predictions
    said = predict_rows(suites, options=PredictionOptions(carrier="eap", fragment_bytes=200))
    assert found["suite"].to_list() == suites
    assert set(found["carrier"]) == {"eap"}
    for row, one in zip(found.to_dicts(), said, strict=True):
        # A signature is a byte longer or shorter.
        assert row["ready_mean_s"] == pytest.approx(one["ready_s"]["mean"], rel=1e-4)


def test_trace_recorded_inside_eap_is_refused_for_a_bare_prediction(tmp_path):
    handshake = measure("tls1.3/x25519", repeat=1, options=MeasureOptions(carrier="eap"))
    path = tmp_path / "traces.json"
    path.write_text(json.dumps([builtins(handshake)]))
    with pytest.raises(InputError, match="was recorded inside EAP; accepted: with carrier eap"):
        predict_rows([handshake.suite], costs=Costs(TraceLibrary(path)))


def test_run_with_a_failed_handshake_is_complete(tmp_path):
    """No estimate and no fleet is missing: the run is complete, and reports what failed."""
    path = tmp_path / "e.toml"
    path.write_text(
        'suites = ["tls1.3/x25519", "tls1.2/psk"]\nrepeat = 1\nstack = "rustls"\ndevices = ["phone"]\n'
        '[simulated]\narrivals = ["storm:1s"]\nclients = 10\n'
    )
    outcome = run_experiment(load_experiment(path), tmp_path / "r")
    assert [suite for suite, _ in outcome.failures] == ["tls1.2/psk"]
    found = load_results(tmp_path / "r")
    assert found.is_whole
    assert set(found.table["kind"]) == {"measured", "modelled", "simulated"}
    # Without its part a fleet is missing.
    one = next(part for part in found.manifest.parts if part.kind == "simulated")
    parts = [part for part in found.manifest.parts if part != one]
    assert [(lost.kind, lost.about) for lost in missing(found.manifest, parts)] == [(one.kind, one.about)]


def test_experiment_without_a_live_table_has_no_loads(tmp_path):
    """Measurements may be kept for another kind of figure; without `[live]` they make no loads."""
    path = tmp_path / "plain.toml"
    path.write_text('suites = ["tls1.2/psk"]\n', encoding="utf-8")
    experiment = load_experiment(path)
    run = Run(experiment, measurements={one.handshake: None for one in experiment.of("measured")})
    assert run.measurements
    assert list(kind("live").scenarios(run)) == []
