"""What is wrong with resources: their names, amounts, requests and limits.

Comes in   `resources` of a container or a pod, lists of amounts by name
Goes out   faults

 1. Amounts are canonical texts; they are compared as numbers.
 2. Names with a slash that are not Kubernetes' own belong to a vendor: whole numbers only, and requests equal limits.
 3. Faults of a list come in the order in which it is written; in Go that order is chance.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import TypeAlias

from mooring.api.document import Document
from mooring.api.errors import QuantityError
from mooring.api.quantity import parse_quantity, quantity_milli, quantity_nano, quantity_value
from mooring.api.resource_names import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    MEMORY,
    NAMES_REMEMBERED_MAX,
    NATIVE_PREFIX,
    is_extended_resource,
    is_pod_level_resource,
)
from mooring.apiserver.validation.fields import Fault, FaultKind, duplicate, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.names import dns_label_faults, qualified_name_faults
from mooring.apiserver.validation.pod_options import STRICT, PodOptions

NOT_NEGATIVE = "must be greater than or equal to 0"
POSITIVE = "must be greater than zero"
WHOLE = "must be an integer"
QUOTA_HUGE_PAGES_PREFIX = "requests.hugepages-"

COUNTED_OBJECTS = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
STANDARD_RESOURCES = COUNTED_OBJECTS | {
    CPU,
    MEMORY,
    EPHEMERAL_STORAGE,
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "storage",
    "requests.storage",
}
_CONTAINER_RESOURCES = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})
_QUALITY_RESOURCES = (CPU, MEMORY)

NameFaults: TypeAlias = Callable[[str, str], list[Fault]]
"""From a resource's name and its path to what is wrong with the name."""


def resource_requirements_faults(
    requirements: Document,
    path: str,
    claim_names: Collection[str] = (),
    options: PodOptions = STRICT,
    name_faults: NameFaults | None = None,
) -> list[Fault]:
    """What is wrong with requests and limits. `claim_names` are the claims of the pod, which containers refer to."""
    limits, requests = requirements.get("limits") or {}, requirements.get("requests") or {}
    claims = requirements.get("claims")
    if not limits and not requests and not claims:
        return []
    check_name = name_faults or container_resource_name_faults
    faults = _amounts_faults(limits, None, path, check_name, options)
    faults += _amounts_faults(requests, limits, path, check_name, options)
    asks_huge_pages = any(name.startswith(HUGE_PAGES_PREFIX) for name in (*limits, *requests))
    if asks_huge_pages and not any(name in limits or name in requests for name in _QUALITY_RESOURCES):
        faults.append(forbidden(path, "HugePages require cpu or memory"))
    if claims:
        faults += _claims_faults(claims, claim_names, f"{path}.claims")
    return faults


# --- names ------------------------------------------------------------------------------------------------------


def resource_name_faults(name: str, path: str) -> list[Fault]:
    """The rule of every resource name."""
    return [invalid(path, name, text) for text in _name_texts(name)]


def container_resource_name_faults(name: str, path: str) -> list[Fault]:
    if name in _CONTAINER_RESOURCES:
        return []
    return [invalid(path, name, text) for text in _container_name_texts(name)]


def pod_resource_name_faults(name: str, path: str) -> list[Fault]:
    """The rule of what can be asked for a pod as a whole."""
    faults = resource_name_faults(name, path)
    if not faults and not is_pod_level_resource(name):
        return [not_supported(path, name, (CPU, HUGE_PAGES_PREFIX, MEMORY))]
    return faults


@lru_cache(maxsize=NAMES_REMEMBERED_MAX)
def _name_texts(name: str) -> tuple[str, ...]:
    texts = qualified_name_faults(name)
    if texts or "/" in name or is_standard_resource(name):
        return texts
    return ("must be a standard resource type or fully qualified",)


@lru_cache(maxsize=NAMES_REMEMBERED_MAX)
def _container_name_texts(name: str) -> tuple[str, ...]:
    texts = _name_texts(name)
    if "/" not in name:
        if name not in _CONTAINER_RESOURCES and not name.startswith(HUGE_PAGES_PREFIX):
            return (*texts, "must be a standard resource for containers")
    elif NATIVE_PREFIX not in name and not is_extended_resource(name):
        return (*texts, "doesn't follow extended resource name standard")
    return texts


