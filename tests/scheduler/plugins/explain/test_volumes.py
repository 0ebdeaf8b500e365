"""What the volume plugins say of a node that they reject."""

from __future__ import annotations

import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.scheduler.framework.obstacle import ObstacleKind
from tests.builders import claim, disk, node, persistent_volume, pod
from tests.scheduler.harness import engine_of, obstacles


@pytest.mark.parametrize(
    ("view", "others", "text"),
    [
        pytest.param(
            pod(claims=["data"]),
            [claim("data", volume="v1"), persistent_volume("v1", zone="elsewhere")],
            "didn't match PersistentVolume's node affinity",
            id="a volume elsewhere",
        ),
        pytest.param(
            pod(volumes=[disk("d1")]),
            [pod("writer", on="n1", volumes=[disk("d1")])],
            "had no available disk",
            id="a disk",
        ),
    ],
)
def test_volume_plugins_show_their_reasons(view: Pod, others: list[ApiObject], text: str) -> None:
    (found,) = obstacles(engine_of(node(zone="here"), *others), view, "n1")
    assert (found.text, found.kind) == (text, ObstacleKind.VOLUME)
