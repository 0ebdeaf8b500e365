"""One version of a custom kind: schema, value rules, CEL rules and subresources.

Input: one entry of `spec.versions`. A `Version` is immutable; a changed definition gets new ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from mooring.api.document import Document
from mooring.apiserver.custom.rules import SchemaRules, rules_of
from mooring.apiserver.custom.schema import Schema, read_schema
from mooring.apiserver.custom.value_rules import ValueRules


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """The paths of replicas and selector in an object, from its definition."""

    wanted: str
    actual: str
    selector: str = ""


@dataclass(frozen=True, slots=True)
class CustomVersion:
    """One version of a definition."""

    name: str
    schema: Schema
    values: ValueRules
    status_values: ValueRules | None
    """The rules for a write of `status`; None without a schema of the status."""
    rules: SchemaRules | None
    has_status: bool
    scale: ScalePaths | None
    selectable_paths: tuple[str, ...] = ()


def read_version(entry: Document) -> CustomVersion:
    """A version from its entry in a definition that was validated."""
    raw = (entry.get("schema") or {}).get("openAPIV3Schema") or {}
    schema = read_schema(raw)
    subresources = entry.get("subresources") or {}
    scale = subresources.get("scale")
    status = (raw.get("properties") or {}).get("status")
    return CustomVersion(
        name=entry["name"],
        schema=schema,
        values=ValueRules(raw),
        status_values=ValueRules(status) if status is not None else None,
        rules=rules_of(schema),
        has_status="status" in subresources,
        scale=None
        if scale is None
        else ScalePaths(
            scale.get("specReplicasPath", ""), scale.get("statusReplicasPath", ""), scale.get("labelSelectorPath", "")
        ),
        selectable_paths=tuple(each["jsonPath"] for each in entry.get("selectableFields") or ()),
    )
