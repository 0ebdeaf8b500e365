"""Disks that cannot be shared, and claims for one pod alone."""

from __future__ import annotations

import numpy as np
import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.api.views.storage import Volume
from mooring.scheduler.framework.plugin import SKIP, Proceed
from mooring.scheduler.framework.status import Code, Status
from mooring.scheduler.plugins.volume_restrictions import VolumeRestrictions
from tests.builders import claim, disk, node, pod
from tests.scheduler.harness import engine_of, plugin_of, rejected_by

NO_DISK = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
EXCLUSIVE = claim("mine", modes=["ReadWriteOncePod"])
SHARED = claim("ours")
NODES = (node("n1"), node("n2"))


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(pod(), id="a pod without volumes"),
        pytest.param(pod(volumes=[Volume(name="config")]), id="volumes that bind to nothing"),
        pytest.param(pod(claims=["ours"]), id="a claim that may be shared"),
        pytest.param(pod(claims=["mine"]), id="an exclusive claim that nobody uses"),
    ],
)
def test_pods_that_take_nothing_from_anybody_are_none_of_its_business(view: Pod) -> None:
    engine = engine_of(*NODES, EXCLUSIVE, SHARED, pod("user", uid="1", claims=["ours"], on="n1"))
    assert rejected_by(engine, VolumeRestrictions, view) is SKIP


def test_a_claim_that_does_not_exist_keeps_the_pod_from_every_node() -> None:
    engine = engine_of(*NODES, EXCLUSIVE)
    assert rejected_by(engine, VolumeRestrictions, pod(claims=["mine", "gone", "lost"])) == Status(
        Code.UNRESOLVABLE, ('persistentvolumeclaim "gone" not found',)
    )


@pytest.mark.parametrize(
    ("others", "rejected"),
    [
        pytest.param([pod("a", uid="1", volumes=[disk("d")], on="n1")], {"n1": (NO_DISK,)}, id="where it is held"),
        pytest.param([pod("a", uid="1", volumes=[disk("e")], on="n1")], {}, id="another disk is no matter"),
        pytest.param(
            [
                pod("a", uid="1", volumes=[disk("d")], on="n1"),
                pod("b", uid="2", claims=["mine"], on="n2"),
            ],
            {"n1": (NO_DISK,), "n2": (IN_USE,)},
            id="the disk is reported before the claim",
        ),
    ],
)
def test_a_disk_is_rejected_where_another_pod_holds_it(
    others: list[ApiObject], rejected: dict[str, tuple[str, ...]]
) -> None:
    engine = engine_of(*NODES, EXCLUSIVE, *others)
    assert rejected_by(engine, VolumeRestrictions, pod(volumes=[disk("d")], claims=["mine"])) == rejected


def test_an_exclusive_claim_in_use_is_rejected_everywhere() -> None:
    engine = engine_of(*NODES, EXCLUSIVE, pod("user", uid="1", claims=["mine"], on="n2"))
    assert rejected_by(engine, VolumeRestrictions, pod(claims=["mine"])) == {"n1": (IN_USE,), "n2": (IN_USE,)}


def test_the_same_claim_name_in_another_namespace_is_another_claim() -> None:
    engine = engine_of(*NODES, EXCLUSIVE, pod("user", uid="1", namespace="other", claims=["mine"], on="n2"))
    assert rejected_by(engine, VolumeRestrictions, pod(claims=["mine"])) is SKIP


@pytest.mark.parametrize(
    ("other", "claim_uses", "disk_holders"),
    [
        pytest.param(pod("a"), 0, 0, id="a pod without volumes"),
        pytest.param(pod("a", claims=["mine"]), 1, 0, id="a user of the claim"),
        pytest.param(pod("a", claims=["mine", "mine"]), 2, 0, id="who mentions it twice"),
        pytest.param(pod("a", namespace="other", claims=["mine"]), 1, 0, id="even in another namespace"),
        pytest.param(pod("a", claims=["ours"]), 0, 0, id="a claim that may be shared"),
        pytest.param(pod("a", volumes=[disk("d"), disk("d")]), 0, 1, id="a holder of the disk counts once"),
        pytest.param(pod("a", volumes=[disk("e")]), 0, 0, id="another disk"),
    ],
)
def test_what_a_pod_that_comes_or_goes_changes(other: Pod, claim_uses: int, disk_holders: int) -> None:
    engine = engine_of(*NODES, EXCLUSIVE, SHARED)
    plugin = plugin_of(engine, VolumeRestrictions)
    answer = plugin.pre_filter(engine.record(pod(volumes=[disk("d")], claims=["mine", "ours"])))
    assert isinstance(answer, Proceed)
    assert plugin.measures(answer.state) == 2
    assert tuple(plugin.contribution(answer.state, engine.record(other), 0)) == (claim_uses, disk_holders)


def test_differences_count_only_on_their_row() -> None:
    holder = pod("holder", uid="1", volumes=[disk("d")], on="n1")
    engine = engine_of(*NODES, EXCLUSIVE, holder, pod("user", uid="2", claims=["mine"], on="n1"))
    plugin = plugin_of(engine, VolumeRestrictions)
    answer = plugin.pre_filter(engine.record(pod(volumes=[disk("d")], claims=["mine"])))
    assert isinstance(answer, Proceed)
    rows = np.array([0, 1])
    assert plugin.filter(answer.state, rows).tolist() == [1, 2]
    without_user = np.array([[-1, 0], [0, 0]])
    assert plugin.filter_adjusted(answer.state, rows, without_user).tolist() == [1, 2]
    without_both = np.array([[-1, 0], [-1, 0]])
    assert plugin.filter_adjusted(answer.state, rows, without_both).tolist() == [0, 2]


def test_preemption_frees_an_exclusive_claim_by_evicting_its_user() -> None:
    user = pod("user", uid="1", claims=["mine"], on="n2", priority=1)
    engine = engine_of(*NODES, EXCLUSIVE, user)
    plugin = plugin_of(engine, VolumeRestrictions)
    answer = plugin.pre_filter(engine.record(pod(claims=["mine"], priority=10)))
    assert isinstance(answer, Proceed)
    gone = np.array([[0, -1], [0, 0]])
    assert plugin.filter_adjusted(answer.state, np.array([0, 1]), gone).tolist() == [2, 0]
