"""Defaults of pods and templates."""

from __future__ import annotations

from copy import deepcopy

import pytest

from mooring.api.document import Document
from mooring.apiserver.defaults.pod import default_pod, default_pod_template
from tests.apiserver.pod_builders import pod


def test_a_pod_gets_what_nobody_said() -> None:
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
            {"terminationGracePeriodSeconds": -5}, {}, "terminationGracePeriodSeconds", 1, id="less than no time"
        ),
        pytest.param({"terminationGracePeriodSeconds": 0}, {}, "terminationGracePeriodSeconds", 0, id="no time"),
        pytest.param({"serviceAccount": "a"}, {}, "serviceAccountName", "a", id="the old name of the account"),
        pytest.param({"serviceAccountName": "a"}, {}, "serviceAccount", "a", id="the new name of the account"),
        pytest.param(
            {"serviceAccount": "a", "serviceAccountName": "b"}, {}, "serviceAccount", "b", id="the new one wins"
        ),
        pytest.param({"overhead": {"cpu": "1n"}}, {}, "overhead", {"cpu": "1m"}, id="amounts are rounded up"),
        pytest.param(
            {"resources": {"limits": {"cpu": "2"}}},
            {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
            "resources",
            {"limits": {"cpu": "2"}, "requests": {"cpu": "1", "memory": "1Gi"}},
            id="a pod that limits itself requests what its containers do",
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
def test_pods(spec: Document, container: Document, field: str, value: object) -> None:
    assert pod(spec, container)["spec"][field] == value


def test_limits_are_requests_and_ports_are_the_hosts_in_a_pod_only() -> None:
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
        pytest.param(
            {"podIP": "1.1.1.1", "podIPs": [{"ip": "2.2.2.2"}]}, "1.1.1.1", ["1.1.1.1"], id="the one is believed"
        ),
    ],
)
def test_addresses(status: Document, address: str, addresses: list[str]) -> None:
    made = pod()
    made["status"] = status
    default_pod(made)
    assert (made["status"]["podIP"], [each["ip"] for each in made["status"]["podIPs"]]) == (address, addresses)


def test_annotations_of_old_init_containers_go() -> None:
    annotations = {"pod.beta.kubernetes.io/init-containers": "[]"}
    assert "annotations" not in pod(metadata={"annotations": dict(annotations)})["metadata"]
    assert pod(metadata={"annotations": {**annotations, "a": "b"}})["metadata"]["annotations"] == {"a": "b"}


def test_defaults_twice_are_defaults_once() -> None:
    once = pod(
        {"volumes": [{"name": "v"}]}, {"livenessProbe": {"grpc": {"port": 1}}, "resources": {"limits": {"cpu": "1"}}}
    )
    twice = deepcopy(once)
    default_pod(twice)
    assert twice == once
