"""ResourceQuota admission: quotas are checked and charged.

Evaluators: usage, scopes and required resources of pods, services, claims and counted kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.kinds import (
    CONFIG_MAP,
    CORE_EVENT,
    DEPLOYMENT,
    DEVICE_CLASS,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_QUOTA,
    SERVICE,
    Kind,
)
from mooring.api.views.administration import ScopeRequirement
from mooring.apiserver.admission.resource_quota import (
    DeviceClaimEvaluator,
    PodEvaluator,
    QuotaEvaluator,
    ResourceQuotaAdmission,
    ServiceEvaluator,
    VolumeClaimEvaluator,
)
from mooring.apiserver.call import Operation
from mooring.client.errors import ConflictError, ForbiddenError
from mooring.kit.tasks import TaskGroup
from tests.apiserver.admission.builders import Known, attempt, check, container, named, pod, wait


class FakeQuotaWriter:
    """Writes the status of the quotas of the lookup; the first `conflicts` writes fail."""

    def __init__(self, known: Known, conflicts: int = 0) -> None:
        self.known, self.conflicts, self.written = known, conflicts, 0

    async def write_used(self, quota: Document, used: Mapping[str, str], now: str) -> bool:
        if self.conflicts:
            self.conflicts -= 1
            return False
        self.written += 1
        quotas = self.known.objects[RESOURCE_QUOTA]
        name = quota["metadata"]["name"]
        self.known.objects[RESOURCE_QUOTA] = [
            {**one, "status": {**one["status"], "used": dict(used)}} if one["metadata"]["name"] == name else one
            for one in quotas
        ]
        return True

    def used(self, name: str = "q") -> dict[str, str]:
        found = next(one for one in self.known.objects[RESOURCE_QUOTA] if one["metadata"]["name"] == name)
        used: dict[str, str] = found["status"]["used"]
        return used


def quota(name: str = "q", hard: Any = None, used: Any = None, **spec: Any) -> Document:
    status = {"hard": hard, "used": used if used is not None else dict.fromkeys(hard, "0")}
    return named(name, spec={"hard": hard, **spec}, status=status)


def writer_of(*quotas: Document, conflicts: int = 0) -> FakeQuotaWriter:
    return FakeQuotaWriter(Known({RESOURCE_QUOTA: list(quotas)}), conflicts)


def test_usage_is_added_to_the_quota() -> None:
    writer = writer_of(quota(hard={"pods": "2", "requests.cpu": "1", "services": "5"}))
    plugin = ResourceQuotaAdmission(writer)
    check(plugin, attempt(POD, pod(containers=[container("a", {"cpu": "500m"})])), writer.known)
    assert writer.used() == {"pods": "1", "requests.cpu": "500m", "services": "0"}


@pytest.mark.parametrize(
    ("status", "made", "why"),
    [
        pytest.param(
            quota(hard={"pods": "1", "requests.cpu": "1"}, used={"pods": "1", "requests.cpu": "500m"}),
            pod(containers=[container("a", {"cpu": "800m"})]),
            "exceeded quota: q, requested: pods=1,requests.cpu=800m, used: pods=1,requests.cpu=500m, "
            "limited: pods=1,requests.cpu=1",
            id="too much",
        ),
        pytest.param(
            quota(hard={"pods": "1", "requests.cpu": "1"}),
            pod(),
            "failed quota: q: must specify requests.cpu for: c",
            id="a missing request",
        ),
        pytest.param(
            quota(hard={"pods": "1", "count/pods": "1"}, used={"pods": "0"}),
            pod(),
            "status unknown for quota: q, resources: count/pods,pods",
            id="the quota has no usage yet",
        ),
    ],
)
def test_a_pod_above_the_quota_is_rejected(status: Document, made: Document, why: str) -> None:
    writer = writer_of(status)
    with pytest.raises(ForbiddenError) as caught:
        check(ResourceQuotaAdmission(writer), attempt(POD, made), writer.known)
    assert caught.value.message == f'pods "p" is forbidden: {why}'
    assert writer.written == 0


def test_a_dry_run_is_checked_but_not_charged() -> None:
    writer = writer_of(quota(hard={"configmaps": "1"}))
    plugin = ResourceQuotaAdmission(writer)
    check(plugin, attempt(CONFIG_MAP, named("a"), is_dry_run=True), writer.known)
    assert writer.used() == {"configmaps": "0"}
    check(plugin, attempt(CONFIG_MAP, named("a")), writer.known)
    with pytest.raises(ForbiddenError, match="exceeded quota: q, requested: configmaps=1, used: configmaps=1"):
        check(plugin, attempt(CONFIG_MAP, named("b"), is_dry_run=True), writer.known)


@pytest.mark.parametrize(
    ("scopes", "is_charged"),
    [(["BestEffort"], True), (["NotBestEffort"], False), (["BestEffort", "Terminating"], False)],
    ids=["a matching scope", "another scope", "one of two scopes"],
)
def test_a_scoped_quota_applies_only_to_pods_in_its_scopes(scopes: list[str], is_charged: bool) -> None:
    writer = writer_of(quota(hard={"pods": "1"}, scopes=scopes))
    check(ResourceQuotaAdmission(writer), attempt(POD, pod()), writer.known)
    assert writer.used() == {"pods": "1" if is_charged else "0"}


def test_a_scoped_quota_does_not_apply_to_kinds_without_scopes() -> None:
    writer = writer_of(quota(hard={"configmaps": "0"}, scopes=["BestEffort"]))
    check(ResourceQuotaAdmission(writer), attempt(CONFIG_MAP, named("a")), writer.known)


def test_an_update_is_charged_with_the_increase() -> None:
    writer = writer_of(
        quota(hard={"services": "1", "services.nodeports": "3"}, used={"services": "1", "services.nodeports": "1"})
    )
    old = named("s", spec={"type": "NodePort", "ports": [{"port": 1}]})
    new = named("s", spec={"type": "NodePort", "ports": [{"port": 1}, {"port": 2}, {"port": 3}]})
    check(ResourceQuotaAdmission(writer), attempt(SERVICE, new, old), writer.known)
    assert writer.used() == {"services": "1", "services.nodeports": "3"}
    check(ResourceQuotaAdmission(writer), attempt(SERVICE, old, new), writer.known)
    assert writer.used() == {"services": "1", "services.nodeports": "3"}


def test_a_pod_that_enters_a_scope_by_an_update_is_charged_in_full() -> None:
    writer = writer_of(quota(hard={"pods": "1"}, scopes=["Terminating"]))
    check(ResourceQuotaAdmission(writer), attempt(POD, pod(activeDeadlineSeconds=1), pod()), writer.known)
    assert writer.used() == {"pods": "1"}


def test_a_status_update_is_charged_above_the_quota() -> None:
    writer = writer_of(quota(hard={"requests.storage": "1Gi"}, used={"requests.storage": "1Gi"}))
    old = named("c", spec={"resources": {"requests": {"storage": "1Gi"}}})
    new = {**old, "status": {"allocatedResources": {"storage": "2Gi"}}}
    check(
        ResourceQuotaAdmission(writer), attempt(PERSISTENT_VOLUME_CLAIM, new, old, subresource="status"), writer.known
    )
    assert writer.used() == {"requests.storage": "2Gi"}


def test_all_quotas_are_charged_and_a_conflicting_write_is_repeated() -> None:
    writer = writer_of(quota("a", {"pods": "1"}), quota("b", {"pods": "9"}), conflicts=1)
    check(ResourceQuotaAdmission(writer), attempt(POD, pod()), writer.known)
    assert (writer.used("a"), writer.used("b"), writer.written) == ({"pods": "1"}, {"pods": "1"}, 2)


def test_repeated_write_conflicts_are_reported_as_a_conflict() -> None:
    writer = writer_of(quota(hard={"pods": "9"}), conflicts=99)
    with pytest.raises(ConflictError, match='Operation cannot be fulfilled on resourcequotas "q"'):
        check(ResourceQuotaAdmission(writer), attempt(POD, pod()), writer.known)


def test_concurrent_requests_do_not_exceed_the_quota() -> None:
    writer = writer_of(quota(hard={"pods": "3"}))
    plugin = ResourceQuotaAdmission(writer)
    outcomes: list[bool] = []

    async def create() -> None:
        try:
            await plugin.check(attempt(POD, pod()), writer.known)
            outcomes.append(True)
        except ForbiddenError:
            outcomes.append(False)

    async def create_all() -> None:
        async with TaskGroup("creators") as group:
            for number in range(5):
                group.start(create(), name=f"creator {number}")

    wait(create_all())
    assert (sorted(outcomes), writer.used()) == ([False, False, True, True, True], {"pods": "3"})


def test_kinds_and_subresources_without_quota_are_not_handled() -> None:
    plugin = ResourceQuotaAdmission(writer_of())
    assert not plugin.handles(CORE_EVENT, "", Operation.CREATE)
    assert not plugin.handles(NODE, "", Operation.CREATE)
    assert not plugin.handles(NAMESPACE, "", Operation.CREATE)
    assert not plugin.handles(POD, "binding", Operation.CREATE)


VOLUMES = VolumeClaimEvaluator(kinds.PERSISTENT_VOLUME_CLAIM)
SERVICES = ServiceEvaluator(kinds.SERVICE)
DEVICES = DeviceClaimEvaluator(RESOURCE_CLAIM)
CLASSES = Known({DEVICE_CLASS: [named("gpu", spec={"extendedResourceName": "example.com/gpu"}), named("nic", spec={})]})


def used(measure: QuotaEvaluator, obj: Document, known: Known | None = None) -> dict[str, str]:
    amounts = wait(measure.usage(obj, attempt(measure.kind, obj), known or Known()))
    return {name: str(amount) for name, amount in amounts.items()}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(DEPLOYMENT, {"count/deployments.apps": "1"}), (CONFIG_MAP, {"count/configmaps": "1", "configmaps": "1"})],
    ids=str,
)
def test_objects_are_counted_under_all_their_resource_names(kind: Kind, expected: dict[str, str]) -> None:
    measure = QuotaEvaluator(kind)
    assert used(measure, named("x")) == expected
    assert sorted(wait(measure.counted([*expected, "pods"], Known()))) == sorted(expected)


@pytest.mark.parametrize(
    ("measure", "handled"),
    [
        pytest.param(QuotaEvaluator(CONFIG_MAP), {("", "CREATE")}, id="a counted kind"),
        pytest.param(SERVICES, {("", "CREATE"), ("", "UPDATE")}, id="services"),
        pytest.param(VOLUMES, {("", "CREATE"), ("", "UPDATE"), ("status", "UPDATE")}, id="volume claims"),
        pytest.param(DEVICES, {("", "CREATE"), ("", "UPDATE")}, id="devices"),
    ],
)
def test_operations_that_change_usage_are_handled(measure: QuotaEvaluator, handled: set[tuple[str, str]]) -> None:
    possible = [(subresource, operation) for subresource in ("", "status") for operation in Operation]
    assert {(each, does.value) for each, does in possible if measure.handles(each, does)} == handled


def test_service_evaluator() -> None:
    obj = named("s", spec={"type": "NodePort", "ports": [{"port": 1}]})
    assert used(SERVICES, obj)["services.nodeports"] == "1"
    assert wait(SERVICES.counted(["services.loadbalancers", "pods"], Known())) == ["services.loadbalancers"]


def test_volume_claim_evaluator() -> None:
    claim = named("c", spec={"resources": {"requests": {"storage": "1Gi"}}, "volumeAttributesClassName": "fast"})
    assert used(VOLUMES, claim)["requests.storage"] == "1Gi"
    assert wait(VOLUMES.counted(["requests.storage", "pods"], Known())) == ["requests.storage"]
    for name, expected in (("fast", True), ("slow", False)):
        scope = ScopeRequirement(scope_name="VolumeAttributesClass", operator="In", values=(name,))
        assert VOLUMES.is_in_scope(scope, claim) is expected


def devices(name: str, count: int, **metadata: Any) -> Document:
    request = {"exactly": {"deviceClassName": name, "allocationMode": "ExactCount", "count": count}}
    return {"metadata": {"name": "c", **metadata}, "spec": {"devices": {"requests": [request]}}}


def test_devices_are_counted_under_the_extended_resource_of_their_class() -> None:
    assert used(DEVICES, devices("gpu", 2), CLASSES) == {
        "count/resourceclaims.resource.k8s.io": "1",
        "gpu.deviceclass.resource.k8s.io/devices": "2",
        "requests.deviceclass.resource.kubernetes.io/gpu": "2",
        "requests.example.com/gpu": "2",
    }
    names = ["requests.example.com/gpu", "requests.example.com/other"]
    assert wait(DEVICES.counted(names, CLASSES)) == names[:1]


@pytest.mark.parametrize(("uid", "expected"), [("u", "1"), ("another", "3")], ids=["its pod", "another pod"])
def test_devices_charged_to_a_pod_are_not_charged_to_its_claim(uid: str, expected: str) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    claim = devices(
        "gpu", 3, annotations=annotations, ownerReferences=[owner], creationTimestamp="2026-01-01T00:00:00Z"
    )
    asking = pod(containers=[container("a", {"example.com/gpu": "2"})])
    asking["metadata"]["uid"] = "u"
    known = Known({**CLASSES.objects, POD: [asking], RESOURCE_CLAIM: [claim]})
    assert used(DEVICES, claim, known)["requests.example.com/gpu"] == expected


MEASURE = PodEvaluator(POD)


def test_a_pod_is_not_charged_for_cpu_after_its_deletion_grace_period() -> None:
    made = pod(containers=[container("a", {"cpu": "1"})])
    made["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert str(wait(MEASURE.usage(made, attempt(POD, made), Known()))["requests.cpu"]) == "1"
    made["metadata"] |= {"deletionGracePeriodSeconds": 30}
    assert list(wait(MEASURE.usage(made, attempt(POD, made), Known()))) == ["count/pods"]


@pytest.mark.parametrize(("scope", "expected"), [("Terminating", True), ("NotTerminating", False)])
def test_the_scopes_terminating_and_not_terminating(scope: str, expected: bool) -> None:
    requirement = ScopeRequirement(scope_name=scope, operator="Exists")
    assert MEASURE.is_in_scope(requirement, pod(activeDeadlineSeconds=5)) is expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(pod(containers=[container("a", {"cpu": "1"}, {"memory": "1"})]), "", id="all resources specified"),
        pytest.param(
            pod(containers=[container("b"), container("a", {"cpu": "1"})]),
            "must specify limits.memory for: a,b; requests.cpu for: b",
            id="missing resources with their containers",
        ),
        pytest.param(
            pod(containers=[], initContainers=[container("i", {"cpu": "1"})]),
            "must specify limits.memory for: i",
            id="an init container",
        ),
        pytest.param(pod(resources={"limits": {"cpu": "1"}}), "", id="pod-level resources"),
    ],
)
def test_unspecified_lists_missing_requests_and_limits(made: Document, expected: str) -> None:
    assert MEASURE.unspecified(["requests.cpu", "limits.memory", "pods", "requests.example.com/gpu"], made) == expected


def test_resource_names_counted_for_pods() -> None:
    assert wait(MEASURE.counted(["pods", "limits.memory", "services"], Known())) == ["pods", "limits.memory"]


@pytest.mark.parametrize(
    ("subresource", "operation", "expected"),
    [
        ("", Operation.CREATE, True),
        ("", Operation.UPDATE, True),
        ("resize", Operation.UPDATE, True),
        ("status", Operation.UPDATE, False),
        ("", Operation.DELETE, False),
    ],
)
def test_operations_that_change_the_usage_of_pods_are_handled(
    subresource: str, operation: Operation, expected: bool
) -> None:
    assert MEASURE.handles(subresource, operation) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {"activeDeadlineSeconds": 1}, True),
        ({}, {}, False),
        ({"activeDeadlineSeconds": 1}, {"activeDeadlineSeconds": 2}, False),
    ],
)
def test_an_update_of_a_pod_concerns_quotas_only_if_its_scope_changes(old: Any, new: Any, expected: bool) -> None:
    assert MEASURE.concerns(attempt(POD, pod(**new), pod(**old))) is expected
