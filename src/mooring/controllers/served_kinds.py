"""The kinds that the API server serves, built-in and custom.

Inputs: the rows of `mooring.api.kinds`, and CustomResourceDefinitions from an informer. Outputs: kinds by
apiVersion and name; one kind per definition, to list or watch.

1. A custom kind is served once its names are accepted, in each served version of its definition.
2. One version is enough to list or watch all objects: the storage version, if it is served.
3. A change of a definition without effect on its kinds keeps the same `Kind` objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mooring.api.errors import UnknownKindError
from mooring.api.kinds import Kind, all_kinds, kind_named
from mooring.api.views.administration import CustomResourceDefinition, DefinitionNames
from mooring.client.informer import Informer

_ACCEPTED = ("NamesAccepted", "Established")


class ServedKinds:
    """Tracks the served kinds."""

    def __init__(self, name: str, definitions: Informer[CustomResourceDefinition]) -> None:
        self._custom: dict[str, tuple[Kind, ...]] = {}
        self._by_name: dict[tuple[str, str], Kind] = {}
        self._facts: dict[str, object] = {}
        self._on_change: Callable[[], None] | None = None
        definitions.add_handler(
            f"kinds of {name}",
            on_add=self._on_changed,
            on_update=lambda old, new: self._on_changed(new),
            on_delete=self._on_deleted,
        )

    def on_change(self, callback: Callable[[], None]) -> None:
        """Register a callback for changes of custom kinds."""
        self._on_change = callback

    def find(self, api_version: str, kind: str) -> Kind | None:
        """The kind of that name. None if it is not served."""
        try:
            return kind_named(api_version, kind)
        except UnknownKindError:
            return self._by_name.get((api_version, kind))

    def built_in(self) -> Iterator[Kind]:
        return all_kinds()

    def is_built_in(self, kind: Kind) -> bool:
        try:
            return kind_named(kind.api_version, kind.kind) is kind
        except UnknownKindError:
            return False

    def custom(self) -> Iterator[Kind]:
        """One kind for each definition."""
        return (kinds[0] for kinds in self._custom.values())

    # ----------------------------------------------------------------------------------------------- events

    def _on_changed(self, definition: CustomResourceDefinition) -> None:
        name = definition.metadata.name
        facts = (definition.spec, _accepted_names(definition))
        if self._facts.get(name) == facts:
            return
        self._facts[name] = facts
        kinds = kinds_of(definition)
        if kinds:
            self._custom[name] = kinds
        else:
            self._custom.pop(name, None)
        self._notify()

    def _on_deleted(self, definition: CustomResourceDefinition) -> None:
        self._facts.pop(definition.metadata.name, None)
        if self._custom.pop(definition.metadata.name, None):
            self._notify()

    def _notify(self) -> None:
        self._by_name = {(kind.api_version, kind.kind): kind for kinds in self._custom.values() for kind in kinds}
        if self._on_change is not None:
            self._on_change()


def kinds_of(definition: CustomResourceDefinition) -> tuple[Kind, ...]:
    """The kinds of a definition, one for each served version, the storage version first. Empty until it is accepted."""
    names = _accepted_names(definition)
    if names is None:
        return ()
    group = definition.spec.group
    served = [version for version in definition.spec.versions if version.served]
    return tuple(
        Kind(
            f"{group}/{version.name}",
            names.kind,
            names.plural,
            is_namespaced=definition.spec.scope == "Namespaced",
            has_generation=True,
            folder=f"{group}/{names.plural}",
        )
        for version in sorted(served, key=lambda version: not version.storage)
    )


def _accepted_names(definition: CustomResourceDefinition) -> DefinitionNames | None:
    conditions = definition.status.conditions
    is_accepted = any(condition.type in _ACCEPTED and condition.status == "True" for condition in conditions)
    names = definition.status.accepted_names
    return names if is_accepted and names.plural and names.kind else None
