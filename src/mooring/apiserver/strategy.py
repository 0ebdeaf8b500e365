"""The strategy of a kind: defaults, preparation, validation and warnings of create, update and delete.

Input: canonical documents (decoded by `wire`) and the call. Output: the same documents, defaulted and prepared; field
errors; warnings.

The registry calls a strategy in this order, as kube-apiserver does:

    create    default · (managed fields) · (mutating admission) · prepare_for_create · validate_create · canonicalize ·
              (validating admission)
    update    default · (managed fields) · (mutating admission) · prepare_for_update · validate_update ·
              warnings_on_update · canonicalize · (validating admission)

1. A kind inherits from `Strategy` in its module of `apiserver/kinds` and overrides what differs.
2. A strategy never awaits, and reads only its arguments.
3. Documents stay canonical: a field that Go omits (omitempty) is removed, not set to an empty value.
4. A subresource that changes the object has its own strategy in `subresources`.
5. `old` is never changed. After `prepare_for_update`, `obj` may share parts with `old`, which are immutable from then
   on. With `shares_parts` they may be shared from the start; metadata is shared in parts only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import ClassVar

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.call import Call
from mooring.apiserver.registry.spec_cache import SpecCache, ValidationResult
from mooring.apiserver.tables import DEFAULT_TABLE, KindTable
from mooring.apiserver.validation.fields import FieldError
from mooring.apiserver.validation.metadata import (
    NOTHING_STORED,
    name_is_dns_subdomain,
    validate_known_finalizers,
    validate_object_meta,
    validate_object_meta_update,
)
from mooring.apiserver.validation.values import has_same_spec


class DefaultPropagation(Enum):
    """The default propagation policy of a DELETE."""

    DELETE = "Background"
    ORPHAN = "Orphan"
    UNSUPPORTED = ""
    """The kind owns nothing: the finalizers of the garbage collector are never set."""


class Strategy:
    """The strategy of a kind without rules of its own."""

    allows_create_on_update: ClassVar[bool] = False
    """Whether a PUT creates what does not exist."""
    allows_unconditional_update: ClassVar[bool] = True
    """Whether a PUT without a resourceVersion replaces the stored object."""
    dependents: ClassVar[DefaultPropagation] = DefaultPropagation.DELETE
    validates_finalizer_names: ClassVar[bool] = True
    """Whether a finalizer without a domain must be one of Kubernetes. A few kinds do not check."""
    reset_fields: ClassVar[Sequence[tuple[str, ...]]] = ()
    """Paths that a write ignores, so that it does not make the client their manager."""
    specs: SpecCache | None = None
    """The spec cache of a kind whose objects are often created with the same spec, byte for byte. Then `default` is
    `default_spec` and `default_rest`, neither of which reads what the other one changes."""
    counts_changes_of_meaning: ClassVar[bool] = False
    """Whether `generation` ignores changes of the spec without a meaning: other texts of quantities, empty lists."""
    shares_parts: ClassVar[bool] = False
    """Whether an updated object may share unchanged parts with the stored object. Then the strategy changes no such
    part in place, and does not validate it again."""
    validates_metadata: bool = True
    """Whether `validate` reports all errors of the metadata."""

    is_costly: ClassVar[bool] = False
    """Whether a small object can be expensive: users wrote its schema, or it has CEL expressions. Then every step of a
    write runs in the `WorkerThread`."""

    status_strategy: ClassVar[type[StatusStrategy] | None] = None
    """The strategy of `status`, if it differs from `StatusStrategy`."""

    table: KindTable = DEFAULT_TABLE
    """The columns of `kubectl get`."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        """Strategies of the subresources that change the object: `status` for most kinds."""
        return {"status": (self.status_strategy or StatusStrategy)(self.kind, self)} if self.kind.has_status else {}

    @property
    def ignored_fields(self) -> Sequence[tuple[str, ...]]:
        """Paths that a write through this strategy does not change, for managed fields."""
        return self.reset_fields or ((("status",),) if self.kind.has_status else ())

    # ------------------------------------------------------------------------------------------- every write

    def name_errors(self, name: str, is_prefix: bool) -> Sequence[str]:
        """Messages about an invalid name, or about an invalid prefix of a generated name."""
        return name_is_dns_subdomain(name, is_prefix)

    def default(self, obj: Document) -> None:
        """Set defaults. Idempotent; also applied to stored objects of an older version."""

    def default_update(self, obj: Document, old: Document) -> None:
        """Set defaults in an update. The parts that the object shares with the stored one have them already."""
        self.default(obj)

    def default_spec(self, spec: Document) -> None:
        """Set the defaults of a spec; for kinds with a spec cache."""

    def default_rest(self, obj: Document) -> None:
        """Set the defaults of everything but the spec; for kinds with a spec cache."""

    def canonicalize(self, obj: Document) -> None:
        """Normalize the object before it is stored."""

    # ------------------------------------------------------------------------------------------- create

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        """Drop fields that a client may not set, and set fields of the server."""
        if self.kind.has_status:
            obj.pop("status", None)
            obj["status"] = {}
        if self.kind.has_generation:
            obj["metadata"]["generation"] = 1

    def validate(self, obj: Document, call: Call) -> list[FieldError]:
        """Field errors of a new object: those of its metadata first, as in Kubernetes."""
        errors = self.validate_meta(obj)
        errors += self.validate_body(obj, call)
        return errors

    def validate_meta(self, obj: Document, old: Document | None = None) -> list[FieldError]:
        """Field errors of the metadata."""
        metadata, stored = obj["metadata"], old["metadata"] if old is not None else NOTHING_STORED
        errors = validate_object_meta(metadata, self.kind.is_namespaced, self.name_errors, "metadata", stored)
        if self.validates_finalizer_names and "finalizers" in metadata:
            errors += validate_known_finalizers(metadata["finalizers"], "metadata.finalizers")
        return errors

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        """Field errors of a new object outside of its metadata."""
        return []

    def warnings(self, obj: Document) -> list[str]:
        """Warnings about an object, new or updated."""
        return []

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return self.warnings(obj)

    def validate_create(self, obj: Document, call: Call) -> ValidationResult:
        """`validate`, and `warnings_on_create` if there are no errors."""
        errors = self.validate(obj, call)
        return ValidationResult(errors, () if errors else self.warnings_on_create(obj, call))

    # ------------------------------------------------------------------------------------------- update

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        """Revert changes that an update may not make, and count the generation."""
        if self.kind.has_status:
            keep(obj, old, "status")
        if self.kind.has_generation:
            self.count_generation(obj, old)

    def count_generation(self, obj: Document, old: Document) -> None:
        """`generation` counts changes of the spec. Kinds that count other changes override this."""
        spec, stored = obj.get("spec"), old.get("spec")
        if spec != stored and not (self.counts_changes_of_meaning and has_same_spec(self.kind, spec, stored)):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        errors = self.validate_meta_update(obj, old)
        errors += self.validate_body_update(obj, old, call)
        return errors

    def validate_meta_update(self, obj: Document, old: Document) -> list[FieldError]:
        """Field errors of a change of metadata."""
        metadata = obj["metadata"]
        errors = validate_object_meta_update(metadata, old["metadata"], "metadata")
        if self.validates_finalizer_names and "finalizers" in metadata:
            errors += validate_known_finalizers(metadata["finalizers"], "metadata.finalizers")
        return errors

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        return []

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return self.warnings(obj)

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        """Field errors of a changed status."""
        return []

    # ------------------------------------------------------------------------------------------- delete

    def graceful_s(self, obj: Document, requested_s: int | None, call: Call) -> int | None:
        """The grace period, if the kind has graceful deletion; otherwise None."""
        return None

    def is_held(self, obj: Document) -> bool:
        """Whether something other than its finalizers holds an object that is being deleted."""
        return False

    def warnings_on_delete(self, *, is_propagation_said: bool) -> list[str]:
        return []

    # ------------------------------------------------------------------------------------------- reading

    def selectable_fields(self, obj: Document) -> dict[str, str]:
        """Values for field selectors besides name and namespace, as text. The keys are the same for all objects."""
        return {}


class StatusStrategy(Strategy):
    """Strategy of the `status` subresource. Kinds with rules for their status inherit from it."""

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

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        return self.main.validate_status(obj, old)


def keep(obj: Document, old: Document, field: str) -> None:
    """Revert one field of an object, or of a part of it."""
    if field in old:
        obj[field] = old[field]
    else:
        obj.pop(field, None)


def keep_metadata(obj: Document, old: Document) -> None:
    """Revert all metadata except managed fields."""
    for field in _METADATA_FIELDS:
        keep(obj["metadata"], old["metadata"], field)


_METADATA_FIELDS = (
    "deletionTimestamp",
    "generation",
    "selfLink",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
)
