"""A pod goes where its volumes are, or where volumes for it can be found or made."""

from __future__ import annotations

import pytest

from mooring.api.csi_translation import AWS_EBS
from mooring.api.storage import SELECTED_NODE, STORAGE_CLASS_BETA
from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.api.views.storage import Volume
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.plugin import SKIP, Proceed
from mooring.scheduler.framework.status import Code, Status
from mooring.scheduler.plugins.volume_binding.plugin import VolumeBinding
from tests.api.builders import selector
from tests.builders import HOSTNAME, ZONE, node, pod
from tests.scheduler.harness import decide, engine_of, live_rows, plugin_of, rejected_by, scored_by, settle
from tests.storage_builders import (
    allowing,
    bound,
    capacity,
    csi_driver,
    csi_node,
    ephemeral,
    from_nodes,
    storage_class,
    volume,
    waiting,
)

CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
DRIVER = "disks.example"
LOCAL = storage_class("local")
MADE = storage_class("made", provisioner=DRIVER)
NODES = (node("n1", zone="a"), node("n2", zone="b"))


# --- before filtering -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "view",
    [pytest.param(pod(), id="no volumes"), pytest.param(pod(volumes=[Volume(name="config")]), id="no claims")],
)
def test_pods_without_claims_are_none_of_its_business(view: Pod) -> None:
    assert rejected_by(engine_of(*NODES), VolumeBinding, view) is SKIP


@pytest.mark.parametrize(
    ("cluster", "volumes", "text"),
    [
        pytest.param([], ["c"], 'persistentvolumeclaim "c" not found', id="a claim that does not exist"),
        pytest.param(
            [],
            [ephemeral("v")],
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"',
            id="an ephemeral claim that does not exist yet",
        ),
        pytest.param(
            [waiting("p-v")],
            [ephemeral("v")],
            "PVC default/p-v was not created for pod default/p (pod is not owner)",
            id="an ephemeral claim of somebody else",
        ),
        pytest.param(
            [bound("c", to="v", phase="Lost")],
            ["c"],
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
            id="a claim that lost its volume",
        ),
        pytest.param(
            [bound("c", to="v", deleting=True)],
            ["c"],
            'persistentvolumeclaim "c" is being deleted',
            id="on its way out",
        ),
        pytest.param(
            [waiting("c", of_class=None)],
            ["c"],
            "pod has unbound immediate PersistentVolumeClaims",
            id="a claim without class should have been bound",
        ),
        pytest.param(
            [waiting("c", of_class="gone")],
            ["c"],
            "pod has unbound immediate PersistentVolumeClaims",
            id="so should one whose class does not exist",
        ),
        pytest.param(
            [waiting("c", of_class="now"), storage_class("now", binding="Immediate")],
            ["c"],
            "pod has unbound immediate PersistentVolumeClaims",
            id="and one whose class binds at once",
        ),
        pytest.param(
            [bound("c", to="v", of_class="local", completed=False), LOCAL],
            ["c"],
            "pod has unbound immediate PersistentVolumeClaims",
            id="and one that a user bound, until somebody confirms it",
        ),
    ],
)
def test_what_keeps_a_pod_from_every_node(cluster: list[ApiObject], volumes: list[str | Volume], text: str) -> None:
    claims = [volume for volume in volumes if isinstance(volume, str)]
    own = [volume for volume in volumes if isinstance(volume, Volume)]
    said = rejected_by(engine_of(*NODES, *cluster), VolumeBinding, pod("p", uid="1", claims=claims, volumes=own))
    assert said == Status(Code.UNRESOLVABLE, (text,))


def test_a_class_without_a_binding_mode_is_an_error() -> None:
    engine = engine_of(*NODES, storage_class("local", binding=None), waiting("c"))
    assert rejected_by(engine, VolumeBinding, pod(claims=["c"])) == Status(
        Code.ERROR, ('VolumeBindingMode not set for StorageClass "local"',)
    )


