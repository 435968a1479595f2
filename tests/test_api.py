"""Every command that prints figures is a function, which is loaded when it is first used."""

from __future__ import annotations

import inspect
import json
import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest

import shakedown
from runs import python
from shakedown.cli import SECTIONS
from shakedown.errors import MAX_LINE, InputError
from shakedown.live.path_probe import Reflector
from shakedown.native.core import extension

OTHER_NAMES = {
    "run": "run_experiment", "validate": "compare_live", "bearer check": "check_bearer",
    "bearer measure": "measure_path", "eap peer": "authenticate", "aka run": "attach",
    "aka mobile": "attach_live", "check": "check_budgets",
}  # fmt: skip
NO_FIGURES = {
    "aka provision": "writes files", "aka sgsn": "serves until it is stopped",
    "doctor": "reports on the machine",
}  # fmt: skip


KEY_ALONE = shakedown.MeasureOptions(key="k.pem")


def test_every_command_is_a_function():
    """So `shakedown.report` is not the name of a module, whatever has been imported before."""
    import pkgutil

    from shakedown.cli import app

    assert set(app.list_commands(None)) <= {name for names in SECTIONS.values() for name in names}
    found = dict(printing(app))
    for path in found.keys() - NO_FIGURES.keys():
        name = OTHER_NAMES.get(path, path.split()[0])
        assert callable(getattr(shakedown, name)), path
    assert NO_FIGURES.keys() | OTHER_NAMES.keys() <= found.keys()
    modules = {one.name for one in pkgutil.iter_modules(shakedown.__path__)}
    assert modules & set(shakedown.__all__) == set()


