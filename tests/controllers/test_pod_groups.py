"""Groups say what a walk over the pods would say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mooring.api.labels import NOTHING, matcher_of_pairs
from mooring.api.views.pod import Pod
from mooring.client.cache.informer import Informer
from mooring.client.interface import Change
from mooring.controllers.pod_groups import is_healthy_pod, pod_groups
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from tests.controllers.builders import pod_view

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


@given(st.lists(st.tuples(_pods, st.booleans()), max_size=20), st.integers(0, 20))
def test_whatever_happens_to_pods_the_groups_know_them(happenings: list[tuple[Pod, bool]], asked_after: int) -> None:
    async def main() -> None:
        informer: Informer[Pod] = Informer("pods")
        groups = pod_groups(informer)
        assert pod_groups(informer) is groups, "all who ask share one"
        informer.replace([], "0")
        for number, (pod, is_deleted) in enumerate(happenings, start=1):
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
        groups = pod_groups(informer)
        informer.replace([pod_view("a", labels={"app": "web"})], "1")
        assert groups.selected("default", NOTHING) == []
        assert groups.statistics() == {"namespaces": 0, "groups": 0}
        assert [[*group.names] for group in groups.of("default")] == [["a"]]
        assert groups.statistics() == {"namespaces": 1, "groups": 1}

    run(main(), VirtualClock())
