"""A pod is judged the same, whether one like it was judged before or not."""

from __future__ import annotations

from copy import deepcopy

import pytest

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.apiserver.strategies.pod import PodStrategy
from mooring.apiserver.strategies.pod_judgements import PodJudgement, PodJudgements, question_about
from tests.apiserver.pod_builders import call_for, pod

TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["k"]}
KEYED = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}}
APPARMOR = {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}
TIMES_UNTIL_KEPT = 2
CLAIM = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def test_what_comes_once_is_not_kept() -> None:
    judgements, made = PodJudgements(), pod()
    question = question_about(made)
    assert question is not None
    made["status"] = {"qosClass": "BestEffort"}
    for time in range(1, TIMES_UNTIL_KEPT + 1):
        assert judgements.find(question) is None
        judgements.note(question, made, ["unwise"])
        assert (judgements.find(question) is not None) is (time == TIMES_UNTIL_KEPT)
    assert judgements.find(question) == PodJudgement("BestEffort", ("unwise",))


def with_token(name: str, metadata: Document | None = None, mounted: str = "", **spec: object) -> Document:
    """A pod with a volume for the token, as admission leaves it."""
    volume = {"name": name, "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    mount = {"name": mounted or name, "mountPath": "/var/run/token"}
    whole = {"serviceAccountName": "default", "volumes": [volume], **spec}
    return pod(whole, {"volumeMounts": [mount]}, metadata)


def variables(*values: str) -> Document:
    """A pod that sets one variable several times, which is unwise."""
    return pod(container={"env": [{"name": "A", "value": value} for value in values]})


def judged(strategy: PodStrategy, made: Document) -> tuple[object, ...]:
    made, call = deepcopy(made), call_for()
    judgement = strategy.judge_new(made, call)
    return [str(fault) for fault in judgement.faults], list(judgement.warnings), call.warnings, made


@pytest.mark.parametrize(
    ("first", "second", "is_same_question"),
    [
        pytest.param(pod(), pod(metadata={"name": "q"}), True, id="another name"),
        pytest.param(pod(), pod(metadata={"name": "a.b"}), True, id="a name that is no hostname"),
        pytest.param(pod(), pod(metadata={"labels": {"-": ""}}), True, id="a label that cannot be"),
        pytest.param(pod(), pod(metadata={"annotations": {"a": "b"}}), False, id="annotations"),
        pytest.param(pod(), pod(metadata={"annotations": APPARMOR}), False, id="an annotation that becomes a field"),
        pytest.param(pod(), pod(container={"image": "nginx:2"}), True, id="another image"),
        pytest.param(variables("1", "2"), variables("2", "3"), True, id="other values of variables"),
        pytest.param(variables("1", "2"), variables("1", "$(A) 2"), False, id="a value that extends another"),
        pytest.param(pod(), pod(container={"image": " nginx"}), False, id="an image with a blank"),
        pytest.param(pod(), pod(container={"resources": {"requests": {"cpu": "1"}}}), False, id="another quality"),
        pytest.param(
            with_token("kube-api-access-bcdfg"), with_token("kube-api-access-22222"), True, id="another token volume"
        ),
        pytest.param(
            with_token("kube-api-access-bcdfg"),
            with_token("kube-api-access-22222", mounted="kube-api-access-bcdfg"),
            False,
            id="a mount of what is no volume",
        ),
        pytest.param(
            with_token("kube-api-access-bcdfg"), with_token("kube-api-access-BCDFG"), False, id="a name by hand"
        ),
        pytest.param(
            pod({"nodeSelector": {"beta.kubernetes.io/os": "linux"}}),
            pod({"nodeSelector": {"beta.kubernetes.io/os": "linux"}}),
            True,
            id="something unwise",
        ),
    ],
)
def test_the_second_pod_is_judged_as_if_it_were_the_first(
    first: Document, second: Document, is_same_question: bool
) -> None:
    expected = judged(PodStrategy(POD), second)
    strategy = PodStrategy(POD)
    for _ in range(TIMES_UNTIL_KEPT):
        judged(strategy, first)
    assert judged(strategy, second) == expected
    assert judged(strategy, second) == expected
    one, other = question_about(first), question_about(second)
    assert one is not None
    assert other is not None
    assert (one.content == other.content) is is_same_question


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(pod(KEYED), pod(KEYED, metadata={"labels": {"k": "v"}}), id="keys of labels"),
        pytest.param(
            pod({"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": CLAIM}}]}),
            pod(
                {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": CLAIM}}]},
                metadata={"name": "n" * 253},
            ),
            id="a claim named after the pod",
        ),
        pytest.param(pod({"schedulingGates": [{"name": "g"}]}), pod({"schedulingGates": [{"name": "g"}]}), id="a gate"),
    ],
)
def test_what_is_judged_by_more_than_the_spec_is_not_remembered(first: Document, second: Document) -> None:
    assert question_about(first) is None
    expected = judged(PodStrategy(POD), second)
    strategy = PodStrategy(POD)
    for _ in range(TIMES_UNTIL_KEPT):
        judged(strategy, first)
    assert judged(strategy, second) == expected


def test_nobody_asks_about_a_spec_that_is_new() -> None:
    strategy = PodStrategy(POD)
    for _ in range(TIMES_UNTIL_KEPT + 1):
        call = call_for()
        call.is_spec_new = True
        judgement = strategy.judge_new(pod(), call)
        assert not judgement.faults
        assert judgement.spec is None
    for time in range(TIMES_UNTIL_KEPT + 1):
        judgement = strategy.judge_new(pod(), call_for())
        assert (judgement.spec is not None) is (time == TIMES_UNTIL_KEPT)
