"""The view of a node."""

from __future__ import annotations

from mooring.api.decode import convert_as
from mooring.api.views.meta import ObjectMeta
from mooring.api.views.node import AttachedVolume, ContainerImage, Node, NodeCondition, NodeSpec, NodeStatus, Taint


def test_what_is_read_of_a_node() -> None:
    written = {
        "metadata": {"name": "n1"},
        "spec": {
            "unschedulable": True,
            "podCIDR": "10.0.0.0/24",
            "taints": [{"key": "a", "value": "b", "effect": "NoSchedule", "timeAdded": "2024-06-12T22:21:21Z"}],
        },
        "status": {
            "capacity": {"cpu": "4"},
            "allocatable": {"cpu": "3920m", "pods": 110},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2024-06-12T22:21:21Z"}],
            "images": [{"names": ["web:1", "web@sha256:x"], "sizeBytes": 5}, {"names": None}],
            "volumesAttached": [{"name": "kubernetes.io/csi/x", "devicePath": ""}],
            "declaredFeatures": ["A"],
        },
    }
    assert convert_as(Node, written) == Node(
        metadata=ObjectMeta(name="n1"),
        spec=NodeSpec(
            unschedulable=True,
            taints=(Taint(key="a", value="b", effect="NoSchedule", time_added="2024-06-12T22:21:21Z"),),
        ),
        status=NodeStatus(
            capacity={"cpu": "4"},
            allocatable={"cpu": "3920m", "pods": 110},
            conditions=(NodeCondition(type="Ready", status="True", last_heartbeat_time="2024-06-12T22:21:21Z"),),
            images=(ContainerImage(names=("web:1", "web@sha256:x"), size_bytes=5), ContainerImage()),
            volumes_attached=(AttachedVolume(name="kubernetes.io/csi/x"),),
            declared_features=("A",),
        ),
    )
