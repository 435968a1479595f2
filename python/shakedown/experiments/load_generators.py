"""Load generators on the workers of a Dask cluster: one job per worker, none of which runs twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from shakedown.errors import ShakedownError
from shakedown.experiments.cluster import (
    WORKER_CHECK_S,
    check_client,
    check_workers,
    do_job,
    fingerprint,
    give_up,
    lost_scheduler_as_error,
    result_of,
    workers_of,
)
from shakedown.experiments.signal_blocked import POLL_INTERVAL_S, SignalBlocked
from shakedown.native.signals import noted

if TYPE_CHECKING:
    from distributed import Client

STOP_S = 10.0
"""Timeout for the partial results of workers after the stop signal."""

STOPPED: set[str] = set()
"""Names of stopped runs of generators for which this process works."""

T = TypeVar("T")
GeneratorJob = Callable[[Callable[..., None]], T]
"""A job. Its argument is a function to be called regularly, with any arguments, which raises
`KeyboardInterrupt` when the job must end with its results so far.
"""


class Generators:
    """Load generators on all workers of a Dask cluster: one job on each, none of which runs twice."""

    def __init__(self, client: Client) -> None:
        """Raises `ShakedownError` if a worker has another version of this program."""
        check_client(client)
        self.client = client
        check_workers(client)
        self.workers = sorted(workers_of(client))

    def count(self) -> int:
        return len(self.workers)

    def results(self, jobs: Sequence[GeneratorJob[T]]) -> list[T]:
        """Each job's result, in order. Raises a job's error; `ShakedownError` if a worker is lost.

        Ctrl-C stops the jobs and returns their partial results. Jobs without a result, or without a response
        in time, are omitted. Raises `KeyboardInterrupt` if no job has a result, and at the next Ctrl-C.
        """
        ours, run = fingerprint(()), uuid4().hex
        with lost_scheduler_as_error(self.client, "; the load has no figures"), noted(most=1) as signals:
            futures: list[Any] = [
                self.client.submit(
                    do_job,
                    ours,
                    (),
                    _generated,
                    {},
                    job,
                    run,
                    pure=False,
                    workers=[worker],
                    allow_other_workers=False,
                    retries=0,
                )
                for worker, job in zip(self.workers, jobs, strict=True)
            ]
            try:
                while not signals:
                    self._await(futures, signals)
                    if not signals:
                        # A worker that was just lost returns nothing; the next round detects this.
                        with suppress(TimeoutError):
                            return [result_of(future, WORKER_CHECK_S) for future in futures]
                self._stop(run)
                found = self._found_soon(futures)
            except BaseException:
                # A generator whose results are not awaited must stop its load.
                self._stop(run)
                raise
            finally:
                give_up(futures)
        if not found:
            raise KeyboardInterrupt
        return found

    def _await(self, futures: Sequence[Any], signals: Sequence[float]) -> None:
        """Waits until all jobs are done or a signal arrives. Raises a job's error."""
        while not signals and not all(future.done() for future in futures):
            for future in futures:
                if future.status == "error":
                    result_of(future)
            lost = self._lost()
            if lost:
                raise ShakedownError(f"worker {min(lost)} was lost, so the load was incomplete")
            time.sleep(POLL_INTERVAL_S)

    def _lost(self) -> set[str]:
        """Workers that are known to be lost; none if the scheduler does not respond in time."""
        try:
            return set(self.workers) - workers_of(self.client, WORKER_CHECK_S).keys()
        except TimeoutError:
            return set()

    def _found_soon(self, futures: Sequence[Any]) -> list[Any]:
        """Results of stopped jobs, except those that fail, have none or take too long."""
        until_s, found = time.monotonic() + STOP_S, []
        while time.monotonic() < until_s:
            lost = self._lost()
            pairs = zip(self.workers, futures, strict=True)
            if all(future.done() or worker in lost for worker, future in pairs):
                break
            time.sleep(POLL_INTERVAL_S / 4)
        for future in futures:
            if future.status == "finished":
                with suppress(Exception):
                    found.append(result_of(future, STOP_S))
        return [one for one in found if one is not None]

    def _stop(self, run: str) -> None:
        """Sends the stop signal to all workers, without waiting for unresponsive ones."""
        stopping = SignalBlocked(
            partial(self.client.run, _stop, run, workers=self.workers, on_error="ignore")
        )
        stopping.is_over(POLL_INTERVAL_S)


def _stop(run: str) -> None:
    STOPPED.add(run)


def _generated(job: GeneratorJob[T], run: str) -> T | None:
    """Runs a job; returns its result, or None if it was stopped without a result.

    The job is also stopped if its client or its scheduler is lost.
    """
    from distributed import Status, get_worker

    worker = get_worker()
    task = worker.state.tasks[worker.get_current_task()]

    def look(*_progress: object) -> None:
        alone = task.state == "cancelled" or worker.status not in (Status.running, Status.paused)
        if alone or run in STOPPED:
            raise KeyboardInterrupt

    try:
        return job(look)
    except KeyboardInterrupt:
        return None
