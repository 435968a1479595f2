"""Runs jobs on many machines by Dask. Results and their order are those of one machine, even if workers are
lost.

A job is a picklable callable without arguments. Its result depends only on the job, so it can be repeated
if a worker is lost. A work is a generator that yields jobs until it has its result
(`shakedown.simulation.pieces`). Dask is an optional dependency: `pip install shakedown-lab[cluster]`.
"""

from __future__ import annotations

import atexit
import gc
import logging
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha256
from multiprocessing import active_children, resource_tracker
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar, cast

from shakedown.errors import InputError, ShakedownError
from shakedown.experiments.signal_blocked import POLL_INTERVAL_S, SignalBlocked, kill_children, to_the_end
from shakedown.native.signals import noted

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security

    from shakedown.simulation.pieces import Work

AHEAD = 4
"""Jobs in progress per worker thread, so that no thread waits for work."""

MAX_WORKS = 1000
"""Limit of works in progress, whose results are kept until the first one is complete."""

LARGE_BYTES = 1 << 14
"""A longer argument of a job is sent to each worker only once."""

WORKER_CHECK_S = 5.0
"""Limit of a wait for a result; after it the cluster is checked for workers."""

STARTS = 3
"""Limit of attempts to start a cluster of processes."""

CONNECT_S = 10.0

_LOG = logging.getLogger(__name__)


T = TypeVar("T")
Job = Callable[[], T]


def alone(job: Job[T]) -> Work[T]:
    (found,) = yield [job]
    return cast(T, found)


class Cluster:
    """Runs works on the workers of a Dask cluster."""

    def __init__(self, client: Client, profiles: Sequence[str] = ()) -> None:
        """Raises `ShakedownError` if a worker has another version of this program or of a profile, and
        `InputError` unless `client` is a connected client.
        """
        check_client(client)
        self.client, self.profiles = client, tuple(profiles)
        with lost_scheduler_as_error(client):
            check_workers(client, profiles)
        self._ours = fingerprint(profiles)
        self._common: dict[int, tuple[object, Any]] = {}

    def threads(self) -> int:
        return sum(int(worker["nthreads"]) for worker in workers_of(self.client).values())

    def is_here(self) -> bool:
        return all("//127.0.0.1:" in address for address in workers_of(self.client))

    def results(self, works: Iterable[Work[T]]) -> Iterator[T]:
        """The result of each work, in order; a long work does not delay the others. Raises the jobs'
        errors, and `ShakedownError` if the scheduler is lost, or if a worker that joined later differs.
        """
        going, number = _InProgress(self, works), 0
        try:
            while True:
                with lost_scheduler_as_error(self.client):
                    going.fill(number)
                    while (going.running or going.waiting) and number not in going.done:
                        going.collect()
                        going.fill(number)
                if number not in going.done:
                    return
                yield going.done.pop(number)
                number += 1
        finally:
            give_up(going.running)
            self._common.clear()

    def submit(self, job: Job[Any]) -> Any:  # noqa: ANN401 - a future
        """Submits a job; a large argument that several jobs share is sent to each worker once."""
        call = job if isinstance(job, partial) else partial(job)
        given = [self._sent_once(argument) for argument in call.args]
        return self.client.submit(
            do_job, self._ours, self.profiles, call.func, call.keywords, *given, pure=False
        )

    def _sent_once(self, argument: object) -> Any:  # noqa: ANN401 - the argument, or a future of it
        from distributed.protocol import pickle

        if id(argument) not in self._common:
            packed: Any = pickle
            if len(packed.dumps(argument)) <= LARGE_BYTES:
                return argument
            client: Any = self.client
            (sent,) = client.scatter([argument], broadcast=True, hash=False)
            self._common[id(argument)] = (argument, sent)
        return self._common[id(argument)][1]

    def result(self, future: Any) -> Any:  # noqa: ANN401 - a future, and a job's result
        """The result of a completed job. Raises `TimeoutError` if it was lost with its worker."""
        try:
            return result_of(future, WORKER_CHECK_S)
        except ShakedownError:
            raise
        except _lost():
            raise
        except Exception:
            if future.status != "error":
                raise TimeoutError from None
            # A worker that joined after the first check may differ: report this, not its error.
            check_workers(self.client, self.profiles)
            raise

    def forget_common(self) -> None:
        """Makes later jobs send their large arguments again, to the present workers."""
        self._common.clear()


