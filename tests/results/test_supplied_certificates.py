"""User-supplied certificates in an experiment: suites that present them, checks, results."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import supplied
from runs import written
from shakedown import native
from shakedown.errors import InputError
from shakedown.experiments.figure_kinds import load_experiment
from shakedown.experiments.file.credentials import leaves_keys_out
from shakedown.experiments.file.experiment import Experiment
from shakedown.experiments.runner import run_experiment
from shakedown.files.toml import locate
from shakedown.reporting.html.write import write_report
from shakedown.results.folder import load_results
from shakedown.schema import builtins

KEYS = "p256@rsa2048"
SUITES = '"tls1.3/x25519", "tls1.3/x25519/p256/server", "tls1.2/psk", "tls1.2/ecdhe_rsa"'


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    supplied.chain(folder / "gw", KEYS, name="gateway.example", password="secret")
    supplied.chain(folder / "device", "p256", side="client")
    return folder


def loaded(home: Path, text: str):
    return load_experiment(written(home, text))


def used(found: Experiment) -> dict[str, tuple[str, ...]]:
    """The sides that present the user's certificates, by suite."""
    return {one.label: one.options.user_supplied for one in found.scenarios}


def options(found: Experiment) -> list[dict]:
    return [one.options.given() for one in found.scenarios]


def test_suites_without_keys_present_user_supplied_certificates(home):
    found = loaded(home, f"suites = [{SUITES}]\n{supplied.table('server', 'gw')}")
    assert found.suites == (
        f"tls1.3/x25519/{KEYS}/server",
        "tls1.3/x25519/p256/server",
        "tls1.2/psk",
        "tls1.2/ecdhe_rsa+x25519/rsa2048/server",
    )
    assert found.presented("server") == (f"tls1.3/x25519/{KEYS}/server",)
    assert [one.handshake.credentials for one in found.scenarios] == ["user-supplied", *["generated"] * 3]


def test_suite_with_the_user_supplied_keys_presents_them(home):
    found = loaded(home, f'suites = ["tls1.2/ecdhe_ecdsa/{KEYS}"]\n{supplied.table("server", "gw")}')
    assert used(found) == {f"tls1.2/ecdhe_ecdsa+x25519/{KEYS}/server": ("server",)}


def test_each_side_presents_its_user_supplied_certificates(home):
    tables = supplied.table("server", "gw") + supplied.table("client", "device")
    suites = '"tls1.3/x25519/mutual", "tls1.3/x25519/p256/mutual", "tls1.3/x25519/rsa2048/mutual"'
    found = loaded(home, f"suites = [{suites}]\n{tables}")
    assert used(found) == {
        f"tls1.3/x25519/{KEYS}/mutual": ("client", "server"),
        "tls1.3/x25519/p256/mutual": ("client",),
        "tls1.3/x25519/rsa2048/mutual": (),
    }
    [note] = found.notes
    assert "the client's are those of tls1.3/x25519/p256/mutual" in note


def test_verification_time_is_now_only_for_user_supplied_certificates(home):
    found = loaded(home, f"suites = [{SUITES}]\n{supplied.table('server', 'gw')}")
    first, second, *_ = options(found)
    assert abs(first["now"] - time.time()) < 600
    assert "now" not in second
    assert "chain" not in second
    dated = loaded(home, f"now = 2030-01-31\nsuites = [{SUITES}]\n{supplied.table('server', 'gw')}")
    assert {one["now"] for one in options(dated)} == {1_896_048_000}


@pytest.mark.parametrize(
    ("written", "out"),
    [
        ("tls1.3/x25519", True),
        ("tls1.3/x25519/server", True),
        ("tls1.3/x25519/mutual/resumed", True),
        ("tls1.3/x25519/aes256-gcm", True),
        ("TLS1.2/rsa/3des-sha", True),
        ("tls1.2/rsa/aes128-gcm", True),
        ("tls1.2/rsa/rsa2048", False),
        ("tls1.2/rsa/rsa1024/mutual", False),
        ("tls1.3/x25519/p256", False),
        ("wtls/ecdh_ecdsa/160p", False),
        ("wtls/ecdh_ecdsa/mutual/optimized", True),
        ("tls1.2/psk", True),
    ],
)
def test_suite_names_without_keys_are_recognised(written, out):
    assert leaves_keys_out(written) is out


