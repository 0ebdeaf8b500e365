"""The YAML format of stage sets, the built-in stage sets, and the stage set of a container.

Input: the text of a file; a pod and a container. Output: stage sets; or a `StageFileError` that names the field, what
was found and what was expected.

    stageSets:
      - name: flaky                          # selected by the annotation mooring.dev/stages: flaky
        match: {labels: {app: "web-*"}}      # or by a match; also annotations, namespace, container, image, role,
                                             # ownerKind, restartPolicy
        stages:                              # a run begins with the first one
          - {name: creating, state: waiting, reason: ContainerCreating, for: 200ms, jitter: 200ms}
          - {name: serving, state: running, ready: true, for: 1m, next: serving, failureRate: 0.1, failure: crashed}
          - {name: crashed, state: terminated, exitCode: 1}
        stop: {for: 100ms, exitCode: 0}      # after SIGTERM; killed (137) if the grace period is shorter

 1. Unknown fields are errors: a typing error would silently change the behaviour.
 2. A stage without `next` continues with the one below it. A waiting or running stage without `for` has no end.
 3. Stage sets without `match` are used by name only.

`StageSets` selects the stage set of a container, the first of:

 1. the one that an annotation names for the container, or for the pod (regular containers only);
 2. the first one of the file that matches;
 3. the one of its command, if that is known (`commands`);
 4. the first built-in one that matches.

An annotation with an unknown name is reported as the waiting reason of the container.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import TypeVar

from mooring.api.yaml import load_document
from mooring.kubelet.runtime import Role
from mooring.kubelet.simulated.commands import stage_set_of_command
from mooring.kubelet.simulated.stages import (
    ContainerMatch,
    Stage,
    StageSet,
    StageState,
    StopBehavior,
    Transition,
    stage_duration_s,
)
from mooring.kubelet.views import KubeletContainer, KubeletPod

STAGES_ANNOTATION = "mooring.dev/stages"
CONTAINER_STAGES_PREFIX = "stages.mooring.dev/"


class StageSets:
    """All known stage sets, those of the user first."""

    def __init__(self, own: Sequence[StageSet], builtin: Sequence[StageSet]) -> None:
        self._own = own
        self._builtin = builtin
        self._by_name: dict[str, StageSet] = {}
        for stage_set in (*own, *builtin):
            self._by_name.setdefault(stage_set.name, stage_set)

    def of(self, pod: KubeletPod, container: KubeletContainer, role: Role) -> StageSet:
        """The stage set of a container."""
        named = self._named(pod, container, role)
        if named:
            return self._by_name.get(named) or self._unknown(named)
        matching = _matching(self._own, pod, container, role)
        if matching is None and container.command:
            matching = stage_set_of_command(container.command, container.args, role)
        matching = matching or _matching(self._builtin, pod, container, role)
        if matching is not None:
            return matching
        raise AssertionError(f"no built-in stage set matches container {container.name} of {pod.key}")

    def _named(self, pod: KubeletPod, container: KubeletContainer, role: Role) -> str:
        annotations = pod.metadata.annotations
        if not annotations:
            return ""
        named = annotations.get(f"{CONTAINER_STAGES_PREFIX}{container.name}", "")
        return named or (annotations.get(STAGES_ANNOTATION, "") if role is Role.CONTAINER else "")

    def _unknown(self, name: str) -> StageSet:
        known = ", ".join(sorted(self._by_name))
        message = f"no stage set is named {name!r}; known are {known}"
        stage = Stage("unknown", StageState.WAITING, "CreateContainerConfigError", message)
        return StageSet(name, {stage.name: stage})


def _matching(
    stage_sets: Sequence[StageSet], pod: KubeletPod, container: KubeletContainer, role: Role
) -> StageSet | None:
    for stage_set in stage_sets:
        if stage_set.match is not None and stage_set.match.matches(pod, container, role):
            return stage_set
    return None


# --- the file format ------------------------------------------------------------------------------------------


BUILTIN_STAGE_SETS = """
stageSets:
  - name: init
    match: {role: init}
    stages:
      - {name: creating, state: waiting, reason: PodInitializing, for: 50ms, jitter: 50ms}
      - {name: working, state: running, for: 100ms, forAnnotation: mooring.dev/init-for, log: ["{container} prepares"]}
      - {name: done, state: terminated}

  - name: pause
    match: {image: "*/pause[:@]*"}
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - {name: pausing, state: running}

  - name: job
    match: {role: container, ownerKind: Job}
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - {name: working, state: running, for: 1s, forAnnotation: mooring.dev/run-for, log: ["{container} works"]}
      - {name: done, state: terminated, log: ["{container} is done"]}

  - name: service
    match: {}
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - {name: serving, state: running, log: ["{container} of {pod} serves on {node}"]}

  - name: succeeds
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - {name: working, state: running, for: 1s, forAnnotation: mooring.dev/run-for, log: ["{container} works"]}
      - {name: done, state: terminated, log: ["{container} is done"]}

  - name: fails
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - {name: working, state: running, for: 1s, forAnnotation: mooring.dev/run-for, log: ["{container} works"]}
      - {name: failed, state: terminated, exitCode: 1, log: ["{container} fails"]}

  - name: crash-loop
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - {name: working, state: running, for: 1s, forAnnotation: mooring.dev/run-for, log: ["{container} starts"]}
      - {name: crashed, state: terminated, exitCode: 1, log: ["{container} panics"]}

  - name: flaky
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - name: serving
        state: running
        for: 30s
        jitter: 60s
        forAnnotation: mooring.dev/run-for
        next: serving
        failureRate: 0.3
        failure: crashed
      - {name: crashed, state: terminated, exitCode: 1, log: ["{container} panics"]}

  - name: slow-start
    stages:
      - {name: creating, state: waiting, for: 2s, jitter: 1s}
      - name: warming
        state: running
        ready: false
        for: 30s
        forAnnotation: mooring.dev/warm-for
        log: ["{container} warms up"]
      - {name: serving, state: running, log: ["{container} of {pod} serves on {node}"]}

  - name: never-ready
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - {name: warming, state: running, ready: false, log: ["{container} waits for something that never comes"]}

  - name: stuck-creating
    stages:
      - {name: creating, state: waiting}

  - name: image-pull-error
    stages:
      - {name: creating, state: waiting, for: 1s}
      - name: refused
        state: waiting
        reason: ErrImagePull
        message: 'failed to pull and unpack image "{image}": not found'
        for: 5s
      - name: backing-off
        state: waiting
        reason: ImagePullBackOff
        message: 'Back-off pulling image "{image}": ErrImagePull: failed to pull and unpack image "{image}": not found'
        for: 10s
        grows: 2
        forMax: 300s
        next: refused

  - name: config-error
    stages:
      - {name: creating, state: waiting, for: 200ms}
      - {name: refused, state: waiting, reason: CreateContainerConfigError, message: 'configmap "settings" not found'}

  - name: out-of-memory
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - {name: growing, state: running, for: 5s, forAnnotation: mooring.dev/run-for, log: ["{container} grows"]}
      - {name: killed, state: terminated, exitCode: 137, reason: OOMKilled}

  - name: ignores-sigterm
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - {name: serving, state: running, log: ["{container} of {pod} serves on {node}"]}
    stop: {for: 24h, exitCode: 0}
