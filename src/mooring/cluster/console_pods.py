"""The pods of a manifest, for the page What if of the console: expanded, changed and admitted as if they were created.

    POST {"manifest": YAML, "replicas": 5, "requests": {"cpu": "2"}, "tolerations": ["gpu=true:NoSchedule"]}
    ->   {"pods": [POD…], "copies": [5…], "manifest": YAML, "notes": […]}

The answer is what POST /plan takes, and the manifest with the changes.

1. Nothing is stored. A dry run of the API server defaults, admits and validates one pod of each workload, so pods have
   their priority and tolerations. Copies are named NAME-new-0, NAME-new-1 and so on. If this process may not create
   pods, they get defaults only, and a note says so.
2. Pods that a workload of the cluster has already are not planned again, as in `mooring plan`.
3. The caller must be allowed to list the pods of the namespaces that the manifest names: the answer depends on
   their workloads, limit ranges and quotas.
4. What needs more than a template is an error that names `mooring plan`: DaemonSets, CronJobs, and claim templates.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from mooring.api.decode import convert_as
from mooring.api.document import Document
from mooring.api.errors import ObjectError, QuantityError
from mooring.api.kinds import POD, kind_of_view
from mooring.api.quantity import quantity_nano
from mooring.api.schema.types import struct_of_kind
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Deployment, Job, ReplicaSet, ReplicationController, StatefulSet
from mooring.api.yaml import load_documents
from mooring.apiserver.call import FieldValidation
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.wire.decode import decode_body
from mooring.apiserver.wire.yaml_text import written_yaml
from mooring.apiserver.worker import WorkerThread
from mooring.client.errors import ClientError, ForbiddenError, NotFoundError
from mooring.client.interface import Client, dry_run_create
from mooring.controllers.pod_control import pod_of_template
from mooring.serving.pages import MayRead, PageRequest, PageResponse, as_json, text
from mooring.serving.server import Page

if TYPE_CHECKING:
    from mooring.scheduler.scheduler import Scheduler

OBJECTS_MAX = 50
REPLICAS_MAX = 10_000
Workload: TypeAlias = Deployment | ReplicaSet | ReplicationController | StatefulSet | Job
WORKLOADS: Mapping[str, type[Workload]] = {
    view.kind: view for view in (Deployment, ReplicaSet, ReplicationController, StatefulSet, Job)
}
NOT_EXPANDED = ("CronJob", "DaemonSet")
DEFAULT_NAMESPACE = "default"
_TOLERATION = re.compile(
    r"(?P<key>[^=:\s]+)(=(?P<value>[^:\s]*))?(:(?P<effect>NoSchedule|PreferNoSchedule|NoExecute))?"
)


class _ManifestBody(msgspec.Struct, forbid_unknown_fields=True):
    manifest: str
    replicas: int | None = None
    requests: dict[str, str] = {}
    tolerations: list[str] = []


PodsThere = Callable[[str, str, str], Awaitable[int]]
"""The number of pods that a workload of the cluster has: by kind, namespace and name."""


class ManifestError(Exception):
    """The manifest has no pods that can be planned. The text is for the user."""


_decode_body = msgspec.json.Decoder(_ManifestBody).decode


def manifest_pods_page(client: Client, worker: WorkerThread, pods_there: PodsThere) -> Page:
    """The page that turns manifests into pods. Large ones are parsed by the worker."""

    async def page(page_request: PageRequest) -> PageResponse:
        try:
            assert page_request.may_read is not None, "the server sets it"
            return as_json(
                await _Manifest(client, worker, pods_there, page_request.body, page_request.may_read).answer()
            )
        except (ManifestError, ObjectError, ClientError, msgspec.MsgspecError) as error:
            return text(f"{error}\n", 422)

    return page


@asynccontextmanager
async def manifest_page(scheduler: Scheduler) -> AsyncIterator[dict[str, Page]]:
    """The page beside a scheduler whose API server is elsewhere."""
    from mooring.scheduler.console.pods import pods_of_workload  # numpy, which an API server does not need

    async def pods_there(kind: str, namespace: str, name: str) -> int:
        return pods_of_workload(scheduler, kind, namespace, name)

    async with WorkerThread() as worker:
        yield {"/console/data/pods": manifest_pods_page(scheduler.client, worker, pods_there)}


def pods_by_status(client: Client) -> PodsThere:
    """Counts the pods of a workload by its status."""

    async def pods_there(kind: str, namespace: str, name: str) -> int:
        try:
            raw = await client.get(kind_of_view(WORKLOADS[kind]), namespace, name)
        except NotFoundError:
            return 0
        status = msgspec.json.decode(raw).get("status", {})
        return int(status.get("active" if kind == Job.kind else "replicas", 0))

    return pods_there


class _Manifest:
    def __init__(
        self, client: Client, worker: WorkerThread, pods_there: PodsThere, body: bytes, may_read: MayRead
    ) -> None:
        self._client = client
        self._worker = worker
        self._pods_there = pods_there
        self._size_bytes = len(body)
        self._may_read = may_read
        self._requested = requested = _decode_body(body)
        self._tolerations = [_toleration(toleration) for toleration in requested.tolerations]
        if requested.replicas is not None and not 0 <= requested.replicas <= REPLICAS_MAX:
            raise ManifestError(f"replicas: found {requested.replicas}, wanted 0 to {REPLICAS_MAX}")
        for name, amount in requested.requests.items():
            try:
                quantity_nano(amount)
            except QuantityError:
                raise ManifestError(f"{name}: found {amount!r}, wanted an amount such as 500m or 2Gi") from None
        self._pods: list[Document] = []
        self._copies: list[int] = []
        self._notes: list[str] = []

    async def answer(self) -> dict[str, Any]:
        documents = await self._worker.run(self._size_bytes, _read_objects, self._requested.manifest)
        for document in documents:
            await self._take(document)
        if not self._pods:
            raise ManifestError("; ".join(["the manifest has no pods to place", *self._notes]))
        manifest = await self._worker.run(self._size_bytes, _written, documents)
        return {"pods": self._pods, "copies": self._copies, "manifest": manifest, "notes": self._notes}

    async def _take(self, document: Document) -> None:
        kind, metadata = str(document.get("kind", "")), _part(document, "metadata")
        name, namespace = metadata.get("name", ""), metadata.get("namespace") or DEFAULT_NAMESPACE
        if not await self._may_read(namespace):
            raise ManifestError(f"{kind} {name}: you cannot list pods in the namespace {namespace}")
        if kind in NOT_EXPANDED:
            raise ManifestError(f"{kind} {name}: the console does not plan it; `mooring plan FILE` does")
        view_type = WORKLOADS.get(kind)
        if kind == Pod.kind:
            convert_as(Pod, document)  # names a field that has a wrong type
            self._change(_part(document, "spec"))
            pod = {**document, "metadata": {**metadata, "generateName": f"{name or 'pod'}-"}}
            copies = 1 if self._requested.replicas is None else self._requested.replicas
            if copies > 1:
                self._notes.append(f"Pod {name}: {copies} copies; the command plans one, because a Pod has no replicas")
            await self._add(pod, name or "pod", namespace, copies)
        elif view_type is None:
            self._notes.append(f"{kind or 'an object without kind'} {name}: left out, it has no pods")
        else:
            await self._take_workload(document, view_type, name, namespace)

    async def _take_workload(self, document: Document, view_type: type[Workload], name: str, namespace: str) -> None:
        spec = _part(document, "spec")
        if spec.get("volumeClaimTemplates"):
            raise ManifestError(
                f"{view_type.kind} {name} makes claims: `mooring plan FILE` plans them, the console not"
            )
        if self._requested.replicas is not None:
            spec["parallelism" if view_type is Job else "replicas"] = self._requested.replicas
        template = _part(spec, "template")
        self._change(_part(template, "spec"))
        owner = convert_as(view_type, {**document, "metadata": {**document["metadata"], "uid": "what-if"}})
        replicas, there = _desired_replicas(owner), await self._pods_there(view_type.kind, namespace, name)
        if there:
            self._notes.append(f"{view_type.kind} {name} has {there} of {replicas} pods already")
        await self._add(pod_of_template(template, owner), name, namespace, replicas - there)

    async def _add(self, pod: Document, name: str, namespace: str, copies: int) -> None:
        if copies < 1:
            return
        pod["metadata"] = {**pod["metadata"], "namespace": namespace}
        for field in ("name", "uid", "resourceVersion"):
            pod["metadata"].pop(field, None)
        pod.pop("status", None)
        try:
            admitted = await dry_run_create(self._client, POD, namespace, pod)
        except ForbiddenError as error:
            admitted = _defaulted(pod)
            self._notes.append(f"{name}: planned without priority, limit ranges and quotas, because {error}")
        admitted["metadata"] = {**admitted["metadata"], "name": f"{name}-new"}
        self._pods.append(admitted)
        self._copies.append(copies)

    def _change(self, spec: Document) -> None:
        """Apply the asked changes to a pod's spec: requests to its first container."""
        if self._tolerations:
            spec["tolerations"] = [*(spec.get("tolerations") or ()), *self._tolerations]
        containers = spec.get("containers")
        if self._requested.requests and isinstance(containers, list) and containers and isinstance(containers[0], dict):
            resources = _part(containers[0], "resources")
            _part(resources, "requests").update(self._requested.requests)
            if resources.get("limits"):  # a request above its limit is invalid
                limits = _part(resources, "limits")
                limits.update((name, amount) for name, amount in self._requested.requests.items() if name in limits)


