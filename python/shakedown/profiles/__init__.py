"""Profiles of devices, bearers and server software: data with sources, strictly validated."""

from shakedown.profiles.bearer import Bearer, parse_bearer
from shakedown.profiles.costs import Cost
from shakedown.profiles.device import Device, parse_device
from shakedown.profiles.registry import (
    THIS_MACHINE,
    Names,
    bearer_names,
    changed_bearer,
    device_names,
    existing_device_names,
    load_bearer,
    load_device,
    load_software,
    places,
    software_names,
    this_machine_path,
    user_data_dir,
)

__all__ = [
    "THIS_MACHINE",
    "Bearer",
    "Cost",
    "Device",
    "Names",
    "bearer_names",
    "changed_bearer",
    "device_names",
    "existing_device_names",
    "load_bearer",
    "load_device",
    "load_software",
    "parse_bearer",
    "parse_device",
    "places",
    "software_names",
    "this_machine_path",
    "user_data_dir",
]
