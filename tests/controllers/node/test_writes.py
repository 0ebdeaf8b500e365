"""Writing nodes without losing what others write."""

from __future__ import annotations

import pytest

from mooring.api.kinds import NODE, Kind
from mooring.client.errors import ConflictError
from mooring.client.interface import Client, PatchForm
from mooring.controllers.node.taints import UNREACHABLE, TaintChange
from mooring.controllers.node.writes import TRIES_MAX, NodeWriter
from tests.controllers.cluster_builders import node_document, taints_of
from tests.controllers.world import World, play


class _Disturbed:
    """Before each patch somebody else taints the node."""

    def __init__(self, inner: Client, times: int) -> None:
        self._inner = inner
        self._times = times

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        return await self._inner.get(kind, namespace, name)

    async def patch(self, kind: Kind, namespace: str, name: str, patch: object, *, form: PatchForm) -> bytes:
        if self._times:
            self._times -= 1
            taints = [{"key": f"other{self._times}", "effect": "NoSchedule"}]
            await self._inner.patch(kind, namespace, name, {"spec": {"taints": taints}}, form=PatchForm.MERGE)
        return await self._inner.patch(kind, namespace, name, patch, form=form)


@pytest.mark.parametrize(
    ("times", "is_written"),
    [
        pytest.param(0, True, id="undisturbed"),
        pytest.param(TRIES_MAX - 1, True, id="disturbed now and then"),
        pytest.param(TRIES_MAX, False, id="disturbed each time"),
    ],
)
def test_taints_of_others_are_kept(times: int, is_written: bool) -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1", taints=["mine:NoExecute"]))
        client: Client = _Disturbed(world.client, times)  # type: ignore[assignment]
        writer = NodeWriter(client, world.clock, world.entropy)
        if is_written:
            await writer.change_taints("n1", TaintChange((UNREACHABLE,)))
            others = "other0:NoSchedule" if times else "mine:NoExecute"
            assert await taints_of(world, "n1") == sorted([others, "node.kubernetes.io/unreachable:NoExecute"])
        else:
            with pytest.raises(ConflictError):
                await writer.change_taints("n1", TaintChange((UNREACHABLE,)))

    play(story, controllers=[])


def test_conditions_are_written_on_the_state_that_was_seen() -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1"))
        metadata = (await world.get(NODE, "n1"))["metadata"]
        writer = NodeWriter(world.client, world.clock, world.entropy)
        uid, revision = metadata["uid"], metadata["resourceVersion"]
        await writer.set_conditions("n1", uid, revision, [{"type": "Ready", "status": "Unknown"}])
        with pytest.raises(ConflictError):
            await writer.set_conditions("n1", uid, revision, [{"type": "Ready", "status": "False"}])
        assert (await world.conditions("n1", NODE))["Ready"][0] == "Unknown"

    play(story, controllers=[])
