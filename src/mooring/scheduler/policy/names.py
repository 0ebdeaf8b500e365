"""What an old name means today: predicates and priorities, and the plugins that do their work.

Comes in   nothing
Goes out   `PREDICATES` and `PRIORITIES`, which docs/policy.md shows as tables, and the old default sets

 1. Every name that a scheduler from Kubernetes 1.1 to 1.22 knew has an entry. A name whose work nobody does any more
    maps to no plugin: it is accepted, and does nothing.
 2. The order of the predicates is the one in which they were asked, which decides what is told of a node that several
    refuse. Names that came and went stand beside those that took over from them.
 3. The old schedulers gave a node's conditions a predicate each; since 1.12 the node lifecycle controller turns the
    conditions into taints, and tolerating those is the same question.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.scheduler.config.types import LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO

NODE_LABEL = "NodeLabel"
SERVICE_AFFINITY = "ServiceAffinity"
NODE_RESOURCES_FIT = "NodeResourcesFit"

CHECK_NODE_LABEL_PRESENCE = "CheckNodeLabelPresence"
CHECK_SERVICE_AFFINITY = "CheckServiceAffinity"

PREDICATES: Mapping[str, tuple[str, ...]] = {
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "GeneralPredicates": (NODE_RESOURCES_FIT, "NodeName", "NodePorts", "NodeAffinity"),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "MatchNodeSelector": ("NodeAffinity",),
    "PodFitsResources": (NODE_RESOURCES_FIT,),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "PodToleratesNodeNoExecuteTaints": ("TaintToleration",),
    "CheckNodeCondition": ("TaintToleration",),
    "CheckNodeDiskPressure": ("TaintToleration",),
    "CheckNodeMemoryPressure": ("TaintToleration",),
    "CheckNodePIDPressure": ("TaintToleration",),
    CHECK_NODE_LABEL_PRESENCE: (NODE_LABEL,),
    CHECK_SERVICE_AFFINITY: (SERVICE_AFFINITY,),
    "MaxEBSVolumeCount": ("NodeVolumeLimits",),
    "MaxGCEPDVolumeCount": ("NodeVolumeLimits",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("NodeVolumeLimits",),
    "MaxCinderVolumeCount": ("NodeVolumeLimits",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoVolumeNodeConflict": ("VolumeBinding",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
}

MANDATORY_PREDICATES = ("CheckNodeUnschedulable", "PodToleratesNodeTaints")
"""Those that no policy can do without."""

DEFAULT_PREDICATES = (
    "NoVolumeZoneConflict",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxAzureDiskVolumeCount",
    "MaxCSIVolumeCountPred",
    "MatchInterPodAffinity",
    "NoDiskConflict",
    "GeneralPredicates",
    "PodToleratesNodeTaints",
    "CheckVolumeBinding",
    "CheckNodeUnschedulable",
    "EvenPodsSpread",
)

PRIORITIES: Mapping[str, str | None] = {
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "EqualPriority": None,
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "ImageLocalityPriority": "ImageLocality",
    "InterPodAffinityPriority": "InterPodAffinity",
    "LeastRequestedPriority": NODE_RESOURCES_FIT,
    "MostRequestedPriority": NODE_RESOURCES_FIT,
    "NodeAffinityPriority": "NodeAffinity",
    "NodePreferAvoidPodsPriority": None,
    "RequestedToCapacityRatio": NODE_RESOURCES_FIT,
    "RequestedToCapacityRatioPriority": NODE_RESOURCES_FIT,
    "ResourceLimitsPriority": None,
    "SelectorSpreadPriority": "SelectorSpread",
    "ServiceSpreadingPriority": "SelectorSpread",
    "TaintTolerationPriority": "TaintToleration",
}

STRATEGIES: Mapping[str, str] = {
    "LeastRequestedPriority": LEAST_ALLOCATED,
    "MostRequestedPriority": MOST_ALLOCATED,
    "RequestedToCapacityRatio": REQUESTED_TO_CAPACITY_RATIO,
    "RequestedToCapacityRatioPriority": REQUESTED_TO_CAPACITY_RATIO,
}
"""The priorities that were plugins of their own and are strategies of one plugin today."""

STRATEGY_PLUGINS: Mapping[str, str] = {
    LEAST_ALLOCATED: "NodeResourcesLeastAllocated",
    MOST_ALLOCATED: "NodeResourcesMostAllocated",
    REQUESTED_TO_CAPACITY_RATIO: "RequestedToCapacityRatio",
}
"""Who scores by a strategy that NodeResourcesFit cannot take, because the policy gave it another one before."""

DEFAULT_PRIORITIES: Mapping[str, int] = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
    "EvenPodsSpreadPriority": 2,
}
