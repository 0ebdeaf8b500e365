"""The base class of views, and types that several kinds share.

 1. A view is never written. It lacks every field that it does not declare, so it cannot be converted back to a stored
    object. A component that changes an object changes its JSON.
 2. Every field has a default, which is the meaning of its absence in Kubernetes. An absent list or map is empty; a
    field is `| None` only where Kubernetes distinguishes absent from empty.
 3. Views are not tracked by the garbage collector (`gc=False`). They cannot form cycles, and with 20,000 pods a full
    collection would otherwise take a third of a second.
 4. Field names are those of Kubernetes in snake case. Where Kubernetes writes capitals (`hostIP`), the field has
    `name=`.

Views do not use `from __future__ import annotations`: msgspec reads the annotations when a class is created.
"""

from collections.abc import Mapping
from typing import Annotated, TypeAlias, dataclass_transform

import msgspec

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""Integers as wide as Kubernetes declares them. Past the door they go into columns of that width."""

RawQuantity: TypeAlias = str | int | float
"""A quantity as JSON carries it ("500m", 2, 0.5); `mooring.api.quantity` gives it a meaning."""

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
