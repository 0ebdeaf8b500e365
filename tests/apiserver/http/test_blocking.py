"""The most expensive requests do not block the event loop of a real server for more than 100 ms, or /readyz for
300 ms.

Other processes on the machine do not affect the result. For the thread of the loop the test compares CPU time; for
/readyz the wall clock time minus the time in which threads of the server or of this test waited for a CPU (waiting for
the interpreter lock, another lock or the disk is included). On a kernel that does not account for that time, the test
compares only CPU time. `make blocking` measures all inputs.
"""

from __future__ import annotations

import time
from pathlib import Path

from tests.apiserver.http.blocking import BLOCKED_S_MAX, READY_S_MAX, Measured, clean, grown, measure
from tests.apiserver.http.worst_inputs import INPUTS
from tests.cluster.running import WITHOUT_OTHERS, running

REFERENCE_S = 0.008
"""The CPU time of `_reference_work` on the machine on which the limit was set."""
WORST = {
    "YAML: repeated keys": 201,
    "YAML: aliases of aliases": 400,
    "JSON: nested to the limit, many times": 400,
    "JSON: lists in a list of an unknown field": 201,
    "JSON: not UTF-8 at the end": 413,
    "protobuf: map entries": 201,
    "protobuf: containers of a pod": 413,
    "protobuf: schemas inside of each other": 422,
    "metadata: invalid labels": 422,
    "metadata: owner references": 413,
    "metadata: a label of an object with many managers": 200,
    "pod: containers": 413,
    "pod: containers in a restricted namespace": 403,
    "pod: topology spread constraints": 413,
    "service: ports": 413,
    "role: rules": 201,
    "role: a rule of many combinations": 403,
    "disruption budget: expressions of a selector": 201,
    "resource claim: selectors that compute much": 422,
    "resource claim: long selectors": 201,
    "device class: long selectors": 201,
    "JSON patch: nested values": 200,
    "JSON patch: insertions at the front of a long list": 200,
    "strategic patch: variables": 413,
    "server-side apply: containers as YAML": 413,
    "server-side apply: to an object with many managers": 200,
    "server-side apply: containers and their ports": 201,
    "server-side apply: nested fields of a custom kind": 201,
    "definition: nested properties": 201,
    "definition: versions": 422,
    "custom: large defaults": 413,
    "custom: values outside of a large enum": 422,
    "CEL: nested loops": 422,
    "CEL: rules on items": 201,
    "list: many requirements": 200,
    "list: many field requirements": 200,
    "list: sets of values of many labels": 200,
    "list: a table of large objects": 200,
    "watch: initial events and bookmarks of many objects": 200,
    "delete collection: many objects": 200,
    "OpenAPI: v2 after a definition": 200,
    "OpenAPI: v3 of a large definition": 200,
    "review: requirements of a selector": 422,
}
"""Inputs and expected status codes."""


def test_no_request_blocks_the_event_loop(tmp_path: Path) -> None:
    found: dict[str, Measured] = {}
    with running(tmp_path, "--ephemeral", *WITHOUT_OTHERS) as up:
        for name in WORST:
            found[name] = measure(up, name, INPUTS[name])
            clean(up)
        assert up.metric("mooring_apiserver_failures_total") == 0, up.log()[-5_000:]
    assert {name: each.answer.code for name, each in found.items()} == WORST
    slowness = _slowness()
    over = {name: each.cpu_s for name, each in found.items() if each.cpu_s > BLOCKED_S_MAX * slowness}
    assert over == {}, "CPU time of the event loop"
    waits = {name: each.ready_own_s for name, each in found.items() if each.ready_own_s is not None}
    assert {name: s for name, s in waits.items() if s > READY_S_MAX * slowness} == {}, "/readyz"
    if not waits:
        print("this kernel has no run queue delay of threads: /readyz was not compared, only CPU time")


def test_grown_returns_the_bound_of_the_highest_bucket_that_grew() -> None:
    before = 'x_bucket{le="0.1"} 2.0\nx_bucket{le="0.5"} 3.0\nx_bucket{le="+Inf"} 4.0\n'
    assert grown("x", before, before) == 0
    assert grown("x", before, before.replace("2.0", "3.0").replace("4.0", "5.0").replace('"} 3.0\n', '"} 4.0\n')) == 0.1
    assert (
        grown(
            "x",
            before,
            before.replace("3.0", "4.0").replace('4.0\nx_bucket{le="+Inf"} 4.0', '4.0\nx_bucket{le="+Inf"} 5.0'),
        )
        == 0.5
    )


def _slowness() -> float:
    """How much slower this machine is than the one on which the limit was set; at least 1."""
    return max(1.0, max(_reference_work() for _ in range(5)) / REFERENCE_S)


def _reference_work() -> float:
    began_s = time.thread_time()
    table = {f"key-{number}": [number, str(number)] for number in range(40_000)}
    assert sum(len(value) for value in table.values()) == 80_000
    return time.thread_time() - began_s
