"""The configuration types: defaults of kube-scheduler v1.36, lists of plugins, extension points."""

import pytest

from mooring.scheduler.config.types import (
    ARGUMENTS,
    INT32,
    INT64,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    ExtensionPoint,
    InterPodAffinityArgs,
    KnownArguments,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    Plugin,
    Plugins,
    PluginSet,
    PodTopologySpreadArgs,
    ResourceSpec,
    SchedulerConfiguration,
    ScoringStrategy,
    Settings,
    VolumeBindingArgs,
)


@pytest.mark.parametrize("point", list(ExtensionPoint), ids=lambda point: point.value)
def test_every_point_has_its_list(point: ExtensionPoint) -> None:
    here = PluginSet(enabled=(Plugin(name="Gpu"),))
    plugins = Plugins(**{point.attribute: here})
    assert plugins.at(point) == here
    assert [other for other in ExtensionPoint if plugins.at(other) == here] == [point]


def test_enabled_plugins_are_named_once_in_order() -> None:
    plugins = Plugins(
        multi_point=PluginSet(enabled=(Plugin(name="Z"), Plugin(name="A"))),
        score=PluginSet(enabled=(Plugin(name="M"), Plugin(name="A")), disabled=(Plugin(name="Gone"),)),
    )
    assert plugins.enabled_names() == ("A", "M", "Z")


def test_how_many_nodes_to_score_is_left_open() -> None:
    assert SchedulerConfiguration().percentage_of_nodes_to_score is None


CPU_AND_MEMORY = (ResourceSpec(name="cpu", weight=1), ResourceSpec(name="memory", weight=1))


@pytest.mark.parametrize(
    ("plugin", "arguments"),
    [
        (
            "DefaultPreemption",
            DefaultPreemptionArgs(min_candidate_nodes_percentage=10, min_candidate_nodes_absolute=100),
        ),
        ("DynamicResources", DynamicResourcesArgs(filter_timeout_s=10.0, binding_timeout_s=600.0)),
        (
            "InterPodAffinity",
            InterPodAffinityArgs(hard_pod_affinity_weight=1, ignore_preferred_terms_of_existing_pods=False),
        ),
        ("NodeAffinity", NodeAffinityArgs(added_affinity=None)),
        ("NodeResourcesBalancedAllocation", NodeResourcesBalancedAllocationArgs(resources=CPU_AND_MEMORY)),
        (
            "NodeResourcesFit",
            NodeResourcesFitArgs(
                ignored_resources=(),
                ignored_resource_groups=(),
                scoring_strategy=ScoringStrategy(
                    type="LeastAllocated", resources=CPU_AND_MEMORY, requested_to_capacity_ratio=None
                ),
            ),
        ),
        ("PodTopologySpread", PodTopologySpreadArgs(default_constraints=(), defaulting_type="System")),
        ("VolumeBinding", VolumeBindingArgs(bind_timeout_seconds=600, shape=None)),
    ],
)
def test_defaults(plugin: str, arguments: KnownArguments) -> None:
    assert ARGUMENTS[plugin]() == arguments


def test_a_plugin_and_its_arguments_share_a_name() -> None:
    assert {f"{plugin}Args" for plugin in ARGUMENTS} == {kind.__name__ for kind in ARGUMENTS.values()}


class Lamp(Settings):
    colour_code: int = 3


def test_settings_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Lamp().colour_code = 4  # type: ignore[misc]


def test_integers_are_those_of_kubernetes() -> None:
    assert (INT32.lowest, INT32.highest) == (-2147483648, 2147483647)
    assert (INT64.lowest, INT64.highest) == (-9223372036854775808, 9223372036854775807)


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
