"""The functions `shakedown.predict` and `shakedown.capacity`, which return objects."""

from __future__ import annotations

from shakedown.api.rows import rows_of
from shakedown.prediction.capacity import capacity_rows
from shakedown.prediction.predict import predict_rows
from shakedown.schema.predictions import Capacity, FailedCapacity, FailedPrediction, Prediction

predict = rows_of(Prediction, FailedPrediction)(predict_rows)
capacity = rows_of(Capacity, FailedCapacity)(capacity_rows)