# --- bound claims -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cluster", "claims", "rejected"),
    [
        pytest.param([bound("c", to="v"), volume("v")], ["c"], {}, id="a volume that all nodes reach"),
        pytest.param(
            [bound("c", to="v"), volume("v", reached=from_nodes(ZONE, "a"))], ["c"], {"n2": (CONFLICT,)}, id="one zone"
        ),
        pytest.param(
            [bound("c", to="gone")], ["c"], {"n1": (MISSING,), "n2": (MISSING,)}, id="a volume that does not exist"
        ),
        pytest.param(
            [bound("c", to="v"), volume("v", reached=from_nodes(ZONE, "a")), bound("d", to="gone")],
            ["c", "d"],
            {"n1": (MISSING,), "n2": (CONFLICT,)},
            id="the first claim with an objection is reported",
        ),
        pytest.param(
            [
                bound("c", to="v"),
                volume("v", reached=from_nodes(ZONE, "a")),
                bound("d", to="w"),
                volume("w", reached=from_nodes(ZONE, "b")),
            ],
            ["c", "d"],
            {"n1": (CONFLICT,), "n2": (CONFLICT,)},
            id="volumes in different zones",
        ),
    ],
)
def test_bound_claims(cluster: list[ApiObject], claims: list[str], rejected: dict[str, tuple[str, ...]]) -> None:
    assert rejected_by(engine_of(*NODES, *cluster), VolumeBinding, pod(claims=claims)) == rejected


def test_an_in_tree_volume_is_its_drivers_where_the_driver_took_over() -> None:
    engine = engine_of(
        node("old", zone="a"),
        node("new", zone="a", labels={EBS_ZONE: "b"}),
        node("newer", zone="b", labels={EBS_ZONE: "a"}),
        csi_node("new", migrated=[AWS_EBS]),
        csi_node("newer", migrated=["kubernetes.io/gce-pd", AWS_EBS]),
        bound("c", to="v"),
        volume("v", ebs="vol-1", reached=from_nodes(ZONE, "a")),
    )
    assert rejected_by(engine, VolumeBinding, pod(claims=["c"])) == {"new": (CONFLICT,)}


def test_an_in_tree_volume_that_cannot_be_translated_is_an_error_there() -> None:
    engine = engine_of(
        *NODES,
        csi_node("n2", migrated=[AWS_EBS]),
        bound("c", to="v"),
        volume("v", ebs="aws://a/nonsense", reached=from_nodes(ZONE, "a")),
        waiting("d", of_class="local"),
        LOCAL,
    )
    fault = (
        "could not translate pv: failed to translate Kubernetes ID to EBS Volume ID "
        "Invalid format for AWS volume (aws://a/nonsense)"
    )
    assert rejected_by(engine, VolumeBinding, pod(claims=["c"])) == {"n2": (fault,)}
    assert rejected_by(engine, VolumeBinding, pod(claims=["c", "d"])) == {"n1": (NO_VOLUME,), "n2": (fault,)}
    assert decide(engine, pod(claims=["c"])).error == "filter"


