"""How the figures of a cluster are told. What they are is measured by `python -m bench.cluster`."""

from __future__ import annotations

import pytest

from bench.cluster import QUICK, TOLERATED_S, Figure, Size, _deployment


@pytest.mark.parametrize(
    ("figure", "is_reached", "words"),
    [
        pytest.param(Figure("healed", 0.7, "s", 15.0), True, "(at most 15.00)", id="reached"),
        pytest.param(Figure("healed", 15.1, "s", 15.0), False, "(at most 15.00)   MISSED", id="missed"),
        pytest.param(Figure("CPU a pod", 1.9, "ms"), True, "1.90 ms", id="for comparison only"),
    ],
)
def test_a_figure_stands_beside_its_target(figure: Figure, is_reached: bool, words: str) -> None:
    assert figure.is_reached is is_reached
    assert str(figure).rstrip().endswith(words)


def test_the_pods_do_not_tolerate_a_lost_node_for_long() -> None:
    template = _deployment("web", 3)["spec"]["template"]  # type: ignore[index]
    assert {each["tolerationSeconds"] for each in template["spec"]["tolerations"]} == {TOLERATED_S}


def test_quick_is_a_fiftieth() -> None:
    whole = Size()
    assert (QUICK.nodes, QUICK.replicas, QUICK.lost, QUICK.deployments) == (
        whole.nodes // 50,
        whole.replicas // 50,
        whole.lost // 50,
        whole.deployments // 50,
    )
