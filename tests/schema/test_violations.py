"""Errors in documents are in the terms of the format, with the place once."""

from __future__ import annotations

import pytest

from shakedown.errors import InputError
from shakedown.files.limits import parse_json
from shakedown.files.toml import load_toml
from shakedown.profiles.software import parse_software
from shakedown.schema.base import convert, decode
from shakedown.schema.budget import Budget, BudgetFile, CheckedLimit

SUITE = 'suite = "tls1.2/psk"\n'
BUDGET = f"[[budget]]\n{SUITE}"


def complaint(text: str, tmp_path) -> str:
    path = tmp_path / "budget.toml"
    path.write_text(text)
    data, _ = load_toml(path, 1 << 20, "budget")
    with pytest.raises(InputError) as caught:
        convert(data, BudgetFile, "budget.toml", "TOML")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"[budget]\n{SUITE}", "budget: expected an array of tables, [[budget]], got a table, [budget]"),
        ("budget = 3\n", "budget: expected an array, got a whole number"),
        ("budget = [3]\n", "budget[0]: expected a table, got a whole number"),
        ("", "the key budget is missing"),
        ("budget = []\n", "budget: expected an array of length >= 1"),
        ("[[budget]]\nbytes = 3\n", "budget[0]: the key suite is missing"),
        (BUDGET + 'bytes = "3"\n', "budget[0].bytes: expected a number, got a string"),
        (BUDGET + "bytes = true\n", "budget[0].bytes: expected a number, got true or false"),
        (BUDGET + "bytes = 2026-01-31\n", "budget[0].bytes: expected a number, got a date"),
        (BUDGET + "device = 3\n", "budget[0].device: expected a string, got a whole number"),
        (BUDGET + "device = {}\n", "budget[0].device: expected a string, got a table"),
        (BUDGET + "device = ''\n", "budget[0].device: expected a non-empty string"),
        (BUDGET + "byte = 3\n", 'budget[0]: unknown key byte; did you mean "bytes"?'),
        (BUDGET + "zzz = 3\n", "budget[0]: unknown key zzz; the keys are suite, client_stack, server_stack"),
    ],
)
def test_violations_in_toml_use_toml_terms(text, said, tmp_path):
    line = complaint(text, tmp_path)
    assert line.startswith(f"budget.toml: {said}")
    assert "`" not in line
    assert "null" not in line


def test_violations_in_server_software_use_toml_terms():
    with pytest.raises(InputError, match=r"own\.toml: source: expected an array, got a table"):
        parse_software({"name": "x", "title": "x", "tickets": 1, "resumption_tickets": 1, "session_ids": True,
                        "write_bytes": 1, "source": {}}, "own.toml")  # fmt: skip


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"suite": None}, "a.json: suite: expected a string, got null"),
        ({"suite": {}}, "a.json: suite: expected a string, got an object"),
        ([], "a.json: expected an object, got an array"),
        ({"suite": "x", "bytes": "x"}, "a.json: bytes: expected a number or null, got a string"),
        ({"suite": "x", "byte": 1}, 'a.json: unknown key byte; did you mean "bytes"?'),
        ({"suite": "x", "zzz": 1}, "a.json: unknown key zzz"),
    ],
)
def test_violations_in_json_use_json_terms(value, said):
    with pytest.raises(InputError) as caught:
        convert(value, Budget, "a.json")
    assert str(caught.value) == said


def test_unknown_value_lists_the_accepted_ones():
    plain = {"suite": "x", "stacks": "x", "place": "", "quantity": "bytes", "unit": "1", "limit": 1,
             "found": 1, "gated": True, "verdict": "fine"}  # fmt: skip
    with pytest.raises(InputError) as caught:
        convert(plain, CheckedLimit, "a.json")
    assert str(caught.value) == "a.json: verdict: expected exceeded or kept or unknown, got 'fine'"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "expecting property name enclosed in double quotes at column 2"),
        ("", "expecting value at column 1"),
        ('["a"\n"b"]\n', "expecting ',' delimiter at line 2, column 1"),
        ('["a]', "unterminated string starting at column 2"),
        ("[1]\nx", "extra data at line 2, column 1"),
    ],
)
def test_invalid_json_is_reported_with_its_place_once(text, said):
    with pytest.raises(InputError) as caught:
        parse_json(text, "a.json, line 7")
    assert str(caught.value) == f"a.json, line 7: not JSON: {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "input data was truncated"),
        (b'{"suite":"x"}x', "trailing characters (byte 14)"),
        (b"{'a': 1}", "object keys must be strings (byte 1)"),
    ],
)
def test_invalid_json_line_is_reported_once(text, said):
    with pytest.raises(InputError) as caught:
        decode(text, Budget, "a.json, line 7")
    assert str(caught.value) == f"a.json, line 7: not JSON: {said}"
