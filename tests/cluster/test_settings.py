"""Settings of a cluster that depend on its size, and where its volumes are."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.cluster.cluster import SIMULATED_VOLUMES, _local_volumes
from mooring.cluster.settings import PROCESS, ROUTINE_EVENTS_NODES_MAX, ClusterSettings


@pytest.mark.parametrize(
    ("nodes", "given", "are_recorded"),
    [
        pytest.param(3, None, True, id="few nodes"),
        pytest.param(ROUTINE_EVENTS_NODES_MAX, None, False, id="many nodes"),
        pytest.param(3, False, False, id="not wanted"),
        pytest.param(ROUTINE_EVENTS_NODES_MAX, True, True, id="wanted"),
    ],
)
def test_routine_events_are_for_few_nodes(nodes: int, given: bool | None, are_recorded: bool) -> None:
    assert ClusterSettings(nodes=nodes, routine_events=given).records_routine_events() is are_recorded


def test_volumes_are_in_the_data_directory_and_private(tmp_path: Path) -> None:
    with _local_volumes(ClusterSettings(data_directory=tmp_path)) as folder:
        assert folder == str(tmp_path / "volumes")
        assert not Path(folder).exists(), "simulated nodes create nothing"
    with _local_volumes(ClusterSettings(data_directory=tmp_path, runtime=PROCESS)) as folder:
        assert Path(folder).stat().st_mode & 0o777 == 0o700


def test_volumes_of_a_cluster_in_memory_do_not_outlive_it() -> None:
    with _local_volumes(ClusterSettings()) as folder:
        assert folder == SIMULATED_VOLUMES
    with _local_volumes(ClusterSettings(runtime=PROCESS)) as folder:
        (Path(folder) / "pvc-1").mkdir()
    assert not Path(folder).exists()


def test_there_are_none_without_the_class() -> None:
    with _local_volumes(ClusterSettings(has_default_storage_class=False)) as folder:
        assert folder == ""
