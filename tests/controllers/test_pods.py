"""Predicates, indexes and deletion order of pods."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mooring.api.document import Document
from mooring.api.errors import LabelSelectorError
from mooring.api.labels import NOTHING, LabelMatcher, matcher_of_pairs
from mooring.api.views.meta import Condition, ObjectMeta
from mooring.api.views.pod import Pod, PodStatus
from mooring.api.views.workloads import Service
from mooring.client.informer import Informer
from mooring.client.interface import Change
from mooring.controllers.documents import disruption_condition
from mooring.controllers.pod_indexes import PodCountIndex, PodGroupIndex, SelectorIndex, is_healthy_pod, labels_key
from mooring.controllers.pods import (
    available_in_s,
    claim_keys,
    controller_index,
    deletion_cost,
    is_active,
    is_available,
    is_finished,
    is_ready,
    is_terminating,
    next_availability_s,
    node_index,
    orphan_key,
    orphan_label_index,
    pods_to_delete,
)
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from tests.controllers.builders import NOW_S, pod_view
from tests.controllers.cluster_builders import backend_view, service_view


@pytest.mark.parametrize(
    ("parts", "states"),
    [
        pytest.param({}, (True, False, False), id="running"),
        pytest.param({"phase": "Pending"}, (True, False, False), id="pending"),
        pytest.param({"going": True}, (False, True, False), id="going"),
        pytest.param({"phase": "Failed"}, (False, False, True), id="failed"),
        pytest.param({"phase": "Succeeded", "going": True}, (False, False, True), id="finished and going"),
    ],
)
def test_a_pod_is_active_terminating_or_finished(parts: dict[str, Any], states: tuple[bool, bool, bool]) -> None:
    pod = pod_view("p", **parts)
    assert (is_active(pod), is_terminating(pod), is_finished(pod)) == states


@pytest.mark.parametrize(
    ("ready_for_s", "min_ready_s", "is_there", "wait_s"),
    [
        pytest.param(None, 0, False, None, id="not ready"),
        pytest.param(0, 0, True, None, id="ready is enough"),
        pytest.param(5, 10, False, 5.0, id="not for long enough"),
        pytest.param(10, 10, True, None, id="just long enough"),
    ],
)
def test_available_is_ready_for_a_while(
    ready_for_s: float | None, min_ready_s: int, is_there: bool, wait_s: float | None
) -> None:
    pod = pod_view("p", ready_for_s=ready_for_s)
    assert is_ready(pod) is (ready_for_s is not None)
    assert is_available(pod, min_ready_s, NOW_S) is is_there
    assert available_in_s(pod, min_ready_s, NOW_S) == wait_s


def test_the_next_to_become_available() -> None:
    pods = [pod_view("a", ready_for_s=2), pod_view("b", ready_for_s=7), pod_view("c", ready_for_s=70), pod_view("d")]
    assert next_availability_s(pods, 10, NOW_S, NOW_S) == 3.0
    assert next_availability_s(pods, 10, NOW_S, NOW_S + 5) == 0.0
    assert next_availability_s(pods[2:], 10, NOW_S, NOW_S) is None


def test_where_pods_are_found() -> None:
    assert controller_index(pod_view("p", owner="uid-1")) == ("uid-1",)
    assert controller_index(pod_view("p")) == (orphan_key("default"),)
    assert list(orphan_label_index(pod_view("p", labels={"a": "b"}))) == ["default a=b"]
    assert list(orphan_label_index(pod_view("p", labels={"a": "b"}, owner="uid-1"))) == []
    assert node_index(pod_view("p", on="n1")) == ("n1",)
    assert node_index(pod_view("p", on="")) == ()


@pytest.mark.parametrize(
    ("volumes", "keys"),
    [
        pytest.param([], [], id="no volumes"),
        pytest.param([{"name": "d", "emptyDir": {}}], [], id="a volume that needs none"),
        pytest.param([{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}], ["default/c"], id="by name"),
        pytest.param([{"name": "d", "ephemeral": {"volumeClaimTemplate": {}}}], ["default/p-d"], id="made for it"),
    ],
)
def test_a_pod_uses(volumes: list[Document], keys: list[str]) -> None:
    assert [*claim_keys(backend_view("p", volumes=volumes))] == keys


def pod(*conditions: Condition, generation: int = 0) -> Pod:
    return Pod(metadata=ObjectMeta(generation=generation), status=PodStatus(conditions=conditions))


def target(reason: str = "why", message: str = "words", status: str = "True") -> Condition:
    return Condition(
        type="DisruptionTarget", status=status, reason=reason, message=message, last_transition_time="then"
    )


@pytest.mark.parametrize(
    ("seen", "changed"),
    [
        pytest.param(pod(), {"lastTransitionTime": "now"}, id="first recorded"),
        pytest.param(pod(generation=3), {"lastTransitionTime": "now", "observedGeneration": 3}, id="of a generation"),
        pytest.param(pod(target(reason="other")), {"lastTransitionTime": "then"}, id="another reason, the same time"),
        pytest.param(pod(target(status="False")), {"lastTransitionTime": "now"}, id="it was false before"),
        pytest.param(pod(target()), None, id="recorded already"),
    ],
)
def test_the_condition(seen: Pod, changed: Document | None) -> None:
    common = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "why",
        "message": "words",
        "lastProbeTime": None,
    }
    wanted = {**common, **changed} if changed is not None else None
    assert disruption_condition(seen, "why", "words", "now") == wanted


# --- The index says what a walk over the pods would say --------------------------------------------------------------


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


def test_a_selector_that_selects_nothing_follows_no_pod() -> None:
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
        assert not selectors.is_any_in("default"), "the broken one selects no pod"
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


# --- Which pods of a set go first ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stays", "goes"),
    [
        pytest.param({"on": "n1"}, {"on": ""}, id="one without a node before one that is placed"),
        pytest.param({"phase": "Running"}, {"phase": "Pending"}, id="Pending before Running"),
        pytest.param({"phase": "Running"}, {"phase": "Unknown"}, id="Unknown before Running"),
        pytest.param({"phase": "Unknown"}, {"phase": "Pending"}, id="Pending before Unknown"),
        pytest.param({"ready_for_s": 10}, {}, id="not ready before ready"),
        pytest.param({"cost": "10"}, {"cost": "-10"}, id="cheap before dear"),
        pytest.param({}, {"cost": "-1"}, id="cheap before one without a cost"),
        pytest.param({"ready_for_s": 100_000}, {"ready_for_s": 10}, id="ready for a short time before long ready"),
        pytest.param({"restarts": 1}, {"restarts": 2}, id="often restarted before seldom"),
        pytest.param({"age_s": 100_000}, {"age_s": 10}, id="young before old"),
        pytest.param({"cost": "-5", "ready_for_s": 5}, {"cost": "5"}, id="readiness counts more than cost"),
        pytest.param(
            {"ready_for_s": 9, "restarts": 0}, {"ready_for_s": 9, "restarts": 1}, id="ready at once: restarts"
        ),
    ],
)
def test_of_two_pods_one_goes(stays: dict[str, Any], goes: dict[str, Any]) -> None:
    first, second = pod_view("a", **stays), pod_view("b", **goes)
    assert pods_to_delete([first, second], [], 1, NOW_S) == [second]
    assert pods_to_delete([second, first], [], 1, NOW_S) == [second]


def test_times_of_the_same_power_of_two_are_equal_and_the_uid_decides() -> None:
    # 2^33 ns are 8.6 s, 2^34 are 17.2 s: both ages lie in between.
    young, old = pod_view("a", ready_for_s=9), pod_view("b", ready_for_s=16)
    assert pods_to_delete([old, young], [], 1, NOW_S) == [young]
    young, old = pod_view("b", ready_for_s=9), pod_view("a", ready_for_s=16)
    assert pods_to_delete([old, young], [], 1, NOW_S) == [old]


def test_a_node_with_more_related_pods_gives_first() -> None:
    pods = [pod_view("a", on="n1", ready_for_s=5), pod_view("b", on="n2", ready_for_s=5)]
    related = [*pods, pod_view("other", on="n1")]
    assert pods_to_delete([*reversed(pods)], related, 1, NOW_S) == [pods[0]]


def test_finished_pods_do_not_count_as_related() -> None:
    pods = [pod_view("a", on="n1", ready_for_s=100), pod_view("b", on="n2", ready_for_s=5)]
    related = [*pods, pod_view("done", on="n1", phase="Succeeded"), pod_view("going", on="n1", going=True)]
    assert pods_to_delete(pods, related, 1, NOW_S) == [pods[1]]


def test_if_all_pods_are_deleted_none_is_compared() -> None:
    pods = [pod_view("a"), pod_view("b")]
    assert pods_to_delete(pods, [], 2, NOW_S) == pods


@pytest.mark.parametrize(
    ("text", "cost"),
    [("100", 100), ("-7", -7), ("0", 0), ("+5", 0), ("007", 0), ("1_0", 0), ("many", 0), ("", 0), ("9999999999", 0)],
)
def test_what_is_no_number_costs_nothing(text: str, cost: int) -> None:
    assert deletion_cost({"controller.kubernetes.io/pod-deletion-cost": text}) == cost
