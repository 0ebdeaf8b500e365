"""Query parameters of requests: parsing and validation."""

from __future__ import annotations

import pytest

from mooring.apiserver.call import FieldValidation
from mooring.apiserver.http.query import ListOptions, Query, check_list_options
from mooring.client.errors import BadRequestError, InvalidError


def query(**parameters: str) -> Query:
    return Query({name: [value] for name, value in parameters.items()})


@pytest.mark.parametrize(
    ("text", "is_set"),
    [
        *(("true", True), ("1", True), ("perhaps", True), ("", True), ("00", True)),
        *(("false", False), ("False", False), ("FALSE", False), ("0", False)),
    ],
)
def test_a_flag_is_true_unless_its_value_is_false_or_0(text: str, is_set: bool) -> None:
    assert query(watch=text).flag("watch") is is_set


def test_absent_parameters() -> None:
    assert query().flag("watch") is False
    assert query().optional_flag("sendInitialEvents") is None
    assert query().integer("limit") is None


@pytest.mark.parametrize(
    ("text", "expected_message"),
    [
        ("many", 'strconv.ParseInt: parsing "many": invalid syntax'),
        ("", 'strconv.ParseInt: parsing "": invalid syntax'),
        ("9223372036854775808", 'strconv.ParseInt: parsing "9223372036854775808": value out of range'),
    ],
)
def test_invalid_integers_are_rejected(text: str, expected_message: str) -> None:
    with pytest.raises(BadRequestError) as raised:
        query(limit=text).integer("limit")
    assert raised.value.message == expected_message


def test_a_negative_limit_means_no_limit() -> None:
    assert query(limit="-5").list_options().limit == 0


@pytest.mark.parametrize(
    ("options", "expected_message"),
    [
        pytest.param(
            ListOptions(match="Exact"),
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
            id="a match without a version",
        ),
        pytest.param(
            ListOptions(match="Exact", revision="0"),
            'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
            id="an exact match of revision 0",
        ),
        pytest.param(
            ListOptions(initial_events=True),
            "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
            id="initial events of a list",
        ),
        pytest.param(
            ListOptions(is_watch=True, match="NotOlderThan"),
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is "
            "provided",
            id="a watch with a match",
        ),
    ],
)
def test_invalid_combinations_of_list_options(options: ListOptions, expected_message: str) -> None:
    with pytest.raises(InvalidError) as raised:
        check_list_options(options)
    assert raised.value.message == f'ListOptions.meta.k8s.io "" is invalid: {expected_message}'


def test_write_options_are_parsed() -> None:
    options = query(dryRun="All", fieldManager="me", fieldValidation="Strict").write_options("CreateOptions")
    assert (options.is_dry_run, options.field_manager) == (True, "me")
    assert options.field_validation is FieldValidation.STRICT
    assert query().write_options("UpdateOptions").field_validation is FieldValidation.WARN


@pytest.mark.parametrize(
    ("parameters", "is_apply", "expected_message"),
    [
        ({"dryRun": "Some"}, False, 'dryRun: Unsupported value: ["Some"]: supported values: "All"'),
        ({}, True, "fieldManager: Required value: is required for apply patch"),
        ({"force": "true"}, False, "force: Forbidden: may not be specified for non-apply patch"),
        ({"fieldManager": "m" * 129}, False, "fieldManager: Too long: may not be more than 128 bytes"),
    ],
)
def test_invalid_write_options_are_rejected(parameters: dict[str, str], is_apply: bool, expected_message: str) -> None:
    with pytest.raises(InvalidError) as raised:
        query(**parameters).write_options("PatchOptions", is_apply=is_apply)
    assert raised.value.message == f'PatchOptions.meta.k8s.io "" is invalid: {expected_message}'


@pytest.mark.parametrize(
    ("text", "expected_message"),
    [
        ("bad", 'time: invalid duration "bad"'),
        ("1", 'time: missing unit in duration "1"'),
        ("1y", 'time: unknown unit "y" in duration "1y"'),
    ],
)
def test_invalid_timeouts_are_rejected(text: str, expected_message: str) -> None:
    with pytest.raises(BadRequestError) as raised:
        query(timeout=text).check_timeout()
    assert raised.value.message == f"invalid timeout specified in the request URL - {expected_message}"


@pytest.mark.parametrize("text", ["", "0", "10s", "-1s", "1h30m"])
def test_valid_timeouts_are_accepted(text: str) -> None:
    query(timeout=text).check_timeout()


@pytest.mark.parametrize(
    ("parameters", "begins_with_state"),
    [
        ({"watch": "1"}, True),
        ({"watch": "1", "resourceVersion": "0"}, True),
        ({"watch": "1", "resourceVersion": "7"}, None),
        ({"watch": "1", "sendInitialEvents": "false"}, False),
        ({}, None),
    ],
)
def test_a_watch_without_a_revision_requests_initial_events(
    parameters: dict[str, str], begins_with_state: bool | None
) -> None:
    assert query(**parameters).list_options().initial_events is begins_with_state


def test_the_export_parameter_is_rejected() -> None:
    query(export="false").check_export()
    with pytest.raises(BadRequestError, match="no longer supported"):
        query(export="true").check_export()
