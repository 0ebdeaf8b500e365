"""Binding: assign a pod to a node.

Input: a call and a Binding, sent to `pods/NAME/binding` or to `bindings`. Output: the stored pod with its node, or a
`StatusError`.

 1. A pod gets a node once (`kinds.pod.prepare`). The uid and the resourceVersion of the Binding are preconditions.
 2. The labels and annotations of the Binding, also those that admission adds, are added to the pod.
 3. No field manager owns the node's name: a binding is not an update of the pod.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.kinds import POD, REGISTRY, Kind
from mooring.apiserver.admission.interface import Attempt
from mooring.apiserver.call import Call, Operation
from mooring.apiserver.errors import conflict, not_found, other_uid, plain_error
from mooring.apiserver.kinds.pod.prepare import FIELDS_READ_BY_BINDING, binding_error, bound_pod, validate_binding
from mooring.apiserver.registry.context import RegistryContext
from mooring.apiserver.registry.metadata import ensure_namespace
from mooring.apiserver.registry.object_storage import WRITE_TRIES_MAX
from mooring.apiserver.validation.fields import aggregated
from mooring.client.errors import BadRequestError
from mooring.store.interface import WriteConflict

BINDING = Kind("v1", "Binding", "bindings")
"""The kind of calls to the deprecated collection `bindings`. Bindings are never stored."""

_STORE_PREFIX = REGISTRY.removesuffix("/")


async def bind(context: RegistryContext, call: Call, body: Document) -> None:
    """Give a pod the node that the Binding names. `call.kind` is the pod's, or `BINDING`."""
    metadata: Document = body.setdefault("metadata", {})
    ensure_namespace(POD, metadata, call.namespace)
    attempt = Attempt(Operation.CREATE, call, body, None, body_kind="Binding")
    await context.admission.admit(attempt)
    name = metadata.get("name", "")
    if call.kind is POD and name != call.name:
        raise BadRequestError("name in URL does not match name in Binding object")
    errors = validate_binding(body)
    if errors:
        raise plain_error(aggregated(errors))
    await context.admission.check(attempt)
    if not name:
        raise BadRequestError("Name parameter required.")
    await _write(context, call, name, body)


async def _write(context: RegistryContext, call: Call, name: str, body: Document) -> None:
    for _ in range(WRITE_TRIES_MAX):
        found = await context.object_storage.find_partly(POD, call.namespace, name, FIELDS_READ_BY_BINDING)
        if found is None:
            raise not_found(POD, name)
        pod, metadata = found.document, body["metadata"]
        _check_preconditions(call, pod, metadata, found.revision)
        error = binding_error(pod)
        if error:
            raise conflict(POD, name, error, subresource="binding")
        if call.is_dry_run:
            return
        try:
            await context.object_storage.put(POD, bound_pod(pod, body, call.now), if_revision=found.revision)
            return
        except WriteConflict:
            continue
    raise conflict(POD, name)


def _check_preconditions(call: Call, pod: Document, metadata: Document, have: int) -> None:
    name, uid, revision = pod["metadata"]["name"], metadata.get("uid", ""), metadata.get("resourceVersion", "")
    key = POD.key(call.namespace, name)
    if call.is_dry_run:
        key = key.removeprefix(_STORE_PREFIX)  # kube-apiserver's dry run shows keys without the prefix of the store
    if uid and pod["metadata"]["uid"] != uid:
        raise other_uid(POD, key, name, uid, pod["metadata"]["uid"])
    if revision and revision != str(have):
        failed = f"ResourceVersion in precondition: {revision}, ResourceVersion in object meta: {have}"
        raise conflict(
            POD,
            name,
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: {failed}",
        )
