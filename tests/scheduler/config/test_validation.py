"""Validation of a configuration and of plugin arguments, with kube-scheduler v1.36's messages."""

import pytest

from tests.scheduler.config.builders import (
    Written,
    complaints_about,
    configuration,
    plugins,
    with_arguments,
    with_profile,
)

NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def managing(*names: str) -> Written:
    return {"urlPrefix": "http://extender", "managedResources": [{"name": name} for name in names]}


@pytest.mark.parametrize(
    ("data", "complaints"),
    [
        pytest.param(
            configuration(parallelism=0),
            ["parallelism: Invalid value: 0: should be an integer value greater than zero"],
            id="parallelism is positive",
        ),
        pytest.param(
            configuration(clientConnection={"burst": -1}),
            ["clientConnection.burst: Invalid value: -1: must be non-negative"],
            id="a burst is not negative",
        ),
        pytest.param(
            configuration(leaderElection={"leaseDuration": "-1s"}),
            [
                'leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero',
                'leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`',
            ],
            id="a lease lasts",
        ),
        pytest.param(
            configuration(leaderElection={"renewDeadline": "-1s", "retryPeriod": "-1m"}),
            [
                'leaderElection.renewDeadline: Invalid value: "-1s": must be greater than zero',
                'leaderElection.retryPeriod: Invalid value: "-1m0s": must be greater than zero',
            ],
            id="so do deadlines and periods",
        ),
        pytest.param(
            configuration(leaderElection={"leaseDuration": "5s", "renewDeadline": "5s"}),
            ['leaderElection.leaseDuration: Invalid value: "5s": must be greater than `RenewDeadline`'],
            id="a lease outlasts its renewal",
        ),
        pytest.param(
            configuration(leaderElection={"resourceLock": "endpoints"}),
            ['leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"'],
            id="only leases lock",
        ),
        pytest.param(
            configuration(leaderElection={"leaderElect": False, "leaseDuration": "-1s", "resourceLock": "endpoints"}),
            [],
            id="who does not elect may write what he likes",
        ),
        pytest.param(
            configuration(percentageOfNodesToScore=101, profiles=[{"percentageOfNodesToScore": -1}]),
            [
                "profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
                "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
            ],
            id="percentages go to 100",
        ),
        pytest.param(configuration(percentageOfNodesToScore=0), [], id="zero is a percentage"),
        pytest.param(
            configuration(podInitialBackoffSeconds=0),
            ["podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"],
            id="a backoff begins with something",
        ),
        pytest.param(
            configuration(podInitialBackoffSeconds=11),
            [
                "podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds",
            ],
            id="and does not shrink",
        ),
        pytest.param(
            configuration(profiles=[{"schedulerName": "a"}, {"schedulerName": "b"}, {"schedulerName": "a"}]),
            ["profiles[2].schedulerName: Duplicate value: {}: it is already that of profiles[0]"],
            id="two profiles do not share a name",
        ),
        pytest.param(
            with_profile(plugins={"score": {"enabled": plugins("ImageLocality", "CinderLimits")}}),
            [
                'profiles[0].plugins.score.enabled[1]: Invalid value: "CinderLimits": was invalid in version "v1" '
                '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
            ],
            id="a plugin of the past",
        ),
        pytest.param(
            with_arguments("EBSLimits", {}),
            [
                'profiles[0].pluginConfig[0]: Invalid value: "EBSLimits": was invalid in version "v1" '
                '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
            ],
            id="arguments for a plugin of the past",
        ),
        pytest.param(
            with_profile(pluginConfig=[{"name": "Gpu"}, {"name": "Gpu"}]),
            ['profiles[0].pluginConfig[1]: Duplicate value: "Gpu"'],
            id="arguments twice",
        ),
        pytest.param(
            with_arguments("NodeResourcesFitArgs", {"a": [1]}),
            ['profiles[0].pluginConfig[0].args: Invalid value: {"a":[1]}: has to match plugin args'],
            id="almost the name of a plugin",
        ),
        pytest.param(
            with_arguments("InterPodAffinity", {"hardPodAffinityWeight": 101}),
            ["profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"],
            id="arguments are asked under their path",
        ),
        pytest.param(
            with_profile(
                plugins={"multiPoint": {"disabled": plugins("NodeResourcesFit")}},
                pluginConfig=[{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Nonsense"}}}],
            ),
            [],
            id="the arguments of NodeResourcesFit do not matter while it is off",
        ),
    ],
)
def test_rules_of_a_configuration(data: object, complaints: list[str]) -> None:
    assert complaints_about(data) == complaints


@pytest.mark.parametrize(
    ("profiles", "complaints"),
    [
        pytest.param([{}, {}], [], id="all sort by default"),
        pytest.param(
            [{"plugins": {"queueSort": {"enabled": plugins("Fifo", "Lifo")}}}] * 2,
            ["profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled"],
            id="one sorts",
        ),
        pytest.param(
            [{}, {"plugins": {"queueSort": {"enabled": plugins("Fifo"), "disabled": plugins("*")}}}],
            [
                'profiles[1].plugins.queueSort: Invalid value: {"Enabled":[{"Name":"Fifo","Weight":0}],'
                '"Disabled":[{"Name":"*","Weight":0}]}: must be the same for all profiles'
            ],
            id="all sort alike",
        ),
        pytest.param(
            [
                {
                    "plugins": {"queueSort": {"enabled": plugins("Fifo")}},
                    "pluginConfig": [{"name": "Fifo", "args": {"by": by}}],
                }
                for by in ("age", "size")
            ],
            [
                'profiles[1].pluginConfig.args: Invalid value: {"by":"size"}: '
                "queueSort must be the same for all profiles"
            ],
            id="with the same arguments",
        ),
    ],
)
def test_there_is_one_queue_for_all_profiles(profiles: list[Written], complaints: list[str]) -> None:
    named = [{"schedulerName": f"p{index}", **profile} for index, profile in enumerate(profiles)]
    assert complaints_about(configuration(profiles=named)) == complaints


@pytest.mark.parametrize(
    ("extenders", "complaints"),
    [
        pytest.param([{"urlPrefix": "http://a"}], [], id="an extender that does nothing"),
        pytest.param(
            [{"prioritizeVerb": "prioritize"}],
            ["extenders[0].weight: Invalid value: 0: must have a positive weight applied to it"],
            id="scores need a weight",
        ),
        pytest.param([{"prioritizeVerb": "prioritize", "weight": 1}], [], id="and have one"),
        pytest.param(
            [{"bindVerb": "bind"}, {}, {"bindVerb": "bind"}],
            [
                'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
            ],
            id="one binds",
        ),
        pytest.param([managing("example.com/gpu")], [], id="extended resources are managed"),
        pytest.param(
            [managing("example.com/gpu"), managing("example.com/gpu")],
            [
                'extenders[1].managedResources[0].name: Invalid value: "example.com/gpu": '
                "duplicate extender managed resource name"
            ],
            id="by one extender",
        ),
        pytest.param(
            [managing("cpu")],
            ['extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name'],
            id="cpu is not extended",
        ),
        pytest.param(
            [managing("kubernetes.io/x")],
            [
                'extenders[0].managedResources[0].name: Invalid value: "kubernetes.io/x": '
                "is an invalid extended resource name"
            ],
            id="nor is anything of Kubernetes' own",
        ),
        pytest.param(
            [managing("requests.example.com/x")],
            [
                'extenders[0].managedResources[0].name: Invalid value: "requests.example.com/x": '
                "is an invalid extended resource name"
            ],
            id="nor a quota",
        ),
        pytest.param(
            [managing("_x")],
            [f'extenders[0].managedResources[0].name: Invalid value: "_x": name part {NAME_RULE}'],
            id="a resource has a name",
        ),
    ],
)
def test_rules_of_extenders(extenders: list[Written], complaints: list[str]) -> None:
    assert complaints_about(configuration(extenders=extenders)) == complaints


ROOT = "profiles[0].pluginConfig[0].args."

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
            id="points in order, of which only the first fault is reported",
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
