"""Volumes that are written and waited for: what ends the wait, and that nobody is left waiting for a bell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from mooring.api.storage import BIND_COMPLETED, bound_to
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim
from mooring.client.interface import UnavailableClient
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.objects import ObjectStore
from mooring.scheduler.plugins.volume_binding.binder import AssumeCache, VolumeBinder, VolumeBindingError
from tests.storage_builders import volume, waiting


class Setting:
    """A binder with the stores that it looks at."""

    def __init__(self, *, selectors: bool = True) -> None:
        columns = Columns()
        self.volumes = columns.objects.of(PersistentVolume)
        self.claims = columns.objects.of(PersistentVolumeClaim)
        self.why_impossible: str | None = None
        self.clock = VirtualClock()
        self.binder = VolumeBinder(UnavailableClient(), self.volumes, self.claims, lambda volume, node_name: selectors)

    def wait(self, meanwhile: Callable[[], None], *, timeout_s: float = 600.0) -> float:
        """Waits for a volume on order; something happens after 3.5 s. When it was over."""

        async def main() -> float:
            provisions = [waiting("data", on="n1", version="5")]
            asyncio.get_running_loop().call_later(3.5, meanwhile)
            await self.binder.wait_bound("n1", [], provisions, timeout_s, lambda: self.why_impossible)
            return self.clock.now_s()

        try:
            return run(main(), self.clock)
        finally:
            assert not self.binder._waiters

    def complete(self) -> None:
        """The claim has its volume."""
        done = waiting("data", on="n1", version="7", annotations={BIND_COMPLETED: "yes"})
        self.claims.put(replace(done, spec=replace(done.spec, volume_name="made-1")))


def test_the_wait_ends_as_soon_as_the_claim_is_bound() -> None:
    setting = Setting()
    setting.claims.put(waiting("data", on="n1", version="6"))
    setting.volumes.put(volume("made-1"))
    assert setting.wait(setting.complete) == 3.5


def test_an_object_older_than_the_written_one_is_not_used() -> None:
    setting = Setting()
    setting.claims.put(waiting("data", version="4"))  # without the node: the watch has not notified of our write yet
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
            lambda setting: setattr(setting, "why_impossible", "pod does not exist any more"),
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
    setting = Setting(selectors=False)
    setting.claims.put(waiting("data", on="n1", version="6"))
    setting.volumes.put(volume("made-1"))
    with pytest.raises(VolumeBindingError, match='pv "made-1" node affinity doesn\'t match node "n1"'):
        setting.wait(setting.complete)


FREE = volume("v", version="1")
TAKEN = bound_to(FREE, waiting("c"))


class Beliefs:
    """A store with assumptions, and everything that a listener was reported."""

    def __init__(self, *volumes: PersistentVolume) -> None:
        self.store: ObjectStore[PersistentVolume] = ObjectStore()
        for view in volumes:
            self.store.put(view)
        self.assumed = AssumeCache(self.store)
        self.reported: list[tuple[str, PersistentVolume | None]] = []
        self.assumed.listen(lambda name, current: self.reported.append((name, current)))


def test_without_assumptions_the_stored_object_is_used() -> None:
    beliefs = Beliefs(FREE)
    assert beliefs.assumed.get("v") is FREE
    assert beliefs.assumed.get("w") is None
    assert beliefs.reported == [("v", FREE)]


def test_an_assumed_object_is_used_until_it_is_restored() -> None:
    beliefs = Beliefs(FREE)
    beliefs.assumed.assume(TAKEN)
    assert beliefs.assumed.get("v") is TAKEN
    beliefs.assumed.restore(TAKEN)
    assert beliefs.assumed.get("v") is FREE
    assert beliefs.reported == [("v", FREE), ("v", TAKEN), ("v", FREE)]


def test_a_late_listener_gets_what_is_assumed() -> None:
    beliefs = Beliefs(FREE)
    beliefs.assumed.assume(TAKEN)
    reported: list[PersistentVolume | None] = []
    beliefs.assumed.listen(lambda _, current: reported.append(current))
    assert reported == [TAKEN]


def test_a_newer_version_beats_an_assumption() -> None:
    beliefs = Beliefs(FREE)
    beliefs.assumed.assume(TAKEN)
    newer = volume("v", version="2")
    beliefs.store.put(newer)
    assert beliefs.assumed.get("v") is newer
    assert beliefs.reported[-1] == ("v", newer)


def test_the_same_version_again_does_not() -> None:
    beliefs = Beliefs(FREE)
    beliefs.assumed.assume(TAKEN)
    beliefs.store.put(volume("v", version="1"))
    assert beliefs.assumed.get("v") is TAKEN


def test_an_assumed_object_is_dropped_when_it_is_deleted() -> None:
    beliefs = Beliefs(FREE)
    beliefs.assumed.assume(TAKEN)
    beliefs.store.remove("v")
    assert beliefs.assumed.get("v") is None
    assert beliefs.reported[-1] == ("v", None)


def test_only_the_current_assumption_can_be_restored() -> None:
    beliefs = Beliefs(FREE)
    beliefs.assumed.assume(TAKEN)
    beliefs.assumed.restore(bound_to(FREE, waiting("another")))
    assert beliefs.assumed.get("v") is TAKEN
    beliefs.store.put(volume("v", version="2"))
    beliefs.assumed.restore(TAKEN)
    assert beliefs.reported[-1][1] == volume("v", version="2")


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        pytest.param([], "does not exist", id="an object that nobody knows"),
        pytest.param([volume("v", version="2")], "out of sync", id="an outdated version"),
    ],
)
def test_what_cannot_be_assumed_is_a_bug(stored: list[PersistentVolume], text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        Beliefs(*stored).assumed.assume(TAKEN)
