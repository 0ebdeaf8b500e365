"""Rules that all kinds with a pod template share, and PodTemplate."""

from __future__ import annotations

import copy
from copy import deepcopy
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CRON_JOB, DAEMON_SET, DEPLOYMENT, JOB, POD_TEMPLATE, REPLICA_SET, STATEFUL_SET
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.kinds.daemon_set import TEMPLATE_GENERATION
from mooring.apiserver.kinds.pod.defaults import WithEmptyLabels
from mooring.apiserver.kinds.pod_template import PodTemplateStrategy, validate_pod_template
from mooring.apiserver.kinds.workloads import (
    int_or_percent,
    pod_name_warnings,
    selector_matcher,
    selector_value,
    validate_at_most_100_percent,
    validate_int_or_percent,
    validate_not_decremented,
    validate_selector_matches,
)
from mooring.client.errors import BadRequestError
from tests.apiserver.core_documents import messages
from tests.apiserver.pod_builders import call_for, pod
from tests.apiserver.workload_builders import body, defaulted

PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)


@pytest.mark.parametrize(
    ("value", "amount", "field_errors"),
    [
        pytest.param(3, 3, [], id="a number"),
        pytest.param(-1, -1, ["f: Invalid value: -1: must be greater than or equal to 0"], id="below zero"),
        pytest.param("25%", 25, [], id="a percentage"),
        pytest.param("200%", 200, ['f: Invalid value: "200%": must not be greater than 100%'], id="above 100 percent"),
        pytest.param("5", 5, [f'f: Invalid value: "5": {PERCENT}'], id="a number as a string"),
        pytest.param("x%", 0, [f'f: Invalid value: "x%": {PERCENT}'], id="no number"),
        pytest.param("-5%", 0, [f'f: Invalid value: "-5%": {PERCENT}'], id="a negative percentage"),
    ],
)
def test_int_or_percent_values_are_read_and_validated(value: int | str, amount: int, field_errors: list[str]) -> None:
    assert int_or_percent(value) == amount
    assert messages(validate_int_or_percent(value, "f") + validate_at_most_100_percent(value, "f")) == field_errors


def test_int_or_percent_of_an_absent_value_is_zero() -> None:
    assert int_or_percent(None) == 0


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        pytest.param({}, "null", id="no labels"),
        pytest.param({"metadata": {}}, "null", id="no labels in the metadata"),
        pytest.param({"metadata": WithEmptyLabels()}, "{}", id="empty labels"),
        pytest.param({"metadata": {"labels": {"z": "1", "a": "2"}}}, '{"a":"2","z":"1"}', id="other labels, sorted"),
    ],
)
def test_a_selector_must_match_the_labels_of_the_template(template: Document, shown: str) -> None:
    matcher = selector_matcher({"matchLabels": {"app": "x"}})
    assert matcher is not None
    assert messages(validate_selector_matches(matcher, template, "t")) == [
        f"t.metadata.labels: Invalid value: {shown}: `selector` does not match template `labels`"
    ]


@pytest.mark.parametrize(
    ("selector", "is_valid"),
    [
        pytest.param(None, True, id="none matches nothing"),
        pytest.param({}, True, id="empty matches everything"),
        pytest.param({"matchLabels": {"a": "b c"}}, False, id="a bad value"),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "Maybe"}]}, False, id="an unknown operator"),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}, True, id="a set"),
    ],
)
def test_selector_matcher_is_none_for_invalid_selectors(selector: Document | None, is_valid: bool) -> None:
    assert (selector_matcher(selector) is not None) is is_valid


def test_selector_value_has_the_field_order_of_its_type() -> None:
    selector = {
        "matchExpressions": [{"values": ["v"], "operator": "In", "key": "k"}],
        "matchLabels": {"b": "1", "a": "2"},
    }
    shown = selector_value(selector)
    assert shown is not None
    assert list(shown) == ["matchLabels", "matchExpressions"]
    assert list(shown["matchLabels"]) == ["a", "b"]
    assert list(shown["matchExpressions"][0]) == ["key", "operator", "values"]