def wrong(home: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        loaded(home, text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


HEAD = 'suites = ["tls1.3/x25519"]\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[server]\nkey = 'gw/key.pem'\n", "line 2, key server: chain is missing"),
        ("server = 'gw/chain.pem'\n", 'line 2, key server: found "gw/chain.pem"; accepted: a table'),
        ("[server]\nchain = 3\n", "line 3, key server.chain: found 3; accepted: a string"),
        ("[server]\nchain = ''\n", 'line 3, key server.chain: found ""; accepted: a string'),
        ("[server]\nchain = 'no.pem'\n", 'line 3, key server.chain: "no.pem" does not exist'),
        ("[server]\nchain = 'gw'\n", 'line 3, key server.chain: "gw" is a folder'),
        (
            "[server]\nchain = 'gw/chain.pem'\nkeys = 'gw/key.pem'\n",
            'line 4, key server.keys: unknown key; did you mean "key"?',
        ),
        ("[servre]\nchain = 'gw/chain.pem'\n", 'line 2, key servre: unknown key; did you mean "server"?'),
        ("[server]\nchain = 'gw/chain.pem'\n", "line 2, key server: "),
        (
            "[server]\nchain = 'gw/chain.pem'\nkey = 'gw/ca-key.pem'\nca = 'gw/ca.pem'\n",
            "gw/ca-key.pem: the key (rsa2048) is not that of any certificate in ",
        ),
        ("[server]\nchain = 'gw/all.p12'\n", "gw/all.p12: is protected by a password"),
        (
            "[server]\nchain = 'gw/all.p12'\npassword_env = 'NOBODY_SET_THIS'\n",
            "line 4, key server.password_env: the environment has no variable NOBODY_SET_THIS",
        ),
        (
            "[server]\nchain = 'gw/chain.pem'\nkey = 'gw/key.pem'\nca = 'device/ca.pem'\n",
            "device/ca.pem: issued none of the certificates",
        ),
        ("[server]\nchain = 'e.toml'\nkey = 'gw/key.pem'\n", "e.toml: unreadable as certificates or keys"),
        (
            supplied.table("client", "device"),
            "line 2, key client: no suite here presents these certificates; accepted",
        ),
    ],
)
def test_wrong_tables_are_reported_with_line_number_and_key(home, text, said):
    line = wrong(home, HEAD + text)
    assert said in line
    assert line.startswith(f"{home}/e.toml, line ")


def test_certificates_expired_at_the_verification_time_are_refused(home):
    line = wrong(home, f"{HEAD}now = 2060-01-01\n{supplied.table('server', 'gw')}")
    assert "line 3, key server: " in line
    assert "expired at 2049-12-24" in line


def test_table_used_by_no_suite_is_reported_with_its_keys(home):
    line = wrong(home, f'suites = ["tls1.2/psk"]\n{supplied.table("server", "gw")}')
    assert "line 2, key server: no suite here presents these certificates" in line
    assert KEYS in line


def test_suite_names_that_become_equal_are_refused(home):
    line = wrong(
        home, f'suites = ["tls1.3/x25519", "tls1.3/x25519/{KEYS}"]\n{supplied.table("server", "gw")}'
    )
    assert "are the same suite" in line


def test_password_is_read_from_the_environment_and_not_saved(home, tmp_path, monkeypatch):
    monkeypatch.setenv("GATEWAY_PASSWORD", "secret")
    text = f"{HEAD}repeat = 2\n[server]\nchain = 'gw/all.p12'\npassword_env = 'GATEWAY_PASSWORD'\n"
    outcome = run_experiment(loaded(home, text), tmp_path / "r")
    manifest = (outcome.folder / "manifest.json").read_text()
    assert outcome.measured == 1
    assert "secret" not in manifest
    assert "PRIVATE" not in manifest


@pytest.fixture(scope="module")
def results(home, tmp_path_factory):
    text = f"repeat = 2\nsuites = [{SUITES}]\n{supplied.table('server', 'gw')}"
    return load_results(run_experiment(loaded(home, text), tmp_path_factory.mktemp("out") / "r").folder)


