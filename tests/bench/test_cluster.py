"""What the bench of a cluster is made of. Its figures are measured by `python -m bench.cluster`."""

from __future__ import annotations

from bench.cluster import QUICK, TOLERATED_S, Size, _deployment


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
