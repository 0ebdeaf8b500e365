"""Volumes that are written and waited for: what ends the wait, and that nobody is left waiting for a bell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from mooring.api.storage import BIND_COMPLETED
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim
from mooring.client.absent import AbsentClient
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.plugins.volume_writing import VolumeBindingError, VolumeWriter
from tests.storage_builders import volume, waiting


class Setting:
    """A writer with the stores that it looks at."""

    def __init__(self, *, reaches: bool = True) -> None:
        columns = Columns()
        self.volumes = columns.objects.of(PersistentVolume)
        self.claims = columns.objects.of(PersistentVolumeClaim)
        self.why_in_vain: str | None = None
        self.clock = VirtualClock()
        self.writer = VolumeWriter(AbsentClient(), self.volumes, self.claims, lambda volume, node_name: reaches)

    def wait(self, meanwhile: Callable[[], None], *, timeout_s: float = 600.0) -> float:
        """Waits for a volume on order; something happens after 3.5 s. When it was over."""

        async def main() -> float:
            ordered = [waiting("data", on="n1", version="5")]
            asyncio.get_running_loop().call_later(3.5, meanwhile)
            await self.writer.wait_bound("n1", [], ordered, timeout_s, lambda: self.why_in_vain)
            return self.clock.now_s()

        try:
            return run(main(), self.clock)
        finally:
            assert self.writer._bells == {}

    def complete(self) -> None:
        """The claim has its volume."""
        done = waiting("data", on="n1", version="7", annotations={BIND_COMPLETED: "yes"})
        self.claims.put(replace(done, spec=replace(done.spec, volume_name="made-1")))


def test_the_wait_ends_as_soon_as_the_claim_is_bound() -> None:
    setting = Setting()
    setting.claims.put(waiting("data", on="n1", version="6"))
    setting.volumes.put(volume("made-1"))
    assert setting.wait(setting.complete) == 3.5


def test_what_is_older_than_what_was_written_is_not_believed() -> None:
    setting = Setting()
    setting.claims.put(waiting("data", version="4"))  # without the node: the watch has not told of our write yet
    setting.volumes.put(volume("made-1"))
    assert setting.wait(setting.complete) == 3.5


def test_a_volume_that_comes_after_its_claim_is_noticed() -> None:
    setting = Setting()
    setting.complete()
    assert setting.wait(lambda: setting.volumes.put(volume("made-1"))) == 4.0


@pytest.mark.parametrize(
    ("meanwhile", "text"),
    [
        pytest.param(
            lambda setting: setting.claims.remove("default/data"),
            'failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "default/data"',
            id="the claim is gone",
        ),
        pytest.param(
            lambda setting: setting.claims.put(waiting("data", version="7")),
            'selectedNode annotation reset for PVC "data"',
            id="it has no annotation any more",
        ),
        pytest.param(
            lambda setting: setting.claims.put(waiting("data", on="n2", version="7")),
            'provisioning failed for PVC "data"',
            id="it was given to another node",
        ),
        pytest.param(
            lambda setting: setattr(setting, "why_in_vain", "pod does not exist any more"),
            "pod does not exist any more",
            id="nobody needs it any more",
        ),
        pytest.param(lambda setting: None, "context deadline exceeded", id="nothing happens"),
    ],
)
def test_what_makes_it_pointless(meanwhile: Callable[[Setting], None], text: str) -> None:
    setting = Setting()
    setting.claims.put(waiting("data", on="n1", version="6"))
    with pytest.raises(VolumeBindingError) as raised:
        setting.wait(lambda: meanwhile(setting), timeout_s=60)
    assert str(raised.value) == text


def test_a_volume_that_the_node_does_not_reach() -> None:
    setting = Setting(reaches=False)
    setting.claims.put(waiting("data", on="n1", version="6"))
    setting.volumes.put(volume("made-1"))
    with pytest.raises(VolumeBindingError, match='pv "made-1" node affinity doesn\'t match node "n1"'):
        setting.wait(setting.complete)
