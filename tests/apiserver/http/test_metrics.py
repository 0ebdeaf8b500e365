"""Metrics of requests: names, labels, and limits on labels.

Merging of the metrics of several components.
"""

from __future__ import annotations

import pytest

from mooring.apiserver.http.metrics import CurrentRequests, RequestMetrics, merged_metrics
from mooring.apiserver.http.request import RequestInfo, read_request_info

POD = "/api/v1/namespaces/default/pods/web"


def metrics() -> RequestMetrics:
    return RequestMetrics(
        lambda version, plural, below: (version, plural) == ("v1", "pods") and below in ("", "status")
    )


def lines(made: RequestMetrics, name: str) -> list[str]:
    return [line for line in made.text().decode().splitlines() if line.startswith(name)]


def request_info(method: str, path: str) -> RequestInfo:
    return read_request_info(method, path, is_watch="watch" in path)


@pytest.mark.parametrize(
    ("method", "path", "labels"),
    [
        pytest.param("GET", POD, 'resource="pods",scope="resource",subresource="",verb="GET"', id="get"),
        pytest.param("PUT", POD + "/status", 'scope="resource",subresource="status",verb="PUT"', id="subresource"),
        pytest.param("GET", "/api/v1/pods", 'resource="pods",scope="cluster",subresource="",verb="LIST"', id="list"),
        pytest.param("POST", "/api/v1/namespaces/a/pods", 'scope="namespace",subresource="",verb="POST"', id="create"),
        pytest.param("GET", "/api/v1/frobs", 'resource="",scope="",subresource="",verb="LIST"', id="unknown resource"),
        pytest.param("GET", POD + "/frob", 'resource="",scope="",subresource="",verb="GET"', id="unknown subresource"),
        pytest.param("FROB", "/x", 'resource="",scope="",subresource="",verb="OTHER"', id="unknown method"),
        pytest.param("GET", "/version", 'resource="",scope="",subresource="",verb="GET"', id="no resource"),
    ],
)
def test_requests_are_counted_with_their_labels(method: str, path: str, labels: str) -> None:
    made = metrics()
    made.answered(request_info(method, path), False, 200, 0.01)
    made.answered(request_info(method, path), False, 200, 0.01)
    (found,) = lines(made, "apiserver_request_total{")
    assert labels in found.replace(',version="v1"', "").replace(',version=""', "")
    assert found.endswith(" 2.0")
    assert lines(made, "apiserver_request_duration_seconds_bucket{")[1].endswith(" 2.0")


def test_unknown_paths_share_one_label_set() -> None:
    made = metrics()
    for number in range(1_000):
        made.answered(request_info("GET", f"/api/v1/namespaces/x/r{number}/n"), False, 404, 0.01)
        made.answered(request_info(f"M{number}", f"/apis/g{number}/v1/pods"), False, 404, 0.01)
    assert len(lines(made, "apiserver_request_total{")) == 2


def test_dry_runs_have_a_label() -> None:
    made = metrics()
    made.answered(request_info("GET", POD), True, 200, 0.01)
    assert 'dry_run="All"' in lines(made, "apiserver_request_total{")[0]


def test_watches_are_counted_while_they_are_open() -> None:
    made = metrics()
    watches = made.watches_of(request_info("GET", "/api/v1/watch/pods"))
    watches.inc()
    assert lines(made, "apiserver_longrunning_requests{")[0].endswith(" 1.0")
    watches.dec()
    assert lines(made, "apiserver_longrunning_requests{")[0].endswith(" 0.0")


def test_current_values_are_read_at_the_scrape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asyncio.all_tasks", lambda: {1, 2})
    made = metrics()
    made.registry.register(CurrentRequests(lambda: {"mutating": 1, "readOnly": 2}, lambda: 3, lambda: {"records": 4}))
    assert lines(made, "apiserver_current_inflight_requests{") == [
        'apiserver_current_inflight_requests{request_kind="mutating"} 1.0',
        'apiserver_current_inflight_requests{request_kind="readOnly"} 2.0',
    ]
    assert lines(made, "mooring_apiserver_failures_total ") == ["mooring_apiserver_failures_total 3.0"]
    assert lines(made, "mooring_store_records ") == ["mooring_store_records 4.0"]
    assert lines(made, "mooring_tasks ") == ["mooring_tasks 2.0"]


def test_the_event_loop_has_metrics() -> None:
    names = ("mooring_event_loop_blocked_longest_seconds", "mooring_event_loop_blocked_cpu_seconds_bucket")
    assert all(lines(metrics(), name) for name in names)


OWN = b"# HELP a_total A.\n# TYPE a_total counter\na_total 1.0\n# HELP b B.\n# TYPE b gauge\nb 2.0\n"
OTHER = b'# HELP b B.\n# TYPE b gauge\nb 3.0\n# HELP c C.\n# TYPE c gauge\nc{x="# no help"} 4.0\n'


def test_merged_metrics_takes_a_duplicate_metric_from_the_first_component() -> None:
    assert merged_metrics(OWN, OTHER) == OWN + b'# HELP c C.\n# TYPE c gauge\nc{x="# no help"} 4.0\n'


def test_merged_metrics_with_an_empty_text() -> None:
    assert merged_metrics(OWN, b"") == OWN
