"""A priced handshake over a bearer: the one place where pricing calls the network's model."""

from __future__ import annotations

from shakedown.errors import InputError
from shakedown.models import network
from shakedown.models.datagrams import Datagrams
from shakedown.models.network import Exchange, Step
from shakedown.models.tcp_flow import CollapseError
from shakedown.prediction.prices import Price
from shakedown.prediction.trace import Trace
from shakedown.profiles import Bearer
from shakedown.schema.base import Side


def steps_of(trace: Trace, client: Price, server: Price) -> tuple[list[Step], float, float]:
    """The messages with each sender's work before it, and what each side works after it received its last.

    A side works on a message when it is there, and on its own before they go out; work outside any message,
    and the connection's, comes before its first. Tickets after the handshake are left out.
    """
    prices: dict[Side, Price] = {"client": client, "server": server}
    pending: dict[Side, float] = {
        side: price.message_s.get(None, 0.0) + price.connection_s for side, price in prices.items()
    }
    steps = []
    for message in trace.messages:
        if message.flight is None:
            continue
        sender = message.sender
        receiver: Side = "server" if sender == "client" else "client"
        work_s = pending[sender] + prices[sender].message_s.get(message.index, 0.0)
        taken_s = prices[receiver].message_s.get(message.index, 0.0)
        steps.append(Step(sender, message.size_bytes, work_s, message.unit, taken_s))
        pending[sender] = 0.0
    return steps, pending["client"], pending["server"]


def timers(trace: Trace, client: Price, server: Price, bearer: Bearer) -> Datagrams | None:
    """How a handshake's datagrams are sent again over a bearer; None: it is in a stream."""
    transport = network.transport(trace.protocol)
    if not isinstance(transport, Datagrams):
        return None
    return network.timers(steps_of(trace, client, server)[0], bearer.path(), transport)


def carry(trace: Trace, client: Price, server: Price, bearer: Bearer, *, from_idle: bool = False) -> Exchange:
    """When the handshake is ready and done over a bearer, both sides' mean work on the way.

    ``from_idle`` puts the radio's set-up before it, where the bearer says what that takes.

    Raises:
        InputError: where the bearer's packets have no room for the transport's headers, or where
            TCP's timers jam it.
    """
    steps, client_end_s, server_end_s = steps_of(trace, client, server)
    path, transport = bearer.path(), network.transport(trace.protocol)
    headers_bytes = network.header_bytes(path, transport)
    if path.mtu_bytes <= headers_bytes:
        raise InputError(
            f"bearer {bearer.name!r} carries packets of {path.mtu_bytes} bytes, too small for the "
            f"{headers_bytes} bytes of headers that {trace.protocol} needs there; accepted: a bearer with "
            "larger packets"
        )
    try:
        return network.exchange(
            steps, path, transport, client_end_s=client_end_s, server_end_s=server_end_s, from_idle=from_idle
        )
    except CollapseError as error:
        raise InputError(
            f"bearer {bearer.name!r}: {error}; accepted: a suite over datagrams, or a faster bearer"
        ) from None
