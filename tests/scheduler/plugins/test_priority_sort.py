"""PrioritySort: more important pods first, then those that have waited longer."""

from __future__ import annotations

from mooring.scheduler.plugins.priority_sort import PrioritySort
from tests.builders import pod
from tests.scheduler.harness import engine_of, plugin_of


def test_the_order_of_the_queue() -> None:
    engine = engine_of()
    plugin = plugin_of(engine, PrioritySort)
    queued = [
        ("late", 5, 9.0),
        ("silent", None, 1.0),
        ("early", 5, 2.0),
        ("humble", -3, 0.0),
        ("urgent", 2**31 - 1, 99.0),
    ]
    keys = {
        name: plugin.queue_key(engine.record(pod(name, priority=priority)), since_s)
        for name, priority, since_s in queued
    }
    assert sorted(keys, key=lambda name: keys[name]) == ["urgent", "early", "late", "silent", "humble"]
