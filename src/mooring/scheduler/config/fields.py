"""The vocabulary in which configuration types are written down: what a field holds, beyond its Python type.

Comes in   nothing
Goes out   `Settings`, the base of every type, and annotations that `decode` reads

 1. A field's default is its value when the configuration does not name it, or names it with `null`.
 2. `OrDefault` is for the fields where Kubernetes also takes the default when it finds a zero, an empty text or an
    empty list: it cannot tell those from absence.
 3. A field without a default is one that has no good one; absent, it is zero, and `validation` has an opinion.

The types do without `from __future__ import annotations`: the annotations are read when a configuration is decoded.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, TypeVar, dataclass_transform

import msgspec

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IntegerRange:
    lowest: int
    highest: int


class Meaning(Enum):
    DURATION = "written as 1m30s, held in seconds"
    ZERO_IS_DEFAULT = "a zero value counts as absent"


INT32 = IntegerRange(-(2**31), 2**31 - 1)
INT64 = IntegerRange(-(2**63), 2**63 - 1)

Int32 = Annotated[int, INT32]
Int64 = Annotated[int, INT64]
Seconds = Annotated[float, Meaning.DURATION]
OrDefault = Annotated[T, Meaning.ZERO_IS_DEFAULT]


# msgspec hands these settings down to subclasses; a type checker believes it only if it is told so here.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Settings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of everything that a configuration file can spell out."""
