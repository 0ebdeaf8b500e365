"""The data of a file becomes a configuration, or a list of all its problems."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.views.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.api.views.pod import NodeAffinity, TopologySpreadConstraint
from mooring.api.yaml import load_document
from mooring.scheduler.config.load import load_configuration
from mooring.scheduler.config.profiles import default_profile
from mooring.scheduler.config.types import (
    ClientConnectionConfiguration,
    ConfigurationError,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    ExtenderConfiguration,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    LeaderElectionConfiguration,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    SchedulerConfiguration,
    ScoringStrategy,
    UtilizationShapePoint,
)
from tests.scheduler.config.builders import (
    VERSION,
    Written,
    complaints_about,
    configuration,
    loaded_arguments,
    paths_complained_about,
    with_arguments,
    with_profile,
)

EVERYTHING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 8
percentageOfNodesToScore: 30
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
enableProfiling: no
delayCacheUntilActive: yes
leaderElection:
  leaderElect: false
  leaseDuration: 30s
  renewDeadline: 20s
  retryPeriod: 500ms
  resourceLock: leases
  resourceName: second
  resourceNamespace: harbour
clientConnection:
  kubeconfig: /etc/kubeconfig
  acceptContentTypes: application/json
  contentType: application/json
  qps: 12.5
  burst: 7
extenders:
- urlPrefix: https://extender
  filterVerb: filter
  preemptVerb: preempt
  prioritizeVerb: prioritize
  weight: 5
  bindVerb: bind
  enableHTTPS: true
  tlsConfig:
    insecure: true
    serverName: extender
    certFile: c
    keyFile: k
    caFile: a
    certData: Yw==
    keyData: aw==
    caData: YQ==
  httpTimeout: 1m
  nodeCacheCapable: true
  managedResources:
  - name: example.com/gpu
    ignoredByScheduler: true
  ignorable: true
profiles:
- schedulerName: packer
  percentageOfNodesToScore: 40
"""


def test_without_a_file_there_are_the_defaults() -> None:
    assert load_configuration(None) == SchedulerConfiguration(
        parallelism=16,
        leader_election=LeaderElectionConfiguration(
            leader_elect=True,
            lease_duration_s=15.0,
            renew_deadline_s=10.0,
            retry_period_s=2.0,
            resource_lock="leases",
            resource_name="kube-scheduler",
            resource_namespace="kube-system",
        ),
        client_connection=ClientConnectionConfiguration(
            kubeconfig="",
            accept_content_types="",
            content_type="application/vnd.kubernetes.protobuf",
            qps=50.0,
            burst=100,
        ),
        enable_profiling=True,
        enable_contention_profiling=True,
        percentage_of_nodes_to_score=None,
        pod_initial_backoff_seconds=1,
        pod_max_backoff_seconds=10,
        profiles=(default_profile(),),
        extenders=(),
        delay_cache_until_active=False,
    )


def test_an_empty_file_is_the_same_as_none() -> None:
    assert load_configuration(configuration()) == load_configuration(None)


def test_every_field_is_read() -> None:
    loaded = load_configuration(load_document(EVERYTHING).data)
    assert (loaded.parallelism, loaded.percentage_of_nodes_to_score) == (8, 30)
    assert (loaded.pod_initial_backoff_seconds, loaded.pod_max_backoff_seconds) == (2, 20)
    assert (loaded.enable_profiling, loaded.enable_contention_profiling) == (False, False)
    assert loaded.delay_cache_until_active
    assert loaded.leader_election == LeaderElectionConfiguration(
        leader_elect=False,
        lease_duration_s=30.0,
        renew_deadline_s=20.0,
        retry_period_s=0.5,
        resource_name="second",
        resource_namespace="harbour",
    )
    assert loaded.client_connection == ClientConnectionConfiguration(
        kubeconfig="/etc/kubeconfig",
        accept_content_types="application/json",
        content_type="application/json",
        qps=12.5,
        burst=7,
    )
    assert loaded.extenders == (
        ExtenderConfiguration(
            url_prefix="https://extender",
            filter_verb="filter",
            preempt_verb="preempt",
            prioritize_verb="prioritize",
            weight=5,
            bind_verb="bind",
            enable_https=True,
            tls_config=ExtenderTLSConfig(
                insecure=True,
                server_name="extender",
                cert_file="c",
                key_file="k",
                ca_file="a",
                cert_data=b"c",
                key_data=b"k",
                ca_data=b"a",
            ),
            http_timeout_s=60.0,
            node_cache_capable=True,
            managed_resources=(ExtenderManagedResource(name="example.com/gpu", ignored_by_scheduler=True),),
            ignorable=True,
        ),
    )
    assert [(profile.scheduler_name, profile.percentage_of_nodes_to_score) for profile in loaded.profiles] == [
        ("packer", 40)
    ]


