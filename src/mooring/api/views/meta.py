"""The base class of views, metadata, selectors, and the base classes of all kinds.

 1. A view is never written. It lacks every field that it does not declare, so it cannot be converted back to a stored
    object. A component that changes an object changes its JSON.
 2. Every field has a default, which is the meaning of its absence in Kubernetes. An absent list or map is empty; a
    field is `| None` only where Kubernetes distinguishes absent from empty.
 3. Views are not tracked by the garbage collector (`gc=False`). They cannot form cycles, and with 20,000 pods a full
    collection would otherwise take a third of a second.
 4. Field names are those of Kubernetes in snake case. Where Kubernetes writes capitals (`hostIP`), the field has
    `name=`.
 5. `kind` and `api_version` are attributes of the class, not of the object: the items of a list have neither, and a
    cluster has a hundred thousand of them.
 6. Timestamps are compared with `is None` far more often than they are read, so they stay strings.
 7. Selectors are as they were written, and not validated: how an invalid operator is handled depends on where
    `api.labels` or `api.nodeselector` compiles the selector.

Views do not use `from __future__ import annotations`: msgspec reads the annotations when a class is created.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Protocol, TypeAlias, TypeVar, dataclass_transform

import msgspec
from msgspec import field

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""Integers as wide as Kubernetes declares them. Columns have arrays of that width."""

RawQuantity: TypeAlias = str | Int64 | float
"""A quantity in JSON ("500m", 2, 0.5); `mooring.api.quantity` parses it."""

ResourceList: TypeAlias = Mapping[str, RawQuantity]
"""How much of each resource, by resource name."""

IntOrString: TypeAlias = Int32 | str
"""A count (3) or a percentage ("30%")."""

Timestamp: TypeAlias = str
"""RFC 3339 as the API server wrote it; `mooring.kit.clock` reads it."""


# Subclasses of a msgspec struct inherit these settings; type checkers need this declaration.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class View(
    msgspec.Struct,
    frozen=True,
    gc=False,
    kw_only=True,
    omit_defaults=True,
    rename="camel",
):
    """The base class of all views."""


class OwnerReference(View):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(View):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


NO_METADATA = ObjectMeta()


class ApiObject(View):
    """An object with metadata. Subclasses set `api_version` and `kind`."""

    api_version: ClassVar[str] = ""
    kind: ClassVar[str] = ""

    metadata: ObjectMeta = NO_METADATA

    @property
    def key(self) -> str:
        """`namespace/name`, or only the name of a cluster-scoped object."""
        metadata = self.metadata
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


class ObjectWithRaw(ApiObject):
    """An object that a controller writes back: the view, and the JSON that it was decoded from."""

    raw: bytes = field(default=b"", name="$raw")
    """Set by `mooring.api.decode`; empty if the object did not come as JSON. No API object has a field of that name."""


class ObjectReference(View):
    """A reference to an object of any kind."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


def reference_to(view: ApiObject) -> ObjectReference:
    """A reference to an object, as events and volumes have it."""
    metadata = view.metadata
    return ObjectReference(
        api_version=view.api_version,
        kind=view.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )


class Condition(View):
    """One entry of a `status.conditions` list of any kind."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0
    last_update_time: Timestamp | None = None
    last_transition_time: Timestamp | None = None


class _Typed(Protocol):
    @property
    def type(self) -> str: ...


AnyCondition = TypeVar("AnyCondition", bound=_Typed)


def find_condition(conditions: Iterable[AnyCondition], type: str) -> AnyCondition | None:
    """The condition of a type, or None."""
    for condition in conditions:
        if condition.type == type:
            return condition
    return None


def is_true(conditions: Iterable[Condition], type_: str) -> bool:
    """Whether a condition of this type is there and has the status True."""
    return any(condition.type == type_ and condition.status == "True" for condition in conditions)


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """The first owner reference with `controller: true`."""
    for reference in metadata.owner_references:
        if reference.controller:
            return reference
    return None


class LabelSelectorRequirement(View):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(View):
    match_labels: Mapping[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelectorRequirement(View):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(View):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(View):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(View):
    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class TopologySelectorLabelRequirement(View):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(View):
    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()
