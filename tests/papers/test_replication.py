"""Measured figures: rounds, saving and reading."""

from __future__ import annotations

import dataclasses

import pytest

import real
from papers.conftest import DOCUMENTED
from shakedown.errors import InputError
from shakedown.papers import replication
from shakedown.papers.write import MEASURED

OTHER = {"client": "server", "server": "client"}


@pytest.fixture
def known() -> replication.Replication:
    return replication.load(DOCUMENTED / MEASURED)


def test_saved_replication_is_read_back_unchanged(known, tmp_path):
    replication.save(known, tmp_path / "again.jsonl")
    assert replication.load(tmp_path / "again.jsonl") == known
    assert (tmp_path / "again.jsonl").read_bytes() == (DOCUMENTED / MEASURED).read_bytes()


def test_replication_contains_every_suite_of_every_paper(known):
    from shakedown import papers

    wanted = {suite for name in papers.MODULES for suite in papers.find(name).suites}
    assert set(known.costs) == wanted
    assert not known.missing


def test_classes_add_up_to_the_side(known):
    for cost in known.costs.values():
        for side in ("client", "server"):
            total = sum(cost.class_us(side, kind) for kind in ("key", "signature", "common"))
            assert total == pytest.approx(cost.us(side))


def test_messages_add_up_to_the_bytes(known):
    for cost in known.costs.values():
        assert sum(size for _, size in cost.flight_bytes()) == pytest.approx(cost.size_bytes)
        assert len(cost.flight_bytes()) == cost.flights


def test_side_is_the_sum_of_the_minimum_of_each_part():
    measured = real.measurement()
    cost = replication.summarise(measured)
    for operation in measured.operations:
        if operation.class_ != "common":
            assert round(min(operation.samples_us), 3) in [one.us for one in cost.operations]
    for number, message in enumerate(measured.messages):
        for side, samples in (
            (message.sender, message.generate_samples_us),
            (OTHER[message.sender], message.process_samples_us),
        ):
            work = [
                one.samples_us
                for one in measured.operations
                if (one.side, one.message) == (side, number) and one.class_ != "common"
            ]
            besides = [whole - sum(of) for whole, *of in zip(samples, *work, strict=True)]
            expected = max(0.0, min(besides)) + sum(min(of) for of in work)
            assert cost.message_us(side, number) == pytest.approx(expected, abs=0.01)
    for side in ("client", "server"):
        outside = getattr(measured.unattributed_us, f"{side}_samples")
        found = sum(one.us for one in cost.parts if (one.side, one.message) == (side, None))
        assert found == pytest.approx(min(outside), abs=0.05)
        assert cost.us(side) <= measured.handshake.of(side).min + 0.1


def test_primitive_costs_the_same_in_suites_with_the_same_use():
    first = replication.summarise(real.measurement())
    slower = dataclasses.replace(
        first,
        suite=first.suite.replace("tls1.2/", "tls1.2/slower_"),
        parts=tuple(
            dataclasses.replace(one, us=one.us + 5.0) if one.is_public else one for one in first.parts
        ),
    )
    elsewhere = dataclasses.replace(slower, suite="wtls/other")
    rounds = [replication.Replication(costs={one.suite: one for one in (first, slower, elsewhere)})]
    whole = replication.summary(rounds, {})
    for side in ("client", "server"):
        assert whole.costs[slower.suite].us(side) == pytest.approx(first.us(side), abs=0.01)
        public = sum(one.side == side and one.is_public for one in first.parts)
        assert public
        assert whole.costs["wtls/other"].us(side) == pytest.approx(first.us(side) + 5.0 * public, abs=0.01)


def test_summary_of_rounds_uses_the_minimum_of_each_part():
    first = replication.summarise(real.measurement())

    def one_round(made_us: float, outside_us: float) -> replication.Replication:
        """A copy in which the first message takes `made_us`, and work outside of messages `outside_us`."""
        changed = {("client", 0, ""): made_us, ("client", None, ""): outside_us}
        parts = (
            dataclasses.replace(one, us=changed.get((one.side, one.message, one.operation), one.us))
            for one in first.parts
        )
        return replication.Replication(costs={first.suite: dataclasses.replace(first, parts=tuple(parts))})

    rounds = [one_round(10.0, 7.0), one_round(12.0, 3.0), one_round(90.0, 80.0)]
    whole = replication.summary(rounds, {}).costs[first.suite]
    assert whole == one_round(10.0, 3.0).costs[first.suite]
    assert first.messages[0].sender == "client"
    assert whole.message_us("client", 0) == 10.0


def test_rounds_are_stored_and_stop_before_the_time_limit(fake):
    seen: list[int] = []
    found = replication.measure(
        ["tls1.2/psk"], 20, rounds=4, on_round=lambda so_far: seen.append(len(so_far.rounds))
    )
    assert seen == [1, 2, 3, 4]
    assert len(found.rounds) == 4
    assert len(replication.measure(["tls1.2/psk"], 20, rounds=4, minutes=0.0).rounds) == 1


def test_a_suite_that_cannot_run_is_missing_with_its_reason(fake):
    fake.raising["ssl3/psk"] = fake.Unsupported("ssl3/psk: this stack has no SSL 3.0")
    found = replication.measure(["tls1.2/psk", "ssl3/psk"], 5)
    assert set(found.costs) == {"tls1.2/psk"}
    assert found.why_not(["tls1.2/psk", "ssl3/psk"]) == (
        "cannot be tested yet: ssl3/psk: this stack has no SSL 3.0"
    )
    assert [suite for suite, _, _ in fake.measured].count("ssl3/psk") == 1
    assert found.why_not(["tls1.2/psk"]) == ""


@pytest.mark.parametrize(
    "text", ["", "{}", '{"format": "other"}', "not json", '{"format": "shakedown papers, measured"}']
)
def test_file_of_another_kind_is_refused(tmp_path, text):
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(InputError, match=r"x\.jsonl"):
        replication.load(tmp_path / "x.jsonl")


def test_costs_are_immutable(known):
    one = next(iter(known.costs.values()))
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.client_us = 0.0
