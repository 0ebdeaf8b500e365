"""The resources: what the server serves, and where in the address space.

Comes in   rows of `mooring.api.kinds`, strategies where a kind is special, and kinds that users define
Goes out   for an address the `Resource` behind it; for discovery all of them

 1. A built-in kind is one row in `mooring.api.kinds`. Its strategy stands in `strategies` if it is special.
 2. Custom kinds come and go while the server runs; built-in ones do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.api.schema.model import Struct
from mooring.api.schema.tables import struct_of_kind
from mooring.apiserver.apply.shape import Shape
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.scale import scale_faults, scale_of, scaled
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables.columns import KindTable
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.wire.canonical import canonical
from mooring.client.errors import NotFoundError

ReadBody = Callable[[bytes, str, Call], Document]
"""From a body and its content type."""
ReadPlain = Callable[[Document], "Reading"]

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CHANGING = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class ScaleRules:
    """How the Scale of a kind is made from its objects, and brought back into them."""

    scale_of: Callable[[Kind, Document], Document]
    scaled: Callable[[Document, Document], Document]
    replicas_path: tuple[str, ...] = ("f:spec", "f:replicas")
    """Where the replicas stand, as managed fields write it."""
    shown: Callable[[Kind, Document], Document] | None = None
    """What a reader gets, if it is not what a writer starts from. May raise `StatusError`."""
    faults: Callable[[Document], list[Fault]] = scale_faults
    """What is wrong with a Scale that somebody wrote."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A document read by its kind: `strict_faults` are the fields that the kind does not have."""

    document: Document
    strict_faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Subresource:
    """Something below an object: `status`, `scale`, `log`."""

    name: str
    verbs: tuple[str, ...]
    kind: str = ""
    """The kind that it takes or gives; empty if it is the object's own."""
    api_version: str = ""


STATUS = Subresource("status", CHANGING)
SCALE = Subresource("scale", CHANGING, "Scale", "autoscaling/v1")