@dataclass
class _Round:
    """A work, the results of its present jobs, and the number of those jobs that are not finished."""

    work: Work[Any]
    number: int
    found: list[Any] = field(default_factory=list)
    missing: int = 0


class _InProgress:
    """The works in progress on a cluster: started in order, completed in any order."""

    def __init__(self, pool: Cluster, works: Iterable[Work[Any]]) -> None:
        self.pool, self.source, self.begun = pool, iter(works), 0
        self.waiting: deque[tuple[_Round, int, Job[Any]]] = deque()
        self.running: dict[Any, tuple[_Round, int, Job[Any]]] = {}
        self.done: dict[int, Any] = {}
        self.warned = False

    def fill(self, first: int) -> None:
        """Submits jobs until enough are in progress; `first`: the work whose result is needed next."""
        room = AHEAD * max(1, self.pool.threads())
        while len(self.running) < room:
            if self.waiting:
                one = self.waiting.popleft()
                try:
                    self.running[self.pool.submit(one[2])] = one
                except _lost():
                    if self.pool.client.status != "running":
                        raise
                    # The workers that should have received the argument were lost.
                    self.pool.forget_common()
                    self.waiting.appendleft(one)
                    return
            elif self.begun < first + MAX_WORKS and (work := next(self.source, None)) is not None:
                self.begun += 1
                self._advance(_Round(work, self.begun - 1), None)
            else:
                return

    def _advance(self, one: _Round, found: list[Any] | None) -> None:
        try:
            jobs = one.work.send(cast("list[Any]", found))
        except StopIteration as end:
            self.done[one.number] = end.value
            return
        one.found, one.missing = [None] * len(jobs), len(jobs)
        self.waiting.extend((one, place, job) for place, job in enumerate(jobs))

    def collect(self) -> None:
        """Waits up to `WORKER_CHECK_S` for a job; collects finished ones. Warns if no worker is left."""
        from concurrent.futures import CancelledError

        import distributed

        waiting: Any = distributed
        client: Any = self.pool.client
        if not self.running:
            time.sleep(POLL_INTERVAL_S)
            return
        with suppress(TimeoutError, CancelledError), client.as_current():
            waiting.wait(list(self.running), WORKER_CHECK_S, "FIRST_COMPLETED")
        for future in [one for one in self.running if one.done()]:
            try:
                found = self.pool.result(future)
            except TimeoutError:
                continue
            except CancelledError:
                if self.pool.client.status != "running":
                    raise
                # All workers that had the large arguments were lost.
                self.pool.forget_common()
                self.waiting.appendleft(self.running.pop(future))
                continue
            one, place, _ = self.running.pop(future)
            one.found[place] = found
            one.missing -= 1
            if not one.missing:
                self._advance(one, one.found)
        if not self.warned and not self.pool.threads():
            self.warned = True
            _LOG.warning('no worker is left: waiting for one, as "dask worker ADDRESS" starts it')


def workers_of(client: Client, timeout_s: float | None = None) -> dict[str, Any]:
    """The scheduler's information on its workers, by address. Raises `TimeoutError` if it does not respond.

    The client's `scheduler_info` is not used, because another thread may replace it by one without workers.
    """
    untyped: Any = client
    about = untyped.sync(untyped.scheduler.identity, n_workers=-1, callback_timeout=timeout_s)
    found: dict[str, Any] = about["workers"]
    return found


def give_up(futures: Iterable[Any]) -> None:
    """Cancels jobs that are no longer needed. After an interruption the client may be closed already."""
    for future in futures:
        with suppress(Exception):
            future.cancel()


def check_client(client: object) -> None:
    """Raises `InputError` unless it is a connected, synchronous `Client`."""
    from distributed import Client

    accepted = "accepted: a Client of dask.distributed that is connected"
    if isinstance(client, Client) and client.asynchronous:
        raise InputError(f"client is asynchronous; {accepted}, and is not used in its own event loop")
    if not isinstance(client, Client):
        raise InputError(f"client is {client!r:.80}; {accepted}")
    if client.status != "running":
        raise InputError(f"client is {client.status}; {accepted}")