"""
AnyChoice = TypeVar("AnyChoice", bound=Enum)

_MATCH_TEXTS = {
    "namespace": "namespace",
    "container": "container",
    "image": "image",
    "ownerKind": "owner_kind",
    "restartPolicy": "restart_policy",
}
STAGE_FIELDS = (
    *("name", "state", "reason", "message", "ready", "started", "exitCode", "signal", "for", "jitter", "grows"),
    *("forMax", "forAnnotation", "next", "failureRate", "failure", "log"),
)


class StageFileError(ValueError):
    """An invalid stage file."""


def load_stage_sets(text: str = "", file: str = "<stages>") -> StageSets:
    """The stage sets of a text, before the built-in ones. Raises `StageFileError` or `YamlError`."""
    own = read_stage_sets(text, file) if text.strip() else ()
    return StageSets(own, read_stage_sets(BUILTIN_STAGE_SETS, "<built-in stage sets>"))


def read_stage_sets(text: str, file: str = "<stages>") -> tuple[StageSet, ...]:
    """The stage sets of a text, in order. Raises `StageFileError` or `YamlError`."""
    fields = _Fields(load_document(text, file).data, file, ("stageSets",))
    stages = tuple(
        _stage_set(item, f"{file}: stageSets[{index}]") for index, item in enumerate(fields.list("stageSets"))
    )
    names = [stage_set.name for stage_set in stages]
    for name in names:
        if names.count(name) > 1:
            raise StageFileError(f"{file}: stage set {name!r} is defined twice")
    return stages


def _stage_set(data: object, where: str) -> StageSet:
    fields = _Fields(data, where, ("name", "match", "stages", "stop"))
    name = fields.text("name", is_required=True)
    where = f"{where} ({name})"
    stages = [_stage(item, f"{where} stages[{index}]") for index, item in enumerate(fields.list("stages"))]
    if not stages:
        raise StageFileError(f"{where}: a stage set needs at least one stage")
    by_name = {stage.name: stage for stage in _connected(stages, where)}
    if len(by_name) < len(stages):
        raise StageFileError(f"{where}: two stages have the same name")
    for stage in by_name.values():
        for branch in stage.transitions:
            if branch.stage not in by_name:
                known = ", ".join(by_name)
                raise StageFileError(f"{where}: stage {stage.name} leads to {branch.stage!r}; there are {known}")
    return StageSet(name, by_name, _stop(fields.get("stop"), where), _match(fields.get("match"), where))


def _stage(data: object, where: str) -> Stage:
    fields = _Fields(data, where, STAGE_FIELDS)
    name = fields.text("name", is_required=True)
    state = _choice(StageState, fields.text("state", is_required=True), f"{where} state")
    stage = Stage(
        name=name,
        state=state,
        reason=fields.text("reason") or ("ContainerCreating" if state is StageState.WAITING else ""),
        message=fields.text("message"),
        is_ready=fields.flag("ready", True),
        is_started=fields.flag("started", True),
        exit_code=int(fields.number("exitCode", 0)),
        signal=int(fields.number("signal", 0)),
        for_s=fields.duration_s("for"),
        jitter_s=fields.duration_s("jitter") or 0.0,
        growth=fields.number("grows", 1.0),
        for_s_max=fields.duration_s("forMax") or 0.0,
        for_annotation=fields.text("forAnnotation"),
        transitions=tuple(_transitions(fields.get("next"), f"{where} next")),
        log=tuple(str(line) for line in fields.list("log")),
    )
    if state is StageState.TERMINATED and stage.for_s is not None:
        raise StageFileError(f"{where}: a terminated stage lasts until the kubelet starts a new run; take `for` away")
    return _with_failures(stage, fields, where)


def _with_failures(stage: Stage, fields: _Fields, where: str) -> Stage:
    """Adds the failure stage as a transition with the failure rate as its weight."""
    rate, failure = fields.number("failureRate", 0.0), fields.text("failure")
    if bool(rate) != bool(failure):
        raise StageFileError(f"{where}: `failureRate` and `failure` (the stage that follows then) belong together")
    if not 0.0 <= rate <= 1.0:
        raise StageFileError(f"{where}: failureRate is {rate}; wanted a number from 0 to 1")
    if not failure:
        return stage
    if not stage.transitions:
        raise StageFileError(f"{where}: with a failureRate, say with `next` what follows otherwise")
    total = sum(branch.weight for branch in stage.transitions)
    usual = tuple(Transition(branch.stage, branch.weight / total * (1.0 - rate)) for branch in stage.transitions)
    return replace(stage, transitions=(*usual, Transition(failure, rate)))


def _connected(stages: Sequence[Stage], where: str) -> Iterator[Stage]:
    """Adds the transition to the stage below, for stages that name none."""
    for index, stage in enumerate(stages):
        is_left = stage.state is not StageState.TERMINATED and (stage.for_s is not None or stage.for_annotation)
        if is_left and not stage.transitions:
            if index + 1 == len(stages):
                raise StageFileError(f"{where}: stage {stage.name} ends and none follows: say where with `next`")
            stage = replace(stage, transitions=(Transition(stages[index + 1].name),))
        yield stage


def _transitions(data: object, where: str) -> Iterator[Transition]:
    if data is None:
        return
    if isinstance(data, str):
        yield Transition(data)
        return
    if not isinstance(data, list):
        raise StageFileError(f"{where} is {data!r}; wanted the name of a stage, or a list of {{stage, weight}}")
    total = 0.0
    for index, item in enumerate(data):
        fields = _Fields(item, f"{where}[{index}]", ("stage", "weight"))
        weight = fields.number("weight", 1.0)
        if weight < 0:
            raise StageFileError(f"{where}[{index}]: weight is {weight}; wanted 0 or more")
        total += weight
        yield Transition(fields.text("stage", is_required=True), weight)
    if not total:
        raise StageFileError(f"{where}: no stage has a weight; wanted at least one above 0")


def _stop(data: object, where: str) -> StopBehavior:
    if data is None:
        return StopBehavior()
    fields = _Fields(data, f"{where} stop", ("for", "jitter", "exitCode"))
    for_s = fields.duration_s("for")
    return StopBehavior(
        StopBehavior().for_s if for_s is None else for_s,
        fields.duration_s("jitter") or 0.0,
        int(fields.number("exitCode", 0)),
    )


def _match(data: object, where: str) -> ContainerMatch | None:
    if data is None:
        return None
    fields = _Fields(data, f"{where} match", ("labels", "annotations", "role", *_MATCH_TEXTS))
    role = fields.text("role")
    return ContainerMatch(
        labels=fields.texts("labels"),
        annotations=fields.texts("annotations"),
        role=_choice(Role, role, f"{where} match role") if role else None,
        **{field: fields.text(name) for name, field in _MATCH_TEXTS.items()},
    )


class _Fields:
    """A mapping of the YAML file with typed access. Errors name the field, what was found and what was expected."""

    def __init__(self, data: object, where: str, known: Sequence[str]) -> None:
        if not isinstance(data, Mapping):
            raise StageFileError(f"{where} is {data!r}; wanted a mapping with {', '.join(known)}")
        for name in data:
            if name not in known:
                raise StageFileError(f"{where}: {name!r} is not known here; known are {', '.join(known)}")
        self._data = data
        self._where = where

    def get(self, name: str) -> object:
        return self._data.get(name)

    def text(self, name: str, *, is_required: bool = False) -> str:
        value = self._data.get(name)
        if value is None and not is_required:
            return ""
        if not isinstance(value, str) or not value:
            raise self._wrong(name, value, "a text")
        return value

    def flag(self, name: str, default: bool) -> bool:
        value = self._data.get(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, value, "true or false")
        return value

    def number(self, name: str, default: float) -> float:
        value = self._data.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, value, "a number")
        return value

    def duration_s(self, name: str) -> float | None:
        value = self._data.get(name)
        if value is None:
            return None
        try:
            return stage_duration_s(str(value))
        except ValueError as error:
            raise StageFileError(f"{self._where} {name}: {error}") from None

    def list(self, name: str) -> Sequence[object]:
        value = self._data.get(name) or []
        if not isinstance(value, list):
            raise self._wrong(name, value, "a list")
        return value

    def texts(self, name: str) -> Mapping[str, str]:
        value = self._data.get(name) or {}
        if not isinstance(value, Mapping):
            raise self._wrong(name, value, "a mapping of texts")
        return {str(key): str(text) for key, text in value.items()}

    def _wrong(self, name: str, found: object, expected: str) -> StageFileError:
        return StageFileError(f"{self._where} {name} is {found!r}; wanted {expected}")


def _choice(choices: type[AnyChoice], value: str, where: str) -> AnyChoice:
    for choice in choices:
        if choice.value == value:
            return choice
    raise StageFileError(f"{where} is {value!r}; wanted one of {[choice.value for choice in choices]}")
