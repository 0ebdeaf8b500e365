"""Tests of kinds.custom_resource_definition.strategy."""

from __future__ import annotations

from mooring.api.kinds import CUSTOM_RESOURCE_DEFINITION
from mooring.apiserver.access.users import User
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.custom_resource_definition.strategy import (
    CustomResourceDefinitionStrategy,
    default_definition,
)
from tests.apiserver.custom.definitions import definition, fields, version


def test_names_follow_from_others() -> None:
    versions = [{"name": "v1", "storage": False}, {"name": "v2", "storage": True}]
    obj = {"metadata": {}, "spec": {"names": {"plural": "things", "kind": "Thing"}, "versions": versions}}
    default_definition(obj)
    default_definition(obj)
    assert obj["spec"]["names"] == {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"}
    assert obj["spec"]["conversion"] == {"strategy": "None"}
    assert obj["status"] == {"storedVersions": ["v2"]}


def test_webhooks_are_called_on_the_usual_port() -> None:
    service = {"name": "a", "namespace": "b"}
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": {"service": service}}}
    default_definition({"spec": {"names": {}, "versions": [], "conversion": conversion}})
    assert service == {"name": "a", "namespace": "b", "port": 443}


STRATEGY = CustomResourceDefinitionStrategy(CUSTOM_RESOURCE_DEFINITION)


def call() -> Call:
    return Call("create", CUSTOM_RESOURCE_DEFINITION, User("u"), 0.0, "now")


def test_a_new_definition_has_a_fresh_status() -> None:
    obj = definition()
    STRATEGY.prepare_for_create(obj, call())
    assert obj["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }
    assert STRATEGY.validate(obj, call()) == []


def test_a_new_storage_version_is_noted() -> None:
    old, obj = definition(), definition(version(storage=False), version(name="v2", storage=True))
    STRATEGY.prepare_for_update(obj, old, call())
    assert obj["status"]["storedVersions"] == ["v1", "v2"]
    assert obj["metadata"]["generation"] == 2
    assert old["status"]["storedVersions"] == ["v1"]


def test_new_unknown_formats_are_warned_of() -> None:
    obj = definition(version(fields(a={"type": "string", "format": "foo"})))
    assert STRATEGY.warnings_on_create(obj, call()) == ['unrecognized format "foo"']
    assert STRATEGY.warnings_on_update(obj, obj, call()) == []


def test_writing_the_status_keeps_the_spec() -> None:
    status = STRATEGY.subresources["status"]
    old, obj = definition(), definition(scope="Cluster")
    status.prepare_for_update(obj, old, call())
    assert obj["spec"] == old["spec"]
    obj["status"]["acceptedNames"]["plural"] = "A_"
    assert [error.field for error in status.validate_update(obj, old, call())] == ["status.acceptedNames.plural"]