def printing(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """The commands with `--json`, including those of groups, by their full names."""
    if any("--json" in one.opts for one in command.params):
        yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from printing(inner, f"{path} {name}".strip())


def test_paths_are_measured_against_a_reflector(tmp_path):
    reflector, stop = Reflector(("127.0.0.1", 0)), threading.Event()
    thread = threading.Thread(target=reflector.serve, args=(stop.is_set,))
    thread.start()
    try:
        target = f"127.0.0.1:{reflector.port}"
        found = shakedown.measure_path(target, tmp_path / "path.toml", name="path", seconds=0.5)
        with pytest.raises(shakedown.InputError, match="exists already"):
            shakedown.measure_path(target, tmp_path / "path.toml", name="path")
    finally:
        stop.set()
        thread.join(300)
    assert found.target == target
    assert 0.0 < found.round_trip_s.min <= found.round_trip_s.p50 <= found.round_trip_s.max
    assert 'name = "path"' in (tmp_path / "path.toml").read_text()
    for bad in ("nowhere", "127.0.0.1:x", ":4"):
        with pytest.raises(shakedown.InputError, match="is not an address; accepted: HOST:PORT"):
            shakedown.measure_path(bad, tmp_path / "other.toml")


def test_load_lists_the_accepted_arrivals():
    for arrivals in (5, "bursts"):
        with pytest.raises(InputError, match=r"arrivals is .*; accepted: poisson, deterministic, closed"):
            shakedown.load("127.0.0.1:1", options=shakedown.LoadOptions(rate_per_s=1.0, arrivals=arrivals))


def test_load_accepts_a_device_path(tmp_path):
    """A path works as a name does, before the target is contacted: no process listens there."""
    shipped = Path(shakedown.__file__).parent / "profiles/devices/cortex-m4.toml"
    own = tmp_path / "own.toml"
    own.write_text(shipped.read_text())
    with socket.create_server(("127.0.0.1", 0)) as held:
        target = f"127.0.0.1:{held.getsockname()[1]}"
    options = shakedown.LoadOptions(arrivals="closed", emulate_device=own, timeout_s=5.0)
    with pytest.raises(extension().CoreError, match="connection refused"):
        shakedown.load(target, "tls1.3/x25519/p256/server", options)


def test_attach_live_refuses_invalid_arguments(tmp_path):
    never = shakedown.MobileOptions(timeout_s=0.0)
    with pytest.raises(shakedown.InputError, match="timeout: 0; accepted: a time above 0"):
        shakedown.attach_live("127.0.0.1:1", tmp_path / "card.json", never)
    with pytest.raises(shakedown.InputError, match=r"card\.json"):
        shakedown.attach_live("127.0.0.1:1", tmp_path / "card.json")


def test_compare_live_compares_the_kinds_of_figures(tmp_path):
    [one] = shakedown.compare_live(experiment(tmp_path), rate_per_s=20.0, time_s=1.0)
    assert one.suite == "tls1.2/psk"
    assert one.comparison is not None
    assert {figure.figure for figure in one.comparison.figures} >= {"handshake", "wait"}
    path = tmp_path / "eap.toml"
    path.write_text('suites = ["tls1.3/x25519"]\ncarrier = "eap"\n')
    with pytest.raises(shakedown.InputError, match="live loads do not support EAP"):
        shakedown.compare_live(path)


@pytest.mark.parametrize("name", shakedown.__all__)
def test_every_public_name_exists(name):
    assert getattr(shakedown, name)
    assert name in dir(shakedown)


def test_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'mesure'"):
        shakedown.mesure  # noqa: B018 - the access is what is tested


def test_accessing_a_name_loads_no_heavy_modules():
    code = (
        "import sys, shakedown; shakedown.measure; "
        "print(*[name for name in ('polars', 'numpy') if name in sys.modules])"
    )
    done = python(code)
    assert (done.returncode, done.stdout.strip()) == (0, "")


@pytest.mark.parametrize(
    "use",
    [
        lambda folder: shakedown.suites("tls1.3", "mutual")[0],
        lambda folder: shakedown.stacks()[0],
        lambda folder: shakedown.machine(),
        lambda folder: shakedown.measure("tls1.3/x25519/p256/server", 2, samples=True),
        lambda folder: shakedown.measure("tls1.2/psk", 2, transfer_bytes=[1000]).transfers[0],
        lambda folder: shakedown.primitives("digest", "sha256", seconds=0.02)[0],
        lambda folder: shakedown.certs("make", keys="p256", out=str(folder / "c"))[0],
        lambda folder: shakedown.certs("profiles")[0],
        lambda folder: shakedown.devices("phone")[0],
        lambda folder: shakedown.bearers("lte")[0],
        lambda folder: shakedown.reproduce("ssl-pda", measure=False)[0],
        lambda folder: shakedown.serve("tls1.2/psk"),
        lambda folder: shakedown.attach(attaching=shakedown.Attaching(attaches=2)),
        lambda folder: shakedown.load_experiment(experiment(folder)).scenarios[0],
        lambda folder: shakedown.run_experiment(shakedown.load_experiment(experiment(folder)), folder / "r"),
    ],
)
def test_repr_of_objects_is_a_few_lines(tmp_path, use):
    shown = repr(use(tmp_path))
    assert len(shown) < 600
    assert shown.count("\n") < 5


@pytest.mark.parametrize(
    "use",
    [
        lambda suite: shakedown.predict(suite, device="cortex-m4"),
        lambda suite: shakedown.capacity(suite, within_s=2.0, device="cortex-m4"),
        lambda suite: shakedown.simulate(suite, shakedown.Fleet(clients=100)),
    ],
)
def test_repr_of_rows_with_many_fields_is_one_line(use):
    [row] = use("tls1.3/x25519/p256/server")
    assert len(repr(row)) < 1100
    assert "\n" not in repr(row)


def experiment(folder):
    path = folder / "e.toml"
    path.write_text('suites = ["tls1.2/psk"]\nrepeat = 2\n')
    return path


def test_experiment_runs_and_its_page_is_written(tmp_path):
    shakedown.run_experiment(shakedown.load_experiment(experiment(tmp_path)), tmp_path / "r")
    results = shakedown.load_results(tmp_path / "r")
    assert len(repr(results)) < 300
    assert shakedown.report(results) == tmp_path / "r" / "report.html"
    assert shakedown.report(tmp_path / "r", tmp_path / "other.html").exists()
    with pytest.raises(shakedown.InputError, match="exists already"):
        shakedown.report(tmp_path / "r", tmp_path / "other.html")


def test_captures_are_read_during_iteration(tmp_path):
    shakedown.capture(["tls1.3/x25519/p256/server"], tmp_path / "a.pcap", keylog=tmp_path / "a.keys")
    found = shakedown.inspect(tmp_path / "a.pcap", tmp_path / "a.keys")
    [one] = found
    assert one.connection.suite == one.trace.suite == "tls1.3/x25519/p256/server"
    assert found.summary.connections == 1
    with pytest.raises(shakedown.InputError, match="exists already"):
        shakedown.capture(["tls1.2/psk"], tmp_path / "a.pcap")


def test_inspection_cannot_be_pickled_but_its_connections_can(tmp_path):
    shakedown.capture("tls1.2/psk", tmp_path / "c.pcap")
    inspection = shakedown.inspect(tmp_path / "c.pcap")
    with pytest.raises(TypeError, match="its connections can be"):
        pickle.dumps(inspection)
    [found] = [one.connection for one in inspection]
    assert pickle.loads(pickle.dumps(found)) == found


def test_predict_and_capacity_accept_one_name_or_several():
    [one] = shakedown.predict("tls1.2/psk", device="cortex-m4")
    assert 0.0 < one.ready_s.p50 <= one.ready_s.p99
    assert [one] == shakedown.predict(["tls1.2/psk"], device="cortex-m4")
    assert len(shakedown.capacity(["tls1.2/psk", "tls1.3/x25519/p256/server"], within_s=2.0)) == 2


def test_profiles_are_found_and_a_paper_is_reproduced():
    assert shakedown.devices("phone")[0].name == "phone"
    assert len(shakedown.bearers()) > 20
    assert {"cortex-m4", "stm32f4"} <= {one.name for one in shakedown.devices("Cortex-M4")}
    assert {"geo", "leo"} <= {one.name for one in shakedown.bearers("satellite")}
    [paper] = shakedown.reproduce("ssl-pda", measure=False)
    assert paper.rows


def test_unknown_and_missing_arguments_get_a_suggestion():
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'devise'; did you mean \"device\"\?$"):
        shakedown.predict("tls1.2/psk", devise="phone")
    with pytest.raises(TypeError, match=r"argument 'clients'; for clients: fleet=Fleet\(clients=…\)$"):
        shakedown.simulate("tls1.2/psk", clients=100)
    with pytest.raises(TypeError, match=r"argument 'workers'; for workers: server=ServerModel\(workers=…\)$"):
        shakedown.predict("tls1.2/psk", workers=2)
    with pytest.raises(TypeError, match=r"^missing a required argument: 'within_s'$"):
        shakedown.capacity("tls1.2/psk")
    with pytest.raises(
        TypeError, match=r"'within_s'; unknown argument 'within'; did you mean \"within_s\"\?$"
    ):
        shakedown.capacity("tls1.2/psk", within=1)


