"""Comparisons of results with known differences, gates, and the command on real handshakes."""

from __future__ import annotations

import csv
import io
import json
import re

import msgspec
import pytest

from runs import written
from shakedown.api import in_memory
from shakedown.cli import exit_status
from shakedown.comparison.folders import MIN_RUNS, Runs, compare_folders, load_runs
from shakedown.comparison.gates import failures, gate
from shakedown.comparison.pairs import paired
from shakedown.comparison.text import decisive, lacking, markdown, summary
from shakedown.errors import InputError
from shakedown.experiments.figure_kinds.in_memory_results import results_of
from shakedown.reporting.columns.comparison import escaped
from shakedown.schema.comparison import Method

SUITE = "tls1.2/ecdhe_rsa+x25519/rsa2048/server"


@pytest.fixture(scope="module")
def measured():
    return in_memory.measure(SUITE, 40, samples=True)


def slower(measured, operation, factor):
    """The same handshakes, one operation of the server slower in every repetition."""
    operations = tuple(
        msgspec.structs.replace(
            one, us=one.us * factor, samples_us=tuple(value * factor for value in one.samples_us)
        )
        if (one.side, one.operation) == ("server", operation)
        else one
        for one in measured.operations
    )
    return msgspec.structs.replace(measured, operations=operations)


def runs(*measurements):
    return Runs("run", tuple(results_of([one]) for one in measurements))


def different(found):
    return [(row.side, row.operation, row.message) for row in found.rows if row.verdict == "different"]


FLOOR = Method(floor=0.03)


def test_single_runs_need_a_given_floor_to_compare_times(measured):
    both = runs(measured)
    found = compare_folders(both, both, rules=Method())
    assert {row.quantity for row in found.rows} == {"time", "bytes", "memory"}
    assert {row.verdict for row in found.rows if row.quantity != "time"} == {"equivalent"}
    assert {(row.verdict, row.reason) for row in found.rows if row.quantity == "time"} == {
        ("not comparable", "fewer than 10 runs")
    }
    floored = [row for row in compare_folders(both, both, rules=FLOOR).rows if row.quantity == "time"]
    assert {row.verdict for row in floored} == {"undecided"}
    few = msgspec.structs.replace(floored[0], reason="needs 10 blocks")
    (other, *_) = (row for row in found.rows if row.verdict == "not comparable")
    assert summary(msgspec.structs.replace(found, rows=(other, few))) == (
        "2 figures: 1 undecided (needs 10 blocks), 1 not comparable (fewer than 10 runs)"
    )
    assert {round(row.upper, 6) for row in floored} == {0.03}


def test_slower_primitive_is_named_if_it_exceeds_the_floor(measured):
    before, after = runs(measured), runs(slower(measured, "sign", 1.3))
    found = compare_folders(before, after, rules=FLOOR)
    assert different(found) == [("server", "sign rsa rsa2048", "ServerKeyExchange")]
    (row,) = (row for row in found.rows if row.verdict == "different")
    assert row.change == pytest.approx(0.3, abs=0.05)
    assert row.lower < row.change < row.upper
    assert "server sign rsa rsa2048 in ServerKeyExchange" in markdown(found, [row])
    # A change below the floor is no difference.
    small = runs(slower(measured, "sign", 1.02))
    assert different(compare_folders(before, small, rules=FLOOR)) == []


def test_ten_runs_of_each_need_no_floor(measured):
    """Runs that vary by a few tenths of a per cent, and a primitive slower by 2 %."""
    vary = [1 + 0.001 * number for number in range(MIN_RUNS)]
    before = runs(*(slower(measured, "sign", factor) for factor in vary))
    after = runs(*(slower(measured, "sign", 1.02 * factor) for factor in vary))
    assert different(compare_folders(before, after, rules=Method())) == [
        ("server", "sign rsa rsa2048", "ServerKeyExchange")
    ]


def test_linked_run_counts_once(tmp_path):
    """A link to one of the runs, such as the latest, is refused."""
    experiment = written(tmp_path, 'suites = ["tls1.2/psk"]\nrepeat = 1\n')
    for name in ("1", "2"):
        assert exit_status(["run", str(experiment), "--out", str(tmp_path / "runs" / name)]) == 0
    assert len(load_runs(tmp_path / "runs").results) == 2
    (tmp_path / "runs" / "latest").symlink_to("2")
    with pytest.raises(InputError, match="2 and latest are the same run; accepted: one of them"):
        load_runs(tmp_path / "runs")


