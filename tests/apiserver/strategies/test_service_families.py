"""A cluster of one family gives that one, and says so to whoever wants another."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.strategies.service_families import settle_families
from mooring.client.errors import InvalidError

ADDRESS: Document = {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]}
NONE: Document = {"clusterIP": "None", "clusterIPs": ["None"]}
BOTH: Document = {"ipFamilies": ["IPv4", "IPv6"]}


def service(spec: Document) -> Document:
    return {"metadata": {"name": "v"}, "spec": {"type": "ClusterIP", **spec}}


@pytest.mark.parametrize(
    ("spec", "families", "policy"),
    [
        pytest.param({}, ["IPv4"], "SingleStack", id="the usual"),
        pytest.param(ADDRESS, ["IPv4"], "SingleStack", id="a chosen address"),
        pytest.param({"ipFamilyPolicy": "PreferDualStack"}, ["IPv4"], "PreferDualStack", id="two, if there were two"),
        pytest.param(NONE, ["IPv4", "IPv6"], "RequireDualStack", id="no address and no selector"),
        pytest.param({**NONE, "selector": {"a": "b"}}, ["IPv4"], "SingleStack", id="no address but a selector"),
        pytest.param({**NONE, "ipFamilyPolicy": "SingleStack"}, ["IPv4"], "SingleStack", id="no address, one family"),
        pytest.param({**NONE, "ipFamilies": ["IPv6"]}, ["IPv6", "IPv4"], "RequireDualStack", id="the other one first"),
    ],
)
def test_new_services(spec: Document, families: list[str], policy: str) -> None:
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
            id="two families under a policy of one",
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
            id="two families, at any price",
        ),
        pytest.param({"clusterIP": "10.96.0.9"}, "spec.clusterIPs: Required value", id="addresses that disagree"),
    ],
)
def test_what_this_cluster_cannot_do(spec: Document, message: str) -> None:
    with pytest.raises(InvalidError) as caught:
        settle_families(service(spec), None)
    assert caught.value.message == f'Service "v" is invalid: {message}'


def test_a_name_has_no_family() -> None:
    made = service({"type": "ExternalName"})
    settle_families(made, None)
    assert "ipFamilies" not in made["spec"]


def test_an_update_keeps_its_policy_and_nothing_is_upgraded_unasked() -> None:
    old = service({**ADDRESS, "ipFamilies": ["IPv4"], "ipFamilyPolicy": "PreferDualStack"})
    new = service({**ADDRESS, "ipFamilies": ["IPv4"]})
    settle_families(new, old)
    assert new["spec"]["ipFamilyPolicy"] == "PreferDualStack"
    settle_families(new, old)
    assert new["spec"]["ipFamilies"] == ["IPv4"]


def test_giving_up_a_family_must_be_said() -> None:
    old = service({**NONE, **BOTH, "ipFamilyPolicy": "RequireDualStack"})
    with pytest.raises(InvalidError, match="must be 'SingleStack' to release the secondary IP family"):
        settle_families(service({**NONE, "ipFamilies": ["IPv4"]}), old)
    said = service({**NONE, **BOTH, "ipFamilyPolicy": "SingleStack"})
    settle_families(said, old)
    assert said["spec"]["ipFamilies"] == ["IPv4"]
