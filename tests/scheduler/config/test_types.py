"""The configuration types: defaults of kube-scheduler v1.36, lists of plugins, extension points."""

import pytest

from mooring.scheduler.config.types import (
    ARGUMENTS,
    INT32,
    INT64,
    ConfigObject,
    ConfigProblem,
    ConfigurationError,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    ExtensionPoint,
    InterPodAffinityArgs,
    KnownArguments,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginEntry,
    Plugins,
    PluginSet,
    PodTopologySpreadArgs,
    ResourceSpec,
    SchedulerConfiguration,
    ScoringStrategy,
    VolumeBindingArgs,
    child,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)


@pytest.mark.parametrize("point", list(ExtensionPoint), ids=lambda point: point.value)
def test_every_point_has_its_list(point: ExtensionPoint) -> None:
    here = PluginSet(enabled=(PluginEntry(name="Gpu"),))
    plugins = Plugins(**{point.attribute: here})
    assert plugins.at(point) == here
    assert [other for other in ExtensionPoint if plugins.at(other) == here] == [point]


def test_enabled_plugins_are_named_once_in_order() -> None:
    plugins = Plugins(
        multi_point=PluginSet(enabled=(PluginEntry(name="Z"), PluginEntry(name="A"))),
        score=PluginSet(enabled=(PluginEntry(name="M"), PluginEntry(name="A")), disabled=(PluginEntry(name="Gone"),)),
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


class Lamp(ConfigObject):
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


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        pytest.param(
            invalid("a.b", 0, "must be greater than 0"), "a.b: Invalid value: 0: must be greater than 0", id="a number"
        ),
        pytest.param(invalid("a", "x", "no"), 'a: Invalid value: "x": no', id="text is quoted"),
        pytest.param(invalid("a", "x\n\x01ü", "no"), r'a: Invalid value: "x\n\x01ü": no', id="text is escaped"),
        pytest.param(invalid("a", True, "no"), "a: Invalid value: true: no", id="a bool"),
        pytest.param(invalid("a", [{"N": 1}], "no"), 'a: Invalid value: [{"N":1}]: no', id="the rest is JSON"),
        pytest.param(invalid("a", None, "no"), "a: Invalid value: null: no", id="nothing"),
        pytest.param(duplicate("a[1]", "x"), 'a[1]: Duplicate value: "x"', id="a duplicate"),
        pytest.param(required("a"), "a: Required value", id="something missing"),
        pytest.param(required("a", "say it"), "a: Required value: say it", id="something missing, and why"),
        pytest.param(forbidden("a", "not now"), "a: Forbidden: not now", id="something forbidden"),
        pytest.param(
            not_supported("a", "x", ["y", "z"]),
            'a: Unsupported value: "x": supported values: "y", "z"',
            id="a value that is none of those allowed",
        ),
    ],
)
def test_a_problem_is_a_sentence(problem: ConfigProblem, sentence: str) -> None:
    assert str(problem) == sentence
    assert sentence.startswith(f"{problem.path}: ")


def test_an_error_reports_every_problem_once_on_a_line_of_its_own() -> None:
    error = ConfigurationError([required("a"), required("b"), required("a")])
    assert str(error) == "a: Required value\nb: Required value"
    assert [problem.path for problem in error.problems] == ["a", "b"]
    assert isinstance(error, ValueError)


def test_a_path_grows_from_the_root() -> None:
    assert child("", "profiles") == "profiles"
    assert child("profiles[0]", "plugins") == "profiles[0].plugins"
