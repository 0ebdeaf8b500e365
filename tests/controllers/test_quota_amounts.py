"""What services and claims use of a quota."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.decode import convert_as
from mooring.api.views.devices import ResourceClaim
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.controllers.quota_amounts import claim_usage, device_claim_usage, service_usage
from tests.controllers.network_documents import HTTP, service_view
from tests.controllers.storage_documents import claim


@pytest.mark.parametrize(
    ("spec", "node_ports", "load_balancers"),
    [
        pytest.param({}, "0", "0", id="inside only"),
        pytest.param({"type": "NodePort"}, "1", "0", id="a port of each node"),
        pytest.param({"type": "LoadBalancer"}, "1", "1", id="a load balancer"),
        pytest.param(
            {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": [HTTP]},
            "0",
            "1",
            id="without ports",
        ),
    ],
)
def test_a_service_uses(spec: dict[str, Any], node_ports: str, load_balancers: str) -> None:
    found = service_usage(service_view(**spec))
    assert (str(found["services.nodeports"]), str(found["services.loadbalancers"])) == (node_ports, load_balancers)


def test_a_claim_uses_what_it_was_given_if_that_is_more() -> None:
    document = claim(storage="1Gi", status={"allocatedResources": {"storage": "2Gi"}})
    found = claim_usage(convert_as(PersistentVolumeClaim, document))
    assert {name: str(amount) for name, amount in found.items()} == {
        "persistentvolumeclaims": "1",
        "count/persistentvolumeclaims": "1",
        "requests.storage": "2Gi",
        "slow.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "slow.storageclass.storage.k8s.io/requests.storage": "2Gi",
    }


def test_a_claim_of_devices_uses_the_most_that_it_could_get() -> None:
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}},
        {
            "name": "b",
            "firstAvailable": [
                {"name": "x", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
                {"name": "y", "deviceClassName": "tpu", "allocationMode": "All"},
            ],
        },
    ]
    found = device_claim_usage(convert_as(ResourceClaim, {"spec": {"devices": {"requests": requests}}}))
    assert {name: str(amount) for name, amount in found.items()} == {
        "count/resourceclaims.resource.k8s.io": "1",
        "gpu.deviceclass.resource.k8s.io/devices": "3",
        "tpu.deviceclass.resource.k8s.io/devices": "32",
    }
