"""Which stage set a container gets.

Input: the stage sets of a file and the built-in ones (`stage_file`); a container. Output: its stage set, the first of:

 1. the one that an annotation names for the container, or for the pod (regular containers only);
 2. the first one of the file that matches;
 3. the one of its command, if that is known (`commands`);
 4. the first built-in one that matches.

An annotation with an unknown name is reported as the waiting reason of the container.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.kubelet.runtime import Role
from mooring.kubelet.simulated.commands import stage_set_of_command
from mooring.kubelet.simulated.stages import Stage, StageSet, StageState
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
