"""Fields whose feature gates are off."""

from __future__ import annotations

from copy import deepcopy

from mooring.apiserver.strategies.pod_disabled import drop_disabled_spec_fields, drop_disabled_status_fields
from tests.apiserver.pod_builders import pod

SPEC = pod(
    {
        "schedulingGroup": {"podGroupName": "g"},
        "volumes": [{"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"name": "x", "path": "y"}}]}}],
    },
    {"lifecycle": {"stopSignal": "SIGUSR1"}},
)["spec"]


def test_disabled_fields_go() -> None:
    spec = deepcopy(SPEC)
    drop_disabled_spec_fields(spec, None)
    assert "schedulingGroup" not in spec
    assert "lifecycle" not in spec["containers"][0]
    assert spec["volumes"][0]["projected"]["sources"] == [{}]


def test_what_was_used_stays() -> None:
    spec = deepcopy(SPEC)
    drop_disabled_spec_fields(spec, SPEC)
    assert spec == SPEC


def test_status() -> None:
    mount = {"name": "v", "mountPath": "/x", "volumeStatus": {"image": {"imageRef": "q"}}}
    status = {"nodeAllocatableResourceClaimStatuses": [{}], "containerStatuses": [{"volumeMounts": [mount]}]}
    drop_disabled_status_fields(status, None)
    assert status == {"containerStatuses": [{"volumeMounts": [{"name": "v", "mountPath": "/x"}]}]}
