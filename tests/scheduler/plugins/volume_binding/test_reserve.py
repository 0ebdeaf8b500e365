"""What VolumeBinding reserves for a pod: the next pod finds it taken, until it is given back."""

from __future__ import annotations

from mooring.api.storage import SELECTED_NODE
from mooring.api.views.pod import Pod
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
from mooring.scheduler.plugins.volume_binding.plugin import VolumeBinding
from tests.builders import HOSTNAME, node, pod
from tests.scheduler.harness import decide, engine_of, plugin_of, refused_by, settle
from tests.storage_builders import bound, from_nodes, storage_class, volume, waiting

NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
LOCAL = storage_class("local")
MADE = storage_class("made", provisioner="disks.example")
NODES = (node("n1", zone="a"), node("n2", zone="b"))


def test_a_volume_that_was_given_away_is_taken_for_the_next_pod() -> None:
    engine = engine_of(
        *NODES,
        LOCAL,
        *(waiting(name, uid=name) for name in ("c1", "c2", "c3")),
        volume("v1", of_class="local", reached=from_nodes(HOSTNAME, "n1")),
        volume("v2", of_class="local", reached=from_nodes(HOSTNAME, "n2")),
    )
    views = [pod(f"p{number}", uid=f"p{number}", claims=[f"c{number}"]) for number in (1, 2, 3)]
    assert settle(engine, *views) == ["n1", "n2", None]


def test_pods_that_share_a_claim_share_its_volume() -> None:
    engine = engine_of(
        *NODES,
        LOCAL,
        waiting("c", uid="c"),
        *(volume(f"v{name}", of_class="local", reached=from_nodes(HOSTNAME, name)) for name in ("n1", "n2")),
    )
    first = pod("first", uid="1", claims=["c"], node_labels={HOSTNAME: "n2"})
    assert settle(engine, first) == ["n2"]
    assert refused_by(engine, VolumeBinding, pod("second", uid="2", claims=["c"])) == {"n1": (NO_VOLUME,)}


def test_a_claim_for_which_a_volume_is_made_stays_with_its_node() -> None:
    engine = engine_of(*NODES, MADE, waiting("c", of_class="made"))
    assert settle(engine, pod("first", uid="1", claims=["c"], node_labels={HOSTNAME: "n2"})) == ["n2"]
    assert refused_by(engine, VolumeBinding, pod("second", uid="2", claims=["c"])) == {"n1": (NO_VOLUME,)}


def test_what_was_reserved_can_be_asked_for() -> None:
    engine = engine_of(
        *NODES, LOCAL, MADE, waiting("c", uid="c"), waiting("d", of_class="made"), volume("v", of_class="local")
    )
    decision = _assumed(engine, pod("p", uid="1", claims=["c", "d"]))
    reserved = plugin_of(engine, VolumeBinding).reserved_for(decision.pod)
    assert reserved is not None
    [binding] = reserved.bindings
    assert binding.claim.metadata.name == "c"
    assert binding.volume.spec.claim_ref is not None
    assert (binding.volume.metadata.name, binding.volume.spec.claim_ref.uid) == ("v", "c")
    [provision] = reserved.provisions
    assert provision.metadata.name == "d"
    assert provision.metadata.annotations[SELECTED_NODE] == decision.node_name


def test_nothing_is_reserved_for_bound_claims() -> None:
    engine = engine_of(*NODES, bound("c", to="v"), volume("v"))
    decision = _assumed(engine, pod("p", uid="1", claims=["c"]))
    assert plugin_of(engine, VolumeBinding).reserved_for(decision.pod) is None


def test_what_was_reserved_can_be_given_back() -> None:
    engine = engine_of(*NODES, LOCAL, MADE, waiting("c"), waiting("d", of_class="made"), volume("v", of_class="local"))
    other = pod("other", uid="2", claims=["e"])
    engine.put(waiting("e"))
    decision = _assumed(engine, pod("p", uid="1", claims=["c", "d"]))
    assert refused_by(engine, VolumeBinding, other) == {"n1": (NO_VOLUME,), "n2": (NO_VOLUME,)}
    assert refused_by(engine, VolumeBinding, pod("third", uid="3", claims=["d"])) == {"n2": (NO_VOLUME,)}
    engine.forget(decision.pod)
    assert refused_by(engine, VolumeBinding, other) == {}
    assert refused_by(engine, VolumeBinding, pod("third", uid="3", claims=["d"])) == {}
    assert plugin_of(engine, VolumeBinding).reserved_for(decision.pod) is None


def test_giving_back_leaves_what_another_pod_had_assumed_before() -> None:
    engine = engine_of(*NODES, LOCAL, MADE, waiting("c"), waiting("d", of_class="made"), volume("v", of_class="local"))
    _assumed(engine, pod("first", uid="1", claims=["c", "d"]))
    second = _assumed(engine, pod("second", uid="2", claims=["c", "d"]))
    engine.forget(second.pod)
    engine.put(waiting("e"))
    assert refused_by(engine, VolumeBinding, pod("other", uid="3", claims=["e"])) != {}
    assert refused_by(engine, VolumeBinding, pod("other", uid="3", claims=["d"])) == {"n2": (NO_VOLUME,)}


def test_what_the_watch_brings_beats_what_was_assumed() -> None:
    engine = engine_of(*NODES, LOCAL, waiting("c"), volume("v", of_class="local"))
    _assumed(engine, pod("p", uid="1", claims=["c"]))
    engine.put(waiting("e"))
    other = pod("other", uid="2", claims=["e"])
    assert refused_by(engine, VolumeBinding, other) == {"n1": (NO_VOLUME,), "n2": (NO_VOLUME,)}
    engine.put(volume("v", of_class="local", version="2"))
    assert refused_by(engine, VolumeBinding, other) == {}
    engine.put(volume("v", of_class="local", version="3", promised_to="e", promised_uid=""))
    assert refused_by(engine, VolumeBinding, other) == {}
    assert refused_by(engine, VolumeBinding, pod("p", uid="3", claims=["c"])) == {
        "n1": (NO_VOLUME,),
        "n2": (NO_VOLUME,),
    }


def _assumed(engine: Engine, view: Pod) -> Decision:
    decision = decide(engine, view)
    assert decision.is_placed, decision.message
    assert engine.assume(decision) is None
    return decision
