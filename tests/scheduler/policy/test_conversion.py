"""The older Policy is converted to a profile of today's plugins."""

import json

import pytest

from mooring.api.yaml import load_document
from mooring.scheduler.catalogue import default_registry
from mooring.scheduler.config import ConfigurationError, SchedulerConfiguration, expand_profiles
from mooring.scheduler.config.types import (
    ExtenderConfiguration,
    ExtenderManagedResource,
    ExtensionPoint,
    InterPodAffinityArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from mooring.scheduler.policy import load_configuration_or_policy
from mooring.scheduler.policy.conversion import ALWAYS, is_policy
from mooring.scheduler.policy.types import (
    NodeLabelArgs,
    ServiceAffinityArgs,
    as_written,
    node_label_arguments,
    reject_arguments,
    service_affinity_arguments,
)
from tests.builders import node, pod, service
from tests.scheduler.config.builders import VERSION, Written, complaints_about, paths_complained_about
from tests.scheduler.harness import decide, engine_of


def policy(**fields: object) -> Written:
    """A policy as it stands in a file."""
    return {"apiVersion": "v1", "kind": "Policy", **fields}


def predicates(*names: str) -> list[Written]:
    return [{"name": name} for name in names]


def priorities(**weights: int) -> list[Written]:
    return [{"name": name, "weight": weight} for name, weight in weights.items()]


def called(data: object, point: ExtensionPoint) -> list[str]:
    """Who is called at a point, with their weights where there are any."""
    plan = expand_profiles(load_configuration_or_policy(data), default_registry().implements)["default-scheduler"]
    return [f"{use.name}={use.weight}" if use.weight else use.name for use in plan.at[point]]


def filters(data: object) -> list[str]:
    return [name for name in called(data, ExtensionPoint.FILTER) if name not in ALWAYS]


def scores(data: object) -> list[str]:
    return sorted(called(data, ExtensionPoint.SCORE))


def arguments(data: object, plugin: str) -> object:
    (profile,) = load_configuration_or_policy(data).profiles
    return next((config.args for config in profile.plugin_config if config.name == plugin), None)


def strategy(data: object) -> ScoringStrategy:
    found = arguments(data, "NodeResourcesFit")
    assert isinstance(found, NodeResourcesFitArgs)
    return found.scoring_strategy


# --- files ------------------------------------------------------------------------------------------------------

EVERYTHING = """
apiVersion: v1
kind: Policy
predicates:
- name: PodFitsHostPorts
- name: PodFitsResources
- name: OneRegion
  argument: {serviceAffinity: {labels: [region]}}
- name: NotRetiring
  argument: {labelsPresence: {labels: [retiring], presence: false}}
priorities:
- name: LeastRequestedPriority
  weight: 1
- name: OverRacks
  weight: 3
  argument: {serviceAntiAffinity: {label: rack}}
- name: Fast
  weight: 2
  argument: {labelPreference: {label: ssd, presence: true}}
extenders:
- urlPrefix: http://127.0.0.1:12346/scheduler
  filterVerb: filter
  bindVerb: bind
  prioritizeVerb: prioritize
  weight: 5
  enableHttps: false
  nodeCacheCapable: false
  httpTimeout: 100000000
  managedResources:
  - name: example.com/foo
    ignoredByScheduler: true
hardPodAffinitySymmetricWeight: 10
alwaysCheckAllPredicates: true
"""


def written(text: str) -> Written:
    data = load_document(text).data
    assert isinstance(data, dict)
    return data


def as_json() -> str:
    return json.dumps(written(EVERYTHING))


@pytest.mark.parametrize("text", [EVERYTHING, as_json()], ids=["YAML", "JSON"])
def test_a_file_with_everything(text: str) -> None:
    data = written(text)
    assert filters(data) == [
        "NodeUnschedulable",
        "NodePorts",
        "NodeResourcesFit",
        "TaintToleration",
        "NodeLabel",
        "ServiceAffinity",
    ]
    assert scores(data) == ["NodeLabel=2", "NodeResourcesFit=1", "ServiceAffinity=3"]
    assert arguments(data, "NodeLabel") == {"absentLabels": ["retiring"], "presentLabelsPreference": ["ssd"]}
    assert arguments(data, "ServiceAffinity") == {
        "affinityLabels": ["region"],
        "antiAffinityLabelsPreference": ["rack"],
    }
    assert load_configuration_or_policy(data).extenders == (
        ExtenderConfiguration(
            url_prefix="http://127.0.0.1:12346/scheduler",
            filter_verb="filter",
            bind_verb="bind",
            prioritize_verb="prioritize",
            weight=5,
            http_timeout_s=0.1,
            managed_resources=(ExtenderManagedResource(name="example.com/foo", ignored_by_scheduler=True),),
        ),
    )


def test_all_else_is_as_without_a_file() -> None:
    found, default = load_configuration_or_policy(policy()), load_configuration_or_policy(None)
    assert [profile.scheduler_name for profile in found.profiles] == ["default-scheduler"]
    for field in SchedulerConfiguration.__struct_fields__:
        if field != "profiles":
            assert getattr(found, field) == getattr(default, field), field


@pytest.mark.parametrize("version", ["v1", VERSION])
def test_versions(version: str) -> None:
    assert load_configuration_or_policy(policy() | {"apiVersion": version}) == load_configuration_or_policy(policy())


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        pytest.param(
            {"kind": "Policy", "apiVersion": "v2"},
            'no kind "Policy" is registered for version "v2": expected apiVersion "v1" and kind "Policy"',
            id="another version",
        ),
        pytest.param(
            {"kind": "Policy"},
            'Object \'apiVersion\' is missing: expected apiVersion "v1" and kind "Policy"',
            id="no version",
        ),
        pytest.param(
            policy(predicate=[]),
            'strict decoding error: unknown field "predicate"; did you mean "predicates"?',
            id="a misspelt field",
        ),
        pytest.param(
            policy(priorities=[{"name": "EqualPriority", "weight": "1"}]),
            'priorities[0].weight: expected an integer, found the text "1"',
            id="a text for a number",
        ),
    ],
)
def test_files_that_cannot_be_read(data: Written, complaint: str) -> None:
    assert complaints_about(data) == [complaint]


