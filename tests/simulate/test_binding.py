"""The simulator's binding: refused input, interruption, and merging of outcomes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from shakedown.native.core import extension

NOTHING = {"kind": "constant", "s": 0.0}


def spec(**changes: Any) -> dict[str, Any]:
    message = {
        "from": "client",
        "name": "ClientHello",
        "bytes": 200,
        "flight": 1,
        "generate": NOTHING,
        "process": {"kind": "exponential", "mean_s": 0.01},
    }
    return {
        "classes": [
            {
                "handshake": {"name": "customer", "transport": "ideal", "messages": [message]},
                "bearer": {"up_bits_per_s": None, "down_bits_per_s": None, "traversal_s": 0.0},
            }
        ],
        "clients": 2000,
        "arrivals": {"kind": "poisson", "per_s": 70.0},
        "seed": 1,
        "replications": 5,
        **changes,
    }


def simulate(*arguments: Any, **changes: Any) -> str:
    return extension().simulate(json.dumps(spec(**changes)), *arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clients": 0}, "clients is 0; accepted: 1 to 10^12"),
        ({"clients": None}, "clients is missing; accepted: a number, or arrivals at times or on a curve"),
        ({"classes": []}, "there are no classes; accepted: at least one"),
        ({"arrivals": {"kind": "poisson", "per_s": 0.0}}, "arrivals.per_s is 0; accepted: above 0"),
        ({"arrivals": {"kind": "tide"}}, "unknown variant `tide`"),
        ({"server": {"workers": 0}}, "server.workers is 0; accepted: 1 to 100000"),
        ({"seed": -1}, "invalid value: integer `-1`"),
        ({"colour": "red"}, "unknown field `colour`"),
        ({"replications": 0}, "replications is 0; accepted: 1 to 1000000"),
        ({"arrivals": {"kind": "times", "at_s": [2.0, 1.0]}, "clients": 2}, "accepted: rising order"),
        ({"arrivals": {"kind": "times", "at_s": [2.0]}, "clients": 3}, "accepted: as many times as clients"),
    ],
)
def test_invalid_spec_is_reported_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        simulate(**changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"classes": 3}'])
def test_text_that_is_not_a_spec_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|missing|EOF"):
        extension().simulate(text)


def test_zero_threads_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^threads is 0; accepted: 1 or more$"):
        simulate(None, 0)


def test_result_does_not_depend_on_the_number_of_threads() -> None:
    texts = {simulate(None, threads) for threads in (1, 2, 3, 8)} | {simulate()}
    assert len(texts) == 1


@pytest.mark.parametrize("threads", [1, 2])
def test_exception_in_progress_aborts_the_simulation(threads: int) -> None:
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        raise KeyboardInterrupt

    # The run is so long that only an interrupt can end it.
    with pytest.raises(KeyboardInterrupt):
        simulate(progress, threads, clients=10**9)
    ((done, total),) = told
    assert 0 <= done < total == 5 * 10**9


def test_progress_must_be_callable() -> None:
    with pytest.raises(TypeError):
        simulate(3, 1, clients=10**9)


def test_parts_merge_to_the_whole_in_any_order() -> None:
    whole = simulate()
    parts = [
        json.dumps(json.loads(simulate(first_replication=first, replications=count))["outcome"])
        for first, count in ((3, 2), (0, 1), (1, 2))
    ]
    assert extension().simulate_merge(parts) == whole
    assert extension().simulate_merge(parts[::-1]) == whole


def outcome(**changes: Any) -> str:
    return json.dumps(json.loads(simulate(**{"replications": 1, **changes}))["outcome"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "replication 0 is in both outcomes"),
        ({"seed": 2, "first_replication": 1}, "outcomes of seeds 1 and 2 do not merge"),
        ({"first_replication": 1, "series_s": 1.0}, "their intervals differ"),
        (
            {"first_replication": 1, "arrivals": {"kind": "poisson", "per_s": 50.0}},
            "their offered loads differ",
        ),
    ],
)
def test_outcomes_of_other_scenarios_do_not_merge(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        extension().simulate_merge([outcome(), outcome(**changes)])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "there are no outcomes; accepted: at least one"),
        (["{"], "EOF"),
        (["{}"], "missing field"),
    ],
)
def test_text_that_is_not_an_outcome_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        extension().simulate_merge(texts)


def test_an_outcome_of_another_layout_is_refused() -> None:
    other = outcome().replace("hdr-ns-1024-48", "hdr-us-512-40")
    with pytest.raises(ValueError, match="a histogram's layout is hdr-us-512-40; accepted: hdr-ns-1024-48"):
        extension().simulate_merge([other])
