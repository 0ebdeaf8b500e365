"""Runs a sweep: in this process, in worker processes, or on a Dask or Ray cluster.

1. A simulation is a pure function of its inputs, so a result does not depend on the engine, the worker, the number of
   workers, or the order. A simulation whose worker died is run again.
2. An engine is something that takes a task and returns a future. Dask and Ray send tasks to workers, and send those of
   a dead worker to another. The files of the scenario are sent, too: each contents once, as data that tasks depend on,
   which the engine keeps on a worker. A worker needs the same version of Mooring, and says so if it has another one.
3. Progress counts hundredths of simulations. Dask and Ray report whole simulations only.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from ctypes import Array, c_ubyte
from typing import Protocol, TypeAlias

from mooring.kit.memory import end_loading
from mooring.simulator.errors import ScenarioError
from mooring.simulator.inputs import SENT_BYTES_MAX, PackedInput, packed_input
from mooring.simulator.simulation import ResultStore, SimulationResult, SweepTask

WORKER_DEATHS_MAX = 3
"""A sweep gives up after this many failures of its engine."""
PROGRESS_EVERY_S = 0.2
CONNECT_TIMEOUT_S = 10
LOCAL = "local"
"""The address of a cluster that is started on this machine, for this sweep."""


SweepOutcome: TypeAlias = SimulationResult | ScenarioError


class SweepEngine(Protocol):
    """Runs simulations somewhere."""

    worker_errors: tuple[type[Exception], ...]
    """What a future raises if workers died too often for the engine to try again."""

    def submit(self, task: SweepTask, identity: str) -> Future[SweepOutcome]: ...

    def running_percent(self) -> int:
        """Hundredths of simulations that are done, of those submitted."""
        ...

    def close(self) -> None:
        """Stop what still runs."""
        ...


def run_sweep(
    tasks: Sequence[SweepTask],
    workers: int,
    store: ResultStore | None,
    *,
    on: str = "",
    resumes: bool,
    progress: Callable[[int], None],
) -> Iterator[SimulationResult]:
    """The results as they finish. `progress` is called with hundredths of simulations. `on` is `dask://…`, `ray://…`
    or empty for worker processes. Raises `ScenarioError`."""
    left: list[tuple[SweepTask, str]] = []
    for task in tasks:
        identity = task.identity()
        stored = store.load(identity) if store is not None and resumes else None
        if stored is None:
            left.append((task, identity))
            continue
        progress(100)
        yield stored
    workers = min(workers, len(left))
    in_this_process = workers <= 1 and not on
    for identity, result in _here(left, progress) if in_this_process else _on_engine(left, workers, on, progress):
        if store is not None:
            store.save(identity, result)
        yield result


class ProcessEngine:
    """Worker processes of this machine."""

    worker_errors: tuple[type[Exception], ...] = (BrokenProcessPool,)

    def __init__(self, workers: int, tasks_max: int) -> None:
        # Not fork: a fork copies the threads' locks of this process in whatever state they are.
        context = multiprocessing.get_context("spawn")
        # One byte for each task, written by its worker only: a worker that dies leaves no lock behind.
        self._percent = context.RawArray(c_ubyte, max(tasks_max, 1))
        self._pool = ProcessPoolExecutor(workers, context, initializer=_begin_worker, initargs=(self._percent,))
        self._submitted = 0
        self._others = multiprocessing.active_children()

    def submit(self, task: SweepTask, identity: str) -> Future[SweepOutcome]:
        place = self._submitted
        self._submitted += 1
        return self._pool.submit(_run_in_worker, place, task, identity)

    def running_percent(self) -> int:
        return sum(self._percent)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            if process not in self._others:
                process.terminate()


class DaskEngine:
    """A Dask cluster: `dask://HOST:PORT` of its scheduler, or `dask://local`."""

    def __init__(self, address: str, workers: int) -> None:
        try:
            from distributed import Client, KilledWorker, LocalCluster
        except ImportError as error:
            raise _not_installed("dask") from error
        self.worker_errors: tuple[type[Exception], ...] = (KilledWorker, CancelledError)
        self._cluster = None
        if address == LOCAL:
            self._cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
        try:
            self._client = Client(self._cluster or f"tcp://{address}", timeout=CONNECT_TIMEOUT_S)
        except (OSError, ValueError) as error:
            raise ScenarioError("", f"no Dask scheduler answers at {address}: {error}") from error
        self._executor = self._client.get_executor(pure=False)
        self._inputs = _SentInputs(self._send)

    def submit(self, task: SweepTask, identity: str) -> Future[SweepOutcome]:
        names, inputs = self._inputs.references(task)
        found: Future[SweepOutcome] = self._executor.submit(_run_with_inputs, task, identity, names, *inputs)
        return found

    def _send(self, packed: PackedInput) -> object:
        """As the result of a task, which the scheduler repeats if the worker that has the result dies."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")
            return self._client.submit(_unchanged, packed, key=f"mooring-input-{packed.hash}")

    def running_percent(self) -> int:
        return 0

    def close(self) -> None:
        self._executor.shutdown(wait=False)
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