def test_what_is_a_policy() -> None:
    assert is_policy(policy())
    assert not is_policy({"kind": "KubeSchedulerConfiguration"})
    assert not is_policy(None)
    assert not is_policy(["Policy"])


# --- predicates -------------------------------------------------------------------------------------------------

MANDATORY = ["NodeUnschedulable", "TaintToleration"]


@pytest.mark.parametrize(
    ("named", "filtering"),
    [
        pytest.param([], MANDATORY, id="an empty list: only the mandatory ones"),
        pytest.param(["HostName"], ["NodeUnschedulable", "NodeName", "TaintToleration"], id="one, in its old place"),
        pytest.param(["PodFitsPorts"], ["NodeUnschedulable", "NodePorts", "TaintToleration"], id="the name before 1.2"),
        pytest.param(
            ["GeneralPredicates", "PodFitsResources", "HostName"],
            ["NodeUnschedulable", "NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity", "TaintToleration"],
            id="several in one, and again alone",
        ),
        pytest.param(
            ["MatchInterPodAffinity", "NoVolumeZoneConflict", "NoDiskConflict"],
            ["NodeUnschedulable", "VolumeRestrictions", "TaintToleration", "VolumeZone", "InterPodAffinity"],
            id="their order in the file does not matter",
        ),
        pytest.param(
            ["MaxEBSVolumeCount", "MaxGCEPDVolumeCount", "MaxCSIVolumeCountPred"],
            [*MANDATORY, "NodeVolumeLimits"],
            id="three that are one today",
        ),
        pytest.param(
            ["CheckNodeCondition", "CheckNodeMemoryPressure", "CheckNodeDiskPressure", "CheckNodePIDPressure"],
            MANDATORY,
            id="conditions are taints today",
        ),
        pytest.param(["CheckNodeLabelPresence"], [*MANDATORY, "NodeLabel"], id="no labels, so all nodes pass"),
    ],
)
def test_the_plugins_of_predicates(named: list[str], filtering: list[str]) -> None:
    assert filters(policy(predicates=predicates(*named), priorities=[])) == filtering


