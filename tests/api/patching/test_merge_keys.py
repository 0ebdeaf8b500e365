"""The table of merge keys says what the API types of Kubernetes v1.36 say."""

from __future__ import annotations

import pytest

from mooring.api.kinds import all_kinds
from mooring.api.patching.merge_keys import MERGE, REPLACE, MergeField, merge_fields


@pytest.mark.parametrize(
    ("api_version", "kind", "path", "strategy", "merge_key"),
    [
        ("v1", "Pod", "metadata.ownerReferences", MERGE, "uid"),
        ("v1", "Pod", "metadata.finalizers", MERGE, ""),
        ("v1", "Pod", "spec.containers", MERGE, "name"),
        ("v1", "Pod", "spec.containers.ports", MERGE, "containerPort"),
        ("v1", "Pod", "spec.initContainers.volumeMounts", MERGE, "mountPath"),
        ("v1", "Pod", "spec.ephemeralContainers.env", MERGE, "name"),
        ("v1", "Pod", "spec.volumes", "merge,retainKeys", "name"),
        ("v1", "Pod", "spec.resourceClaims", "merge,retainKeys", "name"),
        ("v1", "Pod", "spec.topologySpreadConstraints", MERGE, "topologyKey"),
        ("v1", "Pod", "spec.schedulingGates", MERGE, "name"),
        ("v1", "Pod", "status.conditions", MERGE, "type"),
        ("v1", "Pod", "status.podIPs", MERGE, "ip"),
        ("v1", "Node", "status.addresses", MERGE, "type"),
        ("v1", "Node", "spec.podCIDRs", MERGE, ""),
        ("v1", "Service", "spec.ports", MERGE, "port"),
        ("apps/v1", "Deployment", "spec.strategy", "retainKeys", ""),
        ("apps/v1", "Deployment", "spec.template.spec.containers.env", MERGE, "name"),
        ("batch/v1", "CronJob", "spec.jobTemplate.spec.template.spec.volumes", "merge,retainKeys", "name"),
        ("policy/v1", "PodDisruptionBudget", "spec.selector", REPLACE, ""),
        ("resource.k8s.io/v1", "ResourceClaim", "status.reservedFor", MERGE, "uid"),
        ("storage.k8s.io/v1", "CSINode", "spec.drivers", MERGE, "name"),
        ("v1", "ConfigMap", "metadata.finalizers", MERGE, ""),
    ],
)
def test_marked_fields(api_version: str, kind: str, path: str, strategy: str, merge_key: str) -> None:
    field = field_at(api_version, kind, path)
    assert field is not None
    assert (field.strategy, field.merge_key) == (strategy, merge_key)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Pod", "spec.tolerations"),
        ("Pod", "spec.containers.command"),
        ("Pod", "spec.containers.envFrom"),
        ("Pod", "status.containerStatuses"),
        ("Node", "spec.taints"),
        ("Node", "status.images"),
        ("ServiceAccount", "imagePullSecrets"),
    ],
)
def test_lists_that_are_replaced(kind: str, path: str) -> None:
    assert field_at("v1", kind, path) is None


def test_every_kind_of_ours_takes_strategic_patches() -> None:
    assert [kind for kind in all_kinds() if merge_fields(kind.api_version, kind.kind) is None] == []


def test_custom_resources_have_no_rows() -> None:
    assert merge_fields("example.com/v1", "Boat") is None


def field_at(api_version: str, kind: str, path: str) -> MergeField | None:
    fields = merge_fields(api_version, kind)
    assert fields is not None
    field: MergeField | None = None
    for name in path.split("."):
        field = fields.get(name)
        if field is None:
            return None
        fields = field.below
    return field
