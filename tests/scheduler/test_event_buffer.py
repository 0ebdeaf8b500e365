"""The event buffer: every function runs, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from mooring.api.views.pod import Pod
from mooring.client.interface import Change
from mooring.scheduler.event_buffer import BufferedPagedSink, EventBuffer
from tests.builders import pod


def test_functions_run_immediately_unless_the_buffer_is_held() -> None:
    done: list[str] = []
    event_buffer = EventBuffer()
    event_buffer.run(lambda: done.append("a"))
    with event_buffer.held():
        event_buffer.run(lambda: done.append("b"))
        event_buffer.run(lambda: done.append("c"))
        assert (done, len(event_buffer), event_buffer.is_held) == (["a"], 2, True)
    assert (done, len(event_buffer), event_buffer.is_held) == (["a", "b", "c"], 0, False)


def test_a_function_added_by_a_deferred_function_runs_last() -> None:
    done: list[str] = []
    event_buffer = EventBuffer()

    def adding(name: str, another: str) -> Callable[[], None]:
        def function() -> None:
            event_buffer.run(lambda: done.append(another))
            done.append(name)

        return function

    with event_buffer.held():
        event_buffer.run(adding("a", "d"))
        event_buffer.run(lambda: done.append("b"))
        event_buffer.run(lambda: done.append("c"))
    assert done == ["a", "b", "c", "d"]


def test_a_function_that_raises_does_not_stop_the_others() -> None:
    done: list[str] = []
    event_buffer = EventBuffer()

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), event_buffer.held():
        event_buffer.run(fail)
        event_buffer.run(lambda: done.append("b"))
    assert done == ["b"]
    assert not event_buffer.is_held


def test_deferred_functions_run_if_the_decision_raises() -> None:
    done: list[str] = []
    event_buffer = EventBuffer()
    with pytest.raises(LookupError), event_buffer.held():
        event_buffer.run(lambda: done.append("a"))
        raise LookupError("the decision")
    assert done == ["a"]


def test_only_one_decision_holds_the_buffer() -> None:
    event_buffer = EventBuffer()
    with event_buffer.held(), pytest.raises(AssertionError, match="held by another decision"), event_buffer.held():
        raise NotImplementedError("not reached")


class RecordingSink:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def replace(self, views: Sequence[Pod], revision: str) -> None:
        self.lines.append(f"all@{revision}")

    def apply(self, change: Change, view: Pod) -> None:
        self.lines.append(f"{change.value} {view.metadata.name}")

    def begin_list(self) -> None:
        self.lines.append("a list")

    def take_page(self, views: Sequence[Pod]) -> None:
        self.lines.append(f"some {len(views)}")

    def end_list(self, revision: str) -> None:
        self.lines.append(f"end@{revision}")


def test_a_buffered_sink_keeps_the_order_of_events() -> None:
    recording, event_buffer = RecordingSink(), EventBuffer()
    sink: BufferedPagedSink[Pod] = BufferedPagedSink(recording, recording, event_buffer)
    with event_buffer.held():
        sink.begin_list()
        sink.take_page([pod("a"), pod("b")])
        sink.end_list("3")
        sink.apply(Change.ADDED, pod("c"))
        sink.replace([], "4")
        assert recording.lines == []
    expected = ["a list", "some 2", "end@3", "ADDED c", "all@4"]
    assert recording.lines == expected
    sink.apply(Change.DELETED, pod("c"))
    assert recording.lines == [*expected, "DELETED c"]
