"""Completes the input: what an API server and its controllers would have added to manifests.

Takes the objects of the input and returns `ClusterInput`: the objects as a scheduler would see them, with the pods
sorted by whether they have a node.

An object with a uid comes from an API server and stays as it is. Any other object gets what `kubectl apply` would
have added, as far as scheduling reads it:

  pods         see `admission`; claims from their resource claim templates
  nodes        allocatable from capacity
  namespaces   the name label; namespaces of pods exist even if the input does not hold them
  workloads    the pods that their controllers would create, see `workloads`
  storage      claims of ephemeral volumes, the default class, the binding mode of a class, the phase of an
               unclaimed volume

 1. Of two objects with the same kind, namespace and name the later one counts, and a note says so.
 2. This module never combines nodes and pods: that is scheduling.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from mooring.api.storage import claim_named_by, is_ephemeral
from mooring.api.views.batch import CronJob, Job
from mooring.api.views.daemon_sets import DaemonSet
from mooring.api.views.devices import ResourceClaim, ResourceClaimTemplate
from mooring.api.views.meta import ApiObject, ObjectMeta, OwnerReference
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod, PodResourceClaimStatus
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.api.views.workloads import Deployment, Namespace, PriorityClass
from mooring.cli.explain.admission import PriorityRules, admitted_pod
from mooring.cli.kinds import WORKLOADS
from mooring.cli.manifests import Found
from mooring.kit.entropy import Entropy

CLUSTER_SCOPED = frozenset(
    (
        "CSIDriver",
        "CSINode",
        "DeviceClass",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "ResourceSlice",
        "StorageClass",
        "VolumeAttachment",
    )
)
FINISHED = frozenset(("Succeeded", "Failed"))
NAME_LABEL = "kubernetes.io/metadata.name"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


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


def complete(
    files: Sequence[Found], live: Sequence[ApiObject], supplied: Container[str], entropy: Entropy, now_s: float
) -> ClusterInput:
    """The cluster as a scheduler would find it: the objects of the live cluster, and over them those of the files."""
    cluster = ClusterInput()
    found, of_files = _merged(files, live, entropy.fork("names"), cluster.notes)
    views = list(found.values())
    workloads = [Found(found[identity], entry.origin) for identity, entry in of_files.items()]
    workloads = [entry for entry in workloads if isinstance(entry.view, WORKLOADS)]
    if workloads:
        from mooring.cli.explain.workloads import expand  # imports the controllers

        are_claims_known = "PersistentVolumeClaim" in supplied
        expansion = expand(workloads, views, entropy, now_s, are_claims_known=are_claims_known)
        views += (*expansion.objects, *expansion.pods)
        cluster.notes += expansion.notes
        cluster.of_files.update(pod.key for pod in expansion.pods)
        cluster.workload_of = expansion.workload_of
        if live and not expansion.pods and not expansion.notes:
            cluster.notes.append("no pods of the workloads in the files are missing")
    cluster.of_files.update(key for kind, key in of_files if kind == Pod.kind)
    _take_in(views, cluster)
    return cluster


def _take_in(views: list[ApiObject], cluster: ClusterInput) -> None:
    default_class = _default_class(views)
    templates = templates_in(views)
    claims = {view.key for view in views if isinstance(view, PersistentVolumeClaim)}
    priorities = PriorityRules([view for view in views if isinstance(view, PriorityClass)])
    for view in views:
        match view:
            case Pod() as pod:
                if not priorities.can_rank(pod.spec):
                    cluster.unranked.add(pod.key)
                pod, device_claims = with_claims_made(admitted_pod(pod, priorities), templates)
                cluster.objects += device_claims
                cluster.objects += [_completed(claim, default_class) for claim in volume_claims_of(pod, claims)]
                _sort_in(pod, cluster)
            case PriorityClass() | Deployment() | DaemonSet() | Job() | CronJob():
                pass  # they did their part when pods got their priority, or were made
            case _:
                cluster.node_count += isinstance(view, Node)
                cluster.objects.append(_completed(view, default_class))
    cluster.objects += _implied_namespaces(cluster)
    cluster.notes += _notes(cluster, priorities)


Identity = tuple[str, str]
"""Kind and `namespace/name`."""


def _merged(
    files: Sequence[Found], live: Sequence[ApiObject], names: Entropy, notes: list[str]
) -> tuple[dict[Identity, ApiObject], dict[Identity, Found]]:
    """All objects, those of files over those of the live cluster; and those of files with their origins.

    Of several with the same name the last one counts. A workload that replaces one of a cluster has its uid and status,
    as if it were applied: the pods that it has already are its own."""
    merged: dict[Identity, ApiObject] = {(view.kind, view.key): view for view in live}
    of_files: dict[Identity, Found] = {}
    twice: list[Found] = []
    for found in files:
        view = _with_identity(found.view, names)
        identity = (view.kind, view.key)
        before = merged.get(identity)
        if isinstance(view, WORKLOADS) and isinstance(before, type(view)) and not view.metadata.uid:
            view = replace(view, metadata=replace(view.metadata, uid=before.metadata.uid), status=before.status)
        entry = Found(view, found.origin)
        if identity in of_files:
            twice.append(entry)
        of_files[identity] = entry
        merged[identity] = view
    if twice:
        first, others = twice[0], f" and {len(twice) - 1} more" if len(twice) > 1 else ""
        which = f"{first.view.kind} {first.view.key} ({first.origin.at()})"
        notes.append(f"found twice, the later one counts: {which}{others}")
    return merged, of_files


def _with_identity(view: ApiObject, names: Entropy) -> ApiObject:
    metadata = view.metadata
    if not metadata.name:
        metadata = replace(metadata, name=metadata.generate_name + names.suffix())
    if not metadata.namespace and view.kind not in CLUSTER_SCOPED:
        metadata = replace(metadata, namespace="default")
    return view if metadata is view.metadata else replace(view, metadata=metadata)


def _sort_in(pod: Pod, cluster: ClusterInput) -> None:
    if pod.status.phase in FINISHED:
        cluster.finished.append(pod)
    elif pod.spec.node_name:
        cluster.placed.append(pod)
    else:
        cluster.pending.append(pod)


def _completed(view: ApiObject, default_class: str | None) -> ApiObject:
    match view:
        case Node() if not view.status.allocatable and view.status.capacity:
            return replace(view, status=replace(view.status, allocatable=view.status.capacity))
        case Namespace():
            labels = {**view.metadata.labels, NAME_LABEL: view.metadata.name}
            return replace(view, metadata=replace(view.metadata, labels=labels))
        case StorageClass() if view.volume_binding_mode is None:
            return replace(view, volume_binding_mode="Immediate")
        case PersistentVolume() if not view.status.phase and view.spec.claim_ref is None:
            # An API server would say Pending, and the controller Available a moment later.
            return replace(view, status=replace(view.status, phase="Available"))
        case PersistentVolumeClaim() if not view.metadata.uid and view.spec.storage_class_name is None:
            return replace(view, spec=replace(view.spec, storage_class_name=default_class))
        case _:
            return view


def _default_class(views: Iterable[ApiObject]) -> str | None:
    """The name of the storage class that claims without one get; of several the newest."""
    marked = [
        view
        for view in views
        if isinstance(view, StorageClass) and view.metadata.annotations.get(DEFAULT_CLASS) == "true"
    ]
    newest = max(marked, key=lambda view: (view.metadata.creation_timestamp or "", view.key), default=None)
    return newest.metadata.name if newest is not None else None


def _implied_namespaces(cluster: ClusterInput) -> list[Namespace]:
    known = {view.metadata.name for view in cluster.objects if isinstance(view, Namespace)}
    used = dict.fromkeys(pod.metadata.namespace for pod in cluster.pods())
    return [Namespace(metadata=ObjectMeta(name=name, labels={NAME_LABEL: name})) for name in used if name not in known]


def _notes(cluster: ClusterInput, priorities: PriorityRules) -> list[str]:
    notes = [
        f'priority class "{name}" is not in the input: {_count(count, "pod")} of it counted with priority 0'
        for name, count in priorities.missing.items()
    ]
    nodes = {view.metadata.name for view in cluster.objects if isinstance(view, Node)}
    homeless = sum(pod.spec.node_name not in nodes for pod in cluster.placed)
    if homeless and nodes:
        notes.append(f"{_count(homeless, 'pod')} on nodes that are not in the input: not counted anywhere")
    return notes


def skipped_note(skipped: Mapping[str, int]) -> str:
    """`skipped 12 objects of kinds that scheduling does not read: ConfigMap 10, Secret 2`."""
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(skipped.items(), key=lambda e: (-e[1], e[0])))
    return f"skipped {_count(sum(skipped.values()), 'object')} of kinds that scheduling does not read: {kinds}"


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def volume_claims_of(pod: Pod, known: Container[str]) -> list[PersistentVolumeClaim]:
    """The claims that the ephemeral volume controller would create for a pod that no API server has seen."""
    if pod.metadata.uid:
        return []
    made = []
    for volume in pod.spec.volumes:
        name = claim_named_by(volume, pod.metadata.name)
        source = volume.ephemeral
        if name is None or not is_ephemeral(volume) or source is None or source.volume_claim_template is None:
            continue
        namespace, template = pod.metadata.namespace, source.volume_claim_template
        if f"{namespace}/{name}" in known:
            continue
        metadata = ObjectMeta(name=name, namespace=namespace, owner_references=(_owned_by(pod),))
        made.append(PersistentVolumeClaim(metadata=metadata, spec=template.spec))
    return made


def _owned_by(pod: Pod) -> OwnerReference:
    # A pod without a uid is known by its key, to its claims as to the scheduler.
    return OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.key, controller=True)


# --- claims from templates -----------------------------------------------------------------------------------------


def templates_in(views: Iterable[ApiObject]) -> dict[str, ResourceClaimTemplate]:
    """All claim templates, by namespace and name."""
    return {view.key: view for view in views if isinstance(view, ResourceClaimTemplate)}


def with_claims_made(pod: Pod, templates: Mapping[str, ResourceClaimTemplate]) -> tuple[Pod, list[ResourceClaim]]:
    """A pod that has its claims, and those that had to be made for it."""
    if pod.metadata.uid or not pod.spec.resource_claims:
        return pod, []
    statuses = list(pod.status.resource_claim_statuses)
    known = {status.name for status in statuses}
    made: list[ResourceClaim] = []
    for use in pod.spec.resource_claims:
        template = templates.get(f"{pod.metadata.namespace}/{use.resource_claim_template_name}")
        if use.resource_claim_template_name is None or use.name in known or template is None:
            continue
        claim = _made(pod, use.name, template)
        made.append(claim)
        statuses.append(PodResourceClaimStatus(name=use.name, resource_claim_name=claim.metadata.name))
    if not made:
        return pod, []
    return replace(pod, status=replace(pod.status, resource_claim_statuses=tuple(statuses))), made


def _made(pod: Pod, use: str, template: ResourceClaimTemplate) -> ResourceClaim:
    metadata = ObjectMeta(
        name=f"{pod.metadata.name}-{use}",
        namespace=pod.metadata.namespace,
        labels=template.spec.metadata.labels,
        annotations=template.spec.metadata.annotations,
        owner_references=(_owned_by(pod),),
    )
    return ResourceClaim(metadata=metadata, spec=template.spec.spec)
