"""Binding: a pod gets its node.

Comes in   a call and a Binding, sent to `pods/NAME/binding` or to `bindings`
Goes out   the pod with its node, in the store; or a `StatusError`

 1. A pod gets a node once (`strategies.pod_binding`); uid and resourceVersion of the Binding say which pod is meant.
 2. The labels and annotations of the Binding, also those that admission adds, become the pod's.
 3. Nobody becomes the manager of the node's name: a binding is no update of the pod.
 4. A plain binding never takes the pod apart (`client.local_pods`): a scheduler sends thousands in a second.
"""

from __future__ import annotations

from typing import cast

from mooring.api.document import Document
from mooring.api.kinds import POD, REGISTRY, Kind
from mooring.apiserver.admission.promise import Attempt
from mooring.apiserver.call import Call, Operation
from mooring.apiserver.faults import aggregated
from mooring.apiserver.registry.metadata import ensure_namespace
from mooring.apiserver.registry.parts import Parts
from mooring.apiserver.registry.refusals import plain_error
from mooring.apiserver.strategies.pod_binding import binding_refusal, bound_pod
from mooring.apiserver.validation.pod_binding import binding_faults
from mooring.client.errors import BadRequestError
from mooring.client.local_form import decoded, encoded
from mooring.client.local_pods import bound_form, with_labels
from mooring.client.local_refusals import conflict, not_found, other_uid
from mooring.store.interface import Record, WriteConflict

BINDING = Kind("v1", "Binding", "bindings")
"""The kind of calls to the `bindings` collection, the old way to bind. Nothing of it is ever stored."""

WRITE_TRIES_MAX = 64

_STORE_PREFIX = REGISTRY.removesuffix("/")


async def bind(parts: Parts, call: Call, body: Document) -> None:
    """Give a pod the node that the Binding names. `call.kind` is the pod's, or `BINDING`."""
    metadata: Document = body.setdefault("metadata", {})
    ensure_namespace(POD, metadata, call.namespace)
    attempt = Attempt(Operation.CREATE, call, body, None, body_kind="Binding")
    await parts.admission.admit(attempt)
    name = metadata.get("name", "")
    if call.kind is POD and name != call.name:
        raise BadRequestError("name in URL does not match name in Binding object")
    faults = binding_faults(body)
    if faults:
        raise plain_error(aggregated(faults))
    await parts.admission.check(attempt)
    if not name:
        raise BadRequestError("Name parameter required.")
    await _write(parts, call, name, body)


async def _write(parts: Parts, call: Call, name: str, body: Document) -> None:
    for _ in range(WRITE_TRIES_MAX):
        record = await parts.shelf.find_form(POD, call.namespace, name)
        if record is None:
            raise not_found(POD, name)
        # A dry run does not come as far as the store, and knows keys without the store's prefix.
        key = record.key.removeprefix(_STORE_PREFIX) if call.is_dry_run else record.key
        value = _bound_value(record, key, name, body, call.now)
        if call.is_dry_run:
            return
        try:
            await parts.shelf.put_form(record.key, value, if_revision=record.revision)
            return
        except WriteConflict:
            continue
    raise conflict(POD, name)


def _bound_value(record: Record, key: str, name: str, body: Document, now: str) -> bytes:
    metadata, node_name = body["metadata"], body["target"]["name"]
    uid, revision = metadata.get("uid", ""), metadata.get("resourceVersion", "")
    if not revision and not metadata.get("annotations"):
        labels = metadata.get("labels")
        labelled = with_labels(record.value, labels) if labels else record.value
        if labelled is not None:
            return bound_form(labelled, key, uid=uid, node_name=node_name, now=now).value
    pod = cast(Document, decoded(record.value))
    if uid and pod["metadata"]["uid"] != uid:
        raise other_uid(POD, key, name, uid, pod["metadata"]["uid"])
    if revision and revision != str(record.revision):
        failed = f"ResourceVersion in precondition: {revision}, ResourceVersion in object meta: {record.revision}"
        raise conflict(
            POD,
            name,
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: {failed}",
        )
    refusal = binding_refusal(pod)
    if refusal:
        raise conflict(POD, name, refusal, subresource="binding")
    return encoded(bound_pod(pod, body, now))