class RayEngine:
    """A Ray cluster: `ray://HOST:PORT` of its client server, `ray://auto` on a machine of it, or `ray://local`."""

    def __init__(self, address: str, workers: int) -> None:
        try:
            import ray
            from ray.exceptions import RayActorError, WorkerCrashedError
        except ImportError as error:
            raise _not_installed("ray") from error
        self._ray = ray
        self.worker_errors: tuple[type[Exception], ...] = (WorkerCrashedError, RayActorError)
        options = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # Ray warns of what it raises next
                if address == LOCAL:
                    os.environ.setdefault(
                        "RAY_USAGE_STATS_ENABLED", "0"
                    )  # Ray reports its use to its authors otherwise
                    ray.init("local", num_cpus=workers, include_dashboard=False, **options)
                else:
                    ray.init(address if address == "auto" else f"ray://{address}", **options)
        except (ConnectionError, TimeoutError, ValueError) as error:
            raise ScenarioError("", f"no Ray cluster answers at {address}: {error}") from error
        self._run = ray.remote(max_retries=WORKER_DEATHS_MAX)(_run_with_inputs)
        self._inputs = _SentInputs(ray.put)

    def submit(self, task: SweepTask, identity: str) -> Future[SweepOutcome]:
        names, inputs = self._inputs.references(task)
        found: Future[SweepOutcome] = self._run.remote(task, identity, names, *inputs).future()
        return found

    def running_percent(self) -> int:
        return 0

    def close(self) -> None:
        self._ray.shutdown()


class _SentInputs:
    """The inputs of a sweep that were sent to an engine, each contents once."""

    def __init__(self, send: Callable[[PackedInput], object]) -> None:
        """`send` returns a reference, such as a future: the engine passes what it stands for to tasks."""
        self._send = send
        self._hash_of: dict[str, str] = {}
        self._reference_of: dict[str, object] = {}
        self._sent_bytes = 0

    def references(self, task: SweepTask) -> tuple[list[str], list[object]]:
        """The names of a task's inputs, and their references. Raises `ScenarioError`."""
        names = task.input_names()
        for name in names:
            if name not in self._hash_of:
                packed = packed_input(name)
                self._hash_of[name] = packed.hash
                if packed.hash not in self._reference_of:
                    self._sent_bytes += len(packed.data)
                    if self._sent_bytes > SENT_BYTES_MAX:
                        text = f"the files of a sweep that workers get may have {SENT_BYTES_MAX >> 20} MiB, compressed"
                        raise ScenarioError(name, text)
                    self._reference_of[packed.hash] = self._send(packed)
        return names, [self._reference_of[self._hash_of[name]] for name in names]


def opened_engine(on: str, workers: int, tasks_max: int) -> SweepEngine:
    """Raises `ScenarioError`."""
    scheme, separator, address = on.partition("://")
    if not on:
        return ProcessEngine(workers, tasks_max)
    if separator and address and scheme == "dask":
        return DaskEngine(address, workers)
    if separator and address and scheme == "ray":
        return RayEngine(address, workers)
    raise ScenarioError("", f"--on {on}: wanted dask://HOST:PORT, ray://HOST:PORT, dask://local or ray://local")


def _here(
    tasks: Sequence[tuple[SweepTask, str]], progress: Callable[[int], None]
) -> Iterator[tuple[str, SimulationResult]]:
    for task, identity in tasks:
        reported = 0

        def report(share: float) -> None:
            nonlocal reported
            progress(int(100 * share) - reported)
            reported = int(100 * share)

        result = task.run(identity, report)
        report(1.0)
        yield identity, result


def _on_engine(
    tasks: Sequence[tuple[SweepTask, str]], workers: int, on: str, progress: Callable[[int], None]
) -> Iterator[tuple[str, SimulationResult]]:
    left = {identity: task for task, identity in tasks}
    deaths = 0
    reported = 0

    def report(running_percent: int) -> None:
        nonlocal reported
        percent = max(100 * (len(tasks) - len(left)), running_percent)
        if percent > reported:
            progress(percent - reported)
            reported = percent

    while left:
        before = 100 * (len(tasks) - len(left))
        engine = opened_engine(on, workers, len(left))
        try:
            identity_of = {engine.submit(task, identity): identity for identity, task in left.items()}
            running = set(identity_of)
            while running:
                done, running = wait(running, PROGRESS_EVERY_S, FIRST_COMPLETED)
                for future in sorted(done, key=list(identity_of).index):
                    result = future.result()
                    if isinstance(result, ScenarioError):
                        raise result
                    del left[identity_of[future]]
                    yield identity_of[future], result
                report(before + engine.running_percent())
        except engine.worker_errors as error:
            deaths += 1
            if deaths >= WORKER_DEATHS_MAX:
                raise ScenarioError("", f"workers died {deaths} times; is there enough memory? {error}") from error
        finally:
            engine.close()


_percent: Array[c_ubyte] | None = None
"""In a worker process: the progress of all tasks of the pool."""


def _begin_worker(percent: Array[c_ubyte]) -> None:
    global _percent
    _percent = percent
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a worker without a traceback
    end_loading()


def _run_in_worker(place: int, task: SweepTask, identity: str) -> SweepOutcome:
    shared = _percent
    assert shared is not None, "the pool has an initializer"

    def report(share: float) -> None:
        shared[place] = int(100 * share)

    result = task.run(identity, report)
    report(1.0)
    return result


def _run_with_inputs(task: SweepTask, identity: str, names: Sequence[str], *inputs: PackedInput) -> SweepOutcome:
    """In a worker of Dask or Ray, which have replaced the references to inputs by the inputs.

    An error of the scenario is returned: what is raised, the engine logs as a failure of the worker.
    """
    try:
        return task.run_with_inputs(identity, dict(zip(names, inputs, strict=True)))
    except ScenarioError as error:
        return error


def _unchanged(packed: PackedInput) -> PackedInput:
    return packed


def _not_installed(extra: str) -> ScenarioError:
    return ScenarioError("", f"--on {extra}:// needs the extra {extra}: pip install 'mooring[{extra}]'")
