"""Which families of addresses a service has, in a cluster that has IPv4 only.

Comes in   a service, and what it was
Goes out   `ipFamilies` and `ipFamilyPolicy` filled in; or a `StatusError`

 1. Nothing is upgraded or downgraded unasked: whoever prefers two families and gets one keeps that one.
 2. A service without address and selector may have both: its endpoints are somebody else's business.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.kinds import SERVICE
from mooring.apiserver.registry.refusals import invalid_kind
from mooring.apiserver.validation.addresses import IPV4, IPV6, family_of
from mooring.apiserver.validation.fields import Fault, invalid
from mooring.apiserver.validation.service_addresses import NO_ADDRESS, SINGLE_STACK, cluster_ips_faults
from mooring.client.errors import InvalidError

CLUSTER_FAMILY = IPV4
REQUIRE_DUAL_STACK = "RequireDualStack"
PREFER_DUAL_STACK = "PreferDualStack"

_POLICY = "spec.ipFamilyPolicy"


def settle_families(service: Document, old: Document | None) -> None:
    spec = service["spec"]
    old_spec = old["spec"] if old is not None else None
    if spec.get("type") == "ExternalName" or (old_spec is not None and _prefers_the_same(spec, old_spec)):
        return
    is_bare = spec.get("clusterIP") == NO_ADDRESS and not spec.get("selector")
    if "ipFamilyPolicy" not in spec:
        spec["ipFamilyPolicy"] = _assumed_policy(old_spec, is_bare)
    _refuse(service, cluster_ips_faults(spec, old_spec))
    faults = _reduction_faults(spec, old_spec) if old_spec is not None else []
    faults += _single_stack_faults(spec)
    faults += _infer_families(spec)
    _refuse(service, faults)
    if is_bare:
        _settle_bare(spec)
        return
    _refuse(service, _unconfigured_faults(spec))
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = [CLUSTER_FAMILY]


def _assumed_policy(old_spec: Document | None, is_bare: bool) -> str:
    if old_spec is not None and "ipFamilyPolicy" in old_spec:
        policy: str = old_spec["ipFamilyPolicy"]
        return policy
    return REQUIRE_DUAL_STACK if is_bare else SINGLE_STACK


def _prefers_the_same(spec: Document, old_spec: Document) -> bool:
    return (
        spec.get("ipFamilyPolicy") == PREFER_DUAL_STACK
        and old_spec.get("ipFamilyPolicy", PREFER_DUAL_STACK) == PREFER_DUAL_STACK
        and spec.get("type") == old_spec.get("type")
        and spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer")
        and all((spec.get(field) or []) == (old_spec.get(field) or []) for field in ("clusterIPs", "ipFamilies"))
    )


def _reduction_faults(spec: Document, old_spec: Document) -> list[Fault]:
    """Giving up the second family is clear when the policy says so; otherwise it is a mistake."""
    policy = spec["ipFamilyPolicy"]
    faults = []
    for field, called in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
        new, old = spec.get(field) or [], old_spec.get(field) or []
        if policy == SINGLE_STACK:
            if new == old and len(new) > 1:
                spec[field] = new[:1]
        elif new and len(new) < len(old):
            faults.append(invalid(_POLICY, policy, f"must be 'SingleStack' to release the secondary {called}"))
    return faults


def _single_stack_faults(spec: Document) -> list[Fault]:
    policy = spec["ipFamilyPolicy"]
    if policy != SINGLE_STACK:
        return []
    return [
        invalid(
            _POLICY, policy, f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {called} are specified"
        )
        for field, called in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families"))
        if len(spec.get(field) or ()) == 2
    ]


def _infer_families(spec: Document) -> list[Fault]:
    """Fill in the families of addresses that were asked for."""
    faults = []
    ips, families = spec.get("clusterIPs") or [], list(spec.get("ipFamilies") or [])
    for index, ip in enumerate(ips):
        if ip == NO_ADDRESS:
            break
        if index < len(families):
            continue
        family = family_of(ip)
        if family == CLUSTER_FAMILY:
            families.append(family)
        else:
            detail = f"{family} is not configured on this cluster"
            faults.append(invalid(f"spec.clusterIPs[{index}]", ips, detail))
    if families:
        spec["ipFamilies"] = families
    return faults


def _settle_bare(spec: Document) -> None:
    families = spec.get("ipFamilies") or [CLUSTER_FAMILY]
    if len(families) < 2 and spec["ipFamilyPolicy"] != SINGLE_STACK:
        families = [*families, IPV6 if families[0] == IPV4 else IPV4]
    spec["ipFamilies"] = families


def _unconfigured_faults(spec: Document) -> list[Fault]:
    policy = spec["ipFamilyPolicy"]
    faults = []
    if policy == REQUIRE_DUAL_STACK:
        faults.append(invalid(_POLICY, policy, "this cluster is not configured for dual-stack services"))
    return faults + [
        invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        for index, family in enumerate(spec.get("ipFamilies") or ())
        if family != CLUSTER_FAMILY
    ]


def _refuse(service: Document, faults: list[Fault]) -> None:
    if faults:
        refusal: InvalidError = invalid_kind(SERVICE, service["metadata"].get("name", ""), faults)
        raise refusal