def test_table_has_the_origin_of_the_presented_certificates(results):
    whose = dict(results.table.select("suite", "credentials").unique().rows())
    supplied_key = f"tls1.3/x25519/{KEYS}/server"
    assert whose.pop(supplied_key).startswith("user-supplied:")
    assert whose == {
        "tls1.3/x25519/p256/server": "generated",
        "tls1.2/psk": "generated",
        "tls1.2/ecdhe_rsa+x25519/rsa2048/server": "generated",
    }
    assert results.handshakes["user_supplied"].to_list() == ["server", "", "", ""]


def test_manifest_describes_certificates_without_keys_or_folders(results, home):
    about = results.manifest.certificates["server"]
    assert builtins(about.files) == {"chain": "chain.pem", "key": "key.pem", "ca": "ca.pem"}
    assert about.suites == (f"tls1.3/x25519/{KEYS}/server",)
    [leaf] = about.certificates
    assert "gateway.example" in leaf.subject
    assert sum(part.bytes for part in leaf.parts) == leaf.bytes
    assert len(leaf.fingerprint) == 64
    text = (results.folder / "manifest.json").read_text()
    assert "PRIVATE" not in text
    assert str(home) not in text


def test_bytes_sent_match_the_user_supplied_chain(results):
    about = results.manifest.certificates["server"]
    scenario = results.handshakes["scenario"][0]
    sent = results.messages.filter(scenario=scenario, message="Certificate")["bytes"].item()
    # RFC 8446, sections 4.4.2, 5.2: record header, content type and tag, message header, context, lengths.
    assert sent == about.bytes_sent + 5 + 1 + 16 + 4 + 1 + 3 + 3 + 2


def test_report_describes_user_supplied_certificates_and_marks_rows(results, tmp_path):
    page = write_report(results, tmp_path / "report.html").read_text()
    assert "Your certificates" in page
    assert "CN=gateway.example" in page
    assert "Shakedown Root CA" in page
    overview = page.split('<section id="overview">')[1].split("</section>")[0]
    rows = [row.replace("<wbr>", "") for row in overview.split("<tr ")[1:]]
    assert ["<td>server</td>" in row for row in rows] == [True, False, False, False]


def test_table_names_the_side_with_user_supplied_certificates(home, tmp_path):
    text = f'repeat = 2\nsuites = ["tls1.3/x25519/mutual"]\n{supplied.table("client", "device")}'
    results = load_results(run_experiment(loaded(home, text), tmp_path / "r").folder)
    assert results.handshakes["user_supplied"].to_list() == ["client"]


def test_lines_of_keys_inside_tables_are_found():
    text = 'suites = []\n[client]\nkey = "a"\n[server]\nchain = "b"\nkey = "c"\n'
    assert (locate(text, "server.key"), locate(text, "client.key"), locate(text, "server.ca")) == (6, 3, 4)
    assert locate('captures = [{ file = "a" },\n{ file = "b" }]\n', "captures.file", "b") == 2


def test_wtls_certificates_are_used_only_by_wtls_suites(tmp_path):
    folder = supplied.chain(tmp_path / "wap", "163k@233k", wtls=True)
    suites = '"wtls/ecdh_ecdsa", "wtls/rsa", "tls1.3/x25519"'
    text = f"repeat = 2\nsuites = [{suites}]\n{supplied.table('server', 'wap')}"
    experiment = loaded(tmp_path, text)
    assert experiment.presented("server") == ("wtls/ecdh_ecdsa/163k@233k/server",)
    results = load_results(run_experiment(experiment, tmp_path / "r").folder)
    [leaf] = results.manifest.certificates["server"].certificates
    [chain] = native.certs({"do": "show", "files": [str(folder / "chain.pem")], "now": int(time.time())})
    assert leaf.fingerprint == chain["certificates"][0]["fingerprint"]
    page = write_report(results, tmp_path / "report.html").read_text()
    assert "security level" not in page.split('<section id="certificates">')[1].split("</section>")[0]


def test_certificate_form_applies_only_to_generated_certificates(tmp_path):
    supplied.chain(tmp_path / "chain", "rsa1024")
    text = (
        'suites = ["wtls/rsa", "wtls/rsa/rsa2048"]\nrepeat = 1\n[wtls]\ncertificate_form = "x509"\n'
        + supplied.table("server", "chain")
    )
    experiment = load_experiment(written(tmp_path, text))
    mine, made = options(experiment)
    assert "certificate_form" not in mine
    assert made["certificate_form"] == "x509"
    assert run_experiment(experiment, tmp_path / "r").measured == 2
