"""Field sets of documents: all fields, claimed fields, and changes between two documents."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.apply.kind_schema import DEDUCED, custom_kind_schemas
from mooring.apiserver.apply.typed import SchemaMismatchError, all_fields, claimed_fields, compare
from tests.apiserver.apply.builders import CONFIG_MAP, DEPLOYMENT, POD, THING, config_map, shown, thing

CONTAINER = '.spec.containers[name="c"]'


def pod(**container: Any) -> Document:
    return {"spec": {"containers": [{"name": "c", **container}]}}


@pytest.mark.parametrize(
    ("document", "added"),
    [
        pytest.param(pod(), [CONTAINER, f"{CONTAINER}.name"], id="a new item of an existing list"),
        pytest.param(
            pod(resources={}), [CONTAINER, f"{CONTAINER}.name", f"{CONTAINER}.resources"], id="an empty struct"
        ),
        pytest.param(
            pod(ports=[{"containerPort": 80, "protocol": "TCP"}]),
            [
                CONTAINER,
                f"{CONTAINER}.name",
                f"{CONTAINER}.ports",
                f'{CONTAINER}.ports[containerPort=80,protocol="TCP"]',
                f'{CONTAINER}.ports[containerPort=80,protocol="TCP"].containerPort',
                f'{CONTAINER}.ports[containerPort=80,protocol="TCP"].protocol',
            ],
            id="every level of a new item",
        ),
        pytest.param(
            {"metadata": {"labels": {"b": "2", "a": "1"}}, "spec": {"containers": None}},
            [".metadata.labels", ".metadata.labels.a", ".metadata.labels.b"],
            id="new labels in existing metadata",
        ),
        pytest.param(
            {"spec": {"containers": None, "nodeSelector": {"a": "b"}, "tolerations": [{"key": "x"}]}},
            [".spec.nodeSelector", ".spec.tolerations"],
            id="atomic fields",
        ),
    ],
)
def test_compare_with_the_empty_object_returns_the_added_fields(document: Document, added: list[str]) -> None:
    assert shown(compare(POD.root, POD.empty, document).added) == added


@pytest.mark.parametrize(
    ("document", "claimed"),
    [
        pytest.param(
            pod(image="x"),
            [CONTAINER, f"{CONTAINER}.image", f"{CONTAINER}.name"],
            id="items and leaves, no named fields",
        ),
        pytest.param({"metadata": {"labels": {}}}, [".metadata.labels"], id="an empty map is claimed itself"),
        pytest.param({"metadata": {"labels": None}}, [".metadata.labels"], id="null is claimed itself"),
        pytest.param({"metadata": {"finalizers": []}}, [], id="an empty set claims nothing"),
        pytest.param({"spec": {"tolerations": []}}, [".spec.tolerations"], id="an empty atomic list is claimed"),
        pytest.param({"metadata": {"labels": {"a": "1"}}}, [".metadata.labels.a"], id="entries of a map"),
        pytest.param(
            {"metadata": {"finalizers": ["b", "a"]}},
            ['.metadata.finalizers[="a"]', '.metadata.finalizers[="b"]'],
            id="items of a set",
        ),
        pytest.param({"spec": {}}, [".spec"], id="an empty struct"),
    ],
)
def test_claimed_fields_of_an_applied_document(document: Document, claimed: list[str]) -> None:
    assert shown(claimed_fields(POD.root, document)) == claimed


@pytest.mark.parametrize(
    ("old", "new", "added", "modified", "removed"),
    [
        pytest.param({"a": "1"}, {"a": "1"}, [], [], [], id="nothing"),
        pytest.param({"a": "1"}, {"a": "2"}, [], [".data.a"], [], id="a value"),
        pytest.param({"a": "1"}, {"b": "1"}, [".data.b"], [], [".data.a"], id="one for another"),
        pytest.param(None, {"a": "1"}, [".data", ".data.a"], [], [], id="all at once"),
        pytest.param({"a": "1"}, None, [], [], [".data", ".data.a"], id="nothing left"),
        pytest.param({"a": "1"}, {}, [], [], [".data.a"], id="emptied"),
    ],
)
def test_compare_returns_changes_of_a_map(
    old: Document | None, new: Document | None, added: list[str], modified: list[str], removed: list[str]
) -> None:
    changed = compare(CONFIG_MAP.root, config_map(old), config_map(new))
    assert (shown(changed.added), shown(changed.modified), shown(changed.removed)) == (added, modified, removed)


@pytest.mark.parametrize(
    ("old", "new", "added", "modified", "removed"),
    [
        pytest.param(thing(set=["x"]), thing(set=["y", "x"]), ['.spec.set[="y"]'], [], [], id="a set grows"),
        pytest.param(thing(set=["x", "y"]), thing(set=["y", "x"]), [], [], [], id="the order of a set is no change"),
        pytest.param(
            thing(whole=["x", "y"]),
            thing(whole=["y", "x"]),
            [],
            [".spec.whole"],
            [],
            id="the order of an atomic list is a change",
        ),
        pytest.param(thing(set=[]), thing(set=None), [], [".spec.set"], [], id="empty and null differ"),
        pytest.param(thing(set=["x"]), thing(set=None), [], [], ['.spec.set[="x"]'], id="null has no items"),
        pytest.param(
            thing(ports=[{"port": 80, "note": "a"}]),
            thing(ports=[{"port": 80, "protocol": "TCP", "note": "b"}]),
            ['.spec.ports[port=80,protocol="TCP"].protocol'],
            ['.spec.ports[port=80,protocol="TCP"].note'],
            [],
            id="an item with the same keys",
        ),
        pytest.param(
            thing(set=["x", "x"]), thing(set=["x", "x", "x"]), [], ['.spec.set[="x"]'], [], id="one more duplicate"
        ),
        pytest.param(thing(set=["x", "x"]), thing(set=["x", "x"]), [], [], [], id="equal duplicates"),
        pytest.param(
            thing(ports=[{"port": 80}]),
            thing(ports=[{"port": 80}, {"port": 80}]),
            ['.spec.ports[port=80,protocol="TCP"]'],
            [],
            ['.spec.ports[port=80,protocol="TCP"]', '.spec.ports[port=80,protocol="TCP"].port'],
            id="one becomes two",
        ),
        pytest.param(
            thing(ports=[{"port": 80}, {"port": 80}]),
            thing(ports=[{"port": 80}]),
            ['.spec.ports[port=80,protocol="TCP"]', '.spec.ports[port=80,protocol="TCP"].port'],
            [],
            ['.spec.ports[port=80,protocol="TCP"]'],
            id="two become one",
        ),
        pytest.param(thing(pair={"left": "a"}), thing(pair={"left": "b"}), [], [".spec.pair"], [], id="atomic"),
        pytest.param(
            thing(free={"a": 1}), thing(free={"a": {"b": 1}}), [".spec.free.a.b"], [".spec.free.a"], [], id="1 to a map"
        ),
        pytest.param(
            thing(free={"a": {"b": 1}}),
            thing(free={"a": [1]}),
            [],
            [".spec.free.a"],
            [".spec.free.a.b"],
            id="to a list",
        ),
        pytest.param(thing(free={"a": 1}), thing(free={"a": True}), [], [".spec.free.a"], [], id="1 is not true"),
        pytest.param(thing(free={"a": 1}), thing(free={"a": 1.0}), [], [], [], id="1 is 1.0"),
    ],
)
def test_compare_returns_changes_of_a_custom_object(
    old: Document, new: Document, added: list[str], modified: list[str], removed: list[str]
) -> None:
    changed = compare(THING.root, old, new, is_strict=True)
    assert (shown(changed.added), shown(changed.modified), shown(changed.removed)) == (added, modified, removed)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"set": [None]}, "element 0: associative list without keys has an element that's an explicit null"),
        ({"set": ["x", {}]}, "element 1: associative list without keys has an element that's a map type"),
        ({"set": [["x"]]}, "element 0: not supported: associative list with lists as elements"),
        ({"ports": [None]}, "element 0: associative list with keys may not have a null element"),
        ({"ports": [5]}, "element 0: associative list with keys may not have non-map elements"),
    ],
)
def test_invalid_items_of_sets_and_maps_are_errors(spec: Document, problem: str) -> None:
    with pytest.raises(SchemaMismatchError, match=f"^{problem}$"):
        all_fields(THING.root, thing(**spec))


def test_an_item_may_not_omit_all_keys() -> None:
    schema = {
        "type": "object",
        "properties": {
            "l": {
                "type": "array",
                "items": {"type": "object"},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a", "b"],
            }
        },
    }
    root = custom_kind_schemas("Thing", {"g/v1": schema})["g/v1"].root
    with pytest.raises(
        SchemaMismatchError, match=r'omits all key fields \["a" "b"\] \(and doesn\'t have default values'
    ):
        all_fields(root, {"l": [{"c": 1}]})
    assert shown(all_fields(root, {"l": [{"b": 1}]}))[-1] == ".l[b=1].b", "a key without a value is left out"


def test_all_fields_without_a_schema_are_deduced_from_values() -> None:
    assert shown(all_fields(DEDUCED, {"a": {"b": [1, {"c": 2}]}})) == [".a", ".a.b"]


def test_all_fields_differ_for_documents_with_different_fields() -> None:
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {}, "strategy": {"type": "Recreate"}}
    other = {**spec, "strategy": {"rollingUpdate": {"maxSurge": 1}}}
    assert shown(all_fields(DEPLOYMENT.root, {"spec": spec})) != shown(all_fields(DEPLOYMENT.root, {"spec": other}))
