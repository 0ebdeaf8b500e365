"""Views of DaemonSets and ControllerRevisions.

1. The whole pod spec of the template is decoded, because the controller checks nodes with it.
2. The data of a revision is not decoded: it is a patch, and history code reads it from the raw JSON.
"""

from typing import ClassVar

from mooring.api.views.base import Int32, Int64, IntOrString, View
from mooring.api.views.meta import NO_METADATA, Condition, ObjectMeta, ObjectWithRaw
from mooring.api.views.pod import PodSpec
from mooring.api.views.selectors import LabelSelector


class DaemonPodTemplate(View):
    metadata: ObjectMeta = NO_METADATA
    spec: PodSpec = PodSpec()


class RollingUpdateDaemonSet(View):
    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class DaemonSetUpdateStrategy(View):
    type: str = ""
    rolling_update: RollingUpdateDaemonSet | None = None


class DaemonSetSpec(View):
    selector: LabelSelector | None = None
    template: DaemonPodTemplate = DaemonPodTemplate()
    update_strategy: DaemonSetUpdateStrategy = DaemonSetUpdateStrategy()
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 | None = None


class DaemonSetStatus(View):
    current_number_scheduled: Int32 = 0
    number_misscheduled: Int32 = 0
    desired_number_scheduled: Int32 = 0
    number_ready: Int32 = 0
    observed_generation: Int64 = 0
    updated_number_scheduled: Int32 = 0
    number_available: Int32 = 0
    number_unavailable: Int32 = 0
    collision_count: Int32 | None = None
    conditions: tuple[Condition, ...] = ()


class DaemonSet(ObjectWithRaw):
    api_version: ClassVar[str] = "apps/v1"
    kind: ClassVar[str] = "DaemonSet"

    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class ControllerRevision(ObjectWithRaw):
    api_version: ClassVar[str] = "apps/v1"
    kind: ClassVar[str] = "ControllerRevision"

    revision: Int64 = 0
