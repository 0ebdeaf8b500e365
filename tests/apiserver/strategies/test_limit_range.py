"""A limit range gets a name if it has none, and a change is judged like a new one."""

from __future__ import annotations

import re

from mooring.api.kinds import LIMIT_RANGE
from tests.apiserver.core_documents import changed, created, document, strategy


def test_a_limit_range_without_a_name_gets_one() -> None:
    made = document(LIMIT_RANGE, {"name": "", "uid": "01234567-89ab-4cde-8f01-23456789abcd"})
    assert created(LIMIT_RANGE, made) == []
    name = made["metadata"]["name"]
    assert re.fullmatch("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}", name)
    assert name != made["metadata"]["uid"]


def test_a_change_is_judged_like_a_new_one() -> None:
    faults, _ = changed(LIMIT_RANGE, document(LIMIT_RANGE), spec={"limits": [{"type": "Odd"}]})
    assert len(faults) == 1
    assert strategy(LIMIT_RANGE).allows_create_on_update