def test_without_predicates_there_are_the_old_default_ones() -> None:
    assert filters(policy()) == [
        "NodeUnschedulable",
        "NodeResourcesFit",
        "NodeName",
        "NodePorts",
        "NodeAffinity",
        "VolumeRestrictions",
        "TaintToleration",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
    ]


def test_volumes_are_bound_where_they_are_checked() -> None:
    with_binding = policy(predicates=predicates("CheckVolumeBinding"))
    assert "VolumeBinding" in called(with_binding, ExtensionPoint.RESERVE)
    assert "VolumeBinding" not in called(policy(predicates=[]), ExtensionPoint.RESERVE)


def test_custom_predicates_of_one_kind_are_one_plugin() -> None:
    data = policy(
        predicates=[
            {"name": "Region", "argument": {"serviceAffinity": {"labels": ["region"]}}},
            {"name": "Rack", "argument": {"serviceAffinity": {"labels": ["rack", "row"]}}},
            {"name": "Here", "argument": {"labelsPresence": {"labels": ["here"], "presence": True}}},
            {"name": "NotThere", "argument": {"labelsPresence": {"labels": ["there"]}}},
            {"name": "CheckNodeLabelPresence", "argument": {"labelsPresence": {"labels": ["gone"]}}},
        ],
        priorities=[],
    )
    assert filters(data) == [*MANDATORY, "NodeLabel", "ServiceAffinity"]
    assert scores(data) == []
    assert arguments(data, "ServiceAffinity") == {"affinityLabels": ["region", "rack", "row"]}
    assert arguments(data, "NodeLabel") == {"presentLabels": ["here"], "absentLabels": ["there", "gone"]}


# --- priorities -------------------------------------------------------------------------------------------------


def test_without_priorities_there_are_the_old_default_ones() -> None:
    assert scores(policy()) == [
        "ImageLocality=1",
        "InterPodAffinity=1",
        "NodeAffinity=1",
        "NodeResourcesBalancedAllocation=1",
        "NodeResourcesFit=1",
        "PodTopologySpread=2",
        "SelectorSpread=1",
        "TaintToleration=1",
    ]


@pytest.mark.parametrize(
    ("weights", "scoring"),
    [
        pytest.param({}, [], id="an empty list: none"),
        pytest.param({"ImageLocalityPriority": 7}, ["ImageLocality=7"], id="one, with its weight"),
        pytest.param(
            {"EqualPriority": 1, "NodePreferAvoidPodsPriority": 10000, "ResourceLimitsPriority": 1},
            [],
            id="those that do nothing any more",
        ),
        pytest.param({"ServiceSpreadingPriority": 2}, ["SelectorSpread=2"], id="its older name"),
        pytest.param(
            {"SelectorSpreadPriority": 5, "ServiceSpreadingPriority": 2}, ["SelectorSpread=2"], id="the last one counts"
        ),
        pytest.param(
            {"EvenPodsSpreadPriority": 2, "SelectorSpreadPriority": 3},
            ["PodTopologySpread=2", "SelectorSpread=3"],
            id="two ways of spreading",
        ),
    ],
)
def test_the_plugins_of_priorities(weights: dict[str, int], scoring: list[str]) -> None:
    assert scores(policy(predicates=[], priorities=priorities(**weights))) == scoring


