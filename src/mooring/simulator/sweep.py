"""Many simulations: policies and seeds in worker processes, with stored results.

1. A simulation is a pure function of its inputs, so a result does not depend on the worker, on the number of workers,
   or on the order. A simulation whose worker died is run again.
2. The identity of a simulation is a hash of everything that it reads: the scenario without other policies and seeds,
   the contents of its files, and the version of Mooring. A stored result is used only for the same identity.
3. A result is stored when it is there: an interrupted sweep keeps what has finished.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import msgspec

from mooring import __version__
from mooring.simulator.errors import ScenarioError
from mooring.simulator.scenario import Scenario
from mooring.simulator.simulation import SimulationResult, simulate

WORKER_DEATHS_MAX = 3
"""A sweep gives up after this many broken pools of workers."""
RESULTS_FOLDER = "runs"


@dataclass(frozen=True, slots=True)
class SweepTask:
    """One simulation of a sweep."""

    scenario: Scenario
    policy: str
    seed: int

    def identity(self) -> str:
        """A hash of all inputs. Raises `ScenarioError` if a file cannot be read."""
        scenario, part = self.scenario, self.scenario.policies[self.policy]
        own = msgspec.structs.replace(scenario, policies={self.policy: part}, seeds=str(self.seed))
        digest = blake2b(digest_size=16)
        digest.update(__version__.encode())
        digest.update(msgspec.json.encode(own))
        files = [
            *scenario.input_files(),
            part.config or scenario.config,
            *(source for source in (*scenario.plugins, *part.plugins) if source.endswith(".py")),
        ]
        for file in files:
            if file:
                digest.update(_content_hash(Path(file)))
        return digest.hexdigest()


class ResultStore:
    """Results in a folder, one file for each simulation."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / RESULTS_FOLDER

    def load(self, task: SweepTask) -> SimulationResult | None:
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(self._file(task).read_bytes(), type=SimulationResult)
        return None

    def save(self, task: SweepTask, result: SimulationResult) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._file(task)
        unfinished = file.with_suffix(".tmp")
        unfinished.write_bytes(msgspec.json.encode(result))
        unfinished.replace(file)

    def _file(self, task: SweepTask) -> Path:
        return self._folder / f"{task.identity()}.json"


def run_sweep(
    tasks: Sequence[SweepTask],
    workers: int,
    store: ResultStore | None,
    *,
    resumes: bool,
    progress: Callable[[int], None],
) -> Iterator[SimulationResult]:
    """The results as they finish. `progress` is called with hundredths of simulations. Raises `ScenarioError`."""
    left: list[SweepTask] = []
    for task in tasks:
        stored = store.load(task) if store is not None and resumes else None
        if stored is None:
            left.append(task)
            continue
        progress(100)
        yield stored
    for task, result in _one_by_one(left, progress) if min(workers, len(left)) <= 1 else _pooled(left, workers):
        if store is not None:
            store.save(task, result)
        if min(workers, len(left)) > 1:
            progress(100)
        yield result


def _one_by_one(
    tasks: Sequence[SweepTask], progress: Callable[[int], None]
) -> Iterator[tuple[SweepTask, SimulationResult]]:
    for task in tasks:
        reported = 0

        def report(share: float) -> None:
            nonlocal reported
            progress(int(100 * share) - reported)
            reported = int(100 * share)

        result = simulate(task.scenario, task.policy, task.seed, report)
        report(1.0)
        yield task, result


def _pooled(tasks: Sequence[SweepTask], workers: int) -> Iterator[tuple[SweepTask, SimulationResult]]:
    left = list(tasks)
    deaths = 0
    while left:
        # Not fork: a fork copies the threads' locks of this process in whatever state they are.
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(min(workers, len(left)), mp_context=context)
        try:
            for task, result in _finished(pool, left):
                left.remove(task)
                yield task, result
        except BrokenProcessPool:
            deaths += 1
            if deaths >= WORKER_DEATHS_MAX:
                raise ScenarioError("", f"worker processes died {deaths} times; is there enough memory?") from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _finished(pool: ProcessPoolExecutor, tasks: Sequence[SweepTask]) -> Iterator[tuple[SweepTask, SimulationResult]]:
    task_of: dict[Future[SimulationResult], SweepTask] = {
        pool.submit(simulate, task.scenario, task.policy, task.seed): task for task in tasks
    }
    running = set(task_of)
    while running:
        done, running = wait(running, return_when=FIRST_COMPLETED)
        for future in sorted(done, key=lambda each: tasks.index(task_of[each])):
            yield task_of[future], future.result()


def _content_hash(path: Path) -> bytes:
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        digest = blake2b(digest_size=32)
        for file in files:
            if file.is_file():
                digest.update(file.name.encode() + b"\0" + blake2b(file.read_bytes()).digest())
        return digest.digest()
    except OSError as error:
        raise ScenarioError(str(path), f"cannot be read: {error.strerror or error}") from error
