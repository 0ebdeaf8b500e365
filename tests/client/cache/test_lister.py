"""A lister finds objects by name, namespace, labels and index."""

from __future__ import annotations

import pytest

from mooring.api.selector_text import parse_selector
from mooring.api.views.meta import ApiObject, ObjectMeta, OwnerReference
from mooring.client.cache.informer import Informer
from mooring.client.cache.lister import BY_NAMESPACE, BY_OWNER, Lister, namespace_of, owner_uids_of


def thing(key: str, *, app: str = "", owners: tuple[str, ...] = ()) -> ApiObject:
    namespace, _, name = key.rpartition("/")
    return ApiObject(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            labels={"app": app} if app else {},
            owner_references=tuple(OwnerReference(uid=uid) for uid in owners),
        )
    )


def lister_of(*things: ApiObject, indexed: bool = False) -> Lister[ApiObject]:
    informer: Informer[ApiObject] = Informer("things")
    if indexed:
        informer.add_index(BY_NAMESPACE, namespace_of)
        informer.add_index(BY_OWNER, owner_uids_of)
    informer.replace(things, "1")
    return informer.lister


THINGS = (
    thing("one/a", app="web", owners=("u1",)),
    thing("two/a", app="web", owners=("u1", "u2")),
    thing("one/b", app="db"),
    thing("node"),
)

both_ways = pytest.mark.parametrize("indexed", [False, True], ids=["by looking", "by an index"])


def test_by_name() -> None:
    lister = lister_of(*THINGS)
    assert lister.get("one", "a") is THINGS[0]
    assert lister.get("", "node") is THINGS[3]
    assert lister.by_key("two/a") is THINGS[1]
    assert lister.get("two", "b") is None


@both_ways
@pytest.mark.parametrize(
    ("namespace", "selector", "keys"),
    [
        ("", None, ["one/a", "two/a", "one/b", "node"]),
        ("one", None, ["one/a", "one/b"]),
        ("three", None, []),
        ("", "app=web", ["one/a", "two/a"]),
        ("one", "app=web", ["one/a"]),
        ("one", "app!=web", ["one/b"]),
    ],
)
def test_by_namespace_and_labels(indexed: bool, namespace: str, selector: str | None, keys: list[str]) -> None:
    labels = None if selector is None else parse_selector(selector)
    assert [view.key for view in lister_of(*THINGS, indexed=indexed).list(namespace, labels)] == keys


def test_by_index() -> None:
    lister = lister_of(*THINGS, indexed=True)
    assert [view.key for view in lister.by_index(BY_OWNER, "u1")] == ["one/a", "two/a"]
    assert lister.by_index(BY_OWNER, "nobody") == []


def test_an_index_that_nobody_registered_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="no index 'owner uid' was registered"):
        lister_of().by_index(BY_OWNER, "u1")


def test_as_a_collection() -> None:
    lister = lister_of(*THINGS)
    assert len(lister) == 4
    assert "one/a" in lister
    assert "one/x" not in lister
    assert [view.key for view in lister] == lister.keys()
