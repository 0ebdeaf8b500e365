"""Objects that plugins read, and the disruption budgets among them."""

from __future__ import annotations

import pytest

from mooring.api.views.meta import LabelSelector
from mooring.api.views.workloads import Namespace, PodDisruptionBudget, Service
from mooring.scheduler.cache.disruption_budgets import BudgetRule, DisruptionBudgets
from mooring.scheduler.cache.objects import ObjectStores
from tests.api.builders import selector
from tests.builders import budget, namespace, pod, service
from tests.scheduler.harness import engine_of


def test_objects_are_found_by_key_and_by_namespace() -> None:
    services = ObjectStores().of(Service)
    web, db, other = service("web"), service("db"), service("web", "shop")
    for service_view in (web, db, other):
        services.put(service_view)
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


# --- PodDisruptionBudgets: whom they protect, by the rule of kube-scheduler and by that of kube-apiserver


WEB = {"app": "web"}
VICTIMS = (
    pod("w1", labels=WEB),
    pod("w2", labels=WEB | {"tier": "x"}),
    pod("w3", labels=WEB, namespace="shop"),
    pod("bare"),
)


@pytest.mark.parametrize(
    ("budgets", "violating"),
    [
        pytest.param([], [], id="no budgets"),
        pytest.param([budget("b", selector(app="web"), allowed=0)], ["w1", "w2"], id="none may go"),
        pytest.param([budget("b", selector(app="web"), allowed=1)], ["w2"], id="the most important one may"),
        pytest.param([budget("b", selector(app="web"), allowed=2)], [], id="both may"),
        pytest.param([budget("b", selector(app="web"), allowed=0, namespace="shop")], ["w3"], id="its own namespace"),
        pytest.param([budget("b", selector(), allowed=0)], [], id="an empty selector protects nobody"),
        pytest.param([budget("b", None, allowed=0)], [], id="nor does none"),
        pytest.param([budget("b", selector("app Sometimes"), allowed=0)], [], id="nor one that nobody can read"),
        pytest.param(
            [budget("b", selector("app NotIn db"), allowed=0)], ["w1", "w2"], id="pods without labels are left out"
        ),
        pytest.param(
            [budget("b", selector(app="web"), allowed=0, disrupted=["w1"])], ["w2"], id="one that is going anyway"
        ),
        pytest.param(
            [budget("b", selector(app="web"), allowed=1), budget("c", selector(tier="x"), allowed=0)],
            ["w2"],
            id="any budget is enough",
        ),
        pytest.param(
            [budget("b", selector(app="web"), allowed=1), budget("c", selector("tier DoesNotExist"), allowed=0)],
            ["w1", "w2"],
            id="a pod that violates one budget still uses up another",
        ),
    ],
)
def test_which_pods_violate_a_budget(budgets: list[PodDisruptionBudget], violating: list[str]) -> None:
    engine = engine_of(*budgets)
    victims = [engine.record(view) for view in VICTIMS]
    found, others = DisruptionBudgets(engine.columns.objects.of(PodDisruptionBudget)).split(victims)
    assert [victim.name for victim in found] == violating
    assert [victim.name for victim in others] == [v.name for v in victims if v.name not in violating]


def test_budgets_are_read_again_when_they_change() -> None:
    engine = engine_of()
    budgets = DisruptionBudgets(engine.columns.objects.of(PodDisruptionBudget))
    victims = [engine.record(VICTIMS[0])]
    assert budgets.split(victims) == ([], victims)
    before = budgets.version
    engine.put(budget("b", selector(app="web"), allowed=0))
    assert budgets.split(victims) == (victims, [])
    assert budgets.version > before
    engine.remove(budget("b", None, allowed=0))
    assert budgets.split(victims) == ([], victims)


@pytest.mark.parametrize(
    ("selected", "preemption", "eviction"),
    [
        pytest.param(selector(app="web"), {"w1", "w2"}, {"w1", "w2"}, id="of labels"),
        pytest.param(selector(), set(), {"w1", "w2", "bare"}, id="empty: every pod of the namespace, or none"),
        pytest.param(None, set(), set(), id="none"),
        pytest.param(selector("app Sometimes"), set(), set(), id="invalid"),
        pytest.param(selector("app NotIn db"), {"w1", "w2"}, {"w1", "w2", "bare"}, id="that pods without labels match"),
    ],
)
def test_the_two_rules(selected: LabelSelector | None, preemption: set[str], eviction: set[str]) -> None:
    engine = engine_of(budget("b", selected, allowed=0))
    budgets = DisruptionBudgets(engine.columns.objects.of(PodDisruptionBudget))
    for rule, protected in ((BudgetRule.PREEMPTION, preemption), (BudgetRule.EVICTION, eviction)):
        count = budgets.count(rule)
        assert {view.metadata.name for view in VICTIMS if count.blocking(engine.record(view))} == protected, rule


def test_an_eviction_counts_until_it_is_given_back() -> None:
    engine = engine_of(budget("b", selector(app="web"), allowed=1, disrupted=["w1"]))
    first, second = (engine.record(view) for view in VICTIMS[:2])
    count = DisruptionBudgets(engine.columns.objects.of(PodDisruptionBudget)).count(BudgetRule.EVICTION)
    assert (count.take(first), count.take(second), count.blocking(first)) == ((), ("default/b",), ("default/b",))
    count.give_back(first)
    count.give_back(second)
    assert count.blocking(second) == ()
    preemption = DisruptionBudgets(engine.columns.objects.of(PodDisruptionBudget)).count(BudgetRule.PREEMPTION)
    assert (preemption.take(first), preemption.take(second)) == ((), ())  # the first is disrupted already
