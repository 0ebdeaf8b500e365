"""The strategies of pods and of what makes pods without more ado.

Goes out   a table from kinds to strategies, for the table of all kinds
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.kinds import POD, POD_TEMPLATE, REPLICATION_CONTROLLER, Kind
from mooring.apiserver.kinds.pod.strategy import PodStrategy
from mooring.apiserver.kinds.pod_template import PodTemplateStrategy
from mooring.apiserver.kinds.replication_controller import ReplicationControllerStrategy
from mooring.apiserver.strategy import Strategy

STRATEGIES: Mapping[Kind, type[Strategy]] = {
    POD: PodStrategy,
    POD_TEMPLATE: PodTemplateStrategy,
    REPLICATION_CONTROLLER: ReplicationControllerStrategy,
}