def test_a_score_for_several_counts_for_as_many() -> None:
    data = policy(
        priorities=[
            {"name": "a", "weight": 2, "argument": {"labelPreference": {"label": "a", "presence": True}}},
            {"name": "b", "weight": 2, "argument": {"labelPreference": {"label": "b"}}},
            {"name": "c", "weight": 5, "argument": {"serviceAntiAffinity": {"label": "c"}}},
            {"name": "d", "weight": 5, "argument": {"serviceAntiAffinity": {"label": "d"}}},
            {"name": "e", "weight": 5, "argument": {"serviceAntiAffinity": {"label": "e"}}},
        ]
    )
    assert scores(data) == ["NodeLabel=4", "ServiceAffinity=15"]
    assert arguments(data, "NodeLabel") == {"presentLabelsPreference": ["a"], "absentLabelsPreference": ["b"]}
    assert arguments(data, "ServiceAffinity") == {"antiAffinityLabelsPreference": ["c", "d", "e"]}
    assert "NodeLabel" not in filters(data)
    assert "ServiceAffinity" not in called(data, ExtensionPoint.PRE_FILTER)


RATIO = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}
RISING = (UtilizationShapePoint(utilization=0, score=0), UtilizationShapePoint(utilization=100, score=10))
FALLING = (UtilizationShapePoint(utilization=0, score=10), UtilizationShapePoint(utilization=100, score=0))


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        pytest.param([], ScoringStrategy(type="LeastAllocated"), id="none: it does not score"),
        pytest.param(
            priorities(LeastRequestedPriority=1), ScoringStrategy(type="LeastAllocated"), id="LeastRequestedPriority"
        ),
        pytest.param(
            priorities(MostRequestedPriority=1), ScoringStrategy(type="MostAllocated"), id="MostRequestedPriority"
        ),
        pytest.param(
            [{"name": "Mine", "weight": 1, "argument": {"requestedToCapacityRatioArguments": RATIO}}],
            ScoringStrategy(
                type="RequestedToCapacityRatio", requested_to_capacity_ratio=RequestedToCapacityRatioParam(shape=RISING)
            ),
            id="a shape, over cpu and memory",
        ),
        pytest.param(
            [
                {
                    "name": "RequestedToCapacityRatioPriority",
                    "weight": 1,
                    "argument": {
                        "requestedToCapacityRatioArguments": RATIO
                        | {"resources": [{"name": "example.com/gpu", "weight": 5}, {"name": "cpu"}]}
                    },
                }
            ],
            ScoringStrategy(
                type="RequestedToCapacityRatio",
                requested_to_capacity_ratio=RequestedToCapacityRatioParam(shape=RISING),
                resources=(ResourceSpec(name="example.com/gpu", weight=5), ResourceSpec(name="cpu", weight=1)),
            ),
            id="a shape over other resources",
        ),
        pytest.param(
            priorities(RequestedToCapacityRatioPriority=1),
            ScoringStrategy(
                type="RequestedToCapacityRatio",
                requested_to_capacity_ratio=RequestedToCapacityRatioParam(shape=FALLING),
            ),
            id="without a shape: free nodes first",
        ),
    ],
)
def test_strategies_of_one_plugin(listed: list[Written], expected: ScoringStrategy) -> None:
    data = policy(predicates=predicates("PodFitsResources"), priorities=listed)
    assert strategy(data) == expected
    assert ("NodeResourcesFit=1" in scores(data)) is bool(listed)


MINE: Written = {"name": "Mine", "weight": 5, "argument": {"requestedToCapacityRatioArguments": RATIO}}
CPU_AND_MEMORY = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]


