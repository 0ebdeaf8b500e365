"""News wait while the believed cluster has to stand still, and keep their order."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.views.pod import Pod
from mooring.client.interface import Change
from mooring.scheduler.intake.put_off import PutOffPages
from mooring.scheduler.standstill import Standstill
from tests.builders import pod


class Diary:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def replace(self, views: Sequence[Pod], revision: str) -> None:
        self.lines.append(f"all@{revision}")

    def apply(self, change: Change, view: Pod) -> None:
        self.lines.append(f"{change.value} {view.metadata.name}")

    def begin_list(self) -> None:
        self.lines.append("a list")

    def take_page(self, views: Sequence[Pod]) -> None:
        self.lines.append(f"some {len(views)}")

    def end_list(self, revision: str) -> None:
        self.lines.append(f"end@{revision}")


def test_news_wait_and_keep_their_order() -> None:
    diary, standstill = Diary(), Standstill()
    sink: PutOffPages[Pod] = PutOffPages(diary, diary, standstill)
    with standstill.held():
        sink.begin_list()
        sink.take_page([pod("a"), pod("b")])
        sink.end_list("3")
        sink.apply(Change.ADDED, pod("c"))
        sink.replace([], "4")
        assert diary.lines == []
    expected = ["a list", "some 2", "end@3", "ADDED c", "all@4"]
    assert diary.lines == expected
    sink.apply(Change.DELETED, pod("c"))
    assert diary.lines == [*expected, "DELETED c"]
