"""Who owns an object."""

from __future__ import annotations

import pytest

from mooring.api.ownership import controller_of
from mooring.api.views.meta import ObjectMeta, OwnerReference


@pytest.mark.parametrize(
    ("owners", "controller"),
    [
        ([], None),
        ([("a", False)], None),
        ([("a", True)], "a"),
        ([("a", False), ("b", True)], "b"),
        ([("a", True), ("b", True)], "a"),
    ],
    ids=["nobody", "a mere owner", "one", "one of two", "the first"],
)
def test_the_controller_is_the_owner_that_says_so(owners: list[tuple[str, bool]], controller: str | None) -> None:
    references = tuple(OwnerReference(name=name, controller=is_controller) for name, is_controller in owners)
    found = controller_of(ObjectMeta(owner_references=references))
    assert (found.name if found is not None else None) == controller