def test_zeros_that_kubernetes_takes_for_absence_are_defaults() -> None:
    loaded = load_configuration(
        configuration(
            clientConnection={"qps": 0, "burst": 0, "contentType": ""},
            leaderElection={"leaseDuration": "0s", "resourceName": "", "resourceLock": ""},
            extenders=[{"urlPrefix": "http://extender"}],
        )
    )
    assert loaded.client_connection == ClientConnectionConfiguration()
    assert loaded.leader_election == LeaderElectionConfiguration()
    assert loaded.extenders[0].http_timeout_s == 5.0


@pytest.mark.parametrize(
    ("written", "profiling", "contention"),
    [
        pytest.param({}, True, True, id="both are on"),
        pytest.param({"enableProfiling": False}, False, False, id="contention follows profiling"),
        pytest.param(
            {"enableProfiling": False, "enableContentionProfiling": True}, False, True, id="unless it is mentioned"
        ),
        pytest.param({"enableContentionProfiling": False}, True, False, id="and it can be off alone"),
    ],
)
def test_contention_profiling_follows_profiling(written: Written, profiling: bool, contention: bool) -> None:
    loaded = load_configuration(configuration(**written))
    assert (loaded.enable_profiling, loaded.enable_contention_profiling) == (profiling, contention)


def test_a_lone_profile_needs_no_name() -> None:
    assert load_configuration(with_profile()).profiles == (default_profile(),)


def test_of_several_profiles_each_needs_one() -> None:
    assert complaints_about(configuration(profiles=[{"schedulerName": "a"}, {}])) == [
        "profiles[1].schedulerName: Required value"
    ]


def test_an_empty_name_is_no_name() -> None:
    assert complaints_about(with_profile(schedulerName="")) == ["profiles[0].schedulerName: Required value"]


