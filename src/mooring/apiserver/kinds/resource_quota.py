"""ResourceQuota (v1)."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.document import Document
from mooring.api.quantity import quantity_nano
from mooring.api.resources import HUGE_PAGES_PREFIX
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.pod.defaults import round_amounts
from mooring.apiserver.kinds.pod.resources import (
    QUOTA_HUGE_PAGES_PREFIX,
    STANDARD_RESOURCES,
    validate_resource_name,
    validate_resource_quantity,
)
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, age, column
from mooring.apiserver.validation.fields import FieldError, invalid, required
from mooring.apiserver.validation.metadata import IMMUTABLE
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

_LIMITED = ("cpu", "memory", "storage", "ephemeral-storage")


# --- validation --------------------------------------------------------------------------------------------------


def validate_quota_spec(spec: Document, path: str) -> list[FieldError]:
    hard = spec.get("hard") or {}
    errors = validate_amounts(hard, f"{path}.hard")
    if spec.get("scopes"):
        errors += _validate_scopes(spec["scopes"], hard, f"{path}.scopes")
    if "scopeSelector" in spec:
        errors += _validate_resource_quota_selector(spec, hard, f"{path}.scopeSelector.matchExpressions")
    return errors


def validate_quota_status(status: Document) -> list[FieldError]:
    errors = validate_amounts(status.get("hard") or {}, "status.hard")
    return errors + validate_amounts(status.get("used") or {}, "status.used")


def validate_scopes_update(spec: Document, old: Document) -> list[FieldError]:
    scopes = spec.get("scopes")
    if set(scopes or ()) == set(old.get("scopes") or ()):
        return []
    return [invalid("spec.scopes", scopes, IMMUTABLE)]


def validate_amounts(amounts: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, text in amounts.items():
        here = f"{path}[{name}]"
        errors += validate_resource_name(name, here)
        if "/" not in name and not _is_standard_quota_resource(name):
            errors.append(invalid(here, name, "must be a standard resource for quota"))
        errors += validate_resource_quantity(name, text, here)
    return errors


def _is_standard_quota_resource(name: str) -> bool:
    if name.startswith((HUGE_PAGES_PREFIX, QUOTA_HUGE_PAGES_PREFIX)):
        return True
    # Storage is a resource of volumes; a quota counts what is requested of it.
    return name in STANDARD_RESOURCES and name != "storage"


def _validate_scopes(scopes: list[str], hard: Document, path: str) -> list[FieldError]:
    errors = []
    for scope in scopes:
        if scope not in _RESOURCES_BY_SCOPE:
            errors.append(invalid(path, scopes, "unsupported scope"))
        errors += [invalid(path, scopes, "unsupported scope applied to resource")] * _mismatches(scope, hard)
    errors += [invalid(path, scopes, "conflicting scopes")] * _conflicts(scopes)
    return errors


def _validate_resource_quota_selector(spec: Document, hard: Document, path: str) -> list[FieldError]:
    requirements = spec["scopeSelector"].get("matchExpressions") or ()
    selector = internal_value(spec["scopeSelector"], "ScopeSelector")
    errors: list[FieldError] = []
    for requirement in requirements:
        scope = requirement.get("scopeName", "")
        if scope not in _RESOURCES_BY_SCOPE:
            errors.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        errors += [invalid(path, selector, "unsupported scope applied to resource")] * _mismatches(scope, hard)
        errors += _validate_requirement(requirement, scope, path)
    scopes = [requirement.get("scopeName", "") for requirement in requirements]
    errors += [invalid(path, spec.get("scopes"), "conflicting scopes")] * _conflicts(scopes)
    return errors


def _validate_requirement(requirement: Document, scope: str, path: str) -> list[FieldError]:
    errors = []
    operator, values = requirement.get("operator", ""), requirement.get("values")
    if scope in _PLAIN_SCOPES and operator != "Exists":
        errors.append(invalid(f"{path}.operator", operator, _PLAIN_SCOPE_WANTS_EXISTS))
    match operator:
        case "In" | "NotIn":
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                errors.append(required(f"{path}.values", detail))
        case "Exists" | "DoesNotExist":
            if values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                errors.append(invalid(f"{path}.values", values, detail))
        case _:
            errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    return errors


def _mismatches(scope: str, hard: Iterable[str]) -> int:
    """The number of resources that a scope cannot restrict."""
    fitting = _RESOURCES_BY_SCOPE.get(scope)
    if fitting is None:
        return 0
    return sum(1 for name in hard if _is_standard_quota_resource(name) and name not in fitting)


def _conflicts(scopes: Iterable[str]) -> int:
    present = set(scopes)
    return sum(1 for pair in _CONFLICTING_SCOPES if present.issuperset(pair))


# --- table -------------------------------------------------------------------------------------------------------


def _resource_quota_cells(obj: Document, now_s: float) -> list[Cell]:
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(hard):
        text = f"{name}: {used.get(name, '0')}/{hard[name]}"
        (limits if name.startswith("limits.") else requests).append(text)
    return [obj["metadata"]["name"], ", ".join(requests), ", ".join(limits), age(obj, now_s)]


# --- strategy ----------------------------------------------------------------------------------------------------


class ResourceQuotaStrategy(Strategy):
    """Writing a quota. Its scopes never change."""

    table = KindTable(
        (
            NAME,
            column("Request", "What is used and allowed, of requests and of objects."),
            column("Limit", "What is used and allowed, of limits."),
            AGE,
        ),
        _resource_quota_cells,
    )

    def default(self, obj: Document) -> None:
        for part, field in (("spec", "hard"), ("status", "hard"), ("status", "used")):
            amounts = obj[part].get(field)
            if amounts:
                round_amounts(amounts)

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_quota_spec(obj["spec"], "spec") + validate_quota_status(obj["status"])

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        return validate_quota_spec(obj["spec"], "spec") + validate_scopes_update(obj["spec"], old["spec"])

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        errors = [] if obj["metadata"].get("resourceVersion") else [required("resourceVersion")]
        return errors + validate_quota_status(obj["status"])

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        hard = obj["spec"].get("hard") or {}
        return [text for resource in _LIMITED for text in _order_warnings(hard, resource)]


def _order_warnings(hard: Document, resource: str) -> list[str]:
    """Warnings about requests that may exceed the limits."""
    request, limit = f"requests.{resource}", f"limits.{resource}"
    if request not in hard and resource in ("cpu", "memory"):
        request = resource
    if request not in hard or limit not in hard or quantity_nano(hard[request]) <= quantity_nano(hard[limit]):
        return []
    return [f"ResourceQuota {request} ({hard[request]}) should be less than {limit} ({hard[limit]})"]


STRATEGY = ResourceQuotaStrategy
