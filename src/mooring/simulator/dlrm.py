"""The Alibaba DLRM trace of 2025: a month of inference services on CPU nodes and on GPU nodes.

    instance_sn,role,app_name,cpu_request,…,gpu_request,…,rdma_request,…,memory_request,…,disk_request,…,
    max_instance_per_node,creation_time,scheduled_time,deletion_time

Columns are found by name. CPU is in cores, memory and disk are in GiB, RDMA in percent of a network card, times in
seconds since the start. An instance without a creation time was there before, and one without a deletion time stays.
The trace lists no nodes.

1. GPUs and shares of network cards are extended resources; nodes must offer them.
2. The application becomes the label `app`, the role (CN or HN) the label `role`, and the largest number of instances of
   an application per node a label, for a plugin: Kubernetes has no field for it.
3. The file is not in order of time; arrivals are.
"""

from __future__ import annotations

from pathlib import Path

from mooring.api.views.pod import Pod
from mooring.simulator.csv_lines import CsvLine, csv_lines
from mooring.simulator.workload import FOREVER_S, Arrival, Arrivals, PodTypes, pod_view

GPU = "nvidia.com/gpu"
RDMA_PERCENT = "mooring.dev/rdma-percent"
MAX_PER_NODE = "mooring.dev/max-per-node"
"""Label: how many pods of the application a node may have."""
ROLES = ("CN", "HN")
COLUMNS = (
    "instance_sn",
    "role",
    "app_name",
    "cpu_request",
    "gpu_request",
    "rdma_request",
    "memory_request",
    "disk_request",
    "max_instance_per_node",
    "creation_time",
    "scheduled_time",
    "deletion_time",
)


def dlrm_workload(path: Path, role_label: str) -> Arrivals:
    """Raises `ScenarioError`. With `role_label`, a pod runs only on nodes whose label of that name is its role."""
    arrivals: list[Arrival] = []
    seen: set[str] = set()
    for line in csv_lines(path, COLUMNS):
        name = line.text("instance_sn").replace("_", "-")
        if name in seen:
            raise line.error(f"{line.text('instance_sn')} is there twice")
        seen.add(name)
        created_s, lifetime_s = _times(line)
        app = line.text("app_name").replace("_", "-")
        arrivals.append(Arrival(created_s, _pod(line, name, app, role_label), lifetime_s, owner=app))
    arrivals.sort(key=lambda arrival: arrival.at_s)
    return Arrivals(arrivals, PodTypes(arrival.pod for arrival in arrivals))


def _times(line: CsvLine) -> tuple[float, float]:
    """When an instance is created, and how long it runs after it was scheduled."""
    created_s, scheduled_s, deleted_s = (
        line.optional_number(column) for column in ("creation_time", "scheduled_time", "deletion_time")
    )
    begin_s = created_s if created_s is not None else 0.0
    placed_s = scheduled_s if scheduled_s is not None else begin_s
    if placed_s < begin_s:
        raise line.error(f"scheduled_time {placed_s:g} is before creation_time {begin_s:g}")
    if deleted_s is not None and deleted_s < placed_s:
        raise line.error(f"deletion_time {deleted_s:g} is before {placed_s:g}, when the instance was scheduled")
    return begin_s, deleted_s - placed_s if deleted_s is not None else FOREVER_S


def _pod(line: CsvLine, name: str, app: str, role_label: str) -> Pod:
    role = line.text("role")
    if role not in ROLES:
        raise line.error(f"role is {role!r}; wanted {' or '.join(ROLES)}")
    most = line.integer("max_instance_per_node", least=-1)
    labels = {"app": app, "role": role}
    if most > 0:
        labels[MAX_PER_NODE] = str(most)
    requests = {
        "cpu": f"{round(1000 * line.number('cpu_request'))}m",
        "memory": f"{round(1024 * line.number('memory_request'))}Mi",
        "ephemeral-storage": f"{round(1024 * line.number('disk_request'))}Mi",
    }
    for resource, column in ((GPU, "gpu_request"), (RDMA_PERCENT, "rdma_request")):
        amount = line.integer(column)
        if amount:
            requests[resource] = str(amount)
    selector = {role_label: role} if role_label else None
    return pod_view(name, requests, labels=labels, owner=app, node_selector=selector)
