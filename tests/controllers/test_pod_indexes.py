"""The index says what a walk over the pods would say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mooring.api.errors import LabelSelectorError
from mooring.api.labels import NOTHING, LabelMatcher, matcher_of_pairs
from mooring.api.views.meta import ObjectMeta
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Service
from mooring.client.cache.informer import Informer
from mooring.client.interface import Change
from mooring.controllers.pod_indexes import PodCountIndex, PodGroupIndex, SelectorIndex, is_healthy_pod, labels_key
from mooring.controllers.pods import is_active, is_ready, is_terminating
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from tests.controllers.builders import pod_view
from tests.controllers.network_documents import service_view

OWNERS = ("", "uid-a", "uid-b")
pods = st.builds(
    pod_view,
    st.sampled_from(("p1", "p2", "p3", "p4")),
    phase=st.sampled_from(("Pending", "Running", "Failed", "Succeeded")),
    ready_for_s=st.sampled_from((None, 10)),
    labels=st.sampled_from(({"app": "web"}, {"app": "db"})),
    owner=st.sampled_from(OWNERS),
    going=st.booleans(),
)
_pods = st.builds(
    lambda name, app, owner, ready, going: pod_view(
        name, labels={"app": app}, owner=owner, ready_for_s=1.0 if ready else None, going=going
    ),
    st.sampled_from("abc"),
    st.sampled_from(["web", "db"]),
    st.sampled_from(["", "one", "two"]),
    st.booleans(),
    st.booleans(),
)
POD = ObjectMeta(name="p", namespace="default", labels={"app": "web", "tier": "front"})


def walked(informer: Informer[Pod], owner: str) -> dict[object, tuple[int, int, int, int]]:
    found: dict[object, tuple[int, int, int, int]] = {}
    for pod in informer.lister:
        references = pod.metadata.owner_references
        if not references or references[0].uid != owner:
            continue
        key = labels_key(pod.metadata.labels)
        every, active, ready, terminating = found.get(key, (0, 0, 0, 0))
        is_counted = is_active(pod)
        found[key] = (
            every + 1,
            active + is_counted,
            ready + (is_counted and is_ready(pod)),
            terminating + is_terminating(pod),
        )
    return found


@given(st.lists(st.tuples(st.sampled_from((Change.MODIFIED, Change.DELETED)), pods), max_size=30))
def test_it_counts_as_if_it_looked_at_each(changes: list[tuple[Change, Pod]]) -> None:
    informer: Informer[Pod] = Informer("pods")
    counts_by_labels = PodCountIndex(informer)
    for number, (change, pod) in enumerate(changes):
        metadata = replace(pod.metadata, resource_version=str(number + 2))
        informer.apply(change, Pod(metadata=metadata, spec=pod.spec, status=pod.status))
        for owner in OWNERS[1:]:
            recorded = {
                labels: (counts.all, counts.active, counts.ready, counts.terminating)
                for labels, counts in counts_by_labels.of(owner).items()
            }
            assert recorded == walked(informer, owner)


@given(st.lists(st.tuples(_pods, st.booleans()), max_size=20), st.integers(0, 20))
def test_whatever_happens_to_pods_the_groups_know_them(events: list[tuple[Pod, bool]], asked_after: int) -> None:
    async def main() -> None:
        informer: Informer[Pod] = Informer("pods")
        groups = PodGroupIndex(informer)
        informer.replace([], "0")
        for number, (pod, is_deleted) in enumerate(events, start=1):
            pod = replace(pod, metadata=replace(pod.metadata, resource_version=str(number)))
            if number > asked_after:
                groups.of("default")
            informer.apply(Change.DELETED if is_deleted else Change.MODIFIED, pod)
        pods = informer.lister.list()
        for app in ("web", "db"):
            selected = groups.selected("default", matcher_of_pairs({"app": app}))
            members = {name: is_healthy for group in selected for name, is_healthy in group.names.items()}
            assert members == {
                pod.metadata.name: is_healthy_pod(pod) for pod in pods if pod.metadata.labels["app"] == app
            }
            assert [group.healthy for group in selected] == [sum(group.names.values()) for group in selected]
            assert len({group.owner for group in selected}) == len(selected)

    run(main(), VirtualClock())


def test_who_selects_nobody_makes_nobody_be_followed() -> None:
    async def main() -> None:
        informer: Informer[Pod] = Informer("pods")
        groups = PodGroupIndex(informer)
        informer.replace([pod_view("a", labels={"app": "web"})], "1")
        assert groups.selected("default", NOTHING) == []
        assert groups.statistics() == {"namespaces": 0, "groups": 0}
        assert [[*group.names] for group in groups.of("default")] == [["a"]]
        assert groups.statistics() == {"namespaces": 1, "groups": 1}

    run(main(), VirtualClock())


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
        selectors = SelectorIndex("test", informer, selector)
        informer.replace([at(1), at(1, "broken", selector=None), at(1, "db", selector={"app": "db"})], "1")
        assert selectors.keys(POD) == ("default/web",)
        assert selectors.keys(replace(POD, namespace="other")) == ()
        assert [selectors.is_any_in(namespace) for namespace in ("default", "other")] == [True, False]
        informer.apply(Change.MODIFIED, at(2, "db", selector={"tier": "front"}))
        assert selectors.keys(POD) == ("default/web", "default/db")
        informer.apply(Change.DELETED, at(3))
        assert selectors.keys(POD) == ("default/db",)
        informer.apply(Change.DELETED, at(4, "db"))
        assert not selectors.is_any_in("default"), "the broken one selects nobody"
        informer.apply(Change.ADDED, at(5, "db", selector={"tier": "front"}))
        informer.apply(Change.ADDED, at(6, "new"))
        assert selectors.keys(POD) == ("default/db", "default/new")

    run(main(), VirtualClock())


def test_the_order_of_labels_does_not_matter() -> None:
    """An update that only reorders the labels must not leave counts behind."""

    def labelled(version: int, *, is_reordered: bool) -> Pod:
        labels = {"a": "1", "b": "2"} if not is_reordered else {"b": "2", "a": "1"}
        pod = pod_view("p", phase="Running", ready_for_s=10, labels=labels, owner="uid-a")
        return replace(pod, metadata=replace(pod.metadata, resource_version=str(version)))

    async def main() -> None:
        informer: Informer[Pod] = Informer("pods")
        counts, groups = PodCountIndex(informer), PodGroupIndex(informer)
        informer.replace([], "0")
        groups.of("default")
        informer.apply(Change.ADDED, labelled(1, is_reordered=False))
        informer.apply(Change.MODIFIED, labelled(2, is_reordered=True))
        assert [group.healthy for group in groups.of("default")] == [1]
        informer.apply(Change.DELETED, labelled(3, is_reordered=True))
        assert informer.statistics()["handler_failures"] == 0
        assert [*groups.of("default")] == []
        assert counts.of("uid-a") == {}

    run(main(), VirtualClock())
