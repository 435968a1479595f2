"""Jobs on many machines, by Dask: the same results as here, in the same order, even where workers are lost.

A job is a picklable callable without arguments, whose result depends on nothing but itself; so it may run
again where a worker was lost. Dask is an optional part: `pip install shakedown-lab[cluster]`.
"""

from __future__ import annotations

import atexit
import gc
import logging
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from multiprocessing import active_children, resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from shakedown.errors import InputError, ShakedownError

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security

AHEAD = 4
"""Jobs a worker thread that are on their way at a time, so that none waits for work."""

WORKERS_LOOKED_FOR_S = 5.0
"""How often somebody who waits for a result looks whether any worker is left."""

STARTS = 3
"""How often the start of a cluster of processes is tried."""

CONNECT_S = 10.0
LOOK_EVERY_S = 0.2
"""How often somebody looks whether all workers are still there."""

STOP_S = 10.0
"""How long workers that are told to stop have for what they found until then."""

STOPPED: set[str] = set()
"""Runs of generators that were stopped while this process works for them, as their names say."""

_LOG = logging.getLogger(__name__)

SAME_S = 0.3
"""Signals closer together are one: `timeout` sends its own twice."""

T = TypeVar("T")
Job = Callable[[], T]
GeneratorJob = Callable[[Callable[[], None]], T]
"""Told what to call now and then: it raises `KeyboardInterrupt` once the job is to end with what it has."""


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
        return sum(int(worker["nthreads"]) for worker in _workers(self.client).values())

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
        self.workers = sorted(_workers(client))

    def count(self) -> int:
        """How many workers there are."""
        return len(self.workers)

    def results(self, jobs: Sequence[GeneratorJob[T]]) -> list[T]:
        """Each job's result, in order. Raises what a job raises, and `ShakedownError` where a worker is lost,
        or the scheduler.

        Ctrl-C stops the jobs: what they have found by then is returned, but of those that had nothing yet or
        did not answer in time. Raises `KeyboardInterrupt` where that is all of them, and at the next Ctrl-C.
        """
        ours, run = fingerprint(()), uuid4().hex
        with _kept(self.client, ", and the load's figures with it"), _noted(most=1) as signals:
            futures: list[Any] = [
                self.client.submit(
                    _call,
                    partial(_generated, job, run),
                    ours,
                    (),
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
                        # A worker that is lost just now hands nothing out: that is seen in the next round.
                        with suppress(TimeoutError):
                            return [_result(future, WORKERS_LOOKED_FOR_S) for future in futures]
                self._stop(run)
                found = self._found_soon(futures)
            except BaseException:
                # A generator whose results are not awaited must not go on loading.
                self._stop(run)
                raise
            finally:
                _give_up(futures)
        if not found:
            raise KeyboardInterrupt
        return found

    def _await(self, futures: Sequence[Any], signals: Sequence[float]) -> None:
        """Returns when all are done or a signal has come; raises what a job raises."""
        while not signals and not all(future.done() for future in futures):
            for future in futures:
                if future.status == "error":
                    _result(future)
            lost = self._lost()
            if lost:
                raise ShakedownError(f"worker {min(lost)} was lost, and its share of the load with it")
            time.sleep(LOOK_EVERY_S)

    def _lost(self) -> set[str]:
        """Workers that are known to be gone: none where the scheduler takes its time to say."""
        try:
            return set(self.workers) - _workers(self.client, WORKERS_LOOKED_FOR_S).keys()
        except TimeoutError:
            return set()

    def _found_soon(self, futures: Sequence[Any]) -> list[Any]:
        """Results of jobs that were told to stop, but of those that fail, have none or take too long."""
        until_s, found = time.monotonic() + STOP_S, []
        while time.monotonic() < until_s:
            lost = self._lost()
            pairs = zip(self.workers, futures, strict=True)
            if all(future.done() or worker in lost for worker, future in pairs):
                break
            time.sleep(LOOK_EVERY_S / 4)
        for future in futures:
            if future.status == "finished":
                with suppress(Exception):
                    found.append(_result(future, STOP_S))
        return [one for one in found if one is not None]

    def _stop(self, run: str) -> None:
        """Tells all workers; one that does not listen is not waited for."""
        told = _Undisturbed(partial(self.client.run, _stop, run, workers=self.workers, on_error="ignore"))
        told.is_over(LOOK_EVERY_S)


def _stop(run: str) -> None:
    STOPPED.add(run)


def _generated(job: GeneratorJob[T], run: str) -> T | None:
    """What a job finds; None where it was stopped before it had anything.

    It is stopped, too, where its client or its scheduler has gone.
    """
    from distributed import Status, get_worker

    worker = get_worker()
    task = worker.state.tasks[worker.get_current_task()]

    def look() -> None:
        alone = task.state == "cancelled" or worker.status not in (Status.running, Status.paused)
        if alone or run in STOPPED:
            raise KeyboardInterrupt

    try:
        return job(look)
    except KeyboardInterrupt:
        return None


def _workers(client: Client, patience_s: float | None = None) -> dict[str, Any]:
    """What the scheduler knows of its workers now, by their addresses. Raises `TimeoutError` where it does
    not say in time.

    Not the client's `scheduler_info`: what it has asked for is replaced, by another thread, by what lists no
    workers.
    """
    asked: Any = client
    about = asked.sync(asked.scheduler.identity, n_workers=-1, callback_timeout=patience_s)
    found: dict[str, Any] = about["workers"]
    return found


def _give_up(futures: Iterable[Any]) -> None:
    """Cancels jobs that are no longer awaited. An interrupted run may come here when its client has gone."""
    for future in futures:
        with suppress(Exception):
            future.cancel()


def _check_client(client: object) -> None:
    from distributed import Client

    accepted = "accepted: a Client of dask.distributed that is connected"
    if isinstance(client, Client) and client.asynchronous:
        raise InputError(f"client is asynchronous; {accepted}, and is not asked from its own event loop")
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
def _kept(client: Client, how: str = "; what was finished by then is kept") -> Iterator[None]:
    """Raises `ShakedownError` where the scheduler is lost meanwhile."""
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
    """A job came to a worker with another version of this program, or of a profile."""


def _call(job: Job[T], ours: dict[str, str], profiles: tuple[str, ...]) -> T:
    from shakedown import native

    if _known_fingerprint(profiles) != ours:
        raise OtherWorkerError(str(_known_fingerprint(profiles)))
    # There are as many workers as processors: one that took all would take them from the others.
    native.use_threads(1)
    try:
        return job()
    except Exception as error:
        status = native.exit_status(error)
        if status is None:
            raise
        # The core's own classes are not found again where this is unpacked.
        raise (InputError if status == InputError.exit_status else ShakedownError)(str(error)) from None


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
    from shakedown import native
    from shakedown.profiles import bearer_names, device_names, load_bearer, load_device

    build = native.build()
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


@dataclass(frozen=True)
class Credentials:
    """Files by which this program and a scheduler of `tls://` know each other, as PEM."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None

    def security(self, scheduler: str) -> Security | None:
        """What `distributed` makes of them; None for a scheduler that asks for none. Raises `InputError`."""
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
            # As Dask's own configuration has it.
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
    """What `distributed` connects a client by. Raises what OpenSSL says of files."""
    found: dict[str, Any] = security.get_connection_args("client")  # type: ignore[no-untyped-call]
    return found


def _check_speaks(scheduler: str, security: Security | None) -> None:
    """Raises `InputError` where what listens there is silent: a scheduler is the first to speak.

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
                # What is left of the time is the socket's own limit.
                stream.settimeout(CONNECT_S)
                if stream.recv(1):
                    return
            silent = "it ended the connection"
    except TimeoutError:
        silent = f"it did not answer within {CONNECT_S:g} s"
    except OSError as error:
        # Refused, unknown or untrusted: Dask's own attempt says so in its words.
        _LOG.debug("scheduler %s: %s", scheduler, error)
        return
    raise InputError(
        f'scheduler "{scheduler}" cannot be reached: {silent}; accepted: the address of a Dask scheduler, as '
        "tcp://HOST:8786 or, with --scheduler-ca, tls://HOST:8786"
    )


@contextmanager
def connected(scheduler: str, credentials: Credentials | None = None) -> Iterator[Client]:
    """A client of a scheduler that runs already. Raises `InputError` where it cannot be reached."""
    distributed = _distributed()
    security = (credentials or Credentials()).security(scheduler)
    _check_speaks(scheduler, security)
    # A connection that breaks is told in one line, not by Dask's tracebacks.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Made in two steps: a client that could not connect still wants to say goodbye when it is forgotten.
    client = distributed.Client.__new__(distributed.Client)
    try:
        client.__init__(scheduler, timeout=CONNECT_S, set_as_default=False, security=security)
    except BaseException as error:
        client.status = "closed"
        # A type: of the TLS context that an address of "tls://" asks for.
        if not isinstance(error, (OSError, ValueError, TypeError)):
            raise
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else "no answer"
        if reason[1:2].islower():
            reason = reason[:1].lower() + reason[1:]
        raise InputError(
            f'scheduler "{scheduler}" cannot be reached: {reason}; '
            "accepted: the address of a Dask scheduler, as tcp://HOST:8786"
        ) from None
    try:
        _no_callbacks()
        yield client
    finally:
        # A scheduler that has gone cannot be told.
        with suppress(Exception):
            client.close()


@contextmanager
def local(processes: int) -> Iterator[Client]:
    """A cluster of processes on this machine. Raises `InputError` for no processes.

    Scheduler and workers run what is sent to them, so they listen on loopback alone and by mutual TLS. Its
    key pair is made for this cluster and never leaves memory: other users of the machine are refused.
    """
    if not 1 <= processes <= 1024:
        raise InputError(f"processes is {processes}; accepted: a whole number of processes from 1 to 1024")
    distributed = _distributed()
    # What LocalCluster silences speaks again when it ends, in the middle of which it is.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)

    def begin() -> Any:  # noqa: ANN401 - Dask's
        cluster = distributed.LocalCluster(
            n_workers=processes,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            security=True,
            dashboard_address=None,
            # Without one it warns where another cluster has Dask's usual port.
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            silence_logs=50,
        )
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

    # Where it is started with the first process, it lets the signal through to that.
    resource_tracker.ensure_running()
    others = {child.pid for child in active_children()}
    begun: list[_Undisturbed] = []

    def end_begun() -> None:
        try:
            end(begun[-1].result())
        except Exception:
            # It did not begin whole, or does not end by itself.
            _kill_children(others)
        begun.clear()
        # Else what its queues hold of the system stays, and is complained of where this process is killed.
        gc.collect()

    # A signal between two of the lines below would leave processes that Python waits for at its end, and that
    # do not hear the signal by which it ends them.
    kill = partial(_kill_children, others)
    atexit.register(kill)
    hurry = True
    try:
        client = _begin(begin, begun)
        hurry = False
        yield client
    except BaseException:
        # What it ends by says more than that somebody would not wait for the end.
        with suppress(KeyboardInterrupt):
            _to_the_end(end_begun, others, hurry=hurry)
        raise
    else:
        _to_the_end(end_begun, others)
    finally:
        atexit.unregister(kill)


def _begin(begin: Callable[[], Any], begun: list[_Undisturbed]) -> Any:  # noqa: ANN401 - what it returns
    """Begins a cluster; the last of those begun is the one that is there, or was to be when Ctrl-C came."""
    for tries_left in reversed(range(STARTS)):
        with _noted() as signals:
            begun.append(_Undisturbed(begin))
            while not begun[-1].is_over(LOOK_EVERY_S) and not signals:
                pass
        if signals:
            # Broken off in its middle it would leave processes that complain.
            raise KeyboardInterrupt
        try:
            return begun[-1].result()
        except (RuntimeError, OSError) as error:
            # One that was killed, for want of memory perhaps, while it started.
            if not tries_left:
                raise ShakedownError(f"worker processes could not be started: {error}") from None
    raise AssertionError


def _no_callbacks() -> None:
    """Dask's look at each garbage collection: a Ctrl-C that comes just then would be swallowed by it."""
    from distributed.gc import disable_gc_diagnosis

    disable_gc_diagnosis(force=True)  # type: ignore[no-untyped-call]


class _Undisturbed:
    """Work that Ctrl-C and SIGTERM do not reach, neither it nor the processes that it starts: it runs in a
    thread that blocks them, and they inherit that. The waiting thread receives it.
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        """Begins it."""
        self._found: Any = None
        self._raised: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), name="undisturbed", daemon=True)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            self._thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self._found = work()
        except BaseException as error:
            self._raised = error

    def is_over(self, patience_s: float) -> bool:
        """Waits for its end, but not longer than that."""
        self._thread.join(patience_s)
        return not self._thread.is_alive()

    def result(self) -> Any:  # noqa: ANN401 - what the work returns
        """Waits for its end. Raises what it raised, and `KeyboardInterrupt`."""
        while not self.is_over(LOOK_EVERY_S):
            pass
        if self._raised is not None:
            raise self._raised
        return self._found


def _to_the_end(work: Callable[[], Any], others: Container[int | None], *, hurry: bool = False) -> None:
    """Does work; Ctrl-C is raised only once it is done. It, or hurry, kills the processes that are not
    others', for which it may wait.

    Half done it would be begun anew by Dask, when the program ends, while a thread is still at it.
    """
    with _noted() as signals:
        doing = _Undisturbed(work)
        while not doing.is_over(LOOK_EVERY_S):
            if hurry or signals:
                _kill_children(others)
        doing.result()
    if signals:
        raise KeyboardInterrupt


def _kill_children(others: Container[int | None]) -> None:
    for child in active_children():
        if child.pid not in others:
            child.kill()


@contextmanager
def _noted(most: int | None = None) -> Iterator[list[float]]:
    """Notes when Ctrl-C comes, or SIGTERM where it is to do the same, instead of raising it; beyond the most
    that are noted, it is raised.
    """
    came: list[float] = []

    def note(_number: int, _frame: object) -> None:
        now_s = time.monotonic()
        if came and now_s - came[-1] < SAME_S:
            return
        if len(came) == most:
            raise KeyboardInterrupt
        came.append(now_s)

    # Only the main thread may, and no other is interrupted.
    here = threading.current_thread() is threading.main_thread()
    ours = [
        number
        for number in (signal.SIGINT, signal.SIGTERM)
        if here and signal.getsignal(number) is signal.default_int_handler
    ]
    for number in ours:
        signal.signal(number, note)
    try:
        yield came
    finally:
        for number in ours:
            signal.signal(number, signal.default_int_handler)


def _distributed() -> Any:  # noqa: ANN401 - a module
    try:
        import distributed
    except ImportError as error:
        raise ShakedownError(
            f'Dask is not installed ({error.name}); "pip install shakedown-lab[cluster]" installs it'
        ) from None
    return distributed
