"""The registry of shapes: shared while in use, forgotten after, and back when they are needed again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mooring.api.labels import compile_selector
from mooring.api.views.pod import Pod, PodAffinityTerm
from mooring.scheduler.cache import pods
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.selectors import PodSelector
from mooring.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from tests.api.builders import selector
from tests.builders import HOSTNAME, node, pod, pods_like
from tests.scheduler.harness import decide, engine_of, rejected_by

WEB = {"app": "web"}


@pytest.fixture(autouse=True)
def _forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps spare nobody who has no pods."""
    monkeypatch.setattr(pods, "RECENT_USES", 0)


def swept(columns: Columns) -> None:
    columns.record(pod("somebody else", namespace="elsewhere"))
    columns.signatures.sweep()


def web(name: str, apart: Sequence[PodAffinityTerm] = ()) -> Pod:
    return pod(name, labels=WEB, apart=apart)


def test_pods_that_are_alike_share_a_shape() -> None:
    columns = Columns()
    assert columns.record(web("a")).signature is columns.record(web("b")).signature
    assert len(columns.signatures) == 1


def test_an_unused_signature_is_removed() -> None:
    columns = Columns()
    signature = columns.record(web("a", apart=[pods_like(HOSTNAME, app="web")])).signature
    swept(columns)
    assert not signature.registered
    assert list(columns.terms) == []
    assert all(each.labels != WEB for each in columns.selectors.classes)


def test_a_shape_with_placed_pods_stays() -> None:
    columns = Columns()
    columns.put_node(node("n1"))
    record = columns.record(web("a"))
    columns.place(record, "n1")
    swept(columns)
    assert record.signature.registered
    columns.displace(record)
    swept(columns)
    assert not record.signature.registered


def test_the_registry_sweeps_itself_when_it_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods, "SIGNATURES_BEFORE_SWEEP", 4)
    registry = Columns()
    registry.signatures.sweep()
    for number in range(50):
        registry.record(pod(f"p{number}", labels={"number": str(number)}))
    assert len(registry.signatures) <= 5


def test_a_pod_that_outlived_its_shape_is_placed_as_any_other() -> None:
    columns = Columns()
    columns.put_node(node("n1"))
    old = columns.record(web("old"))
    swept(columns)
    new = columns.record(web("new"))
    columns.place(old, "n1")
    assert old.signature is new.signature
    columns.displace(old)
    swept(columns)
    columns.place(new, "n1")
    part = PodSelector(None, compile_selector(selector(app="web")))
    assert columns.selectors.counter((part,), wants_terminating=False).rows[0] == 1


def test_a_pod_that_outlived_its_shape_is_rejected_as_any_other() -> None:
    engine = engine_of(node("n1"))
    waiting = engine.record(web("waiting"))
    swept(engine.columns)
    engine.put(pod("loner", on="n1", apart=[pods_like(HOSTNAME, app="web")]))
    status = engine.decide(waiting, in_full=True).node_to_status["n1"]
    assert status is not None
    assert status.reasons == ("node(s) didn't satisfy existing pods anti-affinity rules",)


def test_a_shape_that_comes_back_carries_its_terms_again() -> None:
    engine = engine_of(node("n1"), node("n2"))
    loner = engine.record(web("loner", apart=[pods_like(HOSTNAME, app="web")]))
    swept(engine.columns)
    engine.columns.place(loner, "n2")
    assert rejected_by(engine, InterPodAffinity, web("another")) == {
        "n2": ("node(s) didn't satisfy existing pods anti-affinity rules",)
    }
    assert decide(engine, web("another")).node_name == "n1"
