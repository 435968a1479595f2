"""Work or power without a figure is named in exactly the figures that depend on it; the bounds of these
figures hold for any value of the unknown.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shakedown.models.ranges import combined
from shakedown.native.scenario import Fleet
from shakedown.prediction.capacity import capacity_row
from shakedown.prediction.predict import rows, with_battery
from shakedown.prediction.scenario import MODELS, scenario
from shakedown.schema.base import builtins
from shakedown.simulation.fleet import settle
from shakedown.simulation.simulate import Job, run
from unknowns import POWERS, powered, without_cost

SUITES = ("tls1.2/psk", "tls1.3/x25519/p256/server", "tls1.2/rsa/rsa2048/mutual")
PLACES = (("cortex-m4", "nb-iot"), ("phone", "lte"), ("esp32", "wifi"))
FIGURES = (
    "client_s", "server_s", "transmission_s", "queue_s", "utilisation", "offered", "energy_j", "wake_tail_j",
    "ready_s", "done_s", "handshakes_per_charge",
)  # fmt: skip
CAPACITIES = ("rate_per_s", "limit_per_s", "unloaded_s")
SIMULATED = (
    "ready_s", "done_s", "connect_s", "queue_wait_s", "job_wait_s", "utilisation", "offered", "energy_j",
    "wake_tail_j", "recovery_s",
)  # fmt: skip
HIDDEN_S = (0.0, 1e-3, 5.0)
"""True times of the unknown work."""
RATE_PER_S = 0.1


def unknowns(one):
    """Every place for an unknown, as a function from its true value, or None, to the scenario."""
    for side in ("client", "server"):
        for message in (None, *(message.index for message in one.trace.messages)):
            yield lambda value, side=side, message=message: without_cost(one, side, message, value), HIDDEN_S
    for what, keys in POWERS.items():
        for key in keys:
            hidden = getattr(powered(one, what, key, None), what)
            if getattr(hidden.power if what == "device" else hidden.energy, key) is not None:
                continue  # an assumption with a range stands in, so nothing is unknown
            yield lambda value, what=what, key=key: powered(one, what, key, value), (1e-4, 0.1, 20.0)


def value(figure):
    """What is compared of a figure: its estimate, its mean, or itself."""
    if not isinstance(figure, dict):
        return figure
    return figure["estimate"] if "estimate" in figure else figure["mean"]


def differ(one, other, name=""):
    if one is None or other is None:
        return one is not other
    # With new draws, the network's times differ slightly.
    drawn = 0.05 if name == "transmission_s" else 1e-9
    return not math.isclose(one, other, rel_tol=drawn, abs_tol=1e-12)


def marked(figure):
    return isinstance(figure, dict) and bool(figure["missing"])


def lower(figure):
    return figure["lower"] if "estimate" in figure else figure["mean"]


def check(hidden, found, names):
    """Compares rows of the true values with that of the unknown."""
    for name in names:
        figures = [value(row[name]) for row in found]
        depends = any(differ(figures[0], other, name) for other in figures[1:])
        # Work after the client is ready (a ticket's) is not separated from work before it.
        over = name == "ready_s" and marked(hidden[name])
        assert marked(hidden[name]) == depends or over, (name, figures, hidden[name])
        if not depends and over:
            assert lower(hidden[name]) <= figures[0] * 1.02
        elif not depends:
            assert not differ(value(hidden[name]), figures[0], name), name
        if not depends:
            continue
        shown = hidden[name]
        assert "estimate" not in shown or shown["estimate"] is None
        for true in figures:
            if true is not None:
                # With new draws, the network's times differ slightly.
                assert lower(shown) is None or lower(shown) <= true * 1.02, name
                assert shown.get("upper") is None or shown["upper"] >= true / 1.02, name


def scenarios():
    return st.tuples(st.sampled_from(SUITES), st.sampled_from(PLACES), st.booleans())


@settings(max_examples=15, deadline=None)
@given(scenarios(), st.data())
def test_unknown_cost_is_named_only_where_it_matters(where, data):
    suite, (device, bearer), from_idle = where
    one = with_battery(scenario(suite, device, "server", bearer, from_idle=from_idle), 1e4)
    at, values = data.draw(st.sampled_from(list(unknowns(one))))
    hidden = rows(at(None), "default", [RATE_PER_S], 1)[0]
    found = [rows(at(value), "default", [RATE_PER_S], 1)[0] for value in values]
    check(hidden, found, FIGURES)
    for way in (None, *values):
        capacity = capacity_row(at(way), 30.0, None, 1)
        if way is None:
            least = capacity
        for name in CAPACITIES:
            if marked(least[name]) and least[name]["upper"] is not None and value(capacity[name]) is not None:
                assert value(capacity[name]) <= least[name]["upper"] * (1 + 1e-9)


@settings(max_examples=6, deadline=None)
@given(st.sampled_from(SUITES), st.sampled_from(["client", "server"]), st.data())
def test_unknown_cost_is_named_in_simulations(suite, side, data):
    one = scenario(suite, "cortex-m4", "server", "nb-iot")
    message = data.draw(st.sampled_from([None, *(message.index for message in one.trace.messages)]))
    fleet = settle(Fleet(arrivals=f"poisson:{RATE_PER_S}/s", clients=300, replications=1))

    def simulated(seconds):
        found = run(Job(without_cost(one, side, message, seconds), None, fleet, 1, 1))
        return builtins(found)

    hidden, quick, slow = simulated(None), simulated(0.0), simulated(5.0)
    named = {name for name in SIMULATED if hidden[name]["missing"]}
    times = {"ready_s", "done_s", "queue_wait_s", "job_wait_s", "energy_j", "recovery_s"}
    # With unknown work at the client, the server's work is a lower bound, too, and so are the times.
    assert named == times | {"utilisation", "offered"}
    assert hidden["missing"] == (f"{side} sign hidden",)
    for name in set(SIMULATED) - named:
        assert value(hidden[name]) == pytest.approx(value(quick[name]), rel=0.02)
        assert value(slow[name]) == pytest.approx(value(quick[name]), rel=0.02)
    for name in ("ready_s", "done_s"):
        # A ticket is processed after the client is ready.
        assert hidden[name]["mean"] <= quick[name]["mean"] <= slow[name]["mean"]
    assert hidden["energy_j"]["mean"] is hidden["modelled"] is None
    assert hidden["unstable"] is None
    assert hidden["utilisation"]["lower"] <= quick["utilisation"]["estimate"]
    if side == "server":
        assert hidden["queue_wait_s"]["mean"] <= quick["queue_wait_s"]["mean"] * (1 + 1e-9)
    else:
        assert hidden["queue_wait_s"]["mean"] is None


def test_figures_are_unknown_if_more_work_would_cause_timeouts():
    one = without_cost(scenario("tls1.2/psk"), "server", None)
    patient, impatient = (
        builtins(
            run(Job(one, None, settle(Fleet(arrivals="storm:1s", clients=50, timeout_s=timeout_s)), 1, 1))
        )
        for timeout_s in (None, 10.0)
    )
    assert patient["ready_s"]["mean"] > 0.0
    assert patient["recovery_s"]["lower"] > 0.0
    assert impatient["ready_s"]["mean"] is impatient["ready_s"]["p50"] is None
    assert impatient["recovery_s"]["lower"] is None


@pytest.mark.parametrize("side", ["client", "server"])
def test_unknown_client_work_gives_no_bound_of_storm_utilisation(side):
    """Slower clients take longer, so that the server's work is a smaller share of the time."""
    one = scenario("tls1.2/psk", "cortex-m4")
    fleet = settle(Fleet(arrivals="storm:1s", clients=100, records="rate=100B/s,for=1s,size=50B"))
    rows = [
        builtins(run(Job(without_cost(one, side, None, seconds), None, fleet, 1, 1)))
        for seconds in (None, 0.0, 20.0)
    ]
    hidden, quick, slow = (row["utilisation"] for row in rows)
    data, quick_data, slow_data = (row["records"]["utilisation"] for row in rows)
    assert hidden["missing"] == data["missing"] == (f"{side} sign hidden",)
    assert data["lower"] is None
    assert slow_data["estimate"] < 0.5 * quick_data["estimate"]
    if side == "client":
        assert hidden["lower"] is rows[0]["records"]["wait_s"]["mean"] is None
        assert slow["estimate"] < 0.5 * quick["estimate"]
    else:
        assert 0.0 < hidden["lower"] <= quick["estimate"] < slow["estimate"]


