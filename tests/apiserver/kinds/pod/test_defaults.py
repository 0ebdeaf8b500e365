"""Tests of kinds.pod.defaults."""

from __future__ import annotations

from copy import deepcopy

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.pod.defaults import (
    WithEmptyLabels,
    default_pod,
    default_pod_template,
    note_empty_labels,
    pull_policy,
    round_amounts,
)
from tests.apiserver.pod_builders import pod, with_volume


@pytest.mark.parametrize(
    ("template", "is_noted"),
    [
        pytest.param({}, False, id="no metadata"),
        pytest.param({"metadata": {"name": "x"}}, False, id="no labels"),
        pytest.param({"metadata": {"name": "x", "labels": {}}}, True, id="empty labels"),
        pytest.param({"metadata": {"labels": {"a": "b"}}}, False, id="labels"),
    ],
)
def test_note_empty_labels_marks_templates_with_empty_labels(template: Document, is_noted: bool) -> None:
    note_empty_labels(template)
    metadata = template.get("metadata")
    assert isinstance(metadata, WithEmptyLabels) is is_noted
    if is_noted:
        assert metadata == {"name": "x"}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1", "IfNotPresent"),
        ("nginx@sha256:" + "a" * 64, "IfNotPresent"),
        ("nginx:latest@sha256:" + "a" * 64, "Always"),
        ("host:5000/nginx", "Always"),
        ("host:5000/nginx:1", "IfNotPresent"),
        ("Host/nginx", "Always"),
        ("Nginx", "IfNotPresent"),
        ("", "IfNotPresent"),
        (" nginx", "IfNotPresent"),
        ("a" * 64, "IfNotPresent"),
    ],
)
def test_images_without_a_fixed_tag_are_always_pulled(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


@pytest.mark.parametrize(
    ("container", "field", "value"),
    [
        pytest.param({}, "terminationMessagePath", "/dev/termination-log", id="termination message path"),
        pytest.param({}, "terminationMessagePolicy", "File", id="termination message policy"),
        pytest.param({"ports": [{"containerPort": 1}]}, "ports", [{"containerPort": 1, "protocol": "TCP"}], id="ports"),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            "env",
            [{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
            id="references are of version v1",
        ),
        pytest.param(
            {"readinessProbe": {"httpGet": {"port": 80}}},
            "readinessProbe",
            {
                "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
                "timeoutSeconds": 1,
                "periodSeconds": 10,
                "successThreshold": 1,
                "failureThreshold": 3,
            },
            id="probes",
        ),
        pytest.param(
            {"lifecycle": {"preStop": {"httpGet": {"port": 80}}}},
            "lifecycle",
            {"preStop": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}}},
            id="hooks",
        ),
    ],
)
def test_containers_are_defaulted(container: Document, field: str, value: object) -> None:
    assert pod(container=container)["spec"]["containers"][0][field] == value


def test_round_amounts_rounds_up_to_milli_units() -> None:
    amounts = {"a": "1n", "b": "1500u", "c": "1Gi", "d": "1.5"}
    round_amounts(amounts)
    assert amounts == {"a": "1m", "b": "2m", "c": "1Gi", "d": "1.5"}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        pytest.param({}, {"emptyDir": {}}, id="no source becomes emptyDir"),
        pytest.param({"hostPath": {"path": "/a"}}, {"hostPath": {"path": "/a", "type": ""}}, id="a path on the host"),
        pytest.param(
            {"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}, id="a secret"
        ),
        pytest.param(
            {"configMap": {"name": "c", "defaultMode": 0}}, {"configMap": {"name": "c", "defaultMode": 0}}, id="0"
        ),
        pytest.param(
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "projected": {
                    "sources": [{"serviceAccountToken": {"expirationSeconds": 3600, "path": "t"}}],
                    "defaultMode": 420,
                }
            },
            id="a token for an hour",
        ),
        pytest.param(
            {"image": {"reference": "x"}}, {"image": {"reference": "x", "pullPolicy": "Always"}}, id="an image"
        ),
        pytest.param(
            {"scaleIO": {"gateway": "a", "system": "b", "secretRef": {"name": "s"}}},
            {
                "scaleIO": {
                    "gateway": "a",
                    "system": "b",
                    "secretRef": {"name": "s"},
                    "storageMode": "ThinProvisioned",
                    "fsType": "xfs",
                }
            },
            id="a source with fixed defaults",
        ),
    ],
)
def test_volumes_are_defaulted(source: Document, value: Document) -> None:
    assert with_volume(source)["spec"]["volumes"] == [{"name": "v", **value}]


