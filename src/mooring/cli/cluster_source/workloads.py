"""Expands workloads into the pods that their controllers would create.

Only missing pods are added: active pods of the input that belong to a workload count, and for an object of a cluster
also those that its status counts. The rules are those of `mooring.controllers`; `admission` creates the workloads,
their pods and their claims.

  Deployment              the missing pods of its new ReplicaSet, which is added if there is none; of a rollout the
                          first step, none while Recreate waits for the old pods
  ReplicaSet, ReplicationController   replicas less the active pods
  StatefulSet             the missing ordinals, with the claims of its volumeClaimTemplates
  DaemonSet               one pod for each node that the controller chooses, bound to it by node affinity
  Job                     as many as may run now; none if it is suspended or has finished
  CronJob                 the pods of its next Job, unless it comes from a cluster

 1. Names are deterministic: the suffixes come from the seed and the name of the workload.
 2. At most `PODS_MAX` pods are added; a note says how many were left out.
 3. Pods that the API server rejects are not added; a note has the message.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from mooring.api.cron_schedule import ScheduleError, parse_schedule
from mooring.api.decode import convert_as, decode_as
from mooring.api.document import Document
from mooring.api.errors import DecodeError, LabelSelectorError
from mooring.api.views.meta import ApiObject, ObjectMeta, ObjectWithRaw, controller_of
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod, PodSpec
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.api.views.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from mooring.cli.cluster_source.admission import DryRunServer, NewPod
from mooring.cli.errors import InputError, Problem
from mooring.cli.manifests.checks import problems_of
from mooring.cli.manifests.kinds import WORKLOADS
from mooring.cli.manifests.read import ManifestObject
from mooring.cli.terminal import counted
from mooring.client.errors import StatusError
from mooring.controllers.cronjob import job_document, schedule_text
from mooring.controllers.daemonset.plan import FitCache, daemon_pod, pin_to_node, target_node
from mooring.controllers.deployment.history import generations, new_set_document, next_revision
from mooring.controllers.deployment.sizes import RECREATE, is_scaling, new_set_size, plan_scaling, rolling_up
from mooring.controllers.documents import document_of, finished_condition
from mooring.controllers.job.failures import NO_FAILURES
from mooring.controllers.job.plan import CreatePods, plan_pods, summarize_pods
from mooring.controllers.job.pods import GENERATED_NAME_LENGTH_MAX, indexed_pod, is_managed_externally, job_pod
from mooring.controllers.pod_control import pod_of_template
from mooring.controllers.pods import is_active, is_ready, replicas_of
from mooring.controllers.replicaset import selector_of
from mooring.controllers.statefulset.members import claim_document, claim_names, member_document, start_of
from mooring.kit.entropy import Entropy

PODS_MAX = 10_000

Workload: TypeAlias = Deployment | ReplicaSet | ReplicationController | StatefulSet | DaemonSet | Job | CronJob
AnyWorkload = TypeVar("AnyWorkload", bound=Workload)


@dataclass(slots=True)
class Expansion:
    """What controllers would create."""

    pods: list[NewPod] = field(default_factory=list)
    objects: list[ApiObject] = field(default_factory=list)
    """Claims and ReplicaSets."""
    workload_of: dict[str, str] = field(default_factory=dict)
    """Pod (`namespace/name`) -> `Deployment default/web`."""
    notes: list[str] = field(default_factory=list)


def expand(
    workloads: Iterable[ManifestObject],
    views: Iterable[ApiObject],
    server: DryRunServer,
    entropy: Entropy,
    now_s: float,
    *,
    are_claims_known: bool,
) -> Expansion:
    """The missing pods of the workloads, in their order; `views` are all objects of the cluster. Raises `InputError`.

    `are_claims_known` says whether a claim that is not among the views does not exist."""
    expander = _Expander(views, server, entropy, now_s, are_claims_known)
    for found in workloads:
        expander.expand(found)
    return expander.result()


class _Expander:
    def __init__(
        self,
        views: Iterable[ApiObject],
        server: DryRunServer,
        entropy: Entropy,
        now_s: float,
        are_claims_known: bool,
    ) -> None:
        self._server = server
        self._entropy = entropy
        self._now_s = now_s
        self._are_claims_known = are_claims_known
        self._expansion = Expansion()
        self._counts: Counter[str] = Counter()
        self._left_out = 0
        self._nodes: list[Node] = []
        self._claims: set[str] = set()
        self._owned: dict[str, list[Pod]] = {}
        """Pods by the uid of their controller."""
        self._orphans: dict[str, list[Pod]] = {}
        """Pods without a controller, by namespace."""
        self._sets: dict[str, list[ReplicaSet]] = {}
        """ReplicaSets by the uid of their Deployment."""
        self._deployments: set[str] = set()
        for view in views:
            self._take(view)

    def _take(self, view: ApiObject) -> None:
        match view:
            case Node():
                self._nodes.append(view)
            case PersistentVolumeClaim():
                self._claims.add(view.key)
            case Pod():
                owner = controller_of(view.metadata)
                if owner is not None:
                    self._owned.setdefault(owner.uid, []).append(view)
                else:
                    self._orphans.setdefault(view.metadata.namespace, []).append(view)
            case ReplicaSet():
                owner = controller_of(view.metadata)
                if owner is not None:
                    self._sets.setdefault(owner.uid, []).append(view)
            case Deployment():
                self._deployments.add(view.metadata.uid)

    def result(self) -> Expansion:
        made = self._expansion
        if made.pods:
            kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self._counts.items()) if count)
            made.notes.append(f"added {counted(len(made.pods), 'pod')} that controllers would create: {kinds}")
        if self._left_out:
            made.notes.append(f"left out {counted(self._left_out, 'pod')} of workloads: at most {PODS_MAX} are added")
        return made

    def expand(self, found: ManifestObject) -> None:
        view = found.view
        assert isinstance(view, WORKLOADS), f"{view.kind} is no workload"
        if view.metadata.deletion_timestamp is not None or _is_settled(view):
            return
        template = _template_of(view)
        if template is None:
            self._note(view, "has no pod template")
            return
        _check_template(view, template, found)
        before = len(self._expansion.pods)
        prepared = self._prepared(view, found)
        try:
            self._expand(prepared, found)
        except StatusError as error:
            self._expansion.notes.append(f"{_title(view)}: the API server rejects its pods: {error}")
        added = self._expansion.pods[before:]
        self._expansion.workload_of |= {new.view.key: f"{view.kind} {view.key}" for new in added}
        self._counts[view.kind] += bool(added)

    def _expand(self, view: ApiObject, found: ManifestObject) -> None:
        match view:
            case Deployment():
                self._expand_deployment(view)
            case ReplicaSet():
                owner = controller_of(view.metadata)
                if owner is None or owner.uid not in self._deployments:  # a Deployment expands its own
                    self._expand_replica_set(view, replicas_of(view))
            case ReplicationController():
                self._expand_replica_set(view, replicas_of(view))
            case StatefulSet():
                self._expand_stateful_set(view, found)
            case DaemonSet():
                self._expand_daemon_set(view)
            case Job():
                self._expand_job(view)
            case CronJob():
                self._expand_cron_job(view, found)

    # The kinds

    def _expand_deployment(self, deployment: Deployment) -> None:
        sets = self._sets.get(deployment.metadata.uid, [])
        new, old = generations(deployment, sets)
        if deployment.spec.paused or is_scaling(deployment, sets):
            sizes = {replica_set.metadata.uid: replicas_of(replica_set) for replica_set in sets}
            sizes |= {resize.target.metadata.uid: resize.replicas for resize in plan_scaling(deployment, new, old)}
            for replica_set in sets:
                self._expand_replica_set(replica_set, sizes[replica_set.metadata.uid])
            if not sets:
                self._note(deployment, "is paused")
        elif deployment.spec.strategy.type == RECREATE and any(self._active(replica_set) for replica_set in old):
            self._note(deployment, "waits until its old pods are gone (Recreate)")
        elif not sets and deployment.status.replicas:
            self._note(deployment, "has ReplicaSets that are not in the input")
        elif new is None:
            new = self._new_replica_set(deployment, old)
            self._expand_replica_set(new, replicas_of(new))
        else:
            resizes = rolling_up(deployment, new, sets)
            self._expand_replica_set(new, resizes[0].replicas if resizes else replicas_of(new))

    def _new_replica_set(self, deployment: Deployment, old: list[ReplicaSet]) -> ReplicaSet:
        collisions, size = deployment.status.collision_count, new_set_size(deployment, old, 0)
        document = new_set_document(deployment, collisions, next_revision(old), size)
        made = _with_uid(decode_as(ReplicaSet, msgspec.json.encode(document)))
        self._expansion.objects.append(made)
        return made

    def _expand_replica_set(self, replica_set: ReplicaSet | ReplicationController, replicas: int) -> None:
        active = len(self._active(replica_set)) + self._adoptable(replica_set)
        # A controller of the cluster may have made pods that the input does not hold.
        active = max(active, replica_set.status.replicas)
        count = self._allowed(replicas - active)
        if count:
            template = document_of(replica_set)["spec"]["template"]
            self._add([self._created(pod_of_template(template, replica_set), replica_set)] * count, replica_set)

    def _adoptable(self, replica_set: ReplicaSet | ReplicationController) -> int:
        try:
            selector = selector_of(replica_set)
        except LabelSelectorError:
            return 0
        orphans = self._orphans.get(replica_set.metadata.namespace, ())
        return sum(is_active(pod) and selector.matches(pod.metadata.labels) for pod in orphans)

    def _expand_stateful_set(self, stateful_set: StatefulSet, found: ManifestObject) -> None:
        namespace, start, replicas = stateful_set.metadata.namespace, start_of(stateful_set), replicas_of(stateful_set)
        own = self._owned.get(stateful_set.metadata.uid, ())
        is_ordered = stateful_set.spec.pod_management_policy != "Parallel"
        if found.view.metadata.uid and is_ordered and not all(is_ready(pod) for pod in own):
            return  # the controller of the cluster creates one after the other
        present = {pod.metadata.name for pod in (*own, *self._orphans.get(namespace, ()))}
        missing = [at for at in range(start, start + replicas) if f"{stateful_set.metadata.name}-{at}" not in present]
        unseen = max(stateful_set.status.replicas - len(own), 0)  # pods of the cluster that the input does not hold
        missing = missing[unseen:]
        document = document_of(stateful_set)["spec"]
        # Ordinal by ordinal: each has its own claims.
        for ordinal in missing[: self._allowed(len(missing))]:
            pod = member_document(stateful_set, document["template"], stateful_set.status.update_revision, ordinal)
            self._expansion.pods.append(self._created(pod, stateful_set))
            if self._are_claims_known or not found.view.metadata.uid:
                self._add_claims(stateful_set, document, ordinal)

    def _add_claims(self, owner: StatefulSet, spec: Document, ordinal: int) -> None:
        names = claim_names(owner, ordinal)
        for template in spec.get("volumeClaimTemplates") or ():
            name = names[template["metadata"]["name"]]
            if f"{owner.metadata.namespace}/{name}" not in self._claims:
                metadata = ObjectMeta(name=name, namespace=owner.metadata.namespace)
                document = claim_document(owner, template, name)
                self._expansion.objects.append(self._server.created(PersistentVolumeClaim, document, metadata))

    def _expand_daemon_set(self, daemon_set: DaemonSet) -> None:
        own = [pod for pod in self._owned.get(daemon_set.metadata.uid, ()) if is_active(pod)]
        if daemon_set.status.current_number_scheduled > len(own):
            return  # the pods of the cluster are not in the input
        present = {target_node(pod) for pod in own}
        fits = FitCache()
        chosen = [node for node in self._nodes if fits.fit(daemon_set, node).should_run]
        names = [name for node in chosen if (name := node.metadata.name) not in present]
        names = names[: self._allowed(len(names))]
        if names:
            new = self._created(daemon_pod(daemon_set, ""), daemon_set)  # once: admission does not read node affinity
            spec = msgspec.to_builtins(new.view.spec)
            self._add([_with_spec(new, pin_to_node(spec, name)) for name in names], daemon_set)

    def _expand_job(self, job: Job) -> None:
        if job.spec.suspend or is_managed_externally(job) or finished_condition(job) is not None:
            return
        pods = self._owned.get(job.metadata.uid, [])
        if job.status.active > sum(map(is_active, pods)):
            return  # the pods of the cluster are not in the input
        plan = plan_pods(summarize_pods(job, list(pods), frozenset()), NO_FAILURES, self._now_s)
        if not isinstance(plan, CreatePods):
            return
        count, document = self._allowed(plan.count), job_pod(job)
        if plan.indexes:
            documents = [indexed_pod(job, document, index, None) for index in plan.indexes[:count]]
            self._add([self._created(pod, job) for pod in documents], job)
        elif count:
            self._add([self._created(document, job)] * count, job)

    def _expand_cron_job(self, cron_job: CronJob, found: ManifestObject) -> None:
        if found.view.metadata.uid or cron_job.spec.suspend:
            return  # the controller of the cluster creates its Jobs when it is time
        try:
            next_s = parse_schedule(schedule_text(cron_job)).next_s(self._now_s)
        except ScheduleError as error:
            raise InputError([Problem(found.origin.at("spec.schedule"), f"{_title(cron_job)}: {error}")]) from None
        if next_s is None:
            return
        document = job_document(cron_job, next_s)
        document["metadata"]["namespace"] = cron_job.metadata.namespace
        self._expand_job(self._prepared(decode_as(Job, msgspec.json.encode(document)), found))

    def _prepared(self, view: AnyWorkload, found: ManifestObject) -> AnyWorkload:
        """A workload as the API server would store it, with a uid that its pods can refer to."""
        if document_of(view)["metadata"].get("uid"):
            return view  # it comes from an API server
        view = _with_uid(view)
        try:
            created = self._server.created(type(view), msgspec.Raw(view.raw), view.metadata)
        except StatusError as error:
            raise InputError([Problem(found.origin.at(), f"{_title(view)}: {error}")]) from None
        # A workload that replaces one of a live cluster has the status of the other one.
        return replace(created, status=view.status)

    # Pods

    def _active(self, owner: ReplicaSet | ReplicationController) -> list[Pod]:
        return [pod for pod in self._owned.get(owner.metadata.uid, ()) if is_active(pod)]

    def _allowed(self, count: int) -> int:
        """How many of `count` pods may still be added."""
        allowed = max(min(count, PODS_MAX - len(self._expansion.pods)), 0)
        self._left_out += max(count, 0) - allowed
        return allowed

    def _created(self, pod: Document, owner: ObjectWithRaw) -> NewPod:
        """The pod as the API server would store it. Raises `StatusError`."""
        return self._server.created_pod(pod, ObjectMeta(namespace=owner.metadata.namespace))

    def _add(self, pods: list[NewPod], owner: ObjectWithRaw) -> None:
        """Adds pods under generated names."""
        names = self._entropy.fork(f"pods of {owner.kind} {owner.key}")
        for new in pods:
            start = new.view.metadata.generate_name[:GENERATED_NAME_LENGTH_MAX]
            metadata = replace(new.view.metadata, name=f"{start}{names.suffix()}", generate_name="")
            self._expansion.pods.append(dataclasses.replace(new, view=replace(new.view, metadata=metadata)))

    def _note(self, workload: ApiObject, text: str) -> None:
        self._expansion.notes.append(f"{_title(workload)} {text}: no pods of it are added")


def _is_settled(view: Workload) -> bool:
    """Whether the controller of a cluster has made all of its pods, by its status: nearly all of a dump's are."""
    match view:
        case ReplicaSet() | ReplicationController():
            return view.status.replicas >= replicas_of(view)
        case Job():
            return finished_condition(view) is not None
    return False


