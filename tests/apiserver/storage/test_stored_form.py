"""A stored object begins with its kind and holds no resourceVersion; what clients get holds it, and nothing is lost."""

from __future__ import annotations

from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from mooring.api.kinds import CONFIG_MAP, DEPLOYMENT, POD
from mooring.apiserver.storage.stored_form import (
    PlainObject,
    decoded,
    encoded,
    partly_decoded,
    stored_form,
    with_revision,
)

TEXTS = st.text(max_size=20) | st.sampled_from(['"metadata":{', '{"metadata":{"a":1}}', "\\", '"', "ü"])
VALUES = st.recursive(
    TEXTS | st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.dictionaries(TEXTS, VALUES, max_size=3), st.integers(2, 2**60))
def test_only_the_resource_version_is_added(body: PlainObject, annotations: PlainObject, revision: int) -> None:
    metadata: PlainObject = {"name": "a", "annotations": annotations}
    stored = stored_form(CONFIG_MAP, body, metadata)
    assert stored.startswith(b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"')
    whole = {**body, "kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}
    assert decoded(stored) == whole
    assert decoded(with_revision(stored, revision)) == {
        **whole,
        "metadata": {**metadata, "resourceVersion": str(revision)},
    }


def test_what_was_decoded_is_stored_in_the_same_order_again() -> None:
    stored = stored_form(DEPLOYMENT, {"spec": {"replicas": 1}, "metadata": {"ignored": True}}, {"name": "web"})
    assert stored == b'{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web"},"spec":{"replicas":1}}'
    assert encoded(decoded(stored)) == stored


SECTIONS = st.dictionaries(TEXTS, VALUES, max_size=4)


@given(SECTIONS, SECTIONS, st.none() | SECTIONS, st.lists(TEXTS, max_size=3))
def test_a_partly_decoded_object_is_stored_as_it_was(
    metadata: PlainObject, spec: PlainObject, status: PlainObject | None, names: list[str]
) -> None:
    body: PlainObject = {"spec": spec} if status is None else {"spec": spec, "status": status}
    stored = stored_form(POD, body, {"name": "a", **metadata})
    fields = {"metadata": {*names, "name"}, "spec": {*names, *spec}, "status": {*names}}
    found = partly_decoded(stored, fields)
    assert encoded(found) == stored
    assert found["spec"] == spec
    for name in names:
        assert cast(PlainObject, found.get("status", {})).get(name) == (status or {}).get(name)
