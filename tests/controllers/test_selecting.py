"""Who selects a pod."""

from __future__ import annotations

from msgspec.structs import replace

from mooring.api.errors import LabelSelectorError
from mooring.api.labels import LabelMatcher, matcher_of_pairs
from mooring.api.views.meta import ObjectMeta
from mooring.api.views.workloads import Service
from mooring.client.cache.informer import Informer
from mooring.client.interface import Change
from mooring.controllers.selecting import Selecting
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from tests.controllers.network_documents import service_view

POD = ObjectMeta(name="p", namespace="default", labels={"app": "web", "tier": "front"})


def selector(service: Service) -> LabelMatcher:
    if service.spec.selector is None:
        raise LabelSelectorError("it has none")
    return matcher_of_pairs(service.spec.selector)


def at(revision: int, name: str = "web", **spec: object) -> Service:
    view = service_view(name, **spec)
    return replace(view, metadata=replace(view.metadata, resource_version=str(revision)))


def test_the_answer_follows_the_selectors() -> None:
    async def main() -> None:
        informer: Informer[Service] = Informer("services")
        selecting = Selecting("test", informer, selector)
        informer.replace([at(1), at(1, "broken", selector=None), at(1, "db", selector={"app": "db"})], "1")
        assert selecting.keys(POD) == ("default/web",)
        assert selecting.keys(replace(POD, namespace="other")) == ()
        assert [selecting.is_any_in(namespace) for namespace in ("default", "other")] == [True, False]
        informer.apply(Change.MODIFIED, at(2, "db", selector={"tier": "front"}))
        assert selecting.keys(POD) == ("default/web", "default/db")
        informer.apply(Change.DELETED, at(3))
        assert selecting.keys(POD) == ("default/db",)
        informer.apply(Change.DELETED, at(4, "db"))
        assert not selecting.is_any_in("default"), "the broken one selects nobody"
        informer.apply(Change.ADDED, at(5, "db", selector={"tier": "front"}))
        informer.apply(Change.ADDED, at(6, "new"))
        assert selecting.keys(POD) == ("default/db", "default/new")

    run(main(), VirtualClock())
