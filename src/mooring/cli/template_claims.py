"""Claims from templates: what the resource claim controller would have made for pods that never saw one.

Comes in   pods and claim templates as people write them down
Goes out   the pods with the names of their claims, and the claims

 1. A pod with a uid comes from an API server, where a controller makes its claims: it is taken as it is.
 2. A template that is not in the input makes nothing, and the pod says that it waits for its claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from mooring.api.views.devices import ResourceClaim, ResourceClaimTemplate
from mooring.api.views.meta import ApiObject, ObjectMeta, OwnerReference
from mooring.api.views.pod import Pod, PodResourceClaimStatus


def templates_in(views: Iterable[ApiObject]) -> dict[str, ResourceClaimTemplate]:
    """All claim templates, by namespace and name."""
    return {view.key: view for view in views if isinstance(view, ResourceClaimTemplate)}


def with_claims_made(pod: Pod, templates: Mapping[str, ResourceClaimTemplate]) -> tuple[Pod, list[ResourceClaim]]:
    """A pod that has its claims, and those that had to be made for it."""
    if pod.metadata.uid or not pod.spec.resource_claims:
        return pod, []
    statuses = list(pod.status.resource_claim_statuses)
    known = {status.name for status in statuses}
    made: list[ResourceClaim] = []
    for use in pod.spec.resource_claims:
        template = templates.get(f"{pod.metadata.namespace}/{use.resource_claim_template_name}")
        if use.resource_claim_template_name is None or use.name in known or template is None:
            continue
        claim = _made(pod, use.name, template)
        made.append(claim)
        statuses.append(PodResourceClaimStatus(name=use.name, resource_claim_name=claim.metadata.name))
    if not made:
        return pod, []
    return replace(pod, status=replace(pod.status, resource_claim_statuses=tuple(statuses))), made


def _made(pod: Pod, use: str, template: ResourceClaimTemplate) -> ResourceClaim:
    # A pod without a uid is known by its key, to its claims as to the scheduler.
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.key, controller=True)
    metadata = ObjectMeta(
        name=f"{pod.metadata.name}-{use}",
        namespace=pod.metadata.namespace,
        labels=template.spec.metadata.labels,
        annotations=template.spec.metadata.annotations,
        owner_references=(owner,),
    )
    return ResourceClaim(metadata=metadata, spec=template.spec.spec)
