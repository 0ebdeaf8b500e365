"""Pods as the scheduler caches them: a small `PodInfo` each, and a `PodSignature` shared by all pods of a template.

A Deployment of 5,000 pods is 5,000 names and one signature. What a plugin derives from the specification is derived
once per signature: the request vector, compiled selectors, the label class.

1. A signature holds nothing that differs between pods of one template: no name, uid, node, claims or times. Volumes
   belong to `PodInfo`; only image volumes count for the signature.
2. Two pods share a signature exactly if the parts of their specifications that scheduling reads encode to the same
   bytes. Encoding takes 3 µs for a usual pod, and is the cheapest exact comparison.
3. `PodSignature.spec_key` is equal for signatures that differ in labels and owner only.
4. A pod whose kubelet granted what it requests keeps the signature that it had while it was pending. A resize changes
   it.
5. `SignatureRegistry.sweep` removes signatures that no pod uses.
6. A pod is nominated to at most one node, which need not exist. `Nominations` keeps the order of nomination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from mooring.api.resources import node_accounting_requests
from mooring.api.views.meta import OwnerReference, controller_of
from mooring.api.views.pod import ContainerStatus, Pod, PodSpec
from mooring.api.views.storage import Volume
from mooring.api.well_known import DEFAULT_SCHEDULER_NAME
from mooring.kit.clock import parse_rfc3339
from mooring.scheduler.cache.arrays import Int64s
from mooring.scheduler.cache.resources import ANY_ADDRESS, HostPort, ResourceColumns
from mooring.scheduler.cache.selectors import ExistingTerm, LabelClass, PodTerms, SelectorColumns, TermColumns

Derived = TypeVar("Derived")
NO_START_S = float("inf")
_RESIZING = ("PodResizePending", "PodResizeInProgress")
_encode_key = msgspec.msgpack.Encoder().encode


class PodSignature:
    """What all pods of one template have in common."""

    __slots__ = (
        "_derived",
        "_spec_key",
        "host_ports",
        "key",
        "label_class",
        "labels",
        "namespace",
        "owner",
        "pods_placed",
        "priority",
        "registered",
        "request_vector",
        "scheduler_name",
        "spec",
        "terms",
        "used_at",
        "view",
    )

    def __init__(self, key: bytes, view: Pod) -> None:
        self.key = key
        self.view = view
        """One pod of this signature. Read from it only what `signature_key` covers."""
        self.spec: PodSpec = view.spec
        self.namespace: str = view.metadata.namespace
        self.labels: Mapping[str, str] = view.metadata.labels
        self.owner: OwnerReference | None = controller_of(view.metadata)
        self.priority: int = view.spec.priority or 0
        self.scheduler_name: str = view.spec.scheduler_name or DEFAULT_SCHEDULER_NAME
        self.host_ports = host_ports(view.spec)
        self._derived: dict[object, tuple[object, Any]] = {}
        """See `PerSignature`."""
        self.pods_placed = 0
        self.used_at = 0
        self.registered = False
        self.request_vector: Int64s
        self.label_class: LabelClass
        self.terms: tuple[ExistingTerm, ...] = ()
        self._spec_key = b""

    @property
    def spec_key(self) -> bytes:
        """Equal for signatures that differ in labels and owner only."""
        if not self._spec_key:
            self._spec_key = _encode_key((self.namespace, _spec_of_template(self.spec), _granted(self.view)))
        return self._spec_key

    def derived(self, key: PerSignature[Derived], version: object) -> Derived:
        """The value of `key` for this signature; computed again if the version has changed."""
        known = self._derived.get(key)
        if known is None or known[0] != version:
            known = self._derived[key] = (version, key.derive(self))
        value: Derived = known[1]
        return value

    def forget_derived(self) -> None:
        self._derived.clear()

    def __repr__(self) -> str:
        return f"PodSignature({self.namespace}, {dict(self.labels)})"


class PerSignature(Generic[Derived]):
    """A function of the signature whose result is stored with the signature. Usable as a decorator.

    `version` returns a value that changes when the function reads something else that has changed.
    """

    def __init__(self, derive: Callable[[PodSignature], Derived], version: Callable[[], object] | None = None) -> None:
        self.derive = derive
        self.version = version

    def __call__(self, signature: PodSignature) -> Derived:
        return signature.derived(self, self.version() if self.version is not None else None)


class PodInfo:
    """One pod: its identity, its node and its signature."""

    __slots__ = (
        "arrival",
        "claims",
        "disrupted",
        "name",
        "node_name",
        "nominated_node",
        "row",
        "signature",
        "start_s",
        "terminating",
        "uid",
        "view",
        "volumes",
    )

    def __init__(self, view: Pod, signature: PodSignature) -> None:
        metadata, status = view.metadata, view.status
        self.name = metadata.name
        self.uid = metadata.uid or f"{metadata.namespace}/{metadata.name}"
        self.signature = signature
        self.view: Pod | None = view
        """The whole pod while it is pending; None once it is placed, because there may be a million placed pods."""
        self.volumes: tuple[Volume, ...] = tuple([v for v in view.spec.volumes if v != Volume(name=v.name)])
        """The volumes that a plugin reads. Nearly every pod mounts a token, which is left out."""
        self.claims: tuple[str, ...] = claim_keys(view) if self.volumes else ()
        self.node_name = view.spec.node_name
        self.nominated_node = status.nominated_node_name
        self.terminating = metadata.deletion_timestamp is not None
        self.disrupted = self.terminating and _is_preemption_victim(view)
        self.start_s = parse_rfc3339(status.start_time) if status.start_time is not None else NO_START_S
        self.arrival = 0
        self.row = -1

    @property
    def namespace(self) -> str:
        return self.signature.namespace

    @property
    def key(self) -> str:
        return f"{self.signature.namespace}/{self.name}"

    @property
    def priority(self) -> int:
        return self.signature.priority

    def __repr__(self) -> str:
        return f"PodInfo({self.key} on {self.node_name or 'no node'})"


def signature_key(view: Pod) -> bytes:
    """Equal bytes for pods that every plugin must treat the same."""
    metadata = view.metadata
    owner = controller_of(metadata) if metadata.owner_references else None
    return _encode_key(
        (
            metadata.namespace,
            metadata.labels,
            (owner.api_version, owner.kind, owner.name) if owner is not None else None,
            _spec_of_template(view.spec),
            _granted(view),
        )
    )


def _spec_of_template(spec: PodSpec) -> PodSpec:
    """Without what differs between pods of one template."""
    if spec.node_name or spec.volumes or spec.scheduling_gates or spec.ephemeral_containers or spec.resource_claims:
        images = tuple([Volume(image=volume.image) for volume in spec.volumes if volume.image is not None])
        return msgspec.structs.replace(
            spec, node_name="", volumes=images, scheduling_gates=(), ephemeral_containers=(), resource_claims=()
        )
    return spec


def _granted(view: Pod) -> object:
    """In-place resize: the resources that the kubelet has granted. None if they equal the requests, so that a pod that
    starts keeps its signature."""
    status = view.status
    if not (status.container_statuses or status.init_container_statuses or status.resources or status.conditions):
        return None
    containers = [c for c in status.container_statuses if c.resources is not None]
    if status.init_container_statuses:
        containers += [c for c in status.init_container_statuses if c.resources is not None]
    resizing = [(c.type, c.reason) for c in status.conditions if c.type in _RESIZING]
    if not resizing and status.resources is None and _are_as_requested(containers, view.spec):
        return None
    return status.resources, status.allocated_resources, containers, resizing


def _are_as_requested(statuses: Sequence[ContainerStatus], spec: PodSpec) -> bool:
    if not statuses:
        return True
    requested = {
        container.name: container.resources.requests for container in (*spec.containers, *spec.init_containers)
    }
    return all(
        status.resources is not None
        and status.resources.requests == requested.get(status.name)
        and (not status.allocated_resources or status.allocated_resources == status.resources.requests)
        for status in statuses
    )


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """The host ports of a pod's containers and sidecars."""
    sidecars = [c for c in spec.init_containers if c.restart_policy == "Always"]
    return tuple(
        HostPort(port.protocol or "TCP", port.host_port, port.host_ip or ANY_ADDRESS)
        for container in (*sidecars, *spec.containers)
        for port in container.ports
        if port.host_port > 0
    )


