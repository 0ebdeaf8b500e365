"""Clones a cluster from the output of `kubectl get -o json|yaml` into an empty one.

Input      documents of the original
Output     the same objects in the clone, and a `CloneReport`

1. Every object goes through the registry of the API server: it is defaulted, admitted and validated.
2. Objects are created in waves: owners before dependents, claims before volumes, nodes before workloads, service
   accounts before pods, pods before quotas. Statuses follow when every uid is known.
3. References by uid (owners, the claim of a volume, the users of a resource claim, the labels of Job pods) point to the
   clones. An owner that is not cloned is dropped from its dependents, otherwise the garbage collector deletes them.
4. Bound pods stay on their nodes with their status, so that kubelets and controllers continue where the original was.
   Nodes are annotated, so that they become hollow nodes.
5. The clone must be complete before controllers, scheduler and kubelets start. They would act on half a cluster.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.errors import UnknownKindError
from mooring.api.kinds import Kind
from mooring.api.well_known import JOB_LABELS, TERMINAL_PHASES
from mooring.apiserver.admission.service_account import DEFAULT_ACCOUNT
from mooring.apiserver.kinds.pod.prepare import split_label_keys
from mooring.apiserver.kinds.priority_class import SYSTEM_VALUES
from mooring.apiserver.server import ApiServer
from mooring.client.errors import AlreadyExistsError, ClientError
from mooring.client.interface import PatchForm
from mooring.cluster.objects import create_object, loopback_client, served_kind, without_server_fields
from mooring.kit.tasks import run_bounded
from mooring.kubelet.node_status import SILENT_ANNOTATION, SIMULATED_ANNOTATION

REQUESTS_AT_ONCE = 64
"""Writes under way together: a store on disk commits them together."""

KindName = tuple[str, str]
"""apiVersion and kind: a custom kind may be called Job or Service, too."""


def _names(*members: Kind) -> frozenset[KindName]:
    return frozenset((kind.api_version, kind.kind) for kind in members)


def _name(document: Document) -> KindName:
    return document["apiVersion"], document["kind"]


def _is(document: Document, kind: Kind) -> bool:
    return _name(document) == (kind.api_version, kind.kind)


OWN_KINDS = _names(kinds.CORE_EVENT, kinds.ENDPOINT_SLICE, kinds.ENDPOINTS, kinds.EVENT, kinds.LEASE)
"""Kinds whose objects the components of the clone write themselves."""
WRITES_ITS_OWN = "the clone writes its own"
HAS_ITS_OWN = "every cluster has its own"
BEING_DELETED = "being deleted"
NODE_MISSING = "bound to a node that is not in the dump"
KIND_UNKNOWN = "this API server has no such kind"

_CONDITION_TAINTS = frozenset(
    f"node.kubernetes.io/{name}"
    for name in ("disk-pressure", "memory-pressure", "not-ready", "pid-pressure", "unreachable")
)
_HEALTHY = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}

_ALLOCATED = ("healthCheckNodePort", "ipFamilies", "ipFamilyPolicy")

_WAVES: tuple[frozenset[KindName], ...] = (
    _names(kinds.CUSTOM_RESOURCE_DEFINITION, kinds.NAMESPACE),
    _names(
        kinds.CSI_DRIVER,
        kinds.DEVICE_CLASS,
        kinds.PRIORITY_CLASS,
        kinds.RUNTIME_CLASS,
        kinds.STORAGE_CLASS,
        kinds.VOLUME_ATTRIBUTES_CLASS,
    ),
    _names(kinds.CONFIG_MAP, kinds.SECRET, kinds.SERVICE_ACCOUNT),
    _names(),  # everything else, custom resources among them
    _names(kinds.PERSISTENT_VOLUME_CLAIM),
    _names(kinds.PERSISTENT_VOLUME),
    _names(kinds.NODE),
    _names(
        kinds.CRON_JOB,
        kinds.DAEMON_SET,
        kinds.DEPLOYMENT,
        kinds.JOB,
        kinds.REPLICA_SET,
        kinds.REPLICATION_CONTROLLER,
        kinds.STATEFUL_SET,
    ),
    _names(kinds.POD),
    _names(kinds.LIMIT_RANGE, kinds.RESOURCE_QUOTA),  # they judge new pods, not those that were there before them
)
_WAVE_OF = {name: wave for wave, members in enumerate(_WAVES) for name in members}
_OTHERS = _WAVES.index(_names())
_STATUS_BY_SERVER = (kinds.CUSTOM_RESOURCE_DEFINITION, kinds.NAMESPACE, kinds.NODE)
"""Kinds whose status is not written afterwards: the server writes it, or it is part of the creation."""


@dataclass(slots=True)
class CloneReport:
    """What was taken over, and what was not."""

    cloned: Counter[str] = field(default_factory=Counter)
    """Objects by kind."""
    pods: Counter[str] = field(default_factory=Counter)
    """Cloned pods: bound, pending, finished."""
    nodes_not_ready: int = 0
    left_out: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Objects by the reason for leaving them out, and by kind."""
    failures: list[str] = field(default_factory=list)
    """Objects that the API server refused, with its message."""
    added: list[str] = field(default_factory=list)
    """Objects that the dump refers to and does not contain."""
    ownerless: Counter[str] = field(default_factory=Counter)
    """Objects whose owner was not cloned, by kind."""


