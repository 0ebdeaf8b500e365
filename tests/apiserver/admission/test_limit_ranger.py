"""LimitRanger: defaults and bounds of limit ranges, with the messages of Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import LIMIT_RANGE, PERSISTENT_VOLUME_CLAIM, POD, Kind
from mooring.apiserver.admission.limit_ranger import ANNOTATION, LimitRanger, claim_errors, fill_defaults, pod_errors
from mooring.apiserver.call import Operation
from mooring.client.errors import ForbiddenError
from tests.apiserver.admission.builders import Known, admitted, attempt, check, container, named, pod

BOUNDS = named(
    "b", spec={"limits": [{"type": "Container", "max": {"cpu": "1", "memory": "1Gi"}, "default": {"cpu": "1"}}]}
)
KNOWN = Known({LIMIT_RANGE: [BOUNDS]})


def test_defaults_are_set_without_a_check_of_bounds() -> None:
    made = admitted(LimitRanger(), attempt(POD, pod()), KNOWN)
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}


def test_several_errors_are_reported_in_brackets() -> None:
    with pytest.raises(ForbiddenError) as caught:
        check(LimitRanger(), attempt(POD, pod(containers=[container("a", {}, {"cpu": "2"})])), KNOWN)
    assert caught.value.message == (
        'pods "p" is forbidden: [maximum cpu usage per Container is 1, but limit is 2, '
        "maximum memory usage per Container is 1Gi.  No limit is specified]"
    )


def test_a_claim_above_the_maximum_is_rejected() -> None:
    bounds = named("b", spec={"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]})
    claim = named("c", spec={"resources": {"requests": {"storage": "2Gi"}}})
    with pytest.raises(
        ForbiddenError, match="maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"
    ):
        check(LimitRanger(), attempt(PERSISTENT_VOLUME_CLAIM, claim), Known({LIMIT_RANGE: [bounds]}))


def test_a_terminating_pod_is_not_checked() -> None:
    old = pod()
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    check(LimitRanger(), attempt(POD, pod(), old, subresource="resize"), KNOWN)


@pytest.mark.parametrize(
    ("kind", "subresource", "operation", "expected"),
    [
        (POD, "", Operation.CREATE, True),
        (POD, "", Operation.UPDATE, False),
        (POD, "resize", Operation.UPDATE, True),
        (POD, "status", Operation.UPDATE, False),
        (PERSISTENT_VOLUME_CLAIM, "", Operation.UPDATE, True),
        (PERSISTENT_VOLUME_CLAIM, "status", Operation.UPDATE, False),
    ],
)
def test_limit_ranger_handles_new_pods_resizes_and_claims(
    kind: Kind, subresource: str, operation: Operation, expected: bool
) -> None:
    assert LimitRanger().handles(kind, subresource, operation) is expected


def limit_range(*limits: Document) -> Document:
    return named("lr", spec={"limits": list(limits)})


DEFAULTS = limit_range(
    {"type": "Container", "default": {"cpu": "500m", "memory": "256Mi"}, "defaultRequest": {"cpu": "100m"}},
    {"type": "Pod", "max": {"cpu": "3"}},
)


def test_defaults_are_set_in_containers_and_listed_in_an_annotation() -> None:
    made = pod(containers=[container("a"), container("b", {"cpu": "1"}, {"cpu": "1"})], initContainers=[container("i")])
    fill_defaults(DEFAULTS, made)
    resources = [one["resources"] for one in made["spec"]["containers"]]
    assert resources == [
        {"requests": {"cpu": "100m"}, "limits": {"cpu": "500m", "memory": "256Mi"}},
        {"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "256Mi"}},
    ]
    assert made["metadata"]["annotations"] == {
        ANNOTATION: "LimitRanger plugin set: cpu request for container a; cpu, memory limit for container a; "
        "memory limit for container b; cpu request for init container i; cpu, memory limit for init container i"
    }


def test_a_pod_with_all_requests_and_limits_gets_no_annotation() -> None:
    made = pod(containers=[container("a", {"cpu": "1"}, {"cpu": "1", "memory": "1Gi"})])
    fill_defaults(DEFAULTS, made)
    assert "annotations" not in made["metadata"]


@pytest.mark.parametrize(
    ("limit", "requests", "limits", "expected"),
    [
        pytest.param({"min": {"cpu": "50m"}}, {"cpu": "50m"}, {}, [], id="a sufficient request"),
        pytest.param(
            {"min": {"cpu": "50m"}},
            {},
            {},
            ["minimum cpu usage per Container is 50m.  No request is specified"],
            id="no request",
        ),
        pytest.param(
            {"min": {"cpu": "50m"}},
            {"cpu": "10m"},
            {},
            ["minimum cpu usage per Container is 50m, but request is 10m"],
            id="too small a request",
        ),
        pytest.param(
            {"min": {"cpu": "50m"}},
            {"cpu": "50m"},
            {"cpu": "20m"},
            ["minimum cpu usage per Container is 50m, but limit is 20m"],
            id="too small a limit",
        ),
        pytest.param(
            {"max": {"cpu": "2"}},
            {"cpu": "1"},
            {},
            ["maximum cpu usage per Container is 2.  No limit is specified"],
            id="no limit",
        ),
        pytest.param(
            {"max": {"cpu": "2"}},
            {},
            {"cpu": "5"},
            ["maximum cpu usage per Container is 2, but limit is 5"],
            id="too large a limit",
        ),
        pytest.param(
            {"max": {"cpu": "2"}},
            {"cpu": "3"},
            {"cpu": "2"},
            ["maximum cpu usage per Container is 2, but request is 3"],
            id="too large a request",
        ),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "8"}},
            {"cpu": "50m"},
            {"cpu": "1"},
            ["cpu max limit to request ratio per Container is 8, but provided ratio is 20.000000"],
            id="too large a ratio",
        ),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "8"}},
            {"cpu": "0"},
            {"cpu": "1"},
            ["cpu max limit to request ratio per Container is 8, but no request is specified or request is 0"],
            id="a ratio without a request",
        ),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "1500m"}},
            {"cpu": "1"},
            {},
            ["cpu max limit to request ratio per Container is 1500m, but no limit is specified or limit is 0"],
            id="a ratio without a limit",
        ),
        pytest.param(
            {"min": {"memory": "9Ei", "cpu": "1"}},
            {"memory": "8388608Ti", "cpu": "1"},
            {},
            [],
            id="amounts too large for milli-units",
        ),
    ],
)
def test_bounds_of_containers(limit: Any, requests: Any, limits: Any, expected: list[str]) -> None:
    made = pod(containers=[container("a", requests, limits)])
    assert pod_errors(limit_range({"type": "Container", **limit}), made) == expected


def test_bounds_of_pods_apply_to_the_sum_and_errors_are_not_repeated() -> None:
    two = [container(name, {"cpu": "2"}, {"cpu": "2"}) for name in ("a", "b")]
    bounds = limit_range({"type": "Container", "max": {"cpu": "1"}}, {"type": "Pod", "max": {"cpu": "3"}})
    assert pod_errors(bounds, pod(containers=two)) == [
        "maximum cpu usage per Container is 1, but limit is 2",
        "maximum cpu usage per Pod is 3, but limit is 4",
    ]


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        ("1Gi", []),
        ("500Mi", ["minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"]),
        ("6Gi", ["maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi"]),
    ],
)
def test_bounds_of_claims(storage: str, expected: list[str]) -> None:
    bounds = limit_range({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}})
    claim = named("c", spec={"resources": {"requests": {"storage": storage}}})
    assert claim_errors(bounds, claim) == expected
