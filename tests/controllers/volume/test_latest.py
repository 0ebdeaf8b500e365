"""What was written counts until the informer shows something newer."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from mooring.api.views.storage import PersistentVolume
from mooring.client.cache.informer import Informer
from mooring.client.interface import Change
from mooring.controllers.volume.latest import Latest
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from tests.controllers.storage_documents import volume_view


def at(revision: int, uid: str = "uid-v", phase: str = "") -> PersistentVolume:
    view = volume_view(phase=phase)
    return replace(view, metadata=replace(view.metadata, resource_version=str(revision), uid=uid))


def told(tell: Callable[[Informer[PersistentVolume], Latest[PersistentVolume]], None]) -> None:
    async def main() -> None:
        informer: Informer[PersistentVolume] = Informer("volumes")
        latest = Latest("test", informer)
        informer.replace([at(9)], "9")
        tell(informer, latest)

    run(main(), VirtualClock())


def test_our_own_write_is_believed_at_once() -> None:
    def tell(informer: Informer[PersistentVolume], latest: Latest[PersistentVolume]) -> None:
        latest.remember(at(10, phase="Bound"))
        found = latest.get("v")
        assert found is not None
        assert found.status.phase == "Bound"
        assert latest.of(at(9)) is found

    told(tell)


def test_what_the_informer_shows_later_wins_by_number_not_by_text() -> None:
    def tell(informer: Informer[PersistentVolume], latest: Latest[PersistentVolume]) -> None:
        latest.remember(at(100))
        informer.apply(Change.MODIFIED, at(99))
        assert latest.of(at(99)).metadata.resource_version == "100"
        informer.apply(Change.MODIFIED, at(101))
        assert latest.of(at(101)).metadata.resource_version == "101"

    told(tell)


def test_an_answer_that_comes_late_is_old_news() -> None:
    def tell(informer: Informer[PersistentVolume], latest: Latest[PersistentVolume]) -> None:
        informer.apply(Change.MODIFIED, at(20))
        latest.remember(at(10))
        found = latest.get("v")
        assert found is not None
        assert found.metadata.resource_version == "20"

    told(tell)


def test_what_is_deleted_is_forgotten_and_not_remembered_again() -> None:
    def tell(informer: Informer[PersistentVolume], latest: Latest[PersistentVolume]) -> None:
        latest.remember(at(10))
        informer.apply(Change.DELETED, at(11))
        latest.remember(at(10))
        assert latest.get("v") is None

    told(tell)


def test_a_namesake_is_another_one() -> None:
    def tell(informer: Informer[PersistentVolume], latest: Latest[PersistentVolume]) -> None:
        latest.remember(at(10, uid="other"))
        found = latest.get("v")
        assert found is not None
        assert found.metadata.uid == "uid-v"

    told(tell)
