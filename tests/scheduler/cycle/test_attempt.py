"""An attempt: what each row answered, put together from filters that were asked in any order."""

from __future__ import annotations

import numpy as np
import pytest

from mooring.api.views.pod import Pod
from mooring.scheduler.cycle.attempt import LEFT_OUT
from mooring.scheduler.cycle.result_cache import FITS
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.status import Code, Status
from tests.api.builders import node_selector, term
from tests.builders import HOSTNAME, node, pod, pods_like
from tests.scheduler.harness import attempt_of, engine_of

WEB = {"app": "web"}


def cluster() -> Engine:
    """Nodes that refuse a big web pod that wants to be alone, each for another reason."""
    engine = engine_of(
        node("fits"),
        node("cordoned", unschedulable=True),
        node("gone"),
        node("small", cpu=1),
        node("busy", cpu=4),
        node("taken"),
        node("both", cpu=1, taints=["gpu:NoSchedule"]),
        pod("a", cpu=3, on="busy"),
        pod("b", labels=WEB, on="taken"),
    )
    engine.remove(node("gone"))
    return engine


BIG = pod(cpu=2, labels=WEB, apart=[pods_like(HOSTNAME, app="web")])


def test_the_first_refusing_filter_and_what_it_said() -> None:
    engine = cluster()
    attempt = attempt_of(engine, BIG)
    said = {name: attempt.status_at(row) for name, row in engine.columns.row_of.items()}
    assert said == {
        "fits": None,
        "cordoned": Status(Code.UNRESOLVABLE, ("node(s) were unschedulable",), "NodeUnschedulable"),
        "small": Status(Code.UNRESOLVABLE, ("Insufficient cpu",), "NodeResourcesFit"),
        "busy": Status(Code.UNSCHEDULABLE, ("Insufficient cpu",), "NodeResourcesFit"),
        "taken": Status(Code.UNSCHEDULABLE, ("node(s) didn't match pod anti-affinity rules",), "InterPodAffinity"),
        "both": Status(Code.UNRESOLVABLE, ("node(s) had untolerated taint(s)",), "TaintToleration"),
    }
    assert np.arange(engine.columns.height)[attempt.feasible].tolist() == [engine.columns.row_of["fits"]]


def test_rows_by_code() -> None:
    engine = cluster()
    attempt = attempt_of(engine, BIG)
    names = engine.columns.node_names

    def refused_with(code: Code) -> list[str]:
        return [names[row] for row in np.flatnonzero(attempt.is_rejected_with(code))]

    assert refused_with(Code.UNSCHEDULABLE) == ["busy", "taken"]
    assert refused_with(Code.UNRESOLVABLE) == ["cordoned", "small", "both"]
    assert refused_with(Code.ERROR) == []
    rows = engine.columns.row_of
    codes = {name: attempt.code_at(row) for name, row in rows.items()}
    assert codes["fits"] is Code.SUCCESS
    assert codes["small"] is Code.UNRESOLVABLE
    assert codes["busy"] is Code.UNSCHEDULABLE


def test_filters_that_refused_some_rows() -> None:
    engine = cluster()
    attempt = attempt_of(engine, BIG)
    found = {use.plugin.name: len(rows) for use, rows, _ in attempt.rejections()}
    assert found == {"NodeUnschedulable": 1, "TaintToleration": 1, "NodeResourcesFit": 2, "InterPodAffinity": 1}


def test_rows_that_nobody_was_asked_about() -> None:
    engine = engine_of(node("n1"), node("n2"), node("n3"), node("n4"))
    engine.remove(node("n2"))
    attempt = attempt_of(engine, pod(nodes=node_selector(term(fields=["metadata.name In n3"]))))
    assert attempt.first.tolist() == [LEFT_OUT, LEFT_OUT, FITS, LEFT_OUT]
    assert attempt.left_out_count == 2, "a row without a node is nobody"
    assert attempt.status_at(0) == Status(Code.UNRESOLVABLE, ("node(s) didn't satisfy plugin(s) [NodeAffinity]",))
    assert attempt.code_at(0) is Code.UNRESOLVABLE


@pytest.mark.parametrize(
    ("view", "plugin", "was_asked"),
    [
        pytest.param(pod(), "DynamicResources", True, id="nobody rejects: all were asked"),
        pytest.param(
            pod(nodes=node_selector(term(fields=["metadata.name In a", "metadata.name In b"]))),
            "DynamicResources",
            False,
            id="somebody before it rejected",
        ),
        pytest.param(pod(claims=["missing"]), "NodeResourcesFit", True, id="somebody after it rejected"),
    ],
)
def test_whether_a_pre_filter_was_asked(view: Pod, plugin: str, was_asked: bool) -> None:
    assert attempt_of(engine_of(node("n1")), view).was_pre_filtered(plugin) is was_asked
