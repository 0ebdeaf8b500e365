"""A kube-scheduler binary: its configuration, its process, and what it logs about scores.

1. Every node is scored, and preemption looks at every candidate: nothing depends on a sample.
2. The lines of interest are those of `schedule_one.go`: "Plugin scored node for pod", with the weighted score, and
   "Successfully bound pod to node", which follows them. Other files log at verbosity 2, because at 10 the client logs
   every response.
3. The process ends with the `async with` block.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections import defaultdict, deque
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from mooring.api.well_known import DEFAULT_SCHEDULER_NAME
from mooring.cli.errors import input_error
from mooring.kit.clock import Clock
from mooring.kit.tasks import TaskGroup

VERSION_MIN = (1, 30)
VERSION_S_MAX = 30.0
LINES_KEPT = 20
"""The last lines of the log, for the error of a process that ended."""
LINE_BYTES_MAX = 1 << 24
STOP_S_MAX = 10.0
LOG_S_MAX = 10.0
"""How long the line about a binding may take after the binding."""
LOG_CHECK_S = 0.01
CONFIGURATION_FILE = "kube-scheduler.yaml"

CONFIGURATION: dict[str, object] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "percentageOfNodesToScore": 100,
    "profiles": [
        {
            "schedulerName": DEFAULT_SCHEDULER_NAME,
            "pluginConfig": [
                {
                    "name": "DefaultPreemption",
                    "args": {
                        "apiVersion": "kubescheduler.config.k8s.io/v1",
                        "kind": "DefaultPreemptionArgs",
                        "minCandidateNodesPercentage": 100,
                    },
                }
            ],
        }
    ],
}
"""What both schedulers are configured with."""

_SCORED = re.compile(r'"Plugin scored node for pod" pod="([^"]+)" plugin="([^"]+)" node="([^"]+)" score=(-?\d+)')
_BOUND = re.compile(r'"Successfully bound pod to node" pod="([^"]+)" node="([^"]+)".* feasibleNodes=(\d+)')
_VERSION = re.compile(r"v(\d+)\.(\d+)\.\S+")

Scores = dict[str, dict[str, int]]
"""Node -> plugin -> weighted score."""


class BinaryVersion(NamedTuple):
    """The version of a kube-scheduler binary."""

    text: str
    major: int
    minor: int


class KubeSchedulerError(Exception):
    """The binary ended, or made no decision."""


def version_of(binary: str) -> BinaryVersion:
    """Asks the binary. Raises `InputError`."""
    advice = "--kube-scheduler wants a kube-scheduler binary, v1.30 or newer"
    try:
        done = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=VERSION_S_MAX, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise input_error(f"cannot run {binary}: {getattr(error, 'strerror', None) or error}; {advice}") from error
    found = _VERSION.search(done.stdout)
    if done.returncode != 0 or found is None:
        said = (done.stdout or done.stderr).strip().splitlines()
        raise input_error(f"{binary} --version says {said[0] if said else 'nothing'!r}; {advice}")
    version = BinaryVersion(found[0], int(found[1]), int(found[2]))
    if (version.major, version.minor) < VERSION_MIN:
        raise input_error(f"{binary} is {version.text}; {advice}")
    return version


class KubeScheduler:
    """The process, and the scores that it logged."""

    def __init__(self, binary: str, kubeconfig: Path, directory: Path, clock: Clock) -> None:
        self._binary = binary
        self._file = directory / CONFIGURATION_FILE
        connection = {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 1000}
        process = {"clientConnection": connection, "leaderElection": {"leaderElect": False}}
        self._file.write_bytes(msgspec.json.encode({**CONFIGURATION, **process}))  # JSON is YAML
        self._clock = clock
        self._group = TaskGroup("kube-scheduler")
        self._process: asyncio.subprocess.Process | None = None
        self._scores: dict[str, Scores] = defaultdict(lambda: defaultdict(dict))
        self._feasible: dict[str, int] = {}
        self._last_lines: deque[str] = deque(maxlen=LINES_KEPT)

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._process = await asyncio.create_subprocess_exec(
            self._binary,
            f"--config={self._file}",
            "--secure-port=0",
            "-v=2",
            "--vmodule=schedule_one=10",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            limit=LINE_BYTES_MAX,
        )
        self._group.start_background(self._read(self._process), name="log")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        assert process is not None
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(STOP_S_MAX):
                    await process.wait()
            except TimeoutError:
                process.kill()
        await process.wait()
        await self._group.__aexit__(kind, error, trace)

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        async for raw in process.stderr:
            self.take_line(raw.decode("utf-8", "replace"))

    def take_line(self, line: str) -> None:
        """Reads one line of the log."""
        if found := _SCORED.search(line):
            pod, plugin, node, score = found.groups()
            self._scores[pod][node][plugin] = int(score)
        elif found := _BOUND.search(line):
            self._feasible[found[1]] = int(found[3])
        else:
            self._last_lines.append(line.rstrip())

    def check_runs(self) -> None:
        """Raises `KubeSchedulerError` if the process has ended."""
        assert self._process is not None
        if self._process.returncode is not None:
            lines = "\n".join(self._last_lines)
            raise KubeSchedulerError(f"kube-scheduler ended with code {self._process.returncode}:\n{lines}")

    async def scores_of(self, pod: str) -> tuple[int, Scores]:
        """The number of feasible nodes of a bound pod, and the scores. A single feasible node is not scored.

        Raises `KubeSchedulerError` if the log does not have them."""
        deadline_s = self._clock.now_s() + LOG_S_MAX
        while pod not in self._feasible:
            self.check_runs()
            if self._clock.now_s() > deadline_s:
                raise KubeSchedulerError(f"kube-scheduler bound {pod} and did not log it")
            await self._clock.wait(LOG_CHECK_S)
        feasible, scores = self._feasible.pop(pod), self._scores.pop(pod, {})
        if feasible > 1 and len(scores) != feasible:
            raise KubeSchedulerError(
                f"kube-scheduler found {feasible} nodes for {pod} and logged the scores of {len(scores)}: "
                "its log has a format that is unknown here"
            )
        return feasible, {node: dict(of_node) for node, of_node in scores.items()}

    def forget(self, pod: str) -> None:
        self._scores.pop(pod, None)
        self._feasible.pop(pod, None)
