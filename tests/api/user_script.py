"""A user's script, which mypy checks strictly against the package's types."""

from pathlib import Path
from typing import assert_type

import shakedown
from shakedown import Rows
from shakedown.profiles import Bearer, Device
from shakedown.schema.catalogue import StackEntry, SuiteEntry
from shakedown.schema.measured import Measurement
from shakedown.schema.predictions import Capacity, FailedCapacity, FailedPrediction, Prediction
from shakedown.schema.primitives import Timing
from shakedown.schema.simulated import FailedSimulation, Simulated, SimulatedMix

one = shakedown.measure("tls1.2/psk", 20, options=shakedown.MeasureOptions(seed=1, chain=Path("c.pem")))
assert_type(one, Measurement)
several = shakedown.measure(["tls1.2/psk", "tls1.3/x25519/*/server"], repeat=20)
assert_type(several, Rows[Measurement])
fastest = min(several, key=lambda measured: measured.handshake.server_us.mean)
assert_type(several[:2], Rows[Measurement])

predicted = shakedown.predict("tls1.2/psk", device=Path("board.toml"), bearer=["lte", "nb-iot"], rate_per_s=5)
assert_type(predicted, Rows[Prediction])
slow = {row.bearer: row.ready_s.p99 for row in predicted if row.ready_s is not None}
for found in shakedown.predict(["tls1.2/psk", "tls1.3/*"]):
    assert_type(found, Prediction | FailedPrediction)
    said = found.error if isinstance(found, FailedPrediction) else found.client_s.estimate

assert_type(shakedown.capacity("tls1.2/psk", within_s=2.0), Rows[Capacity])
assert_type(shakedown.capacity(["tls1.2/psk"], within_s=2.0), Rows[Capacity | FailedCapacity])
fleet = shakedown.Fleet(arrivals="storm:10s", clients=100)
assert_type(
    shakedown.simulate("tls1.2/psk", fleet, endpoints=shakedown.Stacks(client="rustls")), Rows[Simulated]
)
assert_type(
    shakedown.simulate("tls1.2/psk", [fleet, "poisson:5/s"], server=shakedown.ServerModel(workers=4)),
    Rows[Simulated],
)
assert_type(shakedown.predict("tls1.2/psk", rate_per_s=[1, 10.0]), Rows[Prediction])
assert_type(
    shakedown.simulate(["tls1.2/psk"], device=["phone", "raspberry-pi-*"]), Rows[Simulated | FailedSimulation]
)
assert_type(shakedown.simulate_mix("mix.toml"), SimulatedMix)
assert_type(shakedown.simulate_mix(["a.toml", "b.toml"]), Rows[SimulatedMix])
assert_type(shakedown.devices("raspberry-pi-*"), Rows[Device])
assert_type(shakedown.bearers(), Rows[Bearer])
assert_type(shakedown.suites("tls1.3"), Rows[SuiteEntry])
assert_type(shakedown.stacks(), Rows[StackEntry])
assert_type(shakedown.primitives("sign"), Rows[Timing])

assert predicted.to_polars().height == len(predicted.to_dicts())
with shakedown.serve("tls1.2/psk", settings=shakedown.ServerOptions(workers=2)) as server:
    options = shakedown.LoadOptions(rate_per_s=20, duration_s=0.2, emulate_device=Path("board.toml"))
    completed: int = shakedown.load(server.address, "tls1.2/psk", options).completed
shakedown.Fleet(client=100)  # type: ignore[call-arg]
shakedown.Fleet(clients="100")  # type: ignore[arg-type]
shakedown.ServerModel(workers="4")  # type: ignore[arg-type]
shakedown.predict("tls1.2/psk", server="phone")  # type: ignore[call-overload]
shakedown.predict("tls1.2/psk", bearer=5)  # type: ignore[call-overload]
shakedown.predict("tls1.2/psk", rate=5.0)  # type: ignore[call-overload]
shakedown.measure(5)  # type: ignore[call-overload]