@dataclass(slots=True, eq=False)
class Resource:
    """One kind, as it is served."""

    kind: Kind
    strategy: Strategy
    struct: Struct | None
    """What its objects look like; None for custom kinds."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    singular: str = ""
    list_kind: str = ""
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    returns_deleted: bool = False
    """Whether deleting answers with the object; otherwise with a Status."""
    strategies: Mapping[str, Strategy] = field(default_factory=dict)
    """Of the subresources through which the object is changed."""
    read_body: ReadBody | None = None
    """For custom kinds: from a body to a document that is pruned and defaulted."""
    read_document: ReadPlain | None = None
    """For custom kinds: the same for the result of a patch."""
    shape: Shape | None = None
    """For custom kinds: how their fields are merged."""
    scale: ScaleRules | None = None
    """For kinds with replicas."""
    schema: Document | None = None
    """For custom kinds: the schema of their version, as the definition has it."""
    storage_version: str = ""
    """For custom kinds: the version in which they are stored, if it is not their own."""
    table: KindTable | None = None
    """For custom kinds: what is printed of them."""
    selectable_fields: frozenset[str] = frozenset()
    """What a field selector may name, besides the name and the namespace."""
    warnings: tuple[str, ...] = ()
    """Told to everybody who asks for it: that the version is deprecated."""

    def __post_init__(self) -> None:
        self.singular = self.singular or self.kind.kind.lower()
        self.list_kind = self.list_kind or f"{self.kind.kind}List"
        self.strategies = self.strategies or self.strategy.subresources
        if not self.selectable_fields:
            blank: Document = {"metadata": {}, "spec": {}, "status": {}}
            if self.struct is not None:
                blank.update(canonical(self.struct, {}, []))
            self.selectable_fields = frozenset(self.strategy.selectable_fields(blank))

    @property
    def version(self) -> str:
        return self.kind.api_version.rpartition("/")[2]


class ResourceTable:
    """All resources by address."""

    def __init__(self, resources: Iterable[Resource] = ()) -> None:
        self._by_address: dict[tuple[str, str], Resource] = {}
        self._by_kind: dict[Kind, Resource] = {}
        self.generation = 0
        """Counts the changes, so that whoever keeps something made from the table knows when it is old."""
        for resource in resources:
            self.add(resource)

    def add(self, resource: Resource) -> None:
        self._by_address[resource.kind.api_version, resource.kind.plural] = resource
        self._by_kind[resource.kind] = resource
        self.generation += 1

    def remove(self, resource: Resource) -> None:
        self._by_address.pop((resource.kind.api_version, resource.kind.plural), None)
        self._by_kind.pop(resource.kind, None)
        self.generation += 1

    def find(self, api_version: str, plural: str) -> Resource | None:
        return self._by_address.get((api_version, plural))

    def serves(self, api_version: str, plural: str, subresource: str) -> bool:
        resource = self.find(api_version, plural)
        return resource is not None and (not subresource or subresource in resource.subresources)

    def of_kind(self, kind: Kind) -> Resource:
        """The resource of a kind, or of its namesake: whoever is inside may have made his own row of a custom kind."""
        resource = self._by_kind.get(kind) or self.find(kind.api_version, kind.plural)
        if resource is None:
            raise NotFoundError("the server could not find the requested resource")
        return resource

    def __iter__(self) -> Iterator[Resource]:
        return iter(list(self._by_address.values()))


# --- what the rows of `mooring.api.kinds` do not say ---------------------------------------------------------------

SHORT_NAMES: Mapping[Kind, tuple[str, ...]] = {
    kinds.CONFIG_MAP: ("cm",),
    kinds.ENDPOINTS: ("ep",),
    kinds.CORE_EVENT: ("ev",),
    kinds.EVENT: ("ev",),
    kinds.LIMIT_RANGE: ("limits",),
    kinds.NAMESPACE: ("ns",),
    kinds.NODE: ("no",),
    kinds.PERSISTENT_VOLUME_CLAIM: ("pvc",),
    kinds.PERSISTENT_VOLUME: ("pv",),
    kinds.POD: ("po",),
    kinds.REPLICATION_CONTROLLER: ("rc",),
    kinds.RESOURCE_QUOTA: ("quota",),
    kinds.SERVICE_ACCOUNT: ("sa",),
    kinds.SERVICE: ("svc",),
    kinds.DAEMON_SET: ("ds",),
    kinds.DEPLOYMENT: ("deploy",),
    kinds.REPLICA_SET: ("rs",),
    kinds.STATEFUL_SET: ("sts",),
    kinds.CRON_JOB: ("cj",),
    kinds.POD_DISRUPTION_BUDGET: ("pdb",),
    kinds.STORAGE_CLASS: ("sc",),
    kinds.VOLUME_ATTRIBUTES_CLASS: ("vac",),
    kinds.PRIORITY_CLASS: ("pc",),
    kinds.CUSTOM_RESOURCE_DEFINITION: ("crd", "crds"),
}
CATEGORIES: Mapping[Kind, tuple[str, ...]] = dict.fromkeys(
    (
        kinds.POD,
        kinds.REPLICATION_CONTROLLER,
        kinds.SERVICE,
        kinds.DAEMON_SET,
        kinds.DEPLOYMENT,
        kinds.REPLICA_SET,
        kinds.STATEFUL_SET,
        kinds.CRON_JOB,
        kinds.JOB,
    ),
    ("all",),
) | {kinds.CUSTOM_RESOURCE_DEFINITION: ("api-extensions",)}

PROXY_VERBS = ("create", "delete", "get", "patch", "update")
SUBRESOURCES: Mapping[Kind, tuple[Subresource, ...]] = {
    kinds.NAMESPACE: (Subresource("finalize", ("update",)),),
    kinds.NODE: (Subresource("proxy", PROXY_VERBS, "NodeProxyOptions"),),
    kinds.POD: (
        Subresource("attach", ("create", "get"), "PodAttachOptions"),
        Subresource("binding", ("create",), "Binding"),
        Subresource("ephemeralcontainers", CHANGING),
        Subresource("eviction", ("create",), "Eviction", "policy/v1"),
        Subresource("exec", ("create", "get"), "PodExecOptions"),
        Subresource("log", ("get",)),
        Subresource("portforward", ("create", "get"), "PodPortForwardOptions"),
        Subresource("proxy", PROXY_VERBS, "PodProxyOptions"),
        Subresource("resize", CHANGING),
    ),
    kinds.SERVICE: (Subresource("proxy", PROXY_VERBS, "ServiceProxyOptions"),),
    kinds.SERVICE_ACCOUNT: (Subresource("token", ("create",), "TokenRequest", "authentication.k8s.io/v1"),),
    kinds.REPLICATION_CONTROLLER: (SCALE,),
    kinds.DEPLOYMENT: (SCALE,),
    kinds.REPLICA_SET: (SCALE,),
    kinds.STATEFUL_SET: (SCALE,),
}
VERBS: Mapping[Kind, tuple[str, ...]] = {
    kinds.NAMESPACE: tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
}
RETURNS_DELETED = frozenset(
    {
        kinds.NAMESPACE,
        kinds.PERSISTENT_VOLUME,
        kinds.PERSISTENT_VOLUME_CLAIM,
        kinds.POD,
        kinds.POD_TEMPLATE,
        kinds.RESOURCE_QUOTA,
        kinds.SERVICE,
        kinds.SERVICE_ACCOUNT,
        kinds.DEVICE_CLASS,
        kinds.RESOURCE_CLAIM,
        kinds.RESOURCE_CLAIM_TEMPLATE,
        kinds.RESOURCE_SLICE,
        kinds.CSI_DRIVER,
        kinds.CSI_NODE,
        kinds.STORAGE_CLASS,
        kinds.VOLUME_ATTACHMENT,
        kinds.VOLUME_ATTRIBUTES_CLASS,
    }
)


def built_in_resources(strategies: Mapping[Kind, type[Strategy]]) -> Iterator[Resource]:
    """A resource for each row of `mooring.api.kinds`."""
    for kind in kinds.all_kinds():
        struct = struct_of_kind(kind.api_version, kind.kind)
        assert struct is not None, f"{kind} has no schema"
        found = list(SUBRESOURCES.get(kind, ()))
        if kind.has_status:
            found.append(STATUS)
        yield Resource(
            kind,
            strategies.get(kind, Strategy)(kind),
            struct,
            short_names=SHORT_NAMES.get(kind, ()),
            categories=CATEGORIES.get(kind, ()),
            verbs=VERBS.get(kind, ALL_VERBS),
            subresources={each.name: each for each in sorted(found, key=lambda each: each.name)},
            returns_deleted=kind in RETURNS_DELETED,
            scale=ScaleRules(scale_of, scaled) if SCALE in found else None,
        )
