"""Creates the objects of the input as an API server would, without a server and without storing them.

`DryRunServer` decodes, defaults and admits an object with the functions that the registry of `mooring.apiserver` calls.
Admission plugins look up the objects of the input instead of the store.

 1. An invalid object is created all the same: a pod without containers is enough to ask where it would go. Validating
    plugins do not check it, because they rely on valid objects.
 2. An object keeps the status and the creation time of the input. A pod keeps its priority, class and preemption policy
    if it has a priority: a dump without uids holds the priorities that its server computed.
 3. A namespace that the input lacks exists and is active. A pod of a PriorityClass that the input lacks gets priority
    0; a pod of a RuntimeClass that the input lacks gets no overhead and no node selector. `NewPod.absent` names both.
 4. A pod with a priority or a node was admitted before: validating plugins, which may have become stricter, do not
    check it.
 5. ResourceQuotas are not enforced, and service accounts are not looked up: no scheduling rule reads them.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.kinds import LIMIT_RANGE, NAMESPACE, POD, PRIORITY_CLASS, RUNTIME_CLASS, Kind, kind_of_view
from mooring.api.schema.types import struct_of_kind
from mooring.api.views.meta import ApiObject, ObjectMeta
from mooring.api.views.pod import Pod, PodSpec
from mooring.apiserver.access.authorization import EverythingAllowed
from mooring.apiserver.admission.interface import AdmissionChain, Attempt
from mooring.apiserver.admission.table import admission_plugins
from mooring.apiserver.bootstrap import system_priority_classes
from mooring.apiserver.call import Call, FieldValidation, Operation
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.wire.decode import decode_body
from mooring.cli.cluster_source.cluster_input import Identity
from mooring.cli.errors import InputError, Problem
from mooring.cli.manifests.read import Body, PlainObject
from mooring.client.errors import StatusError
from mooring.kit.clock import SystemClock, format_rfc3339
from mooring.kit.entropy import Entropy
from mooring.serving.users import MASTERS_GROUP, User

AnyObject = TypeVar("AnyObject", bound=ApiObject)

JSON = "application/json"
_USER = User("mooring-explain", groups=(MASTERS_GROUP,))
_PRIORITY_FIELDS = ("priority", "priorityClassName", "preemptionPolicy")
_RUNTIME_FIELDS = ("runtimeClassName", "overhead")


@dataclass(frozen=True, slots=True)
class NewPod:
    """An admitted pod."""

    view: Pod
    ephemeral_volumes: Mapping[str, Document]
    """By name: claims are made from their templates."""
    absent: Mapping[Kind, str]
    """PRIORITY_CLASS, RUNTIME_CLASS -> the name of a class that the pod names and the input lacks."""


WITHOUT = ("ServiceAccount",)
"""Admission plugins that are disabled."""


class InputLookup:
    """The objects of the input, for admission plugins."""

    def __init__(self, views: Mapping[Identity, ApiObject], now: str) -> None:
        self._views = views
        self._now = now
        self._documents: dict[Identity, Document] = {}
        self._lists: dict[tuple[Kind, str], list[Document]] = {}
        for document in system_priority_classes():
            self.add(PRIORITY_CLASS, document)

    def add(self, kind: Kind, document: Document) -> None:
        """Adds an object of a kind that has no view, or that every cluster has."""
        metadata = document["metadata"]
        self._documents[kind.kind, _key(metadata.get("namespace", ""), metadata.get("name", ""))] = document

    def has(self, kind: Kind, name: str) -> bool:
        """Whether the input holds a cluster-scoped object."""
        return (kind.kind, name) in self._views or (kind.kind, name) in self._documents

    async def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
        identity = (kind.kind, _key(namespace, name))
        found = self._documents.get(identity)
        if found is None:
            view = self._views.get(identity)
            if view is not None:
                found = self._documents[identity] = self._document_of(view)
            elif kind is NAMESPACE:
                found = self._documents[identity] = {"metadata": {"name": name}, "status": {"phase": "Active"}}
        return found

    async def labels(self, kind: Kind, namespace: str, name: str) -> Mapping[str, str] | None:
        found = await self.get(kind, namespace, name)
        return found["metadata"].get("labels", {}) if found is not None else None

    async def list(self, kind: Kind, namespace: str = "") -> Sequence[Document]:
        found = self._lists.get((kind, namespace))
        if found is None:
            documents = {
                identity: self._document_of(view) for identity, view in self._views.items() if identity[0] == kind.kind
            }
            documents |= {
                identity: document for identity, document in self._documents.items() if identity[0] == kind.kind
            }
            found = self._lists[kind, namespace] = [
                document
                for document in documents.values()
                if not namespace or document["metadata"].get("namespace") == namespace
            ]
        return found

    def _document_of(self, view: ApiObject) -> Document:
        """What the view reads of an object, which includes everything that admission reads of these kinds."""
        document: Document = msgspec.to_builtins(view)
        metadata = document.setdefault("metadata", {})
        metadata.setdefault("creationTimestamp", self._now)  # a new object is created now
        return document


class _NoQuotas:
    async def write_used(self, quota: Document, used: Mapping[str, str], now: str) -> bool:
        raise AssertionError("the lookup has no quotas")


class DryRunServer:
    """Creates objects over those of the input. `views` may grow: the server looks objects up when it needs them."""

    def __init__(self, views: Mapping[Identity, ApiObject], policies: Iterable[PlainObject], now_s: float) -> None:
        """`policies` are LimitRanges and RuntimeClasses. Raises `InputError`."""
        self._now_s = now_s
        self._now = format_rfc3339(int(now_s))
        self._lookup = InputLookup(views, self._now)
        plugins = admission_plugins(_NoQuotas(), EverythingAllowed(), SystemClock(), Entropy(0), WITHOUT)
        self._chain = AdmissionChain(plugins.mutating, plugins.validating, self._lookup)
        self._strategies: dict[Kind, Strategy] = {}
        self._priorities: dict[str, PodSpec] = {}
        for policy in policies:
            self._add_policy(policy)

    def _add_policy(self, policy: PlainObject) -> None:
        kind = LIMIT_RANGE if policy.document["kind"] == LIMIT_RANGE.kind else RUNTIME_CLASS
        try:
            document = self._decoded(kind, policy.document)
        except StatusError as error:
            raise InputError([Problem(policy.origin.at(), f"{kind.kind}: {error}")]) from None
        if kind.is_namespaced:
            document["metadata"].setdefault("namespace", "default")
        self._strategy(kind).default(document)
        self._lookup.add(kind, document)

    # Objects

    def defaulted(self, view: type[AnyObject], body: Body, metadata: ObjectMeta) -> AnyObject:
        """An object with the defaults of its kind, under the name of `metadata`. Raises `StatusError`."""
        return _view_of(view, self._defaulted(kind_of_view(view), body, metadata))

    def created(self, view: type[AnyObject], body: Body, metadata: ObjectMeta) -> AnyObject:
        """An object as the API server would store it, but for its status. Raises `StatusError`."""
        kind = kind_of_view(view)
        document = self._defaulted(kind, body, metadata)
        self._create(kind, document)
        return _view_of(view, document)

    def created_pod(self, body: Body, metadata: ObjectMeta) -> NewPod:
        """A pod as the API server would store it, but for its status. Raises `StatusError`."""
        document = self._defaulted(POD, body, metadata)
        was_admitted = document["spec"].get("priority") is not None or bool(document["spec"].get("nodeName"))
        absent, kept = self._set_aside(document["spec"])
        self._create(POD, document, is_checked=not was_admitted)
        spec = document["spec"]
        for field, value in kept.items():
            if value is None:
                spec.pop(field, None)
            else:
                spec[field] = value
        volumes = {volume.get("name", ""): volume for volume in spec.get("volumes") or () if volume.get("ephemeral")}
        return NewPod(_view_of(Pod, document), volumes, absent)

    def _defaulted(self, kind: Kind, body: Body, metadata: ObjectMeta) -> Document:
        document = self._decoded(kind, body)
        identity = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}
        document["metadata"] |= {field: value for field, value in identity.items() if value}
        self._strategy(kind).default(document)
        return document

    def _create(self, kind: Kind, document: Document, *, is_checked: bool = True) -> None:
        metadata, status = document["metadata"], document.get("status") or {}
        call = self._call(kind, metadata.get("namespace", ""), metadata.get("name", ""))
        attempt = Attempt(Operation.CREATE, call, document, None)
        _finish(self._chain.admit(attempt))
        strategy = self._strategy(kind)
        strategy.prepare_for_create(document, call)
        document["status"] = status
        if is_checked and not strategy.validate_body(document, call):
            _finish(self._chain.check(attempt))

    # Priorities

    def is_priority_known(self, spec: PodSpec) -> bool:
        """Whether the pod has a priority, or its class is in the input."""
        name = spec.priority_class_name
        return spec.priority is not None or not name or self._lookup.has(PRIORITY_CLASS, name)

    def priority_of(self, class_name: str) -> PodSpec:
        """The priority, class and preemption policy of a pod that names this class, or none."""
        found = self._priorities.get(class_name)
        if found is None:
            document: Document = {"metadata": {}, "spec": {"priorityClassName": class_name}}
            if class_name and not self._lookup.has(PRIORITY_CLASS, class_name):
                document["spec"]["priority"] = 0
            else:
                _finish(self._chain.admit(Attempt(Operation.CREATE, self._call(POD, "", ""), document, None)))
            found = self._priorities[class_name] = _view_of(Pod, document).spec
        return found

    def _set_aside(self, spec: Document) -> tuple[Mapping[Kind, str], Document]:
        """Takes out of a spec what admission cannot compute, see 2 and 3 of the module. Returns the absent classes, and
        the fields with the values that the pod gets back."""
        absent: dict[Kind, str] = {}
        kept: Document = {}
        priority_class, runtime_class = spec.get("priorityClassName"), spec.get("runtimeClassName")
        if spec.get("priority") is not None:
            kept |= {field: spec.pop(field, None) for field in _PRIORITY_FIELDS}
        elif priority_class and not self._lookup.has(PRIORITY_CLASS, priority_class):
            absent[PRIORITY_CLASS] = priority_class
            kept |= {field: spec.pop(field, None) for field in _PRIORITY_FIELDS} | {"priority": 0}
        if runtime_class and not self._lookup.has(RUNTIME_CLASS, runtime_class):
            absent[RUNTIME_CLASS] = runtime_class
            kept |= {field: spec.pop(field, None) for field in _RUNTIME_FIELDS}
        return absent, kept

    # Parts

    def _decoded(self, kind: Kind, body: Body) -> Document:
        struct = struct_of_kind(kind.api_version, kind.kind)
        assert struct is not None, f"the schema lacks {kind}"
        # The decoder is several times as fast with JSON as msgspec writes it.
        data = msgspec.json.encode(msgspec.json.decode(body) if isinstance(body, msgspec.Raw) else body)
        return decode_body(data, JSON, kind, struct, FieldValidation.IGNORE).document

    def _strategy(self, kind: Kind) -> Strategy:
        found = self._strategies.get(kind)
        if found is None:
            found = self._strategies[kind] = strategy_of(kind)
        return found

    def _call(self, kind: Kind, namespace: str, name: str) -> Call:
        return Call("create", kind, _USER, self._now_s, self._now, namespace, name, is_dry_run=True)


def _view_of(view: type[AnyObject], document: Document) -> AnyObject:
    return decode_as(view, msgspec.json.encode(document))


def _key(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _finish(coroutine: Coroutine[Any, Any, None]) -> None:
    """Runs admission without an event loop: `InputLookup` never waits."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("admission waits for something that is not in the input")
