"""ServiceAffinity: nodes like those of the service's other pods, and label values with few of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Service, ServiceSpec
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.columns import Transaction
from mooring.scheduler.config import ConfigurationError
from mooring.scheduler.framework.events import ActionType, ClusterEvent, EventResource
from mooring.scheduler.framework.plugin import SKIP
from mooring.scheduler.policy.plugins import ServiceAffinity, elsewhere_share
from tests.builders import node, pod, service
from tests.scheduler.config.builders import Written, plugins, with_profile
from tests.scheduler.harness import decide, engine_of, filter_state, live_rows, plugin_of, rejected_by, scored_by

SAID = ("node(s) didn't match service affinity",)
REGION, RACK = "region", "rack"
WEB = {"app": "web"}
WANTED = pod("new", labels=WEB)
SERVICE = service("web", app="web")
NODES = (
    node("e1", labels={REGION: "east", RACK: "1"}),
    node("e2", labels={REGION: "east", RACK: "2"}),
    node("w1", labels={REGION: "west", RACK: "1"}),
    node("none"),
)


def profile(**arguments: list[str]) -> Written:
    enabled = {"multiPoint": {"enabled": plugins("ServiceAffinity")}}
    return with_profile(plugins=enabled, pluginConfig=[{"name": "ServiceAffinity", "args": arguments}])


SAME_REGION = profile(affinityLabels=[REGION])
SAME_RACK = profile(affinityLabels=[REGION, RACK])


# --- filter -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objects", "wanting", "rejecting"),
    [
        pytest.param([SERVICE, pod("old", labels=WEB, on="e1")], WANTED, ["w1", "none"], id="where its kind is"),
        pytest.param(
            [SERVICE, pod("old", labels=WEB | {"more": "x"}, on="w1")],
            WANTED,
            ["e1", "e2", "none"],
            id="who has more labels is of its kind",
        ),
        pytest.param(
            [SERVICE, pod("old", labels=WEB, on="e1", terminating=True)],
            WANTED,
            ["w1", "none"],
            id="who is on the way out counts",
        ),
        pytest.param([SERVICE, pod("old", labels=WEB, on="none")], WANTED, [], id="its node has no such label"),
        pytest.param(
            [SERVICE, pod("old", labels=WEB, on="e1")],
            pod(labels=WEB, node_labels={REGION: "west"}),
            ["e1", "e2", "none"],
            id="its own node selector is stronger",
        ),
        pytest.param(
            [], pod(labels=WEB, node_labels={REGION: "west"}), ["e1", "e2", "none"], id="and counts without a service"
        ),
        pytest.param(
            [], pod(labels=WEB, node_labels={REGION: "moon"}), ["e1", "e2", "w1", "none"], id="a value of no node"
        ),
        pytest.param(
            [SERVICE, pod("w", labels=WEB, on="w1"), pod("e", labels=WEB, on="e2")],
            WANTED,
            ["w1", "none"],
            id="where they disagree, the first node counts",
        ),
        pytest.param(
            [
                Service(metadata=service("all").metadata, spec=ServiceSpec(selector={})),
                pod("old", labels={"app": "db"}, on="w1"),
            ],
            pod("bare"),
            ["e1", "e2", "none"],
            id="without labels everybody is its kind",
        ),
    ],
)
def test_nodes_that_are_unlike(objects: list[ApiObject], wanting: Pod, rejecting: list[str]) -> None:
    engine = engine_of(*NODES, *objects, config=SAME_REGION)
    assert rejected_by(engine, ServiceAffinity, wanting) == dict.fromkeys(rejecting, SAID)


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([SERVICE], id="the first of its service"),
        pytest.param([pod("old", labels=WEB, on="e1")], id="no service selects it"),
        pytest.param([service("db", app="db"), pod("old", labels=WEB, on="e1")], id="a service for others"),
        pytest.param([service("web"), pod("old", labels=WEB, on="e1")], id="a service without a selector"),
        pytest.param([service("web", "shop", app="web"), pod("old", labels=WEB, on="e1")], id="of another namespace"),
        pytest.param([SERVICE, pod("old", labels={"app": "db"}, on="e1")], id="only others are there"),
        pytest.param([SERVICE, pod("old", labels=WEB, namespace="shop", on="e1")], id="its kind is elsewhere"),
        pytest.param([SERVICE, pod("old", labels=WEB, on="unknown")], id="on a node that nobody knows"),
    ],
)
def test_pods_that_may_go_anywhere(objects: list[ApiObject]) -> None:
    assert rejected_by(engine_of(*NODES, *objects, config=SAME_REGION), ServiceAffinity, WANTED) is SKIP


def test_the_first_node_is_the_first_in_the_order_in_which_zones_take_turns() -> None:
    nodes = [node(name, zone=name[0], labels={REGION: name}) for name in ("a1", "a2", "b1")]
    placed = [pod(f"on-{name}", labels=WEB, on=name) for name in ("a2", "b1")]
    engine = engine_of(*nodes, SERVICE, *placed, config=SAME_REGION)
    assert rejected_by(engine, ServiceAffinity, WANTED) == {"a1": SAID, "a2": SAID}


def test_all_labels_must_be_alike() -> None:
    engine = engine_of(*NODES, SERVICE, pod("old", labels=WEB, on="e1"), config=SAME_RACK)
    assert rejected_by(engine, ServiceAffinity, WANTED) == dict.fromkeys(["e2", "w1", "none"], SAID)
    chosen = pod(labels=WEB, node_labels={REGION: "west"})
    assert rejected_by(engine, ServiceAffinity, chosen) == dict.fromkeys(["e1", "e2", "none"], SAID)


def test_without_labels_it_has_nothing_to_say() -> None:
    engine = engine_of(*NODES, SERVICE, pod("old", labels=WEB, on="e1"), config=profile())
    assert rejected_by(engine, ServiceAffinity, WANTED) is SKIP
    assert scored_by(engine, ServiceAffinity, WANTED) is SKIP
    assert plugin_of(engine, ServiceAffinity).events_to_register() == ()


def test_it_follows_services_and_pods() -> None:
    engine = engine_of(*NODES, config=SAME_REGION)
    assert len(decide(engine, WANTED).scores) == 4
    engine.put(SERVICE)
    engine.put(pod("old", labels=WEB, on="w1"))
    assert decide(engine, WANTED).node_name == "w1"
    engine.remove(SERVICE)
    assert len(decide(engine, WANTED).scores) == 4


@pytest.mark.parametrize(
    ("others", "preempts_on"),
    [
        pytest.param([], "e1", id="the only pod of the service may be evicted"),
        pytest.param(["w1"], None, id="a second one elsewhere would then forbid the node"),
    ],
)
def test_preemption_filters_without_evicted_pods(others: list[str], preempts_on: str | None) -> None:
    nodes = (node("e1", cpu=1, labels={REGION: "east"}), node("w1", cpu=1, labels={REGION: "west"}))
    placed = [pod(f"on-{name}", cpu=1, labels=WEB, priority=0, on=name) for name in ("e1", *others)]
    engine = engine_of(*nodes, SERVICE, *placed, config=SAME_REGION)
    decision = decide(engine, pod("new", cpu=1, labels=WEB, priority=10))
    assert (decision.preemption.node_name if decision.preemption is not None else None) == preempts_on


@pytest.mark.parametrize(
    ("pods", "row_of", "moved", "count", "rejected"),
    [
        pytest.param(["e1"], "w1", "x", +1, True, id="one more elsewhere changes nothing"),
        pytest.param(["e1"], "e1", "e1", -1, False, id="without the only one any node will do"),
        pytest.param(["e1", "w1"], "e1", "e1", -1, True, id="without the first the second counts"),
        pytest.param(["e1", "e1", "w1"], "e1", "e1", -1, False, id="one of two goes, and the node is like itself"),
    ],
)
def test_what_one_pod_more_or_less_would_change(
    pods: list[str], row_of: str, moved: str, count: int, rejected: bool
) -> None:
    placed = [pod(f"old-{number}", labels=WEB, on=name) for number, name in enumerate(pods)]
    engine = engine_of(*NODES, SERVICE, *placed, config=SAME_REGION)
    plugin = plugin_of(engine, ServiceAffinity)
    state = filter_state(plugin, engine.record(WANTED))
    row = engine.columns.row_of[row_of]
    mover = engine.record(pod(moved, labels=WEB))
    (amount,) = plugin.contribution(state, mover, row)
    answer = plugin.filter_adjusted(state, np.array([row]), np.array([[count * amount]]))
    assert answer.tolist() == [int(rejected)]
    assert list(plugin.contribution(state, engine.record(pod("other", labels={"app": "db"})), row)) == [0]


# --- score ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "codes", "shares"),
    [
        pytest.param([0, 0], [1, 2], [100.0, 100.0], id="nobody anywhere"),
        pytest.param([0, 0], [0, 1], [0.0, 100.0], id="a node without the label gets nothing"),
        pytest.param([1, 3], [1, 2], [75.0, 25.0], id="the share of those elsewhere"),
        pytest.param([1, 3, 0], [1, 1, 2], [0.0, 0.0, 100.0], id="a domain has one share"),
        pytest.param([2, 2], [0, 1], [0.0, 50.0], id="pods on nodes without the label count for the sum"),
    ],
)
def test_the_share_of_pods_on_other_values(counts: list[int], codes: list[int], shares: list[float]) -> None:
    assert elsewhere_share(np.array(counts), np.array(codes)).tolist() == shares


@pytest.mark.parametrize(
    ("labels", "objects", "scores"),
    [
        pytest.param(
            [REGION],
            [SERVICE, pod("a", labels=WEB, on="e1"), pod("b", labels=WEB, on="w1"), pod("c", labels=WEB, on="e2")],
            [33, 33, 66, 0],
            id="the emptier region is better",
        ),
        pytest.param(
            [REGION, RACK],
            [SERVICE, pod("a", labels=WEB, on="e1")],
            [0, 50, 50, 0],
            id="the average of two labels",
        ),
        pytest.param([REGION], [pod("a", labels=WEB, on="e1")], [100, 100, 100, 0], id="without a service: nobody"),
        pytest.param(
            [REGION],
            [SERVICE, pod("a", labels=WEB, on="e1", terminating=True)],
            [100, 100, 100, 0],
            id="who is on the way out does not count",
        ),
        pytest.param(
            [REGION],
            [service("a", app="web"), service("b", stage="x"), pod("p", labels={"stage": "x"}, on="e1")],
            [100, 100, 100, 0],
            id="of two services the first by name",
        ),
    ],
)
def test_regions_with_few_pods_are_better(labels: list[str], objects: list[ApiObject], scores: list[int]) -> None:
    engine = engine_of(*NODES, *objects, config=profile(antiAffinityLabelsPreference=labels))
    wanting = pod("new", labels=WEB | {"stage": "x"})
    named = dict(zip((node_view.metadata.name for node_view in NODES), scores, strict=True))
    assert scored_by(engine, ServiceAffinity, wanting) == named


def test_arguments_that_are_rejected() -> None:
    with pytest.raises(ConfigurationError) as rejected:
        engine_of(config=profile(affinityLables=["a"]))
    assert str(rejected.value) == (
        'initializing plugin "ServiceAffinity": strict decoding error: unknown field "affinityLables"; '
        'did you mean "affinityLabels"?'
    )


# Queueing hints


@pytest.mark.parametrize(
    ("subject", "action", "changed", "helps"),
    [
        pytest.param(
            EventResource.ASSIGNED_POD, ActionType.DELETE, pod("x", labels=WEB, on="e1"), True, id="its kind goes"
        ),
        pytest.param(
            EventResource.ASSIGNED_POD, ActionType.ADD, pod("x", labels=WEB, on="e1"), True, id="its kind comes"
        ),
        pytest.param(EventResource.ASSIGNED_POD, ActionType.DELETE, pod("x", on="e1"), False, id="somebody else goes"),
        pytest.param(
            EventResource.ASSIGNED_POD,
            ActionType.DELETE,
            pod("x", labels=WEB, namespace="shop"),
            False,
            id="another namespace",
        ),
        pytest.param(EventResource.SERVICE, ActionType.DELETE, SERVICE, True, id="a service goes"),
        pytest.param(EventResource.SERVICE, ActionType.UPDATE, SERVICE, True, id="a service changes"),
        pytest.param(EventResource.SERVICE, ActionType.DELETE, service("web", "shop"), False, id="a service elsewhere"),
        pytest.param(EventResource.SERVICE, ActionType.ADD, SERVICE, False, id="a new service only binds more"),
        pytest.param(EventResource.NODE, ActionType.ADD, NODES[0], True, id="a node comes"),
        pytest.param(EventResource.NODE, ActionType.DELETE, NODES[0], True, id="the node to be like goes"),
        pytest.param(EventResource.NODE, ActionType.UPDATE_NODE_LABEL, NODES[0], True, id="a node is relabelled"),
        pytest.param(
            EventResource.NODE, ActionType.UPDATE_NODE_TAINT, NODES[0], False, id="a taint is not its business"
        ),
    ],
)
def test_what_can_help(subject: EventResource, action: ActionType, changed: Pod | Service | Node, helps: bool) -> None:
    engine = engine_of(*NODES, config=SAME_REGION)
    reported = engine.record(changed) if isinstance(changed, Pod) else changed
    old, new = (reported, None) if action is ActionType.DELETE else (None, reported)
    sleeping, event = engine.record(WANTED), ClusterEvent(subject, action)
    events = [
        registered
        for registered in plugin_of(engine, ServiceAffinity).events_to_register()
        if registered.matches(event)
    ]
    assert (
        any(
            registered.queueing_hint_fn is None or registered.queueing_hint_fn(sleeping, old, new)
            for registered in events
        )
        is helps
    )


# --- against the rule, written down node by node ----------------------------------------------------------------


class Plain:
    """The rule for one node, as its old plugin followed it."""

    def __init__(self, nodes: list[Node], pods: list[Pod], services: list[Service], labels: list[str]) -> None:
        self.nodes = {node_view.metadata.name: node_view for node_view in nodes}
        self.pods = [view for name in self.nodes for view in pods if view.spec.node_name == name]
        self.services = services
        self.labels = labels

    def services_of(self, wanting: Pod) -> list[Service]:
        return [
            candidate
            for candidate in self.services
            if candidate.metadata.namespace == wanting.metadata.namespace
            and candidate.spec.selector is not None
            and candidate.spec.selector.items() <= wanting.metadata.labels.items()
        ]

    def rejects(self, wanting: Pod, name: str) -> bool:
        service_pods = [
            candidate
            for candidate in self.pods
            if candidate.metadata.namespace == wanting.metadata.namespace
            and wanting.metadata.labels.items() <= candidate.metadata.labels.items()
        ]
        wanted = {key: wanting.spec.node_selector[key] for key in self.labels if key in wanting.spec.node_selector}
        if len(self.labels) > len(wanted) and self.services_of(wanting) and service_pods:
            example = self.nodes[service_pods[0].spec.node_name].metadata.labels
            wanted = {key: example[key] for key in self.labels if key in example} | wanted
        return not wanted.items() <= self.nodes[name].metadata.labels.items()

    def scores(self, wanting: Pod) -> dict[str, int]:
        services = self.services_of(wanting)
        selector = (services[0].spec.selector if services else None) or {}
        counts = {
            name: sum(
                bool(selector)
                and candidate.spec.node_name == name
                and candidate.metadata.namespace == wanting.metadata.namespace
                and candidate.metadata.deletion_timestamp is None
                and selector.items() <= candidate.metadata.labels.items()
                for candidate in self.pods
            )
            for name in self.nodes
        }
        total, points = sum(counts.values()), dict.fromkeys(self.nodes, 0.0)
        for label in self.labels:
            in_domain: dict[str, int] = {}
            for name, node_view in self.nodes.items():
                if label in node_view.metadata.labels:
                    value = node_view.metadata.labels[label]
                    in_domain[value] = in_domain.get(value, 0) + counts[name]
            for name, node_view in self.nodes.items():
                if label in node_view.metadata.labels:
                    share = 100.0
                    if total > 0:
                        share = 100.0 * (float(total - in_domain[node_view.metadata.labels[label]]) / float(total))
                    points[name] += share / float(len(self.labels))
        return {name: int(value) for name, value in points.items()}


def random_cluster(chance: Entropy) -> tuple[list[Node], list[Pod], list[Service], Pod]:
    def some_labels(keys: tuple[str, ...], values: tuple[str, ...]) -> dict[str, str]:
        return {key: chance.choose(values) for key in keys if chance.integer_below(3)}

    nodes = [
        node(f"n{number}", labels=some_labels((REGION, RACK), ("", "a", "b")))
        for number in range(1 + chance.integer_below(6))
    ]
    pods = [
        pod(
            f"p{number}",
            labels=some_labels(("app", "tier"), ("x", "y")),
            namespace=chance.choose(("default", "default", "shop")),
            on=f"n{chance.integer_below(7)}",
            terminating=not chance.integer_below(4),
        )
        for number in range(chance.integer_below(10))
    ]
    services = [service(name, app=chance.choose(("x", "y"))) for name in ("s1", "s2") if chance.integer_below(3)]
    chosen = some_labels((REGION, RACK), ("", "a", "b")) if not chance.integer_below(3) else {}
    return nodes, pods, services, pod("new", labels=some_labels(("app", "tier"), ("x", "y")), node_labels=chosen)


LABELS = ([REGION], [REGION, RACK], [RACK, REGION, "nobody/has-it"])


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32))
def test_results_equal_the_plain_rule(seed: int) -> None:
    chance = Entropy(seed)
    nodes, pods, services, wanting = random_cluster(chance)
    labels = chance.choose(LABELS)
    config = profile(affinityLabels=labels, antiAffinityLabelsPreference=labels)
    engine, plain = engine_of(*nodes, *pods, *services, config=config), Plain(nodes, pods, services, labels)
    rejected = rejected_by(engine, ServiceAffinity, wanting)
    assert ({} if rejected is SKIP else rejected) == {
        name: SAID for name in plain.nodes if plain.rejects(wanting, name)
    }
    assert scored_by(engine, ServiceAffinity, wanting) == plain.scores(wanting)


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32))
def test_results_without_some_pods_equal_the_plain_rule_without_them(seed: int) -> None:
    """What preemption asks: each node as if some of its own pods, and only those, were gone."""
    chance = Entropy(seed)
    nodes, pods, services, wanting = random_cluster(chance)
    labels = chance.choose(LABELS)
    engine = engine_of(*nodes, *pods, *services, config=profile(affinityLabels=labels))
    plugin = plugin_of(engine, ServiceAffinity)
    state = filter_state(plugin, engine.record(wanting))
    if state is SKIP:
        return
    for row in live_rows(engine).tolist():
        name = engine.columns.node_names[row]
        leaving = [record for record in engine.columns.pods_on[row].values() if chance.integer_below(2)]
        left = [view for view in pods if view.metadata.name not in {gone.name for gone in leaving}]
        difference = -sum(plugin.contribution(state, leaving_pod, row)[0] for leaving_pod in leaving)
        with Transaction(engine.columns) as transaction:
            for leaving_pod in leaving:
                transaction.displace(leaving_pod)
            answer = plugin.filter_adjusted(state, np.array([row]), np.array([[difference]]))
        assert bool(answer[0]) is Plain(nodes, left, services, labels).rejects(wanting, name), name
