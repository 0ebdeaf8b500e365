"""Flags of the controllers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mooring.controllers.settings import (
    IN_PROCESS_DEFAULTS,
    ControllerSettings,
    SettingError,
    duration_s,
    flag_names,
    settings_of_flags,
)


def test_flags_have_the_names_of_kube_controller_manager() -> None:
    names = flag_names()
    assert names["--node-monitor-grace-period"] == "node_monitor_grace_period_s"
    assert names["--concurrent-deployment-syncs"] == "concurrent_deployment_syncs"
    assert names["--node-eviction-rate"] == "node_eviction_rate"


def test_flags_are_read_by_their_kind() -> None:
    flags = {
        "--node-monitor-period": "500ms",
        "--node-eviction-rate": "10",
        "--large-cluster-size-threshold": "7",
        "--enable-garbage-collector": "false",
    }
    assert settings_of_flags(flags) == ControllerSettings(
        node_monitor_period_s=0.5,
        node_eviction_rate=10.0,
        large_cluster_size_threshold=7,
        enable_garbage_collector=False,
    )


def test_what_no_flag_says_is_as_those_who_ask_have_it() -> None:
    flags = {"--concurrent-replicaset-syncs": "7"}
    assert settings_of_flags(flags, IN_PROCESS_DEFAULTS) == replace(IN_PROCESS_DEFAULTS, concurrent_replicaset_syncs=7)
    assert settings_of_flags(flags) == ControllerSettings(concurrent_replicaset_syncs=7)


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0.0), ("5250ms", 5.25), ("1m30s", 90.0), ("1h", 3600.0), ("1.5s", 1.5)]
)
def test_durations(text: str, seconds: float) -> None:
    assert duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("--no-such-flag", "1"),
        ("--node-monitor-period", "5"),
        ("--node-monitor-period", "soon"),
        ("--concurrent-rc-syncs", "many"),
        ("--enable-garbage-collector", "perhaps"),
    ],
)
def test_what_cannot_be_read_is_refused(flag: str, text: str) -> None:
    with pytest.raises(SettingError):
        settings_of_flags({flag: text})
