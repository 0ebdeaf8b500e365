"""The arguments of NodeLabel and ServiceAffinity: read from a file, written back, and rejected."""

import pytest

from mooring.scheduler.config import ConfigurationError
from mooring.scheduler.policy.arguments import (
    NodeLabelArgs,
    ServiceAffinityArgs,
    as_written,
    node_label_arguments,
    reject_arguments,
    service_affinity_arguments,
)
from tests.scheduler.config.builders import VERSION


@pytest.mark.parametrize(
    "arguments",
    [NodeLabelArgs(), NodeLabelArgs(present_labels=("a",), absent_labels=("b", "c"), absent_labels_preference=("a",))],
    ids=["none", "some"],
)
def test_what_is_written_is_read_back(arguments: NodeLabelArgs) -> None:
    assert node_label_arguments(as_written(arguments)) == arguments


def test_arguments_of_service_affinity() -> None:
    written = {"affinityLabels": ["a"], "antiAffinityLabelsPreference": ["b"]}
    arguments = service_affinity_arguments(written)
    assert arguments == ServiceAffinityArgs(affinity_labels=("a",), anti_affinity_labels_preference=("b",))
    assert as_written(arguments) == written


def test_arguments_may_say_what_they_are() -> None:
    typed = {"apiVersion": VERSION, "kind": "NodeLabelArgs", "presentLabels": ["a"]}
    assert node_label_arguments(typed) == NodeLabelArgs(present_labels=("a",))
    reject_arguments("SelectorSpread", {"apiVersion": VERSION, "kind": "SelectorSpreadArgs"})


def test_every_conflict_is_reported() -> None:
    written = {"presentLabels": ["a", "b", "a"], "absentLabels": ["b", "a"]}
    with pytest.raises(ConfigurationError) as rejected:
        node_label_arguments(written)
    assert [problem.text.partition(": ")[2] for problem in rejected.value.problems] == [
        'presentLabels[1]: Invalid value: "b": conflict with absentLabels[0]',
        'presentLabels[2]: Invalid value: "a": conflict with absentLabels[1]',
    ]


def test_a_plugin_without_arguments_rejects_them() -> None:
    with pytest.raises(ConfigurationError) as rejected:
        reject_arguments("SelectorSpread", {"b": 1, "a": 2})
    assert str(rejected.value) == 'initializing plugin "SelectorSpread": takes no arguments, but was given a, b'
