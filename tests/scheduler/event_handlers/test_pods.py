"""Event handler of pods: lists in pages, and updates of assigned pods."""

from __future__ import annotations

import pytest

from mooring.api.views.pod import Pod
from mooring.client.interface import UnavailableClient
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.scheduler.cache.resources import CPU
from mooring.scheduler.config import load_configuration
from mooring.scheduler.event_handlers import PodEventHandler
from mooring.scheduler.scheduler import Scheduler
from tests.builders import node, pod

FIRST = [pod("a", uid="a", on="n1"), pod("b", uid="b", on="n2"), pod("c", uid="c"), pod("d", uid="d")]
SECOND = [pod("b", uid="b", on="n2"), pod("c", uid="c", on="n1"), pod("e", uid="e")]


def replace(handler: PodEventHandler, views: list[Pod]) -> None:
    handler.replace(views, "1")


def replace_in_pages(handler: PodEventHandler, views: list[Pod]) -> None:
    handler.begin_list()
    for view in views:
        handler.take_page([view])
    handler.end_list("1")


def replace_after_a_failure(handler: PodEventHandler, views: list[Pod]) -> None:
    handler.begin_list()
    handler.take_page(FIRST[:2])
    replace_in_pages(handler, views)


@pytest.mark.parametrize("tell", [replace, replace_in_pages, replace_after_a_failure])
def test_pods_that_are_in_no_page_are_removed(tell: object) -> None:
    async def listed() -> None:
        scheduler = Scheduler(UnavailableClient(), load_configuration(None), clock=VirtualClock(), entropy=Entropy(1))
        for name in ("n1", "n2"):
            scheduler.engine.put(node(name))
        handler = scheduler.pods
        assert callable(tell)
        tell(handler, FIRST)
        assert _picture(handler, scheduler) == (["a on n1", "b on n2"], ["c", "d"], 2)
        tell(handler, SECOND)
        assert _picture(handler, scheduler) == (["b on n2", "c on n1"], ["e"], 1)

    run(listed())


@pytest.mark.parametrize(
    ("updated", "cpu_milli"),
    [
        pytest.param(pod("a", uid="a", on="n1", cpu=1, labels={"zone": "z"}), 1_000, id="other labels"),
        pytest.param(pod("a", uid="a", on="n1", cpu=1, terminating=True), 1_000, id="terminating"),
        pytest.param(pod("a", uid="a", on="n1", cpu=2, labels={"zone": "z"}), 2_000, id="other requests"),
        pytest.param(pod("a", uid="a", on="n2", cpu=1, labels={"zone": "z"}), 1_000, id="another node"),
    ],
)
def test_the_columns_count_the_latest_update_of_an_assigned_pod(updated: Pod, cpu_milli: int) -> None:
    async def story() -> None:
        scheduler = Scheduler(UnavailableClient(), load_configuration(None), clock=VirtualClock(), entropy=Entropy(1))
        columns = scheduler.engine.columns
        for name in ("n1", "n2"):
            scheduler.engine.put(node(name))
        scheduler.pods.put(pod("a", uid="a", on="n1", cpu=1))
        scheduler.pods.put(updated)
        record = columns.pods["a"]
        assert (record.node_name, record.signature.labels) == (updated.spec.node_name, updated.metadata.labels)
        assert record.terminating == (updated.metadata.deletion_timestamp is not None)
        assert columns.resources.used[CPU].sum() == cpu_milli == columns.resources.used[CPU, record.row]
        assert [list(pods.values()) for pods in columns.pods_on if pods] == [[record]]

    run(story())


def _picture(handler: PodEventHandler, scheduler: Scheduler) -> tuple[list[str], list[str], int]:
    placed = sorted(f"{each.name} on {each.node_name}" for each in scheduler.engine.columns.pods.values())
    return placed, sorted(each.name for each in handler.pending.values()), len(scheduler.queue)
