"""The Policy file of kube-scheduler before v1.23: predicates and priorities, converted to a profile of today's plugins.

The modules in reading order:

  types             the predicates and priorities; the Policy file as values, and its validation; plugin arguments
  conversion        from a Policy to a `SchedulerConfiguration`
  plugins           NodeLabel, the resource strategies, SelectorSpread and ServiceAffinity

kube-scheduler has dropped these plugins. A KubeSchedulerConfiguration can enable them by name. Nothing outside of this
package depends on it but `catalogue`, which lists the plugins, and the readers of files.
"""

from mooring.scheduler.framework.plugin import Plugin
from mooring.scheduler.policy.conversion import load_configuration_or_policy
from mooring.scheduler.policy.plugins import (
    NodeLabel,
    NodeResourcesLeastAllocated,
    NodeResourcesMostAllocated,
    RequestedToCapacityRatio,
    SelectorSpread,
    ServiceAffinity,
)

PLUGINS: tuple[type[Plugin], ...] = (
    NodeLabel,
    ServiceAffinity,
    SelectorSpread,
    NodeResourcesLeastAllocated,
    NodeResourcesMostAllocated,
    RequestedToCapacityRatio,
)

__all__ = ["PLUGINS", "load_configuration_or_policy"]