@pytest.mark.parametrize(
    ("plugin", "written", "arguments"),
    [
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 50},
            DefaultPreemptionArgs(min_candidate_nodes_percentage=50, min_candidate_nodes_absolute=100),
            id="what is not mentioned keeps its default",
        ),
        pytest.param(
            "DefaultPreemption",
            {"apiVersion": VERSION, "kind": "DefaultPreemptionArgs", "minCandidateNodesAbsolute": 0},
            DefaultPreemptionArgs(min_candidate_nodes_absolute=0),
            id="arguments may say what they are",
        ),
        pytest.param(
            "DynamicResources",
            {"filterTimeout": "0s", "bindingTimeout": "30s"},
            DynamicResourcesArgs(filter_timeout_s=0.0, binding_timeout_s=30.0),
            id="a time-out of zero is none",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"ignoredResources": ["example.com/gpu"], "scoringStrategy": {"type": "MostAllocated"}},
            NodeResourcesFitArgs(
                ignored_resources=("example.com/gpu",), scoring_strategy=ScoringStrategy(type="MostAllocated")
            ),
            id="a strategy without resources looks at cpu and memory",
        ),
        pytest.param(
            "NodeResourcesFit",
            {
                "scoringStrategy": {
                    "type": "RequestedToCapacityRatio",
                    "resources": [{"name": "cpu"}, {"name": "memory", "weight": 0}, {"name": "pods", "weight": 3}],
                    "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 10}, {"utilization": 100}]},
                }
            },
            NodeResourcesFitArgs(
                scoring_strategy=ScoringStrategy(
                    type="RequestedToCapacityRatio",
                    resources=(
                        ResourceSpec(name="cpu", weight=1),
                        ResourceSpec(name="memory", weight=1),
                        ResourceSpec(name="pods", weight=3),
                    ),
                    requested_to_capacity_ratio=RequestedToCapacityRatioParam(
                        shape=(
                            UtilizationShapePoint(utilization=0, score=10),
                            UtilizationShapePoint(utilization=100, score=0),
                        )
                    ),
                )
            ),
            id="a weight of zero is one",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {"resources": []},
            NodeResourcesBalancedAllocationArgs(),
            id="no resources are cpu and memory",
        ),
        pytest.param(
            "PodTopologySpread",
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    {
                        "maxSkew": 2,
                        "topologyKey": "rack",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "minDomains": 3,
                        "nodeTaintsPolicy": "Honor",
                    }
                ],
            },
            PodTopologySpreadArgs(
                defaulting_type="List",
                default_constraints=(
                    TopologySpreadConstraint(
                        max_skew=2,
                        topology_key="rack",
                        when_unsatisfiable="DoNotSchedule",
                        min_domains=3,
                        node_taints_policy="Honor",
                    ),
                ),
            ),
            id="constraints are those of pods",
        ),
        pytest.param(
            "NodeAffinity",
            {
                "addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a", "b"]}]}
                        ]
                    }
                }
            },
            NodeAffinityArgs(
                added_affinity=NodeAffinity(
                    required_during_scheduling_ignored_during_execution=NodeSelector(
                        node_selector_terms=(
                            NodeSelectorTerm(
                                match_expressions=(
                                    NodeSelectorRequirement(key="pool", operator="In", values=("a", "b")),
                                )
                            ),
                        )
                    )
                )
            ),
            id="affinity is that of pods",
        ),
        pytest.param("Harbour", {"berths": [1, 2]}, {"berths": [1, 2]}, id="other plugins get what was written"),
        pytest.param("Harbour", None, None, id="or nothing, if nothing was"),
        pytest.param("InterPodAffinityArgs", {"a": 1}, {"a": 1}, id="a name that is none of ours is another plugin's"),
    ],
)
def test_arguments_are_typed(plugin: str, written: object, arguments: object) -> None:
    assert loaded_arguments(plugin, written) == arguments


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        pytest.param(
            {"kind": "KubeSchedulerConfiguration"}, "Object 'apiVersion' is missing: expected", id="no version"
        ),
        pytest.param({"apiVersion": VERSION}, "Object 'Kind' is missing: expected", id="no kind"),
        pytest.param(
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta3", "kind": "KubeSchedulerConfiguration"},
            'no kind "KubeSchedulerConfiguration" is registered for version "kubescheduler.config.k8s.io/v1beta3": '
            'expected apiVersion "kubescheduler.config.k8s.io/v1" and kind "KubeSchedulerConfiguration"',
            id="an old version",
        ),
        pytest.param(
            {"apiVersion": VERSION, "kind": "Pod"},
            'no kind "Pod" is registered for version "kubescheduler.config.k8s.io/v1": expected',
            id="an unknown kind",
        ),
        pytest.param(
            {"apiVersion": VERSION, "kind": "NodeAffinityArgs"},
            "couldn't decode as KubeSchedulerConfiguration, got kubescheduler.config.k8s.io/v1, Kind=NodeAffinityArgs",
            id="a known kind that is no configuration",
        ),
        pytest.param([], "the configuration: expected an object, found a list", id="a list"),
        pytest.param("hello", 'the configuration: expected an object, found the text "hello"', id="text"),
        pytest.param(
            with_profile(schedulerNam="x"),
            'strict decoding error: unknown field "profiles[0].schedulerNam"; did you mean "schedulerName"?',
            id="a misspelt field",
        ),
        pytest.param(
            configuration(healthzBindAddress="0.0.0.0:1"),
            'strict decoding error: unknown field "healthzBindAddress"',
            id="a field of older versions",
        ),
        pytest.param(
            with_profile(plugins={"score": {"enabled": [{"name": "A", "weight": "5"}]}}),
            'profiles[0].plugins.score.enabled[0].weight: expected an integer, found the text "5"',
            id="a wrong type",
        ),
        pytest.param(
            with_arguments("DefaultPreemption", {"apiVersion": VERSION, "kind": "InterPodAffinityArgs"}),
            "decoding .profiles[0].pluginConfig[0]: args for plugin DefaultPreemption were not of type "
            "DefaultPreemptionArgs.kubescheduler.config.k8s.io, got InterPodAffinityArgs.kubescheduler.config.k8s.io",
            id="arguments of another plugin",
        ),
        pytest.param(
            with_arguments("NodeAffinity", {"apiVersion": "v1", "kind": "NodeAffinityArgs"}),
            "decoding .profiles[0].pluginConfig[0]: decoding args for plugin NodeAffinity: "
            'no kind "NodeAffinityArgs" is registered for version "v1"',
            id="arguments of another version",
        ),
        pytest.param(
            with_arguments("NodeResourcesFit", {"scoringStrategy": {"resources": [{"Name": "cpu"}]}}),
            "strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for "
            'plugin NodeResourcesFit: strict decoding error: unknown field "scoringStrategy.resources[0].Name"; '
            'did you mean "name"?',
            id="a misspelt argument",
        ),
        pytest.param(
            with_arguments("InterPodAffinity", {"hardPodAffinityWeight": 1.5}),
            "decoding .profiles[0].pluginConfig[0]: decoding args for plugin InterPodAffinity: "
            "hardPodAffinityWeight: expected an integer, found the number 1.5",
            id="an argument of the wrong type",
        ),
        pytest.param(
            with_arguments("Harbour", [1]),
            "profiles[0].pluginConfig[0].args: expected an object, found a list",
            id="arguments that are no object",
        ),
        pytest.param(
            with_arguments("NodeAffinity", "spot"),
            "decoding .profiles[0].pluginConfig[0]: decoding args for plugin NodeAffinity: "
            'profiles[0].pluginConfig[0].args: expected an object, found the text "spot"',
            id="known arguments that are no object",
        ),
    ],
)
def test_what_cannot_be_decoded_is_rejected(data: object, complaint: str) -> None:
    (found,) = complaints_about(data)
    assert found.startswith(complaint)