def test_untrusted_names_are_escaped_in_markdown(measured):
    """The names in a pull request may come from a folder that an untrusted user wrote."""
    stack = msgspec.structs.replace(measured.client_stack, name="`</a>|\n![](x)\x1b[2J")
    both = runs(msgspec.structs.replace(measured, client_stack=stack))
    found = compare_folders(both, both, rules=Method())
    text = markdown(found, found.rows)
    (heading,) = (line for line in text.splitlines() if "</a>" in line)
    assert heading.count("`") == 2
    assert "\x1b" not in text
    assert escaped("<b> | `c`\n") == "&lt;b&gt; \\| \\`c\\` "


def named(measured, suite):
    return msgspec.structs.replace(measured, suite=suite)


def folder(*measurements):
    return Runs("folder", (results_of(measurements),))


def test_suites_match_by_name_and_unmatched_suites_are_listed(measured):
    before = folder(measured, named(measured, "tls1.2/psk"))
    after = folder(named(measured, "tls1.2/dhe_psk+dh2048"), measured)
    found = compare_folders(before, after, rules=Method())
    assert {row.suite for row in found.rows if row.verdict == "equivalent"} == {SUITE}
    lines = [
        "only in folder: tls1.2/psk (openssl)",
        "only in folder: tls1.2/dhe_psk+dh2048 (openssl)",
    ]
    assert lacking(found) == lines
    assert all(line in markdown(found, []) for line in lines)
    # A limit fails for a suite that is gone; it does not apply to a new one.
    assert failures([gate("bytes > 0%")], found.rows) == [
        "bytes > 0%: tls1.2/psk (openssl): no such figure could be compared (only before)"
    ]


def test_many_suites_show_times_of_each_side_and_all_differences(measured):
    names = [f"tls1.2/ecdhe_rsa+x25519/rsa{bits}/server" for bits in (1024, 2048, 3072)]
    before = folder(*(named(measured, name) for name in names))
    changed = named(slower(measured, "sign", 1.3), names[1])
    after = folder(named(measured, names[0]), changed, named(measured, "tls1.2/psk"))
    rows = decisive(compare_folders(before, after, rules=FLOOR).rows)
    assert [(row.suite, row.side, row.operation, row.verdict) for row in rows] == [
        (names[0], "client", None, "undecided"),
        (names[0], "server", None, "undecided"),
        (names[1], "client", None, "undecided"),
        (names[1], "server", None, "undecided"),
        (names[1], "server", "sign rsa rsa2048", "different"),
    ]


def test_folders_without_a_common_suite_are_refused(measured):
    with pytest.raises(
        InputError, match=r"the folders have no handshake in common: .*tls1.2/psk.*; accepted: "
    ):
        compare_folders(folder(measured), folder(named(measured, "tls1.2/psk")), rules=Method())


def test_unmatched_suites_are_paired_in_order_on_request():
    assert paired(["a", "b"], ["b", "a"]) == [("a", "a"), ("b", "b")]
    assert paired(["a", "b"], ["a", "c"]) == [("a", "a"), ("b", "c")]
    with pytest.raises(InputError, match="2 suites and 1 to be paired"):
        paired(["a", "b"], ["a"])


def test_times_of_other_machines_are_not_compared(measured):
    before = runs(measured)
    (other,) = runs(measured).results
    machine = msgspec.structs.replace(measured.machine, cpu="another")
    changed = msgspec.structs.replace(other.manifest, machine=machine)
    after = Runs("other", (type(other)(changed, other.source),))
    found = compare_folders(before, after, rules=FLOOR)
    times = [row for row in found.rows if row.quantity == "time"]
    assert {(row.verdict, row.reason) for row in times} == {("not comparable", "machines differ")}
    assert {row.verdict for row in found.rows if row.quantity == "bytes"} == {"equivalent"}
    across = compare_folders(before, after, rules=FLOOR, across=True)
    assert "not comparable" not in {row.verdict for row in across.rows}


def test_gates_fail_only_on_proven_differences(measured):
    before, after = runs(measured), runs(slower(measured, "sign", 1.3))
    rows = compare_folders(before, after, rules=FLOOR).rows
    assert len(failures([gate("operation > 20%")], rows)) == 1
    kept = ("operation > 50%", "server > 2%", "bytes > 0%", "memory > 0%")
    assert failures([gate(text) for text in kept], rows) == []
    # No instructions were counted, so a gate on them fails.
    assert failures([gate("server.instructions > 0.2%")], rows) == [
        f"server.instructions > 0.2%: {SUITE} (openssl): no such figure could be compared"
    ]


