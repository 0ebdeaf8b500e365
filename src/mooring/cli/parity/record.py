"""Recordings: what a kube-scheduler binary decided, in the format that `tests/golden` replays.

Input: each compared pod, with the objects that both schedulers saw. Output: NAME.scenarios.jsonl.xz and
NAME.verdicts.jsonl.xz, line by line.

1. Each pod is a scenario of its own, so that a replay does not depend on the binary's random choices for earlier pods.
2. A binary does not tell everything: rejections are known as a message only, and a single feasible node has no scores.
   `recorded` in a result names the fields that a replay compares.
3. Of several best nodes, `chosen` is the one whose name comes first, as in the other recordings; the binary chooses at
   random.
4. Each verdict names the version of the binary.
"""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec

from mooring.api.document import Document
from mooring.cli.errors import input_error
from mooring.cli.parity.compare import TOTAL, Observed
from mooring.cli.parity.kube_scheduler import CONFIGURATION, BinaryVersion

_encode = msgspec.json.Encoder().encode


class VerdictRecorder:
    """Writes a recording, inside of a `with`. What was written before an interruption can be replayed."""

    def __init__(self, name: str, version: BinaryVersion) -> None:
        self._name = name
        self._version = version
        self._stack = ExitStack()
        self._count = 0

    def __enter__(self) -> Self:
        try:
            self._scenarios = self._open("scenarios")
            self._verdicts = self._open("verdicts")
        except OSError as error:
            self._stack.close()
            raise input_error(f"--record {self._name}: cannot write {error.filename}: {error.strerror}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def add(self, seed: int | None, objects: Sequence[Document], pod: Document, key: str, observed: Observed) -> None:
        """One pod, and the objects before it was created."""
        self._count += 1
        head = {"id": f"{Path(self._name).name}-{self._count:06}"}
        scenario = {**head, "seed": seed, "config": CONFIGURATION, "objects": objects, "pods": [pod]}
        verdict = {**head, "version": self._version.text, "results": [result_of(key, observed)]}
        self._scenarios.write(_encode(scenario) + b"\n")
        self._verdicts.write(_encode(verdict) + b"\n")

    def _open(self, what: str) -> IO[bytes]:
        return self._stack.enter_context(lzma.open(f"{self._name}.{what}.jsonl.xz", "wb"))


def result_of(key: str, observed: Observed) -> Document:
    """What the binary did with a pod."""
    recorded = ["chosen", "message", "preemption"]
    result: Document = {
        "pod": key,
        "chosen": _first_of_best(observed) or None,
        "message": observed.message or None,
        "preemption": None,
    }
    if observed.feasible > 1:
        recorded.append("scores")
        result["scores"] = {
            node: {**scores, TOTAL: sum(scores.values())} for node, scores in sorted(observed.scores.items())
        }
    if observed.nominated:
        result["preemption"] = {"nominated": observed.nominated, "victims": list(observed.victims)}
    return {**result, "recorded": recorded}


def _first_of_best(observed: Observed) -> str:
    totals = {node: sum(scores.values()) for node, scores in observed.scores.items()}
    if observed.node not in totals or totals[observed.node] < max(totals.values()):
        return observed.node
    return min(node for node, total in totals.items() if total == totals[observed.node])
