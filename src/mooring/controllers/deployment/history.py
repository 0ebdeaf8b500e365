"""Old and new ReplicaSets of a Deployment: templates, revisions, rollback. No I/O.

Inputs: a Deployment and its ReplicaSets, with their stored templates. Outputs: the new ReplicaSet and the old ones;
the document of a new ReplicaSet; annotations.

1. The new ReplicaSet is the oldest one whose template equals the Deployment's, apart from the hash label.
2. Its revision is the highest old one plus 1. A ReplicaSet that becomes the new one again keeps its former
   revisions.
3. Annotations of a Deployment are copied to its new ReplicaSet and back by a rollback, except those of the
   controller and of kubectl apply.

The hash in the name is not that of kube-controller-manager, which depends on how Go prints structs. It must only be
stable: ReplicaSets are recognised by their template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import cast

import msgspec

from mooring.api.caches import BoundedCache
from mooring.api.document import Document
from mooring.api.labels import parse_int64
from mooring.api.views.meta import ObjectWithRaw, View
from mooring.api.views.workloads import Deployment, ReplicaSet
from mooring.api.well_known import (
    DEPLOYMENT_DESIRED_REPLICAS,
    DEPLOYMENT_MAX_REPLICAS,
    DEPLOYMENT_REVISION,
    DEPLOYMENT_REVISION_HISTORY,
    DEPLOYMENT_ROLLBACK_TO,
    LAST_APPLIED,
    POD_TEMPLATE_HASH,
)
from mooring.controllers.deployment.sizes import by_age, size_annotations
from mooring.controllers.documents import decode_document, document_of, owner_reference
from mooring.kit.entropy import SUFFIX_ALPHABET

OWN_ANNOTATIONS = (
    LAST_APPLIED,
    DEPLOYMENT_REVISION,
    DEPLOYMENT_REVISION_HISTORY,
    DEPLOYMENT_DESIRED_REPLICAS,
    DEPLOYMENT_MAX_REPLICAS,
    DEPLOYMENT_ROLLBACK_TO,
)
HISTORY_LENGTH_MAX = 2000
NAME_LENGTH_MAX = 253
TEMPLATES_REMEMBERED_MAX = 4096


class _RawSpec(View):
    template: msgspec.Raw = msgspec.Raw(b"{}")


class _Templated(View):
    spec: _RawSpec = _RawSpec()


_read_template = msgspec.json.Decoder(_Templated).decode
_canonical: BoundedCache[bytes, bytes] = BoundedCache(TEMPLATES_REMEMBERED_MAX)


# --- templates -----------------------------------------------------------------------------------------------


def template_of(owner: ObjectWithRaw) -> bytes:
    """A template as canonical bytes, without the hash label. Equal for templates that mean the same."""
    raw = bytes(_read_template(owner.raw).spec.template)
    known = _canonical.get(raw)
    return known if known is not None else _canonical.put(raw, _canonical_form(raw))


def _canonical_form(raw: bytes) -> bytes:
    template = cast(Document, _without_nulls(decode_document(raw)))
    metadata = template.get("metadata")
    if metadata is not None and metadata.get("labels"):
        metadata["labels"].pop(POD_TEMPLATE_HASH, None)
    return msgspec.json.encode(_without_empty_metadata(template), order="sorted")


def _without_empty_metadata(template: Document) -> Document:
    metadata = {name: value for name, value in (template.pop("metadata", None) or {}).items() if value}
    return {**template, "metadata": metadata} if metadata else template


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nulls(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [_without_nulls(entry) for entry in value]
    return value


def template_hash(template: bytes, collision_count: int | None) -> str:
    """A short hash of a template. Each collision gives another one."""
    text = template
    if collision_count is not None:
        text += collision_count.to_bytes(8, "little")
    digest = int.from_bytes(blake2b(text, digest_size=4).digest())
    # Decimal digits in the alphabet of generated names, as in Kubernetes.
    return "".join(SUFFIX_ALPHABET[ord(digit) % len(SUFFIX_ALPHABET)] for digit in str(digest))


# --- ReplicaSets ---------------------------------------------------------------------------------------------


def generations(deployment: Deployment, sets: Sequence[ReplicaSet]) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
    """The new ReplicaSet, or None, and the others, oldest first."""
    template = template_of(deployment)
    ordered = by_age(sets)
    new = next((replica_set for replica_set in ordered if template_of(replica_set) == template), None)
    return new, [replica_set for replica_set in ordered if replica_set is not new]


def revision_of(replica_set: ReplicaSet) -> int | None:
    """The revision. 0 without an annotation, None if it is not a number."""
    text = replica_set.metadata.annotations.get(DEPLOYMENT_REVISION)
    return 0 if text is None else parse_int64(text)


def next_revision(old: Sequence[ReplicaSet]) -> int:
    return max((revision_of(replica_set) or 0 for replica_set in old), default=0) + 1


def last_revision(sets: Sequence[ReplicaSet]) -> int:
    """The second highest revision, the target of a rollback without a number. 0 if there is none."""
    highest = second = 0
    for replica_set in sets:
        revision = revision_of(replica_set)
        if revision is None:
            continue
        if revision >= highest:
            highest, second = revision, highest
        elif revision > second:
            second = revision
    return second


def by_revision(sets: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Sorted by revision, then by age."""
    return sorted(by_age(sets), key=lambda replica_set: revision_of(replica_set) or 0)


