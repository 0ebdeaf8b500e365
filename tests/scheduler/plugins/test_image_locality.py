"""ImageLocality: images that a node has already, and how widely they are spread."""

from __future__ import annotations

import numpy as np
import pytest

from mooring.api.views.pod import Pod
from mooring.api.views.storage import ImageVolumeSource, Volume
from mooring.scheduler.plugins.image_locality import ImageLocality, locality_score, normalized_image_name
from tests.builders import MIB, node, pod
from tests.scheduler.harness import decide, engine_of, scored_by


@pytest.mark.parametrize(
    ("mebibytes", "containers", "score"),
    [
        pytest.param(0, 1, 0, id="nothing"),
        pytest.param(23, 1, 0, id="up to 23 MiB is nothing"),
        pytest.param(1000, 1, 100, id="1000 MiB for each container are everything"),
        pytest.param(5000, 1, 100, id="and more is not more"),
        pytest.param(1000, 2, 49, id="of two containers it is half"),
        pytest.param(500, 1, 48, id="in between it is cut off"),
        pytest.param(0, 0, 0, id="no containers at all"),
    ],
)
def test_a_share_of_what_would_be_enough(mebibytes: int, containers: int, score: int) -> None:
    assert locality_score(np.array([mebibytes * MIB]), containers).tolist() == [score]


def image(name: str) -> Pod:
    return pod(image=name)


BIG, SMALL = 2000 * MIB, 100 * MIB


@pytest.mark.parametrize(
    ("wanting", "scores"),
    [
        pytest.param(image("big:1"), {"n1": 100, "n2": 0}, id="half of the nodes have it: half its size counts"),
        pytest.param(image("small:1"), {"n1": 7, "n2": 7}, id="all nodes have it: all of it counts"),
        pytest.param(image("rare:1"), {"n1": 0, "n2": 2}, id="a small share of a small image"),
        pytest.param(image("unknown:1"), {"n1": 0, "n2": 0}, id="nobody has it"),
        pytest.param(image("latest"), {"n1": 0, "n2": 7}, id="a name without a tag means the latest"),
        pytest.param(
            pod(image="small:1", volumes=[Volume(name="v", image=ImageVolumeSource(reference="big:1"))]),
            {"n1": 100, "n2": 7},
            id="images of volumes count too",
        ),
    ],
)
def test_how_much_of_a_pods_images_is_there(wanting: Pod, scores: dict[str, int]) -> None:
    engine = engine_of(
        node("n1", images={"big:1": BIG, "small:1": SMALL}),
        node("n2", images={"small:1": SMALL, "rare:1": SMALL, "latest:latest": 2 * SMALL}),
    )
    assert scored_by(engine, ImageLocality, wanting) == scores


def test_scores_that_are_kept_follow_the_images_of_other_nodes() -> None:
    """An image is worth more on every node, the more nodes have it."""
    engine = engine_of(node("n1", images={"big:1": 1000 * MIB}), node("n2"))
    assert decide(engine, image("big:1")).scores["n1"]["ImageLocality"] == 48
    engine.put(node("n2", images={"big:1": 1000 * MIB}))
    assert decide(engine, image("big:1")).scores["n1"]["ImageLocality"] == 100
    engine.put(node("n3"))
    engine.put(node("n4"))
    assert decide(engine, image("big:1")).scores["n1"]["ImageLocality"] == 48


# --- Names of images -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "normalized"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1.25", "nginx:1.25"),
        ("registry:5000/nginx", "registry:5000/nginx:latest"),
        ("registry:5000/nginx:1.25", "registry:5000/nginx:1.25"),
        ("nginx@sha256:abc", "nginx@sha256:abc"),
        ("", ":latest"),
    ],
)
def test_an_image_without_a_tag_means_latest(written: str, normalized: str) -> None:
    assert normalized_image_name(written) == normalized
