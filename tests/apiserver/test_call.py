"""Calls: what the caller is warned of."""

from __future__ import annotations

from mooring.api.kinds import POD
from mooring.apiserver.access.users import User
from mooring.apiserver.call import WARNINGS_MAX, Call


def new_call(*warnings: str) -> Call:
    return Call("create", POD, User("tester"), 0.0, "", warnings=list(warnings))


def test_each_text_is_said_once() -> None:
    call = new_call("deprecated")
    for text in ("deprecated", "a", "b", "a"):
        call.warn(text)
    assert call.warnings == ["deprecated", "a", "b"]


def test_warnings_are_bounded() -> None:
    call = new_call()
    for number in range(WARNINGS_MAX + 10):
        call.warn(f"unknown field {number}")
    assert len(call.warnings) == WARNINGS_MAX
