"""Tests of kinds.pod.update and kinds.pod.resize."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.pod.options import STRICT, STRICT_POD
from mooring.apiserver.kinds.pod.update import (
    is_static,
    options_after,
    validate_ephemeral_containers_update,
    validate_pod_update,
    validate_resize,
    validate_static,
)
from tests.apiserver.core_documents import messages
from tests.apiserver.pod_builders import changed, errors_of, pod, stored

TERM: Document = {
    "topologyKey": "z",
    "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]},
}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"affinity": {"podAffinity": {REQUIRED: [TERM]}}}, id="a selector of pods"),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        REQUIRED: {
                            "nodeSelectorTerms": [{"matchExpressions": TERM["labelSelector"]["matchExpressions"]}]
                        }
                    }
                }
            },
            id="a selector of nodes",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", **TERM},
                ]
            },
            id="a selector of spreading",
        ),
        pytest.param(
            {"hostNetwork": True, "securityContext": {"sysctls": [{"name": "net.x", "value": "1"}]}},
            id="kernel parameters of the host",
        ),
        pytest.param(
            {"securityContext": {"seLinuxChangePolicy": "MountOption"}},
            id="an SELinux policy behind a disabled feature gate",
        ),
        pytest.param({"hostUsers": False, "hostNetwork": True}, id="hostUsers of false with hostNetwork"),
        pytest.param({"tolerations": [{"key": "a", "operator": "Gt", "value": "5"}]}, id="a comparison"),
    ],
)
def test_unchanged_invalid_fields_are_accepted_on_update(spec: Document) -> None:
    assert errors_of(pod(spec)) != []
    old = stored(pod(spec))
    assert messages(validate_pod_update(old, old, options_after(old, is_pod=True))) == []


def test_options_of_new_objects_are_strict() -> None:
    assert options_after(None, is_pod=False) == STRICT
    assert options_after(stored(pod()), is_pod=True) == STRICT_POD


POD_UPDATE_VALIDATION_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERMS = f"spec.affinity.nodeAffinity.{POD_UPDATE_VALIDATION_REQUIRED}.nodeSelectorTerms"
OTHER = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"


def term(**labels: str) -> Document:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]}


def node_affinity(*terms: Document) -> Document:
    return {"nodeAffinity": {POD_UPDATE_VALIDATION_REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def container(**fields: object) -> list[Document]:
    made = pod()["spec"]["containers"][0]
    return [{**made, "resources": {"limits": {"memory": "1Gi"}, "requests": {"memory": "1Gi"}}, **fields}]


def plain() -> Document:
    spec = {"activeDeadlineSeconds": 50, "tolerations": [{"key": "a", "operator": "Exists"}]}
    return stored(pod(spec, {"resources": {"limits": {"memory": "1Gi"}}}))


def gated() -> Document:
    gates = [{"name": "a"}, {"name": "b"}]
    return stored(
        pod({"schedulingGates": gates, "nodeSelector": {"a": "b"}, "affinity": node_affinity(term(x="y"), {})})
    )


def errors_of_change(old: Document, spec: Document) -> list[str]:
    return messages(validate_pod_update(changed(old, spec), old, options_after(old, is_pod=True)))


@pytest.mark.parametrize(
    ("spec", "beginnings"),
    [
        pytest.param({}, [], id="nothing changes"),
        pytest.param({"containers": container(image="b")}, [], id="an image"),
        pytest.param(
            {"containers": container(image=" b")},
            [
                'spec.containers[0].image: Invalid value: " b": must not have leading or trailing whitespace',
                'spec.containers[0].image: Invalid value: " b": must not have leading or trailing whitespace',
            ],
            id="an image with leading whitespace, reported twice",
        ),
        pytest.param(
            {"containers": container(resources={"limits": {"memory": "1024Mi"}, "requests": {"memory": "1024Mi"}})},
            [],
            id="the same amount in another unit",
        ),
        pytest.param({"containers": container(command=["x"])}, [OTHER], id="a command"),
        pytest.param(
            {"containers": [*container(), {**container()[0], "name": "d"}]},
            ["spec.containers: Forbidden: pod updates may not add or remove containers"],
            id="another container",
        ),
        pytest.param({"nodeName": "n1"}, [OTHER], id="nodeName, which only a binding sets"),
        pytest.param({"activeDeadlineSeconds": 5}, [], id="an earlier deadline"),
        pytest.param(
            {"activeDeadlineSeconds": 60},
            ["spec.activeDeadlineSeconds: Invalid value: 60: must be less than or equal to previous value"],
            id="a later deadline",
        ),
        pytest.param(
            {"activeDeadlineSeconds": None},
            ["spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"],
            id="no deadline any more",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]},
            [],
            id="one more toleration",
        ),
        pytest.param(
            {"tolerations": [{"key": "b", "operator": "Exists"}]},
            ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
            id="one toleration less",
        ),
        pytest.param(
            {"schedulingGates": [{"name": "g"}]},
            [
                "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'",
            ],
            id="a new scheduling gate",
        ),
        pytest.param({"nodeSelector": {"a": "b"}}, [OTHER], id="a node selector of a pod that is not gated"),
    ],
)
def test_updates_of_pods_are_validated(spec: Document, beginnings: list[str]) -> None:
    errors = errors_of_change(plain(), spec)
    assert len(errors) == len(beginnings), errors
    assert all(error.startswith(beginning) for error, beginning in zip(errors, beginnings, strict=True)), errors


@pytest.mark.parametrize(
    ("spec", "beginnings"),
    [
        pytest.param({"schedulingGates": [{"name": "b"}]}, [], id="one gate less"),
        pytest.param({"schedulingGates": None}, [], id="no gates"),
        pytest.param({"nodeSelector": {"a": "b", "c": "d"}}, [], id="a tighter selector"),
        pytest.param(
            {"nodeSelector": {"a": "c"}},
            ['spec.nodeSelector: Invalid value: {"a":"c"}: only additions to spec.nodeSelector are allowed'],
            id="another selector",
        ),
        pytest.param(
            {"nodeSelector": None},
            ["spec.nodeSelector: Invalid value: null: only additions to spec.nodeSelector are allowed"],
            id="no selector",
        ),
        pytest.param({"affinity": node_affinity(term(x="y", z="q"), {})}, [], id="a tighter term"),
        pytest.param(
            {"affinity": node_affinity(term(x="z"), {})},
            [f'{TERMS}[0]: Invalid value: {{"MatchExpressions":'],
            id="another term",
        ),
        pytest.param(
            {"affinity": node_affinity(term(x="y"), term(a="b"))},
            [f'{TERMS}[1]: Invalid value: {{"MatchExpressions":'],
            id="an empty term gets expressions",
        ),
        pytest.param({"affinity": node_affinity(term(x="y"))}, [f"{TERMS}: Invalid value: [{{"], id="one term less"),
        pytest.param({"affinity": None}, [f"{TERMS}: Invalid value: null: no additions/deletions"], id="no affinity"),
        pytest.param({"schedulerName": "x"}, [OTHER], id="anything else"),
    ],
)
def test_updates_of_gated_pods_are_validated(spec: Document, beginnings: list[str]) -> None:
    errors = errors_of_change(gated(), spec)
    assert len(errors) == len(beginnings), errors
    assert all(error.startswith(beginning) for error, beginning in zip(errors, beginnings, strict=True)), errors


def test_a_forbidden_update_is_reported_with_a_diff() -> None:
    (error,) = errors_of_change(plain(), {"schedulerName": "x"})
    difference = error.partition("\n")[2].splitlines()
    assert difference[0].startswith("@@ -")
    assert [line for line in difference if line[0] in "+-"] == [
        '- "SchedulerName": "default-scheduler",',
        '+ "SchedulerName": "x",',
    ]


PATH = "spec.ephemeralContainers: Forbidden: existing ephemeral containers"


def debugger(name: str, **fields: object) -> Document:
    made: Document = pod({"ephemeralContainers": [{"name": name, "image": "x"}]})["spec"]["ephemeralContainers"][0]
    return {**made, **fields}


@pytest.mark.parametrize(
    ("containers", "beginnings"),
    [
        pytest.param([debugger("d")], [], id="nothing changes"),
        pytest.param([debugger("e"), debugger("d")], [], id="one more, in any order"),
        pytest.param(None, [f'{PATH} "d" may not be removed\n'], id="one less"),
        pytest.param([debugger("d", image="y")], [f'{PATH} "d" may not be changed\n@@ '], id="another image"),
        pytest.param(
            [debugger("d"), debugger("c")],
            ['spec.ephemeralContainers[1].name: Duplicate value: "c"'],
            id="one named like a container",
        ),
    ],
)
def test_updates_of_ephemeral_containers_are_validated(
    containers: list[Document] | None, beginnings: list[str]
) -> None:
    old = stored(pod())
    old["spec"]["ephemeralContainers"] = [debugger("d")]
    new = changed(old, {"ephemeralContainers": containers})
    errors = messages(validate_ephemeral_containers_update(new, old, STRICT_POD))
    assert len(errors) == len(beginnings), errors
    assert all(error.startswith(beginning) for error, beginning in zip(errors, beginnings, strict=True)), errors


def test_a_static_pod_is_recognized_by_its_annotation_and_has_one_error() -> None:
    assert is_static(pod({"nodeName": "n"}, metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}))
    assert not is_static(pod())
    assert messages(validate_static("no")) == ["[]: Forbidden: no"]


SIZES: Document = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}


def old_pod() -> Document:
    made = stored(pod({"initContainers": [{"name": "i", "image": "x", "resources": {"requests": {"cpu": "1"}}}]}))
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}
    made["status"]["qosClass"] = "Burstable"
    return made


@pytest.mark.parametrize(
    ("field", "value", "errors"),
    [
        pytest.param("resources", SIZES, [], id="nothing changes"),
        pytest.param("resources", {**SIZES, "requests": {"cpu": "1500m", "memory": "1Gi"}}, [], id="more cpu"),
        pytest.param(
            "resources",
            {"requests": SIZES["requests"]},
            ["spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"],
            id="no limit any more",
        ),
        pytest.param(
            "resources",
            {**SIZES, "requests": {**SIZES["requests"], "ephemeral-storage": "1Gi"}},
            ["spec: Forbidden: only cpu and memory resources are mutable"],
            id="another resource",
        ),
        pytest.param(
            "resources",
            {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}},
            [],
            id="guaranteed for one container of two leaves the pod burstable",
        ),
        pytest.param("image", "y", ["spec: Forbidden: only cpu and memory resources are mutable"], id="the image"),
        pytest.param(
            "name",
            "z",
            ["spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"],
            id="the name",
        ),
    ],
)
def test_resizes_of_containers_are_validated(field: str, value: object, errors: list[str]) -> None:
    old = old_pod()
    new = changed(old, {"containers": [{**old["spec"]["containers"][0], field: value}]})
    assert messages(validate_resize(new, old, STRICT_POD)) == errors


def test_a_resize_must_not_change_the_qos_class() -> None:
    old = stored(pod())
    new = changed(old, {"containers": [{**old["spec"]["containers"][0], "resources": {"requests": {"cpu": "1"}}}]})
    assert messages(validate_resize(new, old, STRICT_POD)) == [
        'spec: Invalid value: "BestEffort": Pod QOS Class may not change as a result of resizing'
    ]


def test_a_resize_is_forbidden_if_the_kubelet_reports_no_resources() -> None:
    old = old_pod()
    old["status"]["containerStatuses"] = [{"name": "c", "state": {"running": {}}}]
    assert messages(validate_resize(changed(old), old, STRICT_POD)) == [
        "spec: Forbidden: Pod running on node without support for resize"
    ]


@pytest.mark.parametrize(
    ("resources", "errors"),
    [
        pytest.param({"requests": {"cpu": "3"}}, [], id="higher pod-level requests"),
        pytest.param(
            None, ["spec.resources: Forbidden: pod-level resources cannot be removed"], id="pod-level resources removed"
        ),
        pytest.param(
            {"requests": {"memory": "1Gi"}},
            ["spec.resources.requests: Forbidden: pod-level resource requests cannot be removed"],
            id="another resource instead",
        ),
    ],
)
def test_resizes_of_pod_level_resources_are_validated(resources: Document | None, errors: list[str]) -> None:
    old = stored(pod({"resources": {"requests": {"cpu": "2"}}}))
    old["status"]["qosClass"] = "Burstable"
    found = messages(validate_resize(changed(old, {"resources": resources}), old, STRICT_POD))
    assert [each for each in found if "QOS" not in each] == errors
