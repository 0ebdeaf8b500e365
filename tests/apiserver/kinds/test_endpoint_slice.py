"""Tests of kinds.endpoint_slice."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.endpoint_slice import validate_endpoint_slice, validate_endpoint_slice_update
from tests.apiserver.core_documents import messages
from tests.apiserver.workload_builders import body, changed, created, defaulted, updated


def at(*addresses: str, **rest: object) -> list[Document]:
    return [{"addresses": list(addresses), **rest}]


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param({"addressType": ""}, ["addressType: Required value"], id="no address type"),
        pytest.param(
            {"addressType": "X"},
            ['addressType: Unsupported value: "X": supported values: "FQDN", "IPv4", "IPv6"'],
            id="an unknown address type",
        ),
        pytest.param(
            {"endpoints": at()},
            ["endpoints[0].addresses: Required value: must contain at least 1 address"],
            id="no address",
        ),
        pytest.param(
            {"endpoints": at(*(f"10.0.0.{number}" for number in range(101)))},
            ["endpoints[0].addresses: Too many: 101: must have at most 100 items"],
            id="too many addresses",
        ),
        pytest.param(
            {"endpoints": at("2001:db8::1")},
            ['endpoints[0].addresses: Invalid value: "2001:db8::1": must be an IPv4 address'],
            id="the other family",
        ),
        pytest.param(
            {"endpoints": at("127.0.0.1")},
            [
                'endpoints[0].addresses[0]: Invalid value: "127.0.0.1": '
                "may not be in the loopback range (127.0.0.0/8, ::1/128)"
            ],
            id="a loopback address",
        ),
        pytest.param(
            {"addressType": "IPv6", "endpoints": at("2001:DB8::1")},
            ['endpoints[0].addresses[0]: Invalid value: "2001:DB8::1": must be in canonical form ("2001:db8::1")'],
            id="an address in capitals",
        ),
        pytest.param({"addressType": "FQDN", "endpoints": at("example.com.")}, [], id="a name"),
        pytest.param(
            {"addressType": "FQDN", "endpoints": at("example")},
            [
                'endpoints[0].addresses[0]: Invalid value: "example": '
                "should be a domain with at least two segments separated by dots"
            ],
            id="a short name",
        ),
        pytest.param(
            {"endpoints": at("10.0.0.1", hostname="a.b")},
            ['endpoints[0].hostname: Invalid value: "a.b": must not contain dots'],
            id="a bad hostname",
        ),
        pytest.param(
            {"endpoints": at("10.0.0.1", hints={"forZones": [{"name": "a"}, {"name": "a"}]})},
            ['endpoints[0].hints.forZones[1].name: Duplicate value: "a"'],
            id="the same hint twice",
        ),
        pytest.param(
            {"ports": [{"name": "a"}, {"name": "a"}]}, ['ports[1].name: Duplicate value: "a"'], id="the same port twice"
        ),
        pytest.param({"ports": [{}, {}]}, ['ports[1].name: Duplicate value: ""'], id="two ports without a name"),
        pytest.param(
            {"ports": [{"protocol": "X"}]},
            ['ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"'],
            id="an unknown protocol",
        ),
        pytest.param({"ports": [{"port": 70000}]}, [], id="port numbers are not limited"),
    ],
)
def test_endpoint_slices_are_validated(changes: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_endpoint_slice(defaulted(body("EndpointSlice", **changes)), None)) == errors


def test_the_address_type_is_immutable() -> None:
    old = defaulted(body("EndpointSlice", endpoints=[]))
    new = defaulted(body("EndpointSlice", endpoints=[], addressType="IPv6"))
    assert messages(validate_endpoint_slice_update(new, old)) == [
        'addressType: Invalid value: "IPv6": field is immutable'
    ]


def test_endpoints_that_did_not_change_are_not_validated_again() -> None:
    old = defaulted(body("EndpointSlice", endpoints=at("nonsense")))
    new = defaulted(body("EndpointSlice", endpoints=at("nonsense"), ports=[{"port": 1}]))
    assert validate_endpoint_slice_update(new, old) == []


TOPOLOGY = {"deprecatedTopology": {"kubernetes.io/hostname": "node-1", "x": "y"}}


def test_deprecated_topology_is_dropped_on_create() -> None:
    obj = created(body("EndpointSlice", endpoints=[{"addresses": ["10.0.0.1"], **TOPOLOGY}])).obj
    assert obj["endpoints"] == [{"addresses": ["10.0.0.1"], "conditions": {}}]


def test_the_hostname_in_deprecated_topology_becomes_the_node_name() -> None:
    plain = created(body("EndpointSlice")).obj
    old = changed(plain, endpoints=[{**plain["endpoints"][0], **TOPOLOGY}])
    obj = updated(body("EndpointSlice", endpoints=[{"addresses": ["10.0.0.2"], **TOPOLOGY}]), old).obj
    assert obj["endpoints"] == [{"addresses": ["10.0.0.2"], "conditions": {}, "nodeName": "node-1"}]


def test_empty_lists_are_stored_as_null() -> None:
    obj = created(body("EndpointSlice", endpoints=[], ports=[])).obj
    assert (obj["endpoints"], obj["ports"]) == (None, None)


@pytest.mark.parametrize(
    ("changes", "generation"),
    [
        pytest.param({"ports": [{"port": 81}]}, 2, id="ports count"),
        pytest.param({"metadata__labels": {"a": "b"}}, 2, id="labels count"),
        pytest.param({"metadata__annotations": {"a": "b"}}, 1, id="annotations do not"),
    ],
)
def test_updates_of_ports_and_labels_increment_the_generation(changes: dict[str, Any], generation: int) -> None:
    old = created(body("EndpointSlice")).obj
    assert updated(body("EndpointSlice", **changes), old).obj["metadata"]["generation"] == generation


def test_the_address_type_fqdn_has_a_warning() -> None:
    named = body("EndpointSlice", addressType="FQDN", endpoints=[{"addresses": ["example.com"]}])
    assert created(named).warnings == ["spec.addressType: FQDN endpoints are deprecated"]


def test_ports_default_to_an_empty_name_and_tcp() -> None:
    assert defaulted(body("EndpointSlice"))["ports"] == [{"name": "", "protocol": "TCP", "port": 80}]