def new_set_annotations(deployment: Deployment, present: Mapping[str, str], revision: int) -> dict[str, str]:
    """The annotations of the new ReplicaSet, given its present ones."""
    merged = dict(present)
    merged |= {key: value for key, value in deployment.metadata.annotations.items() if key not in OWN_ANNOTATIONS}
    before_text = present.get(DEPLOYMENT_REVISION)
    before = parse_int64(before_text) if before_text else 0
    if before is None or before >= revision:
        return merged
    merged[DEPLOYMENT_REVISION] = str(revision)
    if before_text is not None:
        merged[DEPLOYMENT_REVISION_HISTORY] = _longer_history(present.get(DEPLOYMENT_REVISION_HISTORY, ""), before_text)
    return merged


def _longer_history(history: str, revision: str) -> str:
    """The history with one more revision. The oldest are dropped if it gets too long."""
    if not history or history.startswith(","):
        return revision
    revisions = [*history.split(","), revision]
    while len(",".join(revisions)) > HISTORY_LENGTH_MAX and len(revisions) > 1:
        del revisions[0]
    return ",".join(revisions)


def new_set_document(deployment: Deployment, collision_count: int | None, revision: int, replicas: int) -> Document:
    """The ReplicaSet of a template that has none."""
    hashed = template_hash(template_of(deployment), collision_count)
    spec = document_of(deployment)["spec"]
    template: Document = spec.get("template") or {}
    labels = {**(template.get("metadata", {}).get("labels") or {}), POD_TEMPLATE_HASH: hashed}
    template = {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}}
    selector: Document = spec.get("selector") or {}
    match_labels = {**(selector.get("matchLabels") or {}), POD_TEMPLATE_HASH: hashed}
    annotations = new_set_annotations(deployment, {}, revision) | size_annotations(deployment)
    new_spec: Document = {
        "replicas": replicas,
        "selector": {**selector, "matchLabels": match_labels},
        "template": template,
    }
    if deployment.spec.min_ready_seconds:
        new_spec["minReadySeconds"] = deployment.spec.min_ready_seconds
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": _set_name(deployment.metadata.name, hashed),
            "namespace": deployment.metadata.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": new_spec,
    }


def _set_name(deployment_name: str, hashed: str) -> str:
    return f"{deployment_name[: NAME_LENGTH_MAX - 1 - len(hashed)]}-{hashed}"


# --- rollback ------------------------------------------------------------------------------------------------


def rollback_revision(deployment: Deployment) -> int | None:
    """The revision that a rollback annotation names (0: the last). None without one."""
    text = deployment.metadata.annotations.get(DEPLOYMENT_ROLLBACK_TO, "")
    return parse_int64(text) if text else None


def rolled_back(deployment: Deployment, target: ReplicaSet | None) -> Document:
    """The Deployment with the template and annotations of the target, without the rollback annotation."""
    document = document_of(deployment)
    metadata = document["metadata"]
    annotations: dict[str, str] = dict(metadata.get("annotations") or {})
    if target is not None:
        template: Document = document_of(target)["spec"]["template"]
        labels = {**(template.get("metadata", {}).get("labels") or {})}
        labels.pop(POD_TEMPLATE_HASH, None)
        document["spec"]["template"] = {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}}
        annotations = {key: value for key, value in annotations.items() if key in OWN_ANNOTATIONS}
        target_annotations = target.metadata.annotations
        annotations |= {key: value for key, value in target_annotations.items() if key not in OWN_ANNOTATIONS}
    annotations.pop(DEPLOYMENT_ROLLBACK_TO, None)
    metadata["annotations"] = annotations
    return document
