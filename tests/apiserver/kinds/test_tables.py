"""Table rows of all kinds except pods. kube-apiserver v1.36.4 prints the same rows."""

from __future__ import annotations

import pytest

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.custom.printer_columns import custom_columns
from mooring.apiserver.resources import Resource, built_in_resources
from mooring.apiserver.tables import Cell

NOW_S = 1_000_000.0
MADE = "1970-01-12T13:46:00Z"
EARLIER = "1970-01-12T13:30:00Z"
CONTAINERS = [{"name": "c", "image": "i1"}, {"name": "d", "image": "i2"}]
SELECTOR: Document = {
    "matchLabels": {"z": "1"},
    "matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}],
}
TEMPLATE: Document = {
    "metadata": {"labels": {"z": "1", "a": "x"}},
    "spec": {"containers": CONTAINERS, "nodeSelector": {"b": "1", "a": "2"}},
}
RESOURCES = {resource.kind: resource for resource in built_in_resources()}


def cells(kind: Kind, obj: Document) -> list[Cell]:
    metadata = {"name": "x", "creationTimestamp": MADE, **obj.get("metadata", {})}
    row = RESOURCES[kind].table.row({**obj, "metadata": metadata}, NOW_S)
    assert len(row["cells"]) == len(RESOURCES[kind].table.columns)
    return list(row["cells"])


JOB_SPEC: Document = {"template": TEMPLATE}


