"""Jobs on many machines, by Dask: the same results as here, in the same order, whoever is lost on the way.

A job is a picklable callable without arguments, whose result depends on nothing but itself; so it may run
again where a worker was lost. Dask is an optional part: `pip install shakedown-lab[cluster]`.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from hashlib import sha256
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any, TypeVar

from shakedown.errors import InputError, ShakedownError

if TYPE_CHECKING:
    from distributed import Client

AHEAD = 4
"""Jobs a worker thread that are on their way at a time, so that none waits for work."""

WORKERS_LOOKED_FOR_S = 5.0
"""How often somebody who waits for a result looks whether any worker is left."""

STARTS = 3
"""How often the start of a cluster of processes is tried."""

CONNECT_S = 10.0
LOOK_EVERY_S = 0.2
"""How often somebody looks whether all workers are still there."""

_LOG = logging.getLogger(__name__)

T = TypeVar("T")
Job = Callable[[], T]


class InProcess:
    """Jobs run one after another in this process."""

    def results(self, jobs: Iterable[Job[T]]) -> Iterator[T]:
        """Each job's result, in order."""
        return (job() for job in jobs)


class Cluster:
    """Jobs run on the workers of a Dask cluster."""

    def __init__(self, client: Client, profiles: Sequence[str] = ()) -> None:
        """Raises `ShakedownError` where a worker has another version of this program, or of a profile, and
        `InputError` for what is no client that is connected.
        """
        _check_client(client)
        self.client, self.profiles = client, tuple(profiles)
        with _kept(client):
            check_workers(client, profiles)
        self._ours = fingerprint(profiles)

    def threads(self) -> int:
        """Threads of all workers that are there now."""
        known = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(int(worker["nthreads"]) for worker in known)

    def results(self, jobs: Iterable[Job[T]]) -> Iterator[T]:
        """Each job's result, in order; few jobs are ahead of the last result. Raises what a job raises, and
        `ShakedownError` where the scheduler is lost, or a worker came later and is another.
        """
        waiting: deque[Any] = deque()
        source = iter(jobs)
        try:
            while True:
                with _kept(self.client):
                    room = AHEAD * max(1, self.threads())
                    while len(waiting) < room and (job := next(source, None)) is not None:
                        sent = self.client.submit(_call, job, self._ours, self.profiles, pure=False)
                        waiting.append(sent)
                    if not waiting:
                        return
                    found = self._result(waiting.popleft())
                yield found
        finally:
            _give_up(waiting)

    def _result(self, future: Any) -> Any:  # noqa: ANN401 - a future, and a job's result
        said = False
        while True:
            try:
                return _result(future, WORKERS_LOOKED_FOR_S)
            except TimeoutError:
                if future.done():
                    raise
            except ShakedownError:
                raise
            except _lost():
                raise
            except Exception:
                # A worker that came after the first look may be another: that says more than what it raised.
                check_workers(self.client, self.profiles)
                raise
            if not said and not self.threads():
                said = True
                _LOG.warning('no worker is left: waiting for one, as "dask worker ADDRESS" starts it')


class Generators:
    """All workers of a Dask cluster at once: a job on each, none of which runs twice."""

    def __init__(self, client: Client) -> None:
        """Raises `ShakedownError` where a worker has another version of this program."""
        _check_client(client)
        self.client = client
        check_workers(client)
        self.workers = sorted(self._known())

    def _known(self) -> set[str]:
        return set(self.client.scheduler_info(n_workers=-1)["workers"])

    def count(self) -> int:
        """How many workers there are."""
        return len(self.workers)

    def results(self, jobs: Sequence[Job[T]]) -> list[T]:
        """Each job's result, in order. Raises what a job raises, and `ShakedownError` where a worker is
        lost.
        """
        ours = fingerprint(())
        futures: list[Any] = [
            self.client.submit(
                _call, job, ours, (), pure=False, workers=[worker], allow_other_workers=False, retries=0
            )
            for worker, job in zip(self.workers, jobs, strict=True)
        ]
        try:
            while not all(future.done() for future in futures):
                lost = set(self.workers) - self._known()
                if lost:
                    raise ShakedownError(f"worker {min(lost)} was lost, and its share of the load with it")
                time.sleep(LOOK_EVERY_S)
            return [_result(future) for future in futures]
        finally:
            _give_up(futures)


