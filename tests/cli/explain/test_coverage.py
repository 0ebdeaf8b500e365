"""What is not judged when kinds are missing from the input."""

from __future__ import annotations

import io
import json

import pytest
import yaml

from mooring.cli.explain.report import Report, as_data
from mooring.cli.explain.run import ExplainRequest, run_explain
from mooring.cli.explain.text import as_lines
from mooring.cli.terminal import Terminal
from mooring.kit.clock import VirtualClock

NODES = """
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {zone: a}}, status: {allocatable: {cpu: 4, pods: 9}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {zone: a}}, status: {allocatable: {cpu: 4, pods: 9}}}
"""
CLAIMED = """{apiVersion: v1, kind: Pod, metadata: {name: p, uid: u},
  spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}"""
BOUND = """{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, uid: c,
  annotations: {pv.kubernetes.io/bind-completed: "yes"}}, spec: {storageClassName: s, volumeName: v}}"""
UNBOUND = """{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, uid: c},
  spec: {storageClassName: s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"""
NO_CLASS = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, uid: c}, spec: {storageClassName: ''}}"
LATE = """{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: s}, provisioner: csi.example,
  volumeBindingMode: WaitForFirstConsumer}"""
LOCAL = LATE.replace("csi.example", "kubernetes.io/no-provisioner")
IMMEDIATE = LATE.replace("WaitForFirstConsumer", "Immediate")
VOLUME = """{apiVersion: v1, kind: PersistentVolume, metadata: {name: v},
  spec: {csi: {driver: csi.example, volumeHandle: h}, claimRef: {namespace: default, name: c, uid: c}}}"""
DRIVER = (
    "{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: csi.example}, spec: {storageCapacity: true}}"
)
DEVICES = """{apiVersion: v1, kind: Pod, metadata: {name: p, uid: u},
  spec: {resourceClaims: [{name: r, resourceClaimName: d}]}}"""
FROM_TEMPLATE = DEVICES.replace(", uid: u", "").replace("resourceClaimName: d", "resourceClaimTemplateName: t")
DEVICE_CLAIM = """{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: d, uid: d},
  spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 1}}]}}}"""
DEVICE_CLASS = "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}}"
SELECTING = """{apiVersion: v1, kind: Pod, metadata: {name: p, uid: u}, spec: {affinity: {podAntiAffinity:
  {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {},
  namespaceSelector: {matchLabels: {team: a}}}]}}}}"""
BY_NAME = SELECTING.replace("team: a", "kubernetes.io/metadata.name: default")
OTHER = SELECTING.replace("name: p", "name: q").replace("spec: {", "spec: {nodeName: n1, ")
RANKED = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {priorityClassName: high}}"
ADMITTED = RANKED.replace("spec: {", "spec: {priority: 5, ")
EXTENDED = """{apiVersion: v1, kind: Pod, metadata: {name: p},
  spec: {containers: [{resources: {limits: {example.com/gpu: 1}}}]}}"""
VICTIM = """{apiVersion: v1, kind: Pod, metadata: {name: old, uid: o},
  spec: {nodeName: n1, priority: 0, containers: [{resources: {requests: {cpu: 4}}}]}, status: {phase: Running}}"""
URGENT = """{apiVersion: v1, kind: Pod, metadata: {name: p},
  spec: {priority: 9, nodeSelector: {kubernetes.io/hostname: n1}, containers: [{resources: {requests: {cpu: 3}}}]}}"""
OWNED = """{apiVersion: v1, kind: Pod, metadata: {name: p, uid: u, labels: {app: w},
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}]}}"""
EMPTY = {
    "CSIDriver": "storage.k8s.io/v1",
    "CSINode": "storage.k8s.io/v1",
    "CSIStorageCapacity": "storage.k8s.io/v1",
    "DeviceClass": "resource.k8s.io/v1",
    "Namespace": "v1",
    "PersistentVolume": "v1",
    "PersistentVolumeClaim": "v1",
    "PodDisruptionBudget": "policy/v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "ReplicaSet": "apps/v1",
    "ResourceClaim": "resource.k8s.io/v1",
    "ResourceClaimTemplate": "resource.k8s.io/v1",
    "ResourceSlice": "resource.k8s.io/v1",
    "Service": "v1",
    "StorageClass": "storage.k8s.io/v1",
    "VolumeAttachment": "storage.k8s.io/v1",
}


def explained(*objects: str, empty: str = "") -> Report:
    """What is decided about pod p; `empty` are kinds of which the input holds an empty list."""
    lists = [f"{{apiVersion: {EMPTY[kind]}, kind: {kind}List, items: []}}" for kind in empty.split()]
    text = "\n---\n".join([NODES, *objects, *lists])
    request = ExplainRequest(files=("-",), pods=("p",))
    return run_explain(request, io.BytesIO(text.encode()), lambda note: None, VirtualClock())


