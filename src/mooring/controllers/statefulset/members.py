"""The members of a StatefulSet: pods with a number, which is their identity.

Comes in   a StatefulSet, names of pods, templates
Goes out   ordinals, names, the pod of an ordinal

 1. A pod is a member by its name: `<set>-<ordinal>`. Its ordinal says which claims it has.
 2. Pods that are not there yet are made from the current template below the partition, from the new one above it.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import StatefulSet
from mooring.controllers.pod_control import pod_of_template
from mooring.controllers.pods import is_available

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
REVISION_LABEL = "controller-revision-hash"

_INT32_MAX = 2**31 - 1


def parent_and_ordinal(pod_name: str) -> tuple[str, int]:
    """The set and the number in a pod's name; "" and -1 if it has none."""
    parent, hyphen, digits = pod_name.rpartition("-")
    if not hyphen or not digits.isdecimal() or not digits.isascii():
        return "", -1
    ordinal = int(digits)
    return parent, ordinal if ordinal <= _INT32_MAX else -1


def ordinal_of(pod: Pod) -> int:
    return parent_and_ordinal(pod.metadata.name)[1]


def is_member(wanted: StatefulSet, pod: Pod) -> bool:
    return parent_and_ordinal(pod.metadata.name)[0] == wanted.metadata.name


def replicas_of(wanted: StatefulSet) -> int:
    return wanted.spec.replicas if wanted.spec.replicas is not None else 1


def start_of(wanted: StatefulSet) -> int:
    """The first ordinal."""
    return wanted.spec.ordinals.start if wanted.spec.ordinals is not None else 0


def is_in_range(wanted: StatefulSet, ordinal: int) -> bool:
    start = start_of(wanted)
    return start <= ordinal < start + replicas_of(wanted)


def member_name(wanted: StatefulSet, ordinal: int) -> str:
    return f"{wanted.metadata.name}-{ordinal}"


def claim_names(wanted: StatefulSet, ordinal: int) -> dict[str, str]:
    """By the name of the template: the name of the claim that a member has."""
    set_name = wanted.metadata.name
    templates = [template.metadata.name for template in wanted.spec.volume_claim_templates]
    return {template: f"{template}-{set_name}-{ordinal}" for template in templates}


def revision_of(pod: Pod) -> str:
    return pod.metadata.labels.get(REVISION_LABEL, "")


def partition_of(wanted: StatefulSet) -> int:
    rolling = wanted.spec.update_strategy.rolling_update
    return (rolling.partition or 0) if rolling is not None else 0


def is_made_of_current(wanted: StatefulSet, ordinal: int) -> bool:
    """Whether a new member is made of the current template rather than of the new one."""
    start = start_of(wanted)
    if wanted.spec.update_strategy.rolling_update is not None:
        return ordinal < start + partition_of(wanted)
    is_rolling = wanted.spec.update_strategy.type == "RollingUpdate"
    return is_rolling and ordinal < start + wanted.status.current_replicas


def has_identity(wanted: StatefulSet, pod: Pod) -> bool:
    """Whether a member is who its name says."""
    metadata = pod.metadata
    parent, ordinal = parent_and_ordinal(metadata.name)
    return (
        ordinal >= 0
        and parent == wanted.metadata.name
        and metadata.name == member_name(wanted, ordinal)
        and metadata.namespace == wanted.metadata.namespace
        and metadata.labels.get(POD_NAME_LABEL) == metadata.name
    )


def has_storage(wanted: StatefulSet, pod: Pod) -> bool:
    """Whether a member uses its own claims."""
    claims = {
        volume.name: volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    }
    ordinal = ordinal_of(pod)
    return ordinal >= 0 and all(claims.get(name) == claim for name, claim in claim_names(wanted, ordinal).items())


def is_unavailable(wanted: StatefulSet, pod: Pod, now_s: float) -> bool:
    if pod.metadata.deletion_timestamp is not None:
        return True
    return not is_available(pod, wanted.spec.min_ready_seconds, now_s)


def member_document(wanted: StatefulSet, template: Document, revision_name: str, ordinal: int) -> Document:
    """The pod of an ordinal, as it is created."""
    pod = pod_of_template(template, wanted)
    name = member_name(wanted, ordinal)
    metadata = {**pod["metadata"], "name": name, "namespace": wanted.metadata.namespace}
    metadata["labels"] = {
        **(metadata.get("labels") or {}),
        **identity_labels(name, ordinal),
        REVISION_LABEL: revision_name,
    }
    spec = {**pod["spec"], "hostname": name}
    if wanted.spec.service_name:
        spec["subdomain"] = wanted.spec.service_name
    volumes = with_claims(wanted, spec.get("volumes") or [], ordinal)
    if volumes:
        spec["volumes"] = volumes
    return {**pod, "metadata": metadata, "spec": spec}


def identity_labels(name: str, ordinal: int) -> dict[str, str]:
    return {POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal)}


def with_claims(wanted: StatefulSet, volumes: list[Document], ordinal: int) -> list[Document]:
    """The volumes with those of the claims, which replace any of the same name."""
    claims = claim_names(wanted, ordinal)
    own = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in claims.items()]
    return [*own, *(volume for volume in volumes if volume.get("name") not in claims)]
