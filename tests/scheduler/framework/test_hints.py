"""Questions that hints ask about pods."""

from __future__ import annotations

import pytest

from mooring.api.views.pod import Pod
from mooring.scheduler.framework.hints import is_about_itself, never, takes_up_room
from tests.builders import pod
from tests.scheduler.harness import engine_of


@pytest.mark.parametrize(
    ("view", "is_taking"), [(pod(on="n1"), True), (pod(nominated="n1"), True), (pod(), False)], ids=str
)
def test_a_pod_takes_up_room_where_it_is_and_where_it_was_promised(view: Pod, is_taking: bool) -> None:
    assert takes_up_room(engine_of().record(view)) is is_taking


def test_a_pod_is_itself_by_its_uid() -> None:
    engine = engine_of()
    asleep, updated, namesake = (engine.record(pod("p", uid=uid)) for uid in ("1", "1", "2"))
    assert is_about_itself(asleep, asleep, updated)
    assert not is_about_itself(asleep, asleep, namesake)
    assert not is_about_itself(asleep, asleep, None)


def test_some_events_are_only_worth_knowing() -> None:
    assert not never(engine_of().record(pod()), None, None)
