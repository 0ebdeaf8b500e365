"""Affinity terms: whom they speak of, and how many placed pods say them where."""

from __future__ import annotations

import pytest

from mooring.api.views.pod import Pod, PodAffinityTerm
from mooring.api.views.selectors import LabelSelector
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.terms import AffinityTerm, CarriedTerm, PodTerms, TermKind
from tests.api.builders import selector
from tests.builders import HOSTNAME, ZONE, namespace, node, pod, pods_like
from tests.scheduler.harness import engine_of

WEB = {"app": "web"}
NEAR_DB = pods_like(ZONE, app="db")


def domains(term: CarriedTerm) -> dict[str | None, int]:
    by_domain = term.domain_counts()
    for row, code in enumerate(term.column.codes.tolist()):
        assert term.count_on(row) == (by_domain[code] if code else 0), f"row {row}"
    return {term.column.values[code]: int(count) for code, count in enumerate(term.domain_counts()) if count}


def carried(columns: Columns) -> dict[TermKind, dict[str | None, int]]:
    return {term.kind: domains(term) for term in columns.terms if term.carriers}


def spoken_to(columns: Columns, view: Pod) -> list[TermKind]:
    """The kinds of the carried terms that speak of a pod."""
    terms = columns.record(view).signature.label_class.terms
    return [term.kind for term in terms if term.carriers]


def test_terms_are_sorted_by_kind_and_weight() -> None:
    terms = PodTerms(pod(near=[NEAR_DB], apart=[NEAR_DB], prefers_near=[(3, NEAR_DB)], prefers_apart=[(5, NEAR_DB)]))
    assert {kind: [weight for _, weight in said] for kind, said in terms.of_kind.items()} == {
        TermKind.AFFINITY_REQUIRED: [1],
        TermKind.ANTI_AFFINITY_REQUIRED: [1],
        TermKind.AFFINITY_PREFERRED: [3],
        TermKind.ANTI_AFFINITY_PREFERRED: [5],
    }
    assert terms.error is None
    assert PodTerms(pod()).of_kind == {}


BAD = pods_like(ZONE, "app Sometimes")


@pytest.mark.parametrize(
    ("view", "error", "left"),
    [
        pytest.param(
            pod(near=[BAD], apart=[NEAR_DB]),
            'requiredAffinityTerms: "Sometimes" is not a valid label selector operator',
            [TermKind.ANTI_AFFINITY_REQUIRED],
            id="one kind",
        ),
        pytest.param(
            pod(prefers_near=[(1, BAD)], apart=[BAD, NEAR_DB]),
            '[requiredAntiAffinityTerms: "Sometimes" is not a valid label selector operator, '
            'preferredAffinityTerms: "Sometimes" is not a valid label selector operator]',
            [],
            id="two kinds, the required one first",
        ),
    ],
)
def test_terms_that_cannot_be_read(view: Pod, error: str, left: list[TermKind]) -> None:
    terms = PodTerms(view)
    assert terms.error == error
    assert [kind for kind, said in terms.of_kind.items() if said] == left


@pytest.mark.parametrize(
    ("term", "namespaces"),
    [
        pytest.param(pods_like(ZONE, app="db"), {"mine"}, id="nothing said: the pod's own"),
        pytest.param(pods_like(ZONE, app="db", namespaces=["a", "b"]), {"a", "b"}, id="named ones instead"),
        pytest.param(pods_like(ZONE, app="db", namespaces_like=selector(team="x")), set(), id="selected ones instead"),
        pytest.param(
            pods_like(ZONE, app="db", namespaces=["a"], namespaces_like=selector(team="x")), {"a"}, id="or both"
        ),
    ],
)
def test_the_namespaces_that_a_term_names(term: PodAffinityTerm, namespaces: set[str]) -> None:
    assert AffinityTerm(term, "mine").namespaces == namespaces


