"""Server-side apply: create, change, remove, share, conflict, force.

Errors of applied documents, with the messages of kube-apiserver.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.api.document import Document
from mooring.api.well_known import LAST_APPLIED
from mooring.apiserver.apply.managers import APPLY, UPDATE, ManagerId, manager_id
from mooring.apiserver.apply.patch import (
    applied_by_client,
    apply_patch,
    conflict_error,
    shown_manager,
    type_mismatches,
    type_mismatches_text,
    unreadable,
    update_last_applied_annotation,
)
from mooring.apiserver.validation.metadata import ANNOTATIONS_BYTES_MAX
from mooring.client.errors import BadRequestError, ConflictError, ServerError, StatusError
from tests.apiserver.apply.builders import (
    CONFIG_MAP,
    DEPLOYMENT,
    MONDAY,
    THING,
    TUESDAY,
    applied,
    call,
    config_map,
    created,
    fields,
    owners,
    shown,
    thing,
    times,
    updated,
)

ANNA, BOB = manager_id("anna", APPLY, "v1", ""), manager_id("bob", UPDATE, "v1", "")


@pytest.mark.parametrize(
    ("manager_key", "text"),
    [
        (ANNA, '"anna"'),
        (BOB, '"bob" using v1'),
        (manager_id("bob", UPDATE, "apps/v1", "scale"), '"bob" with subresource "scale" using apps/v1'),
        (manager_id("anna", APPLY, "v1", "status"), '"anna" with subresource "status"'),
    ],
)
def test_shown_manager_has_version_and_subresource(manager_key: ManagerId, text: str) -> None:
    assert shown_manager(manager_key) == text


def test_the_error_of_one_conflict_names_manager_and_field() -> None:
    error = conflict_error({ANNA: fields("data k1")})
    assert (error.code, error.message) == (409, 'Apply failed with 1 conflict: conflict with "anna": .data.k1')
    assert [(cause.reason, cause.message, cause.field) for cause in error.causes] == [
        ("FieldManagerConflict", 'conflict with "anna"', ".data.k1")
    ]


def test_several_conflicts_are_listed_by_manager() -> None:
    error = conflict_error({BOB: fields("data k3"), ANNA: fields("data k1", "data k2")})
    assert error.message == (
        'Apply failed with 3 conflicts: conflicts with "anna":\n- .data.k1\n- .data.k2\n'
        'conflicts with "bob" using v1:\n- .data.k3'
    )
    assert len(error.causes) == 3


@pytest.mark.parametrize(
    ("annotation", "fields"),
    [
        pytest.param(json.dumps(config_map({"a": "1", "b": "2"})), ".data.a", id="only unchanged fields"),
        pytest.param("", None, id="no configuration"),
        pytest.param("{", None, id="no JSON"),
        pytest.param("[]", None, id="no object"),
        pytest.param('{"apiVersion":"v2"}', None, id="another version"),
        pytest.param('{"apiVersion":"v1","data":5}', None, id="no config map"),
    ],
)
def test_applied_by_client_reads_the_last_applied_annotation(annotation: str, fields: str | None) -> None:
    live = config_map({"a": "1", "b": "3"}, annotations={LAST_APPLIED: annotation})
    found = applied_by_client(CONFIG_MAP, "v1", live)
    assert (None if found is None else [path for path in shown(found) if path.startswith(".data")]) == (
        None if fields is None else [fields]
    )


def test_update_last_applied_annotation_replaces_the_annotation() -> None:
    document = config_map({"a": "1"}, annotations={LAST_APPLIED: "old", "x": "y"})
    update_last_applied_annotation(document, config_map({"a": "<"}, annotations={LAST_APPLIED: "z", "k": "v"}))
    assert document["metadata"]["annotations"] == {
        "x": "y",
        LAST_APPLIED: '{"apiVersion":"v1","data":{"a":"\\u003c"},"kind":"ConfigMap",'
        '"metadata":{"annotations":{"k":"v"},"name":"c"}}\n',
    }


def test_update_last_applied_annotation_adds_no_annotation() -> None:
    document = config_map({"a": "1"})
    update_last_applied_annotation(document, config_map({"a": "1"}))
    assert document == config_map({"a": "1"})


def test_update_last_applied_annotation_drops_an_annotation_that_is_too_long() -> None:
    document = config_map({"a": "1"}, annotations={LAST_APPLIED: "old"})
    update_last_applied_annotation(document, config_map({"a": "x" * ANNOTATIONS_BYTES_MAX}))
    assert document["metadata"]["annotations"] == {}


def test_apply_creates_an_object_and_owns_its_fields() -> None:
    new = apply_patch(CONFIG_MAP, None, config_map({"k1": "1"}), call("anna"), ())
    assert owners(new) == {"anna Apply": [".data.k1"]}
    assert new["data"] == {"k1": "1"}


def test_applying_only_a_name_owns_no_fields() -> None:
    assert owners(applied(CONFIG_MAP, None, config_map(), "anna")) == {}


def test_applying_the_same_document_again_changes_nothing() -> None:
    live = applied(CONFIG_MAP, None, config_map({"k1": "1"}), "anna", now=MONDAY)
    assert applied(CONFIG_MAP, live, config_map({"k1": "1"}), "anna", now=TUESDAY) == live


def test_a_field_that_is_no_longer_applied_is_removed() -> None:
    live = applied(CONFIG_MAP, None, config_map({"k1": "1", "k2": "2"}), "anna")
    new = applied(CONFIG_MAP, live, config_map({"k1": "1"}), "anna")
    assert new["data"] == {"k1": "1"}


def test_a_field_applied_with_an_equal_value_is_shared_and_stays_with_one_owner() -> None:
    live = applied(CONFIG_MAP, None, config_map({"k1": "1"}), "anna", now=MONDAY)
    both = applied(CONFIG_MAP, live, config_map({"k1": "1"}), "bob")
    assert owners(both) == {"anna Apply": [".data.k1"], "bob Apply": [".data.k1"]}
    assert times(both) == {"anna": MONDAY, "bob": None}, "ownership alone changes no time"
    left = applied(CONFIG_MAP, both, config_map(), "anna")
    assert (left["data"], owners(left)) == ({"k1": "1"}, {"bob Apply": [".data.k1"]})


def test_applying_another_value_to_a_field_of_another_manager_is_a_conflict() -> None:
    live = applied(CONFIG_MAP, None, config_map({"k1": "1"}), "anna")
    live = updated(CONFIG_MAP, live, config_map({"k1": "1", "k2": "2"}), "bob")
    with pytest.raises(
        ConflictError, match=r'^Apply failed with 1 conflict: conflict with "bob" using v1: \.data\.k2$'
    ):
        applied(CONFIG_MAP, live, config_map({"k2": "3"}), "carol")


def test_a_forced_apply_takes_ownership() -> None:
    live = applied(CONFIG_MAP, None, config_map({"k1": "1", "k2": "2"}), "anna")
    new = applied(CONFIG_MAP, live, config_map({"k1": "x"}), "bob", force=True)
    assert owners(new) == {"anna Apply": [".data.k2"], "bob Apply": [".data.k1"]}
    assert new["data"] == {"k1": "x", "k2": "2"}


def test_apply_and_update_of_one_client_are_two_managers() -> None:
    live = created(CONFIG_MAP, config_map({"k1": "1"}), "anna")
    assert owners(applied(CONFIG_MAP, live, config_map({"k1": "1"}), "anna")) == {
        "anna Apply": [".data.k1"],
        "anna Update": [".data", ".data.k1"],
    }


def test_the_first_apply_records_existing_fields_as_before_first_apply() -> None:
    live = config_map({"k1": "1"}, uid="u-1")
    new = applied(CONFIG_MAP, live, config_map({"k2": "2"}), "anna")
    assert owners(new) == {"anna Apply": [".data.k2"], "before-first-apply Update": [".data", ".data.k1"]}


@pytest.mark.parametrize(
    ("document", "error", "message"),
    [
        pytest.param({"kind": "ConfigMap"}, BadRequestError, "invalid object type: /, Kind=ConfigMap", id="no version"),
        pytest.param({"apiVersion": "v1"}, BadRequestError, "invalid object type: /v1, Kind=", id="no kind"),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "X"},
            BadRequestError,
            "invalid object type: apps/v1, Kind=X",
            id="another kind",
        ),
        pytest.param(
            {"apiVersion": "a/b/c", "kind": "X"},
            BadRequestError,
            "invalid object type: /, Kind=",
            id="an invalid apiVersion",
        ),
        pytest.param(
            config_map(managedFields=[]), BadRequestError, "metadata.managedFields must be nil", id="managedFields"
        ),
        pytest.param(
            config_map({"a": 5}, namespace="ns"),
            ServerError,
            "failed to create typed patch object (ns/c; /v1, Kind=ConfigMap): "
            ".data.a: expected string, got &value.valueUnstructured{Value:5}",
            id="a value of the wrong type",
        ),
    ],
)
def test_an_invalid_applied_document_is_rejected(document: Document, error: type[StatusError], message: str) -> None:
    with pytest.raises(error) as raised:
        applied(CONFIG_MAP, None, document, "anna")
    assert raised.value.message == message


def test_the_error_of_a_document_that_cannot_be_converted() -> None:
    assert unreadable(config_map(), "v1", "ConfigMap", "json: no").message == (
        "failed to convert new object (/c; /v1, Kind=ConfigMap) to proper version: "
        "unable to convert unstructured object to /v1, Kind=ConfigMap: json: no"
    )


def by_client(**data: str) -> Document:
    text = json.dumps(config_map(dict(data)))
    document = config_map(dict(data), annotations={"kubectl.kubernetes.io/last-applied-configuration": text})
    return created(CONFIG_MAP, document, "kubectl-client-side-apply")


def test_kubectl_apply_takes_ownership_from_client_side_apply() -> None:
    new = applied(CONFIG_MAP, by_client(a="1"), config_map({"a": "2"}), "kubectl")
    assert owners(new)["kubectl Apply"] == [".data.a"]
    assert '{"a":"2"}' in new["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]


def test_other_managers_conflict_with_client_side_apply() -> None:
    with pytest.raises(ConflictError, match="kubectl-client-side-apply"):
        applied(CONFIG_MAP, by_client(a="1"), config_map({"a": "2"}), "anna")


def test_kubectl_apply_conflicts_with_a_manager_that_updated_the_field() -> None:
    live = by_client(a="1", b="1")
    live = updated(CONFIG_MAP, live, {**live, "data": {"a": "1", "b": "x"}}, "bob")
    with pytest.raises(ConflictError, match=r'1 conflict: conflict with "bob" using v1: \.data\.b'):
        applied(CONFIG_MAP, live, config_map({"a": "2", "b": "2"}), "kubectl")


# --------------------------------------------------------------------------------------------------- property tests

TEXTS = st.sampled_from(["1", "2"])
# Lists have items here: an empty one claims nothing, so that applying it removes a list and applying it again puts an
# empty list there. That is how kube-apiserver does it.
PORTS = st.lists(
    st.fixed_dictionaries({"port": st.sampled_from([9, 80])}, optional={"note": TEXTS}),
    min_size=1,
    max_size=2,
    unique_by=lambda port: port["port"],
)
SPECS = st.fixed_dictionaries(
    {"count": st.integers(1, 2)},  # a manager that claims nothing has no entry, so its next apply is its first
    optional={
        "text": TEXTS,
        "set": st.lists(st.sampled_from("xyz"), unique=True, min_size=1, max_size=3),
        "whole": st.lists(TEXTS, max_size=2),
        "ports": PORTS,
        "pair": st.dictionaries(st.sampled_from(["left", "right"]), TEXTS),
        "words": st.dictionaries(st.sampled_from("ab"), TEXTS),
    },
)
STEPS = st.lists(st.tuples(st.sampled_from(["anna", "bob"]), SPECS), min_size=1, max_size=5)


def apply_all(steps: list[tuple[str, dict[str, Any]]]) -> Document:
    live = None
    for manager, spec in steps:
        live = applied(THING, live, thing(**spec), manager, force=True)
    assert live is not None
    return live


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_applying_again_changes_nothing(steps: list[tuple[str, dict[str, Any]]]) -> None:
    live = apply_all(steps)
    manager, spec = steps[-1]
    assert applied(THING, live, thing(**spec), manager, now="later") == live


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_the_last_applied_values_are_in_the_object(steps: list[tuple[str, dict[str, Any]]]) -> None:
    spec = apply_all(steps).get("spec") or {}
    for name, value in steps[-1][1].items():
        if name in ("text", "whole", "pair"):
            assert spec.get(name) == value
        elif name == "words":
            assert (spec.get(name) or {}).items() >= value.items()
        elif name == "set":
            assert set(spec.get(name) or ()) >= set(value)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_fields_that_all_managers_drop_are_removed(steps: list[tuple[str, dict[str, Any]]]) -> None:
    live = apply_all(steps)
    for manager in ("anna", "bob"):
        live = applied(THING, live, {**thing(), "spec": {}}, manager, force=True)
    spec = live.get("spec") or {}
    assert not any(value for value in spec.values())


def deployment(**container: Any) -> Document:
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", **container}]}}}}


CONTAINER = '.spec.template.spec.containers[name="c"]'


@pytest.mark.parametrize(
    ("document", "error"),
    [
        (config_map({"a": 5}), ".data.a: expected string, got &value.valueUnstructured{Value:5}"),
        (config_map({"a": True}), ".data.a: expected string, got &value.valueUnstructured{Value:true}"),
        (
            config_map({"a": {"b": 1}}),
            '.data.a: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"b":1}}',
        ),
        (config_map({"a": ["x"]}), '.data.a: expected string, got &value.valueUnstructured{Value:[]interface {}{"x"}}'),
        ({"data": ["a"]}, ".data: expected map, got &{[a]}"),
        ({"data": "x"}, ".data: expected map, got &{x}"),
        ({"immutable": "x"}, ".immutable: expected boolean, got &{x}"),
        ({"immutable": 1}, ".immutable: expected boolean, got &{1}"),
        (config_map(finalizers=["a", "a"]), '.metadata.finalizers: duplicate entries for key [="a"]'),
        (
            config_map(finalizers=[None]),
            ".metadata.finalizers: element 0: associative list without keys has an element that's an explicit null",
        ),
        (config_map(finalizers="x"), ".metadata.finalizers: expected list, got &{x}"),
        (config_map(creationTimestamp={"a": 1}), ".metadata.creationTimestamp: expected any scalar, got &{map[a:1]}"),
        (config_map(generation="x"), ".metadata.generation: expected numeric (int or float), got string"),
        ({"foo": 1}, ".foo: field not declared in schema"),
        (
            {"immutable": 1, "data": {"a": 5}},
            "errors:\n  .immutable: expected boolean, got &{1}\n"
            "  .data.a: expected string, got &value.valueUnstructured{Value:5}",
        ),
    ],
)
def test_type_mismatches_of_a_config_map(document: Document, error: str) -> None:
    assert type_mismatches_text(type_mismatches(CONFIG_MAP.root, document)) == error


@pytest.mark.parametrize(
    ("document", "error"),
    [
        (
            deployment(ports=[{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}]),
            f'{CONTAINER}.ports: duplicate entries for key [containerPort=80,protocol="TCP"]',
        ),
        (
            deployment(command=["a", 1]),
            f"{CONTAINER}.command[1]: expected string, got &value.valueUnstructured{{Value:1}}",
        ),
        (
            deployment(resources={"limits": {"cpu": {"a": 1}}}),
            f"{CONTAINER}.resources.limits.cpu: expected any scalar, got &{{map[a:1]}}",
        ),
        (deployment(env="x"), f"{CONTAINER}.env: expected list, got &{{x}}"),
        (deployment(tty=None), None),
        (deployment(ports=[{"name": "x"}]), None),
        (deployment(resources={"limits": {"cpu": 1.5}}), None),
    ],
)
def test_type_mismatches_of_a_deployment(document: Document, error: str | None) -> None:
    found = type_mismatches(DEPLOYMENT.root, document)
    assert (type_mismatches_text(found) if found else None) == error


@pytest.mark.parametrize(
    "spec", [{"size": 1}, {"size": "1"}, {"free": {"a": [1, {"b": None}]}}, {"text": None}, {"set": None}]
)
def test_a_valid_custom_object_has_no_type_mismatches(spec: dict[str, Any]) -> None:
    assert not type_mismatches(THING.root, thing(**spec))
