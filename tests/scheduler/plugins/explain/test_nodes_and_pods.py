"""What plugins that look at one node say of a node that they reject."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.quantity import quantity_value
from mooring.api.views.meta import ApiObject, NodeSelector
from mooring.api.views.node import Node
from mooring.api.views.pod import Container, ContainerRestartRule, Pod, PodAffinityTerm
from mooring.scheduler.framework.obstacle import Obstacle, ObstacleKind
from mooring.scheduler.plugins.node_resources_fit import amount_text, quantity_text
from tests.api.builders import term
from tests.builders import HOSTNAME, ZONE, namespace, node, pod, pods_like, spread
from tests.scheduler.harness import engine_of, obstacles


def only(one: Node, view: Pod, *others: Any) -> Obstacle:
    engine = engine_of(one, *others)
    (found,) = obstacles(engine, view, one.metadata.name)
    return found


@pytest.mark.parametrize(
    ("name", "amount", "text", "quantity"),
    [
        ("cpu", 300, "0.3", "300m"),
        ("cpu", 2000, "2", "2"),
        ("cpu", 1, "0.001", "1m"),
        ("memory", 3 << 29, "1.5Gi", "1536Mi"),
        ("memory", (3 << 29) + 1, "1.51Gi", "1610612737"),
        ("memory", 1000, "1000", "1k"),
        ("memory", 1023, "1023", "1023"),
        ("ephemeral-storage", 1 << 40, "1Ti", "1Ti"),
        ("hugepages-2Mi", 4 << 20, "4Mi", "4Mi"),
        ("example.com/gpu", 2, "2", "2"),
        ("memory", 0, "0", "0"),
    ],
)
def test_amounts(name: str, amount: int, text: str, quantity: str) -> None:
    assert (amount_text(name, amount), quantity_text(name, amount)) == (text, quantity)


@given(st.integers(0, 2**62))
def test_the_text_of_an_amount_is_rounded_up_slightly(amount: int) -> None:
    said = quantity_value(amount_text("memory", amount))
    assert amount <= said <= amount + amount // 100 + 1
    assert quantity_value(quantity_text("memory", amount)) == amount


@pytest.mark.parametrize(
    ("one", "view", "text", "details"),
    [
        pytest.param(
            node(cpu="1700m"), pod(cpu=2), "0.3 cpu more (the whole node has 1.7)",
            {"resource": "cpu", "wanted": "2", "missing": "300m", "allocatable": "1700m"}, id="cpu",
        ),
        pytest.param(
            node(), pod(others={"example.com/gpu": 2}), "2 example.com/gpu more (the node has none)",
            {"resource": "example.com/gpu", "wanted": "2", "missing": "2", "allocatable": "0"}, id="a device",
        ),
        pytest.param(node(pods=0), pod(), "1 more pod slot", {"missing": 1}, id="a slot"),
    ],
)  # fmt: skip
def test_resources(one: Node, view: Pod, text: str, details: dict[str, object]) -> None:
    found = only(one, view)
    assert (found.text, found.details) == (text, details)


def test_what_running_pods_take_is_missing() -> None:
    found = only(node(cpu=4), pod(cpu=2), pod("running", cpu=3, on="n1"))
    assert found.text == "1 cpu more"


@pytest.mark.parametrize(
    ("taint", "text"),
    [
        ("gpu=true:NoSchedule", "tolerate gpu=true:NoSchedule"),
        ("gpu:NoExecute", "tolerate gpu:NoExecute"),
    ],
)
def test_taints(taint: str, text: str) -> None:
    found = only(node(taints=[taint, "soft:PreferNoSchedule"]), pod())
    assert (found.text, found.kind) == (text, ObstacleKind.TAINT)


@pytest.mark.parametrize(
    ("labels", "requirement", "text"),
    [
        pytest.param({"disk": "hdd"}, "disk In ssd", "needs disk=ssd, has disk=hdd", id="another value"),
        pytest.param({}, "disk In ssd", "needs disk=ssd, has no disk", id="no value"),
        pytest.param({"disk": "hdd"}, "disk In nvme,ssd", "needs disk in (nvme,ssd), has disk=hdd", id="two choices"),
        pytest.param({"disk": "hdd"}, "disk NotIn hdd", "needs disk!=hdd, has disk=hdd", id="just that value"),
        pytest.param({}, "disk Exists", "needs the label disk", id="no such label"),
        pytest.param({"disk": "x"}, "disk DoesNotExist", "must not have the label disk, has disk=x", id="that label"),
        pytest.param({"cores": "2"}, "cores Gt 4", "needs cores>4, has cores=2", id="too small a number"),
        pytest.param({ZONE: "a"}, f"{ZONE} In b", f"needs {ZONE}=b, has a", id="a long key is said once"),
        pytest.param({}, f"{ZONE} In b", f"needs {ZONE}=b, has no zone", id="a long key that is not there"),
    ],
)
def test_labels(labels: dict[str, str], requirement: str, text: str) -> None:
    wanted = NodeSelector(node_selector_terms=(term(requirement),))
    found = only(node(labels=labels), pod(nodes=wanted))
    assert (found.text, found.kind) == (text, ObstacleKind.NODE_LABEL)


@pytest.mark.parametrize(
    ("wanted", "texts"),
    [
        pytest.param(
            [term("a In 1", "b In 1"), term("c In 1")], ["needs c=1, has no c"], id="the term with the least to change"
        ),
        pytest.param([term(fields=["metadata.name In n9"])], ["needs the node n9"], id="another node"),
        pytest.param([term(fields=["metadata.name NotIn n1"])], ["needs another node than n1"], id="any other node"),
        pytest.param(
            [term("a Bogus 1")],
            ["a selector that can be read: nodeSelectorTerms[0].matchExpressions[0].operator"],
            id="a term that nobody can read",
        ),
    ],
)
def test_terms(wanted: list[Any], texts: list[str]) -> None:
    engine = engine_of(node("n1"), node("n2"))
    found = obstacles(engine, pod(nodes=NodeSelector(node_selector_terms=tuple(wanted))), "n1")
    assert [obstacle.text.partition(": Unsupported")[0] for obstacle in found] == texts


def test_a_label_that_is_wanted_twice_is_reported_once() -> None:
    wanted = NodeSelector(node_selector_terms=(term("disk In ssd"),))
    assert only(node(), pod(nodes=wanted, node_labels={"disk": "ssd"})).text == "needs disk=ssd, has no disk"


@pytest.mark.parametrize(
    ("taken", "wanted", "text"),
    [
        ("443", "443", "host port TCP 443 is taken by default/proxy"),
        ("53/UDP", "53/UDP", "host port UDP 53 is taken by default/proxy"),
        ("80", "127.0.0.1:80", "host port TCP 80 on 127.0.0.1 is taken by default/proxy"),
        ("127.0.0.1:80", "80", "host port TCP 80 is taken by default/proxy"),
    ],
)
def test_ports(taken: str, wanted: str, text: str) -> None:
    assert only(node(), pod(ports=[wanted]), pod("proxy", on="n1", ports=[taken])).text == text


def test_features() -> None:
    restarting = Container(name="c", restart_policy_rules=(ContainerRestartRule(action="RestartAllContainers"),))
    found = only(node(), pod(containers=[restarting]))
    assert found.text == "needs a kubelet that declares RestartAllContainersOnContainerExits"


WEB = {"app": "web"}


def found_on(name: str, view: Pod, *views: ApiObject) -> tuple[Obstacle, ...]:
    return obstacles(engine_of(*views), view, name)


def texts(name: str, view: Pod, *views: ApiObject) -> list[str]:
    return [obstacle.text for obstacle in found_on(name, view, *views)]


ZONES = (node("n1", zone="a", labels={"rack": "r1"}), node("n2", zone="b", labels={"rack": "r2"}), node("n3"))


# Spreading


@pytest.mark.parametrize(
    ("topology", "max_skew", "labels", "text"),
    [
        pytest.param(ZONE, 1, WEB, "zone a would have 4 pods matching app=web, at most 1 is allowed", id="a zone"),
        pytest.param(ZONE, 2, WEB, "zone a would have 4 pods matching app=web, at most 2 are allowed", id="more skew"),
        pytest.param(
            ZONE, 1, {}, "zone a has 3 pods matching app=web, at most 1 is allowed", id="it does not match itself"
        ),
        pytest.param(
            HOSTNAME, 1, WEB, "this node would have 4 pods matching app=web, at most 1 is allowed", id="a host"
        ),
        pytest.param("rack", 1, WEB, "rack=r1 would have 4 pods matching app=web, at most 1 is allowed", id="a rack"),
    ],
)
def test_domains_that_are_too_full(topology: str, max_skew: int, labels: dict[str, str], text: str) -> None:
    running = [pod(f"w{n}", labels=WEB, on="n1") for n in range(3)]
    view = pod(labels=labels, spread=[spread(topology, max_skew=max_skew, app="web")])
    assert texts("n1", view, *ZONES, *running) == [text]


def test_a_node_outside_of_the_topology_needs_its_label() -> None:
    assert texts("n3", pod(spread=[spread(ZONE, app="web")]), *ZONES) == [f"needs the label {ZONE}"]


def test_every_constraint_that_would_break_is_reported() -> None:
    running = [pod(f"w{n}", labels=WEB, on="n1") for n in range(2)]
    view = pod(labels=WEB, spread=[spread(ZONE, app="web"), spread("rack", app="web")])
    assert len(texts("n1", view, *ZONES, *running)) == 2


def test_the_details_of_a_domain() -> None:
    (found,) = found_on("n1", pod(labels=WEB, spread=[spread(ZONE, app="web")]), *ZONES, pod("w", labels=WEB, on="n1"))
    assert found.kind is ObstacleKind.SPREAD
    assert found.details == {
        "topologyKey": ZONE, "domain": "a", "selector": "app=web", "matching": 2, "allowed": 1
    }  # fmt: skip


# Affinity


@pytest.mark.parametrize(
    ("term", "name", "text"),
    [
        pytest.param(pods_like(ZONE, app="db"), "n1", "no pod matching app=db in zone a", id="in a zone"),
        pytest.param(pods_like(HOSTNAME, app="db"), "n1", "no pod matching app=db on this node", id="on a host"),
        pytest.param(pods_like("rack", app="db"), "n1", "no pod matching app=db where rack=r1", id="in a rack"),
        pytest.param(pods_like(ZONE, app="db"), "n3", f"needs the label {ZONE}", id="outside of the topology"),
        pytest.param(
            pods_like(ZONE, namespaces=["x", "w"], app="db"), "n1",
            "no pod matching app=db of namespace w, x in zone a", id="of other namespaces",
        ),
        pytest.param(
            PodAffinityTerm(topology_key=ZONE), "n1", "no pod matching (no labelSelector) in zone a", id="nobody"
        ),
    ],
)  # fmt: skip
def test_friends_that_are_missing(term: PodAffinityTerm, name: str, text: str) -> None:
    assert texts(name, pod(near=[term]), *ZONES, pod("db", labels={"app": "db"}, on="n2", namespace="elsewhere")) == [
        text
    ]


def test_the_first_pod_of_a_group_misses_no_other_pod() -> None:
    assert texts("n1", pod(labels=WEB, near=[pods_like(ZONE, app="web")]), *ZONES) == []


# Anti-affinity, from both sides


@pytest.mark.parametrize(
    ("term", "text"),
    [
        pytest.param(
            pods_like(ZONE, app="web"), "keeps away from app=web: default/w0 and 1 other run in zone a", id="zone"
        ),
        pytest.param(
            pods_like(HOSTNAME, app="web"), "keeps away from app=web: default/w0 runs on this node", id="host"
        ),
    ],
)
def test_anti_affinity_of_the_pod(term: PodAffinityTerm, text: str) -> None:
    running = [pod("w0", labels=WEB, on="n1"), pod("w1", labels=WEB, on="n4")]
    assert texts("n1", pod(apart=[term]), *ZONES, node("n4", zone="a"), *running) == [text]


@pytest.mark.parametrize(
    ("topology", "hermits", "text"),
    [
        pytest.param(ZONE, 1, "default/h0 keeps it away from zone a", id="from a zone"),
        pytest.param(HOSTNAME, 1, "default/h0 keeps it away", id="from a node"),
        pytest.param(ZONE, 3, "default/h0 and 2 others keep it away from zone a", id="three of them"),
    ],
)
def test_anti_affinity_of_placed_pods(topology: str, hermits: int, text: str) -> None:
    running = [pod(f"h{n}", on="n1", apart=[pods_like(topology, app="web")]) for n in range(hermits)]
    found = found_on("n1", pod(labels=WEB), *ZONES, *running)
    assert [(obstacle.text, obstacle.kind) for obstacle in found] == [(text, ObstacleKind.ANTI_AFFINITY)]


def test_replicas_that_avoid_each_other_are_reported_once() -> None:
    signature: dict[str, Any] = {"labels": WEB, "apart": [pods_like(HOSTNAME, app="web")]}
    assert texts("n1", pod("new", **signature), *ZONES, pod("old", on="n1", **signature)) == [
        "keeps away from app=web: default/old runs on this node"
    ]


def test_namespaces_by_selector() -> None:
    term = pods_like(ZONE, namespaces_like=pods_like("", team="x").label_selector, app="web")
    running = [namespace("a", team="x"), pod("w", namespace="a", labels=WEB, on="n1")]
    assert texts("n1", pod(apart=[term]), *ZONES, *running) == [
        "keeps away from app=web of namespace a: a/w runs in zone a"
    ]
