"""What all read views have in common: frozen, slotted, small, and blind to fields that nobody here reads.

Comes in   JSON objects, through `mooring.api.decode`
Goes out   the base class `View`, and the names of values that several kinds share

 1. A view is read, never written. There is no way from a view back to a stored object, because a view has forgotten
    every field that it does not know. Whoever changes an object changes its JSON.
 2. Every field has a default, and the default is what Kubernetes means by the field's absence. A list or a map that
    is absent is empty; a field is `| None` only where Kubernetes tells "absent" from "empty".
 3. Views stay out of the garbage collector's sight (`gc=False`). They cannot form cycles, and with 20,000 pods alive
    a full collection would otherwise stop the world for a third of a second.
 4. Field names are Kubernetes' own in snake case. Where Kubernetes shouts (`hostIP`), the field says so with `name=`.

The views do without `from __future__ import annotations`: msgspec reads the annotations when the class is made.
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


# msgspec hands these settings down to subclasses; a type checker believes it only if it is told so here.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class View(
    msgspec.Struct,
    frozen=True,
    gc=False,
    kw_only=True,
    omit_defaults=True,
    rename="camel",
):
    """The base of everything in this folder."""
