"""A disruption budget, asked for one disruption.

Comes in   a PodDisruptionBudget and the pod that is to be disrupted
Goes out   its status with one disruption less; or the `StatusError` that says why not

 1. A budget whose controller has not seen its last change allows nothing yet: that comes with a time to try again.
 2. `disruptedPods` has a limit: a controller that does not take pods out of it stops evictions.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.kinds import POD_DISRUPTION_BUDGET
from mooring.client.errors import Cause, ForbiddenError, TooManyRequestsError

DISRUPTED_PODS_MAX = 2_000
RETRY_AFTER_S = 10

_WOULD_VIOLATE = "Cannot evict pod as it would violate the pod's disruption budget."
_ALLOWED_CONDITION = "DisruptionAllowed"


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
    condition = next((one for one in conditions if one.get("type") == _ALLOWED_CONDITION), {})
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
    told: Document = {"type": _ALLOWED_CONDITION, "status": "False"}
    if status.get("observedGeneration"):
        told["observedGeneration"] = status["observedGeneration"]
    told |= {"lastTransitionTime": now, "reason": "InsufficientPods", "message": ""}
    before = next((one for one in conditions if one.get("type") == _ALLOWED_CONDITION), None)
    if before is None:
        return [*conditions, told]
    if before.get("status") == "False":
        told["lastTransitionTime"] = before.get("lastTransitionTime")
    return [told if one is before else one for one in conditions]


def _too_many(why: str, *, retry_after_s: float | None) -> TooManyRequestsError:
    return TooManyRequestsError(
        _WOULD_VIOLATE, causes=[Cause("DisruptionBudget", why, "")], details={}, retry_after_s=retry_after_s
    )


def _forbidden(budget: Document, why: str) -> ForbiddenError:
    name, group = budget["metadata"]["name"], POD_DISRUPTION_BUDGET.group
    called = "poddisruptionbudget"
    return ForbiddenError(
        f'{called}.{group} "{name}" is forbidden: {why}', details={"name": name, "group": group, "kind": called}
    )
