"""NodeVolumeLimits: how many volumes of a driver a node can attach."""

from __future__ import annotations

import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.api.views.storage import (
    AWSElasticBlockStoreVolumeSource,
    AzureFileVolumeSource,
    CSIVolumeSource,
    PersistentVolumeClaim,
    Volume,
)
from mooring.scheduler.cache.columns import Transaction
from mooring.scheduler.framework.plugin import SKIP, Proceed
from mooring.scheduler.framework.status import Code
from mooring.scheduler.plugins.node_volume_limits import ERRORS_MAX, NodeVolumeLimits
from tests.builders import claim_volume, node, pod
from tests.scheduler.harness import engine_of, live_rows, plugin_of, rejected_by
from tests.storage_builders import attachment, bound, csi_node, ephemeral, storage_class, volume, waiting

EBS = "ebs.csi.aws.com"
FULL = ("node(s) exceed max volume count",)
NONSENSE = (
    "converting volume(inline) from inline to csi: failed to translate Kubernetes ID to EBS Volume ID "
    "Invalid format for AWS volume (aws://a/nonsense)"
)


def _ebs(volume_id: str) -> Volume:
    return Volume(name="inline", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(volume_id=volume_id))


def _storage(*names: str) -> list[ApiObject]:
    """Claims by these names, each bound to a volume of the driver: "c1" to "v-c1"."""
    return [view for name in names for view in (bound(name, to=f"v-{name}"), volume(f"v-{name}", driver=EBS))]


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(pod(), id="a pod without volumes"),
        pytest.param(pod(volumes=[Volume(name="config")]), id="volumes that are not attached"),
        pytest.param(pod(volumes=[Volume(name="v", csi=CSIVolumeSource(driver=EBS))]), id="a driver's inline volume"),
    ],
)
def test_pods_that_attach_nothing_are_none_of_its_business(view: Pod) -> None:
    assert rejected_by(engine_of(node("n1"), csi_node("n1", {EBS: 0})), NodeVolumeLimits, view) is SKIP