def _give_up(futures: Iterable[Any]) -> None:
    """Cancels jobs that nobody waits for. An interrupted run may come here when its client has gone."""
    for future in futures:
        with suppress(Exception):
            future.cancel()


def _check_client(client: object) -> None:
    from distributed import Client

    accepted = "accepted: a Client of dask.distributed that is connected"
    if not isinstance(client, Client):
        raise InputError(f"client is {client!r:.80}; {accepted}")
    if client.status != "running":
        raise InputError(f"client is {client.status}; {accepted}")


def _lost() -> tuple[type[Exception], ...]:
    """What Dask raises where the scheduler has gone."""
    from concurrent.futures import CancelledError

    from distributed.comm.core import CommClosedError

    return CancelledError, CommClosedError


@contextmanager
def _kept(client: Client) -> Iterator[None]:
    """Raises `ShakedownError` where the scheduler is lost meanwhile."""
    try:
        yield
    except Exception as error:
        gone = client.status != "running" and not isinstance(error, ShakedownError)
        if not gone and not isinstance(error, _lost()):
            raise
        address = getattr(client.scheduler, "address", None)
        place = f" {address}" if address else ""
        raise ShakedownError(f"the scheduler{place} was lost; what was finished by then is kept") from None


class OtherWorkerError(Exception):
    """A job came to a worker with another version of this program, or of a profile."""


def _call(job: Job[T], ours: dict[str, str], profiles: tuple[str, ...]) -> T:
    from shakedown import core

    if _known_fingerprint(profiles) != ours:
        raise OtherWorkerError(str(_known_fingerprint(profiles)))
    # There are as many workers as processors: one that took all would take them from the others.
    core.use_threads(1)
    return job()


def _result(future: Any, timeout_s: float | None = None) -> Any:  # noqa: ANN401 - a future, a job's result
    from distributed import KilledWorker

    try:
        return future.result(timeout=timeout_s)
    except KilledWorker as error:
        raise ShakedownError(
            f"a job was given up: each worker that tried it was lost ({error.last_worker})"
        ) from None


def fingerprint(profiles: Sequence[str]) -> dict[str, str]:
    """What figures depend on beside their jobs: this program's version, its core, and profiles by name."""
    from shakedown import core
    from shakedown.profiles import bearer_names, device_names, load_bearer, load_device

    build = core.build()
    found = {"shakedown": f"{build.shakedown} ({build.profile})"}
    for name in profiles:
        if name in device_names():
            text = repr(load_device(name))
        elif name in bearer_names():
            text = repr(load_bearer(name))
        else:
            text = "missing"
        found[f"profile {name}"] = sha256(text.encode()).hexdigest()[:12] if text != "missing" else text
    return found


def check_workers(client: Client, profiles: Sequence[str] = ()) -> None:
    """Raises `ShakedownError` naming the first worker that would find other figures, and what differs."""
    ours = fingerprint(profiles)
    answers = client.run(_fingerprint, list(profiles), on_error="return")
    if not answers:
        raise ShakedownError(
            'the cluster has no workers; accepted: one or more, as "dask worker ADDRESS" starts them'
        )
    for worker, theirs in answers.items():
        if not isinstance(theirs, dict):
            reason = str(theirs).splitlines()[0] if str(theirs) else type(theirs).__name__
            raise ShakedownError(f"worker {worker} cannot run shakedown: {reason}")
        for what, value in ours.items():
            if theirs.get(what) != value:
                raise ShakedownError(
                    f"worker {worker} has another {what}: {theirs.get(what)}; accepted: {value}, as here"
                )


def _fingerprint(profiles: list[str]) -> dict[str, str]:
    return fingerprint(profiles)


@cache
def _known_fingerprint(profiles: tuple[str, ...]) -> dict[str, str]:
    """This process's, made once: it goes with every job."""
    return fingerprint(profiles)


