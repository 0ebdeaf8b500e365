"""Validation of access reviews reports every error."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.access.review_validation import check_local_review, check_review
from mooring.client.errors import InvalidError

POD: Any = {"verb": "get", "resource": "pods"}
PATH: Any = {"path": "/x", "verb": "get"}
HEAD = '.authorization.k8s.io "" is invalid: '
SELECTOR = "spec.resourceAttributes.labelSelector"
NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    "spec",
    [
        {"user": "a", "resourceAttributes": POD},
        {"groups": ["a"], "nonResourceAttributes": PATH},
        {"user": "a", "resourceAttributes": {**POD, "fieldSelector": {"rawSelector": "a=b"}}},
        {
            "user": "a",
            "resourceAttributes": {**POD, "labelSelector": {"requirements": [{"key": "a", "operator": "?"}]}},
        },
    ],
)
def test_a_sound_review(spec: Document) -> None:
    check_review({"metadata": {"managedFields": [{}], "name": ""}, "spec": spec}, is_about_others=True)


@pytest.mark.parametrize(
    ("review", "errors"),
    [
        pytest.param(
            {"spec": {}},
            "[spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or "
            'resourceAttributes must be specified, spec.user: Invalid value: "": at least one of user or group must '
            "be specified]",
            id="nothing",
        ),
        pytest.param(
            {
                "metadata": {"name": "x"},
                "spec": {"user": "a", "resourceAttributes": POD, "nonResourceAttributes": PATH},
            },
            '[spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: cannot be specified in '
            'combination with resourceAttributes, metadata: Invalid value: {"name":"x"}: must be empty]',
            id="both, and a name",
        ),
        pytest.param(
            {
                "spec": {
                    "user": "a",
                    "resourceAttributes": {
                        "fieldSelector": {"requirements": [{"operator": "In"}]},
                        "labelSelector": {},
                    },
                }
            },
            "[spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must be specified, "
            "spec.resourceAttributes.fieldSelector.requirements[0].values: Required value: must be specified when "
            "`operator` is 'In' or 'NotIn', "
            f"{SELECTOR}.requirements: Required value: when {SELECTOR} is specified, requirements or rawSelector is "
            "required]",
            id="selectors without content",
        ),
        pytest.param(
            {
                "spec": {
                    "user": "a",
                    "resourceAttributes": {
                        "labelSelector": {
                            "rawSelector": "a",
                            "requirements": [{"key": "-b", "operator": "Exists", "values": ["x"]}],
                        }
                    },
                }
            },
            f'[{SELECTOR}.rawSelector: Invalid value: "a": may not specified at the same time as requirements, '
            f"{SELECTOR}.requirements[0].values: Forbidden: may not be specified when `operator` is 'Exists' or "
            f"'DoesNotExist', {SELECTOR}.requirements[0].key: Invalid value: \"-b\": {NAME_RULE}]",
            id="selectors with too much",
        ),
    ],
)
def test_errors_of_a_review(review: Document, errors: str) -> None:
    with pytest.raises(InvalidError) as rejected:
        check_review(review, is_about_others=True)
    assert rejected.value.message == HEAD + errors
    assert rejected.value.details == {"group": "authorization.k8s.io"}
    assert len(rejected.value.causes) == errors.count("value: ") + errors.count("Forbidden: ")


def test_a_review_of_oneself_needs_no_user() -> None:
    check_review({"spec": {"resourceAttributes": POD}}, is_about_others=False)
    with pytest.raises(InvalidError) as rejected:
        check_review({"spec": {}}, is_about_others=False)
    assert [cause.field for cause in rejected.value.causes] == ["spec.resourceAttributes"]


@pytest.mark.parametrize(
    ("metadata", "spec", "errors"),
    [
        pytest.param(
            {"namespace": "web"},
            {"user": "a", "resourceAttributes": POD},
            'spec.resourceAttributes.namespace: Invalid value: "": must match metadata.namespace',
            id="no namespace in the question",
        ),
        pytest.param(
            {"namespace": "web"},
            {"user": "a", "nonResourceAttributes": PATH},
            'spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: disallowed on this kind of request',
            id="a path is in no namespace",
        ),
        pytest.param(
            {"namespace": "web", "labels": {"a": "b"}, "name": "x"},
            {"user": "a", "resourceAttributes": {**POD, "namespace": "web"}},
            'metadata: Invalid value: {"name":"x","namespace":"web","labels":{"a":"b"}}: '
            "must be empty except for namespace",
            id="a name",
        ),
    ],
)
def test_errors_of_a_local_review(metadata: Document, spec: Document, errors: str) -> None:
    with pytest.raises(InvalidError) as rejected:
        check_local_review({"metadata": metadata, "spec": spec})
    assert rejected.value.message == HEAD + errors


def test_a_sound_local_review() -> None:
    spec = {"user": "a", "resourceAttributes": {**POD, "namespace": "web"}}
    check_local_review({"metadata": {"namespace": "web"}, "spec": spec})