@pytest.mark.parametrize(
    ("listed", "scoring", "others"),
    [
        pytest.param(
            priorities(LeastRequestedPriority=2, MostRequestedPriority=3),
            ["NodeResourcesFit=2", "NodeResourcesMostAllocated=3"],
            {"NodeResourcesMostAllocated": {"resources": CPU_AND_MEMORY}},
            id="the second has a plugin of its own",
        ),
        pytest.param(
            priorities(MostRequestedPriority=3, LeastRequestedPriority=2),
            ["NodeResourcesFit=3", "NodeResourcesLeastAllocated=2"],
            {"NodeResourcesLeastAllocated": {"resources": CPU_AND_MEMORY}},
            id="the other way round",
        ),
        pytest.param(
            [*priorities(LeastRequestedPriority=1), MINE],
            ["NodeResourcesFit=1", "RequestedToCapacityRatio=5"],
            {"RequestedToCapacityRatio": {"resources": CPU_AND_MEMORY, **RATIO}},
            id="a shape beside a strategy",
        ),
        pytest.param(
            [*priorities(LeastRequestedPriority=1, RequestedToCapacityRatioPriority=2), MINE],
            ["NodeResourcesFit=1", "RequestedToCapacityRatio=5"],
            {"RequestedToCapacityRatio": {"resources": CPU_AND_MEMORY, **RATIO}},
            id="a shape that is written counts before the one that is not",
        ),
    ],
)
def test_several_strategies(listed: list[Written], scoring: list[str], others: dict[str, Written]) -> None:
    data = policy(predicates=[], priorities=listed)
    assert scores(data) == scoring
    assert {name: arguments(data, name) for name in others} == others
    assert filters(data) == MANDATORY


@pytest.mark.parametrize(
    ("least", "most", "winner"), [(1, 3, "busy"), (3, 1, "free")], ids=["fill nodes up", "leave nodes free"]
)
def test_strategies_are_weighed_against_each_other(least: int, most: int, winner: str) -> None:
    wanted = policy(priorities=priorities(LeastRequestedPriority=least, MostRequestedPriority=most))
    engine = engine_of(node("busy"), node("free"), pod("running", cpu=1, memory="2Gi", on="busy"), config=wanted)
    assert decide(engine, pod(cpu=1, memory="2Gi")).node_name == winner


def test_a_priority_alone_does_not_filter() -> None:
    data = policy(
        predicates=[],
        priorities=priorities(NodeAffinityPriority=1, InterPodAffinityPriority=1, LeastRequestedPriority=1),
    )
    assert filters(data) == MANDATORY
    assert set(called(data, ExtensionPoint.PRE_FILTER)) <= set(ALWAYS)


# --- the rest ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "weight"),
    [({}, 1), ({"hardPodAffinitySymmetricWeight": 0}, 1), ({"hardPodAffinitySymmetricWeight": 42}, 42)],
    ids=["not given", "zero is not given", "given"],
)
def test_the_weight_of_required_affinity(fields: Written, weight: int) -> None:
    assert arguments(policy(**fields), "InterPodAffinity") == InterPodAffinityArgs(hard_pod_affinity_weight=weight)


def test_spreading_has_no_default_constraints() -> None:
    assert arguments(policy(), "PodTopologySpread") == PodTopologySpreadArgs(defaulting_type="List")


def test_checking_all_predicates_changes_nothing() -> None:
    assert load_configuration_or_policy(policy(alwaysCheckAllPredicates=True)) == load_configuration_or_policy(policy())


def test_what_an_extender_sees_to_is_ignored() -> None:
    managed = [{"name": "example.com/a", "ignoredByScheduler": True}, {"name": "example.com/b"}]
    found = arguments(policy(extenders=[{"urlPrefix": "http://x", "managedResources": managed}]), "NodeResourcesFit")
    assert isinstance(found, NodeResourcesFitArgs)
    assert found.ignored_resources == ("example.com/a",)


def test_what_is_younger_than_policy_is_on_and_does_not_score() -> None:
    data = policy(predicates=[], priorities=[])
    assert [name for name in called(data, ExtensionPoint.FILTER) if name in ALWAYS] == list(ALWAYS)
    assert called(data, ExtensionPoint.SCORE) == []
    assert called(data, ExtensionPoint.PRE_ENQUEUE)[0] == "SchedulingGates"
    assert called(data, ExtensionPoint.QUEUE_SORT) == ["PrioritySort"]
    assert called(data, ExtensionPoint.POST_FILTER)[-1] == "DefaultPreemption"
    assert called(data, ExtensionPoint.BIND) == ["DefaultBinder"]