def is_standard_resource(name: str) -> bool:
    return name in STANDARD_RESOURCES or name.startswith((HUGE_PAGES_PREFIX, QUOTA_HUGE_PAGES_PREFIX))


def allows_overcommit(name: str) -> bool:
    """Whether more may be used than was requested."""
    is_native = "/" not in name or NATIVE_PREFIX in name
    return is_native and not name.startswith(HUGE_PAGES_PREFIX)


# --- amounts ----------------------------------------------------------------------------------------------------


def resource_quantity_faults(name: str, raw: str, path: str) -> list[Fault]:
    """What is wrong with an amount of a resource."""
    faults = []
    if quantity_nano(raw) < 0:
        faults.append(invalid(path, raw, NOT_NEGATIVE))
    if (name in COUNTED_OBJECTS or is_extended_resource(name)) and quantity_milli(raw) % 1000:
        faults.append(invalid(path, raw, WHOLE))
    return faults


def positive_quantity_faults(raw: str, path: str) -> list[Fault]:
    return [invalid(path, raw, POSITIVE)] if quantity_nano(raw) <= 0 else []


def non_negative_faults(value: int, path: str) -> list[Fault]:
    return [invalid(path, value, NOT_NEGATIVE)] if value < 0 else []


def positive_faults(value: int, path: str) -> list[Fault]:
    return [invalid(path, value, POSITIVE)] if value <= 0 else []


def is_whole_pages(name: str, raw: str) -> bool:
    """Whether an amount of huge pages is a multiple of the size that stands in their name."""
    try:
        page = parse_quantity(name.removeprefix(HUGE_PAGES_PREFIX))
    except QuantityError:
        return False
    if page.amount_nano <= 0 or page.milli_value() % 1000:
        return False
    return quantity_value(raw) % page.value() == 0


def _amounts_faults(
    amounts: Mapping[str, str],
    limits: Mapping[str, str] | None,
    path: str,
    check_name: NameFaults,
    options: PodOptions,
) -> list[Fault]:
    """What is wrong with limits, or, if their limits are given, with requests."""
    faults: list[Fault] = []
    for name, raw in amounts.items():
        here = f"{path}.limits[{name}]" if limits is None else f"{path}.requests[{name}]"
        faults += check_name(name, here)
        faults += resource_quantity_faults(name, raw, here)
        if limits is not None:
            faults += _request_faults(name, raw, limits, path)
        if not name.startswith(HUGE_PAGES_PREFIX) or options.tolerates_indivisible_huge_pages:
            continue
        if not is_whole_pages(name, raw):
            faults.append(invalid(here, raw, f"{raw} is not positive integer multiple of {name}"))
    return faults


def _request_faults(name: str, raw: str, limits: Mapping[str, str], path: str) -> list[Fault]:
    """What is wrong with a request, seen from its limit."""
    limit = limits.get(name)
    if limit is None:
        if allows_overcommit(name):
            return []
        return [required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    surplus = quantity_nano(raw) - quantity_nano(limit)
    if surplus and not allows_overcommit(name):
        return [invalid(f"{path}.requests", raw, f"must be equal to {name} limit of {limit}")]
    if surplus > 0:
        return [invalid(f"{path}.requests", raw, f"must be less than or equal to {name} limit of {limit}")]
    return []


# --- claims -----------------------------------------------------------------------------------------------------


def _claims_faults(claims: list[Document], claim_names: Collection[str], path: str) -> list[Fault]:
    faults: list[Fault] = []
    seen: list[str] = []
    for index, claim in enumerate(claims):
        here, name, request = f"{path}[{index}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            faults.append(required(here))
            continue
        faults += _claim_faults(name, request, seen, here)
        if name not in claim_names:
            listed = f": {', '.join(sorted(claim_names))}" if claim_names else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{listed}"
            faults.append(Fault(FaultKind.NOT_FOUND, here, detail, name))
    return faults


def _claim_faults(name: str, request: str, seen: list[str], path: str) -> list[Fault]:
    """A claim is named as a whole or request by request, and each of them once."""
    if name in seen:
        return [duplicate(path, name)]
    faults: list[Fault] = []
    key = name
    if request:
        faults += [invalid(f"{path}.request", request, text) for text in dns_label_faults(request)]
        key = f"{name}/{request}"
    if key in seen:
        faults.append(duplicate(path, key))
    elif not request:
        faults += [duplicate(path, name) for other in seen if other.partition("/")[0] == name]
    if key not in seen:
        seen.append(key)
    return faults
