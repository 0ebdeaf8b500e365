"""Tests of kinds.limit_range."""

from __future__ import annotations

import re

import pytest

from mooring.api.document import Document
from mooring.api.kinds import LIMIT_RANGE
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.kinds.limit_range import validate_limit_range
from tests.apiserver.core_documents import changed, created, document, messages, strategy


@pytest.mark.parametrize(
    ("bounds", "defaults"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({"max": {"cpu": "2"}}, {"default": {"cpu": "2"}, "defaultRequest": {"cpu": "2"}}, id="max"),
        pytest.param({"min": {"cpu": "1"}}, {"defaultRequest": {"cpu": "1"}}, id="min"),
        pytest.param(
            {"min": {"cpu": "1"}, "max": {"cpu": "3"}, "default": {"cpu": "2"}},
            {"default": {"cpu": "2"}, "defaultRequest": {"cpu": "2"}},
            id="a default limit is also requested",
        ),
    ],
)
def test_limits_of_containers_are_defaulted(bounds: Document, defaults: Document) -> None:
    limit_range: Document = {"spec": {"limits": [{"type": "Container", **bounds}, {"type": "Pod", **bounds}]}}
    strategy_of(LIMIT_RANGE).default(limit_range)
    strategy_of(LIMIT_RANGE).default(limit_range)
    assert limit_range["spec"]["limits"] == [{"type": "Container", **bounds, **defaults}, {"type": "Pod", **bounds}]


def test_default_rounds_amounts_up_to_milli_units() -> None:
    limit_range: Document = {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "0.0001"}}]}}
    strategy_of(LIMIT_RANGE).default(limit_range)
    assert limit_range["spec"]["limits"][0]["max"] == {"cpu": "1m"}


ITEM = "spec.limits[0]"


@pytest.mark.parametrize(
    ("item", "errors"),
    [
        pytest.param({"type": "Container", "max": {"cpu": "1"}}, [], id="a maximum"),
        pytest.param({"type": "example.com/x", "max": {"example.com/y": "1"}}, [], id="a qualified type"),
        pytest.param(
            {"type": "Odd"},
            [f'{ITEM}.type: Invalid value: "Odd": must be a standard limit type or fully qualified'],
            id="an unknown type",
        ),
        pytest.param(
            {"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}},
            [f'{ITEM}.min[cpu]: Invalid value: "2": min value 2 is greater than max value 1'],
            id="min above max",
        ),
        pytest.param(
            {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "2"}},
            [
                f'{ITEM}.defaultRequest[cpu]: Invalid value: "2": '
                "default request value 2 is greater than default limit value 1"
            ],
            id="a default request above the default limit",
        ),
        pytest.param(
            {"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}},
            [f'{ITEM}.default[cpu]: Invalid value: "1": default value 2 is greater than max value 1'],
            id="default above max",
        ),
        pytest.param(
            {"type": "Pod", "default": {"cpu": "1"}},
            [f"{ITEM}.default: Forbidden: may not be specified when `type` is 'Pod'"],
            id="defaults for pods",
        ),
        pytest.param(
            {"type": "PersistentVolumeClaim"},
            [
                f"{ITEM}.limits: Required value: either minimum or maximum storage value is required, "
                "but neither was provided"
            ],
            id="claims without a bound",
        ),
        pytest.param(
            {"type": "Pod", "maxLimitRequestRatio": {"cpu": "500m"}},
            [f'{ITEM}.maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1'],
            id="a ratio below one",
        ),
        pytest.param(
            {"type": "Pod", "min": {"cpu": "1"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "3"}},
            [f'{ITEM}.maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.000000'],
            id="a ratio above max divided by min",
        ),
        pytest.param(
            {"type": "Pod", "min": {"cpu": "0"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "3"}},
            [],
            id="a ratio with a minimum of zero",
        ),
        pytest.param(
            {"type": "Container", "default": {"example.com/gpu": "2"}, "defaultRequest": {"example.com/gpu": "1"}},
            [
                f'{ITEM}.defaultRequest[example.com/gpu]: Invalid value: "1": '
                "default value 2 must equal to defaultRequest value 1 in example.com/gpu"
            ],
            id="an extended resource with different default and defaultRequest",
        ),
    ],
)
def test_limits_are_validated(item: Document, errors: list[str]) -> None:
    assert messages(validate_limit_range(document(LIMIT_RANGE, spec={"limits": [item]}))) == errors


def test_limit_types_must_be_unique() -> None:
    limits = [{"type": "Pod", "max": {"cpu": "1"}}] * 2
    assert messages(validate_limit_range(document(LIMIT_RANGE, spec={"limits": limits}))) == [
        'spec.limits[1].type: Duplicate value: "Pod"'
    ]


def test_unknown_resources_are_rejected() -> None:
    errors = messages(
        validate_limit_range(document(LIMIT_RANGE, spec={"limits": [{"type": "Pod", "max": {"gpu": "1"}}]}))
    )
    assert [error.rpartition(": ")[2] for error in errors] == [
        "must be a standard resource type or fully qualified",
        "must be a standard resource for containers",
    ]


def test_a_limit_range_without_a_name_gets_a_random_one() -> None:
    made = document(LIMIT_RANGE, {"name": "", "uid": "01234567-89ab-4cde-8f01-23456789abcd"})
    assert created(LIMIT_RANGE, made) == []
    name = made["metadata"]["name"]
    assert re.fullmatch("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}", name)
    assert name != made["metadata"]["uid"]


def test_an_update_is_validated_like_a_new_object() -> None:
    errors, _ = changed(LIMIT_RANGE, document(LIMIT_RANGE), spec={"limits": [{"type": "Odd"}]})
    assert len(errors) == 1
    assert strategy(LIMIT_RANGE).allows_create_on_update
