"""Tests of kinds.event."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CORE_EVENT, EVENT
from mooring.apiserver.kinds.event import validate_event, validate_event_update, validate_series, validate_strict_event
from mooring.apiserver.strategy import DefaultPropagation
from tests.apiserver.core_documents import changed, created, document, messages, strategy

NEW: Document = {
    "involvedObject": {"namespace": "web"},
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingComponent": "example.com/controller",
    "reportingInstance": "i",
    "action": "Binding",
    "reason": "Scheduled",
    "type": "Normal",
}
NAMESPACE_MISMATCH = 'involvedObject.namespace: Invalid value: "{}": does not match event.namespace'


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        pytest.param({"involvedObject": {"namespace": "web"}}, [], id="an old event about its own namespace"),
        pytest.param(
            {"involvedObject": {"namespace": "db"}},
            [NAMESPACE_MISMATCH.format("db")],
            id="an old event about another namespace",
        ),
        pytest.param(
            {"involvedObject": {}}, [NAMESPACE_MISMATCH.format("")], id="an old event about a cluster-scoped object"
        ),
        pytest.param(NEW, [], id="a new event"),
        pytest.param({**NEW, "involvedObject": {"namespace": "db"}}, [], id="a new event about another namespace"),
        pytest.param(
            {**NEW, "involvedObject": {}},
            [NAMESPACE_MISMATCH.format("")],
            id="a new event about a cluster-scoped object",
        ),
        pytest.param({**NEW, "action": ""}, ["action: Required value"], id="a new event without an action"),
        pytest.param(
            {**NEW, "reportingInstance": "x" * 129},
            ['reportingInstance: Invalid value: "": can have at most 128 characters'],
            id="a new event from an instance with a long name",
        ),
        pytest.param(
            {**NEW, "message": "x" * 1025},
            ['message: Invalid value: "": can have at most 1024 characters'],
            id="a new event with a long message",
        ),
    ],
)
def test_events_are_validated(body: Document, errors: list[str]) -> None:
    assert messages(validate_event(document(CORE_EVENT, **body), CORE_EVENT)) == errors


def test_errors_name_the_reporter_field_of_each_api() -> None:
    event = document(CORE_EVENT, **{**NEW, "reportingComponent": ""})
    assert messages(validate_event(event, CORE_EVENT))[0] == "reportingComponent: Required value"
    assert messages(validate_event(event, EVENT))[0] == "reportingController: Required value"


@pytest.mark.parametrize(
    ("change", "errors"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param({"eventTime": None}, ["eventTime: Required value"], id="no time"),
        pytest.param({"type": "Odd"}, ['type: Invalid value: "": has invalid value: Odd'], id="an unknown type"),
        pytest.param({"count": 1}, ['count: Invalid value: "": needs to be unset'], id="a deprecated field"),
        pytest.param(
            {"source": {"host": "h"}}, ['source: Invalid value: "": needs to be unset'], id="another deprecated field"
        ),
    ],
)
def test_new_events_of_events_k8s_io_are_validated_strictly(change: Document, errors: list[str]) -> None:
    assert messages(validate_strict_event(document(CORE_EVENT, **{**NEW, **change}))) == errors


def test_a_series_needs_a_count_of_two_and_a_last_time() -> None:
    assert messages(validate_series({"series": {"count": 1}})) == [
        'series.count: Invalid value: "": should be at least 2',
        "series.lastObservedTime: Required value",
    ]
    assert validate_series({}) == []


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"series": {"count": 2, "lastObservedTime": NEW["eventTime"]}}, [], id="the series may change"),
        pytest.param({"reason": "Other"}, ["reason", "reason"], id="the reason is checked twice"),
        pytest.param({"message": "m"}, ["message"], id="the message"),
        pytest.param({"involvedObject": {}}, ["involvedObject"], id="the involved object"),
        pytest.param({"related": {"kind": "Pod"}}, ["related"], id="the related object"),
        pytest.param({"reportingComponent": "c"}, ["reportingController"], id="the reporter"),
        pytest.param({"source": {"host": "h"}}, ["source"], id="the source"),
    ],
)
def test_immutable_fields_of_events_k8s_io(change: Document, fields: list[str]) -> None:
    errors = validate_event_update(document(CORE_EVENT, **{**NEW, **change}), document(CORE_EVENT, **NEW))
    assert [error.field for error in errors] == fields
    assert all(error.detail == "field is immutable" for error in errors)


SERVED: Document = {
    "regarding": {"namespace": "web", "name": "p"},
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "c",
    "reportingInstance": "i",
    "action": "a",
    "reason": "r",
    "type": "Normal",
}


def test_only_events_k8s_io_validates_new_events_strictly() -> None:
    assert created(EVENT, document(EVENT, **SERVED)) == []
    assert created(EVENT, document(EVENT, {"name": "A_"}, **{**SERVED, "deprecatedCount": 1}))[1:] == [
        'count: Invalid value: "": needs to be unset'
    ]
    assert created(CORE_EVENT, document(CORE_EVENT, {"name": "A_"}, involvedObject={"namespace": "web"})) == []


def test_an_update_through_events_k8s_io_changes_only_the_series() -> None:
    old = document(EVENT, **SERVED)
    assert changed(EVENT, old, note="n")[0] == ['message: Invalid value: "n": field is immutable']
    core = document(CORE_EVENT, involvedObject={"namespace": "web"})
    assert changed(CORE_EVENT, core, message="n")[0] == []


def test_selectable_fields_of_events_have_the_names_of_their_api() -> None:
    core = document(CORE_EVENT, involvedObject={"kind": "Pod", "name": "p"}, source={"component": "s"}, type="Normal")
    fields = strategy(CORE_EVENT).selectable_fields(core)
    assert fields["involvedObject.name"] == "p"
    assert fields["source"] == "s"
    served = strategy(EVENT).selectable_fields(document(EVENT, **SERVED))
    assert served["regarding.name"] == "p"
    assert served["reportingController"] == "c"
    assert "source" not in served


def test_events_have_no_dependents_and_allow_create_on_update() -> None:
    assert strategy(EVENT).dependents is DefaultPropagation.UNSUPPORTED
    assert strategy(CORE_EVENT).allows_create_on_update
