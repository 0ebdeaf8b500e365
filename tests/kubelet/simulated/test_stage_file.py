"""Stage sets are read from YAML; errors name the field, what was found and what was expected.

Durations of stages, and transitions.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from mooring.kit.entropy import Entropy
from mooring.kubelet.runtime import Role
from mooring.kubelet.settings import KubeletSettings
from mooring.kubelet.simulated.stage_file import BUILTIN_STAGE_SETS, StageFileError, load_stage_sets, read_stage_sets
from mooring.kubelet.simulated.stages import (
    STAGE_S_MIN,
    ContainerMatch,
    Stage,
    StageState,
    StopBehavior,
    Transition,
    next_stage,
    stage_delay_s,
    stage_duration_s,
)
from tests.kubelet.harness import Body, Play, container, played, pod, view

FILES = sorted((Path(__file__).parent / "golden").glob("*.yaml"))
FLAKY = """
stageSets:
  - name: flaky
    match: {labels: {app: "web-*"}, role: container, ownerKind: ReplicaSet, restartPolicy: Always, image: "*/web:*"}
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 1s}
      - name: serving
        state: running
        started: false
        for: 1m
        grows: 2
        forMax: 1h
        forAnnotation: example.com/for
        next: [{stage: serving, weight: 3}, {stage: creating}]
        failureRate: 0.2
        failure: crashed
        log: [hello]
      - {name: crashed, state: terminated, exitCode: 3, signal: 9, reason: Boom, message: "{pod} broke", next: serving}
    stop: {for: 5s, jitter: 1s, exitCode: 143}