@pytest.mark.parametrize(
    ("cluster", "view", "rejected"),
    [
        pytest.param(
            [csi_node("n1", {EBS: 1}), csi_node("n2", {EBS: 2}), *_storage("a", "b")],
            pod(claims=["a", "b"]),
            {"n1": FULL},
            id="both new volumes count",
        ),
        pytest.param([csi_node("n1", {EBS: 1}), *_storage("a")], pod(claims=["a"]), {}, id="a limit may be reached"),
        pytest.param(
            [csi_node("n1", {EBS: 1}), *_storage("a"), bound("also", to="v-a")],
            pod(claims=["a", "also", "a"]),
            {},
            id="two claims on one volume are one volume",
        ),
        pytest.param([csi_node("n1", {EBS: 0}), *_storage("a")], pod(claims=["a"]), {"n1": FULL}, id="a limit of none"),
        pytest.param([*_storage("a")], pod(claims=["a"]), {}, id="no CSINode, no limit"),
        pytest.param([csi_node("n1", {EBS: None}), *_storage("a")], pod(claims=["a"]), {}, id="no limit stated"),
        pytest.param(
            [csi_node("n1", {"other": 0}), *_storage("a")], pod(claims=["a"]), {}, id="another driver's limit"
        ),
        pytest.param(
            [csi_node("n1", {EBS: 1}), *_storage("a", "b"), pod("user", uid="1", claims=["b"], on="n1")],
            pod(claims=["a"]),
            {"n1": FULL},
            id="volumes of placed pods count",
        ),
        pytest.param(
            [csi_node("n1", {EBS: 1}), *_storage("a"), pod("user", uid="1", claims=["a"], on="n1")],
            pod(claims=["a"]),
            {},
            id="a volume that is there already costs nothing",
        ),
        pytest.param(
            [
                csi_node("n1", {EBS: 1}),
                *_storage("a", "b", "c"),
                pod("user", uid="1", claims=["a", "b", "c"], on="n1"),
            ],
            pod(claims=["a"]),
            {},
            id="not even on a node that is over its limit",
        ),
        pytest.param(
            [csi_node("n1", {EBS: 1}), *_storage("a", "b"), attachment("x", of="v-b", on="n1", by=EBS)],
            pod(claims=["a"]),
            {"n1": FULL},
            id="attached volumes count although no pod uses them",
        ),
        pytest.param(
            [csi_node("n1", {EBS: 1}), *_storage("a"), attachment("x", of="v-a", on="n1", by=EBS)],
            pod(claims=["a"]),
            {"n1": FULL},
            id="even the one that the pod wants: it counts as attached and as new",
        ),
        pytest.param(
            [
                csi_node("n1", {EBS: 2}),
                *_storage("a", "b"),
                pod("user", uid="1", claims=["b"], on="n1"),
                attachment("x", of="v-b", on="n1", by=EBS),
            ],
            pod(claims=["a"]),
            {},
            id="used and attached counts once",
        ),
        pytest.param(
            [
                csi_node("n1", {EBS: 1}),
                storage_class("s", provisioner=EBS),
                waiting("a", of_class="s"),
                waiting("b", of_class="s"),
            ],
            pod(claims=["a", "b"]),
            {"n1": FULL},
            id="volumes to come count",
        ),
        pytest.param(
            [csi_node("n1", {EBS: 0}), bound("a", to="v"), volume("v", ebs="vol-1")],
            pod(claims=["a"]),
            {"n1": FULL},
            id="an in-tree volume counts for its driver",
        ),
        pytest.param(
            [csi_node("n1", {EBS: 1}), *_storage("a")],
            pod(claims=["a"], volumes=[_ebs("vol-2")]),
            {"n1": FULL},
            id="so does a disk that the pod names itself",
        ),
        pytest.param(
            [csi_node("n1", {EBS: 0}), bound("a", to="v"), volume("v")],
            pod(claims=["a"]),
            {},
            id="a host path does not",
        ),
        pytest.param(
            [csi_node("n1", {"file.csi.azure.com": 0})],
            pod(volumes=[Volume(name="v", azure_file=AzureFileVolumeSource())]),
            {},
            id="nor an in-tree volume that the scheduler does not translate",
        ),
    ],
)
def test_which_nodes_can_attach_no_more(
    cluster: list[ApiObject], view: Pod, rejected: dict[str, tuple[str, ...]]
) -> None:
    assert rejected_by(engine_of(node("n1"), node("n2"), *cluster), NodeVolumeLimits, view) == rejected


def test_each_driver_has_its_own_limit() -> None:
    engine = engine_of(
        node("n1"),
        node("n2"),
        csi_node("n1", {EBS: 1, "other": 0}),
        csi_node("n2", {EBS: 1, "other": 1}),
        *_storage("a"),
        bound("b", to="w"),
        volume("w", driver="other"),
    )
    assert rejected_by(engine, NodeVolumeLimits, pod(claims=["a", "b"])) == {"n1": FULL}


@pytest.mark.parametrize(
    ("volumes", "rejected", "code"),
    [
        pytest.param(
            [claim_volume("gone")],
            dict.fromkeys(("n1", "n2"), 'looking up PVC default/gone: persistentvolumeclaim "gone" not found'),
            Code.UNRESOLVABLE,
            id="a claim that does not exist",
        ),
        pytest.param(
            [ephemeral("v")],
            dict.fromkeys(("n1", "n2"), "PVC default/p-v was not created for pod default/p (pod is not owner)"),
            Code.ERROR,
            id="an ephemeral claim of somebody else",
        ),
        pytest.param(
            [claim_volume("")],
            dict.fromkeys(("n1", "n2"), "PersistentVolumeClaim had no name"),
            Code.ERROR,
            id="a claim without a name",
        ),
        pytest.param(
            [_ebs("aws://a/nonsense")],
            {"n1": NONSENSE},
            Code.ERROR,
            id="a disk that nobody can name, where a driver would have to",
        ),
        pytest.param(
            [_ebs("aws://a/nonsense"), claim_volume("gone")],
            {
                "n1": NONSENSE,
                "n2": 'looking up PVC default/gone: persistentvolumeclaim "gone" not found',
            },
            Code.ERROR,
            id="the first thing that is wrong, and that differs between nodes",
        ),
    ],
)
def test_what_cannot_be_notified_of_the_pod(volumes: list[Volume], rejected: dict[str, str], code: Code) -> None:
    engine = engine_of(node("n1"), node("n2"), csi_node("n1", {EBS: 5}), waiting("p-v"))
    view = pod("p", uid="1", volumes=volumes)
    said = rejected_by(engine, NodeVolumeLimits, view)
    assert said == {name: (text,) for name, text in rejected.items()}
    plugin = plugin_of(engine, NodeVolumeLimits)
    answer = plugin.pre_filter(engine.record(view))
    assert isinstance(answer, Proceed)
    plugin.filter(answer.state, live_rows(engine))
    assert plugin.reasons(answer.state)[1].code is code


