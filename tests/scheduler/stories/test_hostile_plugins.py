"""Whatever a user's plugin raises at an extension point: one attempt fails and is reported, the scheduler continues."""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import Any, ClassVar

import numpy as np
import pytest

from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource
from mooring.scheduler.framework.plugin import (
    SKIP,
    Bind,
    Filter,
    Permit,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreScore,
    Proceed,
    QueueSort,
    Reserve,
    Score,
    Skip,
)
from mooring.scheduler.framework.post_filter import FailedAttempt, PostFilterResult
from mooring.scheduler.framework.status import Reason, Status
from tests.builders import node, pod
from tests.scheduler.world import World, play, with_plugins

ERRORS = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit, SystemExit)
POINTS = (
    "pre_enqueue",
    "pre_filter",
    "filter",
    "post_filter",
    "follow_up",
    "hint",
    "pre_score",
    "score",
    "normalize",
    "reserve",
    "unreserve",
    "released",
    "permit",
    "has_work",
    "pre_bind",
    "bind",
    "post_bind",
)
REJECTED_BY_FILTER = ("post_filter", "follow_up", "hint")


@pytest.fixture(autouse=True)
def _event_loop_handles_sigint(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the process of a scheduler: a KeyboardInterrupt there is not Ctrl-C."""
    monkeypatch.setattr(signal, "getsignal", lambda number: None)


class Hostile(
    PreEnqueue,
    PreFilter[str],
    Filter[str],
    PostFilter,
    PreScore[str],
    Score[str],
    Reserve,
    Permit,
    PreBind,
    Bind,
    PostBind,
):
    """Raises `error` once, for the pod `web`, at the extension point `point`."""

    name = "Hostile"
    filter_reasons = (Reason("node(s) were hostile"),)
    normalizes = True
    point: ClassVar[str] = ""
    error: ClassVar[type[BaseException]] = SystemExit
    fired: ClassVar[list[str]] = []

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (ClusterEventWithHint(EventResource.NODE, ActionType.ADD, self._hint),)

    def _hint(self, pod: PodInfo, old: Any, new: Any) -> Any:
        self._at("hint", pod.name)
        return True

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        self._at("pre_enqueue", pod.name)
        return None

    def pre_filter(self, pod: PodInfo) -> Proceed[str]:
        self._at("pre_filter", pod.name)
        return Proceed(pod.name)

    def filter(self, state: str, rows: Rows) -> Int64s:
        self._at("filter", state)
        is_rejected = state == "web" and self.point in REJECTED_BY_FILTER and not self.fired
        return np.full(length_of(rows), is_rejected, dtype=np.int64)

    def post_filter(self, attempt: FailedAttempt) -> PostFilterResult:
        self._at("post_filter", attempt.pod.name)

        async def follow_up() -> None:
            self._at("follow_up", "web")

        return PostFilterResult(status=Status.unschedulable("not now"), follow_up=follow_up)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> str:
        self._at("pre_score", pod.name)
        return pod.name

    def score(self, state: str, rows: Rows) -> Int64s:
        self._at("score", state)
        return np.zeros(length_of(rows), dtype=np.int64)

    def normalize(self, state: str, scores: Int64s, rows: Rows) -> Int64s:
        self._at("normalize", state)
        return scores

    def reserve(self, pod: PodInfo, row: int) -> Status | None:
        self._at("reserve", pod.name)
        return None

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        self._at("unreserve", pod.name)

    async def released(self, pod: PodInfo, node_name: str) -> None:
        self._at("released", pod.name)

    def permit(self, pod: PodInfo, node_name: str) -> Status | None:
        self._at("permit", pod.name)
        is_rejected = pod.name == "web" and self.point == "unreserve" and not self.fired
        return Status.error("rejected once") if is_rejected else None

    def has_work(self, pod: PodInfo, node_name: str) -> bool:
        self._at("has_work", pod.name)
        return self.point in ("pre_bind", "released")

    def pre_bind(self, pod: PodInfo, node_name: str) -> Any:
        """Not `async`: it returns a coroutine, as a decorated function does."""
        return self._pre_bind(pod)

    async def _pre_bind(self, pod: PodInfo) -> Status | None:
        self._at("pre_bind", pod.name)
        is_rejected = pod.name == "web" and self.point == "released" and not self.fired
        return Status.error("rejected once") if is_rejected else None

    async def bind(self, pod: PodInfo, node_name: str) -> Skip:
        self._at("bind", pod.name)
        return SKIP

    def post_bind(self, pod: PodInfo, node_name: str) -> None:
        self._at("post_bind", pod.name)

    def _at(self, point: str, pod_name: str) -> None:
        if pod_name == "web" and point == self.point and not self.fired:
            self.fired.append(point)
            raise self.error


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("point", POINTS)
def test_the_scheduler_goes_on(
    point: str, error: type[BaseException], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hostile, "point", point)
    monkeypatch.setattr(Hostile, "error", error)
    monkeypatch.setattr(Hostile, "fired", [])
    reported: list[str] = []

    async def story(world: World) -> None:
        await world.create(node("n1"), node("n2"), pod("web"), pod("other"))
        await world.settle(2)
        await world.create(node("n3"))
        await world.settle(3)
        await world.patch("web", {"metadata": {"labels": {"look": "again"}}})  # a gated pod is looked at again
        await world.settle(10)
        await world.create(pod("late"))
        await world.settle(2)
        reported.extend(note for name, _, note in await world.events() if name == "web")
        assert Hostile.fired == [point]
        assert all([await world.node_of(name) for name in ("web", "other", "late")])
        assert world.scheduler.loop.problem() == ""

    config, registry = with_plugins(Hostile)
    config["profiles"][0]["plugins"]["bind"] = {"enabled": [{"name": "Hostile"}, {"name": "DefaultBinder"}]}
    with caplog.at_level(logging.WARNING):
        play(story, config=config, registry=registry, is_replayed=False)  # it changes between attempts
    logged = [f"{record.getMessage()} {record.exc_info}" for record in caplog.records]
    assert any(error.__name__ in text for text in [*reported, *logged]), "what was raised is reported"


class HostileSort(QueueSort):
    name = "HostileSort"
    error: ClassVar[type[BaseException]] = SystemExit

    def queue_key(self, pod: PodInfo, queued_s: float) -> tuple[float, ...]:
        raise self.error


@pytest.mark.parametrize("error", ERRORS)
def test_the_scheduler_goes_on_when_the_queue_cannot_be_sorted(
    error: type[BaseException], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HostileSort, "error", error)

    async def story(world: World) -> None:
        await world.create(node("n1"), pod("web"), pod("other"))
        await world.settle(2)
        assert all([await world.node_of(name) for name in ("web", "other")])

    config, registry = with_plugins(HostileSort)
    config["profiles"][0]["plugins"] = {
        "queueSort": {"enabled": [{"name": "HostileSort"}], "disabled": [{"name": "*"}]}
    }
    play(story, config=config, registry=registry, is_replayed=False)  # likewise
    assert error.__name__ in caplog.text
