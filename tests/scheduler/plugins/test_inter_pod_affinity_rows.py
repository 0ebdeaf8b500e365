"""Anti-affinity told row by row: when it can be, and then the same as InterPodAffinity says."""

from __future__ import annotations

import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.plugin import Proceed
from mooring.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from tests.builders import HOSTNAME, ZONE, node, pod, pods_like
from tests.scheduler.harness import engine_of, plugin_of

WEB, DB = {"app": "web"}, {"app": "db"}
NOT_HERE, NOT_IN_ZONE = pods_like(HOSTNAME, app="web"), pods_like(ZONE, app="web")
NODES = (node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), node("x"))


def dislikes(engine: Engine) -> InterPodAffinity:
    return plugin_of(engine, InterPodAffinity)


@pytest.mark.parametrize(
    ("there", "wanting", "can_be_told"),
    [
        pytest.param([], pod(labels=WEB, apart=[NOT_HERE]), True, id="never two on a host"),
        pytest.param([pod("w", apart=[NOT_HERE], on="a1")], pod(labels=WEB), True, id="unwanted on a host"),
        pytest.param([], pod(labels=WEB), False, id="nobody says anything"),
        pytest.param([], pod(labels=WEB, apart=[NOT_IN_ZONE]), False, id="zones have several nodes"),
        pytest.param([pod("w", apart=[NOT_IN_ZONE], on="a1")], pod(labels=WEB), False, id="unwanted in a zone"),
        pytest.param([], pod(apart=[NOT_HERE], near=[NOT_HERE]), False, id="it must be near somebody, too"),
        pytest.param(
            [node("twin", labels={HOSTNAME: "a1"})],
            pod(apart=[NOT_HERE]),
            False,
            id="two nodes are one host",
        ),
    ],
)
def test_when_rows_can_be_told_one_by_one(there: list[ApiObject], wanting: Pod, can_be_told: bool) -> None:
    engine = engine_of(*NODES, *there)
    assert (dislikes(engine).row_twin(engine.record(wanting)) is not None) == can_be_told


@pytest.mark.parametrize(
    "placed",
    [
        pytest.param([], id="nobody is there"),
        pytest.param([pod("w", labels=WEB, on="a1")], id="one whom it dislikes"),
        pytest.param([pod("d", labels=DB, apart=[NOT_HERE], on="b1")], id="one who dislikes it"),
        pytest.param(
            [pod("w", labels=WEB, apart=[NOT_HERE], on="a2"), pod("d", labels=DB, on="x")],
            id="both, and others",
        ),
    ],
)
def test_each_row_is_told_as_all_rows_are(placed: list[Pod]) -> None:
    engine = engine_of(*NODES, *placed)
    plugin, wanting = dislikes(engine), engine.record(pod(labels=WEB, apart=[NOT_HERE]))
    twin, answer = plugin.row_twin(wanting), plugin.pre_filter(wanting)
    assert twin is not None
    assert isinstance(answer, Proceed)
    rows = engine.columns.live_rows
    expected = plugin.filter(answer.state, rows).tolist()
    assert twin.plugin.filter(twin.state, rows).tolist() == expected
    assert [twin.plugin.filter_row(twin.state, row) for row in range(len(NODES))] == expected


def test_what_was_kept_is_asked_anew_when_nodes_begin_to_share_a_domain() -> None:
    engine = engine_of(*NODES, pod("w", labels=WEB, on="a1"))
    wanting = engine.record(pod("new", labels=WEB, apart=[NOT_HERE]))
    assert engine.decide(wanting).feasible_count == 3
    engine.put(node("a2", zone="a", labels={HOSTNAME: "a1"}))
    assert engine.decide(wanting).feasible_count == 2
