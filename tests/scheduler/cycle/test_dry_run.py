"""Experiments on many rows: each is judged as if it alone had changed."""

from __future__ import annotations

import numpy as np

from mooring.api.views.pod import Pod
from mooring.scheduler.cycle.dry_run import DryRun
from mooring.scheduler.cycle.result_cache import FITS
from mooring.scheduler.engine import Engine
from tests.builders import HOSTNAME, ZONE, node, pod, pods_like, spread
from tests.scheduler.harness import attempt_of, engine_of

WEB = {"app": "web"}


class Trial:
    """An experiment on all nodes of a cluster, by name."""

    def __init__(self, engine: Engine, view: Pod) -> None:
        self._engine = engine
        self._names = list(engine.columns.row_of)
        attempt = attempt_of(engine, view)
        rows = np.array(list(engine.columns.row_of.values()), dtype=np.int64)
        self._attempt = attempt
        self.experiment = DryRun(attempt, rows, attempt.profile.filters)

    def remove(self, name: str) -> None:
        pod = self._engine.columns.pods[f"default/{name}"]
        self.experiment.remove(self._names.index(pod.node_name), pod)

    def add(self, view: Pod, node_name: str) -> None:
        self.experiment.add(self._names.index(node_name), self._engine.record(view))

    def refusing(self, *, beside_nominated: bool = False) -> dict[str, str]:
        at = np.arange(len(self._names))
        ask = self.experiment.rejections_with_nominated_pods if beside_nominated else self.experiment.rejections
        first, _ = ask(at)
        filters = self._attempt.profile.filters
        return {
            name: filters[number].plugin.name for name, number in zip(self._names, first.tolist()) if number != FITS
        }


def test_filters_of_the_row_see_the_rows_own_changes() -> None:
    engine = engine_of(node("n1", cpu=2), node("n2", cpu=2), pod("a", cpu=1, on="n1"), pod("b", cpu=1, on="n2"))
    trial = Trial(engine, pod(cpu=2))
    with trial.experiment:
        assert trial.refusing() == {"n1": "NodeResourcesFit", "n2": "NodeResourcesFit"}
        trial.remove("a")
        assert trial.refusing() == {"n2": "NodeResourcesFit"}
        trial.add(pod("c", ports=["80"], cpu=1), "n1")
        assert trial.refusing() == {"n1": "NodeResourcesFit", "n2": "NodeResourcesFit"}


def test_filters_of_the_cluster_do_not_see_the_changes_of_other_rows() -> None:
    """Both nodes lose their web pod, but each is judged as if the other still had its own."""
    engine = engine_of(
        node("n1", zone="a"), node("n2", zone="b"), pod("a", labels=WEB, on="n1"), pod("b", labels=WEB, on="n2")
    )
    apart = Trial(engine, pod(apart=[pods_like(HOSTNAME, app="web")]))
    with apart.experiment:
        apart.remove("a")
        apart.remove("b")
        assert apart.refusing() == {}
    near = Trial(engine, pod(near=[pods_like(HOSTNAME, app="web")]))
    with near.experiment:
        near.remove("a")
        near.remove("b")
        assert near.refusing() == {"n1": "InterPodAffinity", "n2": "InterPodAffinity"}
    even = Trial(engine, pod(labels=WEB, spread=[spread(ZONE, app="web")]))
    with even.experiment:
        even.add(pod("c", labels=WEB), "n1")
        even.add(pod("d", labels=WEB), "n2")
        assert even.refusing() == {"n1": "PodTopologySpread", "n2": "PodTopologySpread"}, "2 and 2 would be even"


def test_facts_are_what_they_were() -> None:
    engine = engine_of(node("n1", taints=["gpu:NoSchedule"], cpu=1), pod("a", cpu=1, on="n1"), node("n2"))
    trial = Trial(engine, pod(cpu=2))
    with trial.experiment:
        trial.remove("a")
        assert trial.refusing() == {"n1": "TaintToleration"}


def test_nominated_pods_count_as_present_and_as_absent() -> None:
    engine = engine_of(
        node("n1", cpu=2),
        node("n2", cpu=2),
        pod("a", cpu=2, on="n1"),
        pod("q", cpu=1, priority=5, nominated="n1"),
        pod("r", cpu=1, priority=0, nominated="n2"),
    )
    trial = Trial(engine, pod(cpu=2, priority=5))
    with trial.experiment:
        assert trial.refusing() == {"n1": "NodeResourcesFit"}
        trial.remove("a")
        assert trial.refusing() == {}
        assert trial.refusing(beside_nominated=True) == {"n1": "NodeResourcesFit"}
    assert engine.columns.pods["default/a"].node_name == "n1"
