"""The schema decodes the output of the real commands, strictly, and the published one is fresh."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click
import jsonschema
import msgspec
import pytest
from tools.reference import written

from shakedown.cli import app
from shakedown.errors import InputError
from shakedown.experiments.figure_kinds import KINDS
from shakedown.profiles import device_names
from shakedown.schema import decode, encode
from shakedown.schema.base import Object
from shakedown.schema.captured import CaptureSummary, Connection
from shakedown.schema.measured import Machine, Measurement
from shakedown.schema.publish import PRINTED, published
from shakedown.schema.trace import CapturedTrace

ROOT = Path(__file__).parents[2]
SUITES = (
    "tls1.2/rsa/rsa2048/mutual/resumed",
    "tls1.3/x25519mlkem768/mldsa65/server",
    "wtls/rsa/rsa1024/mutual",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("schema")


@pytest.fixture(scope="module")
def printed(home):
    """What a command prints on standard output as JSON."""

    def run(*arguments: str) -> bytes:
        command = [sys.executable, "-m", "shakedown", *arguments, "--json"]
        done = subprocess.run(command, cwd=home, capture_output=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("certs", "make", "p256@rsa2048", "--out", "x509")
    run("certs", "make", "163k@233k", "--wtls", "--out", "wtls")
    run("measure", *SUITES, "--repeat", "1", "--pcap", "some.pcap", "--keylog", "some.keys")
    run("inspect", "some.pcap", "--keylog", "some.keys", "--traces-out", "traces.json")
    (home / "mix.toml").write_text(
        '[[clients]]\nsuite = "tls1.3/x25519"\n[[clients]]\nsuite = "tls1.2/psk"\ndevice = "esp32"\n'
    )
    (home / "every.toml").write_text(EVERY_KIND)
    run("run", "every.toml", "--out", "results", "--no-report")
    (home / "measured.json").write_bytes(run("measure", "tls1.2/psk", "--repeat", "2", "--samples"))
    (home / "measured.toml").write_text('name = "measured"\nrepeat = 1\nsuites = ["tls1.3/psk"]\n')
    return run


EVERY_KIND = """
suites = ["tls1.3/psk"]
repeat = 1
devices = ["phone"]
bearers = ["lte", "nb-iot"]
rates = ["10/s", "20/s"]
workers = 2
captures = [{ file = "some.pcap", keylog = "some.keys" }]
[simulated]
arrivals = ["storm:1s", "poisson:9/s"]
clients = 20
mix = "mix.toml"
[live]
rate = "50/s"
duration = "0.2s"
clients = 2
compare = true
"""

DEVICES = tuple(name for name in device_names() if name != "this-machine")

COMMANDS: dict[str, list[tuple[str, ...]]] = {
    "measurement": [
        ("measure", *SUITES, "--repeat", "3", "--transfer", "4"),
        ("run", "measured.toml", "--out", "printed", "--no-report"),
        ("measure", "tls1.3/x25519", "--repeat", "2", "--chain", "x509/chain.pem", "--key", "x509/key.pem",
         "--ca", "x509/ca.pem"),
    ],
    "connection": [("inspect", "some.pcap"), ("inspect", "some.pcap", "--keylog", "some.keys")],
    "suite": [("suites", "--all")],
    "stack": [("stacks",)],
    "primitive": [
        ("primitives", "sign", "p256", "--seconds", "0.05", "--out", "p.toml"),
        ("primitives", "digest", "sha256", "--seconds", "0.05", "--out", "q.toml"),
    ],
    "certificate": [("certs", "show", "x509/chain.pem", "--key", "x509/key.pem"),
                    ("certs", "show", "wtls/chain.pem")],
    "chain": [("certs", "make", "rsa1024", "--out", "another"),
              ("certs", "issue", "root", "p384", "--out", "one")],
    "certificate-profile": [("certs", "profiles")],
    "device": [("devices",)],
    "device-profile": [("devices", "show", *DEVICES)],
    "bearer": [("bearers",)],
    "prediction": [
        ("predict", "tls1.3/x25519", "tls1.2/psk", "--rate", "100/s"),
        ("predict", "wtls/ecdh_ecdsa/163k/mutual", "--device", "palm-vii", "--bearer", "gsm-csd"),
    ],
    "prediction-failure": [("predict", "tls1.3/x25519", "tls1.0/x25519")],
    "capacity": [("capacity", "tls1.3/x25519", "--within", "1s", "--rate", "100/s")],
    "capacity-failure": [("capacity", "tls1.3/x25519", "tls1.0/x25519", "--within", "1s")],
    "simulated-capacity": [("capacity", "tls1.3/x25519", "--within", "1ms", "--simulated")],
    "simulation": [("simulate", "tls1.3/x25519", "--arrivals", "storm:1s", "--clients", "50", "--seed", "1")],
    "simulation-mix": [("simulate", "--mix", "mix.toml", "--arrivals", "storm:1s", "--clients", "50")],
    "attaches": [("aka", "run", "--attaches", "12", "--max-resumptions", "3", "--samples")],
    "comparison": [("reproduce", "wtls-palm", "--no-measure")],
    "live": [("validate", "measured.toml", "--live", "--rate", "50/s", "--time", "4s")],
    "figures": [("report", "results"), ("report", "traces.json"), ("report", "measured.json")],
}  # fmt: skip


ASKED_BY_THEIR_OWN_TESTS = {"serve", "load", "bearer", "eap", "aka", "compare", "check", "doctor"}
"""They need a peer, a namespace, or results to compare; their tests decode what they print."""


def survives(printed: object, again: object) -> bool:
    """Whether all printed values survive decoding and encoding; added defaults do not matter."""
    if isinstance(printed, dict) and isinstance(again, dict):
        return all(survives(value, again[key]) for key, value in printed.items())
    if isinstance(printed, list) and isinstance(again, list):
        return len(printed) == len(again) and all(map(survives, printed, again))
    return printed == again


@pytest.mark.parametrize(
    ("name", "command"),
    [(name, command) for name, commands in COMMANDS.items() for command in commands],
    ids=lambda value: value if isinstance(value, str) else "-".join(value[:3]).replace("/", ""),
)
def test_command_output_matches_the_schema(printed, name, command):
    kind, _ = PRINTED[name]
    # Commands that continue after a suite fails print another kind of object for it.
    array = [one for one in json.loads(printed(*command)) if ("error" in one) == name.endswith("-failure")]
    objects = decode(json.dumps(array), list[kind], " ".join(command))
    assert objects
    assert survives(array, json.loads(encode(objects)))
    schema = jsonschema.Draft202012Validator(json.loads(published()[f"{name}.schema.json"]))
    for one in array:
        schema.validate(one)


def test_reported_results_have_every_kind_of_figure(printed) -> None:
    assert {one["kind"] for one in json.loads(printed("report", "results"))} == set(KINDS)


def test_every_command_with_json_has_a_schema_test() -> None:
    """Every command with `--json` has a schema for its objects."""
    asked = {command[:depth] for commands in COMMANDS.values() for command in commands for depth in (1, 2)}
    known = {command for command in commands_with_json() if command[0] not in ASKED_BY_THEIR_OWN_TESTS}
    assert known - asked == set()


def commands_with_json(
    group: click.Group | None = None, above: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """The words of each command that has the option."""
    group = group or app
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                yield from commands_with_json(command, (*above, name))
            if command is not None and any("--json" in one.opts for one in command.params):
                yield (*above, name)


def test_files_of_traces_match_the_schema(printed, home):
    text = (home / "traces.json").read_bytes()
    traces = decode(text, list[CapturedTrace])
    assert [trace.suite for trace in traces] == list(SUITES[1:])
    schema = jsonschema.Draft202012Validator(json.loads(published()["trace.schema.json"]))
    for one in json.loads(text):
        schema.validate(one)


def test_core_returns_schema_objects_for_machine_and_capture(printed, home):
    from shakedown import native
    from shakedown.native import captures

    assert isinstance(native.machine(), Machine)
    found = captures.inspect(home / "some.pcap")
    assert all(isinstance(one.connection, Connection) for one in found)
    assert isinstance(found.summary, CaptureSummary)


def test_published_schema_is_up_to_date():
    there = {path.name: path.read_text() for path in (ROOT / "docs/reference").glob("*.schema.json")}
    assert there == published(), "make schema rewrites it"


def test_generated_reference_is_up_to_date():
    for name, text in written(ROOT / "docs/reference").items():
        assert (ROOT / "docs/reference" / name).read_text() == text, "make schema rewrites it"


def everything(kind: type, found: set[type]) -> set[type]:
    """A type and all objects inside it."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind in found:
            return found
        found.add(kind)
        inner = [field.type for field in msgspec.structs.fields(kind)]
    else:
        inner = list(get_args(kind))
    for one in inner:
        everything(one, found)
    return found


