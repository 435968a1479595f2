"""Input is limited; larger input is refused with one line."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import pytest

from shakedown.cli import exit_status
from shakedown.errors import InputError
from shakedown.files import limits, toml
from shakedown.files.limits import MAX_DEPTH, MIB
from shakedown.files.toml import depth, load_toml


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Runs a command that ends in one line and status 2."""
    assert exit_status([str(one) for one in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "internal error" not in err
    assert len(err) < 1000
    return err


@pytest.mark.parametrize("command", ["validate", "run"])
def test_endless_file_is_refused_in_limited_memory(fake, capsys, command):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "longer than 16 MiB; accepted: a TOML file" in refused(capsys, command, "/dev/zero")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200_000, "KiB"


@pytest.mark.parametrize("option", ["--device", "--server-device", "--bearer", "--scale-from"])
@pytest.mark.parametrize("file", ["/dev/zero", "/dev/full"])
def test_endless_profile_is_refused_in_limited_memory(capsys, option, file):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = refused(capsys, "predict", "tls1.2/psk", option, file)
    assert f"{file}: longer than 4 MiB; accepted: a TOML file up to this size" in said
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000, "KiB"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("now = 99999999999999999999", "key now: found 99999999999999999999; accepted: Unix seconds before"),
        ("now = -1", "key now: found -1; accepted"),
        ("now = " + "9" * 5000, "not valid TOML: a whole number of more than 4,300 digits"),
        ("repeat = 0x" + "f" * 5000, "key repeat: found a whole number of more than 4,300 digits"),
        ("seed = " + "9" * 4000, "key seed: found 9999999999"),
        ("rates = [" + "9" * 400 + "]", "is not a rate"),
        ('rates = ["1e999/s"]', "is not a rate"),
        ("rates = [nan]", "is not a rate"),
        ("rates = [inf]", "is not a rate"),
        ("title = " + "[" * 5000 + "]" * 5000, "nested deeper than 100"),
        ("title = " + "[" * 200 + "]" * 200, "nested deeper than 100"),
        ("a" + ".a" * 3000 + " = 1", "nested deeper than 100"),
        ("title = " + "{a=" * 3000 + "1" + "}" * 3000, "nested deeper than 100"),
        ('title = "' + "x" * 100_000 + '"\nrepeat = "' + "y" * 100_000 + '"', "key repeat: found"),
        ("x" * 100_000 + " = 1", "unknown key"),
    ],
    ids=lambda value: value[:24],
)
def test_excessive_numbers_depths_and_lengths_are_refused(fake, capsys, tmp_path, text, said):
    path = tmp_path / "e.toml"
    path.write_text(f'suites = ["tls1.2/psk"]\n{text}\n')
    assert said in " ".join(refused_of_any_length(capsys, "validate", path).split())


