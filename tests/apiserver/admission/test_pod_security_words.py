"""How violations list containers."""

from __future__ import annotations

import pytest

from mooring.apiserver.admission.pod_security_words import containers_named, containers_of, setters
from tests.apiserver.admission.builders import container, pod


def test_all_containers_count_in_the_order_in_which_they_start() -> None:
    spec = pod(initContainers=[container("i")], ephemeralContainers=[container("e")])["spec"]
    assert [one["name"] for one in containers_of(spec)] == ["i", "c", "e"]


@pytest.mark.parametrize(("names", "text"), [(["a"], 'container "a"'), (["a", "b"], 'containers "a", "b"')])
def test_names(names: list[str], text: str) -> None:
    assert containers_named(names) == text


@pytest.mark.parametrize(
    ("is_pod", "names", "text"),
    [(True, [], "pod"), (False, ["a"], 'container "a"'), (True, ["a"], 'pod and container "a"'), (False, [], "")],
)
def test_setters(is_pod: bool, names: list[str], text: str) -> None:
    assert setters(is_pod, names) == text