def test_every_object_is_strict_and_frozen():
    found: set[type] = set()
    for kind, _ in PRINTED.values():
        everything(kind, found)
    for kind in found:
        assert issubclass(kind, Object)
        assert kind.__struct_config__.forbid_unknown_fields
        assert kind.__struct_config__.frozen


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"suite": None}, "x.json: [0].suite: expected a string, got null"),
        ({"suite": " "}, "x.json: [0].suite: expected a non-empty string"),
        ({"flights": -3}, "x.json: [0].flights: expected a whole number >= 0"),
        ({"messages": []}, "x.json: [0].messages: expected an array of length >= 1"),
        ({"messages": [7]}, "x.json: [0].messages[0]: expected an object, got a whole number"),
        ({"nonsense": 1}, "x.json: [0]: unknown key nonsense"),
        ({"repeat": 10**400}, "x.json: "),
        ({"bytes": None}, "x.json: [0].bytes: expected an object, got null"),
    ],
)
def test_schema_violation_is_reported_in_one_line_with_its_place(printed, change, said):
    [one] = json.loads(printed("measure", "tls1.2/psk", "--repeat", "1"))
    with pytest.raises(InputError) as caught:
        decode(json.dumps([{**one, **change}]), list[Measurement], "x.json")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_repr_of_an_object_is_one_short_line(printed):
    [one] = decode(printed("measure", "tls1.2/psk", "--repeat", "1"), list[Measurement])
    for shown in (one, one.messages[0], one.memory, one.machine, one.handshake):
        assert "\n" not in repr(shown)
        assert len(repr(shown)) < 300


def test_encoding_nan_raises_an_error(printed):
    [one] = decode(printed("measure", "tls1.2/psk", "--repeat", "1"), list[Measurement])
    spoilt = msgspec.structs.replace(one.accounting, coverage=float("nan"))
    with pytest.raises(ValueError, match="no number"):
        encode(spoilt)