def _lost() -> tuple[type[Exception], ...]:
    """The exceptions that Dask raises if the scheduler is lost, or all workers that have a job's data."""
    from concurrent.futures import CancelledError

    from distributed.comm.core import CommClosedError

    return CancelledError, CommClosedError


@contextmanager
def lost_scheduler_as_error(client: Client, how: str = "; completed work is kept") -> Iterator[None]:
    """Raises `ShakedownError` if the scheduler is lost in the block."""
    try:
        yield
    except Exception as error:
        gone = client.status != "running" and not isinstance(error, ShakedownError)
        if not gone and not isinstance(error, _lost()):
            raise
        address = getattr(client.scheduler, "address", None)
        place = f" {address}" if address else ""
        raise ShakedownError(f"the scheduler{place} was lost{how}") from None


class OtherWorkerError(Exception):
    """A worker with another version of this program or of a profile received a job."""


def do_job(
    ours: dict[str, str],
    profiles: tuple[str, ...],
    job: Callable[..., T],
    keywords: Mapping[str, Any],
    *given: Any,  # noqa: ANN401 - the job's own
) -> T:
    """Runs a job on a worker. Raises the job's errors, and `OtherWorkerError` if the worker's program or
    profiles differ.
    """
    from shakedown import native
    from shakedown.native import virtual_time

    if _known_fingerprint(profiles) != ours:
        raise OtherWorkerError(str(_known_fingerprint(profiles)))
    # The cluster has as many worker threads as processors, so each job uses one.
    virtual_time.use_threads(1)
    try:
        return job(*given, **keywords)
    except Exception as error:
        status = native.exit_status(error)
        if status is None:
            raise
        # The core's classes cannot be unpickled in another process.
        raise (InputError if status == InputError.exit_status else ShakedownError)(str(error)) from None


def result_of(future: Any, timeout_s: float | None = None) -> Any:  # noqa: ANN401 - a future, a job's result
    """A job's result. Raises the job's errors, `TimeoutError`, and `ShakedownError` if every worker that
    ran it was lost.
    """
    from distributed import KilledWorker

    try:
        return future.result(timeout=timeout_s)
    except KilledWorker as error:
        raise ShakedownError(
            f"a job failed: every worker that ran it was lost ({error.last_worker})"
        ) from None


def fingerprint(profiles: Sequence[str]) -> dict[str, str]:
    """What figures depend on but jobs do not contain: versions of program and core, and named profiles."""
    from shakedown import native
    from shakedown.profiles import bearer_names, device_names, load_bearer, load_device

    build = native.build()
    found = {"shakedown": f"{build.shakedown} ({build.profile})"}
    for name in profiles:
        if name in device_names():
            text = repr(load_device(name).as_json())
        elif name in bearer_names():
            text = repr(load_bearer(name).as_json())
        else:
            text = "missing"
        found[f"profile {name}"] = sha256(text.encode()).hexdigest()[:12] if text != "missing" else text
    return found


def check_workers(client: Client, profiles: Sequence[str] = ()) -> None:
    """Raises `ShakedownError` if a worker would compute other figures; the message names it and the
    difference.
    """
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
    """The fingerprint of this worker process, computed once. It must equal the one that comes with a job."""
    return fingerprint(profiles)


@dataclass(frozen=True)
class Credentials:
    """PEM files with which this program and a `tls://` scheduler authenticate each other."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None

    def security(self, scheduler: str) -> Security | None:
        """The security settings of `distributed`; None for a scheduler without TLS. Raises `InputError`."""
        given = {f"--scheduler-{name}": path for name, path in vars(self).items()}
        missing = [option for option, path in given.items() if path is None]
        if not scheduler.startswith("tls://"):
            if len(missing) < len(given):
                raise InputError(
                    f'scheduler "{scheduler}" with {", ".join(given.keys() - missing)}; '
                    "accepted with these: tls://HOST:PORT"
                )
            return None
        if len(missing) == len(given):
            # Dask's own configuration applies.
            return None
        if missing:
            raise InputError(f'scheduler "{scheduler}" without {", ".join(missing)}; accepted: all three')
        from distributed.security import Security

        files = [str(path) for path in given.values()]
        found = Security(  # type: ignore[no-untyped-call]
            tls_ca_file=files[0],
            tls_client_cert=files[1],
            tls_client_key=files[2],
            require_encryption=True,
        )
        try:
            connection_arguments(found)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            raise InputError(
                f"{', '.join(files)}: no credentials for {scheduler}: {reason}; accepted: a CA's "
                "certificate, one that it issued, and its key, as PEM"
            ) from None
        return found


def connection_arguments(security: Security) -> dict[str, Any]:
    """The security settings for a client of `distributed`. Raises OpenSSL's errors about the files."""
    found: dict[str, Any] = security.get_connection_args("client")  # type: ignore[no-untyped-call]
    return found