@pytest.mark.parametrize(
    ("kind", "obj", "expected"),
    [
        pytest.param(
            kinds.NODE, {}, ["Unknown", "<none>", "40s", "", *["<none>"] * 2, *["<unknown>"] * 3], id="a node"
        ),
        pytest.param(
            kinds.NODE,
            {
                "metadata": {
                    "labels": {
                        "node-role.kubernetes.io/z": "",
                        "node-role.kubernetes.io/a": "x",
                        "kubernetes.io/role": "m",
                    }
                },
                "spec": {"unschedulable": True},
                "status": {
                    "conditions": [{"type": "Ready", "status": "Unknown"}],
                    "addresses": [
                        {"type": "Hostname", "address": "h"},
                        {"type": "InternalIP", "address": "1.2.3.4"},
                        {"type": "InternalIP", "address": "::1"},
                        {"type": "ExternalIP", "address": "5.6.7.8"},
                    ],
                    "nodeInfo": {"kubeletVersion": "v1", "kernelVersion": "6.1", "architecture": "amd64"},
                },
            },
            [
                "NotReady,SchedulingDisabled",
                "a,m,z",
                "40s",
                "v1",
                "1.2.3.4",
                "5.6.7.8",
                "<unknown>",
                "6.1 (amd64)",
                "<unknown>",
            ],
            id="a node with everything",
        ),
        pytest.param(
            kinds.DEPLOYMENT,
            {
                "spec": {"replicas": 4, "selector": SELECTOR, "template": TEMPLATE},
                "status": {"readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 3},
            },
            ["2/4", 1, 3, "40s", "c,d", "i1,i2", "a in (x,y),z=1"],
            id="a deployment",
        ),
        pytest.param(
            kinds.REPLICA_SET,
            {"spec": {"replicas": 4, "selector": SELECTOR, "template": TEMPLATE}, "status": {"replicas": 3}},
            [4, 3, 0, "40s", "c,d", "i1,i2", "a in (x,y),z=1"],
            id="a replica set",
        ),
        pytest.param(
            kinds.REPLICATION_CONTROLLER,
            {"spec": {"replicas": 1, "selector": {"b": "1", "a": "2"}}, "status": {"replicas": 3, "readyReplicas": 2}},
            [1, 3, 2, "40s", "", "", "a=2,b=1"],
            id="a replication controller without a template",
        ),
        pytest.param(
            kinds.STATEFUL_SET,
            {"spec": {"replicas": 4, "template": TEMPLATE}, "status": {"readyReplicas": 2}},
            ["2/4", "40s", "c,d", "i1,i2"],
            id="a stateful set",
        ),
        pytest.param(
            kinds.DAEMON_SET,
            {
                "spec": {"selector": SELECTOR, "template": TEMPLATE},
                "status": {"desiredNumberScheduled": 2, "currentNumberScheduled": 1, "numberReady": 3},
            },
            [2, 1, 3, 0, 0, "a=2,b=1", "40s", "c,d", "i1,i2", "a in (x,y),z=1"],
            id="a daemon set",
        ),
        pytest.param(
            kinds.JOB,
            {"spec": {**JOB_SPEC, "completions": 3}, "status": {"succeeded": 1, "startTime": EARLIER}},
            ["Running", "1/3", "16m", "40s", "c,d", "i1,i2", "<none>"],
            id="a job that runs",
        ),
        pytest.param(
            kinds.JOB,
            {
                "spec": {**JOB_SPEC, "parallelism": 3},
                "status": {
                    "succeeded": 1,
                    "startTime": EARLIER,
                    "completionTime": MADE,
                    "conditions": [{"type": "Complete", "status": "True"}],
                },
            },
            ["Complete", "1/1 of 3", "16m", "40s", "c,d", "i1,i2", "<none>"],
            id="a job that is done",
        ),
        pytest.param(
            kinds.JOB,
            {"metadata": {"deletionTimestamp": MADE}, "spec": {"parallelism": 1}, "status": {}},
            ["Terminating", "0/1", "", "40s", "", "", "<none>"],
            id="a job that is deleted",
        ),
        pytest.param(
            kinds.JOB,
            {"spec": {}, "status": {"conditions": [{"type": "Suspended", "status": "True"}]}},
            ["Suspended", "0/1", "", "40s", "", "", "<none>"],
            id="a job that is suspended",
        ),
        pytest.param(
            kinds.CRON_JOB,
            {
                "spec": {"schedule": "1 * * * *", "suspend": False, "jobTemplate": {"spec": JOB_SPEC}},
                "status": {"active": [{"name": "a"}], "lastScheduleTime": EARLIER},
            },
            ["1 * * * *", "<none>", "False", 1, "16m", "40s", "c,d", "i1,i2", "<none>"],
            id="a cron job",
        ),
        pytest.param(kinds.POD_TEMPLATE, {"template": TEMPLATE}, ["c,d", "i1,i2", "a=x,z=1"], id="a pod template"),
        pytest.param(
            kinds.CONTROLLER_REVISION,
            {
                "metadata": {
                    "ownerReferences": [
                        {"apiVersion": "v1", "kind": "Thing", "name": "t"},
                        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "controller": True},
                    ]
                },
                "revision": 7,
            },
            ["statefulset.apps/s", 7, "40s"],
            id="a controller revision",
        ),
        pytest.param(kinds.CONTROLLER_REVISION, {}, ["<none>", 0, "40s"], id="a controller revision without an owner"),
        pytest.param(
            kinds.POD_DISRUPTION_BUDGET,
            {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 2}},
            ["50%", "N/A", 2, "40s"],
            id="a disruption budget",
        ),
        pytest.param(
            kinds.POD_DISRUPTION_BUDGET, {"spec": {"maxUnavailable": 0}}, ["N/A", "0", 0, "40s"], id="a strict budget"
        ),
        pytest.param(
            kinds.SERVICE,
            {
                "spec": {
                    "type": "ClusterIP",
                    "clusterIPs": ["10.0.0.1"],
                    "ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
                    "selector": {"b": "1", "a": "2"},
                }
            },
            ["ClusterIP", "10.0.0.1", "<none>", "80/TCP,53/UDP", "40s", "a=2,b=1"],
            id="a service",
        ),
        pytest.param(
            kinds.SERVICE,
            {
                "spec": {
                    "type": "NodePort",
                    "clusterIPs": ["10.0.0.1"],
                    "externalIPs": ["1.1.1.1", "2.2.2.2"],
                    "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}],
                }
            },
            ["NodePort", "10.0.0.1", "1.1.1.1,2.2.2.2", "80:30080/TCP", "40s", "<none>"],
            id="a node port service",
        ),
        pytest.param(
            kinds.SERVICE,
            {
                "spec": {"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"], "externalIPs": ["3.3.3.3"]},
                "status": {"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}, {"hostname": "a.very.long.name.example"}]}},
            },
            ["LoadBalancer", "10.0.0.1", "9.9.9.9,a.very.long.name.example,3.3.3.3", "<none>", "40s", "<none>"],
            id="a load balancer service",
        ),
        pytest.param(
            kinds.SERVICE,
            {"spec": {"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"]}},
            ["LoadBalancer", "10.0.0.1", "<pending>", "<none>", "40s", "<none>"],
            id="a service that waits for its balancer",
        ),
        pytest.param(
            kinds.SERVICE,
            {"spec": {"type": "ExternalName", "externalName": "x.y"}},
            ["ExternalName", "<none>", "x.y", "<none>", "40s", "<none>"],
            id="an external name service",
        ),
        pytest.param(kinds.ENDPOINTS, {}, ["<none>", "40s"], id="no endpoints"),
        pytest.param(
            kinds.ENDPOINTS,
            {
                "subsets": [
                    {"addresses": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.2"}], "ports": [{"port": 80}, {"port": 81}]},
                    {"addresses": [{"ip": "fd00::1"}]},
                ]
            },
            ["1.1.1.1:80,1.1.1.2:80,1.1.1.1:81 + 2 more...", "40s"],
            id="many endpoints",
        ),
        pytest.param(
            kinds.ENDPOINTS,
            {"subsets": [{"addresses": [{"ip": "fd00::1"}], "ports": [{"port": 80}]}]},
            ["[fd00::1]:80", "40s"],
            id="an IPv6 endpoint",
        ),
        pytest.param(
            kinds.ENDPOINT_SLICE,
            {
                "addressType": "IPv4",
                "ports": [{"port": 1, "name": "a"}, {"name": "b"}, {}, {"port": 4}],
                "endpoints": [{"addresses": ["1.1.1.1"]}],
            },
            ["IPv4", "1,b,* + 1 more...", "1.1.1.1", "40s"],
            id="an endpoint slice",
        ),
        pytest.param(kinds.ENDPOINT_SLICE, {"addressType": "IPv6"}, ["IPv6", "<unset>", "<unset>", "40s"]),
        pytest.param(
            kinds.PERSISTENT_VOLUME,
            {
                "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "beta"}},
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "claimRef": {"namespace": "a", "name": "b"},
                    "storageClassName": "sc",
                    "volumeMode": "Block",
                },
                "status": {"phase": "Failed", "reason": "why"},
            },
            ["1Gi", "RWO,RWX", "Retain", "Failed", "a/b", "beta", "<unset>", "why", "40s", "Block"],
            id="a volume",
        ),
        pytest.param(
            kinds.PERSISTENT_VOLUME_CLAIM,
            {
                "spec": {"volumeName": "v", "storageClassName": "sc", "volumeAttributesClassName": "gold"},
                "status": {"phase": "Bound", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"]},
            },
            ["Bound", "v", "2Gi", "RWO", "sc", "gold", "40s", "<unset>"],
            id="a bound claim",
        ),
        pytest.param(
            kinds.PERSISTENT_VOLUME_CLAIM,
            {"metadata": {"deletionTimestamp": MADE}, "spec": {}, "status": {"phase": "Pending"}},
            ["Terminating", "", "", "", "", "<unset>", "40s", "<unset>"],
            id="a deleted claim",
        ),
        pytest.param(
            kinds.STORAGE_CLASS, {"provisioner": "p"}, ["p", "Delete", "Immediate", False, "40s"], id="a storage class"
        ),
        pytest.param(
            kinds.CSI_DRIVER,
            {"spec": {"attachRequired": False, "tokenRequests": [{"audience": "a"}, {"audience": ""}]}},
            [False, False, False, "a,", False, "<none>", "40s"],
            id="a driver",
        ),
        pytest.param(kinds.CSI_DRIVER, {}, [True, False, False, "<unset>", False, "<none>", "40s"], id="a bare driver"),
        pytest.param(kinds.CSI_NODE, {"spec": {"drivers": [{"name": "x"}]}}, [1, "40s"], id="a node with a driver"),
        pytest.param(
            kinds.VOLUME_ATTACHMENT,
            {
                "spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "pv"}},
                "status": {"attached": True},
            },
            ["a", "pv", "n", True, "40s"],
            id="an attachment",
        ),
        pytest.param(kinds.VOLUME_ATTRIBUTES_CLASS, {"driverName": "d"}, ["d", "40s"], id="an attributes class"),
        pytest.param(
            kinds.RESOURCE_QUOTA,
            {
                "status": {
                    "hard": {"pods": "10", "limits.cpu": "4", "requests.memory": "1Ti", "limits.memory": "2Ti"},
                    "used": {"pods": "5", "limits.cpu": "500m"},
                }
            },
            ["pods: 5/10, requests.memory: 0/1Ti", "limits.cpu: 500m/4, limits.memory: 0/2Ti", "40s"],
            id="a quota",
        ),
        pytest.param(kinds.CONFIG_MAP, {"data": {"a": ""}, "binaryData": {"b": ""}}, [2, "40s"], id="a config map"),
        pytest.param(kinds.SECRET, {"type": "Opaque", "data": {"a": ""}}, ["Opaque", 1, "40s"], id="a secret"),
        pytest.param(kinds.SERVICE_ACCOUNT, {}, ["40s"], id="a service account"),
        pytest.param(kinds.NAMESPACE, {"status": {"phase": "Active"}}, ["Active", "40s"], id="a namespace"),
        pytest.param(kinds.LEASE, {"spec": {"holderIdentity": "me"}}, ["me", "40s"], id="a lease"),
        pytest.param(kinds.LEASE, {"spec": {}}, ["", "40s"], id="a lease without a holder"),
        pytest.param(
            kinds.PRIORITY_CLASS,
            {"value": -5, "preemptionPolicy": "Never"},
            [-5, False, "40s", "Never"],
            id="a priority class",
        ),
        pytest.param(kinds.RUNTIME_CLASS, {"handler": "h"}, ["h", "40s"], id="a runtime class"),
        pytest.param(
            kinds.ROLE_BINDING,
            {
                "roleRef": {"kind": "ClusterRole", "name": "view"},
                "subjects": [
                    {"kind": "User", "name": "u1"},
                    {"kind": "User", "name": "u2"},
                    {"kind": "Group", "name": "g"},
                    {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
                ],
            },
            ["ClusterRole/view", "40s", "u1, u2", "g", "n/s"],
            id="a role binding",
        ),
        pytest.param(kinds.RESOURCE_CLAIM, {}, ["pending", "40s"], id="a claim without devices"),
        pytest.param(
            kinds.RESOURCE_CLAIM,
            {"status": {"allocation": {}, "reservedFor": [{"name": "p"}]}},
            ["allocated,reserved", "40s"],
            id="a claim in use",
        ),
        pytest.param(
            kinds.RESOURCE_CLAIM, {"metadata": {"deletionTimestamp": MADE}}, ["deleted", "40s"], id="a deleted claim"
        ),
        pytest.param(
            kinds.RESOURCE_SLICE,
            {"spec": {"driver": "d", "pool": {"name": "p"}}},
            ["", "d", "p", "40s"],
            id="a resource slice without a node",
        ),
        pytest.param(kinds.LIMIT_RANGE, {}, [MADE], id="a kind with the default columns"),
        pytest.param(kinds.CUSTOM_RESOURCE_DEFINITION, {}, [MADE], id="a definition"),
    ],
)
def test_table_rows_of_kinds(kind: Kind, obj: Document, expected: list[Cell]) -> None:
    found = cells(kind, obj)
    assert found == ["x", *expected]
    assert [type(cell) for cell in found] == [type(cell) for cell in ["x", *expected]]