def test_carriers_are_counted_by_domain() -> None:
    engine = engine_of(node("n1", zone="a"), node("n2", zone="a"), node("n3", zone="b"), node("n4"))
    for name in ("n1", "n2", "n3", "n4"):
        engine.put(pod(f"on-{name}", on=name, apart=[NEAR_DB]))
    assert carried(engine.columns) == {TermKind.ANTI_AFFINITY_REQUIRED: {"a": 2, "b": 1}}, "n4 has no zone to speak for"
    engine.put(node("n2", zone="b"))
    engine.put(node("n4", zone="c"))
    engine.remove(pod("on-n1"))
    assert carried(engine.columns) == {TermKind.ANTI_AFFINITY_REQUIRED: {"b": 2, "c": 1}}


def test_pods_that_say_the_same_share_a_term() -> None:
    engine = engine_of(node("n1", zone="a"))
    engine.put(pod("web", on="n1", labels=WEB, cpu=1, apart=[NEAR_DB]))
    engine.put(pod("other", on="n1", apart=[pods_like(ZONE, "app In db")]))
    assert len([term for term in engine.columns.terms if term.carriers]) == 1
    engine.put(pod("elsewhere", on="n1", namespace="shop", apart=[NEAR_DB]))
    assert len([term for term in engine.columns.terms if term.carriers]) == 2, "of pods in another namespace"


def test_a_term_with_many_domains() -> None:
    engine = engine_of()
    for number in range(50):
        engine.put(node(f"n{number}"))
        engine.put(pod(f"p{number}", on=f"n{number}", apart=[pods_like(HOSTNAME, app="db")]))
    counted = carried(engine.columns)[TermKind.ANTI_AFFINITY_REQUIRED]
    assert counted == {f"n{number}": 1 for number in range(50)}
    engine.put(node("late"))
    engine.put(pod("late", on="late", apart=[pods_like(HOSTNAME, app="db")]))
    engine.remove(pod("p7"))
    counted = carried(engine.columns)[TermKind.ANTI_AFFINITY_REQUIRED]
    assert counted == {f"n{number}": 1 for number in range(50) if number != 7} | {"late": 1}


@pytest.mark.parametrize(
    ("namespaces_like", "is_spoken_to"),
    [
        pytest.param(selector(team="x"), {"a"}, id="by label"),
        pytest.param(selector(), {"a", "b", "unlabelled", "unknown"}, id="all"),
        pytest.param(selector("team NotIn x"), {"b", "unlabelled", "unknown"}, id="without the label"),
    ],
)
def test_terms_select_namespaces_by_their_labels(namespaces_like: LabelSelector, is_spoken_to: set[str]) -> None:
    engine = engine_of(
        node("n1", zone="a"), namespace("a", team="x"), namespace("b", team="y"), namespace("unlabelled")
    )
    term = pods_like(ZONE, app="web", namespaces_like=namespaces_like)
    engine.put(pod("speaker", on="n1", apart=[term]))
    listeners = ("a", "b", "unlabelled", "unknown")
    assert {n for n in listeners if spoken_to(engine.columns, pod(namespace=n, labels=WEB))} == is_spoken_to


def test_a_namespace_that_changes_its_labels_is_selected_anew() -> None:
    engine = engine_of(node("n1", zone="a"), namespace("shop", team="x"))
    term = pods_like(ZONE, app="web", namespaces_like=selector(team="x"))
    listener = pod(namespace="shop", labels=WEB)
    engine.put(pod("speaker", on="n1", apart=[term]))
    assert spoken_to(engine.columns, listener) == [TermKind.ANTI_AFFINITY_REQUIRED]
    engine.put(namespace("shop", team="y"))
    assert spoken_to(engine.columns, listener) == []
    engine.put(namespace("shop", team="x"))
    assert spoken_to(engine.columns, listener) == [TermKind.ANTI_AFFINITY_REQUIRED]
    engine.remove(namespace("shop"))
    assert spoken_to(engine.columns, listener) == []
