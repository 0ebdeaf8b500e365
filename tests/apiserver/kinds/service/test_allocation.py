"""Tests of kinds.service.allocation."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import SERVICE
from mooring.apiserver.kinds.service.allocation import ServiceAllocator, settle_families
from mooring.client.errors import InvalidError, ServerError
from mooring.kit.entropy import Entropy
from tests.apiserver.core_documents import document

ADDRESS: Document = {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]}
NONE: Document = {"clusterIP": "None", "clusterIPs": ["None"]}
BOTH: Document = {"ipFamilies": ["IPv4", "IPv6"]}


def service(spec: Document) -> Document:
    return {"metadata": {"name": "v"}, "spec": {"type": "ClusterIP", **spec}}


@pytest.mark.parametrize(
    ("spec", "families", "policy"),
    [
        pytest.param({}, ["IPv4"], "SingleStack", id="default"),
        pytest.param(ADDRESS, ["IPv4"], "SingleStack", id="a chosen address"),
        pytest.param({"ipFamilyPolicy": "PreferDualStack"}, ["IPv4"], "PreferDualStack", id="PreferDualStack"),
        pytest.param(NONE, ["IPv4", "IPv6"], "RequireDualStack", id="no address and no selector"),
        pytest.param({**NONE, "selector": {"a": "b"}}, ["IPv4"], "SingleStack", id="no address but a selector"),
        pytest.param({**NONE, "ipFamilyPolicy": "SingleStack"}, ["IPv4"], "SingleStack", id="no address, one family"),
        pytest.param({**NONE, "ipFamilies": ["IPv6"]}, ["IPv6", "IPv4"], "RequireDualStack", id="IPv6 first"),
    ],
)
def test_settle_families_of_new_services(spec: Document, families: list[str], policy: str) -> None:
    made = service(spec)
    settle_families(made, None)
    assert (made["spec"]["ipFamilies"], made["spec"]["ipFamilyPolicy"]) == (families, policy)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"ipFamilies": ["IPv6"]},
            'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster',
            id="the other family",
        ),
        pytest.param(
            BOTH,
            "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' "
            "when multiple IP families are specified",
            id="two families with SingleStack",
        ),
        pytest.param(
            {"clusterIP": "fd00::1", "clusterIPs": ["fd00::1"]},
            'spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster',
            id="an address of the other family",
        ),
        pytest.param(
            {"ipFamilyPolicy": "RequireDualStack"},
            'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack '
            "services",
            id="RequireDualStack",
        ),
        pytest.param({"clusterIP": "10.96.0.9"}, "spec.clusterIPs: Required value", id="clusterIP without clusterIPs"),
    ],
)
def test_settle_families_rejects_families_that_are_not_configured(spec: Document, message: str) -> None:
    with pytest.raises(InvalidError) as caught:
        settle_families(service(spec), None)
    assert caught.value.message == f'Service "v" is invalid: {message}'


def test_external_name_services_have_no_families() -> None:
    made = service({"type": "ExternalName"})
    settle_families(made, None)
    assert "ipFamilies" not in made["spec"]


def test_an_update_without_a_policy_keeps_policy_and_families() -> None:
    old = service({**ADDRESS, "ipFamilies": ["IPv4"], "ipFamilyPolicy": "PreferDualStack"})
    new = service({**ADDRESS, "ipFamilies": ["IPv4"]})
    settle_families(new, old)
    assert new["spec"]["ipFamilyPolicy"] == "PreferDualStack"
    settle_families(new, old)
    assert new["spec"]["ipFamilies"] == ["IPv4"]


def test_releasing_a_family_requires_the_single_stack_policy() -> None:
    old = service({**NONE, **BOTH, "ipFamilyPolicy": "RequireDualStack"})
    with pytest.raises(InvalidError, match="must be 'SingleStack' to release the secondary IP family"):
        settle_families(service({**NONE, "ipFamilies": ["IPv4"]}), old)
    single_stack = service({**NONE, **BOTH, "ipFamilyPolicy": "SingleStack"})
    settle_families(single_stack, old)
    assert single_stack["spec"]["ipFamilies"] == ["IPv4"]


TCP = {"name": "a", "port": 53}
UDP = {"name": "b", "port": 53, "protocol": "UDP"}


def new_service(**spec: object) -> Document:
    return document(SERVICE, spec={"ports": [{"port": 80}], **spec})


def allocator(*services: Document) -> ServiceAllocator:
    return ServiceAllocator(services, Entropy(1))


def stored(known: ServiceAllocator, made: Document) -> Document:
    """A service with a reservation that is kept."""
    reservation = known.reserve(made, None)
    reservation.keep()
    reservation.close()
    return made


def node_ports(made: Document) -> list[int]:
    return [port.get("nodePort", 0) for port in made["spec"]["ports"]]


def test_a_new_service_gets_an_address_and_ports() -> None:
    made = stored(allocator(), new_service(type="LoadBalancer", externalTrafficPolicy="Local"))
    spec = made["spec"]
    assert spec["clusterIP"].startswith("10.96.")
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert all(30_000 <= port <= 32_767 for port in (*node_ports(made), spec["healthCheckNodePort"]))
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"type": "ExternalName", "externalName": "a"}, id="ExternalName"),
        pytest.param({"clusterIP": "None"}, id="headless"),
    ],
)
def test_external_name_and_headless_services_get_no_address(spec: Document) -> None:
    made = stored(allocator(), new_service(**spec))
    assert made["spec"].get("clusterIP", "None") == "None"
    assert node_ports(made) == [0]


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        pytest.param(
            {"clusterIP": "10.96.0.9"},
            'spec.clusterIPs: Invalid value: ["10.96.0.9"]: failed to allocate IP 10.96.0.9: '
            "provided IP is already allocated",
            id="an address that is taken",
        ),
        pytest.param(
            {"clusterIP": "192.0.2.1"},
            'spec.clusterIPs: Invalid value: ["192.0.2.1"]: failed to allocate IP 192.0.2.1: '
            "the provided network does not match the current range",
            id="an address out of range",
        ),
        pytest.param(
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30009}]},
            "spec.ports[0].nodePort: Invalid value: 30009: provided port is already allocated",
            id="a port that is taken",
        ),
        pytest.param(
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]},
            "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. "
            "The range of valid ports is 30000-32767",
            id="a port out of range",
        ),
    ],
)
def test_addresses_and_ports_that_are_taken_or_out_of_range_are_rejected(spec: Document, error: str) -> None:
    taken = new_service(clusterIP="10.96.0.9", type="NodePort", ports=[{"port": 80, "nodePort": 30009}])
    known = allocator()
    stored(known, taken)
    for each in (known, allocator(taken)):
        with pytest.raises(InvalidError) as caught:
            each.reserve(new_service(**spec), None)
        assert caught.value.message == f'Service "v" is invalid: {error}'


def test_a_taken_health_check_node_port_is_an_internal_error() -> None:
    known = allocator(new_service(type="NodePort", ports=[{"port": 80, "nodePort": 30009}]))
    service = new_service(type="LoadBalancer", externalTrafficPolicy="Local", healthCheckNodePort=30009)
    with pytest.raises(ServerError) as caught:
        known.reserve(service, None)
    assert caught.value.message == (
        "Internal error occurred: failed to allocate requested HealthCheck NodePort 30009: "
        "provided port is already allocated"
    )


def test_only_the_kubernetes_service_gets_the_first_address() -> None:
    known = allocator()
    with pytest.raises(InvalidError, match="provided IP is already allocated"):
        known.reserve(new_service(clusterIP="10.96.0.1"), None)
    own = document(
        SERVICE,
        {"namespace": "default", "name": "kubernetes"},
        spec={"ports": [{"port": 443}], "clusterIP": "10.96.0.1"},
    )
    assert stored(known, own)["spec"]["clusterIPs"] == ["10.96.0.1"]


def test_no_address_is_allocated_for_a_service_without_a_name() -> None:
    nameless = document(SERVICE, {"name": ""}, spec={"ports": [{"port": 80}], "clusterIP": "10.96.0.9"})
    known = allocator()
    with pytest.raises(InvalidError) as caught:
        known.reserve(nameless, None)
    assert caught.value.message == (
        'Service "" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.9"]: failed to allocate IP 10.96.0.9: '
        'IPAddress.networking.k8s.io "10.96.0.9" is invalid: spec.parentRef.name: Required value'
    )
    stored(known, new_service(clusterIP="10.96.0.9"))
    del nameless["spec"]["clusterIP"]
    del nameless["spec"]["clusterIPs"]
    with pytest.raises(InvalidError, match=r"Invalid value: \[\"\"\]: failed to allocate IP: IPAddress"):
        known.reserve(nameless, None)


def test_a_reservation_that_is_not_kept_is_released() -> None:
    known = allocator()
    spec: Document = {"clusterIP": "10.96.0.9", "type": "NodePort", "ports": [{"port": 80, "nodePort": 30009}]}
    known.reserve(new_service(**spec), None).close()
    with pytest.raises(InvalidError):
        known.reserve(new_service(**{**spec, "ports": [{"port": 80, "nodePort": 80}]}), None)
    made = stored(known, new_service(**spec))
    known.release(made)
    stored(known, new_service(**spec))


@pytest.mark.parametrize(
    ("ports", "is_shared"),
    [
        pytest.param([TCP, UDP], True, id="the same port"),
        pytest.param([TCP, {**UDP, "nodePort": 30009}], True, id="one requested node port"),
        pytest.param([{**TCP, "nodePort": 30008}, {**UDP, "nodePort": 30009}], False, id="two requested node ports"),
        pytest.param([TCP, {**UDP, "port": 54}], False, id="different ports"),
    ],
)
def test_protocols_share_a_node_port(ports: list[Document], is_shared: bool) -> None:
    first, second = node_ports(stored(allocator(), new_service(type="NodePort", ports=ports)))
    assert (first == second) is is_shared


def test_load_balancers_can_disable_node_ports() -> None:
    made = stored(allocator(), new_service(type="LoadBalancer", allocateLoadBalancerNodePorts=False))
    assert node_ports(made) == [0]


def test_a_change_of_the_type_allocates_and_releases_addresses() -> None:
    known = allocator()
    old = stored(
        known,
        new_service(type="NodePort", ports=[{"port": 80, "nodePort": 30009}], clusterIP="10.96.0.9"),
    )
    name = new_service(type="ExternalName", externalName="a")
    known.reserve(name, old).close()
    with pytest.raises(InvalidError):
        known.reserve(new_service(clusterIP="10.96.0.9"), None)
    reservation = known.reserve(name, old)
    reservation.keep()
    reservation.close()
    stored(
        known,
        new_service(type="NodePort", ports=[{"port": 80, "nodePort": 30009}], clusterIP="10.96.0.9"),
    )
    back = new_service()
    known.reserve(back, name).keep()
    assert back["spec"]["clusterIP"].startswith("10.96.")


def test_an_update_keeps_its_ports_and_allocates_requested_ports() -> None:
    known = allocator()
    old = stored(known, new_service(type="NodePort"))
    same = new_service(type="NodePort")
    known.reserve(same, old).keep()
    assert same["spec"] == old["spec"]
    moved = new_service(type="NodePort", ports=[{"port": 80, "nodePort": 30009}])
    known.reserve(moved, same).keep()
    assert not known.ports.is_taken(node_ports(old)[0])
    assert known.ports.is_taken(30009)
    ports = [{"name": "a", "port": 1, "nodePort": 30007}, {"name": "b", "port": 2, "nodePort": 30007}]
    with pytest.raises(ServerError, match=r"duplicate nodePort: \{TCP 30007\}"):
        known.reserve(new_service(type="NodePort", ports=ports), moved)
    assert not known.ports.is_taken(30007)


def test_a_dry_run_allocates_nothing() -> None:
    known = allocator()
    made = new_service(type="LoadBalancer", externalTrafficPolicy="Local", ports=[TCP, {**UDP, "port": 54}])
    reservation = known.reserve(made, None, is_dry_run=True)
    reservation.keep()
    reservation.close()
    assert made["spec"]["clusterIP"] == "10.96.0.0"
    assert (node_ports(made), made["spec"]["healthCheckNodePort"]) == ([32769, 32770], 32771)
    known.reserve(
        new_service(type="NodePort", ports=[{"port": 80, "nodePort": 80}]),
        None,
        is_dry_run=True,
    ).close()
    with pytest.raises(InvalidError, match="is not in the valid range"):
        known.reserve(new_service(clusterIP="192.0.2.1"), None, is_dry_run=True)
