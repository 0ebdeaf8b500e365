"""Batch writes: many similar objects in one call, for callers in the process of the API server.

`create_many` equals a create for each name, `patch_status_many` a patch for each status, and `renew_leases` a patch of
`spec.renewTime` for each lease. What the objects share is prepared once. Each object is prepared, validated, checked by
admission and stored as itself, by the functions of a single write.

 1. What differs between the objects is a typed value: a name, a status, a time. It is validated like a received one.
 2. Each object has an outcome of its own, in the order of the arguments.
 3. If the template is rejected, each object is created alone, so that the message names the object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.apiserver.call import Call
from mooring.apiserver.errors import STORE_ERRORS, not_found
from mooring.apiserver.registry.context import RegistryContext
from mooring.apiserver.registry.create import Created, admit_new, create, create_admitted
from mooring.apiserver.registry.patches import Patch, ReadDocument, patch
from mooring.apiserver.registry.update import Changed, change
from mooring.apiserver.resources import Resource
from mooring.apiserver.worker import WORKER_BYTES_MIN
from mooring.client.batch_writes import Answer, StatusPatch, outcomes_of
from mooring.client.errors import ClientError
from mooring.client.interface import PatchForm
from mooring.kit.clock import format_rfc3339_micro

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


NewCall: TypeAlias = Callable[[str, str], Call]
"""The call for one object, of its namespace and name. The name of a new object is in its metadata."""


async def create_many(
    context: RegistryContext,
    resource: Resource,
    new_call: NewCall,
    namespace: str,
    names: Sequence[str],
    read: Callable[[str, Call], Document],
) -> list[Created | ClientError]:
    """Create an object for each name. `read` decodes the template with a name; with an empty one, as it is.

    Only pods share their admission: of other kinds, defaults and admission plugins may read the name. Large pods are
    created alone, too, because the worker thread handles them.
    """

    async def create_single(name: str) -> Created:
        call = new_call(namespace, "")
        with STORE_ERRORS:
            obj = await context.run(resource.strategy, call, read, name, call)
            return await create(context, resource, call, obj)

    shared_call = new_call(namespace, "")
    if resource.kind is not POD or shared_call.size_bytes >= WORKER_BYTES_MIN:
        return await outcomes_of(create_single, names)
    try:
        with STORE_ERRORS:
            template = read("", shared_call)
            await admit_new(context, resource, shared_call, template)
    except ClientError:
        return await outcomes_of(create_single, names)
    admitted = _encode(template)

    async def create_copy(name: str) -> Created:
        obj = _decode(admitted)
        if name:
            obj["metadata"].pop("name", None)
            obj["metadata"] = {"name": name, **obj["metadata"]}  # the first field, as in a decoded object
        with STORE_ERRORS:
            return await create_admitted(context, resource, new_call(namespace, ""), obj)

    return await outcomes_of(create_copy, names)


async def patch_status_many(
    context: RegistryContext,
    resource: Resource,
    new_call: NewCall,
    patches: Sequence[StatusPatch],
    read: ReadDocument,
    answer: Callable[[int, Changed], Answer],
) -> list[Answer | ClientError]:
    """Patch the status of each object. Calls `answer` with its index as soon as an object is written."""

    async def patch_one(index: int) -> Answer:
        status = patches[index]
        call = new_call(status.namespace, status.name)
        with STORE_ERRORS:
            changed = await patch(context, resource, call, Patch(PatchForm.STRATEGIC, status.body), read)
        return answer(index, changed)

    return await outcomes_of(patch_one, range(len(patches)))


async def renew_leases(
    context: RegistryContext,
    resource: Resource,
    new_call: NewCall,
    namespace: str,
    names: Sequence[str],
    renew_time_s: float,
) -> list[Changed | ClientError]:
    """Set `spec.renewTime` of each lease."""
    strategy, renew_time = resource.strategy, format_rfc3339_micro(renew_time_s)

    def renewed(call: Call, old: Document) -> Document:
        new = {**old, "metadata": dict(old["metadata"]), "spec": {**(old.get("spec") or {}), "renewTime": renew_time}}
        strategy.default_update(new, old)
        context.stamp(resource, strategy, call, old, new)
        return new

    async def renew(name: str) -> Changed:
        call = new_call(namespace, name)

        async def make(old: Document | None) -> Document:
            if old is None:  # an update may create a lease, a patch may not
                raise not_found(resource.kind, name)
            return await context.run(strategy, call, renewed, call, old)

        with STORE_ERRORS:
            return await change(context, resource, call, make)

    return await outcomes_of(renew, names)
