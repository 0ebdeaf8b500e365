"""docs/scheduler.md: its example runs, and its tables and outputs equal those of the code."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest
from prometheus_client import CollectorRegistry

from mooring.client import events
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.scheduler import loop
from mooring.scheduler.binding import cycle
from mooring.scheduler.config import load_configuration
from mooring.scheduler.devices import allocator
from mooring.scheduler.extenders import client
from mooring.scheduler.framework import waiting_pods
from mooring.scheduler.framework.loading import ENTRY_POINT_GROUP
from mooring.scheduler.queue import in_flight, queue
from mooring.scheduler.queue.queued_pod import QueueState, TransitionCause
from mooring.scheduler.reporting.metrics import CounterFamily, FastCollector, ReadMetrics
from mooring.scheduler.reporting.reports import SAMPLED_ONE_IN
from mooring.scheduler.scheduler import Limits, Scheduler
from mooring.store import memory
from tests.builders import node, pod
from tests.docs.pages import page
from tests.scheduler.world import World, play

GUIDE = page("docs/scheduler.md")
PROSE = " ".join(GUIDE.prose.split())
CONSTANTS = (
    in_flight,
    queue,
    waiting_pods,
    cycle,
    loop,
    events,
    client,
    allocator,
    memory,
)
"""The modules of the documented constants, in the order of the page."""


def rows(first_cell: str) -> list[tuple[str, ...]]:
    """The rows of the table whose header begins with this cell."""
    lines = GUIDE.prose.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(f"| {first_cell} |"))
    found: list[tuple[str, ...]] = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            return found
        found.append(tuple(cell.strip() for cell in line.strip("|").split("|")))
    return found


def codes(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


# --- the example --------------------------------------------------------------------------------------------------


def test_the_example_runs() -> None:
    [example] = GUIDE.blocks("python")
    exec(compile(example, "docs/scheduler.md", "exec"), {})


def test_the_summary_of_a_pod() -> None:
    [shown] = GUIDE.blocks("text")

    async def story(world: World) -> None:
        await world.create(node("small", cpu=1), pod("web", cpu=2))
        await world.settle()
        where = world.scheduler.queue.status((await world.pod("web")).metadata.uid)
        assert where is not None
        assert where.summary == shown.strip()

    play(story)


# --- metrics ------------------------------------------------------------------------------------------------------


def metrics_of_the_code() -> list[tuple[str, str, list[str]]]:
    """Name, kind and labels of each metric of a scheduler, in the order of registration."""
    registry = CollectorRegistry()
    made = Scheduler(_NoClient(), load_configuration(None), clock=VirtualClock(), entropy=Entropy(1), metrics=registry)  # type: ignore[arg-type]
    assert made.metrics.registry is registry
    found = []
    for collector in registry._collector_to_names:
        if isinstance(collector, FastCollector):
            for family in collector._families:
                kind = "counter" if isinstance(family, CounterFamily) else "histogram"
                found.append((family._name, kind, list(family._labels)))
        elif isinstance(collector, ReadMetrics):
            kinds = [family.type for family in collector.describe()]
            metrics = zip(collector._metrics, kinds, strict=True)
            found += [(name, kind, list(labels)) for (name, _, labels, _), kind in metrics]
    return found


class _NoClient:
    """The scheduler is constructed and does not run, so it needs no client."""


def test_every_metric_has_a_row() -> None:
    written = [(codes(name)[0], kind, codes(labels)) for name, kind, labels, _ in rows("metric")]
    assert written == metrics_of_the_code()


def test_how_many_cycles_are_sampled() -> None:
    assert f"One cycle in {SAMPLED_ONE_IN} is sampled" in PROSE


# --- the queue ----------------------------------------------------------------------------------------------------


def test_every_state_has_a_row() -> None:
    assert [codes(state)[0] for state, _ in rows("state")] == [
        state.text for state in QueueState if state is not QueueState.NOT_QUEUED
    ]


def test_every_cause_has_a_row() -> None:
    assert [codes(cause)[0] for cause, _ in rows("cause")] == [cause.text for cause in TransitionCause]


# --- limits -------------------------------------------------------------------------------------------------------


def test_the_limits_are_those_of_the_code() -> None:
    written = {codes(name)[0]: float(value.replace(",", "")) for name, value, _ in rows("limit")}
    adjustable = {f"Limits.{field.name}": field.default for field in fields(Limits)}
    constants = {name: value for name, value in written.items() if name not in adjustable}
    assert {name: written[name] for name in adjustable} == adjustable
    assert {name: _constant(name) for name in constants} == constants


def _constant(name: str) -> float:
    [value] = [getattr(module, name) for module in CONSTANTS if hasattr(module, name) and _defines(module, name)]
    return float(value)


def _defines(module: object, name: str) -> bool:
    """Whether the module defines the name, instead of importing it."""
    source = getattr(module, "__file__", "")
    with open(source, encoding="utf-8") as lines:
        return any(re.match(rf"{name}\b.*=", line) for line in lines)


def test_the_entry_point_is_named() -> None:
    assert f"`{ENTRY_POINT_GROUP}`" in GUIDE.prose


@pytest.mark.parametrize("reason", ["Scheduled", "FailedScheduling", "Preempted"])
def test_every_event_has_a_row(reason: str) -> None:
    assert reason in [codes(cell)[0] for cell, _, _ in rows("reason")]