async def clone(
    api_server: ApiServer,
    documents: Iterable[Document],
    *,
    advance: Callable[[int], None] = lambda _: None,
    stop: asyncio.Event | None = None,
) -> CloneReport:
    """Create the objects in a cluster without components. Ends early, with a part of them, if `stop` is set."""
    cloner = _Cloner(api_server, advance, stop)
    await cloner.run(documents)
    return cloner.report


class _Cloner:
    def __init__(self, api_server: ApiServer, advance: Callable[[int], None], stop: asyncio.Event | None) -> None:
        self.report = CloneReport()
        self._api_server = api_server
        self._client = loopback_client(api_server)
        self._advance = advance
        self._stop = stop
        self._uids: dict[str, str] = {}
        """The uid of the clone by the uid of the original."""
        self._statuses: list[tuple[Kind, Document, Document]] = []
        """Kind, original and clone of the objects whose status is to be written."""
        self._default_classes: list[str] = []
        """Priority classes that become the default when all pods are there."""

    async def run(self, documents: Iterable[Document]) -> None:
        taken = self._taken_over(_latest(documents))
        await self._each(self._add, implied_objects(taken))
        missing_accounts = accounts_missing(taken)
        for wave in in_waves(taken):
            if any(_is(document, kinds.POD) for document in wave):
                await self._each(self._add_account, missing_accounts)
                missing_accounts = []
            await self._each(self._create, wave)
        await self._each(self._write_status, self._statuses)
        await self._each(self._make_default, self._default_classes)

    async def _each(self, work: Callable[[Any], Any], items: Iterable[Any]) -> None:
        async def unless_stopped(item: Any) -> None:
            if self._stop is None or not self._stop.is_set():
                await work(item)
                await self._api_server.clock.wait(0.0)  # a store in memory never suspends: signals need their turn

        await run_bounded(unless_stopped, items, limit=REQUESTS_AT_ONCE, name="clone")

    def _taken_over(self, documents: Sequence[Document]) -> list[Document]:
        nodes = frozenset(document["metadata"].get("name") for document in documents if _is(document, kinds.NODE))
        taken = []
        for document in documents:
            reason = reason_to_leave_out(document, nodes)
            if reason:
                self.report.left_out[reason][document["kind"]] += 1
            else:
                taken.append(document)
        return taken

    async def _add(self, document: Document) -> None:
        try:
            await create_object(self._api_server, self._client, document)
            self.report.added.append(_title(document))
        except AlreadyExistsError:
            return
        except ClientError as error:
            self.report.failures.append(f"{_title(document)}: {error}")

    async def _add_account(self, account: Document) -> None:
        with suppress(ClientError):  # then the API server rejects the pods, and the report says why
            await create_object(self._api_server, self._client, account)
            if account["metadata"]["name"] != DEFAULT_ACCOUNT:  # every namespace has one of that name
                self.report.added.append(_title(account))

    async def _create(self, original: Document) -> None:
        kind_name = str(original["kind"])
        self._advance(1)
        try:
            kind = served_kind(self._api_server, str(original["apiVersion"]), kind_name)
        except UnknownKindError:
            self.report.left_out[KIND_UNKNOWN][kind_name] += 1
            return
        body = clone_body(original, self._uids, has_status=kind.has_status)
        if len(body["metadata"].get("ownerReferences") or ()) < len(original["metadata"].get("ownerReferences") or ()):
            self.report.ownerless[kind_name] += 1
        try:
            created = await create_object(self._api_server, self._client, body)
            if kind is kinds.NODE:
                await self._restore_taints(body, created)
        except AlreadyExistsError:
            await self._keep_present(kind, original)
            return
        except ClientError as error:
            self.report.failures.append(f"{_title(original)}: {error}")
            return
        self._note_uid(original, created)
        self._count(original, body)
        if kind is kinds.PRIORITY_CLASS and original.get("globalDefault"):
            self._default_classes.append(original["metadata"]["name"])
        if kind.has_status and kind not in _STATUS_BY_SERVER and original.get("status"):
            self._statuses.append((kind, original, created))

    async def _restore_taints(self, body: Document, created: Document) -> None:
        """Admission taints every new node as not ready, until a controller finds it ready."""
        taints = (body.get("spec") or {}).get("taints")
        if created["spec"].get("taints") != taints:
            patch = {"spec": {"taints": taints}}
            await self._client.patch(kinds.NODE, "", created["metadata"]["name"], patch, form=PatchForm.MERGE)

    async def _keep_present(self, kind: Kind, original: Document) -> None:
        metadata = original["metadata"]
        live = await self._client.get(kind, metadata.get("namespace", ""), metadata["name"])
        self._note_uid(original, msgspec.json.decode(live))
        self.report.left_out[HAS_ITS_OWN][original["kind"]] += 1

    async def _write_status(self, written: tuple[Kind, Document, Document]) -> None:
        kind, original, created = written
        metadata = created["metadata"]
        status = clone_status(original, self._uids, generation=metadata.get("generation", 0))
        place = (kind, metadata.get("namespace", ""), metadata["name"])
        try:
            await self._client.patch(*place, {"status": status}, form=PatchForm.MERGE, subresource="status")
        except ClientError as error:
            self.report.failures.append(f"status of {_title(original)}: {error}")

    async def _make_default(self, name: str) -> None:
        try:
            await self._client.patch(kinds.PRIORITY_CLASS, "", name, {"globalDefault": True}, form=PatchForm.MERGE)
        except ClientError as error:
            self.report.failures.append(f"default of PriorityClass {name}: {error}")

    def _note_uid(self, original: Document, created: Document) -> None:
        uid = original["metadata"].get("uid")
        if uid:
            self._uids[uid] = created["metadata"]["uid"]

    def _count(self, original: Document, body: Document) -> None:
        self.report.cloned[original["kind"]] += 1
        if _is(original, kinds.POD):
            self.report.pods[pod_state(original)] += 1
        elif _is(original, kinds.NODE) and SILENT_ANNOTATION in body["metadata"]["annotations"]:
            self.report.nodes_not_ready += 1