def _with_uid(view: AnyWorkload) -> AnyWorkload:
    if view.metadata.uid:
        return view
    return replace(view, metadata=replace(view.metadata, uid=f"{view.kind}/{view.key}"))


def _template_of(view: Workload) -> Document | None:
    spec = document_of(view).get("spec")
    if isinstance(spec, Mapping) and isinstance(view, CronJob):
        job = spec.get("jobTemplate")
        spec = job.get("spec") if isinstance(job, Mapping) else None
    template = spec.get("template") if isinstance(spec, Mapping) else None
    is_complete = isinstance(template, Mapping) and isinstance(template.get("spec"), Mapping)
    return template if is_complete else None


def _check_template(view: Workload, template: Document, found: ManifestObject) -> None:
    """Raises `InputError` if no pod can be made of the template."""
    start = "spec.jobTemplate.spec.template" if isinstance(view, CronJob) else "spec.template"
    metadata = template.get("metadata") or {}
    if isinstance(metadata, Mapping):
        metadata = {**metadata, "generateName": f"{view.metadata.name}-"}
    try:
        pod = convert_as(Pod, {"metadata": metadata, "spec": template["spec"]})
        problems = list(problems_of(pod))
    except DecodeError as error:
        problems = [(error.path, error.problem)]
    if problems:
        paths = [(f"{start}.{path}", text) for path, text in problems]
        raise InputError(Problem(found.origin.at(path), f"{_title(view)}: {path}: {text}") for path, text in paths)


def _with_spec(new: NewPod, spec: Document) -> NewPod:
    return dataclasses.replace(new, view=replace(new.view, spec=convert_as(PodSpec, spec)))


def _title(view: ApiObject) -> str:
    return f'{view.kind} "{view.key}"'
