"""PodSecurity: namespaces select a level, and pods are checked against it.

Levels, versions, and the text of violations.
"""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CRON_JOB, DEPLOYMENT, NAMESPACE, POD, POD_TEMPLATE, Kind
from mooring.apiserver.admission.pod_security import (
    BASELINE,
    PRIVILEGED,
    RESTRICTED,
    PodSecurity,
    PodSecurityLevel,
    policy_of,
    text_of,
    violations_of,
)
from mooring.apiserver.admission.pod_security_checks import (
    PodSecurityViolation,
    containers_named,
    containers_of,
    setters,
)
from mooring.apiserver.call import Operation
from mooring.client.errors import ForbiddenError, InvalidError
from tests.apiserver.admission.builders import NS, Known, attempt, check, container, pod

LABEL = "pod-security.kubernetes.io/"
PRIVILEGED_POD = pod(containers=[container(securityContext={"privileged": True})])
VIOLATION = 'privileged (container "c" must not set securityContext.privileged=true)'


def namespace(**labels: str) -> Document:
    return {
        "metadata": {
            "name": NS,
            "labels": {f"{LABEL}{mode.replace('_', '-')}": value for mode, value in labels.items()},
        }
    }


def known(**labels: str) -> Known:
    return Known({NAMESPACE: [namespace(**labels)]})


def test_a_pod_that_violates_the_enforced_level_is_rejected() -> None:
    with pytest.raises(ForbiddenError) as caught:
        check(PodSecurity(), attempt(POD, PRIVILEGED_POD), known(enforce="baseline"))
    assert caught.value.message == f'pods "p" is forbidden: violates PodSecurity "baseline:latest": {VIOLATION}'


@pytest.mark.parametrize(
    ("labels", "warnings"),
    [
        pytest.param({}, [], id="no labels"),
        pytest.param({"warn": "baseline"}, [f'would violate PodSecurity "baseline:latest": {VIOLATION}'], id="warn"),
        pytest.param(
            {"warn": "baseline", "warn_version": "v1.20"},
            [f'would violate PodSecurity "baseline:v1.20": {VIOLATION}'],
            id="warn with a version",
        ),
        pytest.param({"audit": "baseline"}, [], id="audit"),
        pytest.param({"warn": "nonsense"}, [], id="an invalid warn label is ignored"),
    ],
)
def test_a_pod_that_violates_the_warn_level_is_created_with_warnings(
    labels: dict[str, str], warnings: list[str]
) -> None:
    made = attempt(POD, PRIVILEGED_POD)
    check(PodSecurity(), made, known(**labels))
    assert made.call.warnings == warnings


def test_an_invalid_enforce_label_enforces_the_restricted_level() -> None:
    with pytest.raises(ForbiddenError, match='violates PodSecurity "restricted:latest"'):
        check(PodSecurity(), attempt(POD, pod()), known(enforce="nonsense"))


@pytest.mark.parametrize(
    ("kind", "wrap"),
    [
        pytest.param(DEPLOYMENT, lambda template: {"spec": {"template": template}}, id="a deployment"),
        pytest.param(
            CRON_JOB, lambda template: {"spec": {"jobTemplate": {"spec": {"template": template}}}}, id="a cron job"
        ),
        pytest.param(POD_TEMPLATE, lambda template: {"template": template}, id="a template"),
    ],
)
def test_workloads_get_warnings_for_the_enforced_level(kind: Kind, wrap: Any) -> None:
    made = attempt(kind, {"metadata": {"name": "m"}, **wrap({"spec": PRIVILEGED_POD["spec"]})})
    check(PodSecurity(), made, known(enforce="baseline"))
    assert made.call.warnings == [f'would violate PodSecurity "baseline:latest": {VIOLATION}']


@pytest.mark.parametrize(
    ("change", "is_checked"),
    [
        pytest.param({"labels": {"a": "b"}}, False, id="labels"),
        pytest.param({"image": "new"}, True, id="another image"),
        pytest.param({"debug": "dbg"}, True, id="an ephemeral container"),
    ],
)
def test_an_update_is_checked_if_it_changes_images_or_containers(change: dict[str, Any], is_checked: bool) -> None:
    new = pod(containers=[{**PRIVILEGED_POD["spec"]["containers"][0], "image": change.get("image", "app:1")}])
    if "debug" in change:
        new["spec"]["ephemeralContainers"] = [container(change["debug"])]
    made = attempt(POD, new, PRIVILEGED_POD)
    if not is_checked:
        check(PodSecurity(), made, known(enforce="baseline"))
        return
    with pytest.raises(ForbiddenError):
        check(PodSecurity(), made, known(enforce="baseline"))


