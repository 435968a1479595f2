"""Discrete distributions of times: the cost and the accuracy of their sums."""

from __future__ import annotations

import numpy as np
import pytest

from shakedown.models import distribution
from shakedown.models.distribution import Distribution


def test_sums_of_large_distributions_use_few_products(monkeypatch):
    """A sum of distributions of thousands of points each needs fewer than a million products, not twelve."""
    merged = distribution._merged
    sizes = []

    def counting(values, weights):
        sizes.append(len(values))
        return merged(values, weights)

    many = Distribution(np.linspace(1.0, 9.0, 3_000), np.full(3_000, 1.0 / 3_000))
    more = Distribution(np.linspace(0.0, 5.0, 4_000), np.full(4_000, 1.0 / 4_000))
    monkeypatch.setattr(distribution, "_merged", counting)
    found = many.plus(more)
    assert max(sizes) < 1_000_000
    assert found.mean == pytest.approx(7.5, rel=1e-9)
    assert found.p99 == pytest.approx(13.1, rel=5e-3)
