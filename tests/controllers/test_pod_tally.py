"""The tally says what a walk over the pods would say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mooring.api.views.pod import Pod
from mooring.client.cache.informer import Informer
from mooring.client.interface import Change
from mooring.controllers.pod_tally import PodTally
from mooring.controllers.pods import is_active, is_ready, is_terminating
from tests.controllers.builders import pod_view

OWNERS = ("", "uid-a", "uid-b")

pods = st.builds(
    pod_view,
    st.sampled_from(("p1", "p2", "p3", "p4")),
    phase=st.sampled_from(("Pending", "Running", "Failed", "Succeeded")),
    ready_for_s=st.sampled_from((None, 10)),
    labels=st.sampled_from(({"app": "web"}, {"app": "db"})),
    owner=st.sampled_from(OWNERS),
    going=st.booleans(),
)


def walked(informer: Informer[Pod], owner: str) -> dict[object, tuple[int, int, int, int]]:
    found: dict[object, tuple[int, int, int, int]] = {}
    for pod in informer.lister:
        references = pod.metadata.owner_references
        if not references or references[0].uid != owner:
            continue
        key = tuple(pod.metadata.labels.items())
        every, active, ready, terminating = found.get(key, (0, 0, 0, 0))
        is_counted = is_active(pod)
        found[key] = (
            every + 1,
            active + is_counted,
            ready + (is_counted and is_ready(pod)),
            terminating + is_terminating(pod),
        )
    return found


@given(st.lists(st.tuples(st.sampled_from((Change.MODIFIED, Change.DELETED)), pods), max_size=30))
def test_it_counts_as_if_it_looked_at_each(changes: list[tuple[Change, Pod]]) -> None:
    informer: Informer[Pod] = Informer("pods")
    tally = PodTally(informer)
    for number, (change, pod) in enumerate(changes):
        metadata = replace(pod.metadata, resource_version=str(number + 2))
        informer.apply(change, Pod(metadata=metadata, spec=pod.spec, status=pod.status))
        for owner in OWNERS[1:]:
            told = {
                labels: (counts.all, counts.active, counts.ready, counts.terminating)
                for labels, counts in tally.of(owner).items()
            }
            assert told == walked(informer, owner)
