"""Profiles: default plugins merged in, and the plan of a profile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.scheduler.config import load_configuration
from mooring.scheduler.config.profiles import (
    DEFAULT_PLUGINS,
    ProfilePlan,
    default_profile,
    expand_profile,
    expand_profiles,
    merged_with_defaults,
    with_defaults,
)
from mooring.scheduler.config.types import (
    ExtensionPoint,
    KubeSchedulerProfile,
    NodeAffinityArgs,
    NodeResourcesFitArgs,
    PluginConfig,
    PluginEntry,
    Plugins,
    PluginSet,
)
from tests.scheduler.config.builders import (
    KUBERNETES,
    Written,
    configuration,
    plugins,
    problems,
    serving,
    with_profile,
)

DEFAULTS = tuple(plugin.name for plugin in DEFAULT_PLUGINS)


def listed(*names: str) -> tuple[PluginEntry, ...]:
    """Plugins by name, or by name and weight: "Gpu=5"."""
    parts = [name.partition("=") for name in names]
    return tuple(PluginEntry(name=name, weight=int(weight or 0)) for name, _, weight in parts)


def merged(enabled: tuple[PluginEntry, ...] = (), disabled: tuple[PluginEntry, ...] = ()) -> tuple[PluginEntry, ...]:
    wishes = Plugins(multi_point=PluginSet(enabled=enabled, disabled=disabled))
    return merged_with_defaults(wishes).multi_point.enabled


def test_the_default_plugins_are_those_of_kube_scheduler() -> None:
    assert [(plugin.name, plugin.weight) for plugin in DEFAULT_PLUGINS] == [
        ("SchedulingGates", 0),
        ("PrioritySort", 0),
        ("NodeUnschedulable", 0),
        ("NodeName", 0),
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodePorts", 0),
        ("NodeResourcesFit", 1),
        ("VolumeRestrictions", 0),
        ("NodeVolumeLimits", 0),
        ("VolumeBinding", 0),
        ("VolumeZone", 0),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("DynamicResources", 2),
        ("DefaultPreemption", 0),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
        ("DefaultBinder", 0),
        ("NodeDeclaredFeatures", 0),
    ]


def test_without_wishes_there_are_the_defaults() -> None:
    assert merged() == DEFAULT_PLUGINS


def test_a_new_plugin_comes_after_the_defaults() -> None:
    assert merged(listed("Gpu=5", "Rack")) == (*DEFAULT_PLUGINS, *listed("Gpu=5", "Rack"))


def test_a_default_enabled_again_keeps_its_place_and_takes_the_weight() -> None:
    found = merged(listed("Gpu", "NodeAffinity=7"))
    assert found.index(PluginEntry(name="NodeAffinity", weight=7)) == DEFAULTS.index("NodeAffinity")
    assert [plugin.name for plugin in found] == [*DEFAULTS, "Gpu"]


def test_enabled_again_without_a_weight_it_loses_its_own() -> None:
    assert PluginEntry(name="TaintToleration", weight=0) in merged(listed("TaintToleration"))


def test_a_disabled_plugin_drops_out() -> None:
    assert [plugin.name for plugin in merged(disabled=listed("NodeName"))] == [
        name for name in DEFAULTS if name != "NodeName"
    ]


def test_a_star_drops_them_all() -> None:
    assert merged(listed("Gpu"), listed("*")) == listed("Gpu")


@pytest.mark.parametrize("disabled", ["*", "NodeName"])
def test_enabling_is_stronger_than_disabling_and_moves_to_the_end(disabled: str) -> None:
    assert merged(listed("NodeName=4"), listed(disabled))[-1] == PluginEntry(name="NodeName", weight=4)


def test_a_plugin_enabled_twice_stays_twice_for_expansion_to_reject() -> None:
    found = merged(listed("NodeName=4", "NodeName=5"))
    assert [plugin for plugin in found if plugin.name == "NodeName"] == list(listed("NodeName=5", "NodeName=4"))


def test_lists_of_single_points_stand_as_they_are() -> None:
    score = PluginSet(enabled=listed("ImageLocality=9"), disabled=listed("NodeAffinity"))
    assert merged_with_defaults(Plugins(score=score)).score == score


def test_enabled_plugins_that_take_arguments_get_the_defaults_after_what_was_written() -> None:
    written = PluginConfig(name="NodeAffinity", args=NodeAffinityArgs())
    profile = with_defaults(KubeSchedulerProfile(plugin_config=(PluginConfig(name="Gpu"), written)))
    assert [config.name for config in profile.plugin_config] == [
        "Gpu",
        "NodeAffinity",
        "DefaultPreemption",
        "DynamicResources",
        "InterPodAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
        "VolumeBinding",
    ]


def test_a_plugin_that_is_off_gets_no_arguments() -> None:
    wishes = Plugins(multi_point=PluginSet(enabled=listed("VolumeBinding"), disabled=listed("*")))
    assert [config.name for config in with_defaults(KubeSchedulerProfile(plugins=wishes)).plugin_config] == [
        "VolumeBinding"
    ]


def test_the_default_profile_has_the_default_scheduler_name() -> None:
    assert default_profile().scheduler_name == "default-scheduler"
    assert default_profile().plugins.multi_point.enabled == DEFAULT_PLUGINS


STAR = {"disabled": plugins("*")}

OURS = serving(
    All="queueSort preFilter filter postFilter preScore score reserve permit preBind bind postBind preEnqueue",
    Sorter="queueSort",
    Binder="bind",
    Gpu="preScore score",
    Rack="score",
    Tide="score",
    Cargo="filter placementScore",
    Zones="placementGenerate",
    Racks="placementGenerate",
)


def plan_of(*, multi_point: list[Written], **points: Written) -> ProfilePlan:
    """The plan of a profile that enables these plugins only, and says this of single points."""
    everywhere = {"multiPoint": {"enabled": multi_point, **STAR}}
    loaded = load_configuration(with_profile(plugins={**everywhere, **points}))
    return expand_profile(loaded.profiles[0], OURS)


def names(plan: ProfilePlan, point: ExtensionPoint) -> list[str]:
    """The plugins at a point; with their weight, where there are weights."""
    return [f"{use.name}={use.weight}" if use.weight else use.name for use in plan.at[point]]


def test_the_default_plan_is_that_of_kube_scheduler() -> None:
    plan = expand_profile(default_profile(), KUBERNETES)
    assert {point.config_field: names(plan, point) for point in ExtensionPoint} == {
        "preEnqueue": ["SchedulingGates", "DynamicResources", "DefaultPreemption"],
        "queueSort": ["PrioritySort"],
        "preFilter": [
            *("NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits"),
            *("VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity", "DynamicResources"),
            "NodeDeclaredFeatures",
        ],
        "filter": [
            *("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit"),
            *("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread"),
            *("InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures"),
        ],
        "postFilter": ["DynamicResources", "DefaultPreemption"],
        "preScore": [
            *("TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread"),
            *("InterPodAffinity", "NodeResourcesBalancedAllocation"),
        ],
        "score": [
            *("TaintToleration=3", "NodeAffinity=2", "NodeResourcesFit=1", "VolumeBinding=1", "PodTopologySpread=2"),
            *("InterPodAffinity=2", "DynamicResources=2", "NodeResourcesBalancedAllocation=1", "ImageLocality=1"),
        ],
        "reserve": ["VolumeBinding", "DynamicResources"],
        "permit": [],
        "preBind": ["VolumeBinding", "DynamicResources"],
        "bind": ["DefaultBinder"],
        "postBind": [],
        "placementGenerate": [],
        "placementScore": [],
    }


def test_a_plugin_takes_part_wherever_it_can() -> None:
    plan = plan_of(multi_point=plugins("All=5"))
    served = [point for point in ExtensionPoint if plan.at[point]]
    assert served == [point for point in ExtensionPoint if OURS("All", point)]
    assert names(plan, ExtensionPoint.SCORE) == ["All=5"]
    assert names(plan, ExtensionPoint.FILTER) == ["All"]


@pytest.mark.parametrize(
    ("multi_point", "score", "expected"),
    [
        pytest.param(["All", "Gpu"], {}, ["All=1", "Gpu=1"], id="without a weight it is one"),
        pytest.param(["All", "Gpu=0"], {}, ["All=1", "Gpu=1"], id="a weight of zero is one"),
        pytest.param(["All=3", "Gpu"], {"disabled": ["All"]}, ["Gpu=1"], id="one is disabled here"),
        pytest.param(["All", "Gpu"], {"disabled": ["*"]}, [], id="all are disabled here"),
        pytest.param(
            ["All", "Gpu=9"],
            {"disabled": ["*"], "enabled": ["Rack", "Gpu"]},
            ["Rack=1", "Gpu=1"],
            id="all are disabled here, except for those enabled here",
        ),
        pytest.param(
            ["Tide", "All", "Gpu"],
            {"enabled": ["Gpu", "All"]},
            ["Gpu=1", "All=1", "Tide=1"],
            id="taken over, they come first and in this order",
        ),
        pytest.param(
            ["All", "Gpu"],
            {"enabled": ["Tide", "Gpu", "All"]},
            ["Gpu=1", "All=1", "Tide=1"],
            id="those that are only here come last",
        ),
        pytest.param(
            ["All", "Gpu=7"],
            {"enabled": ["Gpu=5", "Rack=4", "All=3"]},
            ["Gpu=5", "All=3", "Rack=4"],
            id="the weight given here counts",
        ),
        pytest.param(["All", "Gpu=7"], {"enabled": ["Gpu"]}, ["Gpu=1", "All=1"], id="even if none is given here"),
        pytest.param(
            ["All", "Gpu=7"],
            {"enabled": ["Gpu=2"], "disabled": ["Gpu"]},
            ["All=1", "Gpu=2"],
            id="disabled and enabled here, it is not taken over but added",
        ),
        pytest.param(["All=-2"], {}, ["All=-2"], id="a negative weight stands, as in kube-scheduler"),
    ],
)
def test_a_point_takes_precedence_over_multi_point(
    multi_point: list[str], score: dict[str, list[str]], expected: list[str]
) -> None:
    here: Written = {key: plugins(*listed) for key, listed in score.items()}
    assert names(plan_of(multi_point=plugins(*multi_point), score=here), ExtensionPoint.SCORE) == expected


def test_the_list_of_one_point_does_not_affect_other_points() -> None:
    plan = plan_of(multi_point=plugins("All", "Gpu"), score={"disabled": plugins("Gpu"), "enabled": plugins("Rack")})
    assert names(plan, ExtensionPoint.PRE_SCORE) == ["All", "Gpu"]


def test_plugins_may_be_enabled_point_by_point() -> None:
    plan = plan_of(
        multi_point=[],
        queueSort={"enabled": plugins("Sorter")},
        bind={"enabled": plugins("Binder", "All")},
    )
    assert names(plan, ExtensionPoint.BIND) == ["Binder", "All"]
    assert names(plan, ExtensionPoint.SCORE) == []


def test_scores_of_placements_are_weighted_too() -> None:
    plan = plan_of(multi_point=plugins("All", "Cargo=4"))
    assert names(plan, ExtensionPoint.PLACEMENT_SCORE) == ["Cargo=4"]
    assert names(plan, ExtensionPoint.FILTER) == ["All", "Cargo"]


def test_every_enabled_plugin_has_its_arguments() -> None:
    loaded = load_configuration(
        with_profile(
            plugins={"multiPoint": {"enabled": plugins("Gpu", "Rack")}},
            pluginConfig=[{"name": "Gpu", "args": {"a": 1}}, {"name": "Off", "args": {"b": 2}}],
        )
    )
    plan = expand_profile(loaded.profiles[0], lambda name, point: KUBERNETES(name, point) or OURS(name, point))
    assert set(plan.arguments) == {*(plugin.name for plugin in DEFAULT_PLUGINS), "Gpu", "Rack"}
    assert (plan.arguments["Gpu"], plan.arguments["Rack"], plan.arguments["NodeName"]) == ({"a": 1}, None, None)
    assert plan.arguments["NodeResourcesFit"] == NodeResourcesFitArgs()


@pytest.mark.parametrize(
    ("multi_point", "points", "complaints"),
    [
        pytest.param(["All", "Ghost"], {}, ['PreFilterPlugin "Ghost" does not exist'], id="an unknown plugin"),
        pytest.param(
            ["All", "Ghost"],
            {"preFilter": STAR},
            ['FilterPlugin "Ghost" does not exist'],
            id="an unknown plugin, met at the first point that is open",
        ),
        pytest.param(
            ["All"],
            {"score": {"enabled": plugins("Ghost", "Sorter", "Rack", "Rack")}},
            [
                'ScorePlugin "Ghost" does not exist',
                'plugin "Sorter" does not extend ScorePlugin plugin',
                'plugin "Rack" already registered as "ScorePlugin"',
            ],
            id="a point with everything wrong",
        ),
        pytest.param(
            ["All", "All"], {}, ['plugin "All" already registered as "PreFilterPlugin"'], id="a plugin enabled twice"
        ),
        pytest.param(
            ["Rack", "All", "Rack"],
            {"score": {"enabled": plugins("Rack")}},
            [],
            id="twice for all points, and taken over at the only one",
        ),
        pytest.param(
            ["Binder"],
            {},
            ['only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0'],
            id="no plugin sorts",
        ),
        pytest.param(
            ["All", "Sorter"],
            {},
            ['only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 2'],
            id="two sort",
        ),
        pytest.param(
            ["Sorter"],
            {},
            ['at least one bind plugin is needed for profile with scheduler name "default-scheduler"'],
            id="no plugin binds",
        ),
        pytest.param(
            ["All", "Zones", "Racks"],
            {},
            ['at most one placement generate plugin is allowed for profile with scheduler name "default-scheduler"'],
            id="two make placements",
        ),
    ],
)
def test_what_cannot_be_planned_is_rejected(
    multi_point: list[str], points: dict[str, Written], complaints: list[str]
) -> None:
    found = problems(lambda: plan_of(multi_point=plugins(*multi_point), **points))
    assert [problem.text for problem in found] == complaints


def test_a_rejection_names_the_field() -> None:
    found = problems(lambda: plan_of(multi_point=plugins("All", "Ghost"), score={"enabled": plugins("Sorter")}))
    assert [problem.path for problem in found] == ["plugins.score.enabled", "plugins.multiPoint.enabled"]


def test_arguments_given_twice_are_rejected() -> None:
    profile = KubeSchedulerProfile(plugin_config=(PluginConfig(name="Gpu"), PluginConfig(name="Gpu")))
    found = problems(lambda: expand_profile(profile, OURS))
    assert [problem.text for problem in found] == ["repeated config for plugin Gpu"]


@pytest.mark.parametrize(
    "weights",
    [
        pytest.param({"All": 1, "Rack": 2**63 // 100}, id="too much"),
        pytest.param({"All": -1, "Rack": 1}, id="less than nothing, and another one after it"),
    ],
)
def test_weights_that_overflow_are_rejected(weights: dict[str, int]) -> None:
    enabled = tuple(PluginEntry(name=name, weight=weight) for name, weight in weights.items())
    found = problems(
        lambda: expand_profile(KubeSchedulerProfile(plugins=Plugins(multi_point=PluginSet(enabled=enabled))), OURS)
    )
    assert [problem.text for problem in found] == ["score plugins: total score of Score plugins could overflow"]


def profile_named(name: str, **wishes: object) -> Written:
    return {"schedulerName": name, "plugins": {"multiPoint": {"enabled": plugins("All"), **STAR}, **wishes}}


def test_all_profiles_are_planned_by_name() -> None:
    data = configuration(
        percentageOfNodesToScore=30,
        profiles=[
            profile_named("a"),
            {**profile_named("b", score=STAR), "percentageOfNodesToScore": 60},
        ],
    )
    plans = expand_profiles(load_configuration(data), OURS)
    assert {name: plan.percentage_of_nodes_to_score for name, plan in plans.items()} == {"a": 30, "b": 60}
    assert (names(plans["a"], ExtensionPoint.SCORE), names(plans["b"], ExtensionPoint.SCORE)) == (["All=1"], [])


def test_a_rejection_names_the_profile() -> None:
    data = configuration(profiles=[profile_named("a"), profile_named("b", bind=STAR), profile_named("c", score={
        "enabled": plugins("Ghost")
    })])  # fmt: skip
    found = problems(lambda: expand_profiles(load_configuration(data), OURS))
    assert [(problem.path, problem.text) for problem in found] == [
        (
            "profiles[1].plugins.bind",
            "creating profile for scheduler name b: "
            'at least one bind plugin is needed for profile with scheduler name "b"',
        ),
        (
            "profiles[2].plugins.score.enabled",
            'creating profile for scheduler name c: ScorePlugin "Ghost" does not exist',
        ),
    ]


def sorted_by(sorter: str, **arguments: object) -> Written:
    return {
        "schedulerName": f"by-{sorter}-{len(arguments)}",
        "plugins": {"multiPoint": {"enabled": plugins(sorter, "Binder"), **STAR}},
        "pluginConfig": [{"name": sorter, "args": arguments}],
    }


@pytest.mark.parametrize(
    ("profiles", "complaints"),
    [
        pytest.param([sorted_by("Sorter"), sorted_by("All")], [
            'different queue sort plugins for profile "by-All-0": "All", first: "Sorter"'
        ], id="by different plugins"),
        pytest.param([sorted_by("Sorter"), sorted_by("Sorter", by="age")], [
            'different queue sort plugin args for profile "by-Sorter-1"'
        ], id="by the same plugin in different ways"),
    ],
)  # fmt: skip
def test_the_queue_cannot_be_sorted_in_two_ways(profiles: list[Written], complaints: list[str]) -> None:
    found = problems(lambda: expand_profiles(load_configuration(configuration(profiles=profiles)), OURS))
    assert [problem.text for problem in found] == complaints


SCORERS = st.sampled_from(["Gpu", "Rack", "Tide"])


@given(
    everywhere=st.lists(SCORERS, unique=True),
    enabled=st.lists(SCORERS, unique=True),
    disabled=st.lists(st.sampled_from(["Gpu", "Rack", "Tide", "*"]), unique=True),
)
def test_scoring_plugins_by_enabled_and_disabled_lists(
    everywhere: list[str], enabled: list[str], disabled: list[str]
) -> None:
    plan = plan_of(
        multi_point=plugins("Sorter", "Binder", *everywhere),
        score={"enabled": plugins(*enabled), "disabled": plugins(*disabled)},
    )
    found = [use.name for use in plan.at[ExtensionPoint.SCORE]]
    inherited = [] if "*" in disabled else [name for name in everywhere if name not in disabled]
    assert len(found) == len(set(found))
    assert set(found) == {*inherited, *enabled}
    assert [name for name in found if name in enabled and name in inherited] == [
        name for name in enabled if name in inherited
    ]
    assert [name for name in found if name not in enabled] == [name for name in inherited if name not in enabled]
