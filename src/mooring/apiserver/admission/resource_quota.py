"""ResourceQuota: what a namespace may use, in numbers of objects and in amounts.

Input: everything that is created in a namespace, and changes of what is measured.
Output: 403 if a quota would be exceeded; otherwise the quotas' statuses with the new usage, written first.

 1. Usage is charged before the object is written, on the condition that it has not been charged since the quota was
    read: so no two requests spend the same. A request that fails afterwards stays charged, as with kube-apiserver,
    until the quota controller counts again.
 2. A quota counts once its status says what is used; until then it rejects what it would limit.
 3. Requests of one namespace are charged one after the other. A dry run is checked and charges nothing.
 4. Where cpu or memory of pods is limited, every container must specify it, unless the pod specifies it as a whole. An
    update of a pod counts only if it moves the pod into or out of the scope of a quota.

A `QuotaEvaluator` knows for a kind which writes can change the usage, and computes amounts by the names that quotas
limit (`count/deployments.apps`, `configmaps`, `requests.cpu`). The quota controller shares the rules of usage:
`mooring.api.quota`. A measure adds what only the API server can look up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple
from weakref import WeakValueDictionary

from mooring.api import kinds
from mooring.api.decode import convert_as
from mooring.api.document import Document
from mooring.api.kinds import DEVICE_CLASS, POD, RESOURCE_CLAIM, RESOURCE_QUOTA, Kind
from mooring.api.quantity import ZERO
from mooring.api.quota import (
    ONE,
    SERVICE_NAMES,
    Amounts,
    container_usage,
    device_claim_usage,
    extended_names,
    has_deadline,
    is_charged_to,
    is_device_claim_name,
    is_pod_in_scope,
    is_pod_name,
    is_volume_claim_in_scope,
    is_volume_claim_name,
    names_of,
    pod_behind,
    pod_usage,
    scopes_of,
    service_usage,
    volume_claim_usage,
)
from mooring.api.resources import CPU, MEMORY, QUOTA_PREFIX, amounts, is_pod_level_resource
from mooring.api.views.administration import ResourceQuotaSpec, ScopeRequirement
from mooring.api.views.devices import DeviceClass, ResourceClaim
from mooring.api.views.pod import Pod
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.api.views.workloads import Service
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup, QuotaStatusWriter, refused
from mooring.apiserver.call import Operation
from mooring.apiserver.errors import conflict


class QuotaEvaluator:
    """Counts the objects of a kind. Evaluators of kinds with other usage inherit from it."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self._names = names_of(kind)

    def handles(self, subresource: str, operation: Operation) -> bool:
        """Whether writes of this kind can change the usage."""
        return not subresource and operation is Operation.CREATE

    def concerns(self, attempt: Attempt) -> bool:
        """Whether this write can change the usage."""
        return True

    async def counted(self, names: Iterable[str], lookup: Lookup) -> list[str]:
        """The names that objects of this kind can use."""
        return [name for name in names if name in self._names]

    def is_in_scope(self, scope: ScopeRequirement, obj: Document) -> bool:
        return False

    def unspecified(self, names: Iterable[str], obj: Document) -> str:
        """The names of limited resources that the object must specify and does not."""
        return ""

    async def usage(self, obj: Document, attempt: Attempt, lookup: Lookup) -> Amounts:
        return dict.fromkeys(self._names, ONE)


class ServiceEvaluator(QuotaEvaluator):
    def handles(self, subresource: str, operation: Operation) -> bool:
        return not subresource and operation in (Operation.CREATE, Operation.UPDATE)

    async def counted(self, names: Iterable[str], lookup: Lookup) -> list[str]:
        return [name for name in names if name in SERVICE_NAMES]

    async def usage(self, obj: Document, attempt: Attempt, lookup: Lookup) -> Amounts:
        return service_usage(convert_as(Service, obj))


class VolumeClaimEvaluator(QuotaEvaluator):
    def handles(self, subresource: str, operation: Operation) -> bool:
        if subresource == "status":
            return operation is Operation.UPDATE
        return not subresource and operation in (Operation.CREATE, Operation.UPDATE)

    async def counted(self, names: Iterable[str], lookup: Lookup) -> list[str]:
        return [name for name in names if is_volume_claim_name(name)]

    def is_in_scope(self, scope: ScopeRequirement, obj: Document) -> bool:
        return is_volume_claim_in_scope(scope, convert_as(PersistentVolumeClaim, obj))

    async def usage(self, obj: Document, attempt: Attempt, lookup: Lookup) -> Amounts:
        return volume_claim_usage(convert_as(PersistentVolumeClaim, obj))


