"""Processing time: sums over messages, mixtures of certificates, and moments of service times for queues.

Equations are those of B. Bayoglu, "Performance Evaluation of WTLS Handshake Protocol Using RSA and Elliptic
Curve Cryptosystems", Sabanci University, 2004 (the thesis).
"""

from __future__ import annotations

import numpy as np

from shakedown.models.arrays import Floats, Numbers, floats


def processing_s(message_s: Numbers) -> Floats:
    """One side's processing time: the sum over its messages (thesis, 3.2, 3.3, 3.5, 3.6).

    Args:
        message_s: seconds of each message, shape ``(..., messages)``; 0 for messages a suite does not send.

    Returns:
        Seconds, shape ``(...)``.
    """
    return np.asarray(floats(message_s).sum(axis=-1))


def mixture_s(shares: Numbers, certificate_s: Numbers) -> Floats:
    """Mean time of a message when handshakes use several certificates (thesis, 3.19, 3.20).

    Args:
        shares: share of each certificate, shape ``(certificates,)``, adding to 1 (3.20).
        certificate_s: mean seconds under each certificate, shape ``(certificates, ...)``.

    Returns:
        Seconds, shape ``(...)``.

    Raises:
        ValueError: if the shares are negative or do not add to 1.
    """
    weights = _shares(shares)
    return np.asarray(np.tensordot(weights, floats(certificate_s), axes=1))


def queue_moments(message_s: Numbers) -> tuple[Floats, Floats]:
    """First and second moment of a queued message's service time (thesis, 3.13-3.18).

    A queued message is drawn uniformly from the n messages that one handshake sends to the server, each with
    its mean time; the variance inside a class of messages is ignored.

    Args:
        message_s: server seconds of each applicable message, shape ``(..., n)``.

    Returns:
        X1 in s and X2 in s², each of shape ``(...)``.
    """
    times = floats(message_s)
    return np.asarray(times.mean(axis=-1)), np.asarray((times**2).mean(axis=-1))


def mixture_moments(shares: Numbers, message_s: Numbers, *, as_printed: bool = True) -> tuple[Floats, Floats]:
    """Moments of a queued message under a mixture of certificates (thesis, 3.21-3.82).

    Args:
        shares: share of each certificate, shape ``(certificates,)``.
        message_s: mean seconds, shape ``(certificates, n)``.
        as_printed: the thesis mixes means and squares them afterwards; False gives the mixture's true
            second moment, which is larger.

    Returns:
        X1 in s and X2 in s².
    """
    if as_printed:
        return queue_moments(mixture_s(shares, message_s))
    weights, times = _shares(shares), floats(message_s)
    first = np.tensordot(weights, times.mean(axis=-1), axes=1)
    return np.asarray(first), np.asarray(np.tensordot(weights, (times**2).mean(axis=-1), axes=1))


def _shares(shares: Numbers) -> Floats:
    weights = floats(shares)
    if weights.min() < 0 or abs(weights.sum() - 1.0) > 1e-9:
        raise ValueError(f"shares are {weights.tolist()}; accepted: not negative, adding to 1")
    return weights
