"""A configuration keeps the rules of kube-scheduler v1.36, or is refused in its words."""

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
