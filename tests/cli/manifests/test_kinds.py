from __future__ import annotations

import pytest

from mooring.api.kinds import kind_of_view
from mooring.cli.manifests.kinds import advice_for, is_skipped
from mooring.scheduler.event_handlers.objects import WATCHED


@pytest.mark.parametrize(
    ("api_version", "kind", "skipped"),
    [
        pytest.param("v1", "ConfigMap", True, id="a kind that nobody reads here"),
        pytest.param("apps/v1", "Deployment", False, id="a workload"),
        pytest.param("batch/v1beta1", "CronJob", True, id="in an old version"),
        pytest.param("example.com/v1", "Boat", True, id="somebody's own kind"),
        pytest.param("snapshot.storage.k8s.io/v1", "VolumeSnapshot", True, id="a custom resource of Kubernetes people"),
        pytest.param("v1", "Nonsense", False, id="a kind that Kubernetes does not have"),
        pytest.param("apps/v1", "Deploymnet", False, id="a typing error"),
        pytest.param("networking.k8s.io/v1", "Ingres", False, id="a typing error in a group with dots"),
        pytest.param("boats/v1", "Boat", False, id="a group that nobody can own"),
        pytest.param("apps/v1", "ConfigMap", False, id="a kind of another group"),
        pytest.param("kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration", False, id="a configuration"),
    ],
)
def test_what_is_skipped(api_version: str, kind: str, skipped: bool) -> None:
    assert is_skipped(api_version, kind) is skipped


def test_what_scheduling_reads_is_not_skipped() -> None:
    assert [view.kind for view in WATCHED if is_skipped(kind_of_view(view).api_version, view.kind)] == []


def test_a_configuration_is_sent_to_its_flag() -> None:
    assert "--config" in advice_for("kubescheduler.config.k8s.io/v1")
    assert "--config" not in advice_for("v1")
