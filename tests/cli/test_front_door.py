"""What a bearer's own page says of its radio's set-up, and what a noisy handshake's title shows."""

from __future__ import annotations

from shakedown.cli import exit_status
from shakedown.reporting.columns.measured import message_title

ROW = {
    "label": "x", "client_us": 100.0, "client_sd_us": 1.0, "server_us": 100.0, "server_sd_us": 100.0,
    "repeat": 25, "flights": 3, "bytes": 9,
}  # fmt: skip


def test_a_bearer_states_what_is_assumed_of_its_set_up(capsys):
    assert exit_status(["bearers", "ble"]) == 0
    assert "ble: setup: assumed: " in " ".join(capsys.readouterr().out.split())


def test_columns_of_messages_select_the_table_of_messages(capsys):
    """Named without --messages, of one suite or several; what both tables have selects no other table."""
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


def test_a_noisy_mean_stands_with_its_interval():
    title = message_title(ROW)
    assert "client 100 µs, server 100 µs ± 39%" in title
