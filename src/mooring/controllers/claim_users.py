"""Which pods use a claim: an index, and what using means.

Comes in   pods
Goes out   for a claim's key the pods that name it, or imply it by an ephemeral volume
"""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.storage import claim_named_by
from mooring.api.views.pod import Pod
from mooring.client.cache.informer import Informer

BY_CLAIM = "claims of a pod"


def add_claim_index(informer: Informer[Pod]) -> None:
    """Pods by the keys of their claims."""
    informer.add_index(BY_CLAIM, claim_keys)


def claim_keys(pod: Pod) -> Iterable[str]:
    """The keys of the claims that a pod uses, or will once they are made for it."""
    if not pod.spec.volumes:
        return ()
    metadata = pod.metadata
    names = (claim_named_by(volume, metadata.name) for volume in pod.spec.volumes)
    return [f"{metadata.namespace}/{name}" for name in names if name]
