"""Reading FieldsV1 that a client wrote: the only field sets that are not ours.

Comes in   the JSON of `fieldsV1`
Goes out   a field set, canonical and in order; or an `ElementError`

 1. Elements of a type that we do not know are dropped, as by kube-apiserver: a later version may know them.
"""

from __future__ import annotations

from mooring.apiserver.apply.field_set import LEAF, FieldSet, ordered
from mooring.apiserver.apply.path_elements import SELF, ElementError, parsed_element


def read_fields(fields: object) -> FieldSet:
    """A field set from its JSON. Raises `ElementError`."""
    if fields is None:
        return {}
    branch = _read(fields)
    return {element: below for element, below in branch.items() if element != SELF}


def _read(fields: object) -> FieldSet:
    if fields is None:
        return LEAF
    if not isinstance(fields, dict):
        raise ElementError("expect { or n")
    branch: FieldSet = {}
    for text, below in fields.items():
        if text == SELF:
            branch[SELF] = LEAF
            continue
        element = parsed_element(text)
        if element is not None:
            branch[element] = _read(below)
    # Only "." and nothing else is the same as nothing: both mean the path that ends here.
    return LEAF if len(branch) == 1 and SELF in branch else ordered(branch)