def _check_sends_first(scheduler: str, security: Security | None) -> None:
    """Raises `InputError` unless the server at the address sends the first bytes. A scheduler does.

    Dask itself would wait for minutes.
    """
    address = scheduler.rpartition("://")[2]
    host, _, port = address.rpartition(":")
    if not port.isdigit() or not 0 < int(port) < 65536:
        return
    context = None if security is None else connection_arguments(security).get("ssl_context")
    if context is None and scheduler.startswith("tls://"):
        return
    host = host.strip("[]")
    try:
        with socket.create_connection((host, int(port)), CONNECT_S) as plain:
            wrapped = (
                nullcontext(plain) if context is None else context.wrap_socket(plain, server_hostname=host)
            )
            with wrapped as stream:
                # The timeout applies to the TLS handshake and to the read separately.
                stream.settimeout(CONNECT_S)
                if stream.recv(1):
                    return
            silent = "it ended the connection"
    except TimeoutError:
        silent = f"it did not respond within {CONNECT_S:g} s"
    except OSError as error:
        # Refused, unknown or untrusted: Dask's own attempt reports the reason.
        _LOG.debug("scheduler %s: %s", scheduler, error)
        return
    raise InputError(
        f'scheduler "{scheduler}" cannot be reached: {silent}; accepted: the address of a Dask scheduler, as '
        "tcp://HOST:8786 or, with --scheduler-ca, tls://HOST:8786"
    )


@contextmanager
def connected(scheduler: str, credentials: Credentials | None = None) -> Iterator[Client]:
    """A client of a running scheduler. Raises `InputError` if the scheduler cannot be reached."""
    distributed = _distributed()
    security = (credentials or Credentials()).security(scheduler)
    _check_sends_first(scheduler, security)
    # A broken connection is reported in one line, without Dask's tracebacks.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)

    base: Any = distributed.Client

    class Limited(base):  # type: ignore[misc]  # Dask's, not loaded before
        """Dask limits the time to connect, but not that of the first messages."""

        def start(self, **options: Any) -> None:  # noqa: ANN401 - Dask's
            super().start(callback_timeout=CONNECT_S, **options)

    # Created in two steps, because a client that could not connect must still be closed.
    client: Any = Limited.__new__(Limited)
    try:
        client.__init__(scheduler, timeout=CONNECT_S, set_as_default=False, security=security)
    except BaseException as error:
        client.status = "closed"
        if not isinstance(error, Exception):
            raise
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else "no answer"
        # TypeError: the TLS context for a "tls://" address is missing. Other types: Dask cannot unpack the
        # response.
        if not isinstance(error, (OSError, ValueError, TypeError)):
            reason = "its response is not that of a Dask scheduler"
        if reason[1:2].islower():
            reason = reason[:1].lower() + reason[1:]
        accepted = "the address of a Dask scheduler, as tcp://HOST:8786"
        if "ssl_context" in reason:
            reason, accepted = "no credentials for it", "--scheduler-ca, --scheduler-cert and --scheduler-key"
        raise InputError(
            f'scheduler "{scheduler}" cannot be reached: {reason}; accepted: {accepted}'
        ) from None
    try:
        _no_callbacks()
        yield client
    finally:
        # A lost scheduler cannot be notified.
        with suppress(Exception):
            client.close()


