"""GPU fragmentation: the tables have the values of the definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.scheduler.cache.columns import Columns
from mooring.simulator.fragmentation import GpuFragmentation, typical_pods
from mooring.simulator.gpus import GPU_COUNT, GPU_MILLI, GPU_MODEL, GPU_MODELS, GpuColumns, GpuRequest
from mooring.simulator.workload import PodTypes, pod_view
from tests.builders import node

MODELS = ("P100", "T4")


@st.composite
def requests(draw: st.DrawFn) -> GpuRequest:
    gpus = draw(st.sampled_from([0, 1, 1, 1, 2, 4]))
    milli = draw(st.integers(1, 1000)) if gpus == 1 else 1000 * (gpus > 0)
    models = frozenset(draw(st.sets(st.sampled_from(MODELS)))) if gpus else frozenset[str]()
    return GpuRequest(draw(st.integers(0, 20)) * 1000, gpus, milli, models)


def unusable_milli(left: list[int], cpu_left: int, model: str, request: GpuRequest) -> int:
    """The definition, for one typical pod."""
    fitting = sum(amount >= request.milli for amount in left)
    fits = fitting >= request.gpus and cpu_left >= request.cpu_milli and (not request.models or model in request.models)
    if not request.gpus or not fits:
        return sum(left)
    return sum(amount for amount in left if amount < request.milli)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(requests(), st.integers(1, 9)), min_size=1, max_size=12),
    st.lists(st.integers(0, 1000) | st.just(1000), min_size=0, max_size=8),
    st.integers(0, 22),
    st.sampled_from(MODELS),
)
def test_the_tables_are_the_definition(
    weighted: list[tuple[GpuRequest, int]], left: list[int], cpu: int, model: str
) -> None:
    columns = Columns()
    for name in MODELS:
        columns.put_node(node(name, labels={GPU_COUNT: "8", GPU_MODEL: name}))
    gpus = columns.shared(GpuColumns)
    total = sum(weight for _, weight in weighted)
    typical = [(request, weight / total) for request, weight in weighted]
    gpus.left  # noqa: B018  # reads the nodes
    padded = np.array([[*left, *[0] * (8 - len(left))]], dtype=np.int64).T
    place = np.array([gpus.models.index(model)])

    found = GpuFragmentation(gpus, typical).of(padded, np.array([1000 * cpu]), place)

    wanted = sum(weight * unusable_milli(left, 1000 * cpu, model, request) for request, weight in typical)
    np.testing.assert_allclose(found, [wanted], atol=1e-6)


def test_typical_pods_cover_nearly_all() -> None:
    def pods(count: int, cpu: int, labels: dict[str, str]) -> list[object]:
        return [pod_view(f"{cpu}-{n}", {"cpu": str(cpu)}, labels=labels) for n in range(count)]

    share = {GPU_COUNT: "1", GPU_MILLI: "460", GPU_MODELS: "T4_P100"}
    views = [*pods(60, 1, share), *pods(36, 2, {}), *pods(4, 3, {})]
    found = typical_pods(Columns(), PodTypes(views))  # type: ignore[arg-type]
    assert [(request.cpu_milli, request.gpus, request.milli, sorted(request.models)) for request, _ in found] == [
        (1000, 1, 460, ["P100", "T4"]),
        (2000, 0, 0, []),
    ]
    assert sum(weight for _, weight in found) == 1.0
