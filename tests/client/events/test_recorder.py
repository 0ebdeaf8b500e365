"""Events of events.k8s.io: format, names, references, and the spam filter."""

from __future__ import annotations

import logging

import pytest

from mooring.api.views.meta import ObjectMeta, ObjectReference
from mooring.api.views.pod import Pod
from mooring.client.events import (
    NOTE_BYTES_MAX,
    EventKey,
    EventRecord,
    EventRecorder,
    SeriesFormat,
    SpamFilter,
    event_name,
    reference_to,
    shortened,
)
from mooring.kit.clock import VirtualClock

POD = ObjectReference(api_version="v1", kind="Pod", namespace="shop", name="web", uid="u1", resource_version="7")
NODE = ObjectReference(api_version="v1", kind="Node", name="n1", uid="u2")


def key(regarding: ObjectReference = POD, *, related: ObjectReference | None = None, type: str = "Normal") -> EventKey:
    return (type, "Binding", "Scheduled", "default-scheduler", "default-scheduler-host", regarding, related)


FORMAT = SeriesFormat()


def record_of(key: EventKey, name: str, note: str, seen_s: float) -> EventRecord:
    return EventRecord(key, key, name, note, seen_s)


def test_the_body_of_an_event_of_kube_scheduler() -> None:
    record = record_of(key(related=NODE), "web.18", "Successfully assigned shop/web to n1", 1_767_225_600.25)
    assert FORMAT.body(record) == {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": "web.18", "namespace": "shop"},
        "eventTime": "2026-01-01T00:00:00.250000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {
            "kind": "Pod",
            "namespace": "shop",
            "name": "web",
            "uid": "u1",
            "apiVersion": "v1",
            "resourceVersion": "7",
        },
        "related": {"kind": "Node", "name": "n1", "uid": "u2", "apiVersion": "v1"},
        "note": "Successfully assigned shop/web to n1",
        "type": "Normal",
    }


def test_a_series_has_a_count_and_a_last_observed_time() -> None:
    record = record_of(key(), "web.18", "note", 0.0)
    record.count, record.last_seen_s = 3, 1_767_225_601.0
    series = {"count": 3, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}
    assert FORMAT.patch(record) == {"series": series}
    assert FORMAT.body(record)["series"] == series


def test_events_about_cluster_scoped_objects_have_the_namespace_default() -> None:
    assert record_of(key(NODE), "n1.18", "note", 0.0).namespace == "default"


def test_reference_to_names_uid_and_resource_version() -> None:
    metadata = ObjectMeta(name="web", namespace="shop", uid="u1", resource_version="7")
    assert reference_to(Pod(metadata=metadata)) == POD


@pytest.mark.parametrize(
    ("object_name", "name"),
    [
        ("web", "web.ff"),
        ("node-1.example.com", "node-1.example.com.ff"),
        ("system:node", None),
        ("UPPER", None),
        ("x" * 250, "x" * 250 + ".ff"),
        ("x" * 251, None),
    ],
)
def test_event_name_is_none_if_it_would_be_invalid(object_name: str, name: str | None) -> None:
    assert event_name(object_name, 255) == name


@pytest.mark.parametrize(
    ("note", "wanted"),
    [
        pytest.param("short", "short", id="a short note"),
        pytest.param("x" * 1024, "x" * 1024, id="the maximum length"),
        pytest.param("x" * 1025, "x" * 1020 + " ...", id="one byte too long"),
        pytest.param("ü" * 512, "ü" * 512, id="bytes are counted"),
        pytest.param("x" + "ü" * 600, "x" + "ü" * 509 + " ...", id="characters are not split"),
    ],
)
def test_long_notes_are_shortened_to_the_limit_of_the_api(note: str, wanted: str) -> None:
    assert shortened(note) == wanted
    assert len(shortened(note).encode()) <= NOTE_BYTES_MAX


def test_a_recorder_adds_its_controller_and_instance() -> None:
    recorded: list[tuple[EventKey, str]] = []
    recorder = EventRecorder(
        lambda key, note: recorded.append((key, note)), "default-scheduler", "default-scheduler-host"
    )
    recorder.event(POD, type="Normal", reason="Scheduled", action="Binding", note="hello")
    assert recorded == [(key(), "hello")]


def test_an_unknown_type_is_not_recorded(caplog: pytest.LogCaptureFixture) -> None:
    recorder = EventRecorder(lambda key, note: pytest.fail("recorded"), "c", "i")
    with caplog.at_level(logging.ERROR):
        recorder.event(POD, type="Alarming", reason="R", action="A", note="n")  # type: ignore[arg-type]
    assert "its type is 'Alarming'" in caplog.text


def test_the_spam_filter_limits_events_by_source_and_object() -> None:
    clock = VirtualClock()
    spam = SpamFilter(clock, burst=2, refill_s=300.0)
    assert [spam.is_allowed(FORMAT.spam_key(key())) for _ in range(3)] == [True, True, False]
    assert spam.is_allowed(FORMAT.spam_key(key(NODE)))
    assert spam.is_allowed(FORMAT.spam_key(key(type="Warning")))
    clock.advance_to(300.0)
    assert [spam.is_allowed(FORMAT.spam_key(key())) for _ in range(2)] == [True, False]


def test_the_spam_filter_evicts_the_least_recently_used_source() -> None:
    spam = SpamFilter(VirtualClock(), burst=1, refill_s=300.0, sources_max=2)
    others = [ObjectReference(kind="Pod", name=name) for name in "ab"]
    assert spam.is_allowed(FORMAT.spam_key(key()))
    assert spam.is_allowed(FORMAT.spam_key(key(others[0])))
    assert not spam.is_allowed(FORMAT.spam_key(key()))  # and makes this source the most recently used
    assert spam.is_allowed(FORMAT.spam_key(key(others[1])))
    assert not spam.is_allowed(FORMAT.spam_key(key()))
    assert spam.is_allowed(FORMAT.spam_key(key(others[0])))
