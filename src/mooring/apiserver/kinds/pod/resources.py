"""Resource names, quantities, requests and limits of containers and pods, and the QoS class.

1. Quantities are canonical texts, compared as numbers.
2. Extended resources are whole numbers, and their requests equal their limits.
3. Errors of a list have the order of the list. In Go that order is random.
4. A pod needs the larger of (containers + sidecars) and of each init container with the sidecars before it.
5. The QoS class depends on positive amounts of cpu and memory only. Pod-level resources replace those of the
   containers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from mooring.api.document import Document
from mooring.api.errors import QuantityError
from mooring.api.quantity import Quantity, parse_quantity, quantity_milli, quantity_nano, quantity_value
from mooring.api.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    MEMORY,
    NAMES_REMEMBERED_MAX,
    NATIVE_PREFIX,
    is_extended_resource,
    is_pod_level_resource,
    most_at_once,
)
from mooring.apiserver.kinds.pod.options import STRICT, PodOptions
from mooring.apiserver.validation.fields import (
    FieldError,
    FieldErrorType,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from mooring.apiserver.validation.names import dns_label_errors, qualified_name_errors

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

ValidateName: TypeAlias = Callable[[str, str], list[FieldError]]
"""Validates a resource name at a path."""

_COUNTED = ("cpu", "memory")


def validate_resource_requirements(
    requirements: Document,
    path: str,
    claim_names: Collection[str] = (),
    options: PodOptions = STRICT,
    validate_name: ValidateName | None = None,
) -> list[FieldError]:
    """Field errors of requests and limits. `claim_names` are the claims of the pod, which containers refer to."""
    limits, requests = requirements.get("limits") or {}, requirements.get("requests") or {}
    claims = requirements.get("claims")
    if not limits and not requests and not claims:
        return []
    check_name = validate_name or validate_container_resource_name
    field_errors = _validate_resource_amounts(limits, None, path, check_name, options)
    field_errors += _validate_resource_amounts(requests, limits, path, check_name, options)
    requests_huge_pages = any(name.startswith(HUGE_PAGES_PREFIX) for name in (*limits, *requests))
    if requests_huge_pages and not any(name in limits or name in requests for name in _QUALITY_RESOURCES):
        field_errors.append(forbidden(path, "HugePages require cpu or memory"))
    if claims:
        field_errors += _validate_claims(claims, claim_names, f"{path}.claims")
    return field_errors


# --- names ------------------------------------------------------------------------------------------------------


def validate_resource_name(name: str, path: str) -> list[FieldError]:
    """The rule of every resource name."""
    return [invalid(path, name, text) for text in _name_texts(name)]


def validate_container_resource_name(name: str, path: str) -> list[FieldError]:
    if name in _CONTAINER_RESOURCES:
        return []
    return [invalid(path, name, text) for text in _container_name_texts(name)]


def validate_pod_resource_name(name: str, path: str) -> list[FieldError]:
    """Field errors of the name of a pod-level resource."""
    field_errors = validate_resource_name(name, path)
    if not field_errors and not is_pod_level_resource(name):
        return [not_supported(path, name, (CPU, HUGE_PAGES_PREFIX, MEMORY))]
    return field_errors


@lru_cache(maxsize=NAMES_REMEMBERED_MAX)
def _name_texts(name: str) -> tuple[str, ...]:
    texts = qualified_name_errors(name)
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


def validate_resource_quantity(name: str, raw: str, path: str) -> list[FieldError]:
    """Field errors of an amount of a resource."""
    field_errors = []
    if quantity_nano(raw) < 0:
        field_errors.append(invalid(path, raw, NOT_NEGATIVE))
    if (name in COUNTED_OBJECTS or is_extended_resource(name)) and quantity_milli(raw) % 1000:
        field_errors.append(invalid(path, raw, WHOLE))
    return field_errors


def validate_positive_quantity(raw: str, path: str) -> list[FieldError]:
    return [invalid(path, raw, POSITIVE)] if quantity_nano(raw) <= 0 else []


def validate_positive(value: int, path: str) -> list[FieldError]:
    return [invalid(path, value, POSITIVE)] if value <= 0 else []


def is_whole_pages(name: str, raw: str) -> bool:
    """Whether an amount of huge pages is a multiple of the page size in the resource name."""
    try:
        page = parse_quantity(name.removeprefix(HUGE_PAGES_PREFIX))
    except QuantityError:
        return False
    if page.amount_nano <= 0 or page.milli_value() % 1000:
        return False
    return quantity_value(raw) % page.value() == 0


def _validate_resource_amounts(
    amounts: Mapping[str, str],
    limits: Mapping[str, str] | None,
    path: str,
    check_name: ValidateName,
    options: PodOptions,
) -> list[FieldError]:
    """Field errors of limits or, if limits are given, of requests."""
    field_errors: list[FieldError] = []
    for name, raw in amounts.items():
        here = f"{path}.limits[{name}]" if limits is None else f"{path}.requests[{name}]"
        field_errors += check_name(name, here)
        field_errors += validate_resource_quantity(name, raw, here)
        if limits is not None:
            field_errors += _validate_resource_request(name, raw, limits, path)
        if not name.startswith(HUGE_PAGES_PREFIX) or options.tolerates_indivisible_huge_pages:
            continue
        if not is_whole_pages(name, raw):
            field_errors.append(invalid(here, raw, f"{raw} is not positive integer multiple of {name}"))
    return field_errors


def _validate_resource_request(name: str, raw: str, limits: Mapping[str, str], path: str) -> list[FieldError]:
    """Field errors of a request that contradicts its limit."""
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


def _validate_claims(claims: list[Document], claim_names: Collection[str], path: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    seen: dict[str, None] = {}
    requests: Counter[str] = Counter()
    unknown = ""
    for index, claim in enumerate(claims):
        here, name, request = f"{path}[{index}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            field_errors.append(required(here))
            continue
        field_errors += _validate_claim(name, request, seen, requests, here)
        if name not in claim_names:
            unknown = unknown or _not_a_claim(claim_names)
            field_errors.append(FieldError(FieldErrorType.NOT_FOUND, here, unknown, name))
    return field_errors


def _not_a_claim(claim_names: Collection[str]) -> str:
    listed = f": {', '.join(sorted(claim_names))}" if claim_names else " which is empty"
    return f"must be one of the names in pod.spec.resourceClaims{listed}"


def _validate_claim(
    name: str, request: str, seen: dict[str, None], requests: Counter[str], path: str
) -> list[FieldError]:
    """A claim is named as a whole or request by request, and each of them once."""
    if name in seen:
        return [duplicate(path, name)]
    field_errors: list[FieldError] = []
    key = name
    if request:
        field_errors += [invalid(f"{path}.request", request, text) for text in dns_label_errors(request)]
        key = f"{name}/{request}"
    if key in seen:
        field_errors.append(duplicate(path, key))
    elif not request:
        field_errors += [duplicate(path, name)] * requests[name]
    if key not in seen:
        seen[key] = None
        requests[name] += 1
    return field_errors


def containers_sum(spec: Document, side: str) -> dict[str, Quantity]:
    """What all containers together request, or are limited to (`side` is `requests` or `limits`)."""
    return most_at_once(
        [_amounts(container, side) for container in spec.get("containers") or ()],
        [
            (container.get("restartPolicy") == "Always", _amounts(container, side))
            for container in spec.get("initContainers") or ()
        ],
    )


def validate_pod_resources(
    spec: Document, claim_names: Collection[str], path: str, options: PodOptions
) -> list[FieldError]:
    """Field errors of the resources of the pod as a whole."""
    resources = spec.get("resources")
    if resources is None:
        return []
    here = f"{path}.resources"
    if spec.get("os", {}).get("name") == "windows":
        return [forbidden(here, "may not be set for a windows pod")]
    field_errors: list[FieldError] = []
    if resources.get("claims") is not None:
        field_errors.append(forbidden(f"{here}.claims", "claims may not be set for Resources at pod-level"))
    field_errors += validate_resource_requirements(resources, here, claim_names, options, validate_pod_resource_name)
    field_errors += _validate_requests(spec, resources.get("requests") or {}, f"{here}.requests")
    field_errors += _validate_limits(spec, resources.get("limits") or {}, here)
    return field_errors


def _validate_requests(spec: Document, requests: Mapping[str, str], path: str) -> list[FieldError]:
    if not requests:
        return []
    detail = "must be greater than or equal to aggregate container requests of"
    return [
        invalid(f"{path}[{name}]", requests[name], f"{detail} {total}")
        for name, total in containers_sum(spec, "requests").items()
        if name in requests and total.amount_nano > quantity_nano(requests[name])
    ]


def _validate_limits(spec: Document, limits: Mapping[str, str], path: str) -> list[FieldError]:
    if not limits:
        return []
    detail = "must be greater than or equal to aggregate container limits of"
    field_errors = [
        invalid(f"{path}.limits[{name}]", limits[name], f"{detail} {used}")
        for name, used in containers_sum(spec, "limits").items()
        if name.startswith(HUGE_PAGES_PREFIX) and name in limits and used.amount_nano > quantity_nano(limits[name])
    ]
    for index, container in enumerate(spec.get("containers") or ()):
        for name, raw in (container.get("resources", {}).get("limits") or {}).items():
            if name in limits and quantity_nano(raw) > quantity_nano(limits[name]):
                here = f"{path}.containers[{index}][{name}].limits"
                field_errors.append(invalid(here, raw, f"must be less than or equal to pod limits of {limits[name]}"))
    return field_errors


def _amounts(container: Document, side: str) -> dict[str, Quantity]:
    amounts = container.get("resources", {}).get(side) or {}
    return {name: parse_quantity(raw) for name, raw in amounts.items()}


def quality_of_service(spec: Document) -> str:
    """The class of a pod."""
    whole = spec.get("resources")
    holders: Sequence[Document] = (
        [whole] if whole is not None else [container.get("resources") or {} for container in _containers(spec)]
    )
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    is_guaranteed = True
    for resources in holders:
        _add_positive(requests, resources.get("requests") or {})
        found = _add_positive(limits, resources.get("limits") or {})
        if found < len(_COUNTED) and (whole is None or resources.get("limits")):
            is_guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed and requests == limits else "Burstable"


def _containers(spec: Document) -> Sequence[Document]:
    return [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def _add_positive(total: dict[str, int], amounts: Mapping[str, str]) -> int:
    """Add positive amounts, and return how many resources have one."""
    found = 0
    for name in _COUNTED:
        amount_nano = quantity_nano(amounts[name]) if name in amounts else 0
        if amount_nano > 0:
            total[name] = total.get(name, 0) + amount_nano
            found += 1
    return found
