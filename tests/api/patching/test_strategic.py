"""Strategic merge patches: lists with merge keys, directives, the order of items."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.kinds import all_kinds
from mooring.api.patching.json_patch import BAD_REQUEST, JsonDict, PatchError, apply_merge_patch
from mooring.api.patching.strategic import (
    MERGE,
    REPLACE,
    MergeField,
    apply_strategic_patch,
    check_against_order,
    identity,
    in_order,
    merge_fields,
    places_of,
)


def patched(current: JsonDict, patch: object) -> JsonDict:
    return apply_strategic_patch(current, patch, "v1", "Pod")


def containers(*items: JsonDict) -> JsonDict:
    return {"spec": {"containers": list(items)}}


def named(*names: str) -> list[JsonDict]:
    return [{"name": name} for name in names]


WEB: JsonDict = {"name": "web", "image": "web:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
LOG: JsonDict = {"name": "log", "image": "log:1"}


@pytest.mark.parametrize(
    ("current", "patch", "expected"),
    [
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="a new field is added"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="null takes a field away"),
        pytest.param({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}, id="objects are merged"),
        pytest.param({"a": {"b": 1}}, {"a": 2}, {"a": 2}, id="another type replaces"),
        pytest.param({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="what is new comes without its nulls"),
        pytest.param({"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 2}}, {"a": {"c": 2}}, id="an object replaced"),
        pytest.param({"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {"a": {}}, id="an object emptied"),
        pytest.param({}, {"a": {"$patch": "delete"}}, {}, id="a directive is no value"),
        pytest.param({"a": 1}, {"a": {"$patch": "delete"}}, {}, id="a directive over a plain value takes it away"),
        pytest.param(
            {"spec": {"tolerations": [{"key": "a"}]}},
            {"spec": {"tolerations": [{"key": "b", "value": None}]}},
            {"spec": {"tolerations": [{"key": "b"}]}},
            id="tolerations are replaced",
        ),
    ],
)
def test_ordinary_fields_are_merged(current: JsonDict, patch: JsonDict, expected: JsonDict) -> None:
    assert patched(current, patch) == expected


@pytest.mark.parametrize(
    ("before", "patch", "expected"),
    [
        pytest.param(
            [WEB, LOG],
            [{"name": "log", "image": "log:2"}],
            [WEB, {"name": "log", "image": "log:2"}],
            id="an item is changed where it stands",
        ),
        pytest.param([WEB], [LOG], [LOG, WEB], id="a new item comes before those that the patch does not name"),
        pytest.param([LOG, WEB], [{"name": "web"}, {"name": "log"}], [WEB, LOG], id="the patch's order counts"),
        pytest.param([WEB, LOG], [{"name": "web", "$patch": "delete"}], [LOG], id="an item is deleted"),
        pytest.param([WEB], [{"name": "no", "$patch": "delete"}], [WEB], id="what is not there is not deleted"),
        pytest.param([WEB, LOG], [{"$patch": "replace"}, {"name": "x"}], named("x"), id="the list is replaced"),
        pytest.param([WEB, LOG], [{"$patch": "replace"}], [], id="the list is emptied"),
        pytest.param(
            [WEB],
            [{"name": "web", "env": [{"name": "B", "value": "3"}, {"name": "A", "$patch": "delete"}]}],
            [{**WEB, "env": [{"name": "B", "value": "3"}]}],
            id="lists inside of items are merged too",
        ),
        pytest.param([LOG], [{"name": "log", "image": None}], named("log"), id="a field of an item is taken away"),
        pytest.param(
            [LOG],
            [{"name": "log", "$patch": "delete"}, {"name": "new", "image": None}],
            named("new"),
            id="one goes and one comes",
        ),
        pytest.param([], [{"name": "x"}, {"name": "x", "image": "i"}], [{"name": "x", "image": "i"}], id="named twice"),
        pytest.param([], [], [], id="nothing and nothing"),
    ],
)
def test_containers_are_merged_by_name(before: list[JsonDict], patch: list[JsonDict], expected: list[JsonDict]) -> None:
    assert patched(containers(*before), containers(*patch)) == containers(*expected)


@pytest.mark.parametrize(
    ("before", "patch", "expected"),
    [
        pytest.param(["a", "b"], {"finalizers": ["c"]}, ["c", "a", "b"], id="a value is added"),
        pytest.param(["a", "b"], {"finalizers": ["b"]}, ["a", "b"], id="a value is there already"),
        pytest.param(["a", "b"], {"$deleteFromPrimitiveList/finalizers": ["a"]}, ["b"], id="a value is deleted"),
        pytest.param(["a"], {"$deleteFromPrimitiveList/finalizers": ["x"]}, ["a"], id="no such value"),
        pytest.param(
            ["a", "b"],
            {"$setElementOrder/finalizers": ["b", "c"], "finalizers": ["c"]},
            ["a", "b", "c"],
            id="a value is added and ordered",
        ),
        pytest.param(
            ["a", "b", "c"],
            {"$setElementOrder/finalizers": ["c", "a"], "$deleteFromPrimitiveList/finalizers": ["b"]},
            ["c", "a"],
            id="a value is deleted and the others are ordered",
        ),
        pytest.param(None, {"$deleteFromPrimitiveList/finalizers": ["a"]}, None, id="deleted from a list that is not"),
    ],
)
def test_finalizers_are_merged_as_a_set(before: list[str] | None, patch: JsonDict, expected: list[str] | None) -> None:
    current: JsonDict = {"metadata": {} if before is None else {"finalizers": before}}
    assert patched(current, {"metadata": patch}) == {"metadata": {} if expected is None else {"finalizers": expected}}


@pytest.mark.parametrize(
    ("before", "order", "patch", "expected"),
    [
        pytest.param("abc", "cab", None, "cab", id="only the order changes"),
        pytest.param("abcd", "ca", None, "bcad", id="items that the order leaves out stay near their neighbours"),
        pytest.param("ab", "axb", ["x"], "axb", id="a new item gets its place"),
        pytest.param(None, "ba", ["b", "a"], "ba", id="the list is new"),
        pytest.param("abd", "bc", ["c", "-a"], "bdc", id="a new item takes the place of a deleted one"),
        pytest.param(None, "ab", None, None, id="there is no list"),
    ],
)
def test_set_element_order(before: str | None, order: str, patch: list[str] | None, expected: str | None) -> None:
    current: JsonDict = {"spec": {} if before is None else {"containers": named(*before)}}
    spec: JsonDict = {"$setElementOrder/containers": named(*order)}
    if patch is not None:
        spec["containers"] = [
            {"name": name[1:], "$patch": "delete"} if name.startswith("-") else {"name": name} for name in patch
        ]
    result = patched(current, {"spec": spec})
    assert result == {"spec": {} if expected is None else {"containers": named(*expected)}}


def test_retain_keys_removes_all_other_keys_of_a_volume() -> None:
    volumes: JsonDict = {"spec": {"volumes": [{"name": "data", "emptyDir": {}}, {"name": "other", "emptyDir": {}}]}}
    patch = {"spec": {"volumes": [{"name": "data", "hostPath": {"path": "/"}, "$retainKeys": ["name", "hostPath"]}]}}
    assert patched(volumes, patch) == {
        "spec": {"volumes": [{"name": "data", "hostPath": {"path": "/"}}, {"name": "other", "emptyDir": {}}]}
    }


def test_retain_keys_replaces_the_strategy_of_a_deployment() -> None:
    current: JsonDict = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    expected = {"spec": {"strategy": {"type": "Recreate"}}}
    assert apply_strategic_patch(current, patch, "apps/v1", "Deployment") == expected


@pytest.mark.parametrize(
    ("current", "patch", "message", "code"),
    [
        pytest.param(
            {}, [], "json: cannot unmarshal array into Go value of type map[string]interface {}", 400, id="a list"
        ),
        pytest.param(
            {"a": {}},
            {"a": {"$patch": "merge"}},
            "unknown patch type: merge in map: map[$patch:merge]",
            500,
            id="an unknown directive",
        ),
        pytest.param(
            containers(LOG),
            containers({"name": "log", "$patch": "merge"}),
            "merging lists cannot yet be specified in the patch",
            500,
            id="merge said of an item",
        ),
        pytest.param(
            containers(LOG),
            containers({"image": "x", "ports": [1]}),
            "map: map[image:x ports:[1]] does not contain declared merge key: name",
            500,
            id="an item without its key",
        ),
        pytest.param(
            containers(LOG),
            {"spec": {"containers": ["log"]}},
            "list element types are not identical: [[map[image:log:1 name:log]] [log]]",
            500,
            id="items of two types",
        ),
        pytest.param(
            {"metadata": {"finalizers": [["a"]]}},
            {"metadata": {"finalizers": [["b"]]}},
            "lists of lists are not supported",
            422,
            id="lists in a list",
        ),
        pytest.param(
            {"spec": {"strategy": {}}},
            {"spec": {"strategy": {"$retainKeys": ["type"], "other": 1}}},
            "invalid patch format of retainKeys",
            BAD_REQUEST,
            id="a key that is not retained",
        ),
        pytest.param(
            {},
            {"$setElementOrder": []},
            "invalid patch format of setElementOrder list",
            BAD_REQUEST,
            id="an order of what",
        ),
        pytest.param(
            {},
            {"$deleteFromPrimitiveList": []},
            "invalid patch format of primitive list",
            BAD_REQUEST,
            id="deleted from what",
        ),
        pytest.param(
            containers(LOG, WEB),
            {"spec": {"$setElementOrder/containers": named("log", "web"), "containers": named("web", "log")}},
            "The order in patch list:\n[map[name:web] map[name:log]]\n doesn't match $setElementOrder list:\n"
            "[map[name:log] map[name:web]]\n",
            500,
            id="a patch in another order than it says",
        ),
    ],
)
def test_invalid_strategic_patches_are_rejected(current: JsonDict, patch: object, message: str, code: int) -> None:
    with pytest.raises(PatchError) as caught:
        patched(current, patch)
    assert (str(caught.value), caught.value.code) == (message, code)


def test_custom_resources_have_no_strategic_patches() -> None:
    with pytest.raises(PatchError, match="strategic merge patch format is not supported"):
        apply_strategic_patch({}, {}, "example.com/v1", "Boat")


# --- laws --------------------------------------------------------------------------------------------------------

plain = st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2)
ordinary_values = st.recursive(
    plain | st.none(), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=8
)
ordinary_objects = st.dictionaries(st.sampled_from("abc"), ordinary_values, max_size=3)

items = st.fixed_dictionaries({"name": st.sampled_from("abcde")}, optional={"image": plain, "env": st.just(named("E"))})
item_lists = st.lists(items, max_size=5, unique_by=lambda item: str(item["name"]))
item_patches = st.lists(
    items | st.fixed_dictionaries({"name": st.sampled_from("abcde"), "$patch": st.just("delete")}),
    max_size=5,
    unique_by=lambda item: str(item["name"]),
)


@given(ordinary_objects, ordinary_objects)
def test_a_strategic_patch_without_lists_equals_a_merge_patch(current: JsonDict, patch: JsonDict) -> None:
    assert patched(current, patch) == apply_merge_patch(current, patch)


@given(item_lists, item_patches)
def test_applying_a_patch_changes_neither_the_object_nor_the_patch(
    before: list[JsonDict], patch: list[JsonDict]
) -> None:
    given_objects = (containers(*before), containers(*patch))
    untouched = copy.deepcopy(given_objects)
    patched(*given_objects)
    assert given_objects == untouched


@given(item_lists, item_patches)
def test_items_are_neither_lost_nor_repeated(before: list[JsonDict], patch: list[JsonDict]) -> None:
    doomed = {item["name"] for item in patch if "$patch" in item}
    expected = {item["name"] for item in [*before, *patch]} - doomed
    result = names_of(patched(containers(*before), containers(*patch)))
    assert sorted(result) == sorted(str(name) for name in expected)


@given(item_lists, item_lists)
def test_items_of_the_patch_and_other_items_keep_their_order(before: list[JsonDict], patch: list[JsonDict]) -> None:
    result = names_of(patched(containers(*before), containers(*patch)))
    mentioned = [str(item["name"]) for item in patch]
    others = [str(item["name"]) for item in before if item["name"] not in mentioned]
    assert [name for name in result if name in mentioned] == mentioned
    assert [name for name in result if name not in mentioned] == others


@given(item_lists.filter(bool), item_lists)
def test_applying_a_patch_twice_equals_applying_it_once(before: list[JsonDict], patch: list[JsonDict]) -> None:
    once = patched(containers(*before), containers(*patch))
    twice = patched(once, containers(*patch))
    assert sorted_by_name(twice) == sorted_by_name(once)


field_names = st.sampled_from(
    [
        "spec",
        "metadata",
        "containers",
        "finalizers",
        "env",
        "name",
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$setElementOrder/finalizers",
        "$deleteFromPrimitiveList/finalizers",
        "$deleteFromPrimitiveList/containers",
    ]
)
anything = st.recursive(
    plain | st.none() | st.sampled_from(["delete", "replace", "merge", "name"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(field_names, inner, max_size=4),
    max_leaves=12,
)
anything_there = st.dictionaries(st.sampled_from(["spec", "metadata"]), anything, min_size=1)


@given(anything_there, anything_there)
def test_no_patch_leaves_a_directive_in_the_result(current: JsonDict, patch: JsonDict) -> None:
    untouched = copy.deepcopy((current, patch))
    try:
        result = patched(without_dollars(current), patch)
    except PatchError:
        return
    assert result == without_dollars(result)
    assert (current, patch) == untouched


def without_dollars(value: JsonDict) -> JsonDict:
    def cleaned(value: object) -> object:
        if isinstance(value, dict):
            return {name: cleaned(inner) for name, inner in value.items() if not name.startswith("$")}
        return [cleaned(item) for item in value] if isinstance(value, list) else value

    return {name: cleaned(inner) for name, inner in value.items()}


def names_of(pod: JsonDict) -> list[str]:
    return [str(item["name"]) for item in items_of(pod)]


def sorted_by_name(pod: JsonDict) -> list[JsonDict]:
    return sorted(items_of(pod), key=lambda item: str(item["name"]))


def items_of(pod: JsonDict) -> list[JsonDict]:
    spec = pod["spec"]
    assert isinstance(spec, dict)
    found = spec["containers"]
    assert isinstance(found, list)
    return found


# --- The table of merge keys says what the API types of Kubernetes v1.36 say -----------------------------------------


@pytest.mark.parametrize(
    ("api_version", "kind", "path", "strategy", "merge_key"),
    [
        ("v1", "Pod", "metadata.ownerReferences", MERGE, "uid"),
        ("v1", "Pod", "metadata.finalizers", MERGE, ""),
        ("v1", "Pod", "spec.containers", MERGE, "name"),
        ("v1", "Pod", "spec.containers.ports", MERGE, "containerPort"),
        ("v1", "Pod", "spec.initContainers.volumeMounts", MERGE, "mountPath"),
        ("v1", "Pod", "spec.ephemeralContainers.env", MERGE, "name"),
        ("v1", "Pod", "spec.volumes", "merge,retainKeys", "name"),
        ("v1", "Pod", "spec.resourceClaims", "merge,retainKeys", "name"),
        ("v1", "Pod", "spec.topologySpreadConstraints", MERGE, "topologyKey"),
        ("v1", "Pod", "spec.schedulingGates", MERGE, "name"),
        ("v1", "Pod", "status.conditions", MERGE, "type"),
        ("v1", "Pod", "status.podIPs", MERGE, "ip"),
        ("v1", "Node", "status.addresses", MERGE, "type"),
        ("v1", "Node", "spec.podCIDRs", MERGE, ""),
        ("v1", "Service", "spec.ports", MERGE, "port"),
        ("apps/v1", "Deployment", "spec.strategy", "retainKeys", ""),
        ("apps/v1", "Deployment", "spec.template.spec.containers.env", MERGE, "name"),
        ("batch/v1", "CronJob", "spec.jobTemplate.spec.template.spec.volumes", "merge,retainKeys", "name"),
        ("policy/v1", "PodDisruptionBudget", "spec.selector", REPLACE, ""),
        ("resource.k8s.io/v1", "ResourceClaim", "status.reservedFor", MERGE, "uid"),
        ("storage.k8s.io/v1", "CSINode", "spec.drivers", MERGE, "name"),
        ("v1", "ConfigMap", "metadata.finalizers", MERGE, ""),
    ],
)
def test_fields_with_a_patch_strategy(api_version: str, kind: str, path: str, strategy: str, merge_key: str) -> None:
    field = field_at(api_version, kind, path)
    assert field is not None
    assert (field.strategy, field.merge_key) == (strategy, merge_key)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Pod", "spec.tolerations"),
        ("Pod", "spec.containers.command"),
        ("Pod", "spec.containers.envFrom"),
        ("Pod", "status.containerStatuses"),
        ("Node", "spec.taints"),
        ("Node", "status.images"),
        ("ServiceAccount", "imagePullSecrets"),
    ],
)
def test_lists_without_a_patch_strategy(kind: str, path: str) -> None:
    assert field_at("v1", kind, path) is None


def test_every_built_in_kind_has_merge_fields() -> None:
    assert [kind for kind in all_kinds() if merge_fields(kind.api_version, kind.kind) is None] == []


def test_custom_resources_have_no_merge_fields() -> None:
    assert merge_fields("example.com/v1", "Boat") is None


def field_at(api_version: str, kind: str, path: str) -> MergeField | None:
    fields = merge_fields(api_version, kind)
    assert fields is not None
    field: MergeField | None = None
    for name in path.split("."):
        field = fields.get(name)
        if field is None:
            return None
        fields = field.below
    return field


# --- Merged items stand in the patch's order, the others around them as before ---------------------------------------


@pytest.mark.parametrize(
    ("items", "order", "before", "result"),
    [
        ("abc", "b", "abc", "abc"),
        ("abc", "cb", "abc", "acb"),
        ("abx", "x", "ab", "xab"),
        ("abcx", "bx", "abc", "abxc"),
        ("aab", "", "aab", "ab"),
        ("", "", "", ""),
    ],
)
def test_order_of_scalars(items: str, order: str, before: str, result: str) -> None:
    assert in_order(list(items), list(order), list(before), "") == list(result)


def test_places_of_has_the_first_position_of_an_identity() -> None:
    assert places_of([{"name": "a"}, {"name": 1}, {"name": "a"}], "name") == {"a": 0, 1: 1}


@pytest.mark.parametrize("name", [{}, []], ids=["an object", "a list"])
def test_a_merge_key_must_be_a_plain_value(name: object) -> None:
    with pytest.raises(PatchError, match="merge key name is no plain value"):
        identity({"name": name}, "name")


@pytest.mark.parametrize(
    ("patch", "order"),
    [("", "abc"), ("b", "abc"), ("ac", "abc"), ("ab", "")],
    ids=["nothing is patched", "one of them", "some in order", "there is no order"],
)
def test_a_patch_in_the_order_of_its_directive(patch: str, order: str) -> None:
    check_against_order(list(patch), list(order), "")


@pytest.mark.parametrize(
    ("patch", "order"), [("x", "abc"), ("ba", "abc")], ids=["one that is not in it", "out of order"]
)
def test_a_patch_that_contradicts_its_directive(patch: str, order: str) -> None:
    with pytest.raises(PatchError, match=r"doesn't match \$setElementOrder list"):
        check_against_order(list(patch), list(order), "")


def test_an_order_of_objects_is_an_order_of_names() -> None:
    check_against_order([{"name": "b"}, {"name": "a", "$patch": "delete"}], [{"name": "a"}, {"name": "b"}], "name")
    with pytest.raises(PatchError, match="does not contain declared merge key: name"):
        check_against_order([{"name": "b"}], [{"value": "b"}], "name")
    with pytest.raises(PatchError, match="expected a map"):
        check_against_order(["b"], [{"name": "b"}], "name")
