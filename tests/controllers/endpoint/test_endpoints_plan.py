"""Subsets of the older endpoints."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.views.pod import Pod
from mooring.controllers.endpoint.endpoints_plan import are_subsets_same, plan_subsets, truncated
from tests.controllers.network_documents import HTTP, backend_view, service_view

ADMIN: Document = {"name": "admin", "port": 81, "targetPort": "admin", "protocol": "TCP"}


def with_admin(name: str, address: str, port: int) -> Pod:
    ports = [{"name": "admin", "containerPort": port, "protocol": "TCP"}]
    return backend_view(name, address, containers=[{"name": "c", "ports": ports}])


def addresses(subset: Document, field: str = "addresses") -> list[str]:
    return [each["ip"] for each in subset.get(field, [])]


def test_addresses_with_the_same_ports_are_one_subset() -> None:
    pods = [with_admin("a", "10.1.0.1", 9000), with_admin("b", "10.1.0.2", 9000), with_admin("c", "10.1.0.3", 9001)]
    subsets = plan_subsets(service_view(ports=[HTTP, ADMIN]), pods)
    found = sorted((addresses(subset), [port["port"] for port in subset["ports"]]) for subset in subsets)
    assert found == [
        (["10.1.0.1", "10.1.0.2"], [9000]),
        (["10.1.0.1", "10.1.0.2", "10.1.0.3"], [8080]),
        (["10.1.0.3"], [9001]),
    ]


def test_a_headless_service_without_ports_has_addresses_alone() -> None:
    (subset,) = plan_subsets(service_view(clusterIP="None", ports=[]), [backend_view("a")])
    assert subset == {
        "addresses": [
            {
                "ip": "10.1.0.1",
                "nodeName": "n1",
                "targetRef": {"kind": "Pod", "namespace": "default", "name": "a", "uid": "uid-a"},
            }
        ]
    }


def test_pods_that_go_are_left_out_unless_the_service_does_not_mind() -> None:
    going = [backend_view("a", going=True)]
    assert plan_subsets(service_view(), going) == []
    assert len(plan_subsets(service_view(publishNotReadyAddresses=True), going)) == 1


def test_too_many_addresses_are_cut_down_ready_ones_first() -> None:
    ready = [{"ip": f"r{number}"} for number in range(900)]
    unready = [{"ip": f"u{number}"} for number in range(300)]
    cut = truncated([{"addresses": ready, "notReadyAddresses": unready}])
    assert cut is not None
    assert (len(cut[0]["addresses"]), len(cut[0]["notReadyAddresses"])) == (900, 100)
    cut = truncated([{"addresses": ready}, {"addresses": ready, "notReadyAddresses": unready}])
    assert cut is not None
    assert [len(addresses(subset)) for subset in cut] == [500, 500]
    assert addresses(cut[1], "notReadyAddresses") == []
    assert truncated([{"addresses": ready}]) is None


def test_order_and_versions_of_pods_do_not_count() -> None:
    one: Document = {"ip": "1", "targetRef": {"name": "a", "resourceVersion": "7"}}
    other: Document = {"ip": "1", "targetRef": {"name": "a"}}
    ports = [{"port": 1}, {"port": 2}]
    assert are_subsets_same([{"addresses": [one], "ports": ports}], [{"addresses": [other], "ports": ports[::-1]}])
    assert not are_subsets_same([{"addresses": [one]}], [{"notReadyAddresses": [other]}])
