"""Node selectors and when their errors are reported; taints and tolerations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from mooring.api.errors import NodeSelectorError
from mooring.api.labels import Operator
from mooring.api.nodeselector import (
    NAME_FIELD,
    FieldRequirement,
    compile_lenient,
    compile_preferred,
    compile_strict,
    preferred_node_affinity,
    required_node_affinity,
)
from mooring.api.tolerations import (
    count_intolerable_preferences,
    find_untolerated_taint,
    tolerates,
    tolerations_of_preferences,
)
from mooring.api.views.meta import NodeSelector, PreferredSchedulingTerm
from mooring.api.views.pod import Affinity, Pod, PodSpec, Toleration
from tests.api.builders import node, node_selector, pod, preferred, taint, term, toleration

LABELS = {"zone": "a", "cores": "8"}
BOGUS_ERROR = (
    'nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Bogus": '
    'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
)


@pytest.mark.parametrize(
    ("required", "matches"),
    [
        (node_selector(), False),
        (node_selector(term()), False),
        (node_selector(term(), term("zone In a")), True),
        (node_selector(term("zone In a,b")), True),
        (node_selector(term("zone In b")), False),
        (node_selector(term("zone In b"), term("cores Exists")), True),
        (node_selector(term("zone In a", "cores DoesNotExist")), False),
        (node_selector(term("rack NotIn r1")), True),
        (node_selector(term("zone NotIn a")), False),
        (node_selector(term("cores Gt 7")), True),
        (node_selector(term("cores Gt 8")), False),
        (node_selector(term("cores Lt 10")), True),
        (node_selector(term("rack Lt 10")), False),
        (node_selector(term(fields=["metadata.name In n1"])), True),
        (node_selector(term(fields=["metadata.name In n2"])), False),
        (node_selector(term(fields=["metadata.name NotIn n2"])), True),
        (node_selector(term("zone In a", fields=["metadata.name In n2"])), False),
        (node_selector(term(fields=["metadata.name In n1", "metadata.name NotIn n1"])), False),
        (node_selector(term(fields=["spec.unheard In n1"])), False),
        (node_selector(term(fields=["spec.unheard NotIn n1"])), True),
    ],
)
def test_which_nodes_match(required: NodeSelector, matches: bool) -> None:
    assert compile_lenient(required).matches(LABELS, "n1") is matches
    assert compile_strict(required).matches(LABELS, "n1") is matches


def test_fields_match_a_node_without_a_name() -> None:
    assert compile_strict(node_selector(term(fields=["metadata.name In n1"]))).matches({}, "")


@pytest.mark.parametrize(
    ("requirement", "value", "holds", "holds_when_absent"),
    [
        (FieldRequirement(NAME_FIELD, Operator.IN, "n1"), "n1", True, False),
        (FieldRequirement(NAME_FIELD, Operator.IN, "n1"), "n2", False, False),
        (FieldRequirement(NAME_FIELD, Operator.NOT_IN, "n1"), "n1", False, True),
        (FieldRequirement(NAME_FIELD, Operator.IN, ""), "n1", False, True),
    ],
)
def test_field_requirements_match_values_and_absent_fields(
    requirement: FieldRequirement, value: str, holds: bool, holds_when_absent: bool
) -> None:
    assert requirement.matches_value(value) is holds
    assert requirement.matches_absent is holds_when_absent


@pytest.mark.parametrize(
    ("invalid", "error"),
    [
        (node_selector(term("zone Bogus")), BOGUS_ERROR),
        (
            node_selector(term(), term("zone In")),
            "nodeSelectorTerms[1].matchExpressions[0].values: Invalid value: null: "
            "for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            node_selector(term("zone Exists", "cores Gt many")),
            'nodeSelectorTerms[0].matchExpressions[1].values[0]: Invalid value: "many": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        (
            node_selector(term(fields=["metadata.name In n1,n2"])),
            'nodeSelectorTerms[0].matchFields[0].values: Invalid value: ["n1","n2"]: must have one element',
        ),
        (
            node_selector(term(fields=["metadata.name Exists"])),
            'nodeSelectorTerms[0].matchFields[0].operator: Unsupported value: "Exists": '
            'supported values: "In", "NotIn"',
        ),
        (
            node_selector(term("zone Bogus", fields=["metadata.name NotIn"])),
            f"[{BOGUS_ERROR}, nodeSelectorTerms[0].matchFields[0].values: Invalid value: null: must have one element]",
        ),
    ],
)
def test_errors_have_the_texts_of_kubernetes(invalid: NodeSelector, error: str) -> None:
    matcher = compile_lenient(invalid)
    assert not matcher.matches(LABELS, "n1")
    assert matcher.error == error
    with pytest.raises(NodeSelectorError) as caught:
        compile_strict(invalid)
    assert str(caught.value) == error


def test_another_term_matches_despite_an_invalid_one() -> None:
    matcher = compile_lenient(node_selector(term("zone Bogus"), term("zone In a")))
    assert matcher.matches(LABELS, "n1")
    assert matcher.error == BOGUS_ERROR


@pytest.mark.parametrize(
    ("labels_wanted", "affinity_wanted", "matches"),
    [
        ({}, None, True),
        ({"zone": "a"}, None, True),
        ({"zone": "b"}, None, False),
        ({}, node_selector(term("zone In a")), True),
        ({}, node_selector(), False),
        ({"zone": "a"}, node_selector(term("zone In b")), False),
        ({"zone": "a"}, node_selector(term("cores Exists")), True),
        ({"zone": "b"}, node_selector(term("cores Exists")), False),
    ],
)
def test_node_selector_and_required_affinity_must_both_match(
    labels_wanted: Mapping[str, str], affinity_wanted: NodeSelector | None, matches: bool
) -> None:
    demands = required_node_affinity(pod(node_selector=labels_wanted, required=affinity_wanted))
    assert demands.matches(LABELS, "n1") is matches
    assert demands.matches_everything is (not labels_wanted and affinity_wanted is None)
    assert demands.error_for(LABELS) == ""


def test_errors_of_an_affinity_concern_only_nodes_whose_labels_matched() -> None:
    demands = required_node_affinity(pod(node_selector={"zone": "a"}, required=node_selector(term("zone Bogus"))))
    assert demands.error_for({"zone": "a"}) == BOGUS_ERROR
    assert demands.error_for({"zone": "b"}) == ""


def test_compiled_affinities_are_cached() -> None:
    def built() -> Pod:
        return pod(
            node_selector={"zone": "z9"}, required=node_selector(term("k Exists")), preferred=[preferred(3, "k Exists")]
        )

    assert required_node_affinity(built()) is required_node_affinity(built())
    assert preferred_node_affinity(built()) is preferred_node_affinity(built())


@pytest.mark.parametrize(
    ("wishes", "score"),
    [
        ([], 0),
        ([preferred(5, "zone In a")], 5),
        ([preferred(5, "zone In a"), preferred(20, "zone In b"), preferred(1, "cores Exists")], 6),
        ([preferred(5)], 0),
        ([preferred(-3, "zone In a")], -3),
    ],
    ids=["none", "one", "some", "empty", "negative"],
)
def test_the_weights_of_matching_preferences_are_added(wishes: list[PreferredSchedulingTerm], score: int) -> None:
    terms = preferred_node_affinity(pod(preferred=wishes))
    assert sum(each.weight for each in terms if each.term.matches(LABELS, "n1")) == score


def test_a_pod_without_node_affinity_has_no_preference() -> None:
    assert preferred_node_affinity(Pod()) == ()
    assert preferred_node_affinity(Pod(spec=PodSpec(affinity=Affinity()))) == ()


def test_a_preference_without_weight_is_ignored() -> None:
    assert compile_preferred([preferred(0, "zone Bogus")]) == ()


def test_an_invalid_preference_is_rejected() -> None:
    with pytest.raises(NodeSelectorError) as caught:
        compile_preferred([preferred(1, "zone Exists"), preferred(1, "zone Bogus")])
    assert str(caught.value).startswith('[1].matchExpressions[0].operator: Unsupported value: "Bogus"')


# --- Taints and tolerations ------------------------------------------------------------------------------------------


NOT_READY = "node.kubernetes.io/not-ready:NoExecute"


@pytest.mark.parametrize(
    ("tolerated", "tainted", "answer"),
    [
        (toleration("gpu=true:NoSchedule"), "gpu=true:NoSchedule", True),
        (toleration("gpu=false:NoSchedule"), "gpu=true:NoSchedule", False),
        (toleration("gpu=true:NoExecute"), "gpu=true:NoSchedule", False),
        (toleration("fpga=true:NoSchedule"), "gpu=true:NoSchedule", False),
        (toleration("gpu:NoSchedule"), "gpu=true:NoSchedule", True),
        (toleration("gpu"), "gpu=true:NoExecute", True),
        (toleration(":NoSchedule"), "gpu=true:NoSchedule", True),
        (toleration(":NoSchedule"), "gpu=true:NoExecute", False),
        (toleration(""), NOT_READY, True),
        (Toleration(key="gpu", value="true"), "gpu=true:NoSchedule", True),
        (Toleration(key="gpu"), "gpu:NoSchedule", True),
        (Toleration(key="gpu"), "gpu=true:NoSchedule", False),
        (Toleration(value="true"), "gpu=true:NoSchedule", True),
        (Toleration(key="gpu", operator="Exists", value="ignored"), "gpu=true:NoSchedule", True),
        (Toleration(key="sla", operator="Lt", value="9"), "sla=5:NoSchedule", False),
        (Toleration(key="sla", operator="Gt", value="1"), "sla=5:NoSchedule", False),
        (Toleration(key="gpu", operator="Bogus", value="true"), "gpu=true:NoSchedule", False),
    ],
)
def test_tolerations_and_taints(tolerated: Toleration, tainted: str, answer: bool) -> None:
    assert tolerates(tolerated, taint(tainted)) is answer


@pytest.mark.parametrize(
    ("taints", "tolerations", "first"),
    [
        ([], [], None),
        (["gpu:NoSchedule"], [], "gpu:NoSchedule"),
        (["gpu:NoSchedule"], ["gpu"], None),
        (["gpu:PreferNoSchedule"], [], None),
        (["gpu:PreferNoSchedule", NOT_READY], [], NOT_READY),
        (["a:NoSchedule", "b:NoSchedule", "c:NoExecute"], ["a", "c"], "b:NoSchedule"),
        (["a:NoSchedule", "a:NoExecute"], ["a:NoSchedule"], "a:NoExecute"),
        (["gpu:Bogus"], [], None),
    ],
)
def test_find_untolerated_taint(taints: Sequence[str], tolerations: Sequence[str], first: str | None) -> None:
    found = find_untolerated_taint(node(taints=taints).spec.taints, [toleration(text) for text in tolerations])
    assert found == (taint(first) if first is not None else None)


@pytest.mark.parametrize(
    ("taints", "tolerations", "count"),
    [
        ([], [], 0),
        (["a:PreferNoSchedule", "b:PreferNoSchedule"], [], 2),
        (["a:PreferNoSchedule", "b:PreferNoSchedule"], ["a"], 1),
        (["a:PreferNoSchedule"], [":PreferNoSchedule"], 0),
        (["a:NoSchedule", "b:NoExecute"], [], 0),
        (["a:PreferNoSchedule"], ["a:NoSchedule"], 1),
    ],
)
def test_untolerated_soft_taints_are_counted(taints: Sequence[str], tolerations: Sequence[str], count: int) -> None:
    pods_tolerations = tolerations_of_preferences([toleration(text) for text in tolerations])
    assert count_intolerable_preferences(node(taints=taints).spec.taints, pods_tolerations) == count


def test_only_some_tolerations_can_tolerate_a_soft_taint() -> None:
    everything = [toleration(text) for text in ("a", "b:NoSchedule", "c:PreferNoSchedule", "d:NoExecute")]
    assert [kept.key for kept in tolerations_of_preferences(everything)] == ["a", "c"]
