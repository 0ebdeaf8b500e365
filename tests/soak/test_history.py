"""The checker of the soak test, and its hostile requests."""

from __future__ import annotations

from mooring.apiserver.http.request import RequestLimits
from mooring.serving.http.parser import ServerLimits
from tests.soak.history import (
    FILES_GROWTH_MAX,
    MEMORY_GROWTH_BYTES_MAX,
    PodHistory,
    Sample,
    SeenPod,
    Violations,
    WriteHistory,
    check_level,
)
from tests.soak.hostile import hostile_requests

PRESENT = "every acknowledged write is present"
REVISIONS = "revisions never go back"
BOUND = "no pod is bound twice"
OVERCOMMITTED = "no node is over-committed"


def written(*writes: tuple[str, str | None]) -> WriteHistory:
    """Writes that were acknowledged one after the other, from revision 1 on."""
    history = WriteHistory()
    for revision, (name, value) in enumerate(writes, 1):
        history.acknowledge(history.begin(name, value), revision)
    return history


def broken(history: WriteHistory | PodHistory) -> list[str]:
    return [violation.rule for violation in history.violations]


class TestWrites:
    def test_a_history_without_faults_is_clean(self) -> None:
        history = written(("a", "1"), ("b", "1"), ("a", "2"), ("b", None))
        history.check_list({"a": "2"}, 4, 4)
        assert broken(history) == []

    def test_a_lost_write_is_found(self) -> None:
        history = written(("a", "1"))
        history.check_list({}, 1, 1)
        assert [str(violation) for violation in history.violations] == [f"{PRESENT}: a: found nothing, expected 1"]

    def test_an_older_value_is_found(self) -> None:
        history = written(("a", "1"), ("a", "2"))
        history.check_list({"a": "1"}, 2, 2)
        assert broken(history) == [PRESENT]

    def test_a_deleted_object_that_is_back_is_found(self) -> None:
        history = written(("a", "1"), ("a", None))
        history.check_list({"a": "1"}, 2, 2)
        assert broken(history) == [PRESENT]

    def test_an_object_that_was_forgotten_after_its_deletion_and_is_back_is_found(self) -> None:
        history = written(("a", "1"), ("a", None))
        history.forget(history.deleted())
        history.check_list({"a": "1"}, 2, 2)
        assert broken(history) == [PRESENT]

    def test_a_write_without_an_answer_may_have_happened_or_not(self) -> None:
        for found in ({"a": "1"}, {"a": "2"}):
            history = written(("a", "1"))
            history.lose(history.begin("a", "2"))
            history.check_list(found, 2, 1)
            assert broken(history) == []
            assert history.is_abandoned("a")

    def test_a_write_without_an_answer_does_not_excuse_another_value(self) -> None:
        history = written(("a", "1"))
        history.lose(history.begin("a", "2"))
        history.check_list({}, 2, 1)
        assert broken(history) == [PRESENT]

    def test_a_rejected_write_must_not_have_happened(self) -> None:
        history = written(("a", "1"))
        history.reject(history.begin("a", "2"))
        history.check_list({"a": "2"}, 2, 1)
        assert broken(history) == [PRESENT]

    def test_a_write_under_way_is_not_looked_at(self) -> None:
        history = written(("a", "1"))
        history.begin("a", "2")
        history.begin("b", "1")
        history.check_list({"b": "1"}, 2, 1)
        assert broken(history) == []

    def test_a_revision_that_goes_back_is_found(self) -> None:
        history = written(("a", "1"), ("a", "2"))
        history.acknowledge(history.begin("a", "3"), 2)
        assert broken(history) == [REVISIONS]

    def test_writes_at_the_same_time_have_revisions_in_any_order(self) -> None:
        history = WriteHistory()
        first, second = history.begin("a", "1"), history.begin("b", "1")
        history.acknowledge(second, 9)
        history.acknowledge(first, 8)
        assert broken(history) == []

    def test_a_list_that_is_older_than_a_write_before_it_is_found(self) -> None:
        history = written(("a", "1"), ("a", "2"))
        history.check_list({"a": "2"}, 1, 2)
        assert broken(history) == [REVISIONS]


