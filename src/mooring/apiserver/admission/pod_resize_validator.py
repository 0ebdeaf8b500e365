"""PodResizeValidator: a pod is not made larger than its node.

Input: a resized pod that has a node.
Output: nothing, or 403 with the reason as a cause.
"""

from __future__ import annotations

from mooring.api.decode import convert_as
from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.kinds import NODE, POD, Kind
from mooring.api.quantity import ZERO
from mooring.api.resources import CPU, FOR_NODES, MEMORY, amounts, pod_requests
from mooring.api.views.pod import Pod
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup, refused
from mooring.apiserver.call import Operation
from mooring.client.errors import StatusCause

_SYSTEM_LABEL = "kubernetes.io/os"


class PodResizeValidator(Admission):
    """Compares a resized pod with its node."""

    name = "PodResizeValidator"

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        return kind is POD and subresource == "resize" and operation is Operation.UPDATE

    async def check(self, attempt: Attempt, lookup: Lookup) -> None:
        pod, old = attempt.obj, attempt.old
        assert pod is not None
        assert old is not None
        node_name = pod["spec"].get("nodeName")
        if not node_name or pod["metadata"].get("generation") == old["metadata"].get("generation"):
            return
        node = await lookup.get(NODE, "", node_name)
        if node is None:
            raise refused(attempt, f"node {quoted(node_name)} not found")
        system = (node["metadata"].get("labels") or {}).get(_SYSTEM_LABEL, "linux")
        if system != "linux":
            why = f"pod resize is only supported on linux nodes, node {quoted(node_name)} is {quoted(system)}"
            raise refused(attempt, why, [StatusCause("UnsupportedPlatform", "", "")])
        shortages = _shortages(pod, node)
        if shortages:
            why = f"node didn't have enough allocatable resources: {'; '.join(shortages)}"
            raise refused(attempt, why, [StatusCause("NodeCapacity", "", "")])


def _shortages(pod: Document, node: Document) -> list[str]:
    requests = pod_requests(convert_as(Pod, pod), FOR_NODES)
    allocatable = amounts((node.get("status") or {}).get("allocatable"))
    shortages = []
    asked, given = requests.get(CPU, ZERO), allocatable.get(CPU, ZERO)
    if asked > given:
        shortages.append(f"cpu, requested: {asked.milli_value()}, allocatable: {given.milli_value()}")
    asked, given = requests.get(MEMORY, ZERO), allocatable.get(MEMORY, ZERO)
    if asked > given:
        shortages.append(f"memory, requested: {asked.value()}, allocatable: {given.value()}")
    return shortages
