"""Plugins with short rules."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from mooring.api.decode import decode_as
from mooring.api.kinds import NAMESPACE, POD
from mooring.api.views.node import Node
from mooring.api.views.pod import ContainerRestartRule, Pod
from mooring.api.views.storage import ImageVolumeSource, Volume
from mooring.client.errors import ConflictError, NoAnswerError
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.scheduler.framework.plugin import SKIP, Plugin
from mooring.scheduler.framework.status import Status
from mooring.scheduler.plugins.default_binder import DefaultBinder
from mooring.scheduler.plugins.default_preemption import DefaultPreemption
from mooring.scheduler.plugins.image_locality import ImageLocality, locality_score, normalized_image_name
from mooring.scheduler.plugins.node_affinity import NodeAffinity
from mooring.scheduler.plugins.node_declared_features import (
    RESTART_ALL_CONTAINERS,
    USER_NAMESPACES_HOST_NETWORK,
    NodeDeclaredFeatures,
    needed_features,
)
from mooring.scheduler.plugins.node_name import NodeName
from mooring.scheduler.plugins.node_ports import NodePorts
from mooring.scheduler.plugins.node_unschedulable import NodeUnschedulable
from mooring.scheduler.plugins.priority_sort import PrioritySort
from mooring.scheduler.plugins.scheduling_gates import SchedulingGates
from mooring.scheduler.plugins.taint_toleration import TaintToleration
from tests.api.builders import container, node_selector, term
from tests.api_servers import open_loopback_client
from tests.builders import MIB, namespace, node, pod
from tests.scheduler.config.builders import with_arguments
from tests.scheduler.harness import decide, engine_of, plugin_of, rejected_by, scored_by
from tests.scheduler.queueing import Change, queues
from tests.scheduler.world import plain

CORDON = "node.kubernetes.io/unschedulable:NoSchedule"


def with_host_users(view: Pod, host_users: bool) -> Pod:
    return replace(view, spec=replace(view.spec, host_network=True, host_users=host_users))


@pytest.mark.parametrize(
    ("old", "new", "is_queued"),
    [
        pytest.param(pod(gates=["wait"]), pod(), True, id="the last gate was opened"),
        pytest.param(pod(gates=["a", "b"]), pod(gates=["b"]), False, id="another gate is closed still"),
        pytest.param(pod(gates=["wait"]), pod(gates=["wait"], labels={"a": "b"}), False, id="something else changed"),
        pytest.param(pod("other", gates=["wait"]), pod("other"), False, id="it was another pod's gate"),
    ],
)
def test_a_gated_pod_waits_for_its_own_gates(old: Pod, new: Pod, is_queued: bool) -> None:
    assert queues(SchedulingGates, pod(gates=["wait"]), before=old, after=new) is is_queued


@pytest.mark.parametrize(
    ("tolerations", "old", "new", "is_queued"),
    [
        pytest.param([], None, node(), True, id="a node without taints came"),
        pytest.param([], None, node(taints=["gpu:NoSchedule"]), False, id="a node with a taint came"),
        pytest.param([], None, node(taints=["old:PreferNoSchedule"]), True, id="a node with a soft taint came"),
        pytest.param(["gpu:NoSchedule"], None, node(taints=["gpu:NoSchedule"]), True, id="a tolerable node came"),
        pytest.param([], node(taints=["gpu:NoSchedule"]), node(), True, id="a taint was taken away"),
        pytest.param(
            [], node(taints=["a:NoSchedule", "b:NoExecute"]), node(taints=["a:NoSchedule"]), False, id="one of two"
        ),
        pytest.param(["gpu"], node(taints=["gpu:NoSchedule"]), node(), False, id="one that was tolerated anyway"),
        pytest.param([], node(), node(taints=["gpu:NoSchedule"]), False, id="a taint was added"),
        pytest.param(
            [], node(taints=["gpu:NoSchedule"]), node(taints=["gpu:NoSchedule"], zone="a"), False, id="a label"
        ),
    ],
)
def test_a_pod_that_nodes_are_tainted_against(
    tolerations: list[str], old: Node | None, new: Node, is_queued: bool
) -> None:
    assert queues(TaintToleration, pod(tolerations=tolerations), before=old, after=new) is is_queued


@pytest.mark.parametrize(
    ("old", "new", "is_queued"),
    [
        pytest.param(None, node(), True, id="a node came"),
        pytest.param(None, node(unschedulable=True), False, id="a cordoned node came"),
        pytest.param(node(unschedulable=True), node(), True, id="a node was uncordoned"),
        pytest.param(node(), node(unschedulable=True), False, id="a node was cordoned"),
        pytest.param(node(), node(taints=["gpu:NoSchedule"]), False, id="a node was tainted"),
    ],
)
def test_a_pod_that_only_cordoned_nodes_would_take(old: Node | None, new: Node, is_queued: bool) -> None:
    assert queues(NodeUnschedulable, pod(), before=old, after=new) is is_queued


@pytest.mark.parametrize(
    ("plugin", "old", "new", "is_queued"),
    [
        pytest.param(TaintToleration, pod(), pod(tolerations=["gpu"]), True, id="taints: whatever it tolerates"),
        pytest.param(TaintToleration, pod("q"), pod("q", tolerations=["gpu"]), False, id="taints: another pod"),
        pytest.param(TaintToleration, pod(), pod(labels={"a": "b"}), False, id="taints: something else changed"),
        pytest.param(NodeUnschedulable, pod(), pod(tolerations=[CORDON]), True, id="cordons: tolerates cordons"),
        pytest.param(NodeUnschedulable, pod(), pod(tolerations=["gpu"]), False, id="cordons: tolerates others"),
        pytest.param(NodeUnschedulable, pod("q"), pod("q", tolerations=[CORDON]), False, id="cordons: another pod"),
    ],
)
def test_a_pod_that_tolerates_more(plugin: type[Plugin], old: Pod, new: Pod, is_queued: bool) -> None:
    assert queues(plugin, pod(), before=old, after=new) is is_queued


@pytest.mark.parametrize(
    ("change", "is_queued"),
    [
        pytest.param({"came": node()}, True, id="a node came"),
        pytest.param({"before": node(), "after": node(taints=["a:NoSchedule"])}, True, id="some taint changed"),
        pytest.param({"before": node(), "after": node(zone="a")}, False, id="a label changed"),
        pytest.param({"gone": pod(on="n1")}, False, id="a pod is gone"),
    ],
)
def test_a_pod_that_names_its_node(change: Change, is_queued: bool) -> None:
    assert queues(NodeName, pod(), **change) is is_queued


@pytest.mark.parametrize(
    ("change", "is_queued"),
    [
        pytest.param({"gone": pod("q", ports=["80"], on="n1")}, True, id="the port is free"),
        pytest.param({"gone": pod("q", ports=["10.0.0.1:80"], on="n1")}, True, id="on one address"),
        pytest.param({"gone": pod("q", ports=["80/UDP"], on="n1")}, False, id="of another protocol"),
        pytest.param({"gone": pod("q", ports=["8080"], on="n1")}, False, id="another port is free"),
        pytest.param({"gone": pod("q", on="n1")}, False, id="a pod without ports is gone"),
        pytest.param({"gone": pod("q", ports=["80"])}, False, id="a pod is gone that had no node"),
        pytest.param({"gone": pod("q", ports=["80"], nominated="n1")}, True, id="or the promise of one"),
        pytest.param({"came": node()}, True, id="a node came"),
        pytest.param({"came": pod("q", ports=["80"], on="n1")}, False, id="a pod came"),
    ],
)
def test_hints_of_a_pod_with_a_host_port(change: Change, is_queued: bool) -> None:
    assert queues(NodePorts, pod(ports=["443", "80"]), **change) is is_queued


@pytest.mark.parametrize(
    ("mine", "freed", "is_queued"),
    [
        ("10.0.0.1:80", "10.0.0.1:80", True),
        ("10.0.0.1:80", "10.0.0.2:80", False),
        ("10.0.0.1:80", "80", True),
    ],
)
def test_ports_collide_on_one_address(mine: str, freed: str, is_queued: bool) -> None:
    assert queues(NodePorts, pod(ports=[mine]), gone=pod("q", ports=[freed], on="n1")) is is_queued


OF_TEAM_A = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "team", "operator": "In", "values": ["a"]}]}]}
ADDED = {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": OF_TEAM_A}}
FAULTY = pod(nodes=node_selector(term("disk Like ssd")))


@pytest.mark.parametrize(
    ("rejected", "old", "new", "is_queued"),
    [
        pytest.param(pod(node_labels={"disk": "ssd"}), None, node(labels={"disk": "ssd"}), True, id="a match came"),
        pytest.param(pod(node_labels={"disk": "ssd"}), None, node(labels={"disk": "hdd"}), False, id="another came"),
        pytest.param(
            pod(node_labels={"disk": "ssd"}), node(), node(labels={"disk": "ssd"}), True, id="a node has become one"
        ),
        pytest.param(
            pod(node_labels={"disk": "ssd"}),
            node(labels={"disk": "ssd"}),
            node(labels={"disk": "ssd", "a": "b"}),
            False,
            id="a node was one before",
        ),
        pytest.param(
            pod(node_labels={"disk": "ssd"}), node(labels={"disk": "ssd"}), node(), False, id="a node is none any more"
        ),
        pytest.param(
            pod(nodes=node_selector(term("disk In ssd"), term("zone Exists"))),
            node(),
            node(labels={"zone": ""}),
            True,
            id="one of several terms matches",
        ),
        pytest.param(FAULTY, None, node(), True, id="what cannot be evaluated may help"),
        pytest.param(FAULTY, node(), node(labels={"a": "b"}), True, id="also of a node that changes"),
    ],
)
def test_hints_of_a_pod_with_node_affinity(rejected: Pod, old: Node | None, new: Node, is_queued: bool) -> None:
    assert queues(NodeAffinity, rejected, before=old, after=new) is is_queued


@pytest.mark.parametrize(
    ("old", "new", "is_queued"),
    [
        pytest.param(None, node(labels={"team": "a"}), True, id="a node came that the profile wants"),
        pytest.param(None, node(labels={"team": "b"}), False, id="a node came that it does not want"),
        pytest.param(node(), node(labels={"team": "a"}), False, id="kube-scheduler compares the pod's wishes only"),
    ],
)
def test_hints_of_a_profile_with_added_affinity(old: Node | None, new: Node, is_queued: bool) -> None:
    assert queues(NodeAffinity, pod(), before=old, after=new, config=with_arguments("NodeAffinity", ADDED)) is is_queued


@pytest.mark.parametrize(
    ("change", "is_queued"),
    [
        pytest.param({"came": node()}, True, id="a node came"),
        pytest.param({"before": node(), "after": node(features=["Fast"])}, True, id="a node declares a feature"),
        pytest.param({"before": node(), "after": node(zone="a")}, False, id="a label changed"),
        pytest.param(
            {"before": with_host_users(pod(), False), "after": with_host_users(pod(), True)}, True, id="it needs less"
        ),
        pytest.param(
            {"before": pod(), "after": pod(labels={"a": "b"})}, False, id="it has another label and needs the same"
        ),
        pytest.param(
            {"before": with_host_users(pod("q"), False), "after": with_host_users(pod("q"), True)},
            False,
            id="another pod needs less",
        ),
    ],
)
def test_a_pod_that_needs_a_feature(change: Change, is_queued: bool) -> None:
    assert queues(NodeDeclaredFeatures, with_host_users(pod(), False), **change) is is_queued


def test_preemption_registers_no_event_that_queues_pods() -> None:
    assert not queues(DefaultPreemption, pod(), gone=pod("q", on="n1"))


# --- PrioritySort: more important pods first, then those that have waited longer -------------------------------------


def test_the_order_of_the_queue() -> None:
    engine = engine_of()
    plugin = plugin_of(engine, PrioritySort)
    queued = [
        ("late", 5, 9.0),
        ("silent", None, 1.0),
        ("early", 5, 2.0),
        ("humble", -3, 0.0),
        ("urgent", 2**31 - 1, 99.0),
    ]
    keys = {
        name: plugin.queue_key(engine.record(pod(name, priority=priority)), since_s)
        for name, priority, since_s in queued
    }
    assert sorted(keys, key=lambda name: keys[name]) == ["urgent", "early", "late", "silent", "humble"]


# --- SchedulingGates: a pod with gates does not enter the queue ------------------------------------------------------


@pytest.mark.parametrize(
    ("gates", "text"), [(["quota"], "[quota]"), (["quota", "network"], "[quota network]")], ids=["one", "several"]
)
def test_gates_are_named(gates: list[str], text: str) -> None:
    engine = engine_of(node("n1"))
    answer = plugin_of(engine, SchedulingGates).pre_enqueue(engine.record(pod(gates=gates)))
    assert answer == Status.unresolvable(f"waiting for scheduling gates: {text}")


def test_without_gates_a_pod_may_pass() -> None:
    engine = engine_of(node("n1"))
    assert plugin_of(engine, SchedulingGates).pre_enqueue(engine.record(pod())) is None


def test_pods_of_one_template_have_their_own_gates() -> None:
    engine = engine_of(node("n1"))
    assert engine.decide(engine.record(pod("gated", gates=["g"]))).node_name is None
    assert engine.decide(engine.record(pod("free"))).node_name == "n1"


# --- NodeDeclaredFeatures: features of the kubelet without which a pod cannot run as it is written -------------------


RESTARTING = replace(container(), restart_policy_rules=(ContainerRestartRule(action="RestartAllContainers"),))
PLAIN = pod()


def with_network(*, host_network: bool, host_users: bool | None) -> Pod:
    return replace(PLAIN, spec=replace(PLAIN.spec, host_network=host_network, host_users=host_users))


@pytest.mark.parametrize(
    ("view", "needed"),
    [
        (PLAIN, set()),
        (pod(containers=[container(), RESTARTING]), {RESTART_ALL_CONTAINERS}),
        (pod(init=[RESTARTING]), {RESTART_ALL_CONTAINERS}),
        (with_network(host_network=True, host_users=False), {USER_NAMESPACES_HOST_NETWORK}),
        (with_network(host_network=True, host_users=None), set()),
        (with_network(host_network=True, host_users=True), set()),
        (with_network(host_network=False, host_users=False), set()),
    ],
)
def test_what_a_pod_needs(view: Pod, needed: set[str]) -> None:
    assert needed_features(view.spec) == needed


def test_nodes_must_declare_all_of_it() -> None:
    engine = engine_of(node("old"), node("new", features=[RESTART_ALL_CONTAINERS, "Other"]), node("gone"))
    engine.remove(node("gone"))
    rejected = rejected_by(engine, NodeDeclaredFeatures, pod(containers=[RESTARTING]))
    assert rejected == {"old": ("node(s) didn't match Pod's required features",)}
    assert rejected_by(engine, NodeDeclaredFeatures, PLAIN) is SKIP


# --- DefaultBinder: asks the API server, and lets what it says against it through ------------------------------------


def bound_to(*node_names: str) -> str:
    """Binds a pod to one node after the other. Its node, or the first conflict."""

    async def story() -> str:
        async with open_loopback_client(VirtualClock()) as client:
            await client.create(NAMESPACE, "", plain(namespace("shop")))
            created = decode_as(Pod, await client.create(POD, "shop", plain(pod("web", namespace="shop"))))
            record = engine_of().record(created)
            try:
                for node_name in node_names:
                    await DefaultBinder(client).bind(record, node_name)
            except ConflictError as error:
                return str(error)
            return decode_as(Pod, await client.get(POD, "shop", "web")).spec.node_name

    return run(story())


def test_the_pod_is_bound() -> None:
    assert bound_to("n1") == "n1"


def test_errors_of_the_api_server_are_raised() -> None:
    assert 'pod web is already assigned to node "n1"' in bound_to("n1", "n2")


def test_an_engine_alone_binds_nothing() -> None:
    engine = engine_of(node("n1"))

    async def binding() -> None:
        await plugin_of(engine, DefaultBinder).bind(engine.record(pod("web")), "n1")

    with pytest.raises(NoAnswerError, match="cannot bind default/web to n1: there is no API server here"):
        run(binding())


# --- ImageLocality: images that a node has already, and how widely they are spread


@pytest.mark.parametrize(
    ("mebibytes", "containers", "score"),
    [
        pytest.param(0, 1, 0, id="nothing"),
        pytest.param(23, 1, 0, id="up to 23 MiB is nothing"),
        pytest.param(1000, 1, 100, id="1000 MiB for each container are everything"),
        pytest.param(5000, 1, 100, id="and more is not more"),
        pytest.param(1000, 2, 49, id="of two containers it is half"),
        pytest.param(500, 1, 48, id="in between it is cut off"),
        pytest.param(0, 0, 0, id="no containers at all"),
    ],
)
def test_a_share_of_what_would_be_enough(mebibytes: int, containers: int, score: int) -> None:
    assert locality_score(np.array([mebibytes * MIB]), containers).tolist() == [score]


def image(name: str) -> Pod:
    return pod(image=name)


BIG, SMALL = 2000 * MIB, 100 * MIB


@pytest.mark.parametrize(
    ("wanting", "scores"),
    [
        pytest.param(image("big:1"), {"n1": 100, "n2": 0}, id="half of the nodes have it: half its size counts"),
        pytest.param(image("small:1"), {"n1": 7, "n2": 7}, id="all nodes have it: all of it counts"),
        pytest.param(image("rare:1"), {"n1": 0, "n2": 2}, id="a small share of a small image"),
        pytest.param(image("unknown:1"), {"n1": 0, "n2": 0}, id="nobody has it"),
        pytest.param(image("latest"), {"n1": 0, "n2": 7}, id="a name without a tag means the latest"),
        pytest.param(
            pod(image="small:1", volumes=[Volume(name="v", image=ImageVolumeSource(reference="big:1"))]),
            {"n1": 100, "n2": 7},
            id="images of volumes count too",
        ),
    ],
)
def test_how_much_of_a_pods_images_is_there(wanting: Pod, scores: dict[str, int]) -> None:
    engine = engine_of(
        node("n1", images={"big:1": BIG, "small:1": SMALL}),
        node("n2", images={"small:1": SMALL, "rare:1": SMALL, "latest:latest": 2 * SMALL}),
    )
    assert scored_by(engine, ImageLocality, wanting) == scores


def test_scores_that_are_kept_follow_the_images_of_other_nodes() -> None:
    """An image is worth more on every node, the more nodes have it."""
    engine = engine_of(node("n1", images={"big:1": 1000 * MIB}), node("n2"))
    assert decide(engine, image("big:1")).scores["n1"]["ImageLocality"] == 48
    engine.put(node("n2", images={"big:1": 1000 * MIB}))
    assert decide(engine, image("big:1")).scores["n1"]["ImageLocality"] == 100
    engine.put(node("n3"))
    engine.put(node("n4"))
    assert decide(engine, image("big:1")).scores["n1"]["ImageLocality"] == 48


# --- Names of images -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "normalized"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1.25", "nginx:1.25"),
        ("registry:5000/nginx", "registry:5000/nginx:latest"),
        ("registry:5000/nginx:1.25", "registry:5000/nginx:1.25"),
        ("nginx@sha256:abc", "nginx@sha256:abc"),
        ("", ":latest"),
    ],
)
def test_an_image_without_a_tag_means_latest(written: str, normalized: str) -> None:
    assert normalized_image_name(written) == normalized


# --- TaintToleration: taints that reject a pod, and taints that lower a score. NodeUnschedulable


NODES = (
    node("clean"),
    node("gpu", taints=["gpu=true:NoSchedule"]),
    node("down", taints=["down:NoExecute"]),
    node("old", taints=["old:PreferNoSchedule", "slow:PreferNoSchedule"]),
    node("slow", taints=["slow:PreferNoSchedule"]),
)


@pytest.mark.parametrize(
    ("tolerating", "rejecting"),
    [
        pytest.param(pod(), {"gpu", "down"}, id="nothing tolerated"),
        pytest.param(pod(tolerations=["gpu=true:NoSchedule"]), {"down"}, id="one of them"),
        pytest.param(pod(tolerations=["gpu=false:NoSchedule", "down"]), {"gpu"}, id="another value is not enough"),
        pytest.param(pod(tolerations=[""]), set(), id="everything tolerated"),
    ],
)
def test_nodes_with_untolerated_taints_are_rejected(tolerating: Pod, rejecting: set[str]) -> None:
    rejected = rejected_by(engine_of(*NODES), TaintToleration, tolerating)
    assert rejected == dict.fromkeys(rejecting, ("node(s) had untolerated taint(s)",))


@pytest.mark.parametrize(
    ("tolerating", "scores"),
    [
        pytest.param(pod(), {"clean": 100, "gpu": 100, "down": 100, "old": 0, "slow": 50}, id="the more the worse"),
        pytest.param(
            pod(tolerations=["old:PreferNoSchedule"]),
            {"clean": 100, "gpu": 100, "down": 100, "old": 0, "slow": 0},
            id="tolerated ones do not count",
        ),
        pytest.param(
            pod(tolerations=["old:NoSchedule", "slow"]),
            {"clean": 100, "gpu": 100, "down": 100, "old": 0, "slow": 100},
            id="tolerations for other effects do not help",
        ),
        pytest.param(
            pod(tolerations=[""]),
            {"clean": 100, "gpu": 100, "down": 100, "old": 100, "slow": 100},
            id="nothing to avoid",
        ),
    ],
)
def test_untolerated_preferences_lower_the_score(tolerating: Pod, scores: dict[str, int]) -> None:
    assert scored_by(engine_of(*NODES), TaintToleration, tolerating) == scores


def test_what_is_avoided_is_measured_among_the_nodes_that_fit() -> None:
    assert scored_by(engine_of(*NODES), TaintToleration, pod(), feasible=["slow", "clean"]) == {"slow": 0, "clean": 100}


# --- NodeUnschedulable: cordoned nodes -------------------------------------------------------------------------------


CORDON_TAINT = "node.kubernetes.io/unschedulable"


def test_a_cordoned_node_rejects() -> None:
    engine = engine_of(node("n1"), node("n2", unschedulable=True))
    assert rejected_by(engine, NodeUnschedulable, pod()) == {"n2": ("node(s) were unschedulable",)}
    engine.put(node("n2"))
    assert rejected_by(engine, NodeUnschedulable, pod()) == {}


@pytest.mark.parametrize("toleration", [f"{CORDON_TAINT}:NoSchedule", CORDON_TAINT, ":NoSchedule", ""])
def test_a_pod_that_tolerates_the_cordon_goes_anywhere(toleration: str) -> None:
    assert (
        rejected_by(engine_of(node("n1", unschedulable=True)), NodeUnschedulable, pod(tolerations=[toleration])) is SKIP
    )


def test_another_effect_is_not_enough() -> None:
    engine = engine_of(node("n1", unschedulable=True))
    rejected = rejected_by(engine, NodeUnschedulable, pod(tolerations=[f"{CORDON_TAINT}:NoExecute"]))
    assert rejected == {"n1": ("node(s) were unschedulable",)}
