"""The OpenB trace: nodes, pods, errors, and the random numbers of Go."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.simulator.csv_traces import (
    inflated_workload,
    read_openb_nodes,
    read_openb_pods,
    renamed,
    replayed_workload,
)
from mooring.simulator.errors import ScenarioError
from mooring.simulator.go_random import GoRandom
from mooring.simulator.gpus import GPU_COUNT, GPU_MILLI, GPU_MODEL, GPU_MODELS

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,P100\nn-1,32000,131072,0,\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "list.csv"
    path.write_text(text)
    return path


def test_nodes_have_labels_for_their_gpus(tmp_path: Path) -> None:
    gpu_node, cpu_node = read_openb_nodes(written(tmp_path, NODES))
    assert gpu_node.metadata.labels == {GPU_COUNT: "2", GPU_MODEL: "P100"}
    assert cpu_node.metadata.labels == {}
    assert gpu_node.status.allocatable["pods"] == "1001"


def test_pods_have_labels_for_what_they_ask(tmp_path: Path) -> None:
    text = f"{PODS}p-0,4000,1024,1,460,V100M16|V100M32,LS,Running,5,9,5\np-1,4000,1024,0,0,,LS,Running,7,9,7\n"
    share, plain = read_openb_pods(written(tmp_path, text), with_times=True)
    assert share.view.metadata.labels == {GPU_COUNT: "1", GPU_MILLI: "460", GPU_MODELS: "V100M16_V100M32"}
    assert (share.gpu_milli, share.created_s, share.deleted_s) == (460, 5.0, 9.0)
    assert plain.view.metadata.labels == {}
    arrivals = replayed_workload([share, plain]).arrivals
    assert [(arrival.at_s, arrival.lifetime_s) for arrival in arrivals] == [(0.0, 4.0), (2.0, 2.0)]


def test_seeds_rename_nodes_differently(tmp_path: Path) -> None:
    nodes = read_openb_nodes(written(tmp_path, NODES + "".join(f"m-{n},1000,1024,1,T4\n" for n in range(20))))
    names = [[node.metadata.name for node in renamed(nodes, GoRandom(seed))] for seed in (1, 1, 2)]
    assert names[0] == names[1] != names[2]
    assert sorted(name.split("-", 1)[0] for name in names[0]) == [f"{number:04}" for number in range(22)]


def test_the_list_is_shuffled_and_inflated(tmp_path: Path) -> None:
    text = PODS + "".join(f"p-{n},1000,1024,1,500,,,,0,1,0\n" for n in range(10))
    pods = read_openb_pods(written(tmp_path, text), with_times=False)
    workload = inflated_workload(pods, 10_000, 1.3, GoRandom(3))
    assert sum(arrival.demand for arrival in workload.arrivals) == 13_000
    names = [arrival.pod.metadata.name for arrival in workload.arrivals]
    assert sorted(names[:10]) == [f"p-{n}" for n in range(10)]
    assert names[:10] != [f"p-{n}" for n in range(10)]
    assert len(set(names)) == 26
    assert len(inflated_workload(pods, 4_000, 1.0, GoRandom(3)).arrivals) == 8


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "is empty"),
        ("name,cpu_milli,memory_mib,num_gpu\n", 1, "has no column gpu_milli"),
        (f"{PODS}p,1,1,1,1000,,,,0,1\n", 2, "has 10 cells; wanted 11"),
        (f"{PODS}p,many,1,1,1000,,,,0,1,0\n", 2, "cpu_milli is 'many'; wanted a number"),
        (f"{PODS}p,1,1,1,1001,,,,0,1,0\n", 2, "gpu_milli is 1001; wanted 1 to 1000"),
        (f"{PODS}p,1,1,2,500,,,,0,1,0\n", 2, "a share is of one GPU"),
        (f"{PODS}p,1,1,0,0,,,,5,6,0\nq,1,1,0,0,,,,4,6,0\n", 3, "creation_time decreases from 5 to 4"),
        (f"{PODS}p,1,1,0,0,,,,5,4,0\n", 2, "deletion_time 4 is before creation_time 5"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, text: str, line: int, words: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ScenarioError) as error:
        read_openb_pods(path, with_times=True)
    assert error.value.where == f"{path}:{line}"
    assert words in error.value.text


def test_a_node_is_there_once(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="node n-0 is there twice"):
        read_openb_nodes(written(tmp_path, f"{NODES}n-0,1,1,0,\n"))


def test_the_numbers_are_those_of_go() -> None:
    # The output of `rand.Intn(100)` in a Go program without a seed, before Go 1.20.
    random = GoRandom(1)
    assert [random.below(100) for _ in range(12)] == [81, 87, 47, 59, 81, 18, 25, 40, 56, 0, 94, 11]


def test_orders_contain_everything_once() -> None:
    assert sorted(GoRandom(7).shuffled(100)) == list(range(100))
    assert sorted(GoRandom(7).permutation(100)) == list(range(100))
    assert GoRandom(7).shuffled(100) != GoRandom(8).shuffled(100)


def test_powers_of_two_and_zero_are_allowed() -> None:
    assert {GoRandom(seed).below(2) for seed in range(20)} == {0, 1}
    assert GoRandom(0).int63() == GoRandom((1 << 31) - 1).int63()
