"""LimitRanger: the limit ranges of a namespace, applied to its pods and claims.

Input: new pods and claims, changed claims, resized pods.
Output: pods with defaults (`limit_range_rules`); 403 for what is out of bounds.

 1. Objects on their way out are left alone.
 2. The first limit range that is broken answers, with everything that breaks it.
"""

from __future__ import annotations

from mooring.api.kinds import LIMIT_RANGE, PERSISTENT_VOLUME_CLAIM, POD, Kind
from mooring.apiserver.admission.forbidding import refused
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup
from mooring.apiserver.admission.limit_range_rules import claim_errors, fill_defaults, pod_errors
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