def test_the_default_storage_class_is_marked_in_its_row() -> None:
    metadata = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    assert cells(kinds.STORAGE_CLASS, {"metadata": metadata})[0] == "x (default)"


@pytest.mark.parametrize(
    ("kind", "event", "expected"),
    [
        pytest.param(
            kinds.CORE_EVENT,
            {
                "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.c"},
                "reason": "R",
                "message": " hi \n",
                "type": "Normal",
                "firstTimestamp": EARLIER,
                "lastTimestamp": MADE,
                "count": 4,
                "source": {"component": "c", "host": "h"},
            },
            ["40s", "Normal", "R", "pod/p", "spec.c", "c, h", "hi", "16m", 4, "x"],
            id="seen several times",
        ),
        pytest.param(
            kinds.CORE_EVENT,
            {"involvedObject": {"kind": "Pod"}, "reportingComponent": "r", "firstTimestamp": EARLIER},
            ["16m", "", "", "pod", "", "r", "", "16m", 1, "x"],
            id="seen once",
        ),
        pytest.param(
            kinds.EVENT,
            {
                "regarding": {"kind": "Pod", "name": "p"},
                "note": "hi",
                "eventTime": "1970-01-12T13:30:00.000001Z",
                "reportingController": "r",
                "reportingInstance": "i",
                "series": {"count": 7, "lastObservedTime": "1970-01-12T13:46:00.000001Z"},
            },
            ["39s", "", "", "pod/p", "", "r, i", "hi", "16m", 7, "x"],
            id="a series of the newer form",
        ),
    ],
)
def test_table_rows_of_events(kind: Kind, event: Document, expected: list[Cell]) -> None:
    assert cells(kind, event) == expected


NOT_DESCRIBED = (kinds.RUNTIME_CLASS, "Handler")
"""kube-apiserver has no description of this column."""


def test_table_columns_have_the_fields_that_clients_read() -> None:
    for resource in RESOURCES.values():
        for column in resource.table.columns:
            assert list(column) == ["name", "type", "format", "description", "priority"]
            assert column["description"] or (resource.kind, column["name"]) == NOT_DESCRIBED
            assert column["type"] in ("string", "integer", "boolean", "date")
            assert column["priority"] in (0, 1)


def test_an_empty_default_table_has_no_list_of_rows() -> None:
    assert RESOURCES[kinds.LIMIT_RANGE].table.empty_rows is None
    assert RESOURCES[kinds.POD].table.empty_rows == []


def test_a_resource_can_replace_its_table() -> None:
    pods, services = RESOURCES[kinds.POD], RESOURCES[kinds.SERVICE]
    own = Resource(pods.kind, pods.strategy, pods.struct)
    assert own.table.columns == pods.table.columns
    own.table = custom_columns(())
    assert [column["name"] for column in own.table.columns] == ["Name", "Age"]
    assert services.table.columns != own.table.columns