SURROGATE = os.fsdecode(b"\xff")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: shakedown.measure(SURROGATE), f'"{SURROGATE}" is not text; accepted: UTF-8'),
        (lambda: shakedown.measure("tls1.2/psk", options=shakedown.MeasureOptions(chain=SURROGATE)), "UTF-8"),
        (lambda: shakedown.Fleet(clients=SURROGATE), "clients is '\\udcff'; accepted: a whole number"),
        (lambda: shakedown.MeasureOptions(carrier=SURROGATE), "accepted: bare, eap"),
        (lambda: shakedown.capture("tls1.2/psk", "x" * 100_000), "name too long"),
        (lambda: shakedown.capture("tls1.2/psk", "a\0b"), "NUL byte"),
        (lambda: shakedown.devices(Path("a\0b")), "null byte; accepted: a readable device profile"),
        (lambda: shakedown.predict("tls1.2/psk", bearer=Path("a\0b")), "accepted: a readable bearer profile"),
        (lambda: shakedown.MeasureOptions(server_software=Path("a\0b")), "readable server software profile"),
        (lambda: shakedown.Costs(scale_from=Path("a\0b")), "accepted: a readable device profile"),
        (lambda: shakedown.measure("x" * 100_000), "; accepted: ssl3 tls1.0"),
    ],
)  # fmt: skip
def test_names_that_the_system_refuses_are_reported_in_one_line_of_limited_length(call, said):
    with pytest.raises(shakedown.InputError) as caught:
        call()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) <= MAX_LINE + 3


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (("tls9/psk",), {}, "tls9"),
        (("tls1.2/psk", 0), {}, "repeat is 0; accepted: a whole number from 1"),
        (("tls1.2/psk", 10**9), {}, "accepted: a whole number from 1 to 1,000,000"),
        (("tls1.2/psk",), {"stack": "opnssl"}, 'there is no stack "opnssl"; did you mean "openssl"?'),
        (("tls1.2/psk",), {"transfer_bytes": [-1]}, "a transfer of -1 bytes"),
        (("tls1.2/psk",), {"options": KEY_ALONE}, "key requires chain"),
    ],
)
def test_wrong_input_is_reported_in_one_line(arguments, options, said):
    with pytest.raises(shakedown.InputError) as caught:
        shakedown.measure(*arguments, **options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("MeasureOptions", {"tickets": 10**8}, "tickets is 100000000; accepted: a whole number from 0 to 16"),
        ("MeasureOptions", {"seed": -1}, "seed is -1; accepted: a whole number from 0"),
        ("MeasureOptions", {"now": 10**20}, "now is 1000"),
        ("MeasureOptions", {"chain": 5}, "chain is 5; accepted: a string"),
        ("ServerOptions", {"workers": "x"}, "workers is 'x'; accepted: a whole number from 1 to 1,024"),
        ("ServerOptions", {"workers": None}, "workers is None; accepted: a whole number from 1 to 1,024"),
        ("ServerOptions", {"queue_times": 1}, "queue_times is 1; accepted: true, false"),
        ("LoadOptions", {"requirements": "x"}, "requirements is 'x'; accepted: a list of strings"),
        ("EapOptions", {"count": "5"}, "count is '5'; accepted: a whole number"),
        ("MobileOptions", {"attaches": 0}, "attaches is 0; accepted: a whole number from 1 to 1,000,000"),
        ("Attaching", {"attaches": "5"}, "attaches is '5'; accepted: a whole number"),
        ("PredictionOptions", {"carrier": "sim"}, "carrier is 'sim'; accepted: bare, eap"),
        ("PredictionOptions", {"battery_j": "9"}, "battery_j is '9'; accepted: a number"),
        ("Fleet", {"arrivals": 5}, "arrivals is 5; accepted: a string"),
        ("Fleet", {"clients": "5"}, "clients is '5'; accepted: a whole number"),
        ("Fleet", {"timeout_s": "10s"}, "timeout_s is '10s'; accepted: a number of seconds"),
        (
            "EapOptions",
            {"timeout_s": 0},
            "timeout_s is 0; accepted: a number of seconds, above 0, at most 36",
        ),
        ("LoadOptions", {"rate_per_s": "10/s"}, "rate_per_s is '10/s'; accepted: a number per second"),
        ("ServerModel", {"workers": "5"}, "workers is '5'; accepted: a whole number"),
        ("ServerModel", {"device": 5}, "device is 5; accepted: a string or a path"),
        ("ServerModel", {"device": "nope"}, "unknown device 'nope'"),
        ("ServerModel", {"device": ["phone", "nope"]}, "unknown device 'nope'"),
        ("ServerModel", {"software": "nope"}, "unknown server software 'nope'"),
        ("MeasureOptions", {"server_software": "nope"}, "unknown server software 'nope'"),
        ("Costs", {"scale_from": "nope"}, "unknown device 'nope'"),
        ("Costs", {"traces": 5}, "traces is 5; accepted: a TraceLibrary or traces by suite or a string"),
        ("Stacks", {"client": 5}, "client is 5; accepted: a string or None"),
    ],
)
def test_option_groups_are_validated_on_creation(kind, options, said):
    with pytest.raises(shakedown.InputError) as caught:
        getattr(shakedown, kind)(**options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_repr_of_options_may_contain_arrays():
    assert repr(shakedown.Fleet(endpoints=np.array([1, 2]))) == "Fleet(endpoints=array([1, 2]))"


def test_repr_of_options_has_given_values_and_no_password():
    shown = repr(shakedown.EapOptions(count=3, password="secret"))
    assert shown == "EapOptions(count=3, password=…)"
    with pytest.raises(TypeError, match="Unexpected keyword argument 'sed'"):
        shakedown.MeasureOptions(sed=1)


def test_measure_runs_two_different_stacks():
    pair = shakedown.Stacks(client="rustls", server="openssl")
    found = shakedown.measure("tls1.3/x25519/p256/server", 2, stack=pair)
    assert (found.client_stack.name, found.server_stack.name) == ("rustls", "openssl")
    printed = subprocess.run(
        [sys.executable, "-m", "shakedown", "measure", found.suite, "--repeat", "2",
         "--client-stack", "rustls", "--json"],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    [one] = json.loads(printed.stdout)
    assert (one["client_stack"]["name"], one["server_stack"]["name"]) == ("rustls", "openssl")
    # A DER signature is a byte or two longer or shorter from one handshake to the next.
    assert one["bytes"]["total"] == pytest.approx(found.bytes.total, abs=4)


def test_an_experiment_is_run_from_its_file(tmp_path):
    path = experiment(tmp_path)
    assert shakedown.run_experiment(str(path), str(tmp_path / "text")).measured == 1
    assert shakedown.run_experiment(path, tmp_path / "path").measured == 1
    with pytest.raises(shakedown.InputError, match=r"nowhere\.toml: cannot be read: no such file"):
        shakedown.run_experiment(tmp_path / "nowhere.toml")


WRONG = [
    ("compare", (5, "x"), {}, "before is 5; accepted: a string or a path"),
    ("compare_pair", (5, "x"), {}, "before is 5; accepted: a string"),
    ("compare_pair", ("tls1.2/psk", "tls1.2/psk"), {"blocks": 0}, "blocks is 0; accepted: 4 to 1,000"),
    ("check_budgets", ("b.toml",), {"times": "yes"}, "times is 'yes'; accepted: "),
    *(
        ("check_budgets", (budgets,), {}, "; accepted: a string or a path or a list of Budgets")
        for budgets in (None, 1, b"x", {"a": 1}, [None])
    ),
    ("measure", (5,), {}, "suites is 5; accepted: a string or a list of strings"),
    ("measure", ("tls1.2/psk", "5"), {}, "repeat is '5'; accepted: a whole number or None"),
    ("measure", ("tls1.2/psk", True), {}, "repeat is True; accepted: a whole number or None"),
    ("measure", ("tls1.2/psk",), {"transfer_bytes": 5}, "transfer_bytes is 5; accepted: a list of whole num"),
    ("measure", ("tls1.2/psk",), {"progress": 5}, "progress is 5; accepted: a function or None"),
    ("measure", ("tls1.2/psk",), {"options": 5}, "options is 5; accepted: a MeasureOptions"),
    ("measure", ("tls1.2/psk",), {"stack": 5}, "stack is 5; accepted: a string or Stacks or None"),
    ("capture", (5, "x.pcap"), {}, "suites is 5; accepted: a string or a list of strings"),
    ("capture", ("tls9/psk", "x.pcap"), {}, "suite 'tls9/psk': unknown protocol 'tls9'"),
    ("inspect", (5,), {}, "path is 5; accepted: a string or a path"),
    ("suites", ("tls", 5), {}, "words is 5; accepted: a string"),
    ("primitives", (), {"seconds": "1"}, "seconds is '1'; accepted: a number"),
    ("predict", ("tls1.2/psk",), {"device": 5}, "device is 5; accepted: a string or a path"),
    ("predict", ("tls1.2/psk",), {"server": "phone"}, "server is 'phone'; accepted: a ServerModel"),
    ("predict", (["tls1.2/psk", 5],), {}, "suites is ['tls1.2/psk', 5]; accepted: a string or a list of str"),
    ("predict", ("tls1.2/psk",), {"rate_per_s": 10**400}, "accepted: a number or a list of numbers"),
    ("predict", ("tls1.2/psk",), {"rate_per_s": [10**5000]}, "rate_per_s is a number of thousands of digits"),
    ("capacity", ("tls1.2/psk",), {"within_s": 10**400}, "accepted: a number"),
    ("capacity", ("tls1.2/psk",), {"within_s": 1.0, "rate_per_s": 10**400}, "accepted: a number or None"),
    ("calibrate", (1, "tls1.2/psk"), {}, "target is 1; accepted: a string"),
    ("capacity", ("tls1.2/psk",), {"within_s": None}, "within_s is None; accepted: a number"),
    ("capacity", ("tls1.2/psk",), {"within_s": 1.0, "calibrations": "x"}, "accepted: a list of Calibrations"),
    ("serve", (5,), {}, "suites is 5; accepted: a string or a list of strings"),
    ("serve", ("tls1.2/psk",), {"settings": 1}, "settings is 1; accepted: a ServerOptions"),
    ("check_bearer", (5,), {}, "name is 5; accepted: a string or a path"),
    ("measure_path", ("127.0.0.1:1",), {"seconds": "5"}, "seconds is '5'; accepted: a number"),
    ("authenticate", ("127.0.0.1:1", "s", "x"), {"options": 5}, "options is 5; accepted: an EapOptions"),
    ("attach", (), {"attaching": 5}, "attaching is 5; accepted: an Attaching"),
    ("attach_live", ("127.0.0.1:1", 5), {}, "card is 5; accepted: a string or a path"),
    ("compare_live", (5,), {}, "experiment is 5; accepted: an Experiment or a string or a path"),
    ("simulate", ("tls1.2/psk", 5), {}, "fleet is 5; accepted: a Fleet or a string or a list of both"),
    ("simulate", ("tls1.2/psk",), {"endpoints": "x"}, "endpoints is 'x'; accepted: True or False or Stacks"),
    ("simulate_mix", ([5],), {}, "mix is [5]; accepted: a string or a path or a list of kinds of clients"),
    ("simulate_mix", ([],), {"server": "5"}, "server is '5'; accepted: a ServerModel"),
    ("devices", (5,), {}, "names is 5; accepted: a string or a path"),
    ("bearers", (None,), {}, "names is None; accepted: a string or a path"),
    ("reproduce", ("wtls-palm",), {"measured": 5}, "measured is 5; accepted: a string or a path or None"),
    ("certs", (5,), {}, "do is 5; accepted: a string"),
    ("report", (5,), {}, "results is 5; accepted: Results or a string or a path"),
    ("load_results", (5,), {}, "folder is 5; accepted: a string or a path"),
    ("load_experiment", ({},), {}, "path is a dict; accepted: a string or a path"),
    ("run_experiment", ({},), {}, "experiment is a dict; accepted: an Experiment or a string or a path"),
    ("load", ("127.0.0.1:1",), {"generators": 5}, "generators is 5; accepted: Generators or None"),
    ("load", ("127.0.0.1:1",), {"options": "x"}, "options is 'x'; accepted: a LoadOptions"),
    ("canonical", (5,), {}, "suite is 5; accepted: a string"),
    ("describe", (None,), {}, "suite is None; accepted: a string"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "options", "said"), WRONG)
def test_arguments_of_wrong_type_are_reported_in_one_line(
    tmp_path, monkeypatch, name, arguments, options, said
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(shakedown.InputError) as caught:
        getattr(shakedown, name)(*arguments, **options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_every_function_with_arguments_has_a_type_test():
    takes_none = {"stacks", "machine"}
    functions = {name for name in shakedown.__all__ if inspect.isfunction(getattr(shakedown, name))}
    assert {name for name, *_ in WRONG} == functions - takes_none


def test_path_arguments_may_be_str_or_path(tmp_path):
    [made] = shakedown.certs("make", keys="p256", out=tmp_path / "made")
    chain = tmp_path / "made" / "chain.pem"
    assert made.files
    assert shakedown.certs("show", files=chain) == shakedown.certs("show", files=[str(chain)])
    device = tmp_path / "board"
    shipped = Path(shakedown.__file__).parent / "profiles" / "devices" / "phone.toml"
    device.write_bytes(shipped.read_bytes())
    [row] = shakedown.predict("tls1.2/psk", device=device)
    assert row.device == "phone"
    assert [one.name for one in shakedown.devices(device, "server")] == ["phone", "server"]
    files = {name: tmp_path / "made" / f"{name}.pem" for name in ("chain", "key", "ca")}
    texts = {name: str(path) for name, path in files.items()}
    one, other = (
        shakedown.measure("tls1.3/x25519/p256/server", 2, options=shakedown.MeasureOptions(**given))
        for given in (files, texts)
    )
    assert one.credentials == other.credentials != "generated"


class Named:
    """A path of another library."""

    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return self.path


def test_rates_may_be_any_collection():
    assert [row.rate_per_s for row in shakedown.predict("tls1.2/psk", rate_per_s={2.0})] == [2.0]
    assert shakedown.predict("tls1.2/psk", rate_per_s=set()) == []


def test_numbers_and_paths_of_other_libraries_are_accepted(tmp_path):
    import numpy as np

    profile = tmp_path / "mine.toml"
    shipped = Path(shakedown.__file__).parent / "profiles" / "bearers" / "lte.toml"
    profile.write_text(shipped.read_text().replace('name = "lte"', 'name = "mine"'))
    plain = shakedown.predict("tls1.2/psk", bearer=profile, rate_per_s=5.0)
    with os.scandir(tmp_path) as entries:
        (entry,) = entries
    for path in (Named(str(profile)), entry):
        found = shakedown.predict(
            ["tls1.2/psk"],
            bearer=path,
            rate_per_s=np.float32(5),
            server=shakedown.ServerModel(workers=np.int64(1)),
        )
        assert found == plain
    with pytest.raises(InputError, match=r"bearer is b.*accepted: a string or a path"):
        shakedown.predict("tls1.2/psk", bearer=Named(b"mine.toml"))
    (one,), (other,) = (
        shakedown.simulate(
            "tls1.2/psk",
            shakedown.Fleet(clients=number(20), resumption=share(0.5), timeout_s=share(5.0)),
            seed=number(3),
        )
        for number, share in ((int, float), (np.int64, np.float64))
    )
    assert one == other


def test_profiles_with_equal_name_and_time_are_distinguished(tmp_path, monkeypatch):
    """Archives with one time for all files produce such profiles."""
    folder = Path(shakedown.__file__).parent / "profiles" / "bearers"
    for bearer in ("lte", "nb-iot"):
        (tmp_path / bearer).mkdir()
        file = tmp_path / bearer / "x.toml"
        file.write_text((folder / f"{bearer}.toml").read_text())
        os.utime(file, (0, 0))
    for bearer in ("lte", "nb-iot", "lte"):
        monkeypatch.chdir(tmp_path / bearer)
        (found,) = shakedown.bearers("x.toml")
        assert found.name == bearer