def test_unknown_work_gives_no_bounds_with_autoscaling():
    one = scenario("tls1.2/psk")
    fleet = settle(
        Fleet(arrivals="storm:9s", clients=9000, autoscale="max=9,up=60%,down=1%,interval=1s,startup=0s")
    )
    hidden, little, more = (
        builtins(run(Job(without_cost(one, "server", None, seconds), None, fleet, 1, 1)))
        for seconds in (None, 0.00045, 0.0006)
    )
    assert more["queue_wait_s"]["mean"] < little["queue_wait_s"]["mean"]
    assert more["utilisation"]["estimate"] < little["utilisation"]["estimate"]
    assert hidden["ready_s"]["mean"] is hidden["queue_wait_s"]["mean"] is None
    assert hidden["recovery_s"]["lower"] is hidden["utilisation"]["lower"] is None


@pytest.mark.parametrize("model", MODELS)
def test_lower_bounds_use_the_low_ends_of_all_known_work(model):
    """Models of the literature have no work on a TCP connection."""
    one = scenario("tls1.2/psk", "cortex-m4", "stm32f0", "ethernet")
    row = rows(one, model, [10.0], 1)[0]
    low_s = [
        side.with_connection.low if model == "default" else side.total.low
        for side in (one.client, one.server)
    ]
    assert row["server_s"]["missing"]
    assert row["utilisation"]["lower"] == pytest.approx(10.0 * low_s[1])
    worked_s = row["done_s"]["mean"] - row["queue_s"]["lower"]
    if model == "default":
        assert worked_s >= sum(low_s)
    else:
        assert worked_s - row["transmission_s"] == pytest.approx(sum(low_s))