def refused_of_any_length(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert exit_status([str(one) for one in arguments]) == 2
    return capsys.readouterr().err


def test_excessive_rates_and_places_are_refused(fake, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_RATES", 3)
    monkeypatch.setattr(limits, "MAX_PLACES", 3)
    path = tmp_path / "e.toml"
    path.write_text('suites = ["tls1.2/psk"]\nrates = [1, 2, 3, 4]\n')
    assert "line 2, key rates: found 4 of them; accepted: 3 at most" in refused(capsys, "validate", path)
    path.write_text('suites = ["tls1.2/psk"]\ndevices = ["phone", "esp32"]\nbearers = ["lte", "wifi"]\n')
    assert "2 devices with 2 bearers each; accepted: 3 pairs at most" in refused(capsys, "validate", path)


class Compared(str):
    """A suite's name whose comparisons are function calls."""

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)


def calls_to_validate(path: Path, number: int) -> int:
    """The number of function calls that validating an experiment with `number` suites makes."""
    suites = ", ".join(f'"tls1.2/psk/{index}"' for index in range(number))
    path.write_text(f"suites = [{suites}]\n")
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        assert exit_status(["validate", str(path)]) == 0
    finally:
        sys.setprofile(before)
    return calls


def test_validation_work_grows_linearly_with_the_suites(fake, capsys, tmp_path):
    """Ten times the suites need about ten times as many calls, not a hundred times."""
    fake.canonical = Compared
    calls_to_validate(tmp_path / "few.toml", 10)
    few, many = (calls_to_validate(tmp_path / f"{number}.toml", number) for number in (1_000, 10_000))
    assert few > 1_000
    assert many < 12 * few


def test_hundred_thousand_suites_are_validated(fake, capsys, tmp_path):
    """A linear search for each suite would take hours."""
    fake.canonical = lambda suite: suite
    path = tmp_path / "many.toml"
    path.write_text("suites = [" + ", ".join(f'"tls1.2/psk/{index}"' for index in range(100_000)) + "]\n")
    assert exit_status(["validate", str(path)]) == 0
    assert "100,000 suites" in capsys.readouterr().out


def test_depth_counts_nested_tables_and_lists():
    assert [depth(one) for one in (1, [], {"a": 1}, [[{"a": []}]])] == [0, 1, 1, 4]


def test_byte_order_mark_is_ignored(tmp_path):
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xef\xbb\xbfkey = 1\n")
    assert load_toml(path, 100, "TOML file") == ({"key": 1}, "key = 1\n")


@pytest.mark.parametrize("part", ["a", '"a b"', "'a'", '"\\".\\""', '"" '])
@pytest.mark.parametrize("line", ["{}=1", "[{}]", "[[{}]]", "x = {{y = 1, {} = 1}}"])
def test_keys_of_many_parts_are_refused_before_they_are_parsed(tmp_path, monkeypatch, part, line):
    """tomllib would need 40 GB for 100,000 parts."""
    path = tmp_path / "x.toml"
    path.write_text("\n" + line.format(".".join([part] * (MAX_DEPTH - 2))))
    load_toml(path, MIB, "TOML file")
    path.write_text("\n" + line.format(". ".join([part] * 100_000)))
    monkeypatch.setattr("tomllib.loads", lambda _text: pytest.fail("parsed"))
    with pytest.raises(InputError, match=r"x\.toml, line 2: not valid TOML: nested deeper than 100"):
        load_toml(path, 4 * MIB, "TOML file")


def test_search_for_deep_keys_needs_linear_time():
    """Texts that a search with backtracking would scan again from each of their characters."""
    for text in ("x" * 10**6, '"' + '\\"' * 10**6, "a" + " " * 10**6, "a. " * 99 + "b" * 10**6, "'" * 10**6):
        began_s = time.process_time()
        assert toml._TOO_DEEP.search(text) is None
        assert time.process_time() - began_s < 5.0


def test_files_of_too_many_keys_or_for_too_little_memory_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.toml"
    path.write_text("".join(f"[{number}]\n" for number in range(toml.MAX_KEYS + 1)))
    with pytest.raises(InputError, match=r"500,001 characters .*; accepted: 500,000 at most"):
        load_toml(path, 16 * MIB, "TOML file")

    def exhausted(_text: str) -> None:
        raise MemoryError

    path.write_text("a = 1")
    monkeypatch.setattr("tomllib.loads", exhausted)
    with pytest.raises(InputError, match="more memory than there is; accepted: a smaller TOML file"):
        load_toml(path, MIB, "TOML file")


def test_file_that_is_not_text_or_not_regular_is_refused(tmp_path):
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xff")
    for where, said in ((path, "UTF-8"), (tmp_path, "directory"), (Path("a\0b"), "cannot be read")):
        with pytest.raises(InputError, match=said):
            load_toml(where, 100, "TOML file")


@pytest.mark.parametrize(
    ("file", "clock", "said"), [("/dev/zero", "100", "longer than"), ("x", "1e300", "0<x")]
)
def test_import_refuses_endless_files_and_excessive_clocks(capsys, tmp_path, file, clock, said):
    arguments = ["devices", "import", file, "--name", "b", "--chip", "C", "--clock", clock]
    assert said in refused(capsys, *arguments, "--out", tmp_path / "b.toml")