class TestPods:
    def test_a_history_without_faults_is_clean(self) -> None:
        history = PodHistory()
        history.set_capacity("n", 1_000)
        history.see_list([SeenPod("u", "p", cpu_milli=600)], 5)
        history.see_event(SeenPod("u", "p", "n", 600), 6)
        history.see_event(SeenPod("u", "p", "n", 600, has_ended=True), 7)
        history.see_event(SeenPod("v", "q", "n", 600), 8)
        history.see_event(SeenPod("v", "q", "n", 600), 9, is_deleted=True)
        history.see_event(SeenPod("w", "p", "n", 1_000), 10)
        assert (broken(history), history.bindings) == ([], 3)

    def test_a_pod_that_is_bound_twice_is_found(self) -> None:
        history = PodHistory()
        history.see_event(SeenPod("u", "p", "n"), 1)
        history.see_event(SeenPod("u", "p", "m"), 2)
        assert broken(history) == [BOUND]

    def test_a_pod_that_is_bound_twice_while_no_watch_looked_is_found(self) -> None:
        history = PodHistory()
        history.see_list([SeenPod("u", "p", "n")], 1)
        history.see_list([SeenPod("u", "p", "m")], 9)
        assert broken(history) == [BOUND]

    def test_a_binding_that_is_taken_back_is_found(self) -> None:
        history = PodHistory()
        history.see_event(SeenPod("u", "p", "n"), 1)
        history.see_event(SeenPod("u", "p"), 2)
        assert broken(history) == [BOUND]

    def test_an_overcommitted_node_is_found_once(self) -> None:
        history = PodHistory()
        history.set_capacity("n", 1_000)
        for revision, uid in enumerate("uvw", 1):
            history.see_event(SeenPod(uid, uid, "n", 600), revision)
        assert [str(violation) for violation in history.violations] == [
            f"{OVERCOMMITTED}: n has 1000m cpu, and its pods request 1200m at revision 2"
        ]

    def test_an_event_of_an_older_revision_is_found(self) -> None:
        history = PodHistory()
        history.see_list([], 5)
        history.see_event(SeenPod("u", "p"), 5)
        assert broken(history) == [REVISIONS]

    def test_a_list_of_an_older_revision_is_found(self) -> None:
        history = PodHistory()
        history.see_list([], 5)
        history.see_list([], 4)
        assert broken(history) == [REVISIONS]


class TestProcesses:
    def test_growth_within_the_tolerance_is_level(self) -> None:
        violations = Violations()
        check_level("p", Sample(1, 100 << 20, 20), Sample(1, 140 << 20, 20 + FILES_GROWTH_MAX), violations)
        assert violations == []

    def test_growth_beyond_the_tolerance_is_found(self) -> None:
        violations = Violations()
        after = Sample(1, (100 << 20) + MEMORY_GROWTH_BYTES_MAX + 1, 21 + FILES_GROWTH_MAX)
        check_level("p", Sample(1, 100 << 20, 20), after, violations)
        assert [violation.rule for violation in violations] == ["memory stays level", "file descriptors stay level"]

    def test_a_large_process_may_grow_by_a_share(self) -> None:
        violations = Violations()
        check_level("p", Sample(1, 1_000 << 20, 20), Sample(1, 1_200 << 20, 20), violations)
        assert violations == []


# --- Hostile requests get past the first limits: otherwise they would cost nothing, and test nothing


def test_bodies_and_paths_are_within_the_limits_of_a_request() -> None:
    for request in hostile_requests():
        assert len(request.body or b"") <= RequestLimits().body_bytes_max, request.name
        assert len(request.path) <= ServerLimits().target_bytes_max, request.name


def test_they_leave_nothing_behind() -> None:
    assert [
        hostile_request.name
        for hostile_request in hostile_requests()
        if hostile_request.method != "GET" and "dryRun=All" not in hostile_request.path
    ] == []


def test_each_has_a_name_of_its_own() -> None:
    names = [hostile_request.name for hostile_request in hostile_requests()]
    assert len(names) == len(set(names))