STORAGE = (
    "PersistentVolumeClaim StorageClass PersistentVolume CSIDriver CSIStorageCapacity CSINode VolumeAttachment Service"
)
CASES = [
    pytest.param([CLAIMED], "Service", ["PersistentVolumeClaim"], "placed", id="claims"),
    pytest.param([CLAIMED], "PersistentVolumeClaim", [], "unschedulable", id="no such claim"),
    pytest.param([CLAIMED, BOUND], "Service", ["PersistentVolume"], "placed", id="the volume of a bound claim"),
    pytest.param([CLAIMED, BOUND], "PersistentVolume", [], "unschedulable", id="no such volume"),
    pytest.param([CLAIMED, BOUND, VOLUME], "Service", ["CSINode"], "placed", id="limits of nodes"),
    pytest.param([CLAIMED, BOUND, VOLUME], "Service CSINode", ["VolumeAttachment"], "placed", id="attachments"),
    pytest.param([CLAIMED, BOUND, VOLUME], "Service CSINode VolumeAttachment", [], "placed", id="a bound claim"),
    pytest.param([CLAIMED, UNBOUND], "Service", ["StorageClass"], "placed", id="the class of an unbound claim"),
    pytest.param([CLAIMED, NO_CLASS], "Service", [], "unschedulable", id="a claim without class"),
    pytest.param([CLAIMED, UNBOUND, IMMEDIATE], "", [], "unschedulable", id="immediate binding needs no volumes"),
    pytest.param([CLAIMED, UNBOUND, LOCAL], "Service", ["PersistentVolume"], "placed", id="volumes for late binding"),
    pytest.param([CLAIMED, UNBOUND, LOCAL], "PersistentVolume", [], "unschedulable", id="no volumes for late binding"),
    pytest.param(
        [CLAIMED, UNBOUND, LATE], "Service PersistentVolume", ["CSIDriver", "CSINode"], "placed", id="the driver"
    ),
    pytest.param(
        [CLAIMED, UNBOUND, LATE, DRIVER],
        "Service PersistentVolume CSINode VolumeAttachment",
        ["CSIStorageCapacity"],
        "placed",
        id="the capacity of a driver that publishes it",
    ),
    pytest.param([CLAIMED, UNBOUND, LATE, DRIVER], STORAGE, [], "unschedulable", id="no capacity"),
    pytest.param([DEVICES], "Service", ["ResourceClaim"], "placed", id="device claims"),
    pytest.param([DEVICES], "ResourceClaim", [], "gated", id="no such device claim"),
    pytest.param([DEVICES, DEVICE_CLAIM], "Service", ["DeviceClass"], "placed", id="classes of devices"),
    pytest.param([DEVICES, DEVICE_CLAIM, DEVICE_CLASS], "Service", ["ResourceSlice"], "placed", id="devices"),
    pytest.param([DEVICES, DEVICE_CLAIM, DEVICE_CLASS], "ResourceSlice", [], "unschedulable", id="no devices"),
    pytest.param([FROM_TEMPLATE], "", ["ResourceClaimTemplate"], "placed", id="templates of device claims"),
    pytest.param([FROM_TEMPLATE], "ResourceClaimTemplate", [], "gated", id="no such template"),
    pytest.param([EXTENDED], "", ["DeviceClass"], "unschedulable", id="a resource that no node offers"),
    pytest.param([EXTENDED], "DeviceClass", [], "unschedulable", id="a resource that nothing offers"),
    pytest.param([SELECTING], "Service", ["Namespace"], "placed", id="namespaceSelector"),
    pytest.param([SELECTING], "Service Namespace", [], "placed", id="namespaceSelector and namespaces"),
    pytest.param([BY_NAME], "Service", [], "placed", id="namespaceSelector by name"),
    pytest.param([ADMITTED, OTHER], "", ["Namespace"], "placed", id="namespaceSelector of another pod"),
    pytest.param([RANKED], "", ["PriorityClass"], "placed", id="priority"),
    pytest.param([RANKED], "PriorityClass", [], "placed", id="no such priority class"),
    pytest.param([ADMITTED], "", [], "placed", id="an admitted priority"),
    pytest.param(
        [NODES.replace("{zone: a}", "{kubernetes.io/hostname: n1}").split("---")[0], VICTIM, URGENT],
        "",
        ["PodDisruptionBudget"],
        "unschedulable",
        id="budgets of victims",
    ),
    pytest.param([OWNED], "", ["Service", "ReplicaSet"], "placed", id="default spreading"),
    pytest.param([OWNED], "Service ReplicaSet", [], "placed", id="nothing to spread by"),
]


@pytest.mark.parametrize(("objects", "empty", "kinds", "outcome"), CASES)
def test_what_is_not_judged(objects: list[str], empty: str, kinds: list[str], outcome: str) -> None:
    (pod,) = explained(*objects, empty=empty).pods
    assert ([entry.kind for entry in pod.not_judged], pod.outcome.value) == (kinds, outcome)


def test_every_format_says_it_before_the_conclusion() -> None:
    report = explained(CLAIMED, empty="Service")
    sentence = "the input holds no PersistentVolumeClaims: its volumes were not judged"
    assert [*as_lines(report, Terminal(80))][:2] == ["default/p may go to n2", f"  {sentence}"]
    (pod,) = json.loads(json.dumps(as_data(report)))["pods"]
    assert list(pod).index("notJudged") < list(pod).index("node")
    assert pod["notJudged"] == [
        {
            "kind": "PersistentVolumeClaim",
            "plugins": ["VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"],
            "reason": "the input holds no PersistentVolumeClaims",
            "consequence": "its volumes were not judged",
        }
    ]
    assert yaml.safe_load(yaml.safe_dump(as_data(report)))["pods"][0]["notJudged"] == pod["notJudged"]