# --- which objects, in which order ------------------------------------------------------------------------------------


def reason_to_leave_out(document: Document, nodes: frozenset[str]) -> str:
    """Why an object is not cloned; empty if it is."""
    if _name(document) in OWN_KINDS:
        return WRITES_ITS_OWN
    if document["metadata"].get("deletionTimestamp"):
        return BEING_DELETED
    if _is(document, kinds.POD):
        node = (document.get("spec") or {}).get("nodeName")
        if node and node not in nodes:
            return NODE_MISSING
    return ""


def implied_objects(documents: Sequence[Document]) -> list[Document]:
    """Namespaces, priority classes and runtime classes that objects name and that a partial dump does not contain."""
    present = {(*_name(document), document["metadata"].get("name")) for document in documents}
    implied: dict[tuple[Kind, str], Document] = {}

    def imply(kind: Kind, name: str, **fields: object) -> None:
        if name and (kind.api_version, kind.kind, name) not in present:
            head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
            implied.setdefault((kind, name), {**head, **fields})

    for document in documents:
        imply(kinds.NAMESPACE, document["metadata"].get("namespace") or "")
        if _is(document, kinds.POD):
            spec = document.get("spec") or {}
            priority = {"value": spec.get("priority") or 0}
            if spec.get("preemptionPolicy"):
                priority["preemptionPolicy"] = spec["preemptionPolicy"]
            class_name = spec.get("priorityClassName") or ""
            if class_name not in SYSTEM_VALUES:  # every cluster has these
                imply(kinds.PRIORITY_CLASS, class_name, **priority)
            name = spec.get("runtimeClassName") or ""
            overhead = {"overhead": {"podFixed": spec["overhead"]}} if spec.get("overhead") else {}
            imply(kinds.RUNTIME_CLASS, name, handler=name.replace(".", "-"), **overhead)
    return list(implied.values())


