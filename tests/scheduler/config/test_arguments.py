"""The arguments that plugins get when nobody mentions them are those of kube-scheduler v1.36."""

import pytest

from mooring.scheduler.config.arguments import (
    ARGUMENTS,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    KnownArguments,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    VolumeBindingArgs,
)

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
