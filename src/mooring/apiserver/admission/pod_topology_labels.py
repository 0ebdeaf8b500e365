"""PodTopologyLabels: a pod gets the zone and region of its node as labels.

Input: bindings, and new pods that name their node. Output: the same, with the labels of the node, which replace those
of the pod.

 1. A node that does not exist is not an error: pods may be bound to it.
"""

from __future__ import annotations

from mooring.api.kinds import NODE, POD, Kind
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup, own_part
from mooring.apiserver.call import Operation

_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


class PodTopologyLabels(Admission):
    """Copies the zone and region labels of the node to the pod."""

    name = "PodTopologyLabels"

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        return kind is POD and subresource in ("", "binding") and operation is Operation.CREATE

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        assert attempt.obj is not None
        if attempt.call.subresource:
            target = attempt.obj.get("target") or {}
            node_name = target.get("name") if target.get("kind") == "Node" else None
        else:
            node_name = attempt.obj["spec"].get("nodeName")
        labels = await lookup.labels(NODE, "", node_name) if node_name else None
        if not labels:
            return
        copied = {key: labels[key] for key in _LABELS if key in labels}
        if copied:
            own_part(attempt.obj["metadata"], "labels").update(copied)
