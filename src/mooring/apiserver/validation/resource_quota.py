"""What is wrong with a ResourceQuota."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.document import Document
from mooring.api.resource_names import HUGE_PAGES_PREFIX
from mooring.apiserver.validation.fields import Fault, invalid, required
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.resources import (
    QUOTA_HUGE_PAGES_PREFIX,
    STANDARD_RESOURCES,
    resource_name_faults,
    resource_quantity_faults,
)
from mooring.apiserver.validation.values import internal_value

_POD_RESOURCES = frozenset({"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
_CLAIM_RESOURCES = frozenset({"persistentvolumeclaims", "requests.storage"})
_RESOURCES_BY_SCOPE = {
    "Terminating": _POD_RESOURCES,
    "NotTerminating": _POD_RESOURCES,
    "BestEffort": frozenset({"pods"}),
    "NotBestEffort": _POD_RESOURCES,
    "PriorityClass": _POD_RESOURCES,
    "CrossNamespacePodAffinity": _POD_RESOURCES,
    "VolumeAttributesClass": _CLAIM_RESOURCES,
}
_CONFLICTING_SCOPES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_PLAIN_SCOPES = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_PLAIN_SCOPE_WANTS_EXISTS = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


def quota_spec_faults(spec: Document, path: str) -> list[Fault]:
    hard = spec.get("hard") or {}
    faults = amounts_faults(hard, f"{path}.hard")
    if spec.get("scopes"):
        faults += _scopes_faults(spec["scopes"], hard, f"{path}.scopes")
    if "scopeSelector" in spec:
        faults += _selector_faults(spec, hard, f"{path}.scopeSelector.matchExpressions")
    return faults


def quota_status_faults(status: Document) -> list[Fault]:
    faults = amounts_faults(status.get("hard") or {}, "status.hard")
    return faults + amounts_faults(status.get("used") or {}, "status.used")


def scopes_update_faults(spec: Document, old: Document) -> list[Fault]:
    scopes = spec.get("scopes")
    if set(scopes or ()) == set(old.get("scopes") or ()):
        return []
    return [invalid("spec.scopes", scopes, IMMUTABLE)]


def amounts_faults(amounts: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    for name, text in amounts.items():
        here = f"{path}[{name}]"
        faults += resource_name_faults(name, here)
        if "/" not in name and not _is_standard_quota_resource(name):
            faults.append(invalid(here, name, "must be a standard resource for quota"))
        faults += resource_quantity_faults(name, text, here)
    return faults


def _is_standard_quota_resource(name: str) -> bool:
    if name.startswith((HUGE_PAGES_PREFIX, QUOTA_HUGE_PAGES_PREFIX)):
        return True
    # Storage is a resource of volumes; a quota counts what is requested of it.
    return name in STANDARD_RESOURCES and name != "storage"


def _scopes_faults(scopes: list[str], hard: Document, path: str) -> list[Fault]:
    faults = []
    for scope in scopes:
        if scope not in _RESOURCES_BY_SCOPE:
            faults.append(invalid(path, scopes, "unsupported scope"))
        faults += [invalid(path, scopes, "unsupported scope applied to resource")] * _misfits(scope, hard)
    faults += [invalid(path, scopes, "conflicting scopes")] * _conflicts(scopes)
    return faults


def _selector_faults(spec: Document, hard: Document, path: str) -> list[Fault]:
    requirements = spec["scopeSelector"].get("matchExpressions") or ()
    selector = internal_value(spec["scopeSelector"], "ScopeSelector")
    faults: list[Fault] = []
    for requirement in requirements:
        scope = requirement.get("scopeName", "")
        if scope not in _RESOURCES_BY_SCOPE:
            faults.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        faults += [invalid(path, selector, "unsupported scope applied to resource")] * _misfits(scope, hard)
        faults += _requirement_faults(requirement, scope, path)
    scopes = [requirement.get("scopeName", "") for requirement in requirements]
    faults += [invalid(path, spec.get("scopes"), "conflicting scopes")] * _conflicts(scopes)
    return faults


def _requirement_faults(requirement: Document, scope: str, path: str) -> list[Fault]:
    faults = []
    operator, values = requirement.get("operator", ""), requirement.get("values")
    if scope in _PLAIN_SCOPES and operator != "Exists":
        faults.append(invalid(f"{path}.operator", operator, _PLAIN_SCOPE_WANTS_EXISTS))
    match operator:
        case "In" | "NotIn":
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                faults.append(required(f"{path}.values", detail))
        case "Exists" | "DoesNotExist":
            if values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                faults.append(invalid(f"{path}.values", values, detail))
        case _:
            faults.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    return faults


def _misfits(scope: str, hard: Iterable[str]) -> int:
    """How many of the resources a scope cannot narrow."""
    fitting = _RESOURCES_BY_SCOPE.get(scope)
    if fitting is None:
        return 0
    return sum(1 for name in hard if _is_standard_quota_resource(name) and name not in fitting)


def _conflicts(scopes: Iterable[str]) -> int:
    present = set(scopes)
    return sum(1 for pair in _CONFLICTING_SCOPES if present.issuperset(pair))
