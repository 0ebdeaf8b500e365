"""Metadata: who an object is, who owns it, and when it came and went.

Comes in   the `metadata` of every object
Goes out   `ObjectMeta`, and `ApiObject`, the base of every kind

 1. `kind` and `api_version` belong to the class, not to the object: the items of a list carry neither, and a cluster
    holds them a hundred thousand times.
 2. Timestamps are compared with `is None` far more often than they are read, so they stay text.
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
    """An object with an identity. Subclasses say which kind they are, in which version."""

    api_version: ClassVar[str] = ""
    kind: ClassVar[str] = ""

    metadata: ObjectMeta = NO_METADATA

    @property
    def key(self) -> str:
        """`namespace/name`, or only the name of an object that lives in no namespace."""
        metadata = self.metadata
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


class ObjectWithRaw(ApiObject):
    """An object that a controller writes back: the view, and the JSON that it was decoded from."""

    raw: bytes = field(default=b"", name="$raw")
    """Set by `mooring.api.decode`; empty if the object did not come as JSON. No API object has a field of that name."""


class ObjectReference(View):
    """Points at an object that may be of any kind."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class Condition(View):
    """One entry of a `status.conditions` list, of whatever kind."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0
    last_update_time: Timestamp | None = None
    last_transition_time: Timestamp | None = None