def test_a_placed_pod_whose_claim_belongs_to_another_pod_is_an_error_of_its_node() -> None:
    fault = "PVC default/web-v was not created for pod default/web (pod is not owner)"
    engine = engine_of(
        *(node(name) for name in ("n1", "n2", "n3")),
        csi_node("n1", {EBS: 5}),
        csi_node("n2", {EBS: None}),
        waiting("web-v"),
        *_storage("a"),
        *(pod("web", uid=on, volumes=[ephemeral("v")], on=on) for on in ("n1", "n2", "n3")),
    )
    assert rejected_by(engine, NodeVolumeLimits, pod(claims=["a"])) == {"n1": (fault,)}
    nothing_new = pod(claims=["no-driver"])
    engine.put(bound("no-driver", to="gone"))
    assert rejected_by(engine, NodeVolumeLimits, nothing_new) == {}


def test_beyond_a_limit_errors_share_a_text() -> None:
    names = [f"n{number:03}" for number in range(ERRORS_MAX + 10)]
    engine = engine_of(
        *(node(name) for name in names),
        *(csi_node(name, {EBS: 5}) for name in names),
        *(waiting(f"{name}-v") for name in names),
        *_storage("a"),
        *(pod(name, uid=name, volumes=[ephemeral("v")], on=name) for name in names),
    )
    said = rejected_by(engine, NodeVolumeLimits, pod(claims=["a"]))
    assert isinstance(said, dict)
    assert list(said) == names
    assert len(set(said.values())) == ERRORS_MAX
    assert said["n000"] == ("PVC default/n000-v was not created for pod default/n000 (pod is not owner)",)


def test_the_counts_follow_claims_that_are_bound_later() -> None:
    engine = engine_of(
        node("n1"),
        csi_node("n1", {EBS: 1}),
        *_storage("a"),
        waiting("late"),
        pod("u", uid="1", claims=["late"], on="n1"),
    )
    assert rejected_by(engine, NodeVolumeLimits, pod(claims=["a"])) == {}
    engine.put(volume("w", driver=EBS))
    engine.put(bound("late", to="w"))
    assert rejected_by(engine, NodeVolumeLimits, pod(claims=["a"])) == {"n1": FULL}
    engine.columns.objects.of(PersistentVolumeClaim).remove("default/late")
    assert rejected_by(engine, NodeVolumeLimits, pod(claims=["a"])) == {}


def test_loopback_of_a_what_if_the_changed_rows_are_evaluated() -> None:
    engine = engine_of(
        node("n1"), csi_node("n1", {EBS: 1}), *_storage("a", "b"), pod("user", uid="1", claims=["b"], on="n1")
    )
    plugin = plugin_of(engine, NodeVolumeLimits)
    answer = plugin.pre_filter(engine.record(pod(claims=["a"])))
    assert isinstance(answer, Proceed)
    rows = live_rows(engine)
    assert plugin.filter(answer.state, rows).tolist() == [1]
    with Transaction(engine.columns) as transaction:
        transaction.displace(engine.columns.pods["1"])
        assert plugin.filter(answer.state, rows).tolist() == [0]
    assert plugin.filter(answer.state, slice(0, 1)).tolist() == [1]