@contextmanager
def local(processes: int) -> Iterator[Client]:
    """A cluster of processes on this machine. Raises `InputError` for fewer than 1 or more than 1,024.

    Scheduler and workers run any code that they receive, so they listen on loopback only, with mutual TLS.
    The key pair is generated for this cluster and never leaves memory, so other users of the machine are
    refused.
    """
    if not 1 <= processes <= 1024:
        raise InputError(f"processes is {processes}; accepted: a whole number of processes from 1 to 1024")
    distributed = _distributed()
    import dask

    # LocalCluster silences its loggers, too, but ends this before it has shut down completely.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)

    # Dask's default is one folder for all users, which any of them may have created: Dask follows links in
    # it, and this process imports modules from it.
    scratch = TemporaryDirectory(prefix="shakedown-", ignore_cleanup_errors=True)
    # Scheduler and workers also listen for HTTP, without TLS and for all users. Without routes they answer no
    # request.
    config = {"temporary-directory": scratch.name, "distributed.scheduler.http.routes": []}

    def begin() -> Any:  # noqa: ANN401 - Dask's
        path = list(sys.path)
        try:
            with dask.config.set(config):
                cluster = distributed.LocalCluster(
                    n_workers=processes,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    security=True,
                    dashboard_address=None,
                    # Without a port, Dask warns if another cluster uses its default one.
                    scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                    # This also applies to workers that are started later, to replace one that ended.
                    config={"distributed.worker.http.routes": []},
                    silence_logs=50,
                )
        finally:
            sys.path[:] = path
        try:
            client = distributed.Client(cluster, set_as_default=False)
            _no_callbacks()
            return client
        except BaseException:
            cluster.close()
            raise

    def end(client: Any) -> None:  # noqa: ANN401 - Dask's
        client.close()
        client.cluster.close()

    # Starting the resource tracker unblocks SIGINT and SIGTERM in the calling thread. In the thread of
    # `SignalBlocked` this would expose the processes that it starts afterwards.
    resource_tracker.ensure_running()
    others = {child.pid for child in active_children()}
    begun: list[SignalBlocked] = []

    def end_begun() -> None:
        try:
            end(begun[-1].result())
        except Exception:
            # The cluster did not start completely, or does not end.
            kill_children(others)
        begun.clear()
        # Releases the system resources of its queues. Otherwise warnings are printed if this process is
        # killed.
        gc.collect()

    # If a signal arrives between two of the lines below, worker processes remain. They block SIGINT and
    # SIGTERM, and Python would wait for them at exit, so they are killed then.
    kill = partial(kill_children, others)
    atexit.register(kill)
    hurry = True
    try:
        client = _begin(begin, begun)
        hurry = False
        yield client
    except BaseException:
        # The original error is more informative than the interrupted wait.
        with suppress(KeyboardInterrupt):
            to_the_end(end_begun, others, hurry=hurry)
        raise
    else:
        to_the_end(end_begun, others)
    finally:
        atexit.unregister(kill)
        scratch.cleanup()


def _begin(begin: Callable[[], Any], begun: list[SignalBlocked]) -> Any:  # noqa: ANN401 - what it returns
    """Starts a cluster. The last entry of `begun` is the running one, or the one that Ctrl-C interrupted."""
    for tries_left in reversed(range(STARTS)):
        with noted() as signals:
            begun.append(SignalBlocked(begin))
            while not begun[-1].is_over(POLL_INTERVAL_S) and not signals:
                pass
        if signals:
            # An interrupted start would leave processes that print errors.
            raise KeyboardInterrupt
        try:
            return begun[-1].result()
        except (RuntimeError, OSError) as error:
            # A process that was killed while it started, perhaps because memory was exhausted.
            if not tries_left:
                raise ShakedownError(f"worker processes could not be started: {error}") from None
    raise AssertionError


def _no_callbacks() -> None:
    """Disables Dask's callback of the garbage collection, which would swallow a Ctrl-C."""
    from distributed.gc import disable_gc_diagnosis

    disable_gc_diagnosis(force=True)  # type: ignore[no-untyped-call]


def _distributed() -> Any:  # noqa: ANN401 - a module
    try:
        import distributed
    except ImportError as error:
        raise ShakedownError(
            f'Dask is not installed ({error.name}); "pip install shakedown-lab[cluster]" installs it'
        ) from None
    return distributed
