"""Device classes count changes of what they mean."""

from __future__ import annotations

from mooring.api.kinds import DEVICE_CLASS
from tests.apiserver.core_documents import changed, created, document


def test_a_prefix_is_not_judged_but_the_name_is() -> None:
    made = document(DEVICE_CLASS, {"name": "A_x", "generateName": "A_"})
    (fault,) = created(DEVICE_CLASS, made)
    assert fault.startswith('metadata.name: Invalid value: "A_x"')


def test_changes_are_counted() -> None:
    old = document(DEVICE_CLASS, {"generation": 1})
    spec = {"extendedResourceName": "a.b/c"}
    faults, new = changed(DEVICE_CLASS, old, spec=spec)
    assert (faults, new["metadata"]["generation"]) == ([], 2)
    assert changed(DEVICE_CLASS, new, spec=spec)[1]["metadata"]["generation"] == 2
    assert changed(DEVICE_CLASS, old, spec={"selectors": [{}]})[0] == ["spec.selectors[0].cel: Required value"]
