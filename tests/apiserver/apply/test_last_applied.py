"""From client-side to server-side apply."""

from __future__ import annotations

import json

import pytest

from mooring.apiserver.apply.last_applied import (
    ANNOTATION,
    ANNOTATIONS_BYTES_MAX,
    applied_by_client,
    renew_annotation,
)
from tests.apiserver.apply.builders import CONFIG_MAP, config_map, shown


@pytest.mark.parametrize(
    ("annotation", "fields"),
    [
        pytest.param(json.dumps(config_map({"a": "1", "b": "2"})), ".data.a", id="what nobody changed since"),
        pytest.param("", None, id="no configuration"),
        pytest.param("{", None, id="no JSON"),
        pytest.param("[]", None, id="no object"),
        pytest.param('{"apiVersion":"v2"}', None, id="another version"),
        pytest.param('{"apiVersion":"v1","data":5}', None, id="no config map"),
    ],
)
def test_what_the_client_applied(annotation: str, fields: str | None) -> None:
    live = config_map({"a": "1", "b": "3"}, annotations={ANNOTATION: annotation})
    found = applied_by_client(CONFIG_MAP, "v1", live)
    assert (None if found is None else [path for path in shown(found) if path.startswith(".data")]) == (
        None if fields is None else [fields]
    )


def test_the_annotation_follows() -> None:
    document = config_map({"a": "1"}, annotations={ANNOTATION: "old", "x": "y"})
    renew_annotation(document, config_map({"a": "<"}, annotations={ANNOTATION: "z", "k": "v"}))
    assert document["metadata"]["annotations"] == {
        "x": "y",
        ANNOTATION: '{"apiVersion":"v1","data":{"a":"\\u003c"},"kind":"ConfigMap",'
        '"metadata":{"annotations":{"k":"v"},"name":"c"}}\n',
    }


def test_no_annotation_is_begun() -> None:
    document = config_map({"a": "1"})
    renew_annotation(document, config_map({"a": "1"}))
    assert document == config_map({"a": "1"})


def test_an_annotation_that_is_too_long_goes() -> None:
    document = config_map({"a": "1"}, annotations={ANNOTATION: "old"})
    renew_annotation(document, config_map({"a": "x" * ANNOTATIONS_BYTES_MAX}))
    assert document["metadata"]["annotations"] == {}
