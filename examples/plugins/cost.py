"""What a plugin costs: the time of one decision with and without it, on many nodes.

    python examples/plugins/cost.py [NODES]

"Known" pods are of a kind that was decided about before, as the replicas of a Deployment are; "new" ones are each of a
kind of their own. Every pod is placed before the next one is decided about. Times are medians.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping
from pathlib import Path

from mooring.api.decode import convert_as
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from mooring.scheduler.catalogue import default_registry
from mooring.scheduler.config import load_configuration
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.loading import enabled_if_unmentioned, load_plugins

HERE = Path(__file__).parent
NODES_DEFAULT = 5000
PODS = 60
RULES = {
    "without a rule": None,
    "for one node at a time": "rack_power.py",
    "for all nodes at once": "rack_power_columns.py",
}


def main(arguments: list[str]) -> None:
    node_count = int(arguments[0]) if arguments else NODES_DEFAULT
    print(f"{node_count} nodes{'known, ms':>32}{'new, ms':>12}")
    for rule, file in RULES.items():
        known_s, new_s = (decision_s(node_count, file, is_known=is_known) for is_known in (True, False))
        print(f"{rule:<30}{1000 * known_s:>13.2f}{1000 * new_s:>12.2f}")


def decision_s(node_count: int, file: str | None, *, is_known: bool) -> float:
    """The median time of a decision."""
    engine = engine_with(file)
    for number in range(node_count):
        engine.put(convert_as(Node, node(number)))
    clock, times_s = SystemClock(), []
    for number in range(PODS):
        record = engine.record(convert_as(Pod, pod(number, "any" if is_known else str(number))))
        started_s = clock.now_s()
        decision = engine.decide(record)
        times_s.append(clock.now_s() - started_s)
        engine.assume(decision)
    return statistics.median(times_s)


def engine_with(file: str | None) -> Engine:
    plugins = load_plugins(HERE / file) if file is not None else []
    registry = default_registry()
    for plugin in plugins:
        registry.register(plugin)
    configuration = enabled_if_unmentioned(load_configuration(None), [plugin.name for plugin in plugins])
    return Engine(configuration, entropy=Entropy(1), registry=registry)


def node(number: int) -> Mapping[str, object]:
    name = f"node-{number}"
    return {
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "topology.example.com/rack": f"rack-{number // 20}"},
            "annotations": {"power.example.com/spare-watts": str(100 + number // 20)},
        },
        "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
    }


def pod(number: int, kind: str) -> Mapping[str, object]:
    return {
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "default",
            "labels": {"kind": kind, "power.example.com/watts": "100"},
        },
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]},
    }


if __name__ == "__main__":
    main(sys.argv[1:])
