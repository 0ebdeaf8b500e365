"""LimitRanger: the limit ranges of a namespace, applied to its pods and claims.

Input: new pods and claims, changed claims, resized pods.
Output: pods with defaults of the limit ranges; 403 for what is out of bounds.

 1. Objects that are being deleted are left alone.
 2. The error lists everything that violates the first violated limit range, with the texts of Kubernetes.
 3. Amounts are compared in thousandths, and in whole units where thousandths would not fit into 64 bits.
 4. Resources are checked in the order of their names. (kube-apiserver's order differs from call to call.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mooring.api.decode import convert_as
from mooring.api.document import Document
from mooring.api.kinds import LIMIT_RANGE, PERSISTENT_VOLUME_CLAIM, POD, Kind
from mooring.api.quantity import MILLI_VALUE_MAX, Quantity, parse_quantity
from mooring.api.resources import FOR_LIMIT_RANGES, Amounts, amounts, pod_limits, pod_requests
from mooring.api.views.pod import Pod
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup, own_items, own_part, refused
from mooring.apiserver.call import Operation


class LimitRanger(Admission):
    """Applies limit ranges."""

    name = "LimitRanger"

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        if kind is POD:
            return (subresource, operation) in (("", Operation.CREATE), ("resize", Operation.UPDATE))
        return kind is PERSISTENT_VOLUME_CLAIM and not subresource and operation in (Operation.CREATE, Operation.UPDATE)

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        assert attempt.obj is not None
        if attempt.call.kind is not POD or _is_going(attempt):
            return
        for limit_range in await lookup.list(LIMIT_RANGE, attempt.call.namespace):
            fill_defaults(limit_range, attempt.obj)

    async def check(self, attempt: Attempt, lookup: Lookup) -> None:
        assert attempt.obj is not None
        if _is_going(attempt):
            return
        errors_of = pod_errors if attempt.call.kind is POD else claim_errors
        for limit_range in await lookup.list(LIMIT_RANGE, attempt.call.namespace):
            errors = errors_of(limit_range, attempt.obj)
            if errors:
                raise refused(attempt, errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")


def _is_going(attempt: Attempt) -> bool:
    return attempt.old is not None and "deletionTimestamp" in attempt.old["metadata"]


# --- defaults and bounds --------------------------------------------------------------------------------------


ANNOTATION = "kubernetes.io/limit-ranger"


# --- defaults ---------------------------------------------------------------------------------------------------


def fill_defaults(limit_range: Document, pod: Document) -> None:
    """Set missing requests and limits of the containers, and list them in an annotation."""
    requests, limits = _defaults(limit_range)
    if not requests and not limits:
        return
    notes: list[str] = []
    spec = own_part(pod, "spec")
    for field, called in (("containers", "container"), ("initContainers", "init container")):
        if not spec.get(field):
            continue
        for container in own_items(spec, field):
            resources = own_part(container, "resources")
            for which, defaults in (("requests", requests), ("limits", limits)):
                filled = _filled(resources, which, defaults)
                if filled:
                    notes.append(f"{', '.join(filled)} {which[:-1]} for {called} {container.get('name', '')}")
    if notes:
        own_part(pod["metadata"], "annotations")[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(notes)}"


def _defaults(limit_range: Document) -> tuple[dict[str, str], dict[str, str]]:
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    for limit in _limits_of(limit_range, "Container"):
        requests.update(limit.get("defaultRequest") or {})
        limits.update(limit.get("default") or {})
    return requests, limits


def _filled(resources: Document, which: str, defaults: Mapping[str, str]) -> list[str]:
    have = resources.get(which) or {}
    missing = sorted(name for name in defaults if name not in have)
    if missing:
        resources[which] = dict(sorted({**defaults, **have}.items()))
    return missing


# --- bounds -----------------------------------------------------------------------------------------------------


def pod_errors(limit_range: Document, pod: Document) -> list[str]:
    """The bounds that a pod violates, each once."""
    errors: list[str] = []
    spec = pod["spec"]
    for limit in limit_range["spec"].get("limits") or []:
        if limit.get("type") == "Container":
            for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]:
                resources = container.get("resources") or {}
                errors += _limit_errors(limit, amounts(resources.get("requests")), amounts(resources.get("limits")))
        elif limit.get("type") == "Pod":
            view = convert_as(Pod, pod)
            errors += _limit_errors(limit, pod_requests(view, FOR_LIMIT_RANGES), pod_limits(view, FOR_LIMIT_RANGES))
    return list(dict.fromkeys(errors))


def claim_errors(limit_range: Document, claim: Document) -> list[str]:
    """The violations of a claim. Its limits are ignored."""
    errors: list[str] = []
    requests = amounts((claim["spec"].get("resources") or {}).get("requests"))
    for limit in _limits_of(limit_range, "PersistentVolumeClaim"):
        errors += _broken(
            limit, "min", lambda name, bound: _below_minimum("PersistentVolumeClaim", name, bound, requests)
        )
        errors += _broken(
            limit, "max", lambda name, bound: _request_above("PersistentVolumeClaim", name, bound, requests)
        )
    return list(dict.fromkeys(errors))


def _limit_errors(limit: Document, requests: Amounts, limits: Amounts) -> list[str]:
    kind = limit["type"]
    return [
        *_broken(limit, "min", lambda name, bound: _below_minimum(kind, name, bound, requests, limits)),
        *_broken(limit, "max", lambda name, bound: _above_maximum(kind, name, bound, requests, limits)),
        *_broken(limit, "maxLimitRequestRatio", lambda name, bound: _above_ratio(kind, name, bound, requests, limits)),
    ]


def _limits_of(limit_range: Document, kind: str) -> Iterator[Document]:
    return (limit for limit in limit_range["spec"].get("limits") or [] if limit.get("type") == kind)


def _broken(limit: Document, field: str, error_of: Callable[[str, Quantity], str]) -> Iterator[str]:
    for name, raw in sorted((limit.get(field) or {}).items()):
        error = error_of(name, parse_quantity(raw))
        if error:
            yield error


def _below_minimum(kind: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts | None = None) -> str:
    rule = f"minimum {name} usage per {kind} is {bound}"
    request, limit = requests.get(name), (limits or {}).get(name)
    if request is None:
        return f"{rule}.  No request is specified"
    requested, limited, least = _comparable(request, limit, bound)
    if requested < least:
        return f"{rule}, but request is {request}"
    return f"{rule}, but limit is {limit}" if limit is not None and limited < least else ""


def _above_maximum(kind: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    rule = f"maximum {name} usage per {kind} is {bound}"
    request, limit = requests.get(name), limits.get(name)
    if limit is None:
        return f"{rule}.  No limit is specified"
    requested, limited, most = _comparable(request, limit, bound)
    if limited > most:
        return f"{rule}, but limit is {limit}"
    return f"{rule}, but request is {request}" if request is not None and requested > most else ""


def _request_above(kind: str, name: str, bound: Quantity, requests: Amounts) -> str:
    rule = f"maximum {name} usage per {kind} is {bound}"
    request = requests.get(name)
    if request is None:
        return f"{rule}.  No request is specified"
    requested, _, most = _comparable(request, None, bound)
    return f"{rule}, but request is {request}" if requested > most else ""


def _above_ratio(kind: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    rule = f"{name} max limit to request ratio per {kind} is {bound}"
    requested, limited, _ = _comparable(requests.get(name), limits.get(name), bound)
    if not requested:
        return f"{rule}, but no request is specified or request is 0"
    if not limited:
        return f"{rule}, but no limit is specified or limit is 0"
    ratio = limited / requested
    if bound.value() <= MILLI_VALUE_MAX:
        is_above = ratio * 1000 > float(bound.milli_value())
    else:
        is_above = ratio > float(bound.value())
    return f"{rule}, but provided ratio is {ratio:f}" if is_above else ""


def _comparable(request: Quantity | None, limit: Quantity | None, bound: Quantity) -> tuple[int, int, int]:
    values = [0 if quantity is None else quantity.value() for quantity in (request, limit, bound)]
    if all(value <= MILLI_VALUE_MAX for value in values):
        values = [0 if quantity is None else quantity.milli_value() for quantity in (request, limit, bound)]
    return values[0], values[1], values[2]