def accounts_missing(documents: Sequence[Document]) -> list[Document]:
    """The service accounts of pods that are not in the dump. The API server rejects a pod without its account."""
    present = {_account_key(document) for document in documents if _is(document, kinds.SERVICE_ACCOUNT)}
    named = dict.fromkeys(_account_key_of_pod(document) for document in documents if _is(document, kinds.POD))
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
        for namespace, name in named
        if (namespace, name) not in present
    ]


def _account_key(account: Document) -> tuple[str, str]:
    metadata = account["metadata"]
    return metadata.get("namespace") or "default", metadata.get("name", "")


def _account_key_of_pod(pod: Document) -> tuple[str, str]:
    name = (pod.get("spec") or {}).get("serviceAccountName") or DEFAULT_ACCOUNT
    return pod["metadata"].get("namespace") or "default", name


def in_waves(documents: Sequence[Document]) -> list[list[Document]]:
    """Documents grouped such that each comes after everything that it refers to by uid, and a pod after its account.

    The oldest come first.
    """
    by_uid = {document["metadata"]["uid"]: document for document in documents if document["metadata"].get("uid")}
    accounts = {_account_key(document): document for document in documents if _is(document, kinds.SERVICE_ACCOUNT)}
    wave_of: dict[int, int] = {}

    def wave(document: Document) -> int:
        known = wave_of.get(id(document))
        if known is None:
            own = known = wave_of[id(document)] = _WAVE_OF.get(_name(document), _OTHERS)
            # Entered before its owners are looked at: a cycle of owners ends here.
            owners = [by_uid[uid] for uid in _uids_named(document) if uid in by_uid]
            if _is(document, kinds.POD) and (account := accounts.get(_account_key_of_pod(document))) is not None:
                owners.append(account)
            known = wave_of[id(document)] = max([own, *(wave(owner) + 1 for owner in owners)])
        return known

    waves: dict[int, list[Document]] = defaultdict(list)
    for document in sorted(documents, key=lambda original: str(original["metadata"].get("creationTimestamp") or "")):
        waves[wave(document)].append(document)
    return [waves[number] for number in sorted(waves)]


def _latest(documents: Iterable[Document]) -> list[Document]:
    """Each object once: of two dumps the later one counts."""
    named = {}
    for document in documents:
        metadata = document["metadata"]
        group = str(document["apiVersion"]).rpartition("/")[0]
        named[group, document["kind"], metadata.get("namespace"), metadata.get("name")] = document
    return list(named.values())


def _uids_named(document: Document) -> Iterator[str]:
    for owner in document["metadata"].get("ownerReferences") or ():
        yield owner.get("uid", "")
    if _is(document, kinds.PERSISTENT_VOLUME):
        yield ((document.get("spec") or {}).get("claimRef") or {}).get("uid", "")


def pod_state(pod: Document) -> str:
    if (pod.get("status") or {}).get("phase") in TERMINAL_PHASES:
        return "finished"
    return "bound" if (pod.get("spec") or {}).get("nodeName") else "pending"


# --- which fields -----------------------------------------------------------------------------------------------------


def clone_body(original: Document, uids: Mapping[str, str], *, has_status: bool) -> Document:
    """An object as it is created in the clone. `uids` has the uids of the clones by those of the originals."""
    body = {**original, "metadata": _clone_metadata(original["metadata"], uids)}
    prepare = _PREPARE.get(_name(original))
    if prepare is not None:
        prepare(body, uids)
    if has_status and not _is(original, kinds.NODE):
        body.pop("status", None)
    return body


def clone_status(original: Document, uids: Mapping[str, str], *, generation: int) -> Document:
    """The status as it is written afterwards. A generation that was observed is that of the clone."""
    before = original["metadata"].get("generation", 0)
    status = _renamed(original["status"], uids)
    holders = [status, *(status.get("conditions") or ())]
    for holder in holders:
        if "observedGeneration" in holder:
            holder["observedGeneration"] = generation if holder["observedGeneration"] >= before else 0
    assert isinstance(status, dict), "a status is an object"
    return status


def _clone_metadata(original: Document, uids: Mapping[str, str]) -> Document:
    metadata: Document = _renamed(without_server_fields(original), uids)
    owners = [
        {**owner, "uid": uids[owner["uid"]]}
        for owner in original.get("ownerReferences") or ()
        if owner.get("uid") in uids
    ]
    metadata.pop("ownerReferences", None)
    if owners:
        metadata["ownerReferences"] = owners
    return metadata


