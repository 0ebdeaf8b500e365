"""Completes the input: what an API server and its controllers would have added to manifests.

Takes the objects of the input and returns `ClusterInput`: the objects as a scheduler would see them, with the pods
sorted by whether they have a node.

An object with a uid comes from an API server and stays as it is; a pod gets a priority if it lacks one. Any other
object gets what `kubectl apply` would have added:

  all kinds    the defaults of their kind, see `admission`
  pods         admission; claims of ephemeral volumes and of resource claim templates
  claims       admission
  namespaces   namespaces of pods exist even if the input does not hold them
  workloads    the pods that their controllers would create, see `workloads`
  volumes      the phase of an unclaimed volume

 1. Of two objects with the same kind, namespace and name the later one counts, and a note says so.
 2. Nodes are not admitted: admission would taint them until a controller has seen them ready.
 3. This module never combines nodes and pods: that is scheduling.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mooring.api.document import Document
from mooring.api.kinds import PRIORITY_CLASS, RUNTIME_CLASS, kind_of_view
from mooring.api.storage import claim_named_by
from mooring.api.views.devices import ResourceClaim, ResourceClaimTemplate
from mooring.api.views.meta import ApiObject, ObjectMeta
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod, PodResourceClaimStatus
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim
from mooring.api.views.workloads import CronJob, DaemonSet, Deployment, Job, Namespace, PriorityClass
from mooring.api.well_known import DEFAULT_SCHEDULER_NAME, NAMESPACE_NAME_LABEL, TERMINAL_PHASES
from mooring.cli.errors import InputError, Problem
from mooring.cli.manifests.kinds import WORKLOADS
from mooring.cli.manifests.read import ManifestObject, PlainObject
from mooring.cli.terminal import counted
from mooring.client.errors import StatusError
from mooring.kit.entropy import Entropy

if TYPE_CHECKING:
    from mooring.cli.cluster_source.admission import DryRunServer, NewPod

Identity = tuple[str, str]
"""Kind and `namespace/name`."""


@dataclass(slots=True)
class ClusterInput:
    """The cluster, ready to be put into an engine."""

    objects: list[ApiObject] = field(default_factory=list)
    """Everything but pods, nodes included."""
    placed: list[Pod] = field(default_factory=list)
    pending: list[Pod] = field(default_factory=list)
    finished: list[Pod] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unranked: set[str] = field(default_factory=set)
    """Pods (`namespace/name`) whose priority class is not in the input."""
    of_files: set[str] = field(default_factory=set)
    """Pods (`namespace/name`) that files hold, or workloads of files."""
    workload_of: dict[str, str] = field(default_factory=dict)
    """Pod (`namespace/name`) that was added for a workload -> `Deployment default/web`."""
    node_count: int = 0

    def pods(self) -> list[Pod]:
        return [*self.pending, *self.placed, *self.finished]


@dataclass(frozen=True, slots=True)
class Supplied:
    """The kinds of which the input is complete."""

    kinds: frozenset[str]
    denied: frozenset[str] = frozenset()
    """Kinds that the API server does not let the user list."""

    def __contains__(self, kind: str) -> bool:
        return kind in self.kinds

    def absence(self, kind: str) -> str:
        """`the input holds no PersistentVolumeClaims`."""
        if kind in self.denied:
            return f"you may not list {plural(kind)}"
        return f"the input holds no {plural(kind)}"


def plural(kind: str) -> str:
    if kind.endswith("ss"):
        return f"{kind}es"
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"


def complete(
    files: Sequence[ManifestObject],
    live: Sequence[ApiObject],
    supplied: Container[str],
    entropy: Entropy,
    now_s: float,
    policies: Sequence[PlainObject] = (),
) -> ClusterInput:
    """The cluster as a scheduler would find it: the objects of the live cluster, and over them those of the files.

    `policies` are the LimitRanges and RuntimeClasses of the files. Raises `InputError`."""
    cluster = ClusterInput()
    found, of_files = _merged(files, live, entropy.fork("names"), cluster.notes)
    server = _server(found, of_files, policies, now_s)
    new_pods = _create(of_files, found, server) if server is not None else {}
    workloads = [ManifestObject(found[identity], entry.origin) for identity, entry in of_files.items()]
    workloads = [entry for entry in workloads if isinstance(entry.view, WORKLOADS)]
    views = list(found.values())
    if workloads and server is not None:
        from mooring.cli.cluster_source.workloads import expand  # imports the controllers

        are_claims_known = "PersistentVolumeClaim" in supplied
        expansion = expand(workloads, views, server, entropy, now_s, are_claims_known=are_claims_known)
        views += expansion.objects
        views += (new.view for new in expansion.pods)
        new_pods |= {new.view.key: new for new in expansion.pods}
        cluster.notes += expansion.notes
        cluster.of_files.update(new.view.key for new in expansion.pods)
        cluster.workload_of = expansion.workload_of
        if live and not expansion.pods and not expansion.notes:
            cluster.notes.append("no pods of the workloads in the files are missing")
    cluster.of_files.update(key for kind, key in of_files if kind == Pod.kind)
    _Assembly(cluster, server).add(views, new_pods)
    return cluster


def _server(
    found: Mapping[Identity, ApiObject],
    of_files: Mapping[Identity, ManifestObject],
    policies: Sequence[PlainObject],
    now_s: float,
) -> DryRunServer | None:
    """None if an API server has completed all objects: importing ours takes 0.3 s."""
    is_needed = bool(policies) or any(
        entry.body is not None or isinstance(entry.view, WORKLOADS) for entry in of_files.values()
    )
    if not is_needed and all(view.spec.priority is not None for view in found.values() if isinstance(view, Pod)):
        return None
    from mooring.cli.cluster_source.admission import DryRunServer

    return DryRunServer(found, policies, now_s)


def _create(
    of_files: Mapping[Identity, ManifestObject], found: dict[Identity, ApiObject], server: DryRunServer
) -> dict[str, NewPod]:
    """Creates the objects of the files that no API server has seen, but for workloads. Puts them into `found`, and
    returns the pods by key. Pods and claims are created last, because admission looks up the others."""
    entries = [(identity, entry) for identity, entry in of_files.items() if entry.body is not None]
    entries.sort(key=lambda item: isinstance(item[1].view, Pod | PersistentVolumeClaim))
    new_pods: dict[str, NewPod] = {}
    problems: list[Problem] = []
    for identity, entry in entries:
        view, body = entry.view, entry.body
        if isinstance(view, WORKLOADS) or body is None:
            continue
        try:
            if isinstance(view, Pod):
                new = new_pods[view.key] = server.created_pod(body, view.metadata)
                found[identity] = new.view
            else:
                create = server.created if isinstance(view, PersistentVolumeClaim) else server.defaulted
                found[identity] = create(type(view), body, view.metadata)
        except StatusError as error:
            problems.append(Problem(entry.origin.at(), f'{view.kind} "{view.key}": {error}'))
    if problems:
        raise InputError(problems)
    return new_pods


class _Assembly:
    """Puts views into a `ClusterInput`."""

    def __init__(self, cluster: ClusterInput, server: DryRunServer | None) -> None:
        self._cluster = cluster
        self._server = server
        self._without_priority: Counter[str] = Counter()
        """Pods by their PriorityClass, if the input does not hold it."""
        self._without_runtime: Counter[str] = Counter()
        """The same for RuntimeClasses."""
        self._templates: dict[str, ResourceClaimTemplate] = {}
        self._claims: set[str] = set()

    def add(self, views: Sequence[ApiObject], new_pods: Mapping[str, NewPod]) -> None:
        self._templates = {view.key: view for view in views if isinstance(view, ResourceClaimTemplate)}
        self._claims = {view.key for view in views if isinstance(view, PersistentVolumeClaim)}
        for view in views:
            match view:
                case Pod() as pod:
                    new = new_pods.get(pod.key)
                    self._add_pod(self._with_priority(pod) if new is None else self._with_claims(new))
                case PriorityClass() | Deployment() | DaemonSet() | Job() | CronJob():
                    pass  # admission and expansion have read them
                case _:
                    self._cluster.node_count += isinstance(view, Node)
                    self._cluster.objects.append(_completed(view))
        self._cluster.objects += _implied_namespaces(self._cluster)
        self._cluster.notes += self._notes()

    def _add_pod(self, pod: Pod) -> None:
        if pod.status.phase in TERMINAL_PHASES:
            self._cluster.finished.append(pod)
        elif pod.spec.node_name:
            self._cluster.placed.append(pod)
        else:
            self._cluster.pending.append(pod)

    def _with_priority(self, pod: Pod) -> Pod:
        """A pod of an API server, with the priority of its class if it has none."""
        spec = pod.spec
        if spec.priority is None:
            assert self._server is not None, f"pod {pod.key} has no priority"
            if not self._server.is_priority_known(spec):
                self._count_without_priority(pod)
            resolved = self._server.priority_of(spec.priority_class_name)
            spec = replace(
                spec,
                priority=resolved.priority,
                priority_class_name=resolved.priority_class_name,
                preemption_policy=spec.preemption_policy or resolved.preemption_policy,
            )
        if not spec.scheduler_name:
            spec = replace(spec, scheduler_name=DEFAULT_SCHEDULER_NAME)
        return pod if spec is pod.spec else replace(pod, spec=spec)

    def _count_without_priority(self, pod: Pod) -> None:
        self._cluster.unranked.add(pod.key)
        self._without_priority[pod.spec.priority_class_name] += 1

    # New pods

    def _with_claims(self, new: NewPod) -> Pod:
        """A new pod. The claims that controllers would create for it join the objects."""
        pod = new.view
        if PRIORITY_CLASS in new.absent:
            self._count_without_priority(pod)
        if RUNTIME_CLASS in new.absent:
            self._without_runtime[new.absent[RUNTIME_CLASS]] += 1
        if not new.ephemeral_volumes and not pod.spec.resource_claims:
            return pod
        # A pod without a uid is known by its key, to its claims as to the scheduler.
        owner = replace(pod, metadata=replace(pod.metadata, uid=pod.key))
        try:
            self._create_volume_claims(owner, new.ephemeral_volumes)
            return self._with_device_claims(pod, owner)
        except StatusError as error:
            self._cluster.notes.append(f'Pod "{pod.key}": the API server rejects a claim of it: {error}')
            return pod

    def _create_volume_claims(self, owner: Pod, volumes: Mapping[str, Document]) -> None:
        """Does what the ephemeral volume controller would do. Raises `StatusError`."""
        from mooring.controllers.volume.ephemeral import claim_of  # imports the controllers

        assert self._server is not None, f"pod {owner.key} is new"
        namespace = owner.metadata.namespace
        for volume in owner.spec.volumes:
            name = claim_named_by(volume, owner.metadata.name)
            if name is not None and volume.name in volumes and f"{namespace}/{name}" not in self._claims:
                metadata = ObjectMeta(name=name, namespace=namespace)
                claim = claim_of(owner, name, volumes[volume.name])
                self._cluster.objects.append(self._server.created(PersistentVolumeClaim, claim, metadata))

    def _with_device_claims(self, pod: Pod, owner: Pod) -> Pod:
        """Does what the resource claim controller would do. Raises `StatusError`."""
        from mooring.controllers.resourceclaim import template_claim

        assert self._server is not None, f"pod {owner.key} is new"
        statuses = list(pod.status.resource_claim_statuses)
        known = {status.name for status in statuses}
        for use in pod.spec.resource_claims:
            template = self._templates.get(f"{pod.metadata.namespace}/{use.resource_claim_template_name}")
            if use.resource_claim_template_name is None or use.name in known or template is None:
                continue
            metadata = ObjectMeta(name=f"{pod.metadata.name}-{use.name}", namespace=pod.metadata.namespace)
            claim = template_claim(owner, use, template)
            self._cluster.objects.append(self._server.created(ResourceClaim, claim, metadata))
            statuses.append(PodResourceClaimStatus(name=use.name, resource_claim_name=metadata.name))
        return replace(pod, status=replace(pod.status, resource_claim_statuses=tuple(statuses)))

    def _notes(self) -> list[str]:
        absent = "is not in the input"
        notes = [
            f'priority class "{name}" {absent}: {counted(count, "pod")} of it counted with priority 0'
            for name, count in self._without_priority.items()
        ]
        notes += [
            f'runtime class "{name}" {absent}: {counted(count, "pod")} of it counted without what the class adds'
            for name, count in self._without_runtime.items()
        ]
        nodes = {view.metadata.name for view in self._cluster.objects if isinstance(view, Node)}
        without_node = sum(pod.spec.node_name not in nodes for pod in self._cluster.placed)
        if without_node and nodes:
            notes.append(f"{counted(without_node, 'pod')} on nodes that are not in the input: not counted anywhere")
        return notes


def _merged(
    files: Sequence[ManifestObject], live: Sequence[ApiObject], names: Entropy, notes: list[str]
) -> tuple[dict[Identity, ApiObject], dict[Identity, ManifestObject]]:
    """All objects, those of files over those of the live cluster; and those of files with their origins.

    Of several with the same name the last one counts. A workload that replaces one of a cluster has its uid and status,
    as if it were applied: the pods that it has already are its own."""
    merged: dict[Identity, ApiObject] = {(view.kind, view.key): view for view in live}
    of_files: dict[Identity, ManifestObject] = {}
    repeated: list[ManifestObject] = []
    for found in files:
        view = _with_identity(found.view, names)
        identity = (view.kind, view.key)
        before = merged.get(identity)
        if isinstance(view, WORKLOADS) and isinstance(before, type(view)) and not view.metadata.uid:
            view = replace(view, metadata=replace(view.metadata, uid=before.metadata.uid), status=before.status)
        entry = ManifestObject(view, found.origin, found.body)
        if identity in of_files:
            repeated.append(entry)
        of_files[identity] = entry
        merged[identity] = view
    if repeated:
        first, others = repeated[0], f" and {len(repeated) - 1} more" if len(repeated) > 1 else ""
        which = f"{first.view.kind} {first.view.key} ({first.origin.at()})"
        notes.append(f"found twice, the later one counts: {which}{others}")
    return merged, of_files


def _with_identity(view: ApiObject, names: Entropy) -> ApiObject:
    metadata = view.metadata
    if not metadata.name:
        metadata = replace(metadata, name=metadata.generate_name + names.suffix())
    if not metadata.namespace and kind_of_view(type(view)).is_namespaced:
        metadata = replace(metadata, namespace="default")
    return view if metadata is view.metadata else replace(view, metadata=metadata)


def _completed(view: ApiObject) -> ApiObject:
    if isinstance(view, PersistentVolume) and not view.metadata.uid and view.status.phase == "Pending":
        if view.spec.claim_ref is not None:
            return view
        # The volume controller sets Available right after the API server has set Pending.
        return replace(view, status=replace(view.status, phase="Available"))
    return view


def _implied_namespaces(cluster: ClusterInput) -> list[Namespace]:
    known = {view.metadata.name for view in cluster.objects if isinstance(view, Namespace)}
    used = dict.fromkeys(pod.metadata.namespace for pod in cluster.pods())
    return [
        Namespace(metadata=ObjectMeta(name=name, labels={NAMESPACE_NAME_LABEL: name}))
        for name in used
        if name not in known
    ]


def skipped_note(skipped: Mapping[str, int]) -> str:
    """`skipped 12 objects of kinds that scheduling does not read: ConfigMap 10, Secret 2`."""
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(skipped.items(), key=lambda e: (-e[1], e[0])))
    return f"skipped {counted(sum(skipped.values()), 'object')} of kinds that scheduling does not read: {kinds}"
