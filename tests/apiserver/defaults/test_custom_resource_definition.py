"""What a definition means where it says nothing."""

from __future__ import annotations

from mooring.apiserver.defaults.custom_resource_definition import default_definition


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
