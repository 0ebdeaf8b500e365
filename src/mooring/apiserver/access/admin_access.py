"""Authorization of changes to ResourceClaims: admin access, allocation and device status.

Input: a ResourceClaim or ResourceClaimTemplate that a user writes. Output: field errors in the call, which come
first.

1. Admin access is for namespaces with the label for it.
2. Each part of the status needs a permission: the allocation and reservations `resourceclaims/binding`, the status of
   devices `resourceclaims/driver` with the name of the driver and a verb that says whether the driver runs on the
   node of the allocation.
3. The check runs at the end of mutating admission, because strategies do not await.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.access.authorization import Attributes, Authorizer, forbidden
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup
from mooring.apiserver.call import Call, Operation
from mooring.apiserver.kinds.resource_claim import device_key, drop_reports_on_lost_devices
from mooring.apiserver.validation.fields import FieldError
from mooring.apiserver.validation.fields import forbidden as forbidden_field
from mooring.apiserver.validation.values import means_the_same
from mooring.serving.users import NODE_NAME_KEY, User, service_account_of

ADMIN_LABEL = "resource.kubernetes.io/admin-access"

_NOT_ADMIN = f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
_ON_THE_NODE, _ANYWHERE = "associated-node:", "arbitrary-node:"


class AdminAccessCheck(Admission):
    """Checks writes of claims and of templates of claims."""

    name = "AdminAccessCheck"

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        if subresource:
            return kind is kinds.RESOURCE_CLAIM and subresource == "status" and operation is Operation.UPDATE
        return kind in (kinds.RESOURCE_CLAIM, kinds.RESOURCE_CLAIM_TEMPLATE) and operation is Operation.CREATE

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        call, obj = attempt.call, attempt.obj
        assert obj is not None, "a write has an object"
        if attempt.old is None:
            spec = obj["spec"]["spec"] if call.kind is kinds.RESOURCE_CLAIM_TEMPLATE else obj["spec"]
            path = _admin_request(spec)
            call.prior_errors = await _validate_admin_access(path, call.namespace, lookup)
            return
        changed: Document = {"status": dict(obj.get("status") or {})}
        drop_reports_on_lost_devices(changed, attempt.old)
        status, old_status = changed["status"], attempt.old.get("status") or {}
        path = "" if _admin_result(old_status) else _admin_result(status)
        call.prior_errors = await _validate_admin_access(path, call.namespace, lookup)
        call.prior_errors += self._validate_binding(call, status, old_status)
        if status.get("allocation") is not None:
            call.prior_errors += self._validate_reports(call, status, old_status)

    def _validate_binding(self, call: Call, status: Document, old: Document) -> list[FieldError]:
        is_same = means_the_same(status.get("allocation"), old.get("allocation"), "resource", "AllocationResult")
        if is_same and (status.get("reservedFor") or []) == (old.get("reservedFor") or []):
            return []
        denial = self._denial(_attributes(call, call.verb, "binding", "", ""))
        if not denial:
            return []
        needed = f'resource="resourceclaims/binding", verb="{call.verb}" permission'
        detail = f"changing status.allocation or status.reservedFor requires {needed}: {denial}"
        return [forbidden_field("status.allocation", detail)]

    def _validate_reports(self, call: Call, status: Document, old: Document) -> list[FieldError]:
        verbs = [f"{_ANYWHERE}{call.verb}"]
        if _runs_on(call.user, _allocated_node(status)):
            verbs.insert(0, f"{_ON_THE_NODE}{call.verb}")
        errors = []
        for driver in _drivers_that_report(status, old):
            denials = [self._denial(_attributes(call, verb, "driver", call.namespace, driver)) for verb in verbs]
            if all(denials):
                needed = f'resource="resourceclaims/driver", verb="[{" ".join(verbs)}]" permission'
                errors.append(
                    forbidden_field("status.devices", f"changing status.devices requires {needed}: {denials[0]}")
                )
        return errors

    def _denial(self, attributes: Attributes) -> str:
        decision = self._authorizer.authorize(attributes)
        return "" if decision.is_allowed else str(forbidden(attributes, decision.reason))


def _attributes(call: Call, verb: str, subresource: str, namespace: str, name: str) -> Attributes:
    return Attributes(
        user=call.user,
        verb=verb,
        namespace=namespace,
        api_group=call.kind.group,
        api_version=call.kind.api_version.rpartition("/")[2],
        resource=call.kind.plural,
        subresource=subresource,
        name=name,
    )


# --- administrators -----------------------------------------------------------------------------------------------


async def _validate_admin_access(path: str, namespace: str, lookup: Lookup) -> list[FieldError]:
    if not path:
        return []
    found = await lookup.get(kinds.NAMESPACE, "", namespace)
    labels = (found["metadata"].get("labels") or {}) if found is not None else {}
    return [] if labels.get(ADMIN_LABEL) == "true" else [forbidden_field(path, _NOT_ADMIN)]


def _admin_request(spec: Document) -> str:
    """The path of the first request with admin access; empty if there is none."""
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            return f"spec.devices.requests[{index}].adminAccess"
    return ""


def _admin_result(status: Document) -> str:
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    for index, result in enumerate(results):
        if result.get("adminAccess"):
            return f"status.allocation.devices.results[{index}].adminAccess"
    return ""


# --- drivers ------------------------------------------------------------------------------------------------------


def _drivers_that_report(status: Document, old: Document) -> Sequence[str]:
    """The drivers whose entries in `status.devices` are added, changed or removed."""
    before = {device_key(device): device for device in old.get("devices") or ()}
    drivers = set()
    for device in status.get("devices") or ():
        if before.pop(device_key(device), None) != device:
            drivers.add(device.get("driver", ""))
    return sorted(drivers | {device.get("driver", "") for device in before.values()})


def _allocated_node(status: Document) -> str:
    """The node of the allocated devices, if they all belong to one node."""
    terms = ((status.get("allocation") or {}).get("nodeSelector") or {}).get("nodeSelectorTerms") or []
    if len(terms) != 1 or terms[0].get("matchExpressions") or len(terms[0].get("matchFields") or []) != 1:
        return ""
    requirement = terms[0]["matchFields"][0]
    values = requirement.get("values") or []
    is_one = requirement.get("key") == "metadata.name" and requirement.get("operator") == "In" and len(values) == 1
    return str(values[0]) if is_one else ""


def _runs_on(user: User, node: str) -> bool:
    is_account = service_account_of(user.name) is not None
    return bool(node) and is_account and tuple(user.extra.get(NODE_NAME_KEY, ())) == (node,)