def claim_keys(view: Pod) -> tuple[str, ...]:
    """The PersistentVolumeClaims that a pod names, as namespace/name, without those of ephemeral volumes."""
    return tuple(
        f"{view.metadata.namespace}/{volume.persistent_volume_claim.claim_name}"
        for volume in view.spec.volumes
        if volume.persistent_volume_claim is not None
    )


def _is_preemption_victim(view: Pod) -> bool:
    for condition in view.status.conditions:
        if condition.type == "DisruptionTarget":
            return condition.status == "True" and condition.reason == "PreemptionByScheduler"
    return False


SIGNATURES_BEFORE_SWEEP = 4096
RECENT_USES = 2048
"""A sweep keeps a signature without pods that is among this many most recent uses."""


class SignatureRegistry:
    """All signatures in use, by key."""

    def __init__(self, resources: ResourceColumns, selectors: SelectorColumns, terms: TermColumns) -> None:
        self._resources = resources
        self._selectors = selectors
        self._terms = terms
        self._signatures: dict[bytes, PodSignature] = {}
        self._clock = 0
        self._sweep_at = SIGNATURES_BEFORE_SWEEP

    def __len__(self) -> int:
        return len(self._signatures)

    def intern(self, key: bytes, view: Pod) -> PodSignature:
        """The signature with this key, created from `view` if necessary."""
        self._clock += 1
        signature = self._signatures.get(key)
        if signature is None:
            if len(self._signatures) >= self._sweep_at:
                self.sweep()
            signature = PodSignature(key, view)
            use = node_accounting_requests(view)
            signature.request_vector = self._resources.vector(use.requests, use.cpu_milli_non_zero, use.memory_non_zero)
            self.register(signature)
        signature.used_at = self._clock
        return signature

    def current(self, signature: PodSignature) -> PodSignature:
        """The registered signature with the same key: this one, or after a sweep possibly a newer one."""
        if signature.registered:
            return signature
        known = self._signatures.get(signature.key)
        if known is None:
            self.register(signature)
            known = signature
        known.used_at = self._clock
        return known

    def register(self, signature: PodSignature) -> None:
        signature.label_class = self._selectors.label_class(signature.namespace, signature.labels)
        signature.terms = self._terms.register(PodTerms(signature.view))
        signature.registered = True
        self._signatures[signature.key] = signature

    def sweep(self) -> None:
        """Removes the signatures without placed pods that were not used recently."""
        stale = [s for s in self._signatures.values() if not s.pods_placed and s.used_at < self._clock - RECENT_USES]
        for signature in stale:
            self._terms.release(signature.terms)
            signature.terms = ()
            signature.registered = False
            signature.forget_derived()
            del self._signatures[signature.key]
        in_use = {id(signature.label_class) for signature in self._signatures.values()}
        for signature in stale:
            if id(signature.label_class) not in in_use:
                self._selectors.forget_class(signature.label_class)
        self._sweep_at = max(SIGNATURES_BEFORE_SWEEP, 2 * len(self._signatures))