def _defaulted(pod: Document) -> Document:
    """A pod with the defaults of its kind. Raises `StatusError`."""
    struct = struct_of_kind(POD.api_version, POD.kind)
    assert struct is not None, "the schema has pods"
    document = decode_body(msgspec.json.encode(pod), "application/json", POD, struct, FieldValidation.IGNORE).document
    strategy_of(POD).default(document)
    return document


def _objects(manifest: str) -> Iterable[Document]:
    documents: list[Any] = []
    for found in load_documents(manifest, "manifest"):
        if not isinstance(found.data, dict):
            raise ManifestError(f"manifest:{found.line}: found no object")
        items = found.data.get("items") if str(found.data.get("kind", "")).endswith("List") else None
        documents += items if isinstance(items, list) else [found.data]
    if len(documents) > OBJECTS_MAX:
        raise ManifestError(f"found {len(documents)} objects; the console plans at most {OBJECTS_MAX}")
    if not documents or not all(isinstance(document, dict) for document in documents):
        raise ManifestError("the manifest is empty" if not documents else "found an item that is no object")
    return documents


def _desired_replicas(owner: Workload) -> int:
    if not isinstance(owner, Job):
        return owner.spec.replicas if owner.spec.replicas is not None else 1
    parallelism = owner.spec.parallelism if owner.spec.parallelism is not None else 1
    return min(parallelism, owner.spec.completions if owner.spec.completions is not None else parallelism)


def _part(document: Document, name: str) -> Document:
    """A part of a document that is an object, empty if it is absent; it can be changed."""
    part = document.get(name)
    if part is not None and not isinstance(part, dict):
        raise ManifestError(f"{name}: found {type(part).__name__}, wanted an object")
    document[name] = dict(part or {})
    changed: Document = document[name]
    return changed


def _toleration(written: str) -> Document:
    """`*`, `key`, `key=value`, `key:NoSchedule` or `key=value:NoSchedule`."""
    if written.strip() == "*":
        return {"operator": "Exists"}
    found = _TOLERATION.fullmatch(written.strip())
    if found is None:
        raise ManifestError(f"toleration {written!r}: wanted *, KEY, KEY=VALUE or KEY=VALUE:EFFECT")
    toleration: Document = {"key": found["key"], "operator": "Exists" if found["value"] is None else "Equal"}
    if found["value"] is not None:
        toleration["value"] = found["value"]
    if found["effect"] is not None:
        toleration["effect"] = found["effect"]
    return toleration


def _read_objects(manifest: str) -> list[Document]:
    return [dict(document) for document in _objects(manifest)]


def _written(documents: Iterable[Document]) -> str:
    return "---\n".join(written_yaml(document).decode() for document in documents)
