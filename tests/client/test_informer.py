"""Informer: a copy of objects of one kind, handlers with a consistent history, and indexes.

Lister: objects by name, namespace, labels and index.
"""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.labels import parse_selector
from mooring.api.views.meta import ApiObject, ObjectMeta, OwnerReference
from mooring.client.informer import BY_NAMESPACE, Informer, Lister, namespace_of
from mooring.client.interface import Change
from mooring.kit.loop import run

Things = Informer[ApiObject]


def thing(name: str, revision: int, *, uid: str = "", namespace: str = "", owner: str = "") -> ApiObject:
    return ApiObject(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=uid or f"uid-{name}",
            resource_version=str(revision),
            owner_references=(OwnerReference(uid=owner),) if owner else (),
        )
    )


class RecordingHandler:
    """A handler that records its calls and asserts that they are consistent."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.objects: dict[str, ApiObject] = {}
        self._informers: list[Things] = []

    def register_with(self, informer: Things, name: str = "handler") -> RecordingHandler:
        self._informers.append(informer)
        informer.add_handler(name, on_add=self.on_add, on_update=self.on_update, on_delete=self.on_delete)
        return self

    def on_add(self, new: ApiObject) -> None:
        assert new.key not in self.objects
        self.objects[new.key] = new
        has_synced = all(informer.has_synced for informer in self._informers)
        self.calls.append(f"{'' if has_synced else 'first '}add {summary(new)}")

    def on_update(self, old: ApiObject, new: ApiObject) -> None:
        assert self.objects[old.key] is old
        assert old.metadata.uid == new.metadata.uid
        self.objects[new.key] = new
        self.calls.append(f"update {summary(old)} to {summary(new)}")

    def on_delete(self, old: ApiObject) -> None:
        assert self.objects.pop(old.key) is old
        self.calls.append(f"delete {summary(old)}")


def summary(view: ApiObject) -> str:
    return f"{view.metadata.name}@{view.metadata.resource_version}"


def informer_with(*things: ApiObject) -> Things:
    informer = Things("things")
    informer.replace(things, "1")
    return informer


@pytest.mark.parametrize(
    ("change", "view", "calls"),
    [
        pytest.param(Change.ADDED, thing("b", 2), ["add b@2"], id="an object is added"),
        pytest.param(Change.MODIFIED, thing("a", 2), ["update a@1 to a@2"], id="an object is updated"),
        pytest.param(
            Change.DELETED,
            thing("a", 2),
            ["delete a@1"],
            id="an object is deleted; the handler gets the last known state",
        ),
        pytest.param(Change.DELETED, thing("x", 2), [], id="an unknown object is deleted"),
        pytest.param(Change.MODIFIED, thing("b", 2), ["add b@2"], id="an unknown object is modified"),
        pytest.param(Change.ADDED, thing("a", 2), ["update a@1 to a@2"], id="a known object is added"),
        pytest.param(Change.MODIFIED, thing("a", 1), [], id="the same revision again"),
        pytest.param(
            Change.MODIFIED, thing("a", 2, uid="other"), ["delete a@1", "add a@2"], id="an object with another uid"
        ),
    ],
)
def test_handler_calls_for_each_change(change: Change, view: ApiObject, calls: list[str]) -> None:
    informer = informer_with(thing("a", 1))
    handler = RecordingHandler().register_with(informer)
    handler.calls.clear()
    informer.apply(change, view)
    assert handler.calls == calls


def test_replace_calls_handlers_only_for_differences() -> None:
    informer = informer_with(thing("a", 1), thing("b", 2), thing("c", 3), thing("d", 4))
    handler = RecordingHandler().register_with(informer)
    handler.calls.clear()
    informer.replace([thing("e", 9), thing("d", 8, uid="other"), thing("b", 5), thing("c", 3)], "9")
    assert handler.calls == ["delete a@1", "add e@9", "delete d@4", "add d@8", "update b@2 to b@5"]


@pytest.mark.parametrize(
    ("revision", "is_seen"),
    [
        pytest.param("", True, id="no revision"),
        pytest.param("9", True, id="the revision of the last change"),
        pytest.param("10", False, id="a later revision"),
        pytest.param("new", True, id="not a number"),
    ],
)
def test_has_seen_compares_revisions(revision: str, is_seen: bool) -> None:
    informer = informer_with(thing("a", 1))
    informer.apply(Change.DELETED, thing("a", 9))
    assert informer.has_seen(revision) is is_seen


def test_objects_of_the_first_list_are_marked_as_initial() -> None:
    informer = Things("things")
    handler = RecordingHandler().register_with(informer)
    has_synced = [informer.has_synced]
    informer.replace([thing("a", 1)], "1")
    informer.apply(Change.ADDED, thing("b", 2))
    assert [*has_synced, informer.has_synced] == [False, True]
    assert handler.calls == ["first add a@1", "add b@2"]


def test_a_handler_added_later_gets_all_objects() -> None:
    informer = informer_with(thing("a", 1))
    informer.apply(Change.ADDED, thing("b", 2))
    assert RecordingHandler().register_with(informer).calls == ["add a@1", "add b@2"]


def test_handlers_are_called_in_order_of_registration_after_the_copy_changed() -> None:
    informer = Things("things")
    calls: list[str] = []
    for name in ("one", "two"):

        def on_add(view: ApiObject, name: str = name) -> None:
            calls.append(f"{name} {informer.lister.by_key(view.key) is view}")

        informer.add_handler(name, on_add=on_add)
    informer.replace([thing("a", 1), thing("b", 1)], "1")
    assert calls == ["one True", "two True"] * 2


def test_a_failing_handler_is_logged_and_does_not_affect_others(caplog: pytest.LogCaptureFixture) -> None:
    informer = Things("things")

    def fail(*args: object) -> None:
        raise RuntimeError("no coffee")

    informer.add_handler("grumpy", on_add=fail, on_update=fail, on_delete=fail)
    handler = RecordingHandler().register_with(informer)
    with caplog.at_level(logging.ERROR):
        informer.replace([thing("a", 1)], "1")
        informer.apply(Change.MODIFIED, thing("a", 2))
        informer.apply(Change.DELETED, thing("a", 3))
    assert handler.calls == ["first add a@1", "update a@1 to a@2", "delete a@2"]
    assert [record.getMessage() for record in caplog.records] == [
        "handler grumpy of informer things failed when a was added",
        "handler grumpy of informer things failed when a was updated",
        "handler grumpy of informer things failed when a was deleted",
    ]
    assert informer.statistics()["handler_failures"] == 3


def test_a_handler_registered_by_a_handler_gets_each_object_once() -> None:
    informer = Things("things")
    late = RecordingHandler()

    def register_late(view: ApiObject) -> None:
        if view.key == "a":
            late.register_with(informer, "late")

    informer.add_handler("early", on_add=register_late)
    informer.replace([thing("a", 1), thing("b", 2)], "2")
    assert late.calls == ["first add a@1", "first add b@2"]


BY_OWNER = "owner uid"


def owner_uids_of(view: ApiObject) -> list[str]:
    return [owner.uid for owner in view.metadata.owner_references]


def test_indexes_are_updated_with_the_objects() -> None:
    informer = Things("things")
    informer.add_index(BY_OWNER, owner_uids_of)
    informer.replace([thing("a", 1, owner="u1"), thing("b", 1, owner="u1"), thing("c", 1)], "1")
    informer.add_index(BY_NAMESPACE, namespace_of)
    informer.apply(Change.MODIFIED, thing("a", 2, owner="u2"))
    informer.apply(Change.MODIFIED, thing("c", 3, owner="u1"))
    informer.apply(Change.DELETED, thing("b", 4))
    keys = {uid: [view.key for view in informer.lister.by_index(BY_OWNER, uid)] for uid in ("u1", "u2")}
    assert keys == {"u1": ["c"], "u2": ["a"]}
    assert len(informer.lister.by_index(BY_NAMESPACE, "")) == 2


def test_an_index_cannot_be_registered_with_another_function() -> None:
    informer = Things("things")
    informer.add_index("x", namespace_of)
    informer.add_index("x", namespace_of)
    with pytest.raises(AssertionError, match="another index 'x'"):
        informer.add_index("x", owner_uids_of)


def test_wait_synced_returns_after_the_first_list() -> None:
    informer = Things("things")

    async def wait() -> bool:
        informer.replace([], "1")
        await informer.wait_synced()
        return informer.has_synced

    assert run(wait())


names = st.sampled_from("abc")
uids = st.sampled_from(["x", "y"])
owners = st.sampled_from(["", "u1", "u2"])
things = st.builds(lambda n, r, u, o: thing(n, r, uid=u, owner=o), names, st.integers(1, 4), uids, owners)
steps = st.lists(
    st.tuples(st.sampled_from([Change.ADDED, Change.MODIFIED, Change.DELETED]), things)
    | st.lists(things, max_size=3, unique_by=lambda view: view.key),
    max_size=12,
)


@given(steps)
def test_any_sequence_of_changes_gives_a_consistent_history_and_an_equal_copy(
    history: list[tuple[Change, ApiObject] | list[ApiObject]],
) -> None:
    informer = Things("things")
    informer.add_index(BY_OWNER, owner_uids_of)
    early = RecordingHandler().register_with(informer)
    for step in history:
        if isinstance(step, list):
            informer.replace(step, "1")
            assert sorted(view.key for view in step) == sorted(informer.lister.keys())
        else:
            informer.apply(*step)
    late = RecordingHandler().register_with(informer)
    copy = {view.key: view for view in informer.lister}
    assert early.objects == late.objects == copy
    for uid in ("u1", "u2"):
        owned = [view.key for view in copy.values() if uid in owner_uids_of(view)]
        assert sorted(view.key for view in informer.lister.by_index(BY_OWNER, uid)) == sorted(owned)


def labelled_thing(key: str, *, app: str = "", owners: tuple[str, ...] = ()) -> ApiObject:
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
    labelled_thing("one/a", app="web", owners=("u1",)),
    labelled_thing("two/a", app="web", owners=("u1", "u2")),
    labelled_thing("one/b", app="db"),
    labelled_thing("node"),
)

both_ways = pytest.mark.parametrize("indexed", [False, True], ids=["without an index", "with an index"])


def test_lister_finds_an_object_by_name() -> None:
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
def test_lister_finds_objects_by_namespace_and_labels(
    indexed: bool, namespace: str, selector: str | None, keys: list[str]
) -> None:
    labels = None if selector is None else parse_selector(selector)
    assert [view.key for view in lister_of(*THINGS, indexed=indexed).list(namespace, labels)] == keys


def test_lister_finds_objects_by_index() -> None:
    lister = lister_of(*THINGS, indexed=True)
    assert [view.key for view in lister.by_index(BY_OWNER, "u1")] == ["one/a", "two/a"]
    assert lister.by_index(BY_OWNER, "nobody") == []


def test_an_unregistered_index_is_an_assertion_error() -> None:
    with pytest.raises(AssertionError, match="no index 'owner uid' was registered"):
        lister_of().by_index(BY_OWNER, "u1")


def test_lister_is_a_collection() -> None:
    lister = lister_of(*THINGS)
    assert len(lister) == 4
    assert "one/a" in lister
    assert "one/x" not in lister
    assert [view.key for view in lister] == lister.keys()
