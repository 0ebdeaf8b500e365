"""Stores of objects by kind and key, with a version and listeners."""

from __future__ import annotations

from mooring.api.views.workloads import Namespace, Service
from mooring.scheduler.cache.objects import ObjectStores
from tests.builders import namespace, service


def test_objects_are_found_by_key_and_by_namespace() -> None:
    services = ObjectStores().of(Service)
    web, db, other = service("web"), service("db"), service("web", "shop")
    for each in (web, db, other):
        services.put(each)
    assert services.get("default/web") is web
    assert services.get("shop/web") is other
    assert services.get("web") is None
    assert list(services.in_namespace("default")) == [web, db]
    assert list(services.in_namespace("nowhere")) == []
    assert (len(services), list(services)) == (3, [web, db, other])


def test_objects_without_namespace_go_by_their_name() -> None:
    namespaces = ObjectStores().of(Namespace)
    namespaces.put(namespace("shop"))
    assert namespaces.get("shop") == namespace("shop")


def test_a_removed_object_is_gone() -> None:
    services = ObjectStores().of(Service)
    web = service("web")
    services.put(web)
    assert services.remove("default/web") is web
    assert services.remove("default/web") is None
    assert (services.get("default/web"), list(services.in_namespace("default")), len(services)) == (None, [], 0)


def test_there_is_one_store_for_each_kind() -> None:
    objects = ObjectStores()
    assert objects.of(Service) is objects.of(Service)
    objects.of(Service).put(service("web"))
    assert len(objects.of(Namespace)) == 0


def test_listeners_hear_of_every_change_after_it_happened() -> None:
    services = ObjectStores().of(Service)
    heard: list[tuple[Service | None, Service | None]] = []
    services.listen(lambda old, new: heard.append((old, new)))
    first, second = service("web", app="web"), service("web", app="shop")
    services.put(first)
    services.put(second)
    services.remove("default/web")
    services.remove("default/web")
    assert heard == [(None, first), (first, second), (second, None)]
    assert services.version == 3
