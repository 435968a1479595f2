"""Counts of instructions, budgets, and the output for CI systems."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from xml.etree import ElementTree

import msgspec
import pytest
from msgspec.structs import replace

from shakedown.api import in_memory
from shakedown.cli import exit_status
from shakedown.comparison.budgets import HEADROOM, check_budgets
from shakedown.comparison.folders import Runs, compare_folders
from shakedown.comparison.reports import junit, markdown
from shakedown.experiments.figure_kinds.in_memory_results import results_of
from shakedown.native import counted
from shakedown.native.scenario import MeasureOptions
from shakedown.reporting.columns import Selection, shown_in
from shakedown.reporting.columns.measured import MESSAGES, message_table
from shakedown.reporting.terminal.listing import listing
from shakedown.schema.budget import Budget, CheckedLimit
from shakedown.schema.comparison import Method

SUITE = "tls1.3/x25519/p256/server"


@pytest.fixture(scope="module")
def measured():
    return in_memory.measure(SUITE, 5, options=MeasureOptions(counter="instructions"))


def test_counts_are_the_same_in_every_run(measured, monkeypatch):
    """Also with a PATH of another length."""
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/{'a' * 1001}")
    again = counted.count_instructions(SUITE, {"tickets": 2})
    assert again == measured.instructions
    assert again.seed == counted.DEFAULT_SEED


@pytest.mark.parametrize(
    "arguments",
    [("measure", SUITE, "--repeat", "2", "--counter", "instructions"), ("check", "--record", SUITE)],
)
def test_ending_the_command_ends_valgrind(arguments, tmp_path):
    """CI systems cancel a job by SIGTERM; otherwise valgrind would run on and leave its folder."""
    begun, folder = tmp_path / "begun", tmp_path / "temporary"
    folder.mkdir()
    os.mkfifo(begun)
    program = tmp_path / "valgrind"
    program.write_text(f"#!/bin/sh\necho $$ > {begun}\nexec sleep 3000\n")
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "TMPDIR": str(folder)}
    with subprocess.Popen(
        [sys.executable, "-m", "shakedown", *arguments], stderr=subprocess.PIPE, env=environment
    ) as process:
        counting = int(begun.read_text())
        process.send_signal(signal.SIGTERM)
        assert b"interrupted" in process.communicate()[1]
    assert process.returncode == 130
    assert list(folder.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(counting, 0)


def test_interrupt_while_valgrind_starts_ends_valgrind(monkeypatch):
    started = []

    class Interrupted(subprocess.Popen):
        def __init__(self, command, **options):
            super().__init__(["sleep", "3000"], **options)
            started.append(self)
            signal.raise_signal(signal.SIGINT)

    counted._compile_modules()
    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            counted.count_instructions(SUITE, {})
    finally:
        signal.signal(signal.SIGINT, before)
    assert [process.returncode for process in started] == [-signal.SIGKILL]


def test_counts_add_up_to_the_instructions_of_the_thread(measured):
    counts = measured.instructions
    assert 0.99 < counts.coverage <= 1
    for side in ("client", "server"):
        total = counts.of(side).median
        messages = sum(
            one.generate if message.sender == side else one.process
            for message, one in zip(measured.messages, counts.messages, strict=True)
        )
        operations = sum(one.instructions for one in counts.operations if one.side == side)
        # The parts are medians, and an unattributed part belongs to no message.
        assert 0.95 * total < messages < 1.001 * total
        assert 0.5 * total < operations < total
    assert counts.client.max - counts.client.min < 0.003 * counts.client.median


def test_counts_are_shown_beside_times(measured):
    rows = message_table(measured).rows
    *messages, outside, total = rows
    for row, counts in zip(messages, measured.instructions.messages, strict=True):
        both = (row["client_instructions"], row["server_instructions"])
        sender_first = both if row["sender"] == "client" else both[::-1]
        assert sender_first == (counts.generate, counts.process)
    assert "client_instructions" not in outside
    assert total["server_instructions"] == measured.instructions.server.median
    uncounted = [{key: value for key, value in row.items() if "instructions" not in key} for row in rows]
    keys, without = ([one.key for one in shown_in(MESSAGES, some)] for some in (rows, uncounted))
    assert [key for key in keys if key not in without] == ["client_instructions", "server_instructions"]


def test_a_table_with_counts_names_the_operations_and_fits_the_screen(measured):
    table = message_table(measured)
    assert table.shown is not None
    lines = list(listing(table.shown, table.rows, Selection(), width=80))
    assert max(map(len, lines)) <= 80
    for one in measured.instructions.operations:
        if one.operation == "derive":
            count = f"{one.instructions / 1000:.1f}"
            assert any(
                words[:2] == ["derive", "x25519"] and words[-1] == count for words in map(str.split, lines)
            )


def test_both_sides_derive_x25519_in_the_same_count(measured):
    """X25519's ladder does not depend on the key: both sides need the same number of instructions."""
    derived = {
        one.side: one.instructions for one in measured.instructions.operations if one.operation == "derive"
    }
    assert derived["client"] == pytest.approx(derived["server"], rel=1e-3)