class DeviceClaimEvaluator(QuotaEvaluator):
    def handles(self, subresource: str, operation: Operation) -> bool:
        return not subresource and operation in (Operation.CREATE, Operation.UPDATE)

    async def counted(self, names: Iterable[str], lookup: Lookup) -> list[str]:
        extended = await _extended_names(lookup)
        return [name for name in names if is_device_claim_name(name, extended)]

    async def usage(self, obj: Document, attempt: Attempt, lookup: Lookup) -> Amounts:
        claim = convert_as(ResourceClaim, obj)
        return device_claim_usage(claim, await _extended_names(lookup), await _charged_to_pod(claim, attempt, lookup))


async def _extended_names(lookup: Lookup) -> dict[str, str]:
    return extended_names([convert_as(DeviceClass, device_class) for device_class in await lookup.list(DEVICE_CLASS)])


async def _charged_to_pod(claim: ResourceClaim, attempt: Attempt, lookup: Lookup) -> Amounts:
    """The usage that is already charged to the pod for which the scheduler created this claim."""
    namespace, name = attempt.call.namespace, pod_behind(claim)
    found = await lookup.get(POD, namespace, name) if name else None
    if found is None:
        return {}
    pod = convert_as(Pod, found)
    claims = [convert_as(ResourceClaim, claim) for claim in await lookup.list(RESOURCE_CLAIM, namespace)]
    return pod_usage(pod, attempt.call.now_s) if is_charged_to(pod, claim, claims) else {}


# --- the plugin -----------------------------------------------------------------------------------------------


_MUST_BE_SAID = frozenset(f"{prefix}{name}" for prefix in ("", QUOTA_PREFIX, "limits.") for name in (CPU, MEMORY))


class PodEvaluator(QuotaEvaluator):
    """Measures pods."""

    def handles(self, subresource: str, operation: Operation) -> bool:
        if subresource == "resize":
            return operation is Operation.UPDATE
        return not subresource and operation in (Operation.CREATE, Operation.UPDATE)

    def concerns(self, attempt: Attempt) -> bool:
        if attempt.operation is Operation.CREATE or attempt.call.subresource:
            return True
        assert attempt.obj is not None
        assert attempt.old is not None
        return has_deadline(convert_as(Pod, attempt.obj)) != has_deadline(convert_as(Pod, attempt.old))

    async def counted(self, names: Iterable[str], lookup: Lookup) -> list[str]:
        return [name for name in names if is_pod_name(name)]

    def is_in_scope(self, scope: ScopeRequirement, obj: Document) -> bool:
        return is_pod_in_scope(scope, convert_as(Pod, obj))

    def unspecified(self, names: Iterable[str], obj: Document) -> str:
        spec = convert_as(Pod, obj).spec
        of_pod = (*spec.resources.requests, *spec.resources.limits) if spec.resources is not None else ()
        if any(is_pod_level_resource(name) for name in of_pod):
            return ""
        required = sorted(name for name in names if name in _MUST_BE_SAID)
        silent: dict[str, set[str]] = {}
        for container in (*spec.containers, *spec.init_containers):
            said = container_usage(container.resources)
            for name in required:
                if name not in said:
                    silent.setdefault(name, set()).add(container.name)
        if not silent:
            return ""
        return "must specify " + "; ".join(f"{name} for: {','.join(sorted(silent[name]))}" for name in sorted(silent))

    async def usage(self, obj: Document, attempt: Attempt, lookup: Lookup) -> Amounts:
        return pod_usage(convert_as(Pod, obj), attempt.call.now_s)


CHARGE_TRIES_MAX = 4

_MEASURES: Mapping[Kind, Callable[[Kind], QuotaEvaluator]] = {
    kinds.POD: PodEvaluator,
    kinds.SERVICE: ServiceEvaluator,
    kinds.PERSISTENT_VOLUME_CLAIM: VolumeClaimEvaluator,
    kinds.RESOURCE_CLAIM: DeviceClaimEvaluator,
}
_NEVER_COUNTED = frozenset({("", "bindings"), ("", "events"), ("events.k8s.io", "events")})


class ResourceQuotaAdmission(Admission):
    """Charges quotas."""

    name = "ResourceQuota"

    def __init__(self, status_writer: QuotaStatusWriter) -> None:
        self._status_writer = status_writer
        self._measures: dict[Kind, QuotaEvaluator] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        if not kind.is_namespaced or (kind.group, kind.plural) in _NEVER_COUNTED:
            return False
        return self._measure(kind).handles(subresource, operation)

    async def check(self, attempt: Attempt, lookup: Lookup) -> None:
        namespace, measure = attempt.call.namespace, self._measure(attempt.call.kind)
        if not await lookup.list(RESOURCE_QUOTA, namespace) or not measure.concerns(attempt):
            return
        if attempt.call.is_dry_run:
            await _charges(attempt, measure, await lookup.list(RESOURCE_QUOTA, namespace), lookup)
            return
        turn = self._turns.setdefault(namespace, asyncio.Lock())
        async with turn:
            await self._charge(attempt, measure, lookup)

    async def _charge(self, attempt: Attempt, measure: QuotaEvaluator, lookup: Lookup) -> None:
        outrun: list[str] | None = None
        for _ in range(CHARGE_TRIES_MAX):
            quotas = await lookup.list(RESOURCE_QUOTA, attempt.call.namespace)
            if outrun is not None:
                quotas = [quota for quota in quotas if quota["metadata"]["name"] in outrun]
            outrun = [
                charge.quota["metadata"]["name"]
                for charge in await _charges(attempt, measure, quotas, lookup)
                if not await self._status_writer.write_used(charge.quota, charge.used, attempt.call.now)
            ]
            if not outrun:
                return
        assert outrun
        raise conflict(RESOURCE_QUOTA, outrun[0])

    def _measure(self, kind: Kind) -> QuotaEvaluator:
        measure = self._measures.get(kind)
        if measure is None:
            measure = self._measures[kind] = _MEASURES.get(kind, QuotaEvaluator)(kind)
        return measure


