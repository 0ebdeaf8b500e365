"""Counts of pods by selector, for each row and for each domain, from the first use of the selector on."""

from __future__ import annotations

import pytest

from mooring.api.labels import compile_selector
from mooring.api.views.meta import LabelSelector
from mooring.api.views.pod import Pod, PodAffinityTerm
from mooring.scheduler.cache import selectors
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.selectors import AffinityTerm, ExistingTerm, MatchCounter, PodSelector, PodTerms, TermKind
from tests.api.builders import selector
from tests.builders import HOSTNAME, ZONE, namespace, node, pod, pods_like
from tests.scheduler.harness import engine_of

WEB, DB = {"app": "web"}, {"app": "db"}


def part(selected: LabelSelector | None, *namespaces: str) -> PodSelector:
    return PodSelector(frozenset(namespaces) if namespaces else None, compile_selector(selected))


def count(columns: Columns, *parts: PodSelector, terminating: bool = False) -> MatchCounter:
    return columns.selectors.counter(parts, counts_terminating=terminating)


def rows(columns: Columns, counter: MatchCounter) -> dict[str, int]:
    return {name: int(counter.rows[row]) for name, row in columns.row_of.items() if counter.rows[row]}


def zones(columns: Columns, counter: MatchCounter) -> dict[str | None, int]:
    column = columns.labels.column(ZONE)
    counts = counter.domains(column, columns.height)
    return {column.values[code]: int(counts[code]) for code in range(column.codes_max) if counts[code]}


CLUSTER = (
    node("n1", zone="a"),
    node("n2", zone="a"),
    node("n3", zone="b"),
    node("n4"),
    pod("w1", labels=WEB, on="n1"),
    pod("w2", labels=WEB, on="n2"),
    pod("w3", labels=WEB, on="n2", terminating=True),
    pod("w4", labels=WEB, on="n3", namespace="shop"),
    pod("w5", labels=WEB, on="n4"),
    pod("d1", labels=DB | {"tier": "x"}, on="n3"),
    pod("nobody", on="n1"),
)


@pytest.mark.parametrize(
    ("parts", "terminating", "counted"),
    [
        pytest.param([part(selector(app="web"))], False, {"n1": 1, "n2": 1, "n3": 1, "n4": 1}, id="in any namespace"),
        pytest.param([part(selector(app="web"), "default")], False, {"n1": 1, "n2": 1, "n4": 1}, id="in one"),
        pytest.param(
            [part(selector(app="web"), "default")], True, {"n1": 1, "n2": 2, "n4": 1}, id="and on its way out"
        ),
        pytest.param([part(selector(), "default")], False, {"n1": 2, "n2": 1, "n3": 1, "n4": 1}, id="everybody"),
        pytest.param([part(None)], False, {}, id="no selector selects nobody"),
        pytest.param([part(selector("app In web,db"), "shop", "default")], False, {"n1": 1, "n2": 1, "n3": 2, "n4": 1}),
        pytest.param([part(selector("tier Exists"))], False, {"n3": 1}, id="by an expression"),
        pytest.param([part(selector("app NotIn web"), "default")], False, {"n1": 1, "n3": 1}, id="without the label"),
        pytest.param([part(selector(app="db")), part(selector(tier="x"))], False, {"n3": 1}, id="all parts must match"),
        pytest.param([part(selector(app="db")), part(selector(app="web"))], False, {}, id="which nobody does"),
    ],
)
def test_the_pods_that_a_counter_counts(parts: list[PodSelector], terminating: bool, counted: dict[str, int]) -> None:
    asked_late = engine_of(*CLUSTER).columns
    assert rows(asked_late, count(asked_late, *parts, terminating=terminating)) == counted
    engine = engine_of()
    counter = count(engine.columns, *parts, terminating=terminating)
    for view in CLUSTER:
        engine.put(view)
    assert rows(engine.columns, counter) == counted, "asked before anybody came"


def test_domains_are_sums_of_rows() -> None:
    columns = engine_of(*CLUSTER).columns
    assert zones(columns, count(columns, part(selector(app="web")))) == {"a": 2, "b": 1, None: 1}


def test_domains_follow_pods_and_nodes() -> None:
    engine = engine_of(*CLUSTER)
    columns = engine.columns
    counter = count(columns, part(selector(app="web"), "default"))
    assert zones(columns, counter) == {"a": 2, None: 1}
    engine.put(pod("w6", labels=WEB, on="n3"))
    engine.remove(pod("w1", labels=WEB, on="n1"))
    assert zones(columns, counter) == {"a": 1, "b": 1, None: 1}
    engine.put(node("n4", zone="b"))
    assert zones(columns, counter) == {"a": 1, "b": 2}
    engine.put(node("n2", zone="new"))
    assert zones(columns, counter) == {"new": 1, "b": 2}
    engine.put(node("n2", zone="b"))
    assert zones(columns, counter) == {"b": 3}
    engine.put(node("n2", zone="new"))
    engine.remove(node("n3"))
    assert zones(columns, counter) == {"new": 1, "b": 1}


