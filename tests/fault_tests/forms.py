"""What the witness reads of an object. Forms of its own, not those of the project: who checks should not share the
mistakes of who is checked."""

from __future__ import annotations

import msgspec

FINISHED = ("Succeeded", "Failed")


class _Form(msgspec.Struct, rename="camel", frozen=True):
    """Reads what it names and nothing else."""


class Owner(_Form, frozen=True):
    uid: str
    kind: str
    controller: bool = False


class Metadata(_Form, frozen=True):
    name: str
    uid: str
    generation: int = 0
    deletion_timestamp: str | None = None
    owner_references: tuple[Owner, ...] = ()

    def owner_uid(self) -> str:
        return next((owner.uid for owner in self.owner_references if owner.controller), "")


class Resources(_Form, frozen=True):
    requests: dict[str, str] = {}


class Container(_Form, frozen=True):
    resources: Resources = Resources()
    image: str = ""


class Condition(_Form, frozen=True):
    type: str
    status: str


class FieldMatch(_Form, frozen=True):
    key: str
    values: tuple[str, ...] = ()


class NodeTerm(_Form, frozen=True):
    match_fields: tuple[FieldMatch, ...] = ()


class NodeTerms(_Form, frozen=True):
    node_selector_terms: tuple[NodeTerm, ...] = ()


class NodeAffinity(_Form, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeTerms = NodeTerms()


class Affinity(_Form, frozen=True):
    node_affinity: NodeAffinity = NodeAffinity()


class PodSpec(_Form, frozen=True):
    containers: tuple[Container, ...] = ()
    node_name: str = ""
    affinity: Affinity = Affinity()


class PodStatus(_Form, frozen=True):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class SeenPod(_Form, frozen=True):
    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_over(self) -> bool:
        return self.status.phase in FINISHED

    @property
    def is_going(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_alive(self) -> bool:
        return not (self.is_going or self.is_over)

    @property
    def is_ready(self) -> bool:
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)

    def ordinal(self) -> int:
        """Of a pod of a StatefulSet."""
        return int(self.metadata.name.rpartition("-")[2])

    def pinned_to(self) -> str:
        """The node that a DaemonSet made it for."""
        terms = self.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
        names = [match.values for term in terms.node_selector_terms for match in term.match_fields]
        return names[0][0] if names else ""

    def cpu_milli(self) -> int:
        return sum(cpu_milli_of(each.resources.requests.get("cpu", "0")) for each in self.spec.containers)


class NodeStatus(_Form, frozen=True):
    allocatable: dict[str, str] = {}


class SeenNode(_Form, frozen=True):
    metadata: Metadata
    status: NodeStatus = NodeStatus()

    def cpu_milli(self) -> int:
        return cpu_milli_of(self.status.allocatable.get("cpu", "0"))


class RollingUpdate(_Form, frozen=True):
    max_surge: int = 0


class Strategy(_Form, frozen=True):
    rolling_update: RollingUpdate | None = None


class WorkloadSpec(_Form, frozen=True):
    replicas: int = 0
    strategy: Strategy | None = None
    pod_management_policy: str = ""
    parallelism: int = 0
    completions: int = 0


class WorkloadStatus(_Form, frozen=True):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    current_number_scheduled: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    number_misscheduled: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: tuple[Condition, ...] = ()


class SeenWorkload(_Form, frozen=True):
    """Whatever makes pods, or makes who makes them."""

    kind: str
    metadata: Metadata
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()

    def pods_max(self) -> int:
        """How many pods it may have; of a DaemonSet, on one node; of a Job, at a time."""
        match self.kind:
            case "Deployment":
                rolling = self.spec.strategy.rolling_update if self.spec.strategy is not None else None
                return self.spec.replicas + (rolling.max_surge if rolling is not None else 0)
            case "Job":
                return self.spec.parallelism
            case "DaemonSet":
                return 1
            case _:
                return self.spec.replicas


read_pod = msgspec.json.Decoder(SeenPod).decode
read_node = msgspec.json.Decoder(SeenNode).decode
read_workload = msgspec.json.Decoder(SeenWorkload).decode


def cpu_milli_of(text: str) -> int:
    """Fault tests write only whole cores and milli-cores."""
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000
