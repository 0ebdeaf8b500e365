"""Which Deployment has to be looked at after which change."""

from __future__ import annotations

from msgspec.structs import replace

from mooring.api.views.meta import OwnerReference
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Deployment, ReplicaSet
from mooring.client.cache.informer import Informer
from mooring.client.interface import Change
from mooring.client.workqueue import WorkQueue
from mooring.controllers.deployment.handlers import DeploymentHandlers
from mooring.controllers.pod_indexes import PodCountIndex
from mooring.controllers.pods import add_controller_index
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from tests.controllers.builders import deployment_view, pod_view, replica_set_view


class Ears:
    def __init__(self, *deployments: Deployment) -> None:
        self.queue: WorkQueue[str] = WorkQueue("test", VirtualClock(), Entropy(1))
        self.deployments: Informer[Deployment] = Informer("deployments")
        self.sets: Informer[ReplicaSet] = Informer("replicasets")
        self.pods: Informer[Pod] = Informer("pods")
        add_controller_index(self.sets)
        counts_by_labels = PodCountIndex(self.pods)
        DeploymentHandlers("test", self.queue, self.deployments, self.sets, self.pods, counts_by_labels)
        for deployment in deployments:
            self.deployments.apply(Change.ADDED, deployment)
        self.woken()

    def woken(self) -> list[str]:
        found = []
        while (key := self.queue.get_nowait()) is not None:
            self.queue.done(key)
            found.append(key)
        return found


def owned(name: str, by: str = "web", version: str = "1", labels: dict[str, str] | None = None) -> ReplicaSet:
    view = replica_set_view(name, labels=labels)
    references = (OwnerReference(kind="Deployment", name=by, uid=f"uid-{by}", controller=True),) if by else ()
    return replace(view, metadata=replace(view.metadata, owner_references=references, resource_version=version))


def pod_of(name: str, owner: str) -> Pod:
    pod = pod_view(name)
    reference = OwnerReference(kind="ReplicaSet", name=owner, uid=f"uid-{owner}", controller=True)
    return replace(pod, metadata=replace(pod.metadata, owner_references=(reference,)))


def test_a_set_wakes_the_deployment_that_controls_it() -> None:
    ears = Ears(deployment_view("web"), deployment_view("db"))
    ears.sets.apply(Change.ADDED, owned("web-1"))
    assert ears.woken() == ["default/web"]
    ears.sets.apply(Change.MODIFIED, owned("web-1", version="2"))
    assert ears.woken() == ["default/web"]
    ears.sets.apply(Change.DELETED, owned("web-1"))
    assert ears.woken() == ["default/web"]


def test_a_set_that_changes_hands_wakes_both() -> None:
    ears = Ears(deployment_view("web"), deployment_view("db"))
    ears.sets.apply(Change.ADDED, owned("x"))
    ears.woken()
    ears.sets.apply(Change.MODIFIED, owned("x", by="db", version="2"))
    assert ears.woken() == ["default/web", "default/db"]


def test_an_orphan_wakes_who_selects_it() -> None:
    ears = Ears(deployment_view("web"), deployment_view("db"))
    ears.sets.apply(Change.ADDED, owned("x", by="", labels={"app": "db"}))
    assert ears.woken() == ["default/db"]
    ears.sets.apply(Change.MODIFIED, owned("x", by="", labels={"app": "db"}, version="2"))
    assert ears.woken() == []
    ears.sets.apply(Change.MODIFIED, owned("x", by="", labels={"app": "web"}, version="3"))
    assert ears.woken() == ["default/web"]


def test_the_set_of_a_namesake_wakes_nobody() -> None:
    ears = Ears(deployment_view("web"))
    reference = OwnerReference(kind="Deployment", name="web", uid="an older one", controller=True)
    view = owned("x")
    ears.sets.apply(Change.ADDED, replace(view, metadata=replace(view.metadata, owner_references=(reference,))))
    assert ears.woken() == []


def test_only_the_last_pod_matters_and_only_to_recreate() -> None:
    ears = Ears(deployment_view("web", strategy="Recreate"), deployment_view("db"))
    for owner in ("web", "db"):
        ears.sets.apply(Change.ADDED, owned(f"{owner}-1", by=owner))
        for number in (1, 2):
            ears.pods.apply(Change.ADDED, pod_of(f"{owner}-1-{number}", f"{owner}-1"))
    ears.woken()
    ears.pods.apply(Change.DELETED, pod_of("web-1-1", "web-1"))
    ears.pods.apply(Change.DELETED, pod_of("db-1-1", "db-1"))
    ears.pods.apply(Change.DELETED, pod_of("db-1-2", "db-1"))
    assert ears.woken() == []
    ears.pods.apply(Change.DELETED, pod_of("web-1-2", "web-1"))
    assert ears.woken() == ["default/web"]
