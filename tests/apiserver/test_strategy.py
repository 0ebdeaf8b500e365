"""The default strategy: fields that each subresource may change, generation, validation and deletion."""

from __future__ import annotations

from copy import deepcopy

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, NODE, POD, Kind
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.fields import FieldError, required
from tests.apiserver.registry.fixture import NOW, call

CALL = call(POD, "p")


def stored(kind: Kind, **parts: object) -> Document:
    metadata: Document = {"name": "p", "uid": "u", "creationTimestamp": NOW, "resourceVersion": "3"}
    if kind.is_namespaced:
        metadata["namespace"] = "team"
    return {"metadata": metadata, **deepcopy(parts)}


@pytest.mark.parametrize(
    ("kind", "prepared"),
    [
        pytest.param(POD, {"spec": {}, "status": {}, "generation": 1}, id="with status and generation"),
        pytest.param(NODE, {"spec": {}, "status": {}}, id="with status"),
        pytest.param(CONFIG_MAP, {"spec": {}, "status": {"phase": "mine"}}, id="without status"),
    ],
)
def test_create_resets_the_status(kind: Kind, prepared: Document) -> None:
    obj = stored(kind, spec={}, status={"phase": "mine"})
    Strategy(kind).prepare_for_create(obj, CALL)
    shown = {field: value for field, value in obj.items() if field != "metadata"}
    if "generation" in obj["metadata"]:
        shown["generation"] = obj["metadata"]["generation"]
    assert shown == prepared


@pytest.mark.parametrize(
    ("through", "changed"),
    [
        pytest.param("", {"spec": {"a": 2}, "status": {"phase": "old"}}, id="the object"),
        pytest.param("status", {"spec": {"a": 1}, "status": {"phase": "new"}}, id="the status"),
    ],
)
def test_each_subresource_changes_only_its_part(through: str, changed: Document) -> None:
    main = Strategy(NODE)
    strategy = main.subresources[through] if through else main
    old = stored(NODE, spec={"a": 1}, status={"phase": "old"})
    before = deepcopy(old)
    obj = stored(NODE, spec={"a": 2}, status={"phase": "new"})
    strategy.prepare_for_update(obj, old, CALL)
    assert {field: obj[field] for field in ("spec", "status")} == changed
    assert old == before, "the stored object was changed"


def test_an_update_cannot_add_a_status() -> None:
    obj, old = stored(NODE, spec={}, status={"phase": "new"}), stored(NODE, spec={})
    Strategy(NODE).prepare_for_update(obj, old, CALL)
    assert "status" not in obj


@pytest.mark.parametrize(
    ("kind", "change", "generation"),
    [
        pytest.param(POD, {"spec": {"a": 2}}, 8, id="a change of the spec"),
        pytest.param(POD, {"spec": {"a": 1}}, 7, id="the same spec"),
        pytest.param(POD, {"spec": {"a": 1}, "data": {}}, 7, id="a change of another field"),
        pytest.param(NODE, {"spec": {"a": 2}}, 7, id="a kind without a generation"),
    ],
)
def test_the_generation_is_incremented_if_the_spec_changes(kind: Kind, change: Document, generation: int) -> None:
    old, obj = stored(kind, spec={"a": 1}), stored(kind, **change)
    old["metadata"]["generation"] = obj["metadata"]["generation"] = 7
    Strategy(kind).prepare_for_update(obj, old, CALL)
    assert obj["metadata"]["generation"] == generation


def test_an_object_without_a_generation_gets_generation_1_at_its_first_change() -> None:
    old, obj = stored(POD, spec={"a": 1}), stored(POD, spec={"a": 2})
    Strategy(POD).prepare_for_update(obj, old, CALL)
    assert obj["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("kind", "subresource_names", "ignored", "ignored_by_status"),
    [
        pytest.param(POD, {"status"}, (("status",),), (("spec",),), id="a kind with a status"),
        pytest.param(CONFIG_MAP, set(), (), None, id="a kind without a status"),
    ],
)
def test_ignored_fields_have_no_manager(
    kind: Kind, subresource_names: set[str], ignored: object, ignored_by_status: object
) -> None:
    strategy = Strategy(kind)
    assert set(strategy.subresources) == subresource_names
    assert tuple(strategy.ignored_fields) == ignored
    if subresource_names:
        assert tuple(strategy.subresources["status"].ignored_fields) == ignored_by_status
        assert strategy.subresources["status"].subresources == {}, "a status has no subresources"


class Strict(Strategy):
    """Requires a colour, warns of red, and rejects unconditional updates."""

    allows_unconditional_update = False

    def default(self, obj: Document) -> None:
        obj.setdefault("spec", {})["size"] = 1

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return [] if "colour" in obj["spec"] else [required("spec.colour")]

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return ["red is loud"] if obj["spec"].get("colour") == "red" else []


def test_a_status_subresource_uses_the_rules_of_its_strategy() -> None:
    status = Strict(NODE).subresources["status"]
    obj: Document = {}
    status.default(obj)
    assert obj == {"spec": {"size": 1}}
    assert not status.allows_unconditional_update


def test_metadata_is_validated_before_the_body() -> None:
    obj = stored(NODE, spec={})
    obj["metadata"]["name"] = "Not a name"
    assert [error.field for error in Strict(NODE).validate(obj, CALL)] == ["metadata.name", "spec.colour"]


class Lenient(Strategy):
    validates_finalizer_names = False


@pytest.mark.parametrize(
    ("strategy", "errors"), [(Strategy(NODE), 1), (Lenient(NODE), 0)], ids=["validated", "not validated"]
)
def test_a_finalizer_without_a_domain_must_be_a_standard_finalizer(strategy: Strategy, errors: int) -> None:
    obj, old = stored(NODE, spec={}), stored(NODE, spec={})
    obj["metadata"]["finalizers"] = ["odd"]
    assert len(strategy.validate(obj, CALL)) == errors
    assert len(strategy.validate_update(obj, old, CALL)) == errors
    obj["metadata"]["finalizers"] = ["orphan", "example.com/mine"]
    assert strategy.validate(obj, CALL) == []


def test_the_default_strategy_deletes_immediately_and_has_no_selectable_fields() -> None:
    strategy, obj = Strategy(NODE), stored(NODE, spec={})
    assert strategy.graceful_s(obj, 30, CALL) is None
    assert not strategy.is_held(obj)
    assert strategy.selectable_fields(obj) == {}
    assert strategy.warnings_on_delete(is_propagation_said=False) == []
    assert (strategy.allows_create_on_update, strategy.allows_unconditional_update) == (False, True)
