"""The output of a bearer on its radio's set-up, and the title of a noisy handshake."""

from __future__ import annotations

import pytest

from shakedown.cli import exit_status
from shakedown.reporting.columns.measured import message_title

ROW = {
    "label": "x", "client_us": 100.0, "client_sd_us": 1.0, "server_us": 100.0, "server_sd_us": 100.0,
    "repeat": 25, "flights": 3, "bytes": 9,
}  # fmt: skip


def test_bearer_states_the_assumptions_about_its_setup(capsys):
    assert exit_status(["bearers", "ble"]) == 0
    assert "ble: setup: assumed: " in " ".join(capsys.readouterr().out.split())


def test_columns_of_messages_select_the_table_of_messages(capsys):
    """Also without --messages, for one suite or several; columns of both tables keep the table of suites."""
    for words, head in (
        (["tls1.2/psk", "--columns", "message,client_us"], "message,client_us"),
        (["tls1.2/psk", "tls1.3/psk", "--columns", "message", "--sort", "-server_us"], "message"),
        (["tls1.2/psk", "--columns", "suite,bytes"], "suite,bytes"),
    ):
        assert exit_status(["measure", *words, "--repeat", "3", "--csv"]) == 0
        first, *rows = capsys.readouterr().out.splitlines()
        assert first == head
        assert (len(rows) > 5) == (head != "suite,bytes")
    for words, complaint in (
        (["--columns", "message,flights"], 'unknown column "flights"; did you mean "flight"?'),
        (["--columns", "message", "--no-messages"], 'unknown column "message"; accepted: suite, '),
    ):
        assert exit_status(["measure", "tls1.2/psk", *words]) == 2
        assert complaint in capsys.readouterr().err


def test_noisy_mean_is_shown_with_its_interval():
    title = message_title(ROW)
    assert "client 100 µs, server 100 µs ± 41%" in title


@pytest.mark.parametrize(
    "arguments",
    [
        ("tls1.2/psk", "tls1.3/x25519/p256/server", "--bearer", "{lte,nb-iot}"),
        ("tls1.3/{x25519,x25519mlkem768}/{p256,mldsa44}/server", "tls1.2/psk", "--bearer", "nb-iot"),
        ("tls1.2/ecdhe_ecdsa+x25519/p256/server", "tls1.2/psk", "--bearer", "nb-iot"),
    ],
)
def test_a_prediction_for_a_device_shows_its_energy(arguments, capsys, monkeypatch):
    """The columns that decide between suites fit beside long names and several bearers."""
    monkeypatch.setenv("COLUMNS", "80")
    assert exit_status(["predict", *arguments, "--device", "cortex-m4"]) == 0
    _, heading, *rows = capsys.readouterr().out.partition("≈ in part")[0].splitlines()
    assert heading.split("  ")[0] == "suite"
    assert all(words in heading for words in ("ready", "90 % interval", "energy"))
    assert max(map(len, [heading, *rows])) <= 80


def test_the_column_that_rows_are_sorted_by_is_shown(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    suites = ("tls1.2/psk", "tls1.3/x25519/p256/server")
    arguments = ["predict", *suites, "--device", "cortex-m4", "--bearer", "nb-iot"]
    headings = []
    for more in ([], ["--sort", "done_p99_s"]):
        assert exit_status([*arguments, *more]) == 0
        headings.append(capsys.readouterr().out.split("tls1.2/psk")[0])
    without, sorted_by = (" ".join(text.split()) for text in headings)
    assert "p99" not in without
    assert "p99" in sorted_by
