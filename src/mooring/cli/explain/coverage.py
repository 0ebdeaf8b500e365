"""Which kinds the input holds, and what cannot be judged about a pod without the others.

A dump without PersistentVolumeClaims does not mean that a pod's claim is missing. Where a decision depends on a kind
that was not supplied, the pod is decided without that part, and the report says so before anything else.

  kind                                    pods                                   not judged
  PersistentVolumeClaim                   with claims                            their volumes
  PersistentVolume                        with bound or late-binding claims      their volumes
  StorageClass                            with unbound claims                    their volumes
  CSIStorageCapacity                      whose driver publishes capacity        their volumes
  CSIDriver                               with claims to be provisioned          the free capacity of the driver
  CSINode, VolumeAttachment               with CSI volumes                       the attach limits of nodes
  ResourceClaim, ResourceClaimTemplate,   with resource claims                   their devices
  ResourceSlice, DeviceClass
  DeviceClass                             with a resource that no node offers    devices that provide it
  Namespace                               with a namespaceSelector               those affinity terms
  PriorityClass                           without a priority, naming a class     their priority
  PodDisruptionBudget                     that preempt                           the budgets of their victims
  Service, ReplicationController,         with an owner, or from a cluster       scores of default spreading
  ReplicaSet, StatefulSet

 1. A part is left out only for pods that need it: claims are removed from the pod that is decided, or affinity terms.
 2. A kind counts as supplied if the input holds an object of it, a typed list (even an empty one), or if the API server
    answered its list. A kind that the server does not have is supplied and empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from msgspec.structs import replace

from mooring.api.resources import RequestRules, is_extended_resource, pod_requests_nano
from mooring.api.storage import NO_PROVISIONER, WAIT_FOR_FIRST_CONSUMER, claim_named_by, class_of_claim
from mooring.api.views.devices import DeviceClass, ResourceClaim, ResourceClaimTemplate
from mooring.api.views.meta import ApiObject, controller_of
from mooring.api.views.node import Node
from mooring.api.views.pod import Affinity, Pod, PodAffinity, PodAffinityTerm, PodAntiAffinity
from mooring.api.views.storage import CSIDriver, PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.api.well_known import NAMESPACE_NAME_LABEL
from mooring.cli.cluster_source.cluster_input import ClusterInput, Supplied
from mooring.cli.explain.report import NotJudged, Outcome, PodExplanation

VOLUME_PLUGINS = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")
DEVICE_PLUGINS = ("DynamicResources",)
SPREAD_KINDS = ("Service", "ReplicationController", "ReplicaSet", "StatefulSet")

_VOLUMES = "its volumes were not judged"
_DEVICES = "its devices were not judged"
_LIMITS = "how many volumes a node can attach was not judged"

AnyView = TypeVar("AnyView", bound=ApiObject)
Side = TypeVar("Side", PodAffinity, PodAntiAffinity)


@dataclass(slots=True)
class Coverage:
    """What was not judged, pod by pod. Leaves those parts out of the pods of the cluster."""

    supplied: Supplied
    by_pod: dict[str, tuple[NotJudged, ...]] = field(default_factory=dict)
    owners: set[tuple[str, str]] = field(default_factory=set)
    """Kind and `namespace/name` of every controller that the input holds."""

    def limit(self, cluster: ClusterInput) -> None:
        """Replaces the pods of the cluster by pods without the parts that cannot be judged."""
        self.owners = {(view.kind, view.key) for view in cluster.objects if view.kind in SPREAD_KINDS}
        missing = _Missing(self.supplied, cluster)
        cluster.placed = [missing.without_namespace_terms(pod)[0] for pod in cluster.placed]
        for at, pod in enumerate(cluster.pending):
            limited, found = missing.judgeable(pod)
            if found:
                self.by_pod[pod.key] = found
                cluster.pending[at] = limited

    def completed(self, explanation: PodExplanation, pod: Pod) -> tuple[NotJudged, ...]:
        """Everything that was not judged about a pod, now that it is decided."""
        found = list(self.by_pod.get(explanation.pod, ()))
        if explanation.preemption is not None and explanation.preemption.node is not None:
            found += self._entries("PodDisruptionBudget", ("DefaultPreemption",), "no budget protected the victims")
        if explanation.outcome is Outcome.PLACED and explanation.feasible_count > 1:
            found += self._spreading(pod)
        return tuple(found)

    def _spreading(self, pod: Pod) -> Iterator[NotJudged]:
        if pod.spec.topology_spread_constraints:
            return
        owner = controller_of(pod.metadata)
        is_unknown = owner is not None and (owner.kind, f"{pod.metadata.namespace}/{owner.name}") not in self.owners
        needed = [owner.kind] if owner is not None and is_unknown else []
        needed += ["Service"] if pod.metadata.uid else []
        for kind in SPREAD_KINDS:
            if kind in needed:
                yield from self._entries(kind, ("PodTopologySpread",), "scores lack the default spreading")

    def _entries(self, kind: str, plugins: tuple[str, ...], consequence: str) -> list[NotJudged]:
        if kind in self.supplied:
            return []
        return [NotJudged(kind, plugins, self.supplied.absence(kind), consequence)]


class _Missing:
    """What a cluster lacks, for each of its pending pods."""

    def __init__(self, supplied: Supplied, cluster: ClusterInput) -> None:
        self._supplied = supplied
        self._unranked = cluster.unranked
        self._claims = _by_key(cluster.objects, PersistentVolumeClaim)
        self._volumes = _by_key(cluster.objects, PersistentVolume)
        self._classes = _by_key(cluster.objects, StorageClass)
        self._drivers = _by_key(cluster.objects, CSIDriver)
        self._device_claims = _by_key(cluster.objects, ResourceClaim)
        self._device_classes = _by_key(cluster.objects, DeviceClass)
        self._templates = _by_key(cluster.objects, ResourceClaimTemplate)
        self._offered = {name for view in cluster.objects if isinstance(view, Node) for name in view.status.allocatable}
        self._has_other_users = any(pod.spec.resource_claims for pod in cluster.placed)
        self._keeps_away = sum(self.without_namespace_terms(pod)[1] for pod in cluster.placed)

    def judgeable(self, pod: Pod) -> tuple[Pod, tuple[NotJudged, ...]]:
        """The pod without what cannot be judged, and what that was."""
        volumes = list(self._of_volumes(pod))
        devices = list(self._of_devices(pod))
        if any(entry.plugins == VOLUME_PLUGINS for entry in volumes):
            others = tuple(volume for volume in pod.spec.volumes if claim_named_by(volume, "") is None)
            pod = replace(pod, spec=replace(pod.spec, volumes=others))
        if any(entry.plugins == DEVICE_PLUGINS for entry in devices):
            pod = replace(pod, spec=replace(pod.spec, resource_claims=()))
        pod, own_terms = self.without_namespace_terms(pod)
        return pod, (*volumes, *devices, *self._of_namespaces(own_terms), *self._of_priority(pod))

    def _entry(self, kind: str, plugins: tuple[str, ...], consequence: str, *, may_reject: bool = True) -> NotJudged:
        return NotJudged(kind, plugins, self._supplied.absence(kind), consequence, may_reject)

    # Volumes

    def _of_volumes(self, pod: Pod) -> Iterator[NotJudged]:
        names = [name for volume in pod.spec.volumes if (name := claim_named_by(volume, pod.metadata.name))]
        if not names:
            return
        claims = [self._claims.get(f"{pod.metadata.namespace}/{name}") for name in names]
        known = [claim for claim in claims if claim is not None]
        if len(known) < len(claims) and "PersistentVolumeClaim" not in self._supplied:
            yield self._entry("PersistentVolumeClaim", VOLUME_PLUGINS, _VOLUMES)
            return
        bound = [claim for claim in known if claim.spec.volume_name]
        unbound = [claim for claim in known if not claim.spec.volume_name]
        if "StorageClass" not in self._supplied and not all(self._is_class_known(claim) for claim in unbound):
            yield self._entry("StorageClass", VOLUME_PLUGINS, _VOLUMES)
            return
        classes = [found for claim in unbound if (found := self._classes.get(class_of_claim(claim))) is not None]
        late = [
            storage_class for storage_class in classes if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        ]
        is_volume_missing = any(claim.spec.volume_name not in self._volumes for claim in bound)
        if "PersistentVolume" not in self._supplied and (is_volume_missing or late):
            yield self._entry("PersistentVolume", VOLUME_PLUGINS, _VOLUMES)
            return
        provisioned = [storage_class for storage_class in late if storage_class.provisioner != NO_PROVISIONER]
        if provisioned:
            yield from self._of_capacity(provisioned)
        is_of_driver = any(
            (volume := self._volumes.get(claim.spec.volume_name)) is not None and volume.spec.csi is not None
            for claim in bound
        )
        if is_of_driver or provisioned:
            for kind in ("CSINode", "VolumeAttachment"):
                if kind not in self._supplied:
                    yield self._entry(kind, ("NodeVolumeLimits",), _LIMITS)
                    return

    def _is_class_known(self, claim: PersistentVolumeClaim) -> bool:
        name = class_of_claim(claim)
        if name:
            return name in self._classes
        # A claim that no API server has seen would get the default class.
        return bool(claim.metadata.uid) or claim.spec.storage_class_name is not None

    def _of_capacity(self, classes: Sequence[StorageClass]) -> Iterator[NotJudged]:
        if "CSIDriver" not in self._supplied:
            consequence = "whether its driver has free capacity was not judged"
            yield self._entry("CSIDriver", ("VolumeBinding",), consequence)
            return
        drivers = [self._drivers.get(storage_class.provisioner) for storage_class in classes]
        if "CSIStorageCapacity" not in self._supplied and any(
            driver is not None and driver.spec.storage_capacity for driver in drivers
        ):
            yield self._entry("CSIStorageCapacity", VOLUME_PLUGINS, _VOLUMES)

    # Devices

    def _of_devices(self, pod: Pod) -> Iterator[NotJudged]:
        if pod.spec.resource_claims:
            kind = self._missing_device_kind(pod)
            if kind is not None:
                yield self._entry(kind, DEVICE_PLUGINS, _DEVICES)
                return
        if "DeviceClass" in self._supplied:
            return
        for name in pod_requests_nano(pod, RequestRules()):
            if is_extended_resource(name) and name not in self._offered:
                consequence = f"whether devices provide {name} was not judged"
                plugins = ("NodeResourcesFit", "DynamicResources")
                yield self._entry("DeviceClass", plugins, consequence, may_reject=False)

    def _missing_device_kind(self, pod: Pod) -> str | None:
        namespace = pod.metadata.namespace
        made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
        names: list[str] = []
        for use in pod.spec.resource_claims:
            template = use.resource_claim_template_name
            if template is None or use.name in made:
                names.append(use.resource_claim_name or made.get(use.name) or "")
                continue
            # For a pod of an API server it is a fact that its claim has not been made.
            is_unknown = f"{namespace}/{template}" not in self._templates and not pod.metadata.uid
            if is_unknown and "ResourceClaimTemplate" not in self._supplied:
                return "ResourceClaimTemplate"
        claims = [self._device_claims.get(f"{namespace}/{name}") for name in names if name]
        open_claims = [claim for claim in claims if claim is not None and claim.status.allocation is None]
        is_unknown = None in claims or (bool(open_claims) and self._has_other_users)
        if "ResourceClaim" not in self._supplied and is_unknown:
            return "ResourceClaim"
        if not open_claims:
            return None
        class_names = {name for claim in open_claims for name in _device_classes_of(claim)}
        if "DeviceClass" not in self._supplied and not class_names <= self._device_classes.keys():
            return "DeviceClass"
        return "ResourceSlice" if "ResourceSlice" not in self._supplied else None

    # Namespaces and priority

    def without_namespace_terms(self, pod: Pod) -> tuple[Pod, int]:
        """The pod without affinity terms that need the labels of namespaces, and how many those were."""
        affinity = pod.spec.affinity
        if "Namespace" in self._supplied or affinity is None:
            return pod, 0
        near, near_count = _without_terms(affinity.pod_affinity)
        far, far_count = _without_terms(affinity.pod_anti_affinity)
        if not near_count + far_count:
            return pod, 0
        limited = Affinity(node_affinity=affinity.node_affinity, pod_affinity=near, pod_anti_affinity=far)
        return replace(pod, spec=replace(pod.spec, affinity=limited)), near_count + far_count

    def _of_namespaces(self, own_terms: int) -> Iterator[NotJudged]:
        if own_terms:
            consequence = "its affinity terms with a namespaceSelector were not judged"
            yield self._entry("Namespace", ("InterPodAffinity",), consequence)
        elif self._keeps_away:
            consequence = "affinity terms of other pods with a namespaceSelector were not judged"
            yield self._entry("Namespace", ("InterPodAffinity",), consequence)

    def _of_priority(self, pod: Pod) -> Iterator[NotJudged]:
        if pod.key in self._unranked and "PriorityClass" not in self._supplied:
            consequence = f"{pod.spec.priority_class_name} counted as priority 0"
            yield self._entry("PriorityClass", ("PrioritySort", "DefaultPreemption"), consequence, may_reject=False)


def _by_key(views: Iterable[ApiObject], kind: type[AnyView]) -> Mapping[str, AnyView]:
    return {view.key: view for view in views if isinstance(view, kind)}


def _device_classes_of(claim: ResourceClaim) -> Iterator[str]:
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            yield request.exactly.device_class_name
        for alternative in request.first_available:
            yield alternative.device_class_name


def _without_terms(side: Side | None) -> tuple[Side | None, int]:
    if side is None:
        return None, 0
    required = side.required_during_scheduling_ignored_during_execution
    preferred = side.preferred_during_scheduling_ignored_during_execution
    kept = tuple(term for term in required if not _needs_namespaces(term))
    kept_preferred = tuple(term for term in preferred if not _needs_namespaces(term.pod_affinity_term))
    limited = replace(
        side,
        required_during_scheduling_ignored_during_execution=kept,
        preferred_during_scheduling_ignored_during_execution=kept_preferred,
    )
    return limited, len(required) - len(kept) + len(preferred) - len(kept_preferred)


def _needs_namespaces(term: PodAffinityTerm) -> bool:
    """Whether labels of namespaces decide; every namespace has the label with its name, whatever the input holds."""
    selector = term.namespace_selector
    if selector is None:
        return False
    keys = [*selector.match_labels, *(expression.key for expression in selector.match_expressions)]
    return any(key != NAMESPACE_NAME_LABEL for key in keys)