@contextmanager
def connected(scheduler: str) -> Iterator[Client]:
    """A client of a scheduler that runs already. Raises `InputError` where it cannot be reached."""
    distributed = _distributed()
    # A connection that breaks is told in one line, not by Dask's tracebacks.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Made in two steps: a client that could not connect still wants to say goodbye when it is forgotten.
    client = distributed.Client.__new__(distributed.Client)
    try:
        client.__init__(scheduler, timeout=CONNECT_S, set_as_default=False)
    except KeyboardInterrupt:
        client.status = "closed"
        raise
    except (OSError, ValueError) as error:
        client.status = "closed"
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else "no answer"
        raise InputError(
            f'scheduler "{scheduler}" cannot be reached: {reason[:1].lower()}{reason[1:]}; '
            "accepted: the address of a Dask scheduler, as tcp://HOST:8786"
        ) from None
    try:
        _no_callbacks()
        yield client
    finally:
        # Of a scheduler that has gone nobody can take leave.
        with suppress(Exception):
            client.close()


@contextmanager
def local(workers: int) -> Iterator[Client]:
    """A cluster of processes on this machine. Raises `InputError` for no workers."""
    if not 1 <= workers <= 1024:
        raise InputError(f"workers is {workers}; accepted: a whole number of processes from 1 to 1024")
    distributed = _distributed()
    # What LocalCluster silences speaks again when it ends, in the middle of which it is.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)

    def begin() -> Any:  # noqa: ANN401 - Dask's
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            silence_logs=50,
        )
        try:
            return distributed.Client(cluster, set_as_default=False)
        except BaseException:
            cluster.close()
            raise

    def end(client: Any) -> None:  # noqa: ANN401 - Dask's
        client.close()
        client.cluster.close()

    # Where it is started with the first process, it lets the signal through to that.
    resource_tracker.ensure_running()
    for tries_left in reversed(range(STARTS)):
        beginning = _Undisturbed(begin)
        try:
            client = beginning.result()
        except KeyboardInterrupt:
            # Broken off in its middle it would leave processes that complain.
            with suppress(Exception):
                _to_the_end(partial(lambda begun: end(begun.result()), beginning))
            raise
        except (RuntimeError, OSError) as error:
            # One that was killed, for want of memory perhaps, while it started.
            if not tries_left:
                raise ShakedownError(f"worker processes could not be started: {error}") from None
        else:
            break
    _no_callbacks()
    try:
        yield client
    finally:
        _to_the_end(lambda: end(client))


def _no_callbacks() -> None:
    """Dask's look at each garbage collection: a Ctrl-C that comes just then would be swallowed by it."""
    from distributed.gc import disable_gc_diagnosis

    disable_gc_diagnosis(force=True)  # type: ignore[no-untyped-call]


class _Undisturbed:
    """Work that Ctrl-C does not reach, neither it nor the processes that it starts: it runs in a thread that
    blocks the signal, and they inherit that. Whoever waits for it is reached.
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        """Begins it."""
        self._found: Any = None
        self._raised: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), name="undisturbed", daemon=True)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self._found = work()
        except BaseException as error:
            self._raised = error

    def result(self) -> Any:  # noqa: ANN401 - what the work returns
        """Waits for its end. Raises what it raised, and `KeyboardInterrupt`."""
        while self._thread.is_alive():
            self._thread.join(LOOK_EVERY_S)
        if self._raised is not None:
            raise self._raised
        return self._found


def _to_the_end(work: Callable[[], Any]) -> None:
    """Does work; Ctrl-C is raised only once it is done.

    Half done it would be begun anew by Dask, when the program ends, while a thread is still at it.
    """
    if threading.current_thread() is not threading.main_thread():
        work()
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    try:
        _Undisturbed(work).result()
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def _distributed() -> Any:  # noqa: ANN401 - a module
    try:
        import distributed
    except ImportError as error:
        raise ShakedownError(
            f'Dask is not installed ({error.name}); "pip install shakedown-lab[cluster]" installs it'
        ) from None
    return distributed
