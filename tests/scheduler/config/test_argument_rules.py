"""The arguments of Kubernetes' own plugins keep its rules, or are refused in its words."""

import pytest

from tests.scheduler.config.builders import Written, complaints_about, with_arguments

ROOT = "profiles[0].pluginConfig[0].args."

NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
STRATEGIES = 'supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'


def complaints_of(plugin: str, args: Written) -> list[str]:
    found = complaints_about(with_arguments(plugin, args))
    assert all(text.startswith(ROOT) for text in found)
    return [text.removeprefix(ROOT) for text in found]


@pytest.mark.parametrize(
    ("args", "complaints"),
    [
        pytest.param({"minCandidateNodesPercentage": 0}, [], id="one may be zero"),
        pytest.param(
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            [
                "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as "
                "minCandidateNodesAbsolute",
                "minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as "
                "minCandidateNodesPercentage",
            ],
            id="both may not",
        ),
        pytest.param(
            {"minCandidateNodesPercentage": 101, "minCandidateNodesAbsolute": -1},
            [
                "minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]",
                "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
            ],
            id="each has its range",
        ),
    ],
)
def test_default_preemption(args: Written, complaints: list[str]) -> None:
    assert complaints_of("DefaultPreemption", args) == complaints


@pytest.mark.parametrize(
    ("args", "complaints"),
    [
        pytest.param({"filterTimeout": "0s", "bindingTimeout": "1s"}, [], id="the shortest"),
        pytest.param(
            {"filterTimeout": "-1ms", "bindingTimeout": "999ms"},
            [
                'filterTimeout: Invalid value: "-1ms": must be zero or positive',
                'bindingTimeout: Invalid value: "999ms": must be at least 1 second',
            ],
            id="shorter than that",
        ),
    ],
)
def test_dynamic_resources(args: Written, complaints: list[str]) -> None:
    assert complaints_of("DynamicResources", args) == complaints


@pytest.mark.parametrize(
    ("weight", "complaints"),
    [
        pytest.param(0, [], id="none"),
        pytest.param(100, [], id="a hundred"),
        pytest.param(-1, ["hardPodAffinityWeight: Invalid value: -1: not in valid range [0, 100]"], id="negative"),
        pytest.param(101, ["hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"], id="too much"),
    ],
)
def test_inter_pod_affinity(weight: int, complaints: list[str]) -> None:
    assert complaints_of("InterPodAffinity", {"hardPodAffinityWeight": weight}) == complaints


@pytest.mark.parametrize(
    ("resources", "complaints"),
    [
        pytest.param([{"name": "cpu"}, {"name": "example.com/gpu", "weight": 1}], [], id="each counts once"),
        pytest.param(
            [{"name": "cpu", "weight": 2}, {"name": "cpu", "weight": -1}],
            [
                "resources[0].weight: Invalid value: 2: must be 1",
                'resources[1].name: Duplicate value: "cpu"',
                "resources[1].weight: Invalid value: -1: must be 1",
            ],
            id="neither twice nor more",
        ),
    ],
)
def test_balanced_allocation(resources: list[Written], complaints: list[str]) -> None:
    assert complaints_of("NodeResourcesBalancedAllocation", {"resources": resources}) == complaints


@pytest.mark.parametrize(
    ("args", "complaints"),
    [
        pytest.param(
            {"ignoredResources": ["example.com/gpu"], "ignoredResourceGroups": ["example.com"]}, [], id="names"
        ),
        pytest.param(
            {"ignoredResources": ["a/b/c", ""]},
            [
                f'ignoredResources[0]: Invalid value: "a/b/c": a valid label key {NAME_RULE} with an optional DNS '
                "subdomain prefix and '/' (e.g. 'example.com/MyName')",
                'ignoredResources[1]: Invalid value: "": name part must be non-empty',
                f'ignoredResources[1]: Invalid value: "": name part {NAME_RULE}',
            ],
            id="no names",
        ),
        pytest.param(
            {"ignoredResourceGroups": ["example.com/gpu", "_"]},
            [
                "ignoredResourceGroups[0]: Invalid value: \"example.com/gpu\": resource group name can't contain '/'",
                f'ignoredResourceGroups[1]: Invalid value: "_": name part {NAME_RULE}',
            ],
            id="groups have no slash",
        ),
        pytest.param(
            {"scoringStrategy": {}},
            [f'scoringStrategy.type: Unsupported value: "": {STRATEGIES}'],
            id="a strategy has a type",
        ),
        pytest.param(
            {"scoringStrategy": {"type": "Nonsense", "requestedToCapacityRatio": {}}},
            [
                f'scoringStrategy.type: Unsupported value: "Nonsense": {STRATEGIES}',
                "scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not "
                "RequestedToCapacityRatio",
            ],
            id="one that exists, and a shape only where it counts",
        ),
        pytest.param(
            {
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "cpu", "weight": 101}, {"name": "memory", "weight": -1}],
                }
            },
            [
                "scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range "
                "(0, 100]",
                "scoringStrategy.resources[1].weight: Invalid value: -1: resource weight of memory not in valid range "
                "(0, 100]",
            ],
            id="weights have a range",
        ),
        pytest.param(
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            [
                "scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is "
                "RequestedToCapacityRatio"
            ],
            id="a ratio has a shape",
        ),
    ],
)
def test_fit(args: Written, complaints: list[str]) -> None:
    assert complaints_of("NodeResourcesFit", args) == complaints