def _prepare_node(body: Document, uids: Mapping[str, str]) -> None:
    """A ready node becomes a healthy hollow node. One that is not ready stays so: its kubelet is silent."""
    status = dict(body.get("status") or {})
    conditions = [dict(condition) for condition in status.get("conditions") or ()]
    is_ready = all(condition.get("status") == "True" for condition in conditions if condition.get("type") == "Ready")
    annotations = {**(body["metadata"].get("annotations") or {}), SIMULATED_ANNOTATION: "true"}
    body["metadata"]["annotations"] = annotations
    body["status"] = {**status, "conditions": conditions}
    if not is_ready:
        annotations[SILENT_ANNOTATION] = "true"
        return
    missing = [type_ for type_ in _HEALTHY if all(condition.get("type") != type_ for condition in conditions)]
    conditions += [{"type": type_} for type_ in missing]
    for condition in conditions:
        condition["status"] = _HEALTHY.get(condition.get("type", ""), condition.get("status"))
    spec = dict(body.get("spec") or {})
    taints = [taint for taint in spec.pop("taints", None) or () if taint.get("key") not in _CONDITION_TAINTS]
    body["spec"] = {**spec, "taints": taints} if taints else spec


def _prepare_pod(body: Document, uids: Mapping[str, str]) -> None:
    """Ephemeral containers cannot be created; what the server derived from `matchLabelKeys`, it derives again."""
    spec: Document = msgspec.json.decode(msgspec.json.encode(body.get("spec") or {}))
    spec.pop("ephemeralContainers", None)
    body["spec"] = spec
    split_label_keys(body)


def _prepare_priority_class(body: Document, uids: Mapping[str, str]) -> None:
    """The default must not apply to pods that are older than it: admission would refuse their priority."""
    body.pop("globalDefault", None)


def _prepare_service(body: Document, uids: Mapping[str, str]) -> None:
    """The clone gives out addresses and node ports of its own ranges; a headless service stays headless."""
    spec = dict(body.get("spec") or {})
    is_headless = spec.get("clusterIP") == "None"
    for name in (*(() if is_headless else ("clusterIP", "clusterIPs")), *_ALLOCATED):
        spec.pop(name, None)
    if spec.get("ports"):
        spec["ports"] = [{name: value for name, value in port.items() if name != "nodePort"} for port in spec["ports"]]
    body["spec"] = spec


def _prepare_job(body: Document, uids: Mapping[str, str]) -> None:
    """The server derives selector and labels from the uid, which is another one now."""
    spec = dict(body.get("spec") or {})
    if not spec.get("manualSelector"):
        spec.pop("selector", None)
        template = dict(spec.get("template") or {})
        metadata = dict(template.get("metadata") or {})
        labels = metadata.get("labels") or {}
        metadata["labels"] = {name: value for name, value in labels.items() if name not in JOB_LABELS}
        spec["template"] = {**template, "metadata": metadata}
    body["spec"] = spec


def _prepare_volume(body: Document, uids: Mapping[str, str]) -> None:
    spec = dict(body.get("spec") or {})
    if spec.get("claimRef"):
        claim = {name: value for name, value in spec["claimRef"].items() if name != "resourceVersion"}
        spec["claimRef"] = _renamed(claim, uids)
    body["spec"] = spec


_PREPARE: Mapping[KindName, Callable[[Document, Mapping[str, str]], None]] = {
    (kind.api_version, kind.kind): prepare
    for kind, prepare in (
        (kinds.JOB, _prepare_job),
        (kinds.NODE, _prepare_node),
        (kinds.PERSISTENT_VOLUME, _prepare_volume),
        (kinds.POD, _prepare_pod),
        (kinds.PRIORITY_CLASS, _prepare_priority_class),
        (kinds.SERVICE, _prepare_service),
    )
}


def _renamed(value: Any, uids: Mapping[str, str]) -> Any:
    """A copy in which the uids of originals are those of their clones."""
    match value:
        case str():
            return uids.get(value, value)
        case dict():
            return {name: _renamed(item, uids) for name, item in value.items()}
        case list():
            return [_renamed(item, uids) for item in value]
        case _:
            return value


def _title(document: Document) -> str:
    metadata = document["metadata"]
    namespace = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{document['kind']} {namespace}{metadata.get('name', '')}"