@pytest.mark.parametrize("model", MODELS)
def test_unknown_client_work_does_not_change_the_load_and_the_queue(model):
    known, hidden = (
        rows(one, model, [20.0], 1)[0]
        for one in (
            scenario("tls1.2/psk", "cortex-m4", "cortex-m4", "ethernet"),
            scenario("tls1.2/psk", "stm32f0", "cortex-m4", "ethernet"),
        )
    )
    assert hidden["client_s"]["missing"]
    for name in ("utilisation", "offered", "queue_s"):
        assert hidden[name] == known[name], name


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("devices", [("cortex-m4", "stm32f0"), ("stm32f0", "cortex-m4")], ids=str)
def test_upper_ends_contain_the_ranges_of_all_work_beside_the_bounded_unknown(model, devices):
    one = scenario("tls1.2/psk", *devices, "ethernet")
    unknown_s = sum(side.without_cost_high_s for side in one.both)
    assert 0.0 < unknown_s < math.inf
    known = one.both.with_connection if model == "default" else combined(one.both.parts)
    assert rows(one, model, [0.0], 1)[0]["done_s"]["upper"] >= known.high + unknown_s


def test_unbounded_wait_leaves_the_energy_without_upper_bound():
    one = with_battery(scenario("tls1.2/psk", server_device="stm32n6"), 1e4)
    quiet, busy = rows(one, "default", [0.0, 0.9 / one.service_s.mean], 1)
    assert quiet["energy_j"]["upper"] is not None
    assert busy["ready_s"]["upper"] is busy["energy_j"]["upper"] is None
    lasts, spent = busy["handshakes_per_charge"], busy["energy_j"]
    assert lasts["lower"] is None
    assert lasts["estimate"] == pytest.approx(1e4 / (spent["estimate"] + busy["wake_tail_j"]["estimate"]))
    assert lasts["estimate"] < lasts["upper"]


def test_unbounded_wait_has_no_estimate():
    one = without_cost(scenario("tls1.2/psk"), "server", None)
    limit = 1.0 / one.service_s.mean
    quiet, busy, over = rows(one, "default", [0.0, 0.9 * limit, 1.1 * limit], 1)
    assert (quiet["queue_s"]["estimate"], quiet["queue_s"]["missing"]) == (0.0, [])
    assert busy["queue_s"]["estimate"] is busy["queue_s"]["upper"] is None
    assert busy["queue_s"]["lower"] > 0.0
    assert over["queue_s"] is over["ready_s"] is None
    assert over["offered"]["lower"] == pytest.approx(1.1)
    assert over["utilisation"]["lower"] == 1.0
    assert np.isfinite(busy["ready_s"]["lower"])