@pytest.mark.parametrize(
    ("points", "complaints"),
    [
        pytest.param([(0, 0), (100, 10)], [], id="a line"),
        pytest.param([(50, 5)], [], id="a point"),
        pytest.param([], ["Required value: at least one point must be specified"], id="nothing"),
        pytest.param(
            [(10, 0), (10, 1), (5, 2)],
            ["[1].utilization: Invalid value: 10: values must be sorted in increasing order"],
            id="points in order, of which only the first fault is told",
        ),
        pytest.param(
            [(-1, -1), (101, 11)],
            [
                "[0].utilization: Invalid value: -1: not in valid range [0, 100]",
                "[0].score: Invalid value: -1: not in valid range [0, 10]",
                "[1].utilization: Invalid value: 101: not in valid range [0, 100]",
                "[1].score: Invalid value: 11: not in valid range [0, 10]",
            ],
            id="points in range",
        ),
    ],
)
def test_the_shape_of_a_ratio(points: list[tuple[int, int]], complaints: list[str]) -> None:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    found = complaints_of(
        "NodeResourcesFit",
        {"scoringStrategy": {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}},
    )
    where = "scoringStrategy.requestedToCapacityRatio.shape"
    assert [text.removeprefix(where).removeprefix(": ") for text in found] == complaints


def constraint(**fields: object) -> Written:
    return {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway", **fields}


@pytest.mark.parametrize(
    ("args", "complaints"),
    [
        pytest.param({"defaultingType": "List", "defaultConstraints": [constraint()]}, [], id="a list"),
        pytest.param({"defaultingType": "List"}, [], id="an empty list"),
        pytest.param(
            {"defaultConstraints": [constraint()]},
            ['defaultingType: Invalid value: "System": when .defaultConstraints are not empty'],
            id="a list that is not asked for",
        ),
        pytest.param(
            {"defaultingType": "Both"},
            ['defaultingType: Unsupported value: "Both": supported values: "System", "List"'],
            id="neither",
        ),
        pytest.param(
            {"defaultingType": "List", "defaultConstraints": [{}]},
            [
                "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
                "defaultConstraints[0].topologyKey: Required value: can not be empty",
                "defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
            ],
            id="a constraint with nothing in it",
        ),
        pytest.param(
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    constraint(topologyKey="_", whenUnsatisfiable="Never", labelSelector={"matchLabels": {"a": "b"}})
                ],
            },
            [
                f'defaultConstraints[0].topologyKey: Invalid value: "_": name part {NAME_RULE}',
                'defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Never": '
                'supported values: "DoNotSchedule", "ScheduleAnyway"',
                "defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector, as they "
                "deduced for each pod",
            ],
            id="a constraint with nonsense in it",
        ),
        pytest.param(
            {"defaultingType": "List", "defaultConstraints": [constraint(), constraint(maxSkew=2)]},
            ['defaultConstraints[1]: Duplicate value: "{rack, ScheduleAnyway}"'],
            id="the same twice",
        ),
    ],
)
def test_spread(args: Written, complaints: list[str]) -> None:
    assert complaints_of("PodTopologySpread", args) == complaints


@pytest.mark.parametrize(
    ("args", "complaints"),
    [
        pytest.param({"bindTimeoutSeconds": 0}, [], id="no waiting"),
        pytest.param(
            {"bindTimeoutSeconds": -10},
            ["bindTimeoutSeconds: Invalid value: -10: invalid BindTimeoutSeconds, should not be a negative value"],
            id="less than none",
        ),
        pytest.param({"shape": None}, [], id="no shape"),
        pytest.param(
            {"shape": [{"utilization": 0, "score": 10}]},
            [
                'shape: Invalid value: [{"Utilization":0,"Score":10}]: unexpected field `shape`, remove it or turn on '
                "the feature gate StorageCapacityScoring"
            ],
            id="a shape, whose gate is off",
        ),
        pytest.param(
            {"shape": []},
            [
                "shape: Invalid value: []: unexpected field `shape`, remove it or turn on the feature gate "
                "StorageCapacityScoring"
            ],
            id="even an empty one",
        ),
    ],
)
def test_volume_binding(args: Written, complaints: list[str]) -> None:
    assert complaints_of("VolumeBinding", args) == complaints


def term(key: str, operator: str, *values: str) -> Written:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


REQUIRED = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("required", "preferred", "complaints"),
    [
        pytest.param([term("pool", "In", "a")], [(1, term("pool", "Exists"))], [], id="sense"),
        pytest.param([{}], [(1, {})], [], id="empty terms"),
        pytest.param([], [(0, term("pool", "Nonsense"))], [], id="nonsense without a weight"),
        pytest.param(
            [{}, term("pool", "Nonsense")],
            [],
            [
                f'{REQUIRED}.nodeSelectorTerms[1].matchExpressions[0].operator: Unsupported value: "Nonsense": '
                'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
            ],
            id="an operator that does not exist",
        ),
        pytest.param(
            [],
            [(1, {}), (1, term("_", "Gt", "x"))],
            [
                f'{PREFERRED}[1].matchExpressions[0].key: Invalid value: "_": name part {NAME_RULE}',
                f"{PREFERRED}[1].matchExpressions[0].values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, "
                "the value must be an integer",
            ],
            id="everything wrong with a preference",
        ),
        pytest.param(
            [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}],
            [],
            [f'{REQUIRED}.nodeSelectorTerms[0].matchFields[0].values: Invalid value: ["a","b"]: must have one element'],
            id="a field has one value",
        ),
    ],
)
def test_node_affinity(required: list[Written], preferred: list[tuple[int, Written]], complaints: list[str]) -> None:
    added = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": required},
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": weight, "preference": preference} for weight, preference in preferred
        ],
    }
    assert complaints_of("NodeAffinity", {"addedAffinity": added}) == complaints
