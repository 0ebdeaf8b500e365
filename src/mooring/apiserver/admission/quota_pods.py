"""What quotas are asked about pods.

Comes in   an attempt to write a pod
Goes out   what it uses, and what it must say and does not

 1. Where cpu or memory is limited, every container must say how much it wants, unless the pod says it as a whole.
 2. An update matters only if a quota means the pod afterwards that did not before, or the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.decode import convert_as
from mooring.api.document import Document
from mooring.api.quota.counting import Amounts
from mooring.api.quota.pods import container_usage, has_deadline, is_pod_in_scope, is_pod_name, pod_usage
from mooring.api.resource_names import CPU, MEMORY, QUOTA_PREFIX, is_pod_level_resource
from mooring.api.views.pod import Pod
from mooring.api.views.quotas import ScopeRequirement
from mooring.apiserver.admission.interface import Attempt, Lookup
from mooring.apiserver.admission.quota_measures import Measure
from mooring.apiserver.call import Operation

_MUST_BE_SAID = frozenset(f"{prefix}{name}" for prefix in ("", QUOTA_PREFIX, "limits.") for name in (CPU, MEMORY))


class PodMeasure(Measure):
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
