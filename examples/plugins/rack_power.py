"""RackPower: rejects nodes whose rack lacks the power for a pod, and prefers racks with much power to spare.

A meter annotates every node with the watts that its rack can still deliver. A pod's label says how many watts it draws.
An extended resource cannot express this: the measured power is not the sum of the requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from mooring.api.views.pod import Pod
from mooring.scheduler.framework.node_plugins import FilterPlugin, NodeInfo, ScorePlugin, Status

DRAWS = "power.example.com/watts"
SPARE = "power.example.com/spare-watts"
RACK = "topology.example.com/rack"


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The plugin's `args` in the configuration."""

    reserve_watts: Annotated[int, msgspec.Meta(ge=0)] = 0


class RackPower(FilterPlugin, ScorePlugin):
    name = "RackPower"
    normalizes = True  # scores are watts: the node with most to spare gets 100

    def configure(self, arguments: Mapping[str, object]) -> None:
        self._reserve_watts = msgspec.convert(arguments, Arguments).reserve_watts

    def applies_to(self, pod: Pod) -> bool:
        return DRAWS in pod.metadata.labels

    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        missing_watts = int(pod.metadata.labels[DRAWS]) - self._spare_watts(node_info)
        if missing_watts <= 0:
            return None
        return Status.unresolvable(f"node(s) lacked {missing_watts} W on rack {node_info.labels.get(RACK, '?')}")

    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        return self._spare_watts(node_info)

    def _spare_watts(self, node_info: NodeInfo) -> int:
        """A node without the annotation is not measured, and has no power to spare."""
        return int(node_info.annotations.get(SPARE, "0")) - self._reserve_watts
