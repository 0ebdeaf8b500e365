"""A change of a class of volume attributes is forbidden first, and judged then."""

from __future__ import annotations

from mooring.api.kinds import VOLUME_ATTRIBUTES_CLASS
from tests.apiserver.core_documents import changed, created, document


def test_a_change_is_forbidden_before_it_is_judged() -> None:
    made = document(VOLUME_ATTRIBUTES_CLASS, driverName="a", parameters={"b": "c"})
    assert created(VOLUME_ATTRIBUTES_CLASS, made) == []
    faults, _ = changed(VOLUME_ATTRIBUTES_CLASS, made, parameters={})
    assert faults == [
        "parameters: Forbidden: updates to parameters are forbidden.",
        "parameters: Required value: must contain at least one key/value pair",
    ]
