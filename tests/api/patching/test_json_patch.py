"""JSON patches and merge patches, and the messages of invalid patches."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.errors import ObjectError
from mooring.api.field_errors import go_text
from mooring.api.patching.json_patch import (
    BAD_REQUEST,
    OPERATIONS_MAX,
    UNPROCESSABLE,
    JsonDict,
    PatchError,
    apply_json_patch,
    apply_merge_patch,
    cannot_decode,
    wrong_type,
)

POD: JsonDict = {
    "metadata": {"name": "web", "labels": {"app": "web", "a/b": "1", "a~b": "2"}},
    "spec": {"containers": [{"name": "one"}, {"name": "two"}], "replicas": 3},
}


def add(path: str, value: object) -> JsonDict:
    return {"op": "add", "path": path, "value": value}


def remove(path: str) -> JsonDict:
    return {"op": "remove", "path": path}


def replace(path: str, value: object) -> JsonDict:
    return {"op": "replace", "path": path, "value": value}


def move(source: str, path: str) -> JsonDict:
    return {"op": "move", "from": source, "path": path}


def copied(source: str, path: str) -> JsonDict:
    return {"op": "copy", "from": source, "path": path}


def expect(path: str, value: object) -> JsonDict:
    return {"op": "test", "path": path, "value": value}


@pytest.mark.parametrize(
    ("steps", "where", "expected"),
    [
        pytest.param([add("/metadata/labels/tier", "x")], "metadata.labels.tier", "x", id="add a field"),
        pytest.param([add("/metadata/name", "x")], "metadata.name", "x", id="add over a field"),
        pytest.param([add("/spec/containers/-", 1)], "spec.containers.2", 1, id="add at the end of a list"),
        pytest.param([add("/spec/containers/0", 1)], "spec.containers.0", 1, id="add at the head of a list"),
        pytest.param(
            [add("/spec/containers/-1", 1)], "spec.containers.2", 1, id="a negative index counts from the end"
        ),
        pytest.param(
            [add("/spec/containers/0/image", "i")], "spec.containers.0.image", "i", id="add inside of an item"
        ),
        pytest.param([remove("/metadata/labels/a~1b")], "metadata.labels.a/b", None, id="remove; ~1 is a slash"),
        pytest.param([remove("/metadata/labels/a~0b")], "metadata.labels.a~b", None, id="remove; ~0 is a tilde"),
        pytest.param([remove("/spec/containers/0")], "spec.containers.0.name", "two", id="remove an item"),
        pytest.param([replace("/spec/replicas", 5)], "spec.replicas", 5, id="replace a field"),
        pytest.param([replace("/spec/paused", True)], "spec.paused", True, id="replace a field that is not there"),
        pytest.param([replace("/spec/containers/-1", 1)], "spec.containers.1", 1, id="replace the last item"),
        pytest.param([replace("", {"kind": "x"})], "kind", "x", id="replace everything"),
        pytest.param([replace("/spec/replicas", None)], "spec.replicas", None, id="replace by null"),
        pytest.param([move("/spec/replicas", "/spec/n")], "spec.n", 3, id="move a field"),
        pytest.param(
            [move("/spec/containers/0", "/spec/containers/1")], "spec.containers.1.name", "one", id="move an item"
        ),
        pytest.param([copied("/metadata/name", "/spec/n")], "spec.n", "web", id="copy a field"),
        pytest.param(
            [copied("/metadata", "/spec/n"), replace("/spec/n/name", "x")], "metadata.name", "web", id="a copy is apart"
        ),
        pytest.param([copied("/metadata/nothing", "/spec/n")], "spec.n", None, id="copy what is not there"),
        pytest.param(
            [expect("/spec/replicas", 3), replace("/spec/replicas", 4)], "spec.replicas", 4, id="a test holds"
        ),
        pytest.param([expect("/spec/nothing", None)], "spec.replicas", 3, id="what is not there is null"),
        pytest.param([expect("/spec/containers/1", {"name": "two"})], "spec.replicas", 3, id="a test of an object"),
        pytest.param([add("/spec/a", {}), add("/spec/a/b", 1)], "spec.a.b", 1, id="a step sees the one before"),
    ],
)
def test_operations_of_a_json_patch(steps: list[JsonDict], where: str, expected: object) -> None:
    assert look(apply_json_patch(POD, steps), where) == expected


@pytest.mark.parametrize(
    ("step", "message"),
    [
        pytest.param(
            add("/status/phase", 1),
            'add operation does not apply: doc is missing path: "/status/phase": missing value',
            id="add where there is no parent",
        ),
        pytest.param(
            add("", 1), 'add operation does not apply: doc is missing path: "": missing value', id="add to ''"
        ),
        pytest.param(
            add("/spec/containers/9", 1),
            "error in add for path: '/spec/containers/9': Unable to access invalid index: 9: invalid index referenced",
            id="add beyond the end",
        ),
        pytest.param(
            add("/spec/containers/x", 1),
            "error in add for path: '/spec/containers/x': value was not a proper array index: 'x': "
            'strconv.Atoi: parsing "x": invalid syntax',
            id="add at no index",
        ),
        pytest.param(
            add(f"/spec/containers/{'1' * 5_000}", 1),
            f"error in add for path: '/spec/containers/{'1' * 5_000}': value was not a proper array index: "
            f"'{'1' * 5_000}': strconv.Atoi: parsing \"{'1' * 5_000}\": value out of range",
            id="add at an index of 5,000 digits",
        ),
        pytest.param(
            remove("/metadata/labels/no"),
            "error in remove for path: '/metadata/labels/no': Unable to remove nonexistent key: no: missing value",
            id="remove what is not there",
        ),
        pytest.param(
            remove("/spec/containers/2"),
            "error in remove for path: '/spec/containers/2': "
            "Unable to access invalid index: 2: invalid index referenced",
            id="remove no item",
        ),
        pytest.param(
            remove("/status/phase"),
            'remove operation does not apply: doc is missing path: "/status/phase": missing value',
            id="remove where there is no parent",
        ),
        pytest.param(
            replace("/spec/containers/2", 1),
            "replace operation does not apply: doc is missing key: /spec/containers/2: missing value",
            id="replace no item",
        ),
        pytest.param(
            replace("/spec/replicas/x", 1),
            "replace operation does not apply: doc is missing path: /spec/replicas/x: missing value",
            id="replace below a number",
        ),
        pytest.param(
            move("/status/a", "/spec/a"),
            "move operation does not apply: doc is missing from path: /status/a: missing value",
            id="move from nowhere",
        ),
        pytest.param(
            move("/spec/replicas", "/status/a"),
            "move operation does not apply: doc is missing destination path: /status/a: missing value",
            id="move to nowhere",
        ),
        pytest.param(
            copied("/spec/containers/7", "/spec/a"),
            "error in copy for from: '/spec/containers/7': Unable to access invalid index: 7: invalid index referenced",
            id="copy no item",
        ),
        pytest.param(
            expect("/spec/replicas", 4), "testing value /spec/replicas failed: test failed", id="a test fails"
        ),
        pytest.param(
            expect("/spec/replicas", 3.0), "testing value /spec/replicas failed: test failed", id="3 is not 3.0"
        ),
        pytest.param(
            expect("/status/phase", 1),
            "test operation does not apply: is missing path: /status/phase: missing value",
            id="a test where there is no parent",
        ),
        pytest.param({"op": "swap", "path": "/a"}, "Unexpected kind: swap", id="an unknown step"),
        pytest.param({"path": "/a"}, "Unexpected kind: unknown", id="a step without a name"),
        pytest.param({"op": "add"}, "add operation failed to decode path: missing value", id="a step without a path"),
        pytest.param(
            {"op": "move", "path": "/a"},
            "move operation failed to decode from: operation, missing from field: missing value",
            id="a move without a source",
        ),
    ],
)
def test_an_operation_that_does_not_apply(step: JsonDict, message: str) -> None:
    with pytest.raises(PatchError) as caught:
        apply_json_patch(POD, [step])
    assert (str(caught.value), caught.value.code) == (message, UNPROCESSABLE)
    assert caught.value.status_message == "the server rejected our request due to an error in our request"


@pytest.mark.parametrize(
    ("patch", "message", "code"),
    [
        pytest.param(
            {},
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            BAD_REQUEST,
            id="an object",
        ),
        pytest.param(
            ["add"],
            "error decoding patch: json: cannot unmarshal string into Go value of type handlers.jsonPatchOp",
            BAD_REQUEST,
            id="a step that is a text",
        ),
        pytest.param(
            [expect("/a", None)] * (OPERATIONS_MAX + 1),
            "The allowed maximum operations in a JSON patch is 10000, got 10001",
            413,
            id="too many steps",
        ),
        pytest.param(
            [replace("", [])],
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
            BAD_REQUEST,
            id="one that leaves no object",
        ),
    ],
)
def test_invalid_json_patches(patch: object, message: str, code: int) -> None:
    with pytest.raises(PatchError) as caught:
        apply_json_patch(POD, patch)
    assert (str(caught.value), caught.value.code) == (message, code)


def test_copies_beyond_the_total_size_are_rejected() -> None:
    document: JsonDict = {"data": {"a": "x" * 1000}}
    doubling = [copied("/data", f"/data/copy-{number}") for number in range(60)]
    with pytest.raises(PatchError) as caught:
        apply_json_patch(document, doubling)
    assert caught.value.code == UNPROCESSABLE
    assert "exceeding the limit 3145728" in str(caught.value)


def test_copies_within_the_total_size_are_accepted() -> None:
    document: JsonDict = {"data": {"a": "x" * 1000}}
    patch = [copied("/data/a", f"/data/copy-{number}") for number in range(3000)]
    assert len(apply_json_patch(document, patch)["data"]) == 3001  # type: ignore[arg-type]


def test_a_container_is_copied_once_however_many_operations_change_it() -> None:
    class CountingList(list[object]):
        copies = 0

        def copy(self) -> list[object]:
            type(self).copies += 1
            return list(self)

    apply_json_patch({"items": CountingList([0] * 100)}, [replace(f"/items/{number}", 1) for number in range(100)])
    assert CountingList.copies == 1


paths = st.sampled_from(["/a", "/b", "/a/x", "/a/0", "/a/-", "/b/x/y", "/b/1"])
values = st.recursive(
    st.integers(0, 3) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
)
steps = st.lists(
    st.one_of(
        st.builds(add, paths, values),
        st.builds(remove, paths),
        st.builds(replace, paths, values),
        st.builds(move, paths, paths),
        st.builds(copied, paths, paths),
    ),
    max_size=6,
)
objects = st.dictionaries(st.sampled_from("ab"), values, max_size=2)


@given(objects, steps)
def test_operations_change_neither_the_object_nor_the_patch(current: JsonDict, patch: list[JsonDict]) -> None:
    before = copy.deepcopy((current, patch))
    outcome(current, patch)
    assert (current, patch) == before


@given(objects, steps, steps)
def test_two_patches_in_a_row_equal_one_long_patch(
    current: JsonDict, one: list[JsonDict], other: list[JsonDict]
) -> None:
    between = outcome(current, one)
    if between is not None:
        assert outcome(between, other) == outcome(current, one + other)


def outcome(current: JsonDict, patch: list[JsonDict]) -> JsonDict | None:
    try:
        return apply_json_patch(current, patch)
    except PatchError:
        return None


def look(found: object, where: str) -> object:
    for name in where.split("."):
        if isinstance(found, list):
            found = found[int(name)] if int(name) < len(found) else None
        elif isinstance(found, dict):
            found = found.get(name)
    return found


# --- A merge patch takes away what is null, merges objects, and replaces everything else -----------------------------


@pytest.mark.parametrize(
    ("current", "patch", "expected"),
    [
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="a new field is added"),
        pytest.param({"a": 1}, {"a": 2}, {"a": 2}, id="a field is replaced"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="null takes a field away"),
        pytest.param({"a": 1}, {"b": None}, {"a": 1}, id="null of a field that is not there does nothing"),
        pytest.param({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}, id="objects are merged"),
        pytest.param({"a": {"b": 1}}, {"a": [1]}, {"a": [1]}, id="a list replaces an object"),
        pytest.param({"a": [1]}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="an object replaces a list"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="a list replaces a list"),
        pytest.param({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="what is new comes without its nulls"),
        pytest.param({}, {"a": [{"b": None}, None]}, {"a": [{}, None]}, id="also inside of lists"),
        pytest.param({"a": None}, {"a": {"b": None}}, {"a": {}}, id="a null in the object counts as absent"),
    ],
)
def test_merge_patches(current: JsonDict, patch: JsonDict, expected: JsonDict) -> None:
    assert apply_merge_patch(current, patch) == expected


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        pytest.param(None, "Invalid JSON Patch", id="null"),
        pytest.param(
            [],
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            id="a list",
        ),
        pytest.param(
            1,
            "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}",
            id="a number",
        ),
    ],
)
def test_invalid_merge_patches(patch: object, message: str) -> None:
    with pytest.raises(PatchError) as caught:
        apply_merge_patch({}, patch)
    assert (str(caught.value), caught.value.code) == (message, BAD_REQUEST)


plain = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2)
names = st.sampled_from("abc")
merge_patch_values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3)
)
merge_patch_objects = st.dictionaries(names, merge_patch_values, max_size=3)
solid_values = st.recursive(
    plain.filter(lambda value: value is not None),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
)
solid_objects = st.dictionaries(names, solid_values, max_size=3)


@given(merge_patch_objects, merge_patch_objects)
def test_applying_a_patch_changes_neither_the_object_nor_the_patch(current: JsonDict, patch: JsonDict) -> None:
    before = copy.deepcopy((current, patch))
    apply_merge_patch(current, patch)
    assert (current, patch) == before


@given(merge_patch_objects, merge_patch_objects)
def test_applying_a_patch_twice_equals_applying_it_once(current: JsonDict, patch: JsonDict) -> None:
    once = apply_merge_patch(current, patch)
    assert apply_merge_patch(once, patch) == once


@given(solid_objects, solid_objects)
def test_a_merge_patch_can_turn_one_object_into_another(one: JsonDict, other: JsonDict) -> None:
    assert apply_merge_patch(one, difference(one, other)) == other


def difference(one: JsonDict, other: JsonDict) -> JsonDict:
    patch: JsonDict = {name: None for name in one if name not in other}
    for name, value in other.items():
        before = one.get(name)
        patch[name] = difference(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return patch


# --- Faults of patches are told in Kubernetes' words, which quote values as Go prints them ---------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "<nil>"),
        (True, "true"),
        ("a b", "a b"),
        (80, "80"),
        ([1, "a", None], "[1 a <nil>]"),
        ({"b": [True], "a": {}}, "map[a:map[] b:[true]]"),
    ],
)
def test_values_as_go_prints_them(value: object, text: str) -> None:
    assert go_text(value) == text


def test_types_as_go_names_them() -> None:
    assert str(wrong_type("[]interface {}", "x")) == "expected a []interface {}, but received a string"
    assert str(cannot_decode(True, "string")) == "json: cannot unmarshal bool into Go value of type string"


def test_a_patch_error_has_the_message_and_code_of_the_response() -> None:
    error = PatchError("no", BAD_REQUEST)
    assert isinstance(error, ObjectError)
    assert (error.code, error.status_message) == (400, "no")
    assert PatchError("secret reason", 422).status_message.startswith("the server rejected our request")
