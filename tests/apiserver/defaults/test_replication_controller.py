"""Defaults of replication controllers."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.defaults.replication_controller import default_replication_controller
from tests.apiserver.pod_builders import pod


def test_the_labels_of_its_pods_are_its_selector_and_its_labels() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    made: Document = {"metadata": {}, "spec": {"template": template}}
    default_replication_controller(made)
    assert (made["spec"]["replicas"], made["spec"]["selector"], made["metadata"]["labels"]) == (
        1,
        {"a": "b"},
        {"a": "b"},
    )
    given: Document = {
        "metadata": {"labels": {"c": "d"}},
        "spec": {"replicas": 0, "selector": {"e": "f"}, "template": template},
    }
    default_replication_controller(given)
    assert (given["spec"]["replicas"], given["spec"]["selector"], given["metadata"]["labels"]) == (
        0,
        {"e": "f"},
        {"c": "d"},
    )