@pytest.mark.parametrize(
    ("new", "old", "field_errors"),
    [
        pytest.param({}, {}, [], id="never counted"),
        pytest.param({"collisionCount": 3}, {"collisionCount": 2}, [], id="grows"),
        pytest.param(
            {"collisionCount": 1},
            {"collisionCount": 2},
            ["s.collisionCount: Invalid value: 1: cannot be decremented"],
            id="shrinks",
        ),
        pytest.param(
            {}, {"collisionCount": 2}, ["s.collisionCount: Invalid value: 0: cannot be decremented"], id="removed"
        ),
    ],
)
def test_the_collision_count_cannot_be_decremented(new: Document, old: Document, field_errors: list[str]) -> None:
    assert messages(validate_not_decremented(new, old, "s")) == field_errors


@pytest.mark.parametrize(
    ("name", "count"),
    [pytest.param("web", 0, id="a label"), pytest.param("web.v2", 1, id="dots"), pytest.param("w" * 64, 1, id="long")],
)
def test_names_that_are_no_dns_labels_have_a_warning(name: str, count: int) -> None:
    assert len(pod_name_warnings(name)) == count


DEFAULTS = {
    "Deployment": strategy_of(DEPLOYMENT).default,
    "ReplicaSet": strategy_of(REPLICA_SET).default,
    "StatefulSet": strategy_of(STATEFUL_SET).default,
    "DaemonSet": strategy_of(DAEMON_SET).default,
    "Job": strategy_of(JOB).default,
    "CronJob": strategy_of(CRON_JOB).default,
}


@pytest.mark.parametrize("kind", DEFAULTS)
def test_defaulting_twice_changes_nothing(kind: str) -> None:
    once = defaulted(body(kind))
    twice = copy.deepcopy(once)
    DEFAULTS[kind](twice)
    assert twice == once


