"""Loads that `simulate` reports as unstable: only if this is known."""

from __future__ import annotations

import pytest

from shakedown.native.scenario import Fleet
from shakedown.prediction.scenario import scenario
from shakedown.reporting.columns import OFTEN
from shakedown.reporting.columns.objects import object_table
from shakedown.reporting.figures import share
from shakedown.schema.base import builtins
from shakedown.simulation.fleet import settle
from shakedown.simulation.simulate import Job, run
from unknowns import without_cost

SUITE = "tls1.2/psk"
QUICK, SLOW = "ethernet", "gprs"
"""Handshakes of milliseconds, and of two seconds."""


def simulated(load, bearer=QUICK, hidden=None, clients=2000, **options):
    """A simulated fleet with this offered load, each client once; with None, a storm."""
    one = scenario(SUITE, "cortex-m4", "cortex-m4", bearer)
    arrivals = "storm:1s" if load is None else f"poisson:{load / one.service_s.mean:.6g}/s"
    fleet = settle(Fleet(arrivals=arrivals, clients=clients, replications=1, **options))
    return run(Job(one if hidden is None else without_cost(one, hidden, None), None, fleet, 1, 1))


def shown(found):
    """The cell of the offered load, and all notes."""
    table = object_table([found])
    [column] = (one for one in table.columns if one.key == "offered")
    return column.cell(table.rows[0]), " ".join(table.notes(set()))


@pytest.mark.parametrize(("load", "unstable"), [(0.5, False), (1.5, True), (None, None)])
def test_steady_load_above_capacity_is_unstable(load, unstable):
    """A storm ends, so it is not unstable."""
    found = simulated(load)
    assert found.unstable is unstable
    assert all(("unstable" in text) == bool(unstable) for text in shown(found))


def test_utilisation_in_the_table_is_that_of_the_object():
    """The offered load, most of which times out before the server's work, has its own column."""
    found = simulated(1.5, SLOW, timeout_s=0.3)
    table = object_table([found])
    cells = {one.key: one.cell(table.rows[0]) for one in table.shown if one.rank <= OFTEN}
    assert cells["offered"] == share(found.offered.estimate)
    assert cells["utilisation"] == share(found.utilisation.estimate)


def test_timeouts_that_never_expire_do_not_change_stability():
    assert simulated(0.5, timeout_s=10.0, retries=3).unstable is False
    assert simulated(1.5, timeout_s=100.0, retries=3).unstable is True


def test_timeouts_in_the_queue_leave_the_load_unstable():
    found = simulated(1.5, timeout_s=1.0)
    assert found.failed["timeout"] > 500
    assert found.utilisation.estimate > 0.99
    assert found.unstable is True


def test_timeouts_before_server_work_reduce_utilisation():
    found = simulated(1.5, SLOW, timeout_s=0.3)
    assert found.failed == {"timeout": 2000}
    assert found.offered.estimate > 1.4
    assert found.utilisation.estimate < 0.5
    assert found.unstable is None


def test_retries_increase_utilisation_but_not_the_offered_load():
    """Attempts time out only after the server has worked on them."""
    found = simulated(0.5, SLOW, timeout_s=2.0, retries=5, retry="base=0.1s,factor=1")
    assert found.failed["timeout"] > 0
    assert found.offered.estimate == pytest.approx(0.5, rel=0.01)
    assert found.utilisation.estimate > 0.99
    assert found.unstable is None


@pytest.mark.parametrize("side", ["client", "server"])
def test_unknown_work_makes_a_load_unstable_or_undecided(side):
    for load, options, unstable in (
        (0.5, {}, None),
        (3.0, {}, True),
        # If the work takes longer, clients may give up before the server has any.
        (3.0, {"timeout_s": 100.0}, None),
        (3.0, {"max_handshakes": 1000}, None),
        (None, {}, None),
    ):
        found = simulated(load, hidden=side, **options)
        assert found.unstable is unstable, (load, options)
        assert found.missing == (f"{side} sign hidden",)
        assert builtins(found)["utilisation"]["estimate"] is None
        assert all(("unstable" in text) == bool(unstable) for text in shown(found))


def test_load_above_the_limit_of_handshakes_is_named_and_not_called_stable():
    """Three handshakes of 73 ms at a time are 41 per second."""
    one = scenario(SUITE, "phone", "server", "lte")
    for rate_per_s, is_carried in ((50, False), (20, True)):
        fleet = settle(Fleet(arrivals=f"poisson:{rate_per_s}/s", clients=4000, max_handshakes=3))
        found = run(Job(one, None, fleet, 1, 1))
        said = "the limit of handshakes permits 82% of the arriving clients: times grow with the number"
        assert any(said in note for note in object_table([found]).notes(set())) is not is_carried
        if is_carried:
            assert (found.carried, found.unstable) == (None, False)
        else:
            assert found.carried == pytest.approx(41 / 50, abs=0.03)
            assert found.unstable is None
