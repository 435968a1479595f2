"""Capacities as objects: what `shakedown.capacity` is."""

from __future__ import annotations

from shakedown.api.rows import rows_of
from shakedown.prediction.capacity import capacity_rows
from shakedown.schema.predictions import Capacity, FailedCapacity

capacity = rows_of(Capacity, FailedCapacity)(capacity_rows)