# --- claims that wait -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cluster", "claims", "rejected"),
    [
        pytest.param([LOCAL, waiting("c")], ["c"], {"n1": (NO_VOLUME,), "n2": (NO_VOLUME,)}, id="no volume anywhere"),
        pytest.param(
            [LOCAL, waiting("c"), volume("v", of_class="local", reached=from_nodes(HOSTNAME, "n2"))],
            ["c"],
            {"n1": (NO_VOLUME,)},
            id="a volume on one node",
        ),
        pytest.param(
            [LOCAL, waiting("c"), waiting("d"), volume("v", of_class="local")],
            ["c", "d"],
            {"n1": (NO_VOLUME,), "n2": (NO_VOLUME,)},
            id="two claims, one volume",
        ),
        pytest.param([MADE, waiting("c", of_class="made")], ["c"], {}, id="a volume can be made anywhere"),
        pytest.param(
            [
                storage_class("made", provisioner=DRIVER, allowed=[allowing(**{ZONE: ["b"]})]),
                waiting("c", of_class="made"),
            ],
            ["c"],
            {"n1": (NO_VOLUME,)},
            id="a volume can be made in one zone",
        ),
        pytest.param(
            [
                MADE,
                csi_driver(DRIVER),
                waiting("c", of_class="made"),
                capacity("x", of_class="made", size="10Gi", reached=selector(**{ZONE: "a"})),
            ],
            ["c"],
            {"n2": (NO_SPACE,)},
            id="there is room in one zone",
        ),
        pytest.param(
            [
                MADE,
                csi_driver(DRIVER),
                waiting("c", of_class="made"),
                volume("v", of_class="made", reached=from_nodes(ZONE, "b")),
            ],
            ["c"],
            {"n1": (NO_SPACE,)},
            id="a volume that exists needs no room",
        ),
        pytest.param(
            [MADE, csi_driver(DRIVER), LOCAL, waiting("c", of_class="made", size="1Gi"), waiting("d", size="2Gi")],
            ["d", "c"],
            {"n1": (NO_SPACE,), "n2": (NO_SPACE,)},
            id="the smallest claim that finds nothing is reported",
        ),
        pytest.param(
            [MADE, waiting("c", of_class="made", on="n2")],
            ["c"],
            {"n1": (NO_VOLUME,)},
            id="a claim that has chosen a node goes there",
        ),
        pytest.param(
            [MADE, waiting("c", of_class="made", on="gone")],
            ["c"],
            {"n1": (NO_VOLUME,), "n2": (NO_VOLUME,)},
            id="or nowhere",
        ),
        pytest.param(
            [MADE, csi_driver(DRIVER), waiting("c", of_class="made", on="n2")],
            ["c"],
            {"n1": (NO_VOLUME,), "n2": (NO_SPACE,)},
            id="and needs room there",
        ),
        pytest.param(
            [LOCAL, waiting("c"), bound("d", to="w"), volume("w", reached=from_nodes(ZONE, "a"))],
            ["c", "d"],
            {"n1": (NO_VOLUME,), "n2": (CONFLICT, NO_VOLUME)},
            id="bound and unbound claims are both reported",
        ),
        pytest.param(
            [LOCAL, waiting("c"), bound("d", to="gone")],
            ["c", "d"],
            {"n1": (NO_VOLUME, MISSING), "n2": (NO_VOLUME, MISSING)},
            id="in kube-scheduler's order",
        ),
        pytest.param(
            [
                LOCAL,
                waiting("c", of_class=None, annotations={STORAGE_CLASS_BETA: "local"}),
                volume("v", of_class="local"),
            ],
            ["c"],
            {},
            id="the class by the beta annotation",
        ),
    ],
)
def test_claims_that_wait(cluster: list[ApiObject], claims: list[str], rejected: dict[str, tuple[str, ...]]) -> None:
    assert rejected_by(engine_of(*NODES, *cluster), VolumeBinding, pod(claims=claims)) == rejected


def test_a_faulty_selector_is_an_error_on_nodes_that_are_not_out_already() -> None:
    engine = engine_of(
        *NODES,
        LOCAL,
        MADE,
        waiting("c", like=selector("tier Bogus hot")),
        waiting("d", of_class="made", on="n2"),
    )
    fault = (
        'error creating internal label selector for claim: default/c: "Bogus" is not a valid label selector operator'
    )
    assert rejected_by(engine, VolumeBinding, pod(claims=["c", "d"])) == {"n1": (NO_VOLUME,), "n2": (fault,)}


def test_an_ephemeral_claim_of_the_pods_own_waits_like_any_other() -> None:
    view = pod("p", uid="1", volumes=[ephemeral("v")])
    engine = engine_of(*NODES, LOCAL, waiting("p-v", owner=view), volume("x", of_class="local"))
    assert rejected_by(engine, VolumeBinding, view) == {}


def test_the_result_is_the_same_for_any_rows() -> None:
    engine = engine_of(*NODES, LOCAL, waiting("c"), volume("v", of_class="local", reached=from_nodes(ZONE, "b")))
    plugin = plugin_of(engine, VolumeBinding)
    conflicts = plugin.pre_filter(engine.record(pod(claims=["c"])))
    assert isinstance(conflicts, Proceed)
    assert plugin.filter(conflicts.state, slice(0, 2)).tolist() == [2, 0]
    assert plugin.filter(conflicts.state, live_rows(engine)[1:]).tolist() == [0]


