"""The eviction subresource of pods, and how an eviction updates the status of a PodDisruptionBudget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import POD, POD_DISRUPTION_BUDGET
from mooring.apiserver.registry.eviction import evict, spent
from mooring.client.errors import (
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServerError,
    StatusError,
    TooManyRequestsError,
)
from mooring.kit.loop import run
from tests.apiserver.registry.fixture import NOW, RegistryFixture, call

EVICTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "lastProbeTime": None,
    "lastTransitionTime": NOW,
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
READY = {"type": "Ready", "status": "True"}


def run_scenario(scenario: Callable[[RegistryFixture], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(RegistryFixture())

    run(main())


def eviction(name: str = "p", **options: Any) -> Document:
    return {"metadata": {"name": name}, **({"deleteOptions": options} if options else {})}


async def put_pod(
    api_server: RegistryFixture, *, phase: str = "Running", is_ready: bool = True, **metadata: Any
) -> int:
    spec = {"containers": [], "nodeName": "n", "terminationGracePeriodSeconds": 30}
    status = {"phase": phase, "conditions": [READY] if is_ready else []}
    return await api_server.put(
        POD, "p", {"labels": {"app": "x"}, "generation": 1, **metadata}, spec=spec, status=status
    )


async def put_budget(api_server: RegistryFixture, name: str = "b", policy: str | None = None, **status: Any) -> None:
    spec: Document = {"selector": {"matchLabels": {"app": "x"}}}
    if policy is not None:
        spec["unhealthyPodEvictionPolicy"] = policy
    entry: Document = {"manager": "m", "operation": "Update", "apiVersion": "policy/v1", "time": NOW}
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:selector": {}}}}
    metadata = {"generation": 1, "managedFields": [entry]}
    await api_server.put(POD_DISRUPTION_BUDGET, name, metadata, spec=spec, status={"observedGeneration": 1, **status})


async def request_eviction(
    api_server: RegistryFixture, body: Document | None = None, *, is_dry_run: bool = False
) -> None:
    await evict(
        api_server.context, call(POD, "p", "eviction", is_dry_run=is_dry_run), eviction() if body is None else body
    )


def test_eviction_without_a_budget_deletes_the_pod_with_a_disruption_target_condition() -> None:
    async def scenario(api_server: RegistryFixture) -> None:
        await put_pod(api_server)
        await request_eviction(api_server, eviction(gracePeriodSeconds=3))
        pod = await api_server.get(POD, "p")
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 3
        assert pod["status"]["conditions"] == [READY, EVICTED]

    run_scenario(scenario)


def test_eviction_decrements_the_allowed_disruptions_of_the_budget() -> None:
    async def scenario(api_server: RegistryFixture) -> None:
        await put_pod(api_server)
        await put_budget(api_server, disruptionsAllowed=1)
        await request_eviction(api_server)
        budget = await api_server.get(POD_DISRUPTION_BUDGET, "b")
        assert (budget["status"]["disruptionsAllowed"], budget["status"]["disruptedPods"]) == (0, {"p": NOW})
        assert {one["manager"] for one in budget["metadata"]["managedFields"]} == {"m", "kube-apiserver"}
        assert "deletionTimestamp" in (await api_server.get(POD, "p"))["metadata"]

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("options", "is_dry_run"), [({"dryRun": ["All"]}, False), ({}, True)], ids=["in the body", "in the query"]
)
def test_a_dry_run_eviction_writes_nothing(options: Any, is_dry_run: bool) -> None:
    async def scenario(api_server: RegistryFixture) -> None:
        await put_pod(api_server)
        await put_budget(api_server, disruptionsAllowed=1)
        revision = await api_server.store.revision()
        await request_eviction(api_server, eviction(**options), is_dry_run=is_dry_run)
        assert await api_server.store.revision() == revision

    run_scenario(scenario)


def test_eviction_is_rejected_if_the_budget_allows_no_disruption() -> None:
    async def scenario(api_server: RegistryFixture) -> None:
        await put_pod(api_server)
        await put_budget(api_server, disruptionsAllowed=0)
        with pytest.raises(TooManyRequestsError):
            await request_eviction(api_server)
        assert (await api_server.get(POD, "p"))["status"]["conditions"] == [READY]

    run_scenario(scenario)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param({"phase": "Pending"}, id="pending"),
        pytest.param({"phase": "Succeeded"}, id="succeeded"),
        pytest.param({"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 30}, id="terminating"),
    ],
)
def test_eviction_of_a_pending_finished_or_terminating_pod_ignores_budgets(pod: Any) -> None:
    async def scenario(api_server: RegistryFixture) -> None:
        await put_pod(api_server, **pod)
        await put_budget(api_server, disruptionsAllowed=0)
        await request_eviction(api_server)
        assert await api_server.is_gone("p") or "deletionTimestamp" in (await api_server.get(POD, "p"))["metadata"]

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("policy", "healthy", "desired", "is_evicted"),
    [
        pytest.param("AlwaysAllow", 0, 2, True, id="AlwaysAllow"),
        pytest.param(None, 2, 2, True, id="enough healthy pods"),
        pytest.param("IfHealthyBudget", 1, 2, False, id="IfHealthyBudget and too few healthy pods"),
        pytest.param(None, 0, 0, False, id="no healthy pod desired"),
    ],
)
def test_the_unhealthy_pod_eviction_policy_applies_to_a_pod_that_is_not_ready(
    policy: str | None, healthy: int, desired: int, is_evicted: bool
) -> None:
    async def scenario(api_server: RegistryFixture) -> None:
        await put_pod(api_server, is_ready=False)
        await put_budget(
            api_server, policy=policy, disruptionsAllowed=0, currentHealthy=healthy, desiredHealthy=desired
        )
        if is_evicted:
            await request_eviction(api_server)
            assert (await api_server.get(POD_DISRUPTION_BUDGET, "b"))["status"]["disruptionsAllowed"] == 0
            return
        with pytest.raises(TooManyRequestsError):
            await request_eviction(api_server)

    run_scenario(scenario)


def test_eviction_of_a_pod_with_two_budgets_is_an_error() -> None:
    async def scenario(api_server: RegistryFixture) -> None:
        await put_pod(api_server)
        await put_budget(api_server, "a", disruptionsAllowed=1)
        await put_budget(api_server, "b", disruptionsAllowed=1)
        with pytest.raises(ServerError, match="This pod has more than one PodDisruptionBudget") as caught:
            await request_eviction(api_server)
        assert caught.value.reason == ""

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        pytest.param(
            eviction("q"), BadRequestError, "name in URL does not match name in Eviction object", id="another name"
        ),
        pytest.param({}, BadRequestError, "name in URL does not match name in Eviction object", id="no name"),
        pytest.param(
            eviction(preconditions={"uid": "x"}),
            ConflictError,
            'Operation cannot be fulfilled on Pod "p": the UID in the precondition (x) does not match the UID in '
            "record (uid-p). The object might have been deleted and then recreated",
            id="another uid",
        ),
        pytest.param(
            eviction(preconditions={"resourceVersion": "1"}),
            ConflictError,
            'Operation cannot be fulfilled on Pod "p": the ResourceVersion in the precondition (1) does not match the '
            "ResourceVersion in record (2). The object might have been modified",
            id="another resourceVersion",
        ),
        pytest.param(
            eviction(propagationPolicy="x"),
            InvalidError,
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "x": supported values: '
            '"Foreground", "Background", "Orphan", "nil"',
            id="unknown propagation policy",
        ),
        pytest.param(
            eviction(ignoreStoreReadErrorWithClusterBreakingPotential=True),
            InvalidError,
            'Eviction.policy "p" is invalid: deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential: '
            "Invalid value: true: can not be set for pod eviction, try after removing the option",
            id="option that pods do not support",
        ),
    ],
)
def test_an_invalid_eviction_is_rejected(body: Document, kind: type[StatusError], message: str) -> None:
    async def scenario(api_server: RegistryFixture) -> None:
        await put_pod(api_server)
        with pytest.raises(kind) as caught:
            await request_eviction(api_server, {**body})
        assert caught.value.message == message

    run_scenario(scenario)


def test_different_dry_run_options_in_query_and_body_are_an_error() -> None:
    async def scenario(api_server: RegistryFixture) -> None:
        with pytest.raises(
            ServerError, match=r"Non-matching dry-run options in request and content: \[All\] and \[x\]"
        ):
            await request_eviction(api_server, eviction(dryRun=["x"]), is_dry_run=True)

    run_scenario(scenario)


def test_eviction_of_a_missing_pod_is_not_found() -> None:
    async def scenario(api_server: RegistryFixture) -> None:
        with pytest.raises(NotFoundError, match='pods "p" not found'):
            await request_eviction(api_server)

    run_scenario(scenario)


NOW_TEXT = "2026-01-02T03:04:05Z"
BEFORE = "2026-01-01T00:00:00Z"


def budget(**status: Any) -> Document:
    return {"metadata": {"name": "b", "generation": 2}, "status": {"observedGeneration": 2, **status}}


def allowed(status: str, reason: str = "", message: str = "") -> Document:
    return {
        "type": "DisruptionAllowed",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": BEFORE,
    }


def test_spent_decrements_the_allowed_disruptions_and_records_the_pod() -> None:
    status = spent(budget(disruptionsAllowed=2, disruptedPods={"a": BEFORE}), "p", NOW_TEXT)
    assert status == {"observedGeneration": 2, "disruptionsAllowed": 1, "disruptedPods": {"a": BEFORE, "p": NOW_TEXT}}


@pytest.mark.parametrize(
    ("conditions", "since"),
    [
        pytest.param([], NOW_TEXT, id="no condition before"),
        pytest.param([allowed("True", "SufficientPods")], NOW_TEXT, id="condition was true"),
        pytest.param([allowed("False", "SyncFailed", "m")], BEFORE, id="condition was false"),
    ],
)
def test_spending_the_last_disruption_sets_disruption_allowed_to_false(conditions: list[Document], since: str) -> None:
    other = {"type": "Other", "status": "True"}
    status = spent(budget(disruptionsAllowed=1, conditions=[*conditions, other]), "p", NOW_TEXT)
    insufficient = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": 2,
        "lastTransitionTime": since,
        "reason": "InsufficientPods",
        "message": "",
    }
    assert status["conditions"] == ([insufficient, other] if conditions else [other, insufficient])


@pytest.mark.parametrize(
    ("status", "why", "retry_after_s"),
    [
        pytest.param(
            {"observedGeneration": 1}, "is still being processed by the server.", 10, id="old observedGeneration"
        ),
        pytest.param(
            {"currentHealthy": 1, "desiredHealthy": 2},
            "needs 2 healthy pods and has 1 currently",
            None,
            id="too few healthy pods",
        ),
        pytest.param(
            {"conditions": [allowed("False", "SyncFailed", "boom")]},
            "does not allow evicting pods currently because it failed sync: boom",
            None,
            id="sync failed",
        ),
        pytest.param(
            {"currentHealthy": 3, "conditions": [allowed("False", "R", "m")]},
            "does not allow evicting pods currently (R): m",
            None,
            id="another reason",
        ),
        pytest.param({"currentHealthy": 3}, "does not allow evicting pods currently", None, id="no reason"),
    ],
)
def test_a_budget_without_allowed_disruptions_is_a_too_many_requests_error(
    status: Document, why: str, retry_after_s: int | None
) -> None:
    with pytest.raises(TooManyRequestsError) as caught:
        spent(budget(**status), "p", NOW_TEXT)
    error = caught.value
    assert error.message == "Cannot evict pod as it would violate the pod's disruption budget."
    assert [(cause.reason, cause.message) for cause in error.causes] == [
        ("DisruptionBudget", f"The disruption budget b {why}")
    ]
    assert error.retry_after_s == retry_after_s


@pytest.mark.parametrize(
    ("status", "why"),
    [
        pytest.param(
            {"disruptionsAllowed": -1}, "pdb disruptions allowed is negative", id="negative disruptionsAllowed"
        ),
        pytest.param(
            {"disruptionsAllowed": 1, "disruptedPods": dict.fromkeys(map(str, range(2_001)), BEFORE)},
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            id="too many disruptedPods",
        ),
    ],
)
def test_an_invalid_budget_status_forbids_evictions(status: Document, why: str) -> None:
    with pytest.raises(ForbiddenError) as caught:
        spent(budget(**status), "p", NOW_TEXT)
    assert caught.value.message == f'poddisruptionbudget.policy "b" is forbidden: {why}'
    assert caught.value.details == {"name": "b", "group": "policy", "kind": "poddisruptionbudget"}
