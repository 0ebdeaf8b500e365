"""Errors of applied documents, with the messages of kube-apiserver."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.apply.patch import misfits, misfits_text
from tests.apiserver.apply.builders import CONFIG_MAP, DEPLOYMENT, THING, config_map, thing


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
def test_of_a_config_map(document: Document, error: str) -> None:
    assert misfits_text(misfits(CONFIG_MAP.root, document)) == error


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
def test_of_a_deployment(document: Document, error: str | None) -> None:
    found = misfits(DEPLOYMENT.root, document)
    assert (misfits_text(found) if found else None) == error


@pytest.mark.parametrize(
    "spec", [{"size": 1}, {"size": "1"}, {"free": {"a": [1, {"b": None}]}}, {"text": None}, {"set": None}]
)
def test_what_is_right(spec: dict[str, Any]) -> None:
    assert not misfits(THING.root, thing(**spec))
