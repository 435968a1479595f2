"""Predictions as objects: what `shakedown.predict` is."""

from __future__ import annotations

from shakedown.api.rows import rows_of
from shakedown.prediction.predict import predict_rows
from shakedown.schema.predictions import FailedPrediction, Prediction

predict = rows_of(Prediction, FailedPrediction)(predict_rows)
