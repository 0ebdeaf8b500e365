"""Metadata, and the base classes of all kinds.

1. `kind` and `api_version` are attributes of the class, not of the object: the items of a list have neither, and a
   cluster has a hundred thousand of them.
2. Timestamps are compared with `is None` far more often than they are read, so they stay strings.
"""

from collections.abc import Mapping
from typing import ClassVar

from msgspec import field

from mooring.api.views.base import Int64, Timestamp, View


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


class Condition(View):
    """One entry of a `status.conditions` list of any kind."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0
    last_update_time: Timestamp | None = None
    last_transition_time: Timestamp | None = None
