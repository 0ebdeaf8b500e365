"""Batch writes: many similar objects in one call, for callers in the process of the API server.

`create_many` equals `create` for each name, one after the other; `renew_leases` equals a patch of `spec.renewTime` for
each lease. What the objects share is prepared once: the template is decoded, defaulted, stamped and admitted once. Each
object is then prepared, validated, checked by admission and stored as itself.

 1. A value that differs between the objects is a typed argument (a name, a time), and is validated like a received one.
 2. One object that is rejected does not stop the others: each has an outcome of its own, in the order of the arguments.
 3. If the shared part is rejected, each object is created on its own, so that the message names the object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import LEASE, POD
from mooring.apiserver.call import Call
from mooring.apiserver.registry.create import Created, admit_new, create, create_admitted, create_with_generated_name
from mooring.apiserver.registry.parts import Parts
from mooring.apiserver.registry.put import ReadBody
from mooring.apiserver.registry.update import Changed, change
from mooring.apiserver.resources import Resource
from mooring.apiserver.storage.errors import not_found
from mooring.client.errors import StatusError
from mooring.kit.clock import format_rfc3339_micro
from mooring.kit.tasks import run_bounded

WRITES_AT_ONCE = 32

CreateOutcome: TypeAlias = Created | StatusError
RenewalOutcome: TypeAlias = Changed | StatusError

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


async def create_many(
    parts: Parts, resource: Resource, call: Call, read_template: ReadBody, names: Sequence[str]
) -> list[CreateOutcome]:
    """Create an object of the template for each name. An empty name stands for the template's `generateName`.

    Only pods: of other kinds, admission plugins may read the name.
    """
    assert resource.kind is POD, f"create_many creates pods, not {resource.kind.plural}"

    async def create_alone(name: str) -> CreateOutcome:
        try:
            return await create(parts, resource, call, _named(read_template(), name))
        except StatusError as error:
            return error

    try:
        template = read_template()
        await admit_new(parts, resource, call, template)
    except StatusError:
        return await run_bounded(create_alone, names, limit=WRITES_AT_ONCE, name="create many")
    admitted = _encode(template)

    async def create_admitted_one(name: str) -> CreateOutcome:
        obj = _named(_decode(admitted), name)
        metadata = obj["metadata"]
        try:
            if metadata.get("name") or not metadata.get("generateName"):
                return await create_admitted(parts, resource, call, obj)
            return await create_with_generated_name(parts, resource, call, obj)
        except StatusError as error:
            return error

    return await run_bounded(create_admitted_one, names, limit=WRITES_AT_ONCE, name="create many")


async def renew_leases(
    parts: Parts, resource: Resource, call: Call, names: Sequence[str], renew_time_s: float
) -> list[RenewalOutcome]:
    """Set `spec.renewTime` of each lease in the call's namespace."""
    assert resource.kind is LEASE, f"only leases are renewed, not {resource.kind.plural}"
    renew_time = format_rfc3339_micro(renew_time_s)

    async def renew(name: str) -> RenewalOutcome:
        async def make(old: Document | None) -> Document:
            if old is None:  # an update may create a lease, a renewal may not
                raise not_found(LEASE, name)
            spec = {**(old.get("spec") or {}), "renewTime": renew_time}
            new = {**old, "metadata": dict(old["metadata"]), "spec": spec}
            parts.stamp(resource, resource.strategy, call, old, new)
            return new

        try:
            return await change(parts, resource, replace(call, name=name), make)
        except StatusError as error:
            return error

    return await run_bounded(renew, names, limit=WRITES_AT_ONCE, name="renew leases")


def _named(obj: Document, name: str) -> Document:
    if name:
        metadata = obj["metadata"]
        metadata.pop("name", None)
        obj["metadata"] = {"name": name, **metadata}  # where the name stands in a decoded object
    return obj
