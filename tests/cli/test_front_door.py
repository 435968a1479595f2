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


def test_a_noisy_mean_stands_with_its_interval():
    title = message_title(ROW)
    assert "client 100 µs, server 100 µs ± 39%" in title
