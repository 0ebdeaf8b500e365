"""The chain asks the plugins that have something to say, in order."""

from __future__ import annotations

from mooring.api.kinds import CONFIG_MAP, POD, Kind
from mooring.apiserver.admission.chain import Chain
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup
from mooring.apiserver.call import Operation
from tests.apiserver.admission.builders import Known, attempt, pod, wait


class Noting(Admission):
    """Notes what it is asked."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name = name
        self._notes = notes

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        self._notes.append(f"{self.name} handles?")
        return kind is POD

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        self._notes.append(f"{self.name} admits")

    async def check(self, attempt: Attempt, lookup: Lookup) -> None:
        self._notes.append(f"{self.name} checks")


def test_the_order_and_that_handling_is_asked_once() -> None:
    notes: list[str] = []
    chain = Chain([Noting("a", notes), Noting("b", notes)], [Noting("c", notes)], Known())
    made = attempt(POD, pod())
    for _ in range(2):
        wait(chain.admit(made))
        wait(chain.check(made))
    assert notes == [*(f"{name} handles?" for name in "abc"), *("a admits", "b admits", "c checks") * 2]


def test_a_deletion_meets_all_of_them_at_once() -> None:
    notes: list[str] = []
    chain = Chain([Noting("a", notes)], [Noting("b", notes)], Known())
    wait(chain.check_deletion(attempt(POD, None, pod(), operation=Operation.DELETE)))
    assert notes[2:] == ["a admits", "b checks"]


def test_others_are_not_asked() -> None:
    notes: list[str] = []
    wait(Chain([Noting("a", notes)], [], Known()).admit(attempt(CONFIG_MAP, pod())))
    assert notes == ["a handles?"]
