"""ImageLocality: prefer nodes that have the pod's images.

Per node: the bytes of the pod's images on it, each weighed by the share of nodes that have it (so that pods do not all
go to one node), scaled between 23 MiB and 1000 MiB for each container.
"""

from __future__ import annotations

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.plugin import SCORE_MAX, Scope, Score

_MIB = 1024 * 1024
THRESHOLD_MIN = 23 * _MIB
THRESHOLD_MAX_PER_CONTAINER = 1000 * _MIB

PodImages = tuple[tuple[str, ...], int]
"""The image of each container and image volume, and the number of containers."""


class ImageLocality(Score[PodImages]):
    name = "ImageLocality"
    score_scope = Scope.NODE

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def epoch(self) -> object:
        # The score of an image depends on how many nodes have it, and on the number of nodes.
        return self._columns.images.version, self._columns.node_count if self._columns.images.holders else 0

    def pre_score(self, pod: PodInfo, feasible: Rows) -> PodImages:
        spec = pod.signature.spec
        containers = (*spec.init_containers, *spec.containers)
        references = [container.image for container in containers]
        references += [volume.image.reference for volume in spec.volumes if volume.image is not None]
        return tuple(normalized_image_name(reference) for reference in references), len(containers)

    def score(self, state: PodImages, rows: Rows) -> Int64s:
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
    """Per node: (bytes - 23 MiB) * 100 // (1000 MiB * containers - 23 MiB), with bytes limited to that range."""
    threshold_max = THRESHOLD_MAX_PER_CONTAINER * container_count
    # Not np.clip: without containers the upper bound is below the lower, and Kubernetes applies the lower first.
    limited = np.where(present_bytes < THRESHOLD_MIN, THRESHOLD_MIN, np.minimum(present_bytes, threshold_max))
    return (limited - THRESHOLD_MIN) * SCORE_MAX // (threshold_max - THRESHOLD_MIN)


def normalized_image_name(name: str) -> str:
    """The name with a tag: an image without one means `latest`. A colon before the last slash belongs to a port."""
    has_tag = name.rfind(":") > name.rfind("/")
    return name if has_tag else f"{name}:latest"
