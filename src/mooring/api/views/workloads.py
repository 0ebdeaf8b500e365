"""What surrounds pods: namespaces, services, the sets that own them, budgets and priorities.

Comes in   the kinds by which the scheduler groups pods, spreads them, and decides whom it may evict
Goes out   one view for each kind, without the pod templates

 1. The selector of a service or of a replication controller is a bare map. `None` selects nothing, `{}` everything.
"""

from collections.abc import Mapping
from typing import ClassVar

from msgspec import field

from mooring.api.views.base import Int32, Int64, IntOrString, Timestamp, View
from mooring.api.views.meta import ApiObject, Condition
from mooring.api.views.selectors import LabelSelector


class NamespaceStatus(View):
    phase: str = ""


class Namespace(ApiObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "Namespace"

    status: NamespaceStatus = NamespaceStatus()


class ServiceSpec(View):
    selector: Mapping[str, str] | None = None


class Service(ApiObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "Service"

    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(View):
    replicas: Int32 | None = None
    selector: Mapping[str, str] | None = None


class ReplicationController(ApiObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "ReplicationController"

    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class ReplicaSetSpec(View):
    replicas: Int32 | None = None
    selector: LabelSelector | None = None


class ReplicaSet(ApiObject):
    api_version: ClassVar[str] = "apps/v1"
    kind: ClassVar[str] = "ReplicaSet"

    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSetSpec(View):
    replicas: Int32 | None = None
    selector: LabelSelector | None = None


class StatefulSet(ApiObject):
    api_version: ClassVar[str] = "apps/v1"
    kind: ClassVar[str] = "StatefulSet"

    spec: StatefulSetSpec = StatefulSetSpec()


class PodDisruptionBudgetSpec(View):
    min_available: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(View):
    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0
    observed_generation: Int64 = 0
    disrupted_pods: Mapping[str, Timestamp] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(ApiObject):
    api_version: ClassVar[str] = "policy/v1"
    kind: ClassVar[str] = "PodDisruptionBudget"

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(ApiObject):
    api_version: ClassVar[str] = "scheduling.k8s.io/v1"
    kind: ClassVar[str] = "PriorityClass"

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None
