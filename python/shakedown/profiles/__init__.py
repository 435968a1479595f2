"""Device and bearer profiles: data files with sources, one schema each, strictly validated."""

from shakedown.profiles.bearer import Bearer, parse_bearer
from shakedown.profiles.device import Cost, Device, parse_device
from shakedown.profiles.registry import (
    THIS_MACHINE,
    bearer_names,
    device_names,
    existing_device_names,
    load_bearer,
    load_device,
    this_machine_path,
    user_data_dir,
)

__all__ = [
    "THIS_MACHINE",
    "Bearer",
    "Cost",
    "Device",
    "bearer_names",
    "device_names",
    "existing_device_names",
    "load_bearer",
    "load_device",
    "parse_bearer",
    "parse_device",
    "this_machine_path",
    "user_data_dir",
]
