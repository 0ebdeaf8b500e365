"""ImageLocality: a node that has the pod's images already starts it sooner.

Per node: the bytes of the pod's images that it has, each weighed by the share of nodes that have it (so that pods do
not all run after a single node), scaled between 23 MiB and 1000 MiB for each container.
"""

from __future__ import annotations

import numpy as np

from mooring.api.images import normalized_image_name
from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.plugin import SCORE_MAX, Scope, Score

_MIB = 1024 * 1024
THRESHOLD_MIN = 23 * _MIB
THRESHOLD_MAX_PER_CONTAINER = 1000 * _MIB

WantedImages = tuple[tuple[str, ...], int]
"""Names of images, each as often as it is wanted, and how many containers the pod has."""


class ImageLocality(Score[WantedImages]):
    name = "ImageLocality"
    score_scope = Scope.NODE

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def epoch(self) -> object:
        # What an image on one node is worth depends on how many nodes have it, and on how many there are.
        return self._columns.images.version, self._columns.node_count if self._columns.images.holders else 0

    def pre_score(self, pod: PodInfo, feasible: Rows) -> WantedImages:
        spec = pod.signature.spec
        containers = (*spec.init_containers, *spec.containers)
        references = [container.image for container in containers]
        references += [volume.image.reference for volume in spec.volumes if volume.image is not None]
        return tuple(normalized_image_name(reference) for reference in references), len(containers)

    def score(self, state: WantedImages, rows: Rows) -> Int64s:
        names, container_count = state
        if not any(name in self._columns.images.holders for name in names):
            return np.zeros(length_of(rows), dtype=np.int64)
        present_bytes = np.zeros(self._columns.height, dtype=np.int64)
        for name in names:
            holders = self._columns.images.holders.get(name)
            if holders is not None:
                spread = len(holders.rows) / self._columns.node_count
                present_bytes[list(holders.rows)] += int(holders.size_bytes * spread)
        return locality_score(present_bytes[rows], container_count)


def locality_score(present_bytes: Int64s, container_count: int) -> Int64s:
    """Per node: (bytes - 23 MiB) * 100 // (1000 MiB for each container - 23 MiB), bytes held between the two."""
    threshold_max = THRESHOLD_MAX_PER_CONTAINER * container_count
    # Not np.clip: with no containers at all the upper bound lies below the lower, and Kubernetes asks the lower first.
    held = np.where(present_bytes < THRESHOLD_MIN, THRESHOLD_MIN, np.minimum(present_bytes, threshold_max))
    return (held - THRESHOLD_MIN) * SCORE_MAX // (threshold_max - THRESHOLD_MIN)
