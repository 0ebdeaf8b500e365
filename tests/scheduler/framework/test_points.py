"""The extension points are named as Kubernetes names them."""

import pytest

from mooring.scheduler.config.types import ExtensionPoint


@pytest.mark.parametrize(
    ("point", "config_field", "attribute", "plugin_type"),
    [
        pytest.param(ExtensionPoint.PRE_ENQUEUE, "preEnqueue", "pre_enqueue", "PreEnqueuePlugin", id="two words"),
        pytest.param(ExtensionPoint.FILTER, "filter", "filter", "FilterPlugin", id="one word"),
        pytest.param(
            ExtensionPoint.PLACEMENT_SCORE, "placementScore", "placement_score", "PlacementScorePlugin", id="of groups"
        ),
    ],
)
def test_a_point_has_a_name_for_every_reader(
    point: ExtensionPoint, config_field: str, attribute: str, plugin_type: str
) -> None:
    assert (point.config_field, point.attribute, point.plugin_type) == (config_field, attribute, plugin_type)


def test_the_order_is_that_of_the_journey() -> None:
    assert [point.config_field for point in ExtensionPoint] == [
        *("preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score"),
        *("reserve", "permit", "preBind", "bind", "postBind", "placementGenerate", "placementScore"),
    ]


def test_only_scores_are_weighted() -> None:
    assert [point for point in ExtensionPoint if point.is_weighted] == [
        ExtensionPoint.SCORE,
        ExtensionPoint.PLACEMENT_SCORE,
    ]
