"""A small cluster for tests: an API server on a store in memory and kubelets, on virtual time with one seed.

async def story(play: Play) -> None:
    await play.create(pod("web", on="node-0"))
    await play.wait(1.0)
    assert await play.line("web") == "Running ready main=running"

played(story)

Pods with all fields, from the bodies of `harness`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from mooring.api.decode import convert_as
from mooring.api.kinds import NODE, POD
from mooring.client.errors import NotFoundError
from mooring.client.interface import Client, Deletion, PatchForm
from mooring.kit.clock import Clock, VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.kubelets import Kubelets
from mooring.kubelet.references import NodeFacts
from mooring.kubelet.settings import KubeletSettings
from mooring.kubelet.views import FullContainer, FullPod, KubeletPod
from tests.api_servers import open_loopback_client

Body = dict[str, Any]
REGISTERED_S = 1.0

_STATUS_LISTS = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


def pod(name: str = "web", *, on: str = "node-0", stage_set: str = "", **changes: Any) -> Body:
    """A pod on a node. `changes` go to its spec; those called labels, annotations and owners to its metadata."""
    metadata: Body = {"name": name, "namespace": "default"}
    for field in ("labels", "annotations"):
        if field in changes:
            metadata[field] = dict(changes.pop(field))
    if stage_set:
        metadata.setdefault("annotations", {})["mooring.dev/stages"] = stage_set
    if "owner" in changes:
        kind = changes.pop("owner")
        owner = {"apiVersion": "batch/v1", "kind": kind, "name": "owner", "uid": "owner-uid", "controller": True}
        metadata["ownerReferences"] = [owner]
    spec: Body = {"nodeName": on, "containers": [container()], "terminationGracePeriodSeconds": 30, **changes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def container(name: str = "main", image: str = "example.com/web:1", **changes: Any) -> Body:
    return {"name": name, "image": image, **changes}


def view(body: Body, *, uid: str = "uid-1", generation: int = 1) -> KubeletPod:
    """A body as a kubelet reads it."""
    metadata = {"uid": uid, "generation": generation, **body["metadata"]}
    return convert_as(KubeletPod, {**body, "metadata": metadata})


def line_of(body: Body) -> str:
    """A pod's status in one line: phase, reason, readiness, and each container's state and restarts."""
    status = body["status"]
    conditions = {condition["type"]: condition["status"] for condition in status.get("conditions", ())}
    words = [status["phase"]]
    if status.get("reason"):
        words.append(f"({status['reason']})")
    if body["metadata"].get("deletionTimestamp"):
        words.append("terminating")
    if conditions.get("Ready") == "True":
        words.append("ready")
    for field in _STATUS_LISTS:
        words += [_container_state(each) for each in status.get(field, ())]
    return " ".join(words)


def _container_state(status: Body) -> str:
    (kind, state), *_ = status["state"].items()
    detail = ""
    if kind == "waiting":
        detail = f":{state['reason']}"
    elif kind == "terminated":
        detail = f":{state['reason']}({state['exitCode']})"
    elif not status["ready"]:
        detail = ":unready"
    restarts = f"*{status['restartCount']}" if status["restartCount"] else ""
    return f"{status['name']}={kind}{detail}{restarts}"


class Play:
    """What a story can do and see."""

    def __init__(self, client: Client, clock: Clock, kubelets: Kubelets) -> None:
        self.client = client
        self.clock = clock
        self.kubelets = kubelets

    async def wait(self, delay_s: float) -> None:
        await self.clock.wait(delay_s)

    async def create(self, body: Body) -> None:
        await self.client.create(POD, "default", body)

    async def delete(self, name: str, grace_s: int | None = None) -> None:
        await self.client.delete(POD, "default", name, Deletion(grace_s=grace_s))

    async def pod(self, name: str) -> Body:
        plain: Body = msgspec.json.decode(await self.client.get(POD, "default", name))
        return plain

    async def status(self, name: str) -> Body:
        status: Body = (await self.pod(name)).get("status", {})
        return status

    async def line(self, name: str) -> str:
        """The pod's status in one line; `gone` if there is no such pod."""
        try:
            return line_of(await self.pod(name))
        except NotFoundError:
            return "gone"

    async def node(self, name: str) -> Body:
        plain: Body = msgspec.json.decode(await self.client.get(NODE, "", name))
        return plain

    async def annotate_node(self, name: str, annotations: dict[str, str | None]) -> None:
        await self.client.patch(NODE, "", name, {"metadata": {"annotations": annotations}}, form=PatchForm.MERGE)

    async def change(self, name: str, patch: Body, *, subresource: str = "") -> None:
        await self.client.patch(POD, "default", name, patch, form=PatchForm.STRATEGIC, subresource=subresource)

    async def timeline(self, name: str, until_s: float, step_s: float = 0.1) -> list[str]:
        """Each status of a pod that is another than the one before, with the time since now."""
        began_s = self.clock.now_s()
        lines: list[str] = []
        last = ""
        while self.clock.now_s() < began_s + until_s:
            line = await self.line(name)
            if line != last:
                lines.append(f"{self.clock.now_s() - began_s:.1f} {line}")
                last = line
            await self.wait(step_s)
        return lines


Story = Callable[[Play], Awaitable[None]]


def played(
    story: Story,
    settings: KubeletSettings | None = None,
    *,
    seed: int = 1,
    through: Callable[[Client, VirtualClock], Client] | None = None,
) -> None:
    """Play a story to its end. `through`: the kubelets comes to the API by another client than the story does."""
    clock = VirtualClock()

    async def main() -> None:
        async with open_loopback_client(clock, Entropy(seed)) as client, TaskGroup("play") as group:
            kubelets_client = through(client, clock) if through is not None else client
            kubelets = Kubelets(
                kubelets_client, clock, Entropy(seed), settings if settings is not None else KubeletSettings(count=2)
            )
            running = group.start(kubelets.run(), name="kubelets")
            await clock.wait(REGISTERED_S)
            await story(Play(client, clock, kubelets))
            running.cancel()

    run(main(), clock)


PLACE = NodeFacts("10.0.0.7", "172.16.0.1", {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "10Gi"})


def whole(body: Body, *, uid: str = "uid-1") -> FullPod:
    """A pod as the kubelet with processes reads it."""
    return convert_as(FullPod, {**body, "metadata": {**body["metadata"], "uid": uid}})


def pod_with(changes: dict[str, Any] | None = None, **of_container: Any) -> FullPod:
    """A pod with one container that has those fields."""
    return whole(pod(containers=[container(**of_container)], **(changes or {})))


def container_with(**fields: Any) -> FullContainer:
    return pod_with(**fields).spec.containers[0]
