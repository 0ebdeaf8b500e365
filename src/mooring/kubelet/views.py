"""Pods as kubelets decode them: what the scheduler reads, and the fields that it takes to run pods.

A kubelet that restarts finds its pods with their statuses, which hold restart counts and the ends of the last runs. So
the statuses are decoded as well.

The process runtime decodes `FullPod`, with environments, probes and volume sources. Its classes are separate
because hollow nodes decode every change of thousands of pods and never read these fields.

 1. Defaults are those of the API: the period of a probe is 10 s, its failure threshold 3.
 2. An empty `value` of a variable counts as absent, as in Kubernetes.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import field

from mooring.api.views.meta import ApiObject, Int32, Int64, IntOrString, ObjectMeta, RawQuantity, Timestamp, View
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
from mooring.api.views.storage import Volume


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


class ExecAction(View):
    command: tuple[str, ...] = ()


class KubeletProbe(View):
    exec: ExecAction | None = None
    initial_delay_seconds: Int32 = 0


class KubeletContainer(Container):
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    restart_policy_rules: tuple[RestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    resize_policy: tuple[ResizePolicy, ...] = ()
    readiness_probe: KubeletProbe | None = None


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


# --- pods of the process runtime ------------------------------------------------------------------------------

# Environment variables


class ObjectSource(View):
    """A reference to a ConfigMap or Secret."""

    name: str = ""
    optional: bool = False


class KeySource(ObjectSource):
    key: str = ""


class FieldSource(View):
    api_version: str = "v1"
    field_path: str = ""


class ResourceSource(View):
    container_name: str = ""
    resource: str = ""
    divisor: RawQuantity = 0


class FileKeySource(View):
    key: str = ""
    path: str = ""
    volume_name: str = ""
    optional: bool = False


class ValueSource(View):
    field_ref: FieldSource | None = None
    resource_field_ref: ResourceSource | None = None
    config_map_key_ref: KeySource | None = None
    secret_key_ref: KeySource | None = None
    file_key_ref: FileKeySource | None = None


class Variable(View):
    name: str = ""
    value: str = ""
    value_from: ValueSource | None = None


class VariablesSource(View):
    prefix: str = ""
    config_map_ref: ObjectSource | None = None
    secret_ref: ObjectSource | None = None


# Probes and hooks


class HTTPHeader(View):
    name: str = ""
    value: str = ""


class HTTPGetAction(View):
    scheme: str = "HTTP"
    host: str = ""
    port: IntOrString = 0
    path: str = ""
    http_headers: tuple[HTTPHeader, ...] = ()


class TCPSocketAction(View):
    host: str = ""
    port: IntOrString = 0


class GRPCAction(View):
    port: Int32 = 0
    service: str = ""


class SleepAction(View):
    seconds: Int64 = 0


class LifecycleHandler(View):
    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(View):
    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str = ""


class FullProbe(KubeletProbe):
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    grpc: GRPCAction | None = None
    period_seconds: Int32 = 10
    timeout_seconds: Int32 = 1
    success_threshold: Int32 = 1
    failure_threshold: Int32 = 3
    termination_grace_period_seconds: Int64 | None = None


# Volumes


class KeyPath(View):
    key: str = ""
    path: str = ""
    mode: Int32 | None = None


class ConfigMapVolume(ObjectSource):
    items: tuple[KeyPath, ...] = ()
    default_mode: Int32 | None = None


class SecretVolume(View):
    secret_name: str = ""
    optional: bool = False
    items: tuple[KeyPath, ...] = ()
    default_mode: Int32 | None = None


class DownwardFile(View):
    path: str = ""
    field_ref: FieldSource | None = None
    resource_field_ref: ResourceSource | None = None
    mode: Int32 | None = None


class DownwardVolume(View):
    items: tuple[DownwardFile, ...] = ()
    default_mode: Int32 | None = None


class TokenProjection(View):
    audience: str = ""
    expiration_seconds: Int64 = 3600
    path: str = ""


class ObjectProjection(ObjectSource):
    items: tuple[KeyPath, ...] = ()


class Projection(View):
    """One source of a projected volume."""

    config_map: ObjectProjection | None = None
    secret: ObjectProjection | None = None
    downward_api: DownwardVolume | None = field(default=None, name="downwardAPI")
    service_account_token: TokenProjection | None = None


class ProjectedVolume(View):
    sources: tuple[Projection, ...] = ()
    default_mode: Int32 | None = None


class EmptyDirVolume(View):
    medium: str = ""


class HostPathVolume(View):
    path: str = ""
    type: str = ""


class FullVolume(Volume):
    config_map: ConfigMapVolume | None = None
    secret: SecretVolume | None = None
    downward_api: DownwardVolume | None = field(default=None, name="downwardAPI")
    projected: ProjectedVolume | None = None
    empty_dir: EmptyDirVolume | None = None
    host_path: HostPathVolume | None = None


class FullMount(VolumeMount):
    sub_path: str = ""
    sub_path_expr: str = ""


# Pods, ConfigMaps, Secrets


class SecurityProfile(View):
    """A seccomp or AppArmor profile."""

    type: str = ""


class Capabilities(View):
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class SecurityContext(View):
    """What containers and pods have in common."""

    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    seccomp_profile: SecurityProfile | None = None
    app_armor_profile: SecurityProfile | None = None
    se_linux_options: Mapping[str, str] | None = None
    windows_options: Mapping[str, Any] | None = None


class PodSecurityContext(SecurityContext):
    fs_group: Int64 | None = None
    supplemental_groups: tuple[Int64, ...] = ()
    sysctls: tuple[Mapping[str, str], ...] = ()


class ContainerSecurityContext(SecurityContext):
    privileged: bool = False
    allow_privilege_escalation: bool | None = None
    read_only_root_filesystem: bool | None = None
    capabilities: Capabilities = Capabilities()


class FullContainer(KubeletContainer):
    working_dir: str = ""
    env: tuple[Variable, ...] = ()
    env_from: tuple[VariablesSource, ...] = ()
    volume_mounts: tuple[FullMount, ...] = ()
    liveness_probe: FullProbe | None = None
    readiness_probe: FullProbe | None = None
    startup_probe: FullProbe | None = None
    lifecycle: Lifecycle | None = None
    termination_message_path: str = ""
    termination_message_policy: str = ""
    security_context: ContainerSecurityContext = ContainerSecurityContext()


class FullPodSpec(KubeletPodSpec):
    containers: tuple[FullContainer, ...] = ()
    init_containers: tuple[FullContainer, ...] = ()
    ephemeral_containers: tuple[FullContainer, ...] = ()
    volumes: tuple[FullVolume, ...] = ()
    service_account_name: str = ""
    enable_service_links: bool = True
    security_context: PodSecurityContext = PodSecurityContext()
    host_pid: bool = field(default=False, name="hostPID")
    host_ipc: bool = field(default=False, name="hostIPC")
    share_process_namespace: bool = False


class FullPod(KubeletPod):
    spec: FullPodSpec = FullPodSpec()


class ConfigMap(ApiObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "ConfigMap"

    data: Mapping[str, str] = field(default_factory=dict)
    binary_data: Mapping[str, bytes] = field(default_factory=dict)


class Secret(ApiObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "Secret"

    data: Mapping[str, bytes] = field(default_factory=dict)