def test_all_that_cannot_be_decoded_is_reported_with_its_path() -> None:
    data = configuration(
        paralelism=3,
        profiles=[{"pluginConfig": [{"name": "NodeAffinity", "args": {"x": 1}}, {"name": 5}]}],
        podMaxBackoffSeconds="long",
    )
    assert paths_complained_about(data) == [
        "paralelism",
        "profiles[0].pluginConfig[0].args.x",
        "profiles[0].pluginConfig[1].name",
        "podMaxBackoffSeconds",
    ]


def test_validation_runs_only_if_decoding_succeeds() -> None:
    assert paths_complained_about(configuration(parallelism=-1, zzz=1)) == ["zzz"]


def test_the_line_of_a_problem_can_be_found() -> None:
    document = load_document(f"apiVersion: {VERSION}\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerNam: x\n")
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(document.data)
    assert document.line_of(caught.value.problems[0].path) == 4


NAMES = st.sampled_from(
    ["apiVersion", "profiles", "plugins", "score", "enabled", "name", "weight", "pluginConfig", "args", "extenders"]
)
JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["NodeAffinity", "Gpu", "*"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(NAMES.filter(lambda name: name != "apiVersion"), JSON_LIKE, max_size=4))
def test_any_data_loads_or_is_rejected_with_a_message(fields: dict[str, object]) -> None:
    assert all(complaints_about(configuration(**fields)))
