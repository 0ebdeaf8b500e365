"""Both kinds of events are judged in one form, each by the rules of its API."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.kinds import CORE_EVENT, EVENT
from mooring.apiserver.strategy import Dependents
from tests.apiserver.core_documents import changed, created, document, strategy

SERVED: Document = {
    "regarding": {"namespace": "web", "name": "p"},
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "c",
    "reportingInstance": "i",
    "action": "a",
    "reason": "r",
    "type": "Normal",
}


def test_the_newer_api_is_strict() -> None:
    assert created(EVENT, document(EVENT, **SERVED)) == []
    assert created(EVENT, document(EVENT, {"name": "A_"}, **{**SERVED, "deprecatedCount": 1}))[1:] == [
        'count: Invalid value: "": needs to be unset'
    ]
    assert created(CORE_EVENT, document(CORE_EVENT, {"name": "A_"}, involvedObject={"namespace": "web"})) == []


def test_an_update_through_the_newer_api_changes_the_series_only() -> None:
    old = document(EVENT, **SERVED)
    assert changed(EVENT, old, note="n")[0] == ['message: Invalid value: "n": field is immutable']
    core = document(CORE_EVENT, involvedObject={"namespace": "web"})
    assert changed(CORE_EVENT, core, message="n")[0] == []


def test_events_are_selected_under_the_names_of_their_api() -> None:
    core = document(CORE_EVENT, involvedObject={"kind": "Pod", "name": "p"}, source={"component": "s"}, type="Normal")
    fields = strategy(CORE_EVENT).selectable_fields(core)
    assert fields["involvedObject.name"] == "p"
    assert fields["source"] == "s"
    served = strategy(EVENT).selectable_fields(document(EVENT, **SERVED))
    assert served["regarding.name"] == "p"
    assert served["reportingController"] == "c"
    assert "source" not in served


def test_events_own_nothing() -> None:
    assert strategy(EVENT).dependents is Dependents.UNSUPPORTED
    assert strategy(CORE_EVENT).allows_create_on_update
