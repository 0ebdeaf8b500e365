"""Tests of kinds.custom_resource_definition.conversion."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.custom_resource_definition.conversion import (
    has_known_review,
    validate_bundle,
    validate_conversion,
)


def webhook(client: Document | None = None, versions: list[str] | None = None) -> Document:
    held: Document = {"conversionReviewVersions": ["v1"] if versions is None else versions}
    return {"strategy": "Webhook", "webhook": held | ({"clientConfig": client} if client is not None else {})}


SERVICE = {"name": "a", "namespace": "b", "port": 443}


@pytest.mark.parametrize(
    ("conversion", "found"),
    [
        pytest.param({"strategy": "None"}, [], id="none"),
        pytest.param(webhook({"service": SERVICE}), [], id="a webhook"),
        pytest.param(
            {"strategy": "Foo"},
            ['c.strategy: Unsupported value: "Foo": supported values: "None", "Webhook"'],
            id="unknown",
        ),
        pytest.param({}, ["c.strategy: Required value"], id="nothing said"),
        pytest.param(
            {**webhook({"url": "https://a"}), "strategy": "None"},
            [
                "c.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook",
                "c.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook",
            ],
            id="a webhook that is not asked for",
        ),
        pytest.param(
            webhook(versions=[]),
            [
                "c.webhookClientConfig: Required value: required when strategy is set to Webhook",
                "c.conversionReviewVersions: Required value",
            ],
            id="a webhook that is not there",
        ),
        pytest.param(
            webhook({"url": "https://a", "service": SERVICE}),
            ["c.webhookClientConfig: Required value: exactly one of url or service is required"],
            id="two ways to it",
        ),
        pytest.param(
            webhook({"service": {**SERVICE, "name": ""}}),
            ["c.webhookClientConfig.service.namespace: Required value"],
            id="names are confused",
        ),
        pytest.param(
            webhook({"service": SERVICE}, ["v3", "v3"]),
            [
                'c.conversionReviewVersions[1]: Invalid value: "v3": duplicate version',
                'c.conversionReviewVersions: Invalid value: ["v3","v3"]: must include at least one of v1, v1beta1',
            ],
            id="versions that nobody knows",
        ),
    ],
)
def test_conversions(conversion: Document, found: list[str]) -> None:
    errors = validate_conversion(conversion, "c", needs_known_review=True, may_have_bad_bundle=True)
    assert [error.message for error in errors] == found


def test_addresses() -> None:
    asked: dict[str, Any] = {"needs_known_review": True, "may_have_bad_bundle": True}
    errors = validate_conversion(webhook({"url": "http://u@h/x?y#z"}), "c", **asked)
    assert [error.detail for error in errors] == [
        "'https' is the only allowed URL scheme; desired format: https://host[/path]",
        "user information is not permitted in the URL",
        "fragments are not permitted in the URL",
        "query parameters are not permitted in the URL",
    ]
    errors = validate_conversion(webhook({"service": {**SERVICE, "path": "a//B_", "port": 0}}), "c", **asked)
    assert [error.field.rpartition(".")[2] for error in errors] == ["port", "path", "path", "path", "path"]


def test_bundles() -> None:
    assert len(validate_bundle("bm90IHBlbQ==", "b")) == 1
    assert has_known_review(None)
    assert not has_known_review(webhook({}, ["v7"]))
