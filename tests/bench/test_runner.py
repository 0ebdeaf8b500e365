"""Workloads are read and run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import bench.workload
from bench.runner import run
from bench.workload import Size, Workload, WorkloadError, merge_layers, read_workload, workload_names
from mooring.api.yaml import load_document
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine

SMALL = Size(nodes=30, placed=60, pods=20, warm_up=5)


def test_all_pods_are_measured_and_the_warm_up_is_not() -> None:
    level = run(read_workload("plain"), SMALL).last
    assert (level.placed, level.loaded, level.pods) == (60, 60, 20)
    assert 0 < level.p50_us <= level.p99_us <= level.longest_us
    assert level.pods_per_second_without_record > level.pods_per_second
    assert level.mean_us * level.pods_per_second == pytest.approx(1e6)


def test_each_level_starts_with_its_number_of_placed_pods() -> None:
    size = Size(nodes=30, placed=60, pods=20, warm_up=5, levels=(0, 0.5, 1))
    result = run(read_workload("plain"), size)
    assert [(level.placed, level.loaded) for level in result.levels] == [(0, 0), (30, 30), (60, 30)]
    assert result.problems == ()


def test_the_example_of_the_documentation_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    example = page.split("```yaml\n")[1].split("```")[0]
    result = run(msgspec.convert(load_document(example).data, Workload), SMALL)
    assert (result.name, result.problems) == ("two-kinds", ())


def test_time_is_limited() -> None:
    assert run(read_workload("plain"), SMALL, seconds_max=0.0).last.pods == 1


@pytest.mark.parametrize(
    ("allowed_bytes", "problems"),
    [pytest.param(4_000_000_000, 0, id="within its memory"), pytest.param(1 << 20, 1, id="above its memory")],
)
def test_a_workload_that_takes_too_much_memory_is_reported(allowed_bytes: int, problems: int) -> None:
    workload = msgspec.structs.replace(read_workload("plain"), memory_bytes_max=allowed_bytes)
    found = run(workload, SMALL).problems
    assert len(found) == problems
    assert all("MiB, allowed are 1" in problem for problem in found)


def test_preemption_goes_through_to_the_end() -> None:
    result = run(read_workload("preemption"), Size(nodes=30, placed_per_node=4, pods=10, warm_up=5))
    assert result.problems == ()
    assert result.last.placed == 120


def everything_to_one_node(engine: Engine, pod: PodInfo, *, in_full: bool = False) -> Decision:
    return Decision(pod, node_name="node-0", feasible_count=30)


def nothing_fits(engine: Engine, pod: PodInfo, *, in_full: bool = False) -> Decision:
    return Decision(pod, message="no")


@pytest.mark.parametrize(
    ("workload", "decide", "problem"),
    [
        pytest.param("plain", everything_to_one_node, "1 nodes gave more than they have", id="everything to one node"),
        pytest.param("plain", nothing_fits, "was refused, expected placed, and 24 more like it", id="nothing fits"),
        pytest.param("unschedulable", everything_to_one_node, "was placed, expected refused", id="too much fits"),
        pytest.param("unschedulable", nothing_fits, "expected '0/30 nodes are available", id="no reasons are given"),
        pytest.param("preemption", nothing_fits, "was refused, expected preempts", id="nobody is evicted"),
        pytest.param("spread-hard", everything_to_one_node, "is skewed over topology", id="nothing is spread"),
        pytest.param("pod-anti-affinity-required", everything_to_one_node, "hold more than 1", id="nothing is apart"),
        pytest.param("node-affinity", everything_to_one_node, "gave more than they have", id="affinity is ignored"),
    ],
)
def test_a_broken_engine_is_reported(
    monkeypatch: pytest.MonkeyPatch, workload: str, decide: object, problem: str
) -> None:
    monkeypatch.setattr(Engine, "decide", decide)
    size = Size(nodes=30, placed=60, pods=40 if decide is everything_to_one_node else 20, warm_up=5)
    found = run(read_workload(workload), size).problems
    assert any(problem in text for text in found), found


# --- Workloads: all that were promised are there, and a file that makes no sense is refused in words


PLAIN = "name: mine\ndescription: x\nnodes: [{template: node}]\nmeasured: [{template: pod}]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bench.workload, "WORKLOADS", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("names", "target"),
    [
        pytest.param(["plain", "node-affinity"], 10_000, id="plain pods and node affinity"),
        pytest.param(["spread-hard", "spread-soft", "spread-default"], 5_000, id="spreading"),
        pytest.param(
            [
                f"pod-{kind}-{strength}{namespaces}"
                for kind in ("affinity", "anti-affinity")
                for strength in ("required", "preferred")
                for namespaces in ("", "-selected-namespaces")
            ],
            5_000,
            id="affinity and anti-affinity of all kinds",
        ),
        pytest.param(["volumes-bound"], 5_000, id="bound volumes"),
        pytest.param(["unschedulable", "unschedulable-large"], 5_000, id="unschedulable pods"),
        pytest.param(["different", "different-neighbours"], 1_500, id="every pod different from all before it"),
        pytest.param(["preemption", "huge"], 1_000, id="preemption, and the largest cluster"),
        pytest.param(["mixed", "loop-mixed"], None, id="all kinds in turn"),
        pytest.param(["loop-plain"], 4_000, id="plain pods through the scheduler"),
        pytest.param(
            ["loop-spread-hard", "loop-spread-soft", "loop-anti-affinity"],
            2_500,
            id="spreading and anti-affinity through the scheduler",
        ),
    ],
)
def test_targets(names: list[str], target: float | None) -> None:
    assert [read_workload(name).target_pods_per_second for name in names] == [target] * len(names)


@pytest.mark.parametrize("name", workload_names())
def test_a_workload_of_the_suite_has_5000_nodes_and_10000_pods(name: str) -> None:
    workload = read_workload(name)
    if workload.in_suite and not name.startswith("devices"):  # whose size is what their devices allow
        assert workload.size.nodes == 5_000
        assert workload.size.placed_count == (20_000 if workload.size.placed_per_node else 10_000)


def test_the_largest_cluster_fits_in_4_gb() -> None:
    huge = read_workload("huge")
    assert (huge.size.nodes, huge.size.placed_count) == (100_000, 1_000_000)
    assert huge.memory_bytes_max == 4_000_000_000
    assert {250_000, 500_000, 1_000_000} <= set(huge.size.level_counts)


@pytest.mark.parametrize("name", [name for name in workload_names() if "beside" in name])
def test_10000_waiting_pods_slow_others_down_by_at_most_a_tenth(name: str) -> None:
    workload = read_workload(name)
    assert (workload.size.waiting, workload.slowdown_max) == (10_000, 1.1)


@pytest.mark.parametrize("name", [name for name in workload_names() if name.startswith("loop-")])
def test_10000_pods_through_the_scheduler_take_150_megabytes(name: str) -> None:
    workload = read_workload(name)
    assert (workload.through, workload.size.pods) == ("scheduler", 10_000)
    assert workload.growth_bytes_max == (None if name == "loop-mixed" else 150_000_000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(PLAIN + "taget: 1\n", r"mine\.yaml: Object contains unknown field `taget`", id="a misspelt field"),
        pytest.param(PLAIN.replace("mine", "yours"), "calls itself 'yours'", id="another name than the file's"),
        pytest.param(PLAIN + "expect: [{that: sparkles}]\n", "Invalid value 'sparkles'", id="an unknown expectation"),
        pytest.param("name: mine\n", "missing required field", id="something missing"),
        pytest.param(PLAIN + "waiting: [{template: pod}]\n", "known through the scheduler only", id="who waits where"),
        pytest.param(PLAIN + "slowdown_max: 2\n", "known through the scheduler only", id="slowdown of the engine"),
        pytest.param(PLAIN.replace("pod}", "pod, outcome: gated}"), "never comes to the engine", id="a gated pod"),
        pytest.param(
            PLAIN.replace("pod}", "pod, outcome: preempts}") + "through: scheduler\n",
            "preemption is measured through the engine only",
            id="preemption through the scheduler",
        ),
        pytest.param(
            PLAIN + "through: scheduler\nwaiting: [{template: pod}]\n", "refused or gated, not placed", id="waiting"
        ),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(folder: Path, text: str, message: str) -> None:
    (folder / "mine.yaml").write_text(text)
    with pytest.raises(WorkloadError, match=message):
        read_workload("mine")


def test_an_unknown_workload_is_reported_with_those_that_exist() -> None:
    with pytest.raises(WorkloadError, match=r"there is no workload 'plan'; there are: .*different, .*plain"):
        read_workload("plan")


def test_an_unknown_template_is_reported() -> None:
    with pytest.raises(WorkloadError, match="there is no template 'podd'"):
        merge_layers("podd")


def test_layers_are_merged_and_their_variables_are_taken_out() -> None:
    manifest, variables = merge_layers(("pod", "claiming", {"spec": {"priority": 9}}))
    assert manifest["kind"] == "Pod"
    assert isinstance(manifest["spec"], dict)
    assert manifest["spec"]["priority"] == 9
    assert "variables" not in manifest
    assert variables["zone"].cycle == ("zone-a", "zone-b", "zone-c")


@pytest.mark.parametrize(
    ("size", "placed_count", "level_counts"),
    [
        pytest.param(Size(), 10_000, (10_000,), id="by default one level"),
        pytest.param(Size(nodes=50, placed_per_node=4), 200, (200,), id="by node"),
        pytest.param(Size(placed=1_000, levels=(0, 0.25, 1)), 1_000, (0, 250, 1_000), id="several levels"),
    ],
)
def test_sizes(size: Size, placed_count: int, level_counts: tuple[int, ...]) -> None:
    assert (size.placed_count, size.level_counts) == (placed_count, level_counts)