class _QuotaUsage(NamedTuple):
    """A quota, and its usage if the attempt succeeds."""

    quota: Document
    used: Mapping[str, str]


async def _charges(
    attempt: Attempt, measure: QuotaEvaluator, quotas: Sequence[Document], lookup: Lookup
) -> list[_QuotaUsage]:
    """The usage that the attempt adds to each quota. Raises `ForbiddenError` if one is exceeded."""
    assert attempt.obj is not None
    limiting = [quota for quota in quotas if await _limits(attempt, measure, quota, lookup)]
    if not limiting:
        return []
    usage = await measure.usage(attempt.obj, attempt, lookup)
    negative = sorted(name for name, amount in usage.items() if amount < ZERO)
    if negative:
        raise refused(attempt, f"quota usage is negative for resource(s): {','.join(negative)}")
    growth = usage
    if attempt.operation is Operation.UPDATE and attempt.old is not None:
        growth = _beyond(usage, await measure.usage(attempt.old, attempt, lookup))
    charges = []
    for quota in limiting:
        counted_before = attempt.old is not None and await _matches(measure, quota, attempt.old, lookup)
        charge = _charged(attempt, quota, growth if counted_before else usage)
        if charge is not None:
            charges.append(charge)
    return charges


async def _limits(attempt: Attempt, measure: QuotaEvaluator, quota: Document, lookup: Lookup) -> bool:
    """Whether a quota applies. Raises `ForbiddenError` if the object or the quota lacks a value that is needed."""
    assert attempt.obj is not None
    if not await _matches(measure, quota, attempt.obj, lookup):
        return False
    name, status = quota["metadata"]["name"], quota["status"]
    limited = await measure.counted(sorted(status["hard"]), lookup)
    unspecified = measure.unspecified(limited, attempt.obj)
    if unspecified:
        raise refused(attempt, f"failed quota: {name}: {unspecified}")
    used = status.get("used") or {}
    if any(name not in used for name in limited):
        raise refused(attempt, f"status unknown for quota: {name}, resources: {','.join(limited)}")
    return True


async def _matches(measure: QuotaEvaluator, quota: Document, obj: Document, lookup: Lookup) -> bool:
    hard = (quota.get("status") or {}).get("hard") or {}
    if not await measure.counted(hard, lookup):
        return False
    scopes = scopes_of(convert_as(ResourceQuotaSpec, quota.get("spec") or {}))
    return all(measure.is_in_scope(scope, obj) for scope in scopes)


def _beyond(usage: Amounts, before: Amounts) -> Amounts:
    """The usage that an update adds."""
    grown = {name: amount - before[name] if name in before else amount for name, amount in usage.items()}
    return {name: amount for name, amount in grown.items() if amount > ZERO}


def _charged(attempt: Attempt, quota: Document, growth: Amounts) -> _QuotaUsage | None:
    status = quota["status"]
    hard, used = amounts(status["hard"]), amounts(status.get("used"))
    added = {name: amount for name, amount in growth.items() if amount and name in hard}
    if not added:
        return None
    after = {name: used[name] + amount if name in used else amount for name, amount in added.items()}
    exceeded = sorted(name for name, amount in after.items() if amount > hard[name])
    # A status reports what has happened: it is charged, and never rejected.
    if exceeded and attempt.call.subresource != "status":
        raise refused(
            attempt,
            f"exceeded quota: {quota['metadata']['name']}, requested: {_listed(added, exceeded)}, "
            f"used: {_listed(used, exceeded)}, limited: {_listed(hard, exceeded)}",
        )
    texts = {**(status.get("used") or {}), **{name: str(amount) for name, amount in after.items()}}
    return _QuotaUsage(quota, dict(sorted(texts.items())))


def _listed(amounts_by_name: Amounts, names: Sequence[str]) -> str:
    return ",".join(f"{name}={amounts_by_name[name]}" for name in names if name in amounts_by_name)
