"""RuntimeClass: pods get overhead, node selector and tolerations of their runtime class."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import POD, RUNTIME_CLASS
from mooring.apiserver.admission.runtime_class import RuntimeClass, merged_tolerations
from mooring.client.errors import ForbiddenError, ServerError
from tests.apiserver.admission.builders import Known, admitted, attempt, check, named, pod

KATA = named(
    "kata",
    overhead={"podFixed": {"cpu": "250m"}},
    scheduling={"nodeSelector": {"kata": "yes"}, "tolerations": [{"key": "kata", "operator": "Exists"}]},
)
PLAIN = named("plain")
KNOWN = Known({RUNTIME_CLASS: [KATA, PLAIN]})


def test_overhead_selector_and_tolerations_are_merged_into_the_pod() -> None:
    spec = admitted(RuntimeClass(), attempt(POD, pod(runtimeClassName="kata", nodeSelector={"a": "b"})), KNOWN)["spec"]
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"a": "b", "kata": "yes"}
    assert spec["tolerations"] == [{"key": "kata", "operator": "Exists"}]
    assert spec["overhead"] is not KATA["overhead"]["podFixed"]


def test_an_equal_overhead_in_another_notation_is_allowed() -> None:
    made = attempt(POD, pod(runtimeClassName="kata", overhead={"cpu": "0.25"}))
    admitted(RuntimeClass(), made, KNOWN)
    check(RuntimeClass(), made, KNOWN)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        pytest.param({"runtimeClassName": "none"}, 'pod rejected: RuntimeClass "none" not found', id="no such class"),
        pytest.param(
            {"runtimeClassName": "kata", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            id="another overhead",
        ),
        pytest.param(
            {"runtimeClassName": "kata", "nodeSelector": {"kata": "no"}},
            "conflict: runtimeClass.scheduling.nodeSelector[kata] = yes; pod.spec.nodeSelector[kata] = no",
            id="another node selector",
        ),
    ],
)
def test_a_pod_that_contradicts_its_runtime_class_is_rejected(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ForbiddenError) as caught:
        admitted(RuntimeClass(), attempt(POD, pod(**given)), KNOWN)
    assert caught.value.message == f'pods "p" is forbidden: {why}'


@pytest.mark.parametrize("given", [{}, {"runtimeClassName": "plain"}], ids=["no class", "a class without overhead"])
def test_overhead_without_a_runtime_class_that_defines_it_is_rejected(given: dict[str, Any]) -> None:
    with pytest.raises(ForbiddenError, match="Pod Overhead set without corresponding RuntimeClass defined Overhead"):
        check(RuntimeClass(), attempt(POD, pod(overhead={"cpu": "1"}, **given)), KNOWN)


def test_an_empty_runtime_class_name_is_an_error() -> None:
    with pytest.raises(ServerError, match="resource name may not be empty"):
        admitted(RuntimeClass(), attempt(POD, pod(runtimeClassName="")), KNOWN)


ALL: Document = {"operator": "Exists"}
KEY: Document = {"key": "k", "operator": "Exists"}
VALUE: Document = {"key": "k", "operator": "Equal", "value": "v"}
SHORT: Document = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
LONG: Document = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}
BARE: Document = {"key": "k", "value": "v"}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param([KEY], [KEY], [KEY], id="equal tolerations"),
        pytest.param([VALUE], [KEY], [KEY], id="a key covers its values"),
        pytest.param([KEY], [VALUE], [KEY], id="a key covers its values, reverse order"),
        pytest.param([KEY, VALUE], [ALL], [ALL], id="a toleration without a key covers all"),
        pytest.param([SHORT], [LONG], [LONG], id="the longer time covers the shorter"),
        pytest.param([BARE], [VALUE], [BARE], id="no operator covers Equal"),
        pytest.param(
            [VALUE],
            [{"key": "other", "operator": "Exists"}],
            [VALUE, {"key": "other", "operator": "Exists"}],
            id="different keys",
        ),
    ],
)
def test_merged_tolerations(first: list[Document], second: list[Document], expected: list[Document]) -> None:
    assert merged_tolerations(first, second) == expected
