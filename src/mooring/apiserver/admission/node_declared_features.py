"""NodeDeclaredFeatureValidator: a change of a bound pod needs no feature that its node has not declared.

Input: a changed or resized pod that has a node.
Output: nothing, or 403.

 1. Two changes need a feature of the node: a resize of an init container that is not a sidecar, and a resize of
    pod-level resources.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.kinds import NODE, POD, Kind
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup, refused
from mooring.apiserver.call import Operation
from mooring.apiserver.validation.values import means_the_same

_POD_LEVEL = "InPlacePodLevelResourcesVerticalScaling"
_INIT_CONTAINERS = "InPlacePodVerticalScalingInitContainers"


class NodeDeclaredFeatureValidator(Admission):
    """Compares what a change needs with what the node declares."""

    name = "NodeDeclaredFeatureValidator"

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        return kind is POD and subresource in ("", "resize") and operation is Operation.UPDATE

    async def check(self, attempt: Attempt, lookup: Lookup) -> None:
        pod, old = attempt.obj, attempt.old
        assert pod is not None
        assert old is not None
        node_name = pod["spec"].get("nodeName")
        if not node_name or pod["metadata"].get("generation") == old["metadata"].get("generation"):
            return
        needed = _needed_features(pod["spec"], old["spec"])
        if not needed:
            return
        node = await lookup.get(NODE, "", node_name)
        if node is None:
            raise refused(attempt, f"node {quoted(node_name)} not found")
        declared = (node.get("status") or {}).get("declaredFeatures") or []
        missing = [feature for feature in needed if feature not in declared]
        if missing:
            needs = f"pod update requires features {', '.join(missing)}"
            raise refused(attempt, f"{needs} which are not available on node {quoted(node_name)}")


def _needed_features(spec: Document, old: Document) -> list[str]:
    needed = []
    if not means_the_same(spec.get("resources"), old.get("resources"), "core", "ResourceRequirements"):
        needed.append(_POD_LEVEL)
    pairs = zip(old.get("initContainers") or [], spec.get("initContainers") or [], strict=False)
    if any(
        before.get("restartPolicy") != "Always" and before.get("resources") != after.get("resources")
        for before, after in pairs
    ):
        needed.append(_INIT_CONTAINERS)
    return needed
