"""A namespace carries its name as a label, whatever anybody wrote there."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.defaults.namespace import default_namespace


def test_the_name_becomes_a_label_and_a_namespace_is_active() -> None:
    namespace: Document = {"metadata": {"name": "web", "labels": {"kubernetes.io/metadata.name": "x"}}, "status": {}}
    default_namespace(namespace)
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "web"}
    assert namespace["status"] == {"phase": "Active"}


def test_a_name_that_does_not_exist_yet_is_no_label() -> None:
    namespace: Document = {"metadata": {"generateName": "web-"}, "status": {"phase": "Terminating"}}
    default_namespace(namespace)
    assert namespace == {"metadata": {"generateName": "web-"}, "status": {"phase": "Terminating"}}
