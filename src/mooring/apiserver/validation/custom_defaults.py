"""Are the defaults of a schema values that an object could have?

Comes in   a schema that is structural
Goes out   faults: of defaults with unknown fields, and of those that the schema itself would refuse

 1. A default of metadata is looked at as a part of a whole object, which must then have valid metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mooring.api.document import Document
from mooring.apiserver.custom.correlation import same_json
from mooring.apiserver.custom.defaulting import copied
from mooring.apiserver.custom.metadata import EmbeddedFault, coerce_embedded, embedded_faults
from mooring.apiserver.custom.pruning import prune
from mooring.apiserver.custom.rules import rules_of
from mooring.apiserver.custom.schema import META_FIELDS, Schema
from mooring.apiserver.custom.value_rules import ValueRules, value_faults
from mooring.apiserver.validation.fields import Fault, aggregated, invalid

_INDEX = 0


def default_faults(schema: Schema, path: str, *, needs_pruned: bool) -> list[Fault]:
    """What is wrong with the defaults in a schema."""
    return list(_Defaults(needs_pruned).faults(schema, schema, path, (), is_resource=True, is_meta=False))


class _Defaults:
    def __init__(self, needs_pruned: bool) -> None:
        self._needs_pruned = needs_pruned

    def faults(
        self, schema: Schema, root: Schema, path: str, way: tuple[str | int, ...], *, is_resource: bool, is_meta: bool
    ) -> Iterator[Fault]:
        """`way` leads from the root of the resource to the value."""
        is_resource = is_resource or schema.is_embedded
        if schema.is_embedded:
            is_meta, root, way = False, schema, ()
        if schema.default is not None:
            place = f"{path}.default"
            if is_meta:
                yield from self._meta_faults(schema, root, place, way)
            else:
                yield from self._own_faults(schema, place)
        if schema.items is not None:
            yield from self.faults(
                schema.items, root, f"{path}.items", (*way, _INDEX), is_resource=False, is_meta=is_meta
            )
        for name, held in schema.properties.items():
            below = f"{path}.properties[{name}]"
            inside = is_meta or (is_resource and name in META_FIELDS)
            yield from self.faults(held, root, below, (*way, name), is_resource=False, is_meta=inside)

    def _own_faults(self, schema: Schema, path: str) -> Iterator[Fault]:
        default = schema.default
        if self._needs_pruned:
            pruned = copied(default)
            prune(pruned, schema, is_root=schema.is_embedded)
            if not same_json(pruned, default):
                yield invalid(path, default, "must not have unknown fields")
        coerced = copied(default)
        try:
            coerce_embedded(coerced, schema, path)
        except EmbeddedFault as error:
            yield error.fault
            return
        wrong = embedded_faults(coerced, schema, path)
        yield from wrong or _value_faults(schema, default, path)

    def _meta_faults(self, schema: Schema, root: Schema, path: str, way: tuple[str | int, ...]) -> Iterator[Fault]:
        whole = _surrounded(copied(schema.default), way)
        must = "must result in valid metadata: "
        try:
            coerce_embedded(whole, root, is_resource=True)
        except EmbeddedFault as error:
            yield invalid(path, schema.default, f"{must}{error}")
            return
        wrong = embedded_faults(whole, root, is_resource=True)
        if wrong:
            yield invalid(path, schema.default, f"{must}{aggregated(wrong)}")
        else:
            yield from _value_faults(schema, schema.default, path)


def _value_faults(schema: Schema, default: Any, path: str) -> list[Fault]:
    faults = value_faults(ValueRules(schema.raw), default, path)
    rules = rules_of(schema, is_root=False) if not faults else None
    if rules is not None:
        faults = rules.check(default, default, None, path).faults
        faults = faults or rules.check(default, None, None, path).faults
    return faults


def _surrounded(value: Any, way: tuple[str | int, ...]) -> Document:
    """An object that has a value where a way leads."""
    for step in reversed(way):
        value = [value] if isinstance(step, int) else {step: value}
    whole: Document = value if isinstance(value, dict) else {}
    whole.setdefault("kind", "Validation")
    whole.setdefault("apiVersion", "validation/v1")
    return whole