def test_it_never_scores() -> None:
    engine = engine_of(*NODES, LOCAL, waiting("c"), volume("v", of_class="local"))
    assert scored_by(engine, VolumeBinding, pod(claims=["c"])) is SKIP
    assert plugin_of(engine, VolumeBinding).score(None, slice(0, 2)).tolist() == [0, 0]


PROVISIONED = storage_class("made", provisioner="disks.example")


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
    assert rejected_by(engine, VolumeBinding, pod("second", uid="2", claims=["c"])) == {"n1": (NO_VOLUME,)}


def test_a_claim_for_which_a_volume_is_made_stays_with_its_node() -> None:
    engine = engine_of(*NODES, PROVISIONED, waiting("c", of_class="made"))
    assert settle(engine, pod("first", uid="1", claims=["c"], node_labels={HOSTNAME: "n2"})) == ["n2"]
    assert rejected_by(engine, VolumeBinding, pod("second", uid="2", claims=["c"])) == {"n1": (NO_VOLUME,)}


def test_reserved_for_returns_the_reserved_volumes() -> None:
    engine = engine_of(
        *NODES,
        LOCAL,
        PROVISIONED,
        waiting("c", uid="c"),
        waiting("d", of_class="made"),
        volume("v", of_class="local"),
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
    engine = engine_of(
        *NODES, LOCAL, PROVISIONED, waiting("c"), waiting("d", of_class="made"), volume("v", of_class="local")
    )
    other = pod("other", uid="2", claims=["e"])
    engine.put(waiting("e"))
    decision = _assumed(engine, pod("p", uid="1", claims=["c", "d"]))
    assert rejected_by(engine, VolumeBinding, other) == {"n1": (NO_VOLUME,), "n2": (NO_VOLUME,)}
    assert rejected_by(engine, VolumeBinding, pod("third", uid="3", claims=["d"])) == {"n2": (NO_VOLUME,)}
    engine.forget(decision.pod)
    assert rejected_by(engine, VolumeBinding, other) == {}
    assert rejected_by(engine, VolumeBinding, pod("third", uid="3", claims=["d"])) == {}
    assert plugin_of(engine, VolumeBinding).reserved_for(decision.pod) is None


def test_giving_back_leaves_what_another_pod_had_assumed_before() -> None:
    engine = engine_of(
        *NODES, LOCAL, PROVISIONED, waiting("c"), waiting("d", of_class="made"), volume("v", of_class="local")
    )
    _assumed(engine, pod("first", uid="1", claims=["c", "d"]))
    second = _assumed(engine, pod("second", uid="2", claims=["c", "d"]))
    engine.forget(second.pod)
    engine.put(waiting("e"))
    assert rejected_by(engine, VolumeBinding, pod("other", uid="3", claims=["e"])) != {}
    assert rejected_by(engine, VolumeBinding, pod("other", uid="3", claims=["d"])) == {"n2": (NO_VOLUME,)}


def test_what_the_watch_brings_beats_what_was_assumed() -> None:
    engine = engine_of(*NODES, LOCAL, waiting("c"), volume("v", of_class="local"))
    _assumed(engine, pod("p", uid="1", claims=["c"]))
    engine.put(waiting("e"))
    other = pod("other", uid="2", claims=["e"])
    assert rejected_by(engine, VolumeBinding, other) == {"n1": (NO_VOLUME,), "n2": (NO_VOLUME,)}
    engine.put(volume("v", of_class="local", version="2"))
    assert rejected_by(engine, VolumeBinding, other) == {}
    engine.put(volume("v", of_class="local", version="3", claimed_by="e", claimed_uid=""))
    assert rejected_by(engine, VolumeBinding, other) == {}
    assert rejected_by(engine, VolumeBinding, pod("p", uid="3", claims=["c"])) == {
        "n1": (NO_VOLUME,),
        "n2": (NO_VOLUME,),
    }


def _assumed(engine: Engine, view: Pod) -> Decision:
    decision = decide(engine, view)
    assert decision.is_placed, decision.message
    assert engine.assume(decision) is None
    return decision
