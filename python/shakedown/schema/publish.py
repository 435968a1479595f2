"""The published JSON Schema: made from the objects' definitions, one file an object."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from shakedown.schema.aka import AttachRun, LiveAttaches, ProvisionedFiles, SgsnSummary
from shakedown.schema.bearer import BearerCheck, MeasuredPath
from shakedown.schema.captured import Connection
from shakedown.schema.catalogue import StackEntry, SuiteEntry
from shakedown.schema.certificates import CertificateProfile, DescribedFile, MadeChain
from shakedown.schema.eap import Authentications
from shakedown.schema.live import LiveRun, LoadRun
from shakedown.schema.measured import Measurement
from shakedown.schema.predictions import Capacity, FailedCapacity, FailedPrediction, Prediction
from shakedown.schema.primitives import Timing
from shakedown.schema.profiles import BearerProfile, DeviceEntry, DeviceProfile
from shakedown.schema.replication import Comparison
from shakedown.schema.saved import Manifest, ScenarioFigures
from shakedown.schema.serving import HalfTrace, Serving
from shakedown.schema.simulated import Simulated, SimulatedMix
from shakedown.schema.trace import CapturedTrace

PRINTED: dict[str, tuple[type[msgspec.Struct], str]] = {
    "measurement": (Measurement, "An object of measure --json."),
    "connection": (Connection, "An object of inspect --json."),
    "trace": (CapturedTrace, "An object of the file that inspect --traces writes."),
    "serving": (Serving, "The object of serve --json."),
    "half-trace": (HalfTrace, "An object of the file that serve --traces writes."),
    "suite": (SuiteEntry, "An object of suites --json."),
    "stack": (StackEntry, "An object of stacks --json."),
    "primitive": (Timing, "An object of primitives --json."),
    "authentications": (Authentications, "The object of eap peer --json."),
    "attaches": (AttachRun, "The object of aka run --json."),
    "live-attaches": (LiveAttaches, "The object of aka mobile --json."),
    "sgsn": (SgsnSummary, "The object of aka sgsn --json."),
    "provisioned": (ProvisionedFiles, "The object of aka provision --json."),
    "certificate": (DescribedFile, "An object of certs show --json."),
    "chain": (MadeChain, "An object of certs make --json and certs issue --json."),
    "certificate-profile": (CertificateProfile, "An object of certs profiles --json."),
    "device": (DeviceEntry, "An object of devices --json."),
    "device-profile": (DeviceProfile, "An object of devices show --json."),
    "bearer": (BearerProfile, "An object of bearers --json."),
    "prediction": (Prediction, "An object of predict --json."),
    "prediction-failure": (FailedPrediction, "An object of predict --json where a suite has no prediction."),
    "capacity": (Capacity, "An object of capacity --json."),
    "capacity-failure": (FailedCapacity, "An object of capacity --json where a suite has no capacity."),
    "comparison": (Comparison, "An object of reproduce --json."),
    "load": (LoadRun, "An object of load --json."),
    "live": (LiveRun, "A live object of run --json, and an object of validate --live --json."),
    "simulation": (Simulated, "An object of simulate --json."),
    "simulation-mix": (SimulatedMix, "An object of simulate --mix --json."),
    "figures": (ScenarioFigures, "An object of report --json."),
    "bearer-check": (BearerCheck, "An object of bearer check --json."),
    "measured-path": (MeasuredPath, "An object of bearer measure --json."),
    "manifest": (Manifest, "The file manifest.json of a results folder."),
}
"""Objects by the name of their schema's file, and who prints or writes them."""


def published() -> dict[str, str]:
    """Texts by file name."""
    return {f"{name}.schema.json": _text(kind, what) for name, (kind, what) in PRINTED.items()}


def _text(kind: type[msgspec.Struct], what: str) -> str:
    (root,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    whole: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": what,
        **root,
        "$defs": parts,
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
