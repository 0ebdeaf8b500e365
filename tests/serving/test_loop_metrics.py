"""The metrics of the event loop."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from mooring.kit.loop import LoopMonitor
from mooring.serving.loop_metrics import LoopMetrics


def test_both_clocks_have_a_histogram_and_their_longest_interval() -> None:
    monitor, registry = LoopMonitor(), CollectorRegistry()
    registry.register(LoopMetrics(monitor))
    monitor.wall.note(0.4)
    monitor.cpu.note(0.03)
    lines = generate_latest(registry).decode().splitlines()
    for line in (
        'mooring_event_loop_blocked_seconds_bucket{le="0.3"} 0.0',
        'mooring_event_loop_blocked_seconds_bucket{le="0.5"} 1.0',
        "mooring_event_loop_blocked_seconds_sum 0.4",
        "mooring_event_loop_blocked_longest_seconds 0.4",
        'mooring_event_loop_blocked_cpu_seconds_bucket{le="0.05"} 1.0',
        "mooring_event_loop_blocked_cpu_longest_seconds 0.03",
    ):
        assert line in lines