def test_all_problems_are_reported_at_once() -> None:
    data = policy(
        predicates=[
            {"name": "HostNam"},
            {"name": "a", "argument": {"labelsPresence": {"labels": ["x"], "presence": True}}},
        ],
        priorities=[{"name": "EqualPriority"}],
        extenders=[{"urlPrefix": "http://x", "prioritizeVerb": "p"}],
        hardPodAffinitySymmetricWeight=101,
    )
    assert paths_complained_about(data) == [
        "predicates[0].name",
        "priorities[0].weight",
        "hardPodAffinitySymmetricWeight",
        "extenders[0].weight",
    ]


def test_labels_wanted_present_and_absent() -> None:
    data = policy(
        predicates=[
            {"name": "a", "argument": {"labelsPresence": {"labels": ["x"], "presence": True}}},
            {"name": "b", "argument": {"labelsPresence": {"labels": ["x"]}}},
        ]
    )
    assert complaints_about(data) == ['presentLabels[0]: Invalid value: "x": conflict with absentLabels[0]']


# --- decisions --------------------------------------------------------------------------------------------------


def test_a_policy_decides() -> None:
    engine = engine_of(
        node("fast-1", labels={"ssd": "yes", "region": "east"}),
        node("slow-1", labels={"region": "east"}),
        node("fast-2", labels={"ssd": "yes", "region": "west"}),
        node("old", labels={"ssd": "yes", "region": "east", "retiring": "soon"}),
        service("web", app="web"),
        pod("web-1", labels={"app": "web"}, on="slow-1"),
        config=written(EVERYTHING),
    )
    decision = decide(engine, pod("web-2", labels={"app": "web"}))
    assert decision.node_name == "fast-1"
    assert {name: status.reasons for name, status in decision.node_to_status.items() if status is not None} == {
        "fast-2": ("node(s) didn't match service affinity",),
        "old": ("node(s) didn't have the requested labels",),
    }
    assert decision.scores["fast-1"]["NodeLabel"] == 200
    assert decision.scores["slow-1"]["NodeLabel"] == 0


# --- The arguments of NodeLabel and ServiceAffinity: read from a file, written back, and rejected --------------------


@pytest.mark.parametrize(
    "arguments",
    [NodeLabelArgs(), NodeLabelArgs(present_labels=("a",), absent_labels=("b", "c"), absent_labels_preference=("a",))],
    ids=["none", "some"],
)
def test_what_is_written_is_read_back(arguments: NodeLabelArgs) -> None:
    assert node_label_arguments(as_written(arguments)) == arguments


def test_arguments_of_service_affinity() -> None:
    written = {"affinityLabels": ["a"], "antiAffinityLabelsPreference": ["b"]}
    arguments = service_affinity_arguments(written)
    assert arguments == ServiceAffinityArgs(affinity_labels=("a",), anti_affinity_labels_preference=("b",))
    assert as_written(arguments) == written


def test_arguments_may_have_type_fields() -> None:
    typed = {"apiVersion": VERSION, "kind": "NodeLabelArgs", "presentLabels": ["a"]}
    assert node_label_arguments(typed) == NodeLabelArgs(present_labels=("a",))
    reject_arguments("SelectorSpread", {"apiVersion": VERSION, "kind": "SelectorSpreadArgs"})


def test_every_conflict_is_reported() -> None:
    written = {"presentLabels": ["a", "b", "a"], "absentLabels": ["b", "a"]}
    with pytest.raises(ConfigurationError) as rejected:
        node_label_arguments(written)
    assert [problem.text.partition(": ")[2] for problem in rejected.value.problems] == [
        'presentLabels[1]: Invalid value: "b": conflict with absentLabels[0]',
        'presentLabels[2]: Invalid value: "a": conflict with absentLabels[1]',
    ]


def test_a_plugin_without_arguments_rejects_them() -> None:
    with pytest.raises(ConfigurationError) as rejected:
        reject_arguments("SelectorSpread", {"b": 1, "a": 2})
    assert str(rejected.value) == 'initializing plugin "SelectorSpread": takes no arguments, but was given a, b'
