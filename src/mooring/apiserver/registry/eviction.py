"""Eviction: a deletion that disruption budgets must allow.

Input: a call and an Eviction.
Output: the pod deleted, and its budget spent; or a `StatusError`: 429 if the budget does not allow it.

   terminating, finished or pending  deleted without a budget
   no budget                         deleted
   not ready                         deleted without spending, if its budget allows that (`unhealthyPodEvictionPolicy`)
   ready                             its budget is spent first; then deleted

 1. A budget is spent before the pod is deleted, on the condition that it is unchanged: so two evictions never
    share one disruption. `disruptedPods` has the pods that are being evicted, for the disruption controller.
 2. A pod that may be deleted because it is not ready is deleted only if it is unchanged.
 3. A condition of an evicted pod names the cause of the disruption.
 4. A budget whose controller has not seen its last change allows nothing yet: the error has a time to try again.
 5. `disruptedPods` has a limit: a controller that does not remove pods from it stops evictions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import msgspec

from mooring.api.document import Document
from mooring.api.errors import LabelSelectorError
from mooring.api.kinds import POD, POD_DISRUPTION_BUDGET
from mooring.api.labels import compile_selector
from mooring.api.views.meta import LabelSelector
from mooring.apiserver.admission.interface import Attempt
from mooring.apiserver.call import Call, Operation
from mooring.apiserver.errors import (
    conflict,
    invalid_object,
    not_found,
    other_revision_in_deletion,
    other_uid_in_deletion,
    plain_error,
)
from mooring.apiserver.kinds.pod.prepare import with_condition
from mooring.apiserver.registry.context import RegistryContext
from mooring.apiserver.registry.delete import DeleteOptions, check_delete_options, delete, delete_options
from mooring.apiserver.registry.metadata import ensure_namespace
from mooring.apiserver.registry.object_storage import WRITE_TRIES_MAX, ServerStatusWriter, StoredObject
from mooring.apiserver.validation.fields import invalid
from mooring.client.errors import BadRequestError, ConflictError, ForbiddenError, StatusCause, TooManyRequestsError
from mooring.store.interface import WriteConflict

DISRUPTED_PODS_MAX = 2_000
RETRY_AFTER_S = 10

_WOULD_VIOLATE = "Cannot evict pod as it would violate the pod's disruption budget."
_ALLOWED_CONDITION = "DisruptionAllowed"

_SEVERAL_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."

_EVICTED: Document = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


async def evict(context: RegistryContext, call: Call, body: Document) -> None:
    """Delete a pod, if its disruption budget allows it."""
    eviction, options = await _admitted(context, call, body)
    for _ in range(WRITE_TRIES_MAX):
        pod = await _pod(context, call)
        if not _needs_no_budget(pod.document):
            return await _evict_within_budget(context, eviction, options, pod)
        # A pending pod may start meanwhile, and then its budget counts.
        is_guarded = options.revision is None and not _is_ending(pod.document)
        try:
            guarded = replace(options, revision=str(pod.revision)) if is_guarded else options
            return await _mark_and_delete(context, eviction, guarded)
        except ConflictError:
            if not is_guarded:
                raise
    raise conflict(POD, call.name)


class _Eviction(NamedTuple):
    """The Eviction of a request."""

    call: Call
    given: Document
    """The options of the deletion, as they were sent."""


async def _admitted(context: RegistryContext, call: Call, body: Document) -> tuple[_Eviction, DeleteOptions]:
    metadata: Document = body.setdefault("metadata", {})
    ensure_namespace(POD, metadata, call.namespace)
    attempt = Attempt(Operation.CREATE, call, body, None, body_kind="Eviction")
    await context.admission.admit(attempt)
    if metadata.get("name", "") != call.name:
        raise BadRequestError("name in URL does not match name in Eviction object")
    given: Document = body.get("deleteOptions") or {}
    if given.get("ignoreStoreReadErrorWithClusterBreakingPotential"):
        field = "deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential"
        error = invalid(field, True, "can not be set for pod eviction, try after removing the option")
        raise invalid_object("Eviction", "policy", call.name, [error])
    dry_runs = given.get("dryRun") or []
    if dry_runs and call.is_dry_run and dry_runs != ["All"]:
        raise plain_error(f"Non-matching dry-run options in request and content: [All] and [{' '.join(dry_runs)}]")
    await context.admission.check(attempt)
    return _Eviction(replace(call, is_dry_run=call.is_dry_run or bool(dry_runs)), given), delete_options(given)


async def _evict_within_budget(
    context: RegistryContext, eviction: _Eviction, options: DeleteOptions, pod: StoredObject
) -> None:
    budgets = [
        budget
        for budget in await context.lookup.list(POD_DISRUPTION_BUDGET, eviction.call.namespace)
        if _covers(budget, pod.document)
    ]
    if len(budgets) > 1:
        raise plain_error(_SEVERAL_BUDGETS)
    if not budgets:
        return await _mark_and_delete(context, eviction, options)
    if not _is_ready(pod.document) and _lets_unready_go(budgets[0]):
        return await _delete_unready(context, eviction, options, pod, budgets[0])
    await _spend(context, eviction.call, budgets[0])
    await _mark_and_delete(context, eviction, options)


async def _delete_unready(
    context: RegistryContext, eviction: _Eviction, options: DeleteOptions, pod: StoredObject, budget: Document
) -> None:
    try:
        await _mark_and_delete(context, eviction, replace(options, revision=str(pod.revision)))
    except ConflictError:
        if options.revision is not None:
            raise
        raise still_processing(budget) from None


async def _spend(context: RegistryContext, call: Call, budget: Document) -> None:
    """Decrement the allowed disruptions of a budget. Raises `StatusError` if there are none left."""
    name = budget["metadata"]["name"]
    writer = ServerStatusWriter(context.object_storage, context.resources)
    for _ in range(WRITE_TRIES_MAX):
        status = spent(budget, call.name, call.now)
        if call.is_dry_run:
            return
        try:
            return await writer.write(POD_DISRUPTION_BUDGET, budget, status, call.now)
        except WriteConflict:
            found = await context.lookup.get(POD_DISRUPTION_BUDGET, call.namespace, name)
            if found is None:
                raise not_found(POD_DISRUPTION_BUDGET, name) from None
            budget = found
    raise conflict(POD_DISRUPTION_BUDGET, name)


# --- pods -------------------------------------------------------------------------------------------------------


async def _pod(context: RegistryContext, call: Call) -> StoredObject:
    found = await context.object_storage.find(POD, call.namespace, call.name)
    if found is None:
        raise not_found(POD, call.name)
    return found


async def _mark_and_delete(context: RegistryContext, eviction: _Eviction, options: DeleteOptions) -> None:
    call = eviction.call
    if not call.is_dry_run:
        revision = await _mark(context, call, options)
        if options.revision is not None:
            options = replace(options, revision=str(revision))
    check_delete_options(eviction.given)  # so late, because only the deletion reads them
    await delete(context, context.resources.of_kind(POD), replace(call, subresource=""), options)


async def _mark(context: RegistryContext, call: Call, options: DeleteOptions) -> int:
    """Set the condition of an evicted pod, and return its new revision."""
    for _ in range(WRITE_TRIES_MAX):
        found = await _pod(context, call)
        pod = found.document
        if options.uid and options.uid != pod["metadata"]["uid"]:
            raise other_uid_in_deletion(POD, call.name, options.uid, pod["metadata"]["uid"])
        if options.revision and options.revision != str(found.revision):
            raise other_revision_in_deletion(POD, call.name, options.revision, found.revision)
        if not _set_disrupted(pod, call.now):
            return found.revision
        try:
            return await context.object_storage.put(POD, pod, if_revision=found.revision)
        except WriteConflict:
            continue
    raise conflict(POD, call.name)


def _set_disrupted(pod: Document, now: str) -> bool:
    """Set the condition; whether it changed. `pod` is changed."""
    status = pod.setdefault("status", {})
    before = status.get("conditions") or []
    status["conditions"] = with_condition(before, _EVICTED, now)
    return bool(status["conditions"] != before)


def _needs_no_budget(pod: Document) -> bool:
    return (pod.get("status") or {}).get("phase") == "Pending" or _is_ending(pod)


def _is_ending(pod: Document) -> bool:
    has_ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return has_ended or "deletionTimestamp" in pod["metadata"]


def _is_ready(pod: Document) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)


# --- budgets ----------------------------------------------------------------------------------------------------


def _covers(budget: Document, pod: Document) -> bool:
    raw = (budget.get("spec") or {}).get("selector")
    selector = None if raw is None else msgspec.convert(raw, LabelSelector)
    try:
        return compile_selector(selector).matches(pod["metadata"].get("labels") or {})
    except LabelSelectorError:
        return False


def _lets_unready_go(budget: Document) -> bool:
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(desired > 0 and status.get("currentHealthy", 0) >= desired)


# --- budgets -------------------------------------------------------------------------------------------------------


def spent(budget: Document, pod_name: str, now: str) -> Document:
    """The status after one more disruption. Raises `StatusError`."""
    status: Document = budget.get("status") or {}
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise still_processing(budget)
    left = status.get("disruptionsAllowed", 0)
    if left < 0:
        raise _forbidden(budget, "pdb disruptions allowed is negative")
    disrupted = status.get("disruptedPods") or {}
    if len(disrupted) > DISRUPTED_PODS_MAX:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise _forbidden(budget, why)
    if left == 0:
        raise _too_many(_why_not(budget["metadata"]["name"], status), retry_after_s=None)
    changed = {**status, "disruptionsAllowed": left - 1, "disruptedPods": {**disrupted, pod_name: now}}
    if left == 1:
        changed["conditions"] = _exhausted(status, now)
    return changed


def still_processing(budget: Document) -> TooManyRequestsError:
    name = budget["metadata"]["name"]
    why = f"The disruption budget {name} is still being processed by the server."
    return _too_many(why, retry_after_s=RETRY_AFTER_S)


def _why_not(name: str, status: Document) -> str:
    current, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    conditions: list[Document] = status.get("conditions") or []
    condition = next((existing for existing in conditions if existing.get("type") == _ALLOWED_CONDITION), {})
    message = condition.get("message") if condition.get("status") == "False" else ""
    reason = condition.get("reason", "")
    # Numbers of healthy pods cannot be trusted when they could not be counted.
    if message and reason == "SyncFailed":
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
    if current <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
    if message:
        return f"The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
    return f"The disruption budget {name} does not allow evicting pods currently"


def _exhausted(status: Document, now: str) -> list[Document]:
    conditions: list[Document] = status.get("conditions") or []
    condition: Document = {"type": _ALLOWED_CONDITION, "status": "False"}
    if status.get("observedGeneration"):
        condition["observedGeneration"] = status["observedGeneration"]
    condition |= {"lastTransitionTime": now, "reason": "InsufficientPods", "message": ""}
    before = next((existing for existing in conditions if existing.get("type") == _ALLOWED_CONDITION), None)
    if before is None:
        return [*conditions, condition]
    if before.get("status") == "False":
        condition["lastTransitionTime"] = before.get("lastTransitionTime")
    return [condition if existing is before else existing for existing in conditions]


def _too_many(why: str, *, retry_after_s: float | None) -> TooManyRequestsError:
    return TooManyRequestsError(
        _WOULD_VIOLATE, causes=[StatusCause("DisruptionBudget", why, "")], details={}, retry_after_s=retry_after_s
    )


def _forbidden(budget: Document, why: str) -> ForbiddenError:
    name, group = budget["metadata"]["name"], POD_DISRUPTION_BUDGET.group
    called = "poddisruptionbudget"
    return ForbiddenError(
        f'{called}.{group} "{name}" is forbidden: {why}', details={"name": name, "group": group, "kind": called}
    )
