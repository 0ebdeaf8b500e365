"""Pods in a table: what `kubectl get pods` says of them.

1. The status is the most telling of what the pod's phase, its conditions and the states of its containers say. Later
   findings replace earlier ones, and of the containers the first one has the last word.
2. Restarts of init containers count until the pod is initialized, those of sidecars always.
"""

from __future__ import annotations

from mooring.api import kinds
from mooring.apiserver.kinds.pod.table import POD_TABLE

TABLES = {
    kinds.POD: POD_TABLE,
}
