"""What is counted, and what services use."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import CONFIG_MAP, DEPLOYMENT, SERVICE, Kind
from mooring.apiserver.admission.quota_measures import Measure, ServiceMeasure, matches_value
from mooring.apiserver.call import Operation
from tests.apiserver.admission.builders import Known, attempt, named, wait


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(DEPLOYMENT, {"count/deployments.apps": "1"}), (CONFIG_MAP, {"count/configmaps": "1", "configmaps": "1"})],
    ids=str,
)
def test_objects_are_counted_under_all_their_names(kind: Kind, expected: dict[str, str]) -> None:
    measure, obj = Measure(kind), named("x")
    used = wait(measure.usage(obj, attempt(kind, obj), Known()))
    assert {name: str(amount) for name, amount in used.items()} == expected
    assert sorted(wait(measure.counted([*expected, "pods"], Known()))) == sorted(expected)
    assert measure.handles("", Operation.CREATE)
    assert not measure.handles("", Operation.UPDATE)


@pytest.mark.parametrize(
    ("spec", "node_ports", "load_balancers"),
    [
        pytest.param({"type": "ClusterIP"}, "0", "0", id="inside"),
        pytest.param({"type": "NodePort"}, "2", "0", id="on every node"),
        pytest.param({"type": "LoadBalancer"}, "2", "1", id="balanced"),
        pytest.param(
            {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}, "1", "1", id="balanced, few ports"
        ),
    ],
)
def test_services(spec: dict[str, Any], node_ports: str, load_balancers: str) -> None:
    obj = named("s", spec={**spec, "ports": [{"port": 1, "nodePort": 30000}, {"port": 2}]})
    used = wait(ServiceMeasure(SERVICE).usage(obj, attempt(SERVICE, obj), Known()))
    assert {name: str(amount) for name, amount in used.items()} == {
        "count/services": "1",
        "services": "1",
        "services.nodeports": node_ports,
        "services.loadbalancers": load_balancers,
    }


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("In", "a", True),
        ("In", "b", False),
        ("In", "", False),
        ("NotIn", "a", False),
        ("NotIn", "b", True),
        ("NotIn", "", True),
        ("Exists", "b", True),
        ("Exists", "", False),
        ("DoesNotExist", "b", False),
        ("DoesNotExist", "", True),
    ],
)
def test_scopes_with_values(operator: str, value: str, expected: bool) -> None:
    assert matches_value({"operator": operator, "values": ["a"]}, value) is expected
