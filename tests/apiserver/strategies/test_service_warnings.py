"""What is odd about a service is told, and what it will ignore."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import SERVICE
from mooring.apiserver.strategies.service_warnings import service_warnings
from tests.apiserver.core_documents import document


@pytest.mark.parametrize(
    ("spec", "warnings"),
    [
        pytest.param({}, [], id="nothing odd"),
        pytest.param(
            {
                "clusterIP": "None",
                "externalIPs": ["1.2.3.4"],
                "loadBalancerIP": "1.2.3.4",
                "sessionAffinity": "ClientIP",
            },
            [
                "spec.loadBalancerIP is ignored for headless services",
                "spec.externalIPs is ignored for headless services",
                "spec.SessionAffinity is ignored for headless services",
            ],
            id="no address, and much about it",
        ),
        pytest.param(
            {"externalIPs": ["1.2.3.4"]},
            ["spec.externalIPs is deprecated and may no longer be implemented in some clusters"],
            id="addresses outside",
        ),
        pytest.param(
            {"type": "ExternalName", "externalName": "a", "externalIPs": ["1.2.3.4"]},
            ['spec.externalIPs is ignored when spec.type is "ExternalName"'],
            id="a name with addresses",
        ),
        pytest.param(
            {"externalName": "a"},
            ['spec.externalName is ignored when spec.type is not "ExternalName"'],
            id="a spare name",
        ),
        pytest.param(
            {"trafficDistribution": "PreferClose"},
            ['spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'],
            id="an old word for the same zone",
        ),
        pytest.param(
            {"clusterIP": "fd00::A", "clusterIPs": ["fd00::A"], "loadBalancerSourceRanges": ["FD00::/8"]},
            [
                'spec.clusterIPs[0]: IPv6 address "fd00::A" should be in RFC 5952 canonical format ("fd00::a")',
                'spec.loadBalancerSourceRanges[0]: IPv6 CIDR value "FD00::/8" should be in RFC 5952 canonical format '
                '("fd00::/8")',
            ],
            id="capitals",
        ),
    ],
)
def test_warnings(spec: Document, warnings: list[str]) -> None:
    assert service_warnings(document(SERVICE, spec=spec)) == warnings


def test_an_old_annotation_is_told() -> None:
    metadata = {"annotations": {"service.kubernetes.io/topology-aware-hints": "auto"}}
    assert service_warnings(document(SERVICE, metadata)) == [
        "annotation service.kubernetes.io/topology-aware-hints is deprecated, "
        "please use service.kubernetes.io/topology-mode instead"
    ]
