"""Extenders of a Policy: field names in any case, time-outs as old files write them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from mooring.scheduler.catalogue import default_registry
from mooring.scheduler.config.types import (
    ExtenderConfiguration,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    ExtensionPoint,
)
from mooring.scheduler.policy import load_configuration_or_policy
from mooring.scheduler.policy.types import (
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    MANDATORY_PREDICATES,
    NODE_RESOURCES_FIT,
    PREDICATES,
    PRIORITIES,
    STRATEGIES,
    STRATEGY_PLUGINS,
)
from tests.scheduler.config.builders import Written, complaints_about, paths_complained_about


def with_extender(**fields: object) -> Written:
    return {"apiVersion": "v1", "kind": "Policy", "extenders": [fields]}


@pytest.mark.parametrize(
    ("fields", "extender"),
    [
        pytest.param({"urlPrefix": "u"}, ExtenderConfiguration(url_prefix="u"), id="as it is written today"),
        pytest.param(
            {"URLPrefix": "u", "BindVerb": "b", "EnableHTTPS": True},
            ExtenderConfiguration(url_prefix="u", bind_verb="b", enable_https=True),
            id="as it was written before 1.8",
        ),
        pytest.param(
            {"enableHttps": True}, ExtenderConfiguration(enable_https=True), id="as it was written until 1.22"
        ),
        pytest.param(
            {"tlsConfig": {"Insecure": True, "ServerName": "s", "CAFile": "a", "CertData": "Yw=="}},
            ExtenderConfiguration(
                tls_config=ExtenderTLSConfig(insecure=True, server_name="s", ca_file="a", cert_data=b"c")
            ),
            id="certificates",
        ),
        pytest.param(
            {"managedResources": [{"Name": "example.com/a", "IgnoredByScheduler": True}]},
            ExtenderConfiguration(
                managed_resources=(ExtenderManagedResource(name="example.com/a", ignored_by_scheduler=True),)
            ),
            id="resources",
        ),
        pytest.param(
            {"nodeCacheCapable": True, "ignorable": True},
            ExtenderConfiguration(node_cache_capable=True, ignorable=True),
        ),
    ],
)
def test_names_in_any_case(fields: Written, extender: ExtenderConfiguration) -> None:
    assert load_configuration_or_policy(with_extender(**fields)).extenders == (extender,)


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [
        pytest.param(30_000_000_000, 30.0, id="nanoseconds"),
        pytest.param(1, 1e-9, id="one nanosecond"),
        pytest.param("1m30s", 90.0, id="a text"),
        pytest.param(0, 5.0, id="zero is the default"),
        pytest.param(None, 5.0, id="so is nothing"),
    ],
)
def test_time_outs(timeout: object, seconds: float) -> None:
    (extender,) = load_configuration_or_policy(with_extender(httpTimeout=timeout)).extenders
    assert extender.http_timeout_s == seconds


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        pytest.param(
            {"httpTimeout": 1.5},
            'extenders[0].httpTimeout: expected a duration such as "1m30s", found the number 1.5',
            id="half a nanosecond",
        ),
        pytest.param(
            {"httpTimeout": True},
            'extenders[0].httpTimeout: expected a duration such as "1m30s", found true',
            id="true is no number",
        ),
        pytest.param(
            {"filterverbs": "x"},
            'strict decoding error: unknown field "extenders[0].filterverbs"; did you mean "filterVerb"?',
            id="a field that there is not",
        ),
        pytest.param(
            {"tlsConfig": "x"}, 'extenders[0].tlsConfig: expected an object, found the text "x"', id="not an object"
        ),
    ],
)
def test_what_cannot_be_read(fields: Written, complaint: str) -> None:
    assert complaints_about(with_extender(**fields)) == [complaint]


LIKES = {"labelPreference": {"label": "x", "presence": True}}
SPREADS = {"serviceAntiAffinity": {"label": "x"}}
RATIO = {"requestedToCapacityRatioArguments": {"shape": [{"utilization": 0, "score": 0}]}}


def predicate(name: str, argument: object = None) -> Written:
    return {"apiVersion": "v1", "kind": "Policy", "predicates": [{"name": name, "argument": argument}]}


def priorities(*written: Written) -> Written:
    return {"apiVersion": "v1", "kind": "Policy", "priorities": list(written)}


def priority(name: str, argument: object = None, weight: int = 1) -> Written:
    return {"name": name, "weight": weight, "argument": argument}


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        pytest.param(
            predicate("PodFitResources"),
            'predicate type not found for "PodFitResources"; did you mean "PodFitsResources"?',
            id="nearly a predicate",
        ),
        pytest.param(
            predicate("matchnodeselector"),
            'predicate type not found for "matchnodeselector"; did you mean "MatchNodeSelector"?',
            id="in other letters",
        ),
        pytest.param(
            predicate("Quux"),
            'predicate type not found for "Quux"; a name of your own needs an argument',
            id="nothing like it",
        ),
        pytest.param(
            predicate("Mine", {}),
            "exactly 1 predicate argument is required, numArgs: 0, predicate Mine",
            id="an argument that says nothing",
        ),
        pytest.param(
            predicate("Mine", {"serviceAffinity": {"labels": ["a"]}, "labelsPresence": {"labels": ["a"]}}),
            "exactly 1 predicate argument is required, numArgs: 2, predicate Mine",
            id="two arguments",
        ),
        pytest.param(
            predicate("HostName", {"serviceAffinity": {"labels": ["a"]}}),
            'predicate "HostName" does not take this argument; give it a name of your own',
            id="an argument for a name that takes none",
        ),
        pytest.param(
            predicate("CheckServiceAffinity", {"labelsPresence": {"labels": ["a"]}}),
            'predicate "CheckServiceAffinity" does not take this argument; give it a name of your own',
            id="an argument for another name",
        ),
    ],
)
def test_predicates_that_are_rejected(data: Written, complaint: str) -> None:
    assert complaints_about(data) == [complaint]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        pytest.param(
            priorities(priority("LeastRequested")),
            'priority type not found for "LeastRequested"; did you mean "LeastRequestedPriority"?',
            id="nearly a priority",
        ),
        pytest.param(
            priorities({"name": "EqualPriority"}),
            "priority EqualPriority should have a positive weight applied to it or it has overflown",
            id="no weight",
        ),
        pytest.param(
            priorities(priority("EqualPriority", weight=-1)),
            "priority EqualPriority should have a positive weight applied to it or it has overflown",
            id="a negative weight",
        ),
        pytest.param(
            priorities(priority("EqualPriority", weight=2**31)),
            "priority EqualPriority should have a positive weight applied to it or it has overflown",
            id="too large a weight",
        ),
        pytest.param(
            priorities(priority("Mine", {})),
            "exactly 1 priority argument is required, numArgs: 0, priority Mine",
            id="an argument that says nothing",
        ),
        pytest.param(
            priorities(priority("Mine", LIKES | SPREADS)),
            "exactly 1 priority argument is required, numArgs: 2, priority Mine",
            id="two arguments",
        ),
        pytest.param(
            priorities(priority("NodeAffinityPriority", LIKES)),
            'priority "NodeAffinityPriority" does not take this argument; give it a name of your own',
            id="an argument for a name that takes none",
        ),
        pytest.param(
            priorities(priority("RequestedToCapacityRatioPriority", LIKES)),
            'priority "RequestedToCapacityRatioPriority" does not take this argument; give it a name of your own',
            id="an argument for another name",
        ),
        pytest.param(
            priorities(priority("a", LIKES), priority("b", LIKES, weight=2)),
            'LabelPreference  priority "b" has a different weight with "a"',
            id="preferences with different weights",
        ),
        pytest.param(
            priorities(priority("a", SPREADS), priority("b", SPREADS, weight=2)),
            'ServiceAntiAffinity  priority "b" has a different weight with "a"',
            id="anti-affinities with different weights",
        ),
        pytest.param(
            priorities(priority("a", RATIO), priority("b", RATIO)),
            'priority "b" redeclares custom priority "RequestedToCapacityRatio", from: "a"',
            id="two shapes",
        ),
    ],
)
def test_priorities_that_are_rejected(data: Written, complaint: str) -> None:
    assert complaints_about(data) == [complaint]


@pytest.mark.parametrize(
    ("arguments", "path", "complaint"),
    [
        pytest.param({}, "shape", "Required value: at least one point must be specified", id="no shape"),
        pytest.param(
            {"shape": [{"utilization": 101, "score": 1}]},
            "shape[0].utilization",
            "Invalid value: 101: not in valid range [0, 100]",
            id="too full",
        ),
        pytest.param(
            {"shape": [{"utilization": 5, "score": 1}, {"utilization": 5, "score": 11}]},
            "shape[1].utilization",
            "Invalid value: 5: values must be sorted in increasing order",
            id="not rising",
        ),
        pytest.param(
            {"shape": [{"utilization": 5, "score": 1}], "resources": [{"name": "cpu", "weight": -1}]},
            "resources[0].weight",
            "Invalid value: -1: resource weight of cpu not in valid range (0, 100]",
            id="a resource with a negative weight",
        ),
    ],
)
def test_shapes_that_are_rejected(arguments: Written, path: str, complaint: str) -> None:
    data = priorities(priority("Mine", {"requestedToCapacityRatioArguments": arguments}))
    where = f"priorities[0].argument.requestedToCapacityRatioArguments.{path}"
    assert paths_complained_about(data)[0] == where
    assert complaints_about(data)[0] == f"{where}: {complaint}"


@pytest.mark.parametrize("weight", [-1, 101])
def test_the_weight_of_required_affinity_has_a_range(weight: int) -> None:
    data = {"apiVersion": "v1", "kind": "Policy", "hardPodAffinitySymmetricWeight": weight}
    assert complaints_about(data) == [
        f"hardPodAffinitySymmetricWeight: Invalid value: {weight}: not in valid range [0-100]"
    ]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(predicate("Anything at all", {"labelsPresence": {"labels": []}}), id="any name with an argument"),
        pytest.param(
            predicate("CheckServiceAffinity", {"serviceAffinity": {"labels": ["a"]}}), id="the argument's own"
        ),
        pytest.param(priorities(priority("a", LIKES), priority("b", SPREADS, weight=2)), id="weights of two kinds"),
        pytest.param(
            priorities(priority("RequestedToCapacityRatioPriority"), priority("Mine", RATIO)), id="one strategy twice"
        ),
        pytest.param(
            priorities(priority("LeastRequestedPriority"), priority("MostRequestedPriority"), priority("Mine", RATIO)),
            id="three strategies",
        ),
        pytest.param(priorities(priority("EqualPriority", weight=2**31 - 1)), id="the largest weight"),
    ],
)
def test_policies_that_are_fine(data: Written) -> None:
    assert load_configuration_or_policy(data).profiles


IMPLEMENTS = default_registry().implements


@pytest.mark.parametrize("name", PREDICATES)
def test_a_predicate_is_done_by_filters(name: str) -> None:
    assert PREDICATES[name]
    assert [plugin for plugin in PREDICATES[name] if not IMPLEMENTS(plugin, ExtensionPoint.FILTER)] == []


@pytest.mark.parametrize("name", PRIORITIES)
def test_a_priority_is_replaced_by_a_score_or_has_no_effect(name: str) -> None:
    plugin = PRIORITIES[name]
    assert plugin is None or IMPLEMENTS(plugin, ExtensionPoint.SCORE)


@pytest.mark.parametrize(
    ("some", "known"),
    [(DEFAULT_PREDICATES, PREDICATES), (MANDATORY_PREDICATES, PREDICATES), (DEFAULT_PRIORITIES, PRIORITIES)],
    ids=["default predicates", "mandatory predicates", "default priorities"],
)
def test_sets_of_names_hold_known_names(some: Iterable[str], known: Iterable[str]) -> None:
    assert set(some) <= set(known)


def test_strategies_are_those_of_one_plugin() -> None:
    assert set(STRATEGIES) == {name for name, plugin in PRIORITIES.items() if plugin == NODE_RESOURCES_FIT}


def test_every_strategy_has_a_plugin_of_its_own() -> None:
    assert set(STRATEGY_PLUGINS) == set(STRATEGIES.values())
    assert [plugin for plugin in STRATEGY_PLUGINS.values() if not IMPLEMENTS(plugin, ExtensionPoint.SCORE)] == []