def test_equal_conditions_share_a_counter() -> None:
    columns = Columns()
    same = count(columns, part(selector("app In web"), "a", "b"))
    assert count(columns, part(selector(app="web"), "b", "a")) is same
    assert count(columns, part(selector(app="web"), "b", "a"), terminating=True) is not same
    assert count(columns, part(selector(app="web"))) is not same


def test_a_dropped_counter_is_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(*CLUSTER)
    columns = engine.columns
    kept = count(columns, part(selector(app="web"), "default"))
    monkeypatch.setattr(selectors, "COUNTERS_BYTES_MAX", 1)
    for number in range(3):
        count(columns, part(selector(app=str(number))))
    assert not kept.registered
    engine.put(pod("w6", labels=WEB, on="n1"))
    assert rows(columns, columns.selectors.fresh(kept)) == {"n1": 2, "n2": 1, "n4": 1}


def test_counters_grow_with_the_table() -> None:
    engine = engine_of()
    counter = count(engine.columns, part(selector(app="web")))
    for number in range(200):
        engine.put(node(f"n{number}", zone=str(number % 7)))
    engine.put(pod("w", labels=WEB, on="n199"))
    assert rows(engine.columns, counter) == {"n199": 1}
    assert zones(engine.columns, counter) == {"3": 1}


WEB = {"app": "web"}
NEAR_DB = pods_like(ZONE, app="db")


def domains(term: ExistingTerm) -> dict[str | None, int]:
    by_domain = term.domain_counts()
    for row, code in enumerate(term.column.codes.tolist()):
        assert term.count_on(row) == (by_domain[code] if code else 0), f"row {row}"
    return {term.column.values[code]: int(count) for code, count in enumerate(term.domain_counts()) if count}


def existing_terms(columns: Columns) -> dict[TermKind, dict[str | None, int]]:
    return {term.kind: domains(term) for term in columns.terms if term.pod_count}


def spoken_to(columns: Columns, view: Pod) -> list[TermKind]:
    """The kinds of the existing terms that match a pod."""
    terms = columns.record(view).signature.label_class.terms
    return [term.kind for term in terms if term.pod_count]


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


def test_terms_are_counted_by_domain() -> None:
    engine = engine_of(node("n1", zone="a"), node("n2", zone="a"), node("n3", zone="b"), node("n4"))
    for name in ("n1", "n2", "n3", "n4"):
        engine.put(pod(f"on-{name}", on=name, apart=[NEAR_DB]))
    assert existing_terms(engine.columns) == {TermKind.ANTI_AFFINITY_REQUIRED: {"a": 2, "b": 1}}, "n4 has no zone"
    engine.put(node("n2", zone="b"))
    engine.put(node("n4", zone="c"))
    engine.remove(pod("on-n1"))
    assert existing_terms(engine.columns) == {TermKind.ANTI_AFFINITY_REQUIRED: {"b": 2, "c": 1}}


def test_pods_with_equal_terms_share_them() -> None:
    engine = engine_of(node("n1", zone="a"))
    engine.put(pod("web", on="n1", labels=WEB, cpu=1, apart=[NEAR_DB]))
    engine.put(pod("other", on="n1", apart=[pods_like(ZONE, "app In db")]))
    assert len([term for term in engine.columns.terms if term.pod_count]) == 1
    engine.put(pod("elsewhere", on="n1", namespace="shop", apart=[NEAR_DB]))
    assert len([term for term in engine.columns.terms if term.pod_count]) == 2, "of pods in another namespace"


def test_a_term_with_many_domains() -> None:
    engine = engine_of()
    for number in range(50):
        engine.put(node(f"n{number}"))
        engine.put(pod(f"p{number}", on=f"n{number}", apart=[pods_like(HOSTNAME, app="db")]))
    counted = existing_terms(engine.columns)[TermKind.ANTI_AFFINITY_REQUIRED]
    assert counted == {f"n{number}": 1 for number in range(50)}
    engine.put(node("late"))
    engine.put(pod("late", on="late", apart=[pods_like(HOSTNAME, app="db")]))
    engine.remove(pod("p7"))
    counted = existing_terms(engine.columns)[TermKind.ANTI_AFFINITY_REQUIRED]
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


def test_a_namespace_with_changed_labels_is_matched_again() -> None:
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
