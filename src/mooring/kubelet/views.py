"""Pods as kubelets decode them: what the scheduler reads, and the fields that it takes to run pods.

A kubelet that restarts finds its pods with their statuses, which hold restart counts and the ends of the last runs. So
the statuses are decoded as well.
"""

from msgspec import field

from mooring.api.views.base import Int32, Int64, Timestamp, View
from mooring.api.views.meta import ObjectMeta
from mooring.api.views.pod import (
    Container,
    ContainerRestartRule,
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    Pod,
    PodSpec,
    PodStatus,
)


class PodMeta(ObjectMeta):
    deletion_grace_period_seconds: Int64 | None = None


class RestartRuleExitCodes(View):
    operator: str = ""
    values: tuple[Int32, ...] = ()


class RestartRule(ContainerRestartRule):
    exit_codes: RestartRuleExitCodes | None = None


class VolumeMount(View):
    name: str = ""
    mount_path: str = ""
    read_only: bool = False


class ResizePolicy(View):
    resource_name: str = ""
    restart_policy: str = ""


class KubeletContainer(Container):
    restart_policy_rules: tuple[RestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    resize_policy: tuple[ResizePolicy, ...] = ()


class ReadinessGate(View):
    condition_type: str = ""


class KubeletPodSpec(PodSpec):
    containers: tuple[KubeletContainer, ...] = ()
    init_containers: tuple[KubeletContainer, ...] = ()
    ephemeral_containers: tuple[KubeletContainer, ...] = ()
    restart_policy: str = "Always"
    readiness_gates: tuple[ReadinessGate, ...] = ()
    active_deadline_seconds: Int64 | None = None


class WaitingState(View):
    reason: str = ""
    message: str = ""


class RunningState(View):
    started_at: Timestamp | None = None


class TerminatedState(ContainerStateTerminated):
    signal: Int32 = 0
    reason: str = ""
    message: str = ""
    started_at: Timestamp | None = None
    container_id: str = field(default="", name="containerID")


class AnyState(ContainerState):
    waiting: WaitingState | None = None
    running: RunningState | None = None
    terminated: TerminatedState | None = None


NO_STATE = AnyState()


class KubeletContainerStatus(ContainerStatus):
    state: AnyState = NO_STATE
    last_state: AnyState = NO_STATE
    ready: bool = False
    started: bool | None = None


class KubeletPodStatus(PodStatus):
    container_statuses: tuple[KubeletContainerStatus, ...] = ()
    init_container_statuses: tuple[KubeletContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[KubeletContainerStatus, ...] = ()
    pod_ip: str = field(default="", name="podIP")
    reason: str = ""
    message: str = ""


class KubeletPod(Pod):
    metadata: PodMeta = PodMeta()
    spec: KubeletPodSpec = KubeletPodSpec()
    status: KubeletPodStatus = KubeletPodStatus()
