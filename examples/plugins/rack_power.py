"""RackPower: a pod goes only where its rack has the power for it, and rather where much would be left.

A meter writes on every node how many watts its rack can still deliver (an annotation); a pod says how many it draws (a
label). A resource of Kubernetes could not do this: what is measured is not the sum of what was requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from mooring.api.views.pod import Pod
from mooring.scheduler.framework.per_node import NodeSituation, PerNodeFilter, PerNodeScore, for_good
from mooring.scheduler.framework.status import Reason

DRAWS = "power.example.com/watts"
SPARE = "power.example.com/spare-watts"
RACK = "topology.example.com/rack"


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What the configuration may say under `args`."""

    reserve_watts: Annotated[int, msgspec.Meta(ge=0)] = 0


class RackPower(PerNodeFilter, PerNodeScore):
    name = "RackPower"
    normalises = True  # watts are not points: the node with most to spare gets 100

    def configure(self, arguments: Mapping[str, object]) -> None:
        self._reserve_watts = msgspec.convert(arguments, Arguments).reserve_watts

    def concerns(self, pod: Pod) -> bool:
        return DRAWS in pod.metadata.labels

    def why_not(self, pod: Pod, node: NodeSituation) -> Reason | None:
        missing_watts = int(pod.metadata.labels[DRAWS]) - self._spare_watts(node)
        if missing_watts <= 0:
            return None
        return for_good(f"node(s) lacked {missing_watts} W on rack {node.labels.get(RACK, '?')}")

    def score_node(self, pod: Pod, node: NodeSituation) -> int:
        return self._spare_watts(node)

    def _spare_watts(self, node: NodeSituation) -> int:
        """Nobody measures a node without the annotation: nothing can be promised there."""
        return int(node.annotations.get(SPARE, "0")) - self._reserve_watts
