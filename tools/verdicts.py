"""Verdicts for recorded scenarios, in the recorded format: verdicts.py SCENARIOS

Reads a file of scenarios (JSON lines, plain or .xz), decides for every pending pod of each as the recording did, and
prints one JSON line for each scenario. Compare with the recorded verdicts to see where we decide otherwise.

The recording leaves nothing to chance: a tie goes to the node whose name comes first, preemption starts at the first
node, and looks at all candidates unless the configuration limits them.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mooring.api.decode import convert, convert_as
from mooring.api.views.pod import Pod
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.arrays import Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.config import SchedulerConfiguration, load_configuration
from mooring.scheduler.config.types import DefaultPreemptionArgs
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.cycle.schedule_pod import TieBreak
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.status import Status

Json = dict[str, Any]


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    for scenario in scenarios(Path(sys.argv[1])):
        print(json.dumps(verdict(scenario)))
    return 0


def scenarios(path: Path) -> Iterator[Json]:
    text = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    for line in text.splitlines():
        if line.strip():
            yield json.loads(line)


def verdict(scenario: Json) -> Json:
    """What we decide in a scenario; a scenario that cannot be read has an error instead of results."""
    try:
        engine = Engine(configuration(scenario["config"]), entropy=AlwaysFirst(seed=0), tie_break=by_name)
        for item in scenario["objects"]:
            engine.put(convert(item))
        pods = [engine.record(convert_as(Pod, item)) for item in scenario["pods"]]
    except ValueError as error:
        return {"id": scenario["id"], "error": str(error)}
    for pod in pods:
        if pod.nominated_node and not pod.terminating:
            engine.columns.nominate(pod, pod.nominated_node)
    return {"id": scenario["id"], "results": [result(engine, pod) for pod in pods]}


def result(engine: Engine, pod: Any) -> Json:
    decision = engine.decide(pod, in_full=True)
    written = written_decision(decision)
    if decision.is_placed:
        status = engine.assume(decision)
        if status is not None:
            written["error"] = "reserve"
    elif decision.preemption is not None:
        engine.nominate(decision)
    elif decision.clears_nomination:
        engine.columns.withdraw(pod)
        pod.nominated_node = ""
    return written


def written_decision(decision: Decision) -> Json:
    written: Json = {
        "pod": decision.pod.key,
        "prefilter": _prefilter(decision),
        "nodes": {name: _refusal(status) for name, status in decision.node_to_status.items()},
        "scores": {name: dict(scores) for name, scores in decision.scores.items()},
        "chosen": decision.node_name,
        "message": decision.message,
        "preemption": None,
    }
    if decision.preemption is not None:
        victims = sorted(victim.key for victim in decision.preemption.victims)
        written["preemption"] = {"nominated": decision.preemption.node_name, "victims": victims}
    if decision.error is not None:
        written["error"] = decision.error
    return written


def _prefilter(decision: Decision) -> Json | None:
    if decision.error in ("nonodes", "skip"):
        return None
    status = decision.status if decision.error not in ("filter", "prescore", "score") else None
    return {
        "code": status.code.value if status is not None else "Success",
        "plugin": status.plugin if status is not None else "",
        "reasons": list(status.reasons) if status is not None else [],
        "nodes": sorted(decision.node_names) if decision.node_names is not None else None,
    }


def _refusal(status: Status | None) -> Json:
    if status is None:
        return {"code": "Success"}
    return {"code": status.code.value, "plugin": status.plugin, "reasons": list(status.reasons)}


def configuration(config: Mapping[str, Any] | None) -> SchedulerConfiguration:
    loaded = load_configuration(config)
    if "minCandidateNodes" in json.dumps(config):
        return loaded
    every_node = DefaultPreemptionArgs(min_candidate_nodes_percentage=100)
    profiles = tuple(
        msgspec.structs.replace(
            profile,
            plugin_config=tuple(
                msgspec.structs.replace(entry, args=every_node) if entry.name == "DefaultPreemption" else entry
                for entry in profile.plugin_config
            ),
        )
        for profile in loaded.profiles
    )
    return msgspec.structs.replace(loaded, profiles=profiles)


class AlwaysFirst(Entropy):
    """Chance, as the recording had it: none."""

    def integer_below(self, limit: int) -> int:
        return 0

    def fork(self, name: str) -> AlwaysFirst:
        return self


def by_name(columns: Columns) -> TieBreak:
    def choose(rows: Sequence[int] | Int64s) -> int:
        return min((int(row) for row in rows), key=columns.node_names.__getitem__)

    return choose


if __name__ == "__main__":
    sys.exit(main())