class Nominations:
    """Nominated pods, by node name."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._node_of)

    def add(self, pod: PodInfo, node_name: str) -> None:
        self.remove(pod)
        self._by_node.setdefault(node_name, {})[pod.uid] = pod
        self._node_of[pod.uid] = node_name

    def remove(self, pod: PodInfo) -> str | None:
        """Removes a nomination; returns its node."""
        node_name = self._node_of.pop(pod.uid, None)
        if node_name is not None:
            pods = self._by_node[node_name]
            del pods[pod.uid]
            if not pods:
                del self._by_node[node_name]
        return node_name

    def on(self, node_name: str) -> Iterable[PodInfo]:
        return self._by_node.get(node_name, {}).values()

    def that_outrank(self, pod: PodInfo, node_name: str) -> tuple[PodInfo, ...]:
        """The pods nominated to a node with at least the pod's priority, without the pod itself."""
        nominated = self._by_node.get(node_name)
        if nominated is None:
            return ()
        return tuple([p for p in nominated.values() if p.priority >= pod.priority and p.uid != pod.uid])

    def node_of(self, pod: PodInfo) -> str | None:
        return self._node_of.get(pod.uid)

    def get(self, uid: str) -> PodInfo | None:
        node_name = self._node_of.get(uid)
        return self._by_node[node_name][uid] if node_name is not None else None

    def nodes(self) -> Iterable[str]:
        return self._by_node