def test_invalid_namespace_labels_are_rejected_with_all_errors() -> None:
    with pytest.raises(InvalidError) as caught:
        check(PodSecurity(), attempt(NAMESPACE, namespace(enforce="x", warn_version="1.2"), name=NS))
    assert [cause.field for cause in caught.value.causes] == [
        f"metadata.labels[{LABEL}enforce]",
        f"metadata.labels[{LABEL}warn-version]",
    ]
    assert [cause.message for cause in caught.value.causes] == [
        'Invalid value: "x": must be one of privileged, baseline, restricted',
        'Invalid value: "1.2": must be "latest" or "v1.x"',
    ]


def test_unchanged_invalid_namespace_labels_are_accepted() -> None:
    check(PodSecurity(), attempt(NAMESPACE, namespace(enforce="x"), namespace(enforce="x")))


def owned(name: str, made: Document) -> Document:
    return {**made, "metadata": {"name": name, "ownerReferences": [{"uid": "u", "controller": True}]}}


@pytest.mark.parametrize(
    ("old", "new", "warnings"),
    [
        pytest.param({}, {"enforce": "privileged"}, [], id="a level without restrictions"),
        pytest.param({"enforce": "restricted"}, {"enforce": "baseline"}, [], id="a less strict level"),
        pytest.param(
            {},
            {"enforce": "baseline"},
            [
                f'existing pods in namespace "{NS}" violate the new PodSecurity enforce level "baseline:latest"',
                "a (and 2 other pods): privileged",
                "h: host namespaces",
            ],
            id="a stricter level",
        ),
    ],
)
def test_a_stricter_enforce_level_warns_of_existing_pods_that_violate_it(
    old: Any, new: Any, warnings: list[str]
) -> None:
    pods = [
        owned("b", PRIVILEGED_POD),
        owned("a", PRIVILEGED_POD),
        {**PRIVILEGED_POD, "metadata": {"name": "c"}},
        pod("fine"),
        pod("h", hostPID=True),
    ]
    made = attempt(NAMESPACE, namespace(**new), namespace(**old))
    check(PodSecurity(), made, Known({POD: pods}))
    assert made.call.warnings == warnings


def test_policy_of_keeps_the_version_of_the_warn_level() -> None:
    policy = policy_of(
        namespace(enforce="baseline", enforce_version="v1.20", warn_version="v1.25")["metadata"]["labels"]
    )
    assert (str(policy.enforce), str(policy.warn)) == ("baseline:v1.20", "baseline:v1.25")


@pytest.mark.parametrize("subresource", ["status", "binding", "eviction"])
def test_other_subresources_are_not_handled(subresource: str) -> None:
    assert not PodSecurity().handles(POD, subresource, Operation.UPDATE)


# --- How violations list containers ----------------------------------------------------------------------------------


def test_containers_of_returns_init_containers_then_containers_then_ephemeral_containers() -> None:
    spec = pod(initContainers=[container("i")], ephemeralContainers=[container("e")])["spec"]
    assert [one["name"] for one in containers_of(spec)] == ["i", "c", "e"]


@pytest.mark.parametrize(("names", "text"), [(["a"], 'container "a"'), (["a", "b"], 'containers "a", "b"')])
def test_containers_named_formats_a_list_of_names(names: list[str], text: str) -> None:
    assert containers_named(names) == text


@pytest.mark.parametrize(
    ("is_pod", "names", "text"),
    [(True, [], "pod"), (False, ["a"], 'container "a"'), (True, ["a"], 'pod and container "a"'), (False, [], "")],
)
def test_setters_formats_the_pod_and_containers(is_pod: bool, names: list[str], text: str) -> None:
    assert setters(is_pod, names) == text


POD_WITH_VIOLATIONS = pod(
    containers=[container(securityContext={"privileged": True})], hostPID=True, volumes=[{"name": "v", "hostPath": {}}]
)


@pytest.mark.parametrize(
    ("level", "reasons"),
    [
        (PodSecurityLevel(PRIVILEGED), []),
        (PodSecurityLevel(BASELINE), ["host namespaces", "hostPath volumes", "privileged"]),
        (
            PodSecurityLevel(RESTRICTED),
            [
                "host namespaces",
                "privileged",
                "allowPrivilegeEscalation != false",
                "unrestricted capabilities",
                "restricted volume types",
                "runAsNonRoot != true",
                "seccompProfile",
            ],
        ),
    ],
    ids=str,
)
def test_stricter_levels_report_more_violations_without_duplicates(level: PodSecurityLevel, reasons: list[str]) -> None:
    found = violations_of(level, POD_WITH_VIOLATIONS["metadata"], POD_WITH_VIOLATIONS["spec"])
    assert [each.reason for each in found] == reasons


@pytest.mark.parametrize(
    ("level", "text"),
    [(PodSecurityLevel(BASELINE), "baseline:latest"), (PodSecurityLevel(RESTRICTED, 24), "restricted:v1.24")],
)
def test_a_level_is_formatted_with_its_version(level: PodSecurityLevel, text: str) -> None:
    assert str(level) == text


def test_text_of_formats_violations() -> None:
    assert text_of([PodSecurityViolation("a", "b"), PodSecurityViolation("c", "")]) == "a (b), c"