def test_signature_encoding_length_is_not_a_difference():
    """DSA signatures differ in length by one or two bytes, in a message of a few dozen bytes."""
    suite = "tls1.0/dhe_dss+dh512/dsa1024/mutual"
    found = in_memory.measure(suite, 1)

    def shorter(name, by):
        messages = tuple(
            msgspec.structs.replace(one, bytes=one.bytes - by) if one.name == name else one
            for one in found.messages
        )
        return runs(msgspec.structs.replace(found, messages=messages))

    def verdicts(name, by):
        rows = compare_folders(runs(found), shorter(name, by), rules=Method()).rows
        return {row.verdict for row in rows if row.quantity == "bytes" and row.message == name}

    assert verdicts("CertificateVerify", 2) == {"equivalent"}
    assert verdicts("CertificateVerify", 3) == {"different"}
    assert verdicts("ClientHello", 1) == {"different"}


@pytest.mark.parametrize(
    "text", ["", "server", "server > 2", "server < 2%", "nothing > 2%", "server.client > 1%"]
)
def test_invalid_gate_is_refused(text):
    with pytest.raises(InputError, match="is not a gate; accepted: client > 2%"):
        gate(text)


def test_pair_measures_two_suites_alternately(capsys):
    """The bytes differ by keys and signatures of certificates; four blocks are too few to compare times."""
    pair = ["compare", "--pair", "tls1.3/x25519/p256/server", "tls1.3/x25519/ed25519/server --repeat 3"]
    assert exit_status([*pair, "--blocks", "4", "--json", "--fail-if", "server > 1000%"]) == 1
    out, err = capsys.readouterr()
    assert re.search(r"server > 1000%: .*: no such figure could be compared \(needs \d+ blocks\)", err)
    rows = json.loads(out)
    totals = [row for row in rows if row["quantity"] == "bytes" and not row["message"] and not row["side"]]
    assert [row["verdict"] for row in totals] == ["different"]
    assert totals[0]["change"] < 0
    times = [row for row in rows if row["quantity"] == "time" and not row["reason"].startswith("only")]
    assert {row["verdict"] for row in times} == {"undecided"}
    assert {row["reason"] for row in times} <= {f"needs {n} blocks" for n in range(10, 13)}
    only = [row for row in rows if row["reason"] == "only before"]
    assert any("ecdsa p256" in (row["operation"] or "") for row in only)


def test_compare_prints_csv_and_applies_gates(tmp_path, capsys):
    experiment = written(tmp_path, f'suites = ["{SUITE}"]\nrepeat = 10\n')
    for name in ("a", "b"):
        assert exit_status(["run", str(experiment), "--out", str(tmp_path / name), "--no-report"]) == 0
    capsys.readouterr()
    folders = [str(tmp_path / name) for name in ("a", "b")]
    assert exit_status(["compare", *folders, "--csv", "--fail-if", "bytes > 0.5%"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["suite"] for row in rows} == {SUITE}
    assert exit_status(["compare", *folders, "--fail-if", "instructions > 1%"]) == 1
    assert "no such figure could be compared" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["compare"], "two results folders"),
        (["compare", "a"], "two results folders"),
        (["compare", "a", "b", "--pair", "x", "y"], "two results folders"),
        (["compare", "a", "b"], "a: "),
        (["compare", "--pair", "tls9/x", "tls1.2/psk", "--blocks", "4"], "tls9"),
        (["compare", "--pair", "A=1", "tls1.2/psk"], "names no suite"),
        (["compare", "--pair", '"', "tls1.2/psk"], "as in a shell"),
        (["compare", "--pair", "tls1.2/psk", "tls1.2/psk", "--program", "no-program"], "is not a program"),
        (["compare", "a", "b", "--program", "x"], "--program requires --pair"),
        (["compare", "a", "b", "--blocks", "24"], "--blocks requires --pair"),
        (["compare", "--pair", "tls1.2/psk", "tls1.3/psk", "--across"], "accepted: one of them"),
    ],
)
def test_wrong_input_is_reported_in_one_line(arguments, line, capsys):
    assert exit_status(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert line in error