def test_the_volume_mode_of_ephemeral_claims_defaults_to_filesystem() -> None:
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}
    volume = with_volume({"ephemeral": {"volumeClaimTemplate": template}})["spec"]["volumes"][0]
    assert volume["ephemeral"]["volumeClaimTemplate"]["spec"]["volumeMode"] == "Filesystem"


def test_an_empty_pod_spec_gets_all_defaults() -> None:
    spec = pod()["spec"]
    assert {key: value for key, value in spec.items() if key != "containers"} == {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    }


@pytest.mark.parametrize(
    ("spec", "container", "field", "value"),
    [
        pytest.param(
            {"terminationGracePeriodSeconds": -5}, {}, "terminationGracePeriodSeconds", 1, id="negative grace period"
        ),
        pytest.param(
            {"terminationGracePeriodSeconds": 0}, {}, "terminationGracePeriodSeconds", 0, id="grace period of zero"
        ),
        pytest.param({"serviceAccount": "a"}, {}, "serviceAccountName", "a", id="serviceAccount"),
        pytest.param({"serviceAccountName": "a"}, {}, "serviceAccount", "a", id="serviceAccountName"),
        pytest.param(
            {"serviceAccount": "a", "serviceAccountName": "b"}, {}, "serviceAccount", "b", id="serviceAccountName wins"
        ),
        pytest.param({"overhead": {"cpu": "1n"}}, {}, "overhead", {"cpu": "1m"}, id="amounts are rounded up"),
        pytest.param(
            {"resources": {"limits": {"cpu": "2"}}},
            {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
            "resources",
            {"limits": {"cpu": "2"}, "requests": {"cpu": "1", "memory": "1Gi"}},
            id="requests of a pod with limits are those of its containers",
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": "2"}}},
            {"resources": {"limits": {"cpu": "1", "hugepages-2Mi": "4Mi"}}},
            "resources",
            {"requests": {"cpu": "2", "hugepages-2Mi": "4Mi"}, "limits": {"hugepages-2Mi": "4Mi"}},
            id="huge pages of containers are a limit of the pod",
        ),
    ],
)
def test_pod_specs_are_defaulted_from_other_fields(
    spec: Document, container: Document, field: str, value: object
) -> None:
    assert pod(spec, container)["spec"][field] == value


def test_requests_and_host_ports_are_defaulted_in_pods_but_not_in_templates() -> None:
    container = {"resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 80}]}
    made = pod({"hostNetwork": True}, container)["spec"]["containers"][0]
    assert made["resources"]["requests"] == {"cpu": "1"}
    assert made["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    template: Document = {
        "metadata": {},
        "spec": {"hostNetwork": True, "containers": [{"name": "c", "image": "i", **deepcopy(container)}]},
    }
    template["spec"]["containers"][0]["ports"][0].pop("hostPort", None)
    default_pod_template(template)
    assert "requests" not in template["spec"]["containers"][0]["resources"]
    assert "hostPort" not in template["spec"]["containers"][0]["ports"][0]
    assert "enableServiceLinks" not in template["spec"]


@pytest.mark.parametrize(
    ("status", "address", "addresses"),
    [
        pytest.param({"podIP": "1.1.1.1"}, "1.1.1.1", ["1.1.1.1"], id="one address"),
        pytest.param({"podIPs": [{"ip": "1.1.1.1"}, {"ip": "fe80::1"}]}, "1.1.1.1", ["1.1.1.1", "fe80::1"], id="many"),
        pytest.param({"podIP": "1.1.1.1", "podIPs": [{"ip": "2.2.2.2"}]}, "1.1.1.1", ["1.1.1.1"], id="podIP wins"),
    ],
)
def test_pod_ip_and_pod_ips_are_synchronized(status: Document, address: str, addresses: list[str]) -> None:
    made = pod()
    made["status"] = status
    default_pod(made)
    assert (made["status"]["podIP"], [each["ip"] for each in made["status"]["podIPs"]]) == (address, addresses)


def test_deprecated_annotations_of_init_containers_are_dropped() -> None:
    annotations = {"pod.beta.kubernetes.io/init-containers": "[]"}
    assert "annotations" not in pod(metadata={"annotations": dict(annotations)})["metadata"]
    assert pod(metadata={"annotations": {**annotations, "a": "b"}})["metadata"]["annotations"] == {"a": "b"}


def test_defaulting_twice_changes_nothing() -> None:
    once = pod(
        {"volumes": [{"name": "v"}]}, {"livenessProbe": {"grpc": {"port": 1}}, "resources": {"limits": {"cpu": "1"}}}
    )
    twice = deepcopy(once)
    default_pod(twice)
    assert twice == once
