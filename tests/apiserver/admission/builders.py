"""Builders for admission tests: attempts, stored objects for the lookup, and calls of a plugin."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from mooring.api.document import Document
from mooring.api.kinds import NAMESPACE, Kind
from mooring.apiserver.admission.interface import Admission, Attempt
from mooring.apiserver.call import Call, Operation
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.serving.users import User

NOW = "2026-01-02T03:04:05Z"
NOW_S = 1_767_323_045.0
NS = "team"

Result = TypeVar("Result")


class Known:
    """A lookup of the given objects, by kind."""

    def __init__(self, objects: Mapping[Kind, Sequence[Document]] | None = None) -> None:
        self.objects = {NAMESPACE: [named(NS)], **(objects or {})}

    async def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
        found = (one for one in self.objects.get(kind, ()) if one["metadata"]["name"] == name)
        return next(found, None)

    async def labels(self, kind: Kind, namespace: str, name: str) -> Mapping[str, str] | None:
        found = await self.get(kind, namespace, name)
        return found["metadata"].get("labels", {}) if found is not None else None

    async def list(self, kind: Kind, namespace: str = "") -> Sequence[Document]:
        return list(self.objects.get(kind, ()))


def wait(work: Coroutine[Any, Any, Result]) -> Result:
    return run(work, VirtualClock())


def named(name: str, **fields: Any) -> Document:
    return {"metadata": {"name": name}, **fields}


def pod(name: str = "p", containers: Sequence[Document] | None = None, **spec: Any) -> Document:
    return {
        "metadata": {"name": name, "namespace": NS},
        "spec": {"containers": list(containers) if containers is not None else [container()], **spec},
    }


def container(
    name: str = "c", requests: Document | None = None, limits: Document | None = None, **fields: Any
) -> Document:
    resources = {which: given for which, given in (("requests", requests), ("limits", limits)) if given}
    return {"name": name, "image": "app:1", "resources": resources, **fields}


def attempt(
    kind: Kind,
    obj: Document | None,
    old: Document | None = None,
    *,
    operation: Operation | None = None,
    subresource: str = "",
    name: str = "",
    is_dry_run: bool = False,
) -> Attempt:
    if operation is None:
        operation = Operation.CREATE if old is None else Operation.UPDATE
    call = Call(
        verb=operation.value.lower(),
        kind=kind,
        user=User("somebody"),
        now_s=NOW_S,
        now=NOW,
        namespace=NS if kind.is_namespaced else "",
        name=name or (old or {}).get("metadata", {}).get("name", ""),
        subresource=subresource,
        is_dry_run=is_dry_run,
    )
    return Attempt(operation, call, obj, old)


def admitted(plugin: Admission, made: Attempt, known: Known | None = None) -> Document:
    """The object after the plugin changed it."""
    assert plugin.handles(made.call.kind, made.call.subresource, made.operation)
    wait(plugin.admit(made, known or Known()))
    assert made.obj is not None
    return made.obj


def check(plugin: Admission, made: Attempt, known: Known | None = None) -> None:
    assert plugin.handles(made.call.kind, made.call.subresource, made.operation)
    wait(plugin.check(made, known or Known()))