"""


def timeline_of(golden: Body) -> list[str]:
    lines: list[str] = []

    async def story(play: Play) -> None:
        await play.create(golden["pod"])
        lines.extend(await play.timeline(golden["pod"]["metadata"]["name"], stage_duration_s(golden["until"])))

    stages = yaml.safe_dump({"stageSets": golden["stageSets"]}) if "stageSets" in golden else ""
    played(story, KubeletSettings(count=1, stages=stages))
    return lines


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in FILES])
def test_stages_are_as_recorded(path: Path) -> None:
    golden: Body = yaml.safe_load(path.read_text())
    assert timeline_of(golden) == golden["timeline"]


def test_every_built_in_stage_list_is_recorded() -> None:
    names = {stage_set.name for stage_set in read_stage_sets(BUILTIN_STAGE_SETS)}
    assert names <= {path.stem for path in FILES}


def test_every_field_of_a_stage_is_read() -> None:
    (stage_set,) = read_stage_sets(FLAKY)
    assert (stage_set.name, [*stage_set.stages], stage_set.first.name) == (
        "flaky",
        ["creating", "serving", "crashed"],
        "creating",
    )
    assert stage_set.stages["creating"] == Stage(
        "creating",
        StageState.WAITING,
        "ContainerCreating",
        for_s=0.2,
        jitter_s=1.0,
        transitions=(Transition("serving"),),
    )
    serving = stage_set.stages["serving"]
    assert [(branch.stage, round(branch.weight, 3)) for branch in serving.transitions] == [
        ("serving", 0.6),
        ("creating", 0.2),
        ("crashed", 0.2),
    ]
    assert (serving.is_started, serving.is_ready, serving.for_s, serving.growth, serving.for_s_max) == (
        *(False, True),
        *(60.0, 2.0, 3600.0),
    )
    assert (serving.for_annotation, serving.log) == ("example.com/for", ("hello",))
    crashed = stage_set.stages["crashed"]
    assert (crashed.exit_code, crashed.signal, crashed.reason, crashed.message) == (3, 9, "Boom", "{pod} broke")
    assert stage_set.stop == StopBehavior(5.0, 1.0, 143)
    assert stage_set.match == ContainerMatch(
        labels={"app": "web-*"},
        role=Role.CONTAINER,
        owner_kind="ReplicaSet",
        restart_policy="Always",
        image="*/web:*",
    )


def one(stage: str) -> str:
    return f"stageSets: [{{name: x, stages: [{stage}]}}]"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("stageSets: 3", "stageSets is 3; wanted a list", id="stage sets are not a list"),
        pytest.param("stageSet: []", "'stageSet' is not known here; known are stageSets", id="a field is misspelt"),
        pytest.param("stageSets: [{stages: []}]", "name is None; wanted a text", id="no name"),
        pytest.param("stageSets: [{name: x}]", "a stage set needs at least one stage", id="no stages"),
        pytest.param(one("{name: a, state: running}, {name: a, state: running}"), "same name", id="a stage twice"),
        pytest.param(one("{name: a, state: sleeping}"), "state is 'sleeping'; wanted one of", id="no such state"),
        pytest.param(one("{name: a, state: running, for: soon}"), "'soon' is not a duration", id="no duration"),
        pytest.param(one("{name: a, state: running, for: 1s}"), "none follows: say where with `next`", id="no way"),
        pytest.param(one("{name: a, state: running, for: 1s, next: b}"), "leads to 'b'; there are a", id="no stage"),
        pytest.param(one("{name: a, state: terminated, for: 1s}"), "take `for` away", id="an end with a time"),
        pytest.param(one("{name: a, state: running, ready: 1}"), "ready is 1; wanted true or false", id="no flag"),
        pytest.param(one("{name: a, state: running, exitCode: x}"), "exitCode is 'x'; wanted a number", id="no number"),
        pytest.param(
            one("{name: a, state: running, for: 1s, next: a, failureRate: 0.5}"), "belong together", id="half a failure"
        ),
        pytest.param(
            one("{name: a, state: running, for: 1s, next: a, failureRate: 2, failure: a}"),
            "failureRate is 2; wanted a number from 0 to 1",
            id="more failures than runs",
        ),
        pytest.param(
            one("{name: a, state: running, for: 1s, failureRate: 0.5, failure: a}"),
            "say with `next` what follows otherwise",
            id="a failure and nothing else",
        ),
        pytest.param(
            one("{name: a, state: running, for: 1s, next: [{stage: a, weight: -1}]}"),
            "weight is -1; wanted 0 or more",
            id="a negative weight",
        ),
        pytest.param(
            one("{name: a, state: running, for: 1s, next: [{stage: a, weight: 0}], failureRate: 0.5, failure: a}"),
            "no stage has a weight; wanted at least one above 0",
            id="weights of nothing",
        ),
        pytest.param(
            "stageSets:\n" + 2 * "- {name: x, stages: [{name: a, state: running}]}\n",
            "stage set 'x' is defined twice",
            id="a stage set twice",
        ),
    ],
)
def test_what_is_wrong_is_said(text: str, complaint: str) -> None:
    with pytest.raises(StageFileError) as caught:
        read_stage_sets(text)
    assert complaint in str(caught.value)


def test_stages_of_a_file_precede_built_in_stages() -> None:
    own = "stageSets: [{name: service, match: {role: container}, stages: [{name: slow, state: waiting}]}]"
    one_pod = view(pod())
    assert load_stage_sets(own).of(one_pod, one_pod.spec.containers[0], Role.CONTAINER).first.name == "slow"
    assert load_stage_sets().of(one_pod, one_pod.spec.containers[0], Role.CONTAINER).first.name == "creating"


@pytest.mark.parametrize(
    ("body", "role", "stage_set"),
    [
        pytest.param(pod(), Role.CONTAINER, "service", id="a container serves"),
        pytest.param(pod(restartPolicy="Never"), Role.CONTAINER, "service", id="also one that is never restarted"),
        pytest.param(pod(owner="Job"), Role.CONTAINER, "job", id="of a Job, it works and is done"),
        pytest.param(pod(), Role.INIT, "init", id="an init container is done"),
        pytest.param(
            pod(owner="Job", containers=[container(image="registry.k8s.io/pause:3.10")]),
            Role.CONTAINER,
            "pause",
            id="of the image pause, it runs also in a Job",
        ),
        pytest.param(pod(owner="Job"), Role.SIDECAR, "service", id="a sidecar serves, also beside a job"),
        pytest.param(pod(), Role.EPHEMERAL, "service", id="so does a container to look around with"),
        pytest.param(
            pod(stage_set="crash-loop"), Role.CONTAINER, "crash-loop", id="the pod's annotation names a stage set"
        ),
        pytest.param(pod(stage_set="crash-loop"), Role.INIT, "init", id="which is not that of its init containers"),
        pytest.param(
            pod(stage_set="crash-loop", annotations={"stages.mooring.dev/main": "fails"}),
            Role.CONTAINER,
            "fails",
            id="the annotation for the container goes first",
        ),
        pytest.param(
            pod(annotations={"stages.mooring.dev/main": "fails"}), Role.INIT, "fails", id="and counts for all roles"
        ),
        pytest.param(pod(labels={"app": "flaky-1"}), Role.CONTAINER, "wanted", id="labels that match"),
        pytest.param(pod(labels={"app": "web"}), Role.CONTAINER, "service", id="labels that do not match"),
    ],
)
def test_which_stages_a_container_has(body: dict[str, object], role: Role, stage_set: str) -> None:
    own = 'stageSets: [{name: wanted, match: {labels: {app: "flaky-*"}}, stages: [{name: any, state: running}]}]'
    one_pod = view(body)
    assert load_stage_sets(own).of(one_pod, one_pod.spec.containers[0], role).name == stage_set


def test_an_unknown_stage_list_is_reported() -> None:
    one_pod = view(pod(stage_set="imagined", containers=[container()]))
    stage = load_stage_sets().of(one_pod, one_pod.spec.containers[0], Role.CONTAINER).first
    assert (stage.state, stage.reason) == (StageState.WAITING, "CreateContainerConfigError")
    assert stage.message.startswith("no stage set is named 'imagined'; known are config-error, crash-loop")


def stage(**fields: object) -> Stage:
    return Stage("any", StageState.RUNNING, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "visits", "annotations", "seconds"),
    [
        pytest.param(stage(), 0, {}, None, id="no time is for good"),
        pytest.param(stage(for_s=2.0), 5, {}, 2.0, id="the same at each visit"),
        pytest.param(stage(for_s=0.0), 0, {}, STAGE_S_MIN, id="never shorter than the least"),
        pytest.param(stage(for_s=10.0, growth=2.0, for_s_max=300.0), 0, {}, 10.0, id="growing: the first"),
        pytest.param(stage(for_s=10.0, growth=2.0, for_s_max=300.0), 3, {}, 80.0, id="growing: the fourth"),
        pytest.param(stage(for_s=10.0, growth=2.0, for_s_max=300.0), 9_999, {}, 300.0, id="growing: up to a limit"),
        pytest.param(stage(for_s=1.0, for_annotation="a"), 0, {"a": "1m"}, 60.0, id="the annotation says"),
        pytest.param(stage(for_annotation="a"), 0, {"a": "1m"}, 60.0, id="the annotation alone says"),
        pytest.param(stage(for_s=1.0, for_annotation="a"), 0, {"a": "soon"}, 1.0, id="the annotation is nonsense"),
        pytest.param(stage(for_s=1.0, for_annotation="a"), 0, {}, 1.0, id="there is no such annotation"),
    ],
)
def test_how_long_a_stage_takes(one: Stage, visits: int, annotations: dict[str, str], seconds: float | None) -> None:
    assert stage_delay_s(one, view(pod(annotations=annotations)), visits, Entropy(1)) == seconds


def test_jitter_only_lengthens() -> None:
    entropy, one_pod = Entropy(1), view(pod())
    drawn = [stage_delay_s(stage(for_s=1.0, jitter_s=0.5), one_pod, 0, entropy) or 0.0 for _ in range(200)]
    assert min(drawn) >= 1.0
    assert max(drawn) <= 1.5
    assert max(drawn) - min(drawn) > 0.4


def test_ways_are_taken_by_their_weights() -> None:
    one = stage(transitions=(Transition("often", 3.0), Transition("never", 0.0), Transition("seldom", 1.0)))
    entropy = Entropy(1)
    taken = Counter(next_stage(one, entropy) for _ in range(2_000))
    assert set(taken) == {"often", "seldom"}
    assert 1_400 < taken["often"] < 1_600


def test_one_way_needs_no_chance_and_none_leads_nowhere() -> None:
    assert next_stage(stage(transitions=(Transition("only"),)), Entropy(1)) == "only"
    assert next_stage(stage(), Entropy(1)) == ""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("500ms", 0.5), ("10s", 10.0), ("1m30s", 90.0), ("1.5h", 5400.0), ("2h45m", 9900.0)],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert stage_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "10", "s", "-1s", "1 s", "1d", "1s2"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; wanted one such as"):
        stage_duration_s(text)