def counted_runs(measured, factor=1.0, **change):
    """Results of a measurement in which the client's derivation has `factor` times as many instructions."""
    operations = tuple(
        replace(one, instructions=round(one.instructions * factor))
        if (one.side, one.operation) == ("client", "derive")
        else one
        for one in measured.instructions.operations
    )
    counts = replace(measured.instructions, operations=operations, **change)
    return Runs("run", (results_of([replace(measured, instructions=counts)]),))


def test_one_per_cent_change_of_a_primitive_is_found_by_its_count(measured):
    found = compare_folders(counted_runs(measured), counted_runs(measured, 1.01), rules=Method())
    differ = [row for row in found.rows if row.verdict == "different"]
    assert [(row.side, row.operation, row.quantity) for row in differ] == [
        ("client", "derive ecdh x25519", "instructions")
    ]


def test_counts_without_a_seed_are_compared_as_times_are(measured):
    """rustls uses the system's random numbers, so its counts vary from run to run."""
    both = counted_runs(measured, seed=None)
    rows = compare_folders(both, both, rules=Method()).rows
    reasons = {(row.verdict, row.reason) for row in rows if row.quantity == "instructions"}
    assert reasons == {("not comparable", "fewer than 10 runs")}


def test_missing_valgrind_is_reported(monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert exit_status(["measure", SUITE, "--counter", "instructions"]) == 1
    assert "valgrind, which is not installed" in capsys.readouterr().err


def limits(measured, factor=1.0):
    """A budget from the counts, with instruction limits `factor` times lower."""
    counts = measured.instructions
    return Budget(
        suite=SUITE,
        bytes=measured.bytes.total + 8,
        client_instructions=int(counts.client.median * HEADROOM / factor),
        server_instructions=int(counts.server.median * HEADROOM / factor),
    )


def test_budget_detects_two_per_mille_more_instructions(measured):
    """Limits from 0.2 % lower counts are exceeded; a budget of the same build is kept."""
    kept = check_budgets([limits(measured)])
    assert [one.verdict for one in kept] == ["kept"] * 3
    caught = check_budgets([limits(measured, factor=1.002)])
    assert [one.verdict for one in caught] == ["kept", "exceeded", "exceeded"]


def test_a_recorded_budget_is_kept(tmp_path, capsys):
    assert exit_status(["check", "--record", SUITE]) == 0
    budget = tmp_path / "budget.toml"
    budget.write_text(capsys.readouterr().out)
    report, summary = tmp_path / "junit.xml", tmp_path / "summary.md"
    arguments = ["check", str(budget), "--junit", str(report), "--summary", str(summary), "--json"]
    assert exit_status(arguments) == 0
    checked = json.loads(capsys.readouterr().out)
    assert {one["verdict"] for one in checked} == {"kept"}
    root = ElementTree.parse(report).getroot()
    assert [len(root.findall(f".//{name}")) for name in ("testcase", "failure")] == [len(checked), 0]
    assert summary.read_text().startswith(f"**{len(checked)} limits met**")


def test_budget_checks_predicted_figures_and_times(tmp_path, capsys):
    budget = tmp_path / "budget.toml"
    budget.write_text(
        f'[[budget]]\nsuite = "{SUITE}"\nclient_time_us = 0\ndevice = "cortex-m4"\nbearer = "nb-iot"\n'
        "ready_s = 10\nenergy_j = 10\ncapacity_per_s = 1_000_000\nwithin_s = 5\n"
    )
    assert exit_status(["check", str(budget), "--markdown"]) == 1
    said = capsys.readouterr()
    assert said.out.count("1 of 4 limits exceeded") == 1
    assert said.err == ""
    assert "| not checked |" in said.out
    assert "**exceeded**" in said.out
    assert exit_status(["check", str(budget), "--times"]) == 1
    assert "2 of 4 limits exceeded" in capsys.readouterr().err


def test_predicted_limits_are_not_met_if_handshakes_fail(tmp_path, capsys):
    budget = tmp_path / "budget.toml"
    budget.write_text(
        f'[[budget]]\nsuite = "{SUITE}"\nbearer = "nb-iot:loss=70%"\nready_s = 1e6\ncapacity_per_s = 1\n'
        "within_s = 1e5\n"
    )
    assert exit_status(["check", str(budget), "--json"]) == 1
    ready, capacity = json.loads(capsys.readouterr().out)
    assert ready["verdict"] == "unknown"
    assert ready["found"] is None
    assert re.fullmatch(r"\d+\.\d% of the handshakes fail", ready["reason"])
    assert (capacity["verdict"], capacity["found"]) == ("exceeded", 0.0)


def test_predicted_time_is_unknown_if_work_has_no_cost(tmp_path, capsys):
    budget = tmp_path / "budget.toml"
    suite = "tls1.3/x25519mlkem768/mldsa65/server"
    budget.write_text(f'[[budget]]\nsuite = "{suite}"\ndevice = "palm-vii"\nready_s = 1e6\n')
    assert exit_status(["check", str(budget), "--json"]) == 1
    (ready,) = json.loads(capsys.readouterr().out)
    assert (ready["verdict"], ready["found"]) == ("unknown", None)
    assert ready["reason"].startswith("no estimate without client ")


FAILED = CheckedLimit(
    suite=SUITE,
    stacks="openssl",
    place="",
    quantity="bytes",
    unit="bytes",
    limit=1000,
    found=1134,
    gated=True,
    verdict="exceeded",
)


def test_junit_and_markdown_list_exceeded_limits():
    unknown = msgspec.structs.replace(FAILED, found=None, verdict="unknown", reason="a | b\nc")
    root = ElementTree.fromstring(junit([FAILED, unknown]))
    messages = [one.get("message") for one in root.iter("failure")]
    assert messages[0] == "exceeded: limit 1,000, found 1,134 (+13.4 %)"
    head, table, notes = (part.splitlines() for part in markdown([FAILED, unknown]).split("\n\n"))
    assert head == ["**1 of 2 limits exceeded, 1 unknown**"]
    # Each row has as many cells as the heading; a reason is one line, whatever its characters.
    assert {line.replace("\\|", "").count("|") for line in table} == {7}
    assert notes == [f"- {SUITE}, bytes: a \\| b c"]


def test_limits_of_a_suite_in_several_places_have_distinct_names():
    """A CI system keeps one result per name. Profile names may contain characters that XML does not allow."""
    ready = msgspec.structs.replace(FAILED, quantity="ready_s", place="esp32 nb-iot")
    checked = [FAILED, ready, msgspec.structs.replace(ready, place="./\x07\ud800.toml lte")]
    checked.append(msgspec.structs.replace(FAILED, stacks="rustls"))
    root = ElementTree.fromstring(junit(checked))
    names = [(one.get("classname"), one.get("name")) for one in root.iter("testcase")]
    assert len(set(names)) == len(checked)
    assert [one.get("failures") for one in root] == ["3", "1"]


def test_unwritable_outputs_are_refused_before_measuring(tmp_path, capsys):
    budget = tmp_path / "budget.toml"
    budget.write_text('[[budget]]\nsuite = "tls1.2/psk"\nbytes = 1\n')
    assert exit_status(["check", str(budget), "--summary", str(tmp_path / "no" / "x")]) == 2
    assert exit_status(["check", str(budget), "--markdown", "--json"]) == 2
    assert exit_status(["check", str(budget), "--summary", ""]) == 2
    assert (
        exit_status(["check", str(budget), "--junit", str(tmp_path / "x"), "--summary", str(tmp_path / "x")])
        == 2
    )
    assert exit_status(["check", "--record", "tls1.2/psk", "--junit", str(tmp_path / "x")]) == 2
    assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == [budget]


def test_a_budget_is_not_replaced_by_its_result(tmp_path, capsys):
    budget = tmp_path / "budget.toml"
    budget.write_text('[[budget]]\nsuite = "tls1.2/psk"\nbytes = 1000\n')
    before = budget.read_bytes()
    for more in (["--junit", str(budget), "--force"], ["--summary", str(budget)]):
        assert exit_status(["check", str(budget), *more]) == 2
        assert "is read too" in capsys.readouterr().err
        assert budget.read_bytes() == before


def test_a_summary_that_cannot_be_written_is_named(tmp_path, capsys):
    budget = tmp_path / "budget.toml"
    budget.write_text('[[budget]]\nsuite = "tls1.2/psk"\nbytes = 1000\n')
    assert exit_status(["check", str(budget), "--summary", "/dev/full"]) == 1
    assert capsys.readouterr().err == "error: /dev/full: cannot be written: no space left on device\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "budget"),
        ("[[budget]]\n", "suite"),
        ('[[budget]]\nsuite = "tls1.2/psk"\n', "sets no limit"),
        ('[[budget]]\nsuite = "tls9"\nbytes = 1\n', "tls9"),
        ('[[budget]]\nsuite = "tls1.2/psk"\nbyte = 1\n', "byte"),
        ('[[budget]]\nsuite = "tls1.2/psk"\nbytes = -1\n', "bytes"),
        ('[[budget]]\nsuite = "tls1.2/psk"\ncapacity_per_s = 1\n', "within_s"),
        ('[[budget]]\nsuite = "tls1.2/psk"\ncapacity_per_s = 1\nwithin_s = 0\n', "budget[0].within_s"),
        ('[[budget]]\nsuite = "tls1.2/psk"\nbytes = inf\n', "budget[0].bytes"),
        ('[[budget]]\nsuite = "tls1.2/psk"\nbytes = 1\ndevice = "no"\n', "budget[0]: unknown device"),
        ('[[budget]]\nsuite = "tls1.2/psk"\nbytes = 1\nserver_device = "no"\n', "budget[0]: unknown device"),
        ('[[budget]]\nsuite = "tls1.2/psk"\nready_s = 1\nbearer = "no"\n', "budget[0]: unknown bearer"),
        ("[[budget\n", "line 1"),
    ],
)
def test_wrong_budget_is_reported_in_one_line(text, line, tmp_path, capsys):
    budget = tmp_path / "budget.toml"
    budget.write_text(text)
    assert exit_status(["check", str(budget)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert line in error
