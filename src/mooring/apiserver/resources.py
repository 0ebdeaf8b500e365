"""Resources: the kinds that the server serves, by API version and plural.

Input: rows of `mooring.api.kinds`, and custom kinds. Output: the `Resource` of a path; all of them for discovery.

1. A built-in kind is one row in `mooring.api.kinds` and one module in `mooring.apiserver.kinds`.
2. Custom kinds are added and removed while the server runs, built-in kinds are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.kinds import ALL_VERBS, SCALE, STATUS, Kind, Subresource
from mooring.api.schema.types import Struct, struct_of_kind
from mooring.apiserver.apply.kind_schema import KindSchema, kind_schema_of_struct
from mooring.apiserver.call import Call
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.kinds.scale import scale_of, scaled, validate_scale
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import DEFAULT_TABLE, KindTable
from mooring.apiserver.validation.fields import FieldError
from mooring.apiserver.wire.canonical import canonical
from mooring.client.errors import NotFoundError

ReadBody = Callable[[bytes, str, Call], Document]
"""Decodes a body with a content type."""
ReadPlain = Callable[[Document], "DecodedDocument"]


@dataclass(frozen=True, slots=True)
class ScaleRules:
    """Converts objects to a Scale, and applies a Scale to objects."""

    scale_of: Callable[[Kind, Document], Document]
    scaled: Callable[[Document, Document], Document]
    replicas_path: tuple[str, ...] = ("f:spec", "f:replicas")
    """The path of the replicas, as in managed fields."""
    shown: Callable[[Kind, Document], Document] | None = None
    """The Scale that a GET returns, if it differs from the one that a write starts from. May raise `StatusError`."""
    validate: Callable[[Document], list[FieldError]] = validate_scale
    """Validates a Scale."""


@dataclass(frozen=True, slots=True)
class DecodedDocument:
    """A decoded document; `strict_errors` are fields that the kind does not have."""

    document: Document
    strict_errors: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Resource:
    """One served kind."""

    kind: Kind
    strategy: Strategy
    struct: Struct | None
    """The schema of its objects; None for custom kinds."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    singular: str = ""
    list_kind: str = ""
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    returns_deleted: bool = False
    """Whether a DELETE returns the object. Otherwise it returns a Status."""
    strategies: Mapping[str, Strategy] = field(default_factory=dict)
    """Strategies of the subresources that change the object."""
    read_body: ReadBody | None = None
    """For custom kinds: decodes a body to a pruned and defaulted document."""
    read_document: ReadPlain | None = None
    """For custom kinds: the same for the result of a patch."""
    kind_schema: KindSchema | None = None
    """For custom kinds: the merge schema."""
    scale: ScaleRules | None = None
    """For kinds with replicas."""
    schema: Document | None = None
    """For custom kinds: the schema of their version, as in the definition."""
    storage_version: str = ""
    """For custom kinds: the version in which they are stored, if it is not their own."""
    table: KindTable = DEFAULT_TABLE
    """The table of the strategy, unless a custom kind defines columns."""
    selectable_fields: frozenset[str] = frozenset()
    """Fields of field selectors besides name and namespace."""
    warnings: tuple[str, ...] = ()
    """Warnings of every response: the version is deprecated."""

    def __post_init__(self) -> None:
        self.singular = self.singular or self.kind.kind.lower()
        self.list_kind = self.list_kind or f"{self.kind.kind}List"
        self.strategies = self.strategies or self.strategy.subresources
        if self.table is DEFAULT_TABLE:
            self.table = self.strategy.table
        if not self.selectable_fields:
            blank: Document = {"metadata": {}, "spec": {}, "status": {}}
            if self.struct is not None:
                blank.update(canonical(self.struct, {}, []))
            self.selectable_fields = frozenset(self.strategy.selectable_fields(blank))

    @property
    def version(self) -> str:
        return self.kind.api_version.rpartition("/")[2]

    @property
    def merge_schema(self) -> KindSchema:
        """The schema for managed fields and server-side apply."""
        if self.kind_schema is not None:
            return self.kind_schema
        assert self.struct is not None, f"{self.kind} has no schema"
        return kind_schema_of_struct(self.struct, self.kind.api_version, self.kind.kind)


class ResourceTable:
    """All resources by address."""

    def __init__(self, resources: Iterable[Resource] = ()) -> None:
        self._by_address: dict[tuple[str, str], Resource] = {}
        self._by_kind: dict[Kind, Resource] = {}
        self.generation = 0
        """Counts changes, so that a cache of derived data can detect that it is stale."""
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
        """The resource of a kind; for a custom kind, of the kind with the same names."""
        resource = self._by_kind.get(kind) or self.find(kind.api_version, kind.plural)
        if resource is None:
            raise NotFoundError("the server could not find the requested resource")
        return resource

    def __iter__(self) -> Iterator[Resource]:
        return iter(list(self._by_address.values()))


def built_in_resources() -> Iterator[Resource]:
    """A resource for each row of `mooring.api.kinds`."""
    for kind in kinds.all_kinds():
        struct = struct_of_kind(kind.api_version, kind.kind)
        assert struct is not None, f"{kind} has no schema"
        subresources = [*kind.subresources, STATUS] if kind.has_status else kind.subresources
        yield Resource(
            kind,
            strategy_of(kind),
            struct,
            short_names=kind.short_names,
            categories=kind.categories,
            verbs=kind.verbs,
            subresources={
                subresource.name: subresource
                for subresource in sorted(subresources, key=lambda subresource: subresource.name)
            },
            returns_deleted=kind.returns_deleted,
            scale=ScaleRules(scale_of, scaled) if SCALE in subresources else None,
        )
