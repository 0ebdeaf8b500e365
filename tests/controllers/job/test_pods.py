"""The pods that a Job makes."""

from __future__ import annotations

import pytest

from mooring.controllers.job.pods import indexed_generate_name, indexed_pod, job_pod
from tests.controllers.batch_builders import INDEX, TRACKING, job_view


def test_every_pod_is_tracked() -> None:
    pod = job_pod(job_view())
    assert pod["metadata"]["finalizers"] == [TRACKING]
    assert pod["metadata"]["generateName"] == "work-"
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "Job"


def test_an_indexed_pod_knows_its_index() -> None:
    wanted = job_view(completionMode="Indexed", backoffLimitPerIndex=1)
    plain = job_pod(wanted)
    pod = indexed_pod(wanted, plain, 3, None)
    assert pod["metadata"]["generateName"] == "work-3-"
    assert pod["metadata"]["labels"][INDEX] == pod["metadata"]["annotations"][INDEX] == "3"
    assert pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "0"
    assert pod["spec"]["hostname"] == "work-3"
    path = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    assert pod["spec"]["containers"][0]["env"] == [{"name": "JOB_COMPLETION_INDEX", "valueFrom": path}]
    assert "env" not in plain["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [pytest.param("work", "work-7-", id="short"), pytest.param("w" * 63, "w" * 55 + "-7-", id="long")],
)
def test_generated_names(name: str, expected: str) -> None:
    assert indexed_generate_name(name, 7) == expected
