"""The addresses of a service agree with each other, and the first one stays."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.service_addresses import (
    balancer_status_faults,
    cluster_ips_faults,
    cluster_ips_update_faults,
    families_update_faults,
)
from tests.apiserver.field_errors import messages

FIRST, OTHER, SIX = "10.96.0.9", "10.96.0.10", "fd00::1"


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param({}, [], id="none yet"),
        pytest.param(
            {"clusterIP": FIRST, "clusterIPs": [FIRST, SIX], "ipFamilies": ["IPv4", "IPv6"]}, [], id="both families"
        ),
        pytest.param({"clusterIP": FIRST}, ["spec.clusterIPs: Required value"], id="no list"),
        pytest.param(
            {"clusterIP": FIRST, "clusterIPs": [OTHER]},
            ['spec.clusterIPs: Invalid value: ["10.96.0.10"]: first value must match `clusterIP`'],
            id="another list",
        ),
        pytest.param(
            {"clusterIPs": [FIRST]},
            ['spec.clusterIPs: Invalid value: ["10.96.0.9"]: must be empty when `clusterIP` is not specified'],
            id="a list only",
        ),
        pytest.param(
            {"clusterIP": "None", "clusterIPs": ["None", FIRST]},
            ['spec.clusterIPs: Invalid value: ["None","10.96.0.9"]: \'None\' must be the first and only value'],
            id="none, and one",
        ),
        pytest.param(
            {"clusterIP": FIRST, "clusterIPs": [FIRST, OTHER]},
            [
                'spec.clusterIPs: Invalid value: ["10.96.0.9","10.96.0.10"]: '
                "may specify no more than one IP for each IP family"
            ],
            id="two of one family",
        ),
        pytest.param(
            {"clusterIP": SIX, "clusterIPs": [SIX], "ipFamilies": ["IPv4"]},
            ['spec.clusterIPs[0]: Invalid value: "fd00::1": expected an IPv4 value as indicated by `ipFamilies[0]`'],
            id="an address of another family",
        ),
        pytest.param(
            {"ipFamilies": ["IPv4", "IPv4", "X"], "ipFamilyPolicy": "Y"},
            [
                'spec.ipFamilies[1]: Duplicate value: "IPv4"',
                'spec.ipFamilies[2]: Unsupported value: "X": supported values: "IPv4", "IPv6"',
                'spec.ipFamilyPolicy: Unsupported value: "Y": supported values: "PreferDualStack", '
                '"RequireDualStack", "SingleStack"',
            ],
            id="families that nobody knows",
        ),
        pytest.param({"type": "ExternalName", "clusterIP": "x"}, [], id="names have no addresses to judge"),
    ],
)
def test_addresses(spec: Document, faults: list[str]) -> None:
    assert messages(cluster_ips_faults(spec, None)) == faults


def test_an_address_that_was_there_may_stay() -> None:
    spec = {"clusterIP": "010.96.0.9", "clusterIPs": ["010.96.0.9"]}
    assert len(cluster_ips_faults(spec, None)) == 1
    assert cluster_ips_faults(spec, spec) == []


@pytest.mark.parametrize(
    ("new", "old", "details"),
    [
        pytest.param([FIRST], [FIRST], [], id="nothing changed"),
        pytest.param([OTHER], [FIRST], ["may not change once set"], id="another address"),
        pytest.param([], [FIRST], ["primary clusterIP can not be unset"], id="no address any more"),
        pytest.param([FIRST, SIX], [FIRST], [], id="a second one comes"),
        pytest.param([OTHER, SIX], [FIRST], ["may not change once set"], id="a second one, and another first"),
        pytest.param(
            [FIRST],
            [FIRST, SIX],
            ["must be set to 'SingleStack' when releasing the secondary clusterIP"],
            id="a second one goes",
        ),
        pytest.param(["None"], ["None"], [], id="still none"),
    ],
)
def test_addresses_stay(new: list[str], old: list[str], details: list[str]) -> None:
    faults = cluster_ips_update_faults({"clusterIPs": new}, {"clusterIPs": old})
    assert [fault.detail for fault in faults] == details
    assert cluster_ips_update_faults({"clusterIPs": new, "type": "ExternalName"}, {"clusterIPs": old}) == []


@pytest.mark.parametrize(
    ("new", "old", "details"),
    [
        pytest.param(["IPv4"], ["IPv4"], [], id="nothing changed"),
        pytest.param(["IPv6"], ["IPv4"], ["may not change once set"], id="another family"),
        pytest.param(["IPv4", "IPv6"], ["IPv4"], [], id="a second one comes"),
        pytest.param(
            ["IPv4"],
            ["IPv4", "IPv6"],
            ["must be set to 'SingleStack' when releasing the secondary ipFamily"],
            id="a second one goes",
        ),
    ],
)
def test_families_stay(new: list[str], old: list[str], details: list[str]) -> None:
    faults = families_update_faults({"ipFamilies": new, "clusterIPs": [FIRST]}, {"ipFamilies": old})
    assert [fault.detail for fault in faults] == details


@pytest.mark.parametrize(
    ("kind", "ingress", "faults"),
    [
        pytest.param("LoadBalancer", {"ip": "1.2.3.4", "ipMode": "Proxy"}, [], id="an address"),
        pytest.param("LoadBalancer", {"hostname": "a.b"}, [], id="a name"),
        pytest.param(
            "ClusterIP",
            {"hostname": "a.b"},
            ["status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"],
            id="a balancer of a service without one",
        ),
        pytest.param(
            "LoadBalancer",
            {"ip": "1.2.3.4"},
            ["status.loadBalancer.ingress[0].ipMode: Required value: must be specified when `ip` is set"],
            id="an address without a mode",
        ),
        pytest.param(
            "LoadBalancer",
            {"hostname": "1.2.3.4", "ipMode": "VIP"},
            [
                "status.loadBalancer.ingress[0].ipMode: Forbidden: may not be specified when `ip` is not set",
                'status.loadBalancer.ingress[0].hostname: Invalid value: "1.2.3.4": must be a DNS name, '
                "not an IP address",
            ],
            id="a name that is an address",
        ),
    ],
)
def test_balancers(kind: str, ingress: Document, faults: list[str]) -> None:
    service = {"spec": {"type": kind}, "status": {"loadBalancer": {"ingress": [ingress]}}}
    assert messages(balancer_status_faults(service, {"status": {}})) == faults
