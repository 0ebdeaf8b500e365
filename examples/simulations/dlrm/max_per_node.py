"""A node has at most so many pods of an application: max_instance_per_node of the DLRM trace."""

from __future__ import annotations

from mooring.api.views.pod import Pod
from mooring.scheduler.framework.node_plugins import FilterPlugin, NodeInfo, Status

LIMIT = "mooring.dev/max-per-node"


class MaxPerNode(FilterPlugin):
    """Reads the labels `app` and `mooring.dev/max-per-node`."""

    name = "MaxPerNode"

    def applies_to(self, pod: Pod) -> bool:
        return LIMIT in pod.metadata.labels

    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        app = pod.metadata.labels.get("app")
        count = sum(placed.signature.labels.get("app") == app for placed in node_info.pods)
        if count >= int(pod.metadata.labels[LIMIT]):
            return Status.unschedulable("node(s) had enough pods of the application")
        return None
