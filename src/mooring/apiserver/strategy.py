"""The strategy of a kind: what is special about creating, changing and deleting its objects.

Comes in   documents in canonical form (what `wire` makes of a body), and the call
Goes out   the same documents, defaulted, prepared and canonical; faults; warnings

The registry calls it in this order, as kube-apiserver does:

    create    default · (managed fields) · (mutating admission) · prepare_for_create · validate · warnings_on_create ·
              canonicalize · (validating admission)
    update    default · (managed fields) · (mutating admission) · prepare_for_update · validate_update ·
              warnings_on_update · canonicalize · (validating admission)

 1. This class serves an ordinary kind. A special one inherits from it in `strategies/` and overrides what differs.
 2. A strategy never waits and reads nothing but its arguments.
 3. Documents stay canonical: a field that Go would not write (omitempty) is taken out, not set to an empty value.
 4. A subresource that changes the object has a strategy of its own in `subresources`.
 5. `old` is never changed. `obj` may share parts with `old` after `prepare_for_update`: nobody changes them afterwards.
    Where `shares_parts` is said it may do so from the beginning; metadata are shared in parts only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import ClassVar

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.call import Call
from mooring.apiserver.registry.spec_cache import SpecCache
from mooring.apiserver.tables.columns import DEFAULT_TABLE, KindTable
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.metadata import (
    NOTHING_STORED,
    name_is_dns_subdomain,
    object_meta_faults,
    object_meta_update_faults,
    odd_finalizers_faults,
)


class Dependents(Enum):
    """What becomes of the objects that a deleted one owns, if nobody says."""

    DELETE = "Background"
    ORPHAN = "Orphan"
    UNSUPPORTED = ""
    """The kind owns nothing: no finalizers of the garbage collector are ever set."""


class Strategy:
    """How an ordinary kind behaves."""

    allows_create_on_update: ClassVar[bool] = False
    """Whether a PUT creates what does not exist."""
    allows_unconditional_update: ClassVar[bool] = True
    """Whether a PUT without a resourceVersion replaces whatever is there."""
    dependents: ClassVar[Dependents] = Dependents.DELETE
    refuses_odd_finalizers: ClassVar[bool] = True
    """Whether a finalizer without a domain must be one of Kubernetes' own. A few kinds never asked."""
    reset_fields: ClassVar[Sequence[tuple[str, ...]]] = ()
    """What this way of writing ignores, as paths: nobody becomes the manager of it. Filled for kinds with a status."""
    specs: SpecCache | None = None
    """The spec cache of a kind whose objects are often created with the same spec, byte for byte. Then `default` is
    `default_spec` and `default_rest`, neither of which reads what the other one changes."""
    shares_parts: ClassVar[bool] = False
    """Whether an object may come here with parts that are the very ones of the object before: whatever a write leaves
    as it was. Then nothing here changes such a part in place, and what is said of it has been said before."""
    validates_metadata: ClassVar[bool] = True
    """Whether `validate` tells everything that is wrong with the metadata."""

    table: KindTable = DEFAULT_TABLE
    """The columns of `kubectl get`."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        """The strategies of the subresources through which the object is changed: `status` for most kinds."""
        return {"status": StatusStrategy(self.kind, self)} if self.kind.has_status else {}

    @property
    def ignored_fields(self) -> Sequence[tuple[str, ...]]:
        """Paths that a write through this strategy does not change, for the managers of fields."""
        return self.reset_fields or ((("status",),) if self.kind.has_status else ())

    # ------------------------------------------------------------------------------------------- every write

    def name_faults(self, name: str, is_prefix: bool) -> Sequence[str]:
        """What is wrong with a name, or with the prefix of one that is generated."""
        return name_is_dns_subdomain(name, is_prefix)

    def default(self, obj: Document) -> None:
        """Fill in what nobody said. Idempotent; also for objects that were stored by an older version."""

    def default_update(self, obj: Document, old: Document) -> None:
        """The same for an object that replaces another, whose parts were filled in when they were stored."""
        self.default(obj)

    def default_spec(self, spec: Document) -> None:
        """Set the defaults of a spec; for kinds with a spec cache."""

    def default_rest(self, obj: Document) -> None:
        """Set the defaults of everything but the spec; for kinds with a spec cache."""

    def canonicalize(self, obj: Document) -> None:
        """The last touch before it is stored."""

    # ------------------------------------------------------------------------------------------- create

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        """Drop what a creator may not set, and set what the server sets."""
        if self.kind.has_status:
            obj.pop("status", None)
            obj["status"] = {}
        if self.kind.has_generation:
            obj["metadata"]["generation"] = 1

    def validate(self, obj: Document, call: Call) -> list[Fault]:
        """Everything that is wrong with a new object: its metadata first, as Kubernetes does."""
        faults = self.meta_faults(obj)
        faults += self.body_faults(obj, call)
        return faults

    def meta_faults(self, obj: Document, old: Document | None = None) -> list[Fault]:
        """What is wrong with the metadata of an object, new or not."""
        metadata, stored = obj["metadata"], old["metadata"] if old is not None else NOTHING_STORED
        faults = object_meta_faults(metadata, self.kind.is_namespaced, self.name_faults, "metadata", stored)
        if self.refuses_odd_finalizers and "finalizers" in metadata:
            faults += odd_finalizers_faults(metadata["finalizers"], "metadata.finalizers")
        return faults

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        """What is wrong with a new object apart from its metadata."""
        return []

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return []

    # ------------------------------------------------------------------------------------------- update

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        """Take back what an update may not change, and count the generation."""
        if self.kind.has_status:
            keep(obj, old, "status")
        if self.kind.has_generation:
            self.count_generation(obj, old)

    def count_generation(self, obj: Document, old: Document) -> None:
        """`generation` counts the changes of the spec; kinds that also count others override it."""
        if obj.get("spec") != old.get("spec"):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        faults = self.meta_update_faults(obj, old)
        faults += self.body_update_faults(obj, old, call)
        return faults

    def meta_update_faults(self, obj: Document, old: Document) -> list[Fault]:
        """What is wrong with a change of metadata."""
        metadata = obj["metadata"]
        faults = object_meta_update_faults(metadata, old["metadata"], "metadata")
        if self.refuses_odd_finalizers and "finalizers" in metadata:
            faults += odd_finalizers_faults(metadata["finalizers"], "metadata.finalizers")
        return faults

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return []

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return []

    # ------------------------------------------------------------------------------------------- delete

    def graceful_s(self, obj: Document, asked_s: int | None, call: Call) -> int | None:
        """How long the object is given to end, if the kind ends gracefully; None if it is just deleted."""
        return None

    def is_held(self, obj: Document) -> bool:
        """Whether something beyond its finalizers keeps an object that is being deleted."""
        return False

    def warnings_on_delete(self, *, is_propagation_said: bool) -> list[str]:
        return []

    # ------------------------------------------------------------------------------------------- reading

    def selectable_fields(self, obj: Document) -> dict[str, str]:
        """What a field selector can ask for, besides name and namespace, each as text. The keys never vary."""
        return {}


class StatusStrategy(Strategy):
    """Writing the status only. Kinds whose status has rules of its own inherit from it."""

    def __init__(self, kind: Kind, main: Strategy) -> None:
        super().__init__(kind)
        self.main = main
        self.allows_unconditional_update = main.allows_unconditional_update  # type: ignore[misc]

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {}

    @property
    def ignored_fields(self) -> Sequence[tuple[str, ...]]:
        return self.reset_fields or (("spec",),)

    def default(self, obj: Document) -> None:
        self.main.default(obj)

    def default_update(self, obj: Document, old: Document) -> None:
        self.main.default_update(obj, old)

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "spec")


def keep(obj: Document, old: Document, field: str) -> None:
    """Make one field of an object what it was."""
    if field in old:
        obj[field] = old[field]
    else:
        obj.pop(field, None)