@pytest.mark.parametrize(
    ("kind", "changes", "field", "value"),
    [
        pytest.param(
            "Deployment", {"spec__strategy": {"type": "Recreate"}}, "strategy", {"type": "Recreate"}, id="Recreate"
        ),
        pytest.param(
            "DaemonSet",
            {},
            "updateStrategy",
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            id="update strategy of daemon sets",
        ),
        pytest.param(
            "DaemonSet",
            {"spec__updateStrategy": {"type": "OnDelete", "rollingUpdate": {}}},
            "updateStrategy",
            {"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}},
            id="unused rolling update settings",
        ),
        pytest.param(
            "StatefulSet",
            {},
            "updateStrategy",
            {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            id="update strategy of stateful sets",
        ),
        pytest.param(
            "StatefulSet",
            {"spec__updateStrategy": {"type": "RollingUpdate"}},
            "updateStrategy",
            {"type": "RollingUpdate"},
            id="a given update strategy of stateful sets",
        ),
        pytest.param(
            "StatefulSet",
            {},
            "persistentVolumeClaimRetentionPolicy",
            {"whenDeleted": "Retain", "whenScaled": "Retain"},
            id="claim retention policy",
        ),
        pytest.param("Job", {}, "completions", 1, id="completions of a job"),
        pytest.param("Job", {"spec__parallelism": 2}, "completions", None, id="no completions of a parallel job"),
        pytest.param(
            "Job",
            {"spec__backoffLimitPerIndex": 1},
            "backoffLimit",
            2147483647,
            id="backoff limit with a limit per index",
        ),
        pytest.param(
            "Job",
            {"spec__podFailurePolicy": {"rules": []}},
            "podReplacementPolicy",
            "Failed",
            id="replacement policy with a failure policy",
        ),
        pytest.param("CronJob", {}, "failedJobsHistoryLimit", 1, id="history limit of failed jobs"),
    ],
)
def test_workloads_are_defaulted(kind: str, changes: dict[str, Any], field: str, value: object) -> None:
    assert defaulted(body(kind, **changes))["spec"].get(field) == value


def test_a_job_shares_the_labels_of_its_pods() -> None:
    obj = defaulted(body("Job", spec__template__metadata={"labels": {"a": "b"}}))
    assert obj["metadata"]["labels"] is obj["spec"]["template"]["metadata"]["labels"]


def test_a_job_keeps_its_own_labels() -> None:
    obj = defaulted(body("Job", metadata__labels={"z": "1"}, spec__template__metadata={"labels": {"a": "b"}}))
    assert obj["metadata"]["labels"] == {"z": "1"}


def test_the_status_of_pod_condition_patterns_defaults_to_true() -> None:
    policy: Document = {"rules": [{"action": "Count", "onPodConditions": [{"type": "Ready"}]}]}
    obj = defaulted(body("CronJob", spec__jobTemplate__spec__podFailurePolicy=policy))
    (rule,) = obj["spec"]["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    assert rule["onPodConditions"] == [{"type": "Ready", "status": "True"}]


def test_volume_claim_templates_are_defaulted_like_claims() -> None:
    obj = defaulted(body("StatefulSet", spec__volumeClaimTemplates=[{"metadata": {"name": "d"}, "spec": {}}]))
    (claim,) = obj["spec"]["volumeClaimTemplates"]
    assert (claim["apiVersion"], claim["kind"]) == ("v1", "PersistentVolumeClaim")
    assert claim["spec"]["volumeMode"] == "Filesystem"
    assert claim["status"] == {"phase": "Pending"}


@pytest.mark.parametrize(
    ("kind", "key", "message"),
    [
        pytest.param(
            "DaemonSet",
            TEMPLATE_GENERATION,
            'DaemonSet in version "v1" cannot be handled as a DaemonSet: strconv.ParseInt: parsing "x": invalid syntax',
            id="the generation of a daemon set",
        ),
        pytest.param(
            "Deployment",
            "deprecated.deployment.rollback.revision",
            'Deployment in version "v1" cannot be handled as a Deployment: '
            "failed to parse annotation[deprecated.deployment.rollback.revision]=x as int64: "
            'strconv.ParseInt: parsing "x": invalid syntax',
            id="the rollback revision of a deployment",
        ),
    ],
)
def test_annotations_with_invalid_numbers_are_rejected(kind: str, key: str, message: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        defaulted(body(kind, metadata__annotations={key: "x"}))
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("metadata", "spec", "errors"),
    [
        pytest.param({"labels": {"a": "b"}}, {}, [], id="valid"),
        pytest.param(
            {"labels": {"a": "b c"}},
            {},
            ['t.labels: Invalid value: "b c": a valid label must be an empty string or consist of'],
            id="invalid labels",
        ),
        pytest.param(
            {},
            {"ephemeralContainers": [{"name": "e", "image": "x"}]},
            ["t.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template"],
            id="ephemeral containers",
        ),
        pytest.param({}, {"volumes": [{"name": "v", "image": {}}]}, [], id="an image volume without a reference"),
        pytest.param({}, {"containers": [{"name": "c", "image": " "}]}, [], id="a blank image"),
    ],
)
def test_pod_templates_are_validated(metadata: Document, spec: Document, errors: list[str]) -> None:
    found = messages(validate_pod_template({"metadata": metadata, "spec": pod(spec)["spec"]}, "t"))
    assert len(found) == len(errors), found
    assert all(each.startswith(beginning) for each, beginning in zip(found, errors, strict=True)), found


STRATEGY = PodTemplateStrategy(POD_TEMPLATE)


def made() -> Document:
    spec = pod({"nodeSelector": {"beta.kubernetes.io/os": "linux"}})["spec"]
    return {"metadata": {"name": "t", "namespace": "n"}, "template": {"metadata": {}, "spec": spec}}


def test_an_update_increments_the_generation_only_for_changes_of_the_template() -> None:
    old = made()
    STRATEGY.prepare_for_create(old, call_for(POD_TEMPLATE))
    assert STRATEGY.validate(old, call_for(POD_TEMPLATE)) == []
    new = deepcopy(old)
    new["metadata"]["labels"] = {"a": "b"}
    STRATEGY.prepare_for_update(new, old, call_for(POD_TEMPLATE))
    assert (new["metadata"]["generation"], STRATEGY.warnings_on_update(new, old, call_for(POD_TEMPLATE))) == (1, [])
    new["template"]["spec"]["schedulerName"] = "x"
    STRATEGY.prepare_for_update(new, old, call_for(POD_TEMPLATE))
    assert new["metadata"]["generation"] == 2
    assert STRATEGY.warnings_on_update(new, old, call_for(POD_TEMPLATE)) == [
        'template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'
    ]
